"""Beyond the papers: how to clip, how many steps, how many rows and how much time private screening takes."""

from _common import COLOURS, axes, trial_number
from engine import Experiment
from paper001_screening import cells

SWEEPS = {"clip": "feature_bound", "n_iter": "steps", "radius": "radius / default", "epsilon": "epsilon",
          "share": "share for screening"}  # fmt: skip


def trial_of(name, part):
    def trial(config, seed):
        import _screening

        rows = list(getattr(_screening, part)(trial_number(name, seed)))
        out = list(cells(rows))
        for row, measured in zip(rows, out, strict=True):
            for key in ("seconds", "x"):
                if key in row:
                    measured[key] = float(row[key])
            if "live" in row:
                live = row["live"]
                measured["features left"] = float(live[-1] if isinstance(live, list) else live)
        return out

    return trial


def plot(summary, path):
    found, save = axes(path, len(SWEEPS), ylabel="F1", ylim=(0, 1.02))
    rules = list(dict.fromkeys(c["method"].split(",")[0] for c in summary.cells))
    for axis, (data, label) in zip(found, SWEEPS.items(), strict=True):
        for rule, colour in zip(rules, COLOURS, strict=False):  # one colour a rule in all panels
            points = sorted(
                (summary.mean("x", None, **c), summary.mean("F1", None, **c))
                for c in summary.cells
                if c["data"] == data and c["method"].split(",")[0] == rule
            )
            if points:
                axis.plot(*zip(*points, strict=True), marker="o", ms=3, color=colour, label=rule)
        axis.set(xlabel=label, xscale="log")
    save()


def best_settings(summary):
    texts = []
    for data, label in SWEEPS.items():
        found = [c for c in summary.cells if c["data"] == data]
        if found:
            best = max(found, key=lambda c: summary.mean("F1", None, **c))
            texts.append(f"{label}: {best['method']} (F1 {summary.mean('F1', None, **best):.2f})")
    return "Best of each sweep: " + "; ".join(texts) + "."


def rows_needed(summary):
    texts = [
        f"{c['data']}: {summary.mean('features left', None, **c):.0f} left"
        for c in summary.cells
        if c["method"] == "counts"
    ]
    return f"Free screening by counts, of 100 features with 12 active: {'; '.join(texts)}."


def time_saved(summary):
    texts = []
    for data in dict.fromkeys(c["data"] for c in summary.cells):
        without = summary.mean("seconds", None, data=data, method="no screening")
        once = summary.mean("seconds", None, data=data, method="top-k after a tenth")
        texts.append(f"{data} {without / once:.2g} times")
    return f"Rarely: a single early screening is as fast as none by {', '.join(texts)}."


COMMON = {
    "configurations": lambda quick: [{"part": "all", "mode": "proven"}], "many": True, "trials": (1, 3),
    "claim": "(No paper.) Guidance for docs/choosing_method.md.",
}  # fmt: skip

EXPERIMENTS = (
    Experiment(
        name="screening-guidance", title="clipping, steps, radius, budget and share",
        trial=trial_of("screening-guidance", "part_guidance"), metrics={"F1": ".3f", "density": ".3f"},
        verdict=best_settings, plot=plot, protocol="3000 x 600, 70 active, epsilon 5 unless swept.", **COMMON,
    ),
    Experiment(
        name="screening-rows", title="how many rows paid rules need",
        trial=trial_of("screening-rows", "part_rows"),
        metrics={"F1": ".3f", "MSE": ".3f", "features left": ".0f"},
        verdict=rows_needed, protocol="100 features, 12 active, epsilon 1, delta 1e-6; MSE over the variance.",
        **COMMON,
    ),
    Experiment(
        name="screening-cost", title="does screening save time",
        trial=trial_of("screening-cost", "part_cost"), metrics={"seconds": ".2f"},
        verdict=time_saved, protocol="Processor seconds of the same selections with and without.", **COMMON,
    ),
)  # fmt: skip

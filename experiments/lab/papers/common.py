"""What several chapters share: data by name, splits, scores, plain plots."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from dpsparse.random import make_generator
from lab.papers.chapter import derive_seed

RESULTS = Path(__file__).parents[2] / "results" / "papers"

# name in the tables -> (kind, argument, fraction of the original shape)
WIDE = {
    "rcv1": ("stand-in", "rcv1", 1.0),
    "news20": ("reconstruction", "news20", 1.0),
    "url": ("stand-in", "url", 0.02),
    "web": ("stand-in", "web", 0.01),
    "kdda": ("stand-in", "kdda", 0.02),
}


@lru_cache(maxsize=2)
def wide(name: str, fraction: float = 1.0):
    """X, y of a data set of Raff, Khanna and Lu (2023); `fraction` shrinks a stand-in further."""
    from papers_data import load_newsgroups_bigrams, make_wide_text

    kind, like, share = WIDE[name]
    if kind == "reconstruction":
        return load_newsgroups_bigrams()
    return make_wide_text(0, like, fraction=share * fraction)


def split(n: int, seed: int, share: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of a training and a test part."""
    order = make_generator(derive_seed("split", seed)).permutation(n)
    cut = round(n * share)
    return np.sort(order[cut:]), np.sort(order[:cut])


def classifier_scores(margins: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy and AUC in per cent."""
    from sklearn.metrics import roc_auc_score

    return {
        "accuracy": 100.0 * float(np.mean((margins > 0) == (y == 1))),
        "AUC": 100.0 * float(roc_auc_score(y, margins)),
    }


def thinned(n: int, points: int = 40) -> np.ndarray:
    """Positions of a curve that look even on a log axis."""
    return np.unique(np.geomspace(1, n, points).astype(int)) - 1


def axes(path: Path, panels: int = 1, columns: int = 2, height: float = 2.6, **labels: str):
    """A figure of column width with `panels` axes, and a function that labels and saves it.

    One column: every line has its label at its right end. Several: one key for all of them below, which covers no data.
    """
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    from lab import look as style

    style.use()
    columns = min(columns, panels)
    rows = -(-panels // columns)
    figure, found = plt.subplots(
        rows, columns, figsize=(7.2, height * rows + 0.3), squeeze=False, layout="constrained"
    )
    found = list(found.flat)
    for axis in found[panels:]:
        axis.remove()
    found = found[:panels]
    for axis in found:
        axis.set(**labels)

    def save() -> None:
        for axis in found:
            style.readable_logs(axis)
        if columns == 1:
            for axis in (a for a in found if a.get_legend() is None):
                style.label_ends(axis, fontsize=8 if len(axis.get_lines()) > 6 else 10)
        else:
            key = {
                label: line for axis in found for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
            }  # fmt: skip
            figure.legend(
                key.values(), key, loc="outside lower center", fontsize=9, handlelength=3,
                ncols=3 if max(map(len, key), default=0) < 25 else 2,
            )  # fmt: skip
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)

    return found, save


# Okabe and Ito, which the colour-blind can tell apart; with more lines than colours the marker changes as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^v"
STYLES = {"nonprivate": ":", "published": "--", "proven": "-"}


def plot_by_epsilon(
    summary, path: Path, metric: str, panels=({},), titles=("",), log=False
) -> None:
    """One line per method and mode over epsilon, with a band of one standard error; dashes are published calibrations.

    A cell without an epsilon is drawn as a reference: "majority" is what knowing nothing gives.
    """
    from lab import look as style

    methods = list(dict.fromkeys(c["method"] for c in summary.cells if "epsilon" in c))
    lines = {
        (method, mode)
        for method in methods
        for mode in STYLES
        if summary.average(metric, mode, method=method) is not None
    }
    modes = [tuple(STYLES)]
    if (
        len(panels) == 1 and len(lines) > 9
    ):  # too many for one panel: what was printed, and what is proven
        modes, titles = [("published",), ("proven", "nonprivate")], ("as published", "proven")
        panels = panels * 2
    found, save = axes(
        path, len(panels), columns=2 if len(modes) == 1 else 1, height=2.6 if len(modes) == 1 else 3.4,
        ylabel=metric, xscale="log",
    )  # fmt: skip
    for k, (axis, panel, title) in enumerate(zip(found, panels, titles, strict=True)):
        cells = [c for c in summary.cells if all(c.get(k) == v for k, v in panel.items())]
        budgets = sorted({c["epsilon"] for c in cells if "epsilon" in c})
        if budgets:
            style.epsilon_axis(axis, budgets)
        for i, method in enumerate(methods):
            for mode in modes[k % len(modes)]:
                points = [
                    (c["epsilon"], summary.average(metric, mode, **c))
                    for c in cells
                    if c["method"] == method and "epsilon" in c
                ]
                points = sorted(((e, a) for e, a in points if a is not None), key=lambda p: p[0])
                if points:
                    e, mean, error = np.array([(e, a.mean, a.error) for e, a in points]).T
                    colour = COLOURS[i % len(COLOURS)]
                    low = np.maximum(mean - error, 0.5 * mean) if log else mean - error
                    axis.fill_between(e, low, mean + error, color=colour, alpha=0.18, lw=0)
                    axis.plot(
                        e, mean, ls=STYLES[mode], color=colour, marker=MARKERS[i // len(COLOURS) % 5],
                        ms=4, lw=1.5, label=method if len(modes) > 1 or mode == "proven" else f"{method}, {mode}",
                    )  # fmt: skip
        known = {c["method"]: summary.mean(metric, None, **c) for c in cells if "epsilon" not in c}
        chance = known.pop("majority", None)
        style.references(axis, next(iter(known.values()), None), chance, what="chance")
        axis.set_title(title)
        if log:
            axis.set_yscale("log")
    save()

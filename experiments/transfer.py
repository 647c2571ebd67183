"""Paper 003, Figure 2: relative estimation error of support-first methods, proven and published.

    python experiments/transfer.py            three trials of the small setting (minutes)
    python experiments/transfer.py --quick    one trial, two budgets (seconds)
    python experiments/transfer.py --full     ten trials of both settings (hours on one core)

Rows are appended to results/transfer.jsonl, one per (setting, task, method, epsilon, trial); what is
there is not run again. The table and the plot are written from all rows beside that file.
Noise is seeded, so that rows can be reproduced: these models are for measurement, not for release.
"""

from __future__ import annotations

import argparse
import math
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _ight import dp_ight
from _rows import Rows, markdown, mean_and_error

from dpsparse.domain import Domain
from dpsparse.estimators.transfer import DPTransferClassifier, DPTransferRegressor
from dpsparse.estimators.two_stage import DPTwoStageClassifier, DPTwoStageRegressor
from dpsparse.exceptions import NotPrivateWarning
from dpsparse.losses import Logistic, Squared
from dpsparse.solvers.transfer import ight

try:
    from dpsparse.estimators.lasso import DPLassoClassifier, DPLassoRegressor
except ImportError:  # the Frank-Wolfe family is not installed: its curve is left out
    DPLassoClassifier = DPLassoRegressor = None

SETTINGS = {"small": (800, 1000, 10), "large": (4000, 5000, 50)}
EPSILONS = {"linear": (0.8, 1.5, 2.5, 3.5, 5.0), "logistic": (2.0, 4.0, 6.0, 8.0, 10.0)}
DELTA = 0.01
# Rivals tune by (uncharged) cross-validation. Here every value runs and the best mean error against
# the truth is shown, which flatters them; the methods marked "defaults" run once, untuned.
PUBLISHED_RIDGES = (0.03, 0.1, 0.3, 1.0)
PUBLISHED_C1 = (10.0, 20.0)  # times the paper's formula; smaller ones are worse (noise ~ 1/ridge)
TWO_STAGE_C3 = (0.1, 1.0, 10.0, 100.0)
IGHT_STEPS = (0.15, 0.5, 1.0)  # in units of 3/smoothness
IGHT_ITERATIONS = (5, 10, 20)
TRIED = {
    "IGHT (non-private)": "1",
    "DPSL-KT (published)": f"{len(PUBLISHED_RIDGES) + len(PUBLISHED_C1)}, best",
    "Two-Stage (published)": f"{len(TWO_STAGE_C3) + 1}, best",
    "DP-IGHT (proven)": f"{len(IGHT_STEPS) * len(IGHT_ITERATIONS)}, best",
    "DP-IGHT (published)": f"{len(IGHT_STEPS) * len(IGHT_ITERATIONS)}, best",
    "Frank-Wolfe (proven)": "1",
}
RESULTS = Path(__file__).parent / "results"


def make_data(setting: str, task: str, trial: int):
    """Section 5.1: X uniform(-1, 1), s random weights (standard normal), noise variance 0.1."""
    n, d, s = SETTINGS[setting]
    rng = np.random.default_rng([trial, n, d])
    X = rng.uniform(-1.0, 1.0, (n, d))
    theta = np.zeros(d)
    theta[rng.choice(d, s, replace=False)] = rng.standard_normal(s)
    if task == "linear":
        y = X @ theta + math.sqrt(0.1) * rng.standard_normal(n)
    else:
        y = (rng.random(n) < 1.0 / (1.0 + np.exp(-(X @ theta)))).astype(int)
    return X, y, theta


def methods(setting: str, task: str, epsilon: float, seed: int):
    """Name -> function (X, y) to weights. |y| <= 1.5 sqrt(s) is declared: 2.6 standard deviations."""
    n, d, s = SETTINGS[setting]
    linear = task == "linear"
    domain = Domain(
        feature_bound=1.0,
        target_bound=1.5 * math.sqrt(s) if linear else None,
        classes=None if linear else [0, 1],
        n_samples=n,
    )
    two_stage = DPTwoStageRegressor if linear else DPTwoStageClassifier
    transfer = DPTransferRegressor if linear else DPTransferClassifier
    common = {
        "domain": domain, "epsilon": epsilon, "delta": DELTA, "n_nonzero": s,
        "fit_intercept": False, "random_state": seed,
    }  # fmt: skip
    models = {
        "peeling + objective perturbation (proven)": two_stage(**common),
        "Two-Stage, votes (proven)": two_stage(support="votes", **common),
        "DPSL-KT, direct release (proven)": transfer(**common),
        "DPSL-KT, distilled (proven)": transfer(public_X="uniform", **common),
        "Two-Stage (published)": two_stage(calibration="published", **common),
    }
    for ridge in PUBLISHED_RIDGES:
        models[f"DPSL-KT (published) ridge={ridge}"] = transfer(
            calibration="published", ridge=ridge, **common
        )
    if DPLassoRegressor is not None:
        lasso = DPLassoRegressor if linear else DPLassoClassifier
        models["Frank-Wolfe (proven)"] = lasso(radius=0.8 * s, n_iter=4 * s, **common)
    out = {name: weights_of(model) for name, model in models.items()}
    formula = math.sqrt(s * math.log(d) * math.log(1.0 / DELTA)) / (n * epsilon)
    for c1 in PUBLISHED_C1:  # with gamma = 1, about the largest residual at the minimiser
        tuned = common | {"calibration": "published", "ridge": c1 * formula}
        model = transfer(cutoff=1.0, **tuned) if linear else transfer(**tuned)
        out[f"DPSL-KT (published) [c1={c1:g}, gamma=1]"] = weights_of(model)
    for c3 in TWO_STAGE_C3:
        out[f"Two-Stage (published) [c3={c3:g}]"] = weights_of(
            two_stage(calibration="published", ridge=c3 * s / epsilon, **common)
        )
    for kind in ("proven", "published"):
        for unit in IGHT_STEPS:
            for n_iter in IGHT_ITERATIONS:
                out[f"DP-IGHT ({kind}) [step={unit:g}, T={n_iter}]"] = partial(
                    dp_ight,
                    loss=Squared() if linear else Logistic(),
                    n_nonzero=s,
                    epsilon=epsilon,
                    delta=DELTA,
                    clip=0.5 * math.sqrt(d / 3.0),  # half of a typical row's norm
                    step=unit * (3.0 if linear else 12.0),
                    n_iter=n_iter,
                    published=kind == "published",
                    seed=seed,
                )
    return out


def weights_of(model):
    return lambda X, y: np.ravel(model.fit(X, y).coef_)


def run(settings: list[str], trials: int, quick: bool) -> Rows:
    rows = Rows(RESULTS / "transfer.jsonl", ("setting", "task", "method", "epsilon", "trial"))
    for setting in settings:
        for trial in range(trials):
            for task in EPSILONS:
                run_trial(rows, setting, task, trial, EPSILONS[task][:: 4 if quick else 1])
    return rows


def run_trial(rows: Rows, setting: str, task: str, trial: int, epsilons: tuple[float, ...]) -> None:
    X, y, theta = make_data(setting, task, trial)
    size = np.linalg.norm(theta)
    key = (setting, task, "IGHT (non-private)", math.inf, trial)
    if key not in rows:
        loss = Squared() if task == "linear" else Logistic()
        estimate = ight(X, y, loss, n_nonzero=SETTINGS[setting][2], n_iter=100)
        rows.add(key, error=float(np.linalg.norm(estimate - theta) / size))
    for epsilon in epsilons:
        for name, fit in methods(setting, task, epsilon, trial).items():
            key = (setting, task, name, epsilon, trial)
            if key not in rows:
                rows.add(key, error=float(np.linalg.norm(fit(X, y) - theta) / size))


def summary(rows: Rows) -> list[dict]:
    """Mean error per method and epsilon; of a method's tried settings the best one.

    Only trials that every method has finished count, so that all see the same tables.
    """
    rows = rows.paired(("setting", "task"), ("method", "epsilon"))
    out = []
    for key, values in rows.group(("setting", "task", "method", "epsilon"), "error").items():
        mean, error = mean_and_error(values)
        out.append(
            dict(zip(("setting", "task", "method", "epsilon"), key, strict=True))
            | {"mean": mean, "error": error, "trials": len(values)}
        )
    best: dict[tuple, dict] = {}
    for row in out:
        row["method"] = row["method"].split(" ridge=")[0].split(" [")[0]
        key = (row["setting"], row["task"], row["method"], row["epsilon"])
        if key not in best or row["mean"] < best[key]["mean"]:
            best[key] = row
    return list(best.values())


def table(lines: list[dict]) -> str:
    text = ["# Paper 003, Figure 2: |estimate - truth| / |truth|, mean (standard error)", ""]
    for setting, (n, d, s) in SETTINGS.items():
        for task, epsilons in EPSILONS.items():
            part = [r for r in lines if r["setting"] == setting and r["task"] == task]
            if not part:
                continue
            text += [f"## {task}, n = {n}, d = {d}, s = {s}, delta = {DELTA}", ""]
            cells = {
                (r["method"], r["epsilon"]): f"{r['mean']:.3f} ({r['error']:.3f})" for r in part
            }
            body = []
            for method in dict.fromkeys(r["method"] for r in part):
                free = cells.get((method, math.inf))
                trials = str(min(r["trials"] for r in part if r["method"] == method))
                tried = TRIED.get(method, "1 (defaults)")
                shown = (free or cells.get((method, e), "") for e in epsilons)
                body.append([method, tried, trials, *shown])
            header = ["method", "settings tried", "trials", *(f"eps {e:g}" for e in epsilons)]
            text += [markdown(header, body), ""]
    return "\n".join(text)


def plot(lines: list[dict], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [
        (s, t)
        for s in SETTINGS
        for t in EPSILONS
        if any(r["setting"] == s and r["task"] == t for r in lines)
    ]
    figure, axes = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 4.4), squeeze=False)
    order = list(dict.fromkeys(r["method"] for r in lines))
    for axis, (setting, task) in zip(axes[0], panels, strict=True):
        for i, method in enumerate(order):
            part = sorted(
                (
                    r
                    for r in lines
                    if (r["setting"], r["task"], r["method"]) == (setting, task, method)
                ),
                key=lambda r: r["epsilon"],
            )
            if not part:
                continue
            if math.isinf(part[0]["epsilon"]):
                axis.axhline(part[0]["mean"], color="black", lw=1, label=method)
                continue
            axis.errorbar(
                [r["epsilon"] for r in part], [r["mean"] for r in part], [r["error"] for r in part],
                color=f"C{i}", marker="o", ms=4, capsize=2,
                ls="--" if "published" in method else "-", label=method,
            )  # fmt: skip
        n, d, s = SETTINGS[setting]
        axis.set(title=f"{task}: n={n}, d={d}, s={s}", xlabel="epsilon", yscale="log")
    axes[0][0].set_ylabel("relative estimation error")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, fontsize=8)
    figure.tight_layout(rect=(0, 0.17, 1, 1))
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--trials", type=int)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", NotPrivateWarning)
    settings = ["small", "large"] if arguments.full else ["small"]
    trials = arguments.trials or (1 if arguments.quick else 10 if arguments.full else 3)
    lines = summary(run(settings, trials, arguments.quick))
    (RESULTS / "transfer.md").write_text(table(lines))
    plot(lines, RESULTS / "transfer.png")


if __name__ == "__main__":
    main()

"""Paper 003: Figure 2 from the parts of transfer.py; Tables 2 and 3 on stand-ins, same protocol."""

import math

import numpy as np
from _common import plot_by_epsilon, trial_number

from dpsparse.reproduce import Experiment, derive_seed

PANELS = [(s, t) for s in ("small", "large") for t in ("linear", "logistic")]


# ---- Figure 2 -------------------------------------------------------------------------------------


def configurations(quick):
    panels = [("small", "linear"), ("small", "logistic")] if quick else PANELS
    out = []
    for setting, task in panels:
        epsilons = (0.8, 1.5, 2.5, 3.5, 5.0) if task == "linear" else (2.0, 4.0, 6.0, 8.0, 10.0)
        for epsilon in epsilons[2:3] if quick else epsilons:
            config = {"setting": setting, "task": task, "epsilon": epsilon, "mode": "proven"}
            out.append(config)
    return out


def trial(config, seed):
    import transfer

    number = trial_number("003-figure2", seed)
    setting, task, epsilon = config["setting"], config["task"], config["epsilon"]
    X, y, truth = transfer.make_data(setting, task, number)
    size = np.linalg.norm(truth)
    out = []
    for method, mode, tuning, fit in transfer.methods(setting, task, epsilon, number):
        weights, guarantee = fit(X, y)
        cell = {"method": method, "mode": mode, "tuning": tuning}
        error = float(np.linalg.norm(weights - truth) / size)
        out.append({"cell": cell, "error": error, "guarantee": guarantee})
    return out


def verdict(summary):
    texts, close = [], []
    for setting, task in PANELS:
        panel = {"setting": setting, "task": task}
        cells = [c for c in summary.cells if all(c[k] == v for k, v in panel.items())]
        if not cells:
            continue
        epsilon = max(c["epsilon"] for c in cells)
        printed = summary.mean("error", "published", epsilon=epsilon, method="DPSL-KT", **panel)
        without = summary.mean("error", "nonprivate", epsilon=epsilon, method="IGHT", **panel)
        proven = {
            c["method"]: summary.mean("error", "proven", **c)
            for c in cells
            if c["epsilon"] == epsilon
        }
        proven = {m: e for m, e in proven.items() if not math.isnan(e)}
        best = min(proven, key=proven.get)
        close.append(printed <= 2 * without)
        texts.append(
            f"{task} {setting} at epsilon {epsilon:g}: non-private {without:.2f}, DPSL-KT as published "
            f"{printed:.2f}, best proven {proven[best]:.2f} ({best})"
        )
    holds = "Holds as published" if all(close) else "Not reproduced, even as published"
    return (
        f"{holds}; the theorem behind it is false (the teacher's support can flip). Relative errors, 1 is that of "
        f"the zero vector, settings picked in hindsight and not charged: {'; '.join(texts)}."
    )


def plot(summary, path):
    shown = [p for p in PANELS if any((c["setting"], c["task"]) == p for c in summary.cells)]
    plot_by_epsilon(
        summary, path, "error", [{"setting": s, "task": t} for s, t in shown],
        [f"{t}, {s}" for s, t in shown], log=True,
    )  # fmt: skip


# ---- Tables 2 and 3 ------------------------------------------------------------------------------

TABLES = {
    # task, stand-in, columns, n_nonzero, epsilons
    "003-table2": ("regression", "e2006", 25_000, 2000, (0.8, 1.5, 2.5, 3.5, 4.5)),
    "003-table3": ("binary", "rcv1", 20_000, 500, (2, 4, 6, 8)),
}


def table_configurations(name):
    def configs(quick):
        epsilons = TABLES[name][-1]
        if quick:
            return [{"epsilon": epsilons[2], "mode": "proven", "fraction": 0.05}]
        return [{"epsilon": e, "mode": "proven"} for e in epsilons]

    return configs


def table_trial(name):
    def run(config, seed):
        task, like, width, n_nonzero, _ = TABLES[name]
        fraction = config.get("fraction", 1.0)
        (X, y), (X_test, y_test), s = _halves(like, task, width, n_nonzero, fraction, seed)
        out = [
            {
                "cell": {"method": "IGHT", "mode": "nonprivate"},
                **_ight(task, X, y, s, X_test, y_test),
            }
        ]
        for method, mode, model in _models(task, config["epsilon"], s, X.shape[0], seed):
            found = _score(task, model.fit(X, y).predict(X_test), y_test)
            guarantee = model.plan(X.shape[1]).guarantee
            out.append({"cell": {"method": method, "mode": mode}, "guarantee": guarantee, **found})
        return out

    return run


def _ight(task, X, y, n_nonzero, X_test, y_test):
    from dpsparse.losses import Logistic, Squared
    from dpsparse.published.wang_gu_2020_transfer import ight

    loss = Squared() if task == "regression" else Logistic()
    margins = X_test @ ight(X, y, loss, n_nonzero=n_nonzero, n_iter=100)
    return _score(task, margins if task == "regression" else (margins > 0) * 1, y_test)


def _halves(like, task, width, n_nonzero, fraction, seed):
    """Half of the rows are private; a random part of the columns; the rest tests (at most 3308 rows)."""
    from dpsparse.datasets import make_wide_text
    from dpsparse.random import make_generator

    X, y = make_wide_text(0, like, fraction=fraction, task=task)
    rng = make_generator(derive_seed("003", seed))
    width = min(round(width * fraction), X.shape[1])
    rows = rng.permutation(X.shape[0])
    columns = np.sort(rng.permutation(X.shape[1])[:width])
    X = X[:, columns]
    half = X.shape[0] // 2
    test = rows[half : half + 3308]
    return (X[rows[:half]], y[rows[:half]]), (X[test], y[test]), max(round(n_nonzero * fraction), 5)


def _models(task, epsilon, s, n, seed):
    import dpsparse as dp

    bounds = {"target_bound": 4.0} if task == "regression" else {"classes": [0, 1]}
    domain = dp.Domain(row_norm=1.0, n_samples=n, **bounds)
    kind = "Regressor" if task == "regression" else "Classifier"

    def model(family, **options):
        words = derive_seed(seed, family, epsilon, *options)
        cls = getattr(dp, f"DP{family}{kind}")
        return cls(domain=domain, epsilon=epsilon, delta=1e-5, random_state=words, **options)

    path = {"n_iter": min(s, 1000), "radius": 20.0}
    yield "Frank-Wolfe", "proven", model("Lasso", **path)
    yield "Frank-Wolfe", "published", model("Lasso", **path, calibration="published-laplace")
    for mode in ("proven", "published"):
        options = {"n_nonzero": s} | ({} if mode == "proven" else {"calibration": mode})
        yield "DP-IGHT", mode, model("HardThreshold", **options)
        yield "Two-Stage", mode, model("TwoStage", **options)
        yield "DPSL-KT", mode, model("Transfer", **options)
    yield "noisy gradients (ours)", "proven", model("Gradient", n_nonzero=s)


def _score(task, predicted, y):
    if task == "regression":
        return {"MSE": float(np.mean((predicted - y) ** 2))}
    return {"test error": float(np.mean(predicted != y))}


def table_verdict(metric):
    def verdict(summary):
        epsilons = sorted({c["epsilon"] for c in summary.cells})
        texts = []
        for epsilon in (epsilons[0], epsilons[-1]):
            proven = {
                c["method"]: summary.mean(metric, "proven", **c)
                for c in summary.cells
                if c["epsilon"] == epsilon
            }
            proven = {m: v for m, v in proven.items() if not math.isnan(v)}
            if proven:
                best = min(proven, key=proven.get)
                texts.append(
                    f"epsilon {epsilon:g}: DPSL-KT {proven.get('DPSL-KT', math.nan):.3f}, "
                    f"best {best} {proven[best]:.3f}"
                )
        zero = ", on a stand-in (the originals cannot be had), at a true guarantee: "
        return "Cannot be compared in numbers" + zero + "; ".join(texts) + "."

    return verdict


PROTOCOL3 = (
    "Synthetic stand-in with the shape and protocol of the paper: half of the rows private, random columns, delta "
    "1e-5. Rows have norm 1; targets are bounded by 4. The paper tunes each method by cross-validation that it does "
    "not charge; ours run with one public setting."
)

EXPERIMENTS = (
    Experiment(
        name="003-figure2",
        title="estimation error of sparse linear and logistic regression",
        configurations=configurations,
        trial=trial,
        trials=(1, 10),
        many=True,
        metrics={"error": ".3f"},
        claim="DPSL-KT recovers the sparse vector close to the non-private error, even at epsilon 0.8.",
        verdict=verdict,
        instead="DPTwoStage* with the default support (peeling), and many more rows.",
        protocol=(
            "delta 0.01; n=800, d=1000, s=10 and n=4000, d=5000, s=50. Rivals are tuned in hindsight, at no charge: "
            "DP-IGHT shows the best mean of 9 settings, DPSL-KT as published of 6, Two-Stage as published of 5. "
            "All others run once, ours with their defaults."
        ),
        tuned_by="error",
        plot=plot,
    ),
    Experiment(
        name="003-table2",
        title="mean squared error on E2006-tfidf (stand-in)",
        configurations=table_configurations("003-table2"),
        trial=table_trial("003-table2"),
        trials=(1, 3),
        many=True,
        metrics={"MSE": ".3f"},
        claim="DPSL-KT has the lowest error of all private methods.",
        verdict=table_verdict("MSE"),
        instead="DPGradientRegressor.",
        protocol=PROTOCOL3,
    ),
    Experiment(
        name="003-table3",
        title="test error on RCV1 (stand-in)",
        configurations=table_configurations("003-table3"),
        trial=table_trial("003-table3"),
        trials=(1, 3),
        many=True,
        metrics={"test error": ".3f"},
        claim="DPSL-KT has the lowest error of all private methods.",
        verdict=table_verdict("test error"),
        instead="DPGradientClassifier.",
        protocol=PROTOCOL3,
    ),
)

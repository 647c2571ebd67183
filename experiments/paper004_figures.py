"""Paper 004, Figures 1 to 5: Sparsifier against its rivals on synthetic data and on KDD Cup 99."""

import math

import numpy as np
from _common import named, plot_by_epsilon, trial_number
from _data004 import NOTE, parts
from _printed import frank_wolfe, keep_largest, laplace_scale, noisy_count

from dpsparse.random import make_generator
from dpsparse.reproduce import Experiment, derive_seed

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
MEASURES = {
    "correct_zeros": "correct zeros (of 92)",
    "incorrect_zeros": "wrong zeros (of 8)",
    "f1": "F1",
    "error": "test error",
}


def configurations(quick):
    return [{"epsilon": e, "mode": "proven"} for e in (EPSILONS[3:4] if quick else EPSILONS)]


def _printed_sparsifier(X, y, epsilon, delta, seed):
    rng = make_generator(derive_seed("printed", seed, epsilon))
    n, p = X.shape
    scale = laplace_scale(10.0, 1000, n, epsilon - 0.05, delta)
    w = frank_wolfe(X, y, 10.0, 1000, scale, rng)
    return keep_largest(w, noisy_count(10, p, 0.05, rng))


def synthetic_trial(config, seed):
    import sparse_methods as sm

    number = trial_number("004-figure1", seed)
    X, y, X_test, y_test = sm.data(number)
    epsilon = config["epsilon"]
    found = {
        name: sm.measure(*fit(X, y), X_test, y_test)
        for name, fit in sm.methods(epsilon, number).items()
    }
    weights = _printed_sparsifier(X, y, epsilon, 1.0 / len(y), number)
    found["Sparsifier (published)"] = sm.measure(weights, 0.0, X_test, y_test)
    return best_settings(found)


def best_settings(found):
    """Where a method was tried with several settings the one of the lowest error counts, in hindsight."""
    best = {}
    for name, measured in found.items():
        base = name.split(" [")[0]
        if base not in best or measured["error"] < best[base]["error"]:
            best[base] = measured
    return [_part(*named(base), measured) for base, measured in best.items()]


def _sparsifier(X, y, epsilon, seed):
    """Sparsifier, proven: epsilon splits by basic composition; the count is a cheap noiseless fit."""
    from dpsparse import Domain, DPLassoClassifier, PrivateCount

    n, p = X.shape
    count = PrivateCount(int(math.sqrt(p)), int(2 * math.sqrt(p)), 0.05)
    model = DPLassoClassifier(
        Domain(classes=[0, 1], n_samples=n), epsilon=epsilon - 0.05, delta=1e-6, radius=10.0, n_iter=1000,
        fit_intercept=False, random_state=derive_seed("lasso", seed, epsilon),
    )  # fmt: skip
    exact = np.count_nonzero(frank_wolfe(X, y, 10.0, 200, 0.0, None))
    rng = make_generator(derive_seed("count", seed, epsilon))
    return keep_largest(np.ravel(model.fit(X, y).coef_), count.release(exact, p, rng))


def _part(method, mode, measured):
    shown = {MEASURES[k]: float(v) for k, v in measured.items() if k in MEASURES}
    return {"cell": {"method": method, "mode": mode}, **shown}


def kdd_trial(config, seed):
    from dpsparse import Domain, DPADMMClassifier, DPGradientClassifier, DPTwoStageClassifier

    A, a, B, b = parts("kddcup99", "published", seed)
    P, q, R, r = parts("kddcup99", "proven", seed)
    n, p = A.shape
    epsilon = config["epsilon"]
    domain = Domain(row_norm=1.0, classes=[0, 1], n_samples=n)
    common = {"epsilon": epsilon, "delta": 1e-6, "random_state": derive_seed(seed, epsilon)}
    k = round(1.5 * math.sqrt(p))
    models = {
        "Two-Stage": DPTwoStageClassifier(domain, n_nonzero=k, **common),
        "ADMM": DPADMMClassifier(domain, **common),
        "noisy gradients (ours)": DPGradientClassifier(domain, n_nonzero=k, **common),
    }
    out = []
    for name, model in models.items():
        error = float(np.mean(model.fit(P, q).predict(R) != r))
        out.append(
            {
                "cell": {"method": name, "mode": "proven"},
                "test error": error,
                "guarantee": model.plan(p).guarantee,
            }
        )
    printed = {
        "Two-Stage": DPTwoStageClassifier(domain, n_nonzero=k, calibration="published", **common),
        "ADMM": DPADMMClassifier(domain, calibration="published", **common),
    }
    for name, model in printed.items():
        error = float(np.mean(model.fit(A, a).predict(B) != b))
        out.append({"cell": {"method": name, "mode": "published"}, "test error": error})
    for mode, w, X, y in (
        ("proven", _sparsifier(P, q, epsilon, seed), R, r),
        ("published", _printed_sparsifier(A, a, epsilon, 1.0 / n, seed), B, b),
    ):
        error = float(np.mean((X @ w > 0) != (y == 1)))
        out.append({"cell": {"method": "Sparsifier", "mode": mode}, "test error": error})
    return out


def verdict(metric, larger_is_better):
    def text(summary):
        sign = 1 if larger_is_better else -1
        lines = []
        for mode in ("published", "proven"):
            won = tested = 0
            best_names = set()
            for epsilon in sorted({c["epsilon"] for c in summary.cells}):
                values = {
                    c["method"]: summary.mean(metric, mode, **c)
                    for c in summary.cells
                    if c["epsilon"] == epsilon
                }
                values = {m: v for m, v in values.items() if not math.isnan(v)}
                if "Sparsifier" not in values or len(values) < 2:
                    continue
                tested += 1
                best = max(values, key=lambda m: sign * values[m])
                best_names.add(best)
                won += sign * values["Sparsifier"] >= sign * values[best]
            rivals = ", ".join(sorted(best_names - {"Sparsifier"})) or "nobody"
            lines.append(f"{mode}: Sparsifier is best at {won} of {tested} budgets (else {rivals})")
        share = "Holds" if all(" 0 of" not in line for line in lines) else "Does not hold"
        return f"{share}. " + "; ".join(lines) + "."

    return text


SETTING = (
    "10,000 x 100, correlation 0.5^|i-j|, eight true weights; delta 1e-5 (Sparsifier as published: 1/n); "
    "radius 10, 1000 iterations. The paper chooses the radius on held-out private rows, which it does not charge; "
    "its ADMM curve is copied from another paper. Rivals as in experiments/sparse_methods.py."
)
SYNTHETIC = {
    "configurations": configurations, "trial": synthetic_trial, "trials": (1, 5), "many": True,
    "protocol": SETTING, "instead": "DPTwoStageClassifier with its default support (peeling).",
}  # fmt: skip


def _plot(metric):
    return lambda summary, path: plot_by_epsilon(summary, path, metric)


EXPERIMENTS = (
    Experiment(
        name="004-figure1",
        title="correct zeros on synthetic data",
        claim="Sparsifier finds more of the true zeros than its rivals.",
        metrics={"correct zeros (of 92)": ".1f"},
        verdict=verdict("correct zeros (of 92)", True),
        plot=_plot("correct zeros (of 92)"),
        **SYNTHETIC,
    ),
    Experiment(
        name="004-figure2",
        title="wrong zeros on synthetic data",
        claim="Sparsifier sets almost no true weight to zero.",
        metrics={"wrong zeros (of 8)": ".1f"},
        verdict=verdict("wrong zeros (of 8)", False),
        plot=_plot("wrong zeros (of 8)"),
        rows_of="004-figure1",
        **SYNTHETIC,
    ),
    Experiment(
        name="004-figure3",
        title="F1 of the support on synthetic data",
        claim="Sparsifier has the best F1.",
        metrics={"F1": ".3f"},
        verdict=verdict("F1", True),
        plot=_plot("F1"),
        rows_of="004-figure1",
        **SYNTHETIC,
    ),
    Experiment(
        name="004-figure4",
        title="test error on synthetic data",
        claim="Sparsifier has the lowest error at every epsilon.",
        metrics={"test error": ".3f"},
        verdict=verdict("test error", False),
        plot=_plot("test error"),
        rows_of="004-figure1",
        **SYNTHETIC,
    ),
    Experiment(
        name="004-figure5",
        title="test error on KDD Cup 99",
        configurations=configurations,
        trial=kdd_trial,
        trials=(1, 5),
        many=True,
        claim="Sparsifier and Two-Stage do well on KDD Cup 99; ADMM and DP-IGHT have higher errors.",
        metrics={"test error": ".4f"},
        verdict=verdict("test error", False),
        instead="DPGradientClassifier with n_nonzero.",
        protocol=f"60,000 connections, radius 10, 1000 iterations. {NOTE}",
        needs=("kddcup99",),
        plot=_plot("test error"),
    ),
)

"""Khanna, Lu and Raff (2023), Theorems 1 and 2, and Raff, Khanna and Lu (2023), B.1: utility bounds against errors."""

import math

import numpy as np
from scipy.special import expit

from _batched import lasso_runs
from _common import axes
from _sparsifier import (
    keep_largest,
    laplace_scale,
    noisy_count,
)
from dpsparse.random import make_generator
from engine import Experiment, derive_seed

P, RUNS, COUNT_EPSILON = 100, 20, 0.05
LASSO, SPARSIFIER = "private LASSO (Theorem 1)", "Sparsifier (Theorem 2)"


def configurations(quick):
    sizes = (500, 2000) if quick else (500, 2000, 8000, 32_000)
    return [{"n": n, "epsilon": 1.0, "mode": "published"} for n in sizes]


def trial(config, seed):
    """Unit ball, entries in [-1, 1], the iterations of Corollary 3 with curvature 1/4 and L = 1."""
    n, epsilon = config["n"], config["epsilon"]
    rng = make_generator(derive_seed(seed, n))
    X = rng.uniform(-1.0, 1.0, (n, P))
    truth = np.r_[np.full(8, 1.0), np.zeros(P - 8)]
    y = (rng.random(n) < expit(5.0 * X @ truth)).astype(int)

    def loss(w):
        return float(np.mean(np.logaddexp(0.0, X @ w) - y * (X @ w)))

    best = loss(lasso_runs(X, y, 1.0, 3000, 0.0, rng, 1)[:, 0])
    n_iter = max(round((0.25 * n * epsilon) ** (2 / 3)), 1)
    scale = laplace_scale(1.0, n_iter, n, epsilon, 1.0 / n)
    weights = lasso_runs(X, y, 1.0, n_iter, scale, rng, RUNS).T
    bound = 0.25 ** (1 / 3) * math.log(n * P * n) / (n * epsilon) ** (2 / 3)  # delta = 1/n
    low = math.isqrt(P)
    bias = min((P - low) / (low + 1.0), 1.0)
    out = [
        {"cell": {"method": LASSO}, "excess loss": loss(w) - best, "bound with constant 1": bound}
        for w in weights
    ]
    return out + [
        {
            "cell": {"method": SPARSIFIER},
            "excess loss": loss(keep_largest(w, noisy_count(10, P, COUNT_EPSILON, rng))) - best,
            "bound with constant 1": bound + bias,
        }
        for w in weights
    ]


def faster_bound(n, epsilon=1.0):
    """B.1 of Raff, Khanna and Lu (2023) with constant 1: 2p vertices, delta = 1/n."""
    return 0.25 ** (1 / 3) * math.log(2 * P * n) * math.sqrt(math.log(n)) / (n * epsilon) ** (2 / 3)


def _curve(summary, method, metric):
    found = sorted(c["n"] for c in summary.cells if c["method"] == method)
    return found, [summary.mean(metric, None, n=n, method=method) for n in found]


def verdict(summary):
    sizes, errors = _curve(summary, LASSO, "excess loss")
    _, bounds = _curve(summary, LASSO, "bound with constant 1")
    slope = np.polyfit(np.log(sizes), np.log(np.maximum(errors, 1e-9)), 1)[0]
    _, thinned = _curve(summary, SPARSIFIER, "excess loss")
    below = all(e <= b for e, b in zip(errors, bounds, strict=True))
    return (
        f"{'Holds' if below else 'Holds with a larger constant'}: the excess loss of private LASSO falls from "
        f"{errors[0]:.3f} to {errors[-1]:.4f} between n = {sizes[0]} and {sizes[-1]}, as n^{slope:.2f} (the theorem "
        f"allows n^-0.67), below the bound with constant 1 ({bounds[0]:.2f} to {bounds[-1]:.3f}; "
        "B.1 of Raff, Khanna and Lu "
        f"{faster_bound(sizes[0]):.2f} to {faster_bound(sizes[-1]):.3f}). Sparsifier's is "
        f"{thinned[0]:.3f} to {thinned[-1]:.4f}; Theorem 2's bound adds the constant 1 and says nothing: the loss "
        "of w = 0 "
        "is 0.69."
    )


def plot(summary, path):
    (axis,), save = axes(path, xlabel="rows", ylabel="excess loss", xscale="log", yscale="log")
    for method in (LASSO, SPARSIFIER):
        axis.plot(*_curve(summary, method, "excess loss"), marker="o", label=method)
        axis.plot(*_curve(summary, method, "bound with constant 1"), "--", label=f"bound, {method}")
    sizes, _ = _curve(summary, LASSO, "excess loss")
    axis.plot(sizes, [faster_bound(n) for n in sizes], ":", label="bound, Raff, Khanna and Lu, B.1")
    save()


EXPERIMENTS = (
    Experiment(
        name="004-theorem1",
        title="utility bounds against measured errors (Theorems 1 and 2)",
        configurations=configurations,
        trial=trial,
        trials=(1, 1),
        many=True,
        metrics={"excess loss": ".4f", "bound with constant 1": ".3f"},
        claim="The excess loss of private LASSO is O(log(np/delta)/(n epsilon)^(2/3)); Sparsifier adds a constant.",
        verdict=verdict,
        protocol=(
            "100 uniform features, unit ball, epsilon 1, delta 1/n, T = (n epsilon/4)^(2/3), 20 runs. The "
            "statement of Raff, "
            "Khanna and Lu (2023), B.1, has log(2np) sqrt(log(1/delta)) for log(np/delta). A bound with an open "
            "constant can be shown to have the right slope on one law, not to hold."
        ),
        plot=plot,
    ),
)

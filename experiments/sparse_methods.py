"""Paper 004, Figures 1 to 4: data, methods and measures on its synthetic table.

    python experiments/sparse_methods.py            1 trial, one budget (seconds)
    python experiments/sparse_methods.py --full     50 trials, as in the paper

This is `dpsparse reproduce` for 004-figure1 to 004-figure4; rows, tables and plots are written by that
command. 10,000 rows of N(0, S), S_ij = 0.5^|i-j|, 100 features divided by their largest value in the data
(as printed; such scaling is not private, so the bound 1 is taken as declared), weights
10 9 8 7 6 5 4 0.5 and 92 zeros, label = sign of the margin. 20 % of the rows are for testing. Noise is seeded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
from _ight import dp_ight

from dpsparse import (
    Domain,
    DPADMMClassifier,
    DPGradientClassifier,
    DPLassoClassifier,
    DPTransferClassifier,
    DPTwoStageClassifier,
)
from dpsparse.losses import Logistic
from dpsparse.published.khanna_lu_raff_2023_sparsifier import (
    keep_largest,
    laplace_scale,
    noisy_count,
    private_lasso,
)
from dpsparse.random import make_generator
from dpsparse.reproduce import derive_seed

TRUTH = np.array([10.0, 9, 8, 7, 6, 5, 4, 0.5] + [0.0] * 92)
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
DELTA = 1e-5
IGHT_STEPS, IGHT_ITERATIONS = (8.0, 30.0, 100.0), (10, 30)


@lru_cache(maxsize=1)
def data(trial: int):
    rng = np.random.default_rng([trial, 4])
    p = len(TRUTH)
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    X = rng.multivariate_normal(np.zeros(p), covariance, size=10_000)
    X /= np.abs(X).max(axis=0)
    y = (X @ TRUTH > 0).astype(int)
    return X[:8000], y[:8000], X[8000:], y[8000:]


def methods(epsilon: float, seed: int) -> Iterator[tuple[str, str, str, Any]]:
    """(method, mode, tuning, fit); a fit takes X and y and gives weights, intercept and guarantee."""
    domain = Domain(feature_bound=1.0, row_norm=3.0, classes=[0, 1], n_samples=8000)
    common = {"domain": domain, "epsilon": epsilon, "delta": DELTA, "random_state": seed}
    kept = common | {"n_nonzero": 8}
    printed = {"calibration": "published"}
    yield "peeling + objective perturbation", "proven", "", fit_of(DPTwoStageClassifier(**kept))
    yield "noisy gradients", "proven", "", fit_of(DPGradientClassifier(**kept))
    yield "Two-Stage, votes", "proven", "", fit_of(DPTwoStageClassifier(support="votes", **kept))
    yield "Two-Stage", "published", "", fit_of(DPTwoStageClassifier(**kept, **printed))
    yield "DPSL-KT, direct release", "proven", "", fit_of(DPTransferClassifier(**kept))
    yield "ADMM L1", "proven", "", fit_of(DPADMMClassifier(**common))
    yield "ADMM L1/2", "proven", "", fit_of(DPADMMClassifier(penalty="l1/2", **common))
    yield "ADMM L1", "published", "", fit_of(DPADMMClassifier(**common, **printed))
    # The paper's private count at epsilon 0.05 is a coin flip between its bounds 10 and 20; a
    # public 15 is the same for free. 200 steps: with 1,000 the noise of each is larger.
    lasso = DPLassoClassifier(radius=10.0, n_iter=200, **(common | {"n_nonzero": 15}))
    yield "Sparsifier", "proven", "", fit_of(lasso)
    yield "Sparsifier", "published", "", partial(printed_sparsifier, epsilon=epsilon, seed=seed)
    for mode in ("proven", "published"):
        for step in IGHT_STEPS:
            for n_iter in IGHT_ITERATIONS:
                rival = partial(
                    dp_ight, loss=Logistic(), n_nonzero=8, epsilon=epsilon, delta=DELTA, clip=1.0,
                    step=step, n_iter=n_iter, published=mode == "published", seed=seed,
                )  # fmt: skip
                yield "DP-IGHT", mode, f"step {step:g}, T {n_iter}", without_intercept(rival)


def fit_of(model: Any) -> Any:
    def fit(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float, Any]:
        model.fit(X, y)
        return np.ravel(model.coef_), float(model.intercept_[0]), model.plan(X.shape[1]).guarantee

    return fit


def without_intercept(fit: Any) -> Any:
    def padded(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float, Any]:
        weights, guarantee = fit(X, y)
        return weights, 0.0, guarantee

    return padded


def printed_sparsifier(
    X: np.ndarray, y: np.ndarray, *, epsilon: float, seed: int
) -> tuple[np.ndarray, float, None]:
    """Algorithm 2 as printed: 1000 steps of Algorithm 1, then the noisy count (epsilon 0.05)."""
    rng = make_generator(derive_seed("printed", seed, epsilon))
    n, p = X.shape
    scale = laplace_scale(10.0, 1000, n, epsilon - 0.05, 1.0 / n)
    w = private_lasso(X, y, 10.0, 1000, scale, rng)
    return keep_largest(w, noisy_count(10, p, 0.05, rng)), 0.0, None


def measure(
    weights: np.ndarray, intercept: float, X: np.ndarray, y: np.ndarray
) -> dict[str, float]:
    """What Figures 1 to 4 show, in that order."""
    kept, true = weights != 0, TRUTH != 0
    hits = int(np.sum(kept & true))
    total = int(np.sum(kept)) + int(np.sum(true))
    return {
        "correct zeros (of 92)": int(np.sum(~kept & ~true)),
        "wrong zeros (of 8)": int(np.sum(~kept & true)),
        "F1": 2.0 * hits / total,
        "test error": float(np.mean((X @ weights + intercept > 0) != y)),
    }


if __name__ == "__main__":
    from dpsparse.reproduce.command import reproduce

    reproduce([*(f"004-figure{i}" for i in range(1, 5)), *sys.argv[1:]])

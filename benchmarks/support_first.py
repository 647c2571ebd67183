"""Fit times of the support-first methods on a wide sparse table: python benchmarks/support_first.py

20,000 x 50,000, at most 80 entries a row with Zipf columns, s = 100. Seconds, and peak memory.
"""

import resource
import time

import numpy as np
import scipy.sparse as sp

from dpsparse import (
    Domain,
    DPADMMClassifier,
    DPTransferClassifier,
    DPTransferRegressor,
    DPTwoStageClassifier,
    DPTwoStageRegressor,
)

N, D, PER_ROW, S = 20_000, 50_000, 80, 100


def table():
    rng = np.random.default_rng(0)
    columns = np.minimum(D ** rng.random(N * PER_ROW), D - 1).astype(np.int64)  # Zipf
    rows = np.repeat(np.arange(N), PER_ROW)
    X = sp.csr_array((np.ones(N * PER_ROW), (rows, columns)), shape=(N, D))
    X.data[:] = 1.0 / np.sqrt(PER_ROW)
    weights = np.zeros(D)
    weights[rng.choice(2000, S, replace=False)] = 5.0 * rng.standard_normal(S)
    margin = X @ weights
    return X, margin + 0.3 * rng.standard_normal(N), (rng.random(N) < 1 / (1 + np.exp(-margin))) * 1


def main():
    X, target, y = table()
    labels = Domain(feature_bound=0.2, row_norm=1.0, classes=[0, 1], n_samples=N)
    numbers = Domain(feature_bound=0.2, row_norm=1.0, target_bound=5.0, n_samples=N)
    kept = {"n_nonzero": S, "epsilon": 1.0}
    models = {
        "Two-Stage, peeling": DPTwoStageClassifier(labels, **kept),
        "Two-Stage, votes": DPTwoStageClassifier(labels, support="votes", **kept),
        "Two-Stage, regression": DPTwoStageRegressor(numbers, **kept),
        "transfer, direct release": DPTransferClassifier(labels, **kept),
        "transfer, distilled": DPTransferClassifier(labels, public_X="uniform", **kept),
        "transfer, regression": DPTransferRegressor(numbers, **kept),
        "ADMM L1": DPADMMClassifier(labels, epsilon=1.0),
        "ADMM L1/2": DPADMMClassifier(labels, penalty="l1/2", epsilon=1.0),
    }
    models["ADMM L1"].fit(X[:200], y[:200])  # compiles the clipping of rows
    seconds = {}
    for name, model in models.items():
        began = time.perf_counter()
        model.fit(X, target if "regression" in name else y)
        seconds[name] = time.perf_counter() - began
        print(f"{name:<26} {seconds[name]:6.1f} s", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{X.nnz} entries, peak memory {peak:.0f} MB")


if __name__ == "__main__":
    main()

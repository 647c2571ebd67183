"""Speed of the gradient methods: a fit against liblinear, a gradient against the memory it must read.

    python benchmarks/gradient.py                      RCV1 shape and a9a shape (about a minute)
    python benchmarks/gradient.py --shape news20       or kdda: needs 1 and 4 GB

Processor time, minima of a few runs. liblinear is scikit-learn's LogisticRegression(penalty="l1"), not private, at its
defaults. A pass is the time to read the rows once (8 bytes an entry: column and whole number) at the bandwidth measured
here by summing 256 MB, more than any cache holds.
Wall time of two threads is compared with that of one: it means something on a quiet machine only.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
from frank_wolfe import load
from numba import njit

from dpsparse.domain import Domain
from dpsparse.estimators import DPGradientClassifier
from dpsparse.rows import Rows, kernels

TARGETS = {"rcv1": 5.0, "narrow": 5.0, "news20": 5.0, "kdda": 12.0}  # passes an iteration may take


@njit(fastmath=True, nogil=True)
def _read(columns, z):
    total = 0
    for p in range(z.size):
        total += columns[p] + z[p]
    return total


def least(work, repeat=5):
    """(processor, wall) seconds, each the least of some runs after a first that does not count."""
    work()
    spent = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        spent.append((time.process_time() - cpu, time.perf_counter() - wall))
    return tuple(np.min(spent, axis=0))


def iteration(X, y):
    """(seconds of a pass, processor seconds of a gradient, wall seconds by one thread and by all)."""
    rows = Rows.clip(X, y, Domain(classes=[0, 1]), labels=np.array([0, 1]))
    units = rows.unit(np.ones(X.shape[1], np.float32))
    part = units._parts[0]
    weights = np.random.default_rng(0).normal(size=(units.width, 1))
    query = units.gradient("logistic", weights, np.zeros(1), clip=0.5, cutoff=0.5)
    unit = 2.0**-24
    out = np.zeros((units.width + 1, 1), np.int64)
    fine = 0.5 / (unit * kernels.ROW * kernels.SLOPE)
    alone = lambda: kernels.gradient_one(  # noqa: E731
        *part.rows, part.targets, weights, np.zeros(1), np.zeros(1), kernels.LOGISTIC, 0.5, 0.5, False, 0.0,
        np.empty(0), fine, 0, X.shape[0], out[:-1], out[-1],
    )  # fmt: skip
    first, second = np.ones(2**25, np.int32), np.ones(2**25, np.int32)
    reading = least(lambda: _read(first, second))[0] * len(part.z) / 2**25
    both, wall = least(lambda: query.whole(unit))
    one, alone_wall = least(alone)
    return reading, min(one, both), alone_wall, wall


def against_liblinear(X, y):
    """(seconds of liblinear, seconds of the default fit)."""
    from sklearn.linear_model import LogisticRegression

    model = DPGradientClassifier(Domain(classes=[0, 1], n_samples=X.shape[0]))
    private, _ = least(lambda: model.fit(X, y), 3)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LogisticRegression(penalty="l1", solver="liblinear").fit(X, y)
    return time.process_time() - start, private


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--shape", nargs="*", choices=TARGETS, default=["rcv1", "narrow"])
    args = parser.parse_args()
    print(
        "| shape | pass ms | gradient ms | passes (target) | two threads, wall | liblinear ms | fit ms | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for shape in args.shape:
        X, y = load(shape)
        reading, one, alone, wall = iteration(X, y)
        liblinear, fit = against_liblinear(X, y)
        print(
            f"| {shape} | {1e3 * reading:.2f} | {1e3 * one:.2f} | {one / reading:.1f} ({TARGETS[shape]:g}) "
            f"| {alone / wall:.2f}x "
            f"| {1e3 * liblinear:.0f} | {1e3 * fit:.0f} | {liblinear / fit:.1f}x |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

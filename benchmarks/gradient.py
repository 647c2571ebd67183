"""Speed of the gradient methods: a fit against non-private L1 fits, an iteration against the memory it must read.

    python benchmarks/gradient.py                      RCV1 shape and a9a shape (about a minute)
    python benchmarks/gradient.py --shape news20       or kdda: needs 1 and 4 GB
    python benchmarks/gradient.py --shape --classes    RCV1 shape with 2, 5 and 20 classes
    python benchmarks/gradient.py --shape --growth     in rows, columns, entries a row and steps
    python benchmarks/gradient.py --shape --one-row    predictions one row at a time, beside scikit-learn's

Everything goes through the estimator; processor time, minima of a few runs. An iteration is the median time from one
step of a fit to the next: gradient, noise and new weights, on the columns that the fit keeps. A
pass is the time to read all rows once (8 bytes an entry: column and whole number) at the bandwidth measured here by
summing 256 MB, more than any cache holds. liblinear and saga are scikit-learn's LogisticRegression with an L1 penalty,
not private, at their defaults but for the penalty. "Two cores" is the wall time of a default fit by one thread over
that by all: it means something on a quiet machine only. The first line says what a second core gives this machine for
loops that share nothing, additions in the nearest cache and reading of memory; no fit can gain more.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from functools import partial
from unittest.mock import patch

import numpy as np
from frank_wolfe import load, synthetic
from numba import njit

from dpsparse.domain import Domain
from dpsparse.estimators import DPGradientClassifier
from dpsparse.solvers.gradient import Run
from dpsparse.threads import in_threads, process_cores

TARGETS = {"rcv1": 5.0, "narrow": 5.0, "news20": 5.0, "kdda": 12.0}  # passes an iteration may take
STEPS, OFTEN = 25, 100


@njit(fastmath=True, nogil=True)
def _read(columns, z):
    total = 0
    for p in range(z.size):
        total += columns[p] + z[p]
    return total


@njit(nogil=True)
def _add_up(numbers, times):
    total = 0
    for _ in range(times):
        for i in range(numbers.size):
            total = (total ^ numbers[i]) + i
    return total


def least(work, repeat=5):
    """(processor, wall) seconds, each the least of some runs after a first that does not count."""
    work()
    spent = []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        spent.append((time.process_time() - cpu, time.perf_counter() - wall))
    return np.min(spent, axis=0)


def model_for(X, y, **options):
    classes = np.unique(y).tolist()
    return DPGradientClassifier(Domain(classes=classes, n_samples=X.shape[0]), **options)


def one_pass(n_entries):
    """Seconds to read so many entries once."""
    first, second = np.ones(2**25, np.int32), np.ones(2**25, np.int32)
    return least(lambda: _read(first, second))[0] * n_entries / 2**25


def iteration(X, y):
    """Processor seconds from one step to the next, by one thread: two would count what they wait for each other."""
    ends, move = [], Run.move

    def timed(self, *step):
        move(self, *step)
        ends.append(time.process_time())

    model, spent = model_for(X, y, n_iter=STEPS, prune=False), []
    with patch("dpsparse.threads.process_cores", lambda: 1), patch.object(Run, "move", timed):
        for _ in range(4 if X.nnz < 1e7 else 2):
            ends.clear()
            model.fit(X, y)
            spent.append(np.median(np.diff(ends)))
    return min(spent)


def two_cores(X, y):
    """Wall time of a default fit by one thread over that by all: minima of runs in turn, since machines change."""
    model, walls = model_for(X, y), {1: [], process_cores(): []}
    for _ in range(9 if X.nnz < 5e6 else 3 if X.nnz < 2e7 else 1):
        for threads, spent in walls.items():
            with patch("dpsparse.threads.process_cores", lambda threads=threads: threads):
                start = time.perf_counter()
                model.fit(X, y)
                spent.append(time.perf_counter() - start)
    one, all_of_them = map(min, walls.values())
    return one / all_of_them


def machine_limits():
    """What a second core adds to loops that share nothing: (additions in the nearest cache, reading of memory)."""
    small, large = np.arange(2**11), np.ones(2**26, np.int32)
    halves = np.split(large, 2)

    def adding(b):
        _add_up(small, 2**13)

    def reading(b):
        _read(halves[b], halves[b])

    found = []
    for work in (adding, reading):
        walls = {1: [], 2: []}
        work(0)
        for _ in range(9):
            for threads, spent in walls.items():
                with patch("dpsparse.threads.process_cores", lambda threads=threads: threads):
                    start = time.perf_counter()
                    in_threads(work, range(2))
                    spent.append(time.perf_counter() - start)
        found.append(min(walls[1]) / min(walls[2]))
    return found


def default_fit(X, y):
    """Processor seconds of the default fit."""
    model = model_for(X, y)
    return least(lambda: model.fit(X, y), 3 if X.nnz < 2e7 else 1)[0]


def not_private(X, y, solver):
    """Processor seconds of scikit-learn's L1 fit, liblinear one class against the rest."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    model = LogisticRegression(l1_ratio=1.0, solver=solver)
    if solver == "liblinear" and len(np.unique(y)) > 2:
        model = OneVsRestClassifier(model)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return time.process_time() - start


def against_liblinear(X, y):
    """(seconds of liblinear, seconds of the default fit)."""
    return not_private(X, y, "liblinear"), default_fit(X, y)


def shapes(names):
    if process_cores() > 1:
        adding, reading = machine_limits()
        print(
            f"A second core gives this machine {adding:.2f}x additions and {reading:.2f}x reading.\n"
        )
    print(
        "| shape | pass ms | iteration ms | passes (target) | two cores | liblinear ms | saga ms | fit ms | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for shape in names:
        X, y = load(shape)
        reading, step, fit = one_pass(X.nnz), iteration(X, y), default_fit(X, y)
        line = f"| {shape} | {1e3 * reading:.2f} | {1e3 * step:.2f} | {step / reading:.1f} ({TARGETS[shape]:g}) "
        line += f"| {two_cores(X, y):.2f}x "
        if shape == "kdda":  # minutes
            print(line + f"| - | - | {1e3 * fit:.0f} | - |", flush=True)
            continue
        liblinear, saga = (not_private(X, y, solver) for solver in ("liblinear", "saga"))
        line += f"| {1e3 * liblinear:.0f} | {1e3 * saga:.0f} | {1e3 * fit:.0f} | {liblinear / fit:.1f}x |"
        print(line, flush=True)


def with_classes():
    """Labels cut from the first two directions of random weights: several classes of equal size."""
    print("| classes | liblinear ms | saga ms | fit ms | over liblinear |")
    print("|---|---|---|---|---|")
    X, _ = load("rcv1")
    score = X @ np.random.default_rng(1).normal(size=X.shape[1])
    for k in (2, 5, 20):
        y = np.searchsorted(np.quantile(score, np.arange(1, k) / k), score)
        liblinear, saga = (not_private(X, y, solver) for solver in ("liblinear", "saga"))
        fit = default_fit(X, y)
        print(
            f"| {k} | {1e3 * liblinear:.0f} | {1e3 * saga:.0f} | {1e3 * fit:.0f} | {liblinear / fit:.1f}x |",
            flush=True,
        )


def growth():
    """Fits of 20 steps around 20,000 x 50,000 with 60 entries a row; exponents by least squares."""
    base = {"rows": 20_000, "columns": 50_000, "entries a row": 60, "steps": 20}
    print("| in | factors 1/4, 1/2, 1, 2, 4: ms | exponent |")
    print("|---|---|---|")
    factors = (0.25, 0.5, 1.0, 2.0, 4.0)
    for name in base:
        spent = []
        for factor in factors:
            at = {**base, name: round(base[name] * factor)}
            X, y = synthetic(at["rows"], at["columns"], at["entries a row"], 0)
            model = model_for(X, y, n_iter=at["steps"], prune=False)
            spent.append(least(lambda model=model, X=X, y=y: model.fit(X, y), 3)[0])
        exponent = np.polyfit(np.log(factors), np.log(spent), 1)[0]
        print(
            f"| {name} | {', '.join(f'{1e3 * s:.0f}' for s in spent)} | {exponent:.2f} |",
            flush=True,
        )


def ask_often(ask, row):
    for _ in range(OFTEN):
        ask(row)


def one_row():
    """Microseconds of one prediction: a dense row of 100, a sparse row of the RCV1 shape."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    dense = rng.normal(size=(500, 100))
    wide = load("rcv1")
    print("| row | predict | predict_proba | of scikit-learn |")
    print("|---|---|---|---|")
    for name, (X, y) in {"100 numbers": (dense, (dense[:, 0] > 0) * 1), "rcv1": wide}.items():
        ours, theirs = model_for(X, y), LogisticRegression(max_iter=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            asked = [model.fit(X, y) for model in (ours, theirs)]
        asked = [ask for model in asked for ask in (model.predict, model.predict_proba)]
        rounds = [[least(partial(ask_often, ask, X[:1]), 1)[0] for ask in asked] for _ in range(9)]
        found = np.min(rounds, axis=0) / OFTEN * 1e6
        print(
            f"| {name} | {found[0]:.0f} us | {found[1]:.0f} us "
            f"| {found[0] / found[2]:.2f}, {found[1] / found[3]:.2f} |"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--shape", nargs="*", choices=TARGETS, default=["rcv1", "narrow"])
    parser.add_argument("--classes", action="store_true")
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--one-row", action="store_true")
    args = parser.parse_args()
    if args.shape:
        shapes(args.shape)
    for wanted, work in (
        (args.classes, with_classes),
        (args.growth, growth),
        (args.one_row, one_row),
    ):
        if wanted:
            work()
    return 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # seeded fits say that they are not private
    sys.exit(main())

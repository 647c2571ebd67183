"""What a step may cost: python benchmarks/accountant.py

The range eta per step of T adaptive exponential mechanisms at (epsilon, 1e-6): by the Renyi curve, by
what `calibrate` takes (the smallest proven bound), and an upper limit that no accountant can pass, from an
adversary who plays the best two-point step on a lattice in every state. Then the time of a plan, best of
nine with empty caches.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

from dpsparse import Domain, DPLassoClassifier
from dpsparse.privacy import (
    Exponential,
    Repeated,
    adaptive,
    calibrate,
    composition,
    conversion,
    dominance,
)
from dpsparse.privacy.conversion import best_bound, renyi_epsilon

DELTA = 1e-6
# `calibrate` in the package is the function, so its module is looked up by name.
MODULES = [adaptive, composition, conversion, dominance, sys.modules["dpsparse.privacy.calibrate"]]
RUNS = [(0.1, 100), (1.0, 10), (1.0, 100), (1.0, 1000), (1.0, 4000), (4.0, 1000)]


def adversary_delta(eta: float, count: int, epsilon: float, cells: int) -> float:
    """The exact delta at `epsilon` of a player with t in {0, eta/cells, ...}: a lower bound."""
    h = eta / cells
    t = h * np.arange(cells + 1)
    p = np.expm1(t - eta) / math.expm1(-eta)
    span = min(count * cells, int(8 * cells * math.sqrt(count)))
    y = epsilon + h * np.arange(-span, span + 1)
    values = np.maximum(-np.expm1(y), 0.0)
    n = len(values)
    for _ in range(count):
        wide = np.concatenate([np.full(cells, values[0]), values, np.zeros(cells)])
        values = np.zeros(n)
        for j in range(cells + 1):
            option = p[j] * wide[cells - j : cells - j + n]
            option += (1 - p[j]) * wide[2 * cells - j : 2 * cells - j + n]
            np.maximum(values, option, out=values)
    return float(values[span])


def limit(epsilon: float, count: int, start: float) -> float:
    """The eta at which the adversary reaches DELTA; secants in the depth of the tail."""
    cells = 32 if count <= 10 else 16 if count <= 100 else 8

    def depth(eta: float) -> float:
        return math.sqrt(-2.0 * math.log(adversary_delta(eta, count, epsilon, cells)))

    wanted, eta = math.sqrt(-2.0 * math.log(DELTA)), start
    for _ in range(4):
        eta *= depth(eta) / wanted
    return eta


def renyi_eta(epsilon: float, count: int) -> float:
    low, high = 1e-6, 2.0 * epsilon
    while high - low > 1e-9 * high:
        middle = math.sqrt(low * high)
        spent = renyi_epsilon(Repeated(Exponential(middle), count), DELTA)
        low, high = (middle, high) if spent <= epsilon else (low, middle)
    return low


def plan_time(n_iter: int) -> float:
    """Seconds of processor time of one plan, nothing cached."""
    domain = Domain(feature_bound=1.0, classes=(0, 1))
    best = math.inf
    for _ in range(9):
        for module in MODULES:
            for name, member in vars(module).items():
                if hasattr(member, "cache_clear") and name != "_table":  # the file is read once
                    member.cache_clear()
        start = time.process_time()
        DPLassoClassifier(epsilon=1.0, delta=DELTA, n_iter=n_iter, domain=domain).plan(
            n_features=100
        )
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    print("epsilon     T      eta Renyi     eta now   gain    no more than   missing   bound")
    for epsilon, count in RUNS:
        renyi = renyi_eta(epsilon, count)
        eta = calibrate(lambda x, n=count: Repeated(Exponential(x), n), epsilon, DELTA)
        most = limit(epsilon, count, eta)
        name = best_bound(Repeated(Exponential(eta), count), DELTA)[1]
        print(
            f"{epsilon:7g} {count:5d} {renyi:14.6g} {eta:11.6g} {100 * (eta / renyi - 1):5.2f} %"
            f" {most:14.6g} {100 * (1 - eta / most):7.2f} %   {name}"
        )
    for n_iter in (10, 100, 4000):
        print(f"plan of DPLassoClassifier(n_iter={n_iter}): {1e3 * plan_time(n_iter):.2f} ms")


if __name__ == "__main__":
    main()

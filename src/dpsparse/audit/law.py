"""Exact law: what an observer of the whole history learns, computed instead of guessed.

Every answer has a known law given the rows and the history before it, so the log-likelihood ratio
of a run on D against D' is a sum over the releases:

    gaussian   (|o - q'|^2 - |o - q|^2) step^2 / 2                                  step: unit/scale
    picks      log softmax(q step)[picks] - log softmax(q' step)[picks], pick after pick     step: kappa
    noisy max  the same with the probability of a Laplace noisy max, by quadrature
    geometric  (|o - q'| - |o - q|) step
    objective  log phi(b(theta)) + log det H(theta), minus the same on D'

and delta(epsilon) = E_D[(1 - exp(epsilon - ratio))^+] is a mean of numbers in [0, 1]: `mean_below`
bounds it from below with stated confidence, and a bound above what the plan claims refutes the plan.
For Gaussian answers alone the ratio of a fixed history has mu^2 = sum |q - q'|^2 step^2, so
`gaussian_epsilon` needs no sampling.

`noise_p_value`, `selection_p_value` and `rare_p_value` ask the other question: was it drawn from its law?
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import logsumexp, rel_entr

from dpsparse.accounting import Gaussian, epsilon
from dpsparse.audit.neighbours import Pair
from dpsparse.audit.replay import Record, Subject
from dpsparse.mechanisms import MECHANISMS, Release
from dpsparse.mechanisms.picks import keys
from dpsparse.random import make_generator

NOISE_LEVEL = 1e-6  # of the tests that noise follows its law


def loss(a: Release, b: Release) -> float:
    """log p(answer | D) - log p(answer | D') of one answer, its history fixed: the law of its mechanism."""
    return MECHANISMS[a.kind].loss(a, b) if a.kind in MECHANISMS else 0.0


def run_both(
    subject: Subject, pair: Pair, n_runs: int, seed: int
) -> Iterator[tuple[Record, Record]]:
    """Fits on the first table, each with its replay on the second."""
    for run in range(seed, seed + n_runs):
        first = subject.record(pair, run)
        yield first, subject.replay(pair, first, run)


def privacy_loss(first: Record, second: Record) -> float:
    """The log-likelihood ratio of a fit on the first table against the second."""
    return sum(loss(a, b) for a, b in zip(first.entries, second.entries, strict=True))


def delta_below(losses: np.ndarray, epsilons: Any, confidence: float = 0.999) -> np.ndarray:
    """Lower confidence bounds of delta(epsilon), which hold for all `epsilons` together (Bonferroni)."""
    alpha = (1.0 - confidence) / len(epsilons)
    parts = (np.maximum(0.0, -np.expm1(np.minimum(e - losses, 0.0))) for e in epsilons)
    return np.array([mean_below(part, alpha) for part in parts])


def epsilon_below(losses: np.ndarray, target_delta: float, confidence: float = 0.999) -> float:
    """The largest epsilon at which delta(epsilon) is above `target_delta` with confidence."""
    grid = np.linspace(0.0, max(float(losses.max()), 0.0), 41)
    return float(grid[delta_below(losses, grid, confidence) > target_delta].max(initial=0.0))


def gaussian_epsilon(first: list[Release], second: list[Release], target_delta: float) -> float:
    """The exact epsilon of this history for an observer of its Gaussian answers."""
    squares = sum(
        a.cost(b) ** 2 for a, b in zip(first, second, strict=True) if a.kind == "gaussian"
    )
    return epsilon(Gaussian(1.0, math.sqrt(squares)), target_delta) if squares > 0 else 0.0


def mean_below(values: np.ndarray, alpha: float) -> float:
    """A number the mean of i.i.d. `values` in [0, 1] exceeds with probability 1 - alpha.

    The better of Chernoff's bound (a Bernoulli variable is the extreme case) and the empirical
    Bernstein bound of Maurer and Pontil, each at alpha/2.
    """
    n, mean = len(values), float(np.mean(values))
    rate = math.log(2.0 / alpha) / n
    chernoff, high = 0.0, mean
    for _ in range(60):
        middle = 0.5 * (chernoff + high)
        if rel_entr(mean, middle) + rel_entr(1.0 - mean, 1.0 - middle) > rate:
            chernoff = middle
        else:
            high = middle
    spread = float(np.var(values, ddof=1)) if n > 1 else 1.0
    bernstein = mean - math.sqrt(2.0 * spread * math.log(4.0 / alpha) / n)
    bernstein -= 7.0 * math.log(4.0 / alpha) / (3.0 * max(n - 1, 1))
    return max(chernoff, bernstein, 0.0)


# ---- was the noise drawn from its law? ------------------------------------------------------------


def noise_p_value(entries: list[Release], kind: str) -> float:
    """Smallest p-value, times the number of tests, that answer - query has its declared law.

    Kolmogorov-Smirnov sees the shape; the chi-square on Gaussian squares sees a wrong scale. Any other
    mechanism says where its answers lie in their law.
    """
    if kind in MECHANISMS and kind != "gaussian":
        rng = make_generator(0)
        places = [MECHANISMS[kind].places(e, rng) for e in entries if e.kind == kind]
        found = np.concatenate([np.empty(0), *places])
        return float(stats.kstest(found, "uniform").pvalue) if found.size else 1.0
    used = [e for e in entries if e.kind == kind and e.noise.size]
    if not used:
        return 1.0
    z = np.concatenate([e.noise * e.step for e in used])
    squares = stats.chi2(len(z)).cdf(float(z @ z))
    tests = [stats.kstest(z, "norm").pvalue, 2.0 * min(squares, 1.0 - squares)]
    return float(min(1.0, len(tests) * min(tests)))


def selection_p_value(entries: list[Release]) -> float:
    """p-value that picks follow their softmax, by two tests.

    log p(pick) + entropy is a martingale difference; a kappa that is too large picks likelier
    candidates than it should. Normal approximation, for a hundred picks and more. And the place of a
    pick in the distribution over candidates in their order is uniform: a sign that is not drawn shows.
    """
    total = variance = 0.0
    places, rng = [], make_generator(0)
    for log_p, pick in _first_picks(entries):
        p = np.exp(log_p)
        mean = float(p @ log_p)
        total += float(log_p[pick]) - mean
        variance += float(p @ (log_p - mean) ** 2)
        places.append(float(p[:pick].sum() + rng.random() * p[pick]))
    tests = [stats.kstest(places, "uniform").pvalue] if places else []
    if variance > 1e-12 * len(places):  # equal candidates: what is left is rounding
        tests.append(2.0 * stats.norm.sf(abs(total) / math.sqrt(variance)))
    return float(min([1.0, *(len(tests) * test for test in tests)]))


def rare_p_value(entries: list[Release], rare: float = 2.0**-6) -> float:
    """p-value of how often a candidate far less likely than the likeliest one was picked.

    A sampler that makes them impossible looks right otherwise, and tells a row apart for certain.
    """
    expected, seen = 0.0, 0
    for log_p, pick in _first_picks(entries):
        few = log_p < log_p.max() + math.log(rare)
        expected += float(np.exp(log_p[few]).sum())
        seen += bool(few[pick])
    # A sum of independent indicators has lighter tails than the Poisson variable of the same mean.
    tails = stats.poisson.cdf(seen, expected), stats.poisson.sf(seen - 1, expected)
    return float(min(1.0, 2.0 * min(tails)))


def _first_picks(entries: list[Release]) -> Iterator[tuple[np.ndarray, int]]:
    """(log-probabilities, pick); of a ranking the first pick: how many follow depends on it."""
    for entry in entries:
        if entry.kind == "picks":
            log_p = keys(entry) - logsumexp(keys(entry))
            yield log_p, int(entry.answer[0])

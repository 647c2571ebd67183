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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import logsumexp

from dpsparse.accounting import Event, Gaussian, delta, epsilon
from dpsparse.audit.neighbours import Pair
from dpsparse.audit.replay import Subject
from dpsparse.mechanisms import MECHANISMS, Release
from dpsparse.mechanisms.picks import keys
from dpsparse.random import make_generator


def loss(a: Release, b: Release) -> float:
    """log p(answer | D) - log p(answer | D') of one answer, its history fixed: the law of its mechanism."""
    return MECHANISMS[a.kind].loss(a, b) if a.kind in MECHANISMS else 0.0


def privacy_losses(subject: Subject, pair: Pair, n_runs: int, seed: int) -> np.ndarray:
    """Log-likelihood ratios of `n_runs` fits on the first table against the second."""
    out = np.empty(n_runs)
    for run in range(n_runs):
        first = subject.record(pair, seed + run)
        second = subject.replay(pair, first, seed + run)
        out[run] = sum(loss(a, b) for a, b in zip(first.entries, second.entries, strict=True))
    return out


@dataclass(frozen=True)
class Profile:
    """Estimated delta(epsilon) with lower confidence bounds, beside the claimed one."""

    epsilons: np.ndarray
    estimate: np.ndarray
    below: np.ndarray
    claimed: np.ndarray

    @property
    def refuted(self) -> bool:
        return bool((self.below > self.claimed).any())


def profile(losses: np.ndarray, event: Event, epsilons: Any, confidence: float = 0.999) -> Profile:
    """The privacy profile of sampled losses against the one the accountant claims.

    `confidence` holds for all epsilons together (Bonferroni).
    """
    grid = np.asarray(epsilons, float)
    alpha = (1.0 - confidence) / len(grid)
    parts = [np.maximum(0.0, -np.expm1(np.minimum(e - losses, 0.0))) for e in grid]
    return Profile(
        grid,
        np.array([part.mean() for part in parts]),
        np.array([mean_below(part, alpha) for part in parts]),
        np.array([delta(event, float(e)) for e in grid]),
    )


def epsilon_below(losses: np.ndarray, target_delta: float, confidence: float = 0.999) -> float:
    """The largest epsilon at which delta(epsilon) is above `target_delta` with confidence.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse.audit import epsilon_below
    >>> losses = np.random.default_rng(0).normal(0.5, 1.0, 10_000)  # of a Gaussian mechanism with mu = 1
    >>> 0.0 < epsilon_below(losses, target_delta=1e-3) < 3.5  # the truth is 3.1
    True
    """
    grid = np.linspace(0.0, max(float(losses.max()), 0.0), 41)
    alpha = (1.0 - confidence) / len(grid)
    refuted = 0.0
    for e in grid:
        part = np.maximum(0.0, -np.expm1(np.minimum(e - losses, 0.0)))
        if mean_below(part, alpha) > target_delta:
            refuted = max(refuted, float(e))
    return refuted


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
    chernoff = _largest_false(lambda p: _divergence(mean, p) <= rate, 0.0, mean)
    spread = float(np.var(values, ddof=1)) if n > 1 else 1.0
    bernstein = mean - math.sqrt(2.0 * spread * math.log(4.0 / alpha) / n)
    bernstein -= 7.0 * math.log(4.0 / alpha) / (3.0 * max(n - 1, 1))
    return max(chernoff, bernstein, 0.0)


def _divergence(q: float, p: float) -> float:
    if q <= 0.0:
        return -math.log1p(-p) if p < 1 else math.inf
    if p <= 0.0:
        return math.inf
    rest = (1.0 - q) * math.log((1.0 - q) / (1.0 - p)) if q < 1.0 and p < 1.0 else 0.0
    return q * math.log(q / p) + rest


def _largest_false(true: Callable[[float], bool], low: float, high: float) -> float:
    """Bisection for the point below which `true` does not hold."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        if true(middle):
            high = middle
        else:
            low = middle
    return low


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
            # Nothing picked: the null candidate, which stands last, came first.
            yield log_p, int(entry.answer[0]) if len(entry.answer) else len(log_p) - 1

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
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import rel_entr

from dpsparse.audit.neighbours import Pair
from dpsparse.audit.subject import Subject
from dpsparse.mechanisms import MECHANISMS, Release


def loss(a: Release, b: Release) -> float:
    """log p(answer | D) - log p(answer | D') of one answer, its history fixed: the law of its mechanism."""
    return MECHANISMS[a.kind].loss(a, b) if a.kind in MECHANISMS else 0.0


def privacy_losses(subject: Subject, pair: Pair, n_runs: int, seed: int = 0) -> np.ndarray:
    """Log-likelihood ratios of runs on the first table, each against its replay on the second."""
    losses = []
    for run in range(seed, seed + n_runs):
        first = subject.record(pair, run)
        second = subject.replay(pair, first, run)
        both = zip(first.entries, second.entries, strict=True)
        losses.append(sum(loss(a, b) for a, b in both))
    return np.array(losses)


def delta_below(losses: np.ndarray, epsilons: Any, confidence: float = 0.999) -> np.ndarray:
    """Lower confidence bounds of delta(epsilon), which hold for all `epsilons` together (Bonferroni)."""
    alpha = (1.0 - confidence) / len(epsilons)
    parts = (np.maximum(0.0, -np.expm1(np.minimum(e - losses, 0.0))) for e in epsilons)
    return np.array([mean_below(part, alpha) for part in parts])


def epsilon_below(losses: np.ndarray, target_delta: float, confidence: float = 0.999) -> float:
    """The largest epsilon at which delta(epsilon) is above `target_delta` with confidence."""
    grid = np.linspace(0.0, max(float(losses.max()), 0.0), 41)
    return float(grid[delta_below(losses, grid, confidence) > target_delta].max(initial=0.0))


def mean_below(values: np.ndarray, alpha: float) -> float:
    """A number the mean of i.i.d. `values` in [0, 1] exceeds with probability 1 - alpha: Chernoff's bound, for which a
    Bernoulli variable is the extreme case."""
    mean, rate = float(np.mean(values)), -math.log(alpha) / len(values)
    low, high = 0.0, mean
    for _ in range(60):
        middle = 0.5 * (low + high)
        if rel_entr(mean, middle) + rel_entr(1.0 - mean, 1.0 - middle) > rate:
            low = middle
        else:
            high = middle
    return low

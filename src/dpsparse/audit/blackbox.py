"""Black box: only published models, no knowledge of mechanisms.

**Many runs.** Fit on D and on D' many times, turn every model into one number, and count how often
it exceeds a threshold. If the fit is (epsilon, delta)-DP then for every event S

    P_D'(S) <= e^epsilon P_D(S) + delta,   so   epsilon >= log((P_D'(S) - delta) / P_D(S)).

Half of the runs choose the number and the threshold (`learn_test`), the other half is counted, and
Clopper-Pearson intervals make the bound hold with the stated confidence.

**One run** (Steinke, Nasr, Jagielski 2023). m canaries enter independently with probability 1/2, the
auditor guesses r of them from the one model, v guesses are right. For an (epsilon, delta)-DP fit
(their main theorem, with W ~ Binomial(r, q), q = e^epsilon/(1+e^epsilon))

    P(right guesses >= v) <= P(W >= v) + 2 m delta max_i P(v > W >= v - i) / i.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from dpsparse.audit.replay import Subject
from dpsparse.random import make_generator

Score = Callable[[np.ndarray], np.ndarray]  # (runs, numbers of a model) -> (runs,)


def publish(
    subject: Subject,
    X: np.ndarray,
    y: np.ndarray,
    n_runs: int,
    seed: int,
    groups: Any = None,
    tell: Callable[[int], None] = lambda run: None,
) -> np.ndarray:
    """`n_runs` published models on one table, a row each: all weights, then the intercepts."""
    rng = make_generator(seed)
    models = []
    for run in range(n_runs):
        tell(run)
        released = subject.run(X, y, rng, groups)
        models.append(np.append(released["coef"].ravel(), released["intercept"].ravel()))
    return np.array(models)


@dataclass(frozen=True)
class Attack:
    """A counted test: how often it fired on either table, and what that refutes."""

    hits: int  # on the table where the test should fire
    n_hits: int
    false_alarms: int
    n_false: int
    delta: float
    confidence: float

    @property
    def epsilon(self) -> float:
        """The largest epsilon refuted at this confidence; 0 if none is."""
        hits, alarms = np.array([self.hits]), np.array([self.false_alarms])
        bound = _refuted(hits, alarms, self.n_hits, self.n_false, self.delta, self.confidence)
        return float(bound[0])


def clopper_pearson(successes: Any, n: int, alpha: float) -> tuple[Any, Any]:
    """Exact bounds of probabilities, each wrong with probability at most alpha."""
    k = np.asarray(successes)
    low = np.where(k > 0, stats.beta.ppf(alpha, np.maximum(k, 1), n - k + 1), 0.0)
    high = np.where(k < n, stats.beta.ppf(1.0 - alpha, k + 1, np.maximum(n - k, 1)), 1.0)
    return low, high


def _refuted(
    hits: np.ndarray, alarms: np.ndarray, n: int, m: int, delta: float, confidence: float
) -> np.ndarray:
    """log((P(hit) - delta)/P(alarm)) from the unfavourable ends of both intervals, at least 0."""
    alpha = (1.0 - confidence) / 2.0
    low = clopper_pearson(hits, n, alpha)[0] - delta
    high = clopper_pearson(alarms, m, alpha)[1]
    return np.asarray(np.log(np.maximum(low / high, 1.0)))


def attack(
    models: np.ndarray,
    models2: np.ndarray,
    delta: float,
    confidence: float = 0.999,
    score: Score | None = None,
) -> Attack:
    """Learn a test on the first half of the models of either table, count it on the second half."""
    half, half2 = len(models) // 2, len(models2) // 2
    score = score or learn_score(models[:half], models2[:half2])
    a, b = score(models), score(models2)
    fires, forward = _learn_threshold(a[:half], b[:half2], delta, confidence)
    on, off = (b[half2:], a[half:]) if forward else (a[half:], b[half2:])
    hits, alarms = int(fires(on).sum()), int(fires(off).sum())
    return Attack(hits, len(on), alarms, len(off), delta, confidence)


def learn_score(models: np.ndarray, models2: np.ndarray) -> Score:
    """A linear score: difference of means over pooled variances, sparse weights told apart first."""
    shift = models2.mean(axis=0) - models.mean(axis=0)
    spread = models.var(axis=0) + models2.var(axis=0)
    direction = np.divide(shift, spread, out=np.zeros_like(shift), where=spread > 0)
    direction[(spread == 0) & (shift != 0)] = 1e6 * np.sign(shift[(spread == 0) & (shift != 0)])
    # coordinates whose shift is noise only dilute the score
    noise = np.sqrt(spread / len(models))
    direction[np.abs(shift) < 2.0 * noise] = 0.0
    if not direction.any():
        direction = np.sign(shift)

    def score(sample: np.ndarray) -> np.ndarray:
        return np.asarray(sample @ direction)

    return score


def _learn_threshold(
    a: np.ndarray, b: np.ndarray, delta: float, confidence: float
) -> tuple[Callable[[np.ndarray], np.ndarray], bool]:
    """The threshold and direction with the largest bound on the training half."""
    cuts = np.unique(np.quantile(np.append(a, b), np.linspace(0.0, 1.0, 101)))
    cuts = np.append(cuts, 0.5 * (cuts[1:] + cuts[:-1]))
    over = {name: (v[:, None] > cuts).sum(axis=0) for name, v in (("a", a), ("b", b))}
    best, choice = -1.0, (float(cuts[0]), True, True)
    for above in (True, False):
        for forward in (True, False):
            (on, n), (off, m) = (("b", len(b)), ("a", len(a)))[:: 1 if forward else -1]
            hits, alarms = (over[on], over[off]) if above else (n - over[on], m - over[off])
            reached = _refuted(hits, alarms, n, m, delta, confidence)
            if reached.max() > best:
                best = float(reached.max())
                choice = float(cuts[int(reached.argmax())]), above, forward
    cut, above, forward = choice
    return (lambda s: s > cut) if above else (lambda s: s <= cut), forward


# ---- one run --------------------------------------------------------------------------------------


def one_run_p_value(m: int, r: int, v: int, epsilon: float, delta: float) -> float:
    """Probability of v or more right guesses out of r, at most, if the fit is (epsilon, delta)-DP."""
    q = 1.0 / (1.0 + math.exp(-epsilon))
    right = stats.binom.sf(v - 1, r, q)
    if delta > 0.0 and v > 0:
        below = np.cumsum(stats.binom.pmf(v - np.arange(1, v + 1), r, q))
        right += 2.0 * m * delta * float((below / np.arange(1, v + 1)).max())
    return float(min(1.0, right))


def one_run_epsilon(m: int, r: int, v: int, delta: float, confidence: float = 0.999) -> float:
    """The largest epsilon that v right guesses out of r refute.

    Examples
    --------
    >>> from dpsparse.audit import one_run_epsilon
    >>> print(f"{one_run_epsilon(m=1_000, r=250, v=240, delta=1e-6):.2f}")  # 240 of 250 guesses right
    2.26
    """
    alpha = 1.0 - confidence
    if one_run_p_value(m, r, v, 0.0, delta) > alpha:
        return 0.0
    low, high = 0.0, 1.0
    while one_run_p_value(m, r, v, high, delta) <= alpha and high < 100.0:
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = 0.5 * (low + high)
        if one_run_p_value(m, r, v, middle, delta) <= alpha:
            low = middle
        else:
            high = middle
    return low

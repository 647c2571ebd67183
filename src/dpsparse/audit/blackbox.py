"""Black box: only published models, no knowledge of mechanisms.

Fit on D and on D' many times, turn every model into one number, and count how often
it exceeds a threshold. If the fit is (epsilon, delta)-DP then for every event S

    P_D'(S) <= e^epsilon P_D(S) + delta,   so   epsilon >= log((P_D'(S) - delta) / P_D(S)).

Half of the runs choose the number and the threshold, the other half is counted, and
Clopper-Pearson intervals make the bound hold with the stated confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from dpsparse.audit.neighbours import Pair
from dpsparse.audit.subject import Subject
from dpsparse.random import make_generator


def publish(
    subject: Subject,
    X: np.ndarray,
    y: np.ndarray,
    n_runs: int,
    seed: int,
    groups: Any = None,
) -> np.ndarray:
    """`n_runs` published models on one table, a row each: all weights, then the intercepts."""
    rng = make_generator(seed)
    models = []
    for _ in range(n_runs):
        model = subject.run(X, y, rng, groups)
        models.append(np.append(np.ravel(model.coef_), model.intercept_))
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
    models: np.ndarray, models2: np.ndarray, delta: float, confidence: float = 0.999
) -> Attack:
    """Learn a test on the first half of the models of either table, count it on the second half."""
    half, half2 = len(models) // 2, len(models2) // 2
    direction = _learn_direction(models[:half], models2[:half2])
    a, b = models @ direction, models2 @ direction
    learn, count = (a[:half], b[:half2]), (a[half:], b[half2:])
    cuts = np.unique(np.quantile(np.concatenate(learn), np.linspace(0.0, 1.0, 101)))
    cuts = np.append(cuts, 0.5 * (cuts[1:] + cuts[:-1]))
    best, choice = -1.0, (float(cuts[0]), True, True)
    for above, forward in product((True, False), repeat=2):
        on, off = learn[::-1] if forward else learn
        hits, alarms = (((v[:, None] > cuts) == above).sum(axis=0) for v in (on, off))
        reached = _refuted(hits, alarms, len(on), len(off), delta, confidence)
        if reached.max() > best:
            best = float(reached.max())
            choice = float(cuts[int(reached.argmax())]), above, forward
    cut, above, forward = choice
    on, off = count[::-1] if forward else count
    fired, alarmed = (int(((v > cut) == above).sum()) for v in (on, off))
    return Attack(fired, len(on), alarmed, len(off), delta, confidence)


def _learn_direction(models: np.ndarray, models2: np.ndarray) -> np.ndarray:
    """Of a linear score: difference of means over pooled variances, after sparse weights are separated."""
    shift = models2.mean(axis=0) - models.mean(axis=0)
    spread = models.var(axis=0) + models2.var(axis=0)
    direction = np.divide(shift, spread, out=np.zeros_like(shift), where=spread > 0)
    direction[(spread == 0) & (shift != 0)] = 1e6 * np.sign(shift[(spread == 0) & (shift != 0)])
    # Coordinates whose shift is noise only dilute the score.
    direction[np.abs(shift) < 2.0 * np.sqrt(spread / len(models))] = 0.0
    return np.asarray(direction if direction.any() else np.sign(shift))


def black_box(
    subject: Subject, n_runs: int, delta: float, confidence: float, seed: int
) -> tuple[Attack, str]:
    """The attack on the worst pair that a pilot of a tenth of the runs likes best."""

    def publish_both(pair: Pair, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        return (
            publish(subject, pair.X, pair.y, n, seed, pair.groups),
            publish(subject, pair.X2, pair.y2, n, seed + 1, pair.groups2),
        )

    def promise(pair: Pair) -> float:
        one, two = publish_both(pair, max(20, n_runs // 10), seed + 10)
        shift = np.abs(one.mean(axis=0) - two.mean(axis=0))
        spread = one.std(axis=0) + two.std(axis=0)
        return float(np.divide(shift, spread, out=1e9 * shift, where=spread > 1e-9 * shift).max())

    pair = max(subject.worst_pairs(), key=promise)
    return attack(*publish_both(pair, n_runs, seed + 20), delta, confidence), pair.name

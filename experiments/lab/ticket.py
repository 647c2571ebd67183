"""The entry ticket: a proof note and a passed replay.

An entry is run on a small table; `Noise` writes down every answer. Then it is run again on neighbouring tables (one row
less, or another last row added) with the same answers. It is refused, with a counterexample, if

- its events spend more than the budget it was given,
- one row moves an answer further than its sensitivity says,
- the number, names or noise of answers depend on the rows,
- the weights differ although all answers were the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpsparse.accounting import Event, ObjectivePerturbation, Repeated, Sequence
from dpsparse.accounting import epsilon as price_of
from lab.rivals.base import Entry, Noise, Public, Release, Weights

BUDGETS = ((0.3, 1e-6), (1.0, 1e-6), (3.0, 1e-6))
SLACK = 1e-6  # relative, for arithmetic
PLD_SLACK = 2e-3  # relative: two evaluations of a privacy loss distribution on a grid
LEAST_PROOF = 200  # characters


@dataclass(frozen=True)
class Ticket:
    """What the check found; no complaints: the entry is in."""

    name: str
    complaints: tuple[str, ...]
    tightness: float  # largest observed move over its sensitivity

    @property
    def passed(self) -> bool:
        return not self.complaints


def check_entry(entry: Entry, kinds: tuple[str, ...] | None = None) -> Ticket:
    """Every complaint about an entry, one of a kind."""
    complaints: dict[str, str] = {}
    tightness = 0.0
    if "Proof" not in entry.proof or len(entry.proof) < LEAST_PROOF:
        complaints["proof"] = "no proof note"
    for kind in kinds or entry.handles:
        for number, (epsilon, delta) in enumerate(BUDGETS):
            for X, y, X2, y2, public, last in _pairs(kind, number):
                found = _check_pair(entry, X, y, X2, y2, public, last, epsilon, delta)
                tightness = max(tightness, found.pop("tightness"))
                for key, text in found.items():
                    complaints.setdefault(key, f"{kind}, epsilon {epsilon:g}: {text}")
    return Ticket(entry.name, tuple(complaints.values()), tightness)


class HalvedNoise(Noise):
    """What an under-noised copy does: half the standard deviation of the original."""

    def gaussian(self, name: str, value: Any, sensitivity: float, sigma: float) -> Any:
        return super().gaussian(name, value, sensitivity, sigma / 2.0)

    def sampled_gaussian(
        self, name: str, value: Any, sensitivity: float, sigma: float, rate: float
    ) -> Any:
        return super().sampled_gaussian(name, value, sensitivity, sigma / 2.0, rate)

    def pick(self, name: str, scores: Any, sensitivity: float, eta: float) -> int:
        return super().pick(name, scores, sensitivity, 2.0 * eta)

    def minimise(self, name: str, objective: Any, start: Any, event: Any, *rest: Any) -> Any:
        return super().minimise(
            name, objective, start, replace(event, scale=event.scale / 2.0), *rest
        )


def halved_copy(entry: Entry) -> Entry:
    """An entry that draws half of its noise: the ticket must refuse it."""

    def fit(X: Any, y: Any, public: Public, epsilon: float, delta: float, noise: Noise) -> Weights:
        quiet = HalvedNoise(noise.seed, noise.script, noise.must_sample, noise.log)
        return entry.fit(X, y, public, epsilon, delta, quiet)

    return replace(entry, name=f"{entry.name}, half of its noise", fit=fit)


def _check_pair(
    entry: Entry, X: Any, y: Any, X2: Any, y2: Any, public: Public, last: int, epsilon: float, delta: float
) -> dict[str, Any]:  # fmt: skip
    found: dict[str, Any] = {"tightness": 0.0}
    first = Noise(seed=1, must_sample=last)
    one = entry.fit(X, y, public, epsilon, delta, first)
    spent = spent_epsilon(first.log, delta)
    sampled = any(isinstance(r.event, tuple) for r in first.log)
    if not spent <= epsilon * (1.0 + (PLD_SLACK if sampled else SLACK)):
        found["price"] = f"its events spend {spent:.3g} at delta {delta:g}"
    second = Noise(seed=1, script=first.log, must_sample=last)
    try:
        two = entry.fit(X2, y2, public, epsilon, delta, second)
    except Exception as error:  # an error on one table only is an answer about the row
        return found | {"flow": f"on a neighbouring table: {type(error).__name__}: {error}"}
    if [r.name for r in first.log] != [r.name for r in second.log]:
        return found | {"flow": "the answers it asks for depend on the rows"}
    for a, b in zip(first.log, second.log, strict=True):
        if a.event != b.event:
            found["noise"] = f"the noise of {a.name!r} depends on the rows"
        move = _move(a, b)
        found["tightness"] = max(found["tightness"], move)
        if move > 1.0 + SLACK:
            found["move"] = f"one row moves {a.name!r} {move:.3g} times as far as it says"
    bent = [_bend(a, b) for a, b in zip(first.log, second.log, strict=True)]
    if any(bent):
        found["curvature"] = next(filter(None, bent))
    if not _same(one, two):
        found["output"] = "the weights differ although all answers were the same"
    return found


def _move(a: Release, b: Release) -> float:
    """How far the answer to be noised moved, over its sensitivity; scores of picks move by their largest change."""
    difference = np.ravel(a.value - b.value)
    if type(a.event).__name__ == "Exponential":
        return float(np.max(np.abs(difference))) / a.sensitivity
    return float(np.linalg.norm(difference)) / a.sensitivity


def _bend(a: Release, b: Release) -> str:
    """What is wrong with the curvature that an objective perturbation rests on."""
    if not isinstance(a.event, ObjectivePerturbation) or a.curvature is None or b.curvature is None:
        return ""
    if np.linalg.eigvalsh(b.curvature)[0] < a.event.ridge * (1.0 - 1e-3):
        return f"{a.name!r} is flatter than its ridge"
    if np.linalg.norm(a.curvature - b.curvature, 2) > a.event.curvature * (1.0 + 1e-3):
        return f"one row bends {a.name!r} more than it says"
    return ""


def _same(one: Weights, two: Weights) -> bool:
    return np.array_equal(one.coef, two.coef) and np.array_equal(one.intercept, two.intercept)


def spent_epsilon(log: list[Release], delta: float) -> float:
    """Epsilon of all events of a run."""
    if any(r.event is None for r in log):
        return math.inf
    sampled = Counter(r.event for r in log if isinstance(r.event, tuple))
    whole = Counter(r.event for r in log if isinstance(r.event, Event))
    if sampled and whole:
        return math.inf  # no entry mixes them; unknown means refuse
    if sampled:
        return _sampled_epsilon(tuple(sampled.items()), delta)
    return float(price_of(Sequence(tuple(Repeated(e, n) for e, n in whole.items())), delta))


@lru_cache(maxsize=64)
def _sampled_epsilon(events: tuple[tuple[Any, int], ...], delta: float) -> float:
    """Epsilon of Poisson-sampled Gaussian sums by their privacy loss distribution."""
    import dp_accounting as dp
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(dp.NeighboringRelation.ADD_OR_REMOVE_ONE)
    for (rate, multiplier), count in events:
        if multiplier <= 0.0:
            return math.inf
        event = dp.PoissonSampledDpEvent(rate, dp.GaussianDpEvent(multiplier))
        accountant.compose(dp.SelfComposedDpEvent(event, count))
    return float(accountant.get_epsilon(delta))


def _pairs(kind: str, number: int) -> Iterator[tuple[Any, ...]]:
    """Tables with and without their last row: ordinary rows, the largest ones, wrong ones, zeros."""
    rng = np.random.default_rng((11, number))
    y: Any
    facts: dict[str, Any]
    n, d = 30, 4
    for last in ("ordinary", "largest", "beyond", "zero"):
        X = rng.uniform(-1.0, 1.0, (n, d))
        X[n // 2 :, 0] = np.round(X[n // 2 :, 0])
        X[-1] = {
            "ordinary": X[-1],
            "largest": np.ones(d),
            "beyond": np.full(d, 1e3),
            "zero": np.zeros(d),
        }[last]
        if kind == "numbers":
            y, facts = 3.0 * X[:, 0] + rng.normal(size=n), {"target_range": (-5.0, 5.0)}
            y[-1] = 1e6 if last == "beyond" else 5.0
        else:
            labels = (0, 1) if kind == "binary" else (0, 1, 2)
            y, facts = rng.integers(0, len(labels), n), {"classes": labels}
            y[-1] = labels[-1]
        public = Public(n, d, row_norm=math.sqrt(d), **facts)
        yield X, y, X[:-1], y[:-1], public, n - 1

"""The privacy filter of an account: which fits may follow, when each is chosen after seeing the others.

"Compose everything, then take the best bound" is a proof for prices fixed in advance only. Here everything that a
proof needs is written down before the noise it is about: the reserve in the terms of the account, the price of a fit in
its entry. Nothing is computed anew later, so no analyst, and no better accountant either, can choose among bounds after
looking. What a row sees must stay in one of

    alone      one fit, whose own epsilon is at most the ceiling
    pure       the pure epsilons add up to at most the ceiling
    Gaussian   the withdrawals add up to at most the Gaussian budget of the terms, and the reserve has room for
               everything that may go wrong: samplers, slacks, leaks

All of it are sums, so a reservation costs the same however long the book is. Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from dpsparse._json import plain
from dpsparse.accounting.conversion import (
    SHIFT,
    TAIL_LIMIT,
    epsilon,
    gaussian_epsilon,
    gaussian_log_delta,
    sampler_tail,
)
from dpsparse.accounting.dominance import gaussian_parameter
from dpsparse.accounting.events import Event, leaves
from dpsparse.accounting.guarantee import ROW

# This share of delta pays for samplers that are not ideal, slacks and leaks.
RESERVE = 2.0**-14


@dataclass(frozen=True)
class Terms:
    """The ceiling of one data set and the rules of its filter; never changed after the account is opened."""

    epsilon: float
    delta: float
    adjacency: str
    unit: str = ROW  # what is protected
    reserve: float = RESERVE

    @property
    def shift(self) -> float:
        """What the filter keeps of epsilon for samplers: it covers every run of plans, as their mu^2 is at most 2
        epsilon."""
        return SHIFT + self.epsilon * 2.0**-20

    @property
    def gaussian_delta(self) -> float:
        """What the Gaussian class may use."""
        return self.delta * (1.0 - self.reserve)

    @property
    def budget(self) -> float:
        """The largest mu^2 whose Gaussian pair has `gaussian_delta` at the ceiling."""
        return _budget(self.epsilon - self.shift, self.gaussian_delta)


@functools.lru_cache(maxsize=256)
def _budget(ceiling: float, delta: float) -> float:
    """By bisection, from below: a comparison with what is not a number is false, so it can only lower the budget."""
    goal = math.log(delta)
    low, high = 0.0, 40.0 + math.sqrt(8.0 * max(ceiling, 0.0))
    for _ in range(100 if ceiling > 0.0 else 0):
        mu = (low + high) / 2.0
        low, high = (mu, high) if gaussian_log_delta(mu, ceiling) <= goal else (low, mu)
    return (low * (1.0 - 1e-12)) ** 2


@dataclass(frozen=True)
class Price:
    """What one fit takes from an account, fixed before its noise and written into its entry."""

    pure: float = 0.0  # epsilon of basic composition
    square: float = 0.0  # mu^2 taken from the Gaussian budget
    slack: float = 0.0  # the probability that the Gaussian does not dominate ...
    leak: float = 0.0  # ... that a threshold tells a name that is impossible without the row ...
    tail: float = 0.0  # ... that a sampler is in its tail, and
    shift: float = 0.0  # what samplers add to epsilon

    def plus(self, other: Price) -> Price:
        return Price(*(a + b for a, b in self._pairs(other)))

    def covers(self, other: Price) -> bool:
        """Whether no number is lower than the other's, apart from rounding."""
        return all(a >= b * (1.0 - 1e-6) for a, b in self._pairs(other))

    def _pairs(self, other: Price) -> list[tuple[float, float]]:
        return [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(asdict(self)))

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Price:
        """A price as it stands in an entry; anything odd is an error, never a discount."""
        return Price(*(_number(record[f.name]) for f in fields(Price)))


def _number(value: Any) -> float:
    number = float(value)
    if not number >= 0.0 or isinstance(value, bool):
        raise ValueError("a price must be a number that is not negative")
    return number


def price_of(event: Event, terms: Terms) -> Price:
    """The price of a fit, after any other fits and at any time."""
    counts = leaves(event)
    mu, slack = gaussian_parameter(event)
    leak = sum(n * getattr(leaf, "leak", 0.0) for leaf, n in counts.items())
    tail, shift = sampler_tail(counts, terms.epsilon)
    return Price(epsilon(event, 0.0), mu * mu, slack, leak, tail, shift)


@dataclass(frozen=True)
class Spending:
    """What one row has seen, as sums."""

    terms: Terms
    first: Event | None = None
    n_fits: int = 0
    total: Price = Price()

    @classmethod
    def of(cls, terms: Terms, event: Event, price: Price) -> Spending:
        """One fit; a plan without noise or data costs nothing and decides nothing."""
        return cls(terms, event, 1, price) if leaves(event) else cls(terms)

    def plus(self, other: Spending) -> Spending:
        n_fits, total = self.n_fits + other.n_fits, self.total.plus(other.total)
        return Spending(self.terms, self.first or other.first, n_fits, total)

    @property
    def has_room(self) -> bool:
        """Whether the reserve pays for all rare failures.

        Half of it, as the other half pays for the same under the law of the other data set.
        """
        total = self.total
        if not (total.leak < 0.5 and total.tail <= TAIL_LIMIT):
            return False
        lost = total.tail + total.slack + total.leak / (1.0 - total.leak) * (1.0 + 1e-12)
        fits = lost <= self.terms.delta * self.terms.reserve / 2.0
        return fits and total.shift + SHIFT <= self.terms.shift

    def filtered(self) -> float:
        """A number at most `terms.epsilon` exactly where the filter lets these fits pass."""
        if self.first is None:
            return 0.0
        if self.n_fits == 1:  # nothing was adaptive yet
            return epsilon(self.first, self.terms.delta)
        bounds = [self.total.pure]  # basic composition of pure events
        if self.has_room and math.isfinite(self.total.square):
            mu = math.sqrt(self.total.square)
            bounds.append(gaussian_epsilon(mu, self.terms.gaussian_delta) + self.terms.shift)
        return max(0.0, min(bounds))

"""The privacy filter of an account: which fits may follow, when each is chosen after seeing the others.

"Compose everything, then take the best bound" is a proof for prices fixed in advance only. Here everything that a
proof needs is written down before the noise it is about: the shares of delta and the orders in the terms of the
account, the price of a fit and the kind of account it opens in its entry. Nothing is computed anew later, so no
analyst, and no better accountant either, can choose among bounds after looking. What a row sees must stay in one of

    alone      one fit, whose own epsilon is at most the ceiling
    pure       the pure epsilons add up to at most the ceiling
    Gaussian   the withdrawals add up to at most the Gaussian budget of the terms
    Renyi      RDP at one order adds up; in a Gaussian account it has a small share of delta for itself

The last two also need room in the reserve for everything that may go wrong: samplers, slacks, leaks. All of it are
sums, so a reservation costs the same however long the book is. Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from dpsparse._json import plain
from dpsparse.accounting.composition import (
    gaussian_parameter,
    leaf_parameter,
    total_square,
)
from dpsparse.accounting.conversion import (
    SHIFT,
    TAIL_LIMIT,
    epsilon,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
    leaked_delta,
    sampler_tail,
)
from dpsparse.accounting.events import Event, Gaussian, RenyiCurve, Repeated, Sequence
from dpsparse.accounting.guarantee import ROW
from dpsparse.accounting.rdp import bounded_range, leaves, rdp, spend

GAUSSIAN, RENYI = "gaussian", "renyi"

# In a Gaussian account this share of delta is kept for the paths on which a fit follows that no Gaussian is
# known to dominate; the rest serves the paths without one.
MIXED_SHARE = 2.0**-7
# This share of delta pays for samplers that are not ideal, slacks and leaks.
RESERVE = 2.0**-14
# And this share of epsilon for samplers: it covers every run of plans, as their mu^2 is at most 2 epsilon.
SHIFT_SHARE = 2.0**-20

# A first fit opens a Gaussian account if this share of the budget is enough for it, or if its Gaussian has not
# much more than its variance.
_SMALL, _FAIR = 0.05, 1.25

# `spent`, which informs and does not decide, is exact up to MANY kinds of events. More are folded into one curve on
# ORDERS, and beyond MOST into one Gaussian: that adds at most 1e-3 and keeps a long book fast.
MANY, MOST = 16, 256
ORDERS = 1.0 + np.geomspace(1e-3, 1e6, 400)


@dataclass(frozen=True)
class Terms:
    """The ceiling of one data set and the rules of its filter; never changed after the account is opened."""

    epsilon: float
    delta: float
    adjacency: str
    unit: str = ROW  # what is protected
    reserve: float = RESERVE
    # Of Gaussian and Renyi accounts; None: `filter_order`.
    orders: tuple[float, float] | None = None

    @property
    def shift(self) -> float:
        """What the filter keeps of epsilon for samplers."""
        return SHIFT + self.epsilon * SHIFT_SHARE

    def order(self, kind: str) -> float:
        if self.orders is not None:
            return self.orders[0 if kind == GAUSSIAN else 1]
        return filter_order(self, MIXED_SHARE if kind == GAUSSIAN else 1.0)

    def renyi_delta(self, kind: str) -> float:
        """What the Renyi class of an account of this kind may use."""
        return self.delta * (1.0 - self.reserve) * (MIXED_SHARE if kind == GAUSSIAN else 1.0)

    @property
    def gaussian_delta(self) -> float:
        """What the Gaussian class may use."""
        return self.delta * (1.0 - self.reserve) * (1.0 - MIXED_SHARE)

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

    kind: str  # of the account of a row that sees this fit first
    pure: float  # epsilon of basic composition
    renyi: tuple[float, float]  # RDP at the orders of Gaussian and Renyi accounts
    square: float  # mu^2 taken from the Gaussian budget
    slack: float  # the probability that the Gaussian does not dominate ...
    leak: float  # ... that a threshold tells a name that is impossible without the row ...
    tail: float  # ... that a sampler is in its tail, and
    shift: float  # what samplers add to epsilon

    def plus(self, other: Price) -> Price:
        """Both together; the kind stays that of the first."""
        renyi = self.renyi[0] + other.renyi[0], self.renyi[1] + other.renyi[1]
        sums = {name: getattr(self, name) + getattr(other, name) for name in _NUMBERS}
        return Price(kind=self.kind, renyi=renyi, **sums)

    def covers(self, other: Price) -> bool:
        """Whether no number is lower than the other's, apart from rounding."""
        pairs = [*zip(self.renyi, other.renyi, strict=True)]
        pairs += [(getattr(self, name), getattr(other, name)) for name in _NUMBERS]
        return self.kind == other.kind and all(a >= b * (1.0 - 1e-6) for a, b in pairs)

    def to_dict(self) -> dict[str, Any]:
        return dict(plain(asdict(self)))

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Price:
        """A price as it stands in an entry; anything odd is an error, never a discount."""
        first, second = (_number(r) for r in record["renyi"])
        numbers = {name: _number(record[name]) for name in _NUMBERS}
        if record["kind"] not in (GAUSSIAN, RENYI):
            raise ValueError("unknown kind of account")
        return Price(kind=record["kind"], renyi=(first, second), **numbers)


_NUMBERS = ("pure", "square", "slack", "leak", "tail", "shift")
NOTHING = Price(GAUSSIAN, 0.0, (0.0, 0.0), 0.0, 0.0, 0.0, 0.0, 0.0)


def _number(value: Any) -> float:
    number = float(value)
    if not number >= 0.0 or isinstance(value, bool):
        raise ValueError("a price must be a number that is not negative")
    return number


def price_of(event: Event, terms: Terms) -> Price:
    """The price of a fit, after any other fits and at any time."""
    counts = leaves(event)
    square, slack = total_square(counts)
    pure, renyi = _fixed_prices(event, terms)
    leak = sum(n * getattr(leaf, "leak", 0.0) for leaf, n in counts.items())
    tail, shift = sampler_tail(counts, terms.epsilon)
    tail -= leaked_delta(counts)
    fits = slack + tail + leak <= terms.reserve * terms.delta / 4.0
    kind = GAUSSIAN if fits and _opens_gaussian(event, terms) else RENYI
    return Price(kind, pure, renyi, square, slack, leak, tail, shift)


@functools.lru_cache(maxsize=4096)
def _opens_gaussian(event: Event, terms: Terms) -> bool:
    """Which kind of account suits a path that begins with this fit; any rule fixed before the noise is sound.

    A single large pure step is far from its Gaussian, and so are paths of such steps: they are better off with
    Renyi curves.
    """
    counts = leaves(event)
    if gaussian_mu(counts) is not None:
        return True
    mu = gaussian_parameter(event)[0]
    steps = ((bounded_range(leaf), leaf, n) for leaf, n in counts.items())
    variance = sum(
        n * eta * eta / 4.0 if eta is not None else leaf_parameter(leaf, n)[0] ** 2
        for eta, leaf, n in steps
    )
    return mu * mu <= _SMALL * terms.budget or mu * mu <= _FAIR * variance < math.inf


@functools.lru_cache(maxsize=4096)
def _fixed_prices(event: Event, terms: Terms) -> tuple[float, tuple[float, float]]:
    """Pure epsilon of an event, and its RDP at the two orders; a book repeats its events."""
    first, second = rdp(event, [terms.order(GAUSSIAN), terms.order(RENYI)])
    return epsilon(event, 0.0), (float(first), float(second))


@functools.lru_cache(maxsize=64)
def filter_order(terms: Terms, share: float) -> float:
    """The order at which most zCDP fits under the ceiling; fixed by the terms of the account."""
    ceiling, delta = terms.epsilon, terms.delta * (1.0 - terms.reserve) * share
    orders = 1.0 + np.geomspace(1e-3, 1e6, 400)
    for _ in range(4):
        best = int(np.argmax((ceiling - conversion(orders, delta)) / orders))
        chosen = float(orders[best])
        orders = np.linspace(orders[max(best - 1, 0)], orders[min(best + 1, 399)], 400)
    return chosen


def conversion(orders: np.ndarray, delta: float) -> np.ndarray:
    """What turning RDP at an order into epsilon at `delta` adds (accounting.md, section 5)."""
    return np.asarray(np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1.0))


def _added(first: dict[Event, int], second: dict[Event, int]) -> dict[Event, int]:
    return {leaf: first.get(leaf, 0) + second.get(leaf, 0) for leaf in {**first, **second}}


@dataclass
class Spending:
    """What one row has seen, as sums."""

    terms: Terms
    first: tuple[int, Event] | None = None  # the number of the first entry, and its event
    n_fits: int = 0
    total: Price = NOTHING  # its kind is that of the account, which the first fit opens
    # For `composed`, which informs: Gaussian noise merged; other events, those not in the folded curve yet, and those
    # not in the folded Gaussian yet.
    noise: float = 0.0
    fresh: dict[Event, int] = field(default_factory=dict)
    folded: np.ndarray | None = None
    kinds: dict[Event, int] = field(default_factory=dict)
    folded_square: float = 0.0
    folded_slack: float = 0.0

    def add(self, seq: int, event: Event, price: Price) -> None:
        counts = leaves(event)
        if not counts:  # a plan without noise or data costs nothing and decides nothing
            return
        self.total = price if self.first is None else self.total.plus(price)
        self.first = self.first or (seq, event)
        self.n_fits += 1
        for leaf, count in counts.items():
            mu = gaussian_mu({leaf: count})
            if mu is not None:
                self.noise += mu**2
            else:
                self.fresh[leaf] = self.fresh.get(leaf, 0) + count
                self.kinds[leaf] = self.kinds.get(leaf, 0) + count
        if len(self.kinds) > MOST:
            (self.folded_square, self.folded_slack), self.kinds = self._as_gaussian(), {}
        if len(self.fresh) > MANY:
            curve = spend(self.fresh, ORDERS)
            self.folded = curve if self.folded is None else self.folded + curve
            self.fresh = {}

    def _as_gaussian(self) -> tuple[float, float]:
        """mu^2 and slack of everything that is not noise."""
        square, slack = total_square(self.kinds)
        return self.folded_square + square, self.folded_slack + slack

    def copy(self) -> Spending:
        return replace(self, fresh=dict(self.fresh), kinds=dict(self.kinds))

    def merged(self, other: Spending) -> Spending:
        # The earlier one opened the account.
        one, two = sorted((self, other), key=lambda s: math.inf if s.first is None else s.first[0])
        curves = [s.folded for s in (self, other) if s.folded is not None]
        return Spending(
            terms=self.terms,
            first=one.first,
            n_fits=self.n_fits + other.n_fits,
            total=one.total.plus(two.total),
            noise=self.noise + other.noise,
            fresh=_added(self.fresh, other.fresh),
            kinds=_added(self.kinds, other.kinds),
            folded=sum(curves) if curves else None,  # type: ignore[arg-type]
            folded_square=self.folded_square + other.folded_square,
            folded_slack=self.folded_slack + other.folded_slack,
        )

    @property
    def left(self) -> float | None:
        """What is left of the Gaussian budget; None in an account or on a path that has none."""
        if self.total.kind != GAUSSIAN or not self.has_room or math.isinf(self.total.square):
            return None
        return max(0.0, self.terms.budget - self.total.square)

    @property
    def has_room(self) -> bool:
        """Whether the reserve pays for all rare failures: one sum for every class.

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
            return epsilon(self.first[1], self.terms.delta)
        bounds = [self.total.pure]  # basic composition of pure events
        if self.has_room:
            kind, shift = self.total.kind, self.terms.shift
            if kind == GAUSSIAN and math.isfinite(self.total.square):
                mu = math.sqrt(self.total.square)
                bounds.append(gaussian_epsilon(mu, self.terms.gaussian_delta) + shift)
            order, delta = np.array(self.terms.order(kind)), self.terms.renyi_delta(kind)
            renyi = self.total.renyi[0 if kind == GAUSSIAN else 1]
            bounds.append(renyi + float(conversion(order, delta)) + shift)
        return max(0.0, min(bounds))

    @property
    def everything(self) -> Event:
        """All fits as one event; Gaussians are merged exactly, a folded part bounds from above."""
        parts: list[Event] = [Repeated(event, n) for event, n in self.fresh.items()]
        if self.noise > 0.0:
            parts.append(Gaussian(1.0 / math.sqrt(self.noise)))
        if self.folded is not None:
            parts.append(RenyiCurve(tuple(ORDERS), tuple(self.folded)))
        return Sequence(tuple(parts))

    def composed(self) -> float:
        """Epsilon of all fits at the account's delta, had their prices been fixed in advance."""
        if self.first is not None and self.n_fits == 1:
            return epsilon(self.first[1], self.terms.delta)
        paid = self.terms.reserve if self.total.tail + self.total.leak > 0.0 else 0.0
        delta = self.terms.delta * (1.0 - paid)
        fixed = epsilon(self.everything, delta)
        if self.folded is not None:
            square, slack = self._as_gaussian()
            if slack < delta and math.isfinite(square):
                fixed = min(fixed, gaussian_epsilon(math.sqrt(square + self.noise), delta - slack))
        # What the filter lets pass has the ceiling's guarantee, also where composing cannot show it.
        return min(fixed, self.terms.epsilon) if self.filtered() <= self.terms.epsilon else fixed

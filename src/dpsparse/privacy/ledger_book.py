"""The arithmetic of an account book: terms, chain of entries, and what they add up to.

Nothing here touches a database. A book is extended row by row, since rows are only ever appended,
and every row is checked against the hash of the one before.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from dpsparse.exceptions import DPSparseError, LedgerError
from dpsparse.privacy.conversion import (
    SHIFT,
    TAIL_LIMIT,
    epsilon,
    gaussian_epsilon,
    gaussian_mu,
    sampler_tail,
)
from dpsparse.privacy.events import (
    Event,
    Gaussian,
    NonPrivate,
    RenyiCurve,
    Repeated,
    Sequence,
    from_dict,
)
from dpsparse.privacy.guarantee import PERSON, ROW
from dpsparse.privacy.plan import Plan
from dpsparse.privacy.rdp import leaves, rdp, spend

FORMAT = 1
PERSON_FORMAT = (
    2  # of accounts that protect persons: versions that know rows only must not read them
)
# Rounding of the accountant: a plan calibrated to the whole ceiling must not fail by one ulp.
SLACK = 1e-9


@dataclass(frozen=True)
class Terms:
    """The ceiling of one data set; never changed after the account is opened."""

    epsilon: float
    delta: float
    adjacency: str
    unit: str = ROW  # what is protected; accounts older than the choice are for rows


@dataclass(frozen=True)
class Entry:
    """One reservation as the book holds it; `total` is what was spent including it."""

    seq: int
    time: str
    method: str
    partition: str | None
    epsilon: float
    delta: float
    proven: bool
    total: float
    committed: bool
    event: Event
    hash: str


# In an account whose first fit is Gaussian, this share of delta is kept for the paths on which a
# fit of another kind follows; the rest serves the paths that stay Gaussian.
MIXED_SHARE = 2.0**-7
# This share of delta pays for the distance of samplers from their ideal law.
SAMPLER_SHARE = 2.0**-14
# And this share of epsilon: it covers every run of plans, as their mu^2 is at most 2 epsilon.
SHIFT_SHARE = 2.0**-20


# `spent`, which informs and does not decide, is exact up to MANY kinds of events. More are folded
# into one curve on ORDERS, which adds at most 1e-3 and keeps a long book fast.
MANY = 16
ORDERS = 1.0 + np.geomspace(1e-3, 1e6, 400)


@dataclass
class Spending:
    """What was reserved, in order of arrival, as a privacy filter sees it.

    Later prices may be chosen after looking at earlier results, so "compose everything, then take
    the best order" is not a proof. The filter below works at one order that the terms of the
    account fix before any noise. Proof: docs/proofs/ledger.md. All it needs are sums, so a
    reservation costs the same however long the book is.
    """

    terms: Terms
    first: tuple[int, Event] | None = None
    n_fits: int = 0
    pure: float = 0.0  # sum of pure epsilons; infinite once an event is not pure
    slack: float = 0.0  # what samplers that are not ideal add to delta ...
    shift: float = 0.0  # ... and to epsilon
    mu2: float = 0.0  # Gaussian events: sum of (sensitivity/scale)^2
    mixed: bool = False  # whether an event is not Gaussian
    renyi: tuple[float, float] = (0.0, 0.0)  # RDP at the orders of the two kinds of account
    fresh: dict[Event, int] = field(default_factory=dict)  # for `everything`: not Gaussian ...
    folded: np.ndarray | None = None  # ... and not in the folded curve yet

    def add(self, seq: int, event: Event) -> None:
        counts = leaves(event)
        if not counts:  # a plan without noise or data costs nothing and decides nothing
            return
        self.first = self.first or (seq, event)
        self.n_fits += 1
        pure, in_gaussian_account, in_other_account = _prices(event, self.terms)
        self.pure += pure
        self.renyi = (self.renyi[0] + in_gaussian_account, self.renyi[1] + in_other_account)
        tail, shift = sampler_tail(counts, self.terms.epsilon)
        self.slack, self.shift = self.slack + tail, self.shift + shift
        for leaf, count in counts.items():
            mu = gaussian_mu({leaf: count})
            if mu is not None:
                self.mu2 += mu**2
            else:
                self.mixed = True
                self.fresh[leaf] = self.fresh.get(leaf, 0) + count
        if len(self.fresh) > MANY:
            curve = spend(self.fresh, ORDERS)
            self.folded = curve if self.folded is None else self.folded + curve
            self.fresh = {}

    def copy(self) -> Spending:
        return replace(self, fresh=dict(self.fresh))

    def merged(self, other: Spending) -> Spending:
        firsts = [s.first for s in (self, other) if s.first]
        fresh = dict(self.fresh)
        for leaf, count in other.fresh.items():
            fresh[leaf] = fresh.get(leaf, 0) + count
        curves = [s.folded for s in (self, other) if s.folded is not None]
        return Spending(
            terms=self.terms,
            first=min(firsts, default=None, key=lambda first: first[0]),
            n_fits=self.n_fits + other.n_fits,
            pure=self.pure + other.pure,
            slack=self.slack + other.slack,
            shift=self.shift + other.shift,
            mu2=self.mu2 + other.mu2,
            mixed=self.mixed or other.mixed,
            renyi=(self.renyi[0] + other.renyi[0], self.renyi[1] + other.renyi[1]),
            fresh=fresh,
            folded=sum(curves) if curves else None,  # type: ignore[arg-type]
        )

    @property
    def everything(self) -> Event:
        """All fits as one event; Gaussians are merged exactly, a folded part bounds from above."""
        parts: list[Event] = [Repeated(event, n) for event, n in self.fresh.items()]
        if self.mu2 > 0.0:
            parts.append(Gaussian(1.0 / math.sqrt(self.mu2)))
        if self.folded is not None:
            parts.append(RenyiCurve(tuple(ORDERS), tuple(self.folded)))
        return Sequence(tuple(parts))

    def composed(self) -> float:
        """Epsilon of all fits at the account's delta, had their prices been fixed in advance."""
        if self.first is not None and self.n_fits == 1:
            return epsilon(self.first[1], self.terms.delta)
        paid = SAMPLER_SHARE if self.slack > 0.0 else 0.0
        return epsilon(self.everything, self.terms.delta * (1.0 - paid))

    def filtered(self) -> float:
        """A number at most `terms.epsilon` exactly where the filter lets these fits pass."""
        if self.first is None:
            return 0.0
        first, delta = self.first[1], self.terms.delta
        if self.n_fits == 1:  # nothing was adaptive yet
            return epsilon(first, delta)
        bounds = [self.pure]  # basic composition of pure events
        shift = SHIFT + self.terms.epsilon * SHIFT_SHARE
        if self.slack <= min(delta * SAMPLER_SHARE, TAIL_LIMIT) and self.shift + SHIFT <= shift:
            delta *= 1.0 - SAMPLER_SHARE
            gaussian_first = gaussian_mu(leaves(first)) is not None
            if gaussian_first and not self.mixed:
                merged = gaussian_epsilon(math.sqrt(self.mu2), delta * (1.0 - MIXED_SHARE))
                bounds.append(merged + shift)
            share = MIXED_SHARE if gaussian_first else 1.0
            order = np.array(filter_order(self.terms, share))
            renyi = self.renyi[0] if gaussian_first else self.renyi[1]
            bounds.append(renyi + float(conversion(order, delta * share)) + shift)
        return max(0.0, min(bounds))


@functools.lru_cache(maxsize=4096)
def _prices(event: Event, terms: Terms) -> tuple[float, float, float]:
    """Pure epsilon of an event, and its RDP at the two orders; a book repeats its events."""
    orders = [filter_order(terms, share) for share in (MIXED_SHARE, 1.0)]
    first, second = rdp(event, orders)
    return epsilon(event, 0.0), float(first), float(second)


@functools.lru_cache(maxsize=64)
def filter_order(terms: Terms, share: float) -> float:
    """The order at which most zCDP fits under the ceiling; fixed by the terms of the account."""
    ceiling, delta = terms.epsilon, terms.delta * (1.0 - SAMPLER_SHARE) * share
    orders = 1.0 + np.geomspace(1e-3, 1e6, 400)
    for _ in range(4):
        best = int(np.argmax((ceiling - conversion(orders, delta)) / orders))
        chosen = float(orders[best])
        orders = np.linspace(orders[max(best - 1, 0)], orders[min(best + 1, 399)], 400)
    return chosen


def conversion(orders: np.ndarray, delta: float) -> np.ndarray:
    """What turning RDP at an order into epsilon at `delta` adds (accounting.md, section 5)."""
    return np.asarray(np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1.0))


@dataclass
class Book:
    """Entries read so far and what they add up to, per partition (None: all rows)."""

    terms: Terms
    genesis: str
    head: str
    n_entries: int = 0
    spent: dict[str | None, Spending] = field(default_factory=dict)
    unproven: int = 0

    def read(self, seq: int, body: str, digest: str) -> dict[str, Any]:
        """Check one row against the chain and add it."""
        if seq != self.n_entries + 1 or digest != digest_of(self.head, body):
            raise LedgerError(
                f"Entry {seq} of the ledger does not follow from the one before: a row was edited, "
                "removed or inserted. Restore the file from a backup."
            )
        try:
            entry: dict[str, Any] = json.loads(body)
            if entry["kind"] == "reserve":
                if entry["proven"]:
                    part = part_of(entry)
                    spent = self.spent.setdefault(part, Spending(self.terms))
                    spent.add(seq, from_dict(entry["event"]))
                else:
                    self.unproven += 1
        except (KeyError, TypeError, ValueError, DPSparseError) as error:
            raise LedgerError(
                f"Entry {seq} of the ledger is not one that this dpsparse can read; it may be of a "
                "newer version. Nothing was spent."
            ) from error
        self.n_entries, self.head = seq, digest
        return entry

    def copy(self) -> Book:
        return replace(self, spent={part: s.copy() for part, s in self.spent.items()})

    def spent_epsilon(self, partition: str | None, extra: Event | None = None) -> float:
        """Composed epsilon of the proven entries as seen by `partition` (None: the worst one)."""
        return max(view.composed() for view in self._views(partition, extra))

    def allows(self, partition: str | None, extra: Event | None = None) -> bool:
        """Whether the filter lets the entries, and `extra` after them, pass."""
        limit = self.terms.epsilon * (1 + SLACK)
        return all(view.filtered() <= limit for view in self._views(partition, extra))

    def is_mixed(self, partition: str | None) -> bool:
        """Whether `partition` has seen an event that is not Gaussian."""
        return any(view.mixed for view in self._views(partition, None))

    def _views(self, partition: str | None, extra: Event | None) -> list[Spending]:
        """What a row can see: the entries on all rows and those on its part.

        For all rows (None) that is one view for each part with entries, and always the view of a
        row in no such part: it will be that of every part whose first entry is still to come.
        """
        nothing = Spending(self.terms)
        common = self.spent.get(None, nothing)
        names = [p for p in self.spent if p is not None] if partition is None else [partition]
        views = [common.merged(self.spent.get(name, nothing)) for name in names]
        if partition is None:
            views.append(common.copy())
        if extra is not None:
            for view in views:
                view.add(self.n_entries + 1, extra)
        return views


def part_of(entry: dict[str, Any]) -> str | None:
    """The part of an entry; early books hold 2024 and " 2024", which are one part."""
    return None if entry["partition"] is None else str(entry["partition"]).strip()


def check_name(argument: str, name: Any) -> str:
    """A name that cannot be taken for another one, or an error that names the argument."""
    stripped = isinstance(name, str) and name and name == name.strip()
    if stripped and name.isprintable() and unicodedata.is_normalized("NFC", name):
        return str(name)
    raise LedgerError(
        f"{argument} must be a printable text without spaces around it, such as "
        f"{argument}='2024', got {name!r}: names that only look alike would be separate accounts."
    )


def is_proven(plan: Plan) -> bool:
    return plan.guarantee.proven and NonPrivate() not in leaves(plan.event)


UNITS = {"row": ROW, "person": PERSON}


def check_terms(eps: Any, delta: Any, adjacency: str | None, unit: str | None) -> Terms | None:
    if unit is not None and unit not in UNITS:
        raise LedgerError(f"unit must be 'row' or 'person', got {unit!r}.")
    if adjacency not in (None, "add-remove", "replace-one"):
        raise LedgerError(f"adjacency must be 'add-remove' or 'replace-one', got {adjacency!r}.")
    if eps is None and delta is None:
        return None
    if eps is None or delta is None:
        raise LedgerError("A ceiling needs both epsilon and delta.")
    if not (isinstance(eps, (int, float)) and 0 < eps < math.inf):
        raise LedgerError(f"The ceiling epsilon must be a positive finite number, got {eps!r}.")
    if not (isinstance(delta, (int, float)) and 0 < delta < 1):
        raise LedgerError(f"The ceiling delta must lie strictly between 0 and 1, got {delta!r}.")
    return Terms(float(eps), float(delta), adjacency or "add-remove", UNITS[unit or "row"])


def read_terms(text: str) -> Terms:
    record = json.loads(text)
    if record.get("format") not in (FORMAT, PERSON_FORMAT):
        raise LedgerError(
            f"The ledger has format {record.get('format')!r}; this dpsparse reads {FORMAT} and {PERSON_FORMAT}."
        )
    return Terms(record["epsilon"], record["delta"], record["adjacency"], record.get("unit", ROW))


def digest_of(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def now() -> str:
    """For people only: order and validity come from the chain, never from a clock."""
    return datetime.now(UTC).isoformat(timespec="seconds")

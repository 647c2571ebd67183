"""The arithmetic of an account book: terms, chain of entries, and what they add up to.

Nothing here touches a database. A book is extended row by row, since rows are only ever appended,
and every row is checked against the hash of the one before.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from dpsparse.exceptions import LedgerError
from dpsparse.privacy.conversion import epsilon
from dpsparse.privacy.events import (
    Event,
    Gaussian,
    NonPrivate,
    RenyiCurve,
    Repeated,
    Sequence,
    from_dict,
)
from dpsparse.privacy.plan import Plan
from dpsparse.privacy.rdp import leaves, spend

FORMAT = 1
# Rounding of the accountant: a plan calibrated to the whole ceiling must not fail by one ulp.
SLACK = 1e-9


@dataclass(frozen=True)
class Terms:
    """The ceiling of one data set; never changed after the account is opened."""

    epsilon: float
    delta: float
    adjacency: str


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


# Up to MANY kinds of events are composed exactly; more are folded into one curve on ORDERS, which
# costs at most 1e-3 of epsilon and keeps a reservation fast however long the book is.
MANY = 16
ORDERS = 1.0 + np.geomspace(1e-3, 1e6, 400)


@dataclass
class Spending:
    """What one partition has spent: a Gaussian part, a few other events, a folded curve."""

    mu2: float = 0.0  # Gaussians compose exactly: mu^2 = sum (sensitivity/scale)^2
    counts: dict[Event, int] = field(default_factory=dict)
    folded: np.ndarray | None = None

    def add(self, event: Event) -> None:
        for leaf, count in leaves(event).items():
            if isinstance(leaf, Gaussian):
                self.mu2 += count * (leaf.sensitivity / leaf.scale) ** 2
            else:
                self.counts[leaf] = self.counts.get(leaf, 0) + count
        if len(self.counts) > MANY:
            curve = spend(self.counts, ORDERS)
            self.folded = curve if self.folded is None else self.folded + curve
            self.counts = {}

    @property
    def events(self) -> list[Event]:
        out: list[Event] = [Repeated(event, count) for event, count in self.counts.items()]
        if self.mu2 > 0.0:
            out.append(Gaussian(1.0 / math.sqrt(self.mu2)))
        if self.folded is not None:
            out.append(RenyiCurve(tuple(ORDERS), tuple(self.folded)))
        return out

    def copy(self) -> Spending:
        return replace(self, counts=dict(self.counts))


@dataclass
class Book:
    """Entries read so far and what they add up to, per partition (None: all rows)."""

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
        entry: dict[str, Any] = json.loads(body)
        if entry["kind"] == "reserve":
            if entry["proven"]:
                part = self.spent.setdefault(entry["partition"], Spending())
                part.add(from_dict(entry["event"]))
            else:
                self.unproven += 1
        self.n_entries, self.head = seq, digest
        return entry

    def copy(self) -> Book:
        return replace(self, spent={part: s.copy() for part, s in self.spent.items()})

    def total(self, terms: Terms, partition: str | None, extra: Event | None = None) -> float:
        """Composed epsilon of the proven entries as seen by `partition` (None: the worst one)."""
        common = self.spent.get(None, Spending()).events
        if extra is not None:
            common.append(extra)
        parts = [p for p in self.spent if p is not None] if partition is None else [partition]
        return max(
            epsilon(Sequence((*common, *own)), terms.delta)
            for own in ([self.spent[p].events for p in parts if p in self.spent] or [[]])
        )


def is_proven(plan: Plan) -> bool:
    return plan.guarantee.proven and NonPrivate() not in leaves(plan.event)


def check_terms(eps: Any, delta: Any, adjacency: str | None) -> Terms | None:
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
    return Terms(float(eps), float(delta), adjacency or "add-remove")


def read_terms(text: str) -> Terms:
    record = json.loads(text)
    if record.get("format") != FORMAT:
        raise LedgerError(
            f"The ledger has format {record.get('format')!r}; this dpsparse reads {FORMAT}."
        )
    return Terms(record["epsilon"], record["delta"], record["adjacency"])


def digest_of(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def now() -> str:
    """For people only: order and validity come from the chain, never from a clock."""
    return datetime.now(UTC).isoformat(timespec="seconds")

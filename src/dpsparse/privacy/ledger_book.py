"""The arithmetic of an account book: terms, chain of entries, and what they add up to.

Nothing here touches a database. A book is extended row by row, since rows are only ever appended,
and every row is checked against the hash of the one before.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from dpsparse.exceptions import LedgerError
from dpsparse.privacy.conversion import epsilon
from dpsparse.privacy.events import Event, NonPrivate, Repeated, Sequence, from_dict
from dpsparse.privacy.plan import Plan

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


@dataclass
class Book:
    """Entries read so far and what they add up to, per partition (None: all rows)."""

    genesis: str
    head: str
    n_entries: int = 0
    spent: dict[str | None, Counter[Event]] = field(default_factory=dict)
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
                part = self.spent.setdefault(entry["partition"], Counter())
                part.update(leaves(from_dict(entry["event"])))
            else:
                self.unproven += 1
        self.n_entries, self.head = seq, digest
        return entry

    def copy(self) -> Book:
        spent = {part: Counter(events) for part, events in self.spent.items()}
        return replace(self, spent=spent)

    def total(self, terms: Terms, partition: str | None, extra: Event | None = None) -> float:
        """Composed epsilon of the proven entries as seen by `partition` (None: the worst one)."""
        common = self.spent.get(None, Counter())
        parts = [p for p in self.spent if p is not None] if partition is None else [partition]
        worst = 0.0
        for part in parts or [""]:
            events = common + self.spent.get(part, Counter())
            if extra is not None:
                events.update(leaves(extra))
            worst = max(worst, _compose(events, terms.delta))
        return worst


def _compose(events: Counter[Event], delta: float) -> float:
    """Epsilon of all events one after the other; equal events are one `Repeated`."""
    if not events:
        return 0.0
    return epsilon(Sequence(tuple(Repeated(e, count) for e, count in events.items())), delta)


def leaves(event: Event, count: int = 1) -> Counter[Event]:
    """How often each basic mechanism runs; composition of Renyi curves forgets the order."""
    if isinstance(event, Repeated):
        return leaves(event.event, count * event.count)
    if not isinstance(event, Sequence):
        return Counter({event: count})
    out: Counter[Event] = Counter()
    for part in event.events:
        out.update(leaves(part, count))
    return out


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

"""The arithmetic of an account book: terms, chain of entries, and what they add up to.

Nothing here touches a database. A book is extended row by row, since rows are only ever appended,
and every row is checked against the hash of the one before.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from dpsparse._checks import (
    ADJACENCIES,
    DELTAS,
    EPSILONS,
    check_choice,
    is_real,
    safe_repr,
    show_number,
)
from dpsparse._json import canonical, parsed
from dpsparse.accounting.events import Event, Gaussian, from_dict, leaves
from dpsparse.accounting.guarantee import PERSON, ROW
from dpsparse.exceptions import DPSparseError, LedgerError
from dpsparse.ledger.filter import Price, Spending, Terms, price_of


@dataclass(frozen=True)
class Entry:
    """One reservation as the book holds it; `total` is what was spent including it."""

    seq: int
    time: str
    method: str
    partition: str | None
    epsilon: float
    delta: float
    total: float
    committed: bool
    event: Event
    hash: str


@dataclass
class Book:
    """Entries read so far and what they add up to, per partition (None: all rows)."""

    terms: Terms
    genesis: str
    head: str
    n_entries: int = 0
    spent: dict[str | None, Spending] = field(default_factory=dict)

    def read(self, seq: int, body: str, digest: str) -> dict[str, Any]:
        """Check one row against the chain and add it."""
        if seq != self.n_entries + 1 or digest != digest_of(self.head, body):
            raise LedgerError(
                f"Entry {seq} of the ledger does not follow from the one before: a row was edited, "
                "removed or inserted. Restore the file from a backup."
            )
        try:
            entry: dict[str, Any] = parsed(body)
            if entry["kind"] == "reserve":
                part = part_of(entry)
                if part is not None and self.terms.adjacency != "add-remove":
                    raise ValueError("partitions need add-remove")
                event = from_dict(entry["event"])
                one = Spending.of(self.terms, event, read_price(entry, event))
                self.spent[part] = self.spent.get(part, Spending(self.terms)).plus(one)
        except (KeyError, TypeError, ValueError, DPSparseError) as error:
            raise LedgerError(
                f"Entry {seq} of the ledger is not one that this dpsparse can read; it may be of a "
                "newer version. Nothing was spent."
            ) from error
        self.n_entries, self.head = seq, digest
        return entry

    def copy(self) -> Book:
        return replace(self, spent=dict(self.spent))

    def spent_epsilon(self, partition: str | None, extra: Event | None = None) -> float:
        """Epsilon of the entries, and of `extra` after them, as `partition` sees them (None: the worst one)."""
        return max(view.filtered() for view in self._views(partition, extra))

    def allows(self, partition: str | None, extra: Event | None = None) -> bool:
        """Whether the filter lets the entries, and `extra` after them, pass."""
        # Rounding of the accountant: a plan calibrated to the whole ceiling must not fail by one ulp.
        return self.spent_epsilon(partition, extra) <= self.terms.epsilon * (1 + 1e-9)

    def has_room(self, partition: str | None, extra: Event) -> bool:
        """Whether the reserve also pays for all that may go wrong in `extra`."""
        return all(view.has_room for view in self._views(partition, extra))

    def _views(self, partition: str | None, extra: Event | None = None) -> list[Spending]:
        """What a row can see: the entries on all rows and those on its part.

        For all rows (None) that is one view for each part with entries, and always the view of a
        row in no such part: it will be that of every part whose first entry is still to come.
        """
        nothing = Spending(self.terms)
        common = self.spent.get(None, nothing)
        if extra is not None:
            common = common.plus(Spending.of(self.terms, extra, price_of(extra, self.terms)))
        names = [p for p in self.spent if p is not None] if partition is None else [partition]
        views = [common.plus(self.spent.get(name, nothing)) for name in names]
        return [*views, common] if partition is None else views


def read_price(entry: dict[str, Any], event: Event) -> Price:
    """The price in an entry; it cannot be below what its Gaussian noise takes under every accountant."""
    price = Price.from_dict(entry["price"])
    noise = sum(
        count * (leaf.sensitivity / leaf.scale) ** 2
        for leaf, count in leaves(event).items()
        if isinstance(leaf, Gaussian)
    )
    if price.square < noise * (1.0 - 1e-9):
        raise ValueError("the price is below that of the noise")
    return price


def part_of(entry: dict[str, Any]) -> str | None:
    """The part of an entry, which has the one spelling that names have in a book."""
    part: str | None = entry["partition"]
    if part is not None and check_name("partition", part) != part:
        raise LedgerError("The name of a part is not written as this dpsparse writes it.")
    return part


def check_name(argument: str, name: Any) -> str:
    """The spelling that stands for a name in a book: names that differ in case are one.

    Other alphabets are refused, because they have letters and digits that look like those of ASCII.
    """
    if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_.:-]{1,100}", name, re.ASCII):
        return name.lower()
    shown = ascii(name) if isinstance(name, str) and len(name) <= 100 else safe_repr(name)
    raise LedgerError(
        f"{argument} must be a name of 1 to 100 plain letters (a to z), digits and - _ . : such as "
        f"{argument}='2024', got {shown}. Names that only look alike would have a budget each."
    )


UNITS = {"row": ROW, "person": PERSON}


def check_terms(eps: Any, delta: Any, adjacency: str | None, unit: str | None) -> Terms | None:
    unit = "row" if unit is None else unit
    adjacency = "add-remove" if adjacency is None else adjacency
    check_choice("unit", unit, tuple(UNITS))
    check_choice("adjacency", adjacency, ADJACENCIES)
    if eps is None and delta is None:
        return None
    if eps is None or delta is None:
        raise LedgerError("A ceiling needs both epsilon and delta.")
    for name, value, (low, high), remedy in (
        ("epsilon", eps, EPSILONS, "3"),
        ("delta", delta, DELTAS, "1e-6"),
    ):
        if not (is_real(value) and low <= value <= high):
            raise LedgerError(
                f"The ceiling {name} must be a number between {show_number(low)} and {show_number(high)}, "
                f"got {safe_repr(value)}; try {remedy}."
            )
    return Terms(float(eps), float(delta), adjacency, UNITS[unit])


def write_terms(dataset: str, terms: Terms, nonce: str) -> str:
    """The record that opens an account: ceiling and rules, the first link of the chain."""
    record = {
        "format": 1,
        "dataset": dataset,
        "epsilon": terms.epsilon,
        "delta": terms.delta,
        "adjacency": terms.adjacency,
        "unit": terms.unit,
        "reserve": terms.reserve,
        "opened": now(),
        "nonce": nonce,
    }
    return canonical(record)


def read_terms(text: str) -> Terms:
    """The terms of an account; anything odd in them is an error."""
    try:
        record = parsed(text)
        if record["format"] != 1:
            raise LedgerError(
                f"The ledger has format {safe_repr(record['format'])}; this dpsparse reads 1."
            )
        names = ("epsilon", "delta", "adjacency", "unit", "reserve")
        terms = Terms(**{name: record[name] for name in names})
        known = 0.0 < terms.reserve < 0.5
    except (KeyError, TypeError, ValueError):
        raise LedgerError(
            "The terms of the ledger are damaged; restore it from a backup."
        ) from None
    if not known:
        raise LedgerError("The ledger has rules that this dpsparse does not know.")
    return terms


def digest_of(previous: str, text: str) -> str:
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()


def now() -> str:
    """For people only: order and validity come from the chain, never from a clock."""
    return datetime.now(UTC).isoformat(timespec="seconds")

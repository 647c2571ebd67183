"""The chain of entries of one data set: read, extended and verified, never rewritten.

An object remembers the last entry it has seen. A book that no longer holds it was rolled back to
an older copy, and is refused.
"""

from __future__ import annotations

import math
from typing import Any, Self

from dpsparse._json import canonical
from dpsparse.accounting.events import from_dict
from dpsparse.exceptions import LedgerError, LedgerRolledBackError
from dpsparse.ledger.book import Book, Entry, digest_of, part_of, read_terms
from dpsparse.ledger.filter import Price, Terms, price_of
from dpsparse.ledger.store import MemoryStore, Session, Store, open_store

READ_ACCOUNT = "SELECT terms, n_entries, head FROM dpsparse_account WHERE dataset = ?"
_READ_ENTRIES = (
    "SELECT seq, body, hash FROM dpsparse_entry WHERE dataset = ? AND seq > ? ORDER BY seq"
)


class Chain:
    """The entries of one account in a store, as `Ledger` uses them."""

    dataset: str
    terms: Terms
    _store: Store
    _book: Book | None = None
    _seen: tuple[int, str] | None = None  # the last entry this object knows of

    def _account(self, session: Session) -> tuple[str, int, str]:
        """Terms, number of entries and head, of a book that still holds what we have seen."""
        seen = self._seen  # read first: another thread may append after our snapshot
        rows = session.execute(READ_ACCOUNT, (self.dataset,))
        if not rows:
            raise LedgerRolledBackError(
                f"The account of data set {self.dataset!r} is gone from the ledger."
            )
        terms, n_entries, head = rows[0]
        if seen is not None:
            seq, digest = seen
            if seq > 0:
                self._require(session, seq, digest)
            elif digest != digest_of("", terms):
                raise LedgerRolledBackError(
                    f"The account of data set {self.dataset!r} was replaced by another one."
                )
        return terms, int(n_entries), head

    def _require(self, session: Session, seq: int, digest: str) -> None:
        """Raise unless entry `seq` is in the book with this hash."""
        read_hash = "SELECT hash FROM dpsparse_entry WHERE dataset = ? AND seq = ?"
        if session.execute(read_hash, (self.dataset, seq)) != [(digest,)]:
            raise LedgerRolledBackError(
                f"The ledger no longer holds entry {seq}, which this process has seen: the book "
                "was rewritten, or rolled back to an older copy that has forgotten what was spent "
                "since. Restore the newest copy. This call spent nothing."
            )

    def _remember(self, seq: int, digest: str) -> None:
        if self._seen is None or seq >= self._seen[0]:
            self._seen = seq, digest

    def _read(self, session: Session) -> Book:
        """The book up to date; only rows newer than the last look are read."""
        terms, n_entries, head = self._account(session)
        genesis = digest_of("", terms)
        book = self._book
        if book is None or book.genesis != genesis:
            book = Book(self.terms, genesis, genesis)
        book = book.copy()  # a broken chain or another thread must not see a half-read book
        for seq, body, digest in session.execute(_READ_ENTRIES, (self.dataset, book.n_entries)):
            book.read(int(seq), body, digest)
        self._check_end(book, n_entries, head)
        self._book = book
        return book

    def _check_end(self, book: Book, n_entries: int, head: str) -> None:
        if (book.n_entries, book.head) != (n_entries, head):
            raise LedgerError(
                "The ledger is not complete: its last entries do not match its head. Rows were "
                "removed or the file is damaged; restore it from a backup."
            )
        self._remember(n_entries, head)

    def _append(self, session: Session, book: Book, body: dict[str, Any]) -> tuple[int, str]:
        text = canonical(body)
        seq, digest = book.n_entries + 1, digest_of(book.head, text)
        book.copy().read(seq, text, digest)  # nothing is written that could not be read again
        session.change(
            "INSERT INTO dpsparse_entry (dataset, seq, body, hash) VALUES (?, ?, ?, ?)",
            (self.dataset, seq, text, digest),
        )
        moved = session.change(
            "UPDATE dpsparse_account SET n_entries = ?, head = ? WHERE dataset = ? AND n_entries = ? AND head = ?",
            (seq, digest, self.dataset, book.n_entries, book.head),
        )
        if moved != 1:
            raise LedgerError("The ledger changed under its own lock. Nothing was spent.")
        return seq, digest

    def history(self) -> list[Entry]:
        """Every reservation in order, with whether its fit was completed."""
        bodies = [(seq, body, digest) for seq, body, digest, _ in self._replay()[1]]
        done = {body["of"] for _, body, _ in bodies if body["kind"] == "commit"}
        return [
            Entry(
                **{name: body[name] for name in ("time", "method", "partition", "delta", "proven")},
                seq=seq,
                epsilon=float(body["epsilon"]),
                total=float(body["total"]),
                committed=seq in done,
                event=from_dict(body["event"]),
                hash=digest,
            )
            for seq, body, digest in bodies
            if body["kind"] == "reserve"
        ]

    @property
    def head(self) -> str:
        """Hash of the newest entry; noted elsewhere, it lets `verify` find a rewritten book."""
        with self._store.transaction(write=False) as session:
            return self._read(session).head

    def verify(self, anchor: str | None = None) -> int:
        """Re-read the whole chain and re-add every total; returns the number of entries.

        Raises LedgerError at the first edited, removed or inserted row, if the entries add up to
        more than the ceiling, or to another total than was recorded with them. Whoever can write
        the file can rewrite all of it consistently; `anchor`, a `head` or receipt hash noted
        elsewhere, finds that too.
        """
        book, entries = self._replay(totals=True)
        if anchor is not None and anchor not in {
            book.genesis,
            *(digest for _, _, digest, _ in entries),
        }:
            raise LedgerRolledBackError(
                "The noted hash is not in the chain: the book was rewritten or rolled back to an "
                "older copy since it was noted."
            )
        if not book.allows(None):
            raise LedgerError("The entries add up to more than the ceiling.")
        for seq, body, _, total in entries:
            if body["kind"] == "reserve":
                _check_total(seq, body, total)
        return len(entries)

    def _replay(self, totals: bool = False) -> tuple[Book, list[tuple[int, Any, str, float]]]:
        """The whole chain, checked: every entry with its hash and, on demand, its total."""
        with self._store.transaction(write=False) as session:
            terms, n_entries, head = self._account(session)
            rows = session.execute(_READ_ENTRIES, (self.dataset, 0))
        if read_terms(terms) != self.terms:
            raise LedgerError("The terms of the account were changed after it was opened.")
        genesis = digest_of("", terms)
        book, entries = Book(self.terms, genesis, genesis), []
        for seq, text, digest in rows:
            body, total = book.read(int(seq), text, digest), math.nan
            if totals:
                _check_price(int(seq), body, book.terms)
            if totals and body["kind"] == "reserve":
                total = math.inf if book.unproven else book.spent_epsilon(part_of(body))
            entries.append((int(seq), body, digest, total))
        self._check_end(book, n_entries, head)
        return book, entries

    # --------------------------------------- one account, however it is copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __copy__(self) -> Self:
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_store"], state["_book"] = self._store.address, None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        address = state["_store"]
        self.__dict__.update(state)
        self._store = MemoryStore(sealed=True) if address is None else open_store(address)


def version() -> str:
    from dpsparse import __version__

    return __version__


def _check_price(seq: int, body: dict[str, Any], terms: Terms) -> None:
    """Compare the price in an entry of this version with what it must be."""
    if body["kind"] != "reserve" or not body.get("price") or body.get("version") != version():
        return
    if not Price.from_dict(body["price"]).covers(price_of(from_dict(body["event"]), terms)):
        raise LedgerError(
            f"Entry {seq} holds a price below that of its fit: it was edited, or written by a faulty program."
        )


def _check_total(seq: int, body: dict[str, Any], total: float) -> None:
    """Compare what an entry says was spent with what its predecessors and it add up to.

    A total of another version may be higher, as accountants get better, but never lower.
    """
    try:
        recorded = float(body["total"])
    except (KeyError, TypeError, ValueError):
        recorded = math.nan
    low, high = total * (1.0 - 1e-6), total * (1.0 + 1e-6)  # apart from rounding
    if body.get("version") != version():
        high = math.inf
    if not low <= recorded <= high:
        raise LedgerError(
            f"Entry {seq} says that {recorded:.4g} was spent in all; the entries up to it add up "
            f"to {total:.4g}. The total was edited, or written by a faulty program."
        )

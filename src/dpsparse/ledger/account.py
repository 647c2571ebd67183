"""A privacy budget that cannot be lost: reserve before noise, commit after.

The book of one data set is an append-only chain of JSON entries, each carrying the hash of the
one before. A reservation is two statements in one transaction that holds the write lock:

    INSERT INTO entry (dataset, seq = n + 1, body, hash)
    UPDATE account SET n = n + 1, head = hash  WHERE n = (what was read) AND head = (what was read)

Between the lock and the first statement all earlier reservations are composed, and a privacy
filter that is valid for prices chosen after looking at results is asked whether the new one still
fits. What is reserved is spent, whether or not a commit follows. Disjoint partitions compose in
parallel: each sees the entries on all rows and its own. Proofs: docs/proofs/ledger.md.

An object remembers the last entry it has seen. A book that no longer holds it was rolled back to an older copy, and is
refused. book.py adds the chain up, filter.py is the filter, store.py the data base.
"""

from __future__ import annotations

import math
import os
import secrets
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from dpsparse._checks import rounded_up, show_number
from dpsparse._json import canonical
from dpsparse.accounting.budget import calibrate
from dpsparse.accounting.conversion import epsilon as price
from dpsparse.accounting.events import Event, Gaussian, Pure, from_dict, to_dict
from dpsparse.accounting.guarantee import ROW, Plan, guarantee_html
from dpsparse.exceptions import BudgetError, BudgetWarning, LedgerError, LedgerRolledBackError
from dpsparse.ledger.book import (
    UNITS,
    Book,
    Entry,
    check_name,
    check_terms,
    digest_of,
    now,
    part_of,
    read_terms,
    write_terms,
)
from dpsparse.ledger.filter import Price, Terms, price_of
from dpsparse.ledger.policy import policies
from dpsparse.ledger.store import MemoryStore, Session, open_store

_READ_ACCOUNT = "SELECT terms, n_entries, head FROM dpsparse_account WHERE dataset = ?"
_READ_ENTRIES = (
    "SELECT seq, body, hash FROM dpsparse_entry WHERE dataset = ? AND seq > ? ORDER BY seq"
)


class Ledger:
    """A persistent privacy budget for one data set.

    ``Ledger(path, epsilon=1.0, delta=1e-6)`` opens an account, or checks that the existing one
    has these terms; ``Ledger(path)`` uses an existing one.

    Parameters
    ----------
    path : path, PostgreSQL URL or None, default=None
        An SQLite file on a local disk, ``"postgresql://..."``, or None for an account that lives
        in this process only.
    epsilon, delta : float, optional
        The ceiling for everything ever released about the data set; give both or neither.
    adjacency : {"add-remove", "replace-one"}, optional
        Which data sets count as neighbours; "add-remove" for a new account. Plans must match.
    unit : {"row", "person"}, optional
        What the account protects; "row" for a new account. Plans must match: removing one row of a person is an
        exchange of persons, so neither unit implies the other.
    dataset : str, default="default"
        Several data sets may share one file; each has its own ceiling. Names are plain letters, digits and ``-_.:``;
        case does not count.
    partition : str or None, default=None
        The fits of this ledger use only the rows of a partition of that name. Partitions must be
        disjoint for good, by a rule that looks at one row (or one person) alone. They need "add-remove".

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier, Ledger
    >>> ledger = Ledger(epsilon=1.0, delta=1e-6)  # without a path: in memory, for playing
    >>> plan = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=0.4).plan(n_features=1_000)
    >>> ledger.would_allow(plan)
    True
    >>> model = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=0.4, ledger=ledger)
    >>> _ = model.fit([[0.1, 0.2], [0.3, 0.1]] * 50, [0, 1] * 50)  # reserved before noise is drawn
    >>> len(ledger.history())
    1
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        adjacency: str | None = None,
        unit: str | None = None,
        dataset: str = "default",
        partition: str | None = None,
    ) -> None:
        wanted = check_terms(epsilon, delta, adjacency, unit)
        if path in (None, ":memory:") and wanted is None:
            raise LedgerError(
                "An in-memory ledger needs a ceiling: Ledger(epsilon=..., delta=...)."
            )
        self.dataset = check_name("dataset", dataset)
        self._partition = None if partition is None else check_name("partition", partition)
        self._store = open_store(path)
        self._book: Book | None = None
        self._seen: tuple[int, str] | None = None  # the last entry this object knows of
        self.terms = self._open(wanted, adjacency, unit)
        if self.partition is not None and self.terms.adjacency != "add-remove":
            raise LedgerError(
                "Partitions compose in parallel under add-remove only: replacing one row can take "
                "it out of one partition and into another. Open the ledger without partition."
            )

    @property
    def partition(self) -> str | None:
        """The part of the rows that is used, in the spelling of the book; None is all of them.

        It cannot be set: a part named by another thread between judgement and entry would get an entry that nobody
        judged.
        """
        return self._partition

    def _open(self, wanted: Terms | None, adjacency: str | None, unit: str | None) -> Terms:
        create = wanted is not None
        with self._store.transaction(write=create, create=create) as session:
            rows = session.execute(_READ_ACCOUNT, (self.dataset,))
            if not rows:
                if wanted is None:
                    known = session.execute("SELECT dataset FROM dpsparse_account")
                    raise LedgerError(
                        f"The ledger {self._store.location} has no account for data set "
                        f"{self.dataset!r} (it has: {', '.join(r[0] for r in known) or 'none'}); "
                        "open one by stating epsilon and delta, on the command line with `dpsparse budget create`."
                    )
                for policy in policies(self._store.address):
                    if refusal := policy.refuses_account(self.dataset, wanted):
                        raise BudgetError(refusal)
                text = write_terms(self.dataset, wanted, secrets.token_hex(8))
                session.change(
                    "INSERT INTO dpsparse_account (dataset, terms, n_entries, head) VALUES (?, ?, 0, ?)",
                    (self.dataset, text, digest_of("", text)),
                )
                self._seen = 0, digest_of("", text)
                return read_terms(text)
            terms = read_terms(rows[0][0])
            self._seen = int(rows[0][1]), rows[0][2]
        if wanted is not None and (wanted.epsilon, wanted.delta) != (terms.epsilon, terms.delta):
            raise LedgerError(
                f"Data set {self.dataset!r} already has an account with epsilon {terms.epsilon:g}, "
                f"delta {show_number(terms.delta)}; a ceiling is never changed. Ledger(path) without one opens it, "
                "and `dpsparse budget show` shows it."
            )
        other_name = (
            "An account is never changed; open another one with a name of its own, dataset='...', "
            "on the command line --dataset. Its costs are not added to those of this one."
        )
        if adjacency is not None and adjacency != terms.adjacency:
            raise LedgerError(
                f"Data set {self.dataset!r} has an account for {terms.adjacency} neighbours, "
                f"not {adjacency}. {other_name}"
            )
        if unit is not None and UNITS[unit] != terms.unit:
            raise LedgerError(
                f"Data set {self.dataset!r} has an account that protects {terms.unit}, not "
                f"{UNITS[unit]}. {other_name}"
            )
        return terms

    @staticmethod
    def datasets(path: str | os.PathLike[str]) -> list[str]:
        """Names of the data sets that have an account in the file or database."""
        with open_store(path).transaction(write=False) as session:
            rows = session.execute("SELECT dataset FROM dpsparse_account ORDER BY dataset")
        return [str(row[0]) for row in rows]

    def reserve(self, plan: Plan) -> Receipt:
        """Spend the price of `plan` now, or raise BudgetError and spend nothing."""
        self._check_neighbours(plan)
        if self._book is None:
            self._look()  # a long book is read the first time without holding the lock
        with self._store.transaction(write=True) as session:
            book = self._read(session)
            total, refusal = self._judge(book, plan)
            if refusal:
                raise BudgetError(refusal)
            body = {
                "kind": "reserve",
                "partition": self.partition,
                "method": plan.method,
                "event": to_dict(plan.event),
                "price": price_of(plan.event, book.terms).to_dict(),
                "epsilon": plan.epsilon,
                "delta": plan.delta,
                "total": total,
                "version": version(),
                "time": now(),
                "nonce": secrets.token_hex(8),  # no two entries are alike, nor are their hashes
            }
            seq, digest = self._append(session, book, body)
        self._remember(seq, digest)
        return Receipt(self, seq, digest)

    def would_allow(self, plan: Plan) -> bool:
        """Whether `reserve` would succeed now; nothing is spent or written."""
        self._check_neighbours(plan)
        return self._judge(self._look(), plan)[1] is None

    def _judge(self, book: Book, plan: Plan) -> tuple[float, str | None]:
        """The total after `plan` and why it is refused, if it is."""
        partition = self.partition
        for policy in policies(self._store.address):
            if refusal := policy.refusal(plan, self.dataset, self.terms):
                return math.inf, refusal
        if not plan.guarantee.proven:
            return math.inf, (
                f"{plan.method} carries no proven guarantee (seeded, published or noiseless), so its price is "
                "epsilon = infinity. Nothing was spent. Fit with random_state=None and an estimator of dpsparse "
                "itself, or without a ledger."
            )
        total = book.spent_epsilon(partition, plan.event)
        if book.allows(partition, plan.event):
            return total, None
        asked = price(plan.event, self.terms.delta)
        if asked <= self.terms.epsilon and not book.has_room(partition, plan.event):
            return total, self._no_room_for_delta(plan, asked)
        before, left = book.spent_epsilon(partition), self._room(book)
        return total, (
            f"{plan.method} asks epsilon {asked:.4g} at delta {show_number(self.terms.delta)}, {before:.4g} "
            f"of {self.terms.epsilon:.4g} is spent and together they cost {total:.4g}; there "
            f"is room for one further fit of up to about {left:.4g}. Nothing was spent."
        )

    def _no_room_for_delta(self, plan: Plan, asked: float) -> str:
        taken = price_of(plan.event, self.terms)
        if taken.leak > taken.tail + taken.slack:  # which shrinks with the delta of the fit
            small = min(self.terms.delta, plan.guarantee.delta / 16)
            asked_delta = show_number(plan.guarantee.delta)
            advice = (
                f"Fit with a smaller delta than {asked_delta}, such as {show_number(small, 1)}."
            )
        else:
            advice = "Such fits need an account with a larger delta or a lower ceiling."
        return (
            f"{plan.method} asks epsilon {asked:.4g}, for which there is room, but not for its delta: an account "
            "keeps a small part of its own for rare failures (a released name that only one row has, the tail of a "
            f"sampler), and that part is used up. {advice} Nothing was spent."
        )

    def _commit(self, seq: int, digest: str) -> None:
        with self._store.transaction(write=True) as session:
            self._require(session, seq, digest)
            book = self._read(session)
            self._append(session, book, {"kind": "commit", "of": seq, "time": now()})

    def _check_neighbours(self, plan: Plan) -> None:
        if plan.adjacency != self.terms.adjacency:
            raise BudgetError(
                f"The plan is for {plan.adjacency} neighbours and the ledger for "
                f"{self.terms.adjacency}; neither implies the other at the same price. Nothing was "
                f"spent. Fit with adjacency={self.terms.adjacency!r}."
            )
        if plan.unit != self.terms.unit:
            remedy = (
                "Say whose row each one is, with groups=ids, on the command line with --person COLUMN."
                if plan.unit == ROW
                else "Open an account for persons and name it in the fit: Ledger(path, dataset='persons', epsilon=..., "
                "delta=..., unit='person'); on the command line `dpsparse budget create LEDGER --dataset persons "
                "--unit person --epsilon ... --delta ...`, then --dataset persons."
            )
            raise BudgetError(
                f"The plan protects {plan.unit}, and the ledger {self.terms.unit}; neither implies the other. "
                f"Nothing was spent. {remedy}"
            )

    def spent(self) -> float:
        """Epsilon of all fits at the ledger's delta.

        This is the number that decides about further fits: it holds when prices are chosen after looking at results
        (docs/proofs/ledger.md).

        Of a ledger with a `partition`, what was spent on its rows; otherwise the worst partition.
        """
        return self._look().spent_epsilon(self.partition)

    def remaining(self) -> float:
        """The largest epsilon, at the ledger's delta, that one further fit may have.

        Computed for a fit with Gaussian noise, and for a pure one. Fits compose sublinearly, so this is more than
        ceiling minus spent; several small fits are not one large one. `would_allow` is exact.
        """
        return self._room(self._look())

    def _room(self, book: Book) -> float:
        terms = self.terms

        def largest(make: Callable[[float], Event]) -> float:
            low, high = 0.0, calibrate(make, terms.epsilon, terms.delta)
            if book.allows(self.partition, make(high)):
                return terms.epsilon
            for _ in range(30):
                middle = (low + high) / 2
                fits = book.allows(self.partition, make(middle))
                low, high = (middle, high) if fits else (low, middle)
            return price(make(low), terms.delta) if low > 0.0 else 0.0

        return max(largest(lambda mu: Gaussian(1 / mu)), largest(Pure))

    def history(self) -> list[Entry]:
        """Every reservation in order, with whether its fit was completed."""
        bodies = [(seq, body, digest) for seq, body, digest, _ in self._replay()[1]]
        done = {body["of"] for _, body, _ in bodies if body["kind"] == "commit"}
        return [
            Entry(
                **{name: body[name] for name in ("time", "method", "partition", "delta")},
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
        return self._look().head

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
        genesis = digest_of("", terms)
        book, entries = Book(self.terms, genesis, genesis), []
        for seq, text, digest in rows:
            body, total = book.read(int(seq), text, digest), math.nan
            if totals:
                _check_price(int(seq), body, book.terms)
            if totals and body["kind"] == "reserve":
                total = book.spent_epsilon(part_of(body))
            entries.append((int(seq), body, digest, total))
        self._check_end(book, n_entries, head)
        return book, entries

    def __repr__(self) -> str:
        part = "" if self.partition is None else f", partition={self.partition!r}"
        unit = ", unit='person'" if self.terms.unit != ROW else ""
        return (
            f"Ledger({self._store.location!r}, dataset={self.dataset!r}{part}, "
            f"epsilon={self.terms.epsilon:g}, delta={show_number(self.terms.delta)}, {self.terms.adjacency}{unit})"
        )

    def _repr_html_(self) -> str:
        """What is spent and left, the terms, the last fits. Amber: nearly used up."""
        spent, entries, terms = self.spent(), self.history(), self.terms
        part = "" if self.partition is None else f", part {self.partition}"
        facts: list[tuple[str, Any]] = [
            ("one further fit of up to", f"epsilon {self.remaining():.3g}"),
            ("delta", terms.delta),
            ("protects", f"{terms.unit} ({terms.adjacency})"),
            ("fits", len(entries)),
        ]
        for entry in entries[-10:]:
            text = f"{entry.method}: epsilon {rounded_up(entry.epsilon)}, total {rounded_up(entry.total)}"
            text += "" if entry.committed else "; not completed, counts as spent"
            facts.append((f"{entry.seq}, {entry.time[:16].replace('T', ' ')}", text))
        headline = (
            f"Budget {self.dataset}{part}: epsilon {rounded_up(spent)} of {terms.epsilon:g} spent"
        )
        nearly_used_up = spent > 0.9 * terms.epsilon
        return guarantee_html(headline, True, facts, caution=nearly_used_up)

    # ---- the chain of entries: read, extended and verified, never rewritten ----------------------------

    def _account(self, session: Session) -> tuple[str, int, str]:
        """Terms, number of entries and head, of a book that still holds what we have seen."""
        seen = self._seen  # read first: another thread may append after our snapshot
        rows = session.execute(_READ_ACCOUNT, (self.dataset,))
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
        if read_terms(terms) != self.terms:
            raise LedgerError("The terms of the account were changed after it was opened.")
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

    def _look(self) -> Book:
        with self._store.transaction(write=False) as session:
            return self._read(session)

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

    # ---- one account, however it is copied -------------------------------------------------------------

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


@dataclass(frozen=True)
class Receipt:
    """A paid reservation. `commit` marks that the fit was completed; either way it is spent."""

    ledger: Ledger
    seq: int
    hash: str

    def commit(self) -> None:
        """Mark the fit as completed. A book that cannot be written now only warns: it is paid."""
        try:
            self.ledger._commit(self.seq, self.hash)
        except LedgerRolledBackError:  # the payment itself is gone: the fit may not be released
            raise
        except LedgerError as error:
            warnings.warn(
                f"The fit is paid and valid, but its completion could not be noted: {error}",
                BudgetWarning,
                stacklevel=2,
            )


def version() -> str:
    from dpsparse import __version__

    return __version__


def _check_price(seq: int, body: dict[str, Any], terms: Terms) -> None:
    """Compare the price in an entry of this version with what it must be."""
    if body["kind"] != "reserve" or body.get("version") != version():
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

"""Where an account book lies: an SQLite file, memory, or PostgreSQL.

A store runs one transaction at a time. `transaction()` takes the write lock before the first
read (`BEGIN IMMEDIATE`; in PostgreSQL a table lock), so that what a reservation reads is still
true when it writes. Connections live for one transaction: a forked or pickled ledger has nothing
to inherit, and a killed process leaves nothing but a rolled-back journal.

SQLite runs with a rollback journal, whose locks are locks of the file itself. (The locks of WAL
mode live in a second file found by name: two names of one book would not see each other.) The
journal, too, is found by name, so a book with a second name is refused.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from dpsparse.exceptions import LedgerError

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS dpsparse_account ("
    " dataset TEXT PRIMARY KEY, terms TEXT NOT NULL,"
    " n_entries BIGINT NOT NULL, head TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS dpsparse_entry ("
    " dataset TEXT NOT NULL, seq BIGINT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL,"
    " PRIMARY KEY (dataset, seq))",
)
# SQLite only: an accidental edit in a database browser is refused; a deliberate one is found by
# Ledger.verify. In PostgreSQL the same is done with GRANT (docs/budget.md).
APPEND_ONLY = tuple(
    f"CREATE TRIGGER IF NOT EXISTS dpsparse_no_{verb.lower()} BEFORE {verb} ON dpsparse_entry "
    "BEGIN SELECT RAISE(ABORT, 'ledger entries are append-only'); END"
    for verb in ("UPDATE", "DELETE")
)
LOCK_SECONDS = 60.0  # that a transaction waits for its lock
ANSWER_SECONDS = 120.0  # that a transaction on a server may take, the wait for its lock included


class Session:
    """One open transaction on a DB-API connection; psycopg spells the placeholder %s."""

    def __init__(self, connection: Any, placeholder: str = "?") -> None:
        self._connection, self._placeholder = connection, placeholder

    def _run(self, statement: str, values: tuple[Any, ...]) -> Any:
        return self._connection.execute(statement.replace("?", self._placeholder), values)

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """The rows of an answer."""
        cursor = self._run(statement, values)
        return list(cursor.fetchall()) if cursor.description else []

    def change(self, statement: str, values: tuple[Any, ...]) -> int:
        """The number of rows changed."""
        return int(self._run(statement, values).rowcount)


class Store(Protocol):
    """What the ways to keep a book share: a name for people, an address to reopen, a transaction."""

    location: str
    address: str | None

    @contextmanager
    def transaction(self, *, write: bool, create: bool = False) -> Iterator[Session]: ...


def open_store(path: str | os.PathLike[str] | None) -> Store:
    """The store for a path, a PostgreSQL URL, or memory (None or ":memory:")."""
    if path is None or path == ":memory:":
        return MemoryStore()
    text = os.fspath(path)
    if text.startswith(("postgresql://", "postgres://")):
        return PostgresStore(text)
    if "://" in text or "password=" in text:  # which may not be shown
        raise LedgerError("A ledger is the path of a file or a postgresql:// URL.")
    return SQLiteStore(text)


@contextmanager
def _sqlite_transaction(connection: sqlite3.Connection, write: bool) -> Iterator[Session]:
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield Session(connection)
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class SQLiteStore:
    """A file with a rollback journal; every commit is on disk before it returns."""

    def __init__(self, path: str) -> None:
        self.location = str(Path(path).absolute())
        self.address: str | None = self.location

    @contextmanager
    def transaction(self, *, write: bool, create: bool = False) -> Iterator[Session]:
        if not create and not Path(self.location).is_file():
            raise LedgerError(
                f"There is no ledger at {self.location}; create one by stating its ceiling: "
                "Ledger(path, epsilon=..., delta=...), on the command line "
                "`dpsparse budget create PATH --epsilon 3 --delta 1e-6`."
            )
        try:
            before = self._file() if Path(self.location).exists() else None
            connection = self._connect(create)
            try:
                opened = before or self._file()
                with _sqlite_transaction(connection, write) as session:
                    yield session
                    if write and self._file() != opened:
                        raise LedgerError(
                            f"The ledger {self.location} was replaced by another file while it "
                            "was in use. Nothing was spent."
                        )
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise LedgerError(_explain(error, self.location)) from error

    def _file(self) -> tuple[int, int]:
        """Which file the name stands for, once it is sure to be its only name."""
        try:
            file = os.stat(self.location)
        except OSError as error:
            raise LedgerError(
                f"The ledger {self.location} cannot be used: {error.strerror}. Nothing was spent."
            ) from error
        if file.st_nlink > 1:
            raise LedgerError(
                f"The ledger {self.location} has {file.st_nlink} names (hard links). After a crash "
                "SQLite finds the unfinished transaction by name, so a book must have one name "
                "only. Remove the other links; nothing was spent."
            )
        if _is_mount_point(self.location):
            raise LedgerError(
                f"The ledger {self.location} is mounted as a single file, so its journal would lie "
                "in another folder than for the other users of the file. Mount the folder that "
                "holds it; nothing was spent."
            )
        return file.st_dev, file.st_ino

    def _connect(self, create: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{Path(self.location).as_uri()}?mode={'rwc' if create else 'rw'}",
            uri=True,
            timeout=LOCK_SECONDS,
            isolation_level=None,
        )
        try:
            # EXTRA also syncs the folder: the journal's deletion is the commit and must last.
            connection.execute("PRAGMA synchronous=EXTRA")
            if create:
                for statement in (*SCHEMA, *APPEND_ONLY):
                    connection.execute(statement)
            if connection.execute("PRAGMA journal_mode").fetchone() == ("wal",):
                raise LedgerError(
                    f"The ledger {self.location} is in WAL mode, whose locks are found by name and not by file. "
                    "Close its other users and run sqlite3 FILE 'PRAGMA journal_mode=DELETE'. Nothing was spent."
                )
        except BaseException:
            connection.close()
            raise
        return connection


MOUNTS = Path("/proc/self/mountinfo")


def _is_mount_point(location: str) -> bool:
    """Whether a file is mounted by itself; known on Linux only."""
    try:
        mounts = MOUNTS.read_bytes().splitlines()
    except OSError:
        return False
    escaped = (line.split()[4].decode("unicode_escape") for line in mounts)  # a space is \\040
    return os.fsencode(os.path.realpath(location)) in {p.encode("latin-1") for p in escaped}


class MemoryStore:
    """A book that ends with this process. A copy in another process or from a pickle is sealed: it would be a second
    account."""

    location: str = ":memory:"
    address: str | None = None

    def __init__(self, sealed: bool = False) -> None:
        self._lock, self._pid = threading.RLock(), None if sealed else os.getpid()
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        for statement in (*SCHEMA, *APPEND_ONLY):
            self._connection.execute(statement)

    def __del__(self) -> None:
        self._connection.close()

    @contextmanager
    def transaction(self, *, write: bool, create: bool = False) -> Iterator[Session]:
        if os.getpid() != self._pid:
            raise LedgerError(
                "This in-memory ledger is sealed: it is a copy in another process or from a pickle, and would be a "
                "second account. To spend from several processes use a file: Ledger('budget.db', ...)."
            )
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            raise LedgerError(
                f"Another thread held the lock of this in-memory ledger for {LOCK_SECONDS:.0f} s; see what it waits "
                "for. Nothing was spent."
            )
        try:
            with _sqlite_transaction(self._connection, write) as session:
                yield session
        finally:
            self._lock.release()


class PostgresStore:
    """A PostgreSQL database; needs the extra `dpsparse[postgres]` (psycopg)."""

    def __init__(self, url: str) -> None:
        self.address: str | None = url
        self.location = _public_part(url)

    @contextmanager
    def transaction(self, *, write: bool, create: bool = False) -> Iterator[Session]:
        try:
            import psycopg
        except ImportError as error:
            raise LedgerError(
                "A PostgreSQL ledger needs psycopg: pip install 'dpsparse[postgres]'."
            ) from error
        gave_up = threading.Event()
        try:
            connection = psycopg.connect(str(self.address), connect_timeout=int(LOCK_SECONDS))
            with _hang_up(connection, gave_up), connection:
                session = Session(connection, "%s")
                if not write:  # account and entries must be of one moment
                    session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                session.execute(f"SET LOCAL lock_timeout = {int(1000 * LOCK_SECONDS)}")
                session.execute("SET LOCAL synchronous_commit = on")
                if create:  # CREATE TABLE IF NOT EXISTS races with itself: one creator at a time
                    session.execute("SELECT pg_advisory_xact_lock(7305796571)")
                    for statement in SCHEMA:
                        session.execute(statement)
                if write:
                    session.execute("LOCK TABLE dpsparse_account IN EXCLUSIVE MODE")
                yield session
        except psycopg.errors.UndefinedTable as error:
            raise LedgerError(
                f"There is no ledger at {self.location}; create one by stating its ceiling: "
                "Ledger(url, epsilon=..., delta=...), on the command line "
                "`dpsparse budget create URL --epsilon 3 --delta 1e-6`."
            ) from error
        except psycopg.Error as error:
            if self.location == HIDDEN:  # libpq quotes the part of a URL that it cannot read
                raise LedgerError(
                    "The URL of the ledger cannot be read; special characters in a password are "
                    "written %40 for @, %2F for /. Nothing was spent."
                ) from None
            reason = str(error).strip().splitlines()[:1]
            if gave_up.is_set():
                reason = [f"no answer within {ANSWER_SECONDS:.0f} s; see whether the server runs"]
            raise LedgerError(
                f"The ledger at {self.location} cannot be used ({' '.join(reason)}). Nothing was "
                "released; a reservation that did reach the server counts as spent."
            ) from error


@contextmanager
def _hang_up(connection: Any, gave_up: threading.Event) -> Iterator[None]:
    """End a connection whose server does not answer: psycopg itself would wait for ever."""

    def hang_up() -> None:
        gave_up.set()
        # The connection may have ended by itself in the meantime.
        with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(ANSWER_SECONDS, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


HIDDEN = "postgresql://(not shown)"


def _public_part(url: str) -> str:
    """Host, port and database of a URL: what may be shown, as user and query hold secrets."""
    try:
        from psycopg.conninfo import conninfo_to_dict

        known = conninfo_to_dict(url)
    except Exception:  # no driver, or a URL that libpq cannot read: show nothing of it
        return HIDDEN
    host, port, name = (str(known.get(key) or "") for key in ("host", "port", "dbname"))
    if "@" in host + port + name or (port and not port.replace(",", "").isdigit()):
        return HIDDEN  # a password with a bare @ or / was taken apart at the wrong place
    return f"postgresql://{host}{':' if port else ''}{port}/{name}"


def _explain(error: sqlite3.Error, location: str) -> str:
    text = str(error)
    if "no such table" in text:
        why = "it is not a dpsparse ledger"
    elif "readonly" in text or "unable to open" in text:
        why = "it cannot be opened for writing; check the permissions of the file and its folder"
    elif "full" in text or "disk I/O" in text:
        why = "the disk is full or failing"
    elif "locked" in text:
        why = f"another process held its lock for {LOCK_SECONDS:.0f} s"
    elif "not a database" in text or "malformed" in text:
        why = "the file is damaged or not a ledger; restore it from a backup"
    else:
        why = text
    return f"The ledger {location} cannot be used: {why}. Nothing was spent."

"""The book under attack: many processes, kill -9, a full disk, a read-only file, a wrong clock."""

import os
import pickle
import resource
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import ledger_worker as worker
import pytest
from ledger_worker import ENVIRONMENT, WORKER, check_race, check_readers, start

from dpsparse.exceptions import LedgerError, LedgerRolledBackError
from dpsparse.ledger import Ledger
from dpsparse.ledger.store import SQLiteStore


def test_three_processes_get_exactly_what_there_is(tmp_path):
    check_race(tmp_path / "budget.db", processes=3, each=12, room=30)


def test_readers_see_a_whole_book(tmp_path):
    check_readers(tmp_path / "budget.db", each=20)


@pytest.mark.slow
def test_eight_processes_get_exactly_what_there_is(tmp_path):
    check_race(tmp_path / "budget.db", processes=8, each=200, room=500)


def check_crashes(path, rounds, seed):
    Ledger(path, epsilon=worker.ceiling(20 * rounds), delta=worker.DELTA)
    child = start("crash", path, rounds, seed)
    out, err = child.communicate(timeout=900)
    assert child.returncode == 0, err
    assert int(out.split()[1]) > 0  # some spenders did get something before they were killed
    Ledger(path).reserve(worker.PLAN).commit()


@pytest.mark.heavy
def test_kill_at_random_moments(tmp_path):
    check_crashes(tmp_path / "budget.db", rounds=25, seed=0)


@pytest.mark.slow
def test_kill_at_two_hundred_random_moments(tmp_path):
    check_crashes(tmp_path / "budget.db", rounds=200, seed=1)


def test_a_forked_child_spends_from_the_same_account(tmp_path):
    code = f"""
import os, sys
sys.path.insert(0, {str(WORKER.parent)!r})
from ledger_worker import PLAN, DELTA, ceiling
from dpsparse.ledger import Ledger
from dpsparse.exceptions import BudgetError, LedgerError
ledger = Ledger({str(tmp_path / "b.db")!r}, epsilon=ceiling(2), delta=DELTA)
memory = Ledger(epsilon=1.0, delta=DELTA)
ledger.reserve(PLAN)
if os.fork() == 0:
    ledger.reserve(PLAN)
    try:
        memory.reserve(PLAN)
    except LedgerError as error:
        assert "sealed" in str(error)
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
try:
    ledger.reserve(PLAN)
except BudgetError:
    print("refused", len(ledger.history()), len(memory.history()))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, timeout=300
    )
    assert done.stdout.split() == ["refused", "2", "0"], done.stderr


def test_disk_full_spends_nothing(tmp_path):
    """No file may grow: SQLite's write fails, the error is ours, and the book is as before."""
    path = tmp_path / "budget.db"
    ledger = Ledger(path, epsilon=1.0, delta=worker.DELTA)
    ledger.reserve(worker.PLAN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises(LedgerError, match=r"Nothing was spent") as error:
            ledger.reserve(worker.PLAN)
        with pytest.raises(LedgerError, match="cannot be used"):
            Ledger(tmp_path / "new.db", epsilon=1.0, delta=worker.DELTA)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "disk" in str(error.value)
    assert ledger.verify() == 1
    ledger.reserve(worker.PLAN)
    assert len(Ledger(path).history()) == 2


def test_a_read_only_file_spends_nothing(tmp_path):
    """As another user where we are root, since root may write everything."""
    folder = tmp_path / "book"
    folder.mkdir()
    path = folder / "budget.db"
    ledger = Ledger(path, epsilon=1.0, delta=worker.DELTA)
    ledger.reserve(worker.PLAN)
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        if os.geteuid() == 0:
            _open_way(folder)
            os.seteuid(65534)
        try:
            if not os.access(path, os.R_OK):
                pytest.skip("the temporary folder is not readable by another user")
            with pytest.raises(LedgerError, match=r"permissions.*Nothing was spent"):
                Ledger(path).reserve(worker.PLAN)
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
    finally:
        folder.chmod(0o755)
        path.chmod(0o644)
    assert ledger.verify() == 1
    ledger.reserve(worker.PLAN)


def _open_way(folder):
    for parent in [folder, *folder.parents]:
        if parent.stat().st_uid == os.getuid() and parent != Path(parent.anchor):
            parent.chmod(parent.stat().st_mode | 0o011)


def test_a_clock_going_backwards_is_harmless(tmp_path, monkeypatch):
    path = tmp_path / "budget.db"
    ledger = Ledger(path, epsilon=worker.ceiling(3), delta=worker.DELTA)
    for year in (2030, 1970, 2001):
        monkeypatch.setattr("dpsparse.ledger.account.now", lambda year=year: f"{year}-01-01")
        ledger.reserve(worker.PLAN)
    assert [entry.time[:4] for entry in ledger.history()] == ["2030", "1970", "2001"]
    assert ledger.verify() == 3
    assert not Ledger(path).would_allow(worker.PLAN)


def test_a_restored_backup_is_found_by_its_anchor(tmp_path):
    path, backup = tmp_path / "budget.db", tmp_path / "backup.db"
    ledger = Ledger(path, epsilon=1.0, delta=worker.DELTA)
    ledger.reserve(worker.PLAN)
    shutil.copy(path, backup)
    noted = ledger.reserve(worker.PLAN).hash
    shutil.copy(backup, path)
    fresh = Ledger(path)  # has not seen the lost entry: only the anchor tells
    assert fresh.verify() == 1
    with pytest.raises(LedgerRolledBackError, match="rolled back"):
        fresh.verify(anchor=noted)


def test_rollback_under_a_live_object_raises(tmp_path):
    """Whoever has seen an entry never goes on with a book that has forgotten it."""
    path, backup = tmp_path / "budget.db", tmp_path / "backup.db"
    ledger = Ledger(path, epsilon=1.0, delta=worker.DELTA)
    ledger.reserve(worker.PLAN)
    shutil.copy(path, backup)
    receipt = ledger.reserve(worker.PLAN)
    copied = pickle.loads(pickle.dumps(ledger))
    shutil.copy(backup, path)
    looks = (ledger.spent, ledger.remaining, ledger.history, ledger.verify, copied.spent)
    for look in (*looks, lambda: ledger.reserve(worker.PLAN), receipt.commit):
        with pytest.raises(LedgerRolledBackError, match="entry 2"):
            look()
    Ledger(path).reserve(worker.PLAN)  # the same fit in the same second is another entry 2
    for look in (*looks, receipt.commit):
        with pytest.raises(LedgerRolledBackError, match="entry 2"):
            look()
    path.unlink()
    Ledger(path, epsilon=1.0, delta=worker.DELTA)
    with pytest.raises(LedgerRolledBackError):
        ledger.spent()


def test_a_new_account_in_place_of_an_empty_one_raises(tmp_path):
    path = tmp_path / "budget.db"
    ledger = Ledger(path, epsilon=1.0, delta=worker.DELTA)
    path.unlink()
    Ledger(path, epsilon=1.0, delta=worker.DELTA)
    with pytest.raises(LedgerRolledBackError, match="another one"):
        ledger.reserve(worker.PLAN)


# ---- one file, one name -------------------------------------------------------------------------


def test_two_names_of_one_file_are_refused(tmp_path):
    path, other = tmp_path / "budget.db", tmp_path / "other.db"
    ledger = Ledger(path, epsilon=1.0, delta=worker.DELTA)
    os.link(path, other)
    for action in (ledger.spent, lambda: ledger.reserve(worker.PLAN), lambda: Ledger(other)):
        with pytest.raises(LedgerError, match="2 names"):
            action()
    other.unlink()
    ledger.reserve(worker.PLAN)


def test_the_lock_follows_the_file_and_not_its_name(tmp_path):
    """Another process that comes by another name finds the book locked."""
    path, other = tmp_path / "budget.db", tmp_path / "other.db"
    Ledger(path, epsilon=1.0, delta=worker.DELTA).reserve(worker.PLAN)
    code = (
        f"import sqlite3; sqlite3.connect({str(other)!r}, timeout=0.1).execute('BEGIN IMMEDIATE')"
    )
    with SQLiteStore(str(path)).transaction(write=True):
        os.link(path, other)
        intruder = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
        )
        other.unlink()
    assert "database is locked" in intruder.stderr


def test_a_single_mounted_file_is_refused(tmp_path, monkeypatch):
    folder = tmp_path / "two words"
    folder.mkdir()
    path = folder / "budget.db"
    ledger = Ledger(path, epsilon=1.0, delta=worker.DELTA)
    ledger.reserve(worker.PLAN)
    escaped = str(path.resolve()).replace(" ", "\\040")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"29 1 8:1 / / rw - ext4 /dev/x rw\n36 29 8:1 /x {escaped} rw - ext4 /dev/x rw\n"
    )
    monkeypatch.setattr("dpsparse.ledger.store.MOUNTS", mounts)
    with pytest.raises(LedgerError, match="Mount the folder"):
        ledger.reserve(worker.PLAN)
    mounts.unlink()  # not Linux: unknown
    ledger.reserve(worker.PLAN)


def test_a_file_replaced_while_in_use_takes_no_reservation(tmp_path):
    """The reservation would be written to a file that no longer has a name."""
    path, backup = tmp_path / "budget.db", tmp_path / "backup.db"
    ledger = Ledger(path, epsilon=1.0, delta=worker.DELTA)
    shutil.copy(path, backup)

    def reserve_while_it_is_replaced():
        with ledger._store.transaction(write=True) as session:
            book = ledger._read(session)
            ledger._append(session, book, {"kind": "commit", "of": 0, "time": ""})
            os.replace(backup, path)

    with pytest.raises(LedgerError, match="replaced by another file"):
        reserve_while_it_is_replaced()
    assert Ledger(path).verify() == 0


def test_a_book_in_wal_mode_is_refused(tmp_path):
    """Two names of such a book would not see each other's locks."""
    path = tmp_path / "budget.db"
    Ledger(path, epsilon=1.0, delta=worker.DELTA)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    with pytest.raises(LedgerError, match="journal_mode=DELETE"):
        Ledger(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    Ledger(path).reserve(worker.PLAN)


def test_a_foreign_database_keeps_its_journal(tmp_path):
    path = tmp_path / "foreign.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(LedgerError, match="WAL mode"):
        Ledger(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()

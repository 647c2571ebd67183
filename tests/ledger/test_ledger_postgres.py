"""The same book in a real PostgreSQL, started by this test in a folder of its own."""

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import traceback

import pytest
from ledger_worker import DELTA, PLAN, ceiling, check_race, check_readers

from dpsparse.exceptions import BudgetError, LedgerError
from dpsparse.ledger import Ledger
from dpsparse.ledger import store as ledger_store
from dpsparse.ledger.store import PostgresStore

pytestmark = pytest.mark.postgres
psycopg = pytest.importorskip("psycopg", reason="psycopg (extra [postgres]) is not installed")


def _binary(name):
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}")) or [shutil.which(name)]
    return found[-1]


def _as_server(command, **options):
    """The server refuses to run as root; there we use Debian's postgres user."""
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return subprocess.run(command, check=True, capture_output=True, cwd="/", timeout=300, **options)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    if _binary("initdb") is None or _binary("pg_ctl") is None:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    if os.geteuid() == 0 and "postgres" not in {entry.pw_name for entry in pwd.getpwall()}:
        pytest.skip("running as root without a postgres user to start the server")
    folder = tmp_path_factory.mktemp("pg")
    data = folder / "data"
    data.mkdir()
    if os.geteuid() == 0:
        for parent in [folder, *folder.parents][:-1]:
            parent.chmod(parent.stat().st_mode | 0o011)
        for place in (folder, data):
            shutil.chown(place, "postgres", "postgres")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    _as_server([_binary("initdb"), "-D", data, "-A", "trust", "-U", "dpsparse", "--no-sync"])
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    log = folder / "log"
    _as_server([_binary("pg_ctl"), "-D", data, "-o", options, "-l", log, "-w", "start"])
    yield f"postgresql://dpsparse:secret@127.0.0.1:{port}/postgres"
    _as_server([_binary("pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop"])


def test_reserve_refuse_and_verify(url):
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger(url)
    ledger = Ledger(url, epsilon=ceiling(2), delta=DELTA, dataset="small")
    ledger.reserve(PLAN).commit()
    Ledger(url, dataset="small").reserve(PLAN)
    with pytest.raises(BudgetError, match="Nothing was spent"):
        ledger.reserve(PLAN)
    assert [entry.committed for entry in ledger.history()] == [True, False]
    assert ledger.verify() == 3
    assert "secret" not in repr(ledger)


def test_processes_get_exactly_what_there_is(url):
    check_race(url, processes=3, each=12, room=30)


def test_readers_see_a_whole_book(url):
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS dpsparse_account, dpsparse_entry")
    check_readers(url, each=20)


@pytest.mark.slow
def test_eight_processes_get_exactly_what_there_is(url):
    with psycopg.connect(url) as connection:
        connection.execute("DROP TABLE IF EXISTS dpsparse_account, dpsparse_entry")
    check_race(url, processes=8, each=200, room=500)


def test_a_server_that_does_not_answer_is_given_up(url, monkeypatch):
    """psycopg itself waits without a limit for a backend that stands still."""
    ledger = Ledger(url, epsilon=ceiling(2), delta=DELTA, dataset="stopped")
    monkeypatch.setattr(ledger_store, "ANSWER_SECONDS", 1.0)
    stopped = []

    def wait_for_a_stopped_backend():
        with PostgresStore(url).transaction(write=True) as session:
            stopped.extend(session.execute("SELECT pg_backend_pid()")[0])
            os.kill(stopped[0], signal.SIGSTOP)
            session.execute("SELECT 1")

    try:
        with pytest.raises(LedgerError, match="no answer within 1 s; see whether the server runs"):
            wait_for_a_stopped_backend()
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
    monkeypatch.undo()
    ledger.reserve(PLAN).commit()


def test_an_edited_row_is_found(url):
    ledger = Ledger(url, epsilon=1.0, delta=DELTA, dataset="edited")
    for _ in range(3):
        ledger.reserve(PLAN)
    with psycopg.connect(url) as connection:
        edited = connection.execute(
            "UPDATE dpsparse_entry SET body = replace(body, '0.', '0.0') "
            "WHERE dataset = 'edited' AND seq = 2 AND body LIKE '%0.%'"
        )
        assert edited.rowcount == 1
    with pytest.raises(LedgerError, match="Entry 2"):
        ledger.verify()


def test_a_server_that_is_away_is_a_clear_error():
    with pytest.raises(LedgerError, match="cannot be used") as error:
        Ledger("postgresql://someone:secret@127.0.0.1:1/none", epsilon=1.0, delta=1e-6)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://someone:secret@127.0.0.1:1/none",
        "postgresql://127.0.0.1:1/none?user=someone&password=secret",
        "postgresql://127.0.0.1:1/none?password=s@secret&sslpassword=secret",
        "postgresql://someone:top/secret@127.0.0.1:1/none",
        "postgresql://someone:top?secret@127.0.0.1:1/none",
        "postgresql://someone:top%secret@127.0.0.1:1/none",
        "postgresql://127.0.0.1:1/none?secret",
        "postgresql://127.0.0.1:1/none?pass=secret",
        "host=127.0.0.1 port=1 password=secret",
    ],
)
def test_a_password_in_a_url_is_never_shown(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError) as error:
        Ledger(url, epsilon=1.0, delta=1e-6)
    shown = "".join(traceback.format_exception(error.value, limit=0))
    assert "secret" not in shown
    assert not list(tmp_path.iterdir())


def test_host_and_database_are_shown():
    assert PostgresStore("postgresql://me:pw@db.example:5433/claims?sslmode=require").location == (
        "postgresql://db.example:5433/claims"
    )

"""Partitions: what a row can see decides, for every row, whatever the analyst looks at first."""

import json
import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsparse.accounting import (
    Exponential,
    Gaussian,
    Phase,
    Plan,
    Pure,
    Repeated,
    RoundedGaussian,
    Sequence,
    epsilon,
)
from dpsparse.exceptions import LedgerError
from dpsparse.ledger import Ledger

DELTA = 1e-6


def plan(*events):
    price = epsilon(Sequence(events), DELTA)
    phases = tuple(Phase(f"step {i}", event) for i, event in enumerate(events))
    return Plan("test", phases, price, DELTA, "add-remove")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


EVENTS = [
    Gaussian(8.0),
    Gaussian(14.0),
    RoundedGaussian(9.0, 1.0, 10**5),
    Exponential(0.05),
    Pure(0.2),
    Gaussian(6.2),
    Sequence(()),
]
PLANS = [plan(event) for event in EVENTS]
PARTS = [None, "p", "q"]
entries = st.lists(
    st.tuples(st.sampled_from(PARTS), st.sampled_from(PLANS)), min_size=2, max_size=8
)


@given(wanted=entries)
@settings(max_examples=25, derandomize=True, deadline=None)
def test_a_partitioned_account_is_one_account_for_each_kind_of_row(wanted):
    """Admitted exactly if the account of every row that sees the entry admits it.

    The rows: of p, of q, and of a part ("later") that has no entry yet. Each has an account of
    its own without partitions, which replays what that row can see.
    """
    rows = {part: Ledger(epsilon=1.0, delta=DELTA) for part in ("p", "q", "later")}
    with tempfile.TemporaryDirectory() as folder:
        book = Path(folder, "budget.db")
        Ledger(book, epsilon=1.0, delta=DELTA)
        shared = {part: Ledger(book, partition=part) for part in PARTS}
        for part, price in wanted:
            seen_by = [row for name, row in rows.items() if part in (None, name)]
            allowed = all(row.would_allow(price) for row in seen_by)
            assert shared[part].would_allow(price) is allowed
            if allowed:
                for ledger in (shared[part], *seen_by):
                    ledger.reserve(price)
        shared[None].verify()


# ---- names --------------------------------------------------------------------------------------


ODD_NAMES = [
    2024, ("a", 1), " 2024", "2024 ", "", "  ", "a\nb", "a\u200bb", "e\u0301", b"2024", True, "a b", "a/b", "<a>",
    "\uff12\uff10\uff12\uff14", "\u0430", "2024\u0661", "caf\u00e9", "\x1b[31mred", "a" * 101, "\u212a",
]  # fmt: skip


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_plain_ascii(path, name):
    """Full-width digits and Cyrillic letters took a full budget each for one part of the rows."""
    Ledger(path, epsilon=1.0, delta=DELTA)
    with pytest.raises(LedgerError, match="partition must be") as refusal:
        Ledger(path, partition=name)
    assert "\x1b" not in str(refusal.value)
    Ledger(path).reserve(plan(Pure(0.1)))  # the book is as good as before
    for terms in ({}, {"epsilon": 1.0, "delta": DELTA}):
        with pytest.raises(LedgerError, match="dataset must be"):
            Ledger(path, dataset=name, **terms)


def test_names_are_compared_without_their_case(path):
    first = Ledger(path, epsilon=1.0, delta=DELTA, dataset="Claims", partition="Year:2024-q1_a.b")
    first.reserve(plan(Pure(0.9)))
    same = Ledger(path, dataset="cLAIMS", partition="YEAR:2024-Q1_A.B")
    assert not same.would_allow(plan(Pure(0.9)))
    assert Ledger(path, dataset="claims", partition="other").would_allow(plan(Pure(0.9)))
    with pytest.raises(LedgerError, match="never changed"):
        Ledger(path, epsilon=2.0, delta=DELTA, dataset="CLAIMS")
    assert Ledger.datasets(path) == ["claims"]
    assert [entry.partition for entry in same.history()] == ["year:2024-q1_a.b"]


def test_the_partition_of_a_ledger_cannot_be_set(path):
    """Named between judgement and entry, a part got a second entry of .9 under a ceiling of 1."""
    ledger = Ledger(path, epsilon=1.0, delta=DELTA, partition="p")
    ledger.reserve(plan(Pure(0.9)))
    for name in ("q", "p", None):
        with pytest.raises(AttributeError):
            ledger.partition = name
    assert ledger.partition == "p"
    assert not ledger.would_allow(plan(Pure(0.9)))


@pytest.mark.parametrize("name", [2024, "North", "\uff12", " a"])
def test_a_name_that_could_not_be_given_is_no_entry(path, name):
    ledger = Ledger(path, epsilon=1.0, delta=DELTA)
    ledger.reserve(plan(Pure(0.1)))
    with pytest.raises(LedgerError, match="Entry 2 of the ledger is not one"):
        forged(ledger, partition=name)


# ---- plans that cost nothing --------------------------------------------------------------------


def test_two_empty_plans_cost_nothing_and_decide_nothing(path):
    ledger = Ledger(path, epsilon=1.0, delta=DELTA)
    for _ in range(2):
        ledger.reserve(plan(Repeated(Gaussian(1.0), 0)))
    assert ledger.spent() == 0.0
    assert ledger.remaining() == 1.0
    ledger.reserve(plan(Pure(0.9)))  # alone: the empty ones did not fix the kind of account
    tiny = Ledger(epsilon=1.0, delta=DELTA)
    for event in (Gaussian(1e200), Exponential(1e-200)):  # whose mu^2 is 0 in float64
        tiny.reserve(plan(event))
    assert ledger.verify() == 3
    assert tiny.verify() == 2


def test_what_is_written_can_be_read(path):
    """An entry that the next reader could not understand is refused before it is written."""
    ledger = Ledger(path, epsilon=1.0, delta=DELTA)
    body = {"kind": "reserve", "partition": None, "event": {"type": "X"}}
    with ledger._store.transaction(write=True) as session:
        book = ledger._read(session)
        with pytest.raises(LedgerError, match="Entry 1 of the ledger is not one"):
            ledger._append(session, book, body)
    assert ledger.verify() == 0


# ---- totals -------------------------------------------------------------------------------------


def forged(ledger, **change):
    with ledger._store.transaction(write=True) as session:
        body = json.loads(session.execute("SELECT body FROM dpsparse_entry WHERE seq = 1")[0][0])
        ledger._append(session, ledger._read(session), body | change)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"total": 0.1}, True),
        ({"total": 0.9}, True),
        ({"total": "inf"}, True),
        ({"total": None}, True),
        ({"total": 0.1, "version": "0.0"}, True),  # never less than the events add up to
        ({"total": 0.9, "version": "0.0"}, False),  # an older accountant may have charged more
    ],
)
def test_verify_compares_totals(path, change, found):
    ledger = Ledger(path, epsilon=2.0, delta=DELTA)
    ledger.reserve(plan(Pure(0.3)))
    assert math.isclose(ledger.history()[0].total, 0.3, rel_tol=1e-5)
    forged(ledger, **change)
    if found:
        with pytest.raises(LedgerError, match="Entry 2 says"):
            Ledger(path).verify()
    else:
        assert Ledger(path).verify() == 2

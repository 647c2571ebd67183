"""One account, however it is copied; nothing spent on a refusal; an edited book is found."""

import copy
import math
import pickle
import re
import sqlite3
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from dpsparse import Domain, DPGradientClassifier, DPPipeline, DPTablePreparer
from dpsparse.accounting import (
    Exponential,
    Gaussian,
    NonPrivate,
    Phase,
    Plan,
    Pure,
    Repeated,
    Sequence,
    calibrate,
    epsilon,
)
from dpsparse.exceptions import (
    BudgetError,
    BudgetWarning,
    LedgerError,
    LedgerRolledBackError,
    ParameterError,
)
from dpsparse.ledger import Ledger
from dpsparse.ledger import store as ledger_store
from dpsparse.ledger.filter import price_of

DELTA = 1e-6
DOMAIN = Domain(row_norm=1.0, classes=[0, 1], n_samples=200)


def plan(*events, adjacency="add-remove", proven=True):
    eps = epsilon(Sequence(events), DELTA)
    phases = tuple(Phase(f"step {i}", event) for i, event in enumerate(events))
    return Plan("test", phases, eps, DELTA, adjacency, proven=proven)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def test_create_open_and_check(path):
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger(path)
    assert not path.exists()
    Ledger(path, epsilon=1.0, delta=DELTA).reserve(plan(Gaussian(22.0)))
    assert Ledger(path).terms.epsilon == 1.0
    assert len(Ledger(path, epsilon=1.0, delta=DELTA).history()) == 1
    with pytest.raises(LedgerError, match="never changed"):
        Ledger(path, epsilon=2.0, delta=DELTA)
    with pytest.raises(LedgerError, match="add-remove neighbours"):
        Ledger(path, adjacency="replace-one")
    with pytest.raises(LedgerError, match="default"):
        Ledger(path, dataset="other")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"epsilon": 1.0},
        {"delta": 1e-6},
        {"epsilon": 0.0, "delta": 1e-6},
        {"epsilon": math.inf, "delta": 1e-6},
        {"epsilon": math.nan, "delta": 1e-6},
        {"epsilon": "1", "delta": 1e-6},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "delta": 1.0},
    ],
)
def test_bad_terms_are_refused(arguments):
    with pytest.raises(LedgerError):
        Ledger(**arguments)


@pytest.mark.parametrize("choice", [{"adjacency": "neighbour"}, {"unit": "house"}, {"unit": ""}])
def test_bad_choices_are_refused(choice):
    with pytest.raises(ParameterError, match="must be one of"):
        Ledger(epsilon=1.0, delta=1e-6, **choice)


def test_composition_is_by_curve_and_not_by_adding_epsilons():
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    alone = epsilon(Gaussian(50.0), DELTA)
    for _ in range(25):
        ledger.reserve(plan(Gaussian(50.0)))
    # The reserve for rare failures is never lent.
    assert 1.0 <= ledger.spent() / epsilon(Gaussian(10.0), DELTA) <= 1.0005
    assert ledger.spent() < 0.25 * 25 * alone


LASSO = Repeated(Exponential(0.003), 1000)
MIXED = [Exponential(0.02), *[Gaussian(80.0)] * 2, *[Exponential(0.01)] * 20, Pure(0.05)]


@pytest.mark.parametrize(
    ("events", "dearer"),
    [
        ([LASSO] * 25, 1.0005),
        ([Gaussian(60.0)] * 25, 1.0005),
        ([Pure(0.02)] * 25, 1.34),  # single steps are far from their Gaussian
        ([LASSO, LASSO, Gaussian(20.0)], 1.0006),
        ([Gaussian(20.0), LASSO, LASSO], 1.0006),
        (MIXED, 1.781),
        (MIXED[::-1], 1.781),
    ],
)
def test_what_the_filter_costs_over_prices_fixed_in_advance(events, dearer):
    """Against the smallest proven epsilon of the whole run, whatever bound gives it."""
    natural = epsilon(Sequence(tuple(events)), DELTA)
    for ceiling, allowed in ((natural * dearer, True), (natural * (1 - 1e-6), False)):
        ledger = Ledger(epsilon=ceiling, delta=DELTA)
        refused = False
        for event in events:
            refused = refused or not ledger.would_allow(plan(event))
            if not refused:
                ledger.reserve(plan(event))
        assert refused is not allowed


def test_a_plan_calibrated_to_the_whole_ceiling_is_accepted_once():
    for adjacency in ("add-remove", "replace-one"):
        ledger = Ledger(epsilon=0.7, delta=DELTA, adjacency=adjacency)
        model = DPGradientClassifier(DOMAIN, epsilon=0.7, delta=DELTA, adjacency=adjacency)
        price = model.plan(30)
        assert ledger.would_allow(price)
        ledger.reserve(price)
        assert not ledger.would_allow(price)
        with pytest.raises(BudgetError, match="Nothing was spent"):
            ledger.reserve(price)
        assert len(ledger.history()) == 1
        assert ledger.remaining() == 0.0


def test_a_refusal_says_what_is_left_and_what_was_asked():
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    ledger.reserve(plan(Gaussian(8.0)))
    before = ledger.head
    with pytest.raises(BudgetError) as refusal:
        ledger.reserve(plan(Gaussian(4.5)))
    left = ledger.remaining()
    for number in (epsilon(Gaussian(4.5), DELTA), ledger.spent(), 1.0, left):
        assert f"{number:.4g}" in str(refusal.value)
    assert ledger.head == before
    assert left > 1.0 - ledger.spent()  # curves compose sublinearly


@pytest.mark.parametrize("first", [Gaussian(8.0), LASSO, Exponential(0.1), Pure(0.4), None])
def test_remaining_is_the_largest_further_fit(first):
    """A Gaussian fit, or a pure one after a large pure one."""
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    if first is not None:
        ledger.reserve(plan(first))
    left = ledger.remaining()

    def further(mu):
        return Pure(mu) if isinstance(first, Pure) else Gaussian(1 / mu)

    mu = calibrate(further, left, DELTA)
    assert ledger.would_allow(plan(further(mu * 0.9999)))
    assert not ledger.would_allow(plan(further(mu * 1.0001)))


def test_reserved_counts_as_spent_without_a_commit(path):
    ledger = Ledger(path, epsilon=1.0, delta=DELTA)
    first, second = ledger.reserve(plan(Pure(0.3))), ledger.reserve(plan(Pure(0.3)))
    second.commit()
    assert first.hash != second.hash
    assert [entry.committed for entry in ledger.history()] == [False, True]
    assert Ledger(path).spent() == ledger.spent() > 0.5


@pytest.mark.parametrize("ceiling", [1.0, 20.0, 27.7, 35.0, 100.0, 600.0, 1e4])
def test_a_large_ceiling_does_not_lock_itself(ceiling):
    """Fits with real samplers leave room for the next one, at any ceiling."""
    ledger = Ledger(epsilon=ceiling, delta=DELTA)
    model = DPGradientClassifier(DOMAIN, epsilon=0.1, delta=DELTA)
    for _ in range(3):
        ledger.reserve(model.plan(10**6))
    assert ledger.spent() < 0.2
    assert ledger.remaining() > 0.95 * ceiling
    step = DPGradientClassifier(DOMAIN, epsilon=0.6 * ceiling, delta=DELTA)
    ledger.reserve(step.plan(1000))
    assert ledger.remaining() > 0.3 * ceiling


def test_adjacency_must_match():
    ledger = Ledger(epsilon=1.0, delta=DELTA, adjacency="replace-one")
    with pytest.raises(BudgetError, match="replace-one"):
        ledger.reserve(plan(Pure(0.1)))
    ledger.reserve(plan(Pure(0.1), adjacency="replace-one"))
    with pytest.raises(BudgetError, match="add-remove"):
        Ledger(epsilon=1.0, delta=DELTA).reserve(plan(Pure(0.1), adjacency="replace-one"))


def test_partitions_compose_in_parallel(path):
    whole = Ledger(path, epsilon=1.0, delta=DELTA)
    north, south = Ledger(path, partition="north"), Ledger(path, partition="south")
    north.reserve(plan(Pure(0.6)))
    south.reserve(plan(Pure(0.6)))
    assert whole.spent() == north.spent() == south.spent() == epsilon(Pure(0.6), DELTA)
    whole.reserve(plan(Pure(0.3)))  # on all rows: adds to both
    assert north.spent() == pytest.approx(0.9)
    for ledger in (whole, north, south):
        with pytest.raises(BudgetError):
            ledger.reserve(plan(Pure(0.2)))
    west = Ledger(path, partition="west")
    assert west.spent() == epsilon(Pure(0.3), DELTA)
    west.reserve(plan(Pure(0.6)))
    whole.verify()


def test_partitions_need_add_remove(path):
    Ledger(path, epsilon=1.0, delta=DELTA, adjacency="replace-one")
    with pytest.raises(LedgerError, match="replacing one row"):
        Ledger(path, partition="north")
    ledger = Ledger(path)
    ledger._partition = "north"  # nor is an entry on a part written or read
    with pytest.raises(LedgerError, match="this dpsparse can read"):
        ledger.reserve(plan(Pure(0.1), adjacency="replace-one"))
    assert not Ledger(path).history()


def test_data_sets_have_accounts_of_their_own(path):
    a = Ledger(path, epsilon=1.0, delta=DELTA, dataset="a")
    b = Ledger(path, epsilon=0.5, delta=DELTA, dataset="b")
    a.reserve(plan(Pure(0.9)))
    assert b.spent() == 0.0
    with pytest.raises(BudgetError):
        b.reserve(plan(Pure(0.6)))


UNPROVEN = [
    plan(Pure(0.1), proven=False),
    plan(NonPrivate()),
    plan(Pure(0.1)).seeded(),
]


@pytest.mark.parametrize("price", UNPROVEN, ids=["published", "noiseless", "seeded"])
def test_unproven_fits_are_refused(price):
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    assert not ledger.would_allow(price)
    with pytest.raises(BudgetError, match="infinity"):
        ledger.reserve(price)
    assert ledger.history() == []
    assert ledger.spent() == 0.0


# ---- one account, however it is copied ----------------------------------------------------------


@pytest.mark.parametrize("where", ["file", "memory"])
def test_copies_are_the_same_account(where, path):
    ledger = Ledger(path if where == "file" else None, epsilon=1.0, delta=DELTA)
    model = DPGradientClassifier(DOMAIN, ledger=ledger)
    for other in (copy.copy(ledger), copy.deepcopy(ledger), clone(model).ledger):
        assert other is ledger
    assert copy.deepcopy(model).ledger is ledger


def test_an_unpickled_file_ledger_spends_from_the_same_account(path):
    ledger = Ledger(path, epsilon=1.0, delta=DELTA, partition="p")
    ledger.reserve(plan(Pure(0.9)))
    again = pickle.loads(pickle.dumps(ledger))
    assert repr(again) == repr(ledger)
    with pytest.raises(BudgetError):
        again.reserve(plan(Pure(0.2)))


def test_a_pickled_ledger_finds_its_file_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    packed = pickle.dumps(Ledger("budget.db", epsilon=1.0, delta=DELTA))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(packed).spent() == 0.0


def test_an_unpickled_memory_ledger_is_sealed():
    ledger = Ledger(epsilon=1.0, delta=DELTA)
    copied = pickle.loads(pickle.dumps(ledger))
    for action in (lambda: copied.reserve(plan(Pure(0.1))), copied.spent, copied.verify):
        with pytest.raises(LedgerError, match="sealed"):
            action()
    ledger.reserve(plan(Pure(0.1)))


def test_threads_share_one_account(path):
    for ledger in (
        Ledger(epsilon=1.0, delta=DELTA),
        Ledger(path, epsilon=1.0, delta=DELTA),
    ):
        granted = []

        def work(ledger=ledger, granted=granted):
            for _ in range(5):
                try:
                    granted.append(ledger.reserve(plan(Pure(0.09))).seq)
                except BudgetError:
                    return

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(granted) == [entry.seq for entry in ledger.history()]
        assert ledger.spent() <= 1.0
        with pytest.raises(BudgetError):
            ledger.reserve(plan(Pure(0.09)))
        ledger.verify()


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 20), density=0.3, rng=rng, format="csr")
    return X, rng.integers(0, 2, 200)


@pytest.mark.parametrize("where", ["file", "memory"])
def test_ten_fits_under_a_ceiling_of_one(problem, path, where):
    """Each fit costs the whole ceiling: the first passes, the other nine are refused."""
    X, y = problem
    ledger = Ledger(path if where == "file" else None, epsilon=1.0, delta=DELTA)
    model = DPGradientClassifier(DOMAIN, epsilon=1.0, delta=DELTA, n_iter=3, ledger=ledger)
    with pytest.raises(BudgetError, match=r"of 1 is spent"):
        cross_val_score(model, X, y, cv=10, error_score="raise")
    assert len(ledger.history()) == 1
    for _ in range(9):
        with pytest.raises(BudgetError):
            clone(model).fit(X, y)
    assert [entry.committed for entry in ledger.history()] == [True]
    ledger.verify()


@pytest.mark.heavy
def test_joblib_workers_spend_from_one_account(problem, path):
    X, y = problem
    ledger = Ledger(path, epsilon=1.0, delta=DELTA)
    model = DPGradientClassifier(DOMAIN, delta=DELTA, epsilon=0.6, n_iter=3, ledger=ledger)
    search = GridSearchCV(model, {"n_nonzero": [2, 5]}, cv=2, n_jobs=2, error_score="raise")
    with pytest.raises(BudgetError):
        search.fit(X, y)
    assert 1 <= len(ledger.history()) <= 2  # three fits would spend 1.08
    assert ledger.spent() <= 1.0


# ---- an edited book is found --------------------------------------------------------------------


def tampered(path, *statements):
    connection = sqlite3.connect(path, isolation_level=None)
    for verb in ("update", "delete"):
        connection.execute(f"DROP TRIGGER dpsparse_no_{verb}")
    for statement in statements:
        connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(
            statement
        )
    connection.close()


@pytest.fixture
def book(path):
    ledger = Ledger(path, epsilon=1.0, delta=DELTA)
    for _ in range(3):
        ledger.reserve(plan(Repeated(Pure(0.01), 2))).commit()
    assert ledger.verify() == 6
    return path


EDITS = {
    "smaller event": "UPDATE dpsparse_entry SET body = replace(body, '0.01', '0.001') WHERE seq = 3",
    "method": "UPDATE dpsparse_entry SET body = replace(body, 'test', 'best') WHERE seq = 1",
    "time": "UPDATE dpsparse_entry SET body = replace(body, '20', '19') WHERE seq = 1",
    "removed": "DELETE FROM dpsparse_entry WHERE seq = 3",
    "last removed": "DELETE FROM dpsparse_entry WHERE seq = 6",
    "all removed": "DELETE FROM dpsparse_entry",
    "swapped": "UPDATE dpsparse_entry SET seq = CASE seq WHEN 1 THEN 33 ELSE seq END",
    "ceiling": "UPDATE dpsparse_account SET terms = replace(terms, '1.0', '9.0')",
    "head": "UPDATE dpsparse_account SET head = 'x'",
    "count": "UPDATE dpsparse_account SET n_entries = 5",
    "account removed": "DELETE FROM dpsparse_account",
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_an_edited_row_is_found(book, edit):
    opened_before = Ledger(book)
    tampered(book, edit)
    with pytest.raises(LedgerError):
        opened_before.verify()
    with pytest.raises(LedgerError):
        Ledger(book).reserve(plan(Pure(0.01)))


def test_accidental_edits_are_refused_by_the_database(book):
    connection = sqlite3.connect(book)
    for statement in EDITS["smaller event"], EDITS["removed"]:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()


def test_a_consistent_rewrite_is_found_by_an_anchor(book):
    """Whoever owns the file can drop the tail and move the head; a noted hash proves it."""
    ledger = Ledger(book)
    noted = ledger.head
    connection = sqlite3.connect(book)
    [(old,)] = connection.execute("SELECT hash FROM dpsparse_entry WHERE seq = 4")
    connection.close()
    tampered(
        book,
        "DELETE FROM dpsparse_entry WHERE seq > 4",
        ("UPDATE dpsparse_account SET n_entries = 4, head = ?", (old,)),
    )
    assert Ledger(book).verify() == 4
    assert Ledger(book).verify(anchor=old) == 4
    with pytest.raises(LedgerRolledBackError, match="rewritten or rolled back"):
        Ledger(book).verify(anchor=noted)
    with pytest.raises(LedgerRolledBackError, match="entry 6"):
        ledger.verify()  # this object has seen what was dropped


def test_a_book_that_overspends_is_found(book):
    """Entries consistent with the chain but above the ceiling: written by another program."""
    ledger = Ledger(book)
    with ledger._store.transaction(write=True) as session:
        state = ledger._read(session)
        body = {"kind": "reserve", "partition": None}
        body["event"] = {"type": "Pure", "epsilon": 3.0}
        body["price"] = price_of(Pure(3.0), ledger.terms).to_dict()
        ledger._append(session, state, body)
    with pytest.raises(LedgerError, match="more than the ceiling"):
        Ledger(book).verify()


@pytest.mark.parametrize("content", [b"", b"not a database, only text", b"SQLite format 3\0" * 99])
def test_a_foreign_file_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger(path)
    assert path.read_bytes() == content


def test_another_database_is_refused_and_not_touched(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(LedgerError, match="not a dpsparse ledger"):
        Ledger(path)


def test_other_urls_are_refused():
    with pytest.raises(LedgerError, match="postgresql"):
        Ledger("mysql://host/db", epsilon=1.0, delta=DELTA)


def test_a_commit_that_cannot_be_noted_only_warns(path):
    receipt = Ledger(path, epsilon=1.0, delta=DELTA).reserve(plan(Pure(0.1)))
    path.unlink()
    with pytest.warns(BudgetWarning, match="paid and valid"):
        receipt.commit()


def test_the_notebook_view_tells_what_is_spent_and_left(tmp_path):
    ledger = Ledger(tmp_path / "book.db", epsilon=3.0, delta=1e-6, dataset="People")
    green = ledger._repr_html_()
    assert "epsilon 0 of 3 spent" in green
    assert "people" in green
    domain = Domain(classes=[0, 1])
    ledger.reserve(DPGradientClassifier(domain, epsilon=1.0).plan(5)).commit()
    ledger.reserve(DPGradientClassifier(domain, epsilon=2.0).plan(5))
    view = ledger._repr_html_()
    assert "DPGradientClassifier: epsilon 1" in view
    assert "not completed, counts as spent" in view
    assert ledger.history()[0].time[:10] in view


def test_a_delta_far_above_the_accounts_is_answered_with_one_that_has_room():
    """The advice was "smaller than 1e-6, such as 6e-5"."""
    steps = [
        ("table", DPTablePreparer(rest="auto")),
        ("model", DPGradientClassifier(Domain(classes=[0, 1]))),
    ]
    pipe = DPPipeline(steps, epsilon=1.0, delta=DELTA)
    ledger = Ledger(epsilon=3.0, delta=DELTA)
    ledger.reserve(pipe.plan(n_columns=3))
    pipe.set_params(delta=1e-3)
    with pytest.raises(BudgetError, match="Fit with a smaller delta") as refused:
        ledger.reserve(pipe.plan(n_columns=3))
    named, advised = re.search(r"than (\S+), such as (\S+)\.", str(refused.value)).groups()
    assert float(named) == 1e-3
    assert float(advised) <= DELTA
    assert ledger.would_allow(pipe.set_params(delta=float(advised)).plan(n_columns=3))


def test_a_lock_of_a_book_in_memory_that_never_comes_is_an_error(monkeypatch):
    monkeypatch.setattr(ledger_store, "LOCK_SECONDS", 0.2)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    held, done = threading.Event(), threading.Event()

    def hold():
        with ledger._store.transaction(write=False):
            held.set()
            done.wait(300.0)

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        assert held.wait(300.0)
        with pytest.raises(LedgerError, match="Nothing was spent"):
            ledger.spent()
    finally:
        done.set()
        holder.join(60.0)
    assert ledger.spent() == 0.0

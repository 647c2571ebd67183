"""A policy file is obeyed before anything is spent, cannot be outbid, and is never read as a permission."""

import json
import math
import pickle

import pytest

from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPLassoClassifier,
    DPPipeline,
    DPSearchCV,
    DPStandardizer,
    Ledger,
)
from dpsparse.exceptions import BudgetError, LedgerError

DOMAIN = Domain(row_norm=1.0, classes=[0, 1], n_samples=200)
POLICY = """
[release]
epsilon = 1.0
delta = 1e-6
methods = ["DPGradientClassifier"]
[dataset]
epsilon = 3.0
unit = "row"
[datasets.claims]
epsilon = 1.5
adjacency = "add-remove"
"""


@pytest.fixture
def book(tmp_path):
    (tmp_path / "budget.db.policy.toml").write_text(POLICY)
    return tmp_path / "budget.db"


def plan(kind=DPGradientClassifier, **parameters):
    return kind(DOMAIN, **parameters).plan(20)


def test_a_release_within_the_policy_is_booked(book):
    ledger = Ledger(book, epsilon=3.0, delta=1e-6)
    assert ledger.would_allow(plan(epsilon=1.0))
    ledger.reserve(plan(epsilon=1.0))
    assert ledger.spent() == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (lambda: plan(epsilon=1.01), "epsilon 1 at most"),
        (lambda: plan(epsilon=0.5, delta=1e-5), "delta 1e-6 at most"),
        (lambda: plan(DPLassoClassifier, epsilon=0.5), "does not allow DPLassoClassifier"),
        (lambda: plan(epsilon=math.inf), "at most, and DPGradientClassifier asks inf"),
        (lambda: plan(epsilon=0.5, random_state=0), "asks inf"),
    ],
)
def test_what_the_policy_forbids_is_refused_and_spends_nothing(book, asked, says):
    ledger = Ledger(book, epsilon=3.0, delta=1e-6)
    assert not ledger.would_allow(asked())
    with pytest.raises(BudgetError, match=says):
        ledger.reserve(asked())
    assert ledger.history() == []


def test_methods_inside_a_search_or_pipeline_count(tmp_path, monkeypatch):
    """A policy that allowed DPSearchCV refused every search: plans call it by what it searches, too."""
    search = DPSearchCV(DPGradientClassifier(DOMAIN), {"n_nonzero": [1, 2]}).plan(20)
    pipe = DPPipeline(
        [("scale", DPStandardizer()), ("model", DPGradientClassifier(Domain(classes=[0, 1])))]
    )
    for asked, outer in ((search, "DPSearchCV"), (pipe.plan(20), "DPPipeline")):
        for allowed, holds in (
            ([outer, "DPGradientClassifier"], True),
            ([outer], False),
            (["DPGradientClassifier"], False),
        ):
            policy = tmp_path / "policy.toml"
            policy.write_text(f"[release]\nmethods = {json.dumps(allowed)}\n")
            monkeypatch.setenv("DPSPARSE_POLICY", str(policy))
            ledger = Ledger(epsilon=3.0, delta=1e-6)
            assert ledger.would_allow(asked) is holds


def test_ceilings_of_accounts(book):
    with pytest.raises(BudgetError, match="epsilon 3 at most"):
        Ledger(book, epsilon=4.0, delta=1e-6)
    with pytest.raises(BudgetError, match="unit 'row'"):
        Ledger(book, epsilon=1.0, delta=1e-6, unit="person")
    with pytest.raises(BudgetError, match=r"1\.5 at most"):
        Ledger(book, epsilon=2.0, delta=1e-6, dataset="claims")
    assert not book.exists() or Ledger.datasets(book) == []
    with pytest.raises(BudgetError, match=r"1\.5 at most"):
        Ledger(book, epsilon=2.0, delta=1e-6, dataset="Claims")
    Ledger(book, epsilon=1.5, delta=1e-6, dataset="claims").reserve(plan(epsilon=0.5))


def test_an_account_older_than_its_policy_is_held_to_it(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", epsilon=9.0, delta=1e-6)
    ledger.reserve(plan(epsilon=0.5))
    (tmp_path / "budget.db.policy.toml").write_text(POLICY)
    with pytest.raises(BudgetError, match="3 at most of the account"):
        ledger.reserve(plan(epsilon=0.5))
    assert len(ledger.history()) == 1


def test_nobody_escapes_by_bringing_another_policy_a_link_or_a_pickle(book, tmp_path, monkeypatch):
    loose = tmp_path / "loose.toml"
    loose.write_text("[release]\nepsilon = 100\n")
    monkeypatch.setenv("DPSPARSE_POLICY", str(loose))
    ledger = Ledger(book, epsilon=3.0, delta=1e-6)
    link = tmp_path / "elsewhere"
    link.symlink_to(book)
    for account in (ledger, pickle.loads(pickle.dumps(ledger)), Ledger(link)):
        assert not account.would_allow(plan(epsilon=2.0))
    strict = tmp_path / "strict.toml"
    strict.write_text("[release]\nepsilon = 0.1\n")
    monkeypatch.setenv("DPSPARSE_POLICY", str(strict))
    assert not ledger.would_allow(plan(epsilon=0.5))
    memory = Ledger(epsilon=3.0, delta=1e-6)
    assert not memory.would_allow(plan(epsilon=0.5))


@pytest.mark.parametrize(
    "text",
    [
        "epsilon = 1",
        "[release]\nepsilom = 1",
        "[release]\nepsilon = 'much'",
        "[release]\nepsilon = true",
        "[release]\nmethods = 'all'",
        "[dataset]\nunit = 'house'",
        "[datasets]\nclaims = 3",
        '[datasets."cla\u0456ms"]\nepsilon = 1',
        "[datasets.Claims]\nepsilon = 1\n[datasets.claims]\nepsilon = 2",
        "not toml",
    ],
)
def test_a_policy_that_is_not_understood_is_no_permission(book, text):
    ledger = Ledger(book, epsilon=3.0, delta=1e-6)
    (book.parent / "budget.db.policy.toml").write_text(text)
    with pytest.raises(LedgerError, match=r"policy budget\.db\.policy\.toml"):
        ledger.would_allow(plan(epsilon=0.5))


def test_a_missing_policy_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("DPSPARSE_POLICY", str(tmp_path / "gone.toml"))
    with pytest.raises(LedgerError, match="cannot be read"):
        Ledger(epsilon=3.0, delta=1e-6)

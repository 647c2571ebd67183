"""scikit-learn's own searches with a ledger: refused before the first fit if they cannot be paid to the end."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpsparse import Domain, DPGradientClassifier, Ledger, make_dp_scorer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
y = (X[:, 0] > 0).astype(int)
DOMAIN = Domain(row_norm=1.0, classes=[0, 1], n_samples=60)


def search(ledger, **options):
    model = DPGradientClassifier(DOMAIN, epsilon=0.5, delta=1e-6, ledger=ledger)
    return GridSearchCV(model, {"n_nonzero": [1, 2, 3]}, cv=2, **options)


@pytest.mark.parametrize("options", [{"error_score": "raise"}, {}, {"n_jobs": 2}])
def test_a_search_that_cannot_be_paid_spends_nothing(tmp_path, options):
    ledger = Ledger(tmp_path / "book.db", epsilon=1.0, delta=1e-6)
    with pytest.raises(Exception, match="DPSearchCV searches the same candidates"):
        search(ledger, **options).fit(X, y)
    assert ledger.spent() == 0.0
    assert not ledger.history()


def test_the_refusal_is_told_once_and_not_for_every_fit(tmp_path):
    """scikit-learn goes on after a failed fit and lists every traceback that differs from the others."""
    ledger = Ledger(tmp_path / "book.db", epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="DPSearchCV") as caught:
        search(ledger).fit(X, y)
    assert str(caught.value).count("The search still has 7 fits") == 1


def test_a_search_that_can_be_paid_runs_to_its_end(tmp_path):
    ledger = Ledger(tmp_path / "book.db", epsilon=3.0, delta=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search(ledger).fit(X, y)
    assert len(ledger.history()) == 7  # 3 candidates, 2 splits, one refit


def test_the_refit_counts(tmp_path):
    """Six fits would pass and the seventh would not: the search is refused before the first."""
    ledger = Ledger(tmp_path / "book.db", epsilon=1.33, delta=1e-6)
    with pytest.raises(Exception, match="still has 7 fits"):
        search(ledger, error_score="raise").fit(X, y)
    assert not ledger.history()
    search(ledger, refit=False).fit(X, y)
    assert len(ledger.history()) == 6


def test_a_search_of_a_pipeline_is_refused_as_well(tmp_path):
    """Why the number of fits is read from scikit-learn's call: it reaches an estimator inside anything."""
    ledger = Ledger(tmp_path / "book.db", epsilon=1.0, delta=1e-6)
    model = DPGradientClassifier(DOMAIN, epsilon=0.5, delta=1e-6, ledger=ledger)
    points = {"dpgradientclassifier__n_nonzero": [1, 2, 3]}
    pipe = make_pipeline(FunctionTransformer(), model)
    with pytest.raises(Exception, match="still has 7 fits"):
        GridSearchCV(pipe, points, cv=2, error_score="raise").fit(X, y)
    assert not ledger.history()


@pytest.mark.parametrize("scoring", ["one", "several"])
def test_scores_that_the_same_ledger_pays_count_as_well(tmp_path, scoring):
    """Seven fits cost 1.43 and would pass; with six private scores of epsilon 1 they do not, and nothing is spent."""
    ledger = Ledger(tmp_path / "book.db", epsilon=2.0, delta=1e-6)
    scorer = make_dp_scorer("accuracy", epsilon=1.0, ledger=ledger)
    given = {"scoring": scorer} if scoring == "one" else {"scoring": {"a": scorer}, "refit": "a"}
    with pytest.raises(Exception, match="7 fits of DPGradientClassifier to make and 6 private"):
        search(ledger, error_score="raise", **given).fit(X, y)
    assert not ledger.history()
    search(ledger, error_score="raise").fit(X, y)  # without them it can be paid
    assert len(ledger.history()) == 7


def test_scores_of_another_ledger_do_not_count(tmp_path):
    ledger, other = (
        Ledger(tmp_path / f"{n}.db", epsilon=e, delta=1e-6) for n, e in (("a", 2.0), ("b", 9.0))
    )
    scorer = make_dp_scorer("accuracy", epsilon=1.0, ledger=other)
    search(ledger, error_score="raise", scoring=scorer).fit(X, y)
    assert len(ledger.history()) == 7
    assert len(other.history()) == 6

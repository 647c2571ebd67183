"""Arithmetic that is proven not to fail: if it did fail, nothing would be released.

Every test hands a room numbers that its callers are proven never to hand it.
"""

import itertools
import math
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse import DPLassoClassifier, Ledger
from dpsparse.accounting import (
    Exponential,
    ObjectivePerturbation,
    Pure,
    Repeated,
    conversion,
    objective,
)
from dpsparse.accounting.dominance import is_dominated
from dpsparse.domain import Domain
from dpsparse.exceptions import CalibrationError, DomainError, InternalError, SchemaError
from dpsparse.ledger.filter import Terms
from dpsparse.mechanisms import Picks
from dpsparse.mechanisms.top_k import MOST_CANDIDATES, top_k
from dpsparse.random import make_generator
from dpsparse.release import private_run
from dpsparse.rows import Query, Rows, kernels
from dpsparse.rows.loss_kernels import SOFTMAX
from dpsparse.rows.parts import count
from dpsparse.rows.tasks import guarded
from dpsparse.sensitivity import Sensitivity, count_below


def ridge_problem(**settings):
    X = sp.csr_array(np.eye(3))
    rows = Rows.clip(X, np.array([0, 1, 1]), Domain(classes=[0, 1]), labels=np.array([0, 1]))
    ridge = rows.ridge(None, constant=0.0, row_clip=1.0, longest=1.0)
    return ridge.problem("logistic", **{"ridge": 1.0, "tol": 1e-6, **settings})


def test_a_search_that_never_knew_its_gradient_releases_nothing():
    """So far from the origin a gradient is not a number, which is not larger than any tolerance."""
    problem = ridge_problem(ridge=1e-260)
    with pytest.raises(InternalError, match="Nothing was released"):
        problem.tilted(np.ones(3), 1e-9).whole(1e-9)


def test_a_tolerance_that_is_not_a_number_releases_nothing():
    with pytest.raises(InternalError, match="Nothing was released"):
        ridge_problem(tol=math.nan).minimiser().whole(1e-9)


def test_slopes_of_very_many_classes_keep_their_norm():
    """2^16 squares of 2^48 wrap around to zero: slopes that are far too long would pass."""
    n_classes = 2**16 + 1
    margins = np.full(n_classes, -200.0)
    margins[0] = (
        200.0  # the true class is certain: a slope of zero, times an infinite weight not a number
    )
    whole = np.empty((1, n_classes))
    one = np.zeros(1, np.int32)
    kernels.slopes(
        np.array([0, 0], np.int32), np.empty(0, np.int32), np.empty(0, np.int32), one,
        one, np.empty(0, np.float32), np.zeros((0, n_classes), np.float32), np.zeros(n_classes), margins,
        SOFTMAX, np.inf, 1.0, np.full(n_classes, np.inf), 0, 1, whole,
    )  # fmt: skip
    assert sum(int(v) ** 2 for v in whole[0]) <= kernels.SLOPE**2


def test_sizes_of_sums_that_wrapped_move_by_no_more_than_the_sums():
    """|q| of q modulo 2^64: at -2^63 it has no int64, and its neighbours would be 2^64 apart."""
    sums = [2**63 - 2, 2**63 - 1, 2**63, 2**63 + 1]
    wrapped = np.array([(q + 2**63) % 2**64 - 2**63 for q in sums], np.int64)
    sizes = Query((4,), count_below, lambda unit: wrapped).magnitudes(4).whole(1.0)
    assert all(abs(int(a) - int(b)) <= 1 for a, b in itertools.pairwise(sizes))
    assert np.all(sizes >= 0)


def test_a_count_in_units_beyond_64_bits_wraps_around():
    """Noise of 64 bits is added to it: an exception would tell how many rows there are."""

    class Part:
        starts = worth = None

    class Parts:
        def sum(self, shape, add):
            out = np.zeros(shape, np.int64)
            add(Part(), out)
            return out

    five = count(Parts(), lambda part: np.ones(5, bool))
    assert five.whole(2.0**-62)[0] == (5 * 2**62 + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("kappa", [math.nan, 0.0, -1.0])
def test_no_pick_without_a_positive_temperature(kappa):
    with pytest.raises(InternalError, match="Nothing was released"):
        top_k(np.array([1, 2, 3]), 1, kappa, make_generator(0))


def test_no_pick_among_scores_whose_differences_wrap():
    with pytest.raises(InternalError, match="Nothing was released"):
        top_k(np.array([2**62, -(2**62)]), 1, 1e-18, make_generator(0))


def test_no_pick_among_more_candidates_than_a_sum_of_weights_holds():
    """The sum of their weights would leave 53 bits, and no draw would ever be accepted."""
    scores = np.broadcast_to(np.int64(0), MOST_CANDIDATES + 1)
    with pytest.raises(InternalError, match="Nothing was released"):
        top_k(scores, 1, 1.0, make_generator(0))


def test_a_range_smaller_than_its_rounding_is_refused():
    with pytest.raises(CalibrationError, match="epsilon"):
        Picks.kappa_for(Sensitivity(1.0, "Linf", "add-remove", "test"), Exponential(2.0**-38))


def test_a_profile_that_is_not_a_number_is_dominated_by_nothing():
    assert not is_dominated(np.full(8, np.nan), 0.5, 1.0)
    values = np.zeros(8)
    assert is_dominated(values, 0.5, 1.0)
    values[3] = np.nan
    assert not is_dominated(values, 0.5, 1.0)


@pytest.mark.parametrize("first", [0, 5])
def test_a_delta_that_is_not_a_number_costs_everything(monkeypatch, first):
    """From grid point `first` on. No plan has these parameters: prices of plans are remembered."""
    event = ObjectivePerturbation(3.0 + first, 1.0, 1.0, 1.0, "glm", "add-remove")
    asked = []

    def broken(*facts):
        asked.append(facts)
        return math.nan if len(asked) > first else objective.delta_profile(*facts)

    monkeypatch.setattr(conversion, "delta_profile", broken)
    assert conversion.epsilon(event, 1.1e-6) == math.inf
    assert conversion.delta(event, 3.3) == 1.0 or first > 0
    assert len(asked) > first


class _WideParts:
    """Rows in parts of a number of columns that no memory would hold."""

    from_source, rows_per_unit = True, 1
    domain = Domain(classes=[0, 1], feature_bound=1.0)

    def __init__(self, n_features):
        self.n_features = n_features

    def __len__(self):
        return 10


def test_more_candidates_than_a_pick_is_proven_for_are_refused_before_the_charge():
    model = DPLassoClassifier(_WideParts.domain, radius=1.0, n_iter=3, fit_intercept=False)
    plan = model.plan(10)
    ledger = Ledger(epsilon=10.0, delta=1e-5)
    with pytest.raises(DomainError, match="Nothing was spent"):
        private_run(plan, _WideParts(MOST_CANDIDATES // 2), lambda releases: None, ledger=ledger)
    assert ledger.history() == []
    private_run(plan, _WideParts(1000), lambda releases: None, ledger=ledger)
    assert len(ledger.history()) == 1


def test_whether_rows_fit_in_memory_decides_no_refusal(monkeypatch):
    """It is a fact about the rows: one row more could cause the refusal, or end it."""
    monkeypatch.setattr(sys.modules["dpsparse.release"], "MOST_CANDIDATES", 8)
    X, y = sp.csr_array(np.eye(5)), [0, 1, 0, 1, 0]
    model = DPLassoClassifier(_WideParts.domain, radius=1.0, n_iter=3, fit_intercept=False)
    with pytest.raises(DomainError, match="Nothing was spent"):
        model.fit(Rows.from_csr(X, np.array(y), memory="1GB"))
    model.fit(X, y)


@pytest.mark.parametrize("wrong", ["epsilon", "delta", "reserve"])
def test_an_account_of_terms_that_are_no_numbers_has_no_budget(wrong):
    terms = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "add-remove", wrong: math.nan}
    assert Terms(**terms).budget == 0.0


@pytest.mark.parametrize("event", [Exponential(0.1), Repeated(Exponential(4.0), 5), Pure(1.0)])
@pytest.mark.parametrize("large", [800.0, 1e5, 1e6])
def test_very_large_epsilons_are_priced_without_overflow(event, large):
    """Warnings are errors here."""
    assert conversion.delta(event, large) == 0.0


def raise_in_place_of(kind, text):
    try:
        raise ValueError("918273645")
    except ValueError:
        raise kind(text) from None


def test_behind_what_leaves_a_worker_stands_no_other_error():
    """Engines send the errors that another one replaced along with it; they quote a cell, or the size of a part."""
    with pytest.raises(MemoryError) as caught:
        guarded(1, raise_in_place_of, MemoryError, "918273645")
    assert caught.value.args == ()
    assert caught.value.__context__ is caught.value.__cause__ is None
    assert guarded(1, raise_in_place_of, SchemaError, "No cell.").text == "No cell."
    assert "918273645" not in guarded(1, raise_in_place_of, KeyError, "918273645").text

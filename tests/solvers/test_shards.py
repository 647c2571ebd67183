"""Frank-Wolfe on rows that no machine holds: exact scores summed over parts, one history for every cut."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from dpsparse import Domain, DPLassoClassifier, DPLassoRegressor, DPScreenedLassoRegressor
from dpsparse.domain import Domain as _Domain
from dpsparse.exceptions import ParameterError
from dpsparse.losses import get_loss
from dpsparse.random import make_generator
from dpsparse.rows import Rows
from dpsparse.solvers.frank_wolfe import Problem
from dpsparse.solvers.frank_wolfe.solve import Steps
from rows.test_engines import Cut, assert_same, table

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")


def lasso(kind, **options):
    options = {"radius": 5.0, "n_iter": 25, "random_state": 4, "epsilon": 4.0} | options
    if kind == "regression":
        return DPLassoRegressor(Domain(target_bound=3.0), **options)
    return DPLassoClassifier(Domain(classes=list(range(int(kind)))), **options)


@pytest.mark.parametrize("epsilon", [4.0, math.inf])
@pytest.mark.parametrize("kind", ["2", "5", "regression"])
def test_one_history_for_every_cut(kind, epsilon):
    X, y = table(kind, "narrow")
    whole = lasso(kind, selection="shards", epsilon=epsilon).fit(X, y)
    assert np.any(whole.coef_ != 0.0)
    for n_parts in (1, 2, 5):
        cut = lasso(kind, selection="shards", epsilon=epsilon).fit(Cut(X, y, n_parts, seed=n_parts))
        assert_same(whole, cut)
    if epsilon == math.inf:  # the same arg max as the fused kernel, but for rounding of margins
        fused = lasso(kind, epsilon=epsilon).fit(X, y)
        assert np.abs(fused.coef_ - whole.coef_).max() < 0.2 * np.abs(fused.coef_).max() + 0.1


@pytest.mark.parametrize("kind", [DPLassoRegressor, DPScreenedLassoRegressor])
def test_default_settings_bring_no_row_to_the_client(kind, monkeypatch):
    """Scales are released from sums over parts as well; `Rows.arrays` is how rows would come."""
    monkeypatch.setattr(Rows, "arrays", None)
    X, y = table("regression", "narrow")
    domain = Domain(target_bound=3.0, n_samples=900)
    whole, cut = (
        kind(domain, selection="shards", random_state=4).fit(Cut(X, y, n)) for n in (1, 5)
    )
    assert "columns" in [phase.name for phase in whole.plan_.phases]
    assert_same(whole, cut)


def small(loss="logistic", kappa=0.5, n_outputs=1):
    rng = np.random.default_rng(2)
    X = sp.csr_array(np.where(rng.random((40, 5)) < 0.6, rng.normal(size=(40, 5)), 0.0))
    domain = _Domain(feature_bound=1.0, classes=[0, 1, 2][: max(2, n_outputs)], target_bound=1.0)
    y = np.arange(40) % max(2, n_outputs)
    labels = np.arange(max(2, n_outputs))
    rows = Rows.clip(X, y, domain, labels=labels, n_parts=3)
    problem = Problem(
        get_loss(loss), radius=3.0, n_iter=4, kappa=kappa, slope_bound=1.0, resolution=2**11,
        n_outputs=n_outputs,
    )  # fmt: skip
    return rows, problem


@pytest.mark.parametrize(("loss", "n_outputs"), [("logistic", 1), ("softmax", 3)])
def test_scores_are_those_of_the_fused_kernel(loss, n_outputs):
    rows, problem = small(loss, n_outputs=n_outputs)
    fused, shards = Steps(rows, problem), Steps(rows, problem, "shards")
    history = fused.draw(make_generator(0), 4, None)
    for a, b in zip(fused.scores(history), shards.scores(history), strict=True):
        assert np.abs(a - b).max() <= 40  # margins are added in another order: a unit a row at most
        assert np.abs(a).max() > 1000


def test_the_law_is_that_of_the_fused_kernel():
    """Last picks of short runs, 2,500 of each kind, compared cell by cell and sign."""
    rows, problem = small()
    counts = np.zeros((2, 2 * 6))
    runs = 2500
    for which, selection in enumerate(("auto", "shards")):
        steps = Steps(rows, problem, selection)
        rng = make_generator(which + 10)
        for _ in range(runs):
            history = steps.draw(rng, 4, None)
            counts[which, history.features[-1] * 2 + (history.signs[-1] > 0)] += 1
    total = counts.sum(axis=0)
    kept = total >= 10
    statistic = (((counts - total / 2) ** 2) / np.maximum(total / 2, 1)).sum(axis=0)[kept].sum()
    assert statistic < chi2.ppf(1 - 1e-4, kept.sum() - 1)
    # Twice the temperature would be seen.
    rows, hotter = small(kappa=0.25)
    steps, rng = Steps(rows, hotter, "shards"), make_generator(12)
    other = np.zeros(12)
    for _ in range(runs):
        history = steps.draw(rng, 4, None)
        other[history.features[-1] * 2 + (history.signs[-1] > 0)] += 1
    total = counts[0] + other
    statistic = ((counts[0] - total / 2) ** 2 + (other - total / 2) ** 2) / np.maximum(total / 2, 1)
    assert statistic[total >= 10].sum() > chi2.ppf(1 - 1e-4, (total >= 10).sum() - 1)


@pytest.mark.parametrize("bound", [1.0, 1e-25, 1e25])
def test_no_row_adds_more_than_the_resolution(bound):
    extreme = [5e-324, 1e-310, 1e-38, 1e-25, 0.3, 1.0, 1e25, 1e300]
    rng = np.random.default_rng(0)
    domain = _Domain(feature_bound=bound, classes=[0, 1])
    reached = 0
    for sign in (1.0, -1.0):
        for label in (0, 1):
            row = sp.csr_array(sign * np.array([extreme]))
            rows = Rows.clip(row, np.array([label]), domain, labels=np.array([0, 1]))
            problem = Problem(
                get_loss("logistic"), radius=40.0 / bound,
                n_iter=3, kappa=1e-3 / bound, slope_bound=1.0, resolution=2**11, feature_bound=bound,
            )  # fmt: skip
            steps = Steps(rows, problem, "shards")
            history = steps.history(rng.integers(0, 9, 3), np.array([1, -1, 1]))
            for scores in steps.scores(history):
                assert np.abs(scores).max() <= problem.resolution
                reached = max(reached, int(np.abs(scores).max()))
    assert reached > 0.9 * 2**11


def test_shards_need_exact_freshness():
    X, y = table("2", "narrow")
    with pytest.raises(ParameterError, match="freshness"):
        lasso("2", selection="shards", freshness="tolerance").fit(X, y)

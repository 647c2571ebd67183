"""Frank-Wolfe on rows that no machine holds: exact scores summed over parts, one history for every cut."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from dpsparse import Domain, DPLassoClassifier, DPLassoRegressor, DPScreenedLassoRegressor
from dpsparse.domain import Domain as _Domain
from dpsparse.losses import get_loss
from dpsparse.methods.frank_wolfe.run import Problem, Steps
from dpsparse.random import make_generator
from dpsparse.rows import Rows
from parts import clip_in_parts
from rows.test_engines import Apart, Cut, Scattered, assert_same, table

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
    whole = lasso(kind, epsilon=epsilon).fit(Apart(X, y, 1))
    assert np.any(whole.coef_ != 0.0)
    for n_parts in (2, 5):
        assert_same(whole, lasso(kind, epsilon=epsilon).fit(Apart(X, y, n_parts, seed=n_parts)))
    if epsilon == math.inf:  # the same arg max as the fused kernel, but for rounding of margins
        fused = lasso(kind, epsilon=epsilon).fit(X, y)
        assert np.abs(fused.coef_ - whole.coef_).max() < 0.2 * np.abs(fused.coef_).max() + 0.1


@pytest.mark.parametrize("kind", [DPLassoRegressor, DPScreenedLassoRegressor])
def test_default_settings_bring_no_row_to_the_client(kind, monkeypatch):
    """Scales are released from sums over parts as well; `Rows.arrays` is how rows would come."""
    monkeypatch.setattr(Rows, "arrays", None)
    X, y = table("regression", "narrow")
    domain = Domain(target_bound=3.0, n_samples=900)
    whole, cut = (kind(domain, random_state=4).fit(Apart(X, y, n)) for n in (1, 5))
    assert "columns" in [phase.name for phase in whole.plan_.phases]
    assert_same(whole, cut)


@pytest.mark.parametrize("kind", ["2", "regression"])
def test_rows_choose_the_engine(kind, monkeypatch):
    """A table that fits in the memory of its source twice has the bits of one in memory; a larger one never comes."""
    X, y = table(kind, "narrow")
    fused = lasso(kind).fit(X, y)
    assert_same(fused, lasso(kind).fit(Rows.from_csr(X, y)))
    assert_same(fused, lasso(kind).fit(Cut(X, y, 3)))
    source = Rows.from_csr(X, y, memory="1MB")
    source.memory = 100_000  # the rows need 140,000 bytes
    labels = None if kind == "regression" else np.array([0, 1])
    assert not source.clipped(lasso(kind).domain, labels).fit_in_memory
    monkeypatch.setattr(Rows, "arrays", None)
    assert_same(lasso(kind).fit(Apart(X, y, 1)), lasso(kind).fit(source))


def small(loss="logistic", kappa=0.5, n_outputs=1):
    rng = np.random.default_rng(2)
    X = sp.csr_array(np.where(rng.random((40, 5)) < 0.6, rng.normal(size=(40, 5)), 0.0))
    domain = _Domain(feature_bound=1.0, classes=[0, 1, 2][: max(2, n_outputs)], target_bound=1.0)
    y = np.arange(40) % max(2, n_outputs)
    labels = np.arange(max(2, n_outputs))
    rows = clip_in_parts(X, y, domain, 3, labels=labels)
    apart = Rows(Scattered(rows._parts), domain)
    problem = Problem(
        get_loss(loss), radius=3.0, n_iter=4, kappa=kappa, slope_bound=1.0, resolution=2**11,
        n_outputs=n_outputs,
    )  # fmt: skip
    return rows, apart, problem


@pytest.mark.parametrize(("loss", "n_outputs"), [("logistic", 1), ("softmax", 3)])
def test_scores_are_those_of_the_fused_kernel(loss, n_outputs):
    rows, apart, problem = small(loss, n_outputs=n_outputs)
    fused, shards = Steps(rows, problem), Steps(apart, problem)
    history = fused.draw(make_generator(0), 4, None)
    for a, b in zip(fused.scores(history), shards.scores(history), strict=True):
        assert np.abs(a - b).max() <= 40  # margins are added in another order: a unit a row at most
        assert np.abs(a).max() > 1000


@pytest.mark.heavy
def test_the_law_is_that_of_the_fused_kernel():
    """Last picks of short runs, 2,500 of each kind, compared cell by cell and sign."""
    rows, apart, problem = small()
    counts = np.zeros((2, 2 * 6))
    runs = 2500
    for which, source in enumerate((rows, apart)):
        steps = Steps(source, problem)
        rng = make_generator(which + 10)
        for _ in range(runs):
            history = steps.draw(rng, 4, None)
            counts[which, history.features[-1] * 2 + (history.signs[-1] > 0)] += 1
    total = counts.sum(axis=0)
    kept = total >= 10
    statistic = (((counts - total / 2) ** 2) / np.maximum(total / 2, 1)).sum(axis=0)[kept].sum()
    assert statistic < chi2.ppf(1 - 1e-4, kept.sum() - 1)
    # Twice the temperature would be seen.
    _, apart, hotter = small(kappa=0.25)
    steps, rng = Steps(apart, hotter), make_generator(12)
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
            rows = Rows(Scattered(rows._parts), domain)
            problem = Problem(
                get_loss("logistic"), radius=40.0 / bound,
                n_iter=3, kappa=1e-3 / bound, slope_bound=1.0, resolution=2**11, feature_bound=bound,
            )  # fmt: skip
            steps = Steps(rows, problem)
            history = steps.history(rng.integers(0, 9, 3), np.array([1, -1, 1]))
            for scores in steps.scores(history):
                assert np.abs(scores).max() <= problem.resolution
                reached = max(reached, int(np.abs(scores).max()))
    assert reached > 0.9 * 2**11

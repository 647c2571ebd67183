"""The run: fast blocks have the law of the reference, dropped columns never come back."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from dpsparse.domain import Domain
from dpsparse.losses import get_loss
from dpsparse.random import make_generator
from dpsparse.solvers.screening import (
    Block,
    _fast_block,
    _restrict,
    history_weights,
    screened_frank_wolfe,
)
from dpsparse.solvers.screening_rules import Budgeted, Counts, KeepAll, Safe, TopK


def make_data(seed=0, n=80, d=15, loss="squared"):
    rng = np.random.default_rng(seed)
    X = sp.random_array(
        (n, d), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal
    )
    X.data = np.clip(X.data, -1, 1)
    y = np.asarray(X[:, [0]].toarray()[:, 0] - X[:, [1]].toarray()[:, 0] + 0.1 * rng.normal(size=n))
    domain = Domain(feature_bound=1.0, target_bound=2.0, classes=[0, 1], n_samples=n)
    if loss == "squared":
        return domain.clip(X, y)
    return domain.clip(X, (y > 0).astype(int), labels=np.array([0, 1]))


SETTINGS = {"radius": 2.0, "resolution": 2**16, "fit_intercept": True}
RULES = [
    KeepAll(), TopK(4), Counts(0.3), Budgeted(math.inf, 5, 0.1),
    Safe(math.inf, 5, 0.1, smoothness=1.0, strong_convexity=1.0, n_samples=1),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_without_noise_fast_and_reference_pick_the_same_vertices(rule, loss):
    data = make_data(loss=loss)
    runs = [
        screened_frank_wolfe(
            data, get_loss(loss), make_generator(0), kappa=math.inf, blocks=[12, 12, 6], rule=rule, fast=fast,
            **SETTINGS,
        )
        for fast in (True, False)
    ]  # fmt: skip
    np.testing.assert_array_equal(runs[0].features, runs[1].features)
    np.testing.assert_array_equal(runs[0].signs, runs[1].signs)
    np.testing.assert_allclose(runs[0].weights, runs[1].weights, rtol=1e-12)
    assert runs[0].n_live == runs[1].n_live


def test_weights_follow_the_frank_wolfe_recursion():
    rng = np.random.default_rng(0)
    features, signs, w = rng.integers(0, 5, 40), rng.choice([-1, 1], 40), np.zeros(6)
    for t, (j, s) in enumerate(zip(features, signs, strict=True)):
        w *= 1 - 2 / (t + 3)
        w[j] += 2 / (t + 3) * 3.0 * s
    np.testing.assert_allclose(history_weights(features, signs, 3.0, 5), w, atol=1e-14)
    assert np.abs(w).sum() <= 3.0
    # a step back towards zero shrinks and adds nothing
    features[-1] = -1
    np.testing.assert_allclose(
        history_weights(features, signs, 3.0, 5),
        history_weights(features[:-1], signs[:-1], 3.0, 5) * (1 - 2 / 42),
        atol=1e-14,
    )


@pytest.mark.parametrize("fast", [True, False])
def test_dropped_columns_never_come_back_and_the_intercept_stays(fast):
    data = make_data()
    run = screened_frank_wolfe(
        data, get_loss("squared"), make_generator(2), kappa=0.02, blocks=[10] * 4, rule=TopK(3), fast=fast, **SETTINGS
    )  # fmt: skip
    assert run.n_live == (15, 10, 7, 5, 3)
    assert np.count_nonzero(run.weights[:-1]) <= 3
    for block, live in enumerate(run.n_live[:-1]):
        assert len(set(run.features[10 * block : 10 * block + 10]) - {-1, 15}) <= live
    assert 15 in run.features  # the name of the intercept
    assert np.abs(run.weights).sum() <= 2.0


@pytest.mark.parametrize("fast", [True, False])
def test_everything_may_go(fast):
    data = make_data()
    rule = Counts(1e-12)
    run = screened_frank_wolfe(
        data, get_loss("squared"), make_generator(2), kappa=1e-6, blocks=[3, 3], rule=rule, fast=fast, **SETTINGS
    )  # fmt: skip
    assert run.n_live == (15, 0, 0)
    assert not run.weights[:-1].any()


def test_law_of_a_step_after_columns_have_left():
    """First draw after a replay on five of fifteen columns, against the exact softmax; level 1e-4.

    A kappa that is 5 % off must fail: the replayed margins and the noise are both right.
    """
    data, loss, kappa, n = make_data(1), get_loss("squared"), 0.12, 12_000
    live = np.array([0, 1, 4, 7, 9])
    past, signs = np.array([0, 1, -1, 0, 15, 1, -1]), np.array([1, -1, 1, 1, -1, -1, -1])
    part = _restrict(data, live)
    X = np.column_stack([data.X.toarray()[:, live], np.zeros(80), np.ones(80)])
    columns = np.append(live, [-1, 15])
    w = history_weights(past, signs, 2.0, 15)[columns] * (columns >= 0)
    G = X.T @ (X @ w - data.y)
    run = Block(past, signs, live, 15, 1, 2.0, kappa, 2**20, True)
    rng, counts = make_generator(5), np.zeros(14)
    place = {int(name): k for k, name in enumerate(columns)}
    for _ in range(n):
        features, drawn = _fast_block(part, loss, rng, run)
        np.testing.assert_array_equal(features[:7], past)
        counts[place[int(features[-1])] + 7 * (drawn[-1] < 0)] += 1

    def statistic(k):
        weight = np.exp(k * np.concatenate([-G, G]))
        expected = n * weight / weight.sum()
        frequent = expected > 5
        rest = expected[~frequent].sum()
        value = np.sum((counts - expected)[frequent] ** 2 / expected[frequent])
        if rest > 0:
            value += (counts[~frequent].sum() - rest) ** 2 / rest
        return value

    assert statistic(kappa) < chi2.ppf(1 - 1e-4, 13)
    assert statistic(1.05 * kappa) > chi2.ppf(1 - 1e-4, 13)
    assert statistic(0.95 * kappa) > chi2.ppf(1 - 1e-4, 13)

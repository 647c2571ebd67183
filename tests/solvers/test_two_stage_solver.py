"""Votes of blocks, top-k, and the noisy descent. Seeded; false-alarm rates below 1e-6 where a law is tested."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare

from dpsparse.domain import Domain
from dpsparse.estimators.two_stage import lasso_selector
from dpsparse.losses import Logistic
from dpsparse.privacy import NonPrivate, Phase, Plan, RoundedGaussian
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Blocks, Rows
from dpsparse.rows.votes import correlation_selector
from dpsparse.selection.top_k import top_k
from dpsparse.sensitivity import votes as vote_sensitivity
from dpsparse.solvers.two_stage import RidgeFit, SupportFirst, Votes, descend

DOMAIN = Domain(feature_bound=1.0, classes=[0, 1])
CODES = np.array([0, 1])


def door(event, seed=0):
    plan = Plan("test", (Phase("fit", event),), math.inf, 1e-6, "add-remove", proven=False)
    return Releases(plan, make_generator(seed))


def sample(seed, n=60, d=12):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * (rng.random((n, d)) < 0.5)
    return X, (X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n) > 0).astype(int)


def votes(X, y, block, n_blocks=8, n_nonzero=3, selector=correlation_selector):
    rows = Rows.clip(sp.csr_array(X), y, DOMAIN, labels=CODES)
    return rows.votes(Blocks(block, n_blocks), n_nonzero, selector).whole(1.0)


@pytest.mark.parametrize("selector", [correlation_selector, lasso_selector])
def test_one_row_moves_each_vote_by_at_most_one(selector):
    """All removals of one row with the other rows' draws kept; the bound 1 is attained."""
    largest = 0
    bound = vote_sensitivity("add-remove").value
    for seed in range(2):
        X, y = sample(seed)
        block = make_generator(seed).integers(8, size=60)
        full = votes(X, y, block, selector=selector)
        for row in range(60):
            kept = np.arange(60) != row
            fewer = votes(X[kept], y[kept], block[kept], selector=selector)
            largest = max(largest, np.max(np.abs(full - fewer)))
            assert np.max(np.abs(full - fewer)) <= bound
    assert largest == bound


def test_replacing_a_row_in_its_block_moves_votes_by_at_most_one():
    X, y = sample(1)
    block = make_generator(1).integers(8, size=60)
    full = votes(X, y, block)
    for row in range(60):
        other, labels = X.copy(), y.copy()
        other[row] = np.sign(np.random.default_rng(row).standard_normal(12))
        labels[row] = 1 - labels[row]
        moved = votes(other, labels, block)
        assert np.max(np.abs(full - moved)) <= vote_sensitivity("replace-one").value


def test_blocks_are_independent_uniform_draws():
    """Each row's block is uniform, and independent of its neighbour's: not contiguous, not dealt."""
    k, n = 4, 40_000
    rows = Rows.clip(sp.csr_array((n, 1)), np.zeros(n, int), DOMAIN, labels=CODES)
    handle = door(NonPrivate()).blocks(rows, k)
    label = handle._of_unit
    assert len(label) == n
    assert str(label) not in repr(handle)  # the draws stay secret
    pairs = np.bincount(label[:-1:2] * k + label[1::2], minlength=k * k)
    assert chisquare(pairs).pvalue > 1e-6
    dealt = np.arange(n) % k  # what a position-seeded assignment would give
    assert chisquare(np.bincount(dealt[:-1:2] * k + dealt[1::2], minlength=k * k)).pvalue < 1e-6


def test_empty_and_degenerate_blocks_abstain():
    assert np.all(votes(np.zeros((0, 4)), np.zeros(0, int), np.zeros(0, int)) == 0)
    for selector in (correlation_selector, lasso_selector):
        counts = votes(np.zeros((6, 4)), np.ones(6, int), np.arange(6) // 3, selector=selector)
        assert np.all(counts == 0)


def wild(X, y, n_nonzero):
    """A selector that breaks every promise, depending on its rows."""
    if X.shape[0] % 3 == 0:
        raise ValueError("rows")
    return np.array([-5, 2, 2, 2, 7, 1, 3, 10**9])


def test_votes_are_bounded_whatever_a_selector_does():
    X, y = sample(0)
    counts = votes(X, y, np.arange(60) % 7, 7, selector=wild)
    assert counts.max() <= 7
    assert counts.sum() <= 7 * 3
    assert np.array_equal(np.flatnonzero(counts), [1, 2, 3])


def test_votes_scale_with_the_unit():
    X, y = sample(0)
    rows = Rows.clip(sp.csr_array(X), y, DOMAIN, labels=CODES)
    query = rows.votes(Blocks(np.arange(60) % 7, 7), 3, correlation_selector)
    np.testing.assert_array_equal(query.whole(2.0**-20), query.whole(1.0) * 2**20)


def exact_top_k_law(scores, k, kappa):
    """Probability of each set under k exponential mechanisms without replacement."""
    law = {}
    for order in itertools.permutations(range(len(scores)), k):
        p, left = 1.0, list(range(len(scores)))
        for j in order:
            w = np.exp(kappa * np.asarray(scores)[left])
            p *= float(np.exp(kappa * scores[j]) / w.sum())
            left.remove(j)
        key = tuple(sorted(order))
        law[key] = law.get(key, 0.0) + p
    return law


def test_top_k_law_is_exact():
    """Accepts the planned kappa, rejects one that is 10 % off (60,000 draws)."""
    scores, k, kappa, draws = np.array([6, 2, 0, -4, 5]), 2, 0.35, 60_000
    rng = make_generator(5)
    counts = {}
    for _ in range(draws):
        key = tuple(sorted(top_k(scores, k, kappa, rng)))
        counts[key] = counts.get(key, 0) + 1

    def pvalue(kappa):
        law = exact_top_k_law(scores, k, kappa)
        return chisquare([counts.get(s, 0) for s in law], [draws * p for p in law.values()]).pvalue

    assert pvalue(kappa) > 1e-6
    assert pvalue(1.1 * kappa) < 1e-6
    assert pvalue(0.9 * kappa) < 1e-6


def test_range_of_top_k_is_charged_and_attained():
    """Votes that move by +1 and -1 change the law of k picks by up to k * 2 kappa, no more."""
    kappa, k = 0.9, 2
    # two groups far apart from each other: both picks come from where the neighbours differ
    before = np.array([0.0, 0.0, 1.0, 1.0]) * 20.0
    after = before + np.array([1.0, 1.0, -1.0, -1.0])
    p, q = (exact_top_k_law(v, k, kappa) for v in (before, after))
    ratio = max(abs(math.log(p[s] / q[s])) for s in p)
    assert 0.99 * k * 2 * kappa <= ratio <= k * 2 * kappa * (1 + 1e-12)


def test_top_k_without_noise_and_all_features():
    scores = np.array([1, 50, 30])
    assert list(top_k(scores, 2, math.inf, make_generator(0))) == [1, 2]
    assert sorted(top_k(scores, 7, 0.1, make_generator(0))) == [0, 1, 2]


def gradient_stage(n_features, **changes):
    facts = {"row_clip": 100.0, "longest": 100.0, "ridge": 1.0, "n_iter": 1, "step": 0.5, **changes}
    fit = RidgeFit("gradient", slope_bound=1.0, tol=1e-6, **facts)
    votes_ = Votes(1, correlation_selector)
    return SupportFirst("logistic", 1, n_features, 0.0, 1.0, votes_, fit)


def test_noisy_descent_law():
    """One step from zero: theta = -step (gradient + noise); the noise has the planned scale."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (30, 5000)), (rng.random(30) < 0.5).astype(int)
    rows = Rows.clip(sp.csr_array(X), y, DOMAIN, labels=CODES)
    public, support = gradient_stage(5000), np.arange(5000)
    clean = descend(rows, support, public, door(NonPrivate()))[:-1]
    np.testing.assert_allclose(
        clean, -0.5 * X.T @ Logistic().slope(np.zeros(30), y), rtol=1e-4, atol=1e-6
    )
    noisy = descend(rows, support, public, door(RoundedGaussian(0.02, 1.0, 5001)))[:-1]
    measured = np.std((noisy - clean) / 0.5)
    assert measured == pytest.approx(0.02 * 100.0, rel=0.05)  # five standard errors of 5,000 draws


def test_gradient_stage_is_stable():
    """The step of the gradient stage never diverges on the steepest rows the domain allows."""
    from dpsparse.estimators.two_stage import DPTwoStageClassifier

    for row_clip in (2.0, 0.2):
        domain = Domain(feature_bound=1.0, classes=[0, 1], n_samples=300)
        model = DPTwoStageClassifier(
            domain, n_nonzero=4, second_stage="gradient", n_iter=500, row_clip=row_clip, ridge=1.0,
            fit_intercept=False, support="votes",
        )  # fmt: skip
        public = model.plan(4).public
        X, y = np.ones((300, 4)), (np.arange(300) < 100).astype(int)
        rows = Rows.clip(sp.csr_array(X), y, domain, labels=CODES)
        theta = descend(rows, np.arange(4), public, door(NonPrivate()))[:-1]
        slopes = np.clip(Logistic().slope(X @ theta, y) * 2.0, -row_clip, row_clip) / 2.0
        assert np.linalg.norm(X.T @ slopes + theta) < 1e-3


def test_signal_is_found_by_votes():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (3000, 50))
    y = (X @ np.r_[np.full(4, 3.0), np.zeros(46)] > 0).astype(int)
    block = make_generator(0).integers(30, size=3000)
    for selector in (correlation_selector, lasso_selector):
        counts = votes(X, y, block, 30, 4, selector)
        assert np.all(counts[:4] > 20)
        assert np.all(counts[4:] < 10)

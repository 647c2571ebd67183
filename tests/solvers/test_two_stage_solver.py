"""Votes, blocks and Gumbel top-k. Seeded; false-alarm rates below 1e-6 where a law is tested."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare

from dpsparse.estimators.two_stage import lasso_selector
from dpsparse.losses import Logistic
from dpsparse.random import make_generator
from dpsparse.selection.top_k import top_k
from dpsparse.sensitivity import votes as vote_sensitivity
from dpsparse.solvers import two_stage


def sample(seed, n=60, d=12):
    rng = np.random.default_rng(seed)
    X = sp.csr_array(rng.uniform(-1, 1, (n, d)) * (rng.random((n, d)) < 0.5))
    y = (X @ rng.standard_normal(d) + 0.1 * rng.standard_normal(n) > 0).astype(float)
    return X, y


@pytest.mark.parametrize("selector", [two_stage.correlation_selector, lasso_selector])
def test_one_row_moves_each_vote_by_at_most_one(selector):
    """All removals of one row with the other rows' draws kept; the bound 1 is attained."""
    largest = 0.0
    bound = vote_sensitivity("add-remove").value
    for seed in range(2):
        X, y = sample(seed)
        rng = make_generator(seed)
        blocks = two_stage.draw_blocks(X.shape[0], 8, rng)
        full = two_stage.block_votes(X, y, blocks, 3, selector)
        for row in range(X.shape[0]):
            kept = [block[block != row] for block in blocks]
            fewer = two_stage.block_votes(X, y, [b for b in kept if len(b)], 3, selector)
            largest = max(largest, float(np.max(np.abs(full - fewer))))
            assert np.max(np.abs(full - fewer)) <= bound
    assert largest == bound


def test_replacing_a_row_in_its_block_moves_votes_by_at_most_one():
    X, y = sample(1)
    blocks = two_stage.draw_blocks(X.shape[0], 8, make_generator(1))
    full = two_stage.block_votes(X, y, blocks, 3, two_stage.correlation_selector)
    for row in range(X.shape[0]):
        other = X.toarray()
        other[row] = np.sign(np.random.default_rng(row).standard_normal(X.shape[1]))
        labels = y.copy()
        labels[row] = 1 - labels[row]
        moved = two_stage.block_votes(
            sp.csr_array(other), labels, blocks, 3, two_stage.correlation_selector
        )
        assert np.max(np.abs(full - moved)) <= vote_sensitivity("replace-one").value


def test_blocks_are_independent_uniform_draws():
    """Each row's block is uniform, and independent of its neighbour's: not contiguous, not dealt."""
    k, n = 4, 40_000
    blocks = two_stage.draw_blocks(n, k, make_generator(0))
    label = np.empty(n, int)
    for i, block in enumerate(blocks):
        label[block] = i
    assert np.array_equal(np.sort(np.concatenate(blocks)), np.arange(n))
    pairs = np.bincount(label[:-1:2] * k + label[1::2], minlength=k * k)
    assert chisquare(pairs).pvalue > 1e-6
    dealt = np.arange(n) % k  # what a position-seeded assignment would give
    assert chisquare(np.bincount(dealt[:-1:2] * k + dealt[1::2], minlength=k * k)).pvalue < 1e-6


def test_empty_and_degenerate_blocks_abstain():
    assert two_stage.draw_blocks(0, 5, make_generator(0)) == []
    X = sp.csr_array((6, 4))
    for selector in (two_stage.correlation_selector, lasso_selector):
        votes = two_stage.block_votes(X, np.ones(6), [np.arange(3), np.arange(3, 6)], 2, selector)
        assert np.all(votes == 0.0)


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
        key = tuple(np.sort(top_k(scores, k, kappa, rng)))
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


def test_noisy_descent_law():
    """One step from zero: theta = -step (gradient + noise); the noise has the planned scale."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (30, 5000))
    y = (rng.random(30) < 0.5).astype(int)
    kwargs = {"ridge": 1.0, "n_iter": 1, "step": 0.5}
    clean = two_stage.noisy_descent(
        rows, y, np.ones(30), Logistic(), make_generator(0), scale=0.0, **kwargs
    )
    noisy = two_stage.noisy_descent(
        rows, y, np.ones(30), Logistic(), make_generator(0), scale=2.0, **kwargs
    )
    measured = np.std((noisy - clean) / 0.5)
    assert measured == pytest.approx(2.0, rel=0.05)  # five standard errors of 5,000 draws


def test_signal_is_found_by_votes():
    rng = np.random.default_rng(3)
    X = sp.csr_array(rng.uniform(-1, 1, (3000, 50)))
    y = (X @ np.r_[np.full(4, 3.0), np.zeros(46)] > 0).astype(float)
    blocks = two_stage.draw_blocks(3000, 30, make_generator(0))
    for selector in (two_stage.correlation_selector, lasso_selector):
        votes = two_stage.block_votes(X, y, blocks, 4, selector)
        assert np.all(votes[:4] > 20)
        assert np.all(votes[4:] < 10)

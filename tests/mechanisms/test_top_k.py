"""Exact draws without replacement: their law, and that nothing is impossible.

Seeds are fixed; a fresh seed would fail a chi-square test here with probability 1e-4.
"""

import math

import numpy as np
import pytest
from scipy import stats

from dpsparse.mechanisms.top_k import top_k
from dpsparse.random import make_generator
from hot_cold import many_top_k

SCORES = np.array([0, 400, 900, 1300, 2000, -600], np.int64)
KAPPA = 1e-3


def law(scores, k, kappa):
    """Probability of every set of picks, by summing over their orders."""
    weights = np.exp(kappa * (scores - scores.max()))
    out = {}

    def walk(picked, p):
        left = [j for j in range(len(scores)) if j not in picked]
        if len(picked) == min(k, len(scores)):
            out[frozenset(picked)] = out.get(frozenset(picked), 0.0) + p
            return
        total = weights[left].sum()
        for j in left:
            walk((*picked, j), p * weights[j] / total)

    walk((), 1.0)
    return out


def p_value(draws, expected):
    names = list(expected)
    counts = np.array([draws.count(name) for name in names])
    assert counts.sum() == len(draws)
    probabilities = np.array([expected[name] for name in names])
    return stats.chisquare(counts, probabilities * len(draws)).pvalue


@pytest.mark.parametrize("k", [1, 2, 3])
def test_law_is_accepted_and_five_percent_more_is_rejected(k):
    picks = many_top_k(SCORES, k, KAPPA, make_generator(k), 25_000)
    draws = [frozenset(row) for row in picks.tolist()]
    assert p_value(draws, law(SCORES, k, KAPPA)) > 1e-4
    assert p_value(draws, law(SCORES, k, 1.1 * KAPPA)) < 1e-6


def test_after_the_best_are_gone_the_rest_are_drawn_by_their_own_law():
    """A leader 60 nats ahead: the second pick must not see rounding of weights relative to the first."""
    scores = np.concatenate([[80_000], SCORES])
    picks = many_top_k(scores, 2, KAPPA, make_generator(7), 20_000)
    draws = [frozenset(row) for row in picks.tolist()]
    assert all(0 in draw for draw in draws)
    seconds = [draw - {0} for draw in draws]
    expected = {
        frozenset({j + 1}): p
        for (j,), p in ((tuple(s), p) for s, p in law(SCORES, 1, KAPPA).items())
    }
    assert p_value(seconds, expected) > 1e-4


def test_a_second_pick_among_weights_that_are_all_one():
    """Weights are whole: 24 bits below the best one they are all 1, and acceptance alone makes the law. Zero bits alone
    (1, 1 and 1/2 here) would give .4, .4 and .2 instead of .47, .32 and .21. False alarm: 1e-5."""
    scores, kappa = np.array([0, -168, -172, -176]), 0.1
    picks = many_top_k(scores, 2, kappa, make_generator(6), 20_000)
    assert (picks[:, 0] == 0).all()
    counts = np.bincount(picks[:, 1], minlength=4)[1:]
    weights = np.exp(kappa * (scores[1:] - scores[1]))
    expected = weights / weights.sum() * counts.sum()
    assert stats.chisquare(counts, expected).pvalue > 1e-5
    coarse = np.array([0.4, 0.4, 0.2]) * counts.sum()
    assert stats.chisquare(counts, coarse).pvalue < 1e-12


def test_unlikely_candidates_stay_possible():
    """One candidate seven nats behind thirty equal ones is drawn as often as it should be, not never."""
    behind = 7.0
    scores = np.append(np.full(30, 0), -int(behind * 1000)).astype(np.int64)
    n = 150_000
    hits = int((many_top_k(scores, 1, 1e-3, make_generator(3), n) == 30).sum())
    share = math.exp(-behind) / (30 + math.exp(-behind))
    assert hits > 0
    assert stats.binomtest(hits, n, share).pvalue > 1e-4


def test_without_noise_the_largest_are_taken():
    for k in (1, 3, 6):
        picks = top_k(SCORES, k, math.inf, make_generator(0))
        assert (
            picks.tolist() == np.argsort(-SCORES, kind="stable")[:k].tolist()
        )  # in the order drawn


def test_all_candidates_when_k_is_large():
    assert sorted(top_k(SCORES, 10, KAPPA, make_generator(0)).tolist()) == list(range(6))


def test_wide_scores_and_many_picks():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 2**50, 20_000)
    picks = top_k(scores, 300, 2.0**-30, make_generator(1))
    assert len(set(picks.tolist())) == 300
    assert scores[picks].min() >= np.sort(scores)[-400]


def test_the_range_of_picks_is_charged_and_attained():
    """Scores that move by +1 and -1 change the law of k picks by up to k * 2 kappa, no more."""
    kappa, k = 0.9, 2
    # two groups far apart from each other: both picks come from where the neighbours differ
    before = np.array([0.0, 0.0, 1.0, 1.0]) * 20.0
    after = before + np.array([1.0, 1.0, -1.0, -1.0])
    p, q = (law(v, k, kappa) for v in (before, after))
    ratio = max(abs(math.log(p[s] / q[s])) for s in p)
    assert 0.99 * k * 2 * kappa <= ratio <= k * 2 * kappa * (1 + 1e-12)

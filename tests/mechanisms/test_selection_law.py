"""Every selection has the law of the exponential mechanism, exactly as far as a test can see.

Seeds are fixed; a right law fails a chi-square test here with probability 1e-5.
"""

from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba import njit
from scipy.stats import chisquare

from dpsparse.mechanisms.top_k import top_k
from dpsparse.methods.frank_wolfe import kernel
from dpsparse.methods.frank_wolfe.run import Steps
from dpsparse.published.khanna_lu_raff_2023_sparsifier import NoisyMaxSteps
from dpsparse.random import make_generator
from hot_cold import HotColdSampler, many_top_k
from plain_frank_wolfe import gumbel_draw


class PickOfParts:
    """How a vertex is drawn where rows are in many parts: scores are made anew at every step."""

    kind = Steps

    def __init__(self, kappa):
        self.steps = self.kind(None, SimpleNamespace(unit_kappa=kappa))

    def rebuild(self, scores):
        self.scores = np.concatenate([scores, -scores])

    def draws(self, rng, n):
        first = self.steps.pick(self.scores, make_generator(1))
        drawn = many_top_k(self.scores, 1, self.steps.problem.unit_kappa, make_generator(1), 1)
        assert drawn.ravel().tolist() == [first]  # what is tested below is what a step calls
        return many_top_k(self.scores, 1, self.steps.problem.unit_kappa, rng, n).ravel()


class PrintedPick(PickOfParts):
    kind = NoisyMaxSteps

    def draws(self, rng, n):
        return np.array([self.steps.pick(self.scores, rng) for _ in range(n)])


class Gumbel:
    """The oracle."""

    def __init__(self, kappa):
        self.kappa = kappa

    def rebuild(self, scores):
        self.scores = scores

    def draws(self, rng, n):
        picks = (gumbel_draw(self.scores, self.kappa, rng) for _ in range(n))
        return np.array([cell + self.scores.size * (sign < 0) for cell, sign in picks])


PRIVATE = [Gumbel, PickOfParts, HotColdSampler]


def exact_law(scores, kappa):
    """Probabilities of (cell, +) and (cell, -), in that order."""
    keys = np.concatenate([kappa * scores, -kappa * scores])
    p = np.exp(keys - keys.max())
    return p / p.sum()


def counts_of(selection, n_draws, n_cells, seed=1):
    return np.bincount(selection.draws(make_generator(seed), n_draws), minlength=2 * n_cells)


def p_value(counts, law):
    """Chi-square with cells of small expectation pooled."""
    expected = law * counts.sum()
    small = expected < 8
    if small.any() and expected[small].sum() > 0:
        counts = np.append(counts[~small], counts[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
    return chisquare(counts, expected).pvalue


@pytest.mark.parametrize("kind", PRIVATE)
@pytest.mark.parametrize("spread", [0.05, 3.0, 30.0])
def test_law_and_power(kind, spread):
    # spread = largest kappa |G|: noise-dominated, mixed, and skewed.
    scores = np.round(np.linspace(-1, 1, 41) ** 3 * 50_000).astype(np.int64)
    kappa = spread / 50_000
    selection = kind(kappa)
    selection.rebuild(scores)
    counts = counts_of(selection, 40_000, scores.size)
    assert p_value(counts, exact_law(scores, kappa)) > 1e-5
    if spread == 3.0:  # five per cent more or less noise is seen
        assert p_value(counts, exact_law(scores, 1.05 * kappa)) < 1e-5
        assert p_value(counts, exact_law(scores, kappa / 1.05)) < 1e-5


@pytest.mark.parametrize("spread", [1.0, 12.0])
def test_law_after_many_updates(spread):
    """10^5 updates through rises and falls of the whole range, then the law of the final scores.

    The sampler is handed a copy every time, and the array it was built from is overwritten: a draw must use what it
    was told last, and nothing else.
    """
    rng = np.random.default_rng(3)
    n_cells, kappa = 60, spread / 10_000
    scores = rng.integers(-10_000, 10_000, n_cells)
    selection = HotColdSampler(kappa)
    first = scores.copy()
    selection.rebuild(first)
    first[:] = 0
    stream = make_generator(2)
    for round_ in range(1000):
        cells = rng.integers(0, n_cells, 100)
        scores[cells] += rng.integers(-400, 401, 100)
        if round_ % 250 == 100:
            scores[:] //= 50  # the maximum collapses: a stale bound must not stall the draw
            cells = np.arange(n_cells)
        np.clip(scores, -10_000, 10_000, out=scores)
        told = scores.copy()
        selection.update(cells, told)
        selection.update(np.arange(n_cells), told)
        told[:] = 0
        selection.draws(stream, 1)
    counts = counts_of(selection, 30_000, n_cells)
    assert p_value(counts, exact_law(scores, kappa)) > 1e-5


@pytest.mark.parametrize("kind", [PickOfParts, HotColdSampler])
def test_high_skew_returns_and_is_right(kind):
    # One cell 200 nats above 3000 others, then pulled down among them: the draw must go on.
    scores = np.zeros(3001, np.int64)
    scores[7] = 200_000
    kappa = 1e-3
    selection = kind(kappa)
    selection.rebuild(scores)
    assert counts_of(selection, 200, scores.size)[7] == 200
    scores[7] = 7_000  # e^7 of 3001: about a quarter of all draws
    if kind is PickOfParts:
        selection.rebuild(scores)
    else:
        selection.update(np.array([7]), scores)
    counts = counts_of(selection, 20_000, scores.size)
    law = exact_law(scores, kappa)
    share = np.array([counts[7], counts.sum() - counts[7]])
    assert chisquare(share, np.array([law[7], 1 - law[7]]) * counts.sum()).pvalue > 1e-5


@pytest.mark.nojit
@pytest.mark.parametrize("kind", [PickOfParts, HotColdSampler])
def test_the_unlikely_sign_stays_reachable(kind):
    # Two cells of opposite score: wrong signs have probability 1/(1 + e^8), without the compiler 1/(1 + e^5.7).
    score, n_draws = (2848, 6000) if numba.config.DISABLE_JIT else (4000, 60_000)
    scores = np.array([score, -score], np.int64)
    selection = kind(1e-3)
    selection.rebuild(scores)
    counts = counts_of(selection, n_draws, 2, seed=5)
    assert p_value(counts, exact_law(scores, 1e-3)) > 1e-5
    wrong = counts[1] + counts[2]
    assert 4 <= wrong <= 50  # expected 20.1; Poisson tails below 1e-5


@pytest.mark.nojit
def test_small_acceptances_keep_relative_precision():
    # The event of probability 2^-70 cannot be drawn in a test; its exact halves can.
    rng = make_generator(4)
    zeros = njit(lambda rng, n: kernel._zeros(rng, n))  # inner functions have no Python wrapper
    hits = sum(zeros(rng, 3) for _ in range(40_000))
    assert abs(hits - 5000) < 5 * np.sqrt(40_000 / 8 * 7 / 8)
    assert not any(zeros(rng, 70) for _ in range(1000))


def test_a_candidate_however_unlikely_has_a_weight():
    """e^-800 is 0 in float64; its weight is 1 all the same, or it could not be drawn when others are gone."""
    assert top_k(np.array([0, -8000]), 2, 0.1, make_generator(0)).tolist() == [0, 1]


def test_laplace_noise_of_the_printed_draw():
    # P(first of two candidates wins) = 1 - e^-x (1/2 + x/4) for independent Laplace noise,
    # x = kappa (score difference); cells are made irrelevant by one far below.
    selection = PrintedPick(1e-3)
    selection.rebuild(np.array([500], np.int64))  # (0, +) has score 500, (0, -) has -500
    counts = counts_of(selection, 20_000, 1)
    p = 1.0 - np.exp(-1.0) * (0.5 + 0.25)
    assert chisquare(counts, np.array([p, 1 - p]) * 20_000).pvalue > 1e-5
    q = 1.0 - np.exp(-2.0) * (0.5 + 0.5)  # halved noise
    assert chisquare(counts, np.array([q, 1 - q]) * 20_000).pvalue < 1e-12


def skewed_scores():
    """Three dense columns far apart and 500 rare ones: cells from 2^-20 of the top down are cold."""
    rare = np.random.default_rng(0).integers(-40, 41, 500)
    return np.append([9_000, -7_500, 6_000], rare).astype(np.int64)


@pytest.mark.parametrize("seed", range(20))
def test_three_dense_and_many_rare_columns(seed):
    """An earlier run of this case gave p = 0.0018; 20 seeds of a right law give p < 1e-6 once in 50,000."""
    selection = HotColdSampler(1e-3)
    selection.rebuild(skewed_scores())
    counts = counts_of(selection, 20_000, 503, seed=100 + seed)
    assert p_value(counts, exact_law(skewed_scores(), 1e-3)) > 1e-6


class Floored(HotColdSampler):
    """Fault: whatever is less likely than 2^-10 of the most likely pair cannot happen."""

    def draws(self, rng, n):
        drawn = super().draws(rng, 2 * n)
        score = np.concatenate([self.state.sampler.score, -self.state.sampler.score])
        return drawn[self.kappa * (score.max() - score[drawn]) < 10 * np.log(2.0)][:n]


@pytest.mark.parametrize("kind", [*PRIVATE, Floored])
def test_unlikely_vertices_are_possible(kind):
    """All pairs below 2^-10 of the best together: expected 200 of 20,000, never none."""
    scores = np.append([8_000], np.full(60, 500)).astype(np.int64)
    selection = kind(1e-3)
    selection.rebuild(scores)
    law = exact_law(scores, 1e-3)
    unlikely = law < law.max() * 2.0**-10
    expected = 20_000 * law[unlikely].sum()
    assert 100 < expected < 3000
    seen = counts_of(selection, 20_000, scores.size)[unlikely].sum()
    caught = abs(seen - expected) > 6.0 * np.sqrt(expected)  # false alarm below 1e-8
    assert caught == (kind is Floored)

"""Rounded Gaussian noise: its law, its close calls, and sums that rounding cannot betray.

Seeds are fixed; a fresh seed would fail a chi-square test here with probability 1e-4.
"""

import math
from functools import partial

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from dpsparse import random as _noise
from dpsparse.accounting import (
    Gaussian,
    Geometric,
    Phase,
    Plan,
    RoundedGaussian,
    Sequence,
    calibrate,
    delta,
    epsilon,
)
from dpsparse.exceptions import CalibrationError, InternalError
from dpsparse.random import STEPS, integers, make_generator
from dpsparse.release import Releases
from dpsparse.rows import Query
from dpsparse.sensitivity import signed_sum


def p_value(draws, scale=1.0):
    """Chi-square of draws/STEPS against N(0, scale^2) in 60 cells."""
    edges = stats.norm.ppf(np.linspace(0, 1, 61)[1:-1]) * scale
    counts = np.bincount(np.searchsorted(edges, draws / STEPS), minlength=60)
    return stats.chisquare(counts).pvalue


def spread_p_value(z):
    """Two-sided chi-square of the sum of squares."""
    law, value = stats.chi2(len(z)), float(np.square(z, dtype=np.float64).sum())
    return 2 * min(law.cdf(value), law.sf(value))


def test_law_is_accepted_and_one_percent_more_or_less_is_rejected():
    draws = integers(make_generator(1), 2_000_000)
    assert p_value(draws) > 1e-4
    assert p_value(draws, 0.99) < 1e-9
    assert p_value(draws, 1.01) < 1e-9


def test_short_vectors_draw_the_same_law():
    """Below 2^15 values one thread draws; above, eight streams do."""
    rng = make_generator(2)
    assert p_value(np.concatenate([integers(rng, 20_000) for _ in range(50)])) > 1e-4


def test_a_release_has_the_stated_scale():
    """Accepts the scale, rejects 3 % less: the test that fails if a constant is halved."""
    event = RoundedGaussian(7.0, 1.0, 40_000)
    plan = Plan("toy", (Phase("sum", event),), 1.0, 0.1, "add-remove", proven=False)
    silent = Query((40_000,), partial(signed_sum, 1.0), lambda unit: np.zeros(40_000, np.int64))
    z = Releases(plan, make_generator(5)).gaussian("sum", silent) / 7.0
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert spread_p_value(z) > 1e-4
    assert spread_p_value(z / 0.97) < 1e-9
    half = Releases(plan, make_generator(6)).gaussian("sum", silent, 0.5) / (7.0 * math.sqrt(2.0))
    assert spread_p_value(half) > 1e-4


def test_a_phase_cannot_release_more_than_it_pays():
    plan = Plan("toy", (Phase("sum", RoundedGaussian(7.0)),), 1.0, 0.1, "add-remove", proven=False)
    silent = Query((1,), partial(signed_sum, 1.0), lambda unit: np.zeros(1, np.int64))
    releases = Releases(plan, make_generator(0))
    releases.gaussian("sum", silent, 0.7)
    with pytest.raises(CalibrationError, match="more than it pays"):
        releases.gaussian("sum", silent, 0.7)
    with pytest.raises(CalibrationError, match="no phase"):
        releases.gaussian("other", silent)


def test_low_bits_tails_and_signs():
    draws = integers(make_generator(3), 2_000_000)
    low = np.bincount(draws & 63, minlength=64)
    assert stats.chisquare(low).pvalue > 1e-4
    assert stats.binomtest(int((draws > 0).sum()), int((draws != 0).sum())).pvalue > 1e-4
    beyond = int((np.abs(draws) > 4 * STEPS).sum())
    assert stats.binomtest(beyond, draws.size, 2 * stats.norm.sf(4)).pvalue > 1e-4


def test_proposal_dominates_the_law_and_alias_table_is_exact():
    """W_b / width >= Q P(k) in every bin, so acceptance never exceeds 1; the columns add up."""
    threshold, alias = _noise._THRESHOLD.astype(int), _noise._ALIAS.astype(int)
    weight = threshold.copy()
    np.add.at(weight, alias, 2**16 - threshold)
    assert weight.sum() == 2048 * 2**16
    b = np.arange(2048)
    worst = _noise._ACCEPT * (1 + np.maximum((b / 128.0) ** 2 - 1, -1) / (24.0 * STEPS**2))
    assert worst.max() <= 1.0
    ratio = weight / np.exp(-((b / 128.0) ** 2) / 2) * _noise._ACCEPT
    assert np.ptp(ratio[1:]) / ratio[1] < 1e-9  # one and the same Q for every bin
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-9)


@pytest.mark.nojit
@pytest.mark.parametrize("bin_", [0, 1, 100, 517, 1300])
def test_close_calls_against_sixty_digits(bin_):
    """The double-double comparison is right on both sides of the boundary, 2^-85 away."""
    mp.dps = 60
    rng = np.random.default_rng(bin_)
    for offset in rng.integers(0, 2**21, 20):
        offset = int(offset)
        exponent = offset * (offset + 2 * 2**21 * bin_)
        k = mpf(bin_ * 2**21 + offset) / STEPS
        accept = mpf(float(_noise._ACCEPT[bin_])) + mpf(float(_noise._ACCEPT_LOW[bin_]))
        accept *= mp.exp(-mpf(exponent) / (2 * mpf(STEPS) ** 2))
        accept *= 1 + (k * k - 1) / (24 * mpf(STEPS) ** 2)
        for side in (-1, 1):
            u = 16 * (accept + side * mpf(2) ** -85)
            coin = int(u)
            rest = int((u - coin) * 2**53)
            last = (u - coin) * 2**53 - rest
            answer = _noise._accepts_closely(
                bin_, np.int64(exponent), coin, rest * 2.0**-53, float(last)
            )
            assert bool(answer) == (side < 0)


@pytest.mark.nojit
def test_acceptance_includes_the_rounding_of_the_gaussian():
    """P(round(Z) = k) over the density at k: the correction of the note, at small STEPS."""
    steps = 40
    k = np.arange(0, 200)
    exact = stats.norm.cdf((k + 0.5) / steps) - stats.norm.cdf((k - 0.5) / steps)
    density = stats.norm.pdf(k / steps) / steps
    x = k / steps
    np.testing.assert_allclose(exact / density, 1 + (x**2 - 1) / (24 * steps**2), atol=3e-7)


def test_streams_do_not_depend_on_threads(monkeypatch):
    results = []
    for cores in (1, 4):
        monkeypatch.setattr("dpsparse.threads.process_cores", lambda cores=cores: cores)
        results.append(integers(make_generator(4), 50_000))
    np.testing.assert_array_equal(*results)


def test_long_secure_vectors_follow_the_law_and_never_repeat():
    """The streams of a secure generator's blocks are kept from one vector to the next. A fresh key fails this with
    probability 1e-4 (the law) and less than 1e-6 (the correlations of 120 pairs of independent blocks beyond 6 sd)."""
    rng = make_generator(None)
    first, second = integers(rng, 400_000), integers(rng, 400_000)
    assert p_value(np.concatenate([first, second])) > 1e-4
    blocks = np.concatenate([first, second]).reshape(16, -1)
    assert len(np.unique(blocks[:, :8])) > 100  # of 128: a key used again would leave half of them
    correlations = np.corrcoef(blocks)[np.triu_indices(16, 1)]
    assert np.abs(correlations).max() < 6.0 / math.sqrt(blocks.shape[1])


class TestAccounting:
    @pytest.mark.parametrize("eps", [0.1, 1.0, 3.0])
    def test_costs_what_gaussian_noise_costs(self, eps):
        exact = calibrate(Gaussian, eps, 1e-6)
        rounded = calibrate(lambda s: RoundedGaussian(s, 1.0, 10**9), eps, 1e-6)
        assert exact <= rounded <= exact * (1 + 1e-9)

    def test_slack_is_charged(self):
        event = RoundedGaussian(4.0, 1.0, 2**70)  # absurdly many values: slack 2^-20
        clean = Gaussian(4.0)
        assert delta(event, 1.0) >= delta(clean, 1.0) + (1 + math.e) * 2.0**-20
        assert delta(event, epsilon(event, 1e-4)) <= 1e-4
        assert epsilon(event, 1e-4) > epsilon(clean, 1e-4)
        assert epsilon(event, 1e-7) == math.inf

    def test_large_epsilon_does_not_blow_up_the_slack(self):
        event = RoundedGaussian(0.2, 1.0, 10**8)
        assert delta(event, 60.0) <= delta(event, 20.0)

    def test_beside_other_noise_it_is_charged_too(self):
        mixed = Sequence((RoundedGaussian(4.0, 1.0, 2**70), Geometric(50.0)))
        clean = Sequence((Gaussian(4.0), Geometric(50.0)))
        assert delta(mixed, 1.0) >= delta(clean, 1.0) + 2.0**-20
        assert delta(mixed, epsilon(mixed, 1e-4)) <= 1e-4 * (1 + 1e-9)


def one_by_one(rng, out):
    """The sampler of docs/proofs/rounded_gaussian.md, Lemma 3, as it stands there: the twin of the fast loops."""
    for i in range(len(out)):
        while True:
            word = int(rng.random() * 2.0**53)
            column, coin, minus = word >> 42, word & 15, word >> 4 & 1
            own = (word >> 26 & 0xFFFF) < int(_noise._THRESHOLD[column])
            bin_ = column if own else int(_noise._ALIAS[column])
            offset = word >> 5 & 2**21 - 1
            k = bin_ * 2**21 + offset
            sure = coin < _noise._QUICK[bin_]
            accepted = sure or _noise._accepts(bin_, offset, coin, rng.random(), rng.random())
            if accepted and (k > 0 or minus == 0):
                break
        out[i] += -k if minus else k


@pytest.mark.nojit
@pytest.mark.parametrize("size", [1, 2, 3, 1023, 1024, 1025, 7000])
def test_words_taken_ahead_change_neither_the_noise_nor_where_the_stream_ends(size):
    for seed in range(3):
        fast, slow = make_generator(seed), make_generator(seed)
        found, expected = np.arange(size), np.arange(size)
        _noise._add(fast, found)
        one_by_one(slow, expected)
        assert np.array_equal(found, expected)
        assert fast.random() == slow.random()


class Scripted:
    """A stream of given words, and then of zeros."""

    def __init__(self, words):
        self.words = list(words)

    def random(self):
        return (self.words.pop(0) if self.words else 0) * 2.0**-53


@pytest.mark.nojit
@pytest.mark.parametrize("first", [0b10000, 0b11111, 0b01111, 0])
def test_zero_is_counted_once(first):
    """Minus zero is drawn anew, whether it was accepted at once (coin 0) or after a closer look (coin 15)."""
    if hasattr(_noise._add, "py_func"):
        add = _noise._add.py_func
    else:
        add = _noise._add
    then = (5 << 42) + (7 << 5)  # bin 5, offset 7
    streams = [Scripted([first, 0, 0, then, then]) for _ in range(2)]
    found, expected = np.zeros(2, np.int64), np.zeros(2, np.int64)
    add(streams[0], found)
    one_by_one(streams[1], expected)
    assert np.array_equal(found, expected)
    assert streams[0].words == streams[1].words


@pytest.mark.parametrize("again", [[], [0]])
def test_noise_that_was_not_drawn_is_noticed(monkeypatch, again):
    """Whatever threads do: a vector without all of its noise does not leave, whatever block has it twice."""

    def lazy(task, blocks, threads):
        for block in [*blocks][:-1] + again:
            task(block)

    monkeypatch.setattr(_noise, "in_threads", lazy)
    with pytest.raises(InternalError, match="noise was not drawn"):
        integers(make_generator(0), 2**15)

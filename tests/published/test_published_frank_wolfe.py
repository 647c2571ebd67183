"""Raff, Khanna and Lu (2023) as printed: Algorithm 2 with the heap of Algorithm 3, and the sampler of Algorithm 4."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit
from scipy.stats import chisquare

from dpsparse.published.raff_khanna_lu_2023_lasso import (
    _scan,
    add_up_groups,
    big_step_little_step,
    stale_lasso,
    update_weight,
)
from dpsparse.random import make_generator
from lab.papers.operations import fast


@pytest.mark.usefixtures("uncompiled_heap")
def test_the_heap_of_algorithm_3_takes_the_largest_magnitude_from_stale_keys():
    """On sparse rows the weights are those of Algorithm 2 with a look at every feature; few items are popped."""
    rng = make_generator(5)
    X = sp.random_array((300, 80), density=0.1, format="csr", rng=rng)
    y = (rng.random(300) < 0.5).astype(int)
    heap, _, _, pops = fast(X, y, 5.0, 200)
    largest = stale_lasso(X, y, rng, radius=5.0, n_iter=200, kappa=math.inf)
    assert heap == pytest.approx(largest, abs=1e-9)
    assert pops.mean() < 80 / 2


def printed_sampler(
    v: np.ndarray, c: np.ndarray, rng: np.random.Generator, max_steps: int = 10_000
) -> int:
    """Algorithm 4, GETNEXT, line by line: log-weights `v`, log-sums `c` of groups of sqrt(N). It does not return.

    Line 4 divides log U by exp(v_j - z): a negative threshold. Line 21 multiplies exp(exp(.)) by that negative
    number, where A-ExpJ has exp(w_j log T_w), so that t_w is below 0, and the next U(t_w, 1) may be negative:
    its logarithm is not a number (2000 of 2000 draws). The group of item c is read at c mod sqrt(N) where it is
    c div sqrt(N), the walk starts at item 0, which line 2 has drawn already, and lines 23 to 26 keep the offset
    where a group begins and drop it inside. `dpsparse.published.raff_khanna_lu_2023_lasso` has the sampler it means.
    Raises FloatingPointError where the printed algorithm takes the logarithm of a negative number, IndexError where
    it leaves the table, RuntimeError where it has walked `max_steps` steps.
    """
    n = len(v)
    size = math.isqrt(n)
    z = float(np.logaddexp.reduce(v))

    def uniform_log(low: float) -> float:
        u = low + (1.0 - low) * rng.random()
        if u <= 0.0:
            raise FloatingPointError("logarithm of a negative number (lines 21 and 22)")
        return math.log(u)

    j, offset = 0, math.exp(v[0] - z)  # lines 2, 3
    log_t = uniform_log(0.0) / math.exp(v[j] - z)  # line 4
    at = steps = 0  # line 5
    while at < n:  # line 6
        x = uniform_log(0.0) / log_t  # line 7
        while math.exp(c[at % size] - z) - offset < x:  # lines 8-12
            x -= math.exp(c[at % size] - z) - offset
            offset, at, steps = 0.0, size - at % size, steps + 1
            if steps > max_steps:
                raise RuntimeError("the walk over groups goes round in circles (line 11)")
        while math.exp(v[at] - z) < x:  # lines 13-17
            x -= math.exp(v[at] - z)
            offset += math.exp(v[at] - z)
            at += 1
        if at < n:  # lines 18-28
            j, at = at, at + 1
            t_w = math.exp(math.exp(v[j] - z)) * log_t
            log_t = uniform_log(t_w) / math.exp(v[j] - z)
            offset = 0.0 if j % size else offset + math.exp(v[j] - z)
    return j


def test_the_printed_sampler_never_returns():
    """200 of 200 draws end in the logarithm of a negative number or outside the table."""
    rng = make_generator(3)
    v = rng.standard_normal(100)
    c = np.array([np.logaddexp.reduce(v[k * 10 : k * 10 + 10]) for k in range(10)])
    for _ in range(200):
        with pytest.raises((FloatingPointError, IndexError, RuntimeError)):
            printed_sampler(v, c, rng)


@njit(cache=True)
def count_draws(v, c, z, side, rng, n_draws):
    counts = np.zeros(v.size, np.int64)
    for _ in range(n_draws):
        counts[big_step_little_step(v, c, z, side, rng)] += 1
    return counts


def draws_of(v, side, n_draws, seed=0):
    c = np.empty(-(-v.size // side))
    z = add_up_groups(v, side, c)
    return count_draws(v, c, z, side, make_generator(seed), n_draws)


def p_value(counts, v):
    p = np.exp(v - v.max())
    expected = p / p.sum() * counts.sum()
    small = expected < 8
    if small.any():
        counts = np.append(counts[~small], counts[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
    return chisquare(counts, expected).pvalue


@pytest.mark.parametrize(("size", "side"), [(100, 10), (103, 10), (7, 1), (9, 9)])
def test_algorithm_4_repaired_has_the_law_of_the_exponential_mechanism(size, side):
    """Accepts the temperature, rejects one that is 5 % off (false alarms 1e-5, seeds are fixed)."""
    v = 6.0 * np.linspace(0, 1, size)[np.random.default_rng(1).permutation(size)] ** 2
    counts = draws_of(v, side, 200_000)
    assert p_value(counts, v) > 1e-5
    assert p_value(counts, 1.05 * v) < 1e-5
    assert p_value(counts, v / 1.05) < 1e-5


@pytest.mark.parametrize("top", [0.0, 3.5])
def test_scan_and_rejection_have_the_law_of_the_exponential_mechanism(top):
    alpha = np.linspace(-3.0, 3.0, 41)

    @njit
    def draw(rng):
        counts = np.zeros(alpha.size, np.int64)
        for _ in range(200_000):
            counts[_scan(alpha, 0.5, top, rng)] += 1
        return counts

    counts = draw(make_generator(1))
    assert p_value(counts, 0.5 * np.abs(alpha)) > 1e-5
    assert p_value(counts, 0.55 * np.abs(alpha)) < 1e-5


def test_algorithm_4_repaired_keeps_its_law_after_updates():
    """Large items shrink and small ones grow: running log-sums would have lost all digits."""
    rng, size, side = np.random.default_rng(2), 90, 9
    v = rng.uniform(0, 40, size)
    c = np.empty(10)
    add_up_groups(v, side, c)
    final = rng.uniform(0, 4, size)
    for _ in range(3):
        for i in rng.permutation(size):
            update_weight(v, c, side, int(i), float(rng.uniform(0, 40)))
    for i in range(size):
        update_weight(v, c, side, i, float(final[i]))
    fresh = np.empty(10)
    add_up_groups(final, side, fresh)
    np.testing.assert_allclose(c, fresh, rtol=0, atol=1e-9)
    counts = count_draws(v, c, c.max(), side, make_generator(3), 100_000)
    assert p_value(counts, final) > 1e-5


def test_the_two_draws_of_algorithm_2_agree_where_noise_is_tiny():
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 40), density=0.3, rng=rng, format="csr")
    y = (X @ rng.standard_normal(40) > 0).astype(int)
    facts = {"radius": 5.0, "n_iter": 30, "kappa": 1e4}
    found = [
        stale_lasso(X, y, make_generator(0), draw=draw, **facts) for draw in ("printed", "scan")
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)

"""Raff, Khanna and Lu (2023) as printed: the heap, Algorithm 2 with it, and the sampler that does not return."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare

from _raff_khanna_lu import (
    FibonacciHeap,
    HeapQueue,
    expected_sparsity,
    fast_frank_wolfe,
    printed_sampler,
)
from dpsparse.published.raff_khanna_lu_2023_lasso import (
    add_up_groups,
    big_step_little_step,
    stale_lasso,
    update_weight,
)
from dpsparse.random import make_generator


def test_heap_pops_in_order_after_random_operations():
    """Against a plain dictionary: 3,000 operations, half of them decrease-key."""
    rng = make_generator(0)
    keys = rng.random(200)
    heap, known = FibonacciHeap(keys), dict(enumerate(keys))
    for _ in range(3000):
        action = rng.random()
        if action < 0.5 and known:
            item = int(rng.choice(list(known)))
            known[item] -= rng.random()
            heap.decrease(item, known[item])
        elif action < 0.75 and known:
            item = heap.pop()
            assert known.pop(item) == min([known.get(item, math.inf), heap.key[item]])
            assert all(heap.key[item] <= key for key in known.values())
        else:
            absent = [i for i in range(200) if i not in known]
            if absent:
                known[absent[0]] = rng.random()
                heap.insert(absent[0], known[absent[0]])
    assert len(known) > 0


def test_queue_finds_the_largest_magnitude_from_stale_keys():
    rng = make_generator(1)
    alpha = rng.standard_normal(50)
    queue = HeapQueue(np.abs(alpha))
    for _ in range(200):
        changed = rng.integers(50, size=8)
        alpha[changed] = rng.standard_normal(8)
        for k in changed:
            queue.update(int(k), abs(alpha[k]))
        assert abs(alpha[queue.next(alpha)]) == np.abs(alpha).max()
    assert queue.pops < 200 * 50 / 2


def test_algorithms_2_and_3_take_the_steps_of_algorithm_1_on_full_rows():
    rng = make_generator(2)
    X = rng.uniform(0.1, 1.0, (40, 10)) * np.where(rng.random((1, 10)) < 0.5, -1, 1)
    y = (X @ rng.standard_normal(10) > 0).astype(int)
    w = np.zeros(10)
    for t in range(1, 41):
        alpha = X.T @ (1 / (1 + np.exp(-X @ w)) - y)
        j = int(np.argmax(np.abs(alpha)))
        w *= 1 - 2 / (t + 2)
        w[j] -= 2 / (t + 2) * 5.0 * np.sign(alpha[j])
    found, chosen, pops = fast_frank_wolfe(sp.csr_array(X), y, 5.0, 40)
    assert found == pytest.approx(w, abs=1e-9)
    assert pops >= len(chosen) == 40


def test_the_printed_sampler_never_returns():
    """200 of 200 draws end in the logarithm of a negative number or outside the table."""
    rng = make_generator(3)
    v = rng.standard_normal(100)
    c = np.array([np.logaddexp.reduce(v[k * 10 : k * 10 + 10]) for k in range(10)])
    for _ in range(200):
        with pytest.raises((FloatingPointError, IndexError, RuntimeError)):
            printed_sampler(v, c, rng)


def test_expected_sparsity_of_uniform_draws():
    rng = make_generator(4)
    share = [100.0 * (1 - len(np.unique(rng.integers(500, size=700))) / 500) for _ in range(200)]
    assert expected_sparsity(500, 700) == pytest.approx(np.mean(share), abs=0.6)
    assert expected_sparsity(500, 700, 0.5) == pytest.approx(50 + np.mean(share) / 2, abs=0.6)


def draws_of(v, side, n_draws, seed=0):
    c = np.empty(-(-v.size // side))
    z, rng = add_up_groups(v, side, c), make_generator(seed)
    drawn = [big_step_little_step(v, c, z, side, rng) for _ in range(n_draws)]
    return np.bincount(drawn, minlength=v.size)


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
    draw = make_generator(3)
    counts = np.bincount(
        [big_step_little_step(v, c, c.max(), side, draw) for _ in range(100_000)], minlength=size
    )
    assert p_value(counts, final) > 1e-5


def test_the_three_draws_of_algorithm_2_agree_where_noise_is_tiny():
    rng = np.random.default_rng(0)
    X = sp.random_array((200, 40), density=0.3, rng=rng, format="csr")
    y = (X @ rng.standard_normal(40) > 0).astype(int)
    facts = {"radius": 5.0, "n_iter": 30, "kappa": 1e4}
    found = [
        stale_lasso(X, y, make_generator(0), draw=draw, **facts)
        for draw in ("groups", "printed", "scan")
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-9)
    np.testing.assert_allclose(found[2], found[0], atol=1e-9)

"""Raff, Khanna and Lu (2023) as printed: the heap, Algorithm 2 with it, and the sampler that does not return."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from _raff_khanna_lu import (
    FibonacciHeap,
    HeapQueue,
    expected_sparsity,
    fast_frank_wolfe,
    printed_sampler,
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

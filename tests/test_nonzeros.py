"""Sparsifier of Khanna, Lu and Raff (2023): post-processing rules, and the law and price of the private count."""

import math

import numpy as np
import pytest

from dpsparse.accounting import Phase, Plan
from dpsparse.accounting.events import Geometric
from dpsparse.exceptions import CalibrationError, ParameterError
from dpsparse.nonzeros import (
    PrivateCount,
    check_n_nonzero,
    count_event,
    keep_nonzeros,
    mass_rule,
    top_k,
)
from dpsparse.release import Releases


def test_top_k_keeps_the_largest_and_breaks_ties_by_index():
    weights = np.array([[0.5, -2.0, 0.5], [1.0, 0.0, -0.5]])
    np.testing.assert_array_equal(top_k(weights, 3), [[0.5, -2.0, 0], [1.0, 0, 0]])
    np.testing.assert_array_equal(top_k(weights, 0), np.zeros((2, 3)))
    np.testing.assert_array_equal(top_k(weights, 99), weights)
    assert top_k(weights, 99) is not weights


def test_top_k_equals_a_full_sort():
    rng = np.random.default_rng(0)
    for k in range(0, 60, 7):
        weights = rng.integers(-4, 5, size=50).astype(float)
        keep = np.argsort(-np.abs(weights), kind="stable")[:k]
        expected = np.zeros(50)
        expected[keep] = weights[keep]
        np.testing.assert_array_equal(top_k(weights, k), expected)


def test_mass_rule():
    assert mass_rule(np.array([0.0, 9.0, -0.5, 0.5])) == 1
    assert mass_rule(np.array([5.0, -4.0, 1.0])) == 2
    assert mass_rule(np.array([5.0, -4.0, 1.5])) == 3
    assert mass_rule(np.zeros(4)) == 0


@pytest.mark.parametrize("bad", [-1, 1.5, "all", True, [3]])
def test_n_nonzero_is_refused_with_the_four_forms(bad):
    with pytest.raises(ParameterError, match="n_nonzero must be None"):
        check_n_nonzero(bad)


@pytest.mark.parametrize("bounds", [(3, 3), (5, 2), (math.sqrt(10), 2 * math.sqrt(10)), (-1, 4)])
def test_count_bounds_must_be_whole_and_ordered(bounds):
    # The paper's sqrt(p), 2 sqrt(p) give noisy counts with disjoint supports for neighbours.
    with pytest.raises(ParameterError, match="whole numbers"):
        PrivateCount(*bounds, epsilon=1.0)


def test_price_of_each_rule():
    assert count_event(None) is count_event(7) is count_event("mass") is None
    assert count_event(PrivateCount(10, 20, epsilon=0.05)) == Geometric(scale=200.0, sensitivity=10)


def release(rule: PrivateCount, count: int, n_weights: int, rng) -> int:
    """A noisy count through the door that fits use."""
    plan = Plan("toy", (Phase("count", rule.event),), math.inf, 0.1, "add-remove", proven=False)
    return Releases(plan, rng).count("count", rule, lambda silent: count, n_weights)


def test_small_numpy_integers_do_not_overflow():
    """With int8 bounds, the noisy count must not wrap round."""
    small = PrivateCount(np.int8(100), np.int8(120), epsilon=0.5)
    plain = PrivateCount(100, 120, epsilon=0.5)
    assert small.event == plain.event
    for count in (np.int8(100), np.uint8(200), np.int64(10**15), 110):
        draws = [
            [release(rule, count, np.int16(1000), np.random.default_rng(s)) for s in range(200)]
            for rule in (small, plain)
        ]
        assert draws[0] == draws[1]
        assert all(type(k) is int and 100 <= k <= 120 for k in draws[0])
    assert PrivateCount(1, 2, epsilon=np.float32(0.5)).epsilon == 0.5
    wide = PrivateCount(np.uint8(0), np.uint8(255), epsilon=1.0)
    assert wide.scale == 255.0
    for bad in (True, "1", math.nan, None):
        with pytest.raises(ParameterError):
            PrivateCount(1, 2, epsilon=bad)


def _law(rule: PrivateCount, count: int, n_draws: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    draws = [release(rule, count, 10**6, rng) for _ in range(n_draws)]
    return np.bincount(draws, minlength=rule.high + 1)[rule.low :]


def _exact_law(scale: float, low: int, high: int, count: int) -> np.ndarray:
    k = np.arange(-4000, 4001)
    p = np.exp(-np.abs(k) / scale)
    p /= p.sum()
    return np.bincount(np.clip(count + k, low, high) - low, weights=p, minlength=high - low + 1)


def _chi_square(counts: np.ndarray, law: np.ndarray) -> float:
    from scipy.stats import chisquare

    return float(chisquare(counts, law * counts.sum()).pvalue)


@pytest.mark.heavy
def test_private_count_follows_the_clipped_geometric_law():
    # One fixed seed; a right law fails with probability 1e-4. Halved noise must be rejected.
    rule = PrivateCount(4, 12, epsilon=2.0)
    counts = _law(rule, count=5, n_draws=20_000)
    assert _chi_square(counts, _exact_law(4.0, 4, 12, 5)) > 1e-4
    assert _chi_square(counts, _exact_law(2.0, 4, 12, 5)) < 1e-12
    assert _chi_square(counts, _exact_law(4.0 * 1.1, 4, 12, 5)) < 1e-4


def test_private_count_attains_its_epsilon():
    # Neighbours a and b: the log-ratio at the clipped ends is the whole of epsilon_1.
    rule = PrivateCount(4, 12, epsilon=2.0)
    first = _exact_law(rule.scale, 4, 12, 4)
    second = _exact_law(rule.scale, 4, 12, 12)
    worst = np.abs(np.log(first / second)).max()
    assert 0.99 * rule.epsilon <= worst <= rule.epsilon * (1 + 1e-9)


def test_precision_and_width_bound_the_kept_number():
    rng = np.random.default_rng(0)
    rule = PrivateCount(4, 12, epsilon=1e6, precision=1.5)
    assert release(rule, 6, 100, rng) == 9
    assert release(rule, 12, 10, rng) == 10


def test_free_rules_keep_the_largest_weights():
    weights = np.array([3.0, -2.0, 1.0, 0.1])
    assert keep_nonzeros(weights, None) is weights
    assert np.count_nonzero(keep_nonzeros(weights, 2)) == 2
    assert np.count_nonzero(keep_nonzeros(weights, "mass")) == 3


def test_a_private_count_is_released_once_and_charged():
    """`Releases.count` hands the exact count, made without noise, straight to the noise."""
    rule = PrivateCount(1, 3, epsilon=1e6)
    plan = Plan("toy", (Phase("count", rule.event),), 1.0, 0.1, "add-remove", proven=False)
    releases = Releases(plan, np.random.default_rng(0))
    assert releases.count("count", rule, lambda silent: 2, 4) == 2
    with pytest.raises(CalibrationError, match="more than it pays"):
        releases.count("count", rule, lambda silent: 2, 4)

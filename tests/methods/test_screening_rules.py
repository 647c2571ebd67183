"""Which features the free rules keep: levels under uniform selection, in closed form and drawn."""

import numpy as np
import pytest

from dpsparse.methods.frank_wolfe.screening import (
    Block,
    Counts,
    TopK,
    count_threshold,
    late_threshold,
)


def net_tail(n_steps, d, s):
    """P(|N+ - N-| >= s) by walking the chain step by step."""
    law = np.zeros(2 * n_steps + 1)
    law[n_steps] = 1.0
    for _ in range(n_steps):
        law = (1 - 1 / d) * law + (np.roll(law, 1) + np.roll(law, -1)) / (2 * d)
    return law[np.abs(np.arange(-n_steps, n_steps + 1)) >= s].sum()


@pytest.mark.parametrize("n_steps", [1, 7, 60])
@pytest.mark.parametrize("d", [1, 5, 40])
def test_count_threshold_is_the_smallest_that_keeps_the_level(n_steps, d):
    for level in (0.3, 0.1, 0.01, 1e-6):
        s = count_threshold(n_steps, d, level)
        assert net_tail(n_steps, d, s) <= level * (1 + 1e-9)
        assert s <= n_steps + 1
        assert net_tail(n_steps, d, s - 1) > level


def test_uniform_selection_keeps_no_more_than_the_level():
    """Average kept share over 300 runs of 200 uniform picks; P(exceeding level) below 1e-9."""
    rng, d, level = np.random.default_rng(0), 50, 0.1
    kept = []
    for _ in range(300):
        net = np.zeros(d, int)
        np.add.at(net, rng.integers(0, d, 200), rng.choice([-1, 1], 200))
        kept.append(Counts(level).keep(Block(net, np.zeros(d), 200, 1, 1)).mean())
    assert np.mean(kept) <= level
    assert np.mean(kept) == pytest.approx(
        net_tail(200, d, count_threshold(200, d, level)), abs=0.01
    )


@pytest.mark.parametrize(("n_steps", "d"), [(20, 100), (84, 601), (39, 123)])
def test_late_single_picks_use_up_the_level_and_no_more(n_steps, d):
    """All laws of three picks or fewer in closed form, more picks counted in full: the chance to stay is at most the
    level, and one step more would pass it."""
    level = 0.1
    late = late_threshold(n_steps, d, level)
    assert count_threshold(n_steps, d, level) == 2
    once = n_steps / d * (1 - 1 / d) ** (n_steps - 1)

    def chance(first):  # single picks from late count `first` on
        return net_tail(n_steps, d, 1) - once + once * (n_steps + 2 - first) / n_steps

    assert chance(late) <= level < chance(late - 1)
    rng, kept = np.random.default_rng(0), []
    for _ in range(400):
        net, counts = np.zeros(d, int), np.zeros(d, int)
        picks, signs = rng.integers(0, d, n_steps), rng.choice([-1, 1], n_steps)
        np.add.at(net, picks, signs)
        np.add.at(counts, picks, signs * (np.arange(n_steps) + 2))
        kept.append(Counts(level).keep(Block(net, counts, n_steps, 1, 1)).mean())
    assert 0.8 * level < np.mean(kept) <= level * 1.02


def test_late_single_picks_stay_only_where_steps_are_scarce():
    assert late_threshold(34, 100, 0.1) is None  # a third of the features
    assert late_threshold(5, 100, 0.1) is None  # one pick is enough
    assert late_threshold(20, 100, 1e-12) is None  # nothing is left to use up


def test_counts_decides_after_the_first_block_only():
    history = Block(np.array([0, 9, -9, 1]), np.ones(4), 20, 2, 2)
    assert Counts(0.05).keep(history).all()


def test_top_k_falls_geometrically_to_k():
    sizes, weights = [], np.arange(1000.0)
    for block in (1, 2, 3):
        keep = TopK(10).keep(Block(np.zeros(weights.size), weights, 5, block, 3))
        weights = weights[keep]
        sizes.append(weights.size)
    assert sizes == [215, 46, 10]
    np.testing.assert_array_equal(weights, np.arange(990.0, 1000.0))
    assert TopK(10).keep(Block(np.zeros(4), np.ones(4), 5, 1, 1)).all()

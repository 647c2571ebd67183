"""Which weights screening keeps: levels under uniform selection, in closed form and drawn; and what it reads."""

import numpy as np
import pytest

from dpsparse import Domain, DPLassoClassifier, DPScreenedLassoClassifier
from dpsparse.methods.frank_wolfe.run import History
from dpsparse.methods.frank_wolfe.solve import count_threshold, picked_beyond_chance


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
        cells, signs = rng.integers(0, d, 200), rng.choice([-1, 1], 200)
        history = History(cells // 5, cells % 5, signs, 1.0, 10, 5, 1.0)  # 10 features, 5 outputs
        kept.append(picked_beyond_chance(history, level).mean())
    assert np.mean(kept) <= level
    assert np.mean(kept) == pytest.approx(
        net_tail(200, d, count_threshold(200, d, level)), abs=0.01
    )


def test_picks_of_the_intercept_count_for_no_weight():
    history = History(np.array([3] * 9 + [1]), np.zeros(10, int), np.ones(10, int), 1.0, 3, 1, 1.0)
    assert not picked_beyond_chance(history, 1e-6).any()


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_screening_is_a_function_of_the_released_picks(n_classes):
    """The same seed draws the same picks as the plain LASSO; only the weights that are kept differ."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 30))
    y = np.digitize(X[:, 0], np.linspace(-1, 1, n_classes + 1)[1:-1])
    terms = {"epsilon": 5.0, "radius": 3.0, "n_iter": 60, "random_state": 0}
    domain = Domain(classes=list(range(n_classes)), n_samples=400)
    plain = DPLassoClassifier(domain, **terms).fit(X, y)
    screened = DPScreenedLassoClassifier(domain, level=0.05, **terms).fit(X, y)
    kept = picked_beyond_chance(plain.history_, 0.05)
    assert 0 < kept.sum() < np.count_nonzero(plain.coef_)
    np.testing.assert_array_equal(screened.coef_, np.where(kept, plain.coef_, 0.0))
    np.testing.assert_array_equal(screened.intercept_, plain.intercept_)

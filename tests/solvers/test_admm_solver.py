"""ADMM: proximal maps, the noise of every round, and convergence without noise."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from dpsparse.exceptions import ParameterError
from dpsparse.losses import Logistic, Squared
from dpsparse.random import make_generator
from dpsparse.solvers import admm


@pytest.mark.parametrize("threshold", [0.05, 0.4, 2.0])
@pytest.mark.parametrize(("penalty", "power"), [("l1", 1.0), ("l1/2", 0.5)])
def test_proximal_maps_minimise_their_objective(penalty, power, threshold):
    for v in np.linspace(-4, 4, 41):

        def cost(z):
            return (z - v) ** 2 / 2 + threshold * abs(z) ** power  # noqa: B023

        z = float(admm.shrink(np.array([v]), threshold, penalty)[0])
        brute = min(minimize_scalar(cost, bounds=(-5, 5), method="bounded").fun, cost(0.0))
        assert cost(z) <= brute + 1e-9


def rows_and_labels(n=200, d=5, seed=0):
    rng = np.random.default_rng(seed)
    rows = sp.csr_array(rng.uniform(-1, 1, (n, d)))
    return rows, (rows @ rng.standard_normal(d) > 0).astype(int)


def test_every_round_adds_fresh_noise_of_the_planned_scale(monkeypatch):
    """Rows without features: x is z - u plus noise, so the noise can be read off exactly."""
    rows, y = sp.csr_array((4, 3000)), np.array([0, 1, 0, 1])
    seen = []
    original = admm.minimise

    def spy(*arguments, **kwargs):
        seen.append(kwargs["centre"].copy())
        return original(*arguments, **kwargs)

    monkeypatch.setattr(admm, "minimise", spy)
    admm.private_admm(
        rows, y, np.ones(4), Logistic(), make_generator(1), penalty="l1", n_iter=4, coupling=1.0,
        threshold=1e-300, scale=0.7, tol=1e-9, free=0,
    )  # fmt: skip
    # With no threshold z = x + u and u returns to 0: centre_t = centre_{t-1} + noise_t.
    steps = np.diff(np.array(seen), axis=0)
    assert len(seen) == 4
    low, high = chi2.ppf([5e-7, 1 - 5e-7], steps.size)
    assert low <= np.sum((steps / 0.7) ** 2) <= high
    assert not low <= np.sum((steps / 0.665) ** 2) <= high
    assert not low <= np.sum((steps / 0.735) ** 2) <= high
    assert abs(np.corrcoef(steps[0], steps[1])[0, 1]) < 0.1  # fresh every round


def test_converges_to_the_lasso_without_noise():
    rows, y = rows_and_labels()
    strength, coupling = 3.0, 20.0
    z = admm.private_admm(
        rows, y, np.ones(200), Logistic(), make_generator(0), penalty="l1", n_iter=300,
        coupling=coupling, threshold=strength / coupling, scale=0.0, tol=1e-9, free=0,
    )  # fmt: skip
    gradient = rows.T @ Logistic().slope(rows @ z, y)
    active = z != 0
    assert np.allclose(gradient[active], -strength * np.sign(z[active]), atol=1e-4)
    assert np.all(np.abs(gradient[~active]) <= strength + 1e-4)


def test_intercept_is_not_shrunk():
    rows, y = sp.csr_array(np.ones((50, 1))), np.ones(50, int)
    kwargs = {
        "penalty": "l1",
        "n_iter": 20,
        "coupling": 5.0,
        "threshold": 5.0,
        "scale": 0.0,
        "tol": 1e-9,
    }
    arguments = (rows, y, np.ones(50), Logistic(), make_generator(0))
    assert admm.private_admm(*arguments, free=0, **kwargs)[0] == 0.0
    assert admm.private_admm(*arguments, free=1, **kwargs)[0] > 1.0


def test_squared_loss_is_refused():
    with pytest.raises(ParameterError, match="bounded"):
        admm.private_admm(
            np.ones((2, 1)), np.zeros(2), np.ones(2), Squared(), make_generator(0), penalty="l1",
            n_iter=1, coupling=1.0, threshold=1.0, scale=1.0, tol=1e-6, free=0,
        )  # fmt: skip

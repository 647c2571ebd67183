"""ADMM: proximal maps, the noise of every round, and convergence without noise."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from dpsparse.domain import Domain
from dpsparse.losses import Logistic
from dpsparse.noise import STEPS
from dpsparse.privacy import NonPrivate, Phase, Plan, Repeated, RoundedGaussian
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import RidgeRows, Rows
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


def table(X, y):
    domain = Domain(feature_bound=1.0, classes=[0, 1])
    return Rows.clip(sp.csr_array(X), np.asarray(y), domain, labels=np.array([0, 1]))


def public(**changes):
    facts = {
        "n_outputs": 1, "penalty": "l1", "n_iter": 4, "coupling": 1.0, "threshold": 1e-30,
        "row_clip": 100.0, "longest": 100.0, "tol": 1e-9, "constant": 0.0,
    }  # fmt: skip
    return admm.Admm(**{**facts, **changes})


def door(event, seed=0):
    plan = Plan("test", (Phase("x-updates", event),), math.inf, 1e-6, "add-remove", proven=False)
    return Releases(plan, make_generator(seed))


def test_every_round_adds_fresh_noise_of_the_planned_scale(monkeypatch):
    """Rows without features: x is z - u plus noise, so the noise can be read off exactly."""
    seen = []
    original = RidgeRows.problem

    def spy(self, loss, **facts):
        seen.append(facts["centre"].copy())
        return original(self, loss, **facts)

    monkeypatch.setattr(RidgeRows, "problem", spy)
    rows = table(np.zeros((4, 3000)), [0, 1, 0, 1])
    moved = 100.0 + 2e-9  # row_clip/coupling, and the tolerance on both tables
    paid = RoundedGaussian(0.7, moved + 0.7 * math.sqrt(3000) / STEPS, 3000)
    admm.solve(rows, public(), door(Repeated(paid, 4), 1))
    # With no threshold z = x + u and u returns to 0: centre_t = centre_{t-1} + noise_t.
    steps = np.diff(np.array(seen), axis=0)
    assert len(seen) == 4
    low, high = chi2.ppf([5e-7, 1 - 5e-7], steps.size)
    assert low <= np.sum((steps / 0.7) ** 2) <= high
    assert not low <= np.sum((steps / 0.665) ** 2) <= high
    assert not low <= np.sum((steps / 0.735) ** 2) <= high
    assert abs(np.corrcoef(steps[0], steps[1])[0, 1]) < 0.1  # fresh every round


def test_converges_to_the_lasso_without_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 5))
    y = (X @ rng.standard_normal(5) > 0).astype(int)
    strength, coupling = 3.0, 20.0
    recipe = public(n_iter=300, coupling=coupling, threshold=strength / coupling)
    z = admm.solve(table(X, y), recipe, door(NonPrivate())).coef[0]
    gradient = X.T @ Logistic().slope(X @ z, y)
    active = z != 0
    assert np.allclose(gradient[active], -strength * np.sign(z[active]), atol=1e-4)
    assert np.all(np.abs(gradient[~active]) <= strength + 1e-4)


def test_intercept_is_not_shrunk():
    rows = table(np.ones((50, 1)), np.ones(50, int))
    recipe = {"n_iter": 20, "coupling": 5.0, "threshold": 5.0}
    shrunk = admm.solve(rows, public(**recipe), door(NonPrivate()))
    assert shrunk.coef[0, 0] == 0.0
    free = admm.solve(rows, public(constant=1.0, **recipe), door(NonPrivate()))
    assert free.coef[0, 0] == 0.0
    assert free.intercept[0] > 1.0

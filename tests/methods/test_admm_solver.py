"""ADMM: proximal maps, the noise of every round, and convergence without noise."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from dpsparse import DPADMMClassifier
from dpsparse.accounting import NonPrivate, Phase, Plan, Repeated, RoundedGaussian
from dpsparse.domain import Domain
from dpsparse.losses import Logistic
from dpsparse.methods.support_first import solve
from dpsparse.methods.support_first.solve import Run
from dpsparse.published.wang_zhang_2020_admm import shrink
from dpsparse.random import STEPS, make_generator
from dpsparse.release import Releases
from dpsparse.rows import RidgeRows, Rows


@pytest.mark.parametrize("threshold", [0.05, 0.4, 2.0])
@pytest.mark.parametrize(("penalty", "power"), [("l1", 1.0), ("l1/2", 0.5)])
def test_proximal_maps_minimise_their_objective(penalty, power, threshold):
    for v in np.linspace(-4, 4, 41):

        def cost(z):
            return (z - v) ** 2 / 2 + threshold * abs(z) ** power  # noqa: B023

        z = float(shrink(np.array([v]), threshold, penalty)[0])
        brute = min(minimize_scalar(cost, bounds=(-5, 5), method="bounded").fun, cost(0.0))
        assert cost(z) <= brute + 1e-9


def set_threshold(monkeypatch, threshold):
    """Of the proximal step, whatever the noise."""
    monkeypatch.setattr(solve, "admm_threshold", lambda noise: threshold)


def run(X, y, phases, n_iter, seed=0, **changes):
    """Rounds of ADMM on rows as they are, and the columns they are on."""
    X = np.asarray(X, float)
    domain = Domain(feature_bound=1.0, classes=[0, 1], n_samples=len(X))
    model = DPADMMClassifier(domain, n_nonzero=X.shape[1])
    settings = replace(model.plan(X.shape[1]).settings, n_iter=n_iter, **changes)
    plan = Plan("test", (Phase("fit", phases),), math.inf, 1e-6, "add-remove", proven=False)
    rows = Rows.clip(sp.csr_array(X), np.asarray(y), domain, labels=np.array([0, 1]))
    return Run(rows, settings, Releases(plan, make_generator(seed))), rows


def alternate(X, y, phases, n_iter, **changes):
    fit, rows = run(X, y, phases, n_iter, **changes)
    settings = fit.settings
    return fit.alternate(rows.ridge(None, constant=1.0, row_clip=settings.row_clip, longest=100.0))


def test_every_round_adds_fresh_noise_of_the_planned_scale(monkeypatch):
    """Rows without features: x is z - u plus noise, so the noise can be read off exactly."""
    seen = []
    original = RidgeRows.problem

    def spy(self, loss, **facts):
        seen.append(facts["centre"].copy())
        return original(self, loss, **facts)

    monkeypatch.setattr(RidgeRows, "problem", spy)
    moved = 100.0 + 2e-9  # row_clip/ridge, and the tolerance on both tables
    paid = RoundedGaussian(0.7, moved + 0.7 * math.sqrt(1501) / STEPS, 1501)
    set_threshold(monkeypatch, 1e-30)
    facts = {"row_clip": 100.0, "ridge": 1.0, "tol": 1e-9, "seed": 1}
    alternate(np.zeros((4, 1500)), [0, 1, 0, 1], Repeated(paid, 7), 7, **facts)
    # With no threshold z = x + u and u returns to 0: centre_t = centre_{t-1} + noise_t.
    steps = np.diff(np.array(seen), axis=0)[:, :-1]
    assert len(seen) == 7
    low, high = chi2.ppf([5e-7, 1 - 5e-7], steps.size)
    assert low <= np.sum((steps / 0.7) ** 2) <= high
    assert not low <= np.sum((steps / 0.665) ** 2) <= high
    assert not low <= np.sum((steps / 0.735) ** 2) <= high
    assert abs(np.corrcoef(steps[0], steps[1])[0, 1]) < 0.1  # fresh every round


def test_converges_to_the_lasso_without_noise(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 5))
    y = (X @ rng.standard_normal(5) > 0).astype(int)
    strength, coupling = 3.0, 20.0
    set_threshold(monkeypatch, strength / coupling)
    facts = {"row_clip": 100.0, "ridge": coupling, "tol": 1e-9}
    z = alternate(X, y, NonPrivate(), 300, **facts)
    gradient = X.T @ Logistic().slope(X @ z[:-1] + z[-1], y)
    active = z[:-1] != 0
    assert np.allclose(gradient[active], -strength * np.sign(z[:-1][active]), atol=1e-4)
    assert np.all(np.abs(gradient[~active]) <= strength + 1e-4)


def test_intercept_is_not_shrunk(monkeypatch):
    set_threshold(monkeypatch, 5.0)
    z = alternate(np.ones((50, 1)), np.ones(50, int), NonPrivate(), 20, ridge=5.0)
    assert z[0] == 0.0
    assert z[1] > 1.0

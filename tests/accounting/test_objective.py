"""Objective perturbation: the exact one-dimensional profile lies below every bound we charge.

Deterministic: densities are integrated on a grid, nothing is sampled.
"""

import json
import math
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from dpsparse.accounting import (
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Repeated,
    Sequence,
    calibrate,
    objective,
)
from dpsparse.accounting import delta as delta_of
from dpsparse.accounting import epsilon as epsilon_of
from dpsparse.accounting.events import from_dict, to_dict
from dpsparse.exceptions import ParameterError

NODES = 20_001


@cache
def logistic(label):
    return (lambda m: expit(m) - label), (lambda m: expit(m) * expit(-m))


@cache
def huber(target):
    """Threshold 1, so slope and curvature bounds are 1."""
    return (lambda m: np.clip(m - target, -1.0, 1.0)), (lambda m: (abs(m - target) <= 1) * 1.0)


def log_densities(rows, neighbour, ridge, scale):
    """Exact log densities of both minimisers on one grid, and its width: b -> theta is one to one."""
    reach = (11.0 * scale + max(len(rows), len(neighbour))) / ridge
    theta = np.linspace(-reach, reach, NODES)
    out = []
    for data in (rows, neighbour):
        b, hessian = -ridge * theta, np.full_like(theta, ridge)
        for row in set(data):
            slope, curvature = row
            b = b - data.count(row) * slope(theta)
            hessian = hessian + data.count(row) * curvature(theta)
        out.append(
            -((b / scale) ** 2) / 2 - math.log(scale * math.sqrt(2 * math.pi)) + np.log(hessian)
        )
    width = theta[1] - theta[0]
    assert np.exp(out[0]).sum() * width == pytest.approx(1.0, abs=2e-3)
    return out[0], out[1], width


def hockey_stick(p, q, width, epsilon):
    """Smallest exact delta, the larger of the two directions."""
    return max(
        float(np.maximum(0.0, np.exp(a) - np.exp(epsilon + b)).sum() * width)
        for a, b in ((p, q), (q, p))
    )


GRID = [(f, mu) for f in (0.05, 0.25, 0.5, 1.0, 2.0) for mu in (0.1, 0.3, 1.0, 2.0)]


@pytest.mark.parametrize(("flatness", "mu"), GRID)
@pytest.mark.parametrize("replace_one", [False, True])
def test_exact_profile_lies_below_the_bound(flatness, mu, replace_one):
    scale = 1.0 / mu
    cases = [("one-sided", logistic(0), logistic(1), 0.25), ("glm", huber(3.0), huber(-3.0), 1.0)]
    for name, row, other, curvature in cases:
        ridge = curvature / flatness
        for others in ([], [row, other], [row] * 3, [other] * 20):
            rows = [*others, row]
            neighbour = [*others, other] if replace_one else others
            p, q, width = log_densities(rows, neighbour, ridge, scale)
            for epsilon in (0.05, 0.2, 0.5, 1.0, 2.0, 4.0):
                exact = hockey_stick(p, q, width, epsilon)
                names = ("one-sided", "glm") if name == "one-sided" else ("glm",)
                for loss in names:
                    bound = objective.delta_profile(mu, flatness, loss, replace_one, epsilon)
                    # jumps of Huber's curvature limit the exact side's quadrature to about 1e-3
                    slack = (1e-9, 1e-8) if name == "one-sided" else (2e-3, 1e-8)
                    assert exact <= bound * (1 + slack[0]) + slack[1]


def test_bound_is_attained():
    """A row whose slope stays at its bound moves b by all of L: the charge is met to 99 %, and
    charging half of L (half the noise) falls far below the truth."""
    mu, flatness, epsilon = 0.3, 1e-4, 0.5
    p, q, width = log_densities([huber(1e6)], [], 1.0 / flatness, 1.0 / mu)
    exact = hockey_stick(p, q, width, epsilon)
    bound = objective.delta_profile(mu, flatness, "one-sided", False, epsilon)
    assert 0.99 * bound <= exact <= bound * (1 + 1e-9)
    assert exact > 100 * objective.delta_profile(mu / 2, flatness, "one-sided", False, epsilon)
    # replace-one: a row at +L against a row at -L is the Gaussian mechanism with 2 mu
    p, q, width = log_densities([huber(1e6)], [huber(-1e6)], 1.0 / flatness, 1.0 / mu)
    exact = hockey_stick(p, q, width, epsilon)
    bound = objective.delta_profile(mu, flatness, "one-sided", True, epsilon)
    assert 0.8 * bound <= exact <= bound * (1 + 1e-9)


def scale_for(epsilon, delta, flatness, loss, replace_one=False):
    def excess(log_mu):
        return (
            objective.delta_profile(math.exp(log_mu), flatness, loss, replace_one, epsilon) - delta
        )

    return 1.0 / math.exp(brentq(excess, math.log(1e-4), math.log(20.0)))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0])
def test_noise_against_kifer_smith_thakurta(epsilon):
    """Their Gaussian scale is L sqrt(8 log(2/delta) + 4 epsilon)/epsilon at ridge 2 curvature/epsilon."""
    delta = 1e-6
    classical = math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon
    assert scale_for(epsilon, delta, epsilon / 2, "one-sided") <= 0.66 * classical  # same ridge
    assert scale_for(epsilon, delta, epsilon / 4, "one-sided") <= 0.50 * classical
    assert scale_for(epsilon, delta, epsilon / 4, "glm") <= 0.51 * classical  # twice the ridge
    assert scale_for(epsilon, delta, epsilon / 2, "glm") <= 0.68 * classical


def test_profile_is_monotone_and_continuous():
    for loss in ("glm", "one-sided"):
        for replace_one in (False, True):
            values = [
                objective.delta_profile(0.7, 0.3, loss, replace_one, e)
                for e in np.linspace(0, 6, 400)
            ]
            assert np.all(np.diff(values) <= 1e-12)
            assert np.max(-np.diff(values)) < 0.05
            assert 0.0 <= values[-1] <= values[0] <= 1.0


def test_event_reaches_the_accountant():
    event = ObjectivePerturbation(7.0, 1.0, 0.25, 0.5, "one-sided")
    spent = epsilon_of(event, 1e-6)
    assert delta_of(event, spent) <= 1e-6
    assert objective.delta_profile(1 / 7, 0.5, "one-sided", False, spent) == pytest.approx(
        1e-6, rel=0.01
    )
    assert from_dict(json.loads(json.dumps(to_dict(event)))) == event


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("loss", ["glm", "one-sided"])
def test_calibration_never_overspends(loss, adjacency):
    def make(scale):
        event = ObjectivePerturbation(scale, 2.0, 1.0, 8.0, loss, adjacency)
        return Sequence((Repeated(Exponential(0.01), 10), event, Gaussian(1.0, 1e-4)))

    scale = calibrate(make, 1.0, 1e-6)
    assert 0.999 < epsilon_of(make(scale), 1e-6) <= 1.0
    assert epsilon_of(make(scale / 2), 1e-6) > 1.5


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale": 0.0},
        {"ridge": -1.0},
        {"curvature": math.nan},
        {"loss": "softmax"},
        {"adjacency": "x"},
    ],
)
def test_impossible_events_are_refused(wrong):
    good = {"scale": 1.0, "gradient_bound": 1.0, "curvature": 0.25, "ridge": 1.0}
    with pytest.raises(ParameterError):
        ObjectivePerturbation(**(good | wrong))


@pytest.mark.parametrize("loss", ["one-sided", "glm"])
@pytest.mark.parametrize("replace_one", [False, True])
@pytest.mark.parametrize("mu", [1e-12, 1e-9, 1e-6, 1e-2, 1.0])
@pytest.mark.parametrize("x", [-1.0, 0.1, 3.0, 10.0])
def test_rounding_never_lowers_the_closed_forms(mu, x, loss, replace_one):
    flatness = mu / 3.0
    eps = max(0.0, math.log1p(flatness) + mu * x)
    with mp.workdps(60):
        m, e = mp.mpf(mu), mp.mpf(eps) - mp.log(1 + mp.mpf(flatness))

        def tail(z):
            return mp.erfc(z / mp.sqrt(2)) / 2

        def gaussian(m):
            return tail(e / m - m / 2) - mp.exp(e) * tail(e / m + m / 2)

        if loss == "glm" and replace_one:
            exact = 4 * gaussian(2 * m)
        elif loss == "glm":
            exact = 2 * gaussian(m) if e >= m**2 / 2 else 1 - 2 * mp.exp(e) * tail(m)
        elif replace_one:
            exact = gaussian(2 * m) + 2 * gaussian(m) + max(mp.mpf(0), 1 - mp.exp(e))
        else:
            exact = gaussian(m) if e >= 0 else 1 - 2 * mp.exp(e) * tail(m / 2)
        found = objective.delta_profile(mu, flatness, loss, replace_one, eps)
        assert found >= min(1, exact) * (1 - mp.mpf(2) ** -50)
        assert found == pytest.approx(min(1.0, float(exact)), rel=1e-12 / mu, abs=1e-14)

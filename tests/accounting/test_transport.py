"""Objective perturbation by transport: exact pairs stay below, finer grids only lower it, mutants are caught."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpsparse.accounting import Gaussian, ObjectivePerturbation, Repeated, epsilon, objective
from dpsparse.accounting.dominance import gaussian_parameter, gaussian_profile
from dpsparse.accounting.objective import transport_profile

W = np.linspace(-9.0, 9.0, 3601)
STEP = W[1] - W[0]
CASES = [(0.177, 0.25), (0.02, 0.025), (0.6, 1.0), (0.15, 0.6)]
LOSSES = ["one-sided", "glm"]


def path(mu, flatness, start, stops):
    """gamma on W: rises as fast as allowed from `start`, except between the given pairs of w."""
    gamma = np.empty_like(W)
    value = start
    for i, w in enumerate(W):
        gamma[i] = value
        if not any(a <= w < b for a, b in stops):
            value = min(mu, value + flatness * STEP)
    return gamma


def exact(gamma, epsilons):
    """Both profiles of the pair, by sums over fine cells of its masses: merging cells only lowers them."""
    p, q = np.diff(norm.cdf(W + gamma)), np.diff(norm.cdf(W))
    g = np.exp(epsilons)[:, None]
    forward = np.maximum(p - g * q, 0.0).sum(axis=1)
    return np.maximum(forward, np.maximum(q - g * p, 0.0).sum(axis=1))


def adversaries(loss, mu, flatness, count=12):
    """Rows that gain most: a slope from the far left, a pause, and a rise through the middle."""
    rng = np.random.default_rng(1)
    low = -mu if loss == "glm" else 1e-3 * mu
    for _ in range(count):
        start = low + (mu - low) * rng.uniform() ** 2
        first = rng.uniform(-3.0, 1.0)
        stops = [(-11.0, first)]
        if rng.uniform() < 0.5:
            second = first + rng.uniform(0.0, 2.0)
            stops.append((second, second + rng.uniform(0.0, 2.0)))
        yield path(mu, flatness, start, stops)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("mu", "flatness"), CASES)
def test_rows_stay_below_the_profile_and_its_gaussian(loss, mu, flatness):
    epsilons = mu * np.array([0.0, 0.1, 0.4, 0.8, 1.2, 2.0, 3.0])
    bound = transport_profile(mu, flatness, loss, epsilons)
    parameter, _ = gaussian_parameter(ObjectivePerturbation(1.0 / mu, 1.0, flatness, 1.0, loss))
    gaussian = gaussian_profile(parameter, epsilons)
    for gamma in adversaries(loss, mu, flatness):
        reached = exact(gamma, epsilons)
        assert np.all(reached <= bound)
        assert np.all(reached <= gaussian)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_best_row_reaches_most_of_the_profile(loss):
    """And so a bound with half the flatness, or a twentieth less slope, is refuted."""
    mu, flatness = 0.177, 0.5
    epsilons = mu * np.array([0.5, 1.0, 1.5])
    rows = adversaries(loss, mu, flatness, 60)
    reached = np.max([exact(gamma, epsilons) for gamma in rows], axis=0)
    bound = transport_profile(mu, flatness, loss, epsilons)
    assert np.all(reached > 0.85 * bound)
    for mutant in ((mu, flatness / 2.0), (0.8 * mu, flatness)):
        assert np.any(reached > transport_profile(*mutant, loss, epsilons))


def test_a_real_logistic_row():
    """The exact law of a fit with one weight: densities of the minimiser with and without a row."""
    ridge, scale, others = 1.0, 4.0, np.array([0.7, -0.4, 0.9, -1.0, 0.2])
    theta = np.linspace(-60.0, 60.0, 40_001)

    def pushed(rows):
        total = ridge * theta
        for x in rows:
            total = total + x / (1.0 + np.exp(-x * theta))
        return total / scale

    with_row, without = pushed([*others, 1.0]), pushed(others)
    p, q = np.diff(norm.cdf(with_row)), np.diff(norm.cdf(without))
    epsilons = 0.25 * np.array([0.0, 0.3, 0.7, 1.0, 1.5, 2.5])
    g = np.exp(epsilons)[:, None]
    bound = transport_profile(1.0 / scale, 0.25 / ridge, "one-sided", epsilons)
    for a, b in ((p, q), (q, p)):
        reached = np.maximum(a - g * b, 0.0).sum(axis=1)
        assert np.all(reached <= bound)


@pytest.mark.parametrize("loss", LOSSES)
def test_finer_grids_only_lower_the_bound(loss, monkeypatch):
    epsilons = 0.177 * np.array([0.0, 0.5, 1.0, 2.0])
    values = []
    for work in (3e4, 3e5, 1e6):
        monkeypatch.setattr(objective, "_WORK", work)
        values.append(transport_profile(0.177, 0.25, loss, epsilons))
    assert np.all(np.diff(values, axis=0) <= 1e-12)
    assert np.all(values[1] <= 1.05 * values[2] + 1e-3 * values[2][0])


def test_the_bound_rises_with_slope_and_curvature():
    epsilons = np.array([0.0, 0.1, 0.3])
    for loss in LOSSES:
        by_curvature = [transport_profile(0.2, f, loss, epsilons) for f in (0.1, 0.3, 0.9)]
        by_slope = [transport_profile(m, 0.3, loss, epsilons) for m in (0.1, 0.2, 0.4)]
        for values in (by_curvature, by_slope):
            assert np.all(np.diff(values, axis=0) >= -2e-3)


def test_many_objective_perturbations_compose_like_their_noise():
    """Before, four of them cost twice as much as the noise they add."""
    event = ObjectivePerturbation(20.0, 1.0, 0.08, 1.0, "one-sided")
    for count in (4, 10, 30):
        noise = epsilon(Gaussian(20.0 / math.sqrt(count)), 1e-6)
        assert noise < epsilon(Repeated(event, count), 1e-6) < 1.4 * noise

"""Ridge perturbation on a support: the minimiser is really reached, sensitivities are attained,
and the noise has the planned law. False-alarm rate of each statistical test: below 1e-6 (seeded)."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2, kstest

from dpsparse.domain import Domain
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Huber, Logistic, Softmax, Squared
from dpsparse.random import make_generator
from dpsparse.sensitivity import ridge_minimiser
from dpsparse.solvers import objective


def problem(seed=0, n=200, d=6):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n, d))
    margins = rows @ rng.standard_normal(d)
    return rows, margins


def gradient(rows, y, weights, loss, ridge, theta, tilt=0.0, centre=0.0):
    return rows.T @ (weights * loss.slope(rows @ theta, y)) + ridge * (theta - centre) + tilt


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_gradient_norm_is_reached(ridge, scale):
    rows, margins = problem()
    tilt = scale * np.random.default_rng(1).standard_normal(rows.shape[1])
    weights = np.random.default_rng(2).random(len(rows))
    for loss, y in ((Logistic(), (margins > 0).astype(int)), (Huber(0.3), margins)):
        for matrix in (rows, sp.csr_array(rows)):
            theta = objective.minimise(matrix, y, weights, loss, ridge=ridge, tol=1e-6, tilt=tilt)
            assert np.linalg.norm(gradient(rows, y, weights, loss, ridge, theta, tilt)) <= 1e-6


def test_hard_cases_end():
    """Separable labels, empty rows, repeated rows, a single row, no rows: never an error."""
    rows = np.zeros((5, 3))
    rows[1] = 1.0
    for y in (np.zeros(5, int), np.array([0, 1, 0, 0, 1])):
        for part in (slice(0, 5), slice(0, 1), slice(0, 0)):
            theta = objective.minimise(
                rows[part], y[part], np.ones(5)[part], Logistic(), ridge=1e-4, tol=1e-7
            )
            g = gradient(rows[part], y[part], np.ones(5)[part], Logistic(), 1e-4, theta)
            assert np.linalg.norm(g) <= 1e-7


def test_row_weights_bound_the_gradient():
    rows, _ = problem(d=30)
    rows[3] = 0.0
    weights = objective.row_weights(rows, 1.5)
    assert np.all(weights * np.linalg.norm(rows, axis=1) <= 1.5)
    assert weights[3] == 1.0
    assert np.allclose(weights, objective.row_weights(sp.csr_array(rows), 1.5), rtol=1e-14)


def test_only_the_support_is_densified():
    X = sp.random_array((50, 10_000), density=0.01, format="csr", rng=np.random.default_rng(0))
    data = Domain(feature_bound=1.0).clip(X)
    support = np.array([3, 70, 9000])
    rows, _ = objective.support_rows(data, support, fit_intercept=True, row_clip=2.0)
    assert rows.shape == (50, 4)
    assert np.array_equal(rows[:, :3], X.toarray()[:, support])
    assert np.all(rows[:, 3] == 1.0)


@pytest.mark.parametrize("loss", [Squared(), Softmax(3)])
def test_losses_without_a_proof_are_refused(loss):
    arguments = (np.ones((2, 1)), np.zeros(2), np.ones(2), loss, make_generator(0))
    with pytest.raises(ParameterError, match="bounded"):
        objective.objective_perturbation(*arguments, ridge=1.0, scale=1.0, tol=1e-6, jitter=1e-6)
    with pytest.raises(ParameterError, match="bounded"):
        objective.output_perturbation(*arguments, ridge=1.0, scale=1.0, tol=1e-6)


def test_squared_loss_has_no_slope_bound():
    """Why: with all targets in [-1, 1], one more row moves the ridge minimiser of the squared loss
    by more than slope * row_clip/ridge for the slope 1 that residuals of bounded targets suggest."""
    n, ridge = 10_000, 1.0
    rows = np.c_[np.full(n, 0.01), np.ones(n)]
    y = np.where(np.arange(n) % 2, 1.0, 0.97)
    y[:100] = -1.0
    solved = []
    for extra in ([], [[1.0, -1.0]]):
        A, t = np.vstack([rows, *extra]), np.append(y, [1.0] * len(extra))
        solved.append(np.linalg.solve(A.T @ A + ridge * np.eye(2), A.T @ t))
    reached = abs(np.array([1.0, -1.0]) @ solved[0] - 1.0)
    assert reached > 1.5  # the slope of the added row before it is added


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_sensitivity_of_the_ridge_minimiser_is_attained(adjacency):
    """Rows with a nearly constant slope: theta moves by 99 % of the bound and never beyond it."""
    ridge, clip, cutoff = 50.0, 2.0, 1.0
    bound = ridge_minimiser(cutoff, clip, 1.0, ridge, adjacency).value
    rng = np.random.default_rng(0)
    worst = 0.0
    for far in (0.1, 1.0, 1e3):
        base = rng.uniform(-1, 1, (10, 3))
        targets = rng.uniform(-1, 1, 10)
        direction = rng.standard_normal(3)
        row = clip * direction / np.linalg.norm(direction)
        one = (np.vstack([base, row]), np.append(targets, far))
        other = (base, targets)
        if adjacency == "replace-one":
            other = (np.vstack([base, row]), np.append(targets, -far))
        if far == 1e3:  # the other rows are flat far from their targets too
            one = (one[0], np.where(np.arange(11) < 10, 1e4, one[1]))
            other = (other[0], np.where(np.arange(len(other[1])) < 10, 1e4, other[1]))
        thetas = [
            objective.minimise(
                r, t, objective.row_weights(r, clip), Huber(cutoff), ridge=ridge, tol=1e-10
            )
            for r, t in (one, other)
        ]
        moved = float(np.linalg.norm(thetas[0] - thetas[1]))
        assert moved <= bound * (1 + 1e-9)
        worst = max(worst, moved)
    assert worst >= 0.99 * bound


def test_output_noise_has_the_planned_law():
    rows, margins = problem(n=20, d=40)
    y, weights, ridge, scale = (margins > 0).astype(int), np.ones(20), 5.0, 0.3
    clean = objective.minimise(rows, y, weights, Logistic(), ridge=ridge, tol=1e-9)
    rng = make_generator(7)
    noise = np.concatenate([
        objective.output_perturbation(rows, y, weights, Logistic(), rng, ridge=ridge, scale=scale, tol=1e-9)
        - clean
        for _ in range(250)
    ])  # fmt: skip
    assert law_accepts(noise, scale)
    assert not law_accepts(noise, 1.05 * scale)
    assert not law_accepts(noise, scale / 1.05)


def law_accepts(noise, scale, alpha=1e-6):
    total = float(np.sum((noise / scale) ** 2))
    low, high = chi2.ppf([alpha / 2, 1 - alpha / 2], noise.size)
    return low <= total <= high and kstest(noise / scale, "norm").pvalue > alpha


def test_objective_noise_has_the_planned_law():
    """The tilt can be read off the released point: b = -(gradient of the rest), up to the jitter."""
    rows, margins = problem(n=20, d=40)
    y, weights, ridge, scale = (margins > 0).astype(int), np.ones(20), 5.0, 3.0
    rng = make_generator(8)
    tilts = []
    for _ in range(250):
        theta = objective.objective_perturbation(
            rows, y, weights, Logistic(), rng, ridge=ridge, scale=scale, tol=1e-9, jitter=1e-9
        )
        tilts.append(-gradient(rows, y, weights, Logistic(), ridge, theta))
    tilts = np.concatenate(tilts)
    assert law_accepts(tilts, scale)
    assert not law_accepts(tilts, 1.05 * scale)
    assert not law_accepts(tilts, scale / 1.05)


def test_jitter_is_added():
    rows, margins = problem(n=10, d=4000)
    arguments = (rows, (margins > 0).astype(int), np.ones(10), Logistic())
    kwargs = {"ridge": 5.0, "scale": 0.0, "tol": 1e-8}
    clean = objective.objective_perturbation(*arguments, make_generator(1), jitter=0.0, **kwargs)
    noisy = objective.objective_perturbation(*arguments, make_generator(1), jitter=0.5, **kwargs)
    assert law_accepts(noisy - clean, 0.5)


def test_float_rounding_stays_below_the_kept_half_of_tol():
    """The computed gradient of a long sum is far closer to the true one than tol/2."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (200_000, 2))
    slopes = rng.uniform(-1, 1, 200_000)
    exact = [math.fsum(rows[:, j] * slopes) for j in range(2)]
    assert np.max(np.abs(rows.T @ slopes - exact)) < 1e-9

"""The rivals of the papers as later papers implement them: ADMM, Two-Stage, DP-IGHT."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse import Domain
from dpsparse.exceptions import NotPrivateWarning
from dpsparse.losses import Logistic, Squared
from dpsparse.published import WangGuHardThresholdClassifier, _base, wang_zhang_2020_admm
from dpsparse.published.kifer_smith_thakurta_2012_two_stage import (
    default_ridge,
    noisy_winners,
    tilt_scale,
    tilted_fit,
    voted_support,
)
from dpsparse.published.wang_gu_2019_hard_threshold import concentrated, private_hard_threshold
from dpsparse.random import make_generator


def rows_and_labels(n=200, d=5):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (n, d))
    return rows, (rows[:, 0] > 0).astype(int)


@pytest.mark.parametrize("ridge", [0.1, 30.0])
def test_tilted_minimum_is_stationary(ridge):
    rows, y = rows_and_labels()
    tilt, centre = np.linspace(-3, 3, 5), np.full(5, 0.3)
    theta = _base.tilted_minimum(rows, y, Logistic(), ridge=ridge, tilt=tilt, centre=centre)
    gradient = rows.T @ Logistic().slope(rows @ theta, y) + ridge * (theta - centre) + tilt
    assert np.linalg.norm(gradient) < 1e-4


def test_admm_rounds_reuse_one_noise_vector(monkeypatch):
    """What its budget does not pay for: the same tilt in every round."""
    tilts = []
    original = wang_zhang_2020_admm.tilted_minimum

    def spy(*arguments, **kwargs):
        tilts.append(kwargs["tilt"].copy())
        return original(*arguments, **kwargs)

    monkeypatch.setattr(wang_zhang_2020_admm, "tilted_minimum", spy)
    rows, y = rows_and_labels()
    wang_zhang_2020_admm.admm(
        rows, y, Logistic(), make_generator(0), penalty="l1", n_iter=3, strength=1e-3, gamma=1.0,
        step_epsilon=0.3, n_samples=200,
    )  # fmt: skip
    assert np.array_equal(tilts[0], tilts[1])
    assert np.array_equal(tilts[0], tilts[2])


@pytest.mark.parametrize("penalty", ["l1", "l1/2"])
def test_thresholds_minimise_their_penalty(penalty):
    grid = np.linspace(-6, 6, 120_001)
    power = 1.0 if penalty == "l1" else 0.5
    for v in (-4.0, -0.7, 0.3, 1.4, 5.0):
        best = grid[np.argmin((grid - v) ** 2 / 2 + 0.8 * np.abs(grid) ** power)]
        found = wang_zhang_2020_admm.shrink(np.array([v]), 0.8, penalty)[0]
        assert found == pytest.approx(best, abs=2e-4)


def test_two_stage_constants_and_votes():
    assert tilt_scale(9, 2.0, 0.1, logistic=True) == pytest.approx(
        3 * math.sqrt(8 * math.log(20) + 8) / 2
    )
    assert tilt_scale(4, 1.0, 0.1, logistic=False) == pytest.approx(
        16 * math.sqrt(8 * math.log(20) + 4)
    )
    assert default_ridge(8, 2.0, logistic=True) == pytest.approx(2.0)
    votes = np.array([0.0, 60, 1, 64, 0])
    assert noisy_winners(votes, 64, 2, 1e9, make_generator(0)).tolist() == [1, 3]
    rows, y = rows_and_labels(2000)
    for X in (rows, sp.csr_array(rows)):
        found = voted_support(X, y, make_generator(0), n_nonzero=1, n_blocks=20, epsilon=10.0)
        assert found.tolist() == [0]


@pytest.mark.parametrize("logistic", [True, False])
def test_second_stage_is_objective_perturbation(logistic):
    """Without a tilt the ridge fit; with one, off by about tilt/curvature."""
    rows, y = rows_and_labels()
    plain = tilted_fit(rows, y, make_generator(0), ridge=2.0, scale=0.0, logistic=logistic)
    loss = Logistic() if logistic else Squared()
    gradient = rows.T @ loss.slope(rows @ plain, y) + 2.0 * plain
    assert np.linalg.norm(gradient) < 1e-4
    tilted = tilted_fit(rows, y, make_generator(0), ridge=2.0, scale=5.0, logistic=logistic)
    b = 5.0 * make_generator(0).standard_normal(5)
    gradient = rows.T @ loss.slope(rows @ tilted, y) + 2.0 * tilted + b
    assert np.linalg.norm(gradient) < 1e-4


def test_dp_ight_noise_and_one_step_by_hand():
    rho, log = concentrated(1.0, 1e-5), math.log(1e5)
    assert rho + 2 * math.sqrt(rho * log) == pytest.approx(1.0)  # the conversion it inverts
    rows, y = rows_and_labels()
    noise = make_generator(3).standard_normal(5) * math.sqrt(1 / rho) * 2.0 / 200
    moved = -4.0 * (rows.T @ (0.5 - y) / 200 + noise)
    expected = np.where(np.abs(moved) >= np.sort(np.abs(moved))[-2], moved, 0.0)
    found = private_hard_threshold(
        rows, y, Logistic(), make_generator(3), n_nonzero=2, n_iter=1, step=4.0, epsilon=1.0,
        delta=1e-5, gradient_bound=2.0,
    )  # fmt: skip
    assert found == pytest.approx(expected)


def test_estimator_runs_dp_ight_as_printed():
    rows, y = rows_and_labels()
    domain = Domain(classes=(0, 1), n_samples=200, feature_bound=1.0)
    model = WangGuHardThresholdClassifier(
        domain, n_nonzero=2, n_iter=3, step_size=1.0, delta=1e-6, random_state=5
    )
    with pytest.warns(NotPrivateWarning):
        model.fit(rows, y)
    log = math.log(1e6)
    assert model.plan_.parameters["rho"] == pytest.approx(
        1 + 2 * log - 2 * math.sqrt(log * (1 + log))
    )
    assert np.count_nonzero(model.coef_) == 2
    assert model.intercept_ == 0.0

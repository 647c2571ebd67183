"""ADP-Screen and RNM-Screen as printed, and what their noise does on its own."""

import math

import numpy as np
import pytest

from dpsparse.domain import Domain
from dpsparse.losses import get_loss
from dpsparse.published.khanna_lu_raff_2023_screening import (
    _random_in_ball,
    adp_scale,
    published_iterates,
    published_sensitivity,
    rnm_scale,
)
from dpsparse.random import make_generator
from parts import clip_table


def iterates(X, y, *, loss="squared", **options):
    domain = Domain(target_bound=5.0, classes=[0, 1])
    data = (
        clip_table(domain, X, y)
        if loss == "squared"
        else clip_table(domain, X, y, labels=np.array([0, 1]))
    )
    settings = {
        "radius": 2.0, "n_iter": 20, "vertex_scale": 0.0, "rule": "adp", "screen_scale": 0.0,
        "screen_steps": range(1, 10**6), "curvature": (1.0, 1.0), "n_samples": 1, **options,
    }  # fmt: skip
    return list(published_iterates(data.X, data.y, get_loss(loss), make_generator(0), **settings))


def problem(n=200, d=20):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, d))
    return X, X[:, 0] - X[:, 1]


def test_printed_noise_constants():
    """By hand from 001: Theorem 1, Alg. 1 lines 1-4, Alg. 2 lines 1-3; 000 Eq. (3)."""
    assert published_sensitivity("squared", 50.0, 3000) == pytest.approx((100 + 5000 + 5100) / 3000)
    assert published_sensitivity("logistic", 5.0, 3000) == pytest.approx(
        (2 * 0.993307 + 10 * 0.993307 + 0.25 * 6 * math.sqrt(20 / 0.00669285)) / 3000, rel=1e-5
    )
    assert rnm_scale(3.4, 0.1, 1 / 12000, 1000) == pytest.approx(3.4 / 3.6479e-4, rel=1e-4)
    per_step = 2.5 / (2 * math.sqrt(2 * 20 * math.log(6000 * 21)))
    assert adp_scale(7.0, 2.5, 1 / 6000, 20) == pytest.approx(
        7.0 * math.sqrt(2 * math.log(1.25 * 6000 * 21)) / per_step
    )


def test_pure_noise_has_density_one_half_and_not_what_theorem_4_says():
    """d = 40, 4000 steps of uniform update and screening: (d-1)/(2d-1) against (d-1)^2/((d-1)d+1).

    Average over 60 late, widely spaced iterates; standard error about 0.005, tolerance 5 of them.
    """
    X, y = np.zeros((2, 40)), np.zeros(2)
    X[0, 0] = 1.0
    runs = iterates(X, y, rule="rnm", n_iter=4000, vertex_scale=1e9, screen_scale=1e9)
    density = np.mean([np.mean(it.weights != 0) for it in runs[1000::50]])
    assert density == pytest.approx(39 / 79, abs=0.025)
    assert abs(density - 39**2 / (39 * 40 + 1)) > 0.4


def test_rnm_drops_at_most_one_feature_a_step_and_adp_drops_many():
    X, y = problem()
    for rule, largest in (("rnm", 1), ("adp", 20)):
        runs = iterates(X, y, rule=rule, vertex_scale=1e6, screen_scale=1e6)
        counts = np.array([np.count_nonzero(it.weights) for it in runs])
        drops = -np.diff(np.append(20, counts))
        assert drops.max() <= largest
        assert (drops.max() > 1) == (rule == "adp")


def test_rnm_drops_nothing_while_the_minimum_is_positive():
    X, y = problem()
    runs = iterates(X, y, rule="rnm", n_iter=3)  # no noise; far from the optimum every score is > 0
    assert [np.count_nonzero(it.weights) for it in runs] == [20, 20, 20]


def test_screening_happens_at_the_chosen_steps_only():
    X, y = problem()
    runs = iterates(X, y, vertex_scale=1e6, screen_scale=1e6, screen_steps={10})
    counts = [np.count_nonzero(it.weights) for it in runs]
    assert counts[:9] == [20] * 9
    assert counts[9] < 17
    assert counts[-1] >= counts[9]
    untouched = iterates(X, y, rule=None, vertex_scale=1e6)
    assert all(np.count_nonzero(it.weights) == 20 for it in untouched)


def test_without_noise_it_is_frank_wolfe():
    X, y = problem()
    last = iterates(X, y, rule=None, n_iter=2000, random_start=False)[-1]
    assert np.mean((X @ last.weights - y) ** 2) < 1e-3
    assert last.gap < 1e-2


def test_the_random_start_is_inside_the_ball_with_the_right_radius():
    """||w||_1/radius ~ Beta(d, 1): mean d/(d+1); 2000 draws, 5 standard errors."""
    rng = make_generator(0)
    norms = np.array([np.abs(_random_in_ball(4, 3.0, rng)).sum() / 3.0 for _ in range(2000)])
    assert norms.max() <= 1.0
    assert norms.mean() == pytest.approx(0.8, abs=5 * math.sqrt(4 / (25 * 6) / 2000))

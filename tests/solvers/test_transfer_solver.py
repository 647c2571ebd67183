"""Transfer: the support-flip counterexample, sensitivities, peeling's law, distillation."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from dpsparse.domain import Domain
from dpsparse.losses import Huber, Logistic
from dpsparse.random import make_generator
from dpsparse.sensitivity import class_counts, ridge_minimiser, signed_sum
from dpsparse.solvers import objective, transfer


def flip(m):
    """m + 1 rows (e1, 1) and m rows (e2, 1), and the neighbour with one row replaced."""
    rows = np.zeros((2 * m + 1, 2))
    rows[: m + 1, 0] = 1.0
    rows[m + 1 :, 1] = 1.0
    other = rows.copy()
    other[m] = [0.0, 1.0]
    return rows, other, np.ones(2 * m + 1)


def test_support_flip_leaves_the_proven_teacher_within_its_sensitivity():
    """Given the released support the teacher moves by no more than the plan pays for."""
    rows, other, y = flip(500)
    n, ridge = len(y), 0.1 * 1001
    for support in ([0], [1], [0, 1]):
        for loss, cutoff in ((Huber(0.5), 0.5), (Huber(1.0), 1.0)):
            thetas = [
                objective.minimise(r[:, support], y, np.ones(n), loss, ridge=ridge, tol=1e-9)
                for r in (rows, other)
            ]
            bound = ridge_minimiser(cutoff, 1.0, 1.0, ridge, "replace-one", tol=1e-9).value
            assert np.linalg.norm(thetas[0] - thetas[1]) <= bound


def test_prior_sensitivities_are_what_is_charged():
    y = np.array([0, 1, 1, 0])
    counts = np.array([np.sum(y == 1), np.sum(y == 0)])
    more = np.append(y, 1)
    assert (
        np.linalg.norm([np.sum(more == 1), np.sum(more == 0)] - counts)
        == class_counts("add-remove").value
    )
    swapped = np.array([1, 1, 1, 0])
    moved = np.linalg.norm([np.sum(swapped == 1), np.sum(swapped == 0)] - counts)
    assert moved == pytest.approx(class_counts("replace-one").value)
    assert signed_sum(3.0, "replace-one").value == 6.0


def test_prior_noise_law():
    """Noisy mean: scale/n; accepts the right scale, rejects 10 % off (4,000 draws, rate 1e-6)."""
    y = np.zeros(50)
    rng = make_generator(3)
    draws = np.array([
        transfer.private_prior(y, Huber(1.0), rng, scale=2.0, n_samples=50, bound=math.inf)
        for _ in range(4000)
    ])  # fmt: skip
    total = np.sum((draws * 50) ** 2)
    for scale, good in ((2.0, True), (2.2, False), (1.8, False)):
        low, high = chi2.ppf([5e-7, 1 - 5e-7], 4000)
        assert (low <= total / scale**2 <= high) == good


def test_prior_noise_law_of_counts():
    """Log-odds of two noisy counts far from the floor: variance scale^2 (1/n+^2 + 1/n-^2) to first
    order; accepts the scale, rejects 10 % off (4,000 draws, rate 1e-6)."""
    y = np.r_[np.ones(5000, int), np.zeros(5000, int)]
    rng = make_generator(4)
    draws = np.array([
        transfer.private_prior(y, Logistic(), rng, scale=20.0, n_samples=10_000, bound=math.inf)
        for _ in range(4000)
    ])  # fmt: skip
    total = np.sum((draws / (math.sqrt(2.0) / 5000.0)) ** 2)
    for scale, good in ((20.0, True), (22.0, False), (18.0, False)):
        low, high = chi2.ppf([5e-7, 1 - 5e-7], 4000)
        assert (low <= total / scale**2 <= high) == good


def bounded(X, y, **facts):
    return Domain(feature_bound=1.0, **facts).clip(sp.csr_array(X), y)


@pytest.mark.parametrize("loss", [Logistic(), Huber(0.7)])
@pytest.mark.parametrize("prior", [0.0, -1.3])
def test_peeling_scores_move_by_at_most_the_charged_bound(loss, prior):
    """One added row moves every |G_j| by at most slope bound * feature bound, which is attained."""
    rng = np.random.default_rng(0)
    target_bound = 2.0
    bound = transfer.slope_bound_at(loss, prior, target_bound)
    X = rng.uniform(-1, 1, (20, 5))
    y = (rng.random(20) < 0.5) if loss.name == "logistic" else rng.uniform(-2, 2, 20)
    gradient = X.T @ loss.slope(np.full(20, prior), y)
    worst = 0.0
    for target in (0, 1) if loss.name == "logistic" else (-2.0, 2.0):
        for sign in (-1.0, 1.0):
            moved = gradient + sign * loss.slope(np.array([prior]), np.array([target]))[0]
            worst = max(worst, float(np.max(np.abs(np.abs(moved) - np.abs(gradient)))))
    assert 0.99 * bound <= worst <= bound * (1 + 1e-12)


def test_peeling_uses_the_planned_kappa(monkeypatch):
    """eta = 2 kappa D with D = slope bound * feature bound, doubled for replace-one."""
    seen = []

    def spy(scores, k, kappa, rng):
        seen.append((kappa, scores))
        return np.arange(k)

    monkeypatch.setattr(transfer, "gumbel_top_k", spy)
    X = np.random.default_rng(0).uniform(-1, 1, (30, 6))
    data = bounded(X, np.zeros(30), classes=[0, 1])
    for replace_one in (False, True):
        transfer.peel_support(
            data, np.arange(30) % 2, Logistic(), make_generator(0), n_nonzero=2, n_iter=2, eta=0.3,
            value_ratio=1.0, step=1.0, n_samples=30, prior=0.0, replace_one=replace_one,
        )  # fmt: skip
    first, second, doubled, _ = (kappa for kappa, _ in seen)
    assert first == pytest.approx(0.3 / (2 * 0.5))  # slope bound 1/2 at zero weights
    assert doubled == pytest.approx(first / 2)
    assert second < first  # the released weights raise the slope bound
    assert np.allclose(seen[0][1], np.abs(X.T @ (0.5 - np.arange(30) % 2)))


def test_peeling_values_have_the_planned_noise(monkeypatch):
    """Sixty-four rounds' worth of values: noise = value_ratio * slope bound * sqrt(s), one step."""
    released = []
    monkeypatch.setattr(transfer, "gumbel_top_k", lambda scores, k, kappa, rng: np.arange(k))
    original = transfer.gaussian

    def spy(rng, scale, size):
        released.append(scale)
        return original(rng, scale, size)

    monkeypatch.setattr(transfer, "gaussian", spy)
    data = bounded(np.eye(4), np.zeros(4), classes=[0, 1])
    for replace_one in (False, True):
        transfer.peel_support(
            data, np.zeros(4, int), Logistic(), make_generator(0), n_nonzero=4, n_iter=2, eta=1.0,
            value_ratio=3.0, step=1e-9, n_samples=4, prior=0.0, replace_one=replace_one,
        )  # fmt: skip
    assert released == pytest.approx([3.0 * 0.5 * 2.0, 3.0 * 0.5 * 2.0 * 2.0])


def test_answers_carry_operator_norm_noise():
    """Noise on the answers is |X~|_op * scale: a teacher that moves by D moves them by no more."""
    rng = np.random.default_rng(0)
    public = rng.uniform(-1, 1, (300, 5))
    norm = np.linalg.norm(public, 2)
    direction = np.linalg.svd(public)[2][0]
    assert np.linalg.norm(public @ direction) == pytest.approx(norm)  # attained
    teacher = rng.standard_normal(5)
    assert np.allclose(transfer.distil(teacher, public, make_generator(0), scale=0.0), teacher)
    students = np.array([
        transfer.distil(teacher, public, make_generator(seed), scale=0.01) - teacher
        for seed in range(2000)
    ])  # fmt: skip
    covariance = (norm * 0.01) ** 2 * np.linalg.inv(public.T @ public)
    total = np.einsum("ij,jk,ik->", students, np.linalg.inv(covariance), students)
    for factor, good in ((1.0, True), (1.1, False), (0.9, False)):
        low, high = chi2.ppf([5e-7, 1 - 5e-7], 10_000)
        assert (low <= total / factor**2 <= high) == good


def test_direct_release_is_never_worse_than_distillation():
    public = np.random.default_rng(1).uniform(-1, 1, (400, 6))
    norm = np.linalg.norm(public, 2)
    covariance = norm**2 * np.linalg.inv(public.T @ public)  # of the student, per unit of scale^2
    assert np.min(np.linalg.eigvalsh(covariance)) >= 1.0 - 1e-9

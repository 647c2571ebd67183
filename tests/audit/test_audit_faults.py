"""Mutation power: faults seeded into the real code by monkeypatching, each caught by the audit.

Every fault is a mistake somebody made in print or in code. The whole file runs in well under two
minutes; nothing here depends on chance beyond the 1e-5 of `first_complaint`.
"""

from dataclasses import replace

import numpy as np
import pytest

import dpsparse.domain
import dpsparse.estimators._support as support_stage
import dpsparse.estimators.admm
import dpsparse.estimators.two_stage
import dpsparse.random
import dpsparse.selection.top_k
import dpsparse.solvers.admm
import dpsparse.solvers.objective
import dpsparse.solvers.transfer
import dpsparse.solvers.two_stage
import dpsparse.sparsify
from dpsparse import Domain, PrivateCount, estimators
from dpsparse.audit.verdict import first_complaint
from dpsparse.sensitivity import Sensitivity

BINARY = Domain(classes=(0, 1), row_norm=1.0, n_samples=12)
NUMBER = Domain(target_bound=2.0, row_norm=1.0, n_samples=12)
LONG = Domain(classes=(0, 1), n_samples=12)
FAULTS = []


def fault(needs, **parameters):
    """Register a fault of an estimator, with the parameters that lead through the code."""

    def register(seed):
        FAULTS.append(pytest.param(needs, parameters, seed, id=seed.__name__))
        return seed

    return register


@pytest.fixture(autouse=True)
def short_counts(monkeypatch):
    from dpsparse.estimators import lasso

    monkeypatch.setattr(lasso, "COUNT_STEPS", 30)


def make(name, parameters):
    kind = getattr(estimators, name, None)
    if kind is None:
        pytest.skip(f"{name} is not in the library")
    return kind(**{"domain": BINARY, **parameters})


# ---- noise ---------------------------------------------------------------------------------------


@fault("DPADMMClassifier", n_iter=3)
def half_the_noise_scale(patch):
    def gaussian(rng, scale, size):
        return dpsparse.random.gaussian(rng, scale / 2, size)

    patch.setattr(dpsparse.solvers.admm, "gaussian", gaussian)


@fault("DPADMMClassifier", n_iter=3)
def one_noise_vector_for_all_rounds(patch):
    kept = []

    def gaussian(rng, scale, size):
        if not kept:
            kept.append(np.array(dpsparse.random.gaussian(rng, scale, size)))
            return dpsparse.random.gaussian(rng, scale, size) * 0 + kept[0]
        return kept[0]

    patch.setattr(dpsparse.solvers.admm, "gaussian", gaussian)


@fault("DPTwoStageClassifier", second_stage="gradient", n_iter=4, n_nonzero=3)
def no_noise_on_the_last_coordinate(patch):
    def gaussian(rng, scale, size):
        noise = dpsparse.random.gaussian(rng, scale, size)
        noise[-1] = 0.0
        return noise

    patch.setattr(dpsparse.solvers.two_stage, "gaussian", gaussian)


@fault("DPTwoStageClassifier", n_nonzero=3, n_blocks=4, support="votes")
def twice_the_temperature(patch):
    def gumbel(rng, size):
        return 0.5 * np.asarray(dpsparse.random.gumbel(rng, size))

    patch.setattr(dpsparse.selection.top_k, "gumbel", gumbel)


@fault("DPTwoStageClassifier", n_nonzero=3, n_blocks=4, support="votes")
def largest_votes_without_noise(patch):
    def top_k(scores, k, kappa, rng):
        return np.sort(np.argsort(-scores)[:k])

    patch.setattr(dpsparse.estimators.two_stage, "gumbel_top_k", top_k)


@fault("DPLassoClassifier", n_iter=3, radius=1.0, n_nonzero=PrivateCount(1, 4, 1.0))
def the_count_discards_its_noise(patch):
    patch.setattr(dpsparse.sparsify, "two_sided_geometric", lambda rng, scale: 0)


@fault("DPGradientClassifier", n_iter=4)
def half_the_noise_of_the_sums(patch):
    from dpsparse.solvers._noise import NoisySums

    original = NoisySums.pull

    def pull(self, slopes, weight, scale, *rest, **options):
        return original(self, slopes, weight, scale / 2, *rest, **options)

    patch.setattr(NoisySums, "pull", pull)


# ---- sensitivity and counts -----------------------------------------------------------------------


@fault("DPADMMClassifier", n_iter=3, adjacency="replace-one")
def replace_one_charged_as_add_remove(patch):
    def ridge_minimiser(*facts, adjacency=None, tol=0.0):
        return dpsparse.sensitivity.ridge_minimiser(*facts[:4], "add-remove", tol=tol)

    patch.setattr(
        dpsparse.estimators.admm,
        "ridge_minimiser",
        lambda *facts, tol=0.0: ridge_minimiser(*facts, tol=tol),
    )


@fault("DPTwoStageRegressor", domain=NUMBER, second_stage="output", n_nonzero=3)
def half_the_sensitivity(patch):
    def ridge_minimiser(*facts, tol=0.0):
        true = dpsparse.sensitivity.ridge_minimiser(*facts, tol=tol)
        return Sensitivity(true.value / 2, true.norm, true.adjacency, true.source)

    patch.setattr(support_stage, "ridge_minimiser", ridge_minimiser)


@fault("DPTwoStageClassifier", second_stage="gradient", n_iter=4, n_nonzero=3)
def one_step_more_than_paid_for(patch):
    def descent(*data, n_iter, **numbers):
        return dpsparse.solvers.two_stage.noisy_descent(*data, n_iter=n_iter + 1, **numbers)

    patch.setattr(support_stage, "noisy_descent", descent)


@fault("DPADMMClassifier", n_iter=3)
def rows_are_not_clipped(patch):
    patch.setattr(dpsparse.domain, "_clip_rows", lambda *arguments: None)
    patch.setattr(
        dpsparse.estimators.admm, "row_weights", lambda rows, clip: np.ones(rows.shape[0])
    )


@fault("DPGradientClassifier", domain=LONG, n_iter=4, renormalise=False, masses=None)
def rows_keep_their_length(patch):
    from dpsparse.solvers import gradient

    patch.setattr(gradient, "inverse_of", lambda lengths, least=0.0: np.ones_like(lengths))


@fault("DPTwoStageClassifier", second_stage="gradient", n_iter=4, n_nonzero=3)
def clip_after_summing(patch):
    def descent(rows, y, weights, loss, rng, *, ridge, scale, n_iter, step):
        bound = float((weights * np.linalg.norm(rows, axis=1)).max(initial=1.0))
        theta = np.zeros(rows.shape[1])
        for _ in range(n_iter):
            total = rows.T @ loss.slope(rows @ theta, y)
            total *= bound / max(bound, float(np.linalg.norm(total)))
            theta = theta - step * (total + dpsparse.random.gaussian(rng, scale, len(theta)))
        return theta

    patch.setattr(support_stage, "noisy_descent", descent)


@fault("DPLassoClassifier", n_iter=5, radius=2.0)
def one_side_of_the_range_only(patch):
    """A vertex and its mirror image move in opposite directions: the range is twice the move."""
    from dpsparse.estimators import lasso

    def vertex_score_range(*facts):
        true = dpsparse.sensitivity.vertex_score_range(*facts)
        return Sensitivity(true.value / 2, true.norm, true.adjacency, true.source)

    patch.setattr(lasso, "vertex_score_range", vertex_score_range)


# ---- control flow and what bypasses mechanisms -----------------------------------------------------


@fault("DPTwoStageClassifier", second_stage="gradient", n_iter=4, n_nonzero=3)
def divide_by_the_private_number_of_rows(patch):
    def descent(rows, *data, step, **numbers):
        theta = dpsparse.solvers.two_stage.noisy_descent(rows, *data, step=step, **numbers)
        return theta * 12 / len(rows)

    patch.setattr(support_stage, "noisy_descent", descent)


@fault("DPTwoStageClassifier", second_stage="gradient", n_iter=4, n_nonzero=3)
def stop_when_the_exact_gradient_is_small(patch):
    def descent(rows, y, *data, n_iter, **numbers):
        exact = rows.T @ (y - 0.5)
        n_iter = n_iter if np.linalg.norm(exact) > 1.0 else n_iter - 1
        return dpsparse.solvers.two_stage.noisy_descent(rows, y, *data, n_iter=n_iter, **numbers)

    patch.setattr(support_stage, "noisy_descent", descent)


@fault("DPTwoStageClassifier", second_stage="gradient", n_iter=4, n_nonzero=3)
def noise_scaled_to_the_data(patch):
    def descent(rows, *data, scale, **numbers):
        scale *= 1.0 + float(np.linalg.norm(rows, axis=1).max(initial=0.0))
        return dpsparse.solvers.two_stage.noisy_descent(rows, *data, scale=scale, **numbers)

    patch.setattr(support_stage, "noisy_descent", descent)


@fault("DPTwoStageClassifier", n_nonzero=3, n_blocks=4, support="votes")
def contiguous_blocks(patch):
    def draw_blocks(n_rows, n_blocks, rng):
        return np.array_split(np.arange(n_rows), n_blocks)

    patch.setattr(dpsparse.solvers.two_stage, "draw_blocks", draw_blocks)
    patch.setattr(dpsparse.estimators.two_stage, "draw_blocks", draw_blocks)


@fault("DPADMMClassifier", n_iter=3)
def a_solver_that_gives_up(patch):
    original = dpsparse.solvers.objective.minimise

    def minimise(*data, tol, **numbers):
        return original(*data, tol=1e5 * tol, **numbers)

    for module in (dpsparse.solvers.objective, dpsparse.solvers.admm):
        patch.setattr(module, "minimise", minimise)


@fault("DPTransferClassifier", n_nonzero=3)
def exact_class_counts(patch):
    def prior(y, loss, rng, *, scale, n_samples, bound):
        return dpsparse.solvers.transfer.private_prior(
            y, loss, rng, scale=0.0, n_samples=n_samples, bound=bound
        )

    patch.setattr(support_stage, "private_prior", prior)


@fault("DPLassoClassifier", n_iter=20, radius=1.0)
def the_exact_sign(patch):
    """Paper 002: the feature is drawn, the sign is read off the gradient."""
    from dpsparse.estimators import lasso
    from dpsparse.solvers.frank_wolfe import run as solver

    original = solver.fast_frank_wolfe

    def signed(data, problem, *rest):
        return original(data, replace(problem, private_sign=False), *rest)

    patch.setattr(solver, "fast_frank_wolfe", signed)
    patch.setattr(lasso, "fast_frank_wolfe", signed)


@fault("DPLassoClassifier", n_iter=20, radius=1.0, epsilon=8.0)
def a_sampler_with_twice_the_temperature(patch):
    from dpsparse.estimators import lasso
    from dpsparse.solvers.frank_wolfe import run as solver

    original = solver.fast_frank_wolfe

    def sharper(data, problem, *rest):
        return original(data, replace(problem, kappa=2 * problem.kappa), *rest)

    patch.setattr(solver, "fast_frank_wolfe", sharper)
    patch.setattr(lasso, "fast_frank_wolfe", sharper)


@pytest.mark.parametrize(("name", "parameters", "seed"), FAULTS)
def test_fault_is_caught(name, parameters, seed, monkeypatch):
    estimator = make(name, parameters)
    seed(monkeypatch)
    assert first_complaint(estimator)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters"),
    sorted({(p.values[0], str(p.values[1])): p.values[:2] for p in FAULTS}.values(), key=str),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_same_estimators_without_faults_pass(name, parameters):
    assert first_complaint(make(name, parameters)) == ""

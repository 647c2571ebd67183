"""What the plans of two-stage, transfer and ADMM charge is what the solvers do: number by number."""

import math

import numpy as np
import pytest

import dpsparse.estimators._support as support_module
import dpsparse.estimators.admm as admm_module
import dpsparse.estimators.transfer as transfer_module
from dpsparse.domain import Domain
from dpsparse.estimators._support import TOL, RidgeFit, row_bound
from dpsparse.estimators.admm import DPADMMClassifier
from dpsparse.estimators.transfer import DPTransferClassifier, DPTransferRegressor
from dpsparse.estimators.two_stage import DPTwoStageClassifier, DPTwoStageRegressor
from dpsparse.losses import Huber, Logistic
from dpsparse.privacy import Exponential, Gaussian, ObjectivePerturbation
from dpsparse.privacy.rdp import leaves

CLASSES = Domain(feature_bound=1.0, classes=[0, 1], n_samples=400)
NUMBERS = Domain(feature_bound=1.0, target_bound=4.0, n_samples=400)
ADJACENCIES = ["add-remove", "replace-one"]


class Seen(Exception):
    pass


def data(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 9))
    return X, ((X[:, 0] > 0).astype(int) if "Classifier" in type(model).__name__ else X[:, 0])


def spy(monkeypatch, module, name, model):
    """Keyword arguments of the one call of module.name during a fit."""
    caught = {}

    def catch(*arguments, **kwargs):
        caught.update(kwargs, arguments=arguments)
        raise Seen

    monkeypatch.setattr(module, name, catch)
    with pytest.raises(Seen):
        model.fit(*data(model))
    return caught


def only(event, kind):
    found = [e for e in leaves(event) if isinstance(e, kind)]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("kind", "domain", "loss", "slope"),
    [
        (DPTwoStageClassifier, CLASSES, Logistic(), 1.0),
        (DPTwoStageRegressor, NUMBERS, Huber(0.8), 0.8),
    ],
)
def test_objective_stage(monkeypatch, kind, domain, loss, slope, adjacency):
    extra = {} if kind is DPTwoStageClassifier else {"cutoff": 0.8}
    model = kind(domain, n_nonzero=3, support="votes", adjacency=adjacency, row_clip=1.2, **extra)
    event = model.plan(9).event
    tilt, jitter = only(event, ObjectivePerturbation), only(event, Gaussian)
    assert tilt.gradient_bound == pytest.approx(slope * 1.2)
    assert tilt.curvature == pytest.approx(loss.smoothness * 1.2 * 2.0)  # |(x_S, 1)| <= sqrt 3 + 1
    assert tilt.adjacency == adjacency
    assert tilt.loss == ("logistic" if loss.name == "logistic" else "glm")
    seen = spy(monkeypatch, support_module, "objective_perturbation", model)
    assert seen["scale"] == tilt.scale
    assert seen["ridge"] == tilt.ridge
    assert seen["jitter"] == jitter.scale
    assert jitter.sensitivity == pytest.approx(2.0 * seen["tol"] / tilt.ridge)
    rows, _, weights, used = seen["arguments"][:4]
    assert used == loss
    # every row of the domain, and the corner that attains both bounds
    rows = np.vstack([rows, np.ones((1, 4))])
    weights = np.append(weights, 1.2 / 2.0)
    norms = np.linalg.norm(rows, axis=1)
    gradients = weights * norms * slope
    curvatures = loss.smoothness * weights * norms**2
    assert 0.99 * tilt.gradient_bound <= gradients.max() <= tilt.gradient_bound * (1 + 1e-12)
    assert 0.99 * tilt.curvature <= curvatures.max() <= tilt.curvature * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_output_stage(monkeypatch, adjacency):
    model = DPTwoStageClassifier(
        CLASSES, n_nonzero=3, support="votes", second_stage="output", ridge=7.0, row_clip=1.2,
        adjacency=adjacency,
    )  # fmt: skip
    event = only(model.plan(9).event, Gaussian)
    twice = 2.0 if adjacency == "replace-one" else 1.0
    assert event.sensitivity == pytest.approx((twice * 1.2 + 2 * TOL * 1.2) / 7.0, rel=1e-12)
    seen = spy(monkeypatch, support_module, "output_perturbation", model)
    assert seen["scale"] == event.scale
    assert seen["ridge"] == 7.0
    assert seen["tol"] <= TOL * 1.2


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_gradient_stage(monkeypatch, adjacency):
    model = DPTwoStageClassifier(
        CLASSES, n_nonzero=3, support="votes", second_stage="gradient", n_iter=7, row_clip=1.2,
        adjacency=adjacency,
    )  # fmt: skip
    counts = leaves(model.plan(9).event)
    event = only(model.plan(9).event, Gaussian)
    assert counts[event] == 7
    assert event.sensitivity == pytest.approx(1.2 * (2.0 if adjacency == "replace-one" else 1.0))
    seen = spy(monkeypatch, support_module, "noisy_descent", model)
    assert (seen["scale"], seen["n_iter"]) == (event.scale, 7)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("kind", [DPTransferClassifier, DPTransferRegressor])
def test_peeling_and_prior(monkeypatch, kind, rounds, adjacency):
    domain = CLASSES if kind is DPTransferClassifier else NUMBERS
    model = kind(domain, n_nonzero=3, n_iter=rounds, adjacency=adjacency)
    counts = leaves(model.plan(9).event)
    pick = only(model.plan(9).event, Exponential)
    assert counts[pick] == 3 * rounds
    replace_one = adjacency == "replace-one"
    moved = math.sqrt(2.0) if replace_one else 1.0
    if kind is DPTransferRegressor:
        moved = 8.0 if replace_one else 4.0
    prior = next(
        e for e in counts if isinstance(e, Gaussian) and e.sensitivity == pytest.approx(moved)
    )
    seen = spy(monkeypatch, support_module, "peel_support", model)
    assert seen["eta"] == pick.eta
    assert seen["n_iter"] == rounds
    assert seen["n_nonzero"] == 3
    assert seen["replace_one"] == replace_one
    if rounds > 1:
        values = next(e for e in counts if isinstance(e, Gaussian) and counts[e] == rounds - 1)
        assert seen["value_ratio"] == values.scale / values.sensitivity
    monkeypatch.undo()
    assert spy(monkeypatch, support_module, "private_prior", model)["scale"] == prior.scale


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_teacher_and_student(monkeypatch, adjacency):
    common = {"n_nonzero": 3, "ridge": 5.0, "row_clip": 1.2, "adjacency": adjacency}
    direct = DPTransferClassifier(CLASSES, **common)
    student = DPTransferClassifier(CLASSES, public_X="uniform", **common)
    twice = 2.0 if adjacency == "replace-one" else 1.0
    bound = (twice * 1.2 + 2 * TOL * 1.2) / 5.0
    events = [e for e in leaves(direct.plan(9).event) if isinstance(e, Gaussian)]
    teacher = next(e for e in events if e.sensitivity == pytest.approx(bound, rel=1e-12))
    assert direct.plan(9).event == student.plan(9).event  # distillation costs the same
    assert spy(monkeypatch, support_module, "output_perturbation", direct)["scale"] == teacher.scale
    monkeypatch.undo()
    assert spy(monkeypatch, transfer_module, "distil", student)["scale"] == teacher.scale


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_admm(monkeypatch, classes, adjacency):
    domain = Domain(feature_bound=1.0, row_norm=1.0, classes=classes, n_samples=400)
    model = DPADMMClassifier(domain, n_iter=6, coupling=0.1, row_clip=1.2, adjacency=adjacency)
    counts = leaves(model.plan(9).event)
    event = only(model.plan(9).event, Gaussian)
    assert counts[event] == 6 * (1 if len(classes) == 2 else 3)
    twice = 2.0 if adjacency == "replace-one" else 1.0
    assert event.sensitivity == pytest.approx((twice * 1.2 + 2 * TOL * 1.2) / 40.0, rel=1e-12)
    seen = spy(monkeypatch, admm_module, "private_admm", model)
    assert (seen["scale"], seen["n_iter"]) == (event.scale, 6)
    assert seen["coupling"] == pytest.approx(40.0)
    assert seen["tol"] <= TOL * 1.2
    rows, _, weights = seen["arguments"][:3]
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    assert np.max(weights * norms) <= 1.2


def test_row_bound_takes_the_smaller_fact():
    assert row_bound(Domain(feature_bound=2.0), 9, False, "m") == pytest.approx(6.0)
    assert row_bound(Domain(feature_bound=2.0, row_norm=4.0), 9, False, "m") == pytest.approx(4.0)
    assert row_bound(Domain(feature_bound=None, row_norm=3.0), 9, True, "m") == pytest.approx(
        math.hypot(3, 1)
    )


def test_gradient_step_is_stable():
    """The step of the gradient stage never diverges on the steepest rows the domain allows."""
    fit = RidgeFit(
        method="gradient", loss=Logistic(), slope_bound=1.0, row_clip=2.0, row_bound=2.0, ridge=1.0,
        n_outputs=1, n_iter=500, n_samples=300, adjacency="add-remove", fit_intercept=False,
    )  # fmt: skip
    rows = np.ones((300, 4))
    y = (np.arange(300) < 100).astype(int)
    theta = support_module.noisy_descent(
        rows, y, np.ones(300), Logistic(), np.random.default_rng(0), ridge=1.0, scale=0.0, n_iter=500,
        step=fit.step(),
    )  # fmt: skip
    gradient = rows.T @ Logistic().slope(rows @ theta, y) + theta
    assert np.linalg.norm(gradient) < 1e-3


@pytest.mark.parametrize("support", ["peeling", "votes"])
def test_both_supports_pay_per_pick_and_pass_the_scale_on(monkeypatch, support):
    model = DPTwoStageClassifier(CLASSES, n_nonzero=3, support=support)
    plan = model.plan(9)
    assert leaves(plan.event)[only(plan.event, Exponential)] == 3
    tilt = only(plan.event, ObjectivePerturbation)
    seen = spy(monkeypatch, support_module, "objective_perturbation", model)
    assert seen["scale"] == tilt.scale
    assert seen["jitter"] == plan.parameters["jitter"]

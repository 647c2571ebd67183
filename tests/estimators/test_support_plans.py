"""What the plans of two-stage, transfer and ADMM charge is what leaves: number by number, through the door."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from dpsparse import private_run
from dpsparse.domain import Domain
from dpsparse.estimators._support import TOL, row_bound
from dpsparse.estimators.admm import DPADMMClassifier
from dpsparse.estimators.sparse import DPSparseRegressor
from dpsparse.estimators.transfer import DPTransferClassifier, DPTransferRegressor
from dpsparse.estimators.two_stage import DPTwoStageClassifier, DPTwoStageRegressor
from dpsparse.exceptions import DomainError, NotPrivateWarning, ParameterError
from dpsparse.mechanisms import Picks
from dpsparse.model_selection import DPSearchCV
from dpsparse.noise import STEPS
from dpsparse.preprocessing import DPPipeline, DPStandardizer
from dpsparse.privacy import (
    Exponential,
    Ledger,
    ObjectivePerturbation,
    RoundedGaussian,
)
from dpsparse.privacy.rdp import leaves
from dpsparse.release import Releases

CLASSES = Domain(feature_bound=1.0, classes=[0, 1], n_samples=400)
NUMBERS = Domain(feature_bound=1.0, target_bound=4.0, n_samples=400)
ADJACENCIES = ["add-remove", "replace-one"]


def data(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 9))
    return X, ((X[:, 0] > 0).astype(int) if "Classifier" in type(model).__name__ else X[:, 0])


class Seen(Releases):
    """Everything that leaves a fit: (scale, query) of Gaussian noise, (kappa, query) of picks,
    (problem, unit, fine)."""

    answers: dict
    picks: list
    tilts: list

    def _release(self, phase, made):
        if isinstance(made, Picks):
            Seen.picks.append((made.kappa / made.unit, made.scores, made.k))
        else:
            assert made.unit == made.scale / STEPS
            Seen.answers.setdefault(phase, []).append((made.scale, made.query))
        return super()._release(phase, made)

    def _tilted(self, phase, tilt):
        Seen.tilts.append((tilt.problem, tilt.unit, tilt.fine))
        return super()._tilted(phase, tilt)


@pytest.fixture
def seen(monkeypatch):
    monkeypatch.setattr(private_run, "Releases", Seen)
    Seen.answers, Seen.picks, Seen.tilts = {}, [], []
    return Seen


def only(event, kind):
    found = [e for e in leaves(event) if isinstance(e, kind)]
    assert len(found) == 1
    return found[0]


def phase(plan, name):
    return next(p.event for p in plan.phases if p.name == name)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("kind", "domain", "smoothness", "slope"),
    [(DPTwoStageClassifier, CLASSES, 0.25, 1.0), (DPTwoStageRegressor, NUMBERS, 1.0, 0.2)],
)
def test_objective_stage(seen, kind, domain, smoothness, slope, adjacency):
    """Slopes of regression are in units of the target bound: 0.8/4."""
    extra = {} if kind is DPTwoStageClassifier else {"cutoff": 0.8}
    model = kind(domain, n_nonzero=3, support="votes", adjacency=adjacency, row_clip=1.2, **extra)
    event = phase(model.plan(9), "fit")
    tilt, blur = only(event, ObjectivePerturbation), only(event, RoundedGaussian)
    assert tilt.gradient_bound == pytest.approx(slope * 1.2)
    assert tilt.curvature == pytest.approx(smoothness * 1.2 * 2.0)  # |(x_S, 1)| <= sqrt 3 + 1
    assert tilt.adjacency == adjacency
    assert tilt.loss == ("logistic" if kind is DPTwoStageClassifier else "glm")
    model.fit(*data(model))
    ((problem, unit, fine),) = seen.tilts
    assert unit == tilt.scale / STEPS
    assert fine * STEPS == pytest.approx(blur.scale, rel=1e-12)
    assert problem.ridge == tilt.ridge
    # stopping short on both tables, the rounding of the tilt on both, the rounding to the grid
    away = 2.0 * (problem.tol + 2.0 * unit) / tilt.ridge
    assert problem.tol == pytest.approx(TOL * slope * 1.2)
    assert blur.sensitivity == pytest.approx(away + 2.0 * fine, rel=1e-12)
    assert blur.size == 2 * 4
    # the blur has a thousandth of the budget of the tilt
    moved = slope * 1.2 * (2.0 if adjacency == "replace-one" else 1.0)
    share = blur.sensitivity / blur.scale / (moved / tilt.scale)
    assert share == pytest.approx(math.sqrt(1e-3), rel=1e-9)
    # every row of the domain, and the corner that attains both bounds
    rows = np.vstack([problem.rows.table, np.ones((1, 4))])
    weights = np.append(problem.rows._parts[0].weights, 1.2 / 2.0)
    norms = np.linalg.norm(rows, axis=1)
    gradients = weights * norms * slope
    curvatures = smoothness * weights * norms**2
    assert 0.99 * tilt.gradient_bound <= gradients.max() <= tilt.gradient_bound * (1 + 1e-12)
    assert 0.99 * tilt.curvature <= curvatures.max() <= tilt.curvature * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_output_stage(seen, adjacency):
    model = DPTwoStageClassifier(
        CLASSES, n_nonzero=3, support="votes", second_stage="output", ridge=7.0, row_clip=1.2,
        adjacency=adjacency,
    )  # fmt: skip
    event = only(phase(model.plan(9), "fit"), RoundedGaussian)
    twice = 2.0 if adjacency == "replace-one" else 1.0
    moved = (twice * 1.2 + 2 * TOL * 1.2) / 7.0
    assert event.sensitivity == pytest.approx(moved + 2.0 * event.scale / STEPS, rel=1e-12)
    model.fit(*data(model))
    ((scale, query),) = seen.answers["fit"]
    assert scale == pytest.approx(event.scale, rel=1e-12)
    assert query.sensitivity(adjacency).value == pytest.approx(moved, rel=1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_gradient_stage(seen, adjacency):
    model = DPTwoStageClassifier(
        CLASSES, n_nonzero=3, support="votes", second_stage="gradient", n_iter=7, row_clip=1.2,
        adjacency=adjacency,
    )  # fmt: skip
    fit = phase(model.plan(9), "fit")
    event = only(fit, RoundedGaussian)
    assert leaves(fit)[event] == 7
    assert event.sensitivity == pytest.approx(1.2 * (2.0 if adjacency == "replace-one" else 1.0))
    model.fit(*data(model))
    assert len(seen.answers["fit"]) == 7
    for scale, query in seen.answers["fit"]:  # in units of row_clip
        assert scale * 1.2 == pytest.approx(event.scale, rel=1e-12)
        assert query.sensitivity(adjacency).value * 1.2 == pytest.approx(event.sensitivity)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("kind", [DPTransferClassifier, DPTransferRegressor])
def test_peeling_and_prior(seen, kind, rounds, adjacency):
    domain = CLASSES if kind is DPTransferClassifier else NUMBERS
    more = {} if kind is DPTransferClassifier else {"cutoff": NUMBERS.target_bound / 4.0}
    model = kind(domain, n_nonzero=3, n_iter=rounds, adjacency=adjacency, **more)
    plan = model.plan(9)
    picks = phase(plan, "support")
    assert leaves(picks) == {only(picks, Exponential): 3 * rounds}
    moved = math.sqrt(2.0) if adjacency == "replace-one" else 1.0
    if kind is DPTransferRegressor:
        moved = 2.0 if adjacency == "replace-one" else 1.0  # in units of the target bound
    prior = only(phase(plan, "prior"), RoundedGaussian)
    assert prior.sensitivity == pytest.approx(moved)
    model.fit(*data(model))
    ((scale, query),) = seen.answers["prior"]
    assert scale == pytest.approx(prior.scale, rel=1e-12)
    assert query.sensitivity(adjacency).value == pytest.approx(moved)
    assert len(seen.picks) == rounds
    for kappa, scores, k in seen.picks:
        assert k == 3
        eta = 2.0 * kappa * scores.sensitivity(adjacency).value
        assert eta == pytest.approx(only(picks, Exponential).eta, rel=1e-8)
        assert eta < only(picks, Exponential).eta  # the rounding of the sampler is paid
    assert len(seen.answers.get("values", ())) == rounds - 1
    for scale, query in seen.answers.get("values", ()):
        values = only(phase(plan, "values"), RoundedGaussian)
        assert scale / query.sensitivity(adjacency).value == pytest.approx(values.scale)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_teacher_and_student(seen, adjacency):
    common = {"n_nonzero": 3, "ridge": 5.0, "row_clip": 1.2, "adjacency": adjacency}
    direct = DPTransferClassifier(CLASSES, **common)
    student = DPTransferClassifier(CLASSES, public_X="uniform", n_public=50, **common)
    twice = 2.0 if adjacency == "replace-one" else 1.0
    moved = (twice * 1.2 + 2 * TOL * 1.2) / 5.0
    teacher, answers = (only(phase(m.plan(9), "fit"), RoundedGaussian) for m in (direct, student))
    assert teacher.sensitivity == pytest.approx(moved, rel=1e-6)
    # distillation costs the same
    assert answers.sensitivity / answers.scale == pytest.approx(
        teacher.sensitivity / teacher.scale, rel=1e-12
    )
    assert answers.size == 50
    direct.fit(*data(direct))
    student.fit(*data(student))
    (scale, _), (wide, query) = seen.answers["fit"]
    assert scale == pytest.approx(teacher.scale, rel=1e-12)
    norm = query.sensitivity(adjacency).value / moved
    assert norm > 1.0
    assert wide == pytest.approx(norm * answers.scale, rel=1e-9)


def test_transfer_is_two_stage_with_the_output_stage(seen):
    """With no public rows, bit for bit."""
    one = DPTransferClassifier(CLASSES, n_nonzero=3, random_state=5)
    two = DPTwoStageClassifier(
        CLASSES, n_nonzero=3, second_stage="output", split=0.5, random_state=5
    )
    assert one.plan(9).event == two.plan(9).event
    for model in (one, two):
        with pytest.warns(NotPrivateWarning):
            model.fit(*data(model))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_admm(seen, classes, adjacency):
    domain = Domain(feature_bound=1.0, row_norm=1.0, classes=classes, n_samples=400)
    model = DPADMMClassifier(domain, n_iter=6, coupling=0.1, row_clip=1.2, adjacency=adjacency)
    counts = leaves(model.plan(9).event)
    event = only(model.plan(9).event, RoundedGaussian)
    releases = 6 * (1 if len(classes) == 2 else 3)
    assert counts[event] == releases
    twice = 2.0 if adjacency == "replace-one" else 1.0
    moved = (twice * 1.2 + 2 * TOL * 1.2) / 40.0
    grid = math.sqrt(10) * event.scale / STEPS
    assert event.sensitivity == pytest.approx(moved + grid, rel=1e-12)
    model.fit(*data(model))
    assert len(seen.answers["x-updates"]) == releases
    for scale, query in seen.answers["x-updates"]:
        assert scale == pytest.approx(event.scale, rel=1e-12)
        assert query.sensitivity(adjacency).value == pytest.approx(moved, rel=1e-12)


def test_row_bound_takes_the_smaller_fact():
    assert row_bound(Domain(feature_bound=2.0), 9, False) == pytest.approx(6.0)
    assert row_bound(Domain(feature_bound=2.0, row_norm=4.0), 9, False) == pytest.approx(4.0)
    assert row_bound(Domain(feature_bound=3.0, row_norm=3.0), 9, True) == pytest.approx(
        math.hypot(3, 1)
    )


def test_votes_pay_per_pick(seen):
    model = DPTwoStageClassifier(CLASSES, n_nonzero=3, support="votes")
    plan = model.plan(9)
    assert leaves(plan.event)[only(plan.event, Exponential)] == 3
    model.fit(*data(model))
    ((kappa, _, k),) = seen.picks
    # one row moves a vote by 1 up and 1 down
    assert kappa * 2.0 == pytest.approx(only(plan.event, Exponential).eta, rel=1e-8)
    assert k == 3


FAMILIES = [
    DPTwoStageClassifier(CLASSES, n_nonzero=3),
    DPTwoStageClassifier(CLASSES, n_nonzero=3, support="votes", second_stage="output"),
    DPTwoStageRegressor(NUMBERS, n_nonzero=3),
    DPTwoStageRegressor(NUMBERS, n_nonzero=3, second_stage="output"),
    DPTransferClassifier(CLASSES, n_nonzero=3),
    DPTransferRegressor(NUMBERS, n_nonzero=3),
    DPADMMClassifier(CLASSES, n_iter=1),
]


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
@pytest.mark.parametrize("index", range(len(FAMILIES)))
def test_the_lowest_bit_of_a_weight_tells_nothing(index):
    """Issue 13, A4: every released weight is a whole multiple of a unit that the plan alone decides. With float64
    noise the lowest set bit told whether the only owner of a feature is in the table."""
    model = FAMILIES[index]
    plan = model.plan(9)
    unit = (plan.parameters.get("jitter") or plan.parameters["scale"]) / STEPS
    for seed in range(5):
        model.set_params(random_state=seed)
        X, y = data(model)
        model.fit(X[seed:], y[seed:])
        assert model.plan_.parameters == plan.parameters
        # what ADMM publishes is a soft threshold of what it released, its intercept the release itself
        weights = model.intercept_ if "ADMM" in type(model).__name__ else model.coef_
        weights = np.ravel(weights) / (4.0 if "Regressor" in type(model).__name__ else 1.0)
        assert np.count_nonzero(weights) > 0
        np.testing.assert_allclose(weights, np.rint(weights / unit) * unit, rtol=2.0**-50, atol=0)


@pytest.mark.parametrize("index", range(len(FAMILIES)))
def test_no_plan_assumes_ideal_arithmetic(index):
    plan = clone(FAMILIES[index]).set_params(random_state=None).plan(9)
    assert not any("arithmetic" in line for line in plan.assumptions)
    assert plan.proven


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (DPTwoStageClassifier(CLASSES, ridge=1e-9), "ridge"),
        (DPTransferClassifier(CLASSES, ridge=1e-9), "ridge"),
        (DPADMMClassifier(CLASSES, coupling=1e-12), "coupling"),
        (DPTwoStageClassifier(CLASSES, row_clip=1e-40), "row_clip"),
        (DPTwoStageClassifier(CLASSES, ridge=math.inf), "ridge"),
        (DPTwoStageRegressor(NUMBERS, cutoff=1e-40), "cutoff"),
        (DPADMMClassifier(CLASSES, epsilon=1e-8, delta=1e-12), "epsilon"),
        (DPADMMClassifier(replace(CLASSES, n_samples=2**25 + 1)), "n_samples"),
        (DPTwoStageClassifier(replace(CLASSES, n_samples=2**25 + 1)), "n_samples"),
        (DPTransferRegressor(replace(NUMBERS, n_samples=2**25 + 1)), "n_samples"),
    ],
)
def test_what_arithmetic_cannot_do_is_refused_before_anything_is_spent(model, name):
    with pytest.raises(ParameterError, match=name):
        model.plan(9)


def test_a_ridge_is_certified_for_its_columns():
    """Lemma 2 of docs/proofs/ridge.md: rounding grows with the squared number of columns."""
    model = DPTwoStageClassifier(CLASSES, second_stage="output", ridge=1e-4)
    assert model.set_params(n_nonzero=9).plan(99).proven
    with pytest.raises(ParameterError, match="ridge"):
        model.set_params(n_nonzero=99).plan(99)
    model.set_params(epsilon=math.inf).plan(99)


def test_too_few_rows_for_a_support_release_the_mean():
    """A rule of public numbers: 24 effective rows cannot name a feature, 118 can."""

    def phases(n, **parameters):
        domain = Domain(n_samples=n, target_range=(0.0, 1.0))
        return [
            p.name for p in DPTwoStageRegressor(domain, n_nonzero=2, **parameters).plan(9).phases
        ]

    assert phases(100) == ["mean"]
    assert phases(100, support="votes")[-1] == "fit"
    assert phases(500)[-1] == "fit"


@pytest.mark.parametrize(
    "model",
    [
        DPADMMClassifier(CLASSES),
        DPTwoStageClassifier(CLASSES),
        DPTransferRegressor(NUMBERS),
        DPSparseRegressor(NUMBERS),
    ],
    ids=lambda model: type(model).__name__,
)
def test_tables_beyond_the_arithmetic_are_refused_before_anything_is_spent(model, monkeypatch):
    """Lemma 2 of docs/proofs/ridge.md is about the rows that are there, not those that were declared."""
    for home in ("_support", "ridge", "admm"):
        monkeypatch.setattr(f"dpsparse.estimators.{home}.LARGEST_TABLE", 50)
    ledger = Ledger(":memory:", epsilon=3.0, delta=1e-5)
    model = clone(model).set_params(ledger=ledger, epsilon=1.0)
    X = np.linspace(-1.0, 1.0, 51 * 4).reshape(51, 4)
    with pytest.raises(DomainError, match="up to 50 rows"):
        model.fit(X, np.arange(51) % 2)
    assert ledger.spent() == 0.0
    model.fit(X[:50], np.arange(50) % 2)


@pytest.mark.filterwarnings("ignore:No number:dpsparse.exceptions.BudgetWarning")
@pytest.mark.parametrize("search", [False, True], ids=["fit", "search"])
@pytest.mark.parametrize("prepared", [False, True], ids=["model", "pipeline"])
def test_pipelines_and_searches_refuse_them_too(prepared, search, monkeypatch):
    """Both carry out fits of their own, and forgot to ask."""
    monkeypatch.setattr("dpsparse.estimators.admm.LARGEST_TABLE", 50)
    many = replace(CLASSES, n_samples=10**4)  # declared, so that scales are worth their price
    model, name = DPADMMClassifier(many), "row_clip"
    if prepared:
        steps = [("scale", DPStandardizer(share=0.3)), ("model", model)]
        model, name = DPPipeline(steps, epsilon=1.0), "model__row_clip"
    if search:
        model = DPSearchCV(model, {name: [0.5, 1.0]}, epsilon=1.0, design="refit")
    ledger = Ledger(":memory:", epsilon=3.0, delta=1e-5)
    model.set_params(ledger=ledger)
    X = np.linspace(-1.0, 1.0, 51 * 4).reshape(51, 4)
    with pytest.raises(DomainError, match="up to 50 rows"):
        model.fit(X, np.arange(51) % 2)
    assert ledger.spent() == 0.0
    model.fit(X[:50], np.arange(50) % 2)

"""What the plans of two-stage, transfer and ADMM charge is what leaves: number by number, through the door."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from dpsparse import (
    DPADMMClassifier,
    DPTransferClassifier,
    DPTransferRegressor,
    DPTwoStageClassifier,
    DPTwoStageRegressor,
    release,
)
from dpsparse.accounting import Exponential, ObjectivePerturbation, RoundedGaussian
from dpsparse.accounting.events import leaves
from dpsparse.domain import Domain
from dpsparse.exceptions import DomainError, ParameterError
from dpsparse.ledger import Ledger
from dpsparse.mechanisms import Picks
from dpsparse.methods.front import DPSparseRegressor
from dpsparse.methods.support_first.plan import GRADIENT_TOLERANCE as TOL
from dpsparse.methods.support_first.solve import ROW_CLIP
from dpsparse.model_selection import DPSearchCV
from dpsparse.preprocessing import DPPipeline, DPStandardizer
from dpsparse.random import STEPS
from dpsparse.release import Releases

CLASSES = Domain(feature_bound=1.0, classes=[0, 1], n_samples=400)
NUMBERS = Domain(feature_bound=1.0, target_bound=4.0, n_samples=400)
MANY = Domain(feature_bound=1.0, classes=[0, 1], n_samples=4000)  # enough for released scales
MANY_NUMBERS = Domain(feature_bound=1.0, target_bound=4.0, n_samples=4000)
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
    monkeypatch.setattr(release, "Releases", Seen)
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
    ("kind", "domain", "smoothness", "clip"),
    [
        (DPTwoStageClassifier, CLASSES, 0.25, math.sqrt(2.0)),
        (DPTwoStageClassifier, MANY, 0.25, ROW_CLIP),
        (DPTwoStageRegressor, NUMBERS, 1.0, math.sqrt(2.0)),
        (DPTwoStageRegressor, MANY_NUMBERS, 1.0, ROW_CLIP),
    ],
)
def test_a_tilted_fit(seen, kind, domain, smoothness, clip, adjacency):
    model = kind(domain, n_nonzero=3, adjacency=adjacency, epsilon=0.9)
    event = phase(model.plan(9), "fit")
    tilt, blur = only(event, ObjectivePerturbation), only(event, RoundedGaussian)
    if (
        domain is MANY_NUMBERS
    ):  # so many that longer rows count in full; the rows below say whether they do
        assert clip < tilt.gradient_bound < 2.0 * clip
        clip = tilt.gradient_bound
    assert tilt.gradient_bound == clip
    assert tilt.curvature == pytest.approx(smoothness * clip**2)
    assert tilt.adjacency == adjacency
    assert tilt.loss == ("one-sided" if kind is DPTwoStageClassifier else "glm")
    model.fit(*data(model))
    ((problem, unit, fine),) = seen.tilts
    assert unit == tilt.scale / STEPS
    assert fine * STEPS == pytest.approx(blur.scale, rel=1e-12)
    assert problem.ridge == tilt.ridge
    # stopping short on both tables, the rounding of the tilt on both, the rounding to the grid
    away = 2.0 * (problem.tol + 2.0 * unit) / tilt.ridge
    assert problem.tol == pytest.approx(TOL * clip)
    assert blur.sensitivity == pytest.approx(away + 2.0 * fine, rel=1e-12)
    assert blur.size == 2 * 4
    # the blur has a thousandth of the budget of the tilt
    moved = clip * (2.0 if adjacency == "replace-one" else 1.0)
    share = blur.sensitivity / blur.scale / (moved / tilt.scale)
    assert share == pytest.approx(math.sqrt(1e-3), rel=1e-9)
    # every row that was fitted, and one of length r that attains both bounds
    norms = np.append(np.linalg.norm(problem.rows.table, axis=1), clip)
    weights = np.append(problem.rows.weights, 1.0)
    assert 0.99 * clip <= (weights * norms).max() <= clip * (1 + 1e-12)
    curvatures = smoothness * weights * norms**2
    assert 0.99 * tilt.curvature <= curvatures.max() <= tilt.curvature * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("domain", "clip"), [(CLASSES, math.sqrt(2.0)), (MANY, ROW_CLIP)])
def test_teacher_and_student(seen, domain, clip, adjacency):
    common = {"n_nonzero": 3, "ridge": 5.0, "adjacency": adjacency, "epsilon": 0.9}
    direct = DPTransferClassifier(domain, **common)
    rows = np.random.default_rng(3).uniform(-1, 1, (50, 9))
    student = DPTransferClassifier(domain, public_X=rows, **common)
    twice = 2.0 if adjacency == "replace-one" else 1.0
    moved = (twice * clip + 2 * TOL * clip) / 5.0
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


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", [DPTransferClassifier, DPTwoStageRegressor])
def test_targets_and_picks(seen, kind, adjacency):
    domain = CLASSES if kind is DPTransferClassifier else NUMBERS
    model = kind(domain, n_nonzero=3, adjacency=adjacency)
    plan = model.plan(9)
    picks = phase(plan, "support")
    assert leaves(picks) == {only(picks, Exponential): 3}
    moved = math.sqrt(2.0) if adjacency == "replace-one" else 1.0
    name = "prior"
    if kind is DPTwoStageRegressor:
        moved, name = 2.0 if adjacency == "replace-one" else 1.0, "mean"
    first = only(phase(plan, name), RoundedGaussian)
    model.fit(*data(model))
    ((scale, query),) = seen.answers[name]
    assert query.sensitivity(adjacency).value == pytest.approx(moved)
    assert scale == pytest.approx(first.scale / first.sensitivity * moved, rel=1e-12)
    ((kappa, scores, k),) = seen.picks
    assert k == 3
    eta = 2.0 * kappa * scores.sensitivity(adjacency).value
    assert eta == pytest.approx(only(picks, Exponential).eta, rel=1e-8)
    assert eta < only(picks, Exponential).eta  # the rounding of the sampler is paid


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_admm(seen, classes, adjacency):
    domain = Domain(feature_bound=1.0, row_norm=1.0, classes=classes, n_samples=400)
    model = DPADMMClassifier(
        domain, n_iter=6, ridge=40.0, n_nonzero=9, adjacency=adjacency, epsilon=0.5
    )
    fit = phase(model.plan(9), "fit")
    counts, event = leaves(fit), only(fit, RoundedGaussian)
    releases = 6 * (1 if len(classes) == 2 else 3)
    assert counts[event] == releases
    twice = 2.0 if adjacency == "replace-one" else 1.0
    moved = (twice + 2 * TOL) * math.sqrt(2.0) / 40.0
    grid = math.sqrt(10) * event.scale / STEPS
    assert event.sensitivity == pytest.approx(moved + grid, rel=1e-12)
    model.fit(*data(model))
    assert len(seen.answers["fit"]) == releases
    for scale, query in seen.answers["fit"]:
        assert scale == pytest.approx(event.scale, rel=1e-12)
        assert query.sensitivity(adjacency).value == pytest.approx(moved, rel=1e-12)


def test_the_longest_row_is_the_smaller_fact():
    assert Domain(feature_bound=2.0).longest_row(9) == pytest.approx(6.0)
    assert Domain(feature_bound=2.0, row_norm=4.0).longest_row(9) == pytest.approx(4.0)


FAMILIES = [
    DPTwoStageClassifier(CLASSES, n_nonzero=3),
    DPTwoStageRegressor(NUMBERS, n_nonzero=3),
    DPTransferClassifier(CLASSES, n_nonzero=3),
    DPTransferRegressor(NUMBERS, n_nonzero=3),
    DPADMMClassifier(CLASSES, n_iter=1, n_nonzero=3),
]


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
@pytest.mark.parametrize("index", range(len(FAMILIES)))
def test_the_lowest_bit_of_a_weight_tells_nothing(index):
    """Where declared bounds set all scales, every released weight is a whole multiple of a unit that the plan alone
    decides. With float64 noise the lowest set bit told whether the only owner of a feature is in the table."""
    model = FAMILIES[index].set_params(epsilon=0.8)
    plan = model.plan(9)
    fit = leaves(plan.phases[-1].event)
    (unit,) = (leaf.scale / STEPS for leaf in fit if isinstance(leaf, RoundedGaussian))
    assert plan.parameters["way"] == "declared"
    stretch = 2.0 * math.sqrt(2.0) / plan.settings.longest_on_support
    for seed in range(5):
        model.set_params(random_state=seed)
        X, y = data(model)
        model.fit(X[seed:], y[seed:])
        assert model.plan_.parameters == plan.parameters
        weights = np.ravel(model.coef_) / stretch
        if (
            "ADMM" in type(model).__name__
        ):  # its weights are a soft threshold, its intercept the release itself
            weights = model.intercept_
        weights = weights / (4.0 * 0.25 if "Regressor" in type(model).__name__ else 1.0)
        assert np.count_nonzero(weights) > 0
        np.testing.assert_allclose(weights, np.rint(weights / unit) * unit, rtol=2.0**-49, atol=0)


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
        (DPADMMClassifier(CLASSES, ridge=1e-9), "ridge"),
        (DPTwoStageClassifier(CLASSES, ridge=math.inf), "ridge"),
        (DPADMMClassifier(CLASSES, epsilon=1e-8, delta=1e-12, n_nonzero=5), "epsilon"),
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
    model = DPTransferClassifier(CLASSES, ridge=1e-5)
    assert model.set_params(n_nonzero=9).plan(99).proven
    with pytest.raises(ParameterError, match="ridge"):
        model.set_params(n_nonzero=99).plan(99)


def test_too_few_rows_for_a_support_release_the_mean():
    """A rule of public numbers: 24 effective rows cannot name a feature, 118 can."""

    def phases(n):
        domain = Domain(n_samples=n, target_range=(0.0, 1.0))
        return [p.name for p in DPTwoStageRegressor(domain, n_nonzero=2).plan(9).phases]

    assert phases(100) == ["mean"]
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
    monkeypatch.setattr("dpsparse.methods.support_first.plan.LARGEST_TABLE", 50)
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
    monkeypatch.setattr("dpsparse.methods.support_first.plan.LARGEST_TABLE", 50)
    many = replace(CLASSES, n_samples=10**4)  # declared, so that scales are worth their price
    model = DPADMMClassifier(many)
    if prepared:
        steps = [("scale", DPStandardizer()), ("model", model)]
        model = DPPipeline(steps, epsilon=1.0)
    if search:
        model = DPSearchCV(model, {"ridge": [5e3, 1e4]}, epsilon=1.0)
    ledger = Ledger(":memory:", epsilon=3.0, delta=1e-5)
    model.set_params(ledger=ledger)
    X = np.linspace(-1.0, 1.0, 51 * 4).reshape(51, 4)
    with pytest.raises(DomainError, match="up to 50 rows"):
        model.fit(X, np.arange(51) % 2)
    assert ledger.spent() == 0.0
    model.fit(X[:50], np.arange(50) % 2)

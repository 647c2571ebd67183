"""Every estimator, every way through its code, both adjacencies: replay finds nothing."""

import copy

import numpy as np
import pytest

from audit_cases import CASES, build, cases
from complaints import check, first_complaint
from dpsparse import Domain
from dpsparse import methods as estimators
from dpsparse.audit.neighbours import boundary_rows
from dpsparse.audit.replay import boundary_findings, declared_costs, worst_of
from dpsparse.audit.same import differences
from dpsparse.audit.subject import Subject
from dpsparse.audit.verdict import audit
from dpsparse.rows import Rows
from dpsparse.rows.parts import InMemory

ADJACENCIES = ("add-remove", "replace-one")


def test_every_estimator_has_cases():
    assert set(CASES) == set(estimators.__all__)


@pytest.mark.parametrize("name", estimators.__all__)
def test_every_mechanism_has_a_replay(name):
    for adjacency in ADJACENCIES:
        for estimator in build(name, adjacency):
            kinds = declared_costs(Subject(estimator, 7).plan.event)
            assert kinds
            assert not [kind for kind in kinds if "no replay" in kind]


def quick_marks(adjacency, number):
    """Neighbouring cases take turns with the adjacency, so that every estimator is audited under both of them at once;
    the other half of all combinations runs with the heavier tests."""
    return () if number % 2 == ADJACENCIES.index(adjacency) else pytest.mark.heavy


NUMBERED = [
    pytest.param(estimator, number, id=name, marks=quick_marks(adjacency, number))
    for adjacency in ADJACENCIES
    for number, (name, estimator) in enumerate(cases(adjacency))
]


@pytest.mark.parametrize("name", estimators.__all__)
def test_the_quick_audits_see_every_estimator_under_both_adjacencies(name):
    quick = {
        case.id.rpartition(f"{name}-")[2][2:]
        for case in NUMBERED
        if not case.marks and case.id.startswith(name)
    }
    assert quick == set(ADJACENCIES)


@pytest.mark.parametrize(("estimator", "seed"), NUMBERED)
def test_replay_finds_nothing_quickly(estimator, seed):
    # Boundary floats have a test of their own below.
    finding = check(estimator, n_pairs=6, n_climbs=2, every=1000, seed=seed)
    assert finding.complaints == ()
    assert finding.height > 0.2  # the pairs do move the queries


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(estimator, id=name)
        for adjacency in ADJACENCIES
        for name, estimator in cases(adjacency)
    ],
)
def test_replay_and_noise_find_nothing(estimator):
    assert first_complaint(estimator, n_runs=100) == ""
    assert check(estimator, n_pairs=66, n_climbs=60, seed=1).complaints == ()


def test_a_model_with_public_rows_has_as_many_columns_as_they():
    """No wider table can be made for the law of its picks; the rest of the audit holds all the same."""
    found = [e for e in build("DPTransferClassifier", "add-remove") if e.public_X is not None]
    assert first_complaint(found[0], n_runs=5) == ""


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", estimators.__all__)
def test_no_attack_refutes_the_proven_calibration(name, adjacency):
    """All attacks at 99.9 % confidence; the false alarm rate is 0.001 for each estimator."""
    for estimator in build(name, adjacency, delta=1e-2):
        public = getattr(estimator, "public_X", None)  # which has the columns of the table
        width = 4 if public is None else public.shape[1]
        verdict = audit(estimator, width, n_runs=400, confidence=0.999)
        assert verdict.holds, str(verdict)


@pytest.mark.heavy
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", [n for n in estimators.__all__ if "Lasso" in n])
def test_frank_wolfe_on_parts_that_stay_apart_is_audited_too(name, adjacency, monkeypatch):
    monkeypatch.setattr(InMemory, "fit_in_memory", False)
    for estimator in build(name, adjacency)[:2]:
        assert check(estimator, n_pairs=22, n_climbs=6, seed=1).complaints == ()


@pytest.mark.heavy
def test_tight_where_the_bound_is_attained():
    """Strength: the climb reaches the declared sensitivity, so 1 % less would be caught."""
    hard = build("DPHardThresholdClassifier", "add-remove")[0]
    assert check(hard, seed=2).tightness["gradients"] > 0.99
    for adjacency in ADJACENCIES:
        # Under replace-one the climb has two rows to find at once, which takes longer.
        lasso = check(build("DPLassoClassifier", adjacency)[0], n_climbs=60, seed=2)
        assert lasso.tightness["prior"] > 0.99
        assert lasso.tightness["vertices"] > 0.99


CLASSES, NUMBERS = {"classes": (0, 1)}, {"target_bound": 2.0}
LOOKING = {  # and phases whose bound a few pairs and climbs nearly attain, add-remove and replace-one
    "DPRidgeRegressor": (
        NUMBERS,
        {},
        {"axes": (0.9, 0.6), "columns": (0.9, 0.6), "fit": (0.5, 0.3)},
    ),
    "DPTwoStageRegressor": (
        NUMBERS,
        {"n_nonzero": 2},
        {"entry": (0.9, 0.6), "support": (0.5, 0.3)},
    ),
    "DPLassoRegressor": (NUMBERS, {"n_iter": 3}, {"columns": (0.9, 0.6), "vertices": (0.9, 0.6)}),
    "DPLassoClassifier": (CLASSES, {"n_iter": 3}, {"entry": (0.9, 0.6), "vertices": (0.9, 0.6)}),
    "DPHardThresholdClassifier": (
        CLASSES,
        {"n_nonzero": 2, "n_iter": 4},
        {"gradients": (0.9, 0.4)},
    ),
    "DPHardThresholdRegressor": (NUMBERS, {"n_nonzero": 2, "n_iter": 4}, {"gradients": (0.9, 0.4)}),
}


@pytest.mark.heavy
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    ("name", "together"),
    [
        *((name, True) for name in LOOKING),
        ("DPLassoRegressor", False),
        ("DPLassoClassifier", False),
    ],
)
def test_released_scales_are_replayed_where_as_many_rows_are_there_as_were_declared(
    name, together, adjacency, monkeypatch
):
    """With 12 rows of 4,000 declared ones every released quantile ends at its declared bound, and no row is ever beyond
    a released scale: parts that did not cut entries passed. Few rows and a large epsilon release the same scales."""
    monkeypatch.setattr(InMemory, "fit_in_memory", together)
    facts, parameters, reached = LOOKING[name]
    n = (12 if adjacency == "add-remove" else 24) * (2 if "entry" in reached else 1)
    model = getattr(estimators, name)(
        Domain(**facts, n_samples=n), epsilon=60.0, adjacency=adjacency, **parameters
    )
    phases = [phase.name for phase in Subject(model, 7).plan.phases]
    assert set(reached) <= set(phases)
    finding = check(model, n_rows=n, n_pairs=22, n_climbs=6, every=60, seed=1)
    assert finding.complaints == ()
    for phase, least in reached.items():
        assert finding.tightness[phase] > least[ADJACENCIES.index(adjacency)], phase


def test_minimisers_return_for_a_crowd_of_equal_rows():
    """Found by this audit: accepting a fall of the objective or of the gradient norm can cycle."""
    domain = Domain(classes=(0, 1), feature_bound=1.0)
    X, y = np.tile([0.0, 0.0, 1.0, 1.0], (360, 1)), np.ones(360, int)
    rows = Rows.clip(X, y, domain, labels=np.array([0, 1]))
    columns = rows.ridge(None, constant=0.0, row_clip=0.5, longest=2.0)
    problem = columns.problem("logistic", ridge=1.0, tol=7e-7)
    tilt = np.array([4.03714862, 3.2155415, -2.78842167, 6.12503643])
    query = problem.tilted(tilt, 2.0**-40)
    query.whole(2.0**-40)
    assert query.certificate()


def test_there_are_many_boundary_rows():
    for estimator in build("DPGradientClassifier", "add-remove"):
        assert len(boundary_rows(estimator.domain, 7)) >= 200


@pytest.mark.parametrize(("estimator", "number"), NUMBERED)
def test_boundary_floats_contribute_at_most_their_bound(estimator, number):
    """Whole numbers, compared exactly. Every case begins at another row, so that together they try all of them."""
    found = worst_of(boundary_findings(Subject(estimator, 7), every=37, seed=number))
    assert found.first_complaint == ""
    assert all(share <= 1.0 for share in found.reached.values())
    # A plan of one tilted minimiser asks for no sum; its gradient and volume are what replay checks.
    tilted = [phase.name for phase in Subject(estimator, 7).plan.phases] == ["fit"]
    assert bool(found.reached) != tilted


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "number"), NUMBERED)
def test_every_boundary_float_contributes_at_most_its_bound(estimator, number):
    found = list(boundary_findings(Subject(estimator, 7)))
    assert worst_of(found).first_complaint == ""
    assert len(found) >= 200


def test_replay_compares_everything_that_a_fit_leaves():
    left = {"a": [1.0, {"b": np.array([0.0])}], "plan_": build("DPADMMClassifier", "add-remove")[0]}
    right = {"a": [1.0, {"b": np.array([-0.0])}], "plan_": left["plan_"]}
    assert list(differences(left, left, "model")) == []
    assert list(differences(left, right, "model")) == ["model.a[1].b"]
    assert list(differences(1, 1.0, "n")) == ["n"]


def test_replay_compares_what_any_object_holds_and_its_attributes():
    """A number may hide in an attribute beside items, in a key, under a mask, or in the arguments of an error."""

    def made(kind, content, **attributes):
        value = kind(content)
        vars(value).update(attributes)
        return value

    for base, content in (
        (dict, {"a": 1}),
        (list, [1]),
        (tuple, (1,)),
        (set, [1]),
        (float, 0.5),
        (str, "a"),
    ):
        kind = type("Holder", (base,), {})
        one, same = made(kind, content, n_=1), made(kind, content, n_=1)
        assert list(differences(one, same, "x")) == []
        assert list(differences(one, made(kind, content, n_=2), "x")) == ["x.n_"]
        assert list(differences(one, made(kind, content, n_=1, m_=2), "x")) == ["x"]
        more = {"a": 2} if base is dict else [2] if base is set else 2 * content
        assert list(differences(one, made(kind, more, n_=1), "x"))
    array = np.ma.array([1.0, 2.0], mask=[False, True])
    assert list(differences(array, array.copy(), "x")) == []
    assert list(differences(array, np.ma.array([1.0, 2.0], mask=[True, True]), "x"))
    assert list(differences(array, np.ma.array([1.0, 3.0], mask=[False, True]), "x"))
    for a, b in (
        ({1: 0}, {1.0: 0}),
        ({0.0}, {-0.0}),
        ([np.array([[1, None]], object)], [np.array([[1], [None]], object)]),
        (ValueError(1), ValueError(2)),
        (np.array(1, object), np.array(2, object)),
        (Named("a", 1), Named("a", 2)),
    ):
        assert list(differences(a, a, "x")) == list(differences(a, copy.deepcopy(a), "x")) == []
        assert list(differences(a, b, "x"))


class Named:
    """Called like a function, and with a number of its own."""

    def __init__(self, name, n):
        self.name, self.n_ = name, n

    def __call__(self):
        return self.name

    def __eq__(self, other):
        return self.name == other.name

    __hash__ = None

"""Every estimator, every way through its code, both adjacencies: replay finds nothing."""

import pytest

from dpsparse import estimators
from dpsparse.audit.cases import CASES, build, cases
from dpsparse.audit.replay import Subject, check, declared_costs
from dpsparse.audit.verdict import audit, first_complaint

ADJACENCIES = ("add-remove", "replace-one")


@pytest.fixture(autouse=True)
def short_counts(monkeypatch):
    """A private count needs some noiseless fit; five thousand steps of it are not needed here."""
    from dpsparse.estimators import lasso

    monkeypatch.setattr(lasso, "COUNT_STEPS", 30)


def test_every_estimator_has_cases():
    assert set(CASES) == set(estimators.__all__)


@pytest.mark.parametrize("name", estimators.__all__)
def test_every_mechanism_has_a_replay(name):
    for adjacency in ADJACENCIES:
        for estimator in build(name, adjacency):
            kinds = declared_costs(Subject(estimator, 7).plan.event)
            assert kinds
            assert not [kind for kind in kinds if "no replay" in kind]


@pytest.mark.parametrize(
    ("estimator", "seed"),
    [
        pytest.param(estimator, number, id=name)
        for adjacency in ADJACENCIES
        for number, (name, estimator) in enumerate(cases(adjacency))
    ],
)
def test_replay_finds_nothing_quickly(estimator, seed):
    finding = check(estimator, n_pairs=6, n_climbs=2, seed=seed)
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


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", estimators.__all__)
def test_no_attack_refutes_the_proven_calibration(name, adjacency):
    """All four attacks at 99.9 % confidence; the false alarm rate is 0.001 for each estimator."""
    for estimator in build(name, adjacency, delta=1e-2):
        verdict = audit(estimator, 4, n_runs=400, confidence=0.999)
        assert verdict.holds, str(verdict)


def test_tight_where_the_bound_is_attained():
    """Strength: the climb reaches the declared sensitivity, so 1 % less would be caught."""
    hard = build("DPHardThresholdClassifier", "add-remove")[0]
    assert check(hard, seed=2).tightness["gradients"] > 0.99
    lasso = build("DPLassoClassifier", "add-remove")[0]
    assert check(lasso, seed=2).tightness["gumbel"] > 0.99


def test_minimisers_return_for_a_crowd_of_equal_rows():
    """Found by this audit: accepting a fall of the objective or of the gradient norm can cycle."""
    import numpy as np
    from dpsparse.solvers.objective import minimise

    from dpsparse.losses import get_loss

    rows = np.tile([0.0, 0.0, 1.0, 1.0], (360, 1))
    tilt = np.array([4.03714862, 3.2155415, -2.78842167, 6.12503643])
    weights = np.full(360, 0.5)
    theta = minimise(
        rows, np.ones(360, int), weights, get_loss("logistic"), ridge=1.0, tol=7e-7, tilt=tilt
    )
    slopes = get_loss("logistic").slope(rows @ theta, np.ones(360, int))
    assert np.linalg.norm(rows.T @ (weights * slopes) + theta + tilt) <= 7e-7

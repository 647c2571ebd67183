"""The front estimators: a choice from public facts, said aloud, and a corridor that stays the same."""

import math

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPRidgeRegressor,
    DPSparseClassifier,
    DPSparseRegressor,
    Ledger,
    load,
    save,
)
from dpsparse.exceptions import DomainError, ParameterError
from methods.test_gradient_sklearn import unpromised

TARGETS = Domain(feature_bound=10.0, target_bound=100.0, n_samples=50, weight_bound=10.0)


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")  # checks set a seed
@parametrize_with_checks(
    [
        DPSparseClassifier(Domain(feature_bound=10.0, classes="observed", weight_bound=10.0)),
        DPSparseRegressor(TARGETS),
        DPRidgeRegressor(TARGETS),
    ],
    expected_failed_checks=unpromised,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("facts", "parameters", "n_features", "chosen"),
    [
        ({"n_samples": 1000}, {}, 20, "DPRidgeRegressor"),
        ({"n_samples": 2**25 + 1}, {}, 20, "DPGradientRegressor"),
        ({"n_samples": 200}, {}, 60, "DPTwoStageRegressor"),
        ({"n_samples": 1000}, {}, 2000, "DPGradientRegressor"),
        ({}, {}, 20, "DPGradientRegressor"),
        ({"n_samples": 20_000}, {"n_nonzero": 5}, 400, "DPTwoStageRegressor"),
        ({"n_samples": 3000}, {"n_nonzero": 70}, 600, "DPTwoStageRegressor"),
        ({"n_samples": 3000}, {"n_nonzero": 70, "epsilon": 3.0}, 600, "DPTwoStageRegressor"),
        ({"n_samples": 3000}, {"n_nonzero": 70, "epsilon": 3.0}, 300, "DPRidgeRegressor"),
        ({"n_samples": 800}, {"n_nonzero": 10, "epsilon": 0.1}, 1000, "DPRidgeRegressor"),
        ({"n_samples": 800}, {"n_nonzero": 500}, 3000, "DPTwoStageRegressor"),
        ({"n_samples": 800}, {"epsilon": 30.0, "n_nonzero": "mass"}, 50, "DPGradientRegressor"),
        ({"n_samples": 1000}, {"n_nonzero": "mass"}, 20, "DPGradientRegressor"),
        ({"n_samples": 1000, "unit": "person"}, {}, 20, "DPGradientRegressor"),
        ({"n_samples": 1000, "unit": "person", "rows_per_unit": 1}, {}, 20, "DPRidgeRegressor"),
    ],
)
def test_the_choice_is_said_in_the_plan(facts, parameters, n_features, chosen):
    model = DPSparseRegressor(Domain(target_bound=1.0, **facts), **parameters)
    plan = model.plan(n_features)
    assert plan.parameters["chosen"] == chosen
    assert plan.parameters["why"]
    assert chosen in str(plan)
    assert plan.method == "DPSparseRegressor"
    assert plan.guarantee.proven


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
def test_it_is_the_chosen_estimator_bit_for_bit():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 8))
    y = (X[:, 0] > 0).astype(int)
    domain = Domain(classes=[0, 1], n_samples=500)
    front = DPSparseClassifier(domain, n_nonzero=3, random_state=1).fit(X, y)
    other = DPGradientClassifier(domain, n_nonzero=3, random_state=1).fit(X, y)
    np.testing.assert_array_equal(front.coef_, other.coef_)
    np.testing.assert_array_equal(front.intercept_, other.intercept_)
    assert front.plan_.event == other.plan_.event


def test_file_ledger_and_persons(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (500, 8))
    ledger = Ledger(tmp_path / "book.db", epsilon=2.0, delta=1e-5)
    domain = Domain(target_range=(-1.0, 3.0), n_samples=500)
    model = DPSparseRegressor(domain, ledger=ledger).fit(X, 1.0 + X[:, 0])
    assert 0.0 < ledger.spent() <= 1.0
    path = save(model, tmp_path / "model.json")
    again = load(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.domain == domain
    persons = Domain(target_range=(-1.0, 3.0), n_samples=100, unit="person")
    groups = np.repeat(np.arange(100), 5)
    fitted = DPSparseRegressor(persons).fit(X, 1.0 + X[:, 0], groups=groups)
    assert fitted.plan_.parameters["chosen"] == "DPGradientRegressor"


def test_without_noise_and_without_bounds():
    domain = Domain(classes=[0, 1], n_samples=100)
    assert math.isinf(DPSparseClassifier(domain, epsilon=math.inf).plan(5).epsilon)
    with pytest.raises(DomainError, match="target_range"):
        DPSparseRegressor(Domain(n_samples=100)).plan(5)


PRICED = [
    DPSparseClassifier(Domain(classes=[0, 1], n_samples=1000)),
    DPSparseRegressor(Domain(target_bound=1.0)),
    DPRidgeRegressor(Domain(target_bound=1.0, n_samples=10_000)),
]


@pytest.mark.parametrize("model", PRICED, ids=lambda m: type(m).__name__)
def test_plans_are_monotone_in_epsilon_and_delta(model):
    """More epsilon or delta never means more noise, up to epsilon 100: every scale of the plan falls or stays."""

    def scales(**changes):
        plan = type(model)(**{**model.get_params(deep=False), **changes}).plan(10)
        found = []
        for phase in plan.phases:
            leaf = getattr(phase.event, "events", (phase.event,))[0]
            found.append((phase.name, leaf.scale))
        return found

    for name, values in (
        ("epsilon", [0.01, 0.1, 1.0, 3.0, 10.0, 20.0, 29.0, 31.0, 40.0, 100.0]),
        ("delta", [1e-12, 1e-9, 1e-6, 1e-3]),
    ):
        last = None
        for value in values:
            now = scales(**{name: value})
            if last is not None and [a for a, _ in now] == [a for a, _ in last]:
                assert all(b <= a * (1 + 1e-6) for (_, a), (_, b) in zip(last, now, strict=True))
            last = now


def test_more_steps_mean_more_noise_in_each():
    from dpsparse import DPLassoClassifier

    domain = Domain(classes=[0, 1], row_norm=1.0, n_samples=1000)
    etas = [
        DPLassoClassifier(domain, n_iter=t).plan(50).parameters["eta"] for t in (1, 10, 100, 1000)
    ]
    assert etas == sorted(etas, reverse=True)


def test_a_ridge_that_float64_cannot_certify_is_refused_before_anything_is_spent():
    """At epsilon 60 its price could be paid; its minimiser ran for as long as the data made it."""
    domain = Domain(target_range=(-1.0, 1.0), n_samples=2000)
    with pytest.raises(ParameterError, match="ridge is too small"):
        DPRidgeRegressor(domain, epsilon=60.0, ridge=1e-20).plan(5)

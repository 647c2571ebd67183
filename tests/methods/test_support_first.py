"""Two-stage, transfer and ADMM as scikit-learn estimators: plans, guarantees, refusals, data forms."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpsparse import (
    DPADMMClassifier,
    DPTransferClassifier,
    DPTransferRegressor,
    DPTwoStageClassifier,
    DPTwoStageRegressor,
)
from dpsparse.accounting import epsilon
from dpsparse.accounting.events import leaves
from dpsparse.domain import Domain
from dpsparse.exceptions import CalibrationError, DomainError, NotPrivateWarning, ParameterError

CLASSES = Domain(feature_bound=1.0, row_norm=3.0, classes=[0, 1], n_samples=2000)
NUMBERS = Domain(feature_bound=1.0, row_norm=3.0, target_bound=4.0, n_samples=2000)
ANY = Domain(
    feature_bound=10.0, row_norm=30.0, classes="observed", target_bound=100.0, n_samples=100
)


def table(seed=0, n=2000, d=30, s=4):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    theta = np.zeros(d)
    theta[:s] = [2.0, -2.0, 1.5, -1.5][:s]
    margins = X @ theta
    return X, (margins + 0.3 * rng.standard_normal(n) > 0).astype(int), margins, theta


PUBLIC = np.random.default_rng(9).uniform(-1, 1, (40, 30))


def models(**kwargs):
    return [
        DPTwoStageClassifier(CLASSES, n_nonzero=4, **kwargs),
        DPTwoStageRegressor(NUMBERS, n_nonzero=4, **kwargs),
        DPTransferClassifier(CLASSES, n_nonzero=4, **kwargs),
        DPTransferClassifier(CLASSES, n_nonzero=4, public_X=PUBLIC, **kwargs),
        DPTransferRegressor(NUMBERS, n_nonzero=4, **kwargs),
        DPTransferRegressor(NUMBERS, n_nonzero=4, public_X=PUBLIC, **kwargs),
        DPADMMClassifier(CLASSES, n_nonzero=4, **kwargs),
        DPADMMClassifier(CLASSES, n_iter=2, n_nonzero=4, **kwargs),
    ]


def fit(model):
    X, labels, margins, _ = table()
    return model.fit(X, labels if "Classifier" in type(model).__name__ else margins)


SKLEARN = [
    DPTwoStageClassifier(ANY, n_nonzero=2),
    DPTwoStageRegressor(ANY, n_nonzero=2),
    DPTransferClassifier(ANY, n_nonzero=2),
    DPTransferRegressor(ANY, n_nonzero=2),
    DPADMMClassifier(ANY, n_iter=2),
]


@pytest.mark.heavy
@parametrize_with_checks(SKLEARN)
def test_scikit_learn_contract(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # the battery seeds every estimator
        check(estimator)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("index", range(8))
def test_plan_is_the_guarantee_of_the_fit(index, adjacency):
    model = models(epsilon=0.7, delta=1e-6, adjacency=adjacency)[index]
    plan = model.plan(30)
    assert plan.proven
    assert 0.69 < epsilon(plan.event, 1e-6) <= 0.7
    fit(model)
    assert model.privacy_ == plan.guarantee
    assert model.privacy_.proven
    assert model.privacy_.recompute() <= 0.7
    assert dict(model.plan_.parameters) == dict(plan.parameters)


@pytest.mark.parametrize("index", range(8))
def test_replacing_a_row_costs_more_noise(index):
    """Every noise scale grows; a ridge that grows with its noise is compared in units of a row's gradient."""
    one, other = (models(adjacency=a)[index].plan(30) for a in ("add-remove", "replace-one"))
    tilted = "TwoStage" in type(models()[index]).__name__

    def noise(plan):
        scale = next(iter(leaves(plan.phases[-1].event))).scale
        return scale * (1.0 if tilted else plan.parameters["ridge"])

    assert noise(other) > 1.5 * noise(one)


@pytest.mark.parametrize("index", range(8))
def test_without_noise_the_signal_is_found(index):
    model = models(epsilon=math.inf)[index]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        fit(model)
    assert not model.privacy_.proven
    coef = np.ravel(model.coef_)
    assert np.array_equal(np.sort(np.argsort(-np.abs(coef))[:4]), np.arange(4))
    assert np.count_nonzero(coef) == 4


def test_private_models_learn():
    """Two thousand rows at epsilon 2 (secure noise; each assertion fails with rate below 1e-6)."""
    X, labels, margins, theta = table()
    assert (
        DPTwoStageClassifier(CLASSES, epsilon=2.0, n_nonzero=4).fit(X, labels).score(X, labels)
        > 0.85
    )
    regressor = DPTwoStageRegressor(NUMBERS, epsilon=2.0, n_nonzero=4).fit(X, margins)
    assert np.linalg.norm(regressor.coef_ - theta) < 0.4 * np.linalg.norm(theta)
    assert (
        DPTransferClassifier(CLASSES, epsilon=2.0, n_nonzero=4).fit(X, labels).score(X, labels)
        > 0.75
    )
    assert DPADMMClassifier(CLASSES, epsilon=4.0).fit(X, labels).score(X, labels) > 0.7


@pytest.mark.parametrize("index", range(8))
def test_sparse_and_dense_input_give_the_same_model(index):
    X, labels, margins, _ = table(n=300)
    X = X * (np.random.default_rng(1).random(X.shape) < 0.3)
    fitted = []
    for form in (X, sp.csr_array(X), sp.csc_matrix(X)):
        model = models(random_state=3)[index]
        y = labels if "Classifier" in type(model).__name__ else margins
        with pytest.warns(NotPrivateWarning):
            fitted.append(np.ravel(model.fit(form, y).coef_))
    assert np.array_equal(fitted[0], fitted[1])
    assert np.array_equal(fitted[0], fitted[2])


@pytest.mark.parametrize("model", [DPTwoStageClassifier, DPTransferClassifier, DPADMMClassifier])
def test_more_classes_are_one_against_the_rest(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (3000, 10))
    y = np.argmax(X[:, :3], axis=1)
    domain = Domain(feature_bound=1.0, classes=[0, 1, 2], n_samples=3000)
    fitted = model(domain, epsilon=8.0, n_nonzero=3).fit(X, y)
    assert fitted.coef_.shape == (3, 10)
    assert fitted.privacy_.recompute() <= 8.0
    assert fitted.score(X, y) > 0.5
    assert np.allclose(fitted.predict_proba(X[:5]).sum(axis=1), 1.0)


def test_three_classes_pay_three_times():
    domain = Domain(feature_bound=1.0, classes=[0, 1, 2], n_samples=1000)
    counts = leaves(DPTwoStageClassifier(domain, n_nonzero=5).plan(20).event)
    by_kind = {type(event).__name__: count for event, count in counts.items()}
    assert by_kind["Exponential"] == 15
    assert by_kind["ObjectivePerturbation"] == 3


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        (DPTwoStageClassifier(Domain(classes=[0, 1])), "n_samples"),
        (DPTwoStageRegressor(Domain(n_samples=9)), "target_range"),
        (DPTransferClassifier(Domain(classes=[0, 1])), "n_samples"),
        (DPADMMClassifier(Domain(classes=[0, 1])), "n_samples"),
    ],
)
def test_missing_bounds_are_named(model, missing):
    with pytest.raises(DomainError, match=missing):
        model.plan(10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_nonzero": 0}, {"n_nonzero": "many"}, {"n_nonzero": None}, {"ridge": -1.0},
    ],
)  # fmt: skip
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        DPTwoStageClassifier(CLASSES, **wrong).plan(10)


def test_bad_parameters_of_the_others_are_refused():
    for wrong in ({"public_X": "uniform"}, {"public_X": 3}, {"public_X": np.ones((3, 4))}):
        with pytest.raises(ParameterError, match="public"):
            DPTransferClassifier(CLASSES, **wrong).plan(10)
    for wrong in ({"n_iter": 0}, {"ridge": 0.0}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            DPADMMClassifier(CLASSES, **wrong).plan(10)


def test_a_ridge_the_budget_cannot_pay_is_refused():
    """A general loss pays log(1 + curvature/ridge) whatever the noise."""
    with pytest.raises(CalibrationError, match="affordable"):
        DPTwoStageRegressor(NUMBERS, epsilon=0.1, ridge=1e-3).plan(10)


def test_student_sees_public_rows_only_through_the_support():
    X, labels, _, _ = table()
    public = sp.random_array((500, 30), density=0.5, format="csr", rng=np.random.default_rng(0))
    model = DPTransferClassifier(CLASSES, epsilon=4.0, n_nonzero=4, public_X=public).fit(X, labels)
    assert "public_X is public" in model.privacy_.assumptions
    assert np.count_nonzero(model.coef_) == 4


def test_the_number_of_columns_is_a_rule_of_public_numbers():
    """One for every 12 effective rows: 2,000 rows at epsilon 1 are 473 of them."""

    def found(n_features, **facts):
        model = DPTwoStageClassifier(replace(CLASSES, **facts))
        return model.plan(n_features).parameters["n_nonzero"]

    assert found(100) == 39
    assert found(20) == 20  # all of them: nothing has to be found
    assert found(100, n_samples=10**6) == 50
    assert found(100, n_samples=20) == 1

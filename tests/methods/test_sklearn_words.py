"""What scikit-learn users type first, and the sentence that says what to type here."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel

from dpsparse import (
    Domain,
    DPFeatureTest,
    DPLassoClassifier,
    DPLassoRegressor,
    DPPipeline,
    DPSearchCV,
    DPSparseClassifier,
    DPSparseRegressor,
    DPStandardizer,
    dp_evaluate,
)
from dpsparse import methods as estimators
from dpsparse.exceptions import DomainError, NotNumericError, ParameterError, SchemaError

CLASSES = Domain(classes=["no", "yes"])
X = pd.DataFrame({"age": np.arange(60) % 9 / 9.0, "dose": np.arange(60) % 7 / 7.0})
Y = pd.Series(np.where(np.arange(60) % 2, "no", "yes"))
ALL = [getattr(estimators, name) for name in estimators.__all__ if name.startswith("DP")]


@pytest.mark.parametrize("kind", ALL)
def test_unknown_parameters_are_refused(kind):
    for name in ("C", "max_iter", "colour"):
        with pytest.raises(TypeError, match=name):
            kind(**{name: 1.0})


@pytest.mark.parametrize("kind", ALL)
def test_the_signature_is_that_of_the_parameters(kind):
    shown = inspect.signature(kind)
    assert list(shown.parameters) == list(inspect.signature(kind.__init__).parameters)[1:]
    assert set(shown.parameters) == set(kind().get_params(deep=False))
    again = pickle.loads(pickle.dumps(clone(kind(CLASSES))))
    assert again.domain == CLASSES


def test_weights_by_another_name_are_refused():
    model = DPSparseClassifier(CLASSES).fit(X, Y)
    with pytest.raises(TypeError, match="weights"):
        dp_evaluate(model, X, Y, epsilon=1.0, weights=np.ones(60))


@pytest.mark.parametrize("unit", ["row", "person"])
def test_weights_by_position_are_not_taken_for_persons(unit):
    """scikit-learn's third argument of `fit` are weights; as names of persons they would cut a person into many."""
    model = DPSparseClassifier(Domain(classes=["no", "yes"], unit=unit))
    pipe = DPPipeline([("scale", DPStandardizer()), ("model", model)])
    search = DPSearchCV(model, {"n_nonzero": [1, 2]})
    for each in (pipe, search, DPStandardizer(epsilon=1.0), DPFeatureTest(model.domain)):
        with pytest.raises(TypeError, match="positional"):
            each.fit(X, Y, np.linspace(0.0, 1.0, 60))
    with pytest.raises((ParameterError, DomainError), match=r"name the person|weight_bound"):
        model.fit(X, Y, np.linspace(0.0, 1.0, 60))


def test_a_regressor_asks_for_the_range_of_targets():
    with pytest.raises(DomainError, match=r"Domain\(target_range=\(0.0, 10.0\)\)"):
        DPSparseRegressor(Domain()).fit(X, np.arange(60.0))
    with pytest.raises(ParameterError, match=r"target_range=\(0, 10\)"):
        DPSparseRegressor().fit(X, np.arange(60.0))


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA])
@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_missing_labels_are_said_of_y(gap, dtype):
    y = Y.astype(object)
    y[3] = gap
    with pytest.raises(
        SchemaError, match=r"y contains NaN|y must hold class labels.* none missing"
    ):
        DPSparseClassifier(CLASSES).fit(X, y.astype(dtype))


def test_text_dates_and_gaps_point_to_the_preparer():
    for column in (Y, pd.Series([pd.Timestamp("2020-01-31")] * 60)):
        with pytest.raises(NotNumericError, match="DPTablePreparer"):
            DPSparseClassifier(CLASSES).fit(X.assign(more=column), Y)
    with pytest.raises(SchemaError, match="DPTablePreparer"):
        DPSparseClassifier(CLASSES).fit(X.where(X > 0.0), Y)


def test_text_in_a_polars_frame_is_told_as_in_a_pandas_frame():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"age": X["age"].to_list(), "town": ["a"] * 60})
    with pytest.raises(NotNumericError, match="DPTablePreparer"):
        DPSparseClassifier(CLASSES).fit(frame, Y.to_list())


@pytest.mark.parametrize("kind", ["binary", "several", "numbers"])
def test_a_fitted_model_says_which_columns_have_a_weight(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (400, 8))
    if kind == "numbers":
        model = DPLassoRegressor(Domain(target_bound=1.0, n_samples=400), n_iter=4).fit(X, X[:, 0])
    else:
        classes = [0, 1] if kind == "binary" else [0, 1, 2]
        model = DPLassoClassifier(Domain(classes=classes, n_samples=400), n_iter=4)
        model.fit(X, rng.choice(classes, 400))
    mask = model.get_support()
    np.testing.assert_array_equal(mask, np.atleast_2d(model.coef_).any(axis=0))
    np.testing.assert_array_equal(model.get_support(indices=True), np.flatnonzero(mask))
    np.testing.assert_array_equal(model.sparsify().get_support(), mask)
    if mask.any():
        selector = SelectFromModel(model, prefit=True, threshold=1e-300)
        np.testing.assert_array_equal(selector.transform(X), X[:, mask])

"""scikit-learn's own wrappers, and ways to store a model."""

from __future__ import annotations

import io
import pickle
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

from dpsparse import (
    Domain,
    DPFeatureTest,
    DPPipeline,
    DPSparseClassifier,
    DPSparseRegressor,
    DPStandardizer,
    Ledger,
    PublicScaler,
    load,
    save,
)
from integrations.registry import (
    Later,
    X,
    check_same,
    classifier,
    integrate,
    integration,
    numbers,
    regressor,
    y,
)

SK = "scikit-learn"
WEIGHTED = "works with Domain(weight_bound=...); see the table of wrappers"
cloudpickle = Later("cloudpickle")
three = np.digitize(X[:, 0], [-0.3, 0.3])
pair = [("a", classifier()), ("b", classifier(n_nonzero=2))]


def learns(*models: Any, target: Any = y) -> None:
    """Every model learns something."""
    for model in models:
        assert model.fit(X, target).score(X, target) > 0.6, "the model has learnt nothing"


def weighted(wrapper: Any, largest: float) -> str:
    """A wrapper that passes weights of rows on."""
    domain = Domain(classes=[0, 1], weight_bound=largest)
    learns(wrapper(classifier().set_params(domain=domain), n_estimators=2))
    return WEIGHTED


def good(*folds: Any) -> None:
    """The mean of the scores of all folds, for every model."""
    assert np.mean(folds, axis=1).min() > 0.6, "a model has learnt nothing"


def private_pipeline(**settings: Any) -> DPPipeline:
    steps = [("scale", DPStandardizer()), ("model", classifier(random_state=None))]
    return DPPipeline(steps, **settings)


@integration(SK, "check_estimator of DPSparseClassifier and DPSparseRegressor")
def check_estimators() -> str:
    # A refusal would tell of all weights, and repeated rows have less noise than rows with weights.
    equal = "check_sample_weight_equivalence_on_{}_data"
    unmet = ("check_all_zero_sample_weights_error", equal.format("dense"), equal.format("sparse"))
    for model in (
        DPSparseClassifier(Domain(classes="observed", weight_bound=10.0)),
        DPSparseRegressor(Domain(target_bound=10.0, weight_bound=10.0)),
    ):
        terms = {"expected_failed_checks": dict.fromkeys(unmet, "private weights")}
        results = check_estimator(model, on_fail=None, on_skip=None, **terms)
        failed = [check["check_name"] for check in results if check["status"] == "failed"]
        assert not failed, failed
    return f"{len(results)} checks each"


@integration(SK, "clone, get_params and set_params")
def clone_parameters() -> None:
    model = clone(classifier().set_params(epsilon=3.0))
    assert model.epsilon == 3.0
    assert model.get_params()["domain"] == classifier().domain


@integration(SK, "Pipeline")
def pipeline() -> str:
    model = make_pipeline(Normalizer(), classifier(random_state=None))
    learns(model)
    return model[-1].privacy_.headline


@integration(SK, "ColumnTransformer")
def column_transformer() -> None:
    steps = make_column_transformer((DPStandardizer(epsilon=4.0), [0, 1]), remainder="passthrough")
    learns(make_pipeline(steps, classifier()))


@integration(SK, "GridSearchCV with a ledger")
def grid_search() -> str:
    ledger = Ledger(epsilon=30.0, delta=1e-4)
    model = classifier(epsilon=2.0, ledger=ledger, random_state=None)
    learns(GridSearchCV(model, {"n_nonzero": [2, 6]}, cv=2))
    return f"{len(ledger.history())} fits in the ledger"


integrate(SK, "core", {
    "Pipeline with the steps of dpsparse": lambda: learns(
        make_pipeline(PublicScaler({f"x{j}": (-1, 1) for j in range(6)}), classifier())
    ),
    "FeatureUnion": lambda: learns(
        make_pipeline(make_union(Normalizer(), FunctionTransformer()), classifier())
    ),
    "FunctionTransformer and a sparse matrix": lambda: check_same(
        classifier().fit(sp.csr_matrix(X), y)
    ),
    "RandomizedSearchCV and HalvingGridSearchCV": lambda: learns(
        RandomizedSearchCV(classifier(), {"n_nonzero": [2, 4, 6]}, n_iter=2, cv=2),
        HalvingGridSearchCV(classifier(), {"n_nonzero": [2, 6]}, cv=2),
    ),
    "cross_val_score and cross_validate": lambda: good(
        cross_val_score(classifier(), X, y, cv=3),
        cross_validate(regressor(), X, numbers, cv=3)["test_score"],
    ),
    "cross_val_score with n_jobs=2": lambda: good(
        cross_val_score(classifier(), X, y, cv=2, n_jobs=2)
    ),
    "CalibratedClassifierCV": lambda: learns(CalibratedClassifierCV(classifier(), cv=2)),
    "TunedThresholdClassifierCV and FixedThresholdClassifier": lambda: learns(
        TunedThresholdClassifierCV(classifier(), cv=2),
        FixedThresholdClassifier(classifier(), threshold=0.4),
    ),
    "StackingClassifier and VotingClassifier": lambda: learns(
        StackingClassifier(pair, LogisticRegression(), cv=2), VotingClassifier(pair, voting="soft")
    ),
    "StackingRegressor and VotingRegressor": lambda: learns(
        StackingRegressor([("a", regressor())], cv=2), VotingRegressor([("a", regressor())]),
        target=numbers,
    ),
    # how often a row was drawn is its weight
    "BaggingClassifier (row weights)": lambda: weighted(BaggingClassifier, 3.0),
    "AdaBoostClassifier (row weights)": lambda: weighted(AdaBoostClassifier, 4.0 / len(y)),
    "OneVsRestClassifier, OneVsOneClassifier": lambda: learns(
        OneVsRestClassifier(classifier()), OneVsOneClassifier(classifier()), target=three
    ),
    "DPFeatureTest as the selector of a Pipeline": lambda: learns(
        make_pipeline(DPFeatureTest(Domain(classes=[0, 1]), epsilon=8.0), classifier())
    ),
    "TransformedTargetRegressor": lambda: learns(
        TransformedTargetRegressor(regressor(), func=np.arcsinh, inverse_func=np.sinh),
        target=numbers,
    ),
})  # fmt: skip


@integration(SK, "learning_curve and validation_curve")
def curves() -> None:
    learning_curve(classifier(), X, y, train_sizes=[0.5, 1.0], cv=2)
    validation_curve(classifier(), X, y, param_name="epsilon", param_range=[1.0, 8.0], cv=2)


@integration(SK, "MultiOutputRegressor and ClassifierChain")
def several_targets() -> None:
    MultiOutputRegressor(regressor()).fit(X, np.c_[numbers, -numbers]).predict(X)
    ClassifierChain(classifier()).fit(X, np.c_[y, 1 - y]).predict(X)


@integration(SK, "RFE and RFECV")
def elimination() -> None:
    assert RFE(classifier(), n_features_to_select=2).fit(X, y).support_.sum() == 2
    RFECV(classifier(), cv=2, step=2).fit(X, y)


@integration(SK, "SelectFromModel and SequentialFeatureSelector")
def selection() -> None:
    assert SelectFromModel(classifier()).fit(X, y).transform(X).shape[0] == len(X)
    SequentialFeatureSelector(classifier(), n_features_to_select=1, cv=2).fit(X, y)


@integration(SK, "set_output(transform='pandas')", "tables")
def frames_out() -> None:
    step = DPStandardizer(epsilon=4.0).set_output(transform="pandas").fit(X)
    assert list(step.transform(X).columns) == list(step.get_feature_names_out())


@integration(SK, "metadata routing of groups")
def routing() -> None:
    persons = np.arange(len(y)) // 2
    domain = Domain(classes=[0, 1], unit="person", rows_per_unit=2)
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier(random_state=None).set_params(domain=domain).set_fit_request(groups=True)
        make_pipeline(Normalizer(), model).fit(X, y, groups=persons)
    assert "person" in model.plan(6).guarantee.headline


@integration(SK, "permutation_importance and partial_dependence")
def inspection() -> None:
    model = classifier().fit(X, y)
    assert permutation_importance(model, X, y, n_repeats=2).importances_mean.argmax() < 2
    partial_dependence(model, X, [0])


@integration(SK, "displays: ROC, calibration, confusion matrix", "tools")
def displays() -> None:
    model = classifier().fit(X, y)
    for display in (RocCurveDisplay, CalibrationDisplay, ConfusionMatrixDisplay):
        display.from_estimator(model, X, y)


@integration(SK, "estimator_html_repr (diagrams in notebooks)")
def diagram() -> None:
    assert "DPStandardizer" in estimator_html_repr(private_pipeline())
    assert "DPGradientClassifier" in estimator_html_repr(classifier().fit(X, y))


@integration(SK, "DPPipeline in cross_val_score and clone")
def cloned_pipeline() -> None:
    assert is_classifier(clone(private_pipeline(epsilon=8.0)))
    good(cross_val_score(private_pipeline(epsilon=8.0), X, y, cv=2))


@integration("dpsparse", "to_sklearn: a plain model with the same predictions")
def plain_model() -> None:
    model = classifier().fit(X, y)
    assert np.array_equal(model.to_sklearn().predict(X), model.predict(X))


@integration("dpsparse", "save and load (JSON)")
def own_files() -> str:
    model = classifier().fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        return check_same(load(save(model, Path(folder) / "model.json")), model)


@integration("joblib", "dump and load")
def joblib_file() -> str:
    file = io.BytesIO()
    joblib.dump(classifier().fit(X, y), file)
    return check_same(joblib.load(io.BytesIO(file.getvalue())))


@integration("joblib", "Parallel fits in processes")
def joblib_processes() -> str:
    check_same(*joblib.Parallel(n_jobs=2)(joblib.delayed(classifier().fit)(X, y) for _ in range(2)))
    return "same bits in both"


@integration("concurrent.futures", "fits in threads")
def threads() -> str:
    with ThreadPoolExecutor(2) as pool:
        models = list(pool.map(lambda _: classifier().fit(X, y), range(3)))
    return check_same(models[2], models[0])


@integration("threadpoolctl", "limits of threads")
def limited_threads() -> str:
    with threadpool_limits(1):
        return check_same(classifier().fit(X, y))


for _store in (pickle, cloudpickle):
    integration("pickle" if _store is pickle else "cloudpickle", "dumps and loads")(
        lambda store=_store: check_same(pickle.loads(store.dumps(classifier().fit(X, y))))
    )

"""scikit-learn's own wrappers, and ways to store a model."""

from __future__ import annotations

import io
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

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
    X,
    check_same,
    classifier,
    integration,
    numbers,
    regressor,
    y,
)

SK = "scikit-learn"


def good(model: Any, target: Any = y) -> None:
    """The model has learnt something."""
    assert model.score(X, target) > 0.6, "the model has learnt nothing"


@integration(SK, "check_estimator of DPSparseClassifier and DPSparseRegressor")
def check_estimators() -> str:
    from sklearn.utils.estimator_checks import check_estimator

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
    from sklearn.base import clone

    model = clone(classifier().set_params(epsilon=3.0))
    assert model.epsilon == 3.0
    assert model.get_params()["domain"] == classifier().domain


@integration(SK, "Pipeline")
def pipeline() -> str:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    model = make_pipeline(Normalizer(), classifier(random_state=None)).fit(X, y)
    good(model)
    return model[-1].privacy_.headline


@integration(SK, "Pipeline with the steps of dpsparse")
def own_steps() -> None:
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(PublicScaler({f"x{j}": (-1, 1) for j in range(6)}), classifier())
    good(model.fit(X, y))


@integration(SK, "ColumnTransformer")
def column_transformer() -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline

    steps = make_column_transformer((DPStandardizer(epsilon=4.0), [0, 1]), remainder="passthrough")
    good(make_pipeline(steps, classifier()).fit(X, y))


@integration(SK, "FeatureUnion")
def feature_union() -> None:
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import FunctionTransformer, Normalizer

    good(make_pipeline(make_union(Normalizer(), FunctionTransformer()), classifier()).fit(X, y))


@integration(SK, "FunctionTransformer and a sparse matrix")
def sparse_rows() -> str:
    return check_same(classifier().fit(sp.csr_matrix(X), y))


@integration(SK, "GridSearchCV with a ledger")
def grid_search() -> str:
    from sklearn.model_selection import GridSearchCV

    ledger = Ledger(epsilon=30.0, delta=1e-4)
    grid = {"n_nonzero": [2, 6]}
    search = GridSearchCV(classifier(epsilon=2.0, ledger=ledger, random_state=None), grid, cv=2)
    good(search.fit(X, y))
    return f"{len(ledger.history())} fits in the ledger"


@integration(SK, "RandomizedSearchCV and HalvingGridSearchCV")
def other_searches() -> None:
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.model_selection import HalvingGridSearchCV, RandomizedSearchCV

    good(RandomizedSearchCV(classifier(), {"n_nonzero": [2, 4, 6]}, n_iter=2, cv=2).fit(X, y))
    good(HalvingGridSearchCV(classifier(), {"n_nonzero": [2, 6]}, cv=2).fit(X, y))


@integration(SK, "cross_val_score and cross_validate")
def cross_validation() -> None:
    from sklearn.model_selection import cross_val_score, cross_validate

    assert np.mean(cross_val_score(classifier(), X, y, cv=3)) > 0.6
    assert len(cross_validate(regressor(), X, numbers, cv=3)["test_score"]) == 3


@integration(SK, "cross_val_score with n_jobs=2")
def jobs() -> None:
    from sklearn.model_selection import cross_val_score

    assert np.mean(cross_val_score(classifier(), X, y, cv=2, n_jobs=2)) > 0.6


@integration(SK, "learning_curve and validation_curve")
def curves() -> None:
    from sklearn.model_selection import learning_curve, validation_curve

    learning_curve(classifier(), X, y, train_sizes=[0.5, 1.0], cv=2)
    validation_curve(classifier(), X, y, param_name="epsilon", param_range=[1.0, 8.0], cv=2)


@integration(SK, "CalibratedClassifierCV")
def calibrated() -> None:
    from sklearn.calibration import CalibratedClassifierCV

    good(CalibratedClassifierCV(classifier(), cv=2).fit(X, y))


@integration(SK, "TunedThresholdClassifierCV and FixedThresholdClassifier")
def thresholds() -> None:
    from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

    good(TunedThresholdClassifierCV(classifier(), cv=2).fit(X, y))
    good(FixedThresholdClassifier(classifier(), threshold=0.4).fit(X, y))


@integration(SK, "StackingClassifier and VotingClassifier")
def stacking() -> None:
    from sklearn.ensemble import StackingClassifier, VotingClassifier
    from sklearn.linear_model import LogisticRegression

    pair = [("a", classifier()), ("b", classifier(n_nonzero=2))]
    good(StackingClassifier(pair, LogisticRegression(), cv=2).fit(X, y))
    good(VotingClassifier(pair, voting="soft").fit(X, y))


@integration(SK, "StackingRegressor and VotingRegressor")
def stacked_numbers() -> None:
    from sklearn.ensemble import StackingRegressor, VotingRegressor

    good(StackingRegressor([("a", regressor())], cv=2).fit(X, numbers), numbers)
    good(VotingRegressor([("a", regressor())]).fit(X, numbers), numbers)


@integration(SK, "BaggingClassifier (row weights)")
def bagging() -> str:
    from sklearn.ensemble import BaggingClassifier

    domain = Domain(classes=[0, 1], weight_bound=3.0)  # how often a row was drawn is its weight
    good(BaggingClassifier(classifier().set_params(domain=domain), n_estimators=2).fit(X, y))
    return "works with Domain(weight_bound=...); see the table of wrappers"


@integration(SK, "AdaBoostClassifier (row weights)")
def boosting() -> str:
    from sklearn.ensemble import AdaBoostClassifier

    domain = Domain(classes=[0, 1], weight_bound=4.0 / len(y))
    good(AdaBoostClassifier(classifier().set_params(domain=domain), n_estimators=2).fit(X, y))
    return "works with Domain(weight_bound=...); see the table of wrappers"


@integration(SK, "OneVsRestClassifier, OneVsOneClassifier")
def one_against_others() -> None:
    from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

    three = np.digitize(X[:, 0], [-0.3, 0.3])
    good(OneVsRestClassifier(classifier()).fit(X, three), three)
    good(OneVsOneClassifier(classifier()).fit(X, three), three)


@integration(SK, "MultiOutputRegressor and ClassifierChain")
def several_targets() -> None:
    from sklearn.multioutput import ClassifierChain, MultiOutputRegressor

    MultiOutputRegressor(regressor()).fit(X, np.c_[numbers, -numbers]).predict(X)
    ClassifierChain(classifier()).fit(X, np.c_[y, 1 - y]).predict(X)


@integration(SK, "RFE and RFECV")
def elimination() -> None:
    from sklearn.feature_selection import RFE, RFECV

    assert RFE(classifier(), n_features_to_select=2).fit(X, y).support_.sum() == 2
    RFECV(classifier(), cv=2, step=2).fit(X, y)


@integration(SK, "SelectFromModel and SequentialFeatureSelector")
def selection() -> None:
    from sklearn.feature_selection import SelectFromModel, SequentialFeatureSelector

    assert SelectFromModel(classifier()).fit(X, y).transform(X).shape[0] == len(X)
    SequentialFeatureSelector(classifier(), n_features_to_select=1, cv=2).fit(X, y)


@integration(SK, "DPFeatureTest as the selector of a Pipeline")
def feature_test() -> None:
    from sklearn.pipeline import make_pipeline

    test = DPFeatureTest(Domain(classes=[0, 1]), epsilon=8.0)
    good(make_pipeline(test, classifier()).fit(X, y))


@integration(SK, "TransformedTargetRegressor")
def transformed_target() -> None:
    from sklearn.compose import TransformedTargetRegressor

    model = TransformedTargetRegressor(regressor(), func=np.arcsinh, inverse_func=np.sinh)
    good(model.fit(X, numbers), numbers)


@integration(SK, "set_output(transform='pandas')", "tables")
def frames_out() -> None:
    step = DPStandardizer(epsilon=4.0).set_output(transform="pandas").fit(X)
    assert list(step.transform(X).columns) == list(step.get_feature_names_out())


@integration(SK, "metadata routing of groups")
def routing() -> None:
    import sklearn
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    persons = np.arange(len(y)) // 2
    domain = Domain(classes=[0, 1], unit="person", rows_per_unit=2)
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier(random_state=None).set_params(domain=domain).set_fit_request(groups=True)
        make_pipeline(Normalizer(), model).fit(X, y, groups=persons)
    assert "person" in model.plan(6).guarantee.headline


@integration(SK, "permutation_importance and partial_dependence")
def inspection() -> None:
    from sklearn.inspection import partial_dependence, permutation_importance

    model = classifier().fit(X, y)
    assert permutation_importance(model, X, y, n_repeats=2).importances_mean.argmax() < 2
    partial_dependence(model, X, [0])


@integration(SK, "displays: ROC, calibration, confusion matrix", "tools")
def displays() -> None:
    import matplotlib

    matplotlib.use("agg")
    from sklearn.calibration import CalibrationDisplay
    from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay

    model = classifier().fit(X, y)
    for display in (RocCurveDisplay, CalibrationDisplay, ConfusionMatrixDisplay):
        display.from_estimator(model, X, y)


@integration(SK, "estimator_html_repr (diagrams in notebooks)")
def diagram() -> None:
    from sklearn.utils import estimator_html_repr

    pipe = DPPipeline([("scale", DPStandardizer()), ("model", classifier(random_state=None))])
    assert "DPStandardizer" in estimator_html_repr(pipe)
    assert "DPGradientClassifier" in estimator_html_repr(classifier().fit(X, y))


@integration(SK, "DPPipeline in cross_val_score and clone")
def private_pipeline() -> None:
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import cross_val_score

    pipe = DPPipeline(
        [("scale", DPStandardizer()), ("model", classifier(random_state=None))], epsilon=8.0
    )
    assert is_classifier(clone(pipe))
    assert np.mean(cross_val_score(pipe, X, y, cv=2)) > 0.6


@integration("dpsparse", "to_sklearn: a plain model with the same predictions")
def plain_model() -> None:
    model = classifier().fit(X, y)
    assert np.array_equal(model.to_sklearn().predict(X), model.predict(X))


@integration("dpsparse", "save and load (JSON)")
def own_files() -> str:
    model = classifier().fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        return check_same(load(save(model, Path(folder) / "model.json")), model)


@integration("pickle", "dumps and loads")
def pickled() -> str:
    model = classifier().fit(X, y)
    return check_same(pickle.loads(pickle.dumps(model)), model)


@integration("joblib", "dump and load")
def joblib_file() -> str:
    import joblib

    model, file = classifier().fit(X, y), io.BytesIO()
    joblib.dump(model, file)
    return check_same(joblib.load(io.BytesIO(file.getvalue())), model)


@integration("joblib", "Parallel fits in processes")
def joblib_processes() -> str:
    from joblib import Parallel, delayed

    a, b = Parallel(n_jobs=2)(delayed(classifier().fit)(X, y) for _ in range(2))
    check_same(a, b)
    return "same bits in both"


@integration("cloudpickle", "dumps and loads")
def cloudpickled() -> str:
    import cloudpickle

    model = classifier().fit(X, y)
    return check_same(pickle.loads(cloudpickle.dumps(model)), model)


@integration("concurrent.futures", "fits in threads")
def threads() -> str:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        models = list(pool.map(lambda _: classifier().fit(X, y), range(3)))
    return check_same(models[2], models[0])


@integration("threadpoolctl", "limits of threads")
def limited_threads() -> str:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return check_same(classifier().fit(X, y))

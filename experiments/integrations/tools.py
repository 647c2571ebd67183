"""Tools that take a fitted model, or that fit one many times."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from dpsparse import Domain
from integrations.registry import (
    NAMES,
    X,
    check_same,
    classifier,
    frame,
    integration,
    numbers,
    regressor,
    y,
)

ROWS = X[:200].astype(np.float32)


def onnx_outputs(model: Any) -> list[np.ndarray]:
    """What the ONNX form of a model answers for ROWS."""
    from onnxruntime import InferenceSession
    from skl2onnx import to_onnx

    session = InferenceSession(to_onnx(model, ROWS[:1]).SerializeToString())
    return list(session.run(None, {session.get_inputs()[0].name: ROWS}))


@integration("ONNX", "a classifier through to_sklearn", "tools")
def onnx_classifier() -> None:
    model = classifier().fit(X, y)
    assert np.array_equal(onnx_outputs(model.to_sklearn())[0], model.predict(ROWS))


@integration("ONNX", "a regressor through to_sklearn", "tools")
def onnx_regressor() -> None:
    model = regressor().fit(X, numbers)
    out = onnx_outputs(model.to_sklearn())[0]
    np.testing.assert_allclose(np.ravel(out), model.predict(ROWS), atol=1e-5)


@integration("MLflow", "log_model and load_model", "tools")
def mlflow_model() -> str:
    import mlflow

    model = classifier().fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
        with mlflow.start_run():
            info = mlflow.sklearn.log_model(model, name="model", serialization_format="cloudpickle")
            mlflow.log_dict(model.privacy_.to_dict(), "privacy.json")
        return check_same(mlflow.sklearn.load_model(info.model_uri), model)


@integration("MLflow", "autolog of a Pipeline", "tools")
def mlflow_autolog() -> str:
    import mlflow
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
        mlflow.sklearn.autolog()
        with mlflow.start_run() as run:
            make_pipeline(Normalizer(), classifier()).fit(X, y)
        mlflow.sklearn.autolog(disable=True)
        logged = mlflow.get_run(run.info.run_id).data.metrics
    return "logs exact scores of the private rows: leave it off" if logged else None


@integration("SHAP", "LinearExplainer", "tools")
def shap_linear() -> None:
    import shap

    model = classifier().fit(X, y)
    values = shap.LinearExplainer(model, np.zeros((1, 6))).shap_values(X[:5])
    np.testing.assert_allclose(values, model.coef_[0] * X[:5], atol=1e-6)


@integration("SHAP", "Explainer of a function", "tools")
def shap_any() -> None:
    import shap

    model = classifier().fit(X, y)
    explained = shap.Explainer(model.predict_proba, X[:50])(X[:3])
    assert explained.values.shape == (3, 6, 2)


@integration("LIME", "LimeTabularExplainer", "tools")
def lime() -> None:
    from lime.lime_tabular import LimeTabularExplainer

    model = classifier().fit(X, y)
    explained = LimeTabularExplainer(X, feature_names=NAMES).explain_instance(
        X[0], model.predict_proba
    )
    assert explained.as_list()


@integration("ELI5", "explain_weights", "tools")
def eli5() -> None:
    import eli5

    assert "x0" in eli5.format_as_text(
        eli5.explain_weights(classifier().fit(X, y).to_sklearn(), feature_names=NAMES)
    )


@integration("Optuna", "a study whose trials are paid by one ledger", "tools")
def optuna() -> str:
    import optuna

    from dpsparse import Ledger

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    ledger = Ledger(epsilon=20.0, delta=1e-4)

    def objective(trial: Any) -> float:
        k = trial.suggest_int("n_nonzero", 1, 6)
        model = classifier(n_nonzero=k, epsilon=2.0, ledger=ledger, random_state=None)
        return float(model.fit(X, y).score(X, y))

    optuna.create_study(direction="maximize").optimize(objective, n_trials=3)
    return f"{len(ledger.history())} fits in the ledger"


@integration("fairlearn", "MetricFrame", "tools")
def fairlearn_metrics() -> None:
    from fairlearn.metrics import MetricFrame
    from sklearn.metrics import accuracy_score

    guess = classifier().fit(X, y).predict(X)
    groups = np.where(X[:, 2] > 0, "a", "b")
    shares = MetricFrame(
        metrics=accuracy_score, y_true=y, y_pred=guess, sensitive_features=groups
    ).by_group
    assert len(shares) == 2


@integration("fairlearn", "ThresholdOptimizer", "tools")
def fairlearn_thresholds() -> None:
    from fairlearn.postprocessing import ThresholdOptimizer

    groups = np.where(X[:, 2] > 0, "a", "b")
    model = ThresholdOptimizer(
        estimator=classifier().fit(X, y), prefit=True, predict_method="predict_proba"
    )
    model.fit(X, y, sensitive_features=groups).predict(X, sensitive_features=groups)


@integration("fairlearn", "ExponentiatedGradient (row weights)", "tools")
def fairlearn_reduction() -> str:
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    groups = np.where(X[:, 2] > 0, "a", "b")
    model = classifier().set_params(domain=Domain(classes=[0, 1], weight_bound=3.0))
    reduction = ExponentiatedGradient(model, DemographicParity(), max_iter=3)
    reduction.fit(X, y, sensitive_features=groups).predict(X)
    return "works with Domain(weight_bound=...); see the table of wrappers"


@integration("imbalanced-learn", "RandomOverSampler in its Pipeline", "tools")
def imbalanced() -> str:
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.pipeline import make_pipeline

    model = make_pipeline(RandomOverSampler(), classifier(random_state=None)).fit(X, y)
    assert model.score(X, y) > 0.6
    return model[-1].privacy_.headline


@integration("skops", "dump and load with the named types", "tools")
def skops() -> str:
    from skops.io import dumps, get_untrusted_types, loads

    model = classifier().fit(X, y)
    data = dumps(model)
    types = get_untrusted_types(data=data)
    assert all(name.startswith("dpsparse.") for name in types), types
    return check_same(loads(data, trusted=types), model)


@integration("MAPIE", "conformal intervals of a regressor", "tools")
def mapie() -> None:
    from mapie.regression import SplitConformalRegressor

    model = SplitConformalRegressor(regressor().fit(X, numbers), confidence_level=0.9, prefit=True)
    model.conformalize(X, numbers)
    assert model.predict_interval(X)[1].shape[0] == len(X)


@integration("feature-engine", "a transformer before a model", "tools")
def feature_engine() -> None:
    from feature_engine.selection import DropConstantFeatures
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(DropConstantFeatures(), classifier()).fit(frame()[NAMES], y)
    assert model.score(frame()[NAMES], y) > 0.6


@integration("category_encoders", "an encoder before a model", "tools")
def category_encoders() -> None:
    from category_encoders import HashingEncoder
    from sklearn.pipeline import make_pipeline

    words = frame()[[]].assign(word=np.where(y == 1, "yes", "no"))
    model = make_pipeline(HashingEncoder(n_components=4, max_process=1), classifier()).fit(words, y)
    assert model.score(words, y) > 0.6


@integration("mlxtend", "EnsembleVoteClassifier", "tools")
def mlxtend() -> None:
    from mlxtend.classifier import EnsembleVoteClassifier

    model = EnsembleVoteClassifier([classifier().fit(X, y)], fit_base_estimators=False)
    assert model.fit(X, y).score(X, y) > 0.6


@integration("m2cgen", "C code through to_sklearn", "tools")
def m2cgen() -> None:
    import m2cgen

    assert "double score" in m2cgen.export_to_c(classifier().fit(X, y).to_sklearn())

"""Tools that take a fitted model, or that fit one many times. What a recipe of the page shows is not repeated here."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dpsparse import Domain
from integrations.registry import (
    NAMES,
    Later,
    X,
    check_same,
    classifier,
    frame,
    integration,
    numbers,
    regressor,
    y,
)

groups = np.where(X[:, 2] > 0, "a", "b")
mlflow, shap, skops, mapie = (Later(n) for n in ("mlflow", "shap", "skops.io", "mapie.regression"))
eli5, m2cgen, mlxtend = (Later(n) for n in ("eli5", "m2cgen", "mlxtend.classifier"))
lime, encoders = Later("lime.lime_tabular"), Later("category_encoders")
feature_selection, sampling = Later("feature_engine.selection"), Later("imblearn.over_sampling")
postprocessing, reductions = Later("fairlearn.postprocessing"), Later("fairlearn.reductions")


@integration("MLflow", "log_model and load_model", "tools")
def mlflow_model() -> str:
    model = classifier().fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
        with mlflow.start_run():
            info = mlflow.sklearn.log_model(model, name="model", serialization_format="cloudpickle")
            mlflow.log_dict(model.privacy_.to_dict(), "privacy.json")
        return check_same(mlflow.sklearn.load_model(info.model_uri), model)


@integration("MLflow", "autolog of a Pipeline", "tools")
def mlflow_autolog() -> str:
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
    model = classifier().fit(X, y)
    values = shap.LinearExplainer(model, np.zeros((1, 6))).shap_values(X[:5])
    np.testing.assert_allclose(values, model.coef_[0] * X[:5], atol=1e-6)


@integration("SHAP", "Explainer of a function", "tools")
def shap_any() -> None:
    explained = shap.Explainer(classifier().fit(X, y).predict_proba, X[:50])(X[:3])
    assert explained.values.shape == (3, 6, 2)


@integration("LIME", "LimeTabularExplainer", "tools")
def lime_tabular() -> None:
    explainer = lime.LimeTabularExplainer(X, feature_names=NAMES)
    assert explainer.explain_instance(X[0], classifier().fit(X, y).predict_proba).as_list()


@integration("ELI5", "explain_weights", "tools")
def eli5_weights() -> None:
    plain = classifier().fit(X, y).to_sklearn()
    assert "x0" in eli5.format_as_text(eli5.explain_weights(plain, feature_names=NAMES))


@integration("fairlearn", "ThresholdOptimizer", "tools")
def fairlearn_thresholds() -> None:
    model = postprocessing.ThresholdOptimizer(
        estimator=classifier().fit(X, y), prefit=True, predict_method="predict_proba"
    )
    model.fit(X, y, sensitive_features=groups).predict(X, sensitive_features=groups)


@integration("fairlearn", "ExponentiatedGradient (row weights)", "tools")
def fairlearn_reduction() -> str:
    model = classifier().set_params(domain=Domain(classes=[0, 1], weight_bound=3.0))
    parity = reductions.DemographicParity()
    reduction = reductions.ExponentiatedGradient(model, parity, max_iter=3)
    reduction.fit(X, y, sensitive_features=groups).predict(X)
    return "works with Domain(weight_bound=...); see the table of wrappers"


@integration("imbalanced-learn", "RandomOverSampler in its Pipeline", "tools")
def imbalanced() -> str:
    steps = [("more", sampling.RandomOverSampler()), ("model", classifier(random_state=None))]
    model = Later("imblearn.pipeline").Pipeline(steps).fit(X, y)
    assert model.score(X, y) > 0.6
    return model[-1].privacy_.headline


@integration("skops", "dump and load with the named types", "tools")
def skops_file() -> str:
    model = classifier().fit(X, y)
    data = skops.dumps(model)
    types = skops.get_untrusted_types(data=data)
    assert all(name.startswith("dpsparse.") for name in types), types
    return check_same(skops.loads(data, trusted=types), model)


@integration("MAPIE", "conformal intervals of a regressor", "tools")
def conformal_intervals() -> None:
    terms = {"confidence_level": 0.9, "prefit": True}
    model = mapie.SplitConformalRegressor(regressor().fit(X, numbers), **terms)
    model.conformalize(X, numbers)
    assert model.predict_interval(X)[1].shape[0] == len(X)


def check_behind(step: Any, table: Any) -> None:
    """A model behind a step of another library learns something."""
    assert make_pipeline(step, classifier()).fit(table, y).score(table, y) > 0.6


@integration("feature-engine", "a transformer before a model", "tools")
def feature_engine() -> None:
    check_behind(feature_selection.DropConstantFeatures(), frame()[NAMES])


@integration("category_encoders", "an encoder before a model", "tools")
def category_encoders() -> None:
    words = frame()[[]].assign(word=np.where(y == 1, "yes", "no"))
    check_behind(encoders.HashingEncoder(n_components=4, max_process=1), words)


@integration("mlxtend", "EnsembleVoteClassifier", "tools")
def mlxtend_votes() -> None:
    model = mlxtend.EnsembleVoteClassifier([classifier().fit(X, y)], fit_base_estimators=False)
    assert model.fit(X, y).score(X, y) > 0.6


@integration("m2cgen", "C code through to_sklearn", "tools")
def c_code() -> None:
    assert "double score" in m2cgen.export_to_c(classifier().fit(X, y).to_sklearn())

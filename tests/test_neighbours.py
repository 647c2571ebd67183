"""Other tools: parameters through YAML, models through ONNX."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import dpsparse
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
    DPLassoClassifier,
    PrivateCount,
    to_sklearn,
)

yaml = pytest.importorskip("yaml")


@pytest.mark.parametrize(
    "model",
    [
        DPGradientClassifier(Domain(classes=[0, 1], row_norm=1.0, n_samples=100), class_weight={0: 1.0, 1: 2.5}),
        DPGradientRegressor(Domain(target_bound=3.0), epsilon=math.inf),
        DPLassoClassifier(
            Domain(classes=["no", "yes"], unit="person", rows_per_unit=3), n_nonzero=PrivateCount(1, 8, 0.1)
        ),
    ],
    ids=["dict", "infinity", "person and count"],
)  # fmt: skip
def test_parameters_survive_yaml(model):
    plain = yaml.safe_load(yaml.dump(model.get_params()))
    back = clone(model).set_params(**plain)
    assert back.get_params() == model.get_params()


@pytest.mark.parametrize("name", [n for n in dpsparse.estimators.__all__ if n.startswith("DP")])
def test_every_estimator_by_default(name):
    kind = getattr(dpsparse.estimators, name)
    model = kind(Domain(classes=[0, 1]) if "Class" in name else Domain(target_bound=1.0))
    plain = yaml.safe_load(yaml.dump(model.get_params(deep=False)))
    assert kind(**plain).get_params(deep=False) == model.get_params(deep=False)


def test_a_ledger_stays_where_it_is():
    """A budget is not a parameter to be copied into a file."""
    ledger = dpsparse.Ledger(epsilon=1.0, delta=1e-6)
    model = DPGradientClassifier(Domain(classes=[0, 1]), ledger=ledger)
    assert yaml.safe_load(yaml.dump(model.get_params()))["ledger"] is None


@pytest.mark.parametrize("kind", ["two classes", "three classes", "numbers"])
def test_onnx_predicts_the_same(kind):
    skl2onnx, runtime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 8))
    if kind == "numbers":
        model = DPGradientRegressor(Domain(target_bound=2.0), epsilon=5.0).fit(X, X[:, 0] - X[:, 1])
    else:
        classes = [0, 1] if kind == "two classes" else [0, 1, 2]
        y = np.digitize(X[:, 0], [0.0] if len(classes) == 2 else [-0.3, 0.3])
        model = DPGradientClassifier(Domain(classes=classes), epsilon=5.0).fit(X, y)
    rows = rng.uniform(-1, 1, (200, 8)).astype(np.float32)
    plain = to_sklearn(model)
    options = {} if kind == "numbers" else {id(plain): {"zipmap": False}}
    file = skl2onnx.to_onnx(plain, rows[:1], options=options)
    session = runtime.InferenceSession(file.SerializeToString(), providers=["CPUExecutionProvider"])
    out = session.run(None, {session.get_inputs()[0].name: rows})
    if kind == "numbers":
        np.testing.assert_allclose(out[0].ravel(), model.predict(rows), atol=1e-6)
    else:
        assert np.mean(out[0] == model.predict(rows)) == 1.0
        np.testing.assert_allclose(out[1], model.predict_proba(rows), atol=1e-6)


def test_the_sacro_example_says_what_it_lacks(capsys):
    """Without the package it skips in one sentence; with it docs/neighbours.md shows what it prints."""
    import runpy

    if importlib.util.find_spec("sacroml") is not None:
        pytest.skip("sacroml is installed: the example would run for a minute")
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "sacro_attacks.py"))
    example["main"]()
    assert capsys.readouterr().out.startswith("Skipped: sacroml is not installed.")

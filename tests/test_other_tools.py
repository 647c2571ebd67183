"""Other tools: parameters through YAML, models through ONNX."""

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
)

pytest.importorskip("yaml")


def example():
    return runpy.run_path(str(Path(__file__).parents[1] / "examples" / "sacro_attacks.py"))


def test_parameters_survive_yaml_as_the_example_stores_them():
    """PyYAML is told by the example; in a process of its own, because PyYAML remembers."""
    code = (
        "import runpy, sys, yaml; from dpsparse import Domain, DPGradientClassifier\n"
        "runpy.run_path(sys.argv[1])['write_domains_to_yaml']()\n"
        "model = DPGradientClassifier(Domain(classes=['no', 'yes'], target_range=None, n_samples=100))\n"
        "again = DPGradientClassifier(**yaml.safe_load(yaml.dump(model.get_params())))\n"
        "assert again.get_params() == model.get_params()\n"
    )
    path = Path(__file__).parents[1] / "examples" / "sacro_attacks.py"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=300)


def test_importing_teaches_pyyaml_nothing():
    """What a library changes in another one changes for the whole program."""
    code = (
        "import yaml; before = len(yaml.SafeDumper.yaml_representers), len(yaml.SafeLoader.yaml_constructors)\n"
        "import dpsparse.methods, dpsparse.domain.file, dpsparse.cli.commands\n"
        "assert before == (len(yaml.SafeDumper.yaml_representers), len(yaml.SafeLoader.yaml_constructors))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


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
    plain = model.to_sklearn()
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
    """Without the package it skips in one sentence; with it docs/other_tools.md shows what it prints."""
    if importlib.util.find_spec("sacroml") is not None:
        pytest.skip("sacroml is installed: the example would run for a minute")
    example()["main"]()
    assert capsys.readouterr().out.startswith("Skipped: sacroml is not installed.")

"""The command: table, exit code, and errors that name the remedy."""

import io
import sys

import numpy as np
import pytest

click_testing = pytest.importorskip("click.testing")

from dpsparse.cli.audit import audit, read_config  # noqa: E402
from dpsparse.exceptions import ParameterError  # noqa: E402

CONFIG = """
estimator = "{name}"
n_features = 3
[domain]
classes = [0, 1]
n_samples = 20
[parameters]
epsilon = {epsilon}
delta = 0.01
n_iter = 5
radius = 1.0
fit_intercept = false
"""


def run(tmp_path, text, *options):
    path = tmp_path / "model.toml"
    path.write_text(text)
    return click_testing.CliRunner().invoke(audit, [str(path), "--runs", "100", *options])


def test_published_configuration_is_refuted(tmp_path):
    text = CONFIG.format(epsilon=0.1, name="RaffKhannaLuLassoClassifier")
    result = run(tmp_path, text)
    assert result.exit_code == 7
    assert "REFUTED" in result.output


WORKFLOWS = {
    "pipeline": "[columns]\nage = [0, 120]\nregion = 'category'\nnote = 'words'",
    "search": "[search]\ncandidates = {n_nonzero = [1, 2]}",
    "search over a pipeline": "[columns]\nage = 'number'\nregion = ['a', 'b']\n"
    "[search]\ncandidates = {n_nonzero = [1, 2]}",
    "evaluation": "[evaluate]\nepsilon = 1.0\nmetrics = ['accuracy', 'auc']",
    "inference": "[infer]\nsupport = [0, 2]",
    "look": "[columns]\nage = 'auto'\nregion = 'auto'\n[look]\nepsilon = 0.5",
}


@pytest.mark.heavy
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_are_replayed_and_rebuilt(tmp_path, name, unit):
    text = f"""
estimator = "DPGradientClassifier"
n_features = 3
[domain]
classes = [0, 1]
unit = "{unit}"
{"rows_per_unit = 1" if unit == "person" else ""}
{"feature_bound = 2.0" if name == "inference" else ""}
[parameters]
epsilon = 8.0
n_iter = 2
{WORKFLOWS[name]}
"""
    result = run(tmp_path, text)
    assert result.exit_code == 0, result.output
    assert "replay " in result.output
    assert "rebuilt bit for bit" in result.output


def test_feature_tests_too(tmp_path):
    text = "estimator = 'DPFeatureTest'\n[domain]\nclasses = [0, 1]\n[parameters]\nq = 0.2"
    result = run(tmp_path, text)
    assert result.exit_code == 0, result.output
    assert "DPFeatureTest" in result.output
    assert "rebuilt bit for bit" in result.output


def test_a_leak_of_a_workflow_is_refuted(tmp_path, monkeypatch):
    import dpsparse.evaluation.api as api

    original = api.score_rows
    seen = []

    def score(model, X, y, *more):
        seen.append(float(np.mean(y)))
        return original(model, X, y, *more)

    monkeypatch.setattr(api, "score_rows", score)
    monkeypatch.setattr(
        api.Report, "__str__", lambda self: f"mean of the labels: {seen[-1]}", raising=False
    )
    text = (
        "estimator = 'DPGradientClassifier'\n[domain]\nclasses = [0, 1]\n[parameters]\nn_iter = 2\n"
    )
    result = run(tmp_path, text + WORKFLOWS["evaluation"])
    assert result.exit_code == 7
    assert "not explained by the releases" in result.output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("estimator = 'Lasso'", "must be one of"),
        ("colour = 1", "unknown colour"),
        ("= 1", "TOML"),
        ("estimator = 'DPLassoClassifier'\n[parameters]\nshade = 1", "no 'shade'; it has: "),
        (
            "estimator = 'DPLassoClassifier'\n[domain]\nlabels = [0, 1]",
            "no 'labels'; it has: .*classes",
        ),
        ("estimator = 'DPLassoClassifier'\ndomain = 3", r"\[domain\]"),
        ("estimator = 'DPLassoClassifier'\nn_features = 1", "at least 2"),
        (
            "estimator = 'DPLassoClassifier'\n[domain]\nclasses = [0, 1]\n[evaluate]\n[infer]",
            "state one of evaluate, infer",
        ),
        (
            "estimator = 'DPLassoClassifier'\n[domain]\nclasses = [0, 1]\n[search]\nledger = 'x'",
            "no 'ledger'; it has: candidates",
        ),
    ],
)
def test_errors_name_the_remedy(tmp_path, text, says):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=says):
        read_config(path)


@pytest.mark.heavy
def test_proven_configuration_holds(tmp_path, monkeypatch, capsys):
    """And progress on a terminal is one line that is rewritten."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("dpsparse.progress._PAUSE", 0.0)
    path = tmp_path / "model.toml"
    path.write_text(CONFIG.format(epsilon=1.0, name="DPLassoClassifier"))
    monkeypatch.setattr(sys, "stderr", screen)
    audit.callback(config=path, runs=100, confidence=0.999, seed=0)
    output = capsys.readouterr().out
    for word in ("replay", "rebuild", "noise", "exact law", "black box", "claimed", "refuted"):
        assert word in output
    assert "REFUTED" not in output
    assert "not refuted" in output
    for attack in ("replay", "law of the noise", "black box"):
        assert f"audit: {attack} " in screen.getvalue()
    assert "DPLassoClassifier:" not in screen.getvalue()

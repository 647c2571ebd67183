"""The command: table, page, exit code, and errors that name the remedy."""

import sys

import pytest

click_testing = pytest.importorskip("click.testing")

from dpsparse.audit.command import audit, read_config  # noqa: E402
from dpsparse.exceptions import ParameterError  # noqa: E402

CONFIG = """
estimator = "DPLassoClassifier"
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
calibration = "{calibration}"
"""


def run(tmp_path, text, *options):
    path = tmp_path / "model.toml"
    path.write_text(text)
    return click_testing.CliRunner().invoke(audit, [str(path), "--runs", "200", *options]), path


def test_proven_configuration_holds(tmp_path):
    result, path = run(tmp_path, CONFIG.format(epsilon=1.0, calibration="proven"))
    assert result.exit_code == 0, result.output
    for word in ("replay", "noise", "exact law", "black box", "claimed", "refuted"):
        assert word in result.output
    assert "REFUTED" not in result.output
    page = path.with_suffix(".html").read_text()
    assert "not refuted" in page
    assert "http" not in page.replace("http-equiv", "")


def test_published_configuration_is_refuted(tmp_path):
    target = tmp_path / "out.html"
    text = CONFIG.format(epsilon=0.1, calibration="published")
    result, _ = run(tmp_path, text, "--html", str(target))
    assert result.exit_code == 7
    assert "REFUTED" in result.output
    assert "REFUTED" in target.read_text()


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
    ],
)
def test_errors_name_the_remedy(tmp_path, text, says):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=says):
        read_config(path)


def test_progress_on_a_terminal_alone(tmp_path, monkeypatch):
    """One line that is rewritten; a pipe or a log gets the table and nothing else."""
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    quiet, _ = run(tmp_path, CONFIG.format(epsilon=1.0, calibration="proven"))
    assert quiet.stderr == ""
    screen = Terminal()
    monkeypatch.setattr("dpsparse.progress._PAUSE", 0.0)
    path = tmp_path / "model.toml"
    monkeypatch.setattr(sys, "stderr", screen)
    audit.callback(config=path, runs=100, confidence=0.999, seed=0, html=None)
    for attack in ("replay", "boundary floats", "law of the noise", "black box"):
        assert f"audit: {attack} " in screen.getvalue()
    assert "DPLassoClassifier:" not in screen.getvalue()

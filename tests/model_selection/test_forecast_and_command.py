"""The public forecast, and `dpsparse tune` from files."""

import json

import numpy as np
import pytest
from scipy.special import expit

pytest.importorskip("click")
from click.testing import CliRunner

import dpsparse
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
    Ledger,
    expected_accuracy,
)
from dpsparse.accounting.guarantee import cautions
from dpsparse.cli.commands import program
from dpsparse.exceptions import ParameterError
from dpsparse.model_selection import forecast as forecast_module
from dpsparse.random import make_generator

CLASSES = DPGradientClassifier(Domain(row_norm=1.0, classes=["no", "yes"]), n_iter=20)


# ---- forecast ------------------------------------------------------------------------------------


def test_the_forecast_rises_with_epsilon_and_stays_below_what_is_reachable():
    forecast = expected_accuracy(CLASSES, 1500, 20, epsilon=[0.05, 8.0], repeats=2, reachable=0.85)
    low, high = forecast.score
    assert low + 0.05 < high < 0.87
    assert forecast.constant < high <= forecast.without_privacy + 0.03
    assert forecast.without_privacy == pytest.approx(0.85, abs=0.03)
    assert "without privacy" in str(forecast)
    again = expected_accuracy(CLASSES, 1500, 20, epsilon=[0.05, 8.0], repeats=2, reachable=0.85)
    assert again == forecast


@pytest.mark.parametrize("n_features", [1, 2, 7, 21, 300])
@pytest.mark.parametrize("row_norm", [None, 1.0])
def test_made_up_labels_can_be_guessed_as_often_as_was_said(n_features, row_norm, monkeypatch):
    """Labels follow their chances; where margins tied at 0 nobody could reach what the forecast called reachable."""
    best = []

    def watched(sizes, reachable):
        gain = found(sizes, reachable)
        best.append(expit(gain * sizes).mean())
        return gain

    found = forecast_module.find_gain
    monkeypatch.setattr(forecast_module, "find_gain", watched)
    domain = Domain(classes=[0, 1], row_norm=row_norm)
    X, y = forecast_module._made_up(
        make_generator(0), 5_000, n_features, 20, 20, 0.9, domain, np.array([0, 1])
    )
    assert best[0] == pytest.approx(0.9, abs=1e-6)
    assert abs(y.mean() - 0.5) < 0.1
    assert np.diff(X.tocsc().indptr)[: min(n_features, 100)].all()  # columns occur


def test_a_forecast_for_persons_and_one_epsilon():
    persons = DPGradientClassifier(Domain(row_norm=1.0, classes=[0, 1], unit="person"), n_iter=20)
    forecast = expected_accuracy(persons, 1000, 5, epsilon=5.0, repeats=1)
    assert forecast.epsilon == (5.0,)
    assert forecast.score[0] > 0.8


def test_the_forecast_for_numbers():
    model = DPGradientRegressor(Domain(row_norm=1.0, target_bound=5.0), n_iter=20)
    forecast = expected_accuracy(model, 1000, 10, epsilon=[8.0], repeats=1, reachable=0.8)
    assert forecast.metric == "R^2"
    assert 0.4 < forecast.score[0] < 0.85


def test_cautions():
    assert cautions(1.0, 1e-6, 10_000) == ()
    assert "1/n" in cautions(1.0, 1e-4, 10_000)[0]
    assert "says little" in cautions(10.5, 1e-6, 10_000)[0]
    assert cautions(1.0, 1e-4, None) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": []},
        {"epsilon": [0.0]},
        {"epsilon": "1"},
        {"epsilon": [float("inf")]},
        {"reachable": 0.5},
        {"n_samples": 0},
        {"repeats": 0},
        {"estimator": DPGradientClassifier(Domain(classes=[0, 1, 2]))},
        {"estimator": DPGradientClassifier()},
    ],
)
def test_a_bad_forecast_is_one_line(wrong):
    given = {"estimator": CLASSES, "n_samples": 100, "n_features": 5, "epsilon": [1.0]} | wrong
    with pytest.raises(ParameterError) as caught:
        expected_accuracy(
            given.pop("estimator"), given.pop("n_samples"), given.pop("n_features"), **given
        )
    assert "\n" not in str(caught.value)


# ---- command line --------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    lines = [
        "a,b,c,y",
        *(f"{a:.4f},{b:.4f},{c:.4f},{label}" for (a, b, c), label in zip(X, y, strict=True)),
    ]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    Ledger(tmp_path / "book.db", epsilon=9.0, delta=1e-6)
    return tmp_path


GRID = ("n_nonzero=[1,2,null]", "threshold=[0.0,30.0]")


def run(files, candidates, *more):
    arguments = [
        "tune", str(files / "table.csv"), *(w for c in candidates for w in ("--candidates", c)), "--target", "y",
        "--classes", "no,yes", "--row-norm", "1", "--n-samples", "300", "--epsilon", "4", "--param", "n_iter=5", *more,
        "-o", str(files / "model.json"),
    ]  # fmt: skip
    return CliRunner().invoke(program, arguments)


@pytest.mark.parametrize("candidates", [GRID, ('class_weight=["balanced",null]',)])
def test_tune_pays_once_and_writes_the_winner(files, candidates):
    book = files / "book.db"
    result = run(files, candidates, "--ledger", str(book), "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.output)
    model = dpsparse.load(files / "model.json")
    assert model.privacy_.proven
    assert model.privacy_.epsilon == 4.0
    assert model.feature_names_ == ("a", "b", "c")
    (entry,) = Ledger(book).history()
    assert entry.committed
    assert entry.method == "DPSearchCV(DPGradientClassifier)"
    if candidates == GRID:
        assert record["best_params"]["threshold"] == 0.0  # the other one loses half of the rows


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("n_iter=5", "must be a list"),
        ("nonsense=[1]", "no parameter"),
        ("n_nonzero", "must be written like"),
    ],
)
def test_bad_candidates_spend_nothing(files, text, sentence):
    result = run(files, [text], "--ledger", str(files / "book.db"))
    assert result.exit_code != 0
    assert sentence in str(result.exception)
    assert not Ledger(files / "book.db").history()
    assert not (files / "model.json").exists()


def test_an_output_is_needed_before_anything_is_spent(files):
    words = ["tune", str(files / "table.csv"), "--target", "y", "--classes", "no,yes"]
    result = CliRunner().invoke(program, [*words, "--ledger", str(files / "book.db")])
    assert result.exit_code != 0
    assert not Ledger(files / "book.db").history()


# ---- raw tables ----------------------------------------------------------------------------------


@pytest.fixture
def raw(files):
    rng = np.random.default_rng(1)
    age, region = rng.uniform(0, 100, 3000), rng.choice(["north", "south"], 3000)
    y = np.where(age + 20 * (region == "north") > 55, "yes", "no")
    cells = zip(age, region, y, strict=True)
    lines = ["age,region,y", *(f"{a:.1f},{r},{label}" for a, r, label in cells)]
    (files / "raw.csv").write_text("\n".join(lines) + "\n")
    (files / "facts.yaml").write_text(
        "target: y\nclasses: [no, yes]\ncolumns:\n  age: {bounds: [0, 100]}\n"
        "  region: {categories: [north, south]}\n"
    )
    return files


def tune_raw(files, *more):
    arguments = [
        "tune",
        str(files / "raw.csv"),
        *(w for c in GRID for w in ("--candidates", c)),
        *more,
    ]
    return CliRunner().invoke(program, [*arguments, "--epsilon", "3"])


@pytest.mark.parametrize(
    "told",
    [
        ["--target", "y", "--classes", "no,yes", "--prepare", "private"],
        ["--target", "y", "--classes", "no,yes", "--bounds", "age=0..100", "--hash", "region"],
        ["--domain", "facts.yaml"],
    ],
    ids=["private", "declared", "domain"],
)
def test_tune_prepares_raw_tables_and_writes_one_model(raw, told):
    told = [str(raw / part) if part == "facts.yaml" else part for part in told]
    output = ["-o", str(raw / "model.json"), "--ledger", str(raw / "book.db"), "--json"]
    result = tune_raw(raw, *told, *output)
    assert result.exit_code == 0, result.output
    record = json.loads(result.output)
    assert record["prepared"]
    assert record["best_params"]["threshold"] == 0.0
    (entry,) = Ledger(raw / "book.db").history()
    assert entry.method.startswith("DPSearchCV(DPPipeline(")
    model = dpsparse.load(raw / "model.json")
    assert model.privacy_.epsilon == 3.0
    assert model.about_["target"] == "y"
    predictions = CliRunner().invoke(
        program, ["predict", str(raw / "model.json"), str(raw / "raw.csv")]
    )
    assert predictions.exit_code == 0
    right = [line.rsplit(",", 1)[1] for line in (raw / "raw.csv").read_text().split()[1:]]
    assert np.mean(np.array(predictions.output.split()[1:]) == right) > 0.8


def test_columns_without_a_decision_are_listed_before_anything_is_spent(raw):
    told = ["--target", "y", "--classes", "no,yes", "--bounds", "age=0..100"]
    result = tune_raw(raw, *told, "-o", str(raw / "m.json"), "--ledger", str(raw / "book.db"))
    assert result.exit_code != 0
    assert "need a decision: region" in str(result.exception)
    assert not Ledger(raw / "book.db").history()

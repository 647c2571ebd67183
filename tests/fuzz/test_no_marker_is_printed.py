"""No cell, no number of rows, no traceback, nothing spent: broken inputs to commands, fits, predictions and readers.

Deterministic: the corpus (`broken_inputs.py`) crosses kinds of breakage with commands, estimators
and methods; every cell of it is a marker, which must appear in no output, warning or exception.
"""

import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest
from broken_inputs import (
    COLUMNS,
    COMMON_TARGETS,
    FEATURES,
    LABEL_TARGETS,
    LINES,
    MARKERS,
    TABLES,
    N,
    cli_cases,
)

from dpsparse import Domain, Ledger
from dpsparse import methods as estimators
from dpsparse.exceptions import DPSparseError
from dpsparse.io import read_table
from dpsparse.io.streams import iter_svmlight, read_svmlight
from dpsparse.models import files as models
from dpsparse.rows import Rows
from in_process import run_command

CLASSES = Domain(row_norm=1.0, classes=[0, 1], n_samples=600)
TARGETS = Domain(row_norm=1.0, target_bound=10.0, n_samples=600)
GOOD_X = np.full((N, 2), 0.5)
GOOD_Y = np.arange(N) % 2


def is_classifier(name):
    return name.endswith("Classifier")


def marked(text):
    return [marker for marker in MARKERS if marker in text]


@pytest.mark.heavy
def test_no_command_prints_a_marker(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger("budget.db", epsilon=5.0, delta=1e-6)
    head = ledger.head
    model = estimators.DPGradientClassifier(
        Domain(row_norm=1.0, classes=["no", "yes"], n_samples=600), n_iter=1
    )
    model.fit(GOOD_X, np.array(["no", "yes"])[GOOD_Y])
    path = models.save(model, "model.json", feature_names=["age", "visits"])
    models.save(model, "bare.json")
    regressor = estimators.DPGradientRegressor(TARGETS, n_iter=1).fit(GOOD_X, GOOD_Y)
    models.save(regressor, "numbers.json", feature_names=["age", "visits"])
    cases = cli_cases(path.read_text(), _signed)
    assert len(cases) >= 460
    assert len({case.name for case in cases}) == len(cases)
    wrong, kept = [], sorted(p.name for p in Path().iterdir())
    for case in cases:
        for name, content in case.files.items():
            Path(name).write_bytes(content)
        code, out, err = run_command(*case.arguments)
        if code != case.code or out or marked(err) or "Traceback" in err or err.count("\n") != 1:
            wrong.append((case.name, code, out[:200], err[:300]))
        for name in case.files:
            Path(name).unlink()
        if sorted(p.name for p in Path().iterdir()) != kept:
            wrong.append((case.name, "left files behind"))
    assert wrong == []
    assert ledger.head == head
    assert Ledger("budget.db").history() == []


def _signed(header):
    import json

    header = {k: v for k, v in header.items() if k != "checksum"}
    return json.dumps({**header, "checksum": models._checksum(header)})


# ---- Python -------------------------------------------------------------------------------------


def complaint(call, *arguments, **options):
    """What a caller can see of a refusal, its chained errors and its warnings; empty if all is well."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call(*arguments, **options)
        except Exception as error:
            chain, link = [], error
            while link is not None:
                chain += [type(link).__name__, *map(str, link.args)]
                link = link.__cause__ or link.__context__
            seen = "\n".join([*chain, *(str(w.message) for w in caught)])
            seen += "".join(traceback.format_exception_only(error))
            ours = isinstance(error, DPSparseError)
            found = marked(seen)
            return "" if ours and not found else f"{type(error).__name__}, {found}: {seen[:300]}"
    return "was not refused"


@pytest.fixture(scope="module")
def fitted():
    return {
        name: getattr(estimators, name)(CLASSES if is_classifier(name) else TARGETS, n_iter=1).fit(
            GOOD_X, GOOD_Y
        )
        for name in ("DPGradientClassifier", "DPGradientRegressor")
    }


@pytest.mark.parametrize("name", estimators.__all__)
def test_no_fit_shows_a_marker(name):
    ledger = Ledger(epsilon=5.0, delta=1e-6)
    head = ledger.head
    kind, classifier = getattr(estimators, name), is_classifier(name)
    model = kind(CLASSES if classifier else TARGETS, ledger=ledger)
    targets = COMMON_TARGETS | (LABEL_TARGETS if classifier else {})
    wrong = {
        f"X {case}": complaint(model.fit, make(), GOOD_Y) for case, make in FEATURES.items()
    } | {f"y {case}": complaint(model.fit, GOOD_X, make()) for case, make in targets.items()}
    assert {case: text for case, text in wrong.items() if text} == {}
    assert ledger.head == head
    assert not hasattr(model, "coef_")


def test_no_prediction_shows_a_marker(fitted):
    wrong = {}
    for name, model in fitted.items():
        methods = ["predict"] + (
            ["predict_proba", "predict_log_proba", "decision_function"]
            if is_classifier(name)
            else []
        )
        for case, make in FEATURES.items():
            for method in methods:
                wrong[name, method, case] = complaint(getattr(model, method), make())
            wrong[name, "score", case] = complaint(model.score, make(), GOOD_Y)
        for case, make in COMMON_TARGETS.items():
            never = ("text", "category", "nan", "infinite", "text and numbers")
            if is_classifier(name) and case in never:
                continue  # labels that are never predicted; a score of zero is right
            wrong[name, "score of y", case] = complaint(model.score, GOOD_X, make())
    assert {case: text for case, text in wrong.items() if text} == {}


def test_named_columns_are_not_quoted_unless_they_read_like_names(fitted):
    import pandas as pd

    model = fitted["DPGradientClassifier"]
    named = type(model)(CLASSES, n_iter=1).fit(pd.DataFrame(GOOD_X, columns=["a", "b"]), GOOD_Y)
    for method in (named.predict, lambda X: named.score(X, GOOD_Y)):
        assert complaint(method, FEATURES["without header"]()) == ""
        with pytest.raises(DPSparseError, match="now missing"):
            method(pd.DataFrame(GOOD_X, columns=["a", "c"]))


def test_the_domain_shows_no_marker():
    wrong = {}
    for case, make in FEATURES.items():
        if case not in (
            "nullable",
            "nullable flag",
            "no columns",
            "no rows",
            "interval",
            "one dimension",
        ):
            wrong[f"X {case}"] = complaint(
                Rows.clip, make(), GOOD_Y, CLASSES, labels=np.array([0, 1])
            )
    for case, make in COMMON_TARGETS.items():
        if case not in ("nothing", "two columns", "sparse"):
            wrong[f"y {case}"] = complaint(Rows.clip, GOOD_X, make(), TARGETS)
            wrong[f"labels {case}"] = complaint(
                Rows.clip, GOOD_X, make(), CLASSES, labels=np.array([0, 1])
            )
    assert {case: text for case, text in wrong.items() if text} == {}


def test_no_reader_shows_a_marker(tmp_path):
    wrong = {}
    for case, content in TABLES.items():
        if case in ("nan", "infinite"):
            continue  # readable; refused by the domain
        path = tmp_path / "x.csv"
        path.write_bytes(content)
        wrong[f"csv {case}"] = complaint(read_table, path, target="label")
    for case, content in COLUMNS.items():
        if case in ("nan", "infinite", "missing"):
            continue
        path = tmp_path / "x.parquet"
        path.write_bytes(content)
        wrong[f"parquet {case}"] = complaint(read_table, path, target="label")
    for case, content in LINES.items():
        if case in ("nan", "infinite", "empty", "comments only"):
            continue
        path = tmp_path / "x.svm"
        path.write_bytes(content)
        wrong[f"svmlight {case}"] = complaint(read_svmlight, path, n_features=2)
        wrong[f"blocks {case}"] = complaint(lambda p: list(iter_svmlight(p, n_features=2)), path)
    assert {case: text for case, text in wrong.items() if text} == {}

"""One table in all forms of tests/forms.py: the same model bit for bit, or a refusal that names the option."""

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from dpsparse import load
from forms import FIT, FORMS, make_table, run_form

QUICK = [
    "CSV", "decimal commas", "UTF-16", "Excel", "JSON array", "Parquet", "index of pandas", "own missing values",
    "rows without target",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def reference():
    return {}


def compare(name, run, reference):
    found, _ = run_form(FORMS[name], run)
    expected = reference.setdefault("model", found)
    assert found == expected


@pytest.mark.heavy
@pytest.mark.parametrize("name", QUICK)
def test_forms_have_the_same_model(name, run, reference):
    compare(name, run, reference)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FORMS if name not in QUICK])
def test_all_other_forms_have_the_same_model(name, run, reference):
    if "model" not in reference:
        compare("CSV", run, reference)
        for made in Path().iterdir():
            made.unlink()
    compare(name, run, reference)


def test_there_are_at_least_sixteen_forms():
    assert len(FORMS) >= 16


def test_python_predicts_what_files_predict(run):
    frame = make_table()
    frame.to_csv("t.csv", index=False)
    assert run("fit", "t.csv", *FIT, "-o", "m.json")[0] == 0
    assert run("predict", "m.json", "t.csv", "--proba", "-o", "p.csv")[0] == 0
    printed = pd.read_csv("p.csv")
    model = load("m.json")
    for table in (frame, pd.read_csv("t.csv"), pl.from_pandas(frame.astype({"kosten": float}))):
        chances = model.predict_proba(table)
        assert chances[:, 1].tolist() == printed[f"p({model.classes_[1]})"].tolist()
        assert model.predict(table).tolist() == printed["prediction"].tolist()

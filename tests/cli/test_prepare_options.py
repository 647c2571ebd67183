"""Raw tables on the command line: one command, every format, all open columns in one message."""

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsparse.domain.file import read
from dpsparse.models.files import load

N = 4000


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def frame():
    """A messy table: scales far apart, gaps, names, dates, an identifier."""
    rng = np.random.default_rng(0)
    income = rng.lognormal(10, 0.7, N)
    sex = rng.choice(["f", "m"], N)
    since = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, N), "D")
    risk = (np.log(income) - 10) * 2.0 + (sex == "f") + rng.normal(0, 0.5, N)
    return pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(N)],
            "income": np.where(rng.random(N) < 0.1, np.nan, income),
            "sex": np.where(rng.random(N) < 0.05, None, sex),
            "since": since.strftime("%Y-%m-%d"),
            "label": np.where(risk > 0.5, "bad", "good"),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch, frame):
    monkeypatch.chdir(tmp_path)
    frame.to_csv("raw.csv", index=False)
    return tmp_path


FACTS = ("--target", "label", "--classes", "bad,good")
FIT = ("fit", "raw.csv", *FACTS)


def test_one_command_needs_no_other_fact(run, folder, frame):
    code, out, _ = run(*FIT, "--epsilon", "1", "--prepare", "private", "-o", "model.json")
    assert code == 0
    assert "(1, 1e-6)-DP" in out
    model = load("model.json")
    assert model.steps_[0][1].kinds_ == {
        "id": "category",
        "income": "number",
        "sex": "category",
        "since": "date",
    }
    assert model.score(frame.drop(columns="label"), frame["label"]) > 0.7
    code, out, _ = run("predict", "model.json", "raw.csv", "--proba")
    assert code == 0
    assert out.splitlines()[0] == "prediction,p(bad),p(good)"
    assert len(out.splitlines()) == N + 1


def test_all_open_columns_in_one_message(run, folder):
    code, _, err = run(*FIT, "-o", "model.json")
    assert code == 3
    for name in ("id", "income", "sex", "since"):
        assert name in err
    assert "--prepare private" in err
    assert "p17" not in err
    code, _, err = run(*FIT, "--hash", "id", "-o", "model.json")
    assert code == 2
    assert "income, sex, since" in err
    assert not Path("model.json").exists()


def test_every_column_decided_by_options(run, folder):
    options = (
        "--drop",
        "id",
        "--bounds",
        "income=0..200000",
        "--fill",
        "income=20000",
        "--categories",
        "sex=f,m",
    )
    code, out, _ = run(*FIT, *options, "--dates", "since", "-o", "model.json", "--json")
    assert code == 0
    assert json.loads(out)["prepared"] is True
    model = load("model.json")
    assert model.domain.bounds == {"income": (0.0, 200000.0)}
    assert model.domain.fill == {"income": 20000.0}
    assert list(model.domain.categories["sex"]) == ["f", "m"]


def test_a_file_of_facts_is_written_from_the_header_and_used(run, folder):
    code, _, _ = run("check", "raw.csv", *FACTS, "-o", "facts.yaml")
    assert code == 0
    text = Path("facts.yaml").read_text()
    assert "p17" not in text
    assert read("facts.yaml").roles == dict.fromkeys(("id", "income", "sex", "since"), "auto")
    stated = text.replace("id: {prepare: auto}", "id: drop").replace(
        "income: {prepare: auto}", "income: {bounds: [0, 200000], source: the tax office}"
    )
    Path("facts.yaml").write_text(stated)
    assert read("facts.yaml").domain.sources == {"income": "the tax office"}
    code, _, _ = run("fit", "raw.csv", "--domain", "facts.yaml", "-o", "model.json")
    assert code == 0
    assert load("model.json").domain.sources == {"income": "the tax office"}


def test_a_file_of_facts_states_what_the_options_did(run, folder):
    """Bounds and lists were written below their column as if they were columns, and the width of a hash was lost."""
    options = ["--bounds", "income=0..200000", "--fill", "income=20000", "--categories", "sex=f,m"]
    options += ["--hash", "since=128", "--drop", "id"]
    code, out, _ = run("check", "raw.csv", *FACTS, *options)
    assert code == 0
    assert run("check", "raw.csv", *FACTS, *options, "-o", "facts.yaml") == (0, out, "")
    lines = Path("facts.yaml").read_text().splitlines()
    assert sum(line.startswith("  ") for line in lines) == 4  # one for every column
    stated = read("facts.yaml")
    assert stated.domain.bounds == {"income": (0.0, 200000.0)}
    assert stated.domain.fill == {"income": 20000.0}
    assert list(stated.domain.categories["sex"]) == ["f", "m"]
    assert run("check", "raw.csv", "--domain", "facts.yaml") == (0, out, "")


@pytest.mark.parametrize("kind", ["tsv", "csv.gz", "csv.xz", "parquet", "jsonl"])
def test_formats(run, folder, frame, kind):
    name, small = f"raw.{kind}", frame.head(1500)
    if kind == "tsv":
        small.to_csv(name, sep="\t", index=False)
    elif kind.startswith("csv"):
        content = small.to_csv(index=False).encode()
        opener = gzip.open if kind == "csv.gz" else lzma.open
        with opener(name, "wb") as file:
            file.write(content)
    elif kind == "parquet":
        small.to_parquet(name)
    else:
        small.to_json(name, orient="records", lines=True)
    arguments = ("--prepare", "private", "--drop", "id", "-o", "model.json")
    code, _, err = run("fit", name, *FACTS, *arguments)
    assert code == 0, err
    code, out, _ = run("predict", "model.json", name)
    assert code == 0
    assert len(out.splitlines()) == len(small) + 1


def test_texts_and_ratings(run, folder):
    rng = np.random.default_rng(1)
    good = rng.random(1500) < 0.5
    words = [
        ("fine good nice" if g else "bad awful poor") + f" word{i % 7}" for i, g in enumerate(good)
    ]
    pd.DataFrame({"review": words, "stars": np.where(good, 5, 1)}).to_csv(
        "reviews.csv", index=False
    )
    texts = ("fit", "reviews.csv", "--target", "stars", "--classes", "1,5", "--epsilon", "2")
    assert run(*texts, "--text", "review", "-o", "hash.json")[0] == 0
    assert run(*texts, "--words", "review", "-o", "words.json")[0] == 0
    code, out, _ = run("inspect", "words.json")
    assert code == 0
    assert "review: good" in out
    code, out, _ = run("predict", "hash.json", "reviews.csv")
    assert np.mean(np.array(out.splitlines()[1:], int) == np.where(good, 5, 1)) > 0.9


def test_evaluation_of_a_prepared_model_from_the_same_budget(run, folder):
    assert run("budget", "create", "b.db", "--epsilon", "3", "--delta", "1e-5")[0] == 0
    private = ("--prepare", "private", "--ledger", "b.db", "-o", "model.json")
    assert run(*FIT, *private)[0] == 0
    arguments = ("--target", "label", "--epsilon", "1", "--ledger", "b.db")
    code, out, _ = run("evaluate", "model.json", "raw.csv", *arguments)
    assert code == 0
    assert "accuracy" in out
    assert "of 3 spent" in out


def test_methods_that_clip_ask_for_scales_by_name(run, folder, frame):
    frame[["income", "label"]].fillna(0).to_csv("numbers.csv", index=False)
    arguments = ("fit", "numbers.csv", *FACTS, "--method", "lasso", "-o", "model.json")
    code, _, err = run(*arguments)
    assert code == 2
    assert "income" in err
    assert "Nothing was spent" in err
    assert run(*arguments, "--bounds", "income=0..100000")[0] == 0


def test_yes_and_no_in_a_file_are_labels_and_not_truth_values():
    """YAML 1.1 reads [no, yes] as [False, True], and the labels of the table would then be strangers."""
    Path("facts.yaml").write_text(
        "target: y\nclasses: [no, yes]\ncolumns:\n  on: {categories: [off, on, true]}\n"
    )
    facts = read("facts.yaml")
    assert facts.domain.classes == ("no", "yes")
    assert facts.domain.categories == {"on": ["off", "on", True]}


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["--target", "dea", "--person", "patient_id", "--prepare", "private"], "dead"),
        (["--target", "Dead", "--drop", "age"], "dead"),
        (["--target", "dead", "--prepare", "private", "--bounds", "ages=0..120"], "age"),
        (["--target", "dead", "--drop", "agee"], "age"),
        (["--target", "dead", "--prepare", "private", "--person", "patient"], "patient_id"),
    ],
)
def test_a_mistyped_column_is_answered_with_the_nearest_of_the_header(run, arguments, near):
    Path("t.csv").write_text("age,patient_id,dead\n40,p1,yes\n50,p2,no\n")
    code, _, err = run("fit", "t.csv", "--classes", "no,yes", *arguments, "-o", "m.json")
    assert code in (2, 3)
    assert f"Did you mean {near!r}?" in err


@pytest.mark.parametrize("first", ["40,secretname,yes", "anna,secretname,yes"])
def test_no_cell_of_a_file_without_a_header_is_suggested(run, first):
    """Words look like names: nothing is suggested unless another name that the user said stands in the first line."""
    Path("t.csv").write_text(f"{first}\n50,othername,no\n")
    code, _, err = run(
        "fit", "t.csv", "--classes", "no,yes", "--target", "secretnam", "-o", "m.json"
    )
    assert code == 3
    assert "secretname" not in err
    assert "Did you mean" not in err

"""A refusal says what kind of fault a table has. It names no column that a cell decided, and no cell as if it were a
name.

Public are: names that were declared, the header line of a file once a declared name stands in it, the schema of a
Parquet or Arrow file, and the keys that all objects of JSON lines share.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsparse import Domain, DPGradientClassifier
from dpsparse.exceptions import SchemaError
from dpsparse.io import read_table
from dpsparse.io.tables import column_names

NAMES = [f"f{j}" for j in range(6)]
FIT = "--target label --classes no,yes -o m.json"
BAD_CELLS = ["", "NA", "nan", "null", "text", "2020-01-01", "inf", "1e999", "#"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write_csv(place, cell, path="x.csv", separator=","):
    rows = [[str(i % 3)] * len(NAMES) + ["no" if i % 2 else "yes"] for i in range(40)]
    rows[17][place] = cell
    lines = [separator.join(row) for row in [[*NAMES, "label"], *rows]]
    Path(path).write_text("\n".join(lines) + "\n")
    return path


def write_json(place, cell):
    columns = pd.read_csv(write_csv(0, "0"))
    rows = columns.to_dict("records")
    rows[17][NAMES[place]] = cell
    Path("x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return "x.jsonl"


def write_parquet(place):
    frame = pd.read_csv(write_csv(place, "")).astype(dict.fromkeys(NAMES, "Int64"))
    pq.write_table(pa.Table.from_pandas(frame), "x.parquet")
    return "x.parquet"


COMMANDS = {
    "fit": f"fit {{0}} {FIT}",
    "stream": f"fit {{0}} {{0}} {FIT}",
    "tune": f"tune {{0}} {FIT} --candidates n_nonzero=[1,2]",
    "predict": "predict model.json {0}",
    "evaluate": "evaluate model.json {0} --target label --epsilon 1",
}


@pytest.fixture
def model(run):
    code, _, err = run("fit", write_csv(0, "0"), *FIT.replace("m.json", "model.json").split())
    assert code == 0, err


@pytest.mark.parametrize("command", COMMANDS)
def test_the_message_is_the_same_wherever_the_bad_cell_stands(run, model, command):
    words = COMMANDS[command]
    for write, cells in (
        (write_csv, BAD_CELLS),
        (write_json, [None, "NA", "text", "x", [1], 10**400]),
        (lambda place, cell: write_parquet(place), [None]),
    ):
        if command == "stream" and write is write_json:
            continue
        for cell in cells:
            said = {run(*words.format(write(place, cell)).split()) for place in (0, 2, 5)}
            assert len(said) == 1, said
            code, out, err = said.pop()
            assert code == 3
            assert out == ""
            assert err.count("\n") == 1


@pytest.mark.parametrize("cell", ["text", None, np.nan, "NA", 1j, [1]])
@pytest.mark.parametrize("make", [np.array, pd.DataFrame, list])
def test_python_names_no_column_either(make, cell):
    said = set()
    for place in (0, 1, 2):
        rows = [[0.5, 1.0, 2.0] for _ in range(20)]
        rows[7][place] = cell
        X = make(rows, object) if make is np.array else make(rows)
        with pytest.raises(SchemaError) as refusal:
            DPGradientClassifier(Domain(classes=[0, 1])).fit(X, [0, 1] * 10)
        said.add(str(refusal.value))
    assert len(said) == 1


# ---- files without a header --------------------------------------------------------------------

ROW = "Anna,Berlin,Diabetes,yes"
HEADLESS = [
    "fit x.csv --target ill --classes no,yes -o m.json",
    "fit x.csv --classes no,yes -o m.json",
    "fit x.csv --target ill --classes no,yes --prepare declared -o m.json",
    "fit x.csv --target ill --classes no,yes --prepare private -o m.json",
    "fit x.csv --classes no,yes --prepare private -o m.json",
    "fit x.csv --target ill --classes no,yes --bounds age=0..1 -o m.json",
    "fit x.csv --target ill --classes no,yes --method lasso -o m.json",
    "fit x.csv --target ill --classes no,yes --drop Ann -o m.json",
    "fit x.csv x.csv --target ill --classes no,yes -o m.json",
    "check x.csv --target ill --classes no,yes",
    "check x.csv --target ill --classes no,yes --prepare declared",
    "check x.csv --classes no,yes --prepare declared",
    "tune x.csv --target ill --classes no,yes --candidates n_nonzero=[1,2] -o m.json",
    "tune x.csv --target ill --classes no,yes --prepare declared --candidates n_nonzero=[1,2] -o m.json",
    "check x.csv --classes no,yes -o facts.yaml",
    "check x.csv --target ill --classes no,yes -o facts.yaml",
    "check x.csv --target ill --person id --classes no,yes -o facts.yaml",
    "predict model.json x.csv",
    "evaluate model.json x.csv --target label --epsilon 1",
]


@pytest.mark.parametrize("line", HEADLESS)
def test_cells_of_a_file_without_a_header_are_not_taken_for_names(run, model, line):
    Path("x.csv").write_text(f"{ROW}\n" + "Bob,Bonn,None,no\n" * 30)
    code, out, err = run(*line.split())
    assert code in (2, 3)
    for cell in ROW.split(",")[:3]:
        assert cell not in out + err
    assert not Path("facts.yaml").exists()


KEYS = [
    "fit x.jsonl --target label --classes no,yes -o m.json",
    "fit x.jsonl --target label --classes no,yes --prepare declared -o m.json",
    "fit x.jsonl --target label --classes no,yes --prepare private -o m.json",
    "fit x.jsonl --target label --classes no,yes --method lasso -o m.json",
    "check x.jsonl --target label --classes no,yes --prepare declared",
    "check x.jsonl --target labels --classes no,yes",
    "check x.jsonl --target label --classes no,yes -o facts.yaml",
    "evaluate model.json x.jsonl --target label --epsilon 1",
]


@pytest.mark.parametrize("line", KEYS)
@pytest.mark.parametrize("place", [0, 20, 39])
def test_the_key_of_a_single_object_is_never_printed(run, model, line, place):
    rows = [{"age": i, "label": "no"} for i in range(40)]
    rows[place] = {"age": 1, "hiv_positive": 1, "label": "no"}
    Path("x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    code, out, err = run(*line.split())
    assert code in (2, 3)
    assert "hiv_positive" not in out + err
    assert not Path("facts.yaml").exists()


def test_keys_that_all_objects_share_are_the_columns(run):
    rows = [{"age": i, "dose": 1, "label": "no"} for i in range(4)]
    Path("x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert column_names("x.jsonl") == ["age", "dose", "label"]
    code, _, err = run(
        "check", "x.jsonl", *["--target", "label", "--classes", "no,yes", "--prepare", "declared"]
    )
    assert code == 2
    assert "age, dose" in err
    code, _, _ = run(
        "check", "x.jsonl", "--target", "label", "--classes", "no,yes", "-o", "facts.yaml"
    )
    assert code == 0
    assert "dose" in Path("facts.yaml").read_text()


def test_texts_of_a_parquet_file_are_read_like_those_of_a_csv_file(tmp_path):
    table = pa.table({"a": ["1", " 2 "], "b": [1.0, None], "y": [0, 1]})
    pq.write_table(table, "t.parquet")
    X = read_table("t.parquet", target="y").X.toarray()
    assert X[:, 0].tolist() == [1.0, 2.0]
    assert np.isnan(X[1, 1])
    pq.write_table(table.set_column(0, "a", pa.array(["1", "x"])), "t.parquet")
    with pytest.raises(SchemaError, match="A feature has a cell that is no number") as error:
        read_table("t.parquet", target="y")
    assert "'a'" not in str(error.value)

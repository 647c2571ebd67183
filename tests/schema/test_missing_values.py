"""One rule for missing values: empty, NA, NaN, nan, null, NULL, in every reader and in Python; "none" is a value."""

import json
import math
import warnings
from datetime import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpsparse import Domain, DPGradientClassifier, DPPipeline, DPTablePreparer
from dpsparse._cells import MISSING_WORDS, is_missing, to_numbers
from dpsparse._checks import array_of
from dpsparse.domain.clipping import by_person
from dpsparse.exceptions import SchemaError
from dpsparse.io import read_columns, read_table
from dpsparse.models import files as models
from dpsparse.preprocessing import DPCategoryEncoder, PublicEncoder
from dpsparse.preprocessing._tables import documents, numbers, objects_of, texts

NAMES = [
    "none",
    "NA",
    "airbag",
    "",
    "null",
    "None",
    "nan",
    "?",
    "n/a",
    "NaN",
    "NULL",
    "Na",
    " airbag ",
]
CODES = [1, 2, None, 3]
ROWS = [
    {
        "age": None if i % 7 == 0 else float(i % 50),
        "airbag": NAMES[i % len(NAMES)],
        "code": CODES[i % 4],
        "word": NAMES[(i * 5) % len(NAMES)],
        "story": f"{NAMES[i % 3]} hit tree{i % 5}" if i % 6 else "NA",
        "label": "yes" if i % 3 else "no",
    }
    for i in range(390)
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
ROLES = {
    "age": (0, 50), "airbag": ["airbag", "none", "NA"], "code": "category", "word": "hash", "story": "text",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def as_text(cell):
    """As an office writes it: nothing for a missing number."""
    return "" if cell is None else str(cell)


def write_text(path, separator):
    lines = [separator.join(COLUMNS), *(separator.join(map(as_text, row.values())) for row in ROWS)]
    Path(path).write_text("\n".join(lines) + "\n")
    return path


def arrow():
    kinds = {"age": pa.float64(), "code": pa.int64()}
    return pa.table({n: pa.array(c, kinds.get(n, pa.string())) for n, c in COLUMNS.items()})


def file_of(kind):
    path = f"table.{kind}"
    if kind in ("csv", "tsv"):
        return write_text(path, "," if kind == "csv" else "\t")
    if kind == "jsonl":
        Path(path).write_text("\n".join(map(json.dumps, ROWS)))
    else:
        pq.write_table(arrow(), path)
    return path


FORMS = {
    **{kind: lambda kind=kind: read_columns(file_of(kind)) for kind in ("csv", "tsv", "jsonl", "parquet")},
    "dict": lambda: COLUMNS,
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas types": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas csv": lambda: pd.read_csv(write_text("t.csv", ","), keep_default_na=False, na_values=["", "NA"]),
    "polars": lambda: pl.DataFrame(COLUMNS, strict=False),
    "arrow table": arrow,
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    model = DPGradientClassifier(Domain(classes=["no", "yes"]))
    table = DPTablePreparer({**ROLES, "label": "drop"})
    return DPPipeline([("table", table), ("model", model)], epsilon=50.0).fit(
        COLUMNS, COLUMNS["label"]
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_same_rows_are_the_same_in_every_form(fitted, form):
    expected, found = fitted.transform(COLUMNS), fitted.transform(FORMS[form]())
    if (
        form == "pandas csv"
    ):  # pandas has made NaN of the declared "NA", which a reader of ours keeps
        names = fitted.get_feature_names_out().tolist()
        kept = [j for j, name in enumerate(names) if not name.startswith("airbag")]
        expected, found = expected[:, kept], found[:, kept]
    assert (expected != found).nnz == 0
    assert found.dtype == expected.dtype
    if form != "pandas csv":
        np.testing.assert_array_equal(
            fitted.predict_proba(FORMS[form]()), fitted.predict_proba(COLUMNS)
        )


def test_none_is_a_category_like_others(fitted):
    names = fitted.get_feature_names_out().tolist()
    rows = fitted.transform(COLUMNS).toarray()
    column = {name: rows[:, names.index(name)] for name in names if name.startswith("airbag")}
    for name in ("none", "NA", "airbag"):  # "NA" is declared, so it is no missing value
        wanted = [cell.strip() == name for cell in COLUMNS["airbag"]]
        np.testing.assert_array_equal(column[f"airbag = {name}"], wanted)
    missing = [cell in MISSING_WORDS - {"NA"} for cell in COLUMNS["airbag"]]
    np.testing.assert_array_equal(column["airbag is missing"], missing)


def test_the_command_line_predicts_what_python_predicts(run):
    Path("facts.yaml").write_text(
        "target: label\nclasses: [no, yes]\ncolumns:\n  age: {bounds: [0, 50]}\n"
        "  airbag: {categories: [airbag, none, NA]}\n  code: category\n  word: hash\n  story: text\n"
    )
    code, _, err = run(
        "fit", file_of("csv"), *["--domain", "facts.yaml", "--epsilon", "50", "-o", "m.json"]
    )
    assert code == 0, err
    printed = {run("predict", "m.json", file_of(k))[1] for k in ("csv", "tsv", "jsonl", "parquet")}
    assert len(printed) == 1
    assert (
        printed.pop().split()[1:] == models.load("m.json").predict(pd.DataFrame(COLUMNS)).tolist()
    )


@pytest.mark.parametrize(
    "cell",
    [None, "", "  ", "NA", " NA ", "NaN", "nan", "null", "NULL", math.nan, np.float32("nan"), pd.NA, pd.NaT,
     np.datetime64("NaT", "s"), np.ma.masked],
)  # fmt: skip
def test_what_is_missing(cell):
    assert is_missing(cell)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy's, of what is masked, would tell of one row
        assert np.isnan([numbers(objects_of([cell])), to_numbers(objects_of([cell]))]).all()
    assert texts(objects_of(["a", cell])) == ["a", None]
    assert documents([cell, "a b"]).columns[0].tolist() == ["", "a b"]


@pytest.mark.parametrize(
    "cell", ["none", "None", "?", "n/a", "#N/A", "Na", "NAN", "-", 0, False, "0", [], [None]]
)
def test_what_is_not(cell):
    assert not is_missing(cell)


ENDS = pd.Series(np.array(["2020-01-01", "9999-12-31T23:59:59"], "M8[us]")).dt.tz_localize("UTC")
TIMES = pa.array([1000, 1], pa.time64("ns"))
OF_ARROW = pd.Series(TIMES, dtype=pd.ArrowDtype(TIMES.type))
FAR = pa.array([0, 2**62], pa.timestamp("us", "Europe/Berlin")).to_pandas()
FAR_OF_ARROW = pd.Series(pa.array(FAR), dtype=pd.ArrowDtype(pa.array(FAR).type))


@pytest.mark.parametrize(
    "column",
    [
        ENDS.dt.tz_convert("Europe/Berlin"),
        TIMES,
        pa.chunked_array([TIMES]),
        OF_ARROW,
        FAR,
        FAR_OF_ARROW,
    ],
    ids=["zone", "array", "chunks", "pandas", "far", "far of Arrow"],
)
def test_a_time_that_python_cannot_hold_is_shortened_or_missing(column):
    """One such cell refused the table."""
    first, second = array_of(column).tolist()
    assert [first] == array_of(column[:1]).tolist()
    assert second in (None, time())
    table = {"c": column, "z": [1.0, 2.0]}
    assert DPTablePreparer({"c": "hash", "z": (0, 9)}).fit(table).transform(table).shape[0] == 2


def test_categories_that_are_learnt_know_the_same_words():
    cells = ["none"] * 300 + ["NA"] * 300 + ["x"] * 300
    step = DPCategoryEncoder(epsilon=20.0).fit({"c": cells})
    assert step.categories_ == (("none", "x"),)
    step = PublicEncoder({"c": ["NA", "x"]}).fit({"c": cells})
    assert step.transform({"c": ["NA", "nan", "y"]}).toarray().argmax(axis=1).tolist() == [0, 3, 2]


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet"])
def test_a_table_of_numbers_has_nan_for_missing_cells(kind):
    X = read_table(file_of(kind), features=["age", "code"]).X.toarray()
    expected = np.array([[row["age"], row["code"]] for row in ROWS], float)
    np.testing.assert_array_equal(X, expected)


def test_a_number_is_the_same_name_however_it_is_written():
    """NumPy writes numbers as texts where an array holds one text: 1.0 beside "x" must stay the category 1."""
    for cells in (
        [1, 1.0, "1", "1.0", " 1.0"],
        np.array([1.0, 1.0, "x"])[:2],
        np.array([1, 1, "x"])[:2],
    ):
        assert set(texts(objects_of(cells))) == {"1"}
    assert texts(np.array([1e16, 0.5, 1e-9, "x"])) == texts(objects_of([1e16, 0.5, 1e-9, "x"]))
    assert texts(objects_of(["01", "1e5", "007", "1.50"])) == ["01", "1e5", "007", "1.50"]


# ---- persons ------------------------------------------------------------------------------------


def persons_of(groups):
    order, starts = by_person(groups, len(groups))
    return [sorted(order[a:b].tolist()) for a, b in pairwise(starts)]


@pytest.mark.parametrize("make", [list, np.array, lambda cells: np.array(cells, object), pd.Series])
@pytest.mark.parametrize("cells", [[1, 2, 1], [1.0, 2.0, 1.0], ["1", "2", "1"], [1, 2.0, "1 "]])
def test_one_more_person_of_another_kind_changes_no_other(make, cells):
    alone, more = persons_of(make(cells)), persons_of(make([*cells, "x7"]))
    assert sorted(alone) == [[0, 2], [1]]
    assert sorted(more) == [[0, 2], [1], [3]]


@pytest.mark.parametrize("word", [*sorted(MISSING_WORDS), "none", "None", "N/A", "?", " na "])
@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_no_person_is_called_by_a_word_for_nothing(make, word):
    with pytest.raises(SchemaError, match="names are missing"):
        by_person(make(["a", word, "b"]), 3)

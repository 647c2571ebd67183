"""The type of a target follows from what is declared, never from what its cells happen to be.

Every table here is read twice: as it is, and with one more row whose label is declared. Neither the exit code, nor the
type of a label, nor the class of any other row may change.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from dpsparse import (
    Domain,
    DPFeatureTest,
    DPGradientClassifier,
    DPGradientRegressor,
    DPPipeline,
    DPSearchCV,
    Rows,
    dp_evaluate,
    dp_inference,
)
from dpsparse.exceptions import SchemaError
from dpsparse.models import files as models
from dpsparse.preprocessing import PublicScaler

N = 60
# declared labels -> what cells of the table hold, and the label that only one more row has
DECLARED = {
    "1,2,unknown": (["1", "2"], "unknown"),
    "inf,1,x": (["inf", "1"], "x"),
    "1e5,1,E11": (["1e5", "1"], "E11"),
    "nan,1,x": (["nan", "1"], "x"),
    "1,2,none": (["1", "2"], "none"),
    "EU,NA": (["EU", "EU"], "NA"),
    "a,b,?": (["a", "b"], "?"),
    "null,b": (["b", "b"], "null"),
    "0,0.5": (["0", "0"], "0.5"),
}
FIT = "--epsilon 50 --target label"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def rows_of(cells, more):
    labels = [cells[i % 2] for i in range(N)] + ([more] if more is not None else [])
    return [(0.25 * (i % 5), float(i % 3), label) for i, label in enumerate(labels)]


def write_csv(rows, path, separator=","):
    lines = [separator.join(["age", "visits", "label"])]
    lines += [separator.join(map(str, row)) for row in rows]
    Path(path).write_text("\n".join(lines) + "\n")


def as_json(label):
    """Numbers as numbers where JSON has them."""
    try:
        number = float(label)
    except ValueError:
        return label
    return number if np.isfinite(number) else label


def write(rows, kind):
    path = f"table.{kind}"
    if kind in ("csv", "tsv"):
        write_csv(rows, path, "\t" if kind == "tsv" else ",")
    elif kind == "jsonl":
        lines = (json.dumps({"age": a, "visits": v, "label": as_json(y)}) for a, v, y in rows)
        Path(path).write_text("\n".join(lines) + "\n")
    else:
        columns = dict(
            zip(("age", "visits", "label"), map(list, zip(*rows, strict=True)), strict=True)
        )
        pq.write_table(pa.table(columns), path)
    return path


def facts_of(classes):
    Path("facts.yaml").write_text(
        "target: label\nclasses: [" + classes.replace("?", "'?'").replace("null", "'null'") + "]\n"
        "columns:\n  age: {bounds: [0, 2]}\n  visits: {bounds: [0, 2]}\n"
    )
    return "facts.yaml"


COMMANDS = {
    "plain": "fit {data} {facts} --classes {classes} -o m.json",
    "several": "fit {data} {data} {facts} --classes {classes} -o m.json",
    "prepared": "fit {data} {facts} --classes {classes} --bounds age=0..2 --bounds visits=0..2 -o m.json",
    "private": "fit {data} {facts} --classes {classes} --prepare private -o m.json",
    "yaml": "fit {data} --domain facts.yaml -o m.json",
    "tune": "tune {data} {facts} --classes {classes} --candidates n_nonzero=[1,2] -o m.json",
}


def outcome(run, command, data, classes):
    Path("m.json").unlink(missing_ok=True)
    facts_of(classes)
    words = command.format(data=data, facts=FIT, classes=classes).split()
    code, _, err = run(*words)
    assert code == 0, err
    return models.load("m.json").classes_


CASES = [
    *((command, "csv", classes) for command in COMMANDS for classes in DECLARED),
    *((command, kind, classes) for command, kind in [
        ("plain", "tsv"), ("plain", "jsonl"), ("plain", "parquet"), ("prepared", "jsonl"), ("prepared", "parquet"),
        ("several", "parquet"), ("yaml", "jsonl"),
    ] for classes in ("1,2,unknown", "1e5,1,E11", "EU,NA")),
]  # fmt: skip


def is_quick(number):
    """One combination of three, and all of the plain command: every label, every command and every kind is there."""
    return number < len(DECLARED) or number % 3 == number // 9 % 3


@pytest.mark.parametrize(
    ("command", "kind", "classes"),
    [
        pytest.param(*case, marks=() if is_quick(number) else pytest.mark.heavy)
        for number, case in enumerate(CASES)
    ],
)
def test_one_more_declared_label_changes_nothing(run, command, kind, classes):
    cells, more = DECLARED[classes]
    found = [
        outcome(run, COMMANDS[command], write(rows_of(cells, label), kind), classes)
        for label in (None, more)
    ]
    assert found[0].dtype == found[1].dtype
    assert found[0].tolist() == found[1].tolist()


PREPARED = ("--bounds", "age=0..2", "--bounds", "visits=0..2")


@pytest.mark.parametrize(
    ("classes", "kind", "prepared"),
    [
        ("1,2,unknown", "csv", ()), ("1,2,unknown", "jsonl", PREPARED), ("1,2,unknown", "parquet", ()),
        ("1e5,1,E11", "csv", PREPARED), ("1e5,1,E11", "jsonl", ()), ("1e5,1,E11", "parquet", PREPARED),
        ("a,b,?", "csv", ()), ("a,b,?", "jsonl", PREPARED), ("a,b,?", "parquet", ()),
        ("0,0.5", "csv", PREPARED), ("0,0.5", "jsonl", ()), ("0,0.5", "parquet", PREPARED),
    ],
)  # fmt: skip
def test_evaluation_takes_every_declared_label(run, classes, kind, prepared):
    cells, more = DECLARED[classes]
    data = write(rows_of(cells, None), kind)
    code, _, err = run("fit", data, *FIT.split(), "--classes", classes, *prepared, "-o", "m.json")
    assert code == 0, err
    for label in (None, more):
        data = write(rows_of(cells, label), kind)
        code, out, err = run("evaluate", "m.json", data, "--target", "label", "--epsilon", "1")
        assert code == 0, err
        assert "accuracy" in out


@pytest.mark.parametrize("more", [None, "3"])
def test_labels_of_svmlight_files_are_declared_too(run, more):
    lines = [f"{1 + i % 2} 1:0.5 2:{i % 3}" for i in range(N)] + ([f"{more} 1:1"] if more else [])
    Path("rows.svm").write_text("\n".join(lines) + "\n")
    words = "fit rows.svm --n-features 2 --classes 1,2,3,other --n-samples 60 -o m.json"
    code, _, err = run(*words.split())
    assert code == 0, err
    assert models.load("m.json").classes_.tolist() == ["1", "2", "3", "other"]


# ---- Python -------------------------------------------------------------------------------------

LABELS = ["1", "2", "unknown"]
LABEL_FORMS = {  # cells, and one more
    "list of numbers": ([1, 2], "unknown", list),
    "list of floats": ([1.0, 2.0], "unknown", list),
    "list of texts": (["1", "2"], "unknown", list),
    "objects": ([1, 2.0], "unknown", lambda cells: np.array(cells, object)),
    "array": ([1, 2], "unknown", np.array),
    "array of floats": ([1.0, 2.0], "unknown", np.array),
    "truth values": ([True, True], 2, np.array),
    "series": ([1, 2], "unknown", pd.Series),
    "nullable series": ([1, 2], "unknown", lambda cells: pd.Series(cells).convert_dtypes()),
    "categories": ([1, 2], "unknown", lambda cells: pd.Series(pd.Categorical(cells))),
    "polars": (["1", "2"], "unknown", pl.Series),
    "polars numbers": ([1, 2], 1, pl.Series),
    "arrow": (["1", "2"], "unknown", pa.array),
    "column vector": (["1", "2"], "unknown", lambda cells: np.array(cells)[:, None].ravel()),
}


def table(n):
    rng = np.random.default_rng(0)
    return rng.random((n, 2))


@pytest.mark.parametrize("form", LABEL_FORMS)
@pytest.mark.parametrize("more", [False, True])
def test_python_takes_every_form_of_declared_labels(form, more):
    cells, other, make = LABEL_FORMS[form]
    y = make([cells[i % 2] for i in range(N)] + [other] * more)
    X = table(len(y))
    domain = Domain(classes=LABELS, row_norm=1.0)
    codes = [LABELS.index(str(int(cells[i % 2]))) for i in range(N)]
    part = domain.part(X, y, labels=domain.class_labels())
    assert part.targets.tolist()[:N] == codes
    assert part.targets.dtype == np.int32
    estimator = DPGradientClassifier(domain)
    model = estimator.fit(X, y)
    assert model.classes_.tolist() == LABELS
    assert 0.0 <= model.score(X, y) <= 1.0
    assert "accuracy" in dp_evaluate(model, X, y, epsilon=1.0).estimates
    DPPipeline([("scale", PublicScaler((0, 1))), ("model", estimator)]).fit(X, y)
    DPSearchCV(estimator, [{"n_nonzero": 1}, {"n_nonzero": 2}], epsilon=1.0).fit(X, y)
    estimator.fit(Rows.from_csr(sp.csr_array(X), y))


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("make", [list, lambda cells: np.array(cells, object), np.array, pd.Series])
def test_inference_takes_them_too(make, more):
    y = make([1] * N + ["unknown"] * more)
    domain = Domain(classes=["1", "unknown"], row_norm=1.0, n_samples=N)
    dp_inference(table(len(y)), y, [0, 1], domain, epsilon=50.0)
    DPFeatureTest(domain, epsilon=1.0).fit(table(len(y)), y)


@pytest.mark.parametrize("classes", [[0, 1], [False, True], [0.0, 1.0]])
@pytest.mark.parametrize("cells", [[0, 1], [0.0, 1.0], ["0", "1"], [" 0", "1.0 "], [False, True]])
@pytest.mark.parametrize("make", [list, np.array, pd.Series])
def test_labels_that_are_numbers_are_compared_as_numbers(classes, cells, make):
    domain = Domain(classes=classes)
    part = domain.part(np.eye(2), make(cells), labels=domain.class_labels())
    assert part.targets.tolist() == [0, 1]


@pytest.mark.parametrize("make", [list, lambda cells: np.array(cells, object), np.array, pd.Series])
@pytest.mark.parametrize("more", [None, "0.5"])
def test_targets_that_are_numbers_are_read_cell_by_cell(make, more):
    cells = [float(i % 3) for i in range(N)] + ([more] if more else [])
    y = make(cells)
    model = DPGradientRegressor(Domain(target_range=(0, 2))).fit(table(len(y)), y)
    assert np.isfinite(model.score(table(len(y)), np.asarray(cells, float)))


@pytest.mark.parametrize(
    "cell", [None, "NA", "", float("nan"), pd.NA, pd.NaT, 3, "3", b"1", 10**400, [1], 1j]
)
@pytest.mark.parametrize("domain", [Domain(classes=LABELS), Domain(classes=[1, 2])])
def test_what_is_not_declared_is_refused_whatever_the_rest_is(cell, domain):
    for rest in ([1, 2], ["1", "2"], [1, "2"]):
        y = [rest[i % 2] for i in range(N)] + [cell]
        with pytest.raises(SchemaError) as refusal:
            DPGradientClassifier(domain).fit(table(len(y)), y)
        assert "3" not in str(refusal.value)


def test_labels_that_read_as_the_same_number_are_told_apart_as_texts():
    domain = Domain(classes=["01", "1", "x"])
    labels = domain.class_labels()
    for cells in (["01", "1"], np.array(["01", "1"]), pd.Series(["01 ", " 1"])):
        assert domain.part(np.eye(2), cells, labels=labels).targets.tolist() == [0, 1]
    for cells in ([1, 1.0], np.array([1.0, 1.0]), np.array([1.0, 1.0]).astype(str)):
        assert domain.part(np.eye(2), cells, labels=labels).targets.tolist() == [1, 1]


@pytest.mark.parametrize("cell", [10.0**16, 10**16, "10000000000000000", np.float64(10.0**16)])
def test_a_long_whole_number_is_its_label_in_any_type(cell):
    """Excel keeps it as a float; a row with it decided whether the file was accepted."""
    domain = Domain(classes=["-1", "10000000000000000", "inf"])
    X = np.zeros((4, 1))
    for first in ("-1", -1.0, "inf", float("inf")):
        y = np.array([first, cell, cell, cell], object)
        model = DPGradientClassifier(domain, epsilon=np.inf, n_iter=1).fit(X, y)
        assert model.predict(X).tolist() == ["10000000000000000"] * 4


@pytest.mark.parametrize("form", [pd.Series, lambda cells: np.array(cells, object), list])
def test_a_truth_value_of_numpy_is_one_beside_other_cells(form):
    """A column of them is read as numbers; among numbers pandas keeps them as they are."""
    cells = form([0.5, 0.0, np.True_, np.False_])
    assert Domain().part(np.eye(4), cells).targets.tolist() == [0.5, 0.0, 1.0, 0.0]
    labels = np.array([0, 1, 0.5])
    part = Domain(weight_bound=1.0).part(
        np.eye(4), cells, labels=labels, weights=cells, groups=form([0, 1, np.True_, np.False_])
    )
    assert sorted(part.targets.tolist()) == [0, 0, 1, 2]

"""One more row that obeys the declared schema changes no exit code, no message, no warning, no type, no file layout.

Every random table is fitted, evaluated and predicted twice, without and with one more row. Released numbers may differ
and are masked. What is a map of single rows (predictions, prepared rows, class codes) must be equal bit for bit.
"""

import csv
import io
import itertools
import json
import math
import os
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from random_tables import (
    LAYOUTS,
    arrow_table,
    facts_text,
    make_case,
    natural,
    pick,
    write_table,
)

from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
    DPPipeline,
    DPTablePreparer,
    dp_evaluate,
)
from in_process import run_command

FORMATS = [*LAYOUTS, "csv", "jsonl", "json", "xlsx", "parquet"]
# Parts of a file that are there or not by what was released: warnings about drowned or clipped columns, the noise of
# weights where a fit came to weights at all, and columns of values whose count must stand out of its noise.
RELEASED = ("checksum", "weak_", "noise")
COUNTED_COLUMNS = (" is other", " is missing")
EPSILONS = [
    math.inf,
    math.inf,
    50.0,
]  # without noise most of the time: prices take longer than fits
NUMBER = re.compile(r"[-+]?(\b\d[\d.,]*(e[-+]?\d+)?|\b(inf|nan)\b)")
# Warnings that rest on a count of fits of this process, or on a released count of clipped numbers.
COUNTED = re.compile(r"(This process has made|Many numbers lie outside) [^\n]*")

# What a summary says behind "0 non-zero weights", a released number.
NO_WEIGHTS = ": every row gets the same answer"


def masked(text):
    return " ".join(NUMBER.sub("#", text.replace(NO_WEIGHTS, "")).split())


def layout(value):
    """Names and types of a file, without the released numbers and how many of them there are."""
    if isinstance(value, dict):
        kept = {name: part for name, part in value.items() if name not in RELEASED}
        return {name: layout(part) for name, part in kept.items()}
    if isinstance(value, list):
        if all(isinstance(part, (int, float)) for part in value):
            return []
        kept = [p for p in value if not (isinstance(p, str) and p.endswith(COUNTED_COLUMNS))]
        return sorted({json.dumps(layout(part), sort_keys=True) for part in kept} - {'"#"'})
    return masked(value) if isinstance(value, str) else "#"


def first_difference(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        pairs = [(f"{path}/{name}", a[name], b[name]) for name in a]
    elif isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        pairs = [(f"{path}/{j}", x, y) for j, (x, y) in enumerate(zip(a, b, strict=True))]
    else:
        return f"{path}: {a} != {b}"[:1000]
    return next(first_difference(x, y, where) for where, x, y in pairs if x != y)


def seen(arguments, output=None):
    """Everything that a command shows, released numbers masked."""
    code, out, err = run_command(*arguments)
    shown = layout(json.loads(out)) if out.startswith("{") else masked(out)
    files = sorted(p.name for p in Path().iterdir())
    written = None
    if output is not None and Path(output).exists():
        written = layout(json.loads(Path(output).read_text()))
    for made in Path().glob("m.*"):
        made.unlink()
    return (
        code,
        shown,
        masked(COUNTED.sub("", err).replace("dpsparse: warning: \n", "")),
        written,
        files,
    )


def cli_differences(case, rng):
    """What one more row changes on the command line, as a list of texts."""
    kind = pick(rng, FORMATS)
    data, facts = f"x.{kind}", "facts.json"
    how = LAYOUTS[kind][2] if kind in LAYOUTS else []
    missing = ["--missing-values", "zzz,-1,other"] if rng.random() < 0.3 else []
    dropping = ["--drop-missing-target"] if rng.random() < 0.3 else []
    if dropping:  # then a row without a target obeys the schema as well
        case = replace(case, more_target=pick(rng, ["", "NA", case.more_target]))
    Path(facts).write_text(facts_text(case))
    found = []

    def compare(name, arguments, output=None):
        both = []
        for more in (False, True):
            write_table(case, more, kind, data)
            both.append(seen(arguments, output))
        if both[0] != both[1]:
            found.append(f"{case.seed} {name} {kind}: {first_difference(*both)}")
        return both[0][0]

    epsilon = pick(rng, EPSILONS)
    terms = ["--epsilon", str(epsilon), *(["--json"] if rng.random() < 0.5 else [])]
    target = ["--target", "label"]
    public = [*target, *_classes(case)]
    fits = {
        "prepared": [
            "fit",
            data,
            "--domain",
            facts,
            *terms,
            *how,
            *missing,
            *dropping,
            "-o",
            "m.json",
        ]
    }
    person = ["--person", "who", "--rows-per-unit", "1"] if case.persons is not None else []
    if case.numeric:
        fits["plain"] = ["fit", data, *public, *person, *terms, *how, *dropping, "-o", "m.json"]
        if not person and not dropping:
            fits["stream"] = ["fit", data, data, *public, *terms, *how, "-o", "m.json"]
    name = pick(rng, list(fits))
    code = compare(name, fits[name], "m.json")
    if case.seed % 4 == 0:
        compare("check", ["check", data, "--domain", facts, *how, *missing])
        compare(
            "init",
            ["domain", "init", data, *target, *how[: 2 if "--decimal" in how else 4], "-o", "f.yaml", "--no-ask",
             "--overwrite"],
        )  # fmt: skip
    if code == 0:
        write_table(case, False, kind, data)
        assert run_command(*fits[name])[0] == 0
        model = str(next(Path().glob("m.*")))
        os.rename(model, model.replace("m.", "model."))
        model = model.replace("m.", "model.")
        wanted = [
            "evaluate",
            model,
            data,
            *target,
            "--epsilon",
            str(epsilon),
            "--json",
            *person[:2],
            *how,
            *dropping,
        ]
        compare("evaluate", wanted)
        found += _predictions(case, kind, data, model, how)
        os.remove(model)
    return found, code


def _classes(case):
    if case.classes is None:
        return ["--target-range", "-5..10"]
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(case.classes)
    return ["--classes", text.getvalue()]


def _predictions(case, kind, data, model, how):
    """Predictions of the other rows, bit for bit."""
    said = []
    for more in (False, True):
        write_table(case, more, kind, data)
        said.append(
            run_command(*["predict", model, data, *how, *(["--proba"] if case.classes else [])])
        )
    (code, out, err), (code_more, out_more, err_more) = said
    n = len(out.splitlines())
    same = code == code_more and err == err_more and out_more.splitlines()[:n] == out.splitlines()
    return [] if same else [f"{case.seed} predict {kind}: {said}"[:1500]]


# ---- Python -------------------------------------------------------------------------------------


def domain_of(case):
    facts = {} if case.persons is None else {"unit": "person", "rows_per_unit": 1}
    if case.classes is None:
        return Domain(target_range=(-5.0, 10.0), **facts)
    return Domain(classes=list(case.classes), **facts)


def forms_of_y(cells):
    kept = [natural(cell, feature=False) for cell in cells]
    return {
        "list": kept,
        "texts": np.array(cells),
        "objects": np.array(kept, object),
        "series": pd.Series(cells),
        "column": np.array(cells)[:, None],
    }


def forms_of_table(case, more):
    table = {name: cells for name, cells in case.rows(more).items() if name not in ("label", "who")}
    python = {name: [natural(cell) for cell in cells] for name, cells in table.items()}
    return {
        "dict": python,
        "texts": table,
        "frame of objects": pd.DataFrame(python, dtype=object),
        "frame of texts": pd.DataFrame(table),
        "arrow": arrow_table(case, more).drop_columns(
            ["label", *(["who"] if case.persons else [])]
        ),
    }


def forms_of_numbers(case, more):
    table = {name: cells for name, cells in case.rows(more).items() if name not in ("label", "who")}
    rows = [[natural(cell.strip()) for cell in row] for row in zip(*table.values(), strict=True)]
    array = np.array([[float(cell) for cell in row] for row in rows])
    return {
        "rows": rows,
        "objects": np.array(rows, object),
        "array": array,
        "sparse": sp.csr_array(array),
        "frame": pd.DataFrame(rows),
    }


def outcome(call):
    """Result or refusal, with the warnings, numbers masked."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result, said = call(), None
        except Exception as error:
            result, said = None, (type(error).__name__, masked(str(error)))
    texts = {(w.category.__name__, masked(COUNTED.sub("", str(w.message)))) for w in caught}
    return result, (said, sorted(text for text in texts if text[1]))


def facts_of_model(model):
    inner = getattr(model, "model_", model)
    return {
        "coef": inner.coef_.dtype.str,
        "classes": str(getattr(model, "classes_", None)),
        "kind": getattr(getattr(model, "classes_", None), "dtype", None),
        # Behind a preparation it rests on released counts of values.
        "width": None if hasattr(model, "model_") else inner.n_features_in_,
        "names": tuple(getattr(model, "feature_names_in_", ())),
    }


def python_differences(case, rng):
    found = []
    domain = domain_of(case)
    kind = DPGradientRegressor if case.classes is None else DPGradientClassifier
    roles = {c.name: (list(c.fact) if c.kind == "categories" else c.fact if c.kind == "bounds" else c.kind)
             for c in case.columns}  # fmt: skip
    numeric, epsilon = case.numeric and rng.random() < 0.5, pick(rng, EPSILONS)
    forms = forms_of_numbers if numeric else forms_of_table
    form = pick(rng, list(forms(case, False)))
    y_form = pick(rng, ["list", "texts", "objects", "series", "column"])
    results = []
    for more in (False, True):
        X = forms(case, more)[form]
        table = case.rows(more)
        y = forms_of_y(table["label"])[y_form]
        groups = None
        if case.persons is not None:
            groups = forms_of_y(table["who"])["list" if y_form == "column" else y_form]
        model = kind(domain, epsilon=epsilon)
        if not numeric:
            model = DPPipeline(
                [("table", DPTablePreparer(roles)), ("model", model)], epsilon=epsilon
            )
        fitted, shown = outcome(lambda m=model, X=X, y=y, g=groups: m.fit(X, y, groups=g))
        results.append((fitted, shown, X, y, groups))
    (first, shown, X, y, groups), (second, shown_more, X_more, y_more, groups_more) = results
    where = f"{case.seed} python {form} {y_form}"
    if shown != shown_more:
        return [f"{where}: {shown} != {shown_more}"], shown[0] is None
    if first is None:
        return [], False
    if facts_of_model(first) != facts_of_model(second):
        found.append(f"{where}: {facts_of_model(first)} != {facts_of_model(second)}")
    n = len(case.targets)
    labels = None if case.classes is None else domain.class_labels()
    blank = sp.csr_array((n + 1, 1))
    codes = [domain.part(blank[: len(c)], c, labels=labels).targets for c in (y, y_more)]
    if codes[0].dtype != codes[1].dtype or not np.array_equal(codes[0], codes[1][:n]):
        found.append(f"{where}: targets of other rows changed")
    if not numeric:
        rows, rows_more = first.transform(X), first.transform(X_more)
        if rows.dtype != rows_more.dtype or (rows != rows_more[:n]).nnz:
            found.append(f"{where}: prepared rows changed")
    else:
        parts = [domain.part(X, None).table() for X in (X, X_more)]
        if parts[0].dtype != parts[1].dtype or (parts[0] != parts[1][:n]).nnz:
            found.append(f"{where}: clipped rows changed")
    reports = [
        outcome(lambda X=X, y=y, g=g: dp_evaluate(first, X, y, epsilon=epsilon, groups=g))
        for X, y, g in ((X, y, groups), (X_more, y_more, groups_more))
    ]
    if reports[0][1] != reports[1][1]:
        found.append(f"{where} evaluation: {reports[0][1]} != {reports[1][1]}")
    elif reports[0][0] is not None:
        shapes = [layout(json.loads(json.dumps(r.to_dict(), default=str))) for r, _ in reports]
        if shapes[0] != shapes[1]:
            found.append(f"{where} evaluation: layout changed")
    scores = [outcome(lambda X=X, y=y: first.score(X, y))[1] for X, y in ((X, y), (X_more, y_more))]
    if scores[0] != scores[1]:
        found.append(f"{where} score: {scores}")
    return found, True


def differences(seeds):
    """All differences of these random tables, and how many of the tables were accepted by command line and Python."""
    found, accepted = [], [0, 0]
    for seed in seeds:
        case = make_case(seed)
        rng = np.random.default_rng([seed, 1])
        some, code = cli_differences(case, rng)
        more, fitted = python_differences(case, rng)
        found += some + more
        accepted[0] += code == 0
        accepted[1] += fitted
    return found, accepted


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.heavy) for first in range(5, 30, 5))]
)
def test_one_more_row_of_the_schema_changes_nothing(first):
    found, accepted = differences(range(first, first + 5))
    assert found == []
    assert min(accepted) > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 100))
def test_one_more_row_of_the_schema_changes_nothing_in_two_thousand_tables(first):
    found, accepted = differences(range(first, first + 100))
    assert found == []
    assert min(accepted) > 50, accepted


def test_the_comparison_sees_what_differs():
    """A reader that lets cells decide would be found: numbers are masked, words and types are not."""
    assert masked("3 of 40 rows, 1e-6") == masked("4 of 41 rows, 2e-7")
    assert masked("labels are text") != masked("labels are numbers")
    assert layout({"a": [1, 2]}) == layout({"a": [3]})
    assert layout({"a": ["x"]}) != layout({"a": [1]})
    assert first_difference((0, {"a": 1, "b": 2}), (0, {"a": 1, "b": 3})) == "/1/b: 2 != 3"
    assert len({make_case(seed).classes for seed in range(200)}) > 50
    assert (
        len(list(itertools.islice(filter(None, (make_case(s).persons for s in range(100))), 10)))
        == 10
    )

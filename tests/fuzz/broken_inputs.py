"""Inputs that must be refused, with private-looking content in every cell.

Every cell holds a marker: a text, a number of many digits, or (for the number of rows) a count.
`TABLES`, `LINES` and `COLUMNS` are kinds of broken files, crossed with commands by `cli_cases`;
`FEATURES` and `TARGETS` are kinds of broken arrays, for the Python tests. Add a kind in one place
and every command or estimator meets it.
"""

import bz2
import datetime
import decimal
import gzip
import io
import json
import lzma
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

N = 613  # rows of every table: a number that nothing else prints
TEXT, NUMBER = "zq7-SECRET", "7316180339887"
MARKERS = ("zq7", "SECRET", "7316180", str(N))


@dataclass(frozen=True)
class Case:
    """One command line, the files it finds, and the exit code it must give."""

    name: str
    arguments: tuple[str, ...]
    code: int
    files: dict[str, bytes]


# ---- CSV ----------------------------------------------------------------------------------------


def table(row, header="age,visits,label", newline="\n", last=None):
    lines = [header] if header is not None else []
    lines += [row(i) for i in range(N)]
    if last is not None:
        lines[-1] = last
    return (newline.join(lines) + newline).encode()


def good(i):
    return f"0.5,{i % 3},{'no' if i % 2 else 'yes'}"


def secret(i, label="no"):
    return f"{TEXT}-{i},{NUMBER}{i},{label}"


HEADED = table(secret)
TABLES = {  # kinds of tables whose features or form cannot be read: refused by every command
    "text features": HEADED,
    "one text cell": table(good, last=f"{TEXT},1,no"),
    "no header": table(secret, header=None),
    "no header, numbers": table(lambda i: f"{NUMBER},{i},{NUMBER}", header=None),
    "no header, mixed": table(lambda i: f"{NUMBER},{TEXT},1", header=None),
    "one row, no header": f"{TEXT},{NUMBER},{TEXT}\n".encode(),
    "other header": table(secret, header=f"{TEXT}-a,{TEXT}-b,{TEXT}-c"),
    "two equal names": table(good, header="age,age,label"),
    "row too long": table(good, last=f"0.5,1,no,{TEXT}"),
    "row too short": table(good, last=f"{NUMBER},{TEXT}"),
    "open quote": table(good, last=f'"{TEXT},1,no'),
    "quote inside": table(good, last=f'"{TEXT}"x,1,no'),
    "semicolons": table(lambda i: f"{TEXT};{NUMBER};no", header="age;visits;label"),
    "tabs": table(lambda i: f"{TEXT}\t{NUMBER}\tno"),
    "nul bytes": table(good, last=f"{TEXT}\0,1,no"),
    "latin-1": table(good) + f"{TEXT}".encode() + b"\xff\xfe,1,no\n",
    "utf-16": table(secret).decode().encode("utf-16"),
    "huge cell": table(good, last=f"{TEXT * 20_000},1,no"),
    "infinite": table(good, last=f"{NUMBER}e999,1,no"),
    "nan": table(good, last=f"nan,{NUMBER},no"),
    "empty cell": table(good, last=f",{NUMBER},no"),
    "date": table(good, last=f"2026-01-01 {TEXT},1,no"),
    "complex": table(good, last=f"{NUMBER}+2j,1,no"),
    "hexadecimal": table(good, last=f"0x{NUMBER},1,no"),
    "thousands": table(good, last=f'"{NUMBER},000",1,no'),
    "line break in cell": table(good, last=f'"{TEXT}\n{TEXT}",1,no'),
    "only carriage returns": table(secret, newline="\r"),
    "header only": f"age,visits,label,{TEXT}\n".encode(),
    "blank lines": b"\n" * N,
    "binary": bytes(range(256)) * 8 + TEXT.encode(),
}
LABELS = {  # tables whose target alone is wrong: refused by `fit` only
    "unlisted label": table(lambda i: f"0.5,1,{TEXT}"),
    "one unlisted label": table(good, last=f"0.5,1,{TEXT}"),
    "number as label": table(lambda i: f"0.5,1,{NUMBER}"),
    "mixed labels": table(lambda i: f"0.5,1,{NUMBER if i % 2 else TEXT}"),
    "empty label": table(good, last="0.5,1,"),
}
NUMBERS = {  # targets that are no numbers, for a regressor
    "text target": table(lambda i: f"0.5,1,{TEXT}"),
    "one text target": table(lambda i: f"0.5,1,{NUMBER if i else TEXT}"),
    "nan target": table(lambda i: f"0.5,1,{NUMBER if i else 'nan'}"),
    "infinite target": table(lambda i: f"0.5,1,{NUMBER if i else '-inf'}"),
    "date target": table(lambda i: f"0.5,1,2026-01-01 {TEXT}"),
}


# ---- svmlight -----------------------------------------------------------------------------------


def lines(last, row="1 1:0.5 2:1"):
    return ("\n".join([row] * (N - 1) + [last]) + "\n").encode()


LINES = {
    "text label": lines(f"{TEXT} 1:0.5"),
    "text value": lines(f"1 1:{TEXT}"),
    "text index": lines(f"1 {TEXT}:0.5"),
    "no colon": lines(f"1 {NUMBER}"),
    "two colons": lines(f"1 1:{NUMBER}:2"),
    "index zero": lines(f"1 0:{NUMBER}"),
    "negative index": lines(f"1 -1:{NUMBER}"),
    "index too large": lines(f"1 {NUMBER}:0.5"),
    "index of many digits": lines(f"1 {NUMBER * 9}:0.5"),
    "falling indices": lines(f"1 2:{NUMBER} 1:{NUMBER}"),
    "equal indices": lines(f"1 2:{NUMBER} 2:{NUMBER}"),
    "nan": lines(f"1 1:nan 2:{NUMBER}"),
    "infinite": lines(f"1 1:{NUMBER}e999"),
    "half a number": lines(f"1 1:{NUMBER}e"),
    "comma": lines(f"1,1:{NUMBER}"),
    "csv": HEADED,
    "binary": bytes(range(255, -1, -1)) * 8 + TEXT.encode(),
    "empty": b"",
    "comments only": f"# {TEXT}\n".encode() * N,
}


# ---- Parquet ------------------------------------------------------------------------------------


def parquet(age, label=None, **more):
    columns = {"age": age, "visits": pa.array([1.0] * N), "label": label}
    if label is None:
        columns["label"] = pa.array(["no", "yes"] * (N // 2) + ["no"] * (N % 2))
    buffer = io.BytesIO()
    pq.write_table(pa.table({**columns, **more}), buffer)
    return buffer.getvalue()


def repeated(value, kind=None):
    return pa.array([value] * N, type=kind)


WHEN = datetime.datetime(2026, 1, 1)
COLUMNS = {
    "text": parquet(repeated(TEXT)),
    "dictionary": parquet(repeated(TEXT).dictionary_encode()),
    "binary": parquet(repeated(TEXT.encode())),
    "list": parquet(repeated([float(NUMBER)])),
    "struct": parquet(repeated({TEXT: NUMBER})),
    "time": parquet(repeated(WHEN)),
    "null": parquet(pa.nulls(N)),
    "missing": parquet(pa.array([float(NUMBER)] * (N - 1) + [None])),
    "missing flag": parquet(pa.array([True] * (N - 1) + [None])),
    "nan": parquet(pa.array([float(NUMBER)] * (N - 1) + [np.nan])),
    "infinite": parquet(pa.array([float(NUMBER)] * (N - 1) + [np.inf])),
    "other target": parquet(repeated(1.0)).replace(b"label", b"lable").replace(b"age", b"aeg"),
    "truncated": parquet(repeated(TEXT))[:-20],
    "damaged": parquet(repeated(TEXT))[:200] + b"\0" * 300 + parquet(repeated(TEXT))[500:],
    "csv": HEADED,
}
COLUMN_LABELS = {
    "text": parquet(repeated(0.5), repeated(TEXT)),
    "missing": parquet(repeated(0.5), pa.array([TEXT] * (N - 1) + [None])),
    "list": parquet(repeated(0.5), repeated([TEXT])),
    "struct": parquet(repeated(0.5), repeated({TEXT: NUMBER})),
    "time": parquet(repeated(0.5), repeated(WHEN)),
    "binary": parquet(repeated(0.5), repeated(TEXT.encode())),
}


# ---- other files in the wrong place -------------------------------------------------------------


FORGED_PARTS = {
    "kind": [TEXT],
    "attributes": [{TEXT: NUMBER}, {"classes_": {"type": "array", "dtype": TEXT}}, {"coef_": {TEXT: NUMBER}},
                   {"plan_": [TEXT]}, {"plan_": {"type": "Plan", "fields": {"delta": TEXT}}},
                   {"feature_names_": NUMBER}, {"plan_": {"type": "event", "event": {"name": TEXT}}}],
    "parameters": [{TEXT: TEXT}, {"domain": {"type": TEXT}}],
}  # fmt: skip


def with_part(model, name, forged):
    """The header of a file with other facts in the record of its model."""
    part = {**model["model"][name], **forged} if isinstance(forged, dict) else forged
    return {**model, "model": {**model["model"], name: part}}


def model_files(model_text):
    """Forged and damaged model files; a file of rows that claims to be a model among them."""
    model = json.loads(model_text)
    changes = {
        "schema": TEXT, "guarantee": {TEXT: TEXT}, "model": {TEXT: NUMBER}, "format": TEXT, "checksum": TEXT,
    }  # fmt: skip
    files = {f"forged {key}": {**model, key: value} for key, value in changes.items()}
    files |= {f"no {key}": {k: v for k, v in model.items() if k != key} for key in changes}
    files |= {
        "rows": [{"name": TEXT, "value": NUMBER}] * N, "text": TEXT, "number": int(NUMBER),
        "signed guarantee": {**model, "guarantee": {**model["guarantee"], "adjacency": TEXT}},
        **{
            f"signed {name} {k}": with_part(model, name, forged)
            for name, parts in FORGED_PARTS.items()
            for k, forged in enumerate(parts)
        },
    }  # fmt: skip
    return {
        name: content if "signed" in name else json.dumps(content)
        for name, content in files.items()
    }


def cli_cases(model, sign):
    """Every kind of broken file with every command that reads it.

    `model` is the text of a model fitted on columns age and visits, `sign` puts a right checksum
    on a header.
    """
    facts = ("--row-norm", "1", "--n-samples", "600", "--param", "n_iter=2", "-o", "out.json")
    pay = ("--ledger", "budget.db")
    classify = (*facts, "--classes", "no,yes", *pay)
    regress = (*facts, "--target-range", "-10..10", *pay)
    target = ("--target", "label")
    cases = []

    def add(name, code, arguments, **files):
        files = {key.replace("__", "."): content for key, content in files.items()}
        cases.append(Case(name, tuple(arguments), code, files))

    pay_more = ("--epsilon", "0.5", *pay)
    search = ("--candidates", "n_nonzero=[1,2]", *classify)

    def add_later(name, data, content, *more, model="model.json", told=target):
        """The same file for commands that come after a fit, or choose its settings."""
        add(f"{name}: evaluate", 3, ["evaluate", model, data, *told, *pay_more], **{data: content})
        if more:
            add(f"{name}: tune", 3, ["tune", data, *told, *more], **{data: content})

    for kind, content in (TABLES | LABELS).items():
        add_later(f"csv {kind}", "x.csv", content, *search)
    for kind, content in NUMBERS.items():
        add_later(f"target {kind}", "x.csv", content, model="numbers.json")
    for kind, content in LINES.items():
        numbers = tuple("0,1" if a == "no,yes" else a for a in search)
        add_later(
            f"svmlight {kind}", "x.svm", content, "--n-features", "2", *numbers, model="bare.json", told=()
        )  # fmt: skip
    for kind, content in COLUMNS.items():
        add_later(f"parquet {kind}", "x.parquet", content, *search)
    for kind, content in COLUMN_LABELS.items():
        add_later(f"parquet label {kind}", "x.parquet", content, *search)
    for kind, content in TABLES.items():
        add(f"csv {kind}: fit", 3, ["fit", "x.csv", *target, *classify], x__csv=content)
        add(
            f"csv {kind}: regress", 3, ["fit", "x.csv", *target, *regress, "--json"], x__csv=content
        )
        add(
            f"csv {kind}: predict", 3, ["predict", "model.json", "x.csv", "--proba"], x__csv=content
        )
        add(
            f"csv {kind}: gz",
            3,
            ["fit", "x.csv.gz", *target, *classify],
            x__csv__gz=gzip.compress(content),
        )
    for kind, content in LABELS.items():
        for method in ("gradient", "lasso", "hard-threshold", "two-stage"):
            add(
                f"label {kind}: {method}",
                3,
                ["fit", "x.csv", *target, *classify, "--method", method]
                if method != "two-stage"
                else [
                    "fit",
                    "x.csv",
                    *target,
                    *(w for w in classify if w not in ("--param", "n_iter=2")),
                    "--method",
                    method,
                    "--n-nonzero",
                    "1",
                ],
                x__csv=content,
            )
    for kind, content in NUMBERS.items():
        for method in ("gradient", "lasso", "hard-threshold"):
            add(
                f"target {kind}: {method}",
                3,
                ["fit", "x.csv", *target, *regress, "--method", method],
                x__csv=content,
            )
    for kind, content in LINES.items():
        narrow = ("--n-features", "2")
        numbers = tuple("0,1" if a == "no,yes" else a for a in classify)
        add(f"svmlight {kind}: fit", 3, ["fit", "x.svm", *narrow, *numbers], x__svm=content)
        add(
            f"svmlight {kind}: xz",
            3,
            ["fit", "x.svm.xz", *narrow, *numbers],
            x__svm__xz=lzma.compress(content),
        )
        add(f"svmlight {kind}: predict", 3, ["predict", "bare.json", "x.svm"], x__svm=content)
    for kind, content in COLUMNS.items():
        add(f"parquet {kind}: fit", 3, ["fit", "x.parquet", *target, *classify], x__parquet=content)
        add(
            f"parquet {kind}: predict",
            3,
            ["predict", "model.json", "x.parquet"],
            x__parquet=content,
        )
    for kind, content in COLUMN_LABELS.items():
        add(
            f"parquet label {kind}: fit",
            3,
            ["fit", "x.parquet", *target, *classify],
            x__parquet=content,
        )
        add(
            f"parquet label {kind}: regress",
            3,
            ["fit", "x.parquet", *target, *regress],
            x__parquet=content,
        )
    for name, packed in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)):
        content = packed(HEADED)
        for how, damaged in (
            ("truncated", content[:-9]),
            ("damaged", content[:30] + HEADED),
            ("plain", HEADED),
        ):
            add(
                f"{how} {name}",
                3,
                ["fit", f"x.csv.{name}", *target, *classify],
                **{f"x.csv.{name}": damaged},
            )
    headless, told = {"x.csv": HEADED.split(b"\n", 1)[1]}, (*target, "--classes", "0,1")
    add("no header: plan", 3, ["check", "x.csv", *told], **headless)
    add(
        "no header: plan of preparation",
        3,
        ["check", "x.csv", *told, "--drop", "age", "--prepare", "private"],
        **headless,
    )
    for kind, content in (("table", HEADED), ("rows", LINES["text label"])):
        rows = {"x.csv": content}
        add(f"{kind} as model: inspect", 6, ["inspect", "x.csv"], **rows)
        add(f"{kind} as model: report", 6, ["report", "x.csv", "-o", "card.html"], **rows)
        add(f"{kind} as model: predict", 6, ["predict", "x.csv", "x.csv"], **rows)
        add(f"{kind} as audit", 2, ["audit", "x.csv"], **rows)
        add(f"{kind} as facts", 2, ["check", "--n-features", "3", "--domain", "x.csv"], **rows)
        add(
            f"{kind} as facts: fit",
            2,
            ["fit", "x.csv", *target, *classify, "--domain", "x.csv"],
            **rows,
        )
        for command in ("show", "verify"):
            add(f"{kind} as ledger: {command}", 5, ["budget", command, "x.csv"], **rows)
        add(
            f"{kind} as ledger: fit",
            5,
            ["fit", "x.csv", *target, *facts, "--classes", "no,yes", "--ledger", "x.csv"],
            **rows,
        )
    add("no such target", 3, ["fit", "x.csv", "--target", "lable", *classify], x__csv=HEADED)
    add(
        "no such column to drop",
        3,
        ["fit", "x.csv", *target, "--drop", "aeg", *classify],
        x__csv=HEADED,
    )
    add("no target", 3, ["fit", "x.csv", *classify], x__csv=table(good))
    add("table as svmlight", 3, ["fit", "x.csv", "--format", "svmlight", *classify], x__csv=HEADED)
    add(
        "table as parquet",
        3,
        ["fit", "x.csv", "--format", "parquet", *target, *classify],
        x__csv=HEADED,
    )
    add("width of svmlight", 3, ["predict", "model.json", "x.svm"], x__svm=lines(f"1 3:{NUMBER}"))
    for kind, content in model_files(model).items():
        text = sign(content) if isinstance(content, dict) else content
        add(f"model {kind}: inspect", 6, ["inspect", "x.json"], x__json=text.encode())
        add(
            f"model {kind}: predict",
            6,
            ["predict", "x.json", "x.csv"],
            x__json=text.encode(),
            x__csv=HEADED,
        )
    return cases


# ---- arrays for Python --------------------------------------------------------------------------


def filled(value, kind=object):
    out = np.full((N, 2), 0.5, dtype=object)
    out[:, 0] = float(NUMBER)
    out[-1, 1] = value
    return out if kind is object else out.astype(kind)


def frame(column, name="b"):
    return pd.DataFrame({"a": np.full(N, float(NUMBER)), name: column})


def headless():
    """What pandas makes of a CSV without a header: a person's cells are the column names."""
    return pd.read_csv(io.BytesIO(table(secret, header=None)))


class HostileCell:
    """Shows its content in every message it can."""

    def __float__(self):
        raise ValueError(TEXT)

    def __repr__(self):
        return TEXT


class Hostile(HostileCell):
    def __array__(self, *args, **kwargs):
        raise RuntimeError(TEXT)

    def __len__(self):
        raise KeyError(TEXT)


FEATURES = {
    "text": lambda: np.full((N, 2), TEXT),
    "text objects": lambda: np.full((N, 2), TEXT, dtype=object),
    "one text cell": lambda: filled(TEXT),
    "bytes": lambda: np.full((N, 2), TEXT.encode()),
    "dict cell": lambda: filled({TEXT: NUMBER}),
    "hostile cell": lambda: filled(HostileCell()),
    "none": lambda: filled(None),
    "huge integer": lambda: filled(int(NUMBER) ** 40),
    "signalling nan": lambda: filled(decimal.Decimal("sNaN" + NUMBER)),
    "complex": lambda: np.full((N, 2), complex(NUMBER)),
    "complex sparse": lambda: sp.csr_array(np.full((N, 2), complex(NUMBER))),
    "nan": lambda: filled(np.nan, np.float64),
    "infinite": lambda: filled(-np.inf, np.float64),
    "nan sparse": lambda: sp.csr_array(filled(np.nan, np.float64)),
    "records": lambda: np.array([(NUMBER, TEXT)] * N, dtype=[("a", "U20"), ("b", "U20")]),
    "text frame": lambda: frame([TEXT] * N),
    "category": lambda: frame(pd.Categorical([TEXT] * N)),
    "string": lambda: frame(pd.array([TEXT] * N, dtype="string")),
    "nullable": lambda: frame(pd.array([int(NUMBER)] * (N - 1) + [None], dtype="Int64")),
    "nullable flag": lambda: frame(pd.array([True] * (N - 1) + [None], dtype="boolean")),
    "interval": lambda: frame(pd.arrays.IntervalArray.from_breaks(range(N + 1))),
    "arrow text": lambda: frame(pd.array([TEXT] * N, dtype=pd.ArrowDtype(pa.string()))),
    "named by numbers": lambda: frame([TEXT] * N, name=7316180),
    "without header": headless,
    "lists of text": lambda: [[TEXT, NUMBER]] * N,
    "ragged": lambda: [[float(NUMBER)] * (1 + i % 2) for i in range(N)],
    "dict": lambda: {TEXT: [NUMBER] * N},
    "text alone": lambda: TEXT,
    "one dimension": lambda: np.full(N, float(NUMBER)),
    "three dimensions": lambda: np.full((N, 2, 2), float(NUMBER)),
    "series": lambda: pd.Series([TEXT] * N, name=TEXT),
    "generator": lambda: (TEXT for _ in range(N)),
    "hostile": Hostile,
    "nothing": lambda: None,
    "no columns": lambda: np.empty((N, 0)),
    "no rows": lambda: np.empty((0, 2)),
}  # fmt: skip

COMMON_TARGETS = {
    "nothing": lambda: None,
    "too few": lambda: np.zeros(N - 1),
    "too many": lambda: np.zeros(2 * N),
    "two columns": lambda: np.zeros((N, 2)),
    "dict cells": lambda: np.array([{TEXT: NUMBER}] * N),
    "hostile cells": lambda: np.array([HostileCell()] * N, dtype=object),
    "hostile": Hostile,
    "nested": lambda: [[TEXT], [TEXT, TEXT]] * (N // 2) + [[TEXT]],
    "complex": lambda: np.full(N, complex(NUMBER)),
    "nan": lambda: np.array([0.0] * (N - 1) + [np.nan]),
    "infinite": lambda: np.array([0.0] * (N - 1) + [np.inf]),
    "sparse": lambda: sp.csr_array(np.full((N, 1), float(NUMBER))),
    "text alone": lambda: TEXT,
    "missing string": lambda: pd.Series(pd.array([TEXT] * (N - 1) + [None], dtype="string")),
    "text": lambda: np.full(N, TEXT),
    "category": lambda: pd.Series(pd.Categorical([TEXT] * N)),
    "text and numbers": lambda: np.array([TEXT, float(NUMBER)] * (N // 2) + [TEXT], dtype=object),
}  # fmt: skip
LABEL_TARGETS = {
    "unlisted": lambda: np.full(N, int(NUMBER)),
    "fractions": lambda: np.linspace(0.1, float(NUMBER), N),
    "unlisted column": lambda: np.full((N, 1), int(NUMBER)),
}

"""Random declared schemas, tables that obey them, and one more row that obeys them.

Cells of the table are ordinary; cells of the one more row are as odd as the schema allows: other spellings of numbers,
labels that only this row has, words for missing values, quotes, commas and line breaks inside a text, a very long text.
A schema says: which labels or which range the target has, what every column is, and which column names persons.
"""

import csv
import datetime
import gzip
import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

LABELS = [
    "1", "2", "0", "-1", "0.5", "1e5", "inf", "nan", "NA", "null", "none", "None", "?", "unknown", "E11", "x", "yes",
    "no", "true", "False", "é", "a b", "a,b", 'say "no"', "1,5", "10000000000000000", "01",
]  # fmt: skip
ODD_NUMBERS = [
    "0", "-0.0", "+3", " 7 ", "1e300", "-1e-300", "5e-324", "9007199254740993", "123456789012345678901234567890",
    "0.10000000000000000001", ".5", "5.", "1E2", "007", "-1_0",
]  # fmt: skip
GAPS = ["", "NA", "NaN", "nan", "null", "NULL", " "]
ODD_TEXTS = [
    "none", "?", "n/a", "a,b", 'quo"te', "two\nlines", "tab\there", "é日本", "=1+1", "1.0", "1", "01", "true", "inf",
    "-", "x" * 300, "'", "\\", "#", "a;b", "x" * 140_000,
]  # fmt: skip
KINDS = (
    "bounds",
    "bounds",
    "bounds",
    "categories",
    "categories",
    "categories",
    "hash",
    "hash",
    "drop",
    "text",
)


@dataclass(frozen=True)
class Column:
    """A feature: its name, what is declared of it, and cells as texts (None: missing)."""

    name: str
    kind: str
    fact: object
    cells: tuple
    more: str | None


@dataclass(frozen=True)
class Case:
    """A schema, a table, and one more row."""

    seed: int
    columns: tuple[Column, ...]
    classes: tuple[str, ...] | None
    targets: tuple[str, ...]
    more_target: str
    persons: tuple[str, ...] | None
    more_person: str
    numeric: (
        bool  # whether all features are numbers, and the table may be fitted without preparation
    )

    def rows(self, more):
        """Columns as lists of texts, with the further row or without it."""
        table = {c.name: [*c.cells, *([c.more] if more else [])] for c in self.columns}
        if self.persons is not None:
            table["who"] = [*self.persons, *([self.more_person] if more else [])]
        table["label"] = [*self.targets, *([self.more_target] if more else [])]
        return table


def pick(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def number(rng):
    value = float(rng.normal()) if rng.random() < 0.5 else int(rng.integers(-3, 9))
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def make_case(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(24, 50))
    numeric = bool(rng.random() < 0.4)
    columns = tuple(make_column(rng, j, n, numeric) for j in range(int(rng.integers(1, 5))))
    if all(column.kind == "drop" for column in columns):
        columns = (make_column(rng, 0, n, True), *columns[1:])
    if rng.random() < 0.7:
        labels = list(dict.fromkeys(rng.permutation(LABELS).tolist()))[: int(rng.integers(2, 5))]
        classes, usual = tuple(labels), labels[: max(1, len(labels) - 1)]
        targets, more = tuple(pick(rng, usual) for _ in range(n)), pick(rng, labels)
    else:
        classes, more = None, pick(rng, ODD_NUMBERS)
        targets = tuple(number(rng) for _ in range(n))
    persons = None
    if rng.random() < 0.3:
        persons = tuple(pick(rng, ["1", "2", "p3", "4.0", "é", " 5 "]) for _ in range(n))
    who = pick(rng, ["7", "7.0", "a b", "x", "日", "1", "0.5", "2024-01-01", '"quoted"'])
    return Case(seed, columns, classes, targets, more, persons, who, numeric)


def make_column(rng, j, n, numeric):
    name = pick(rng, ["age", "income", "dose", "city", "visit no", "größe"]) + str(j)
    kind = "bounds" if numeric else pick(rng, KINDS)
    if kind == "bounds":
        cells = tuple(number(rng) for _ in range(n))
        more = pick(
            rng, ODD_NUMBERS if numeric else [*ODD_NUMBERS, *GAPS, *ODD_TEXTS, "inf", "-inf"]
        )
        return Column(name, kind, (-5.0, 10.0), cells, more)
    names = rng.permutation(["f", "m", "none", "NA", "1", "2.0", "other", "true", "a b"]).tolist()[
        :3
    ]
    cells = tuple(pick(rng, [*names, *names, "NA", "", "zzz"]) for _ in range(n))
    return Column(name, kind, names, cells, pick(rng, [*names, *GAPS, *ODD_TEXTS, *ODD_NUMBERS]))


# ---- files --------------------------------------------------------------------------------------


def facts_text(case):
    """The schema as a file of public facts."""
    facts = {"target": "label"}
    if case.classes is not None:
        facts["classes"] = list(case.classes)
    else:
        facts["target_range"] = [-5.0, 10.0]
    if case.persons is not None:
        facts["person"] = "who"
        facts["rows_per_unit"] = 1
    stated = {
        "bounds": lambda c: {"bounds": list(c.fact)},
        "categories": lambda c: {"categories": c.fact},
    }
    facts["columns"] = {
        c.name: stated.get(c.kind, lambda c: {"prepare": c.kind})(c) for c in case.columns
    }
    return json.dumps(facts)


# Forms of text files: separator, encoding, and the options that say so.
LAYOUTS = {
    "csv": (",", "utf-8", []),
    "csv.gz": (",", "utf-8", []),
    "tsv": ("\t", "utf-8", []),
    "semicolons.csv": (";", "utf-8-sig", ["--sep", ";"]),
    "bars.csv": ("|", "utf-16", ["--sep", "|", "--encoding", "utf-16"]),
    "commas.csv": (";", "utf-8", ["--sep", ";", "--decimal", ","]),
}


def write_table(case, more, kind, path):
    table = case.rows(more)
    if kind in LAYOUTS:
        separator, encoding, _ = LAYOUTS[kind]
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter=separator, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
        content = buffer.getvalue().encode(encoding)
        Path(path).write_bytes(gzip.compress(content) if kind.endswith("gz") else content)
    elif kind == "xlsx":
        book = openpyxl.Workbook()
        book.active.append(list(table))
        for row in zip(*table.values(), strict=True):
            book.active.append([as_excel(cell) for cell in row])
        book.save(path)
    elif kind in ("jsonl", "json"):
        columns = [
            [as_json(cell, name != "label") for cell in cells] for name, cells in table.items()
        ]
        rows = zip(*columns, strict=True)
        lines = [json.dumps(dict(zip(table, row, strict=True))) for row in rows]
        text = f"[{', '.join(lines)}]" if kind == "json" else "\n".join(lines)
        Path(path).write_text(text + "\n")
    else:
        pq.write_table(arrow_table(case, more), path)


def as_excel(cell):
    """Half of the numbers as numbers; no control characters, which Excel cannot hold."""
    found = as_json(cell, gaps=False)
    return ILLEGAL_CHARACTERS_RE.sub("", found) if isinstance(found, str) else found


def as_json(cell, gaps):
    """Half of the numbers as numbers, some gaps as null; what JSON cannot say stays a text."""
    if cell in ("true", "false"):
        return cell == "true"
    if gaps and cell in GAPS[:3]:
        return None
    try:
        found = json.loads(cell)
    except ValueError:
        return cell
    return found if isinstance(found, (int, float)) and len(cell) % 2 else cell


def arrow_table(case, more):
    """Numbers as float64 where a column is of numbers, else texts: the types of a file are its schema."""
    table = case.rows(more)
    numbers = {c.name for c in case.columns if c.kind == "bounds"}
    if case.classes is None:
        numbers.add("label")
    columns = {}
    for name, cells in table.items():
        if name in numbers:
            columns[name] = pa.array([as_float(cell) for cell in cells], pa.float64())
        else:
            columns[name] = pa.array([None if cell == "" else cell for cell in cells], pa.string())
    return pa.table(columns)


def as_float(cell):
    try:
        return float(cell)
    except ValueError:
        return None


# ---- Python -------------------------------------------------------------------------------------


def natural(cell, feature=True):
    """The text as somebody in Python would have it: a number, a truth value or the text; in a feature also a date, or
    None for a missing value."""
    if feature and cell in ("", "NA"):
        return None
    if cell in ("true", "False"):
        return cell == "true"
    try:
        return int(cell)
    except ValueError:
        pass
    try:
        return float(cell)
    except ValueError:
        pass
    try:
        return datetime.date.fromisoformat(cell) if feature else cell
    except ValueError:
        return cell

"""Tables of the documentation, made from rows: `dpsparse lab pages` writes them anew, and a test compares."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from lab.coverage import TABLES as TESTED
from lab.coverage import summary
from lab.engine import Row, read_rows
from lab.report import Table, markdown_table
from lab.special import PERSON_WAYS
from lab.speed import TABLE as RATIOS
from lab.workflow import TRUST

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results" / "lab"


def _rows(suite: str) -> Table:
    return Table(read_rows(RESULTS / f"{suite}.jsonl"))


def coverage() -> str:
    difficulties = {table.name: table.difficulty for table in TESTED if table.difficulty}
    rows = read_rows(RESULTS / "coverage.jsonl")

    def line(name: str, epsilon: float) -> list[str]:
        share, covered, narrow, wide = summary(rows, name, epsilon)
        known = [f"{100 * covered:.1f} %", f"{narrow:.1f} to {wide:.1f}"]
        shown = ["-", "-"] if np.isnan(covered) else known
        return [name, difficulties[name], f"{epsilon:g}", f"{100 * share:.0f} %", *shown]

    heads = ["table", "difficulty", "epsilon", "samples with an interval"]
    heads += ["lowest coverage of a weight", "width, relative to no privacy"]
    return markdown_table(heads, [line(name, e) for name in difficulties for e in (0.5, 1.0, 3.0)])


def discoveries() -> str:
    table = _rows("discoveries")

    def line(rows: int, width: int, epsilon: float) -> list[str]:
        methods = [f"FeatureTest({rows=}, {width=}, {control=})" for control in ("bh", "by")]
        shares = [
            f"{100 * table.mean('drawn anew', method, epsilon, measure):.1f} %"
            for method in methods
            for measure in ("false discoveries", "power")
        ]
        return [f"{rows:,}", f"{width:,}", f"{epsilon:g}", *shares]

    heads = ["rows", "columns", "epsilon", "`bh`: false", "`bh`: power", "`by`: false", "`by`: power"]  # fmt: skip
    cases = (20000, 500, 1.0), (20000, 500, 0.3), (5000, 2000, 1.0)
    return markdown_table(heads, [line(*case) for case in cases])


def tuning() -> str:
    tasks = "mushrooms", "phishing", "a9a", "w8a"
    searches = {
        "10 pairs of `n_nonzero` and `threshold`": "weights and threshold",
        "5 values of `radius` of the Lasso, the default among them": "radius of the Lasso",
        "4 values of `radius` of the Lasso, compared with a bad value": "Lasso from radius 1",
    }
    table = _rows("tuning")

    def gain(task: str, search: str) -> str:
        tuned, plain = (f"Search(search={search!r}, who={who!r})" for who in ("tuned", "not tuned"))
        return f"{100 * table.difference(task, tuned, plain, 1.0, 'accuracy')[0]:+.1f}"

    lines = [[said, *(gain(task, search) for task in tasks)] for said, search in searches.items()]
    return markdown_table(["candidates", *tasks], lines)


def persons() -> str:
    table = _rows("persons")
    titles = {"lecturers": "InstEval", "films": "movielens", "wages": "nlswork"}
    ours, *others = (f"Persons(way={way!r})" for way in PERSON_WAYS)

    def line(task: str, epsilon: float) -> list[str]:
        measure = "R2" if task == "wages" else "AUC"
        score = table.mean(task, ours, epsilon, measure)
        best = max(others, key=lambda way: table.mean(task, way, epsilon, measure))
        lead, half = table.difference(task, ours, best, epsilon, measure)
        second = table.mean(task, best, epsilon, measure)
        names = [f"{task} ({titles[task]})", f"{epsilon:g}"]
        return [*names, f"{score:.3f}", f"{second:.3f}", f"{lead:.3f} +- {half:.3f}"]

    lines = [line(task, epsilon) for task in titles for epsilon in (0.5, 1.0, 3.0)]
    heads = ["table", "epsilon", "clipped sum", "best of the others", "lead"]
    return markdown_table(heads, lines)


def preparation() -> str:
    said = {
        "private": "everything is learnt privately",
        "hash": "numbers are learnt, categories are hashed",
        "hand": "scales and categories are declared",
    }
    table, epsilons = _rows("preparation"), (0.3, 1.0, 3.0, float("inf"))

    def line(roles: str) -> list[str]:
        method = f"Prepared(roles={roles!r})"
        return [said[roles], *(f"{table.mean('nassCDS, drawn', method, e, 'AUC'):.3f}" for e in epsilons)]  # fmt: skip

    heads = ["", "epsilon 0.3", "epsilon 1", "epsilon 3", "no noise"]
    return markdown_table(heads, [line(roles) for roles in said])


def text() -> str:
    table = _rows("text")
    titles = {"newsgroups": "20 newsgroups, two classes", "news20": "news20, twenty classes"}

    def line(data: str) -> list[str]:
        hashed, words = (f"Text(data={data!r}, mode={mode!r})" for mode in ("hash", "vocabulary"))
        accuracy = [f"{table.mean('texts', m, 1.0, 'accuracy'):.3f}" for m in (hashed, words)]
        return [titles[data], *accuracy, f"{table.mean('texts', words, 1.0, 'nonzero'):.0f}"]

    heads = ["", "hash", "vocabulary", "words learnt"]
    return markdown_table(heads, [line(data) for data in titles])


def trust(rows: list[Row] | None = None) -> str:
    """One line a table and epsilon, with what a stranger would check; coverage is that of the suite of this name."""
    table = Table(read_rows(RESULTS / "trust.jsonl") if rows is None else rows)
    intervals = read_rows(RESULTS / "coverage.jsonl")
    covered = {row["method"] for row in intervals}

    def line(name: str, epsilon: float) -> list[str]:
        def mean(measure: str) -> float:
            return table.mean(name, "Trust()", epsilon, measure)

        known = f"Coverage(table={name!r})" in covered
        share, lowest, *_ = summary(intervals, name, epsilon) if known else (0.0, 0.0)
        lost = min(mean("blank"), mean("new"))
        return [
            name, f"{epsilon:g}", f"{100 * lowest:.1f} %" if share else "-", f"{mean('AUC'):.3f}",
            f"{mean('log loss') - mean('base'):+.3f}", f"{mean('slope'):.2f}", f"{mean('accuracy'):.3f}",
            f"{mean('accuracy') - mean('best'):+.3f}", f"{lost - mean('constant'):+.3f}",
            f"{mean('nonzero'):.0f} of {mean('weights'):.0f}",
        ]  # fmt: skip

    heads = ["table", "epsilon", "coverage", "AUC", "log loss - base rate", "slope", "accuracy"]
    heads += ["- best threshold", "a column lost - constant", "weights"]
    keys = [key for key in table.values if key[1] == "Trust()"]
    epsilons = {name: sorted({float(e) for task, _, e in keys if task == name}) for name in TRUST}
    return markdown_table(heads, [line(name, e) for name in TRUST for e in epsilons[name]])


def speed() -> str:
    meant = {
        "lasso": "SciPy loop over our fit",
        "gradient": "liblinear over our default fit",
        "pass": "one pass at memory bandwidth over one step",
        "matrix": "a 1000 x 1000 product over two plans",
    }
    ratios = json.loads(RATIOS.read_text("utf-8"))
    lines = [[name, meant[re.split(r"\W", name)[0]], f"{ratios[name]:g}"] for name in ratios]
    return markdown_table(["case", "ratio of", "value"], lines)


TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "inference": {"coverage": coverage, "discoveries": discoveries},
    "tuning": {"tuning": tuning},
    "persons": {"persons": persons},
    "preparation": {"preparation": preparation, "text": text},
    "leaderboard": {"speed": speed},
    "evaluation": {"trust": trust},
}


def pages() -> Iterator[tuple[Path, str, str]]:
    """Every page with tables: its file, its text, and the text that the rows give it."""
    for name, tables in TABLES.items():
        path = ROOT / "docs" / f"{name}.md"
        before = after = path.read_text("utf-8")
        for table, make in tables.items():
            begin, end = f"<!-- {table} -->\n\n", f"\n\n<!-- end of {table} -->"
            head, rest = after.split(begin)
            after = head + begin + make() + end + rest.split(end)[1]
        yield path, before, after

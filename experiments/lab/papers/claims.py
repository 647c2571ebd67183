"""Our defaults at the papers' own epsilon and delta, beside the best number that a paper prints for it (claims.toml).

`dpsparse lab run claims` makes the rows and `dpsparse lab book` the second page of the book: a table with what we lose
on top, and one figure. A paper's number has the paper's guarantee, which several times is none.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import papers_data
from lab.bundled import bundled_tasks
from lab.engine import Row, read_rows
from lab.methods import Setting
from lab.papers.chapter import chapters
from lab.papers.common import RESULTS, axes
from lab.papers.sparsifier_tables import gradient_ahead, letter_above_printed
from lab.papers.summary import Average, Summary, average, summarise
from lab.report import Table, markdown_table
from lab.tasks import Data, Task

METHOD = "DPSparse"
HEADS = [
    "", "data", "chapter", "epsilon, delta", "measure", "printed", "our run of it", "`DPSparse*`", "rows", "weights",
    "seconds", "why",
]  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A printed table on one data set: the budget it is printed for, and the cells of its chapter that it has."""

    item: str
    task: Task
    setting: Setting
    measures: list[str]
    cell: dict[str, str]
    why: str = ""  # where we lose

    def printed(self, summary: Summary, measure: str) -> float:
        """The best number of all cells that agree with `cell`."""
        found = [
            float(entry["values"][measure])
            for entry in summary.published_cells
            if measure in entry["values"] and self.cell.items() <= entry["cell"].items()
        ]
        return max(found) / _unit(measure)

    def repeated(self, summary: Summary, measure: str) -> Average:
        """The same from our run of the paper, with its noise."""
        names = {c["method"] for c in summary.cells if summary.published(measure, **c)}
        averages = (
            summary.average(measure, "published", **(self.cell | {"method": name}))
            for name in names
        )
        found = [average for average in averages if average is not None]
        best = max(found, key=lambda average: average.mean)
        unit = _unit(measure)
        return Average(best.mean / unit, best.deviation / unit, best.trials)


def _unit(measure: str) -> float:
    """Papers print per cent."""
    return 100.0 if measure in ("AUC", "accuracy") else 1.0


def _screening(correlated: bool) -> Data:
    rows = {"n_samples": 3750, "correlated": correlated, "scaled_by": "bound"}
    return Data(*papers_data.make_screening_regression(0, **rows))  # type: ignore[arg-type]


def _read() -> Iterator[Claim]:
    known = {task.name: task for task in bundled_tasks("tables", "text", "support")}
    for correlated in (False, True):
        name = f"screening, {'' if correlated else 'un'}correlated"
        load, span = partial(_screening, correlated), (-4.0, 4.0)
        known[name] = Task(name, "support", load, target_range=span, n_nonzero=70)
    listed = tomllib.loads(Path(__file__).with_name("claims.toml").read_text("utf-8"))
    for facts in listed["claims"]:
        delta = 1.0 / facts["rows"] ** facts.get("power", 1)
        setting = Setting(facts["epsilon"], delta, n_nonzero=facts.get("weights"))
        names = ("item", "measures", "cell", "why")
        said = {name: facts[name] for name in names if name in facts}
        yield Claim(task=known[facts["task"]], setting=setting, **said)


CLAIMS = list(_read())


def page(rows: list[Row], figure: Path) -> str:
    """The table, rows that we lose on top, and the figure."""
    table = Table(rows)
    summaries = {
        item: summarise(chapters()[item], read_rows(RESULTS / f"{item}.jsonl"))
        for item in {claim.item for claim in CLAIMS}
    }
    lines = []
    for claim in CLAIMS:
        name, epsilon, of = claim.task.name, claim.setting.epsilon, summaries[claim.item]
        numbers = [
            (
                claim.printed(of, m),
                claim.repeated(of, m),
                average(table.splits(name, METHOD, epsilon, m).values()),
            )
            for m in claim.measures
        ]
        facts = (
            f"{np.mean([row['shape'][0] for row in rows if row['task'] == name]):.0f}",
            f"{table.mean(name, METHOD, epsilon, 'nonzero'):.0f}",
            f"{table.mean(name, METHOD, epsilon, 'seconds'):.2f}",
        )
        lead = min(ours.mean - printed for printed, _, ours in numbers)
        lines.append((lead, claim, numbers, facts))
    lines.sort(key=lambda line: line[0])
    _draw(lines, figure)
    shown = []
    for lead, claim, numbers, facts in lines:
        averages = [
            " / ".join(f"{v:.3f}" if isinstance(v, float) else v.text(".3f") for v in column)
            for column in zip(*numbers, strict=True)
        ]
        budget = f"{claim.setting.epsilon:g}, {claim.setting.delta:.2g}"
        state, why = ("**behind**", claim.why) if lead < 0 else ("", "")
        about = [claim.task.name, claim.item, budget, " / ".join(claim.measures)]
        shown.append([state, *about, *averages, *facts, why])
    sparsifier = summaries["004-table2"]
    above, tables = letter_above_printed(sparsifier)
    over_printed, over_letter = gradient_ahead(sparsifier)
    return Path(__file__).with_name("second_page.md").read_text("utf-8").format(
        table=markdown_table(HEADS, shown), figure=figure.name, above=above, tables=tables,
        over_printed=over_printed, over_letter=over_letter,
    )  # fmt: skip


def _draw(lines: list[Any], path: Path) -> None:
    """Three bars a claim (AUC or F1): the paper, our run of it, our default."""
    from lab import look as style

    (axis,), save = axes(path, height=0.5 * len(lines) + 0.6)
    for place, (_, _, numbers, _) in enumerate(reversed(lines)):
        for shift, value, colour, label in zip(
            (0.26, 0.0, -0.26), numbers[-1], (style.FAINT, style.ORANGE, style.BLUE),
            ("the paper", "our run of the paper", "DPSparse*, proven"), strict=True,
        ):  # fmt: skip
            of, error = (value, 0.0) if isinstance(value, float) else (value.mean, value.error)
            axis.barh(
                place + shift, of, 0.24, xerr=error or None, color=colour,
                label=None if place else label, zorder=2,
            )  # fmt: skip
    names = [
        f"{claim.task.name}\n{claim.measures[-1]}, {claim.item}" for _, claim, *_ in reversed(lines)
    ]
    axis.set_yticks(range(len(lines)), names)
    axis.set_xlim(0.0, 1.0)
    axis.set_title("Best printed numbers, and our defaults", pad=28)
    axis.legend(fontsize=9, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3)
    save()

"""Our defaults at the papers' own epsilon and delta, beside the best number that a paper prints for the task.

`dpsparse lab run claims` makes the rows and `dpsparse lab book` the second page of the book: a table with what we lose
on top, and one figure. A paper's number has the paper's guarantee, which several times is none.
"""

from __future__ import annotations

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
from lab.report import Table
from lab.tasks import Data, Task

METHOD = "DPSparse"


@dataclass(frozen=True)
class Claim:
    """A printed table on one data set: the budget it is printed for, and the cells of its chapter that it has."""

    item: str
    task: Task
    setting: Setting
    measures: tuple[str, ...]
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


_TASKS = {task.name: task for task in bundled_tasks("tables", "text", "support")}
_ROWS = {
    "kddcup99": 60_000, "covtype": 581_012, "splice": 3175, "phishing": 11_055, "papers-10000x100": 10_000,
    "mushrooms": 8124, "a9a": 48_842, "w8a": 49_749, "colon-cancer": 62,
}  # fmt: skip

CLAIMS = [
    *(
        Claim(
            "001-table1",
            Task(
                f"screening, {data}",
                "support",
                partial(_screening, data == "correlated"),
                target_range=(-4.0, 4.0),
                n_nonzero=70,
            ),
            Setting(5.0, 1.0 / 3000, n_nonzero=70),
            ("F1",),
            {"data": data, "method": "RNM-Screen"},
        )
        for data in ("uncorrelated", "correlated")
    ),
    *(
        Claim(
            "004-table2",
            _TASKS[name],
            Setting(1.0, 1.0 / rows),
            ("accuracy", "AUC"),
            {"dataset": "synthetic" if name.startswith("papers") else name},
            "about 50 training rows, 2,000 columns" if name == "colon-cancer" else "",
        )
        for name, rows in _ROWS.items()
    ),
    Claim(
        "002-table4",
        _TASKS["news-bigrams"],
        Setting(0.1, 1.0 / 19_997**2),
        ("accuracy", "AUC"),
        {"dataset": "news20"},
        "the exact sign of the paper gives labels away; with a private sign it is a guess. "
        "Our run: the best of 3 readings, one trial of it",
    ),
]


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
    sparsifier = summaries["004-table2"]
    over_printed, over_letter = gradient_ahead(sparsifier)
    above, tables = letter_above_printed(sparsifier)
    _draw(lines, figure)
    text = [
        "## Page 2: our defaults at the papers' own epsilon and delta",
        "",
        "`DPSparse*` at the paper's epsilon, means over up to five splits; ± is one standard error. It keeps "
        "all weights that it is not told to drop, where the papers keep few; the screening rows are told the "
        "true number, 70. Delta is that of the paper for 001; 1/n of all rows for 004, which has 1/n of the "
        "training rows; 1/n^2 for 002, which prints none (our run of it has 1e-6). What we lose stands first."
        " \"Our run of it\" is for 004 a reading that is not private; Sparsifier to the letter, which is private "
        f"under add-remove but for its scaling by the rows' maxima, is above the printed accuracy "
        f"and AUC on {above} of {tables} tables. Rows are those of "
        "training, cut at 50,000; kddcup99 and the synthetic tables are other draws than the papers'."
        " `dpsparse lab run claims` makes the rows, `dpsparse lab book` this page.",
        "",
        "| | data | chapter | epsilon, delta | measure | printed | our run of it | `DPSparse*` | rows | "
        "weights | seconds | why |",
        "|---" * 12 + "|",
    ]  # fmt: skip
    for lead, claim, numbers, facts in lines:
        printed, repeated, ours = (
            " / ".join(f"{v:.3f}" if isinstance(v, float) else v.text(".3f") for v in column)
            for column in zip(*numbers, strict=True)
        )
        text.append(
            f"| {'**behind**' if lead < 0 else ''} | {claim.task.name} | {claim.item} | {claim.setting.epsilon:g}, "
            f"{claim.setting.delta:.2g} | {' / '.join(claim.measures)} | {printed} | {repeated} | {ours} | "
            f"{' | '.join(facts)} | {claim.why if lead < 0 else ''} |"
        )
    text += [
        "",
        "For one printed number (w8a, private LASSO) we could confirm both the value and its guarantee. The "
        "best values of 002 and 004 come out with an exact sign, which leaks; for 001 the sensitivity of a "
        "step is refuted, and whole runs are unproven. Ours is proven. At as few weights as 004 keeps, our "
        f"gradient method leads in both measures over the best printed numbers on {over_printed} of {tables} tables, "
        f"over the best of our runs to the letter on {over_letter} (004-table2).",
        "",
        f"![our defaults beside the papers](figures/{figure.name})",
        "",
    ]  # fmt: skip
    return "\n".join(text)


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

"""Our defaults at the papers' own epsilon and delta, beside the best number that a paper prints for the task.

`dpsparse lab run papers`, then `dpsparse lab papers` writes the second page of the book: a table with what we lose on
top, and one figure. A paper's number has the paper's guarantee, which several times is none.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lab.bundled import bundled_tasks
from lab.engine import Cell, Row
from lab.methods import Setting
from lab.report import Table
from lab.tasks import Data, Task

HERE = Path(__file__).parents[1]
METHOD = "DPSparse"
SPLITS = 5


@dataclass(frozen=True)
class Claim:
    """One printed number: where it stands, the budget it is printed for, and whether that guarantee is true."""

    item: str
    task: Task
    setting: Setting
    measure: str
    cell: tuple[tuple[str, str], ...]  # of experiments/published/<paper>.json
    guarantee: str
    why: str = ""  # where we lose

    @property
    def printed(self) -> float:
        """The best number of all cells that agree with `cell`; papers print per cent."""
        cells = json.loads((HERE / "published" / f"{self.item[:3]}.json").read_text())[self.item]["cells"]  # fmt: skip
        found = [
            float(entry["values"][self.measure])
            for entry in cells
            if self.measure in entry["values"] and dict(self.cell).items() <= entry["cell"].items()
        ]
        return max(found) / (100.0 if self.measure in ("AUC", "accuracy") else 1.0)


def _correlated(correlated: bool) -> Data:
    import papers_data

    made = papers_data.make_screening_regression(
        0, n_samples=3750, correlated=correlated, scaled_by="bound"
    )
    return Data(*made)


_TASKS = {task.name: task for task in bundled_tasks("tables", "text", "support")}
_ROWS = {
    "kddcup99": 60_000, "covtype": 581_012, "splice": 3175, "phishing": 11_055, "papers-10000x100": 10_000,
    "mushrooms": 8124, "a9a": 48_842, "w8a": 49_749, "colon-cancer": 62,
}  # fmt: skip
_WHY = {
    "colon-cancer": "50 training rows and 2,000 columns; the sign in the paper is exact",
    "news20": "the paper's sign is exact and gives labels away; the same epsilon with a private sign is a guess",
}
_EXACT_SIGN = "none: exact sign"


def _screening_task(data: str) -> Task:
    load = partial(_correlated, data == "correlated")
    return Task(f"screening, {data}", "support", load, target_range=(-4.0, 4.0), n_nonzero=70)


def claims() -> list[Claim]:
    found = [
        Claim(
            "001-table1",
            _screening_task(data),
            Setting(5.0, 1.0 / 3000, n_nonzero=70),
            "F1",
            (("data", data), ("method", "RNM-Screen")),
            "sensitivity refuted",
        )
        for data in ("uncorrelated", "correlated")
    ]  # fmt: skip
    found += [
        Claim(
            "004-table2",
            _TASKS[name],
            Setting(1.0, 1.0 / rows),
            measure,
            (("dataset", "synthetic" if name.startswith("papers") else name),),
            "numbers come out with an exact sign only",
            _WHY.get(name, ""),
        )
        for name, rows in _ROWS.items()
        for measure in ("accuracy", "AUC")
    ]
    found += [
        Claim(
            "002-table4",
            _TASKS["news-bigrams"],
            Setting(0.1, 1.0 / 19_997**2),
            measure,
            (("dataset", "news20"),),
            _EXACT_SIGN,
            _WHY["news20"],
        )
        for measure in ("accuracy", "AUC")
    ]
    return found


def cells() -> Iterator[Cell]:
    for claim in claims():
        for split in range(SPLITS):
            yield Cell(claim.task, METHOD, claim.setting, split)


def page(rows: list[Row], figure: Path) -> str:
    """The table, rows that we lose on top, and the figure."""
    table = Table(rows)
    lines = []
    for claim in claims():
        ours = table.mean(claim.task.name, METHOD, claim.setting.as_row()["epsilon"], claim.measure)
        seconds = table.mean(claim.task.name, METHOD, claim.setting.as_row()["epsilon"], "seconds")
        if not math.isnan(ours):
            lines.append((ours - claim.printed, claim, ours, seconds))
    lines.sort(key=lambda line: line[0])
    _draw(lines, figure)
    title = "## Page 2: our defaults at the papers' own epsilon and delta"
    said = (
        "`DPSparse*` with nothing chosen, delta as the paper has it, means over up to five splits. The rows we lose "
        "stand first. `dpsparse lab papers` makes this page. A printed number has the guarantee that stands beside it."
    )
    head = "| | item | data | epsilon, delta | measure | printed (guarantee) | `DPSparse*` (proven) | seconds | why |"
    text = [title, "", said, "", head, "|---" * 9 + "|"]
    for lead, claim, ours, seconds in lines:
        budget = f"{claim.setting.epsilon:g}, {claim.setting.delta:.2g}"
        text.append(
            f"| {'**behind**' if lead < 0 else ''} | {claim.item} | {claim.task.name} | {budget} | {claim.measure} | "
            f"{claim.printed:.3f} ({claim.guarantee}) | {ours:.3f} | {seconds:.2f} | {claim.why if lead < 0 else ''} |"
        )
    text += ["", f"![our defaults beside the papers](figures/{figure.name})"]
    return "\n".join(text)


def _draw(lines: list[Any], path: Path) -> None:
    """A bar a claim (AUC or F1): the printed number and ours."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    sys.path.insert(0, str(HERE.parent / "examples"))
    house = importlib.import_module("house")
    house.use()
    shown = [line for line in lines if line[1].measure != "accuracy"]
    figure, axis = plt.subplots(figsize=(7.2, 0.42 * len(shown) + 0.8), layout="constrained")
    for place, (_, claim, ours, _) in enumerate(reversed(shown)):
        axis.barh(
            place + 0.2,
            claim.printed,
            0.36,
            color=house.FAINT,
            label="the paper" if not place else None,
        )
        axis.barh(
            place - 0.2,
            ours,
            0.36,
            color=house.BLUE,
            label="DPSparse*, proven" if not place else None,
        )
    names = [f"{line[1].task.name}, {line[1].measure} ({line[1].item})" for line in reversed(shown)]
    axis.set_yticks(range(len(shown)), names)
    axis.set_xlim(0.0, 1.0)
    axis.set_title(
        "The papers' best printed numbers, and our defaults at the same epsilon and delta"
    )
    figure.legend(loc="outside lower center", ncols=2)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)

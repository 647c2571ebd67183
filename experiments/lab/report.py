"""Tables from rows: means over splits, paired differences."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.engine import Row
from lab.measures import MEASURES
from lab.tasks import Task

T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)  # two-sided, by degrees of freedom


class Table:
    """Rows by task, method and epsilon."""

    def __init__(self, rows: list[Row]) -> None:
        self.values: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
        self.errors: dict[tuple[str, str], str] = {}
        self.shapes: dict[str, list[int]] = {}
        self.seconds = 0.0
        for row in rows:
            if "error" in row:
                self.errors[row["task"], row["method"]] = row["error"]
                continue
            where = row["task"], row["method"], str(row["setting"]["epsilon"])
            self.values[where][row["split"]] = row["measures"]
            self.shapes[row["task"]] = row.get("shape", [])
            self.seconds += row["measures"].get("seconds", 0.0)

    def splits(self, task: str, method: str, epsilon: Any, measure: str) -> dict[int, float]:
        """The measure of every split; a reference has one value for all epsilons."""
        found = self.values.get((task, method, str(epsilon))) or self.values.get((task, method, "inf"), {})  # fmt: skip
        return {k: v[measure] for k, v in found.items() if measure in v}

    def mean(self, task: str, method: str, epsilon: Any, measure: str) -> float:
        """Over splits; of a measure with several entries the lowest."""
        found = list(self.splits(task, method, epsilon, measure).values())
        return float(np.min(np.mean(found, axis=0))) if found else math.nan

    def difference(
        self, task: str, first: str, second: str, epsilon: Any, measure: str
    ) -> tuple[float, float]:
        """Mean of first minus second over the splits that both have, and half of its 95 % interval."""
        one, two = (self.splits(task, m, epsilon, measure) for m in (first, second))
        return self.paired(one, two)

    @staticmethod
    def paired(one: dict[int, float], two: dict[int, float]) -> tuple[float, float]:
        paired = np.array([one[k] - two[k] for k in sorted(one.keys() & two.keys())])
        if not len(paired):
            return math.nan, math.nan
        if len(paired) == 1:
            return float(paired[0]), math.inf
        spread = float(np.std(paired, ddof=1)) / math.sqrt(len(paired))
        return float(paired.mean()), T95[min(len(paired) - 2, len(T95) - 1)] * spread


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells as a table."""
    names, *lines = (f"| {' | '.join(cells)} |" for cells in (head, *rows))
    return "\n".join([names, "|---" * len(head) + "|", *lines])


def markdown(
    table: Table, tasks: list[Task], methods: list[str], epsilons: list[float], measure: str = ""
) -> str:
    """One line a task and method, one column an epsilon."""
    lines = []
    for task in tasks:
        asked = measure or task.headline
        form = MEASURES[asked]
        shape = " x ".join(f"{v:,}" for v in table.shapes.get(task.name, []))
        name = f"{task.name} ({shape})"
        for method in methods:
            means = [table.mean(task.name, method, e, asked) for e in epsilons]
            if not all(map(math.isnan, means)):
                shown = ["" if math.isnan(m) else f"{m:{form}}" for m in means]
                lines.append([name, method, asked, *shown])
                name = ""
    return markdown_table(["task", "method", "measure", *(f"{e:g}" for e in epsilons)], lines)

"""The numbers that left the rows, with the variance of their noise; all else is computed from these."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse.evaluation.intervals import Estimate, mean
from dpsparse.evaluation.plan import SCORE_EDGES, Subject, cuts, number_of_bins
from dpsparse.release import Releases
from dpsparse.rows.histogram import ScoredLabels, ScoredNumbers
from dpsparse.rows.parts import Query


@dataclass(frozen=True, eq=False)
class Released:
    """Noisy sums by name, the variance of one entry of each, the cuts of the histogram, the public number."""

    numbers: Mapping[str, np.ndarray]
    variance: Mapping[str, float]
    n_units: int | None = None  # where it is public
    cuts: np.ndarray | None = None
    centre: float = 0.0  # about which the spread of targets was taken, in units of their bound

    @property
    def number(self) -> tuple[float, float]:
        """How many rows or persons, and the variance of that number."""
        if self.n_units is not None:
            return float(self.n_units), 0.0
        name = next(n for n in ("outcomes", "confusion", "count") if n in self.numbers)
        cells = self.numbers[name]
        return float(cells.sum()), cells.size * self.variance[name]

    def moment(self, name: str, up: float = 0.0) -> float:
        """A sum of numbers in [0, 1], moved by `up` standard deviations of its noise."""
        N, v_N = self.number
        sd = math.sqrt(self.variance[name] + v_N / 4.0)
        return float(self.numbers[name][0]) + N / 2.0 + up * sd

    def average(self, name: str, squares: str, reach: float, level: float) -> Estimate:
        """The mean of numbers in [0, reach]; `squares` is the sum of their squares."""
        (N, v_N), S, v_S = self.number, self.moment(name), self.variance[name]
        # One standard deviation upwards, since a Q too small makes the interval too short; v^2 <= v bounds it.
        most = max(S, 0.0) + 2.0 * math.sqrt(v_S + v_N / 4.0)
        Q = min(max(self.moment(squares, 1.0), 0.0), most)
        return mean(S, N, Q, v_S, v_N, level, reach)

    def to_dict(self) -> dict[str, Any]:
        return {
            "numbers": {name: part.tolist() for name, part in self.numbers.items()},
            "noise_variance": dict(self.variance),
            "n_units": self.n_units,
            "cuts": None if self.cuts is None else self.cuts.tolist(),
            "centre": self.centre,
        }


def release_labels(
    rows: ScoredLabels, names: list[str], subject: Subject, releases: Releases
) -> Released:
    """All releases of a classifier. Counts come first: they say how many bins the rows can fill."""
    numbers: dict[str, np.ndarray] = {}
    variance: dict[str, float] = {}
    n_units = None if subject.weighted else releases.number_of_rows(rows)
    edges: np.ndarray | None = None

    def ask(name: str, query: Query) -> None:
        variance[name] = releases.scale(name, query) ** 2
        numbers[name] = releases.gaussian(name, query)

    if "outcomes" in names:
        ask("outcomes", rows.outcomes())
    if "confusion" in names:
        ask("confusion", rows.confusion())
    if "cells" in names:
        ask("cells", rows.cells(SCORE_EDGES))
        # About how many rows there are: public, or from the counts released so far.
        counted = next(n for n in ("outcomes", "confusion", "cells") if n in numbers)
        n = float(numbers[counted].sum() if n_units is None else n_units)
        n_bins = number_of_bins(n, releases.budget("histogram"))
        edges = cuts(numbers["cells"], math.sqrt(variance["cells"]), n_bins)
        ask("histogram", rows.histogram(edges))
    for loss in ("log_loss", "brier"):
        if loss in names:
            ask(loss, rows.loss(loss))
            ask(f"{loss}_squares", rows.loss(loss, 2))
    return Released(numbers, variance, n_units, edges)


def release_numbers(
    rows: ScoredNumbers, names: list[str], subject: Subject, releases: Releases
) -> Released:
    """All releases of a regressor. The mean of the targets comes first: their spread is taken about it."""
    numbers: dict[str, np.ndarray] = {}
    variance: dict[str, float] = {}
    n_units = None if subject.weighted else releases.number_of_rows(rows)
    centre = 0.0
    queries: dict[str, Callable[[], Query]] = {
        "count": rows.count,
        "total": rows.total,
        "absolute": rows.absolute,
        "squares": rows.squares,
        "spread": lambda: rows.spread(centre),
        "squares_squares": lambda: rows.squares(2),
        "spread_squares": lambda: rows.spread(centre, 2),
        "cross": lambda: rows.spread(centre, cross=True),
    }
    for name, make in queries.items():
        if name not in names:
            continue
        query = make()
        variance[name] = releases.scale(name, query) ** 2
        numbers[name] = releases.gaussian(name, query)
        if name == "total":
            n = float(n_units if n_units is not None else numbers["count"][0])
            centre = float(np.clip(numbers["total"][0] / max(n, 1.0), -1.0, 1.0))
    return Released(numbers, variance, n_units, centre=centre)

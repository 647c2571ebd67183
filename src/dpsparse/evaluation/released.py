"""The numbers that left the rows, with the variance of their noise; all else is computed from these."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse.evaluation.plan import EDGES, Subject, cuts, number_of_bins
from dpsparse.release import Releases
from dpsparse.rows.histogram import ScoredLabels, ScoredNumbers
from dpsparse.rows.query import Query


@dataclass(frozen=True, eq=False)
class Released:
    """Noisy sums by name, the variance of one entry of each, the cuts of the histogram, the public number."""

    numbers: Mapping[str, np.ndarray]
    variance: Mapping[str, float]
    n_units: int | None = None  # where it is public
    cuts: np.ndarray | None = None
    centre: float = 0.0  # about which the spread of targets was taken, in units of their bound

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
    n_units = releases.number_of_rows(rows)
    edges: np.ndarray | None = None

    def ask(name: str, query: Query) -> None:
        variance[name] = releases.scale(name, query) ** 2
        numbers[name] = releases.gaussian(name, query)

    if "outcomes" in names:
        ask("outcomes", rows.outcomes())
    if "confusion" in names:
        ask("confusion", rows.confusion())
    if "cells" in names:
        ask("cells", rows.cells(EDGES))
        counted = next(n for n in ("outcomes", "confusion", "cells") if n in names)
        n = float(n_units if n_units is not None else numbers[counted].sum())
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
    n_units = releases.number_of_rows(rows)
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

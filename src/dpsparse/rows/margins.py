"""Numbers of rows under released weights: predicted chances and residuals, summed row by row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from dpsparse.rows import kernels
from dpsparse.rows.parts import Parts
from dpsparse.rows.query import Query
from dpsparse.rows.short import short_sum
from dpsparse.sensitivity import feature_masses, signed_sum


@dataclass(frozen=True, eq=False)
class MarginPart:
    """Margins of the rows of one part."""

    values: np.ndarray
    targets: np.ndarray
    starts: np.ndarray | None


class Margins:
    """Margins of the rows under released weights; private."""

    def __init__(self, parts: Parts, n_outputs: int) -> None:
        self._parts, self._n_outputs = parts, n_outputs

    def class_totals(self, offset: np.ndarray) -> Query:
        """sum of the predicted probabilities, class by class."""
        n_classes = max(2, self._n_outputs)
        chances = partial(_chances, offset, n_classes)
        return short_sum(
            self._parts, chances, n_classes, 1.0, partial(feature_masses, 1.0), positive=True
        )

    def residual_total(self, offset: np.ndarray, reach: float) -> Query:
        """sum of target - margin - offset, each clipped to +-reach."""
        residuals = partial(_residuals, offset, reach)
        return short_sum(self._parts, residuals, 1, reach, partial(signed_sum, reach))

    def squares(self, bound: float, unit: float) -> int:
        """sum of min((margin/bound)^2, 1), each rounded up to `unit`; for the queries of this room."""
        return int(self._parts.sum((1,), partial(_add_squares, bound, unit))[0])


# ---- functions of one part -----------------------------------------------------------------------


def _chances(offset: np.ndarray, n_classes: int, part: MarginPart) -> np.ndarray:
    shares = np.empty((len(part.values), n_classes))
    kernels.probabilities(part.values, offset, shares)
    return shares


def _residuals(offset: np.ndarray, reach: float, part: MarginPart) -> np.ndarray:
    return np.asarray(np.clip(part.targets[:, None] - part.values - offset, -reach, reach))


def _add_squares(bound: float, unit: float, part: MarginPart, out: np.ndarray) -> None:
    squares = np.ceil(np.minimum((part.values / bound) ** 2, 1.0) / unit)
    out[0] += int(squares.astype(np.int64).sum())

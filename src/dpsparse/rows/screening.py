"""What the paid screening rules ask of the rows: how useless each feature looks at released weights.

    w_l = radius c_l/M        released: c whole, sum |c_l| < M = (T + 1)(T + 2)/2
    q   = sum_i r_i z_i       whole numbers, entries of a row's contribution at most `per_row`; then clamped
    A_j = radius |G_j| + <w, G>                             in whole numbers M |q_j| + sum_l c_l q_l, exactly
    S_j = A_j + b (radius |x_(j)| + |Xw|) sqrt(gap/mu)      gap = <w, G> + radius max |G_j|, exact as well

`active` answers with -A_j; `safe` with -S_j/max(n, n0), from exact sums and rounded once. Both are sums of what
each row adds, so the largest answer belongs to the feature that looks most useless. A clamp moves no entry
further than before and keeps all numbers below 2^60. Proofs: docs/proofs/screening.md, sections 3 and 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dpsparse.losses import get_loss
from dpsparse.rows import kernels
from dpsparse.rows.query import Query
from dpsparse.sensitivity import active_range, raj_range

if TYPE_CHECKING:
    from dpsparse.rows.memory import Rows

_TOP = 2**60  # no score is larger
_SQUARE = 2.0**32  # units of the square of an entry, or margin, as large as its bound
_MANY = 2**20  # rows assumed where their number is not public; more are counted on a clamped sum


@dataclass(frozen=True)
class Point:
    """Released weights radius c/M on the columns of some rows and, last, on the constant; and their loss."""

    counts: np.ndarray  # c: sums of (t + 2) sign over the steps t that picked a column
    n_steps: int
    radius: float
    loss: str
    slope_bound: float
    feature_bound: float
    fit_intercept: bool

    @property
    def denominator(self) -> int:
        """M."""
        return (self.n_steps + 1) * (self.n_steps + 2) // 2


class ScreenedRows:
    """Rows x/feature_bound in whole numbers, and their scores at a released point; private."""

    def __init__(self, rows: Rows, at: Point) -> None:
        self._at, self._rows = at, rows
        target = 1.0
        if get_loss(at.loss).labels == "numbers":
            target = float(rows.domain.require("target_bound", "Screening"))
        bound = at.feature_bound
        self._slope_unit = target
        self._units = rows.entries(bound, math.inf, constant=bound if at.fit_intercept else 0.0)
        # Margins of z = x/bound in units of the targets; z is shorter than that by SAFE_ROW/ROW.
        stretch = at.radius / at.denominator * bound / target * (kernels.ROW / kernels.SAFE_ROW)
        weights = at.counts * stretch
        self._weights, self._constant = np.ascontiguousarray(weights[:-1, None]), weights[-1:]

    def unit(self, n_samples: int | None) -> float:
        """A public grid for `active`: a row adds up to 2^8 .. 2^24 units, so that the sums fit."""
        at = self._at
        return (
            at.radius * at.feature_bound * at.slope_bound / (at.denominator * self._fine(n_samples))
        )

    def active(self, n_candidates: int) -> Query:
        """-A_j of the first columns."""
        at = self._at

        def whole(unit: float) -> np.ndarray:
            q = self._sums(unit * at.denominator / (at.radius * at.feature_bound))
            return self._linear(q)[:n_candidates] * -1

        lemma = partial(active_range, at.radius, at.feature_bound, at.slope_bound)
        return Query((n_candidates,), lemma, whole)

    def safe(
        self, n_candidates: int, smoothness: float, strong_convexity: float, n_samples: int
    ) -> Query:
        """-S_j/max(n, n_samples) of the first columns, rounded to the grid."""
        at = self._at

        def whole(unit: float) -> np.ndarray:
            grid = at.slope_bound / self._fine(n_samples)
            q = self._sums(grid)
            scale = at.radius * at.feature_bound * grid / at.denominator
            gap = int(np.abs(q).max()) * at.denominator + int(at.counts @ q)  # never negative
            distance = math.sqrt(scale * gap / strong_convexity)
            norms = np.sqrt(self._column_squares()[:n_candidates] / _SQUARE)
            length = (
                at.radius * at.feature_bound * (norms + math.sqrt(self._margin_squares() / _SQUARE))
            )
            scores = scale * self._linear(q)[:n_candidates] + smoothness * length * distance
            scores /= -max(len(self._rows), n_samples)
            return np.rint(np.clip(scores / unit, -float(_TOP), float(_TOP))).astype(np.int64)

        lemma = partial(
            raj_range, at.radius, at.feature_bound, at.slope_bound, smoothness, strong_convexity, n_samples
        )  # fmt: skip
        return Query((n_candidates,), lemma, whole)

    # ---- sums over rows --------------------------------------------------------------------------

    def _fine(self, n_samples: int | None) -> int:
        """Units of the largest contribution of a row: as fine as the room below the clamp allows."""
        room = _TOP // (2 * self._at.denominator * (n_samples or _MANY))
        return int(2 ** min(max(room.bit_length() - 1, 8), 24))

    def _sums(self, grid: float) -> np.ndarray:
        """q for slopes times x/feature_bound on a grid, columns and then the constant; clamped."""
        clip = self._at.slope_bound / self._slope_unit
        sums = self._units.gradient(
            self._at.loss,
            self._weights,
            np.zeros(1),
            clip=clip,
            cutoff=clip,
            constant_weight=self._constant,
        )
        most = _TOP // (2 * self._at.denominator)
        return np.asarray(np.clip(sums.whole(grid / self._slope_unit).reshape(-1), -most, most))

    def _linear(self, q: np.ndarray) -> np.ndarray:
        """A_j in whole numbers: below 2^60 since sum |c| < M."""
        return np.asarray(self._at.denominator * np.abs(q) + self._at.counts @ q)

    def _column_squares(self) -> np.ndarray:
        return self._units.squares()

    def _margin_squares(self) -> int:
        """sum of (x_i.w)^2 in units of the square of its bound, each rounded up and cut there."""
        unit = self._at.feature_bound  # of z, by which margins of the original rows are multiplied
        margins = self._units.margins(self._weights / unit, self._constant / unit)
        bound = self._at.radius * unit / self._slope_unit
        return margins.squares(bound, 1.0 / _SQUARE)

"""Scores of Frank-Wolfe at released weights, part by part: for rows that no single machine holds.

    G_jk = sum_i round(S q_ik x_ij)      q_i = slope of row i at x_i.w + offset, in units of 2^-28 of its bound

A row adds at most S = `resolution` whole units to a score: entries are cut to [-1, 1] and slopes to their bound where
they become whole, as in the fused kernel (methods/frank_wolfe/kernel.py; docs/proofs/fast_frank_wolfe.md, Lemma 1).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dpsparse.domain.clipping import Part
from dpsparse.jit import njit
from dpsparse.rows.loss_kernels import (
    CODES,
    SLOPE_UNITS,
    SOFTMAX,
    entry_over_bound,
    slope,
    softmax,
    whole_slope,
)
from dpsparse.threads import sum_over_rows

if TYPE_CHECKING:
    from dpsparse.rows.memory import Rows

_jit = njit(cache=True, nogil=True, error_model="numpy")


@dataclass(frozen=True, eq=False)
class CellsAt:
    """Released weights (columns, outputs) on entries over the feature bound, the intercept's last; public numbers."""

    weights: np.ndarray
    offset: np.ndarray
    loss: str
    cutoff: float
    slope_bound: float
    factor: float  # one over the feature bound
    target_unit: float
    resolution: int
    fit_intercept: bool


def cell_scores(rows: Rows, at: CellsAt) -> np.ndarray:
    """G of all cells, columns by outputs, the intercept last, for the draw that hides them (`Releases.vertices`).
    Parts get the cells that were picked so far, which are few, not all weights."""
    shape, places = at.weights.shape, np.flatnonzero(at.weights)
    picked = replace(at, weights=at.weights.reshape(-1)[places])
    return rows._parts.sum(shape, partial(_add_scores, picked, places))


def _add_scores(at: CellsAt, places: np.ndarray, part: Part, out: np.ndarray) -> None:
    weights = np.zeros(out.shape)
    weights.reshape(-1)[places] = at.weights
    y = part.targets if part.targets.dtype.kind == "i" else part.targets * at.target_unit
    y = np.ascontiguousarray(y, np.float64)

    def add(start: int, stop: int, sums: np.ndarray) -> None:
        _scores(
            part.indptr, part.indices, part.values, y, weights, at.offset, CODES[at.loss],
            at.cutoff, at.slope_bound, at.factor, at.resolution / SLOPE_UNITS, at.fit_intercept,
            start, stop, sums,
        )  # fmt: skip

    sum_over_rows(len(part), len(part.values), out, add)


@_jit
def _scores(
    indptr, indices, values, y, weights, offset, loss, cutoff, slope_bound, factor, unit,
    fit_intercept, start, stop, out,
):  # fmt: skip
    K, last = weights.shape[1], weights.shape[0] - 1
    q = np.empty(K)
    for i in range(start, stop):
        for k in range(K):
            q[k] = weights[last, k] if fit_intercept else 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x = np.float64(entry_over_bound(values[p], factor))
            for k in range(K):
                q[k] += x * weights[indices[p], k]
        if loss == SOFTMAX:
            for k in range(K):
                q[k] += offset[k]
            softmax(q)
            for k in range(K):
                q[k] -= 1.0 if k == y[i] else 0.0
        else:
            q[0] = slope(loss, q[0] + offset[0], y[i], cutoff)
        for k in range(K):
            q[k] = whole_slope(q[k] * (SLOPE_UNITS / slope_bound)) * unit
        for p in range(indptr[i], indptr[i + 1]):
            x, j = np.float64(entry_over_bound(values[p], factor)), indices[p]
            for k in range(K):
                out[j, k] += np.int64(np.rint(q[k] * x))
        if fit_intercept:
            for k in range(K):
                out[last, k] += np.int64(np.rint(q[k]))

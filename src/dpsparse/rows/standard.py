"""Rows after an affine map whose numbers were released: centred, scaled columns and targets.

    x_i <- (x_i - centre) * scaling        column by column, stored as at the door: float32 in 2^-100..2^100, or zero
    x_i <- that times a matrix `axes`      where there is one
    y_i <- (y_i - middle) / unit

A map of one row, given released numbers: it costs nothing, and every query of the new rows has the bound of
its own kernel. A centred row has an entry in every column, so this is for narrow tables.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpsparse.domain.clipping import HUGE, TINY, Part
from dpsparse.jit import njit


def standardised(
    centre: np.ndarray,
    scaling: np.ndarray,
    axes: np.ndarray | None,
    middle: float,
    unit: float,
    part: Part,
) -> Part:
    """The rows of a part after the map; dense."""
    n, d = len(part), part.n_features
    values = np.empty(n * d, np.float32)
    run: Any = _standardise
    run(
        part.indptr, part.indices, part.values, np.asarray(centre, np.float64),
        np.asarray(scaling, np.float64), values,
    )  # fmt: skip
    if axes is not None:
        turn: Any = _turn
        turn(np.ascontiguousarray(axes, np.float64), values)
    indptr = d * np.arange(n + 1, dtype=np.int64)
    indptr = indptr if n * d > 2**31 - 1 else indptr.astype(np.int32)
    indices = np.tile(np.arange(d, dtype=np.int32), n)
    targets = (part.targets - middle) / unit
    return Part(indptr, indices, values, targets, d, part.persons)


def with_targets(middle: float, unit: float, part: Part) -> Part:
    """The rows of a part with other targets."""
    return replace(part, targets=(part.targets - middle) / unit)


def small(size: float, part: Part) -> np.ndarray:
    """Which rows have non-zero entries of a root mean square of at most `size`."""
    return np.asarray(part.squares() <= (size * size) * np.diff(part.indptr))


@njit(cache=True, nogil=True, error_model="numpy")
def _standardise(indptr, indices, values, centre, scaling, out):
    d = centre.size
    for i in range(indptr.size - 1):
        row = out[i * d : (i + 1) * d]
        for j in range(d):
            row[j] = _stored(-centre[j] * scaling[j])
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            row[j] = _stored((np.float64(values[p]) - centre[j]) * scaling[j])


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(axes, values):
    """Every row times a matrix, in one order of additions: how rows are cut changes no digit."""
    d = axes.shape[0]
    turned = np.empty(d)
    for i in range(values.size // d):
        row = values[i * d : (i + 1) * d]
        turned[:] = 0.0
        for j in range(d):
            for k in range(d):
                turned[k] += np.float64(row[j]) * axes[j, k]
        for k in range(d):
            row[k] = _stored(turned[k])


@njit(nogil=True, error_model="numpy")
def _stored(x):
    """x as float32 in the range of stored numbers; zero where it is smaller, or not a number."""
    if not abs(x) >= TINY:
        return np.float32(0.0)
    return np.float32(min(max(x, -HUGE), HUGE))

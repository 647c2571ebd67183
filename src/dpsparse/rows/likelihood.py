"""What rows add to a logistic likelihood of few columns, in released coordinates: second moments and derivatives.

    v_i = A (x_i, 1)                        A: released or public, one row for every coordinate
    moments     sum_i v_i v_i', or of (v_i, 2 y_i - 1)
    gradient    sum_i v_i (p_i - y_i)       p_i = sigmoid(psi.v_i)
    curvature   sum_i p_i (1 - p_i) v_i v_i'
    spread      sum_i s_i s_i'              s_i: the clipped gradient of row i

A row adds a vector of length at most `bound`, or a matrix of Frobenius norm at most `bound`; longer ones are scaled
down to it. A person adds the mean over their rows, and the spread is that of persons. Of a matrix the upper triangle is
released, every entry once. Bounds are enforced on the whole numbers (docs/proofs/inference.md, Lemmas 1 and 2).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse.domain.clipping import Part
from dpsparse.jit import njit
from dpsparse.rows.parts import Query
from dpsparse.sensitivity import Sensitivity, clipped_gradient_sum, second_moments

if TYPE_CHECKING:
    from dpsparse.rows.memory import Rows

_MOMENTS, _LABELLED, _GRADIENT, _CURVATURE, _SPREAD = range(5)
_jit = njit(cache=True, nogil=True, error_model="numpy")


def moments(rows: Rows, to: np.ndarray, bound: float, *, labelled: bool = False) -> Query:
    """Of v, or `labelled` of (v, 2 y - 1)."""
    kind, size = (_LABELLED, len(to) + 1) if labelled else (_MOMENTS, len(to))
    return _triangle(rows, kind, to, np.zeros(len(to)), bound, size)


def gradient(rows: Rows, to: np.ndarray, weights: np.ndarray, bound: float) -> Query:
    """Of the logistic loss at released weights of the coordinates."""
    lemma = partial(clipped_gradient_sum, bound)
    return _query(rows, _GRADIENT, to, weights, bound, len(to), lemma)


def curvature(rows: Rows, to: np.ndarray, weights: np.ndarray, bound: float) -> Query:
    """The second derivative there."""
    return _triangle(rows, _CURVATURE, to, weights, bound, len(to))


def spread(rows: Rows, to: np.ndarray, weights: np.ndarray, bound: float) -> Query:
    """Second moments of gradients that are clipped to length sqrt(bound)."""
    return _triangle(rows, _SPREAD, to, weights, bound, len(to))


def _triangle(
    rows: Rows, kind: int, to: np.ndarray, weights: np.ndarray, bound: float, size: int
) -> Query:
    entries = size * (size + 1) // 2
    return _query(rows, kind, to, weights, bound, entries, partial(second_moments, bound))


def _query(
    rows: Rows, kind: int, to: np.ndarray, weights: np.ndarray, bound: float, entries: int,
    lemma: Callable[[str], Sensitivity],
) -> Query:  # fmt: skip
    to, weights = np.ascontiguousarray(to, np.float64), np.ascontiguousarray(weights, np.float64)

    def whole(unit: float) -> np.ndarray:
        return rows._parts.sum((entries,), partial(_add_part, kind, to, weights, bound, unit))

    return Query((entries,), lemma, whole)


def _add_part(
    kind: int, to: np.ndarray, weights: np.ndarray, bound: float, unit: float,
    part: Part, out: np.ndarray,
) -> None:  # fmt: skip
    starts = np.arange(len(part) + 1) if part.starts is None else part.starts
    rows: tuple[Any, ...] = (part.indptr, part.indices, part.values, part.targets)
    run: Any = _add_units
    run(kind, starts.astype(np.int64), *rows, to, weights, bound, unit, out)


@_jit
def _add_units(kind, starts, indptr, indices, values, targets, to, weights, bound, unit, out):
    """A unit is a row, or a person with all of their rows."""
    k = to.shape[0]
    size = k + 1 if kind == _LABELLED else k
    of_vectors = kind in (_GRADIENT, _SPREAD)
    fine = (1.0 - 2.0**-30) / unit
    limit = (bound / unit) ** 2 * (1.0 - 2.0**-40)
    x, v, mean = np.empty(to.shape[1]), np.empty(size), np.empty(size)
    total, whole = np.empty(out.size), np.empty(out.size, np.int64)
    for i in range(starts.size - 1):
        mean[:] = 0.0
        total[:] = 0.0
        share = 1.0 / np.float64(starts[i + 1] - starts[i])
        for row in range(starts[i], starts[i + 1]):
            x[:] = 0.0
            x[-1] = 1.0
            for q in range(indptr[row], indptr[row + 1]):
                x[indices[q]] = values[q]
            margin, y = 0.0, np.float64(targets[row])
            for a in range(k):
                v[a] = 0.0
                for b in range(x.size):
                    v[a] += to[a, b] * x[b]
                margin += weights[a] * v[a]
            p = (
                1.0 / (1.0 + np.exp(-margin))
                if margin >= 0.0
                else 1.0 - 1.0 / (1.0 + np.exp(margin))
            )
            if of_vectors:
                for a in range(k):
                    mean[a] += share * (p - y) * v[a]
                continue
            if kind == _LABELLED:
                v[k] = 2.0 * y - 1.0
            c = p * (1.0 - p) if kind == _CURVATURE else 1.0
            length = c * np.sum(v * v)  # the Frobenius norm of c v v'
            c = share * (c if length <= bound else c * (bound / length))
            _add_square(c, v, total)
        if of_vectors:
            length = np.sum(mean * mean)
            longest = bound if kind == _SPREAD else bound * bound
            c = 1.0 if length <= longest else longest / length
            if kind == _GRADIENT:
                total[:] = np.sqrt(c) * mean
            else:
                _add_square(c, mean, total)
        _add_whole(kind == _GRADIENT, total, size, fine, bound, limit, whole, out)


@_jit
def _add_square(c, v, total):
    """c v v', upper triangle."""
    at = 0
    for a in range(v.size):
        for b in range(a, v.size):
            total[at] += c * v[a] * v[b]
            at += 1


@_jit
def _add_whole(vector, total, size, fine, bound, limit, whole, out):
    """What a unit adds, in whole numbers, if it keeps the bound; a diagonal entry must not be negative."""
    squares, sound, at = 0.0, True, 0
    for a in range(1 if vector else size):
        for b in range(a, size):
            scaled = total[at] * fine
            sound = sound and abs(scaled) <= bound * fine * (
                1.0 + 2.0**-20
            )  # false for what is no number
            t = np.trunc(scaled) if sound else 0.0
            whole[at] = np.int64(t)
            diagonal = a == b and not vector
            sound = sound and (not diagonal or t >= 0.0)
            squares += t * t if vector or a == b else 2.0 * t * t
            at += 1
    if sound and squares <= limit:
        for j in range(out.size):
            out[j] += whole[j]

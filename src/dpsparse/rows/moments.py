"""Sums of few columns: second moments, and the derivatives of a logistic likelihood, in released coordinates.

    v_i = A (x_i, 1), or x_i            A: released or public, one row for every coordinate
    products    sum_i v_i v_i', or of (v_i, 2 y_i - 1)
    gradient    sum_i v_i (p_i - y_i)       p_i = sigmoid(psi.v_i)
    curvature   sum_i p_i (1 - p_i) v_i v_i'
    spread      sum_i s_i s_i'              s_i: the clipped gradient of row i

A row adds a vector of length at most `bound`, or a matrix of Frobenius norm at most `bound`; longer ones are scaled
down to it. A person adds the mean over their rows, and the spread is that of persons; a row of weight w in [0, 1] adds
that part. Of a matrix the upper triangle is released, every entry once. Bounds are enforced on the whole numbers, and
a diagonal must be nonnegative: that is what the factor sqrt 2 under replace-one rests on (docs/proofs/inference.md,
Lemmas 1 and 2).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse.domain.clipping import Part
from dpsparse.jit import njit
from dpsparse.rows.parts import Query
from dpsparse.sensitivity import clipped_gradient_sum, second_moments

if TYPE_CHECKING:
    from dpsparse.rows.memory import Rows

WIDEST = 80  # columns, the constant among them: squares of an upper triangle are added to 2^-40
_PRODUCTS, _LABELLED, _GRADIENT, _CURVATURE, _SPREAD = range(5)
_jit = njit(cache=True, nogil=True, error_model="numpy")


def products(rows: Rows, to: np.ndarray | None, bound: float, *, labelled: bool = False) -> Query:
    """Of v, or `labelled` of (v, 2 y - 1); without `to` of the rows as they are."""
    return _query(rows, _LABELLED if labelled else _PRODUCTS, to, None, bound)


def gradient(rows: Rows, to: np.ndarray, weights: np.ndarray, bound: float) -> Query:
    """Of the logistic loss at released weights of the coordinates."""
    return _query(rows, _GRADIENT, to, weights, bound)


def curvature(rows: Rows, to: np.ndarray, weights: np.ndarray, bound: float) -> Query:
    """The second derivative there."""
    return _query(rows, _CURVATURE, to, weights, bound)


def spread(rows: Rows, to: np.ndarray, weights: np.ndarray, bound: float) -> Query:
    """Second moments of gradients that are clipped to length sqrt(bound)."""
    return _query(rows, _SPREAD, to, weights, bound)


def matrix(values: np.ndarray) -> np.ndarray:
    """The symmetric matrix of an upper triangle."""
    size = int((np.sqrt(8 * len(values) + 1) - 1) / 2)
    out = np.zeros((size, size))
    rows, columns = np.triu_indices(size)
    out[rows, columns] = values
    out[columns, rows] = values
    return out


def _query(
    rows: Rows, kind: int, to: np.ndarray | None, weights: np.ndarray | None, bound: float
) -> Query:
    width = rows.n_features if to is None else len(to)
    to = np.empty((0, 0)) if to is None else np.ascontiguousarray(to, np.float64)
    weights = np.zeros(width) if weights is None else np.asarray(weights, np.float64)
    size = width + (kind == _LABELLED)
    assert size <= WIDEST
    entries = size if kind == _GRADIENT else size * (size + 1) // 2
    lemma = clipped_gradient_sum if kind == _GRADIENT else second_moments

    def whole(unit: float) -> np.ndarray:
        add = partial(_add_part, kind, to, weights, size, bound, unit)
        return rows._parts.sum((entries,), add)

    return Query((entries,), partial(lemma, bound), whole)


def _add_part(
    kind: int, to: np.ndarray, weights: np.ndarray, size: int, bound: float, unit: float,
    part: Part, out: np.ndarray,
) -> None:  # fmt: skip
    starts = np.arange(len(part) + 1) if part.starts is None else part.starts
    worth = np.ones(len(part), np.float32) if part.worth is None else part.worth
    rows: tuple[Any, ...] = (part.indptr, part.indices, part.values, part.targets, worth)
    _add_units(kind, starts.astype(np.int64), *rows, to, weights, size, bound, unit, out)


@_jit
def _add_units(
    kind, starts, indptr, indices, values, targets, worth, to, weights, size, bound, unit, out
):
    """A unit is a row, or a person with all of their rows."""
    k = weights.size
    of_vectors = kind in (_GRADIENT, _SPREAD)
    x, v, mean = np.empty(k + 1 if to.size == 0 else to.shape[1]), np.empty(size), np.empty(size)
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
            y, counts = np.float64(targets[row]), share * worth[row]
            if to.size == 0:
                v[:k] = x[:k]
            else:
                for a in range(k):
                    v[a] = 0.0
                    for b in range(x.size):
                        v[a] += to[a, b] * x[b]
            if kind == _LABELLED:
                v[k] = 2.0 * y - 1.0
            c = 1.0
            if kind >= _GRADIENT:
                p = _chance(v, weights)
                if of_vectors:
                    for a in range(k):
                        mean[a] += counts * (p - y) * v[a]
                    continue
                c = p * (1.0 - p)
            length = c * np.sum(v * v)  # the Frobenius norm of c v v'
            _add_square(counts * (c if length <= bound else c * (bound / length)), v, total)
        if of_vectors:
            length = np.sum(mean * mean)
            longest = bound if kind == _SPREAD else bound * bound
            c = 1.0 if length <= longest else longest / length
            if kind == _GRADIENT:
                total[:] = np.sqrt(c) * mean
            else:
                _add_square(c, mean, total)
        _add_whole(kind == _GRADIENT, total, size, bound, unit, whole, out)


@_jit
def _chance(v, weights):
    """sigmoid(weights.v)."""
    margin = 0.0
    for a in range(weights.size):
        margin += weights[a] * v[a]
    if margin >= 0.0:
        return 1.0 / (1.0 + np.exp(-margin))
    return 1.0 - 1.0 / (1.0 + np.exp(margin))


@_jit
def _add_square(c, v, total):
    """c v v', upper triangle."""
    at = 0
    for a in range(v.size):
        for b in range(a, v.size):
            total[at] += c * v[a] * v[b]
            at += 1


@_jit
def _add_whole(vector, total, size, bound, unit, whole, out):
    """What a unit adds, in whole numbers, if it keeps the bound; a diagonal entry must not be negative."""
    fine = (1.0 - 2.0**-30) / unit
    limit = (bound / unit) ** 2 * (1.0 - 2.0**-40)
    squares, sound, at = 0.0, True, 0
    for a in range(1 if vector else size):
        for b in range(a, size):
            scaled = total[at] * fine
            # False for what is no number.
            sound = sound and abs(scaled) <= bound * fine * (1.0 + 2.0**-20)
            t = np.trunc(scaled) if sound else 0.0
            whole[at] = np.int64(t)
            diagonal = a == b and not vector
            sound = sound and (not diagonal or t >= 0.0)
            squares += t * t if vector or a == b else 2.0 * t * t
            at += 1
    if sound and squares <= limit:
        for j in range(out.size):
            out[j] += whole[j]

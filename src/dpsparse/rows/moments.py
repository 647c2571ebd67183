"""Second moments of rows of length at most one: what tests and scalings need beside gradients.

    sum_i z_i z_i'
    sum_i z_i^2             feature by feature

Of a matrix the upper triangle is released, every entry once. A row's matrix is made whole entry by entry, its
Frobenius norm is compared as whole numbers, and its diagonal must be nonnegative: that is what the factor sqrt 2
under replace-one rests on (docs/proofs/inference.md, Lemma 1).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dpsparse.jit import njit
from dpsparse.rows.parts import Query
from dpsparse.rows.unit import UnitRows
from dpsparse.sensitivity import feature_masses, second_moments

WIDEST = 80  # columns, the constant among them: squares of an upper triangle are added to 2^-40
_ROW = 2.0**-29  # rows of length one, in the units of unit rows

_jit = njit(cache=True, nogil=True, error_model="numpy")


def products(units: UnitRows) -> Query:
    """The upper triangle, row by row, of sum z_i z_i' without the constant; of a person the mean over their rows."""
    assert units.width <= WIDEST
    entries = units.width * (units.width + 1) // 2

    def whole(unit: float) -> np.ndarray:
        return units._parts.sum((entries,), partial(_add_part, units.width, unit))

    return Query((entries,), partial(second_moments, 1.0), whole)


def matrix(values: np.ndarray) -> np.ndarray:
    """The symmetric matrix of an upper triangle."""
    size = int((np.sqrt(8 * len(values) + 1) - 1) / 2)
    out = np.zeros((size, size))
    rows, columns = np.triu_indices(size)
    out[rows, columns] = values
    out[columns, rows] = values
    return out


def squares(units: UnitRows) -> Query:
    """sum_i z_ij^2: nonnegative, and of norm at most one a row because sum z^4 <= (sum z^2)^2; of a person the mean
    over their rows, which is no longer."""

    def whole(unit: float) -> np.ndarray:
        fine = (1.0 - 2.0**-40) * _ROW**2 / unit
        return units._parts.sum((units.width,), partial(_add_part_squares, fine))

    return Query((units.width,), partial(feature_masses, 1.0), whole)


def _add_part(size: int, unit: float, p: Any, out: np.ndarray) -> None:
    run: Any = _add_triangles
    run(p.indptr, p.columns, p.z, _shares(p), size, unit, out)


def _shares(p: Any) -> np.ndarray:
    """One for every row, or for all rows of a person together; of that the weight of the row."""
    shares = np.ones(len(p.targets))
    if p.persons is not None:
        rows = np.diff(p.starts)
        shares = np.repeat(1.0 / rows, rows)
    return shares if p.worth is None else shares * p.worth


def _add_part_squares(fine: float, p: Any, out: np.ndarray) -> None:
    run: Any = _add_squares
    run(p.indptr, p.columns, p.z, _shares(p), fine, out)


@_jit
def _add_squares(indptr, columns, z, shares, fine, out):
    """A person with m rows adds 1/m of each: sums of truncated shares are at most what is truncated once."""
    for i in range(indptr.size - 1):
        share = fine * shares[i]
        for p in range(indptr[i], indptr[i + 1]):
            out[columns[p]] += np.int64(np.float64(z[p]) * np.float64(z[p]) * share)


@_jit
def _add_triangles(indptr, columns, z, weights, size, unit, out):
    limit = (1.0 / unit) ** 2 * (1.0 - 2.0**-40)
    fine = (1.0 - 2.0**-30) / unit
    f, whole = np.empty(size), np.empty(out.size, np.int64)
    for i in range(indptr.size - 1):
        f[:] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            f[columns[p]] = z[p] * _ROW
        c = weights[i]
        at, frobenius, sound = 0, 0.0, True
        for a in range(size):
            for b in range(a, size):
                v = c * f[a] * f[b] * fine
                sound = sound and abs(v) <= fine  # false for what is not a number
                t = np.trunc(v) if sound else 0.0
                whole[at] = np.int64(t)
                sound = sound and (a != b or t >= 0.0)
                frobenius += t * t if a == b else 2.0 * t * t
                at += 1
        if sound and frobenius <= limit:
            for k in range(out.size):
                out[k] += whole[k]

"""Persons with several rows: what all rows of a person add together is bounded as one row is.

    V_p = sum over the rows i of p of R_i Z_i'            whole numbers, added exactly: any order, the same V
    whole(v_p) = trunc(V_p * s_p * fine)                   s_p = min(1, bound / ||V_p||), one truncation a column

The rows of a person are adjacent; `starts` says where each person begins. A person with one row adds, bit for
bit, what that row adds without persons. To make every row's share whole first would not do: trunc(1.0) + trunc(-0.9)
is 1, and 1.0 - 0.9 is a tenth. Here the norm is that of the whole numbers V_p themselves, and one truncation
follows, which shortens (docs/proofs/persons.md, Lemmas 1 and 2).

Means over the rows of a person serve short vectors (counts, totals, shares of rows below a point).
No function of kernels.py runs inside these kernels: Numba's cache does not notice edits in another file.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsparse.domain.clipping import Part
from dpsparse.jit import njit
from dpsparse.rows.kernels import CERTAIN, SLOPE, UNIT_ROW

_jit = njit(cache=True, nogil=True, error_model="numpy")


@dataclass(frozen=True, eq=False)
class Persons:
    """The persons of a part on kept columns: `columns[first[p]:first[p + 1]]` are the columns that occur in
    their rows, rising, and `slot` says for every entry of a row which of them it is."""

    starts: np.ndarray
    first: np.ndarray
    columns: np.ndarray
    slot: np.ndarray

    @classmethod
    def of(cls, starts: np.ndarray, indptr: np.ndarray, columns: np.ndarray) -> Persons:
        slot = np.empty(len(columns), np.int32)
        found = np.empty(len(columns), np.int32)
        first = np.zeros(len(starts), np.int64)
        size = _occurring(starts, indptr, columns, first, found, slot)
        return cls(starts, first, found[:size].copy(), slot)

    def sums(
        self,
        indptr: np.ndarray,
        z: np.ndarray,
        constant: np.ndarray,
        slopes: np.ndarray,
        lengths: tuple[float, float, float],
        start: int,
        stop: int,
        out: np.ndarray,
    ) -> None:
        """out[:-1] += contributions of the persons from `start` to `stop`, out[-1] those of the constant.

        `lengths` are a step, the longest and the largest: a person's contribution has norm at most `longest` products
        and, before that, entries of at most `largest` products."""
        _sums(
            self.starts, self.first, self.columns, self.slot, indptr, z, constant, slopes, *lengths,
            start, stop, out[:-1], out[-1],
        )  # fmt: skip


def means(starts: np.ndarray | None, values: np.ndarray) -> np.ndarray:
    """One row of `values` a person: the mean of theirs, in any order the same."""
    if starts is None:
        return values
    values = np.ascontiguousarray(values, np.float64)
    out = np.empty((len(starts) - 1, values.shape[1]))
    _means(starts, values, out)
    return out


def at_most(m: int, part: Part, keys: np.ndarray) -> Part:
    """The `m` rows of smallest key of every person who has more; random keys know nothing of the rows."""
    starts = part.starts
    assert starts is not None
    person = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((keys, person))
    place = np.empty(len(part), np.int64)
    place[order] = np.arange(len(part)) - starts[person]  # in a random order of the person's rows
    kept = np.flatnonzero(place < m)
    sizes = np.minimum(np.diff(starts), m)
    return part.take(kept, np.concatenate([[0], np.cumsum(sizes)]))


# ---- kernels -------------------------------------------------------------------------------------


@_jit
def _occurring(starts, indptr, columns, first, found, slot):
    """The different columns of every person, sorted, one person after the other; their number."""
    size = 0
    for p in range(starts.size - 1):
        begin, end = indptr[starts[p]], indptr[starts[p + 1]]
        mine = np.sort(columns[begin:end])
        first[p] = size
        for q in range(mine.size):
            if q == 0 or mine[q] != mine[q - 1]:
                found[size] = mine[q]
                size += 1
        theirs = found[first[p] : size]
        for q in range(begin, end):
            slot[q] = np.searchsorted(theirs, columns[q])
    first[starts.size - 1] = size
    return size


@_jit
def _sums(
    starts, first, columns, slot, indptr, z, constant, slopes, fine, longest, largest, start, stop,
    out, out_constant,
):  # fmt: skip
    K = slopes.shape[1]
    room = 9  # 2^9 products of 2^53 fit 63 bits; the sums of persons with more rows lose low bits
    widest = 0
    for p in range(start, stop):
        widest = max(widest, first[p + 1] - first[p])
    total = np.zeros((widest + 1, K), np.int64)
    for p in range(start, stop):
        size = first[p + 1] - first[p]
        rows = starts[p + 1] - starts[p]
        shift = 0
        while (rows - 1) >> (shift + room) > 0:
            shift += 1
        total[: size + 1] = 0
        for i in range(starts[p], starts[p + 1]):
            for k in range(K):
                r = np.int64(slopes[i, k])
                if r == 0:
                    continue
                for q in range(indptr[i], indptr[i + 1]):
                    total[slot[q], k] += (r * np.int64(z[q])) >> shift
                total[size, k] += (r * np.int64(constant[i])) >> shift
        product = SLOPE * UNIT_ROW / 2.0**shift
        most = np.int64(min(largest, 2.0**room) * product)
        squares = 0.0
        for j in range(size + 1):
            for k in range(K):
                total[j, k] = min(max(total[j, k], -most), most)
                squares += np.float64(total[j, k]) ** 2
        scale = 2.0**shift * fine
        bound = longest * product
        if not squares <= bound * bound * CERTAIN:
            scale *= bound / np.sqrt(squares) * (1.0 - 2.0**-20)  # a little below the bound
        for j in range(size):
            for k in range(K):
                out[columns[first[p] + j], k] += np.int64(total[j, k] * scale)
        for k in range(K):
            out_constant[k] += np.int64(total[size, k] * scale)


@_jit
def _means(starts, values, out):
    for p in range(starts.size - 1):
        rows = starts[p + 1] - starts[p]
        for k in range(values.shape[1]):
            mine = np.sort(values[starts[p] : starts[p + 1], k])
            total = 0.0
            for v in mine:
                total += v
            out[p, k] = total / rows

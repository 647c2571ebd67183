"""Kernels over some rows of a part: where contributions become whole numbers, and bounds are enforced.

    z_i = (D x_i, constant) / max(||(D x_i, constant)||, shortest)         Z_i = trunc(2^29 z_i),   ||Z_i|| <= 2^29
    or z_i = x_i / b for a bound b on its entries                           |Z_ij| <= 2^29,          ||Z_i|| <= 2^29 R/b
    r_i = slope of the loss at the margin of row i, clipped to norm c       R_i = trunc(2^24 r_i/c), ||R_i|| <= 2^24
    v_i = c z_i r_i'                                                        whole part of R_ik Z_ij * fine

Z and R are whole, and their norms are compared as they are; a row that fails is set to zero. R_ik Z_ij has
at most 53 bits, so the product is exact in float64, and `fine` = (1 - 2^-40) c 2^-53 / unit leaves room for
the one rounding that follows: ||whole(v_i)|| <= c / unit (docs/proofs/whole_numbers.md).

Slopes are those of loss_kernels.py. A row of weight w in [0, 1] (`worth`; empty where all rows count in full) adds
w R_i instead of R_i, and w |Z_i| to masses: no entry grows (docs/proofs/weights.md).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np

from dpsparse.jit import fetch, njit
from dpsparse.rows.loss_kernels import LOGISTIC, inner, slope, softmax

UNIT_ROW, SLOPE = 2.0**29, 2.0**24  # units of a row of length 1, of a slope as large as its clip
# Rounding must not cost a row, so rows are this much shorter.
SAFE_ROW = UNIT_ROW * (1.0 - 2.0**-20)
# Squares of whole numbers are added in float64: for fewer than 2^31 entries the sum is right to 2^-22.
CERTAIN = 1.0 - 2.0**-21
SAFE = 1.0 - 2.0**-30  # the same for short vectors
MASSES, TOTALS, SQUARES = range(3)  # what is summed column by column

FAR = 2**16  # numbers that outgrow the nearest caches

_jit: Any = njit(cache=True, nogil=True, error_model="numpy")


@inner
def _within(x, limit):
    """x truncated to a whole number of at most `limit`; zero where x is not a number."""
    if not abs(x) <= limit:
        return limit if x > limit else (-limit if x < -limit else 0.0)
    return np.trunc(x)


@inner
def _look_ahead(columns, p, numbers):
    """Ask for the number that an entry some way behind entry p will need."""
    later = min(p + np.uint64(128), np.uint64(columns.size - 1))
    fetch(numbers, np.uint64(np.uint32(columns[later])))


# ---- rows of length one --------------------------------------------------------------------------


@_jit
def count_kept(indptr, indices, scaling, start, stop, out):
    """out[i + 1] <- number of entries of row i in columns of a scale other than 0."""
    for i in range(start, stop):
        lo, hi, count = np.uint64(indptr[i]), np.uint64(indptr[i + 1]), 0
        for p in range(lo, hi):
            if scaling.size > FAR:
                _look_ahead(indices, p, scaling)
            count += scaling[np.uint32(indices[p])] != 0.0
        out[i + 1] = count


@_jit
def unit_rows(
    indptr, indices, values, scaling, place, constant, shortest, fixed, longest, start, stop,
    out_indptr, out_columns, out_z, out_constant, out_norm, out_length,
):  # fmt: skip
    """Z_i, the length of D x_i, and the norm it was divided by (`fixed`, if positive), on kept columns;
    whole rows longer than `longest` times 2^29 count as empty. `place` is empty if all columns are kept:
    then columns keep their numbers and are not written again."""
    limit = (longest * UNIT_ROW) ** 2 * CERTAIN
    for i in range(start, stop):
        lo, hi = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        squares = 0.0
        for p in range(lo, hi):
            if scaling.size > FAR:
                _look_ahead(indices, p, scaling)
                if place.size > 0:
                    _look_ahead(indices, p, place)
            squares += (np.float64(values[p]) * scaling[np.uint32(indices[p])]) ** 2
        out_length[i] = np.sqrt(squares)
        norm = fixed if fixed > 0.0 else max(np.sqrt(squares + constant * constant), shortest)
        out_norm[i] = norm
        factor = SAFE_ROW / norm if norm > 0.0 else 0.0
        z = _within(constant * factor, UNIT_ROW)
        out_constant[i] = np.int32(z)
        total = z * z
        first, end = np.uint64(out_indptr[i]), np.uint64(out_indptr[i + 1])
        at = first
        if place.size == 0:  # two loops, because this one needs no branch
            for p in range(lo, hi):
                x = np.float64(values[p]) * scaling[np.uint32(indices[p])]
                z = _within(x * factor, UNIT_ROW)
                out_z[p] = np.int32(z)
                total += z * z
            at = hi
        else:
            for p in range(
                lo, hi
            ):  # what is dropped is 0 and written over by the next: no branch to guess
                j = np.uint32(indices[p])
                if at < end:
                    z = _within(np.float64(values[p]) * scaling[j] * factor, UNIT_ROW)
                    out_z[at] = np.int32(z)
                    out_columns[at] = place[j]
                    at += np.uint64(scaling[j] != 0.0)
                    total += z * z
        if not total <= limit:
            out_constant[i] = 0
            for q in range(first, at):
                out_z[q] = 0


@_jit
def column_sums(kind, indptr, columns, z, shares, fine, start, stop, out):
    """out_j += whole part of |Z_ij| (MASSES), Z_ij (TOTALS) or Z_ij^2 (SQUARES) times `fine` and the share of row i."""
    for i in range(start, stop):
        lo, hi = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        step = fine * shares[i] if shares.size > 0 else fine
        for p in range(lo, hi):
            if out.size > FAR:
                _look_ahead(columns, p, out)
            value = np.float64(z[p])
            if kind == SQUARES:
                value *= value
            elif kind == MASSES:
                value = abs(value)
            out[np.uint32(columns[p])] += np.int64(value * step)


@_jit
def margins(indptr, columns, z, constant, norm, weights, constant_weight, start, stop, out):
    """out_ik <- margin of row i on the original features: norm_i z_i.w_k."""
    for i in range(start, stop):
        for k in range(weights.shape[1]):
            m = constant[i] * constant_weight[k]
            for p in range(indptr[i], indptr[i + 1]):
                m += z[p] * weights[columns[p], k]
            out[i, k] = m * (1.0 / UNIT_ROW) * norm[i]


# ---- gradients -----------------------------------------------------------------------------------
# `boost` holds a public weight of every class, or nothing; slopes are multiplied by it before they are clipped.


@inner
def _slopes_of_one(
    indptr, columns, z, constant, targets, worth, weights, constant_weight, offset,
    loss, cutoff, clip, boost, start, stop, r,
):  # fmt: skip
    """r <- R_i of one output for the rows start..stop-1, in short loops that the processor can take four at a time."""
    w, n = weights.reshape(weights.size), stop - start
    lo = np.uint64(indptr[start])  # unsigned positions need no check for wrap-around
    for i in range(n):
        hi = np.uint64(indptr[start + i + 1])
        m = constant[start + i] * constant_weight[0]
        for p in range(lo, hi):
            if w.size > FAR:
                _look_ahead(columns, p, w)
            m += z[p] * w[np.uint32(columns[p])]
        r[i] = m * (1.0 / UNIT_ROW)
        lo = hi
    b = offset[0]
    for i in range(n):
        r[i] = slope(loss, r[i] + b, targets[start + i], cutoff)
    if boost.size > 0:
        for i in range(n):
            r[i] *= boost[np.int64(targets[start + i])]
    for i in range(n):
        r[i] = _within(r[i] * (SLOPE / clip), SLOPE)
    if worth.size > 0:
        for i in range(n):
            r[i] *= worth[start + i]


@inner
def _whole_slopes(
    i, indptr, columns, z, constant, targets, worth, weights, constant_weight, offset,
    cutoff, clip, boost, r,
):  # fmt: skip
    """r <- R_i of several outputs (softmax): at most `cutoff` each, as a vector clipped to norm `clip`.
    False, and zeros, where the whole numbers are too long."""
    K = r.size
    for k in range(K):
        r[k] = constant[i] * constant_weight[k]
    for p in range(indptr[i], indptr[i + 1]):
        j = columns[p]
        for k in range(K):
            r[k] += z[p] * weights[j, k]
    for k in range(K):
        r[k] = r[k] * (1.0 / UNIT_ROW) + offset[k]
    softmax(r)
    squares = 0.0
    for k in range(K):
        r[k] -= 1.0 if k == targets[i] else 0.0
        if boost.size > 0:
            r[k] *= boost[np.int64(targets[i])]
        squares += r[k] * r[k]
    unit = SLOPE / max(clip, np.sqrt(squares) * (1.0 + 2.0**-40))
    most = np.trunc(min(cutoff / clip, 1.0) * SLOPE)
    whole = np.int64(0)
    for k in range(K):
        r[k] = _within(r[k] * unit, most)
        whole += np.int64(r[k]) ** 2
        if whole > 2**48:  # SLOPE squared, at once: 2^15 squares of at most 2^48 would wrap around
            r[:] = 0.0
            return False
    if worth.size > 0:
        for k in range(K):
            r[k] *= worth[i]
    return True


@_jit
def gradient_one(
    indptr, columns, z, constant, targets, worth, weights, constant_weight, offset,
    loss, cutoff, clip, boost, fine, start, stop, out, out_constant,
):  # fmt: skip
    """One output: out_j += whole part of R_i Z_ij * fine, some rows at a time, which the second look finds in
    the cache."""
    most_rows, most_entries = 1024, 2**15  # that are looked at twice
    sums, r = out.reshape(out.size), np.empty(most_rows)
    while start < stop:
        end = start + 1
        while end < min(stop, start + most_rows) and indptr[end] - indptr[start] < most_entries:
            end += 1
        _slopes_of_one(
            indptr, columns, z, constant, targets, worth, weights, constant_weight, offset,
            loss, cutoff, clip, boost, start, end, r,
        )  # fmt: skip
        total = np.int64(0)
        lo = np.uint64(indptr[start])
        for i in range(end - start):
            hi, slope = np.uint64(indptr[start + i + 1]), r[i]
            for p in range(lo, hi):
                if sums.size > FAR:
                    _look_ahead(columns, p, sums)
                sums[np.uint32(columns[p])] += np.int64(slope * z[p] * fine)
            total += np.int64(slope * constant[start + i] * fine)
            lo = hi
        out_constant[0] += total
        start = end


@_jit
def gradient_many(
    indptr, columns, z, constant, targets, worth, weights, constant_weight, offset,
    loss, cutoff, clip, boost, fine, start, stop, out, out_constant,
):  # fmt: skip
    """Several outputs: the same with a vector of slopes."""
    K = weights.shape[1]
    r = np.empty(K)
    for i in range(start, stop):
        sound = _whole_slopes(
            i, indptr, columns, z, constant, targets, worth, weights, constant_weight, offset,
            cutoff, clip, boost, r,
        )  # fmt: skip
        if not sound:
            continue
        for p in range(indptr[i], indptr[i + 1]):
            j = columns[p]
            for k in range(K):
                out[j, k] += np.int64(r[k] * z[p] * fine)
        for k in range(K):
            out_constant[k] += np.int64(r[k] * constant[i] * fine)


@_jit
def slopes(
    indptr, columns, z, constant, targets, worth, weights, constant_weight, offset,
    loss, cutoff, clip, boost, start, stop, out,
):  # fmt: skip
    """out_i <- R_i, for sums that are taken person by person (persons.py)."""
    if out.shape[1] == 1:
        _slopes_of_one(
            indptr, columns, z, constant, targets, worth, weights, constant_weight, offset,
            loss, cutoff, clip, boost, start, stop, out[start:stop, 0],
        )  # fmt: skip
    else:
        for i in range(start, stop):
            _whole_slopes(
                i, indptr, columns, z, constant, targets, worth, weights, constant_weight, offset,
                cutoff, clip, boost, out[i],
            )  # fmt: skip


# ---- short vectors -------------------------------------------------------------------------------


@_jit
def short_sum(values, unit, bound, positive, out):
    """out_k += trunc(values_ik / unit) over rows whose whole numbers have norm at most bound/unit."""
    limit = bound / unit
    limit = limit * limit * (1.0 - 2.0**-32)  # squares of whole numbers are added in float64
    fine = SAFE / unit
    for i in range(values.shape[0]):
        squares = 0.0
        sound = True
        for k in range(values.shape[1]):
            whole = np.trunc(values[i, k] * fine)
            sound = sound and (whole >= 0.0 or not positive)
            squares += whole * whole
        if sound and squares <= limit:  # false for what is not a number
            for k in range(values.shape[1]):
                out[k] += np.int64(values[i, k] * fine)


@_jit
def probabilities(margins, offset, out):
    """Class probabilities of every row; one column of margins stands for the second of two classes."""
    for i in range(out.shape[0]):
        if margins.shape[1] == 1:
            p = slope(LOGISTIC, margins[i, 0] + offset[0], 0.0, np.inf)
            out[i, 0], out[i, 1] = 1.0 - p, p
            continue
        for k in range(out.shape[1]):
            out[i, k] = margins[i, k] + offset[k]
        softmax(out[i])

"""Noisy sums over rows on a public grid: every gradient, mass and count of the gradient methods.

    unit  = scale / STEPS                                STEPS = 2^28: the grid, public
    q_j   = sum_i trunc(v_ij / unit)                     v_i = contribution of row i; an integer
    out_j = unit * (q_j + K_j),  K = round(Z), Z ~ N(0, STEPS^2)

Truncation towards zero never lengthens a row, so ||v_i||_2 <= C bounds the integer query by C/unit;
integer sums do not depend on order, and int64 wraps around, which is post-processing. q_j is whole,
so q_j + round(Z) = round(q_j + Z): the Gaussian mechanism, rounded. Its price is exactly that of
Gaussian noise. Law, sampler and accounting: docs/proofs/rounded_gaussian.md.

The sampler is proposal and exact acceptance. |K| < 16 STEPS is cut into 2048 bins of 2^21 integers.
A bin is drawn from integer weights (alias method), an integer of it uniformly, and it is accepted
with probability a = A_b exp(-t) (1 + 2^-56 correction), t = (k^2 - k_b^2)/(2 STEPS^2), where A_b
undoes the rounding of the weights. 93 % of the proposals are accepted by one integer comparison and
one 53-bit uniform; closer calls compare in float64, and calls closer than 2^-45 in double-double.

Work is cut into a fixed number of blocks with a stream each, so a seeded result does not depend on
the number of threads. All kernels are here because a cached kernel does not notice edits elsewhere.
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal, localcontext
from typing import NamedTuple

import numba
import numpy as np
import scipy.sparse as sp

from dpsparse.random import Generator, spawn

STEPS = 2**28
GRID, FLOAT, NONE = 0, 1, 2
_MODES = {"grid": GRID, "float64": FLOAT}
_BINS, _WIDTH = 2048, 2**21
_EXPONENT_UNIT = 0.5 / STEPS**2
# One row may not exceed its bound by rounding: float32 values lose 6e-8, float64 sums far less.
SHRINK = 1.0 - 1e-6
_U1, _U4, _U5, _U15, _U26, _U42, _UFFFF, _UOFFSET = (
    np.uint64(v) for v in (1, 4, 5, 15, 26, 42, 0xFFFF, _WIDTH - 1)
)
_BLOCKS = 8
_SMALL = 2**15  # below this many columns one thread is faster


def _tables() -> tuple[np.ndarray, ...]:
    """Alias table of 2048 columns of weight 2^16, bounds for quick acceptance, A_b in two parts."""
    total, column = _BINS << 16, 1 << 16
    with localcontext() as context:
        context.prec = 50
        heights = [(-(Decimal(b * _WIDTH) ** 2) / (2 * STEPS**2)).exp() for b in range(_BINS)]
        factor = int((total - _BINS) / sum(heights))
        weights = [math.ceil(factor * height) for height in heights]
        weights[0] += total - sum(weights)
        accept = [factor * h / w for h, w in zip(heights, weights, strict=True)]
        high = np.array([float(a) for a in accept])
        low = np.array([float(a - Decimal(float(a))) for a in accept])
    ends = (2.0 * np.arange(_BINS) + 1.0) * _WIDTH**2 * _EXPONENT_UNIT
    least = high * np.exp(-ends) * (1.0 - 1e-12)  # below every A_b exp(-t) of the bin
    least[least < 2.0**-16] = 0.0  # the 57 bits compared with it must be finer than its margin
    threshold, alias = np.full(_BINS, column), np.arange(_BINS)
    poor = [b for b in range(_BINS) if weights[b] < column]
    rich = [b for b in range(_BINS) if weights[b] > column]
    while poor:
        b, r = poor.pop(), rich[-1]
        threshold[b], alias[b] = weights[b], r
        weights[r] -= column - weights[b]
        if weights[r] <= column:
            rich.pop()
            if weights[r] < column:
                poor.append(r)
    quick = np.floor(16.0 * least)
    return (*(v.astype(np.uint64) for v in (threshold, alias, quick)), least, high, low)


_THRESHOLD, _ALIAS, _QUICK, _LEAST, _ACCEPT, _ACCEPT_LOW = _tables()


@numba.njit(cache=True, nogil=True, inline="always")
def _draw(rng):  # type: ignore[no-untyped-def]
    """One rounded Gaussian integer of scale STEPS.

    Inlined (a call would count references of `rng`), without a branch on random bits and with
    unsigned indices (signed ones are checked for wrap-around): each is worth a third of the time.
    """
    while True:
        # 11 bits column, 16 threshold, 21 offset, 1 sign, 4 coin
        word = np.uint64(np.int64(rng.random() * 2.0**53))
        column = word >> _U42
        other = _ALIAS[column]
        own = ((word >> _U26) & _UFFFF) < _THRESHOLD[column]
        bin_ = column if own else other
        offset = (word >> _U5) & _UOFFSET
        coin = word & _U15
        if coin < _QUICK[bin_] or _accepts(
            np.int64(bin_), np.int64(offset), np.int64(coin), rng.random(), rng.random()
        ):
            k = np.int64(bin_) * _WIDTH + np.int64(offset)
            minus = np.int64((word >> _U4) & _U1)
            if k > 0 or minus == 0:  # zero must not be counted twice
                break
    return (k ^ -minus) + minus


@numba.njit(cache=True, nogil=True)
def _accepts(bin_, offset, coin, rest, last):  # type: ignore[no-untyped-def]
    """Whether the uniform (coin + rest + 2^-53 last)/16 lies below the acceptance probability."""
    uniform = (coin + rest) * 0.0625
    if uniform < _LEAST[bin_]:
        return True
    exponent = offset * (offset + 2 * _WIDTH * bin_)
    accept = _ACCEPT[bin_] * np.exp(-(exponent * _EXPONENT_UNIT))
    if abs(uniform - accept) > 2.0**-45:
        return uniform < accept
    return _accepts_closely(bin_, exponent, coin, rest, last)


@numba.njit(cache=True, nogil=True)
def _accepts_closely(bin_, exponent, coin, rest, last):  # type: ignore[no-untyped-def]
    """The same comparison with about 100 bits: Horner's rule on the series of exp."""
    upper = exponent >> 26 << 26
    t, t_low = _two_sum(upper * _EXPONENT_UNIT, (exponent - upper) * _EXPONENT_UNIT)
    e, e_low = 1.0, 0.0
    for n in range(24, 0, -1):  # e = 1 - t e / n
        p, p_low = _two_product(t, e)
        p_low += t * e_low + t_low * e
        q = p / n
        r, r_low = _two_product(q, float(n))
        e, e_low = _two_sum(1.0, -q)
        e_low -= ((p - r) - r_low + p_low) / n
        e, e_low = _two_sum(e, e_low)
    a, a_low = _two_product(_ACCEPT[bin_], e)
    a_low += _ACCEPT[bin_] * e_low + _ACCEPT_LOW[bin_] * e
    # P(round(Z) = k) over the density at k is 1 + (x^2 - 1)/(24 STEPS^2), x = k/STEPS, up to 2^-100
    square = (bin_ * _WIDTH / STEPS) ** 2 + 2.0 * t
    a_low += a * (square - 1.0) / (24.0 * STEPS**2)
    gap, gap_low = _two_sum(coin * 0.0625, -a)
    gap, more = _two_sum(gap, rest * 0.0625)
    return gap + (gap_low + more + last * 2.0**-57 - a_low) < 0.0


@numba.njit(cache=True, nogil=True)
def _two_sum(a, b):  # type: ignore[no-untyped-def]
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


@numba.njit(cache=True, nogil=True)
def _two_product(a, b):  # type: ignore[no-untyped-def]
    p = a * b
    c = 134217729.0 * a  # 2^27 + 1
    a_high = c - (c - a)
    c = 134217729.0 * b
    b_high = c - (c - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@numba.njit(cache=True, nogil=True)
def _fill(rng, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        out[i] = _draw(rng)


@numba.njit(cache=True, nogil=True)
def _pull(  # type: ignore[no-untyped-def]
    rng, indptr, rows, values, slopes, weight, start, stop, scale, mode, positive, decay, gain, out
):
    """out_jk <- decay out_jk + gain (weight_j sum_i slopes_ik x_ij + noise); columns of weight 0
    are dropped: they get no noise and out_jk = 0."""
    n_outputs = slopes.shape[1]
    sums = np.zeros(n_outputs)
    whole = np.zeros(n_outputs, dtype=np.int64)
    unit = scale / STEPS
    for j in range(start, stop):
        d = np.float64(weight[j])
        if d == 0.0:
            for k in range(n_outputs):
                out[j, k] = 0.0
            continue
        if mode == GRID:
            fine = d / unit
            for k in range(n_outputs):
                whole[k] = 0
            for p in range(indptr[j], indptr[j + 1]):
                x = np.float64(abs(values[p]) if positive else values[p]) * fine
                for k in range(n_outputs):
                    whole[k] += np.int64(slopes[rows[p], k] * x)
            for k in range(n_outputs):
                sums[k] = (whole[k] + _draw(rng)) * unit
        else:
            for k in range(n_outputs):
                sums[k] = 0.0
            for p in range(indptr[j], indptr[j + 1]):
                x = np.float64(abs(values[p]) if positive else values[p]) * d
                for k in range(n_outputs):
                    sums[k] += slopes[rows[p], k] * x
            if mode == FLOAT:
                for k in range(n_outputs):
                    sums[k] += rng.standard_normal() * scale
        for k in range(n_outputs):
            out[j, k] = decay * out[j, k] + gain * sums[k]


@numba.njit(cache=True, nogil=True)
def _push(indptr, columns, values, weights, start, stop, out):  # type: ignore[no-untyped-def]
    """out_ik <- sum_j x_ij weights_jk for a range of rows."""
    n_outputs = weights.shape[1]
    for i in range(start, stop):
        if n_outputs == 1:  # the sum in a register is worth a third
            total = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                total += values[p] * weights[columns[p], 0]
            out[i, 0] = total
            continue
        for k in range(n_outputs):
            out[i, k] = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            for k in range(n_outputs):
                out[i, k] += values[p] * weights[columns[p], k]


@numba.njit(cache=True, nogil=True)
def _lengths(indptr, columns, values, weight, start, stop, out):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        largest = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            largest = max(largest, abs(values[p] * weight[columns[p]]))
        squares = 0.0  # relative to the largest entry: squares must neither vanish nor overflow
        if largest > 0.0:
            for p in range(indptr[i], indptr[i + 1]):
                squares += (values[p] * weight[columns[p]] / largest) ** 2
        out[i] = largest * np.sqrt(squares)


@numba.njit(cache=True, nogil=True)
def _transpose(indptr, columns, values, out_indptr, out_rows, out_values):  # type: ignore[no-untyped-def]
    for p in range(columns.size):
        out_indptr[columns[p] + 1] += 1
    for j in range(out_indptr.size - 1):
        out_indptr[j + 1] += out_indptr[j]
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            at = out_indptr[columns[p]]
            out_rows[at] = i
            out_values[at] = values[p]
            out_indptr[columns[p]] = at + 1
    for j in range(out_indptr.size - 1, 0, -1):
        out_indptr[j] = out_indptr[j - 1]
    out_indptr[0] = 0


@numba.njit(cache=True, nogil=True)
def _filter(indptr, columns, values, weight, out_indptr, out_columns, out_values):  # type: ignore[no-untyped-def]
    """Entries of columns with a weight; returns their number."""
    at = 0
    for i in range(indptr.size - 1):
        for p in range(indptr[i], indptr[i + 1]):
            if weight[columns[p]] != 0.0:
                out_columns[at] = columns[p]
                out_values[at] = values[p]
                at += 1
        out_indptr[i + 1] = at
    return at


class Columns(NamedTuple):
    """The data by columns, for pulls; values in float32."""

    indptr: np.ndarray
    rows: np.ndarray
    values: np.ndarray


class NoisySums:
    """The one access of a gradient method to the rows: sums with noise of a given scale.

    Rows are given as `X` (CSR); the columns are built once. `noise` is "grid" (the default and the
    only one with a proof in floating point) or "float64". `scale=0` adds no noise at all.
    """

    def __init__(self, X: sp.csr_array, rng: Generator, noise: str = "grid") -> None:
        self.noise, self.shape = noise, X.shape
        self.width = X.shape[1]
        self._rngs = spawn(rng, _BLOCKS)
        self._hold(X.indptr, X.indices, X.data)

    def _hold(self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> None:
        starts = np.zeros(self.width + 1, dtype=np.int32 if len(indices) < 2**31 else np.int64)
        rows = np.empty(len(indices), dtype=np.int32 if self.shape[0] < 2**31 else np.int64)
        by_column = np.empty(len(indices), dtype=np.float32)
        _transpose(indptr, indices, values, starts, rows, by_column)
        self.rows, self.columns = (indptr, indices, values), Columns(starts, rows, by_column)

    def drop(self, weight: np.ndarray) -> None:
        """Forget the columns of weight 0, which no later sum reads: less to walk over."""
        indptr, indices, values = self.rows
        new_indptr = np.zeros_like(indptr)
        new_indices, new_values = np.empty_like(indices), np.empty(len(indices), dtype=np.float32)
        n = _filter(indptr, indices, values, weight, new_indptr, new_indices, new_values)
        self._hold(new_indptr, new_indices[:n].copy(), new_values[:n].copy())

    def pull(
        self,
        slopes: np.ndarray,
        weight: np.ndarray,
        scale: float,
        out: np.ndarray,
        decay: float = 0.0,
        gain: float = 1.0,
        positive: bool = False,
    ) -> None:
        """out <- decay * out + gain * (diag(weight) X' slopes + noise), in place.

        `positive` takes |X| for X: feature masses.
        """
        mode = _MODES[self.noise] if scale > 0 else NONE
        # Blocks of equal work: a column costs its non-zeros and about ten more for its draw.
        starts, blocks = self.columns.indptr, _BLOCKS if self.width >= _SMALL else 1
        work = int(starts[-1]) + 10 * self.width
        edges = [
            bisect_left(range(self.width), b * work // blocks, key=lambda j: starts[j] + 10 * j)
            for b in range(blocks)
        ] + [self.width]

        def one(b: int) -> None:
            _pull(
                self._rngs[b], *self.columns, slopes, weight, edges[b], edges[b + 1],
                float(scale), mode, positive, float(decay), float(gain), out,
            )  # fmt: skip

        _run(one, range(blocks))

    def margins(self, weights: np.ndarray) -> np.ndarray:
        """X @ weights, shape (n, K)."""
        out = np.empty((self.shape[0], weights.shape[1]))
        self._by_rows(lambda a, b: _push(*self.rows, weights, a, b, out))
        return out

    def lengths(self, weight: np.ndarray) -> np.ndarray:
        """The L2 norm of every row after scaling column j by weight_j."""
        out = np.empty(self.shape[0])
        self._by_rows(lambda a, b: _lengths(*self.rows, weight, a, b, out))
        return out

    def total(self, contributions: np.ndarray, scale: float) -> np.ndarray:
        """Noisy sum over rows of `contributions` (n, K): counts and other short vectors."""
        if scale == 0:
            return np.asarray(contributions.sum(axis=0))
        if self.noise == "float64":
            noise = self._rngs[0].standard_normal(contributions.shape[1])
            return np.asarray(contributions.sum(axis=0) + scale * noise)
        unit = scale / STEPS
        whole = (contributions / unit).astype(np.int64).sum(axis=0)
        return np.asarray((whole + integers(self._rngs[0], contributions.shape[1])) * unit)

    def _by_rows(self, kernel: Callable[[int, int], None]) -> None:
        blocks = _BLOCKS if len(self.rows[1]) >= _SMALL else 1
        edges = np.linspace(0, self.shape[0], blocks + 1).astype(np.int64)
        _run(lambda b: kernel(edges[b], edges[b + 1]), range(blocks))


def integers(rng: Generator, size: int) -> np.ndarray:
    """`size` rounded Gaussian integers of scale STEPS, by one thread."""
    out = np.empty(size, dtype=np.int64)
    _fill(rng, out)
    return out


def threaded_integers(rng: Generator, size: int) -> np.ndarray:
    """The same by all cores; what `benchmarks/noise.py` times."""
    out = np.empty(size, dtype=np.int64)
    rngs, edges = spawn(rng, _BLOCKS), np.linspace(0, size, _BLOCKS + 1).astype(np.int64)
    _run(lambda b: _fill(rngs[b], out[edges[b] : edges[b + 1]]), range(_BLOCKS))
    return out


def _run(task: Callable[[int], None], blocks: Iterable[int]) -> None:
    """All blocks, on as many threads as there are cores; kernels release the GIL."""
    blocks = list(blocks)
    if len(blocks) == 1:
        task(blocks[0])
        return
    with ThreadPoolExecutor(min(len(blocks), os.cpu_count() or 1)) as pool:
        list(pool.map(task, blocks))

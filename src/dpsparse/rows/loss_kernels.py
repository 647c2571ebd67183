"""The slopes of all losses, compiled: a loss is one class in losses.py and one branch here.

Kernels of gradients, minimisers and Frank-Wolfe call these functions, so a slope has the same bits whoever asks for it.
Exponentials are made of additions and multiplications only: the same bits on every processor.

Numba keeps compiled kernels by the file they stand in and does not notice an edit of this one. An installed package is
not edited: its files come together. For those who edit, tests/conftest.py deletes kept kernels older than this file.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from typing import Any

import numpy as np

from dpsparse.arithmetic import LN2_HIGH, LN2_LOW
from dpsparse.jit import njit

LOGISTIC, SQUARED, HUBER, SOFTMAX = range(4)
CODES = {"logistic": LOGISTIC, "squared": SQUARED, "huber": HUBER, "softmax": SOFTMAX}
SLOPE_UNITS = 2.0**28  # of a slope as large as its bound: products with float32 are exact

# Called from kernels only, whose cached code holds them: without wrappers for Python they compile in half the time.
inner: Any = njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload, unused-ignore]


@inner
def exp(x):
    """e^x on -99..99, relative error below 2^-52; beyond, slopes are 0 or 1 to 2^-142. No call, so loops vectorise."""
    if not x >= -99.0:  # also where x is not a number
        x = -99.0
    x = min(x, 99.0)
    n = np.rint(x * (1 / 0.6931471805599453))
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    z = r * r
    odd = 1 / 6 + z * (
        1 / 120 + z * (1 / 5040 + z * (1 / 362880 + z * (1 / 39916800 + z / 6227020800)))
    )
    even = 1 / 24 + z * (1 / 720 + z * (1 / 40320 + z * (1 / 3628800 + z / 479001600)))
    e = 1.0 + (r + z * (0.5 + (r * odd + z * even)))
    return e * np.int64((np.int64(np.int32(n)) + 1023) << 52).view(np.float64)


@inner
def slope_in_parts(loss, margin, lost, target, cutoff):
    """The slope of a loss of one output. The margin has two parts: a residual is exact where the first and the target
    nearly cancel."""
    if loss == LOGISTIC:
        sign = 1.0 - 2.0 * target
        return sign * (1.0 / (1.0 + exp(-sign * (margin + lost))))
    residual = (margin - target) + lost
    if loss == SQUARED:
        return residual
    if loss == HUBER:
        return min(max(residual, -cutoff), cutoff)
    return np.nan  # a loss without a branch here is no other loss in disguise


@inner
def slope(loss, margin, target, cutoff):
    """The same of a margin in one part."""
    return slope_in_parts(loss, margin, 0.0, target, cutoff)


@inner
def softmax(margins):
    """The probabilities of all classes, in place."""
    largest = -np.inf
    for k in range(margins.size):
        largest = max(largest, margins[k])
    total = 0.0
    for k in range(margins.size):
        margins[k] = exp(margins[k] - largest)
        total += margins[k]
    for k in range(margins.size):
        margins[k] /= total


# ---- scores of Frank-Wolfe: entries in units of their bound, and slopes in whole units of theirs ----


@inner
def entry_over_bound(value, factor):
    """An entry over the feature bound: float32 in [-1, 1] for every float; NaN is 0."""
    x = np.float64(value) * factor
    x = min(max(x, -1.0), 1.0) if x == x else 0.0
    return np.float32(x)


@inner
def whole_slope(r):
    """A slope in units of 2^-28 of its bound: a whole number of at most 2^28, NaN is 0."""
    r = min(max(r, -SLOPE_UNITS), SLOPE_UNITS) if r == r else 0.0
    return np.int32(np.rint(r))

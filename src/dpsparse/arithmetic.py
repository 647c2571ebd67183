"""Exponentials and logarithms of numbers that a fit reads: additions, multiplications and divisions only.

NumPy and the C library choose their code by the processor's vector units, and the last bit differs. A fit must give the
same bits on every machine, so that a cluster of different ones, or a run next year, gives the model of one machine.
Inside kernels `rows/loss_kernels.exp` does the same.
"""

from __future__ import annotations

import numpy as np

# ln 2 in two parts; the first has 32 bits, so that its product with an exponent is exact.
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10


def exp(x: np.ndarray | float) -> np.ndarray:
    """e^x to about 1e-15, for -700 <= x <= 700."""
    x = np.clip(np.asarray(x, np.float64), -700.0, 700.0)
    n = np.rint(x / (LN2_HIGH + LN2_LOW))
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    total = np.ones_like(r)
    for k in range(18, 0, -1):  # |r| <= .35: the terms end below 1e-21
        total *= r
        total /= k
        total += 1.0
    return np.asarray(np.ldexp(total, n.astype(np.int64)))


def log(x: np.ndarray | float) -> np.ndarray:
    """ln x to about 1e-15 of max(1, |ln x|), for positive normal x."""
    m, e = np.frexp(np.asarray(x, np.float64))
    small = m < 0.7071067811865476
    m, e = np.where(small, 2.0 * m, m), e - small
    f = (m - 1.0) / (m + 1.0)
    z = f * f
    total = np.full_like(f, 1.0 / 23.0)  # |f| <= .172: ln m = 2 (f + f^3/3 + f^5/5 + ...)
    for k in range(21, 0, -2):
        total = 1.0 / k + total * z
    return np.asarray(e * LN2_HIGH + (2.0 * f * total + e * LN2_LOW))


def logit(p: np.ndarray | float) -> np.ndarray:
    """ln(p / (1 - p))."""
    p = np.asarray(p, np.float64)
    return log(p / (1.0 - p))


def expit(x: np.ndarray | float) -> np.ndarray:
    """1/(1 + e^-x)."""
    return np.asarray(1.0 / (1.0 + exp(-np.asarray(x, np.float64))))


def leading_bits(x: np.ndarray, bits: int = 26) -> np.ndarray:
    """x to so many bits of the largest number of its row: what linear algebra of different machines agrees about, as a
    rule. Each number to its own leading bits would not do: what should be zero is made of last digits alone."""
    x = np.asarray(x, np.float64)
    largest = np.max(np.abs(x), axis=-1, keepdims=True, initial=0.0)
    unit = np.maximum(np.ldexp(1.0, np.frexp(largest)[1] - bits), 5e-324)
    return np.asarray(np.rint(x / unit) * unit)

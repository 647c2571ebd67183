"""Randomness: the only place that makes generators, and the noise primitives of the solvers.

The default stream is AES-128 in counter mode under a key from the operating system: whoever
cannot break AES cannot tell the noise from ideal noise. Such a stream must exist once: two copies
give the same noise twice, and the difference of two releases is then free of noise. Hence it
refuses to be copied or pickled, and a forked child gets a new key before it runs any code.

    two_sided_geometric  P(k) ~ exp(-|k| / scale)                exact (integers only)
    integer_below        P(k) = 1 / bound                        exact (integers only)
    add_integers         K = round(Z), Z ~ N(0, STEPS^2)         within 2^-90

What is exact and what is assumed: docs/proofs/random.md.

Rounded Gaussian integers are the noise of every Gaussian release:

    unit  = scale / STEPS                                STEPS = 2^28: the grid, public
    out_j = unit * (q_j + K_j)                           q_j whole: an exact sum over rows

q_j is whole, so q_j + round(Z) = round(q_j + Z): the Gaussian mechanism, rounded. Its price is exactly
that of Gaussian noise. Law, sampler and accounting: docs/proofs/rounded_gaussian.md.

The sampler is proposal and exact acceptance. |K| < 16 STEPS is cut into 2048 bins of 2^21 integers.
A bin is drawn from integer weights (alias method), an integer of it uniformly, and it is accepted
with probability a = A_b exp(-t) (1 + 2^-56 correction), t = (k^2 - k_b^2)/(2 STEPS^2), where A_b
undoes the rounding of the weights. 93 % of the proposals are accepted by one integer comparison and
one 53-bit uniform; closer calls compare in float64, and calls closer than 2^-45 in double-double.

Long vectors are cut into a fixed number of blocks with a stream each, so a seeded result depends neither
on the number of threads nor on the rows. All kernels are here because a cached kernel does not notice edits
elsewhere.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from randomgen import AESCounter

from dpsparse._checks import is_real, is_whole, safe_repr
from dpsparse.exceptions import InternalError, ParameterError
from dpsparse.jit import njit
from dpsparse.threads import LONG, cores, in_threads

Generator = np.random.Generator


def make_generator(random_state: int | None) -> Generator:
    """A secure generator for None, a reproducible one for a whole number.

    A seeded stream is for experiments: whoever knows or guesses the seed can subtract the noise,
    so the caller warns and marks the model as not private (see `is_seeded`).
    """
    if random_state is None:
        return Generator(_SecureBits())
    is_seeded(random_state)
    return Generator(AESCounter(key=int(random_state)))


def is_seeded(random_state: int | None) -> bool:
    """Whether `make_generator(random_state)` gives a reproducible, hence not private, stream.

    Refuses what cannot be a seed, so that a fit can refuse before it is charged.
    """
    if random_state is None:
        return False
    if not (is_whole(random_state) and 0 <= random_state < 2**128):
        raise ParameterError(
            "random_state must be None (secure noise, the private choice) or a whole number in "
            f"[0, 2**128) (reproducible, not private), got {safe_repr(random_state)}."
        )
    return True


def spawn(rng: Generator, k: int) -> list[Generator]:
    """`k` independent streams: new secret keys if `rng` is secure, else keys drawn from `rng`."""
    if isinstance(rng.bit_generator, _SecureBits):
        return [Generator(_SecureBits()) for _ in range(k)]
    return [Generator(AESCounter(key=_little_endian(rng.bytes(16)))) for _ in range(k)]


@contextmanager
def streams(rng: Generator, k: int) -> Iterator[list[Generator]]:
    """`k` independent streams for parts of one draw. Those of a secure `rng` are made once and go on where they
    ended, since to make a key takes as long as thousands of numbers; else keys are drawn from `rng` each time.

    While they are out nobody else gets them. A draw that was broken off does not give them back: some thread may
    still be at it, and two that draw from one stream draw the same noise.
    """
    bits = rng.bit_generator
    if not isinstance(bits, _SecureBits):
        yield spawn(rng, k)
        return
    mine: list[Generator] = []
    while len(mine) < k:
        try:  # one instruction of the interpreter: no two threads get the same
            mine.append(bits.parts.pop())
        except IndexError:
            mine += spawn(rng, k - len(mine))
    yield mine
    bits.parts.extend(mine)


def two_sided_geometric(rng: Generator, scale: float | Fraction) -> int:
    """An integer k with probability proportional to exp(-|k|/scale), exactly; scale 0 gives 0.

    Canonne, Kamath and Steinke (2020), Algorithm 2, with scale = t/s in lowest terms (a float is
    a fraction): x = u + t v has P(x) ~ exp(-x/t), so y = floor(x/s) has P(y) ~ exp(-y s/t).
    """
    _require_scale(scale)
    if scale == 0:
        return 0
    t, s = Fraction(scale).as_integer_ratio()
    while True:
        u = integer_below(rng, t)
        if not _bernoulli_exp(rng, u, t):
            continue
        v = 0
        while _bernoulli_exp(rng, 1, 1):
            v += 1
        y = (u + t * v) // s
        negative = integer_below(rng, 2) == 1
        if not (negative and y == 0):  # zero must not be counted twice
            return -y if negative else y


def integer_below(rng: Generator, bound: int) -> int:
    """A uniform integer in [0, bound), exactly, for a positive bound of any length."""
    bits = (bound - 1).bit_length()
    n_bytes = (bits + 7) // 8
    while True:
        draw = _little_endian(rng.bytes(n_bytes)) >> (8 * n_bytes - bits)
        if draw < bound:
            return draw


def _bernoulli_exp(rng: Generator, p: int, q: int) -> bool:
    """True with probability exp(-p/q) for 0 <= p <= q (von Neumann's alternating series).

    The run p/q, p/(2q), p/(3q), ... of successes has length >= k with probability (p/q)^k / k!,
    so its length is even with probability 1 - p/q + (p/q)^2/2! - ... = exp(-p/q).
    """
    k = 1
    while integer_below(rng, k * q) < p:
        k += 1
    return k % 2 == 1


def _require_scale(scale: float | Fraction) -> None:
    if not (is_real(scale) and 0 <= scale < math.inf):
        raise ParameterError(f"scale must be a finite number >= 0, got {safe_repr(scale)}.")


def _little_endian(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


class _SecureBits(AESCounter):  # type: ignore[misc]
    """AES-128-CTR under a fresh key of the operating system; it has no copies."""

    def __init__(self) -> None:
        super().__init__(key=_little_endian(os.urandom(16)))
        self.parts: list[Generator] = []  # streams that `streams` keeps
        _live.add(self)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "A secure generator cannot be copied or pickled: two copies would draw the same "
            "noise. Make a new one in the other place with make_generator(None), or use spawn."
        )

    def rekey(self) -> None:
        self.state: dict[str, Any] = _SecureBits().state


_live: weakref.WeakSet[_SecureBits] = weakref.WeakSet()


def _rekey_after_fork() -> None:
    try:
        for bits in list(_live):
            bits.rekey()
    except BaseException:
        # Python only prints what a fork hook raises; a child with its parent's noise must not run.
        os.write(2, b"dpsparse: no new key for the noise after fork; the child stops.\n")
        os._exit(1)


if hasattr(os, "register_at_fork"):  # absent where there is no fork
    os.register_at_fork(after_in_child=_rekey_after_fork)


# ---- rounded Gaussian integers ---------------------------------------------------------------------

STEPS = 2**28
_BINS, _WIDTH = 2048, 2**21
LARGEST_DRAW = _BINS * _WIDTH  # every |K| is below: 16 STEPS
_EXPONENT_UNIT = 0.5 / STEPS**2


def _tables() -> tuple[np.ndarray, ...]:
    """Alias table of 2048 columns of weight 2^16, bounds for quick acceptance, A_b in two parts."""
    total, column = _BINS << 16, 1 << 16
    with localcontext() as context:
        # exp(-b^2 c), each from the one before: thousands of exponentials would take most of an import. Twenty more
        # digits than are used leave room for 2048 roundings.
        context.prec = 70
        heights, ratio = [Decimal(1)], (-Decimal(_WIDTH**2) / (2 * STEPS**2)).exp()
        square = ratio * ratio
        for _ in range(_BINS - 1):
            heights.append(heights[-1] * ratio)
            ratio *= square
        context.prec = 50
        heights = [+height for height in heights]
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
_u = np.uint64  # signed numbers beside words would make floats of them
# Threshold, alias, and what accepts at once in the own bin and in the alias, in one word: one look a proposal.
_PACKED = _THRESHOLD | _ALIAS << _u(17) | _QUICK << _u(28) | _QUICK[_ALIAS] << _u(33)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _two_sum(a, b):  # type: ignore[no-untyped-def]
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


@njit(cache=True, nogil=True)
def _two_product(a, b):  # type: ignore[no-untyped-def]
    p = a * b
    c = 134217729.0 * a  # 2^27 + 1
    a_high = c - (c - a)
    c = 134217729.0 * b
    b_high = c - (c - b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@njit(cache=True, nogil=True)
def _add(rng, out):  # type: ignore[no-untyped-def]
    """Add a rounded Gaussian integer of scale STEPS to every number.

    Words are taken from the stream some hundreds at a time, but never more than are needed in any case, so the stream
    ends where it would have ended word by word. The first loop makes a proposal of every word, without a branch and
    with unsigned indices (signed ones are checked for wrap-around), several at a time; the second notes the one in
    sixteen that is not accepted at once; the third adds the runs between these and takes two more words for each of
    them.
    """
    words, proposed = np.empty(1024, _u), np.empty(1024, np.int64)
    doubtful = np.empty(1024, np.uint8)
    late = np.empty(1025, _u)  # places of what is not accepted at once, and the end
    done = _u(0)
    while done < _u(out.size):
        n = min(_u(out.size) - done, _u(1024))
        for i in range(n):
            words[i] = _u(np.int64(rng.random() * 2.0**53))
        for i in range(n):
            word = words[i]  # 11 bits column, 16 threshold, 21 offset, 1 sign, 4 coin
            column = word >> _u(42)
            packed = _PACKED[column]
            own = ((word >> _u(26)) & _u(0xFFFF)) < (packed & _u(0x1FFFF))
            bin_ = column if own else (packed >> _u(17)) & _u(_BINS - 1)
            quick = (packed >> (_u(28) if own else _u(33))) & _u(31)
            k = np.int64((bin_ << _u(21)) | ((word >> _u(5)) & _u(_WIDTH - 1)))
            minus = np.int64((word >> _u(4)) & _u(1))
            proposed[i] = (k ^ -minus) + minus
            # Zero must not be counted twice: minus zero is looked at below.
            doubtful[i] = ((word & _u(15)) >= quick) | ((k | (minus ^ 1)) == 0)
        n_late = _u(0)
        for i in range(n):
            late[n_late] = i
            n_late += _u(doubtful[i])
        late[n_late] = n
        at, next_late = _u(0), _u(0)
        while at < n:
            while late[next_late] < at:  # used up as a uniform
                next_late += _u(1)
            for i in range(at, late[next_late]):
                out[done] += proposed[i]
                done += _u(1)
            at = late[next_late]
            if at == n:
                break
            k, coin = abs(proposed[at]), words[at] & _u(15)
            minus_zero = k == 0 and (words[at] >> _u(4)) & _u(1) == _u(1)
            bin_, offset = k // _WIDTH, k % _WIDTH
            chosen = proposed[at]
            at += _u(1)
            accepted = coin < _QUICK[bin_]
            if not accepted:
                rest = np.int64(words[at]) * 2.0**-53 if at < n else rng.random()
                at += _u(1)
                last = np.int64(words[at]) * 2.0**-53 if at < n else rng.random()
                at += _u(1)
                accepted = _accepts(bin_, offset, np.int64(coin), rest, last)
            if accepted and not minus_zero:
                out[done] += chosen
                done += _u(1)


def integers(rng: Generator, size: int) -> np.ndarray:
    """`size` rounded Gaussian integers of scale STEPS."""
    out = np.zeros(size, dtype=np.int64)
    add_integers(rng, out)
    return out


def add_integers(rng: Generator, out: np.ndarray) -> None:
    """Add rounded Gaussian integers of scale STEPS to `out`, in place; long vectors by all cores.

    Sums of 64 bits wrap around, which is post-processing of the exact sum.
    """
    if out.size < LONG:  # one thread is faster
        _add(rng, out)
        return
    blocks = 8
    edges = [out.size * b // blocks for b in range(blocks + 1)]
    noisy: list[int] = []
    with streams(rng, blocks) as rngs:

        def add(block: int) -> None:
            _add(rngs[block], out[edges[block] : edges[block + 1]])
            noisy.append(block)

        in_threads(add, range(blocks), min(cores(), out.size // (LONG // 2)))
    # Believed of no thread: what leaves without noise cannot be taken back.
    if sorted(noisy) != list(range(blocks)):
        raise InternalError(
            "A part of the noise was not drawn. Nothing was released. This is a bug."
        )

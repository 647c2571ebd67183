"""Randomness: the only place that makes generators, and the noise primitives of the solvers.

The default stream is AES-128 in counter mode under a key from the operating system: whoever
cannot break AES cannot tell the noise from ideal noise. Such a stream must exist once: two copies
give the same noise twice, and the difference of two releases is then free of noise. Hence it
refuses to be copied or pickled, and a forked child gets a new key before it runs any code.

    two_sided_geometric  P(k) ~ exp(-|k| / scale)                exact (integers only)
    integer_below        P(k) = 1 / bound                        exact (integers only)

What is exact and what is assumed: docs/proofs/random.md.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from randomgen import AESCounter

from dpsparse._checks import is_real, is_whole, safe_repr
from dpsparse.exceptions import ParameterError

Generator = np.random.Generator

_KEY_BYTES = 16  # AES-128


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
    if not (is_whole(random_state) and 0 <= random_state < 2 ** (8 * _KEY_BYTES)):
        raise ParameterError(
            "random_state must be None (secure noise, the private choice) or a whole number in "
            f"[0, 2**128) (reproducible, not private), got {safe_repr(random_state)}."
        )
    return True


def spawn(rng: Generator, k: int) -> list[Generator]:
    """`k` independent streams: new secret keys if `rng` is secure, else keys drawn from `rng`."""
    if isinstance(rng.bit_generator, _SecureBits):
        return [Generator(_SecureBits()) for _ in range(k)]
    return [Generator(AESCounter(key=_little_endian(rng.bytes(_KEY_BYTES)))) for _ in range(k)]


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
        # What rng.bytes(n_bytes) reads (one word at least), in a tenth of its time.
        draw: int = 0
        for place in range(0, max(bits, 1), 32):
            draw |= int(rng.integers(2**32, dtype=np.uint32)) << place
        draw = (draw & (256**n_bytes - 1)) >> (8 * n_bytes - bits)
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
        super().__init__(key=_little_endian(os.urandom(_KEY_BYTES)))
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

"""k exponential mechanisms without replacement on whole-number scores, drawn exactly.

    pick j with probability proportional to e^{kappa score_j}, remove it, repeat

Each draw is proposal and acceptance with whole-number weights, as in docs/proofs/selection.md: the law does
not depend on rounding, and a candidate however unlikely stays possible. (Top-k of scores plus Gumbel noise has
the same law in real arithmetic only.) If one row moves every score by at most D, up or down, each pick has
range 2 kappa D and `Repeated(Exponential(2 kappa D), k)` pays for all (docs/proofs/two_stage.md, Lemma 2).

Cost: one pass and one exponential a candidate, O(sqrt n) a draw, and a new pass where the best are gone.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from dpsparse.exceptions import InternalError
from dpsparse.jit import njit

ROUNDING_RANGE = 2.0**-37  # what rounding may add to the range of a draw; plans charge it
WEIGHT_BITS = 24  # weights up to 2^24 + 1
MOST_CANDIDATES = 2**28  # the sum of their weights stays below 2^53, the digits of a draw


def top_k(scores: np.ndarray, k: int, kappa: float, rng: np.random.Generator) -> np.ndarray:
    """At most k candidates in the order drawn; `kappa=inf` takes the largest scores, first among equals."""
    k = min(k, len(scores))
    if kappa == math.inf:
        if k == 1:
            return np.asarray(np.argmax(scores, keepdims=True))
        return np.argsort(-np.asarray(scores, np.int64), kind="stable")[:k]
    if (
        len(scores) > MOST_CANDIDATES
        or not kappa > 0.0
        # Differences of scores must stay below 2^63.
        or (len(scores) > 0 and max(-int(scores.min()), int(scores.max())) > 2**61)
    ):
        raise InternalError(
            "The exponential mechanism is proven for up to 2**28 candidates, whole scores of up to 2**61 and a "
            "positive kappa. Nothing was released. This is a bug."
        )
    scores = np.ascontiguousarray(scores, np.int64)
    picks = np.empty(k, np.int64)
    if not _draw_without_replacement(scores, k, kappa, rng, picks):
        raise InternalError(
            "A candidate cannot be drawn with its probability: its weight is below its share. Nothing was released. "
            "This is a bug."
        )
    return picks


@njit(cache=True)
def _weigh(scores, gone, kappa, weights, sums, side):
    """Weights ceil(2^WEIGHT_BITS e^{-kappa (top - score)}) >= 1 of what is left, their block sums, and the top."""
    top = np.int64(-(2**62))
    for j in range(scores.size):
        if not gone[j]:
            top = max(top, scores[j])
    sums[:] = 0
    for j in range(scores.size):
        # 1 + 1e-9 covers the error of exp: the weight is never below the envelope.
        share = 2.0**WEIGHT_BITS * math.exp(-kappa * (top - scores[j]))
        weights[j] = 0 if gone[j] else max(1, math.ceil(share * (1.0 + 1e-9)))
        sums[j // side] += weights[j]
    return top


@njit(cache=True)
def _zeros(rng, n):
    """True with probability 2^-n, exactly."""
    while n >= 53:
        if rng.random() != 0.0:
            return False
        n -= 53
    return rng.random() < 2.0 ** (-n)


@njit(cache=True)
def _draw_without_replacement(scores, k, kappa, rng, picks):
    """Fill `picks`; False if a candidate would be accepted with a probability above one."""
    side = max(1, int(math.sqrt(scores.size)))
    weights = np.zeros(scores.size, np.int64)
    sums = np.zeros(scores.size // side + 1, np.int64)
    gone = np.zeros(scores.size, np.bool_)
    top = _weigh(scores, gone, kappa, weights, sums, side)
    total = sums.sum()
    rejected, count, ln2 = 0, 0, math.log(2.0)
    while count < k:
        if rejected >= 64:
            top = _weigh(scores, gone, kappa, weights, sums, side)
            total = sums.sum()
            rejected = 0
        r = np.int64(rng.random() * 2.0**53)  # 53 uniform bits, exactly
        if r >= ((1 << 53) // total) * total:
            continue
        r %= total
        b = 0
        while r >= sums[b]:
            r -= sums[b]
            b += 1
        j = b * side
        while r >= weights[j]:
            r -= weights[j]
            j += 1
        x = math.log(weights[j]) - WEIGHT_BITS * ln2 + kappa * (top - scores[j])
        if not x >= 0.0:
            return False
        n = np.int64(x / ln2)  # leading zero bits keep small probabilities precise
        if not (_zeros(rng, n) and rng.random() < math.exp(-(x - n * ln2))):
            rejected += 1
            continue
        picks[count] = j
        count += 1
        gone[j] = True
        sums[j // side] -= weights[j]
        total -= weights[j]
        weights[j] = 0
    return True

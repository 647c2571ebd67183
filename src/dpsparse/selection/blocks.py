"""Big-Step Little-Step, repaired: a two-level sampler with whole-number sums.

Paper: Raff, Khanna, Lu (2023), Alg. 4. As printed it never returns, and its running log-sums lose
all digits when a large item shrinks; wrong group sums break privacy. Kept: sqrt(D) groups, a big
step over groups and a little step inside one. Replaced: log-sums by sums of whole numbers, which
can be updated by subtraction without error, and thresholds by one uniform whole number.

    W_j = ceil(2^B e^{kappa (|G_j| - top)}) >= 1        proposal weight, top >= max |G|
    draw j ~ W_j and a sign s;  accept with probability e^{kappa (s G_j - top)} 2^B / W_j
    otherwise restart from the top

The law is exactly e^{kappa s G_j} whatever the rounding of W_j: docs/proofs/selection.md.
Cost: O(sqrt D) a draw, one exp per touched cell.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from dpsparse.jit import njit

B = 24  # 2^24 per cell: sums over fewer than 2^28 signed cells stay below 2^53
_PATIENCE = 10_000  # rejections before the weights are taken anew
LN2 = math.log(2.0)

_jit = njit(cache=True)


class BlockSampler:
    """Two-level sampler of (cell, sign) with probability proportional to e^{kappa s G}."""

    def __init__(self, kappa: float, private_sign: bool = True) -> None:
        self.kappa, self.private_sign = kappa, private_sign

    def rebuild(self, scores: np.ndarray) -> None:
        self.scores = scores
        self.side = max(1, math.isqrt(scores.size))
        self.weights = np.empty(scores.size, np.int64)
        self.sums = np.zeros(-(-scores.size // self.side), np.int64)
        # Room to rise by a factor e^2 before the weights must be taken anew.
        self.top = int(np.abs(scores).max()) + math.ceil(2.0 / self.kappa)
        _weigh_all(self.scores, self.weights, self.sums, self.side, self.kappa, self.top)

    def update(self, cells: np.ndarray, scores: np.ndarray) -> None:
        if not _reweigh(cells, scores, self.weights, self.sums, self.side, self.kappa, self.top):
            self.rebuild(scores)

    def draw(self, rng: np.random.Generator) -> tuple[int, int]:
        while True:
            cell, sign = _draw(
                self.scores, self.weights, self.sums, self.side, self.kappa, self.top,
                self.private_sign, rng,
            )  # fmt: skip
            if cell >= 0:
                return int(cell), int(sign)
            self.rebuild(self.scores)


@_jit
def _weight(g, kappa, top):
    # 1 + 1e-9 covers the error of exp: the weight is never below the envelope.
    return np.int64(math.ceil(2.0**B * math.exp(-kappa * (top - abs(g))) * (1.0 + 1e-9)))


@_jit
def _weigh_all(scores, weights, sums, side, kappa, top):
    for j in range(scores.size):
        weights[j] = _weight(np.int64(scores[j]), kappa, top)
        sums[j // side] += weights[j]


@_jit
def _reweigh(cells, scores, weights, sums, side, kappa, top):
    for r in range(cells.size):
        j = np.int64(cells[r])
        g = np.int64(scores[j])
        if abs(g) > top:
            return False
        w = _weight(g, kappa, top)
        sums[j // side] += w - weights[j]
        weights[j] = w
    return True


@_jit
def _zeros(rng, n):
    """True with probability 2^-n, exactly."""
    while n >= 53:
        if rng.random() != 0.0:
            return False
        n -= 53
    return rng.random() < 2.0 ** (-n)


@_jit
def _draw(scores, weights, sums, side, kappa, top, private_sign, rng):
    total = 2 * sums.sum()
    limit = ((1 << 53) // total) * total
    for _ in range(_PATIENCE):
        r = np.int64(rng.random() * 2.0**53)  # 53 uniform bits, exactly
        if r >= limit:
            continue
        r %= total
        sign = 1 - 2 * (r & 1)
        r >>= 1
        b = 0
        while r >= sums[b]:  # big steps
            r -= sums[b]
            b += 1
        j = b * side
        while r >= weights[j]:  # little steps
            r -= weights[j]
            j += 1
        if not private_sign and (scores[j] < 0) != (sign < 0):
            continue  # Raff, Khanna, Lu 2023: the sign is read off, not drawn (not private)
        x = math.log(weights[j]) - B * LN2 + kappa * (top - sign * np.int64(scores[j]))
        n = np.int64(max(x, 0.0) / LN2)  # leading zero bits keep small probabilities precise
        if _zeros(rng, n) and rng.random() < math.exp(-(x - n * LN2)):
            return j, sign
    return -1, 0

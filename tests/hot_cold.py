"""Many draws of a sampler in one compiled loop: a call from Python takes a hundred times as long as a draw.

The solver uses the hot/cold sampler inside its kernel (methods/frank_wolfe/kernel.py), fused with its step; here it
stands on its own, to be tested beside the others.
"""

from __future__ import annotations

import math

import numpy as np

from dpsparse.jit import njit
from dpsparse.mechanisms.top_k import _draw_without_replacement, top_k
from dpsparse.methods.frank_wolfe import kernel
from dpsparse.methods.frank_wolfe.kernel import B


class HotColdSampler:
    """Draws (cell, sign) with probability proportional to e^{kappa s G}; O(1) a draw."""

    def __init__(self, kappa: float) -> None:
        self.kappa = kappa

    def rebuild(self, scores: np.ndarray) -> None:
        wide = np.abs(scores).max(initial=0) >= 2**30  # room to rise: updates keep the type
        self.state = sampler_state(np.array(scores, np.int64 if wide else np.int32), self.kappa)

    def update(self, cells: np.ndarray, scores: np.ndarray) -> None:
        sampler, sc = self.state.sampler, self.state.sc
        new = scores[cells]
        if np.abs(new).max(initial=0) > np.iinfo(sampler.score.dtype).max:
            self.rebuild(scores)
            return
        sampler.score[cells] = new
        # A cell that sank is no riser, and the kernel sees that.
        sc.n_risers = cells.size
        sampler.risers[: cells.size] = cells[: sampler.risers.size]

    def draws(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """n draws: the place of a cell with the sign +, the number of cells later with the sign -."""
        drawn = np.empty(n, np.int64)
        done = 0
        while (done := draw_into(drawn, done, self.state, rng, 0)) < n:
            assert self.state.sc.event != kernel.BROKEN
            self.state.sc.event, self.state.sc.rebuild = kernel.NOTHING, 1
        return drawn


def many_top_k(
    scores: np.ndarray, k: int, kappa: float, rng: np.random.Generator, n: int
) -> np.ndarray:
    """n draws of `top_k`, a row each."""
    picks = np.empty((n, min(k, scores.size)), np.int64)
    picks[0] = top_k(scores, k, kappa, rng)
    assert fill_picks(picks[1:], scores, kappa, rng)
    return picks


@njit(cache=True)
def fill_picks(picks, scores, kappa, rng):  # type: ignore[no-untyped-def]
    right = 0
    for row in picks:
        right += _draw_without_replacement(scores, row.size, kappa, rng, row)
    return right == len(picks)


@njit(cache=True)
def draw_into(drawn, first, state, rng, t):  # type: ignore[no-untyped-def]
    """Draws of the kernel at step t into drawn[first:]; how many there are when all are done or one is refused."""
    for i in range(first, drawn.size):
        cell, sign = kernel._draw(state, rng, t)
        if cell < 0:
            return i
        drawn[i] = cell + state.sc.n_cells * (sign < 0)
    return drawn.size


def sampler_state(scores: np.ndarray, kappa: float) -> kernel.State:
    """A state without rows: scores are given, and nothing is ever stale."""
    n = scores.size
    pool = 2 * n + 64 * (B + 2)
    sc = np.zeros(1, kernel.SCALARS).view(np.recarray)[0]
    sc.outputs, sc.n_cells, sc.kappa, sc.rebuild = 1, n, kappa, 1
    sc.width = math.ceil(math.log(2.0) / kappa * (1.0 + 1e-12))
    sc.debt_limit = n // 8 + 1000
    whole, reals = np.zeros(0, np.int32), np.zeros(0)
    return kernel.State(
        kernel.Matrix(whole, whole, reals, np.zeros(n + 1, np.int32), np.zeros(0, np.uint64)),
        kernel.Rows(reals, reals, reals, whole, reals, whole, whole),
        kernel.Calendar(whole, whole, whole, whole),
        kernel.Sampler(
            score=scores,
            slack=np.zeros(n, scores.dtype),
            slot=np.full(n, -1, np.int32),
            members=np.zeros(pool, np.int32),
            depth_of=np.zeros(pool, np.uint8),
            start=np.zeros(B + 2, np.int64),
            size=np.zeros(B + 1, np.int64),
            risers=np.zeros(4096, np.int32),
        ),
        cells=np.zeros(0, np.int64),
        signs=np.zeros(0, np.int8),
        sc=sc,
    )

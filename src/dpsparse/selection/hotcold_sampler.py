"""The hot/cold sampler on its own, behind the same interface as the other selections.

The solver uses the kernel of `hotcold.py` directly, fused with its step; this wrapper is for
everything else: tests, benchmarks, other solvers.
"""

from __future__ import annotations

import math

import numpy as np

from dpsparse.selection import hotcold as kernel
from dpsparse.selection.hotcold import HEAVY, B
from dpsparse.selection.state import State


class HotColdSampler:
    """Draws (cell, sign) with probability proportional to e^{kappa s G}; O(1) a draw."""

    def __init__(self, kappa: float) -> None:
        self.kappa = kappa

    def rebuild(self, scores: np.ndarray) -> None:
        wide = np.abs(scores).max(initial=0) >= 2**30  # room to rise: updates keep the type
        self._state = sampler_state(np.array(scores, np.int64 if wide else np.int32), self.kappa)
        kernel._rebuild(self._state)

    def update(self, cells: np.ndarray, scores: np.ndarray) -> None:
        state = self._state
        new = scores[cells]
        if np.abs(new).max(initial=0) > np.iinfo(state.score.dtype).max:
            self.rebuild(scores)
            return
        state.score[cells] = new
        above = np.abs(state.score[cells]) > state.limit[np.minimum(cells, HEAVY)]
        risers = cells[above]
        if risers.size > state.risers.size:
            state.ints[kernel.REBUILD] = 1
        else:
            state.risers[: risers.size] = risers
            state.ints[kernel.RISERS] = risers.size
            kernel._raise_cells(state)

    def draw(self, rng: np.random.Generator) -> tuple[int, int]:
        cell, sign = kernel.draw(self._state, rng, 0)
        return int(cell), int(sign)


def sampler_state(scores: np.ndarray, kappa: float) -> State:
    """A state without rows: scores are given, and nothing is ever stale."""
    n = scores.size
    pool = 2 * n + 64 * (B + 2)
    ints, reals = np.zeros(20, np.int64), np.zeros(8)
    ints[kernel.OUTPUTS], ints[kernel.FRESHNESS] = 1, kernel.TOLERANCE
    ints[kernel.WIDTH] = math.ceil(math.log(2.0) / kappa * (1.0 + 1e-12))
    ints[kernel.DEBT_LIMIT] = n // 8 + 1000
    reals[kernel.KAPPA] = kappa
    none = np.zeros(0, np.int32)
    indices, values, reals_none = np.zeros(0, np.uint32), np.zeros(0, np.float32), np.zeros(0)
    return State(
        indptr=np.zeros(1, np.int32), cols=indices, vals=values,
        colptr=np.zeros(n + 1, np.int32), rows=indices, cvals=values, y=reals_none,
        v=reals_none, mref=reals_none, q=none, due=none, after=none, before=none, head=none,
        score=scores, slot=np.full(n, -1, np.int32),
        members=np.zeros(pool, np.int32), depth_of=np.zeros(pool, np.uint8),
        start=np.zeros(B + 1, np.int64), size=np.zeros(B + 1, np.int64),
        room=np.zeros(B + 1, np.int64),
        slack=np.zeros(HEAVY + 1, np.int64), limit=np.zeros(HEAVY + 1, np.int64),
        column_mass=np.zeros(HEAVY + 1), column_count=np.zeros(HEAVY + 1, np.int64),
        risers=np.zeros(4096, np.int32), scratch=none, units=np.zeros(1, np.int32),
        cells=none, signs=np.zeros(0, np.int8), ints=ints, reals=reals,
    )  # fmt: skip

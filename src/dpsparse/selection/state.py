"""The arrays of one fast Frank-Wolfe run, shared by its kernels; laid out by the solver."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class State(NamedTuple):
    """Arrays of one run; see `fast_frank_wolfe.build_state`."""

    indptr: np.ndarray  # rows: relabelled CSR, entries x / feature_bound in float32
    cols: np.ndarray
    vals: np.ndarray
    colptr: np.ndarray  # columns: the same as CSC
    rows: np.ndarray
    cvals: np.ndarray
    y: np.ndarray
    v: np.ndarray  # (n * K,) margins in units of _scale
    mref: np.ndarray  # margins at which the stored slopes were taken
    q: np.ndarray  # stored slopes, int32 in units of slope_bound * 2^-28
    due: np.ndarray  # step at which a row must be looked at; STEPS means never
    after: np.ndarray  # calendar: doubly linked lists of rows by due step
    before: np.ndarray
    head: np.ndarray
    score: np.ndarray  # (p * K,) whole-number scores, stale by at most `slack`
    slot: np.ndarray  # position in `members`, -1 for a cold cell
    members: np.ndarray
    depth_of: np.ndarray
    start: np.ndarray
    size: np.ndarray
    room: np.ndarray
    slack: np.ndarray  # (HEAVY + 1,) by label: how far a score may be from exact
    limit: np.ndarray  # (HEAVY * K + 1,) by cell: |score| above it must be looked at
    column_mass: np.ndarray  # (HEAVY + 1,) sum of |entries|, number of entries; last: the largest
    column_count: np.ndarray
    risers: np.ndarray  # cells seen above their limit since the last draw
    scratch: np.ndarray
    units: np.ndarray  # (K,) new slopes of the row at hand
    cells: np.ndarray  # released history
    signs: np.ndarray
    ints: np.ndarray
    reals: np.ndarray

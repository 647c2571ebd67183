"""Frank-Wolfe on the L1 ball with work proportional to the non-zeros touched.

Paper: Raff, Khanna, Lu (002), Alg. 2. The step itself is the kernel in `selection/hotcold.py`; this
file lays out the data, runs the kernel in chunks and turns the released history into weights.

    w_T = 2 radius / ((T+1)(T+2)) * sum_t (t+2) (-s_t) e_{j_t}        t = 0 .. T-1

The released history (cells and signs) determines the weights, and together with the rows it
determines the state, so a run can be rebuilt, checkpointed, or split over rows: `replay`.

| paper | here |
|---|---|
| D, N, S_r, S_c | cells, rows, entries per column, entries per row |
| lambda, T | `radius`, `n_iter` |
| eta_t = 2/(t+2), t = 1.. | closed form above |

Freshness: Alg. 2 refreshes only touched rows although every margin shrinks at every step.
"exact" (default) has the law of the exact gradient, "tolerance" keeps every stored slope within
`tolerance` * slope_bound of exact, "published" is stale as printed. Features are rounded to
float32 after division by the feature bound, slopes to 2^-28 of their bound; what a row adds to a
score is a whole number of at most `resolution` units. Proof: docs/proofs/fast_frank_wolfe.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit

from dpsparse.domain import BoundedData
from dpsparse.losses import Loss
from dpsparse.random import make_generator
from dpsparse.selection import hotcold as kernel
from dpsparse.selection.hotcold import HEAVY
from dpsparse.selection.scan import Selection
from dpsparse.selection.state import State

FRESHNESS = {"exact": kernel.EXACT, "tolerance": kernel.TOLERANCE, "published": kernel.PUBLISHED}
_INT32_MAX = 2**31 - 1
SLOPE_UNITS = 2.0**kernel.SLOPE_BITS


@dataclass(frozen=True)
class Problem:
    """The public side of a run: everything the solver is told beside the rows."""

    loss: Loss
    radius: float
    n_iter: int
    kappa: float  # per unit of sum_i slope_i x_ij; infinite for the arg max
    slope_bound: float
    resolution: int
    feature_bound: float = 1.0
    n_outputs: int = 1
    fit_intercept: bool = True
    freshness: str = "exact"
    tolerance: float = 0.01
    private_sign: bool = True

    @property
    def unit_kappa(self) -> float:
        """kappa per unit of the whole-number scores; a row moves a score by <= resolution units."""
        return self.kappa * self.feature_bound * self.slope_bound / self.resolution


@dataclass(frozen=True)
class History:
    """What a run releases: for each step a cell (feature, output) and the sign of its vertex."""

    features: np.ndarray  # the number of features stands for the intercept
    outputs: np.ndarray
    signs: np.ndarray  # of the vertex moved to
    radius: float
    n_features: int
    n_outputs: int
    intercept_value: float

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """coef of shape (n_outputs, n_features) and intercept of shape (n_outputs,)."""
        n_iter = len(self.signs)
        steps = self.signs * (np.arange(n_iter) + 2.0)
        unit = 2.0 * self.radius / ((n_iter + 1.0) * (n_iter + 2.0))
        coef = np.zeros((self.n_outputs, self.n_features))
        intercept = np.zeros(self.n_outputs)
        inside = self.features < self.n_features
        np.add.at(coef, (self.outputs[inside], self.features[inside]), steps[inside])
        np.add.at(intercept, self.outputs[~inside], steps[~inside])
        coef *= unit
        return coef, intercept * (unit * self.intercept_value)


def choose_resolution(n_samples: int | None, eta: float) -> int:
    """Units a row may add to a score, from public numbers: as fine as 32-bit sums allow.

    Without a public number of rows 2^11, enough for a million rows in one column; more rows than
    stated make the sums 64-bit wide and change nothing else. A large eta needs finer units; what
    one row adds stays a 32-bit number.
    """
    bits = 11 if n_samples is None else int(math.log2(_INT32_MAX / n_samples))
    needed = math.ceil(math.log2(32.0 * eta)) if eta > 0 else 0
    return int(2 ** min(max(min(bits, 24), 8, needed), 29))


def fast_frank_wolfe(
    data: BoundedData,
    problem: Problem,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> History:
    """Run `problem.n_iter` private selections (arg max if kappa is infinite); return the history."""
    state, order = build_state(data, problem)
    mode = kernel.ARGMAX if math.isinf(problem.kappa) else kernel.DRAW
    t, chunk = 0, 16
    while t < problem.n_iter:  # chunks let Ctrl-C and the progress bar in
        last = min(t + chunk, problem.n_iter)
        kernel.advance(state, rng, t, last, mode)
        if progress is not None:
            progress(last - t)
        t, chunk = last, min(2 * chunk, 1024)
    return history_of(state, order, data, problem)


def fast_frank_wolfe_with(
    selection: Selection,
    data: BoundedData,
    problem: Problem,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> History:
    """The same run with another selection structure, told of every touched cell.

    Exact freshness then means a full refresh at every step: only the fused kernel can verify.
    """
    state, order = build_state(data, problem, track_all=True)
    ints = state.ints
    ints[kernel.REBUILD] = 1
    for t in range(problem.n_iter):
        kernel.prepare(state, t)
        if ints[kernel.REBUILD] or ints[kernel.RISERS] > state.risers.size:
            selection.rebuild(state.score)
        else:
            selection.update(state.risers[: ints[kernel.RISERS]], state.score)
        ints[kernel.REBUILD] = ints[kernel.RISERS] = 0
        state.cells[t], state.signs[t] = selection.draw(rng)
        kernel.advance(state, rng, t, t + 1, kernel.MOVE)
        if progress is not None:
            progress(1)
    return history_of(state, order, data, problem)


def replay(
    data: BoundedData, problem: Problem, history: History, n_steps: int | None = None
) -> State:
    """The state after the first `n_steps` of `history`, from the rows and the history alone."""
    state, order = build_state(data, problem)
    label_of = np.empty(len(order), np.int64)
    label_of[order] = np.arange(len(order))
    state.cells[:] = label_of[history.features] * problem.n_outputs + history.outputs
    state.signs[:] = -history.signs
    n_steps = problem.n_iter if n_steps is None else n_steps
    unused = make_generator(0)  # the kernel wants one; a replay draws nothing
    kernel.advance(state, unused, 0, n_steps, kernel.REPLAY)
    return state


def exact_scores(state: State, order: np.ndarray, t: int) -> np.ndarray:
    """Scores at the true margins of step t, in the order of the features; settles every row."""
    kernel._refresh_all(state, t)
    n_outputs = int(state.ints[kernel.OUTPUTS])
    scores = np.empty((len(order), n_outputs), np.int64)
    scores[order] = state.score.reshape(-1, n_outputs)
    return scores


def history_of(state: State, order: np.ndarray, data: BoundedData, problem: Problem) -> History:
    """The picks in the caller's numbering of features."""
    cells = state.cells.astype(np.int64)
    return History(
        features=order[cells // problem.n_outputs].astype(np.int64),
        outputs=cells % problem.n_outputs,
        signs=-state.signs.astype(np.int64),
        radius=problem.radius,
        n_features=data.X.shape[1],
        n_outputs=problem.n_outputs,
        intercept_value=problem.feature_bound,
    )


def build_state(
    data: BoundedData, problem: Problem, track_all: bool = False
) -> tuple[State, np.ndarray]:
    """Lay out the rows, take the scores at w = 0, and make the first proposals.

    Returns the state and the feature behind each label (the last feature is the intercept).
    `track_all` makes every touched cell appear in `state.risers`, for an outside sampler.
    """
    X, K, bound = data.X, problem.n_outputs, problem.feature_bound
    n, p = X.shape
    width = p + int(problem.fit_intercept)
    counts = np.zeros(width, np.int32)
    _count_columns(X.indices, counts)
    if problem.fit_intercept:
        counts[p] = n
    order = np.empty(width, np.int32)
    label_of = np.empty(width, np.uint32)
    nnz = X.indices.size + (n if problem.fit_intercept else 0)
    # One type of pointers for nearly all data: one compiled kernel.
    pointer = np.int32 if nnz <= _INT32_MAX else np.int64
    colptr = np.empty(width + 1, pointer)
    _order_by_count(counts, order, label_of, colptr)
    del counts
    indptr: np.ndarray = X.indptr.astype(pointer, copy=False)
    if problem.fit_intercept:
        indptr = indptr + np.arange(n + 1, dtype=pointer)
    cols, vals = np.empty(nnz, np.uint32), np.empty(nnz, np.float32)
    rows, cvals = np.empty(nnz, np.uint32), np.empty(nnz, np.float32)
    fill = colptr[:-1].copy()
    _lay_out(
        X.indptr, X.indices, X.data, 1.0 / bound, label_of, p, indptr, cols, vals, rows, cvals, fill
    )
    del label_of, fill
    mass, count = np.zeros(HEAVY + 1), np.zeros(HEAVY + 1, np.int64)
    _column_bounds(colptr, cvals, mass, count)

    cells = width * K
    # The width of the sums is invisible in the law: the sums are exact either way.
    wide = (mass.max() + 1.0) * problem.resolution + count.max() > _INT32_MAX
    ints, reals = np.zeros(20, np.int64), np.zeros(8)
    ints[kernel.OUTPUTS], ints[kernel.LOSS] = K, kernel.LOSSES[problem.loss.name]
    ints[kernel.RESOLUTION], ints[kernel.STEPS] = problem.resolution, problem.n_iter
    ints[kernel.FRESHNESS] = FRESHNESS[problem.freshness]
    ints[kernel.EXACT_SIGN] = not problem.private_sign
    ints[kernel.DEBT_LIMIT] = cells // 8 + nnz // 16 + 1000
    # A full refresh costs about as much as new boxes for so many rows (nanoseconds).
    row = 100 + 3 * K * nnz / max(n, 1)
    ints[kernel.AFFORD] = 1 + (K * (3 * n + 0.7 * nnz) + 2 * cells) / row
    ints[kernel.LOOK] = 16
    reals[kernel.REACH] = problem.radius * bound
    reals[kernel.SLOPE_BOUND], reals[kernel.SMOOTHNESS] = (
        problem.slope_bound,
        problem.loss.smoothness,
    )
    reals[kernel.CUTOFF] = getattr(problem.loss, "cutoff", 0.0)
    drawing = not math.isinf(problem.kappa) and not track_all
    if not math.isinf(problem.kappa):
        reals[kernel.KAPPA] = problem.unit_kappa
        ints[kernel.WIDTH] = math.ceil(math.log(2.0) / reals[kernel.KAPPA] * (1.0 + 1e-12))
    else:
        ints[kernel.WIDTH] = 1
    pool = (cells if cells <= 10**6 else cells // 4) * 2 + 64 * (kernel.B + 2) if drawing else 1
    state = State(
        indptr=indptr, cols=cols, vals=vals, colptr=colptr, rows=rows, cvals=cvals,
        y=np.zeros(n) if data.y is None else data.y.astype(np.float64),
        v=np.zeros(n * K), mref=np.zeros(n * K), q=np.zeros(n * K, np.int32),
        due=np.full(n, problem.n_iter, np.int32),
        after=np.full(n, -1, np.int32), before=np.full(n, -1, np.int32),
        head=np.full(problem.n_iter + 1, -1, np.int32),
        score=np.zeros(cells, np.int64 if wide else np.int32),
        slot=np.full(cells if drawing or track_all else 1, -1, np.int32),
        members=np.zeros(pool, np.int32), depth_of=np.zeros(pool, np.uint8),
        start=np.zeros(kernel.B + 1, np.int64), size=np.zeros(kernel.B + 1, np.int64),
        room=np.zeros(kernel.B + 1, np.int64),
        slack=np.zeros(HEAVY + 1, np.int64),
        limit=np.full(HEAVY * K + 1, -1 if track_all else 2**62, np.int64),
        column_mass=mass, column_count=count,
        risers=np.zeros(2**22 if track_all else 4096, np.int32),
        scratch=np.zeros(n, np.int32), units=np.zeros(K, np.int32),
        cells=np.zeros(problem.n_iter, np.int32), signs=np.zeros(problem.n_iter, np.int8),
        ints=ints, reals=reals,
    )  # fmt: skip
    kernel._refresh_all(state, 0)
    if problem.freshness == "tolerance":
        kernel._set_tau(state, problem.tolerance)
    if problem.freshness == "exact" and not track_all:
        kernel._choose_tau(state, 0)
    if drawing:
        kernel._rebuild(state)
    return state, order


# ---- layout --------------------------------------------------------------------------------------


@njit(cache=True)
def _count_columns(indices, counts):  # type: ignore[no-untyped-def]
    for p in range(indices.size):
        counts[indices[p]] += 1


@njit(cache=True)
def _order_by_count(counts, order, label_of, colptr):  # type: ignore[no-untyped-def]
    """Labels by falling column count (counting sort), and the column pointers of the labels."""
    largest = 0
    for j in range(counts.size):
        largest = max(largest, counts[j])
    at = np.zeros(largest + 2, np.int64)
    for j in range(counts.size):
        at[largest - counts[j] + 1] += 1
    for c in range(largest + 1):
        at[c + 1] += at[c]
    for j in range(counts.size):
        label = at[largest - counts[j]]
        at[largest - counts[j]] += 1
        order[label], label_of[j] = j, label
    colptr[0] = 0
    for label in range(counts.size):
        colptr[label + 1] = colptr[label] + counts[order[label]]


@njit(cache=True)
def _lay_out(  # type: ignore[no-untyped-def]
    indptr, indices, data, factor, label_of, p, new_indptr, cols, vals, rows, cvals, fill
):
    """Relabelled rows and columns in one pass; a last column of ones where rows got longer."""
    for i in range(indptr.size - 1):
        at = new_indptr[i]
        for e in range(indptr[i], indptr[i + 1]):
            label = label_of[indices[e]]
            x = np.float32(data[e] * factor)
            cols[at], vals[at] = label, x
            at += 1
            f = fill[label]
            rows[f], cvals[f] = i, x
            fill[label] = f + 1
        if at < new_indptr[i + 1]:
            label = label_of[p]
            cols[at], vals[at] = label, 1.0
            f = fill[label]
            rows[f], cvals[f] = i, 1.0
            fill[label] = f + 1


@njit(cache=True)
def _column_bounds(colptr, cvals, mass, count):  # type: ignore[no-untyped-def]
    """Sum of magnitudes and number of entries of the heavy columns; the largest of all others."""
    for label in range(colptr.size - 1):
        c = min(label, mass.size - 1)
        total = 0.0
        for e in range(colptr[label], colptr[label + 1]):
            total += abs(cvals[e])
        mass[c] = max(mass[c], total)
        count[c] = max(count[c], colptr[label + 1] - colptr[label])

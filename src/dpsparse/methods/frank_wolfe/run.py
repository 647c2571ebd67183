"""Frank-Wolfe on the L1 ball with work proportional to the non-zeros touched: the run around the kernel.

Paper: Raff, Khanna, Lu, "Scaling Up Differentially Private LASSO" (Alg. 2). The step itself is
`kernel.advance`; this file goes from step to step and chooses how they are made.

`Steps` is what `Releases.vertices` draws, and the only thing in this package that holds rows. Rows that a fit may hold
in memory go through `Run`, in which rows and noise meet. Of all others every part is asked for its scores at every step
(rows/cells.py). Both draw by the same law. The released history determines the weights, and together with the rows it
determines the state, so the same steps serve a fit and the audit.

| paper | here |
|---|---|
| D, N, S_r, S_c | cells, rows, entries per column, entries per row |
| lambda, T | `radius`, `n_iter` |
| eta_t = 2/(t+2), t = 1.. | w_T = 2 radius / ((T+1)(T+2)) * sum_t (t+2) (-s_t) e_{j_t}, t = 0 .. T-1 |

Alg. 2 refreshes only touched rows although every margin shrinks at every step; here a pick has the law of the exact
gradient. Features are rounded to float32 after division by the feature bound, slopes to 2^-28 of their bound; what a
row adds to a score is a whole number of at most `resolution` units. Proof: docs/proofs/fast_frank_wolfe.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpsparse.exceptions import InternalError, ParameterError
from dpsparse.losses import Huber, Loss
from dpsparse.mechanisms.top_k import top_k
from dpsparse.methods.frank_wolfe import kernel
from dpsparse.random import make_generator
from dpsparse.rows import Rows
from dpsparse.rows.cells import CellsAt, cell_scores
from dpsparse.rows.loss_kernels import CODES, SLOPE_UNITS

INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Problem:
    """The public side of a run: everything the solver gets besides the rows.

    `offset` is a public margin per output that every row starts from, for instance the log-odds of
    a noisy class count; empty means zero. It must be known when `slope_bound` is chosen
    (`Loss.slope_bound`) and is added to the published intercept.
    """

    loss: Loss
    radius: float
    n_iter: int
    kappa: float  # per unit of sum_i slope_i x_ij; infinite for the arg max
    slope_bound: float
    resolution: int
    feature_bound: float = 1.0
    n_outputs: int = 1
    fit_intercept: bool = True
    offset: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_public(
            self.radius, self.feature_bound, self.slope_bound, self.offset, self.unit_kappa
        )
        if self.offset and len(self.offset) != self.n_outputs:
            raise ParameterError("offset needs one number per output.")
        S = self.resolution
        if not (0 < S <= 2**30 and S & (S - 1) == 0):
            raise ParameterError("resolution must be a power of two of at most 2^30.")

    @property
    def cutoff(self) -> float:
        """Where the loss becomes linear; 0 for a loss that has no such place."""
        return self.loss.cutoff if isinstance(self.loss, Huber) else 0.0

    @property
    def unit_kappa(self) -> float:
        """kappa per unit of the whole-number scores; a row moves a score by <= resolution units."""
        return self.kappa * self.feature_bound * self.slope_bound / self.resolution


def check_public(
    radius: float,
    feature_bound: float,
    slope_bound: float,
    offset: tuple[float, ...] = (),
    unit_kappa: float = math.inf,
) -> None:
    """Refuse public numbers that cannot be carried through a run; call it before spending."""
    numbers = {
        "radius": radius,
        "feature_bound": feature_bound,
        "slope_bound": slope_bound,
        "radius * feature_bound": radius * feature_bound,
        "feature_bound * slope_bound": feature_bound * slope_bound,
    }
    for name, number in numbers.items():
        if not 2.0**-100 <= number <= 2.0**100:
            raise ParameterError(
                f"{name} must be between 2^-100 and 2^100, got {number!r}; rescale the features."
            )
    if not unit_kappa >= 2.0**-56:  # a depth of the sampler must be a 64-bit number
        raise ParameterError("epsilon is too small for that many steps; lower n_iter.")
    if not all(abs(b) <= 2.0**100 for b in offset):
        raise ParameterError("offset must be finite and at most 2^100.")


@dataclass(frozen=True)
class Units:
    """The way from the weights of a run to weights on the rows as they are; all of it is released or public."""

    stretch: np.ndarray | None = None
    centre: np.ndarray | None = None
    middle: float = 0.0
    unit: float = 1.0

    def publish(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights on the rows as they are."""
        if self.stretch is not None:
            coef = coef * (self.stretch * self.unit)
        elif self.unit != 1.0:
            coef = coef * self.unit
        intercept = intercept * self.unit + self.middle
        if self.centre is not None:
            intercept = intercept - np.sum(coef * self.centre, axis=1)
        return coef, intercept

    def rescaled(self, factors: np.ndarray) -> Units:
        """The same for columns that are multiplied by 1/factors."""
        stretch = factors if self.stretch is None else self.stretch * factors
        centre = None if self.centre is None else self.centre / factors
        return replace(self, stretch=stretch, centre=centre)


@dataclass(frozen=True)
class History:
    """What a run releases: for each step a cell (feature, output) and the sign of its vertex.

    The gap and the objective of a step are not here: both need the exact gradient or the rows, which are not released.
    """

    features: np.ndarray  # the number of features stands for the intercept
    outputs: np.ndarray
    signs: np.ndarray  # of the vertex moved to
    radius: float
    n_features: int
    n_outputs: int
    intercept_value: float
    offset: tuple[float, ...] = ()
    units: Units = Units()

    @classmethod
    def of(cls, problem: Problem, n_features: int, cells: np.ndarray, signs: np.ndarray) -> History:
        """Picks as they may be released: cells in the order of scores, signs of the vertices moved to."""
        K, p = problem.n_outputs, problem
        places = cells // K, cells % K
        return cls(*places, signs, p.radius, n_features, K, p.feature_bound, p.offset)

    def weights(self, n_steps: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """coef of shape (n_outputs, n_features) and intercept of shape (n_outputs,) after the first `n_steps` picks,
        or after all of them."""
        n_iter = len(self.signs) if n_steps is None else n_steps
        if not 0 <= n_iter <= len(self.signs):
            raise ParameterError(f"n_steps must be between 0 and {len(self.signs)}, got {n_iter}.")
        features, outputs = self.features[:n_iter], self.outputs[:n_iter]
        steps = self.signs[:n_iter] * (np.arange(n_iter) + 2.0)
        unit = 2.0 * self.radius / ((n_iter + 1.0) * (n_iter + 2.0))
        coef = np.zeros((self.n_outputs, self.n_features))
        intercept = np.zeros(self.n_outputs)
        constant = features == self.n_features
        inside = ~constant
        picked = outputs[inside], features[inside]
        np.add.at(coef, picked, steps[inside])
        np.add.at(intercept, outputs[constant], steps[constant])
        coef[picked] = unit * coef[picked]  # millions of others stay untouched zeros
        intercept *= unit * self.intercept_value
        return self.units.publish(coef, intercept + np.asarray(self.offset or 0.0))


def choose_resolution(n_samples: int | None, eta: float) -> int:
    """Units a row may add to a score, from public numbers: as fine as 32-bit sums allow, up to a million rows.

    Beyond that about 2 sqrt(n), in 64-bit sums: what rounding adds to a score, of sd .29 sqrt(n)/S rows, stays below
    .3 of a row. Without a public number of rows 2^11, enough for a million rows in one column; more rows than
    stated make the sums 64-bit wide and change nothing else. A large eta needs finer units; what
    one row adds stays a 32-bit number.
    """
    n = n_samples or 2**20
    bits = (
        int(math.log2(INT32_MAX / n)) if n_samples and n < 2**20 else 1 + (n - 1).bit_length() // 2
    )
    needed = math.ceil(math.log2(32.0 * eta)) if eta > 0 else 0
    return int(2 ** min(max(min(bits, 24), 8, needed), 29))


Progress = Callable[[int], None] | None
_GROUPS = 2**8  # of columns: as many places as the transpose writes to at a time


@dataclass(frozen=True, eq=False)
class RowArrays:
    """Clipped rows as CSR arrays with sorted indices, `values` in float32 or float64. Nothing is copied: a run reads
    them and keeps their transpose beside them."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    targets: np.ndarray  # class codes, or numbers
    n_features: int


class Run:
    """The state of one run and how it goes on; private, apart from its `history()`.

    `step` is the number of picks made. A run starts at w = 0.
    """

    def __init__(self, rows: RowArrays, problem: Problem) -> None:
        self.problem, self.n_features, self.step = problem, rows.n_features, 0
        matrix, self.column_mass, longest = lay_out(rows, problem)
        self.state = make_state(rows, problem, matrix, self.column_mass, longest)
        self._unused = make_generator(0)  # for the kernel where it draws nothing
        self._stopped_at = -1  # step at which the kernel stopped last
        self._choose_way()

    # ---- going on ----

    def draw(self, rng: np.random.Generator, n_steps: int, progress: Progress = None) -> None:
        """Make `n_steps` picks."""
        last, chunk = self.step + n_steps, 16
        while self.step < last:  # chunks let Ctrl-C and the progress bar in
            stop = min(self.step + chunk, last)
            done = self.step
            if math.isinf(self.problem.kappa):
                self._take_largest(stop)
            else:
                self._advance(rng, stop)
            if progress is not None:
                progress(stop - done)
            chunk = min(2 * chunk, 1024)

    def serve(self) -> None:
        """Bring the scores up to date for the present step, without a pick."""
        kernel.advance(self.state, self._unused, self.step, self.step + 1, kernel.SERVE)

    def move(self, cell: int, sign: int) -> None:
        """Make one pick from outside."""
        self.state.cells[self.step], self.state.signs[self.step] = cell, sign
        kernel.advance(self.state, self._unused, self.step, self.step + 1, kernel.MOVE)
        self.step += 1

    def _advance(self, rng: np.random.Generator, last: int) -> None:
        while self.step < last:
            self.step = int(kernel.advance(self.state, rng, self.step, last, kernel.DRAW))
            self.refuse_broken_draw()
            if self.state.sc.event == kernel.RETUNE:
                self.state.sc.event = kernel.NOTHING
                # A step that stops twice is made on exact scores, which end it (Lemma 5 of the proof).
                self._choose_way(boxes=self.step != self._stopped_at)
                self._stopped_at = self.step

    def refuse_broken_draw(self) -> None:
        """End the run where the kernel found that a draw would not have its law."""
        if self.state.sc.event == kernel.BROKEN:
            raise InternalError(
                "A vertex cannot be drawn with its probability: a score is further off than its bound says. "
                "Nothing was released. This is a bug."
            )

    def _take_largest(self, last: int) -> None:
        """Picks without noise: the cell of largest |G|, the first among equals."""
        sc = self.state.sc
        while self.step < last:
            if sc.way == kernel.EXACT and self.step >= sc.look:
                self._choose_way()
            self.serve()
            self.move(*self._largest())
            if sc.renewed > 4 * sc.refresh_cost:
                self._choose_way()

    def _largest(self) -> tuple[int, int]:
        """Every cell whose upper end reaches the best lower end is looked at exactly."""
        state = self.state
        size = np.abs(state.sampler.score.astype(np.int64))
        slack = np.repeat(state.sampler.slack, self.problem.n_outputs)
        cells = np.flatnonzero(size + slack >= (size - slack).max(initial=0))
        if cells.size == 0:
            return 0, 1
        exact = np.empty(cells.size, np.int64)
        kernel.exact_scores(state.matrix, state.rows, state.sc, cells, self.step, exact)
        best = int(np.abs(exact).argmax())
        return int(cells[best]), 1 if exact[best] >= 0 else -1

    # ---- scores, and how stale they may be ----

    def exact_scores(self) -> np.ndarray:
        """Scores at the true margins, (features, outputs), the intercept last."""
        self._leave_boxes()
        self.serve()
        return self.stored_scores()

    def _leave_boxes(self) -> None:
        if self.state.sc.way != kernel.EXACT:
            self.state.sc.way, self.state.sampler.slack[:] = kernel.EXACT, 0

    def stored_scores(self) -> np.ndarray:
        """The scores as they are, (features, outputs), the intercept last."""
        return self.state.sampler.score.reshape(-1, self.problem.n_outputs).astype(np.int64)

    @property
    def scale(self) -> float:
        """Margins are offset + scale * v."""
        return float(2.0 * self.state.sc.reach / ((self.step + 1.0) * (self.step + 2.0)))

    def _choose_way(self, boxes: bool = True) -> None:
        """Exact scores at the present step, and from here on the cheaper way to make steps."""
        sc = self.state.sc
        self._leave_boxes()
        self.serve()
        sc.renewed, sc.look = 0, self.step + self.step // 2 + 16
        tau = self._choose_tau() if boxes else 0.0
        if tau > 0.0:
            self.open_boxes(tau)

    def open_boxes(self, tau: float) -> None:
        """Boxes in which every slope stays within tau * slope_bound of the present one, and the slack that follows."""
        sc, slack = self.state.sc, self.state.sampler.slack
        sc.way, sc.theta = kernel.OPENING, tau * sc.slope_bound / sc.smoothness
        for first in range(0, slack.size, 2**16):  # so that what is in between stays in the caches
            columns = slice(first, first + 2**16)
            slack[columns] = self._slack(tau, columns)

    def _slack(self, tau: float, columns: np.ndarray | slice) -> np.ndarray:
        """How far scores of some columns can be off if every slope is within tau * slope_bound (Lemma 3)."""
        off = tau + 2.0 / SLOPE_UNITS  # the last term: slopes are rounded
        mass = self.column_mass[columns].astype(np.float64)
        moved = np.ceil(self.problem.resolution * off * (1.0 + 1e-6) * mass)
        return np.asarray(moved.astype(np.int64) + self._lengths(columns))

    def _lengths(self, columns: np.ndarray | slice) -> np.ndarray:
        start = self.state.matrix.start
        return np.asarray(start[1:][columns] - start[:-1][columns], np.int64)

    def _choose_tau(self) -> float:
        """The largest tau whose doubts cost little, or 0 if boxes would not pay.

        Wide boxes are left rarely, but make scores uncertain; uncertain scores make proposals that
        are rejected (a factor e^{2 kappa slack} too many) and picks that must be verified (a column
        to read). So: estimate from the present scores which columns a draw would pick, halve tau
        until its doubts cost about as much as the pick itself, and compare the rows that would
        leave such boxes per step with what a step without boxes costs.
        """
        state, sc, mass = self.state, self.state.sc, self.column_mass
        # All heavy columns, and a regular sample of the others for all of them.
        heavy = mass > mass.max(initial=0.0) / 64
        stride = 1 + mass.size // 20_000
        light = np.arange(0, mass.size, stride)
        columns = np.append(np.flatnonzero(heavy), light[~heavy[light]])
        score = state.sampler.score.reshape(-1, self.problem.n_outputs)[columns]
        score = np.abs(score.astype(np.float64))
        # Without noise as if a few cells near the largest were in doubt.
        kappa = sc.kappa or 30.0 / (score.max(initial=0.0) + 1.0)
        likely = np.exp(kappa * (score - score.max(initial=0.0))).sum(axis=1)
        likely[np.count_nonzero(heavy) :] *= stride
        likely /= max(likely.sum(), 1.0)
        length = self._lengths(columns)
        touched = float((likely * length).sum())  # rows of a pick
        # Margins shrink by 2/(t+2) in a step: together they move by this much.
        shrink = self.scale * np.abs(state.rows.v).sum() * 2.0 / (self.step + 2.0)
        tau = 0.25
        while tau > 1e-5:
            doubt = np.expm1(np.minimum(2.0 * kappa * self._slack(tau, columns), 50.0))
            if (doubt * likely * (1.0 + 0.2 * length)).sum() <= 0.4 + 0.8 * touched:
                theta = tau * sc.slope_bound / sc.smoothness
                left = touched + shrink / (1.5 * theta)  # rows leaving their box in a step
                return tau if left < sc.refresh_cost else 0.0
            tau *= 0.5
        return 0.0

    def history(self) -> History:
        """The picks so far: what may be released."""
        cells, signs = self.state.cells[: self.step], self.state.signs[: self.step]
        return History.of(self.problem, self.n_features, cells, -signs.astype(np.int64))


class Steps:
    """Steps of a run on private rows."""

    kind: ClassVar[str] = "picks"

    def __init__(self, rows: Rows, problem: Problem) -> None:
        self.rows, self.problem = rows, problem

    @cached_property
    def _arrays(self) -> RowArrays:
        return RowArrays(*self.rows.arrays())

    @property
    def n_cells(self) -> int:
        """Candidates, each with two signs."""
        width = self.rows.n_features + self.problem.fit_intercept
        return width * self.problem.n_outputs

    @property
    def fused(self) -> bool:
        """Whether the kernel draws; else whole-number scores come from all parts at every step."""
        return self.rows.fit_in_memory

    def draw(self, rng: np.random.Generator, n_steps: int, progress: Progress) -> History:
        if self.fused:
            run = Run(self._arrays, self.problem)
            run.draw(rng, n_steps, progress)
            return run.history()
        return self._draw_from_parts(rng, n_steps, progress)

    def scores(self, history: History) -> Iterator[np.ndarray]:
        """Whole-number scores of all cells before each pick; for the audit."""
        if not self.fused:
            for t in range(len(history.signs)):
                yield cell_scores(self.rows, self._at(history, t)).ravel()
            return
        run = Run(self._arrays, self.problem)
        cells = history.features * self.problem.n_outputs + history.outputs
        for cell, sign in zip(cells, -history.signs, strict=True):
            yield run.exact_scores().ravel()
            run.move(int(cell), int(sign))

    def _at(self, history: History, n_steps: int) -> CellsAt:
        """The released weights after the first `n_steps` picks, on entries over the feature bound."""
        problem, d = self.problem, self.rows.n_features
        weights = np.zeros((d + 1, problem.n_outputs))
        gain = 2.0 * problem.radius * problem.feature_bound / ((n_steps + 1.0) * (n_steps + 2.0))
        steps = history.signs[:n_steps] * (np.arange(n_steps) + 2.0)  # whole: sums are exact
        np.add.at(weights, (history.features[:n_steps], history.outputs[:n_steps]), steps)
        return CellsAt(
            weights[: d + problem.fit_intercept] * gain,
            np.asarray(problem.offset or np.zeros(problem.n_outputs), np.float64),
            problem.loss.name, problem.cutoff, problem.slope_bound,
            1.0 / problem.feature_bound, self.rows.domain.target_bound or 1.0, problem.resolution,
            problem.fit_intercept,
        )  # fmt: skip

    def _draw_from_parts(
        self, rng: np.random.Generator, n_steps: int, progress: Progress
    ) -> History:
        """Picks on exact scores that are summed over all parts at every step; no part keeps anything, so that one that
        was lost is asked again. The history does not depend on how rows are cut."""
        cells, signs = np.zeros(n_steps, np.int64), np.zeros(n_steps, np.int64)
        for t in range(n_steps):
            so_far = self.history(cells[:t], signs[:t])
            scores = cell_scores(self.rows, self._at(so_far, t)).ravel()
            pick = self.pick(np.concatenate([scores, -scores]), rng)
            # The step goes against the sign s of e^{kappa s G}.
            cells[t], signs[t] = pick % scores.size, -1 if pick < scores.size else 1
            if progress is not None:
                progress(1)
        return self.history(cells, signs)

    def pick(self, scores: np.ndarray, rng: np.random.Generator) -> int:
        """A candidate with probability proportional to e^{kappa score}."""
        return int(top_k(scores, 1, self.problem.unit_kappa, rng)[0])

    def history(self, cells: np.ndarray, signs: np.ndarray) -> History:
        """Picks as they may be released: cells in the order of `scores`, signs of the vertices moved to."""
        return History.of(self.problem, self.rows.n_features, cells, signs)


# ---- rows, columns and scores as the kernel reads them ----------------------------------------------


def lay_out(rows: RowArrays, problem: Problem) -> tuple[kernel.Matrix, np.ndarray, int]:
    """Rows and their transpose, a bound on the sum of magnitudes of every column, and the length of the longest.

    The intercept is a last column of ones.
    """
    n, p = rows.indptr.size - 1, rows.n_features
    width = p + int(problem.fit_intercept)
    indices = rows.indices[: rows.indptr[-1]]
    nnz = indices.size + (n if problem.fit_intercept else 0)
    pointer = np.int32 if nnz <= INT32_MAX else np.int64
    start, mass = np.zeros(width + 1, pointer), np.zeros(width, np.float32)
    entries, room = np.empty(nnz, np.uint64), np.empty(indices.size, np.uint64)
    shift = min(16, max(0, p.bit_length() - _GROUPS.bit_length() + 1))
    longest = kernel.transpose(
        rows.indptr, indices, rows.values, 1.0 / problem.feature_bound, shift,
        start[: p + 1], np.empty((p >> shift) + 1, pointer), np.empty(indices.size, np.uint16),
        room, entries, mass[:p],
    )  # fmt: skip
    if problem.fit_intercept:
        one = np.float32(1.0).view(np.uint32).astype(np.uint64)
        entries[nnz - n :] = np.arange(n, dtype=np.uint64) << np.uint64(32) | one
        start[width], mass[p], longest = nnz, n, n
    matrix = kernel.Matrix(rows.indptr, rows.indices, rows.values, start, entries)
    return matrix, mass, int(longest)


def make_state(
    rows: RowArrays, problem: Problem, matrix: kernel.Matrix, mass: np.ndarray, longest: int
) -> kernel.State:
    n, K, T = rows.indptr.size - 1, problem.n_outputs, problem.n_iter
    nnz, width = matrix.entries.size, mass.size
    cells = width * K
    sc = np.zeros(1, kernel.SCALARS).view(np.recarray)[0]
    sc.outputs, sc.loss, sc.steps = K, CODES[problem.loss.name], T
    sc.resolution, sc.n_cells = problem.resolution, cells
    sc.intercept = rows.n_features if problem.fit_intercept else -1
    sc.reach, sc.factor = problem.radius * problem.feature_bound, 1.0 / problem.feature_bound
    sc.slope_bound, sc.smoothness = problem.slope_bound, problem.loss.smoothness
    sc.cutoff, sc.fresh_at, sc.width = problem.cutoff, -1, 1
    if not math.isinf(problem.kappa):
        sc.kappa = problem.unit_kappa
        sc.width = math.ceil(math.log(2.0) / sc.kappa * (1.0 + 1e-12))
    sc.debt_limit = cells // 8 + nnz // 16 + 1000
    # Nanoseconds, roughly: a new box of a row, whose scores may lie outside of the caches, and all rows and scores.
    row = 100 + 3 * K * (1 + 8 * cells / 2**22) * nnz / max(n, 1)
    sc.refresh_cost = 1 + (K * (3 * n + 0.7 * nnz) + 4 * cells) / row
    # The width of the sums is invisible in the law: the sums are exact either way.
    wide = (float(mass.max(initial=0.0)) + 1.0) * problem.resolution + longest > INT32_MAX
    sums = np.int64 if wide else np.int32
    pool = 2 * cells + 64 * (kernel.B + 2)
    return kernel.State(
        matrix,
        kernel.Rows(
            y=np.asarray(rows.targets, np.float64) if rows.targets.size else np.zeros(n),
            v=np.zeros(n * K),
            mref=np.zeros(n * K),
            q=np.zeros(n * K, np.int32),
            offset=np.asarray(problem.offset or np.zeros(K), np.float64),
            units=np.zeros(K, np.int32),
            leavers=np.zeros(n, np.int32),
        ),
        kernel.Calendar(
            due=np.full(n, T, np.int32),
            after=np.full(n, -1, np.int32),
            before=np.full(n, -1, np.int32),
            head=np.full(T + 1, -1, np.int32),
        ),
        kernel.Sampler(
            score=np.zeros(cells, sums),
            slack=np.zeros(width, sums),
            slot=np.zeros(cells, np.int32),
            members=np.zeros(pool, np.int32),
            depth_of=np.zeros(pool, np.uint8),
            start=np.ones(kernel.B + 2, np.int64),
            size=np.zeros(kernel.B + 1, np.int64),
            risers=np.zeros(4096, np.int32),
        ),
        cells=np.zeros(T, np.int64),
        signs=np.zeros(T, np.int8),
        sc=sc,
    )

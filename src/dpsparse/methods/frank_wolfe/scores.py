"""The scores of a run: exact when asked for, and between two such moments no staler than a draw can bear.

A pick has the law of the exact gradient: every score carries a slack, a bound on how far it is off, and a draw in
doubt reads its column. There are two ways to keep slacks small, and `_choose_way` takes the cheaper one: boxes around
the margins of rows (README.md), and lagging scores that are pulled when all slopes together have moved too far.
Neither changes the law: docs/proofs/fast_frank_wolfe.md.

The second half of the file lays rows and columns out for the kernel. Nothing of the rows is copied but their transpose:
the kernel walks along rows to refresh slopes and down columns to move scores. Features are rounded to float32 after
division by the feature bound. Columns that have entries get labels, heavy ones first, so that what is read at every
step lies together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dpsparse.domain.clipping import HUGE, BoundedData, cast
from dpsparse.exceptions import InternalError
from dpsparse.methods.frank_wolfe import kernel
from dpsparse.methods.frank_wolfe.kernel import BLOCK, HEAVY, SLOPE_UNITS, B
from dpsparse.methods.frank_wolfe.problem import INT32_MAX, Problem
from dpsparse.rows.loss_kernels import CODES


@dataclass(frozen=True, eq=False)
class RowArrays:
    """Clipped rows as plain CSR arrays with sorted indices; `values` in float32 or float64, which the kernel clips to
    `limit` and casts as it reads them.

    Nothing is copied: the solver reads these arrays and keeps its own transpose beside them.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    targets: np.ndarray  # class codes, or numbers
    n_features: int
    limit: float = HUGE

    def matrix(self) -> sp.csr_array:
        """The same as a SciPy matrix, for the plain solver."""
        shape = (len(self.indptr) - 1, self.n_features)
        return sp.csr_array(
            (cast(self.values, self.limit).astype(np.float64), self.indices, self.indptr),
            shape=shape,
        )

    @classmethod
    def of(cls, data: BoundedData) -> RowArrays:
        X = data.X
        return cls(X.indptr, X.indices, X.data, data.y, X.shape[1])


# Entries go to buckets of this size, each sorted within the caches, and columns to at most this many groups.
_BUCKET, _GROUPS = 2**15, 2**12
# Without boxes: the kappa * slack up to which rejecting and verifying costs less than a pull.
_DOUBT = 1.75


class Scores:
    """State and scores of a run that has made `step` picks; private."""

    def __init__(self, rows: RowArrays, problem: Problem) -> None:
        self.problem, self.n_features, self.step = problem, rows.n_features, 0
        matrix, largest = lay_out(rows, problem)
        self.column_mass, self.column_norm = np.zeros(HEAVY + 1), np.zeros(HEAVY + 1)
        self.column_count = np.zeros(HEAVY + 1, np.int64)
        kernel.column_bounds(matrix, largest, self.column_mass, self.column_norm, self.column_count)
        # The width of the sums is invisible in the law: the sums are exact either way.
        bound = (self.column_mass.max() + 1.0) * problem.resolution + self.column_count.max()
        self.state = make_state(rows, problem, matrix, bound > INT32_MAX)
        # Lagging: how far a column's score may have moved since it was pulled (S / 2^28), without rounding; infinite
        # where the score was forgotten.
        self._drift = np.zeros(HEAVY + 1)
        self._caught = 0  # step of the last pull without boxes
        self._wait = 8  # pulls of all columns (`sc.seek`) after leaders were sought in vain
        self._since, self.pull_rate = (0, 0), 0.2  # pulls per step without boxes, and since when

    @property
    def _drawing(self) -> bool:
        return not math.isinf(self.problem.kappa)

    # ---- scores ----

    def refresh(self) -> None:
        """Every slope and every score exact at the present step; boxes are centred there."""
        state, sc = self.state, self.state.sc
        kernel.lag_of_rows(state.rows, sc, self.step)
        np.copyto(state.rows.q, state.rows.fresh)
        np.multiply(state.rows.v, self.scale, out=state.rows.mref)
        sc.lag, sc.n_leavers = 0, 0
        self._pull()
        sc.exact_at = self.step

    def _pull(self) -> None:
        """All scores from the stored slopes."""
        state = self.state
        kernel.pull(
            state.matrix, state.rows.q, state.sampler.score, state.sc, 0, state.matrix.begin.size
        )
        light = state.sampler.score[HEAVY * self.problem.n_outputs :]
        if light.size:
            state.sc.light = max(int(light.max()), -int(light.min()))
        self._drift[:] = 0.0
        state.sc.ceiling = -1
        state.sc.rebuild = 1
        state.sc.pulls += 1

    def _catch_up(self) -> None:
        """The slopes have moved further than the slack allows: pull the columns that matter.

        A column pulled now is exact. One that is not has drifted by at most what the lags since its
        last pull allow. Those that hardly ever win need not be pulled.
        """
        state, sc = self.state, self.state.sc
        np.copyto(state.rows.q, state.rows.fresh)
        # By Hoelder with |x| <= 1, and by Cauchy-Schwarz, which is far less for long columns.
        self._drift += np.minimum(float(sc.lag), sc.distance * self.column_norm) * (1.0 + 1e-6)
        # Where a single step uses the reserve up, it is only a doubt: draws go without.
        hasty = sc.lag > self._reserve * max(self.step - self._caught, 1)
        self._caught, sc.lag = self.step, 0
        if sc.seek == 0 and self._pull_leaders(0 if hasty else self._reserve):
            self._wait = 8
            self._set_reserve(0 if hasty else self._reserve)
            return
        self._pull()
        sc.exact_at = self.step
        if sc.seek == 0:  # they were sought in vain: not soon again
            sc.seek, self._wait = self._wait, min(2 * self._wait, 256)
        sc.seek -= 1
        self._set_reserve(self._reserve)

    def _pull_leaders(self, reserve: int) -> bool:
        """Pull the heavy columns that may well be drawn; False if all should be pulled.

        No column reaches further than its stale score and its slack, nor than its entries allow. From the furthest
        reach down, columns are pulled until the next one has less than a 32nd of the weight of all cells: as a
        proposal it would be in doubt, and read, but more rarely than it would be pulled. Light columns are left
        alone where the most that one of them can reach makes few proposals that are rejected.
        """
        state, sc, K = self.state, self.state.sc, self.problem.n_outputs
        n_heavy = min(HEAVY, state.matrix.begin.size)
        heavy = state.sampler.score[: n_heavy * K].reshape(n_heavy, K)
        size = np.zeros(HEAVY + 1, np.int64)
        size[:n_heavy] = np.abs(heavy.astype(np.int64)).max(axis=1)
        size[HEAVY] = sc.light
        reach = size + self._slack_of(self._drift + float(reserve))
        # Where the entries say more than a score of long ago: forget it.
        forget = reach[:n_heavy] > self._most()[:n_heavy]
        heavy[forget], self._drift[:n_heavy][forget] = 0, math.inf
        reach = np.minimum(reach, self._most())
        order = np.argsort(-reach[:n_heavy])
        done, chunk, work, best = 0, 4, 0, 0
        while done < n_heavy:
            some = order[done : done + chunk]
            some = some[reach[some] > self._floor(best)]
            if some.size == 0:
                break
            work += int(self.column_count[some].sum())
            if 2 * work > state.matrix.entries.size:
                return False
            kernel.pull_some(state.matrix, state.rows.q, state.sampler.score, sc, some)
            self._drift[some] = 0.0
            best = max(best, int(np.abs(heavy[some].astype(np.int64)).max()))
            done, chunk = done + some.size, 2 * chunk
        if self._proposals(float(reach[HEAVY]), best) > state.matrix.entries.size // 160:
            return False
        sc.ceiling = int(reach[HEAVY])
        return True

    def _most(self) -> np.ndarray:
        """No |score| can be larger."""
        mass = self.problem.resolution * self.column_mass * (1.0 + 1e-6)
        return np.ceil(mass).astype(np.int64) + self.column_count

    def _floor(self, best: float) -> float:
        """A score with a 32nd of the weight of all cells together, which is at least that of the best and 1 each."""
        return (
            max(best, math.log(self.state.sc.n_cells) / self._kappa) - math.log(32.0) / self._kappa
        )

    def _proposals(self, light: float, best: float) -> float:
        """How often a draw proposes if light columns may reach so far."""
        n = math.log(max(self.state.sc.n_cells, 1))
        return math.exp(min(n + self._kappa * light - max(n, self._kappa * best), 700.0))

    def exact_scores(self) -> np.ndarray:
        """Scores at the true margins, (features, outputs), the intercept last; refreshes all."""
        self.refresh()
        return self.stored_scores()

    def stored_scores(self) -> np.ndarray:
        """The scores as they are, (features, outputs), the intercept last."""
        K = self.problem.n_outputs
        labels = self.labels_of(np.arange(self.state.sc.n_cells // K))
        return np.asarray(self.all_scores().reshape(-1, K)[labels], np.int64)

    def all_scores(self) -> np.ndarray:
        """The scores of all cells in the run's own order, columns without entries included."""
        score = self.state.sampler.score
        return np.append(score, np.zeros(self.state.sc.n_cells - score.size, score.dtype))

    def labels_of(self, features: np.ndarray) -> np.ndarray:
        """The run's own names of columns; those without entries come last."""
        matrix, sc, found = self.state.matrix, self.state.sc, np.empty(features.size, np.int64)
        width = sc.n_cells // sc.outputs
        kernel.find_labels(matrix.marks, width, matrix.begin.size, features, found)
        return found

    # ---- how stale scores may be ----

    @property
    def scale(self) -> float:
        """Margins are offset + scale * v."""
        t = self.step
        return float(2.0 * self.state.sc.reach / ((t + 1.0) * (t + 2.0)))

    @property
    def _kappa(self) -> float:
        """Per unit of score; for the arg max as if a few cells near the largest were in doubt."""
        if not math.isinf(self.problem.kappa):
            return self.problem.unit_kappa
        return 30.0 / (float(np.abs(self.state.sampler.score[:HEAVY]).max(initial=0)) + 1.0)

    def _slack_of(self, drift: np.ndarray) -> np.ndarray:
        """How far scores can be off if all slopes together moved by `drift` (in 2^-28).

        A contribution moves by S |dq| |x| and its rounding by 1 unit; |x| <= 1, |dq| <= 2. A forgotten score is
        stored as 0, and its drift is infinite.
        """
        S = self.problem.resolution
        moved = np.minimum(drift * (S / SLOPE_UNITS), 2.0 * S * self.column_mass * (1.0 + 1e-6))
        slack = np.ceil(moved).astype(np.int64) + self.column_count
        return np.where(np.isinf(drift), self._most(), slack)

    @property
    def _reserve(self) -> int:
        """The move of all slopes together that makes a score uncertain by `_DOUBT` / kappa."""
        return min(int(_DOUBT / self._kappa * SLOPE_UNITS / self.problem.resolution), 2**62)

    def _set_reserve(self, reserve: int) -> None:
        """Let all slopes together move by so much; with 0 a column that was pulled now is exact."""
        slack = self._slack_of(self._drift + float(reserve))
        if reserve == 0:
            slack[self._drift == 0.0] = 0
        self.state.sc.reserve, self.state.sampler.slack[:] = reserve, slack

    def set_tau(self, tau: float) -> None:
        """Boxes in which every slope stays within tau * slope_bound, and the slack that follows."""
        sc, problem = self.state.sc, self.problem
        sc.boxes, sc.theta = 1, tau * sc.slope_bound / sc.smoothness
        off = tau + 2.0 / SLOPE_UNITS  # the last term: slopes are rounded
        mass = problem.resolution * off * self.column_mass * (1.0 + 1e-6)
        self.state.sampler.slack[:] = np.ceil(mass).astype(np.int64) + self.column_count

    def _retune(self) -> None:
        """Exact scores, and the better of the two ways."""
        if self.state.sc.ceiling >= 0:  # leaders alone were not enough: not soon again
            self.state.sc.seek, self._wait = self._wait, min(2 * self._wait, 256)
        self.refresh()
        self._choose_way()

    def refuse_broken_draw(self) -> None:
        """End the run where the kernel found that a draw would not have its law."""
        if self.state.sc.event == kernel.BROKEN:
            raise InternalError(
                "A vertex cannot be drawn with its probability: a score is further off than its bound says. "
                "Nothing was released. This is a bug."
            )

    def _look(self) -> None:
        """Would boxes pay by now? Where light columns are left alone they stay so, unless the answer is yes."""
        if self.state.sc.ceiling >= 0:
            self._choose_way()
        else:
            self._retune()

    def _choose_way(self) -> None:
        """Boxes with the tau of `_choose_tau`, or no boxes where they would not pay."""
        sc, t = self.state.sc, self.step
        if not sc.boxes and t > self._since[0]:  # learn how often lagging scores are pulled
            self.pull_rate = (sc.pulls - self._since[1]) / (t - self._since[0])
        self._since = t, int(sc.pulls)
        sc.renewed, sc.look = 0, t + t // 2 + 16
        # Nanoseconds, roughly: slopes of all rows, and now and then a pull; per new box of a row.
        n, K = self.state.rows.y.size, self.problem.n_outputs
        row = nanoseconds_of_a_row(self.state.matrix, self.state.sc.n_cells // K, n, K)
        sc.afford = 1 + 2 * K * n / row + self.pull_rate * sc.refresh_cost
        tau = self._choose_tau()
        if tau > 0.0:
            if sc.ceiling >= 0:
                self.refresh()
            self.set_tau(tau)
            kernel.schedule_all(self.state.rows, self.state.calendar, sc, t)
            sc.renewed = 0
        else:
            sc.boxes, sc.theta = 0, 0.0
            # A ceiling holds for the slopes that it was taken at: any change of them must be answered.
            self._set_reserve(0 if sc.ceiling >= 0 else self._reserve)

    def _choose_tau(self) -> float:
        """The largest tau whose doubts cost little, or 0 if boxes would not pay.

        Wide boxes are left rarely, but make scores uncertain; uncertain scores make proposals that
        are rejected (a factor e^{2 kappa slack} too many) and picks that must be verified (a column
        to read). So: estimate from the present scores which columns a draw would pick, halve tau
        until its doubts cost about as much as the pick itself, and compare the rows that would
        leave such boxes per step with what a step without boxes costs.
        """
        state, sc, kappa = self.state, self.state.sc, self._kappa
        K, score = self.problem.n_outputs, state.sampler.score
        largest = max(
            int(sc.light), int(np.abs(score[: HEAVY * K].astype(np.int64)).max(initial=0))
        )
        # All heavy cells, and a regular sample of the light ones for all of them.
        n_heavy = min(HEAVY * K, score.size)
        stride = 1 + (score.size - n_heavy) // 20_000
        cells = np.append(np.arange(n_heavy), np.arange(n_heavy, score.size, stride))
        likely = np.exp(kappa * (np.abs(score[cells].astype(np.float64)) - largest))
        likely[n_heavy:] *= stride
        labels = cells // K
        length = np.empty(labels.size, np.int64)
        kernel.lengths(state.matrix, labels, length)
        column = np.minimum(labels, HEAVY)
        mass = np.bincount(column, likely, HEAVY + 1)
        work = np.bincount(column, likely * length, HEAVY + 1)
        total = max(mass.sum(), 1.0)
        mass, work = mass / total, work / total
        touched = work.sum()  # rows of a pick
        # Margins shrink by 2/(t+2) in a step: together they move by this much.
        shrink = self.scale * np.abs(state.rows.v).sum() * 2.0 / (self.step + 2.0)
        tau = 0.25
        while tau > 1e-5:
            self.set_tau(tau)
            doubt = np.expm1(np.minimum(2.0 * kappa * state.sampler.slack, 50.0))
            if (doubt * (mass + 0.2 * work)).sum() <= 0.4 + 0.8 * touched:
                left = touched + shrink / (1.5 * sc.theta)  # rows leaving their box in a step
                return tau if left < sc.afford else 0.0
            tau *= 0.5
        return 0.0


# ---- the layout ----------------------------------------------------------------------------------


def lay_out(rows: RowArrays, problem: Problem) -> tuple[kernel.Matrix, float]:
    """The transpose of the rows, a label for every column that has entries, and the largest entry.

    Cells are named label * K + output; the intercept is a column of ones, in the transpose only.
    """
    n, p = rows.indptr.size - 1, rows.n_features
    width = p + int(problem.fit_intercept)
    indptr, indices = rows.indptr, rows.indices[: rows.indptr[-1]]
    nnz = indices.size + (n if problem.fit_intercept else 0)
    # One type of pointers for nearly all data: one compiled kernel.
    pointer, name = (np.int32, np.uint32) if nnz <= INT32_MAX else (np.int64, np.int64)
    counts = np.zeros(width, name)  # of the entries of each column
    entries = np.empty(nnz, np.uint64)
    largest = _sort_by_columns(rows, indices, problem, counts[:p], entries)
    if problem.fit_intercept:
        counts[p] = n
    tally, heavy = np.zeros(n + 1, np.int64), np.empty(min(HEAVY, width), np.int64)
    heavy = heavy[: kernel.choose_heavy(counts, tally, heavy)]
    begin, heavy_end = (np.empty(size, pointer) for size in (width - int(tally[0]) + 1, heavy.size))
    marks = np.empty((-(-width // 64), 4), np.uint64)
    kernel.label_columns(counts, heavy, begin, heavy_end, marks)
    begin = begin[:-1]
    most = float(np.uint32(largest).view(np.float32))
    if problem.fit_intercept and n > 0:
        one = np.float32(1.0).view(np.uint32).astype(np.uint64)
        entries[nnz - n :] = np.arange(n, dtype=np.uint64) << np.uint64(32) | one
        most = 1.0 if heavy[-1] != p else most  # heavy columns are read in any case
    shares = entries.view(np.float32)
    values = rows.values
    floats, doubles = values, np.empty(0)
    if values.dtype == np.float64:
        floats, doubles = np.empty(0, np.float32), values
    matrix = kernel.Matrix(
        indptr,
        rows.indices,
        floats,
        doubles,
        marks,
        entries,
        shares,
        begin,
        heavy_end,
        np.empty(2**11, np.int64),
    )
    if tally[n] > 0:
        kernel.close_ranks(matrix, n)
    return matrix, most


def _sort_by_columns(
    rows: RowArrays, indices: np.ndarray, problem: Problem, counts: np.ndarray, entries: np.ndarray
) -> int:
    """Entries by columns, in the order of columns and rows, and their numbers; few places are written to at a time.

    Returns the largest magnitude, as bits.
    """
    n = rows.indptr.size - 1
    shift = max(0, min(16, counts.size.bit_length() - _GROUPS.bit_length()))
    groups = np.zeros((counts.size >> shift) + 1, np.int64)
    kernel.count_groups(indices, shift, groups)
    bucket_of = np.empty(groups.size, np.int32)
    columns, ends = np.zeros(groups.size + 1, np.int64), np.empty(groups.size, np.int64)
    ends = ends[: kernel.bound_buckets(groups, shift, _BUCKET, bucket_of, columns, ends)]
    places = np.append(0, ends[:-1])
    begins, reached, largest = places.copy(), [], 0
    for first in range(0, n, BLOCK):
        found = kernel.scatter_rows(
            rows.indptr, indices, rows.values, 1.0 / problem.feature_bound, rows.limit, shift, first,
            min(first + BLOCK, n), bucket_of, columns, places, entries,
        )  # fmt: skip
        largest = max(largest, int(found))
        reached.append(places.copy())
    several = np.diff(columns[: ends.size + 1]) > 1  # one column alone is in order
    room = np.empty(int((ends - begins)[several].max(initial=0)), np.uint64)
    kernel.sort_buckets(
        columns, np.array(reached or [begins]), counts, entries, room, np.empty(BLOCK, np.int64)
    )
    return largest


def nanoseconds_of_a_row(matrix: kernel.Matrix, width: int, n: int, K: int) -> float:
    """What a new box costs, roughly: labels and scores of its entries, which may lie outside of the caches."""
    read = 4 * (width + matrix.begin.size * K)
    return 100 + 3 * K * (1 + read / 2**22) * matrix.entries.size / max(n, 1)


def make_state(
    rows: RowArrays, problem: Problem, matrix: kernel.Matrix, wide: bool
) -> kernel.State:
    n, K, T = rows.indptr.size - 1, problem.n_outputs, problem.n_iter
    nnz, cells = matrix.entries.size, matrix.begin.size * K
    width = rows.n_features + int(problem.fit_intercept)
    drawing = not math.isinf(problem.kappa)
    sc = kernel.make_scalars()
    sc.outputs, sc.loss, sc.steps = K, CODES[problem.loss.name], T
    sc.resolution, sc.n_cells, sc.intercept = problem.resolution, width * K, -1
    if problem.fit_intercept and n > 0:
        label = np.empty(1, np.int64)
        kernel.find_labels(
            matrix.marks, width, matrix.begin.size, np.array([rows.n_features]), label
        )
        sc.intercept = label[0]
    sc.reach, sc.factor = problem.radius * problem.feature_bound, 1.0 / problem.feature_bound
    sc.limit = rows.limit
    sc.slope_bound, sc.smoothness = problem.slope_bound, problem.loss.smoothness
    sc.cutoff, sc.fresh_at, sc.exact_at = getattr(problem.loss, "cutoff", 0.0), -1, -1
    sc.width, sc.ceiling = 1, -1
    if not math.isinf(problem.kappa):
        sc.kappa = problem.unit_kappa
        sc.width = math.ceil(math.log(2.0) / sc.kappa * (1.0 + 1e-12))
    sc.debt_limit = cells // 8 + nnz // 16 + 1000
    # A refresh of all rows and scores in new boxes of rows, from rough costs in nanoseconds.
    row = nanoseconds_of_a_row(matrix, width, n, K)
    sc.refresh_cost = 1 + (K * (3 * n + 0.7 * nnz) + 2 * cells) / row
    pool = (cells if cells <= 10**6 else cells // 8) * 2 + 64 * (B + 2) if drawing else 1
    return kernel.State(
        matrix,
        kernel.Rows(
            y=np.asarray(rows.targets, np.float64) if rows.targets.size else np.zeros(n),
            v=np.zeros(n * K),
            mref=np.zeros(n * K),
            q=np.zeros(n * K, np.int32),
            fresh=np.zeros(n * K, np.int32),
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
            score=np.zeros(cells, np.int64 if wide else np.int32),
            slack=np.zeros(HEAVY + 1, np.int64),
            limit=np.full(HEAVY * K + 1, 2**62, np.int64),
            slot=np.full(cells if drawing else 1, -1, np.int32),
            members=np.zeros(pool, np.int32),
            depth_of=np.zeros(pool, np.uint8),
            start=np.zeros(B + 1, np.int64),
            size=np.zeros(B + 1, np.int64),
            room=np.zeros(B + 1, np.int64),
            risers=np.zeros(4096, np.int32),
            bins=np.zeros(4 * B + 1, np.int64),
        ),
        cells=np.zeros(T, np.int64),
        signs=np.zeros(T, np.int8),
        sc=sc,
    )

"""Frank-Wolfe on the L1 ball with work proportional to the non-zeros touched: the run around the kernel.

Paper: Raff, Khanna, Lu, "Scaling Up Differentially Private LASSO" (Alg. 2). The step itself is
`kernel.advance`; this file lays out the rows, does what is rare (see `Run._answer`) and turns the
released history into weights.

    w_T = 2 radius / ((T+1)(T+2)) * sum_t (t+2) (-s_t) e_{j_t}        t = 0 .. T-1

The released history (cells and signs) determines the weights, and together with the rows it
determines the state. So one function serves a fit, a screening block that goes on from released
picks, and a replay: `extend(rows, problem, history, n_steps, rng)`.

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
import scipy.sparse as sp

from dpsparse.domain import BoundedData
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Loss
from dpsparse.random import make_generator
from dpsparse.selection.scan import Selection
from dpsparse.solvers.frank_wolfe import kernel
from dpsparse.solvers.frank_wolfe.curve import Curve
from dpsparse.solvers.frank_wolfe.kernel import HEAVY, SLOPE_UNITS, B

FRESHNESS = {"exact": kernel.EXACT, "tolerance": kernel.TOLERANCE, "published": kernel.PUBLISHED}
_INT32_MAX = 2**31 - 1
# Bytes of the transpose written in one pass over the rows, and of counts in another: parts of the caches.
_BLOCK_BYTES, _COUNT_BYTES = 2**24, 2**22
# Without boxes: the kappa * slack up to which rejecting and verifying costs less than a pull.
_DOUBT = 1.75
_PATIENCE = 4  # stops of the kernel at one step, after which the step is made without doubt
Progress = Callable[[int], None] | None


# ---- public facts, released history --------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """The public side of a run: everything the solver is told beside the rows.

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
    freshness: str = "exact"
    tolerance: float = 0.01
    private_sign: bool = True
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
        raise ParameterError("epsilon is too small for so many steps; lower n_iter.")
    if not all(abs(b) <= 2.0**100 for b in offset):
        raise ParameterError("offset must be finite and at most 2^100.")


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
    offset: tuple[float, ...] = ()

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """coef of shape (n_outputs, n_features) and intercept of shape (n_outputs,)."""
        n_iter = len(self.signs)
        steps = self.signs * (np.arange(n_iter) + 2.0)
        unit = 2.0 * self.radius / ((n_iter + 1.0) * (n_iter + 2.0))
        coef = np.zeros((self.n_outputs, self.n_features))
        intercept = np.zeros(self.n_outputs)
        inside = self.features < self.n_features
        picked = self.outputs[inside], self.features[inside]
        np.add.at(coef, picked, steps[inside])
        np.add.at(intercept, self.outputs[~inside], steps[~inside])
        coef[picked] = unit * coef[picked]  # millions of others stay untouched zeros
        intercept *= unit * self.intercept_value
        return coef, intercept + np.asarray(self.offset or 0.0)


def choose_resolution(n_samples: int | None, eta: float) -> int:
    """Units a row may add to a score, from public numbers: as fine as 32-bit sums allow.

    Without a public number of rows 2^11, enough for a million rows in one column; more rows than
    stated make the sums 64-bit wide and change nothing else. A large eta needs finer units; what
    one row adds stays a 32-bit number.
    """
    bits = 11 if n_samples is None else int(math.log2(_INT32_MAX / n_samples))
    needed = math.ceil(math.log2(32.0 * eta)) if eta > 0 else 0
    return int(2 ** min(max(min(bits, 24), 8, needed), 29))


# ---- one way to run ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowArrays:
    """Clipped rows as plain CSR arrays with sorted indices; `values` in float32 or float64.

    Nothing is copied: the solver reads these arrays and keeps its own transpose beside them.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    targets: np.ndarray  # class codes, or numbers
    n_features: int

    def matrix(self) -> sp.csr_array:
        """The same as a SciPy matrix, for the plain solver."""
        shape = (len(self.indptr) - 1, self.n_features)
        return sp.csr_array(
            (self.values.astype(np.float64), self.indices, self.indptr), shape=shape
        )

    @classmethod
    def of(cls, data: BoundedData) -> RowArrays:
        X = data.X
        return cls(X.indptr, X.indices, X.data, data.y, X.shape[1])


def extend(
    rows: RowArrays,
    problem: Problem,
    history: History | None,
    n_steps: int,
    rng: np.random.Generator,
    progress: Progress = None,
) -> History:
    """Go on from `history` (None: from the start) by `n_steps` selections; return the whole history."""
    run = Run(rows, problem)
    if history is not None:
        run.replay(history)
    run.draw(rng, n_steps, progress)
    return run.history()


def extend_with(
    selection: Selection,
    rows: RowArrays,
    problem: Problem,
    rng: np.random.Generator,
    progress: Progress = None,
) -> History:
    """A whole run with another selection structure, told of every touched cell.

    Exact freshness then means a full refresh at every step: only the fused kernel can verify.
    """
    run = Run(rows, problem, track_all=True)
    state, sc = run.state, run.state.sc
    for t in range(problem.n_iter):
        run.serve(t)
        n = sc.n_risers
        if t == 0 or sc.rebuild or n > state.sampler.risers.size:
            selection.rebuild(run.all_scores())
        else:
            selection.update(state.sampler.risers[:n], run.all_scores())
        sc.rebuild = sc.n_risers = 0
        run.move(*selection.draw(rng))
        if progress is not None:
            progress(1)
    return run.history()


def fast_frank_wolfe(
    data: BoundedData, problem: Problem, rng: np.random.Generator, progress: Progress = None
) -> History:
    """`problem.n_iter` private selections (arg max if kappa is infinite) on clipped data."""
    return extend(RowArrays.of(data), problem, None, problem.n_iter, rng, progress)


def fast_frank_wolfe_with(
    selection: Selection,
    data: BoundedData,
    problem: Problem,
    rng: np.random.Generator,
    progress: Progress = None,
) -> History:
    """The same with another selection structure."""
    return extend_with(selection, RowArrays.of(data), problem, rng, progress)


class Run:
    """The state of one run and how it goes on; private, apart from its `history()`.

    `step` is the number of picks made. A run starts at w = 0 with exact scores.
    """

    def __init__(self, rows: RowArrays, problem: Problem, track_all: bool = False) -> None:
        """`track_all` makes every touched cell a riser, for a sampler outside the kernel."""
        self.problem, self.n_features, self.step = problem, rows.n_features, 0
        self._track_all = track_all
        matrix = lay_out(rows, problem)
        self.column_mass, self.column_count = np.zeros(HEAVY + 1), np.zeros(HEAVY + 1, np.int64)
        kernel.column_bounds(matrix.colptr, matrix.entries, self.column_mass, self.column_count)
        # The width of the sums is invisible in the law: the sums are exact either way.
        bound = (self.column_mass.max() + 1.0) * problem.resolution + self.column_count.max()
        self.state = _make_state(rows, problem, matrix, bound > _INT32_MAX, track_all)
        self._drift = np.zeros(HEAVY + 1)  # lagging: of slopes since a column was pulled
        self._patience = _PATIENCE
        self._wait = 8  # pulls of all columns after leaders were sought in vain
        self._since, self.pull_rate = (0, 0), 0.2  # pulls per step without boxes, and since when
        self._curve: Curve | None = None  # narrow tables: scores follow their curvature
        sc = self.state.sc
        if problem.freshness == "tolerance":
            self.set_tau(problem.tolerance)
        elif problem.freshness == "published":
            sc.boxes, sc.theta = 1, -1.0
        self.refresh()
        if problem.freshness == "exact" and not track_all:
            self._choose_way()
        if self._drawing:
            kernel.rebuild(self.state.sampler, sc)

    @property
    def _drawing(self) -> bool:
        return not math.isinf(self.problem.kappa) and not self._track_all

    # ---- going on ----

    def draw(self, rng: np.random.Generator, n_steps: int, progress: Progress = None) -> None:
        """Make `n_steps` picks."""
        last, chunk = self.step + n_steps, 16
        while self.step < last:  # chunks let Ctrl-C and the progress bar in
            stop = min(self.step + chunk, last)
            done = self.step
            if self._drawing:
                self._advance(rng, stop, kernel.DRAW)
            else:
                self._take_largest(stop)
            if progress is not None:
                progress(stop - done)
            chunk = min(2 * chunk, 1024)

    def replay(self, history: History, n_steps: int | None = None) -> None:
        """Make the first picks of `history` again: the state from the rows and the history alone."""
        n_steps = len(history.signs) if n_steps is None else n_steps
        labels = self.labels_of(history.features[:n_steps])
        cells = labels * self.problem.n_outputs + history.outputs[:n_steps]
        self.replay_cells(cells, -history.signs[:n_steps])

    def replay_cells(self, cells: np.ndarray, signs: np.ndarray) -> None:
        """The same by the run's own names of cells, and the signs s of e^{kappa s G}."""
        state, sc, last = self.state, self.state.sc, self.step + len(signs)
        state.cells[self.step : last], state.signs[self.step : last] = cells, signs
        unused = make_generator(0)  # the kernel wants one; a replay draws nothing
        if self.problem.freshness != "exact":  # stored slopes decide the law: make them again
            self._advance(unused, last, kernel.REPLAY)
            return
        sc.boxes, sc.n_leavers = 0, 0
        kernel.advance(state, unused, self.step, last, kernel.MOVE)
        self.step = last
        self._retune()

    def serve(self, t: int) -> None:
        """Bring the scores up to date for step t, without a pick."""
        exact_outside = self._track_all and self.problem.freshness == "exact"
        if exact_outside and self.state.sc.fresh_at != t:
            self.refresh()
            return
        while kernel.advance(self.state, make_generator(0), t, t + 1, kernel.SERVE) <= t:
            self._answer()

    def move(self, cell: int, sign: int) -> None:
        """Make one pick from outside."""
        self.state.cells[self.step], self.state.signs[self.step] = cell, sign
        kernel.advance(self.state, make_generator(0), self.step, self.step + 1, kernel.MOVE)
        self.step += 1

    def _advance(self, rng: np.random.Generator, last: int, mode: int) -> None:
        stops = 0  # at this step
        while self.step < last:
            before = self.step
            if self._curve is not None and mode == kernel.DRAW:
                if not self._curve.advance(rng, last):
                    self._curve = None
                    self._retune()
                continue
            self.step = int(kernel.advance(self.state, rng, before, last, mode))
            if self.state.sc.event:
                stops = stops + 1 if self.step == before else 0
                self._answer()
                if stops > self._patience and self.problem.freshness == "exact" and self._drawing:
                    self._settle()
                    self._patience = 1  # it may well be the same at the next step

    def _settle(self) -> None:
        """Exact scores without any doubt, for a step that no other way brought to an end.

        Where many entries are rounded, their rounding alone may be more doubt than a draw can bear. Without slack
        a draw ends (docs/proofs/fast_frank_wolfe.md, Lemma 5); the next step finds the reserve used up and
        chooses again.
        """
        self.refresh()
        self.state.sc.boxes, self.state.sc.reserve = 0, 0
        self.state.sampler.slack[:] = 0
        kernel.rebuild(self.state.sampler, self.state.sc)

    def _answer(self) -> None:
        """What the kernel leaves to Python: it stopped at `step` and said why."""
        sc = self.state.sc
        event, sc.event = sc.event, kernel.NOTHING
        if event == kernel.PULL:
            self._pull()
        elif event == kernel.LAGS:
            self._catch_up()
        elif event == kernel.CROWDED:
            # A dense pick: one refresh of everything instead of new boxes row by row.
            spent = sc.renewed + sc.refresh_cost
            self.refresh()
            kernel.schedule_all(self.state.rows, self.state.calendar, sc, self.step)
            sc.renewed = spent
        elif event == kernel.RETUNE:
            self._retune()
        if self._drawing:
            kernel.rebuild(self.state.sampler, sc)

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
        self._pull_labels(0, state.matrix.colptr.size - 1)
        light = state.sampler.score[HEAVY * self.problem.n_outputs :]
        if light.size:
            state.sc.light = max(int(light.max()), -int(light.min()))
        self._drift[:] = 0.0
        state.sc.rebuild = 1
        state.sc.pulls += 1

    def _pull_labels(self, first: int, last: int) -> None:
        matrix, sampler = self.state.matrix, self.state.sampler
        kernel.pull(
            matrix.colptr, matrix.entries, self.state.rows.q, sampler.score,
            self.state.sc, first, last,
        )  # fmt: skip

    def _catch_up(self) -> None:
        """The slopes have moved further than the slack allows: pull the columns that matter.

        A column pulled now is exact. One that is not has drifted by at most the sum of the lags
        since its last pull. Those that cannot win anyway need not be pulled: with little noise a
        few heavy columns lead, and the millions of others are left alone for many steps.
        """
        state, sc = self.state, self.state.sc
        np.copyto(state.rows.q, state.rows.fresh)
        self._drift += float(sc.lag)
        sc.lag = 0
        if sc.seek == 0 and self._pull_leaders():
            self._wait = 8
        else:
            self._pull()
            sc.exact_at = self.step
            if sc.seek == 0:  # they were sought in vain: not soon again
                sc.seek, self._wait = self._wait, min(2 * self._wait, 256)
            sc.seek -= 1
        self._set_reserve()

    def _pull_leaders(self) -> bool:
        """Pull the heavy columns that may hold the largest score; False if all should be pulled.

        No column reaches further than its stale score and its slack, nor than its entries allow.
        From the furthest reach down, columns are pulled until the next one stays 30 / kappa below
        the best: there it has e^-30 of the weight, exact or not.
        """
        K, n_heavy = self.problem.n_outputs, min(HEAVY, self.state.matrix.colptr.size - 1)
        size = np.zeros(HEAVY + 1, np.int64)
        heavy = self.state.sampler.score[: n_heavy * K].reshape(n_heavy, K)
        size[:n_heavy] = np.abs(heavy.astype(np.int64)).max(axis=1)
        size[HEAVY] = self.state.sc.light
        most = self.problem.resolution * self.column_mass * (1.0 + 1e-6) + self.column_count
        reach = np.minimum(size + self._slack_of(self._drift), most)
        floor, work = 0.0, 0
        for label in np.argsort(-reach).tolist():
            if reach[label] <= floor:
                return True
            work += 3 * int(self.column_count[label])
            if label == HEAVY or work > self.state.matrix.entries.size:
                return False
            self._pull_labels(label, label + 1)
            self._drift[label] = 0.0
            floor = max(floor, float(np.abs(heavy[label]).max()) - 30.0 / self._kappa)
        return False

    def exact_scores(self) -> np.ndarray:
        """Scores at the true margins, (features, outputs), the intercept last; refreshes all."""
        self.refresh()
        return self.stored_scores()

    def stored_scores(self) -> np.ndarray:
        """The scores as they are, (features, outputs), the intercept last."""
        K = self.problem.n_outputs
        labels = self.state.matrix.label_of
        scores = np.zeros((labels.size, K), np.int64)
        full = labels != kernel.NO_LABEL
        scores[full] = self.state.sampler.score.reshape(-1, K)[labels[full]]
        return scores

    def all_scores(self) -> np.ndarray:
        """The scores of all cells in the run's own order, columns without entries included."""
        score = self.state.sampler.score
        return np.append(score, np.zeros(self.state.sc.n_cells - score.size, score.dtype))

    # ---- how stale scores may be ----

    @property
    def scale(self) -> float:
        """Margins are offset + scale * v."""
        t = self.step
        return float(2.0 * self.state.sc.reach / ((t + 1.0) * (t + 2.0)))

    @property
    def _kappa(self) -> float:
        """Per unit of score; for the arg max as if a few rivals were in doubt."""
        if not math.isinf(self.problem.kappa):
            return self.problem.unit_kappa
        return 30.0 / (float(np.abs(self.state.sampler.score[:HEAVY]).max(initial=0)) + 1.0)

    def _slack_of(self, drift: np.ndarray) -> np.ndarray:
        """How far scores can be off if all slopes together moved by `drift` (in 2^-28).

        A contribution moves by S |dq| |x| and its rounding by 1 unit; |x| <= 1, |dq| <= 2.
        """
        S = self.problem.resolution
        moved = np.minimum(drift * (S / SLOPE_UNITS), 2.0 * S * self.column_mass * (1.0 + 1e-6))
        return np.ceil(moved).astype(np.int64) + self.column_count

    def _set_reserve(self) -> None:
        """Let all slopes together move by so much that a score is uncertain by `_DOUBT` / kappa."""
        sc = self.state.sc
        sc.reserve = min(int(_DOUBT / self._kappa * SLOPE_UNITS / self.problem.resolution), 2**62)
        self.state.sampler.slack[:] = self._slack_of(self._drift + float(sc.reserve))

    def set_tau(self, tau: float) -> None:
        """Boxes in which every slope stays within tau * slope_bound, and the slack that follows."""
        sc, problem = self.state.sc, self.problem
        sc.boxes, sc.theta = 1, tau * sc.slope_bound / sc.smoothness
        if problem.freshness == "exact":
            off = tau + 2.0 / SLOPE_UNITS  # the last term: slopes are rounded
            mass = problem.resolution * off * self.column_mass * (1.0 + 1e-6)
            self.state.sampler.slack[:] = np.ceil(mass).astype(np.int64) + self.column_count

    def _retune(self) -> None:
        """Exact scores, and the better of the two ways; only exact freshness may refresh here."""
        if self.problem.freshness == "exact":
            self.refresh()
            self._choose_way()

    def _choose_way(self) -> None:
        """Boxes with the tau of `_choose_tau`, or no boxes where they would not pay."""
        sc, t = self.state.sc, self.step
        if not sc.boxes and t > self._since[0]:  # learn how often lagging scores are pulled
            self.pull_rate = (sc.pulls - self._since[1]) / (t - self._since[0])
        self._since = t, int(sc.pulls)
        sc.renewed, sc.look = 0, t + t // 2 + 16
        # Nanoseconds, roughly: slopes of all rows, and now and then a pull; per new box of a row.
        n, K = self.state.rows.y.size, self.problem.n_outputs
        row = 100 + 3 * K * self.state.matrix.entries.size / max(n, 1)
        sc.afford = 1 + 2 * K * n / row + self.pull_rate * sc.refresh_cost
        tau = self._choose_tau()
        if tau > 0.0:
            self.set_tau(tau)
            kernel.schedule_all(self.state.rows, self.state.calendar, sc, t)
            sc.renewed = 0
        else:
            sc.boxes, sc.theta = 0, 0.0
            self._set_reserve()
            if self._drawing and Curve.pays(self):
                self._curve = Curve(self)

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
        # All heavy cells, and every so many of the light ones for all of them.
        n_heavy = min(HEAVY * K, score.size)
        stride = 1 + (score.size - n_heavy) // 20_000
        cells = np.append(np.arange(n_heavy), np.arange(n_heavy, score.size, stride))
        likely = np.exp(kappa * (np.abs(score[cells].astype(np.float64)) - largest))
        likely[n_heavy:] *= stride
        labels = cells // K
        length = state.matrix.colptr[labels + 1] - state.matrix.colptr[labels]
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

    # ---- the arg max ----

    def _take_largest(self, last: int) -> None:
        """Picks without noise: the cell of largest |G|, the lowest label among equals."""
        while self.step < last:
            sc = self.state.sc
            if not sc.boxes and self.step > sc.look:
                self._retune()
            self.serve(self.step)
            self.move(*self._largest())
            if sc.boxes and sc.n_leavers > sc.refresh_cost:
                sc.event = kernel.CROWDED
                self._answer()
            elif sc.boxes and sc.renewed > 4 * sc.refresh_cost:
                self._retune()

    def _largest(self) -> tuple[int, int]:
        """Every cell whose upper end reaches the best lower end is looked at exactly."""
        state, K = self.state, self.problem.n_outputs
        size = np.abs(state.sampler.score)
        slack = state.sampler.slack
        n_heavy = min(HEAVY * K, size.size)
        heavy = size[:n_heavy].astype(np.int64)
        heavy_slack = np.repeat(slack[:HEAVY], K)[:n_heavy]
        light = int(size[n_heavy:].max(initial=0))
        floor = max((heavy - heavy_slack).max(initial=0), light - slack[HEAVY])
        cells = np.flatnonzero(heavy + heavy_slack >= floor)
        if light + slack[HEAVY] >= floor:
            cells = np.append(
                cells, n_heavy + np.flatnonzero(size[n_heavy:] >= floor - slack[HEAVY])
            )
        if cells.size == 0:
            return 0, 1
        exact = np.empty(cells.size, np.int64)
        kernel.exact_scores(state.matrix, state.rows, state.sc, cells, self.step, exact)
        best = int(np.abs(exact).argmax())
        return int(cells[best]), 1 if exact[best] >= 0 else -1

    # ---- names ----

    def history(self) -> History:
        """The picks so far in the caller's numbering of features: what may be released."""
        K, problem = self.problem.n_outputs, self.problem
        cells = self.state.cells[: self.step]
        return History(
            features=self._features_of(cells // K),
            outputs=cells % K,
            signs=-self.state.signs[: self.step].astype(np.int64),
            radius=problem.radius,
            n_features=self.n_features,
            n_outputs=K,
            intercept_value=problem.feature_bound,
            offset=problem.offset,
        )

    def _features_of(self, labels: np.ndarray) -> np.ndarray:
        label_of, n_labels = self.state.matrix.label_of, self.state.matrix.colptr.size - 1
        features = np.empty(labels.size, np.int64)
        full = labels < n_labels
        wanted = np.zeros(n_labels + 1, bool)
        wanted[labels[full]] = True
        place = np.zeros(n_labels, np.int32 if label_of.size < _INT32_MAX else np.int64)
        for start in range(0, label_of.size, 2**18):  # no copy of all labels
            some = label_of[start : start + 2**18]
            owners = np.flatnonzero(wanted[np.minimum(some, n_labels)])
            place[some[owners]] = start + owners
        features[full] = place[labels[full]]
        if not full.all():  # labels after the last are the columns without entries, in their order
            features[~full] = self._empty_columns()[labels[~full] - n_labels]
        return features

    def labels_of(self, features: np.ndarray) -> np.ndarray:
        label_of, n_labels = self.state.matrix.label_of, self.state.matrix.colptr.size - 1
        labels: np.ndarray = label_of[features].astype(np.int64)
        empty = labels == kernel.NO_LABEL
        if empty.any():
            labels[empty] = n_labels + np.searchsorted(self._empty_columns(), features[empty])
        return labels

    def _empty_columns(self) -> np.ndarray:
        return np.flatnonzero(self.state.matrix.label_of == kernel.NO_LABEL)


# ---- layout --------------------------------------------------------------------------------------


def lay_out(rows: RowArrays, problem: Problem) -> kernel.Matrix:
    """The transpose of the rows, and a label for every column that has entries.

    Cells are named label * K + output; the intercept is a column of ones, in the transpose only.
    """
    n, p = rows.indptr.size - 1, rows.n_features
    width = p + int(problem.fit_intercept)
    nnz = rows.indices.size + (n if problem.fit_intercept else 0)
    # One type of pointers for nearly all data: one compiled kernel.
    pointer = np.int32 if nnz <= _INT32_MAX else np.int64
    place = np.zeros(width, np.uint32 if nnz <= _INT32_MAX else np.int64)
    indptr, values = rows.indptr, rows.values
    cursor = indptr[:-1].copy()
    kernel.count_columns(indptr, rows.indices, place, cursor, 1 + 4 * width // _COUNT_BYTES)
    if problem.fit_intercept:
        place[p] = n
    colptr = np.empty(int(np.count_nonzero(place)) + 1, pointer)
    stops = np.empty(1 + 8 * nnz // _BLOCK_BYTES, np.int64)
    kernel.label_columns(place, np.zeros(n + 1, np.int64), colptr, stops)
    entries = np.empty(nnz, np.uint64)
    if problem.fit_intercept:
        first = int(place[p])
        one = np.float32(1.0).view(np.uint32).astype(np.uint64)
        entries[first : first + n] = np.arange(n, dtype=np.uint64) << np.uint64(32) | one
        place[p] = first + n
    cursor[:] = indptr[:-1]
    kernel.fill_columns(
        indptr,
        rows.indices,
        values,
        1.0 / problem.feature_bound,
        place,
        entries,
        cursor,
        stops,
    )
    kernel.label_of_places(place, colptr, min(HEAVY, colptr.size - 1))
    return kernel.Matrix(indptr, rows.indices, values, place, colptr, entries)


def _make_state(
    rows: RowArrays, problem: Problem, matrix: kernel.Matrix, wide: bool, track_all: bool
) -> kernel.State:
    n, K, T = rows.indptr.size - 1, problem.n_outputs, problem.n_iter
    nnz, cells = matrix.entries.size, (matrix.colptr.size - 1) * K
    drawing = not math.isinf(problem.kappa) and not track_all
    sc = kernel.make_scalars()
    sc.outputs, sc.loss, sc.steps = K, kernel.LOSSES[problem.loss.name], T
    sc.freshness, sc.exact_sign = FRESHNESS[problem.freshness], not problem.private_sign
    sc.resolution, sc.n_cells = problem.resolution, matrix.label_of.size * K
    sc.intercept = matrix.label_of[-1] if problem.fit_intercept and n > 0 else -1
    sc.reach, sc.factor = problem.radius * problem.feature_bound, 1.0 / problem.feature_bound
    sc.slope_bound, sc.smoothness = problem.slope_bound, problem.loss.smoothness
    sc.cutoff, sc.fresh_at, sc.exact_at = getattr(problem.loss, "cutoff", 0.0), -1, -1
    sc.width = 1
    if not math.isinf(problem.kappa):
        sc.kappa = problem.unit_kappa
        sc.width = math.ceil(math.log(2.0) / sc.kappa * (1.0 + 1e-12))
    sc.debt_limit = cells // 8 + nnz // 16 + 1000
    # A refresh of all rows and scores in new boxes of rows, from rough costs in nanoseconds.
    sc.refresh_cost = 1 + (K * (3 * n + 0.7 * nnz) + 2 * cells) / (100 + 3 * K * nnz / max(n, 1))
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
            limit=np.full(HEAVY * K + 1, -1 if track_all else 2**62, np.int64),
            slot=np.full(cells if drawing or track_all else 1, -1, np.int32),
            members=np.zeros(pool, np.int32),
            depth_of=np.zeros(pool, np.uint8),
            start=np.zeros(B + 1, np.int64),
            size=np.zeros(B + 1, np.int64),
            room=np.zeros(B + 1, np.int64),
            risers=np.zeros(2**22 if track_all else 4096, np.int32),
            bins=np.zeros(4 * B + 1, np.int64),
        ),
        cells=np.zeros(T, np.int64),
        signs=np.zeros(T, np.int8),
        sc=sc,
    )

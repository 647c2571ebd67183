"""Frank-Wolfe on the L1 ball with work proportional to the non-zeros touched: the run around the kernel.

Paper: Raff, Khanna, Lu, "Scaling Up Differentially Private LASSO" (Alg. 2). The step itself is
`kernel.advance`; this file goes from step to step and does what is rare (see `Run._answer`).

| file | what it holds |
|---|---|
| problem.py | what a run gets and what it releases; weights as a function of the history |
| layout.py | rows and columns as the kernel reads them |
| scores.py | how stale scores may be, and how they are made fresh |

The released history determines the weights, and together with the rows it determines the state. So one
function serves a fit, a screening block that goes on from released picks, and a replay:
`extend(rows, problem, history, n_steps, rng)`.

| paper | here |
|---|---|
| D, N, S_r, S_c | cells, rows, entries per column, entries per row |
| lambda, T | `radius`, `n_iter` |
| eta_t = 2/(t+2), t = 1.. | closed form in problem.py |

Alg. 2 refreshes only touched rows although every margin shrinks at every step; here a pick has the law of the exact
gradient. Features are rounded to float32 after division by the feature bound, slopes to 2^-28 of their bound; what a
row adds to a score is a whole number of at most `resolution` units. Proof: docs/proofs/fast_frank_wolfe.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpsparse.domain.clipping import BoundedData
from dpsparse.methods.frank_wolfe import kernel
from dpsparse.methods.frank_wolfe.kernel import HEAVY
from dpsparse.methods.frank_wolfe.layout import RowArrays
from dpsparse.methods.frank_wolfe.problem import History, Problem
from dpsparse.methods.frank_wolfe.scores import Scores
from dpsparse.random import make_generator

_PATIENCE = 4  # stops of the kernel at one step, after which the step is made without doubt
Progress = Callable[[int], None] | None


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


def fast_frank_wolfe(
    data: BoundedData, problem: Problem, rng: np.random.Generator, progress: Progress = None
) -> History:
    """`problem.n_iter` private selections (arg max if kappa is infinite) on clipped data."""
    return extend(RowArrays.of(data), problem, None, problem.n_iter, rng, progress)


class Run(Scores):
    """The state of one run and how it goes on; private, apart from its `history()`.

    `step` is the number of picks made. A run starts at w = 0 with exact scores.
    """

    def __init__(self, rows: RowArrays, problem: Problem) -> None:
        super().__init__(rows, problem)
        self._patience = _PATIENCE
        self._settle_for, self._settled_for = (
            0,
            4,
        )  # steps to be settled at once; how many the last time
        self.refresh()
        self._choose_way()
        if self._drawing:
            kernel.rebuild(self.state.sampler, self.state.sc)

    # ---- going on ----

    def draw(self, rng: np.random.Generator, n_steps: int, progress: Progress = None) -> None:
        """Make `n_steps` picks."""
        last, chunk = self.step + n_steps, 16
        while self.step < last:  # chunks let Ctrl-C and the progress bar in
            stop = min(self.step + chunk, last)
            done = self.step
            if self._drawing:
                self._advance(rng, stop)
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
        sc.boxes, sc.n_leavers = 0, 0
        kernel.advance(state, make_generator(0), self.step, last, kernel.MOVE)  # draws nothing
        self.step = last
        self._retune()

    def serve(self, t: int) -> None:
        """Bring the scores up to date for step t, without a pick."""
        while kernel.advance(self.state, make_generator(0), t, t + 1, kernel.SERVE) <= t:
            self._answer()

    def move(self, cell: int, sign: int) -> None:
        """Make one pick from outside."""
        self.state.cells[self.step], self.state.signs[self.step] = cell, sign
        kernel.advance(self.state, make_generator(0), self.step, self.step + 1, kernel.MOVE)
        self.step += 1

    def _advance(self, rng: np.random.Generator, last: int) -> None:
        stops = 0  # at this step
        while self.step < last:
            before = self.step
            if self._curve is not None:
                if not self._curve.advance(rng, last):
                    # Tables are dear, and what ended these would end new ones at once: on 465,000 rows the rounding of
                    # predictions alone was too much doubt, and tables made at every few steps took minutes.
                    self._curve, self._no_curve_before = None, self.step + self.step // 2 + 64
                    self._retune()
                continue
            settle = self._settle_for > 0
            if settle:
                self._settle_for -= 1
                self._settle()
            stop = before + 1 if settle else last
            self.step = int(kernel.advance(self.state, rng, before, stop, kernel.DRAW))
            if self.state.sc.event:
                stops = stops + 1 if self.step == before else 0
                self._answer()
                if stops > self._patience:
                    self._settle()
                    # It may well be the same at the next steps: they are not tried in vain before they are settled.
                    self._patience, self._settled_for = 1, min(2 * self._settled_for, 256)
                    self._settle_for = self._settled_for

    def _settle(self) -> None:
        """Exact scores without any doubt, for a step that no other way brought to an end.

        Where many entries are rounded, their rounding alone may be more doubt than a draw can bear. Without slack
        a draw ends (docs/proofs/fast_frank_wolfe.md, Lemma 5); the next step finds the reserve used up and
        chooses again.
        """
        self.refresh()
        self.state.sc.boxes, self.state.sc.reserve, self.state.sc.seek = 0, 0, 0
        self.state.sampler.slack[:] = 0
        kernel.rebuild(self.state.sampler, self.state.sc)

    def _answer(self) -> None:
        """What the kernel leaves to Python: it stopped at `step` and said why."""
        self.refuse_broken_draw()
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
        elif event == kernel.LOOK:
            self._look()
        if self._drawing:
            kernel.rebuild(self.state.sampler, sc)

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
        matrix, sc = self.state.matrix, self.state.sc
        wanted, inverse = np.unique(labels, return_inverse=True)
        found = np.empty(wanted.size, np.int64)
        width = sc.n_cells // sc.outputs
        kernel.find_columns(matrix.marks, width, matrix.begin.size, wanted, found)
        return found[inverse]

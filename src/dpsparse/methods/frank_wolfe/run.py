"""Frank-Wolfe on the L1 ball with work proportional to the non-zeros touched: the run around the kernel.

Paper: Raff, Khanna, Lu, "Scaling Up Differentially Private LASSO" (Alg. 2). The step itself is
`kernel.advance`; this file goes from step to step and does what is rare (see `Run._answer`).

`Steps` is what `Releases.vertices` draws, and the only thing in this package that holds rows. Rows that a fit may hold
in memory go through `Run`, in which rows and noise meet. Of all others every part is asked for its scores at every step
(rows/cells.py). Both draw by the same law. The released history determines the weights, and together with the rows it
determines the state, so the same steps serve a fit, a screening block that goes on from released picks, and a replay.

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

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpsparse.mechanisms.top_k import top_k
from dpsparse.methods.frank_wolfe import kernel
from dpsparse.methods.frank_wolfe.kernel import HEAVY
from dpsparse.methods.frank_wolfe.problem import History, Problem
from dpsparse.methods.frank_wolfe.scores import RowArrays, Scores
from dpsparse.random import make_generator
from dpsparse.rows import Rows
from dpsparse.rows.cells import CellsAt

Progress = Callable[[int], None] | None


class Run(Scores):
    """The state of one run and how it goes on; private, apart from its `history()`.

    `step` is the number of picks made. A run starts at w = 0 with exact scores.
    """

    def __init__(self, rows: RowArrays, problem: Problem) -> None:
        super().__init__(rows, problem)
        self._patience = (
            4  # stops of the kernel at one step, after which the step is made without doubt
        )
        self._unused = make_generator(0)  # for the kernel where it draws nothing
        self._settle_for, self._settled_for = 0, 4  # steps to be settled at once, and the last time
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
        kernel.advance(state, self._unused, self.step, last, kernel.MOVE)
        self.step = last
        self._retune()

    def serve(self, t: int) -> None:
        """Bring the scores up to date for step t, without a pick."""
        while kernel.advance(self.state, self._unused, t, t + 1, kernel.SERVE) <= t:
            self._answer()

    def move(self, cell: int, sign: int) -> None:
        """Make one pick from outside."""
        self.state.cells[self.step], self.state.signs[self.step] = cell, sign
        kernel.advance(self.state, self._unused, self.step, self.step + 1, kernel.MOVE)
        self.step += 1

    def _advance(self, rng: np.random.Generator, last: int) -> None:
        stops = 0  # at this step
        while self.step < last:
            before = self.step
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


class Steps:
    """Steps of a run on private rows, from a released `past` on."""

    kind: ClassVar[str] = "picks"

    def __init__(self, rows: Rows, problem: Problem, past: History | None = None) -> None:
        self.rows, self.problem, self.past = rows, problem, past

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
        """The whole history, `n_steps` picks longer."""
        if self.fused:
            run = Run(self._arrays, self.problem)
            if self.past is not None:
                run.replay(self.past)
            run.draw(rng, n_steps, progress)
            return run.history()
        return self._draw_from_parts(rng, n_steps, progress)

    def scores(self, history: History) -> Iterator[np.ndarray]:
        """Whole-number scores of all cells before each pick after the past; for the audit."""
        done = 0 if self.past is None else len(self.past.signs)
        if not self.fused:
            for t in range(done, len(history.signs)):
                yield self.rows.cell_scores(self._at(history, t)).ravel()
            return
        run = Run(self._arrays, self.problem)
        cells = run.labels_of(history.features) * self.problem.n_outputs + history.outputs
        for t, (cell, sign) in enumerate(zip(cells, -history.signs, strict=True)):
            if t >= done:
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
            problem.loss.name, getattr(problem.loss, "cutoff", 0.0), problem.slope_bound,
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
            scores = self.rows.cell_scores(self._at(so_far, len(so_far.signs))).ravel()
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
        """The past followed by picks, cells in the order of `scores`, signs of the vertices moved to."""
        K, p = self.problem.n_outputs, self.problem
        features, outputs = cells // K, cells % K
        if self.past is not None:
            features = np.append(self.past.features, features)
            outputs = np.append(self.past.outputs, outputs)
            signs = np.append(self.past.signs, signs)
        return History(
            features, outputs, signs, p.radius, self.rows.n_features, K, p.feature_bound, p.offset
        )

"""The steps of one run: what `Releases.vertices` draws, and the only thing in this package that holds rows.

Rows that a fit may hold in memory go through the fused kernel (run.py), in which rows and noise meet. Of all others
every part is asked for its scores at every step (rows/cells.py). Both draw by the same law.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpsparse.mechanisms.top_k import top_k
from dpsparse.methods.frank_wolfe.layout import RowArrays
from dpsparse.methods.frank_wolfe.problem import History, Problem
from dpsparse.methods.frank_wolfe.run import Progress, Run, extend
from dpsparse.rows import Rows
from dpsparse.rows.cells import CellsAt


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
            return extend(self._arrays, self.problem, self.past, n_steps, rng, progress)
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

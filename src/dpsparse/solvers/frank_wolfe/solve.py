"""Frank-Wolfe as a private solver: one phase of signed vertices, and perhaps a private count of weights.

    history = T signed vertices, each drawn by the exponential mechanism on whole-number scores     released
    weights = a function of the history                                                            post-processing

The kernel draws and updates in one loop, so rows and noise meet inside it; `Steps` is what is handed to
`Releases.vertices`, and the only thing here that holds rows. What a row adds to a score is a whole number of at
most `resolution`, whatever its floats are (docs/proofs/fast_frank_wolfe.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpsparse.domain import BoundedData
from dpsparse.losses import Loss
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.selection import make_selection
from dpsparse.sensitivity import vertex_score_range
from dpsparse.solution import Solution
from dpsparse.solvers.frank_wolfe.reference import frank_wolfe
from dpsparse.solvers.frank_wolfe.run import (
    History,
    Problem,
    RowArrays,
    Run,
    choose_resolution,
    extend,
    extend_with,
)
from dpsparse.sparsify import NNonzero, PrivateCount, sparsify_weights, top_k

COUNT_STEPS = 5000  # noiseless steps behind a `PrivateCount` (Khanna, Lu and Raff use 50,000)
Progress = Callable[[int], None] | None


@dataclass(frozen=True)
class Ball:
    """The public side of a fit."""

    loss: Loss
    radius: float
    n_iter: int
    slope_bound: float
    resolution: (
        int  # units a row may add to a score; without noise as fine as the number of rows allows
    )
    feature_bound: float = 1.0
    n_outputs: int = 1
    fit_intercept: bool = True
    freshness: str = "exact"
    tolerance: float = 0.01
    selection: str = "auto"
    laplace_kappa: float | None = (
        None  # Laplace noisy max of this inverse scale (Khanna, Lu, Raff 2023)
    )
    n_nonzero: NNonzero = None

    def problem(self, kappa: float, n_rows: int | None) -> Problem:
        """What the kernel is told; `n_rows` only where it is public."""
        resolution = self.resolution
        if math.isinf(kappa):  # nothing to hide: the rows may choose the units
            resolution = max(choose_resolution(max(n_rows or 1, 1), 0.0), 2**16)
        return Problem(
            loss=self.loss, radius=self.radius, n_iter=self.n_iter, kappa=kappa,
            slope_bound=self.slope_bound, resolution=resolution, feature_bound=self.feature_bound,
            n_outputs=self.n_outputs, fit_intercept=self.fit_intercept, freshness=self.freshness,
            tolerance=self.tolerance,
        )  # fmt: skip


def solve(rows: Rows, public: Ball, releases: Releases) -> Solution:
    """Weights (K, d) and intercepts (K,) of the ball's private vertices."""
    kappa = public.laplace_kappa
    if kappa is None:
        # A person is a group of rows, each of which moves every score (docs/proofs/persons.md).
        moved = partial(
            vertex_score_range, float(rows.rows_per_unit), public.slope_bound, public.feature_bound
        )
        kappa = releases.kappa("vertices", moved)
    steps = Steps(
        rows, public.problem(kappa, releases.number_of_rows(rows)), public.selection,
        laplace=public.laplace_kappa is not None,
    )  # fmt: skip
    coef, intercept = releases.vertices("vertices", steps, public.n_iter).weights()
    return Solution(sparse(coef, rows, public, releases), intercept)


def sparse(coef: np.ndarray, rows: Rows, public: Ball, releases: Releases) -> np.ndarray:
    """The weights to keep, by the rule of the plan; a private count reads the rows once more."""
    rule = public.n_nonzero
    if not isinstance(rule, PrivateCount):
        return sparsify_weights(coef, rule)
    noiseless = replace(
        public, n_iter=COUNT_STEPS, n_nonzero=None, freshness="exact", laplace_kappa=None
    )

    def exact(silent: Releases) -> int:
        return int(np.count_nonzero(solve(rows, noiseless, silent).coef))

    return top_k(coef, releases.count("number of weights", rule, exact, coef.size))


class Steps:
    """Steps of a run on private rows, from a released `past` on; what `Releases.vertices` draws."""

    def __init__(
        self,
        rows: Rows,
        problem: Problem,
        selection: str = "auto",
        *,
        laplace: bool = False,
        past: History | None = None,
    ) -> None:
        self.problem, self.past, self.laplace = problem, past, laplace
        self._selection, self._domain = selection, rows.domain
        self._rows = RowArrays(*rows.arrays())

    @property
    def n_cells(self) -> int:
        """Candidates, each with two signs."""
        width = self._rows.n_features + self.problem.fit_intercept
        return width * self.problem.n_outputs

    def draw(self, rng: np.random.Generator, n_steps: int, progress: Progress) -> History:
        """The whole history, `n_steps` picks longer."""
        problem, scan = (
            self.problem,
            self._selection == "scan" and self.problem.freshness == "exact",
        )
        if self.laplace or scan:
            table = BoundedData(self._rows.matrix(), self._rows.targets, self._domain)
            noise = "laplace" if self.laplace else "gumbel"
            return frank_wolfe(table, problem, rng, progress, noise=noise)
        if self._selection in ("auto", "hotcold"):
            return extend(self._rows, problem, self.past, n_steps, rng, progress)
        selection = make_selection(self._selection, problem.unit_kappa)
        return extend_with(selection, self._rows, problem, rng, progress)

    def scores(self, history: History) -> Iterator[np.ndarray]:
        """Whole-number scores of all cells before each pick after the past; for the audit."""
        run = Run(self._rows, self.problem)
        done = 0 if self.past is None else len(self.past.signs)
        cells = run.labels_of(history.features) * self.problem.n_outputs + history.outputs
        for t, (cell, sign) in enumerate(zip(cells, -history.signs, strict=True)):
            if self.problem.freshness == "exact":
                found = run.exact_scores()
            else:
                run.serve(t)
                found = run.stored_scores()
            if t >= done:
                yield found.ravel()
            run.move(int(cell), int(sign))

    def history(self, cells: np.ndarray, signs: np.ndarray) -> History:
        """The past followed by picks, cells in the order of `scores`, signs of the vertices moved to."""
        K, p = self.problem.n_outputs, self.problem
        features, outputs = cells // K, cells % K
        if self.past is not None:
            features = np.append(self.past.features, features)
            outputs = np.append(self.past.outputs, outputs)
            signs = np.append(self.past.signs, signs)
        return History(
            features, outputs, signs, p.radius, self._rows.n_features, K, p.feature_bound, p.offset
        )

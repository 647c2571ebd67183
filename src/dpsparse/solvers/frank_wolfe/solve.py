"""Frank-Wolfe as a private solver: where margins start, signed vertices, and perhaps a private count of weights.

    offset  = log-odds of noisy class counts, if the plan pays for them                             released
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

from dpsparse import arithmetic
from dpsparse.domain import BoundedData, Domain
from dpsparse.losses import Loss
from dpsparse.nonzeros import NNonzero, PrivateCount, keep_nonzeros, top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.selection import make_selection
from dpsparse.sensitivity import vertex_score_range
from dpsparse.solvers.frank_wolfe.kernel import LOSSES as COMPILED
from dpsparse.solvers.frank_wolfe.reference import frank_wolfe, plain_scores
from dpsparse.solvers.frank_wolfe.run import (
    History,
    Problem,
    RowArrays,
    Run,
    choose_resolution,
    extend,
    extend_with,
)
from dpsparse.solvers.solution import Solution

MIN_SHARE = 1e-3  # a class is never taken to be rarer than this
MADE_UP = 3.0  # rows of every class that are made up, in standard deviations of the noisy counts
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
    # Inverse scale of the noise of the papers as printed; None takes what the plan's phase pays for.
    printed_kappa: float | None = None
    laplace: bool = False  # Laplace noisy max of that scale (Khanna, Lu, Raff 2023)
    n_nonzero: NNonzero = None
    prior: bool = False  # whether the plan pays for class counts, from which margins start
    offset: tuple[float, ...] = ()  # where they start: released, or nothing

    def problem(self, kappa: float, n_rows: int | None) -> Problem:
        """What the kernel is told; `n_rows` only where it is public."""
        resolution = self.resolution
        if math.isinf(kappa):  # nothing to hide: the rows may choose the units
            resolution = max(choose_resolution(max(n_rows or 1, 1), 0.0), 2**16)
        return Problem(
            loss=self.loss, radius=self.radius, n_iter=self.n_iter, kappa=kappa,
            slope_bound=self.slope_bound, resolution=resolution, feature_bound=self.feature_bound,
            n_outputs=self.n_outputs, fit_intercept=self.fit_intercept, freshness=self.freshness,
            tolerance=self.tolerance, offset=self.offset,
        )  # fmt: skip

    def starting_from(self, offset: tuple[float, ...], domain: Domain) -> Ball:
        """The same from a released offset: larger margins have larger slopes."""
        bound = self.loss.slope_bound(domain, self.radius, offset)
        return replace(self, prior=False, offset=offset, slope_bound=bound)


def solve(rows: Rows, public: Ball, releases: Releases) -> Solution:
    """Weights (K, d) and intercepts (K,) of the ball's private vertices."""
    if public.prior:
        public = public.starting_from(release_offset(rows, public, releases), rows.domain)
    kappa = public.printed_kappa
    if kappa is None:
        # A person is a group of rows, each of which moves every score (docs/proofs/persons.md).
        moved = partial(
            vertex_score_range, float(rows.rows_per_unit), public.slope_bound, public.feature_bound
        )
        kappa = releases.kappa("vertices", moved)
    steps = Steps(
        rows, public.problem(kappa, releases.number_of_rows(rows)), public.selection,
        laplace=public.laplace,
    )  # fmt: skip
    coef, intercept = releases.vertices("vertices", steps, public.n_iter).weights()
    return Solution(sparse(coef, rows, public, releases), intercept, public.n_iter)


def release_offset(rows: Rows, public: Ball, releases: Releases) -> tuple[float, ...]:
    """Log-odds of the classes by noisy counts, drawn to even odds where there is more noise than rows.

    The constant column would have to chase them: a pick that touches every row, again and again.
    """
    query = rows.class_counts(max(2, public.n_outputs))
    counts = releases.gaussian("prior", query) + MADE_UP * releases.scale("prior", query)
    share = np.maximum(counts, 1.0)
    share = np.clip(share / share.sum(), MIN_SHARE, 1.0 - MIN_SHARE)
    odds = arithmetic.log(share)
    odds = odds[1:] - odds[:1] if public.n_outputs == 1 else odds - odds.mean()
    return tuple(float(b) for b in odds)


def sparse(coef: np.ndarray, rows: Rows, public: Ball, releases: Releases) -> np.ndarray:
    """The weights to keep, by the rule of the plan; a private count reads the rows once more."""
    rule = public.n_nonzero
    if not isinstance(rule, PrivateCount):
        return keep_nonzeros(coef, rule)
    noiseless = replace(
        public,
        n_iter=COUNT_STEPS,
        n_nonzero=None,
        freshness="exact",
        printed_kappa=None,
        laplace=False,
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
            noise = "laplace" if self.laplace else "gumbel"
            return frank_wolfe(self._table(), problem, rng, progress, noise=noise)
        if self._selection in ("auto", "hotcold"):
            return extend(self._rows, problem, self.past, n_steps, rng, progress)
        selection = make_selection(self._selection, problem.unit_kappa)
        return extend_with(selection, self._rows, problem, rng, progress)

    def _table(self) -> BoundedData:
        return BoundedData(self._rows.matrix(), self._rows.targets, self._domain)

    def scores(self, history: History) -> Iterator[np.ndarray]:
        """Whole-number scores of all cells before each pick after the past; for the audit."""
        if self.problem.loss.name not in COMPILED:
            yield from plain_scores(self._table(), self.problem, history)
            return
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

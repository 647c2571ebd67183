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
from functools import cached_property, partial

import numpy as np

from dpsparse import arithmetic
from dpsparse.clipping import BoundedData
from dpsparse.domain import Domain
from dpsparse.losses import Loss
from dpsparse.nonzeros import NNonzero, PrivateCount, keep_nonzeros, top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.cells import CellsAt
from dpsparse.selection import make_selection
from dpsparse.sensitivity import vertex_score_range
from dpsparse.solvers.frank_wolfe.kernel import LOSSES as COMPILED
from dpsparse.solvers.frank_wolfe.layout import RowArrays
from dpsparse.solvers.frank_wolfe.limit import limit
from dpsparse.solvers.frank_wolfe.problem import History, Problem, choose_resolution
from dpsparse.solvers.frank_wolfe.reference import frank_wolfe, plain_scores
from dpsparse.solvers.frank_wolfe.run import Run, extend, extend_with
from dpsparse.solvers.frank_wolfe.scales import Scales, release_scales
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
    converges: bool = False  # whether a run without noise goes to its limit
    scales: Scales | None = (
        None  # what is released of bound, radius, loss and slopes; None: as they stand here
    )

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
    if public.converges and releases.exact("vertices"):
        found = limit(rows, public, releases)
        return found._replace(coef=sparse(found.coef, rows, public, releases))
    if public.scales is not None:
        mapped, ball, back = release_scales(rows, public, public.scales, releases)
        found = solve(mapped, ball, releases)
        coef, intercept = back(found.coef, found.intercept)
        return found._replace(coef=coef, intercept=intercept)
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
        converges=False,
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
        self._selection, self._domain, self._n_features = selection, rows.domain, rows.n_features
        self._source = rows
        self._shards = rows if selection == "shards" else None

    @cached_property
    def _rows(self) -> RowArrays:
        """Laid out when vertices are drawn, not before: nothing else may look at rows."""
        return RowArrays(*self._source.arrays())

    @property
    def n_cells(self) -> int:
        """Candidates, each with two signs."""
        width = self._n_features + self.problem.fit_intercept
        return width * self.problem.n_outputs

    def draw(self, rng: np.random.Generator, n_steps: int, progress: Progress) -> History:
        """The whole history, `n_steps` picks longer."""
        if self._shards is not None:
            return self._drawn_from_shards(rng, n_steps, progress)
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
        if self._shards is not None:
            for t in range(0 if self.past is None else len(self.past.signs), len(history.signs)):
                yield self._shards.cell_scores(self._at(history, t)).ravel()
            return
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

    def _at(self, history: History, n_steps: int) -> CellsAt:
        """The released weights after the first `n_steps` picks, on entries over the feature bound."""
        problem = self.problem
        weights = np.zeros((self._n_features + 1, problem.n_outputs))
        gain = 2.0 * problem.radius * problem.feature_bound / ((n_steps + 1.0) * (n_steps + 2.0))
        steps = history.signs[:n_steps] * (np.arange(n_steps) + 2.0)  # whole: sums are exact
        np.add.at(weights, (history.features[:n_steps], history.outputs[:n_steps]), steps)
        return CellsAt(
            weights[: self._n_features + problem.fit_intercept] * gain,
            np.asarray(problem.offset or np.zeros(problem.n_outputs), np.float64),
            problem.loss.name, getattr(problem.loss, "cutoff", 0.0), problem.slope_bound,
            1.0 / problem.feature_bound, self._domain.target_bound or 1.0, problem.resolution,
            problem.fit_intercept,
        )  # fmt: skip

    def _drawn_from_shards(
        self, rng: np.random.Generator, n_steps: int, progress: Progress
    ) -> History:
        """Picks on exact scores that are summed over all parts at every step; no part keeps anything, so that one that
        was lost is asked again. The history does not depend on how rows are cut."""
        assert self._shards is not None
        selection = make_selection("blocks", self.problem.unit_kappa)
        cells, signs = np.zeros(n_steps, np.int64), np.zeros(n_steps, np.int64)
        for t in range(n_steps):
            so_far = self.history(cells[:t], signs[:t])
            at = self._at(so_far, len(so_far.signs))
            selection.rebuild(self._shards.cell_scores(at).ravel())
            cells[t], sign = selection.draw(rng)
            signs[t] = -sign
            if progress is not None:
                progress(1)
        return self.history(cells, signs)

    def history(self, cells: np.ndarray, signs: np.ndarray) -> History:
        """The past followed by picks, cells in the order of `scores`, signs of the vertices moved to."""
        K, p = self.problem.n_outputs, self.problem
        features, outputs = cells // K, cells % K
        if self.past is not None:
            features = np.append(self.past.features, features)
            outputs = np.append(self.past.outputs, outputs)
            signs = np.append(self.past.signs, signs)
        return History(
            features, outputs, signs, p.radius, self._n_features, K, p.feature_bound, p.offset
        )

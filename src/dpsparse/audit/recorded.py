"""Releases that write down whatever leaves a fit, and can answer what an earlier fit answered.

`Releases` is the only door out of a solver, so a fit that is handed `RecordedReleases` hides nothing:

    recording   every release is made as always; whole-number query and answer are written down
    replaying   the query is asked of the rows at hand, the answer is that of the script

Two runs on neighbouring tables can then be compared, release by release, under the same history. What one
whole number of a query is worth in units of its noise is `step`, so costs of all kinds look alike:

    gaussian    unit/scale      |q - q'|_2 * step
    picks       kappa           range of (q - q') * step, once for each pick
    names       unit/scale      |q - q'|_2 * step, over the names of either table; `leak` for those of one alone
    count       1/scale         |q - q'| * step
    objective   1/scale         |g - g'|_2 * step, g the gradient of the untilted objective where it was minimised
    draw        0               numbers that depend on no row (secret blocks, public rows): they stay what they were
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr

from dpsparse.noise import STEPS
from dpsparse.privacy.plan import Plan
from dpsparse.release import Releases
from dpsparse.sensitivity import vertex_score

if TYPE_CHECKING:
    from dpsparse.nonzeros import PrivateCount
    from dpsparse.rows import Names, Query, RidgeProblem, Rows
    from dpsparse.solvers.frank_wolfe.run import History
    from dpsparse.solvers.frank_wolfe.solve import Steps

_END = 2**62  # a sum this long is close to wrapping around, or was cast from what is not a number


class ControlFlowError(Exception):
    """The neighbour's run met other releases than the first run."""


@dataclass(frozen=True)
class Entry:
    """One release."""

    phase: str  # the plan's phase that pays
    kind: str  # see above
    query: np.ndarray  # whole numbers: the exact answer
    answer: np.ndarray  # whole numbers that left, or the picks in the order drawn
    step: float  # what one whole number is worth in units of the noise
    paid: int = 1  # picks paid for; fewer show where a null candidate ends them
    bound: Fraction | None = None  # how far one row may move the query, in whole numbers
    norm: str = "L2"  # and how that is measured
    log_volume: float = 0.0  # of an objective: log det of the Hessian at the released point
    names: tuple[
        str, ...
    ] = ()  # what each number of the query belongs to, where tables differ in that
    told: tuple[str, ...] = ()  # the names that left ...
    limit: int = 0  # ... because their answers were above this

    @property
    def noise(self) -> np.ndarray:
        """What was added; empty where that does not show."""
        shown = self.kind in ("gaussian", "count") and self.answer.size == self.query.size
        return self.answer - self.query if shown else np.empty(0)

    def cost(self, other: Entry) -> float:
        """What the answer tells about which of two tables it comes from, their history being the same."""
        change = difference(*self._side_by_side(other))
        if not change.any():
            return 0.0
        size = np.ptp(change) if self.kind in ("picks", "noisy max") else np.linalg.norm(change)
        return float(size) * self.step

    def reach(self, other: Entry) -> tuple[float, bool]:
        """How far the query moved, as a share of its bound, and whether it kept to it, in exact arithmetic."""
        assert self.bound is not None
        pairs = zip(*self._side_by_side(other), strict=True)
        moved = [int(b) - int(a) for a, b in pairs if a != b]
        if self.norm == "L2":
            squares, limit = sum(m * m for m in moved), self.bound**2
            return float(squares / limit) ** 0.5, squares <= limit
        if self.norm == "range":  # a null candidate never moves
            most = max([0, *moved]) - min([0, *moved])
        else:
            most = max(map(abs, moved), default=0)
        return float(most / self.bound), most <= self.bound

    def leak(self, other: Entry) -> float:
        """The probability, over both tables, that a name is told which the other table does not have."""
        total = 0.0
        for one, two in ((self, other), (other, self)):
            foreign = set(two.names)
            own = [
                int(w) for name, w in zip(one.names, one.query, strict=True) if name not in foreign
            ]
            none = sum(float(log_ndtr((one.limit - w) * one.step)) for w in own)
            total -= math.expm1(none)
        return total

    def _side_by_side(self, other: Entry) -> tuple[np.ndarray, np.ndarray]:
        """Both queries in one order; a name that does not occur has weight zero."""
        if self.names == other.names:
            return self.query, other.query
        order = {name: j for j, name in enumerate(sorted({*self.names, *other.names}))}
        sides = np.zeros((2, len(order)), np.int64)
        for side, entry in zip(sides, (self, other), strict=True):
            side[[order[name] for name in entry.names]] = entry.query
        return sides[0], sides[1]


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a - b as float64, exact for whole numbers up to 2^53 apart and never wrapped around."""
    if a.dtype.kind != "i":
        return np.asarray(a - b)
    return np.array([float(int(x) - int(y)) for x, y in zip(a, b, strict=True)])


class _Spy:
    """A ridge problem that remembers with which tilt it was minimised, and where."""

    tilt: np.ndarray
    query: np.ndarray
    made: Query

    def __init__(self, problem: RidgeProblem) -> None:
        self.problem, self.rows = problem, problem.rows

    def tilted(self, tilt: np.ndarray, unit: float) -> Query:
        self.tilt, self.made = tilt.copy(), self.problem.tilted(tilt, unit)

        def whole(fine: float) -> np.ndarray:
            out = self.made.whole(fine)
            self.query = out.copy()
            return out

        return replace(self.made, whole=whole)


class RecordedReleases(Releases):
    """Releases of one fit, recorded; with a `script`, answered as another fit was.

    `origin` tells the row of the first table behind each row of this one (-1: a new row), for secrets that
    a row keeps from one table to the other.
    """

    def __init__(
        self,
        plan: Plan,
        rng: np.random.Generator,
        script: Sequence[Entry] | None = None,
        origin: np.ndarray | None = None,
    ) -> None:
        super().__init__(plan, rng)
        self.script, self.origin = script, origin
        self.entries: list[Entry] = []
        self.complaints: list[str] = []
        self.rows_per_unit = 1.0

    def capped(self, rows: Rows) -> Rows:
        self.rows_per_unit = float(rows.rows_per_unit)
        return super().capped(rows)

    def _answer(self, phase: str, query: Query, scale: float, unit: float) -> np.ndarray:
        rounded = Fraction(query.size) if query.rounded else Fraction(0)
        entry = self._settle(
            "gaussian", phase, query, unit, unit / scale if scale > 0.0 else np.inf,
            lambda spied: super(RecordedReleases, self)._answer(phase, spied, scale, unit),
            rounded=rounded,
        )  # fmt: skip
        return entry.answer.copy()

    def _pick(
        self, phase: str, scores: Query, k: int, unit: float, kappa: float, null: float | None
    ) -> np.ndarray:
        more = () if null is None else (round(null / unit),)
        entry = self._settle(
            "picks", phase, scores, unit, kappa,
            lambda spied: super(RecordedReleases, self)._pick(phase, spied, k, unit, kappa, null),
            paid=k, more=more,
        )  # fmt: skip
        return entry.answer.copy()

    def _names(
        self, phase: str, names: Names, query: Query, scale: float, unit: float, limit: int
    ) -> tuple[tuple[str, ...], np.ndarray]:
        """Which names occur may differ between tables; what is told may not."""
        asked = query.whole(unit)
        if asked.dtype != np.int64 or not (0.0 < unit < np.inf):
            raise ControlFlowError(f"a query of {phase} is not answered in whole numbers")
        known = replace(query, whole=lambda grid: asked.copy())
        told, answer = (
            super()._names(phase, names, known, scale, unit, limit)
            if self.script is None
            else self._past_names(phase)
        )
        step = unit / scale if scale > 0.0 else np.inf
        bound = Fraction(query.sensitivity(self._adjacency).value) / Fraction(unit)
        entry = Entry(phase, "names", asked, answer, step, bound=bound, names=names.known)
        self.entries.append(replace(entry, told=told, limit=limit))
        return told, answer.copy()

    def _past_names(self, phase: str) -> tuple[tuple[str, ...], np.ndarray]:
        at = len(self.entries)
        if self.script is None or at >= len(self.script) or self.script[at].phase != phase:
            raise ControlFlowError(f"release {at + 1} ({phase}) exists on the neighbour only")
        return self.script[at].told, self.script[at].answer

    def _vertices(self, phase: str, steps: Steps, n_steps: int) -> History:
        """Every step is one pick among the signed cells; its scores follow from rows and released history."""
        cells = steps.n_cells
        kind = "noisy max" if steps.laplace else "picks"
        start = len(self.entries)
        if self.script is None:
            history = super()._vertices(phase, steps, n_steps)
            places = history.features * steps.problem.n_outputs + history.outputs
            # The step goes against the sign s of e^{kappa s G}: candidates +G first, then -G.
            picks = (places + np.where(history.signs < 0, 0, cells))[-n_steps:]
        else:
            none = np.zeros(2 * cells, np.int64)
            picks = np.empty(n_steps, np.int64)
            for t in range(n_steps):
                past = self._past(kind, phase, none, start + t)
                assert past is not None
                picks[t] = past.answer[0]
            history = steps.history(picks % cells, np.where(picks < cells, -1, 1))
        moved = vertex_score(1.0, 1.0, self._adjacency).value
        # Every row of a person moves every score (docs/proofs/persons.md).
        bound = Fraction(moved) * Fraction(self.rows_per_unit) * steps.problem.resolution
        for pick, scores in zip(picks, steps.scores(history), strict=True):
            query = np.concatenate([scores, -scores]).astype(np.int64)
            self.entries.append(
                Entry(
                    phase, kind, query, np.array([pick]), steps.problem.unit_kappa, 1, bound, "Linf"
                )
            )
        return history

    def _count(self, phase: str, rule: PrivateCount, count: int) -> int:
        query = np.array([rule.clipped(count)], np.int64)
        past = self._past("count", phase, query)
        answer = np.array([super()._count(phase, rule, count)]) if past is None else past.answer
        bound = Fraction(rule.high - rule.low)
        self.entries.append(
            Entry(phase, "count", query, answer, 1.0 / rule.scale, bound=bound, norm="abs")
        )
        return int(answer[0])

    def _tilted(self, phase: str, problem: RidgeProblem, unit: float, fine: float) -> np.ndarray:
        """Releasing theta is releasing the tilt that leads to it: minus the gradient without tilt, there."""
        spy = _Spy(problem)
        none = np.zeros(problem.rows.width, np.int64)
        past = self._past("gaussian", phase, none)
        if past is None:
            whole = super()._tilted(phase, spy, unit, fine)  # type: ignore[arg-type]
            asked, tilt = spy.query, np.rint(spy.tilt / unit).astype(np.int64)
            if whole.dtype != np.int64 or not np.array_equal(tilt * unit, spy.tilt):
                self.complaints.append(f"the tilt or the blur of {phase} is not on its grid")
            self._certify(phase, spy.made)
        else:
            assert self.script is not None
            at = len(self.entries)
            tilt, asked, whole = past.answer, self.script[at + 1].query, self.script[at + 1].answer
        # Tilt and blur are noise; given the exact minimiser the blurred one does not move.
        self.entries.append(Entry(phase, "gaussian", none, tilt, 1.0 / STEPS))
        self.entries.append(Entry(phase, "gaussian", asked, whole.copy(), 1.0 / STEPS))
        gradient, volume = problem.stationarity(whole * fine)
        step = 1.0 / (unit * STEPS)
        self.entries.append(
            Entry(phase, "objective", gradient, np.empty(0), step, log_volume=volume)
        )
        return whole.copy()

    def _blocks(self, n_rows: int, n_blocks: int) -> np.ndarray:
        fresh = super()._blocks(n_rows, n_blocks)
        past = self._past("draw", "blocks", np.empty(0))
        if past is not None:
            assert self.origin is not None
            old = self.origin >= 0
            fresh[old] = past.answer[self.origin[old]]
        elif n_rows > 8 and n_blocks > 1:  # equal by chance once in n_blocks**n_rows
            other = super()._blocks(n_rows, n_blocks)
            if np.array_equal(fresh, other):
                self.complaints.append("blocks depend on the place of a row, not on a secret draw")
        self.entries.append(Entry("blocks", "draw", np.empty(0), fresh, 0.0))
        return fresh.copy()

    def public_uniform(self, n_rows: int, n_columns: int) -> np.ndarray:
        past = self._past("draw", "public rows", np.empty(0))
        drawn = super().public_uniform(n_rows, n_columns) if past is None else past.answer
        self.entries.append(Entry("public rows", "draw", np.empty(0), drawn, 0.0))
        return drawn.copy()

    # ---- recording -----------------------------------------------------------------------------

    def _certify(self, phase: str, query: Query) -> None:
        if query.certificate is not None and not query.certificate():
            self.complaints.append(f"a search of {phase} stopped before the tolerance it promises")

    def _settle(
        self,
        kind: str,
        phase: str,
        query: Query,
        unit: float,
        step: float,
        draw: Callable[[Query], np.ndarray],
        *,
        paid: int = 1,
        more: tuple[int, ...] = (),
        rounded: Fraction = Fraction(0),
    ) -> Entry:
        """The next entry: drawn by `draw` on a query that notices its answer, or taken from the script."""
        asked: list[np.ndarray] = []

        def whole(grid: float) -> np.ndarray:
            out = query.whole(grid)
            if out.dtype != np.int64 or grid != unit:
                raise ControlFlowError(f"a query of {phase} is not answered in whole numbers")
            asked.append(np.append(out.reshape(-1), np.array(more, np.int64)))
            return out

        spied = replace(query, whole=whole)
        answer = None if self.script is not None else np.array(draw(spied))
        if answer is None:
            spied.whole(unit)
        elif answer.dtype != np.int64:  # the lowest bits of a float tell what was added to it
            self.complaints.append(f"an answer of {phase} is not a whole number")
        self._certify(phase, query)
        if len(asked) != 1:
            raise ControlFlowError(f"a release of {phase} asked its query {len(asked)} times")
        if not (0.0 < unit < np.inf and step > 0.0):
            raise ControlFlowError(f"the grid or the noise of {phase} is not a positive number")
        if (np.abs(asked[0] // 2) >= _END // 2).any():
            raise ControlFlowError(f"a query of {phase} leaves the range of whole numbers")
        if answer is None:
            past = self._past(kind, phase, asked[0])
            assert past is not None
            answer = past.answer
        moved = query.sensitivity(self._adjacency)
        # A rounded query moves by half a unit an entry on either table: sqrt(size) units, at most.
        bound = Fraction(moved.value) / Fraction(unit) + Fraction(float(rounded) ** 0.5)
        norm = "L2"
        if kind == "picks":
            norm = "range" if moved.norm == "range" else "Linf"
        entry = Entry(phase, kind, asked[0], answer, step, paid, bound, norm)
        self.entries.append(entry)
        return entry

    def _past(
        self, kind: str, phase: str, query: np.ndarray, at: int | None = None
    ) -> Entry | None:
        """The script's entry for the release under way (or number `at`); None while recording."""
        at = len(self.entries) if at is None else at
        if self.script is None:
            return None
        if at >= len(self.script):
            raise ControlFlowError(f"release {at + 1} ({phase}) exists on the neighbour only")
        past = self.script[at]
        if (past.kind, past.phase, past.query.shape) != (kind, phase, query.shape):
            raise ControlFlowError(
                f"release {at + 1} is {past.phase}{past.query.shape} on one table and "
                f"{phase}{query.shape} on its neighbour"
            )
        return past

"""Releases that record everything that leaves a fit, and can repeat the answers of an earlier fit.

`Releases` is the only way out of a solver, so a fit that is handed `RecordedReleases` hides nothing:

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

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse.accounting.guarantee import Plan
from dpsparse.mechanisms import Answer, Release, Tilt, Vertices
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Names, Query, Rows

if TYPE_CHECKING:
    from dpsparse.methods.frank_wolfe.problem import History


@dataclass(frozen=True)
class _NamesWithoutRows:
    """Names without the rows that have them: a draw may tell some of them."""

    known: tuple[str, ...]
    most: int
    weights: Callable[[], Query]


class ControlFlowError(BaseException):
    """The neighbour's run met other releases than the first run. Not an `Exception`: a search takes those of its runs
    for outcomes, and goes on."""


@dataclass(frozen=True)
class Run:
    """A run inside a recorded one: what it is, its own plan, what it released."""

    name: str
    plan: Plan
    entries: list[Release]


class RecordedReleases(Releases):
    """Releases of one fit, recorded; with a `script`, answered as another fit was.

    `origin` tells the row of the first table behind each row of this one (-1: a new row), for secrets that
    a row keeps from one table to the other. `scripts` are those of runs inside this one; None draws answers anew.
    """

    def __init__(
        self,
        plan: Plan,
        rng: np.random.Generator,
        script: Sequence[Release] | None = None,
        origin: np.ndarray | None = None,
        scripts: Sequence[Sequence[Release] | None] = (),
    ) -> None:
        super().__init__(plan, rng)
        self.plan = plan
        self.script, self.origin, self.scripts = script, origin, scripts
        self.entries: list[Release] = []
        self.complaints: list[str] = []
        self.runs: list[Run] = []  # inside this one
        self.rows_per_unit = 1.0

    def under(self, plan: Plan, name: str) -> RecordedReleases:
        """What a run inside this one releases is written down in a book of its own."""
        number = len(self.runs)
        if self.script is not None and number >= len(self.scripts):
            raise ControlFlowError(f"run {number + 1} ({name}) exists on the neighbour only")
        script = None if self.script is None else self.scripts[number]
        inner = type(self)(plan, self.rng, script, self.origin)
        inner.complaints, inner.rows_per_unit = self.complaints, self.rows_per_unit
        self.runs.append(Run(name, plan, inner.entries))
        return inner

    def capped(self, rows: Rows) -> Rows:
        self.rows_per_unit = float(rows.rows_per_unit)
        stream = self.rng
        if self.entries:  # a replay draws no noise, so its stream is at another place by now
            self.rng = make_generator(len(self.entries))
        try:
            return super().capped(rows)
        finally:
            self.rng = stream

    def _release(self, phase: str, mechanism: Answer) -> np.ndarray:
        """The question is asked of the rows at hand; the answer is drawn, or taken from the script."""
        asked = mechanism.question()
        if asked.dtype != np.int64:
            raise ControlFlowError(f"a query of {phase} is not answered in whole numbers")
        if not mechanism.step > 0.0:
            raise ControlFlowError(f"the grid or the noise of {phase} is not a positive number")
        # Such a sum is close to wrapping around, or was cast from what is not a number.
        if (np.abs(asked // 2) >= 2**61).any():
            raise ControlFlowError(f"a query of {phase} leaves the range of whole numbers")
        if not mechanism.certified():
            self._gave_up(phase)
        facts = mechanism.record()
        past = self._past(mechanism.kind, phase, None if "names" in facts else asked)
        blind = self._without_rows(phase, mechanism)
        answer = blind.draw(asked.copy(), self.rng) if past is None else past.answer
        if answer.dtype.kind == "f":  # the lowest bits of a float tell what was added to it
            self.complaints.append(f"an answer of {phase} is not a whole number")
        bound, norm = mechanism.bound(self._adjacency)
        entry = Release(
            phase,
            mechanism.kind,
            asked,
            answer.copy(),
            mechanism.step,
            bound=bound,
            norm=norm,
            **facts,
        )
        self.entries.append(entry)
        return answer.copy()

    def _without_rows(self, phase: str, mechanism: Answer) -> Answer:
        """The mechanism after its question: a draw that looks at rows once more answers something that nobody has
        written down, and no law of its answers need show it (the lowest bit of a sum, say)."""

        def watched(read: Callable[..., Any], *arguments: Any) -> Any:
            self.complaints.append(f"a draw of {phase} reads rows again")
            return read(*arguments)

        blind: dict[str, Any] = {}
        for field in fields(mechanism):  # type: ignore[arg-type]
            value = getattr(mechanism, field.name)
            if isinstance(value, Query):
                blind[field.name] = replace(value, whole=partial(watched, value.whole))
            elif isinstance(value, Names):
                blind[field.name] = _NamesWithoutRows(
                    value.known, value.most, partial(watched, value.weights)
                )
            elif isinstance(value, Rows):
                reads = {
                    m: partial(watched, getattr(value._parts, m)) for m in ("map", "sum", "collect")
                }
                blind[field.name] = copy(value)
                blind[field.name]._parts = SimpleNamespace(**reads)
        return replace(mechanism, **blind)  # type: ignore[type-var]

    def _vertices(self, phase: str, vertices: Vertices) -> History:
        """Every step is one pick among the signed cells; its scores follow from rows and released history."""
        if self.script is None:
            picks = vertices.picks(super()._vertices(phase, vertices))
        else:
            none, start = np.zeros(2 * vertices.steps.n_cells, np.int64), len(self.entries)
            picks = np.empty(vertices.n_steps, np.int64)
            for t in range(vertices.n_steps):
                past = self._past(vertices.kind, phase, none, start + t)
                assert past is not None
                picks[t] = past.answer[0]
        self.entries += vertices.releases(phase, picks, self._adjacency, self.rows_per_unit)
        return vertices.history(picks)

    def _tilted(self, phase: str, tilt: Tilt) -> np.ndarray:
        """Releasing theta is releasing the tilt that leads to it: minus the gradient without tilt, there."""
        at = len(self.entries)
        past = self._past("gaussian", phase, np.zeros(tilt.problem.rows.width, np.int64))
        if past is None:
            drawn = tilt.tilt(self.rng)
            query = tilt.minimiser(drawn)
            asked = query.whole(tilt.fine)
            whole = tilt.blurred(asked.copy(), self.rng)
            if drawn.dtype != np.int64 or whole.dtype != np.int64:
                self.complaints.append(f"the tilt or the blur of {phase} is not on its grid")
            if query.certificate is not None and not query.certificate():
                self._gave_up(phase)
        else:
            assert self.script is not None
            blur = self.script[at + 1]
            drawn, asked, whole = past.answer, blur.query, blur.answer.copy()
        self.entries += tilt.releases(phase, drawn, asked, whole.copy(), self._adjacency)
        return whole

    def drawn(self, what: str, draw: Callable[[np.random.Generator], np.ndarray]) -> np.ndarray:
        past = self._past("draw", what, np.empty(0))
        found = draw(self.rng) if past is None else past.answer
        self.entries.append(Release(what, "draw", np.empty(0), found, 0.0))
        return found.copy()

    # ---- recording -----------------------------------------------------------------------------

    def _gave_up(self, phase: str) -> None:
        self.complaints.append(f"a search of {phase} stopped before the tolerance it promises")

    def _past(
        self, kind: str, phase: str, query: np.ndarray | None, at: int | None = None
    ) -> Release | None:
        """The script's entry for the release under way (or number `at`); None while recording.

        Without a `query` its length may differ between the tables: which names occur, say."""
        at = len(self.entries) if at is None else at
        if self.script is None:
            return None
        if at >= len(self.script):
            raise ControlFlowError(f"release {at + 1} ({phase}) exists on the neighbour only")
        past = self.script[at]
        shape = past.query.shape if query is None else query.shape
        if (past.kind, past.phase, past.query.shape) != (kind, phase, shape):
            raise ControlFlowError(
                f"release {at + 1} is {past.phase}{past.query.shape} on one table and "
                f"{phase}{shape} on its neighbour"
            )
        return past

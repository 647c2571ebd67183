"""Releases that record everything that leaves a private run, and can repeat the answers of an earlier one.

`Releases` is the only way out of rows, so a run that is handed `RecordedReleases` hides nothing. A `Tape` says how:

    recording   every release is made as always; whole-number query and answer are written down
    replaying   the query is asked of the rows at hand, the answer is that of the script
    rebuilding  the same without rows: they are hollow and refuse every look, and no query is asked

Two runs on neighbouring tables can then be compared, release by release, under the same history. What one
whole number of a query is worth in units of its noise is `step`, so costs of all kinds look alike:

    gaussian    unit/scale      |q - q'|_2 * step
    picks       kappa           range of (q - q') * step, once for each pick
    names       unit/scale      |q - q'|_2 * step, over the names of either table; `leak` for those of one alone
    geometric   1/scale         |q - q'| * step
    objective   1/scale         |g - g'|_2 * step, g the gradient of the untilted objective where it was minimised
    fact        0               the number of rows, where it is public
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from copy import copy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dpsparse.accounting.guarantee import Plan
from dpsparse.mechanisms import Answer, Release, Tilt, Vertices
from dpsparse.random import make_generator
from dpsparse.release import Releases, releases_made_by
from dpsparse.rows import Names, Query, Rows

if TYPE_CHECKING:
    from dpsparse.methods.frank_wolfe.run import History

FACT = "fact"  # the kind of what no phase pays for, since no private row has a part in it


class ControlFlowError(BaseException):
    """A repeated run needs another release than the first run made. Not an `Exception`: a search takes those of its
    runs for outcomes, and goes on."""


@dataclass(frozen=True)
class Run:
    """What one private run, or a run inside it, released under its plan; `name` is empty for the outer one."""

    name: str
    plan: Plan
    entries: list[Release]


@dataclass
class Tape:
    """The runs of one private action in the order in which they began; with a `script`, answered as those of another
    tape. `hollow` rows have nothing to look at."""

    seed: int | None = None
    script: Tape | None = None
    hollow: bool = False
    runs: list[Run] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    rows_per_unit: float = 1.0
    shown: dict[str, Any] = field(default_factory=dict)  # all that anybody sees of the action

    @property
    def entries(self) -> list[Release]:
        """The releases of all runs."""
        return [entry for run in self.runs for entry in run.entries]

    def begin(self, name: str, plan: Plan) -> tuple[Run, Sequence[Release] | None]:
        """A new run, and the releases whose answers it repeats."""
        run = Run(name, plan, [])
        self.runs.append(run)
        if self.script is None:
            return run, None
        if len(self.runs) > len(self.script.runs):
            raise ControlFlowError(f"run {len(self.runs)} ({name}) exists in the repeated run only")
        past = self.script.runs[len(self.runs) - 1]
        if (past.name, past.plan.method) != (name, plan.method) or past.plan.event != plan.event:
            raise ControlFlowError(f"run {len(self.runs)} ({name}) follows another plan")
        return run, past.entries

    def record(self, action: Callable[..., Any], table: Sequence[Any]) -> None:
        """Write down `action(*table)`: its releases, its result, its warnings and what it prints."""

        def make(plan: Plan) -> RecordedReleases:
            return RecordedReleases(plan, make_generator(self.seed), self)

        printed = io.StringIO()
        with (
            releases_made_by(make),
            redirect_stdout(printed),
            redirect_stderr(printed),
            warnings.catch_warnings(record=True) as said,
        ):
            warnings.simplefilter("always")
            result = action(*table)
        if self.script is not None:
            lengths = [[len(run.entries) for run in tape.runs] for tape in (self, self.script)]
            if lengths[0] != lengths[1]:
                raise ControlFlowError("the repeated run stopped early")
        messages = [(w.category.__name__, str(w.message)) for w in said]
        self.shown = {"result": result, "warnings": messages, "printed": printed.getvalue()}


class Hollow:
    """Parts of rows (rows/parts.py) without rows: maps of them are hollow, and every look raises."""

    def map(self, f: Callable[..., Any], each: Sequence[Any] | None = None) -> Hollow:
        return self

    def sum(self, shape: tuple[int, ...], add: Callable[..., Any]) -> NoReturn:
        _refuse_look(add)

    def collect(self, f: Callable[..., Any]) -> NoReturn:
        _refuse_look(f)


def _refuse_look(f: Any) -> NoReturn:
    name = getattr(getattr(f, "func", f), "__name__", "a function")
    raise ControlFlowError(f"rows are read outside of every release ({name})")


class RecordedReleases(Releases):
    """Releases of one run, recorded on a tape; where the tape has a script, answered as that run was."""

    def __init__(
        self,
        plan: Plan,
        rng: np.random.Generator,
        tape: Tape | None = None,
        name: str = "",
    ) -> None:
        super().__init__(plan, rng)
        self.tape = Tape() if tape is None else tape
        run, self.script = self.tape.begin(name, plan)
        self.entries = run.entries

    def under(self, plan: Plan, name: str) -> RecordedReleases:
        """What a run inside this one releases is written down in a book of its own."""
        return type(self)(plan, self.rng, self.tape, name)

    def admit(self, rows: Any) -> Any:
        if not self.tape.hollow:
            return super().admit(rows)
        hollow = copy(rows)
        hollow._parts = Hollow()
        return hollow

    def capped(self, rows: Rows) -> Rows:
        if self.tape.hollow:
            admitted: Rows = self.admit(rows)
            return admitted
        self.tape.rows_per_unit = float(rows.rows_per_unit)
        stream = self.rng
        if self.entries:  # a replay draws no noise, so its stream is at another place by now
            self.rng = make_generator(len(self.entries))
        try:
            return super().capped(rows)
        finally:
            self.rng = stream

    def number_of_rows(self, rows: Any) -> int | None:
        """On a neighbour it is asked again: a number that is not public shows as a difference."""
        if self.tape.hollow:
            self._past(FACT, "number of rows")
            known = self._repeat(1)[0].answer
        else:
            found = super().number_of_rows(rows)
            known = np.array([] if found is None else [found])
            fact = Release("number of rows", FACT, np.empty(0), known, 0.0)
            self.entries.append(fact)
        return int(known[0]) if known.size else None

    def _release(self, phase: str, mechanism: Answer) -> np.ndarray:
        """The question is asked of the rows at hand; the answer is drawn, or taken from the script."""
        if self.tape.hollow:
            self._past(mechanism.kind, phase)
            return self._repeat(1)[0].answer.copy()
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
            self.tape.complaints.append(f"an answer of {phase} is not a whole number")
        bound, norm = mechanism.bound(self._adjacency)
        kept, step = answer.copy(), mechanism.step
        self.entries.append(
            Release(phase, mechanism.kind, asked, kept, step, bound=bound, norm=norm, **facts)
        )
        return answer.copy()

    def _without_rows(self, phase: str, mechanism: Answer) -> Answer:
        """The mechanism after its question: a draw that looks at rows once more answers something that nobody has
        written down, and no law of its answers need show it (the lowest bit of a sum, say)."""

        def watched(read: Callable[..., Any], *arguments: Any) -> Any:
            self.tape.complaints.append(f"a draw of {phase} reads rows again")
            return read(*arguments)

        blind: dict[str, Any] = {}
        for each in fields(mechanism):  # type: ignore[arg-type]
            value = getattr(mechanism, each.name)
            if isinstance(value, Query):
                blind[each.name] = replace(value, whole=partial(watched, value.whole))
            elif isinstance(value, Names):  # a draw may tell some of them
                blind[each.name] = SimpleNamespace(
                    known=value.known, most=value.most, weights=partial(watched, value.weights)
                )
            elif isinstance(value, Rows):
                reads = {
                    m: partial(watched, getattr(value._parts, m)) for m in ("map", "sum", "collect")
                }
                blind[each.name] = copy(value)
                blind[each.name]._parts = SimpleNamespace(**reads)
        return replace(mechanism, **blind)  # type: ignore[type-var]

    def _vertices(self, phase: str, vertices: Vertices) -> History:
        """Every step is one pick among the signed cells; its scores follow from rows and released history."""
        if self.script is None:
            picks = vertices.picks(super()._vertices(phase, vertices))
        else:
            at, none = len(self.entries), np.zeros(2 * vertices.steps.n_cells, np.int64)
            steps = [
                self._past(vertices.kind, phase, none, at + t) for t in range(vertices.n_steps)
            ]
            picks = np.array([past.answer[0] for past in steps if past is not None], np.int64)
        if self.tape.hollow:
            self._repeat(vertices.n_steps)
        else:
            self.entries += vertices.releases(
                phase, picks, self._adjacency, self.tape.rows_per_unit
            )
        return vertices.history(picks)

    def _tilted(self, phase: str, tilt: Tilt) -> np.ndarray:
        """Releasing theta is releasing the tilt that leads to it: minus the gradient without tilt, there."""
        past = self._past("gaussian", phase, np.zeros(tilt.problem.rows.width, np.int64))
        if self.tape.hollow:
            return self._repeat(3)[1].answer.copy()
        if past is None:
            drawn = tilt.tilt(self.rng)
            query = tilt.minimiser(drawn)
            asked = query.whole(tilt.fine)
            whole = tilt.blurred(asked.copy(), self.rng)
            if drawn.dtype != np.int64 or whole.dtype != np.int64:
                self.tape.complaints.append(f"the tilt or the blur of {phase} is not on its grid")
            if query.certificate is not None and not query.certificate():
                self._gave_up(phase)
        else:
            assert self.script is not None
            blur = self.script[len(self.entries) + 1]
            drawn, asked, whole = past.answer, blur.query, blur.answer.copy()
        self.entries += tilt.releases(phase, drawn, asked, whole.copy(), self._adjacency)
        return whole

    # ---- recording -----------------------------------------------------------------------------

    def _gave_up(self, phase: str) -> None:
        self.tape.complaints.append(f"a search of {phase} stopped before the tolerance it promises")

    def _past(
        self, kind: str, phase: str, query: np.ndarray | None = None, at: int | None = None
    ) -> Release | None:
        """The script's entry for the release under way (or number `at`); None while recording.

        Without a `query` its length may differ between the tables: which names occur, say."""
        at = len(self.entries) if at is None else at
        if self.script is None:
            return None
        if at >= len(self.script):
            raise ControlFlowError(f"release {at + 1} ({phase}) exists in the repeated run only")
        past = self.script[at]
        shape = past.query.shape if query is None else query.shape
        if (past.kind, past.phase, past.query.shape) != (kind, phase, shape):
            raise ControlFlowError(
                f"release {at + 1} is {past.phase}{past.query.shape} in one run and "
                f"{phase}{shape} in the other"
            )
        return past

    def _repeat(self, n: int) -> Sequence[Release]:
        """The next releases of the script, where no row is there to ask."""
        assert self.script is not None
        past = self.script[len(self.entries) : len(self.entries) + n]
        if len(past) < n:
            raise ControlFlowError("the repeated run needs more than was released")
        self.entries += past
        return past

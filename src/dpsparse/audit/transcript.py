"""A private run is a function of public facts and of the transcript of its releases: run it again without the rows.

    first     run(table) as always; every answer that leaves the rows is written down
    then      run(stranger) with hollow rows, which refuse every look, and with releases that hand back the answers
    compare   result, warnings and printed text, bit for bit

A `stranger` is another table of the same public schema: columns, declared labels, and the number of rows where that is
public. Code that validates a table must look at one, and there a stranger stands in for "no table". From the moment a
run has its releases its rows are hollow (`Releases.admit`): a look raises, so nothing but the transcript can explain
the result. What equality proves, and what it does not: docs/proofs/rebuild.md.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from copy import copy, deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dpsparse.accounting.guarantee import Plan
from dpsparse.audit.same import differences
from dpsparse.exceptions import UnpaidFitsWarning
from dpsparse.mechanisms import Answer, Tilt, Vertices
from dpsparse.private_run import releases_made_by
from dpsparse.random import make_generator
from dpsparse.release import Releases

if TYPE_CHECKING:
    from dpsparse.methods.frank_wolfe.problem import History


class NotInTranscriptError(BaseException):
    """A rebuilt run needs something that was not released. Not an `Exception`: a search takes those of its runs for
    outcomes, and goes on."""


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
    raise NotInTranscriptError(f"rows are read outside of every release ({name})")


@dataclass
class Transcript:
    """Everything that left the rows, in order; with `script`, answers that are handed out again."""

    entries: list[tuple[str, str, Any]] = field(default_factory=list)  # kind, name, answer
    script: Iterator[tuple[str, str, Any]] | None = None

    def answer_or_repeat(self, kind: str, name: str, answer: Callable[[], Any]) -> Any:
        """The answer: made now and written down, or the next of the script without a look at rows."""
        if self.script is None:
            found = answer()
            self.entries.append((kind, name, deepcopy(found)))
            return found
        past = next(self.script, ("nothing", "", None))
        if past[:2] != (kind, name):
            raise NotInTranscriptError(
                f"{kind} {name!r} follows where the recorded run had {past[0]} {past[1]!r}"
            )
        self.entries.append(past)
        return deepcopy(past[2])

    def same(self, kind: str, name: str, fact: Any) -> None:
        """A public fact that must not differ between the runs."""
        past = self.answer_or_repeat(kind, name, lambda: fact)
        for wrong in differences(past, fact, name):
            raise NotInTranscriptError(f"{kind}: {wrong} differs from that of the recorded run")


class TranscribedReleases(Releases):
    """Releases whose answers are written into a transcript, or read from one.

    Secret draws that meet rows (which rows of a person are kept, which block a row is in) are no part of it: a rebuilt
    run has no rows to draw for. Draws that depend on no row are, as other randomness would lead elsewhere.
    """

    def __init__(self, plan: Plan, rng: np.random.Generator, book: Transcript) -> None:
        super().__init__(plan, rng)
        self._book = book
        book.same("plan", plan.method, plan.event)

    def under(self, plan: Plan, name: str, part: str = "") -> TranscribedReleases:
        self._book.same("run", name, part)
        return type(self)(plan, self.rng, self._book)

    def admit(self, rows: Any) -> Any:
        if self._book.script is None:
            return super().admit(rows)
        hollow = copy(rows)
        hollow._parts = Hollow()
        return hollow

    def capped(self, rows: Any) -> Any:
        return super().capped(rows) if self._book.script is None else self.admit(rows)

    def number_of_rows(self, rows: Any) -> int | None:
        ask = super().number_of_rows
        found: int | None = self._book.answer_or_repeat("fact", "number of rows", lambda: ask(rows))
        return found

    def drawn(self, what: str, draw: Callable[[np.random.Generator], np.ndarray]) -> np.ndarray:
        return np.asarray(self._book.answer_or_repeat("draw", what, lambda: draw(self.rng)))

    def _release(self, phase: str, mechanism: Answer) -> np.ndarray:
        ask = super()._release
        return np.asarray(
            self._book.answer_or_repeat(mechanism.kind, phase, lambda: ask(phase, mechanism))
        )

    def _vertices(self, phase: str, vertices: Vertices) -> History:
        ask = super()._vertices
        picks = self._book.answer_or_repeat(
            vertices.kind, phase, lambda: vertices.picks(ask(phase, vertices))
        )
        return vertices.history(picks)

    def _tilted(self, phase: str, tilt: Tilt) -> np.ndarray:
        ask = super()._tilted
        return np.asarray(self._book.answer_or_repeat(tilt.kind, phase, lambda: ask(phase, tilt)))


@dataclass(frozen=True)
class Rebuilt:
    """How a run compares with its rebuilding: no differences, or where they are."""

    n_answers: int
    differences: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self.holds:
            return f"rebuilt bit for bit from {self.n_answers} answers and public facts"
        return "not explained by the releases: " + "; ".join(self.differences[:5])


def rebuild(
    run: Callable[..., Any], table: Sequence[Any], strangers: Iterable[Sequence[Any]]
) -> Rebuilt:
    """Whether everything that `run(*table)` shows follows from public facts and from what was released.

    Parameters
    ----------
    run : callable
        Anything private: a fit, a pipeline, a search, an evaluation. It returns all that is to be compared (a fitted
        model, a report, the bytes of a file) and makes its objects anew at every call.
    table : sequence
        Its arguments, such as (X, y).
    strangers : iterable of sequences
        Other arguments of the same public schema, as different as the schema allows. Also the number of rows should
        differ, unless the adjacency is "replace-one". The run is rebuilt once with each.

    Returns
    -------
    Rebuilt
        `holds`, and the differences that were found.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> from dpsparse.audit import rebuild
    >>> from dpsparse.datasets import make_sparse_classification
    >>> def run(X, y):
    ...     return DPGradientClassifier(Domain(classes=[0, 1]), epsilon=1.0).fit(X, y)
    >>> table, stranger = (make_sparse_classification(n, 50, seed=n) for n in (300, 200))
    >>> rebuild(run, table, [stranger]).holds
    True
    """
    book = Transcript()
    first = _carried_out(run, table, book)
    n_answers = sum(kind not in ("plan", "run", "fact") for kind, _, _ in book.entries)
    for stranger in strangers:
        found = _compared(run, stranger, book, first)
        if found:
            return Rebuilt(n_answers, found)
    return Rebuilt(n_answers, ())


def _compared(
    run: Callable[..., Any], stranger: Sequence[Any], book: Transcript, first: dict[str, Any]
) -> tuple[str, ...]:
    """Where the run without rows differs from the first."""
    again = Transcript(script=iter(book.entries))
    try:
        second = _carried_out(run, stranger, again)
    except NotInTranscriptError as error:
        return (str(error),)
    except Exception as error:
        return (f"the rebuilt run fails: {type(error).__name__}: {error}",)
    found = list(differences(first, second, ""))
    if len(again.entries) < len(book.entries):
        found.append("the rebuilt run releases less")
    return tuple(found)


def _carried_out(run: Callable[..., Any], table: Sequence[Any], book: Transcript) -> dict[str, Any]:
    """All that anybody sees of a run."""

    def make(plan: Plan) -> Releases:
        return TranscribedReleases(plan, make_generator(None), book)

    printed = io.StringIO()
    with (
        releases_made_by(make),
        redirect_stdout(printed),
        redirect_stderr(printed),
        warnings.catch_warnings(record=True) as said,
    ):
        warnings.simplefilter("always")
        # How many fits this process has made is a fact about the process, and the second run is one more.
        warnings.simplefilter("ignore", UnpaidFitsWarning)
        result = run(*table)
    messages = [(w.category.__name__, str(w.message)) for w in said]
    return {"result": result, "warnings": messages, "printed": printed.getvalue()}

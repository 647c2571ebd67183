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

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dpsparse.audit.recorded import FACT, ControlFlowError, Tape
from dpsparse.audit.same import differences


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
    tape = Tape()
    tape.record(run, table)
    n_answers = sum(entry.kind != FACT for entry in tape.entries)
    for stranger in strangers:
        again = Tape(script=tape, hollow=True)
        try:
            again.record(run, stranger)
        except ControlFlowError as error:
            return Rebuilt(n_answers, (str(error),))
        except Exception as error:
            return Rebuilt(n_answers, (f"the rebuilt run fails: {type(error).__name__}: {error}",))
        found = tuple(differences(tape.shown, again.shown, ""))
        if found:
            return Rebuilt(n_answers, found)
    return Rebuilt(n_answers, ())

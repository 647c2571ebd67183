"""Where the rows are: parts, functions of one part, and sums of whole numbers over all of them.

    map(f)           f(part) for every part, kept where the part is
    sum(shape, add)  out = 0;  add(part, out) for every part                 int64, so cuts and order change nothing
    collect(f)       f(part) brought here, in order: for what cannot be a sum (rows on a released support)

`f` and `add` are pure functions of one part and of public or released numbers: functions of a module with arguments
bound by `partial`, so that an engine may run them in another process, twice, or again after a machine was lost. None of
them has a generator, a ledger or a memory. An engine is a class with these three methods: `InMemory` here,
`Stored` (spool.py) for tables larger than memory, `OnDask` and `OnSpark` for several machines. It also says whether a
fit may hold all rows in one place (`fit_in_memory`); methods that are faster there ask for that, and have the same law.

A query is a question about the rows whose answer is a vector of whole numbers:

    q_j(unit) = sum_i trunc(v_ij / unit)        v_i: what row i contributes, a function of row i and public numbers

The bound on v_i is enforced on the whole numbers themselves, in the kernel that makes them: a contribution
that is not finite or too long counts as zero. So `sensitivity` is a fact about integers and
depends on no float. Rows make queries, `Releases` answers them; nothing else calls `whole`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from dpsparse.sensitivity import Sensitivity


class Parts(Protocol):
    """Private parts of the rows, or of something made from them."""

    @property
    def fit_in_memory(self) -> bool:
        """Whether this process may hold all rows, and as much again."""
        ...

    def map(self, f: Callable[..., Any], each: Sequence[Any] | None = None) -> Parts:
        """f(part), or f(part, each[i]) with one argument for every part."""
        ...

    def sum(self, shape: tuple[int, ...], add: Callable[[Any, np.ndarray], None]) -> np.ndarray:
        """The exact sum of what `add` adds for every part."""
        ...

    def collect(self, f: Callable[[Any], Any]) -> list[Any]:
        """f(part) of every part, here."""
        ...


class InMemory(tuple[Any, ...]):
    """All parts in this process; threads work inside a part."""

    __slots__ = ()
    fit_in_memory = True

    def map(self, f: Callable[..., Any], each: Sequence[Any] | None = None) -> InMemory:
        if each is None:
            return type(self)(f(part) for part in self)
        return type(self)(f(part, own) for part, own in zip(self, each, strict=True))

    def sum(self, shape: tuple[int, ...], add: Callable[[Any, np.ndarray], None]) -> np.ndarray:
        out = np.zeros(shape, np.int64)
        for part in self:
            add(part, out)
        return out

    def collect(self, f: Callable[[Any], Any]) -> list[Any]:
        return [f(part) for part in self]


@dataclass(frozen=True)
class Query:
    """`whole(unit)` is the exact sum on a grid, in an array that nobody else holds, since noise is added in place;
    `sensitivity(adjacency)` is its lemma, in units of v."""

    shape: tuple[int, ...]
    sensitivity: Callable[[str], Sensitivity]
    whole: Callable[[float], np.ndarray]
    # A query that is rounded rather than summed (a minimiser) moves by its rounding as well.
    rounded: bool = False
    # Whether the answer is what the lemma assumes (a search that reached its tolerance), for the audit.
    certificate: Callable[[], bool] | None = None

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    def magnitudes(self, size: int) -> Query:
        """Absolute values of the first `size` numbers, up to 2^60: no entry moves by more than before, not even where a
        sum of 64 bits wrapped around: the size of q modulo 2^64 rises and falls with q in steps of one."""

        def whole(unit: float) -> np.ndarray:
            first = self.whole(unit).reshape(-1)[:size]
            return np.asarray(np.abs(np.clip(first, -(2**60), 2**60)))

        return Query((size,), self.sensitivity, whole)


def units_in_one(unit: float) -> int:
    """The most units that one row may add to a count: at most one together, by fractions, as 1.0/unit may round up."""
    return int(1 / Fraction(unit))


def parts_of_one(shares: np.ndarray, one: int) -> np.ndarray:
    """`one` for a share of one or more, less for all others: also where a mean was rounded up, or a cast could be."""
    less = (np.minimum(shares, 1.0 - 2.0**-24) * one).astype(np.int64)
    return np.where(shares >= 1.0, one, less)

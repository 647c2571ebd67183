"""Where the rows are: parts, functions of one part, and sums of whole numbers over all of them.

    map(f)           f(part) for every part, kept where the part is
    sum(shape, add)  out = 0;  add(part, out) for every part                 int64, so cuts and order change nothing
    collect(f)       f(part) brought here, in order: for what cannot be a sum (rows on a released support)

`f` and `add` are pure functions of one part and of public or released numbers: functions of a module with arguments
bound by `partial`, so that an engine may run them in another process, twice, or again after a machine was lost. None of
them has a generator, a ledger or a memory. An engine is a class with these three methods: `InMemory` here,
`Stored` (spool.py) for tables larger than memory, `OnDask` (dask.py) for several machines. It also says whether a fit
may hold all rows in one place (`fit_in_memory`); methods that are faster there ask for that, and have the same law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np


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

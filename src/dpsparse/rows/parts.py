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

Sums with few entries are here, too: what a row adds is a short vector, yes or no, or a one in a cell of every column. A
part says how much its rows count (`worth`), and where those of each person begin (`starts`). A person adds the mean
over their rows, made whole once: of k rows, c of them in a cell, floor(c F/k), F the whole numbers of one row, and such
numbers add up to at most F, in integers (docs/proofs/evaluation.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Protocol

import numpy as np

from dpsparse.domain.clipping import Part
from dpsparse.exceptions import InternalError, ParameterError
from dpsparse.rows import kernels
from dpsparse.rows.persons import means
from dpsparse.sensitivity import Sensitivity, class_counts, count_below, feature_masses, signed_sum


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


class Here(ABC):
    """Parts that this process has one after the other; threads work inside a part."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    def sum(self, shape: tuple[int, ...], add: Callable[[Any, np.ndarray], None]) -> np.ndarray:
        out = np.zeros(shape, np.int64)
        for part in self:
            add(part, out)
        return out

    def collect(self, f: Callable[[Any], Any]) -> list[Any]:
        return [f(part) for part in self]


class InMemory(tuple[Any, ...], Here):
    """All parts in this process."""

    fit_in_memory = True

    def map(self, f: Callable[..., Any], each: Sequence[Any] | None = None) -> InMemory:
        if each is None:
            return type(self)(f(part) for part in self)
        return type(self)(f(part, own) for part, own in zip(self, each, strict=True))


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


def joined(parts: Sequence[Part]) -> Part:
    """One part of several."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return Part(
        indptr.astype(parts[0].indptr.dtype if indptr[-1] < 2**31 else np.int64),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.targets for part in parts]),
        parts[0].n_features,
        worth=None if parts[0].worth is None else np.concatenate([part.worth for part in parts]),
    )


def short_sum(
    parts: Parts,
    contributions: Callable[[Any], np.ndarray],
    size: int,
    bound: float,
    lemma: Callable[[str], Any],
    positive: bool = False,
) -> Query:
    """The sum of `contributions`, an array with a line of `size` numbers and norm at most `bound` for every row."""
    refuse_many_classes(size)

    def whole(unit: float) -> np.ndarray:
        if unit >= bound:
            raise InternalError("A sum in units that no row can reach would be noise alone.")
        return parts.sum((size,), partial(_add_short, contributions, unit, bound, positive))

    return Query((size,), lemma, whole)


def refuse_many_classes(n_classes: int) -> None:
    """Squares of more numbers are not added right enough."""
    if n_classes > 2**20:
        raise ParameterError(f"More than {2**20} classes are not supported.")


def count(parts: Parts, answers: Callable[[Any], np.ndarray]) -> Query:
    """How many rows a yes-or-no question holds for: every row adds one whole number or none (a row of weight w
    that part of it), and a person the share of their rows."""

    def whole(unit: float) -> np.ndarray:
        return parts.sum((1,), partial(_add_count, answers, units_in_one(unit)))

    return Query((1,), count_below, whole)


def cells(
    parts: Parts,
    places: Callable[[Any], np.ndarray],
    n_columns: int,
    n_cells: int,
    lemma: Callable[[str], Any],
    shape: tuple[int, ...],
) -> Query:
    """How many rows are in each cell of each column; a negative place is no cell."""

    def whole(unit: float) -> np.ndarray:
        most = int(kernels.SAFE / unit)  # sqrt(columns) may be rounded down
        if most == 0:
            raise InternalError("A sum in units that no row can reach would be noise alone.")
        add = partial(_add_cells, places, most)
        return parts.sum((n_columns, n_cells), add).reshape(shape)

    return Query(shape, lemma, whole)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Some numbers of every row of a part, where the rows of each person begin, and how much every row counts."""

    values: np.ndarray
    starts: np.ndarray | None
    worth: np.ndarray | None


@dataclass(frozen=True, eq=False)
class MarginPart(Numbers):
    """Margins of the rows of one part."""

    targets: np.ndarray


class Margins:
    """Margins of the rows under released weights; private."""

    def __init__(self, parts: Parts, n_outputs: int) -> None:
        self._parts, self._n_outputs = parts, n_outputs

    def class_totals(self, offset: np.ndarray) -> Query:
        """sum of the predicted probabilities, class by class."""
        n_classes = max(2, self._n_outputs)
        chances = partial(_chances, offset, n_classes)
        return short_sum(
            self._parts, chances, n_classes, 1.0, partial(feature_masses, 1.0), positive=True
        )

    def labels_by_margin(self, edges: np.ndarray) -> Query:
        """How many rows of each of two classes have a margin in each bin between public `edges`: (classes, bins)."""
        bins = len(edges) + 1
        places = partial(_label_bins, edges)
        return cells(self._parts, places, 1, 2 * bins, class_counts, (2, bins))

    def residual_total(self, offset: np.ndarray, reach: float) -> Query:
        """sum of target - margin - offset, each clipped to +-reach."""
        residuals = partial(_residuals, offset, reach)
        return short_sum(self._parts, residuals, 1, reach, partial(signed_sum, reach))


# ---- functions of one part -----------------------------------------------------------------------


def _add_short(
    contributions: Callable[[Any], np.ndarray],
    unit: float,
    bound: float,
    positive: bool,
    part: Any,
    out: np.ndarray,
) -> None:
    added = contributions(part)
    if part.worth is not None:
        added = added * part.worth[:, None]
    if part.starts is not None:
        added = means(part.starts, added)
    kernels.short_sum(added, unit, bound, positive, out)


def _add_count(answers: Callable[[Any], np.ndarray], one: int, part: Any, out: np.ndarray) -> None:
    found, first = answers(part), part.starts
    if first is None and part.worth is None:
        out += np.array([np.count_nonzero(found)]) * one  # arrays wrap around, and noise hides it
        return
    shares = found.astype(np.float64) * (1.0 if part.worth is None else part.worth)
    out += np.sum(parts_of_one(means(first, shares[:, None]), one))


def _add_cells(places: Callable[[Any], np.ndarray], most: int, part: Any, out: np.ndarray) -> None:
    found, starts, n_cells = places(part), part.starts, out.shape[1]
    found = found.reshape(len(found), len(out))
    worth = np.ones(len(found)) if part.worth is None else part.worth.astype(np.float64)
    shares = parts_of_one(worth, most)
    for k, column in enumerate(found.T):
        inside = column >= 0
        if starts is None:
            np.add.at(out[k], column[inside], shares[inside])
            continue
        rows = np.diff(starts)
        person = np.repeat(np.arange(len(rows)), rows)[inside]
        own, place = np.unique(person * n_cells + column[inside], return_inverse=True)
        size = rows[own // n_cells]
        whole, rest = np.zeros((2, len(own)), np.int64)  # of the sum over `size`, which may not fit
        np.add.at(whole, place, shares[inside] // rows[person])
        np.add.at(rest, place, shares[inside] % rows[person])
        np.add.at(out[k], own % n_cells, whole + rest // size)


def _chances(offset: np.ndarray, n_classes: int, part: MarginPart) -> np.ndarray:
    shares = np.empty((len(part.values), n_classes))
    kernels.probabilities(part.values, offset, shares)
    return shares


def _label_bins(edges: np.ndarray, part: MarginPart) -> np.ndarray:
    """The class of a row and the bin of its margin, as one number; what is not a number is in the last bin."""
    bins = len(edges) + 1
    return np.asarray(np.searchsorted(edges, part.values[:, 0]) + bins * (part.targets > 0.5))


def _residuals(offset: np.ndarray, reach: float, part: MarginPart) -> np.ndarray:
    return np.asarray(np.clip(part.targets[:, None] - part.values - offset, -reach, reach))

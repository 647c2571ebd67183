"""Rows of length at most one in whole numbers, and their sums: what first-order methods ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpsparse.domain.clipping import Part
from dpsparse.rows import kernels
from dpsparse.rows.loss_kernels import CODES
from dpsparse.rows.parts import MarginPart, Margins, Numbers, Parts, Query, count
from dpsparse.rows.persons import Persons
from dpsparse.sensitivity import clipped_gradient_sum, feature_masses, vertex_score
from dpsparse.threads import over_rows, sum_over_rows

if TYPE_CHECKING:
    from dpsparse.rows.memory import Rows


@dataclass(frozen=True, eq=False)
class UnitPart:
    """Whole-number rows of one part: Z on kept columns, Z of the constant, norm and length."""

    indptr: np.ndarray
    columns: np.ndarray
    z: np.ndarray
    constant: np.ndarray
    norm: np.ndarray
    length: np.ndarray
    targets: np.ndarray
    persons: Persons | None = None
    worth: np.ndarray | None = None

    @property
    def starts(self) -> np.ndarray | None:
        return None if self.persons is None else self.persons.starts

    @property
    def known_worth(self) -> np.ndarray:
        """For kernels: empty where all rows count in full."""
        return np.empty(0, np.float32) if self.worth is None else self.worth


class UnitRows:
    """Rows of length at most one in whole numbers, on the features that a released scaling kept.

    Of millions of columns a few thousand have most of the entries, but these few lie far apart in memory. Where the
    released scaling tells which they are (the commoner, the smaller), answers have the commonest first (`kept`).
    """

    def __init__(
        self,
        rows: Rows,
        scaling: np.ndarray,
        *,
        constant: float = 0.0,
        shortest: float = 0.0,
        fixed: float = 0.0,
        longest: float = 1.0,
    ) -> None:
        self._by_entries, self._longest = fixed > 0.0, longest
        scaling = np.ascontiguousarray(scaling, np.float32)
        self.width = int(np.count_nonzero(scaling))
        self._of_persons = rows.domain.unit == "person"
        self._kept, place = None, np.empty(0, np.int32)
        if self.width < len(scaling):
            self._kept = _commonest_first(np.flatnonzero(scaling).astype(np.int32), scaling)
            place = np.zeros(len(scaling), np.int32)
            place[self._kept] = np.arange(self.width, dtype=np.int32)
        lengths = (constant, shortest, fixed, longest)
        self._parts = rows._parts.map(partial(_unit_part, scaling, place, lengths))

    @property
    def kept(self) -> np.ndarray:
        """The features of every answer, in its order, which rises unless they are many; released, as the scaling is."""
        return np.arange(self.width, dtype=np.int32) if self._kept is None else self._kept

    # ---- queries -------------------------------------------------------------------------------

    def masses(self) -> Query:
        """sum_i |z_i|, feature by feature."""
        return self._sum(kernels.MASSES, partial(feature_masses, 1.0))

    def total(self) -> Query:
        """sum_i z_i, signs and all."""
        return self._sum(kernels.TOTALS, partial(clipped_gradient_sum, 1.0))

    def squares(self) -> Query:
        """sum_i z_ij^2: nonnegative, and of norm at most one a row because sum z^4 <= (sum z^2)^2; of a person the mean
        over their rows, which is no longer. Sums of truncated shares are at most what is truncated once."""

        def whole(unit: float) -> np.ndarray:
            fine = (1.0 - 2.0**-40) / (unit * kernels.UNIT_ROW**2)
            return self._parts.sum(
                (self.width,), partial(_add_rows, partial(_columns, kernels.SQUARES, fine))
            )

        return Query((self.width,), partial(feature_masses, 1.0), whole)

    def _sum(self, kind: int, lemma: Callable[[str], Any]) -> Query:
        def whole(unit: float) -> np.ndarray:
            fine = (1.0 - 2.0**-40) / (unit * kernels.UNIT_ROW)
            if not self._of_persons:
                return self._parts.sum(
                    (self.width,), partial(_add_rows, partial(_columns, kind, fine))
                )
            step = fine / kernels.SLOPE  # slopes of one
            mass = kind == kernels.MASSES
            by_person = partial(_add_by_person, _slopes_of_one, step, self._longest, np.inf, mass)
            return self._parts.sum((self.width + 1, 1), by_person)[:-1, 0]

        return Query((self.width,), lemma, whole)

    def count_shorter(self, length: float) -> Query:
        """Rows whose scaled length is at most `length`."""
        return count(self._lengths, partial(_shorter, length))

    @cached_property
    def _lengths(self) -> Parts:
        """Asked a dozen times: apart from the rows, which need not be read or stored for them."""
        return self._parts.map(_lengths)

    def gradient(
        self,
        loss: str,
        weights: np.ndarray,
        offset: np.ndarray,
        *,
        clip: float,
        cutoff: float = np.inf,
        constant_weight: np.ndarray | None = None,
        class_weight: np.ndarray | None = None,
    ) -> Query:
        """sum_i z_i r_i' with slopes r_i clipped to norm `clip`: (width, K), then one row for the constant.

        Rows of bounded entries answer with an entrywise bound: `cutoff`.
        A public `class_weight` multiplies slopes before they are clipped. Weights are rounded to float32 here, for
        every engine alike: the step is that of the rounded weights.
        """
        outputs = weights.shape[1]
        last = np.zeros(outputs) if constant_weight is None else constant_weight
        with np.errstate(over="ignore"):  # rows meet weights of 24 bits: half the traffic and cache
            weights = np.ascontiguousarray(weights, np.float32)
        at = _At(
            weights, last, offset, CODES[loss], cutoff, clip,
            np.empty(0) if class_weight is None else class_weight,
        )  # fmt: skip

        def whole(unit: float) -> np.ndarray:
            fine = (1.0 - 2.0**-40) * clip / (unit * kernels.UNIT_ROW * kernels.SLOPE)
            add = partial(_add_rows, partial(_gradient, at, fine))
            if self._of_persons:
                largest = min(cutoff / clip, 1.0) if self._by_entries else np.inf
                add = partial(
                    _add_by_person, partial(_slopes, at), fine, self._longest, largest, False
                )
            return self._parts.sum((self.width + 1, outputs), add)

        if self._by_entries:
            lemma: Any = partial(vertex_score, min(clip, cutoff), 1.0)
        else:
            lemma = partial(clipped_gradient_sum, clip)
        return Query((self.width + 1, outputs), lemma, whole)

    def margins(self, weights: np.ndarray, constant_weight: np.ndarray | None = None) -> Margins:
        """Margins of the original rows under weights w of the scaled features: x_i.(D w)."""
        last = np.zeros(weights.shape[1]) if constant_weight is None else constant_weight
        ask = partial(_margins, np.ascontiguousarray(weights, np.float64), last)
        return Margins(self._parts.map(ask), weights.shape[1])


def _commonest_first(
    kept: np.ndarray,
    scaling: np.ndarray,
    *,
    many: int = 2**17,
    common: int = 2**15,
    known: int = 2**19,
) -> np.ndarray:
    """Kept columns, if they are so `many` that they outgrow a cache, by their released scales: the `common` ones of
    the smallest, which a near cache holds, in this order; then the next as they stand, until a far cache is full of
    `known` ones; then all others. Columns of equal scales stay as they stand."""
    if len(kept) <= many:
        return kept
    scales = scaling[kept]
    places = [min(size, len(kept) - 1) for size in (common, known)]
    scales.partition(places)
    near, far = scales[places]
    del scales
    groups: tuple[list[np.ndarray], ...] = ([], [], [])
    piece = 2**16  # so that temporary arrays stay small
    for start in range(0, len(kept), piece):
        some = kept[start : start + piece]
        rank = (scaling[some] >= near).astype(np.int8) + (scaling[some] >= far)
        for k, group in enumerate(groups):
            group.append(some[rank == k])
    first = np.concatenate(groups[0])
    first = first[np.argsort(scaling[first], kind="stable")]
    return np.concatenate([first, *groups[1], *groups[2]])


# ---- functions of one part -----------------------------------------------------------------------


def _unit_part(
    scaling: np.ndarray,
    place: np.ndarray,
    lengths: tuple[float, float, float, float],
    part: Part,
) -> UnitPart:
    n = len(part)
    indptr, columns = part.indptr, part.indices
    if len(place):
        indptr = np.zeros(n + 1, np.int64 if len(part.indices) > 2**31 - 1 else np.int32)
        over_rows(
            n, len(part.indices),
            lambda a, b: kernels.count_kept(part.indptr, part.indices, scaling, a, b, indptr),
        )  # fmt: skip
        np.cumsum(indptr, out=indptr)
        columns = np.empty(indptr[-1], np.int32)
    z = np.empty(len(columns), np.int32)
    constants = np.empty(n, np.int32)
    norm, length = np.empty(n), np.empty(n)
    # Columns that keep their numbers are the caller's, who may have locked them (a memory map): not to be written.
    written = columns if len(place) else np.empty(0, np.int32)
    over_rows(
        n, len(z),
        lambda a, b: kernels.unit_rows(
            part.indptr, part.indices, part.values, scaling, place, *map(float, lengths), a, b,
            indptr, written, z, constants, norm, length,
        ),
    )  # fmt: skip
    persons = None if part.starts is None else Persons.of(part.starts, indptr, columns)
    arrays = (indptr, columns, z, constants, norm, length, part.targets)
    return UnitPart(*arrays, persons, part.worth)


def _lengths(part: UnitPart) -> Numbers:
    return Numbers(part.length, part.starts, part.worth)


def _shorter(length: float, part: Numbers) -> np.ndarray:
    return np.asarray(part.values <= length)


class _At(NamedTuple):
    """Released weights and the public side of slopes, in the order in which kernels take them."""

    weights: np.ndarray
    constant_weight: np.ndarray
    offset: np.ndarray
    loss: int
    cutoff: float
    clip: float
    boost: np.ndarray

    def of(self, part: UnitPart) -> tuple[Any, ...]:
        rows = (part.indptr, part.columns, part.z, part.constant, part.targets)
        return *rows, part.known_worth, *self


def _gradient(at: _At, fine: float, part: UnitPart, start: int, stop: int, out: Any) -> None:
    run = kernels.gradient_one if at.weights.shape[1] == 1 else kernels.gradient_many
    run(*at.of(part), fine, start, stop, out[:-1], out[-1])


def _columns(kind: int, fine: float, part: UnitPart, start: int, stop: int, out: Any) -> None:
    shares = part.known_worth
    if kind == kernels.SQUARES and part.starts is not None:  # the rows of a person count as one
        rows = np.diff(part.starts)
        shares = np.repeat(1.0 / rows, rows) * (1.0 if part.worth is None else part.worth)
    kernels.column_sums(kind, part.indptr, part.columns, part.z, shares, fine, start, stop, out)


def _slopes(at: _At, part: UnitPart) -> np.ndarray:
    out = np.empty((len(part.length), at.weights.shape[1]))
    over_rows(len(out), len(part.z), lambda a, b: kernels.slopes(*at.of(part), a, b, out))
    return out


def _slopes_of_one(part: UnitPart) -> np.ndarray:
    slopes = np.full((len(part.length), 1), kernels.SLOPE)
    return slopes if part.worth is None else slopes * part.worth[:, None]


def _margins(weights: np.ndarray, last: np.ndarray, part: UnitPart) -> MarginPart:
    """Margins of the original rows."""
    out = np.empty((len(part.length), weights.shape[1]))
    rows = (part.indptr, part.columns, part.z, part.constant, part.norm)
    over_rows(len(out), len(part.z), lambda a, b: kernels.margins(*rows, weights, last, a, b, out))
    return MarginPart(out, part.starts, part.worth, part.targets)


def _add_rows(
    add: Callable[[UnitPart, int, int, np.ndarray], None], part: UnitPart, out: np.ndarray
) -> None:
    sum_over_rows(len(part.length), len(part.z), out, partial(add, part))


def _add_by_person(
    slopes: Callable[[UnitPart], np.ndarray],
    fine: float,
    longest: float,
    largest: float,
    mass: bool,
    part: UnitPart,
    out: np.ndarray,
) -> None:
    """The same, the rows of a person bounded together; of masses the entries without their signs."""
    persons = part.persons
    assert persons is not None
    z, constant = part.z, part.constant
    if mass:
        z, constant = np.abs(z), np.zeros_like(constant)
    rows, lengths = (part.indptr, z, constant, slopes(part)), (fine, longest, largest)
    sum_over_rows(len(persons.starts) - 1, len(z), out, partial(persons.sums, *rows, lengths))

"""Rows in parts, wherever they are (parts.py), and the closed set of queries they answer.

`Rows` holds clipped rows; `UnitRows` is a view of them after a scaling that was released, every row
brought to length at most one; `Margins` are numbers of rows under released weights. All three are
private: a solver passes them on and asks them for queries, and cannot read a number off them.
Sums are exact whole numbers, so they do not depend on how rows are cut into parts or threads. What is done to one
part is a function at the end of this file, of that part and of public or released numbers.
Where rows have persons (`Domain(unit="person")`), a person contributes as much as a row may (persons.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dpsparse.domain import BoundedData, Domain, Part, by_person
from dpsparse.exceptions import ParameterError
from dpsparse.noise import in_threads
from dpsparse.rows import kernels
from dpsparse.rows.cells import CellsAt, cell_scores
from dpsparse.rows.parts import InMemory, Parts
from dpsparse.rows.persons import Persons, at_most, means
from dpsparse.rows.query import Query
from dpsparse.rows.ridge import RidgeRows
from dpsparse.rows.screening import Point, ScreenedRows
from dpsparse.rows.standard import standardised
from dpsparse.rows.votes import Blocks, Selector, block_votes
from dpsparse.sensitivity import (
    class_counts,
    clipped_gradient_sum,
    count_and_total,
    count_below,
    feature_masses,
    signed_sum,
    vertex_score,
)

if TYPE_CHECKING:
    from dpsparse.rows.sources import Directory, Paths, Size, Source

LOSSES = {"logistic": kernels.LOGISTIC, "huber": kernels.RESIDUAL, "softmax": kernels.SOFTMAX}
_LONG = 2**15  # non-zeros from which threads pay
_WIDE = 2**22  # sums up to this many entries get one accumulator a thread


class Rows:
    """Clipped rows, and the queries that need no scaling."""

    def __init__(
        self, parts: Parts | Sequence[Part], domain: Domain, n_features: int | None = None
    ) -> None:
        """Parts of one width; an engine that has not looked at them is told `n_features`."""
        self._parts: Parts = InMemory(parts) if isinstance(parts, Sequence) else parts
        self.domain = domain
        self.n_features = int(self._parts.collect(_width)[0] if n_features is None else n_features)

    @classmethod
    def clip(
        cls,
        X: Any,
        y: Any,
        domain: Domain,
        *,
        labels: np.ndarray | None = None,
        groups: Any = None,
        n_parts: int = 1,
    ) -> Rows:
        """Rows of one table, made to satisfy `domain`; `n_parts` changes no answer."""
        if n_parts == 1:
            return cls([domain.part(X, y, labels=labels, groups=groups)], domain)
        edges = np.linspace(0, X.shape[0], n_parts + 1).astype(int)
        if groups is not None:  # a person is in one part
            order, starts = by_person(groups, X.shape[0])
            X, y, groups = X[order], y[order], np.asarray(groups)[order]
            edges = starts[np.linspace(0, len(starts) - 1, n_parts + 1).astype(int)]
        parts = [
            domain.part(
                X[a:b], y[a:b], labels=labels, groups=None if groups is None else groups[a:b]
            )
            for a, b in pairwise(edges)
        ]
        return cls(parts, domain)

    # Rows that `fit` clips itself: larger than memory (sources.py) or on other machines (dask.py). `memory` is what a
    # fit may use beside its weights, `directory` is where rows are spooled (default: that of temporary files).

    @staticmethod
    def from_svmlight(
        paths: Paths,
        *,
        n_features: int,
        zero_based: bool = False,
        memory: Size = "2GB",
        directory: Directory = None,
    ) -> Source:
        """Files of svmlight lines with a public width."""
        from dpsparse.rows import sources

        return sources.of_svmlight(
            paths, n_features=n_features, zero_based=zero_based, memory=memory, directory=directory
        )

    @staticmethod
    def from_csv(
        paths: Paths,
        *,
        target: str,
        drop: Sequence[str] = (),
        features: Sequence[str] | None = None,
        separator: str = ",",
        memory: Size = "2GB",
        directory: Directory = None,
    ) -> Source:
        """CSV files with the same header line; all columns but `target` and `drop`, or those in `features`."""
        from dpsparse.rows import sources

        return sources.of_csv(
            paths, target=target, drop=drop, features=features, separator=separator,
            memory=memory, directory=directory,
        )  # fmt: skip

    @staticmethod
    def from_parquet(
        paths: Paths,
        *,
        target: str,
        drop: Sequence[str] = (),
        features: Sequence[str] | None = None,
        indices: str | None = None,
        values: str | None = None,
        n_features: int | None = None,
        memory: Size = "2GB",
        directory: Directory = None,
    ) -> Source:
        """Parquet files: a column for every feature, or sparse rows in two columns of lists, `indices` (from 0) and
        `values`, with the public width `n_features`."""
        from dpsparse.rows import sources

        return sources.of_parquet(
            paths, target=target, drop=drop, features=features, indices=indices, values=values,
            n_features=n_features, memory=memory, directory=directory,
        )  # fmt: skip

    @staticmethod
    def from_csr(
        X: sp.csr_array, y: np.ndarray, *, memory: Size = "2GB", directory: Directory = None
    ) -> Source:
        """A CSR matrix whose arrays may be memory-mapped files."""
        from dpsparse.rows import sources

        return sources.of_csr(X, y, memory=memory, directory=directory)

    @staticmethod
    def from_dask(
        X: Any, y: Any, *, client: Any = None, step_timeout: float = 600.0, retries: int = 3
    ) -> Source:
        """Dask arrays (of CSR or dense chunks), data frames, or lists of delayed parts, on the workers of `client`
        (default: the present one). A step that takes longer than `step_timeout` seconds is given up."""
        try:
            from dpsparse.rows.dask import OnCluster
        except ImportError:
            raise ParameterError("Dask is missing: pip install 'dpsparse[dask]'.") from None

        return OnCluster(X, y, client, step_timeout, retries)

    def __len__(self) -> int:
        """Rows, or persons: private under add-remove, `Releases.number_of_rows` knows when it may be told."""
        return sum(self._parts.collect(_n_units))

    def _made_of(self, parts: Parts) -> Rows:
        return Rows(parts, self.domain, self.n_features)

    def at_most(self, m: int, rng: np.random.Generator) -> Rows:
        """A random choice of `m` rows of every person who has more, drawn here from their numbers of rows."""
        sizes = self._parts.collect(_rows_per_person)
        keys = [rng.random(int(own.sum())) for own in sizes]
        return self._made_of(self._parts.map(partial(_at_most, m), keys))

    @property
    def rows_per_unit(self) -> float:
        """A public bound on the rows of a person: 1 where the unit is a row."""
        return 1 if self.domain.unit == "row" else self.domain.rows_per_unit or np.inf

    def table(self) -> BoundedData:
        """The rows themselves, for the printed forms of the papers; no private solver may ask."""
        parts = self._parts.collect(_same)
        X = sp.vstack(
            [
                sp.csr_array(
                    (p.values.astype(np.float64), p.indices, p.indptr),
                    shape=(len(p), self.n_features),
                )
                for p in parts
            ],
            format="csr",
        )
        y = np.concatenate([part.targets for part in parts])
        scale = self.domain.target_bound
        return BoundedData(X, y if scale is None or y.dtype.kind == "i" else y * scale, self.domain)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
        """Rows as CSR arrays and targets in their own unit, for the kernel in which noise and rows meet."""
        parts, unit = self._parts.collect(_same), self.domain.target_bound or 1.0
        y = np.concatenate([part.targets for part in parts])
        y = y if y.dtype.kind == "i" else y * unit
        if len(parts) == 1:
            return parts[0].indptr, parts[0].indices, parts[0].values, y, self.n_features
        lengths = np.concatenate([np.diff(part.indptr) for part in parts])
        indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        indices = np.concatenate([part.indices for part in parts])
        return indptr, indices, np.concatenate([part.values for part in parts]), y, self.n_features

    def cell_scores(self, at: CellsAt) -> np.ndarray:
        """Whole-number scores of all cells of Frank-Wolfe, for the draw that hides them (`Releases.vertices`)."""
        return cell_scores(self._parts, at)

    def columns(self, kept: np.ndarray) -> Rows:
        """The columns `kept`, in order, and a last one without entries."""
        mask = np.zeros(self.n_features, np.float32)
        mask[kept] = 1.0
        parts = self._parts.map(partial(_take, mask, len(kept)))
        return Rows(parts, self.domain, len(kept) + 1)

    def class_counts(self, n_classes: int) -> Query:
        """How many rows every class has."""
        return self._short(
            partial(_indicators, n_classes), n_classes, 1.0, class_counts, positive=True
        )

    def count_and_total(self) -> Query:
        """The number of rows and the sum of their targets, in units of the target bound."""
        return self._short(_ones_and_targets, 2, np.sqrt(2.0), count_and_total)

    def target_total(self) -> Query:
        """The sum of the targets, in units of the target bound."""
        return self._short(_targets, 1, 1.0, partial(signed_sum, 1.0))

    def against_rest(self, output: int) -> Rows:
        """The same rows with targets 1 for one class and 0 for all others."""
        return self._made_of(self._parts.map(partial(_against_rest, output)))

    def votes(self, blocks: Blocks, n_nonzero: int, selector: Selector) -> Query:
        """How many secret blocks name each feature; a block names at most `n_nonzero`, each once."""
        return block_votes(self._parts, self.n_features, blocks, n_nonzero, selector)

    def ridge(
        self,
        support: np.ndarray | None,
        *,
        constant: float,
        row_clip: float,
        longest: float,
        squared: bool = False,
    ) -> RidgeRows:
        """Rows on the columns of a released support (None: on all), for problems with a minimiser."""
        return RidgeRows(
            self, support, constant=constant, row_clip=row_clip, longest=longest, squared=squared
        )

    def standardised(
        self, centre: np.ndarray, scaling: np.ndarray, *, middle: float = 0.0, unit: float = 1.0
    ) -> Rows:
        """Rows (x - centre) * scaling with targets (y - middle)/unit, for released numbers."""
        return self._made_of(self._parts.map(partial(standardised, centre, scaling, middle, unit)))

    def count_near(self, centre: float, distance: float) -> Query:
        """Rows whose target lies within `distance` of `centre`."""
        return _count(self._parts, partial(_near, centre, distance))

    def unit(
        self, scaling: np.ndarray, *, constant: float = 0.0, shortest: float = 0.0
    ) -> UnitRows:
        """Rows (D x, constant)/max(norm, shortest) for a released scaling D; features of scale 0 are gone."""
        return UnitRows(self, scaling, constant=constant, shortest=shortest)

    def entries(self, bound: float, longest: float, constant: float = 0.0) -> UnitRows:
        """Rows (x, constant)/bound with entries in [-1, 1] and norm at most `longest`: for entrywise
        sensitivities."""
        ones = np.ones(self.n_features, np.float32)
        return UnitRows(self, ones, constant=constant, fixed=bound, longest=longest)

    def screening(self, at: Point) -> ScreenedRows:
        """Scores of features at released weights, for the rules that pay for them."""
        return ScreenedRows(self, at)

    def _short(
        self,
        contributions: Callable[[Part], np.ndarray],
        size: int,
        bound: float,
        lemma: Callable[[str], Any],
        positive: bool = False,
    ) -> Query:
        def whole(unit: float) -> np.ndarray:
            return self._parts.sum(
                (size,), partial(_add_short, contributions, unit, bound, positive)
            )

        return Query((size,), lemma, whole)


@dataclass(frozen=True, eq=False)
class _UnitPart:
    """Whole-number rows of one part: Z on kept columns, Z of the constant, norm and length."""

    indptr: np.ndarray
    columns: np.ndarray
    z: np.ndarray
    constant: np.ndarray
    norm: np.ndarray
    length: np.ndarray
    targets: np.ndarray
    persons: Persons | None = None

    @property
    def starts(self) -> np.ndarray | None:
        return None if self.persons is None else self.persons.starts

    @property
    def rows(self) -> tuple[np.ndarray, ...]:
        return self.indptr, self.columns, self.z, self.constant, self.norm


class UnitRows:
    """Rows of length at most one in whole numbers, on the features that a released scaling kept."""

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
        self._kept = (
            None if self.width == len(scaling) else np.flatnonzero(scaling).astype(np.int32)
        )
        place = np.empty(0, np.int32)
        if self._kept is not None:
            place = np.zeros(len(scaling), np.int32)
            place[self._kept] = np.arange(self.width, dtype=np.int32)
        lengths = (constant, shortest, fixed, longest)
        self._of_persons = rows.domain.unit == "person"
        self._parts = rows._parts.map(partial(_unit_part, scaling, place, lengths))

    @property
    def kept(self) -> np.ndarray:
        """The features of every answer, in order; released, as the scaling is."""
        return np.arange(self.width, dtype=np.int32) if self._kept is None else self._kept

    # ---- queries -------------------------------------------------------------------------------

    def masses(self) -> Query:
        """sum_i |z_i|, feature by feature."""

        def whole(unit: float) -> np.ndarray:
            fine = (1.0 - 2.0**-40) / (unit * kernels.ROW)
            if self._of_persons:  # slopes of one
                add = partial(
                    _add_by_person,
                    _slopes_of_one,
                    fine / kernels.SLOPE,
                    self._longest,
                    np.inf,
                    True,
                )
                return self._parts.sum((self.width + 1, 1), add)[:-1, 0]
            return self._parts.sum((self.width,), partial(_add_rows, partial(_masses, fine)))

        return Query((self.width,), partial(feature_masses, 1.0), whole)

    def total(self) -> Query:
        """sum_i z_i, signs and all."""

        def whole(unit: float) -> np.ndarray:
            fine = (1.0 - 2.0**-40) / (unit * kernels.ROW)
            if self._of_persons:  # slopes of one
                step = fine / kernels.SLOPE
                add = partial(_add_by_person, _slopes_of_one, step, self._longest, np.inf, False)
                return self._parts.sum((self.width + 1, 1), add)[:-1, 0]
            return self._parts.sum((self.width,), partial(_add_rows, partial(_totals, fine)))

        return Query((self.width,), partial(clipped_gradient_sum, 1.0), whole)

    def squares(self) -> np.ndarray:
        """sum_i z_i^2 in units of 2^-32, rounded up row by row; for the queries of this room."""
        return self._parts.sum((self.width,), partial(_add_rows, _squares))

    def count_shorter(self, length: float) -> Query:
        """Rows whose scaled length is at most `length`."""
        return _count(self._parts, partial(_shorter, length))

    def gradient(
        self,
        loss: str,
        weights: np.ndarray,
        offset: np.ndarray,
        *,
        clip: float,
        cutoff: float = np.inf,
        original: bool = False,
        stretch: float = 0.0,
        constant_weight: np.ndarray | None = None,
        class_weight: np.ndarray | None = None,
    ) -> Query:
        """sum_i z_i r_i' with slopes r_i clipped to norm `clip`: (width, K), then one row for the constant.

        `original` takes slopes at the margins of the original rows; `stretch` = 1/R asks for contributions
        of the original rows, divided by R. Rows of bounded entries answer with an entrywise bound: `cutoff`.
        A public `class_weight` multiplies slopes before they are clipped.
        """
        outputs = weights.shape[1]
        last = np.zeros(outputs) if constant_weight is None else constant_weight
        at = _At(
            np.ascontiguousarray(weights, np.float64), last, offset, LOSSES[loss], cutoff, clip,
            original, stretch, np.empty(0) if class_weight is None else class_weight,
        )  # fmt: skip

        def whole(unit: float) -> np.ndarray:
            fine = (1.0 - 2.0**-40) * clip / (unit * kernels.ROW * kernels.SLOPE)
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
        return Margins(self._parts.map(partial(_margins, weights, last)), weights.shape[1])


@dataclass(frozen=True, eq=False)
class _MarginPart:
    values: np.ndarray
    targets: np.ndarray
    starts: np.ndarray | None


class Margins:
    """Margins of the rows under released weights; private."""

    def __init__(self, parts: Parts, n_outputs: int) -> None:
        self._parts, self._n_outputs = parts, n_outputs

    def class_totals(self, offset: np.ndarray) -> Query:
        """sum of the predicted probabilities, class by class."""
        n_classes = max(2, self._n_outputs)

        def whole(unit: float) -> np.ndarray:
            return self._parts.sum((n_classes,), partial(_add_chances, offset, unit))

        return Query((n_classes,), partial(feature_masses, 1.0), whole)

    def residual_total(self, offset: np.ndarray, reach: float) -> Query:
        """sum of target - margin - offset, each clipped to +-reach."""

        def whole(unit: float) -> np.ndarray:
            return self._parts.sum((1,), partial(_add_residuals, offset, reach, unit))

        return Query((1,), partial(signed_sum, reach), whole)

    def squares(self, bound: float, unit: float) -> int:
        """sum of min((margin/bound)^2, 1), each rounded up to `unit`; for the queries of this room."""
        return int(self._parts.sum((1,), partial(_add_squares, bound, unit))[0])


def _count(parts: Parts, answers: Callable[[Any], np.ndarray]) -> Query:
    """How many rows a yes-or-no question holds for: every row adds one whole number or none, and a person
    the share of their rows."""

    def whole(unit: float) -> np.ndarray:
        return parts.sum((1,), partial(_add_count, answers, int(kernels.SAFE / unit)))

    return Query((1,), count_below, whole)


# ---- functions of one part -----------------------------------------------------------------------


def _same(part: Part) -> Part:
    return part


def _width(part: Part) -> int:
    return part.n_features


def _n_units(part: Part) -> int:
    return part.n_units


def _rows_per_person(part: Part) -> np.ndarray:
    assert part.persons is not None
    return np.diff(part.persons)


def _at_most(m: int, part: Part, keys: np.ndarray) -> Part:
    return at_most(part, m, keys)


def _against_rest(output: int, part: Part) -> Part:
    return replace(part, targets=(part.targets == output).astype(np.int32))


def _indicators(n_classes: int, part: Part) -> np.ndarray:
    return np.asarray(np.eye(n_classes)[part.targets])


def _ones_and_targets(part: Part) -> np.ndarray:
    return np.column_stack([np.ones(len(part)), part.targets])


def _targets(part: Part) -> np.ndarray:
    return part.targets[:, None]


def _add_short(
    contributions: Callable[[Part], np.ndarray],
    unit: float,
    bound: float,
    positive: bool,
    part: Part,
    out: np.ndarray,
) -> None:
    kernels.short_sum(means(part.persons, contributions(part)), unit, bound, positive, out)


def _near(centre: float, distance: float, part: Part) -> np.ndarray:
    return np.asarray(np.abs(part.targets - centre) <= distance)


def _shorter(length: float, part: _UnitPart) -> np.ndarray:
    return np.asarray(part.length <= length)


def _add_count(answers: Callable[[Any], np.ndarray], one: int, part: Any, out: np.ndarray) -> None:
    found, first = answers(part), part.starts
    if first is None:
        out[0] += int(np.count_nonzero(found)) * one
    else:
        shares = np.add.reduceat(found.astype(np.int64), first[:-1]) / np.diff(first)
        out[0] += int(np.sum((shares * one).astype(np.int64)))


def _add_chances(offset: np.ndarray, unit: float, part: _MarginPart, out: np.ndarray) -> None:
    shares = np.empty((len(part.values), len(out)))
    kernels.probabilities(part.values, offset, shares)
    kernels.short_sum(means(part.starts, shares), unit, 1.0, True, out)


def _add_residuals(
    offset: np.ndarray, reach: float, unit: float, part: _MarginPart, out: np.ndarray
) -> None:
    residuals = np.clip(part.targets[:, None] - part.values - offset, -reach, reach)
    kernels.short_sum(means(part.starts, residuals), unit, reach, False, out)


def _add_squares(bound: float, unit: float, part: _MarginPart, out: np.ndarray) -> None:
    squares = np.ceil(np.minimum((part.values / bound) ** 2, 1.0) / unit)
    out[0] += int(squares.astype(np.int64).sum())


@dataclass(frozen=True, eq=False)
class _At:
    """Released weights and the public side of slopes, in the order in which kernels take them."""

    weights: np.ndarray
    constant_weight: np.ndarray
    offset: np.ndarray
    loss: int
    cutoff: float
    clip: float
    original: bool
    stretch: float
    boost: np.ndarray

    def of(self, part: _UnitPart) -> tuple[Any, ...]:
        own = (getattr(self, field.name) for field in fields(self))
        return *part.rows, part.targets, *own


def _gradient(at: _At, fine: float, part: _UnitPart, start: int, stop: int, out: Any) -> None:
    run: Any = kernels.gradient_one if at.weights.shape[1] == 1 else kernels.gradient_many
    run(*at.of(part), fine, start, stop, out[:-1], out[-1])


def _masses(fine: float, part: _UnitPart, start: int, stop: int, out: np.ndarray) -> None:
    kernels.masses(part.indptr, part.columns, part.z, fine, start, stop, out)


def _totals(fine: float, part: _UnitPart, a: int, b: int, out: np.ndarray) -> None:
    kernels.totals(part.indptr, part.columns, part.z, fine, a, b, out)


def _squares(part: _UnitPart, start: int, stop: int, out: np.ndarray) -> None:
    kernels.squares(part.indptr, part.columns, part.z, start, stop, out)


def _slopes(at: _At, part: _UnitPart) -> np.ndarray:
    run: Any = kernels.slopes
    out = np.empty((len(part.length), at.weights.shape[1]))
    edges = _edges(len(part.length), len(part.z))
    in_threads(lambda b: run(*at.of(part), edges[b], edges[b + 1], out), range(len(edges) - 1))
    return out


def _slopes_of_one(part: _UnitPart) -> np.ndarray:
    return np.full((len(part.length), 1), kernels.SLOPE)


def _margins(weights: np.ndarray, last: np.ndarray, part: _UnitPart) -> _MarginPart:
    """Margins of the original rows."""
    run: Any = kernels.margins
    out = np.empty((len(part.length), weights.shape[1]))
    edges = _edges(len(part.length), len(part.z))
    in_threads(
        lambda b: run(*part.rows, weights, last, edges[b], edges[b + 1], out),
        range(len(edges) - 1),
    )
    return _MarginPart(out, part.targets, part.starts)


def _add_rows(
    add: Callable[[_UnitPart, int, int, np.ndarray], None], part: _UnitPart, out: np.ndarray
) -> None:
    """Sums over the rows of a part; each thread has its own accumulator where they are small."""
    edges = _edges(len(part.length), 0 if out.size > _WIDE else len(part.z))
    mine = [out] + [np.zeros(out.shape, np.int64) for _ in range(len(edges) - 2)]
    in_threads(lambda b: add(part, edges[b], edges[b + 1], mine[b]), range(len(edges) - 1))
    for other in mine[1:]:
        out += other


def _add_by_person(
    slopes: Callable[[_UnitPart], np.ndarray],
    fine: float,
    longest: float,
    largest: float,
    mass: bool,
    part: _UnitPart,
    out: np.ndarray,
) -> None:
    """The same, the rows of a person bounded together; of masses the entries without their signs."""
    persons = part.persons
    assert persons is not None
    edges = _edges(len(persons.starts) - 1, 0 if out.size > _WIDE else len(part.z))
    mine = [out] + [np.zeros(out.shape, np.int64) for _ in range(len(edges) - 2)]
    z, constant = part.z, part.constant
    if mass:
        z, constant = np.abs(z), np.zeros_like(constant)
    persons.sums(
        part.indptr, z, constant, slopes(part), fine=fine, longest=longest,
        largest=largest, edges=edges, outs=mine,
    )  # fmt: skip
    for other in mine[1:]:
        out += other


def _edges(n_rows: int, n_nonzero: int) -> list[int]:
    threads = (os.cpu_count() or 1) if n_nonzero >= _LONG else 1
    return [int(e) for e in np.linspace(0, n_rows, threads + 1)]


def _take(mask: np.ndarray, n_kept: int, part: Part) -> Part:
    inside = mask[part.indices] != 0.0
    counts = np.concatenate([[0], np.cumsum(inside)])
    place = np.cumsum(mask != 0.0, dtype=np.int32) - 1
    return Part(
        counts[part.indptr].astype(part.indptr.dtype),  # one compiled kernel for all parts
        place[part.indices[inside]],
        part.values[inside],
        part.targets,
        n_kept + 1,
        part.persons,
    )


def _unit_part(
    scaling: np.ndarray,
    place: np.ndarray,
    lengths: tuple[float, float, float, float],
    part: Part,
) -> _UnitPart:
    n = len(part)
    indptr, columns = part.indptr, part.indices
    if len(place):
        indptr = np.zeros(n + 1, np.int64 if len(part.values) > 2**31 - 1 else np.int32)
        kernels.count_kept(part.indptr, part.indices, scaling, 0, n, indptr)
        np.cumsum(indptr, out=indptr)
        columns = np.empty(indptr[-1], np.int32)
    z = np.empty(len(columns), np.int32)
    constants = np.empty(n, np.int32)
    norm, length = np.empty(n), np.empty(n)
    edges = _edges(n, len(z))
    run: Any = kernels.unit_rows

    def one(b: int) -> None:
        run(
            part.indptr, part.indices, part.values, scaling, place, *map(float, lengths),
            edges[b], edges[b + 1], indptr, columns, z, constants, norm, length,
        )  # fmt: skip

    in_threads(one, range(len(edges) - 1))
    persons = None if part.persons is None else Persons.of(part.persons, indptr, columns)
    return _UnitPart(indptr, columns, z, constants, norm, length, part.targets, persons)

"""Rows in parts, wherever they are (parts.py), and the closed set of queries they answer.

`Rows` holds clipped rows; `UnitRows` (unit.py) is a view of them after a scaling that was released, every row
brought to length at most one; `Margins` (parts.py) are numbers of rows under released weights. All three are
private: a solver passes them on and asks them for queries, and cannot read a number off them.
Sums are exact whole numbers, so they do not depend on how rows are cut into parts or threads. What is done to one
part is a function at the end of a file, of that part and of public or released numbers.
Where rows have persons (`Domain(unit="person")`), a person contributes as much as a row may (persons.py).
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse.domain import Domain
from dpsparse.domain.clipping import HUGE, TINY, BoundedData, Part
from dpsparse.exceptions import ParameterError
from dpsparse.io.tables import Chosen
from dpsparse.jit import njit
from dpsparse.rows import sources
from dpsparse.rows.parts import (
    InMemory,
    Parts,
    Query,
    cells,
    count,
    joined,
    refuse_many_classes,
    short_sum,
)
from dpsparse.rows.persons import at_most
from dpsparse.rows.ridge import RidgeRows
from dpsparse.rows.unit import UnitRows
from dpsparse.sensitivity import class_counts, count_and_total, signed_sum

if TYPE_CHECKING:
    from dpsparse.rows.sources import Source


class Rows:
    """Clipped rows, and the queries that need no scaling.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from dpsparse import Domain, DPGradientClassifier, Rows
    >>> X = sp.random_array((400, 30), density=0.2, rng=0, format="csr")  # its arrays may be memory-mapped
    >>> source = Rows.from_csr(X, np.tile([0, 1], 200), memory="100MB")
    >>> DPGradientClassifier(Domain(classes=[0, 1]), epsilon=1.0).fit(source).coef_.shape
    (1, 30)
    """

    def __init__(
        self, parts: Parts | Sequence[Part], domain: Domain, n_features: int | None = None
    ) -> None:
        """Parts of one width; an engine that has not read them needs `n_features`."""
        if isinstance(parts, Sequence) and not isinstance(parts, InMemory):
            parts = InMemory(parts)
        self._parts: Parts = parts
        self.domain = domain
        self.n_features = (
            self._parts.collect(attrgetter("n_features"))[0] if n_features is None else n_features
        )

    @classmethod
    def clip(
        cls,
        X: Any,
        y: Any,
        domain: Domain,
        *,
        labels: np.ndarray | None = None,
        groups: Any = None,
        weights: Any = None,
    ) -> Rows:
        """Rows of one table, made to satisfy `domain`."""
        part = domain.part(X, y, labels=labels, groups=groups, weights=weights)
        return cls([part], domain)

    # Rows that `fit` clips itself: larger than memory (sources.py) or on other machines (dask.py, spark.py). `memory`
    # is what a fit may use here beside its weights.

    from_svmlight = staticmethod(sources.of_svmlight)
    from_csv = staticmethod(sources.of_csv)
    from_parquet = staticmethod(sources.of_parquet)
    from_batches = staticmethod(sources.of_batches)
    from_csr = staticmethod(sources.of_csr)

    @staticmethod
    def from_dask(
        X: Any,
        y: Any,
        *,
        client: Any = None,
        step_timeout: float = 600.0,
        memory: sources.Size = "2GB",
    ) -> Source:
        """Dask arrays (of CSR or dense chunks), data frames, or lists of delayed parts, on the workers of `client`
        (default: the present one). A step that takes longer than `step_timeout` seconds is given up. Frank-Wolfe
        brings rows here where they fit in `memory` twice."""
        try:
            from dpsparse.rows.dask import OnCluster
        except ImportError:
            raise ParameterError("Dask is missing: pip install 'dpsparse[dask]'.") from None

        return OnCluster(X, y, client, step_timeout, sources.read_size(memory))

    @staticmethod
    def from_spark(
        frame: Any,
        *,
        target: str,
        drop: Sequence[str] = (),
        features: Sequence[str] | None = None,
        step_timeout: float = 600.0,
        memory: sources.Size = "2GB",
    ) -> Source:
        """A Spark data frame with a column for every feature, on the executors of its session; columns, `step_timeout`
        and `memory` are as for the other sources. Where persons are protected, `fit(source, groups=...)` names the
        column that tells them apart, which must be in `drop`; so must that of `fit(source, sample_weight=...)`."""
        try:
            from dpsparse.rows.spark import FromSpark
        except ImportError:
            raise ParameterError("Spark is missing: pip install 'dpsparse[spark]'.") from None

        chosen = Chosen(target, None, drop, features)
        return FromSpark(frame, chosen, step_timeout, sources.read_size(memory))

    def __len__(self) -> int:
        """Rows, or persons: private under add-remove, `Releases.number_of_rows` knows when it is public."""
        return sum(self._parts.collect(attrgetter("n_units")))

    def _made_of(self, parts: Parts) -> Rows:
        return Rows(parts, self.domain, self.n_features)

    def at_most(self, m: int, rng: np.random.Generator) -> Rows:
        """A random choice of `m` rows of every person who has more, drawn here from their numbers of rows."""
        sizes = self._parts.collect(_rows_per_person)
        keys = [rng.random(int(own.sum())) for own in sizes]
        return self._made_of(self._parts.map(partial(at_most, m), keys))

    @property
    def weighted(self) -> bool:
        """Whether rows may count less than in full: a declared fact, not what their weights are."""
        return self.domain.weight_bound is not None

    @property
    def rows_per_unit(self) -> float:
        """A public bound on the rows of a person: 1 where the unit is a row."""
        return 1 if self.domain.unit == "row" else self.domain.rows_per_unit or np.inf

    @property
    def from_source(self) -> bool:
        """Whether the rows are those of a source, which may be read in parts: a public fact."""
        return not isinstance(self._parts, InMemory)

    @property
    def fit_in_memory(self) -> bool:
        """Whether a fit may hold all rows in one place; of a source this depends on how many rows there are, so it may
        decide how a release is computed and nothing that is seen."""
        return self._parts.fit_in_memory

    def table(self) -> BoundedData:
        """The rows themselves, for the printed forms of the papers; no private solver may ask."""
        all_rows = self.gathered()
        y = self._in_own_unit(all_rows)
        return BoundedData(all_rows.table(np.float64), y, self.domain)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
        """Rows as CSR arrays and targets in their own unit, for the kernel in which noise and rows meet."""
        all_rows = self.gathered()
        y = self._in_own_unit(all_rows)
        return all_rows.indptr, all_rows.indices, all_rows.values, y, self.n_features

    def gathered(self) -> Part:
        """All rows in one part, in this process."""
        return joined(self._parts.collect(_same))

    def _in_own_unit(self, rows: Part) -> np.ndarray:
        """Targets in their own unit."""
        y = rows.targets
        return y if y.dtype.kind == "i" else y * (self.domain.target_bound or 1.0)

    def columns(self, kept: np.ndarray) -> Rows:
        """The columns `kept`, in order."""
        place = np.full(self.n_features, -1, np.int32)
        place[kept] = np.arange(len(kept), dtype=np.int32)
        parts = self._parts.map(partial(_take, place, len(kept)))
        return Rows(parts, self.domain, len(kept))

    def class_counts(self, n_classes: int) -> Query:
        """How many rows every class has."""
        refuse_many_classes(n_classes)
        return cells(self._parts, _targets, 1, n_classes, class_counts, (n_classes,))

    def count_and_total(self) -> Query:
        """The number of rows and the sum of their targets, in units of the target bound."""
        return short_sum(self._parts, _ones_and_targets, 2, np.sqrt(2.0), count_and_total)

    def target_total(self) -> Query:
        """The sum of the targets, in units of the target bound."""
        return short_sum(self._parts, _targets, 1, 1.0, partial(signed_sum, 1.0))

    def against_rest(self, output: int) -> Rows:
        """The same rows with targets 1 for one class and 0 for all others."""
        return self._made_of(self._parts.map(partial(_against_rest, output)))

    def ridge(
        self,
        support: np.ndarray | None,
        *,
        constant: float,
        row_clip: float,
        longest: float,
    ) -> RidgeRows:
        """Rows on the columns of a released support (None: on all), for problems with a minimiser."""
        return RidgeRows(self, support, constant=constant, row_clip=row_clip, longest=longest)

    def standardised(
        self,
        centre: np.ndarray,
        scaling: np.ndarray,
        *,
        axes: np.ndarray | None = None,
        middle: float = 0.0,
        unit: float = 1.0,
    ) -> Rows:
        """Rows (x - centre) * scaling, times a matrix `axes` if there is one, with targets (y - middle)/unit, for
        released numbers."""
        to = partial(standardised, centre, scaling, axes, middle, unit)
        return self._made_of(self._parts.map(to))

    def standardised_targets(self, middle: float, unit: float) -> Rows:
        """The same rows with targets (y - middle)/unit, for released numbers."""
        return self._made_of(self._parts.map(partial(with_targets, middle, unit)))

    def bounded(self, bound: float) -> Rows:
        """The same rows under a domain that states a released bound of entries.

        Nothing is copied: Frank-Wolfe cuts entries to the bound where they become whole numbers, in every engine.
        """
        domain = replace(self.domain, feature_bound=bound, row_norm=None, bounds=None)
        return Rows(self._parts, domain, self.n_features)

    def count_small(self, size: float) -> Query:
        """Rows whose non-zero entries have a root mean square of at most `size`."""
        return count(self._parts, partial(small, size))

    def count_near(self, centre: float, distance: float) -> Query:
        """Rows whose target lies within `distance` of `centre`."""
        return count(self._parts, partial(_near, centre, distance))

    def unit(
        self, scaling: np.ndarray, *, constant: float = 0.0, shortest: float = 0.0
    ) -> UnitRows:
        """Rows (D x, constant)/max(norm, shortest) for a released scaling D; features of scale 0 are gone."""
        return UnitRows(self, scaling, constant=constant, shortest=shortest)

    def entries(self, bound: float, longest: float) -> UnitRows:
        """Rows x/bound with entries in [-1, 1] and norm at most `longest`: for entrywise sensitivities."""
        ones = np.ones(self.n_features, np.float32)
        return UnitRows(self, ones, fixed=bound, longest=longest)


# ---- functions of one part -----------------------------------------------------------------------


def _same(part: Part) -> Part:
    return part


def _rows_per_person(part: Part) -> np.ndarray:
    assert part.starts is not None
    return np.diff(part.starts)


def _against_rest(output: int, part: Part) -> Part:
    return replace(part, targets=(part.targets == output).astype(np.int32))


def _ones_and_targets(part: Part) -> np.ndarray:
    return np.column_stack([np.ones(len(part)), part.targets])


def _targets(part: Part) -> np.ndarray:
    return part.targets[:, None]


def _near(centre: float, distance: float, part: Part) -> np.ndarray:
    return np.asarray(np.abs(part.targets - centre) <= distance)


def _take(place: np.ndarray, n_columns: int, part: Part) -> Part:
    places = place[part.indices]
    inside = places >= 0
    counts = np.concatenate([[0], np.cumsum(inside)])
    return Part(
        counts[part.indptr].astype(part.indptr.dtype),  # one compiled kernel for all parts
        places[inside],
        part.values[inside],
        part.targets,
        n_columns,
        part.starts,
        part.worth,
    )


def standardised(
    centre: np.ndarray,
    scaling: np.ndarray,
    axes: np.ndarray | None,
    middle: float,
    unit: float,
    part: Part,
) -> Part:
    """The rows of a part after the map; dense."""
    n, d = len(part), part.n_features
    values = np.empty(n * d, np.float32)
    _standardise(
        part.indptr, part.indices, part.values, np.asarray(centre, np.float64),
        np.asarray(scaling, np.float64), values,
    )  # fmt: skip
    if axes is not None:
        _turn(np.ascontiguousarray(axes, np.float64), values)
    indptr = d * np.arange(n + 1, dtype=np.int64)
    indptr = indptr if n * d > 2**31 - 1 else indptr.astype(np.int32)
    indices = np.tile(np.arange(d, dtype=np.int32), n)
    targets = (part.targets - middle) / unit
    return Part(indptr, indices, values, targets, d, part.starts, part.worth)


def with_targets(middle: float, unit: float, part: Part) -> Part:
    """The rows of a part with other targets."""
    return replace(part, targets=(part.targets - middle) / unit)


def small(size: float, part: Part) -> np.ndarray:
    """Which rows have non-zero entries of a root mean square of at most `size`."""
    return np.asarray(part.squares() <= (size * size) * np.diff(part.indptr))


@njit(cache=True, nogil=True, error_model="numpy")
def _standardise(indptr, indices, values, centre, scaling, out):
    d = centre.size
    for i in range(indptr.size - 1):
        row = out[i * d : (i + 1) * d]
        for j in range(d):
            row[j] = _stored(-centre[j] * scaling[j])
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            row[j] = _stored((np.float64(values[p]) - centre[j]) * scaling[j])


@njit(cache=True, nogil=True, error_model="numpy")
def _turn(axes, values):
    """Every row times a matrix, in one order of additions: how rows are cut changes no digit."""
    d = axes.shape[0]
    turned = np.empty(d)
    for i in range(values.size // d):
        row = values[i * d : (i + 1) * d]
        turned[:] = 0.0
        for j in range(d):
            for k in range(d):
                turned[k] += np.float64(row[j]) * axes[j, k]
        for k in range(d):
            row[k] = _stored(turned[k])


@njit(nogil=True, error_model="numpy")
def _stored(x):
    """x as float32 in the range of stored numbers; zero where it is smaller, or not a number."""
    if not abs(x) >= TINY:
        return np.float32(0.0)
    return np.float32(min(max(x, -HUGE), HUGE))

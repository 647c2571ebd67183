"""Raw rows become clipped rows: every map here looks at one row (or person) at a time.

`Domain.part` calls it with declared bounds. What is out of bounds is clipped silently, what is no table of numbers is
refused without telling where.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dpsparse._cells import column_cells, person_names, sparse_entries
from dpsparse._checks import check_positive, safe_repr, without_leaking_errors
from dpsparse.exceptions import ParameterError, SchemaError
from dpsparse.jit import njit
from dpsparse.threads import over_rows

if TYPE_CHECKING:
    from dpsparse.domain import Domain

# Every magnitude the library works with lies between these (or is zero): far inside the normal numbers
# of float32, so that neither squares nor quotients in float64 can vanish, overflow or lose digits.
# Smaller entries are flushed to zero first, larger ones clipped; both are per-row maps.
TINY, HUGE = 2.0**-100, 2.0**100


def check_range(name: str, value: Any, largest: float = HUGE) -> None:
    """Refuse what is not a positive number between 1/largest and largest."""
    check_positive(name, value)
    if not 1.0 / largest <= value <= largest:
        power = round(math.log2(largest))
        raise ParameterError(
            f"{name} must lie between 2**-{power} and 2**{power}, got {safe_repr(value)}."
        )


@dataclass(frozen=True, eq=False, repr=False)  # a repr would print private targets
class Part:
    """Some rows that satisfy their domain: canonical CSR in float32, class codes or targets in [-1, 1].

    Only `Domain.part` makes one, and only `rows/` looks inside. Everything in it is private. Where rows have
    persons, those of a person are adjacent and `starts` holds the first row of each, and the end.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    targets: np.ndarray
    n_features: int
    starts: np.ndarray | None = None
    worth: np.ndarray | None = None  # how much rows count, float32 in [0, 1]; None: all in full

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_units(self) -> int:
        """Persons, or rows where there are none."""
        return len(self) if self.starts is None else len(self.starts) - 1

    def table(self, dtype: type = np.float32) -> sp.csr_array:
        """The rows as a matrix, which shares their arrays where the type is theirs."""
        entries: Any = (self.values.astype(dtype, copy=False), self.indices, self.indptr)
        return sp.csr_array(entries, shape=(len(self), self.n_features))

    def squares(self) -> np.ndarray:
        """The sum of the squared entries of every row; what a row answers depends on no other."""
        out = np.empty(len(self))
        _squares_of_rows(self.indptr, self.values, out)
        return out

    def take(self, rows: np.ndarray, starts: np.ndarray | None) -> Part:
        """These rows in this order, and where each person among them begins."""
        if len(rows) == len(self) and np.all(rows[1:] > rows[:-1]):
            return replace(self, starts=starts)
        table = self.table()[rows]
        targets = self.targets[rows]
        worth = None if self.worth is None else self.worth[rows]
        arrays = (table.indptr, table.indices, table.data, targets)
        return Part(*arrays, self.n_features, starts, worth)


@dataclass(frozen=True, eq=False, repr=False)
class BoundedData:
    """Clipped rows as a plain table, for the printed forms of the papers, which see rows and promise nothing."""

    X: sp.csr_array
    y: np.ndarray
    domain: Domain


def within_limits(X: Any, limits: np.ndarray | None) -> Any:
    """Entries clipped to the bounds of their columns and divided by the larger of the two: a map of single rows.

    Zeros of a sparse matrix stay zero, also where the bounds exclude it: they are what is not stored.
    """
    if limits is None:
        return X
    low, high = limits.T
    scale = np.abs(limits).max(axis=1)
    if not hasattr(X, "tocsr"):
        return np.clip(np.asarray(X, np.float64), low, high) / scale
    rows = X.tocsr().astype(np.float64, copy=True)
    columns = rows.indices
    rows.data = np.clip(rows.data, low[columns], high[columns]) / scale[columns]
    return rows


def refuse_malformed(X: Any) -> None:
    """Refuse a compressed matrix whose indices point outside: SciPy and our kernels trust them."""
    if not isinstance(X, (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)):
        return
    by_rows = isinstance(X, (sp.csr_array, sp.csr_matrix))
    major, minor = X.shape if by_rows else X.shape[::-1]
    sound = (
        X.indptr.dtype.kind in "iu"  # a float may be no number, which is in no wrong order
        and X.indices.dtype.kind in "iu"
        and X.indptr.shape == (major + 1,)
        and len(X.indices) == len(X.data)
        and _within(X.indptr, X.indices, minor)
    )
    if not sound:
        raise SchemaError(
            "The sparse matrix X is malformed: its index arrays point outside the matrix. Build it anew, "
            "for instance with scipy.sparse.coo_array((values, (rows, columns)), shape)."
        )


def clipped_rows(X: Any, bound: float, norm: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Canonical CSR in float32 with entries of at most `bound` and rows no longer than `norm`; float32 of the caller
    that satisfies both is shared."""
    refuse_malformed(X)
    indptr, indices, raw = without_leaking_errors(
        "X must be a table of real numbers.", _canonical_rows, X
    )
    values, changed = _cast_all(raw, bound)
    if norm < np.inf:
        changed += _shorten_rows(indptr, values, norm)
    return indptr, indices, values if changed or raw.dtype != np.float32 else raw


def _cast_all(raw: np.ndarray, bound: float) -> tuple[np.ndarray, int]:
    """Entries as they are stored (clipped, in float32 towards zero, and zero below TINY), and how many are others."""
    values, counts = np.empty(len(raw), np.float32), list[tuple[int, int]]()
    cast_some: Any = _cast_entries
    over_rows(
        len(raw), len(raw), lambda a, b: counts.append(cast_some(raw[a:b], bound, values[a:b]))
    )
    changed, not_finite = np.sum(counts, axis=0)
    if not_finite:
        raise SchemaError(
            "Input X contains NaN or infinity; replace missing values by a public constant "
            "before fitting (a private mean would leak), or learn what to put there privately: DPTablePreparer."
        )
    return values, int(changed)


def cast(values: np.ndarray, limit: float) -> np.ndarray:
    """Entries as they are stored."""
    return _cast_all(values, limit)[0]


def _canonical_rows(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """indptr, indices and float values of CSR with rising indices; flags of the caller are not believed."""
    if not sp.issparse(X):  # SciPy would take None for a zero
        X = np.asarray(X, dtype=np.float64)
        if X.ndim == 2 and 0 < X.size < 2**31:
            return sparse_entries(X)
    X = X if isinstance(X, (sp.csr_array, sp.csr_matrix)) else sp.csr_array(X)
    values = X.data if X.data.dtype in (np.float32, np.float64) else X.data.astype(np.float64)
    indptr, indices = X.indptr, X.indices
    if max(len(indices), X.shape[1]) < 2**31:
        # SciPy often has indices of 64 bits that need 32: half the memory to read, and kernels that are compiled.
        indptr, indices = (a.astype(np.int32, copy=False) for a in (indptr, indices))
    if not _rises(indptr, indices):
        # A fresh matrix has fresh flags, so duplicates are really added up.
        copy = sp.csr_array((values.copy(), indices.copy(), indptr.copy()), shape=X.shape)
        copy.has_canonical_format = copy.has_sorted_indices = False
        copy.sum_duplicates()
        return copy.indptr, copy.indices, copy.data
    end = indptr[-1]
    if end < len(indices):
        return indptr, indices[:end], values[:end]
    return indptr, indices, values


def by_person(groups: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows ordered by person (their own order is kept), and where each person begins."""
    otherwise = "groups must name one person per row of X, as a 1d array."
    cells = column_cells(groups, otherwise)
    if len(cells) != n_rows:
        raise SchemaError(otherwise)
    _, person, sizes = np.unique(person_names(cells), return_inverse=True, return_counts=True)
    return np.argsort(person, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])


def _within(indptr: np.ndarray, indices: np.ndarray, minor: int) -> bool:
    """Whether rows and columns lie inside the matrix."""
    if indptr[0] != 0 or indptr[-1] > indices.size or np.any(indptr[1:] < indptr[:-1]):
        return False
    # Where a negative number is a large one. NumPy's loop is as fast as a kernel, and prediction need not load one.
    unsigned = indices.view(indices.dtype.str.replace("i", "u"))
    return bool(np.max(unsigned[: indptr[-1]], initial=0) < minor) or indptr[-1] == 0


def _rises(indptr: np.ndarray, indices: np.ndarray) -> bool:
    """Whether indices fall nowhere but from one row to the next, as SciPy finds for a matrix without flags."""
    widest = int(np.iinfo(indices.dtype).max)  # so that SciPy keeps the type
    fresh = sp.csr_array((indices, indices, indptr), shape=(len(indptr) - 1, widest))
    return bool(fresh.has_canonical_format)


# ---- entries as they are stored ----


@njit(cache=True)
def _cast(x):  # type: ignore[no-untyped-def]
    """The float32 next to x on the side of zero, zero below TINY. The bits of a float, less one, are those of its
    neighbour on that side: no branch and no call, so loops over it take several entries at a time."""
    y = np.float32(x)
    bits = y.view(np.int32) - np.int32(abs(np.float64(y)) > abs(x))
    y = np.int32(bits).view(np.float32)
    return y if abs(np.float64(y)) >= TINY else np.float32(0.0)


@njit(cache=True, nogil=True)
def _cast_entries(raw, bound, out):  # type: ignore[no-untyped-def]
    """Clip entries and cast them once; how many are changed, and how many are not finite."""
    changed, not_finite = 0, 0
    for p in range(out.size):
        x = np.float64(raw[p])
        out[p] = _cast(min(max(x, -bound), bound))
        changed += np.float64(out[p]) != x
        not_finite += not abs(x) < np.inf
    return changed, not_finite


@njit(cache=True)
def _shorten_rows(indptr, values, norm):  # type: ignore[no-untyped-def]
    """Shorten the rows that are longer than `norm` as stored; how many."""
    changed = 0
    for i in range(indptr.size - 1):
        squares = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            squares += np.float64(values[p]) ** 2  # 2^-200 to 2^200: nothing vanishes or overflows
        if squares > norm * norm:
            changed += 1
            shrink = (
                norm / np.sqrt(squares) * (1.0 - 1e-12)
            )  # so that rounding cannot lift it above
            for p in range(indptr[i], indptr[i + 1]):
                values[p] = _cast(np.float64(values[p]) * shrink)
    return changed


@njit(cache=True)
def _squares_of_rows(indptr, values, out):  # type: ignore[no-untyped-def]
    for i in range(out.size):
        squares = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            squares += np.float64(values[p]) ** 2
        out[i] = squares

"""What is public about the data, and the moment at which raw data becomes clipped rows.

`Domain` holds facts the user states without looking at private rows. `Domain.part` makes the
facts true row by row and returns a `Part`, of which `rows/` is made. Rows outside the bounds are
clipped silently: an exception would tell the world that such a row exists.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse._checks import is_real, is_whole, quietly
from dpsparse.exceptions import DomainError, SchemaError
from dpsparse.jit import njit

# Row norms are scaled to row_norm * (1 - _NORM_MARGIN), so that rounding cannot lift them above it.
_NORM_MARGIN = 1e-12

# Every magnitude the library works with lies between these (or is zero): far inside the normal numbers
# of float32, so that neither squares nor quotients in float64 can vanish, overflow or lose digits.
# Smaller entries are flushed to zero at the door, larger ones clipped; both are per-row maps.
TINY, HUGE = 2.0**-100, 2.0**100

OBSERVED = "observed"


class Undeclared(float):
    """A bound that nobody stated. Methods that bound rows themselves do not apply it, and where it would clip columns
    that have names, they are asked for."""

    def __repr__(self) -> str:
        return "1.0"


UNDECLARED = Undeclared(1.0)


@dataclass(frozen=True)
class Domain:
    """Public facts about the private table; every bound is enforced by `clip`.

    Parameters
    ----------
    feature_bound : float or None
        Entries are clipped to ``[-feature_bound, feature_bound]``. None leaves them unbounded. If nothing is stated,
        `DPGradient*` have no bound, as they bring rows to length one themselves; other methods take entries to lie
        in [-1, 1], and refuse a table with named columns until a bound is stated.
    row_norm : float or None, default=None
        Rows with a larger L2 norm are scaled down to it. Needed by methods in L2 geometry.
    target_bound : float or None, default=None
        Regression targets are clipped to ``[-target_bound, target_bound]``.
    target_range : (float, float) or None, default=None
        Regression targets are clipped to ``[lowest, highest]`` and fitted from the middle of that range; noise is
        proportional to half its width, which `target_bound` then is. State one of the two.
    classes : sequence, "observed" or None, default=None
        The labels that may occur. ``"observed"`` takes them from y and thereby declares that the
        set of labels in y is itself public; do not use it when a class may be rare.
    n_samples : int or None, default=None
        A public number of rows (the true one, or any stated guess). It scales steps, never noise.
        With ``unit="person"`` a number of persons.
    unit : {"row", "person"}, default="row"
        What the guarantee protects. With "person", ``fit(X, y, groups=ids)`` names the person of every row, and
        all rows of a person together add no more than one row may.
    rows_per_unit : int or None, default=None
        Of a person with more rows a random choice of so many is used. None uses all of them.
    bounds : dict or array of shape (n_features, 2), optional
        ``{"age": (0, 120), "income": (0, 1e6)}``, for every feature: numbers are clipped to their column's bounds and
        divided by the larger of them before everything else. Weights are stated for the columns as they are.
    categories : dict, optional
        The names that may occur, by column: ``{"sex": ["f", "m"]}``. For `DPTablePreparer.from_domain`.
    fill : dict, optional
        Public constants for gaps, by column.
    sources : dict, optional
        How a fact is known without looking at the rows, by name of the fact or column; shown on the privacy card.

    Examples
    --------
    >>> from dpsparse import Domain
    >>> Domain(classes=["no", "yes"], bounds={"age": (0, 120)}).bounds
    {'age': (0.0, 120.0)}
    """

    feature_bound: float | None = UNDECLARED
    row_norm: float | None = None
    target_bound: float | None = None
    classes: Sequence[Any] | str | None = None
    n_samples: int | None = None
    unit: str = "row"
    rows_per_unit: int | None = None
    target_range: tuple[float, float] | None = None
    bounds: Any = None
    categories: Mapping[str, Sequence[Any]] | None = None
    fill: Mapping[str, Any] | None = None
    sources: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        self._check_columns()
        if self.target_range is not None:
            self._check_range()
        for name in ("feature_bound", "row_norm", "target_bound"):
            value = getattr(self, name)
            if value is not None and not (is_real(value) and 0 < value < math.inf):
                raise DomainError(f"Domain.{name} must be a positive finite number, got {value!r}.")
            if value is not None and not TINY <= value <= HUGE:
                raise DomainError(
                    f"Domain.{name} must lie between 2**-100 and 2**100, got {value!r}; "
                    "give the data in another unit."
                )
        n = self.n_samples
        if n is not None and not (is_whole(n) and n > 0):
            raise DomainError(f"Domain.n_samples must be a positive whole number, got {n!r}.")
        if self.unit not in ("row", "person"):
            raise DomainError(f"Domain.unit must be 'row' or 'person', got {self.unit!r}.")
        m = self.rows_per_unit
        if m is not None and not (is_whole(m) and m > 0):
            raise DomainError(f"Domain.rows_per_unit must be a positive whole number, got {m!r}.")
        if m is not None and self.unit == "row":
            raise DomainError(
                "Domain.rows_per_unit is about persons; declare unit='person' (command line: --person)."
            )
        if isinstance(self.classes, str):
            if self.classes != OBSERVED:
                raise DomainError(
                    f"Domain.classes must be a list of labels or {OBSERVED!r}, got {self.classes!r}."
                )
        elif self.classes is not None:
            labels = np.unique(np.asarray(self.classes))
            if len(labels) < 2 or len(labels) != len(self.classes):
                raise DomainError("Domain.classes must list at least two different labels.")
            object.__setattr__(self, "classes", tuple(labels.tolist()))

    def _check_columns(self) -> None:
        """Facts by column, in a plain form; what is wrong is told by the name of the column."""
        if self.bounds is not None:
            pairs = dict(self.bounds) if isinstance(self.bounds, Mapping) else None
            if pairs is None:
                try:
                    rows = np.asarray(self.bounds, np.float64)
                    pairs = {str(j): tuple(pair) for j, pair in enumerate(rows.tolist())}
                except (TypeError, ValueError):
                    pairs = {"0": None}
            for name, pair in pairs.items():
                sound = (
                    isinstance(pair, (tuple, list)) and len(pair) == 2 and all(map(is_real, pair))
                )
                if not sound or not (
                    -HUGE <= pair[0] < pair[1] <= HUGE and max(map(abs, pair)) >= TINY
                ):
                    raise DomainError(
                        f"Domain.bounds of column {name!r} must be two rising numbers, (lowest, highest)."
                    )
            plain = {name: (float(low), float(high)) for name, (low, high) in pairs.items()}
            by_name = isinstance(self.bounds, Mapping)
            object.__setattr__(self, "bounds", plain if by_name else tuple(plain.values()))
        for fact in ("categories", "fill", "sources"):
            value = getattr(self, fact)
            if value is not None and not isinstance(value, Mapping):
                raise DomainError(f"Domain.{fact} must be a dict with names of columns for keys.")
        for name, names in (self.categories or {}).items():
            listed = isinstance(names, (list, tuple, np.ndarray)) and len(names) > 0
            if not listed or len({str(each) for each in names}) < len(names):
                raise DomainError(
                    f"Domain.categories of column {name!r} must list different names."
                )
        for name, value in (self.fill or {}).items():
            if not isinstance(value, str) and not (is_real(value) and math.isfinite(value)):
                raise DomainError(f"Domain.fill of column {name!r} must be a number or a text.")

    @property
    def declared_bound(self) -> float | None:
        """The bound on entries that was stated, or None."""
        return None if isinstance(self.feature_bound, Undeclared) else self.feature_bound

    def column_limits(self, names: Sequence[str] | None, n_features: int) -> np.ndarray | None:
        """(low, high) of every feature in the order of a table, or None where no bounds by column are declared."""
        if self.bounds is None:
            return None
        if isinstance(self.bounds, Mapping):
            if names is None:
                raise DomainError(
                    "Domain.bounds names columns, and X has no names; pass a data frame, or bounds in order."
                )
            missing = [name for name in names if name not in self.bounds]
            if missing:
                shown = ", ".join(n if n.isidentifier() else "(unreadable)" for n in missing[:50])
                raise DomainError(
                    f"Domain.bounds lacks these columns: {shown}. Declare (lowest, highest) for each."
                )
            return np.array([self.bounds[name] for name in names], np.float64)
        if len(self.bounds) != n_features:
            raise DomainError(
                f"Domain.bounds has {len(self.bounds)} pairs for {n_features} columns."
            )
        return np.array(self.bounds, np.float64)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the facts as a small file to read, YAML or JSON by its ending; `load` reads it."""
        from dpsparse.domain_file import save

        save(self, path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Domain:
        """The facts of a file: YAML, JSON or TOML."""
        from dpsparse.domain_file import read

        return read(path).domain

    def _repr_html_(self) -> str:
        from dpsparse.domain_file import as_html

        return as_html(self)

    def _check_range(self) -> None:
        ends = self.target_range
        sound = isinstance(ends, (tuple, list)) and len(ends) == 2 and all(map(is_real, ends))
        if not sound or not -HUGE <= ends[0] < ends[1] <= HUGE:  # type: ignore[index]
            raise DomainError(
                f"Domain.target_range must be two rising numbers, (lowest, highest), got {ends!r}."
            )
        assert ends is not None
        low, high = float(ends[0]), float(ends[1])
        half = (high - low) / 2.0
        if self.target_bound not in (None, half):
            raise DomainError("State Domain.target_range or Domain.target_bound, not both.")
        object.__setattr__(self, "target_range", (low, high))
        object.__setattr__(self, "target_bound", half)

    @property
    def target_middle(self) -> float:
        """What is taken off every target at the door, and added to the intercept at the end."""
        return 0.0 if self.target_range is None else sum(self.target_range) / 2.0

    @property
    def largest_target(self) -> float | None:
        """A bound on |target|, wherever the middle is."""
        if self.target_range is None:
            return self.target_bound
        return max(abs(end) for end in self.target_range)

    def require(self, name: str, method: str) -> Any:
        """The declared fact `name`, or an error that says how to declare it."""
        value = getattr(self, name)
        if value is None:
            raise DomainError(
                f"{method} needs the public fact Domain.{name}; declare it: Domain({name}={_EXAMPLES[name]})."
            )
        return value

    def margin_bound(self, norm_bound: float) -> float:
        """Largest |x.w| for ||w||_1 <= norm_bound: feature_bound * norm_bound."""
        return float(self.require("feature_bound", "An L1 bound on the margin")) * norm_bound

    def class_labels(self, y: np.ndarray | None = None) -> np.ndarray:
        """The sorted public labels; reads y only where the user declared `classes="observed"`."""
        classes = self.require("classes", "A classifier")
        if not isinstance(classes, str):
            return np.asarray(classes)
        if y is None:
            raise DomainError(
                'A plan without data needs the labels; declare them: Domain(classes=[0, 1]) instead of "observed".'
            )
        labels = quietly("The labels of y are of mixed types.", np.unique, y)
        if len(labels) < 2:
            raise DomainError(
                "y holds one class only; classification needs two. Declare both labels with "
                "Domain(classes=[...]) if the other one may occur."
            )
        return labels

    def clip(self, X: Any, y: Any = None, *, labels: np.ndarray | None = None) -> BoundedData:
        """The clipped rows as one table, targets in their own unit: for what is not private anyway."""
        part = self.part(X, y, labels=labels)
        values = part.values.astype(np.float64)
        table = sp.csr_array(
            (values, part.indices, part.indptr), shape=(len(part), part.n_features)
        )
        table.has_canonical_format = True
        if y is None:
            return BoundedData(table, np.empty(0), self)
        scale = 1.0 if labels is not None else self.target_bound or 1.0
        targets = part.targets if labels is not None else part.targets * scale + self.target_middle
        return BoundedData(table, targets, self)

    def part(
        self, X: Any, y: Any = None, *, labels: np.ndarray | None = None, groups: Any = None
    ) -> Part:
        """Enforce every declared bound, row by row; the last moment at which raw data exists.

        Values are cast to float32 once, towards zero, and everything later reads these numbers.
        Targets become class codes (with `labels`) or numbers in [-1, 1], units of `target_bound`.
        Arrays of the caller are shared where nothing has to change. With `groups`, the person of every
        row, rows are sorted by person; who they are is not kept.
        """
        refuse_malformed(X)
        indptr, indices, raw = quietly("X must be a table of real numbers.", _canonical_rows, X)
        _refuse_non_finite(raw, "X")
        bound, norm = self.feature_bound or HUGE, self.row_norm or math.inf
        if raw.dtype == np.float32 and _is_clipped(indptr, raw, bound, norm):
            values = raw
        else:
            values = np.empty(len(raw), np.float32)
            _cast_rows(indptr, raw, bound, norm, values)
        if y is None:
            targets = np.zeros(len(indptr) - 1)
        elif labels is not None:
            wrong = "The labels of y are not of the type of Domain.classes."
            targets = quietly(wrong, _encode, y, labels)
        else:
            targets = quietly("y must hold real numbers.", np.asarray, y, np.float64)
            _refuse_non_finite(targets, "y")
            if self.target_bound is not None:
                most = self.target_bound
                targets = np.clip(targets - self.target_middle, -most, most) / most
        if len(targets) != len(indptr) - 1:
            raise SchemaError("X and y have different numbers of rows; pass one target per row.")
        part = Part(indptr, indices, values, targets, int(np.shape(X)[1]))
        if groups is None:
            return part
        order, starts = by_person(groups, len(part))
        return part.take(order, starts)


_EXAMPLES = {
    "feature_bound": "1.0",
    "row_norm": "1.0",
    "target_bound": "10.0",
    "classes": "[0, 1]",
    "n_samples": "10_000",
}


@dataclass(frozen=True, eq=False, repr=False)  # a repr would print private targets
class Part:
    """Some rows that satisfy their domain: canonical CSR in float32, class codes or targets in [-1, 1].

    Only `Domain.part` makes one, and only `rows/` looks inside. Everything in it is private. Where rows have
    persons, those of a person are adjacent and `persons` holds the first row of each, and the end.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    targets: np.ndarray
    n_features: int
    persons: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def starts(self) -> np.ndarray | None:
        """The first row of every person, and the end."""
        return self.persons

    @property
    def n_units(self) -> int:
        """Persons, or rows where there are none."""
        return len(self) if self.persons is None else len(self.persons) - 1

    def take(self, rows: np.ndarray, persons: np.ndarray) -> Part:
        """These rows in this order, and where each person among them begins."""
        if len(rows) == len(self) and np.all(rows[1:] > rows[:-1]):
            return replace(self, persons=persons)
        n_features = self.n_features
        table = sp.csr_array(
            (self.values, self.indices, self.indptr), shape=(len(self), n_features)
        )[rows]
        targets = self.targets[rows]
        return Part(table.indptr, table.indices, table.data, targets, n_features, persons)


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
        X.indptr.shape == (major + 1,)
        and len(X.indices) == len(X.data)
        and _within(X.indptr, X.indices, minor)
    )
    if not sound:
        raise SchemaError(
            "The sparse matrix X is malformed: its index arrays point outside the matrix. Build it anew, "
            "for instance with scipy.sparse.coo_array((values, (rows, columns)), shape)."
        )


def _canonical_rows(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """indptr, indices and float values of CSR with rising indices; flags of the caller are not believed."""
    if not sp.issparse(X):  # SciPy would take None for a zero
        X = np.asarray(X, dtype=np.float64)
        if X.ndim == 2 and 0 < X.size < 2**31:
            return _rows_of_dense(X)
    X = X if isinstance(X, (sp.csr_array, sp.csr_matrix)) else sp.csr_array(X)
    values = X.data if X.data.dtype in (np.float32, np.float64) else X.data.astype(np.float64)
    if not _rises(X.indptr, X.indices):
        # A fresh matrix has fresh flags, so duplicates are really added up.
        copy = sp.csr_array((values.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
        copy.has_canonical_format = copy.has_sorted_indices = False
        copy.sum_duplicates()
        return copy.indptr, copy.indices, copy.data
    if X.indptr[-1] < len(X.indices):
        return X.indptr, X.indices[: X.indptr[-1]], values[: X.indptr[-1]]
    return X.indptr, X.indices, values


def _rows_of_dense(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries other than zero, NaN among them, a few times faster than SciPy finds them."""
    n, d = X.shape
    places = np.flatnonzero(X)
    indptr = np.searchsorted(places, d * np.arange(n + 1)).astype(np.int32)
    return indptr, (places % d).astype(np.int32), X.reshape(-1)[places]


def _refuse_non_finite(values: np.ndarray, name: str) -> None:
    # min and max propagate NaN, so two passes without a temporary find NaN and both infinities.
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        raise SchemaError(
            f"Input {name} contains NaN or infinity; replace missing values by a public constant "
            "before fitting (a private mean would leak)."
        )


def by_person(groups: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows ordered by person (their own order is kept), and where each person begins."""
    sentence = "groups must name persons by numbers or by text, one kind throughout."
    return quietly(sentence, _by_person, groups, n_rows)


def _by_person(groups: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    # A list as it is: NumPy would turn 1 and 1.0 beside a text into two names.
    names = np.asarray(groups, dtype=None if hasattr(groups, "dtype") else object)
    if names.shape != (n_rows,):
        raise SchemaError("groups must name one person per row of X, as a 1d array.")
    missing = np.array([name is None for name in names]) if names.dtype.kind == "O" else False
    if np.any(missing | np.asarray(names != names, bool)):
        raise SchemaError("groups must name the person of every row; some names are missing.")
    # Equal numbers of different types are one person: two names for a person would halve the protection.
    _, person, sizes = np.unique(names, return_inverse=True, return_counts=True)
    return np.argsort(person, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])


def _encode(y: Any, labels: np.ndarray) -> np.ndarray:
    y = np.asarray(y)
    codes: np.ndarray = np.asarray(np.searchsorted(labels, y))
    codes[codes == len(labels)] = 0
    if not np.array_equal(labels[codes], y):
        raise SchemaError(
            "y holds a label that Domain.classes does not list; declare every label that may occur."
        )
    return codes.astype(np.int32)


@njit(cache=True)
def _within(indptr, indices, minor):  # type: ignore[no-untyped-def]
    if indptr[0] != 0 or indptr[-1] > indices.size:
        return False
    for i in range(indptr.size - 1):
        if indptr[i + 1] < indptr[i]:
            return False
    outside = False
    for p in range(indptr[-1]):
        outside |= indices[p] < 0 or indices[p] >= minor
    return not outside


@njit(cache=True)
def _rises(indptr, indices):  # type: ignore[no-untyped-def]
    """Whether indices fall nowhere but from one row to the next: counted without a branch, that is fast."""
    falls = 0
    for p in range(1, indptr[-1]):
        falls += indices[p] <= indices[p - 1]
    for i in range(1, indptr.size - 1):
        start = indptr[i]
        if 0 < start < indptr[i + 1]:
            falls -= indices[start] <= indices[start - 1]
    return falls == 0


@njit(cache=True)
def _is_clipped(indptr, values, bound, norm):  # type: ignore[no-untyped-def]
    """Whether `_cast_rows` would change nothing."""
    for i in range(indptr.size - 1):
        squares = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            x = abs(np.float64(values[p]))
            if x > bound or (0.0 < x < TINY):
                return False
            squares += x * x
        if squares > norm * norm:
            return False
    return True


@njit(cache=True)
def _cast(x):  # type: ignore[no-untyped-def]
    """The float32 next to x on the side of zero, zero below TINY. The bits of a float, less one, are those of its
    neighbour on that side: no branch and no call, so loops over it take several entries at a time."""
    y = np.float32(x)
    bits = y.view(np.int32) - np.int32(abs(np.float64(y)) > abs(x))
    y = np.int32(bits).view(np.float32)
    return y if abs(np.float64(y)) >= TINY else np.float32(0.0)


@njit(cache=True)
def _cast_rows(indptr, raw, bound, norm, out):  # type: ignore[no-untyped-def]
    """Clip entries, cast them once, and shorten the rows that are longer than `norm` as stored."""
    for p in range(out.size):
        out[p] = _cast(min(max(np.float64(raw[p]), -bound), bound))
    if norm == np.inf:
        return
    for i in range(indptr.size - 1):
        squares = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            squares += np.float64(out[p]) ** 2  # 2^-200 to 2^200: nothing vanishes or overflows
        if squares > norm * norm:
            shrink = norm / np.sqrt(squares) * (1.0 - _NORM_MARGIN)
            for p in range(indptr[i], indptr[i + 1]):
                out[p] = _cast(np.float64(out[p]) * shrink)

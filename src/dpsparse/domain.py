"""What is public about the data, and the one door through which data enters a solver.

`Domain` holds facts the user states without looking at private rows. `Domain.clip` makes the
facts true row by row and returns `BoundedData`, the only input a solver takes. Rows outside the
bounds are clipped silently: an exception would tell the world that such a row exists.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from dpsparse._checks import is_real, is_whole, quietly
from dpsparse.exceptions import DomainError, SchemaError

# Row norms are scaled to row_norm * (1 - _NORM_MARGIN), so that rounding cannot lift them above it.
_NORM_MARGIN = 1e-12

OBSERVED = "observed"


@dataclass(frozen=True)
class Domain:
    """Public facts about the private table; every bound is enforced by `clip`.

    Parameters
    ----------
    feature_bound : float or None, default=1.0
        Entries are clipped to ``[-feature_bound, feature_bound]``. None leaves them unbounded.
    row_norm : float or None, default=None
        Rows with a larger L2 norm are scaled down to it. Needed by methods in L2 geometry.
    target_bound : float or None, default=None
        Regression targets are clipped to ``[-target_bound, target_bound]``.
    classes : sequence, "observed" or None, default=None
        The labels that may occur. ``"observed"`` takes them from y and thereby declares that the
        set of labels in y is itself public; do not use it when a class may be rare.
    n_samples : int or None, default=None
        A public number of rows (the true one, or any stated guess). It scales steps, never noise.
    """

    feature_bound: float | None = 1.0
    row_norm: float | None = None
    target_bound: float | None = None
    classes: Sequence[Any] | str | None = None
    n_samples: int | None = None

    def __post_init__(self) -> None:
        for name in ("feature_bound", "row_norm", "target_bound"):
            value = getattr(self, name)
            if value is not None and not (is_real(value) and 0 < value < math.inf):
                raise DomainError(f"Domain.{name} must be a positive finite number, got {value!r}.")
        n = self.n_samples
        if n is not None and not (is_whole(n) and n > 0):
            raise DomainError(f"Domain.n_samples must be a positive whole number, got {n!r}.")
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
        """Enforce every declared bound, row by row, on one private copy of the values.

        `X` is anything SciPy can turn into CSR. With `labels` the targets are class labels and
        become codes 0..K-1; without them they are numbers and are clipped to `target_bound`.
        """
        X = quietly("X must be a table of real numbers.", _canonical_copy, X)
        _refuse_non_finite(X.data, "X")
        _clip_rows(X.indptr, X.data, self.feature_bound or math.inf, self.row_norm or math.inf)
        if y is None:
            return BoundedData(X, np.empty(0), self)
        if labels is not None:
            y = quietly(
                "The labels of y are not of the type of Domain.classes.", _encode, y, labels
            )
        else:
            y = quietly("y must hold real numbers.", self._clip_targets, y)
        if len(y) != X.shape[0]:
            raise SchemaError("X and y have different numbers of rows; pass one target per row.")
        return BoundedData(X, y, self)

    def _clip_targets(self, y: Any) -> np.ndarray:
        y = np.asarray(y, dtype=np.float64)
        _refuse_non_finite(y, "y")
        bound = self.target_bound
        return y if bound is None else np.asarray(np.clip(y, -bound, bound))


_EXAMPLES = {
    "feature_bound": "1.0",
    "row_norm": "1.0",
    "target_bound": "10.0",
    "classes": "[0, 1]",
    "n_samples": "10_000",
}


@dataclass(frozen=True, eq=False, repr=False)  # a repr would print private targets
class BoundedData:
    """Rows that satisfy their `domain`: canonical float64 CSR, and targets or class codes
    (empty where `clip` was given none).

    Only `Domain.clip` makes one. Everything in it is private: nothing of it may reach a message,
    a shape of control flow, or an attribute of a fitted model except through a mechanism.
    """

    X: sp.csr_array
    y: np.ndarray
    domain: Domain


def _canonical_copy(X: Any) -> sp.csr_array:
    """CSR with sorted indices, no duplicates, float64 values of our own; index arrays are shared
    with the caller's matrix where they are canonical already, so the values are all that is copied."""
    if isinstance(X, (sp.csr_array, sp.csr_matrix)) and X.has_canonical_format:
        values = np.array(X.data, dtype=np.float64)  # the one copy
        out = sp.csr_array((values, X.indices, X.indptr), shape=X.shape, copy=False)
        out.has_canonical_format = True
        return out
    if not sp.issparse(X):  # SciPy would take None for a zero
        X = np.asarray(X, dtype=np.float64)
    out = sp.csr_array(X, dtype=np.float64, copy=True)
    out.sum_duplicates()
    return out


def _refuse_non_finite(values: np.ndarray, name: str) -> None:
    # min and max propagate NaN, so two passes without a temporary find NaN and both infinities.
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        raise SchemaError(
            f"Input {name} contains NaN or infinity; replace missing values by a public constant "
            "before fitting (a private mean would leak)."
        )


def _encode(y: Any, labels: np.ndarray) -> np.ndarray:
    y = np.asarray(y)
    codes: np.ndarray = np.asarray(np.searchsorted(labels, y))
    codes[codes == len(labels)] = 0
    if not np.array_equal(labels[codes], y):
        raise SchemaError(
            "y holds a label that Domain.classes does not list; declare every label that may occur."
        )
    return codes.astype(np.int32)


@numba.njit(cache=True)
def _clip_rows(indptr, data, feature_bound, row_norm):  # type: ignore[no-untyped-def]
    for i in range(indptr.size - 1):
        largest = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            data[p] = min(max(data[p], -feature_bound), feature_bound)
            largest = max(largest, abs(data[p]))
        if row_norm == np.inf or largest == 0.0:
            continue
        squares = 0.0  # relative to the largest entry: squares of 1e200 must not overflow
        for p in range(indptr[i], indptr[i + 1]):
            squares += (data[p] / largest) ** 2
        norm = largest * np.sqrt(squares)
        if norm > row_norm * (1.0 - _NORM_MARGIN):
            shrink = row_norm * (1.0 - _NORM_MARGIN) / norm
            for p in range(indptr[i], indptr[i + 1]):
                data[p] *= shrink

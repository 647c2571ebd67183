"""What a fitted linear model has and can do: predictions, also of Dask collections, and the weights in other forms."""

from __future__ import annotations

from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpsparse.accounting.guarantee import Guarantee, Plan
from dpsparse.domain.clipping import refuse_malformed
from dpsparse.methods.schema import checked_data

SPARSE = (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)


class FittedLinearModel(BaseEstimator):
    """What a fitted linear model has and can do; apart, since fields of the classes below are parameters."""

    coef_: Any
    intercept_: Any
    classes_: np.ndarray
    privacy_: Guarantee
    plan_: Plan
    n_iter_: int
    coef_noise_: np.ndarray
    drowned_: np.ndarray | None  # columns with large weights whose scale noise hides
    n_features_in_: int
    feature_names_in_: np.ndarray
    feature_names_: tuple[str, ...] | None  # of a model from a file
    about_: dict[str, str]  # what the command line calls data and target
    search_: dict[str, Any]  # the settings of the search that chose it
    _planned_width: int | None = None  # columns that a fit on fewer was priced for

    if TYPE_CHECKING:  # what every kind of model has, for whoever loads one

        def predict(self, X: Any) -> np.ndarray: ...

    def _margins(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        refuse_malformed(X)
        X = checked_data(self, X, reset=False)
        coef = self.coef_
        margins = X @ coef.T
        if isinstance(margins, SPARSE):
            margins = margins.toarray()
        return np.asarray(margins + self.intercept_)

    def plot_weights(self, top: int = 15) -> Any:
        """A matplotlib figure of the largest weights, with bars of two standard deviations of their noise."""
        from dpsparse.report.weights import plot_weights

        check_is_fitted(self)
        return plot_weights(self, top)

    def weights_frame(self) -> Any:
        """The weights that are not zero as a pandas data frame: weight, noise, and whether it stands out of it."""
        from dpsparse.report.weights import weights_frame

        check_is_fitted(self)
        return weights_frame(self)

    def get_support(self, indices: bool = False) -> np.ndarray:
        """The columns with a weight, as scikit-learn's selectors tell them: a mask, or their numbers.

        ``SelectFromModel(model, prefit=True, threshold=1e-300)`` makes a selector of a fitted model.
        """
        check_is_fitted(self)
        mask = np.zeros(self.coef_.shape[-1], dtype=bool)
        mask[self.coef_.nonzero()[-1]] = True
        return np.flatnonzero(mask) if indices else mask

    def sparsify(self) -> Self:
        """Store `coef_` as CSR, so that prediction costs its non-zeros and not its width."""
        check_is_fitted(self)
        if not isinstance(self.coef_, SPARSE):
            self.coef_ = sp.csr_array(np.atleast_2d(self.coef_))
        return self

    def densify(self) -> Self:
        """Store `coef_` as a dense array again; undoes `sparsify`."""
        check_is_fitted(self)
        if isinstance(self.coef_, SPARSE):
            self.coef_ = self.coef_.toarray()
        return self

    def to_sklearn(self) -> Any:
        """A plain scikit-learn model with the same predictions, for places without dpsparse."""
        from sklearn.linear_model import LinearRegression, LogisticRegression

        check_is_fitted(self)
        plain: Any = LinearRegression()
        if hasattr(self, "classes_"):
            plain = LogisticRegression()
            plain.classes_ = self.classes_.copy()
            plain.n_iter_ = np.array([self.n_iter_], dtype=np.int32)
        plain.coef_ = self.coef_.toarray() if isinstance(self.coef_, SPARSE) else self.coef_.copy()
        plain.intercept_ = copy(self.intercept_)
        plain.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            plain.feature_names_in_ = self.feature_names_in_
        return plain

    @property
    def n_nonzero_(self) -> int:
        """Number of non-zero weights, intercepts not counted."""
        check_is_fitted(self)
        return int(
            self.coef_.count_nonzero()
            if isinstance(self.coef_, SPARSE)
            else np.count_nonzero(self.coef_)
        )

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """scikit-learn's diagram, and below it what a fitted model may promise."""
        output: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in output and hasattr(self, "privacy_"):
            output["text/html"] += self.privacy_._repr_html_()
        return output

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]


def lazily(model: Any, method: str, X: Any, n_columns: int | None, dtype: Any) -> np.ndarray:
    """A dask array of `model.method(chunk)`; `n_columns` of a two-dimensional answer.

    For a type checker it is the array it will be."""
    dask: Any = import_module("dask")
    da: Any = import_module("dask.array")
    model = copy(model)
    model.ledger = None  # a worker has no business with it
    if getattr(X, "numblocks", ())[1:] > (1,):
        X = X.rechunk({1: -1})
    chunks = X if isinstance(X, (list, tuple)) else np.ravel(X.to_delayed())
    sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(chunks)
    rest = () if n_columns is None else (n_columns,)
    answer = dask.delayed(_answer, pure=True)
    sent = dask.delayed(model, pure=False)
    parts = [
        da.from_delayed(answer(sent, method, chunk), shape=(size, *rest), dtype=dtype)
        for chunk, size in zip(chunks, sizes, strict=True)
    ]
    joined: np.ndarray = da.concatenate(parts, axis=0)
    return joined


def _answer(model: Any, method: str, chunk: Any) -> np.ndarray:
    return np.asarray(getattr(model, method)(chunk))

"""What a fitted linear model has and can do, whatever fitted it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dpsparse.clipping import refuse_malformed
from dpsparse.estimators._schema import checked_data
from dpsparse.privacy.guarantee import Guarantee
from dpsparse.privacy.plan import Plan

SPARSE = (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix)


class FittedLinearModel(BaseEstimator):
    """A class of its own, since fields of the classes below are parameters."""

    coef_: Any
    intercept_: Any
    classes_: np.ndarray
    privacy_: Guarantee
    plan_: Plan
    n_iter_: int
    coef_noise_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray
    feature_names_: tuple[str, ...] | None  # of a model from a file
    scales_: dict[str, float] | None  # constants by which columns were divided before training
    about_: dict[str, str]  # what the command line calls data and target
    search_: dict[str, Any]  # the settings of the search that chose it

    def _margins(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        refuse_malformed(X)
        X = checked_data(self, X, reset=False)
        coef = self.coef_
        margins = X @ coef.T
        if isinstance(margins, SPARSE):
            margins = margins.toarray()
        return np.asarray(margins + self.intercept_)

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
        from dpsparse.models import to_sklearn  # models knows the estimators, not the reverse

        return to_sklearn(self)

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.non_deterministic = True  # secure noise differs from fit to fit
        return tags

"""A plain LASSO without privacy: what the solver of the library does where no noise is drawn. NOT PRIVATE.

    min  sum_i (x_i.w - y_i)^2 / (2 n)     over   |w|_1 <= radius

This is the job of Algorithm 3 of Raff, Khanna and Lu (2023): Frank-Wolfe steps to the largest gradient, with work in
proportion to the entries that a step touches. Nothing is drawn, so there is nothing to pay for and nothing to declare.
Algorithm 3 itself, with its heap and its stale gradients, is in experiments/lab/papers/operations.py; the gradients
here are exact.

scikit-learn's `Lasso` is faster, by how much stands in experiments/notebook/speed.md. A step shrinks all weights, which
moves all residuals, so that most steps read all entries again, and every step looks at all scores. Coordinate descent
reads all entries once a sweep, and needs few sweeps.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsparse._checks import check_count, check_positive
from dpsparse.losses import Squared
from dpsparse.methods.frank_wolfe.run import Problem, RowArrays, Run
from dpsparse.methods.frank_wolfe.solve import resolution_without_noise
from dpsparse.random import make_generator


class FrankWolfeLasso(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """NOT PRIVATE. LASSO in its L1 ball, by Frank-Wolfe without noise, on dense or sparse rows.

    **When to use.** To see what a private fit in the same ball gives away to its noise. scikit-learn's `Lasso`, which
    takes a penalty instead of a radius, reaches the same objective sooner.

    Parameters
    ----------
    radius : float, default=1.0
        L1 norm that the weights may have; scikit-learn's penalty `alpha` is its multiplier.
    n_iter : int, default=1000
        Steps. The objective is within O(1/n_iter) of the smallest; `dual_gap_` says how far at most.
    fit_intercept : bool, default=True
        Centre the targets, and let a constant column inside the ball correct what the features add to their mean.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    intercept_ : float
    dual_gap_ : float
        Bound on the distance to the smallest objective.
    n_iter_, n_features_in_

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse.published import FrankWolfeLasso
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 20))
    >>> model = FrankWolfeLasso(radius=2.0).fit(X, 3.0 * X[:, 4])
    >>> np.flatnonzero(model.coef_), round(float(model.coef_[4]), 2)
    (array([4]), 2.0)
    """

    coef_: np.ndarray
    intercept_: float
    dual_gap_: float
    n_iter_: int

    def __init__(self, radius: float = 1.0, *, n_iter: int = 1000, fit_intercept: bool = True):
        self.radius, self.n_iter, self.fit_intercept = radius, n_iter, fit_intercept

    def fit(self, X: Any, y: Any) -> Self:
        """Weights in the ball; nothing about the rows is hidden."""
        check_positive("radius", self.radius)
        check_count("n_iter", self.n_iter)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        rows = sp.csr_array(X)
        rows.sum_duplicates()  # and sorts
        middle = float(y.mean()) if self.fit_intercept else 0.0
        y = np.asarray(y, np.float64) - middle
        bound = float(abs(rows.data).max(initial=0.0)) or 1.0
        problem = Problem(
            loss=Squared(), radius=float(self.radius), n_iter=self.n_iter, kappa=math.inf, feature_bound=bound,
            slope_bound=bound * self.radius + float(abs(y).max()), fit_intercept=self.fit_intercept,
            resolution=resolution_without_noise(len(y)),
        )  # fmt: skip
        run = Run(RowArrays(rows.indptr, rows.indices, rows.data, y, rows.shape[1]), problem)
        run.draw(make_generator(0), self.n_iter)  # the generator is not asked
        coef, intercept = run.history().weights()
        self.coef_, self.intercept_, self.n_iter_ = (
            coef[0],
            middle + float(intercept[0]),
            self.n_iter,
        )
        slopes = (rows @ self.coef_ + intercept[0] - y) / len(y)
        gradient = rows.T @ slopes
        constant = bound * slopes.sum() if self.fit_intercept else 0.0
        steepest = max(float(abs(gradient).max()), abs(constant))
        here = gradient @ self.coef_ + slopes.sum() * intercept[0]
        self.dual_gap_ = float(here + self.radius * steepest)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Numbers for new rows."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

"""What the estimators of printed papers share: a plan that promises nothing, and the rows as plain arrays.

The one numerical tool of several fits is here too: the minimum of a tilted ridge problem, to rounding.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.optimize import fmin_l_bfgs_b

from dpsparse._checks import check_count, check_positive
from dpsparse.accounting import NonPrivate, Phase, Plan
from dpsparse.losses import Loss, get_loss
from dpsparse.methods.base import BaseDPLinearModel, Solution
from dpsparse.release import Releases
from dpsparse.rows import Rows


@dataclass(frozen=True)
class PrintedFit:
    """What a plan of a printed paper holds: the paper's estimator, whose parameters are all there is to know."""

    model: PublishedModel
    n_outputs: int

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        return self.model._solve_printed(rows, self.n_outputs, releases)


@dataclass(eq=False, repr=False, kw_only=True)
class PublishedModel(BaseDPLinearModel):
    """NOT PRIVATE: epsilon of the guarantee is infinite; a paper may claim less.

    A paper says what it is called (`_paper`), which constants it prints (`_constants`), and how one weight vector is
    fitted (`_fit_printed`). Several classes are fitted one against the rest, and an intercept is the weight of a last
    column, of ones or of the feature bound. Papers that are proven to be worth something plan their own events instead.
    """

    _is_published: ClassVar[bool] = True
    _paper: ClassVar[str]

    @abstractmethod
    def _constants(self, n_features: int, n_outputs: int) -> dict[str, Any]:
        """What the paper computes from parameters and public facts."""

    @abstractmethod
    def _fit_printed(
        self, X: Any, y: np.ndarray, printed: dict[str, Any], rng: np.random.Generator
    ) -> np.ndarray:
        """Weights of all columns."""

    @property
    def _loss(self) -> Loss:
        return get_loss("squared" if self._labels_are_numbers else "logistic")

    def _why_one_row(self) -> str:
        return "the published form sees rows only."

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[PrintedFit]:
        n_outputs = self._facts(n_features, labels).n_outputs
        shown = {"n_outputs": n_outputs, "n_iter": self._n_steps}
        return Plan(
            method=type(self).__name__,
            phases=(Phase("fit", NonPrivate(), "no guarantee"),),
            epsilon=math.inf,
            delta=self.delta,
            adjacency=self.adjacency,
            proven=False,
            source=f"{self._paper}; no guarantee",
            parameters={**shown, **self._constants(n_features, n_outputs)},
            settings=PrintedFit(self, n_outputs),
        )

    @property
    def _n_steps(self) -> int:
        return int(getattr(self, "n_iter", 1))

    def _solve_printed(self, rows: Rows, n_outputs: int, releases: Releases) -> Solution:
        data, printed = rows.table(), self._constants(rows.n_features, n_outputs)
        assert data.y is not None
        targets = [data.y]
        if n_outputs > 1:
            targets = [(data.y == k).astype(np.int32) for k in range(n_outputs)]
        X, constant = self._with_constant_column(data.X, printed)
        found = [self._fit_printed(X, y, printed, releases.rng) for y in targets]
        return self._solved(np.array(found), constant)

    def _with_constant_column(self, X: Any, printed: dict[str, Any]) -> tuple[Any, float]:
        """The rows and, for the intercept, a last column of the constant that is returned; 0 for none."""
        if not getattr(self, "fit_intercept", False):
            return X, 0.0
        constant = float(printed.get("feature_bound", 1.0))
        column = sp.csr_array(np.full((X.shape[0], 1), constant))
        return sp.csr_array(sp.hstack([X, column], format="csr")), constant

    def _solved(self, weights: np.ndarray, constant: float) -> Solution:
        """Weights of all columns as those of the features and the intercepts."""
        if constant == 0.0:
            return Solution(weights, np.zeros(len(weights)), self._n_steps)
        return Solution(weights[:, :-1], weights[:, -1] * constant, self._n_steps)


@dataclass(eq=False, repr=False, kw_only=True)
class PublishedBall(PublishedModel):
    """What papers on the L1 ball share: its radius, the steps, and a constant column."""

    radius: float | None = None
    n_iter: int = 100
    fit_intercept: bool = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_iter", self.n_iter)
        if self.radius is not None:
            check_positive("radius", self.radius)

    def _radius(self, feature_bound: float) -> float:
        """The given one; else margins reach 10, or the bound of the targets."""
        if self.radius is not None:
            return float(self.radius)
        reach = 10.0
        if self._labels_are_numbers:
            reach = float(self._domain.require("target_bound", type(self).__name__))
        return reach / feature_bound


def tilted_minimum(
    rows: Any,
    y: np.ndarray,
    loss: Loss,
    *,
    ridge: float,
    tilt: np.ndarray,
    centre: np.ndarray | None = None,
) -> np.ndarray:
    """argmin of sum_i l(f_i.theta, y_i) + ridge/2 |theta - centre|^2 + tilt.theta."""
    centre = np.zeros(rows.shape[1]) if centre is None else centre

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        margin, away = rows @ theta, theta - centre
        value = float(loss.value(margin, y).sum()) + 0.5 * ridge * away @ away + tilt @ theta
        return value, rows.T @ loss.slope(margin, y) + ridge * away + tilt

    found, _, _ = fmin_l_bfgs_b(
        objective, centre, maxiter=2000, factr=10.0, pgtol=1e-7 * max(ridge, 1e-3)
    )
    return np.asarray(found)

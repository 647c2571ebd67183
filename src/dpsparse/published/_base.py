"""What the estimators of printed papers share: a plan that promises nothing, and the rows as plain arrays.

The one numerical tool of several fits is here too: the minimum of a tilted ridge problem, to rounding.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.optimize import fmin_l_bfgs_b

from dpsparse._checks import check_count, check_positive
from dpsparse.accounting import NonPrivate, Phase, Plan
from dpsparse.losses import Loss, get_loss
from dpsparse.methods.base import BaseDPLinearModel, output_count
from dpsparse.methods.solution import Solution
from dpsparse.release import Releases
from dpsparse.rows import Rows


@dataclass(frozen=True, kw_only=True)
class Printed:
    """The constants of one fit; each paper adds its own."""

    n_outputs: int
    n_iter: int


@dataclass(frozen=True)
class PrintedFit:
    """What a plan of a printed paper holds: the paper's estimator and its constants."""

    model: PublishedModel
    printed: Any

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        return self.model._solve_printed(rows, self.printed, releases)


@dataclass(eq=False, repr=False, kw_only=True)
class PublishedModel(BaseDPLinearModel):
    """NOT PRIVATE: epsilon of the guarantee is infinite; a paper may claim less.

    A paper says which constants it prints (`_constants`), what it is called (`_paper`), and how one weight vector is
    fitted (`_fit_printed`). Several classes are fitted one against the rest. Papers that are proven to be worth
    something plan their own events instead.
    """

    _is_published: ClassVar[bool] = True

    def _constants(self, n_features: int, n_outputs: int) -> Printed:
        raise TypeError(f"{type(self).__name__} does not say which constants it prints.")

    def _paper(self, printed: Any) -> str:
        raise TypeError(f"{type(self).__name__} does not name its paper.")

    def _fit_printed(
        self, X: Any, y: np.ndarray, printed: Any, rng: np.random.Generator
    ) -> tuple[np.ndarray, float]:
        """Weights of all columns, and the intercept."""
        raise TypeError(f"{type(self).__name__} does not say how it fits.")

    @property
    def _loss(self) -> Loss:
        return get_loss("squared" if self._labels_are_numbers else "logistic")

    def _why_one_row(self) -> str:
        return "the published form sees rows only."

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[PrintedFit]:
        printed = self._constants(n_features, output_count(labels))
        return self._planned(
            [Phase("fit", NonPrivate(), "no guarantee")],
            PrintedFit(self, printed),
            epsilon=math.inf,
            calibration="published",
            proven=False,
            source=f"{self._paper(printed)}; no guarantee",
            assumptions=(),
            parameters=asdict(printed),
        )

    def _solve_printed(self, rows: Rows, printed: Any, releases: Releases) -> Solution:
        data = rows.table()
        assert data.y is not None
        targets = [data.y]
        if printed.n_outputs > 1:
            targets = [(data.y == k).astype(np.int32) for k in range(printed.n_outputs)]
        fits = [self._fit_printed(data.X, y, printed, releases.rng) for y in targets]
        weights, intercepts = zip(*fits, strict=True)
        return Solution(np.array(weights), np.array(intercepts), printed.n_iter)


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


def with_constant_column(X: Any, value: float) -> sp.csr_array:
    """The rows with a last column of `value`: the intercept inside the ball."""
    return sp.csr_array(sp.hstack([X, sp.csr_array(np.full((X.shape[0], 1), value))], format="csr"))


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

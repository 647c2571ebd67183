"""DP-IGHT as later papers implement it (Wang and Gu, IJCAI 2019): noisy gradients, hard thresholding.

    theta <- H_s(theta - step (mean gradient + N(0, T G^2/(n^2 rho) I)))            T rounds
    rho    = epsilon + 2 l - 2 sqrt(l (epsilon + l)),   l = log(1/delta)

G bounds the L2 norm of every row's gradient; the paper assumes it, nobody enforces it here. The noise is
enough under add-remove if G is a true bound (rho is zCDP, at the paper's own conversion), and worth
nothing if it is not. The paper itself is not among ours. `DPHardThreshold*` clips rows to G.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse._checks import check_count, check_positive
from dpsparse.losses import Loss
from dpsparse.methods.base import BaseDPClassifier, BaseDPRegressor
from dpsparse.published._base import PublishedModel
from dpsparse.published.wang_gu_2020_transfer import margins


def concentrated(epsilon: float, delta: float) -> float:
    """rho: the zCDP that (epsilon, delta) buys by the printed conversion."""
    log = math.log(1.0 / delta)
    return epsilon + 2.0 * log - 2.0 * math.sqrt(log * (epsilon + log))


def private_hard_threshold(
    X: Any,
    y: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    n_nonzero: int,
    n_iter: int,
    step: float,
    epsilon: float,
    delta: float,
    gradient_bound: float,
) -> np.ndarray:
    """theta after `n_iter` rounds; `epsilon=math.inf` adds no noise."""
    n, d = X.shape
    scale, theta = 0.0, np.zeros(d)
    if not math.isinf(epsilon):
        scale = math.sqrt(n_iter / concentrated(epsilon, delta)) * gradient_bound / n
    for _ in range(n_iter):
        gradient = np.asarray(X.T @ loss.slope(margins(X, theta), y)) / n
        moved = theta - step * (gradient + scale * rng.standard_normal(d))
        theta = np.zeros(d)
        kept = np.argpartition(-np.abs(moved), min(n_nonzero, d) - 1)[:n_nonzero]
        theta[kept] = moved[kept]
    return theta


@dataclass(eq=False, repr=False, kw_only=True)
class _HardThreshold(PublishedModel):
    n_nonzero: int = 10
    n_iter: int = 10
    step_size: float | None = None

    _paper = "Wang and Gu (2019), DP-IGHT, as later papers implement it"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero)
        check_count("n_iter", self.n_iter)
        if self.step_size is not None:
            check_positive("step_size", self.step_size)

    def _constants(self, n_features: int, n_outputs: int) -> dict[str, Any]:
        bound = self._domain.longest_row(n_features)
        return {
            "n_nonzero": self.n_nonzero,
            "step": self.step_size or 1.0 / (self._loss.smoothness * bound**2),
            "gradient_bound": bound,
            "rho": math.inf if math.isinf(self.epsilon) else concentrated(self.epsilon, self.delta),
        }

    def _fit_printed(
        self, X: Any, y: np.ndarray, printed: dict[str, Any], rng: np.random.Generator
    ) -> np.ndarray:
        """No clipping and no intercept."""
        return private_hard_threshold(
            X, y, self._loss, rng, n_nonzero=self.n_nonzero, n_iter=self.n_iter, step=printed["step"],
            epsilon=self.epsilon, delta=self.delta, gradient_bound=printed["gradient_bound"],
        )  # fmt: skip


@dataclass(eq=False, repr=False, kw_only=True)
class WangGuHardThresholdClassifier(BaseDPClassifier, _HardThreshold):
    """NOT PRIVATE. DP-IGHT (Wang and Gu 2019), logistic loss, as later papers implement it.

    The paper assumes that the gradient of every row is bounded. Rows are not clipped here, so nothing is proven.
    `DPHardThresholdClassifier` is the proven form.

    Parameters
    ----------
    domain : Domain
        Needs `classes`, and `row_norm` or `feature_bound`, from which the assumed gradient bound follows.
    epsilon, delta : float
        What the noise is computed from; the guarantee says infinity. ``epsilon=math.inf`` adds no noise: IGHT.
    n_nonzero : int, default=10
        Weights kept after every step, per class for more than two classes (one against the rest).
    n_iter : int, default=10
        Steps.
    step_size : float or None, default=None
        None takes one over the curvature of rows of the declared norm.
    adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Neighbours, account and noise of the fit.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class WangGuHardThresholdRegressor(BaseDPRegressor, _HardThreshold):
    """NOT PRIVATE. The same with the squared loss.

    Parameters are those of `WangGuHardThresholdClassifier`; `domain` needs `target_bound` instead of `classes`.
    """

"""Two-Stage of Kifer, Smith and Thakurta (COLT 2012), as two later papers compare with it.

    S     = the s largest of votes_j/k + Lap(2 s/(k epsilon/2))    k = sqrt(n) blocks, s votes each, by correlation
    theta = argmin of sum_i l(x_S.theta, y_i) + ridge/2 |theta|^2 + b.theta
            b ~ N(0, xi^2 (8 log(2/delta) + 4 epsilon)/epsilon^2 I)     Algorithm 1, objective perturbation

xi = sqrt(s) (logistic) or 2 s^(3/2) (squared), ridge = 2 (s/4 or s)/epsilon. The paper itself is not
among ours. Wang and Gu (2020) and Khanna, Lu and Raff (2023) compare with it and do not print how they divide the
budget; here stage one has epsilon/2 and stage two epsilon, so 1.5 epsilon is spent. No guarantee is stated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse._checks import check_count
from dpsparse.losses import Logistic
from dpsparse.methods.base import BaseDPClassifier, BaseDPRegressor
from dpsparse.published._base import PublishedModel, tilted_minimum


def voted_support(
    X: sp.csr_array,
    y: np.ndarray,
    rng: np.random.Generator,
    *,
    n_nonzero: int,
    n_blocks: int,
    epsilon: float,
) -> np.ndarray:
    """Stage one: the features with the largest noisy share of random blocks that name them."""
    block, votes = rng.integers(n_blocks, size=X.shape[0]), np.zeros(X.shape[1])
    for k in np.unique(block):
        rows = np.flatnonzero(block == k)
        named = np.unique(correlated(X[rows], y[rows], n_nonzero))
        votes[named[:n_nonzero]] += 1.0
    return noisy_winners(votes, n_blocks, n_nonzero, epsilon, rng)


def noisy_winners(
    votes: np.ndarray, n_blocks: int, n_nonzero: int, epsilon: float, rng: np.random.Generator
) -> np.ndarray:
    noise = rng.laplace(scale=2.0 * n_nonzero / (n_blocks * epsilon), size=len(votes))
    return np.sort(np.argsort(-(votes / n_blocks + noise))[:n_nonzero])


def correlated(X: Any, y: np.ndarray, n_nonzero: int) -> np.ndarray:
    """The features with the largest |x_j.(y - mean y)| / |x_j| of one block."""
    dense = isinstance(X, np.ndarray)
    squares = np.einsum("ij,ij->j", X, X) if dense else X.multiply(X).sum(axis=0)
    scores = np.abs(X.T @ (y - y.mean())) / np.sqrt(np.maximum(np.ravel(squares), 1e-300))
    best = np.argsort(-scores, kind="stable")[:n_nonzero]
    return np.asarray(best[scores[best] > 0.0])


def tilt_scale(n_nonzero: int, epsilon: float, delta: float, *, logistic: bool) -> float:
    """Standard deviation of every entry of b."""
    bound = math.sqrt(n_nonzero) if logistic else 2.0 * n_nonzero**1.5
    return bound * math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon


def default_ridge(n_nonzero: int, epsilon: float, *, logistic: bool) -> float:
    return 2.0 * (0.25 if logistic else 1.0) * n_nonzero / epsilon


def tilted_fit(
    rows: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
    *,
    ridge: float,
    scale: float,
    logistic: bool,
) -> np.ndarray:
    """Stage two on the columns of the support (and the constant, if there is one)."""
    tilt = np.asarray(scale * rng.standard_normal(rows.shape[1]))
    if logistic:
        return tilted_minimum(rows, y, Logistic(), ridge=ridge, tilt=tilt)
    moments = rows.T @ rows + ridge * np.eye(len(tilt))
    return np.asarray(np.linalg.solve(moments, rows.T @ y - tilt))


@dataclass(eq=False, repr=False, kw_only=True)
class _TwoStage(PublishedModel):
    n_nonzero: int = 10
    ridge: float | None = None
    fit_intercept: bool = True

    _paper = "Kifer, Smith and Thakurta (2012), as later papers implement it"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero)

    def _constants(self, n_features: int, n_outputs: int) -> dict[str, Any]:
        """Half of epsilon for the votes, all of it again for the fit."""
        s, epsilon = min(self.n_nonzero, n_features), min(float(self.epsilon), 1e6)
        logistic = not self._labels_are_numbers
        return {
            "n_nonzero": s,
            "n_blocks": math.isqrt(self._domain.require("n_samples", type(self).__name__)),
            "epsilon_support": epsilon / 2.0,
            "scale": tilt_scale(s, epsilon, self.delta, logistic=logistic),
            "ridge": self.ridge or default_ridge(s, epsilon, logistic=logistic),
        }

    def _fit_printed(
        self, X: Any, y: np.ndarray, printed: dict[str, Any], rng: np.random.Generator
    ) -> np.ndarray:
        d = X.shape[1] - self.fit_intercept
        support = voted_support(
            X[:, :d], y, rng, n_nonzero=printed["n_nonzero"], n_blocks=printed["n_blocks"],
            epsilon=printed["epsilon_support"],
        )  # fmt: skip
        columns = np.append(support, np.arange(d, X.shape[1]))
        weights = np.zeros(X.shape[1])
        weights[columns] = tilted_fit(
            X[:, columns].toarray(), y, rng, ridge=printed["ridge"], scale=printed["scale"],
            logistic=not self._labels_are_numbers,
        )  # fmt: skip
        return weights


@dataclass(eq=False, repr=False, kw_only=True)
class KiferSmithThakurtaTwoStageClassifier(BaseDPClassifier, _TwoStage):
    """NOT PRIVATE. Two-Stage of Kifer, Smith and Thakurta (2012), logistic loss, as later papers implement it.

    Stage one has half of epsilon and stage two all of it, so the claim is false by construction, and nothing is
    proven. `DPTwoStageClassifier` is the proven form.

    Parameters
    ----------
    domain : Domain
        Needs `classes` and `n_samples`.
    epsilon, delta : float
        What the noise is computed from; the guarantee says infinity.
    n_nonzero : int, default=10
        Size of the support, per class for more than two classes (one against the rest).
    ridge : float or None, default=None
        Ridge of the summed loss; None takes 2 (s/4)/epsilon.
    fit_intercept : bool, default=True
        Add a constant column.
    adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Neighbours, account and noise of the fit.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class KiferSmithThakurtaTwoStageRegressor(BaseDPRegressor, _TwoStage):
    """NOT PRIVATE. The same with the squared loss, whose slopes have no bound at all; ridge None takes 2 s/epsilon.

    Parameters are those of `KiferSmithThakurtaTwoStageClassifier`; `domain` needs `target_bound` instead of `classes`.
    """

"""Private ADMM as later papers implement it (Wang and Zhang, Neurocomputing 2020), L1 and L_{1/2}.

    c  = (8 g + 2.8) / (4 (epsilon/K) n)                  g: a free parameter, K rounds
    b  = a vector of norm Gamma(p, 1/g) and uniform direction, drawn once
    w  <- argmin of mean loss + c/2 |w - z - v/c|^2 + c b.w
    z  <- threshold of w - v/c at strength/c (soft for L1, half for L_{1/2});   v <- v + c (z - w)

The paper itself is not among ours; this is its noise as later papers state it. One b is used for K releases
and its budget pays for one use of it, so no guarantee is stated. Khanna, Lu and Raff (2023) could
not reproduce its sparsity either and copied its curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse._checks import check_choice, check_count, check_positive
from dpsparse.losses import Logistic, Loss
from dpsparse.methods.base import BaseDPClassifier
from dpsparse.nonzeros import top_k
from dpsparse.published._base import PublishedModel, tilted_minimum


def admm(
    rows: Any,
    y: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    penalty: str,
    n_iter: int,
    strength: float,
    gamma: float,
    step_epsilon: float,
    n_samples: int,
) -> np.ndarray:
    """The sparse z after `n_iter` rounds with one noise vector for all of them. Not private."""
    n, width = n_samples, rows.shape[1]
    c = (8.0 * gamma + 2.8) / (4.0 * step_epsilon * n)
    direction = rng.standard_normal(width)
    b = rng.gamma(width, 1.0 / gamma) * direction / np.linalg.norm(direction)
    z, v = np.zeros(width), np.zeros(width)
    for _ in range(n_iter):
        w = tilted_minimum(rows, y, loss, ridge=n * c, centre=z + v / c, tilt=n * c * b)
        z = shrink(w - v / c, strength / c, penalty)
        v = v + c * (z - w)
    return z


def shrink(v: np.ndarray, threshold: float, penalty: str) -> np.ndarray:
    """argmin_z (z - v)^2/2 + t |z| (L1) or + t |z|^(1/2) (L_{1/2}), coordinate by coordinate."""
    if penalty == "l1":
        return np.asarray(np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0))
    # Xu et al. (2012): zero up to 1.5 t^(2/3), above it the largest root of z - v + t/(2 sqrt z) = 0
    cut = 1.5 * threshold ** (2.0 / 3.0)
    size = np.maximum(np.abs(v), cut)
    angle = np.arccos(threshold / 4.0 * (size / 3.0) ** -1.5)
    root = 2.0 / 3.0 * size * (1.0 + np.cos(2.0 / 3.0 * (math.pi - angle)))
    return np.asarray(np.where(np.abs(v) > cut, np.sign(v) * root, 0.0))


@dataclass(eq=False, repr=False, kw_only=True)
class WangZhangADMMClassifier(BaseDPClassifier, PublishedModel):
    """NOT PRIVATE. ADMM (Wang and Zhang 2020), logistic loss, as later papers implement it.

    One noise vector is used in every round, and its budget pays for one use of it: nothing is proven.
    `DPADMMClassifier` is the proven form.

    Parameters
    ----------
    domain : Domain
        Needs `classes` and `n_samples`.
    epsilon, delta : float
        What the noise is computed from; the guarantee says infinity.
    penalty : {"l1", "l1/2"}, default="l1"
    n_iter : int, default=5
        Rounds.
    strength : float, default=1e-3
        Weight of the penalty.
    gamma : float, default=1.0
        The free parameter g of the noise and of the coupling.
    n_nonzero : int or None, default=None
        Keep this many largest weights at the end; None keeps all.
    fit_intercept : bool, default=True
        Add a constant column.
    adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Neighbours, account and noise of the fit.
    """

    penalty: str = "l1"
    n_iter: int = 5
    strength: float = 1e-3
    gamma: float = 1.0
    n_nonzero: int | None = None
    fit_intercept: bool = True

    _paper = "Wang and Zhang (2020), as later papers implement it"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("penalty", self.penalty, ("l1", "l1/2"))
        check_count("n_iter", self.n_iter)
        check_count("n_nonzero", self.n_nonzero, optional=True)
        check_positive("strength", self.strength)
        check_positive("gamma", self.gamma)

    def _constants(self, n_features: int, n_outputs: int) -> dict[str, Any]:
        return {
            "step_epsilon": min(float(self.epsilon), 1e6) / self.n_iter,
            "strength": self.strength,
            "gamma": self.gamma,
            "n_samples": int(self._domain.require("n_samples", type(self).__name__)),
        }

    def _fit_printed(
        self, X: Any, y: np.ndarray, printed: dict[str, Any], rng: np.random.Generator
    ) -> np.ndarray:
        z = admm(X, y, Logistic(), rng, penalty=self.penalty, n_iter=self.n_iter, **printed)
        d = len(z) - self.fit_intercept
        if self.n_nonzero is not None:
            z[:d] = top_k(z[:d], self.n_nonzero)
        return z

"""Algorithms 1 and 3 of Sparse Private LASSO Logistic Regression as printed (Khanna, Lu and Raff 2023).

    Alg. 1   the vertex of largest score + Lap(1/kappa) among the 2p signed ones                        p weights
    Alg. 3   for every feature a noisy vertex of its K weights at every step:

    alpha_v = <v, mean gradient> + Lap(K radius L sqrt(8 T log(K/delta)) / (n epsilon))     for every column of W
    W      <- (1 - mu) W + mu argmin_v alpha_v,   mu = 2/(t+2)                              K x p weights

Alg. 1 costs twice what the paper counts for a step under add-remove, and is proven at an epsilon computed anew
(docs/proofs/frank_wolfe.md). Alg. 3 makes p selections a step and pays for K: no guarantee. Alg. 2 is in
experiments/lab/papers/sparsifier.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from dpsparse.accounting import Event, Phase, Plan, Pure, Repeated
from dpsparse.accounting import epsilon as spent_epsilon
from dpsparse.methods.base import BaseDPClassifier, BaseDPRegressor, Solution
from dpsparse.methods.frank_wolfe.run import Problem, Steps, choose_resolution
from dpsparse.published._base import PrintedFit, PublishedBall
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.sensitivity import vertex_score_range


class NoisyMaxSteps(Steps):
    """Steps of Algorithm 1: report-noisy-max with Laplace noise of scale 1/kappa on exact scores."""

    kind: ClassVar[str] = "noisy max"
    fused = False

    def pick(self, scores: np.ndarray, rng: np.random.Generator) -> int:
        kappa = self.problem.unit_kappa
        keys = scores if kappa == math.inf else kappa * scores + rng.laplace(size=scores.size)
        return int(np.argmax(keys))


def multinomial_lasso(
    X: Any,
    y: np.ndarray,
    rng: np.random.Generator,
    *,
    n_classes: int,
    radius: float,
    n_iter: int,
    kappa: float,
) -> np.ndarray:
    """Algorithm 3: (p, K) weights; at every step a noisy vertex for each feature's K weights.

    `kappa` is the inverse of the printed noise scale, times radius/n. Its p selections a step are
    accounted as K, and W leaves the ball: no guarantee.
    """
    columns, width, K = sp.csc_array(X), X.shape[1], n_classes
    W = np.zeros((width, K))
    for t in range(1, n_iter + 1):
        slopes = softmax(X @ W, axis=1)
        slopes[np.arange(len(y)), y] -= 1.0
        keys = kappa * (columns.T @ slopes)
        noisy = np.concatenate([keys, -keys], axis=1) + rng.laplace(size=(width, 2 * K))
        best = noisy.argmax(axis=1)
        step = 2.0 / (t + 2.0)
        W *= 1.0 - step
        W[np.arange(width), best % K] -= step * radius * np.where(best < K, 1, -1)
    return W


@dataclass(eq=False, repr=False, kw_only=True)
class _Lasso(PublishedBall):
    """The plan that says what the noise of Algorithm 1 is worth."""

    _paper = "Khanna, Lu and Raff (2023)"

    def _constants(self, n_features: int, n_outputs: int) -> dict[str, Any]:
        domain = self._clipping(n_features)
        bound, K = domain.entry_bound(), n_outputs
        radius = self._radius(bound)
        # The paper takes slopes of at most 1 for two classes, whatever the ball is, and 2 for more.
        slope = 1.0 if self._loss.labels == "classes" else self._loss.slope_bound(domain, radius)
        if K == 1:
            share = self.epsilon / math.sqrt(8.0 * self.n_iter * math.log(1.0 / self.delta))
        else:
            share = self.epsilon / (K * math.sqrt(8.0 * self.n_iter * math.log(K / self.delta)))
            slope = 2.0
        # Inverse scale of the noise, per unit of the sum of slope times entry.
        kappa = share / (bound * slope)
        eta = 0.0 if math.isinf(kappa) else 4.0 * kappa * bound * slope
        return {
            "radius": radius,
            "kappa": kappa,
            "slope_bound": slope,
            "feature_bound": bound,
            "resolution": choose_resolution(domain.n_samples, eta),
        }

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[PrintedFit]:
        plan = super()._make_plan(n_features, labels)
        if plan.settings.n_outputs > 1 or math.isinf(self.epsilon):
            return plan
        printed = self._constants(n_features, 1)
        # Lap(D/epsilon') noisy max costs 2 epsilon' (add-remove) or 4 epsilon' (replace-one) a step.
        spent = vertex_score_range(
            printed["kappa"], printed["slope_bound"], printed["feature_bound"], self.adjacency
        ).value
        event: Event = Repeated(Pure(spent), self.n_iter)
        return replace(
            plan,
            phases=(Phase("vertices", event, "Laplace noisy max over signed vertices"),),
            epsilon=spent_epsilon(event, self.delta),
            proven=True,
            source="docs/proofs/frank_wolfe.md",
            assumptions=(
                "Laplace noise in ideal real arithmetic",
                f"the paper claims epsilon={self.epsilon:g}; epsilon here is recomputed from its noise",
            ),
        )

    def _solve_printed(self, rows: Rows, n_outputs: int, releases: Releases) -> Solution:
        printed = self._constants(rows.n_features, n_outputs)
        if n_outputs > 1:
            data = rows.table()
            assert data.y is not None
            X, constant = self._with_constant_column(data.X, printed)
            W = multinomial_lasso(
                X, data.y, releases.rng, n_classes=n_outputs, radius=printed["radius"],
                n_iter=self.n_iter, kappa=min(printed["kappa"], 1e300),
            )  # fmt: skip
            return self._solved(W.T, constant)
        problem = Problem(
            loss=self._loss, n_iter=self.n_iter, fit_intercept=self.fit_intercept, **printed
        )
        phase = "fit" if math.isinf(printed["kappa"]) else "vertices"
        history = releases.vertices(phase, NoisyMaxSteps(rows, problem), self.n_iter)
        return Solution(*history.weights(), self.n_iter)


@dataclass(eq=False, repr=False, kw_only=True)
class KhannaLuRaffLassoClassifier(_Lasso, BaseDPClassifier):
    """Private LASSO (Khanna, Lu and Raff 2023) as printed: Algorithm 1 for two classes, Algorithm 3 for more.

    Two classes: its guarantee is the epsilon that its noise is proven to be worth, which is not the one stated. More
    classes: NOT PRIVATE, as p selections a step are paid for as K. `DPLassoClassifier` is the proven form.

    Parameters
    ----------
    domain : Domain
        Needs `classes`.
    epsilon, delta : float
        What the noise is computed from.
    radius : float or None, default=None
        L1 norm of the weights. None: ``10 / feature_bound``.
    n_iter : int, default=100
        Steps.
    fit_intercept : bool, default=True
        Add a constant column inside the ball.
    adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Neighbours, account and noise of the fit.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class KhannaLuRaffLassoRegressor(_Lasso, BaseDPRegressor):
    """Algorithm 1 of Khanna, Lu and Raff (2023) with the squared loss, worth the epsilon that its noise is proven for.

    Parameters are those of `KhannaLuRaffLassoClassifier`; `domain` needs `target_bound` instead of `classes`, and
    radius None takes ``target_bound / feature_bound``.
    """

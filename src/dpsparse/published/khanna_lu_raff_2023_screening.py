"""ADP-Screen and RNM-Screen as printed (Khanna, Lu and Raff 2023, and its anonymous sequel on iterative rules).

    w_0       random in the ball
    vertex    arg min over +-radius e_j of  radius <+-e_j, G>/n + Lap(vertex_scale)
    w         <- (1 - step) w + step vertex,  step = 2/(t + 2)
    s_j       = |G_j|/n + <w, G>/n + (b/n)(|x_(j)| + |Xw|) sqrt(gap/mu)          Eq. (1), any radius
    ADP       w_j <- 0 for every j with s_j + N(0, screen_scale^2) < 0           at chosen steps
    RNM       j = arg min of s_j + Lap(screen_scale); w_j <- 0 if the noisy minimum is below 0

| paper | here |
|---|---|
| Alg. 1 of both (ADP-Screen) | `rule="adp"`, noise `adp_scale` |
| Alg. 2 of the sequel (RNM-Screen) | `rule="rnm"`, noise `rnm_scale` |
| Theorem 1, and Eq. (3) of the first | `published_sensitivity` |
| "DP-FW Step" (Talwar et al.), Laplace noisy max | `_noisy_vertex` |
| sets I of iterations | `screen_steps` |

What is wrong, and why there is no proof: Eq. (1) is for radius 1 (`rescaled=True` repairs it); the
sensitivity of s_j is O(1/sqrt n), not O(1/n); the squared loss does not have slope 1; report-noisy-min
certifies an index and not the sign of its value (docs/proofs/screening.md). A scale of 0 means no noise,
which gives experiments A and B of the first paper. Screened features stay candidates, as printed, so nothing is
saved. One iteration costs one pass over the data.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from dpsparse._checks import check_count, check_positive, safe_repr
from dpsparse.exceptions import ParameterError, SchemaError
from dpsparse.losses import Loss
from dpsparse.methods.base import BaseDPClassifier, BaseDPRegressor
from dpsparse.published._base import PublishedBall
from dpsparse.sensitivity import raj_sensitivity


@dataclass(frozen=True)
class Iterate:
    """State after step t; `weights` is a copy. None of it is private."""

    t: int
    weights: np.ndarray
    gap: float  # Wolfe gap of the mean loss


def published_iterates(
    X: sp.csr_array,
    y: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    radius: float,
    n_iter: int,
    vertex_scale: float,
    rule: str | None,
    screen_scale: float,
    screen_steps: Collection[int],
    curvature: tuple[float, float],
    n_samples: int,
    rescaled: bool = False,
    random_start: bool = True,
) -> Iterator[Iterate]:
    """The iterates of Algorithm 1 (`rule="adp"`) or 2 (`rule="rnm"`); None never screens."""
    oracle = _Rows(X, y, loss)
    n = max(X.shape[0], n_samples)  # n for the papers; bounded below for the recomputed cost
    d = X.shape[1]
    weights = _random_in_ball(d, radius, rng) if random_start else np.zeros(d)
    gradient, margin_norm = oracle(weights)
    for t in range(1, n_iter + 1):
        j, sign = _noisy_vertex(gradient / n, radius, vertex_scale, rng)
        step = 2.0 / (t + 2.0)
        weights *= 1.0 - step
        weights[j] += step * sign * radius
        gradient, margin_norm = oracle(weights)
        gap = wolfe_gap(gradient, weights, radius) / n
        if rule is not None and t in screen_steps:
            scores = screening_scores(
                gradient,
                weights,
                margin_norm,
                oracle.column_norms,
                radius=radius,
                smoothness=curvature[0],
                strong_convexity=curvature[1],
                rescaled=rescaled,
            )
            dropped = screen(scores / n, rule, screen_scale, rng)
            if weights[dropped].any():
                weights[dropped] = 0.0
                gradient, margin_norm = oracle(weights)
        yield Iterate(t, weights.copy(), gap)


def published_sensitivity(loss: str, radius: float, n: int) -> float:
    """The papers' sensitivity of one score. False; see the proofs."""
    if loss == "squared":
        return (2.0 * radius + 2.0 * radius**2 + 2.0 * radius * (1.0 + radius)) / n
    edge = float(expit(radius))
    root = math.sqrt(4.0 * radius / float(expit(-radius)))
    return (2.0 * edge * (1.0 + radius) + 0.25 * (1.0 + radius) * root) / n


def adp_scale(l2_sensitivity: float, epsilon: float, delta: float, n_screens: int) -> float:
    """Standard deviation of ADP-Screen, Alg. 1 lines 1-4: advanced composition over the screenings."""
    delta_iter = delta / (n_screens + 1)
    epsilon_iter = epsilon / (2.0 * math.sqrt(2.0 * n_screens * math.log(1.0 / delta_iter)))
    return l2_sensitivity * math.sqrt(2.0 * math.log(1.25 / delta_iter)) / epsilon_iter


def rnm_scale(sensitivity: float, epsilon: float, delta: float, n_iter: int) -> float:
    """Laplace scale of RNM-Screen, Alg. 2 lines 1-3; the vertex noise has the same form."""
    return sensitivity * math.sqrt(8.0 * n_iter * math.log(1.0 / delta)) / epsilon


def screening_scores(
    gradient: np.ndarray,
    weights: np.ndarray,
    margin_norm: float,
    column_norms: np.ndarray,
    *,
    radius: float,
    smoothness: float,
    strong_convexity: float,
    rescaled: bool = False,
) -> np.ndarray:
    """n times Eq. (1): below 0 it would prove w*_j = 0, if the radius were 1 or the rule rescaled.

    Rescaled it is Theorem 11 of Raj et al., which proves it for every radius.
    """
    unit = radius if rescaled else 1.0
    distance = math.sqrt(wolfe_gap(gradient, weights, radius) / strong_convexity)
    reach = smoothness * (unit * column_norms + margin_norm) * distance
    return np.asarray(unit * np.abs(gradient) + float(weights @ gradient) + reach)


def wolfe_gap(gradient: np.ndarray, weights: np.ndarray, radius: float) -> float:
    largest = float(np.abs(gradient).max(initial=0.0))
    return max(float(weights @ gradient) + radius * largest, 0.0)  # rounding must not go below 0


def screen(scores: np.ndarray, rule: str, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Indices that the printed rule sets to zero."""
    if rule == "adp":  # Alg. 1, lines 10-12
        return np.flatnonzero(scores + scale * rng.standard_normal(scores.size) < 0.0)
    noisy = scores + rng.laplace(scale=scale, size=scores.size)  # Alg. 2, lines 9-12
    j = int(noisy.argmin())
    return np.array([j] if noisy[j] < 0.0 else [], dtype=np.intp)


def _noisy_vertex(
    gradient: np.ndarray, radius: float, scale: float, rng: np.random.Generator
) -> tuple[int, float]:
    """Report-noisy-min over the 2d vertices with Laplace noise, as in Talwar et al."""
    scores = radius * np.concatenate([gradient, -gradient])
    winner = int((scores + rng.laplace(scale=scale, size=scores.size)).argmin())
    return winner % gradient.size, 1.0 if winner < gradient.size else -1.0


def _random_in_ball(d: int, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Uniform in the L1 ball: d + 1 exponentials, the first d normalised, random signs."""
    sizes = rng.standard_exponential(d + 1)
    signs = 2.0 * rng.integers(0, 2, d) - 1.0
    return np.asarray(radius * signs * sizes[:d] / sizes.sum())


class _Rows:
    """G and ||Xw|| from one pass over the rows."""

    def __init__(self, X: sp.csr_array, y: np.ndarray, loss: Loss):
        self.X: Any = X
        if 3 * X.nnz > X.shape[0] * X.shape[1]:
            self.X = X.toarray()  # BLAS passes over a dense table are faster
        self.y, self.loss = y, loss
        self.column_norms = np.asarray(sp.linalg.norm(X, axis=0))

    def __call__(self, weights: np.ndarray) -> tuple[np.ndarray, float]:
        margins = self.X @ weights
        slopes = self.loss.slope(margins, self.y)
        return np.asarray(slopes @ self.X), float(np.linalg.norm(margins))


# ---- the estimators ------------------------------------------------------------------------------


@dataclass(eq=False, repr=False, kw_only=True)
class _Screen(PublishedBall):
    """What the four estimators share; loss and rule differ."""

    screen_share: float = 0.1

    _paper = "Khanna, Lu and Raff (2023) and its sequel"
    _rule: ClassVar[str]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("screen_share", self.screen_share)
        if not self.screen_share < 1:
            raise ParameterError(
                f"screen_share must be below 1, got {safe_repr(self.screen_share)}."
            )

    @abstractmethod
    def _screen_steps(self) -> tuple[int, ...]:
        """The steps after which features are screened."""

    def _constants(self, n_features: int, n_outputs: int) -> dict[str, Any]:
        if n_outputs > 1:
            raise SchemaError("Only binary classification is supported; the target is multiclass.")
        domain, loss = self._clipping(n_features), self._loss
        n = int(domain.require("n_samples", type(self).__name__))
        bound, d = domain.entry_bound(), n_features + self.fit_intercept
        radius = self._radius(bound)
        curvature = loss.curvature(domain, radius)
        slope = loss.slope_bound(domain, radius)
        own, rest = self.screen_share * self.epsilon, (1.0 - self.screen_share) * self.epsilon
        # "adp" gives half of delta to the screening, "rnm" a quarter.
        delta = self.delta * (0.5 if self._rule == "adp" else 0.25)
        claimed = published_sensitivity(loss.name, radius, n)
        if self._rule == "adp":
            scale = adp_scale(math.sqrt(d) * claimed, own, delta, len(self._screen_steps()))
        else:
            scale = rnm_scale(claimed, own, delta, self.n_iter)
        true = raj_sensitivity(
            radius, bound, slope, loss.smoothness, curvature, n, self.adjacency, rescaled=False
        ).value
        return {
            "radius": radius,
            "feature_bound": bound,
            # "Lipschitz constant 1": radius/n is what the papers take for the sensitivity of a vertex.
            "vertex_scale": rnm_scale(radius / n, rest, self.delta - delta, self.n_iter),
            "screen_scale": scale,
            "strong_convexity": curvature,
            "n_samples": n,
            "claimed_sensitivity": claimed,
            "true_sensitivity": true,
        }

    def _fit_printed(
        self, X: Any, y: np.ndarray, printed: dict[str, Any], rng: np.random.Generator
    ) -> np.ndarray:
        *_, last = published_iterates(
            sp.csr_array(X), y, self._loss, rng, radius=printed["radius"], n_iter=self.n_iter,
            vertex_scale=printed["vertex_scale"], rule=self._rule, screen_scale=printed["screen_scale"],
            screen_steps=frozenset(self._screen_steps()),
            curvature=(self._loss.smoothness, printed["strong_convexity"]),
            n_samples=printed["n_samples"],
        )  # fmt: skip
        return last.weights


@dataclass(eq=False, repr=False, kw_only=True)
class _ADPScreen(_Screen):
    n_screens: int = 1

    _rule: ClassVar[str] = "adp"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_screens", self.n_screens)
        if self.n_screens > self.n_iter:
            raise ParameterError(
                f"n_screens must be at most n_iter={self.n_iter}, got {safe_repr(self.n_screens)}."
            )

    def _screen_steps(self) -> tuple[int, ...]:
        short, longer = divmod(self.n_iter, self.n_screens)
        blocks = [short + (block < longer) for block in range(self.n_screens)]
        return tuple(int(t) for t in np.cumsum(blocks))


@dataclass(eq=False, repr=False, kw_only=True)
class _RNMScreen(_Screen):
    _rule: ClassVar[str] = "rnm"

    def _screen_steps(self) -> tuple[int, ...]:
        return tuple(range(1, self.n_iter + 1))


class _TwoClasses(BaseDPClassifier):
    """The papers know two classes."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class ADPScreenClassifier(_TwoClasses, _ADPScreen):
    """NOT PRIVATE. ADP-Screen (Khanna, Lu and Raff 2023) with the logistic loss, as printed.

    The sensitivity of its scores is O(1/sqrt n) and not O(1/n). `DPScreenedLassoClassifier` screens for free.

    Parameters
    ----------
    domain : Domain
        Needs `classes` and `n_samples`.
    epsilon, delta : float
        What the noise is computed from; the guarantee says infinity.
    radius : float or None, default=None
        L1 norm of the weights. None: ``10 / feature_bound``.
    n_iter : int, default=100
        Steps.
    n_screens : int, default=1
        Screenings, evenly spread over the steps.
    screen_share : float, default=0.1
        Share of epsilon that the screening gets.
    fit_intercept : bool, default=True
        Add a constant column inside the ball.
    adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Neighbours, account and noise of the fit.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class ADPScreenRegressor(BaseDPRegressor, _ADPScreen):
    """NOT PRIVATE. ADP-Screen (Khanna, Lu and Raff 2023) with the squared loss, as printed.

    The sensitivity of its scores is O(1/sqrt n) and not O(1/n). `DPScreenedLassoRegressor` screens for free.

    Parameters are those of `ADPScreenClassifier`; `domain` needs `target_bound` instead of `classes`, and radius None
    takes ``target_bound / feature_bound``.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class RNMScreenClassifier(_TwoClasses, _RNMScreen):
    """NOT PRIVATE. RNM-Screen, the rule of the sequel, with the logistic loss, as printed.

    Report-noisy-min certifies an index, not the sign of its value, and the sensitivity of the scores is O(1/sqrt n).
    `DPScreenedLassoClassifier` screens for free.

    Parameters are those of `ADPScreenClassifier`; it screens after every step, so there is no `n_screens`.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class RNMScreenRegressor(BaseDPRegressor, _RNMScreen):
    """NOT PRIVATE. RNM-Screen, the rule of the sequel, with the squared loss, as printed.

    Report-noisy-min certifies an index, not the sign of its value, and the sensitivity of the scores is O(1/sqrt n).
    `DPScreenedLassoRegressor` screens for free.

    Parameters are those of `ADPScreenRegressor` without `n_screens`.
    """

"""Which features to drop: scores, their sensitivities, and the rules of `screening.py`.

    free   `TopK`, `Counts`      see released `History` only: post-processing, no charge
    paid   `Budgeted`, `Safe`    see the rows; `draw_drops` is their exponential mechanism

| paper (000, 001) | here |
|---|---|
| Eq. (1), Raj et al. Theorem 11 | `raj_scores` (`rescaled=False` as printed) |
| Wolfe gap G_C(w) | `wolfe_gap` |
| Theorem 1 (false) | `raj_sensitivity` (true) |
| RNM with "if s_j < 0" | `draw_drops` with a null candidate |

Everything is in sums over rows: n enters `Safe` alone, through the public `n_samples`.
Proofs: docs/proofs/screening.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from scipy.stats import binom

from dpsparse.domain import Domain
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Loss
from dpsparse.random import gumbel

# ---- the score of Raj et al. ---------------------------------------------------------------------


def wolfe_gap(gradient: np.ndarray, weights: np.ndarray, radius: float) -> float:
    """max over the ball of <w - z, G> = <w, G> + radius max|G|: bounds f(w) - f* from above."""
    largest = float(np.abs(gradient).max(initial=0.0))
    # the gap is never negative on the ball; rounding must not reach the square root
    return max(float(weights @ gradient) + radius * largest, 0.0)


def active_scores(gradient: np.ndarray, weights: np.ndarray, radius: float) -> np.ndarray:
    """A_j = radius |G_j| + <w, G>: at the optimum 0 for every active feature, below 0 elsewhere."""
    return np.asarray(radius * np.abs(gradient) + float(weights @ gradient))


def raj_scores(
    gradient: np.ndarray,
    weights: np.ndarray,
    margin_norm: float,
    column_norms: np.ndarray,
    *,
    radius: float,
    smoothness: float,
    strong_convexity: float,
    rescaled: bool = True,
) -> np.ndarray:
    """Raj et al., Theorem 11, in sums (n times the papers' Eq. 1): below 0 proves w*_j = 0.

    `rescaled=False` is Eq. (1) as printed in 000 and 001, true for radius 1 only.
    """
    unit = radius if rescaled else 1.0
    distance = math.sqrt(wolfe_gap(gradient, weights, radius) / strong_convexity)
    reach = smoothness * (unit * column_norms + margin_norm) * distance
    return np.asarray(unit * np.abs(gradient) + float(weights @ gradient) + reach)


def strong_convexity(loss: Loss, domain: Domain, radius: float) -> float:
    """Lower bound on the loss's second derivative while ||w||_1 <= radius."""
    if loss.name == "squared":
        return 1.0
    if loss.name == "logistic":
        edge = domain.margin_bound(radius)
        return float(expit(edge) * expit(-edge))
    raise ParameterError(
        f"The rule of Raj et al. needs a strongly convex loss; {loss.name!r} is none. "
        "Use rule='counts', 'top-k' or 'budgeted'."
    )


def raj_sensitivity(
    *,
    radius: float,
    feature_bound: float,
    slope_bound: float,
    smoothness: float,
    strong_convexity: float,
    n_samples: int,
    adjacency: str,
    rescaled: bool = True,
) -> float:
    """How far one row moves one `raj_scores(...)/max(n, n_samples)`, for every n.

    (2 A + (1 + sqrt n0) K)/n0 for AR, (2 A + sqrt(2 n0 + 1) K)/n0 for RP, where
    A = c L (u + radius), K = b c (u + radius) sqrt(2 c radius L/mu), u = radius (1 as printed).
    """
    reach = feature_bound * ((radius if rescaled else 1.0) + radius)
    gap = 2.0 * feature_bound * radius * slope_bound  # of one row
    linear = 2.0 * slope_bound * reach
    product = smoothness * reach * math.sqrt(gap / strong_convexity)
    if adjacency == "replace-one":
        return (linear + math.sqrt(2.0 * n_samples + 1.0) * product) / n_samples
    return (linear + (1.0 + math.sqrt(n_samples)) * product) / n_samples


def active_range(radius: float, feature_bound: float, slope_bound: float, adjacency: str) -> float:
    """Range of A_j over the features and a null of fixed score, per row: 2 c radius L (AR), 4 (RP)."""
    rows = 2.0 if adjacency == "replace-one" else 1.0
    return rows * 2.0 * feature_bound * radius * slope_bound


# ---- rules ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class History:
    """What a block released, for the features live in it. A free rule sees this and nothing else."""

    weights: np.ndarray
    net_counts: np.ndarray  # times picked with + minus times picked with -
    n_steps: int
    block: int
    n_blocks: int


@dataclass(frozen=True)
class BlockView:
    """The live columns at the released weights; private, seen by paid rules only."""

    X: sp.csr_array
    y: np.ndarray
    loss: Loss
    weights: np.ndarray
    radius: float

    def gradient(self) -> np.ndarray:
        return np.asarray(self.loss.slope(self.X @ self.weights, self.y) @ self.X)

    def margin_norm(self) -> float:
        return float(np.linalg.norm(self.X @ self.weights))

    def column_norms(self) -> np.ndarray:
        return np.asarray(sp.linalg.norm(self.X, axis=0))

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])


@dataclass(frozen=True)
class KeepAll:
    """No screening: plain Frank-Wolfe."""

    def keep(self, history: History) -> np.ndarray:
        return np.ones(history.weights.size, dtype=bool)


@dataclass(frozen=True)
class TopK:
    """Free: the largest |w_j|. Between blocks the number kept falls geometrically to `n_nonzero`."""

    n_nonzero: int

    def keep(self, history: History) -> np.ndarray:
        m = history.weights.size
        keep = np.zeros(m, dtype=bool)
        left = history.n_blocks - history.block  # blocks still to come
        share = min(self.n_nonzero / max(m, 1), 1.0) ** (1.0 / (left + 1))
        k = max(self.n_nonzero, round(m * share))
        keep[np.argsort(-np.abs(history.weights), kind="stable")[:k]] = True
        return keep


@dataclass(frozen=True)
class Counts:
    """Free: the net signed count of a feature against its law under uniform selection.

    After the first block a feature stays if |net count| reaches the smallest s with
    P(|net| >= s) <= level. If every selection were uniform, a feature would be kept with
    probability at most `level`. Later blocks only fit what is left: there uniform selection is
    what a good working set looks like, and testing against it again would drop true features.
    """

    level: float

    def keep(self, history: History) -> np.ndarray:
        if history.block > 1:
            return np.ones(history.weights.size, dtype=bool)
        threshold = count_threshold(history.n_steps, history.weights.size, self.level)
        return np.asarray(np.abs(history.net_counts) >= threshold)


def count_threshold(n_steps: int, n_features: int, level: float) -> int:
    """Smallest s with P(|N+ - N-| >= s) <= level for n_steps uniform picks of 2 n_features vertices."""
    picks = np.arange(n_steps + 1)
    chance = binom.pmf(picks, n_steps, 1.0 / n_features)
    relevant = chance > 0.0
    picks, chance = picks[relevant], chance[relevant]
    s = 0
    tail = 1.0
    while tail > level and s <= n_steps:
        s += 1
        # given N picks, N+ ~ Bin(N, 1/2): |2 N+ - N| >= s on two mirrored tails
        tail = float(chance @ (2.0 * binom.sf(np.ceil((picks + s) / 2.0) - 1, picks, 0.5)))
    return s


@dataclass(frozen=True)
class Budgeted:
    """Paid: drop features of low A_j by the exponential mechanism against a null candidate.

    `n_drop` draws without replacement a block, stopping at the null. The null's score
    -log(m/level)/kappa, m live candidates, makes a draw take a feature with A_j >= 0 with
    probability at most `level`. One draw has range kappa * active_range.
    """

    kappa: float  # infinite: without noise, every feature with A_j < 0 goes
    n_drop: int
    level: float

    def scores(self, view: BlockView) -> np.ndarray:
        return active_scores(view.gradient(), view.weights, view.radius)


@dataclass(frozen=True)
class Safe:
    """Paid: the rule of Raj et al. for this radius, divided by max(n, n_samples).

    Same draws as `Budgeted`; one draw has range 2 kappa * raj_sensitivity. With kappa infinite it
    is the non-private safe rule.
    """

    kappa: float
    n_drop: int
    level: float
    smoothness: float
    strong_convexity: float
    n_samples: int
    rescaled: bool = True

    def scores(self, view: BlockView) -> np.ndarray:
        scores = raj_scores(
            view.gradient(),
            view.weights,
            view.margin_norm(),
            view.column_norms(),
            radius=view.radius,
            smoothness=self.smoothness,
            strong_convexity=self.strong_convexity,
            rescaled=self.rescaled,
        )
        return scores / max(view.n_rows, self.n_samples)


FreeRule = KeepAll | TopK | Counts
PaidRule = Budgeted | Safe


def draw_drops(scores: np.ndarray, rule: PaidRule, rng: np.random.Generator) -> np.ndarray:
    """Mask of dropped features: up to `n_drop` lowest of scores - Gumbel/kappa below the null's.

    Ranking once-perturbed scores is the same law as drawing one after the other without
    replacement, so each rank costs one exponential mechanism.
    """
    if scores.size == 0 or math.isinf(rule.kappa):
        return np.asarray(scores < 0.0)
    noise = gumbel(rng, scores.size + 1)
    null = -math.log(scores.size / rule.level)  # kappa times the null's score
    perturbed = rule.kappa * scores - noise[:-1]
    lowest = np.argsort(perturbed)[: rule.n_drop]
    dropped = np.zeros(scores.size, dtype=bool)
    dropped[lowest[perturbed[lowest] < null - noise[-1]]] = True
    return dropped

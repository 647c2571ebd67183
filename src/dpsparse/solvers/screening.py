"""Frank-Wolfe whose features leave the working set: free, paid and safe screening rules.

Papers: Khanna, Lu, Raff, "The Challenge of Differentially Private Screening Rules" (000) and
"Differentially Private Iterative Screening Rules for Linear Regression" (001), both after Raj et
al. (2016), Theorem 11. The printed algorithms live in `screening_published.py`.

The run is cut into public blocks. Inside a block the exponential mechanism picks one signed
vertex a step among the live features; after a block a rule drops features for good:

    G = sum_i r_i x_i                                        sums, so 1/n never enters
    (j, s) ~ exp(-kappa_t s G_j),  kappa_t = pull/(c L_t)    range of one step: 2 pull (AR), 4 pull (RP)
    w <- (1 - step_t) w + step_t radius s e_j,               step_t = 2/(t + 2)
    free      keep j by |w_j| or by its net signed count     post-processing, costs nothing
    paid      A_j = radius |G_j| + <w, G> < 0 drops j        exponential mechanism against a null
    safe      A_j + b (radius |x_(j)| + |Xw|) sqrt(gap/mu) < 0   Raj et al. for this radius

| symbol | variable | meaning |
|---|---|---|
| lambda | radius | L1 constraint |
| b, mu | smoothness, strong_convexity | bounds on the second derivative of the loss in the margin |
| gap | wolfe_gap | <w, G> + radius max_j |G_j| >= f(w) - f* |
| L_t | slope_bound | bound on a row's slope while ||w||_1 <= B_t; B_t is released |
| c | feature_bound | bound on one entry of X |

One step costs one pass over the live non-zeros; a paid screening one more. Deviations from the
papers: Eq. (1) there is the rule for radius 1 and drops active features elsewhere (`rescaled=False`
keeps it for comparison); a null candidate replaces the comparison of a noisy winner with 0, which
report-noisy-max does not certify. Proofs: docs/proofs/screening.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import expit
from scipy.stats import binom

from dpsparse.domain import BoundedData, Domain
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
    return radius * np.abs(gradient) + float(weights @ gradient)


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
    return unit * np.abs(gradient) + float(weights @ gradient) + reach


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

    RP: (2 A + (1 + sqrt 2) K sqrt n0)/n0, AR: (2 A + (1 + 2 sqrt n0) K)/n0 with
    A = c L (u + radius), K = b c (u + radius) sqrt(2 c radius L/mu), u = radius (or 1 as printed).
    """
    reach = feature_bound * ((radius if rescaled else 1.0) + radius)
    linear = slope_bound * reach
    gap = 2.0 * feature_bound * radius * slope_bound  # of one row
    product = smoothness * reach * math.sqrt(gap / strong_convexity)
    root = math.sqrt(n_samples)
    if adjacency == "replace-one":
        return (2.0 * linear + (1.0 + math.sqrt(2.0)) * product * root) / n_samples
    return (2.0 * linear + (1.0 + 2.0 * root) * product) / n_samples


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
    protected: np.ndarray  # the intercept column: never dropped
    block: int
    n_blocks: int


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
        candidates = np.flatnonzero(~history.protected)
        left = history.n_blocks - history.block  # blocks still to come
        if candidates.size <= self.n_nonzero:
            return np.ones(history.weights.size, dtype=bool)
        share = (self.n_nonzero / candidates.size) ** (1.0 / (left + 1))
        k = max(self.n_nonzero, round(candidates.size * share))
        size = np.abs(history.weights[candidates])
        keep = history.protected.copy()
        keep[candidates[np.argsort(-size, kind="stable")[:k]]] = True
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
        return history.protected | (np.abs(history.net_counts) >= threshold)


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


def draw_drops(
    scores: np.ndarray, protected: np.ndarray, rule: PaidRule, rng: np.random.Generator
) -> np.ndarray:
    """Mask of dropped features: up to `n_drop` lowest of scores - Gumbel/kappa below the null's.

    Ranking once-perturbed scores is the same law as drawing one after the other without
    replacement, so each rank costs one exponential mechanism.
    """
    candidates = np.flatnonzero(~protected)
    dropped = np.zeros(scores.size, dtype=bool)
    if candidates.size == 0:
        return dropped
    if math.isinf(rule.kappa):
        dropped[candidates[scores[candidates] < 0.0]] = True
        return dropped
    noise = gumbel(rng, candidates.size + 1)
    null = -math.log(candidates.size / rule.level)  # kappa times the null's score
    perturbed = rule.kappa * scores[candidates] - noise[:-1]
    lowest = np.argsort(perturbed)[: rule.n_drop]
    below = lowest[perturbed[lowest] < null - noise[-1]]
    dropped[candidates[below]] = True
    return dropped


# ---- the run -------------------------------------------------------------------------------------


class BlockView:
    """The live columns and the current weights on them; private, seen by paid rules only."""

    def __init__(
        self, X: sp.csr_array, y: np.ndarray, loss: Loss, weights: np.ndarray, radius: float
    ):
        self.columns = X.tocsc()
        self.transposed = self.columns.T  # CSR of X', for G in one pass
        self.y, self.loss, self.radius = y, loss, radius
        self.weights = weights.copy()
        self.margins = np.asarray(X @ weights)
        self.n_rows = X.shape[0]

    def gradient(self) -> np.ndarray:
        return np.asarray(self.transposed @ self.loss.slope(self.margins, self.y))

    def margin_norm(self) -> float:
        return float(np.linalg.norm(self.margins))

    def column_norms(self) -> np.ndarray:
        return np.asarray(sp.linalg.norm(self.columns, axis=0))

    def step(self, j: int, sign: float, size: float) -> None:
        """w <- (1 - size) w + size * radius * sign * e_j, margins alongside."""
        self.weights *= 1.0 - size
        self.weights[j] += size * sign * self.radius
        self.margins *= 1.0 - size
        span = slice(self.columns.indptr[j], self.columns.indptr[j + 1])
        self.margins[self.columns.indices[span]] += (
            size * sign * self.radius * self.columns.data[span]
        )


@dataclass(frozen=True)
class ScreenedRun:
    """Weights over all columns, and the released course of the working set."""

    weights: np.ndarray
    live: np.ndarray  # columns that survived
    n_live: tuple[int, ...]  # live features in each block, and after the last screening


def screened_frank_wolfe(
    data: BoundedData,
    loss: Loss,
    rng: np.random.Generator,
    *,
    radius: float,
    pull: float,
    blocks: Sequence[int],
    rule: FreeRule | PaidRule,
    protected: int | None = None,
) -> ScreenedRun:
    """Run `blocks` of private Frank-Wolfe steps, dropping columns for good after each.

    `pull` is kappa_t c L_t: the exponent of one unit of relative score, infinite for no noise.
    `protected` names a column (the intercept) that no rule may drop.
    """
    X, y, domain = data.X, data.y, data.domain
    assert y is not None
    bound = domain.require("feature_bound", "Screening")
    live = np.arange(X.shape[1])
    weights = np.zeros(X.shape[1])
    n_live = []
    t = 0
    for block, n_steps in enumerate(blocks, start=1):
        view = BlockView(X if live.size == X.shape[1] else X[:, live], y, loss, weights, radius)
        net = np.zeros(live.size, dtype=np.int64)
        n_live.append(live.size)
        for _ in range(n_steps if live.size else 0):
            t += 1
            norm_bound = min(float(np.abs(view.weights).sum()), radius)
            kappa = pull / (bound * loss.slope_bound(domain, norm_bound))
            j, sign = _pick_vertex(view.gradient(), kappa, rng)
            view.step(j, sign, 2.0 / (t + 2.0))
            net[j] += int(sign)
        shielded = live == protected
        if isinstance(rule, (KeepAll, TopK, Counts)):
            history = History(view.weights, net, n_steps, shielded, block, len(blocks))
            keep = rule.keep(history)
        else:
            keep = ~draw_drops(rule.scores(view), shielded, rule, rng)
        live, weights = live[keep], view.weights[keep]
    n_live.append(live.size)
    out = np.zeros(X.shape[1])
    out[live] = weights
    return ScreenedRun(out, live, tuple(n_live))


def _pick_vertex(gradient: np.ndarray, kappa: float, rng: np.random.Generator) -> tuple[int, float]:
    """(j, s) with probability proportional to exp(-kappa s G_j); the steepest if kappa is infinite."""
    d = gradient.size
    if math.isinf(kappa):
        j = int(np.abs(gradient).argmax())
        return j, 1.0 if gradient[j] <= 0 else -1.0
    scores = np.concatenate([-kappa * gradient, kappa * gradient])
    winner = int((scores + gumbel(rng, 2 * d)).argmax())
    return winner % d, 1.0 if winner < d else -1.0

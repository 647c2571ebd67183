"""Which features to drop: the rules of `screening.py`.

    free   `TopK`, `Counts`      see released `Block` only: post-processing, no charge
    paid   `Budgeted`, `Safe`    ask the rows; `draw_drops` is their exponential mechanism

| Khanna, Lu and Raff (2023) | here |
|---|---|
| Eq. (1), Raj et al. Theorem 11 | `rows/screening.py`; in plain floats `published/khanna_lu_raff_2023_screening.py` |
| Theorem 1 (false) | `sensitivity.raj_sensitivity` (true) |
| RNM with "if s_j < 0" | `draw_drops` with a null candidate |

Everything is in sums over rows: n enters `Safe` alone, through the public `n_samples`.
Proofs: docs/proofs/screening.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from dpsparse.domain import Domain
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Loss
from dpsparse.release import Releases
from dpsparse.rows import Point, Query, Rows
from dpsparse.sensitivity import RAJ_GRID, raj_sensitivity

DRAWS = "screening draws"  # the phase that pays
_EXACT_GRID = 2.0**-40  # of the sensitivity, where there is no noise
_HIGHEST = 2.0**61  # a null above all scores
SCARCE = 3  # features for each step from which on a useful one is rarely picked twice


def strong_convexity(loss: Loss, domain: Domain, radius: float) -> float:
    """Lower bound on the loss's second derivative while ||w||_1 <= radius."""
    found = loss.curvature(domain, radius)
    if found > 0.0:
        return found
    raise ParameterError(
        f"The rule of Raj et al. needs a strongly convex loss; {loss.name!r} is none. "
        "Use rule='counts', 'top-k' or 'budgeted'."
    )


# ---- rules ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """What a block released, for the features live in it. A free rule sees this and nothing else."""

    weights: np.ndarray
    net_counts: np.ndarray  # times picked with + minus times picked with -
    n_steps: int
    block: int
    n_blocks: int
    late_counts: np.ndarray | None = (
        None  # pick t = 0, 1, ... counts t + 2 times, as in the weights
    )


@dataclass(frozen=True)
class KeepAll:
    """No screening: plain Frank-Wolfe."""

    def keep(self, history: Block) -> np.ndarray:
        return np.ones(history.weights.size, dtype=bool)


@dataclass(frozen=True)
class TopK:
    """Free: the largest |w_j|. Between blocks the number kept falls geometrically to `n_nonzero`."""

    n_nonzero: int

    def keep(self, history: Block) -> np.ndarray:
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
    probability at most `level`. Where steps are so few that s = 2 leaves most of that chance
    unused and useful features are picked once, late single picks stay too (`late_threshold`).
    Later blocks only fit what is left: there uniform selection is what a good working set looks
    like, and testing against it again would drop true features.
    """

    level: float

    def keep(self, history: Block) -> np.ndarray:
        if history.block > 1:
            return np.ones(history.weights.size, dtype=bool)
        counts, n_features = np.abs(history.net_counts), history.weights.size
        keep = np.asarray(counts >= count_threshold(history.n_steps, n_features, self.level))
        late = late_threshold(history.n_steps, n_features, self.level)
        if late is not None and history.late_counts is not None:
            keep |= (counts == 1) & (np.abs(history.late_counts) >= late)
        return keep


def count_threshold(n_steps: int, n_features: int, level: float) -> int:
    """Smallest s with P(|N+ - N-| >= s) <= level for n_steps uniform picks of 2 n_features vertices."""
    s = 0
    while net_tail(n_steps, n_features, s) > level and s <= n_steps:
        s += 1
    return s


def net_tail(n_steps: int, n_features: int, s: int) -> float:
    """P(|N+ - N-| >= s) of one feature for n_steps uniform picks of 2 n_features vertices."""
    if s <= 0:
        return 1.0
    picks = np.arange(n_steps + 1)
    chance = binom.pmf(picks, n_steps, 1.0 / n_features)
    relevant = chance > 0.0
    picks, chance = picks[relevant], chance[relevant]
    # given N picks, N+ ~ Bin(N, 1/2): |2 N+ - N| >= s on two mirrored tails
    return float(chance @ (2.0 * binom.sf(np.ceil((picks + s) / 2.0) - 1, picks, 0.5)))


def late_threshold(n_steps: int, n_features: int, level: float) -> int | None:
    """Smallest late count from which a single pick stays, where the threshold is two and picks are few; else None.

    P(|net| >= 2) + P(|net| = 1 by three picks or more) + P(one pick, late) <= level, whatever the late counts of the
    second kind are.
    """
    if SCARCE * n_steps >= n_features or count_threshold(n_steps, n_features, level) != 2:
        return None
    once = float(binom.pmf(1, n_steps, 1.0 / n_features))
    left = level - (net_tail(n_steps, n_features, 1) - once)
    last = math.floor(n_steps * min(max(left / once, 0.0), 1.0))  # steps whose single picks stay
    return n_steps - last + 2 if last > 0 else None


@dataclass(frozen=True)
class Budgeted:
    """Paid: drop features of low A_j by the exponential mechanism against a null candidate.

    `n_drop` draws without replacement a block, stopping at the null. The null's score
    -log(m/level)/kappa, m live candidates, makes a draw take a feature with A_j >= 0 with
    probability at most `level`. One draw has range kappa * active_range.
    """

    n_drop: int
    level: float
    n_samples: int | None = None  # for the grid

    def query(self, rows: Rows, at: Point, n_live: int, exact: bool) -> tuple[Query, float]:
        """-A_j of the live features, and a grid for it."""
        screened = rows.screening(at)
        return screened.active(n_live), screened.unit(self.n_samples)


@dataclass(frozen=True)
class Safe:
    """Paid: the rule of Raj et al. for this radius, divided by max(n, n_samples).

    Same draws as `Budgeted`; one draw has range kappa * raj_range. Without noise it is the safe rule.
    """

    n_drop: int
    level: float
    smoothness: float
    strong_convexity: float
    n_samples: int

    def query(self, rows: Rows, at: Point, n_live: int, exact: bool) -> tuple[Query, float]:
        """Minus the scores of the live features, and a grid for them."""
        facts = (self.smoothness, self.strong_convexity, self.n_samples)
        moved = raj_sensitivity(
            at.radius, at.feature_bound, at.slope_bound, *facts, adjacency="add-remove"
        ).value
        grid = _EXACT_GRID if exact else RAJ_GRID
        return rows.screening(at).safe(n_live, *facts), grid * moved


FreeRule = KeepAll | TopK | Counts
PaidRule = Budgeted | Safe


def draw_drops(
    rule: PaidRule, rows: Rows, at: Point, n_live: int, releases: Releases
) -> np.ndarray:
    """Indices of dropped features: up to `n_drop` draws, ending where the null is drawn.

    Without noise every feature goes whose score is below zero: all that rank before a null of one unit.
    """
    if n_live == 0:
        return np.empty(0, np.int64)
    exact = releases.exact(DRAWS)
    query, unit = rule.query(rows, at, n_live, exact)
    if exact:
        return releases.top_k(DRAWS, query, n_live, unit, null=unit)
    null = math.log(n_live / rule.level) / releases.kappa(DRAWS, query.sensitivity)
    return releases.top_k(DRAWS, query, rule.n_drop, unit, null=min(null, _HIGHEST * unit))

"""Frank-Wolfe whose features leave the working set: free, paid and safe screening rules.

Papers: Khanna, Lu, Raff, "The Challenge of Differentially Private Screening Rules" (2023) and its anonymous sequel,
"Differentially Private Iterative Screening Rules for Linear Regression", both after Raj et al. (2016), Theorem 11.
The printed algorithms live in `published/`.

The run is cut into public blocks. Inside a block the exponential mechanism picks one signed
vertex a step among the live features; after a block a rule drops features for good:

    G = sum_i r_i x_i                                        sums, so 1/n never enters
    (j, s) ~ exp(-kappa s G_j)                               range 2 kappa c L (AR), 4 (RP)
    w <- (1 - step) w + step radius s e_j,  step = 2/(t+3)   t = 0, 1, ... over all blocks
    free      keep j by |w_j| or by its net signed count     post-processing, costs nothing
    paid      A_j = radius |G_j| + <w, G> < 0 drops j        exponential mechanism against a null
    safe      A_j + b (radius |x_(j)| + |Xw|) sqrt(gap/mu) < 0   Raj et al. for this radius

| symbol | variable | meaning |
|---|---|---|
| lambda | radius | L1 constraint |
| b, mu | smoothness, strong_convexity | bounds on the second derivative of the loss in the margin |
| gap | wolfe_gap | <w, G> + radius max_j |G_j| >= f(w) - f* |
| L | slope_bound | bound on a row's slope while ||w||_1 <= radius |
| c | feature_bound | bound on one entry of X |

A step costs what plain Frank-Wolfe costs on the live columns; a paid screening one pass more.
Deviations from the papers: Eq. (1) there is the rule for radius 1 and drops active features
elsewhere (`rescaled=False` keeps it for comparison); a null candidate replaces the comparison of a
noisy winner with 0, which report-noisy-max does not certify. Proofs: docs/proofs/screening.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpsparse.methods.frank_wolfe import History
from dpsparse.methods.frank_wolfe.scales import release_scales
from dpsparse.methods.frank_wolfe.screening_rules import (
    Block,
    Counts,
    FreeRule,
    KeepAll,
    PaidRule,
    TopK,
    draw_drops,
)
from dpsparse.methods.frank_wolfe.solve import Ball
from dpsparse.methods.frank_wolfe.steps import Steps
from dpsparse.methods.solution import Solution
from dpsparse.release import Releases
from dpsparse.rows import Point, Rows
from dpsparse.sensitivity import vertex_score_range

PICKS = "vertex selections"  # the phase that pays
GONE = -1  # name of a column that left


@dataclass(frozen=True)
class Screened:
    """The public side of a fit: a ball, the steps of its blocks, and the rule between them."""

    ball: Ball
    blocks: tuple[int, ...]
    rule: FreeRule | PaidRule

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        return solve(rows, self, releases)


@dataclass(frozen=True)
class ScreenedRun:
    """The released course of a run: picks, weights, and how many features were live when."""

    weights: np.ndarray  # over all columns; the intercept's weight comes last
    live: np.ndarray  # columns that survived
    n_live: tuple[int, ...]  # in each block, and after the last screening
    features: np.ndarray  # column picked at each step; GONE for a step back towards zero
    signs: np.ndarray


def solve(rows: Rows, public: Screened, releases: Releases) -> Solution:
    """Weights (1, d) and intercept (1,), zero where a feature was dropped."""
    if public.ball.scales is not None:
        mapped, ball, back = release_scales(rows, public.ball, public.ball.scales, releases)
        found = solve(mapped, replace(public, ball=ball), releases)
        coef, intercept = back(found.coef, found.intercept)
        return found._replace(coef=coef, intercept=intercept)
    run = screened_frank_wolfe(rows, public, releases)
    intercept = run.weights[-1:] * public.ball.feature_bound
    return Solution(run.weights[None, :-1], intercept, public.ball.n_iter, n_live=run.n_live)


def screened_frank_wolfe(rows: Rows, public: Screened, releases: Releases) -> ScreenedRun:
    """Blocks of private Frank-Wolfe steps, columns dropped for good after each.

    A dropped column leaves the rows: the next block is laid out without it, and the released
    picks are replayed on what is left.
    """
    ball, rule, d = public.ball, public.rule, rows.n_features
    live = np.arange(d)
    features, signs = np.zeros(0, np.int64), np.zeros(0, np.int64)
    n_live = []
    for block, n_steps in enumerate(public.blocks, start=1):
        part = rows if live.size == d else rows.columns(live)
        steps = next_steps(part, public, releases, live, d, features, signs)
        history = releases.vertices(PICKS, steps, n_steps)
        features, signs = _names(live, part.n_features, d)[history.features], history.signs
        n_live.append(live.size)
        if isinstance(rule, (KeepAll, TopK, Counts)):
            weights = history_weights(features, signs, ball.radius, d)
            net = np.zeros(d + 1, np.int64)  # the last place takes intercept and step-back picks
            np.add.at(net, features[-n_steps:], signs[-n_steps:])
            late = _counts(features, signs, d + 1)[live]
            keep = rule.keep(
                Block(weights[live], net[live], n_steps, block, len(public.blocks), late)
            )
            live = live[keep]
        else:
            live = np.delete(
                live, draw_drops(rule, part, _point(history, ball, live.size), live.size, releases)
            )
    n_live.append(live.size)
    weights = history_weights(features, signs, ball.radius, d)
    weights[np.setdiff1d(np.arange(d), live)] = 0.0
    return ScreenedRun(weights, live, tuple(n_live), features, signs)


def next_steps(
    part: Rows,
    public: Screened,
    releases: Releases,
    live: np.ndarray,
    n_features: int,
    features: np.ndarray,
    signs: np.ndarray,
) -> Steps:
    """Steps on the live columns that go on from released picks, given by the names of their columns.

    Picks of dropped columns become steps back towards zero: picks of a column without entries.
    """
    ball, width = public.ball, part.n_features
    # All kept rows of a person move the scores (docs/proofs/persons.md, Lemma 2).
    moved = partial(
        vertex_score_range, float(part.rows_per_unit), ball.slope_bound, ball.feature_bound
    )
    problem = ball.problem(releases.kappa(PICKS, moved), releases.number_of_rows(part))
    place = np.full(n_features + 2, live.size)  # the last place is that of GONE
    place[live], place[n_features] = np.arange(live.size), width
    past = History(
        place[features], np.zeros(len(signs), np.int64), signs, ball.radius, width, 1,
        ball.feature_bound,
    )  # fmt: skip
    return Steps(part, problem, past if len(signs) else None)


def history_weights(features: np.ndarray, signs: np.ndarray, radius: float, d: int) -> np.ndarray:
    """w_T = 2 radius/((T+1)(T+2)) sum_t (t+2) s_t e_{j_t}: steps 2/(t+3) from zero, in closed form."""
    n_iter = features.size
    return _counts(features, signs, d + 1) * (2.0 * radius / ((n_iter + 1.0) * (n_iter + 2.0)))


def _counts(features: np.ndarray, signs: np.ndarray, width: int) -> np.ndarray:
    """c = sum_t (t+2) s_t e_{j_t} in whole numbers; what was picked of columns that left is lost."""
    counts = np.zeros(width, np.int64)
    inside = features != GONE
    np.add.at(counts, features[inside], (signs * (np.arange(features.size) + 2))[inside])
    return counts


def _point(history: History, ball: Ball, n_live: int) -> Point:
    """The released weights on the columns of a part, for its scores."""
    counts = _counts(history.features, history.signs, history.n_features + 1)
    counts[n_live : history.n_features] = 0  # the column without entries
    return Point(
        counts, len(history.signs), ball.radius, ball.loss.name, ball.slope_bound,
        ball.feature_bound, ball.fit_intercept,
    )  # fmt: skip


def _names(live: np.ndarray, width: int, n_features: int) -> np.ndarray:
    """The released name of each column of a part: a live one's number, GONE, the intercept last."""
    names = np.full(width + 1, GONE)
    names[: live.size] = live
    names[width] = n_features
    return names

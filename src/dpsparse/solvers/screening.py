"""Frank-Wolfe whose features leave the working set: free, paid and safe screening rules.

Papers: Khanna, Lu, Raff, "The Challenge of Differentially Private Screening Rules" (000) and
"Differentially Private Iterative Screening Rules for Linear Regression" (001), both after Raj et
al. (2016), Theorem 11. The printed algorithms live in `published/`.

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

A step costs what `fast_frank_wolfe` costs on the live columns; a paid screening one pass more.
Deviations from the papers: Eq. (1) there is the rule for radius 1 and drops active features
elsewhere (`rescaled=False` keeps it for comparison); a null candidate replaces the comparison of a
noisy winner with 0, which report-noisy-max does not certify. Proofs: docs/proofs/screening.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse.domain import BoundedData
from dpsparse.losses import Loss
from dpsparse.random import gumbel
from dpsparse.solvers.frank_wolfe import History as Picks
from dpsparse.solvers.frank_wolfe import Problem, RowArrays, extend
from dpsparse.solvers.screening_rules import (
    BlockView,
    Counts,
    FreeRule,
    History,
    KeepAll,
    PaidRule,
    TopK,
    draw_drops,
)


@dataclass(frozen=True)
class ScreenedRun:
    """The released course of a run: picks, weights, and how many features were live when."""

    weights: np.ndarray  # over all columns; the intercept's weight comes last
    live: np.ndarray  # columns that survived
    n_live: tuple[int, ...]  # in each block, and after the last screening
    features: np.ndarray  # column picked at each step; -1 for a step back towards zero
    signs: np.ndarray


def screened_frank_wolfe(
    data: BoundedData,
    loss: Loss,
    rng: np.random.Generator,
    *,
    radius: float,
    kappa: float,
    resolution: int,
    blocks: Sequence[int],
    rule: FreeRule | PaidRule,
    fit_intercept: bool,
    fast: bool = True,
) -> ScreenedRun:
    """Run `blocks` of private Frank-Wolfe steps, dropping columns for good after each.

    A dropped column leaves the matrix: the next block is laid out without it, and the released
    picks are replayed on what is left. `fast=False` is the dense reference of the same law.
    """
    d = data.X.shape[1]
    live = np.arange(d)
    features, signs = np.zeros(0, np.int64), np.zeros(0, np.int64)
    n_live = []
    for block, n_steps in enumerate(blocks, start=1):
        # picks of dropped columns become steps back towards zero: a column without entries
        past = np.where(np.isin(features, np.append(live, d)), features, -1)
        part = data if live.size == d else _restrict(data, live)
        run = Block(past, signs, live, d, n_steps, radius, kappa, resolution, fit_intercept)
        features, signs = (_fast_block if fast else _reference_block)(part, loss, rng, run)
        n_live.append(live.size)
        weights = history_weights(features, signs, radius, d)
        if isinstance(rule, (KeepAll, TopK, Counts)):
            new = slice(features.size - n_steps, None)
            net = np.zeros(d + 1, np.int64)  # the last place takes intercept and step-back picks
            np.add.at(net, features[new], signs[new])
            keep = rule.keep(History(weights[live], net[live], n_steps, block, len(blocks)))
        else:
            columns = np.append(live, d) if fit_intercept else live
            X = _with_intercept(part, live.size, fit_intercept)
            assert data.y is not None
            view = BlockView(X, data.y, loss, weights[columns], radius)
            keep = ~draw_drops(rule.scores(view)[: live.size], rule, rng)
        live = live[keep]
    n_live.append(live.size)
    dropped = np.setdiff1d(np.arange(d), live)
    weights[dropped] = 0.0
    return ScreenedRun(weights, live, tuple(n_live), features, signs)


def history_weights(features: np.ndarray, signs: np.ndarray, radius: float, d: int) -> np.ndarray:
    """w_T = 2 radius/((T+1)(T+2)) sum_t (t+2) s_t e_{j_t}: steps 2/(t+3) from zero, in closed form."""
    n_iter = features.size
    weights = np.zeros(d + 1)
    inside = features >= 0
    np.add.at(weights, features[inside], (signs * (np.arange(n_iter) + 2.0))[inside])
    return weights * (2.0 * radius / ((n_iter + 1.0) * (n_iter + 2.0)))


@dataclass(frozen=True)
class Block:
    """Public side of one block: released picks so far, live columns, how to go on."""

    features: np.ndarray
    signs: np.ndarray
    live: np.ndarray
    n_features: int  # before any screening; also the name of the intercept
    n_steps: int
    radius: float
    kappa: float
    resolution: int
    fit_intercept: bool

    def names(self, width: int) -> np.ndarray:
        """The released name of each column of the restricted matrix, the intercept last."""
        names = np.full(width + 1, -1)
        names[: self.live.size] = self.live
        names[width] = self.n_features
        return names


def _restrict(data: BoundedData, live: np.ndarray) -> BoundedData:
    """The live columns and a last one without entries: the vertex 0 for picks that left."""
    X = data.X[:, live]
    X = sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], live.size + 1))
    return BoundedData(X, data.y, data.domain)


def _with_intercept(data: BoundedData, n_live: int, fit_intercept: bool) -> sp.csr_array:
    """The live columns and, if asked, the public constant column of the ball."""
    X = data.X[:, :n_live]
    if not fit_intercept:
        return X
    bound = data.domain.require("feature_bound", "Screening")
    return sp.csr_array(sp.hstack([X, sp.csr_array(np.full((X.shape[0], 1), bound))]))


def _fast_block(
    data: BoundedData, loss: Loss, rng: np.random.Generator, run: Block
) -> tuple[np.ndarray, np.ndarray]:
    """Replay the released picks on the live columns, then draw on; cost of fast_frank_wolfe."""
    done, width = run.features.size, data.X.shape[1]
    problem = Problem(
        loss=loss,
        radius=run.radius,
        n_iter=done + run.n_steps,
        kappa=run.kappa,
        slope_bound=loss.slope_bound(data.domain, run.radius),
        resolution=run.resolution,
        feature_bound=float(data.domain.require("feature_bound", "Screening")),
        fit_intercept=run.fit_intercept,
    )
    names = run.names(width)
    place = {name: column for column, name in enumerate(names)}
    past = np.array([place[name] for name in run.features], dtype=np.int64)
    none = np.zeros(done, np.int64)
    released = Picks(past, none, run.signs, run.radius, width, 1, problem.feature_bound)
    picks = extend(RowArrays.of(data), problem, released, run.n_steps, rng)
    return names[picks.features], picks.signs


def _reference_block(
    data: BoundedData, loss: Loss, rng: np.random.Generator, run: Block
) -> tuple[np.ndarray, np.ndarray]:
    """The same law step by step: exact gradient, Gumbel noise, weights from the history."""
    width = data.X.shape[1]
    X: Any = _with_intercept(data, width, run.fit_intercept)
    if 3 * X.nnz > X.shape[0] * X.shape[1]:
        X = X.toarray()  # BLAS passes over a dense table are three times faster
    names = run.names(width)
    place = {name: column for column, name in enumerate(names[: X.shape[1]])}
    picks = [place[name] for name in run.features]
    signs = list(run.signs)
    assert data.y is not None
    # a tall dense table and the squared loss: G = X'Xw - X'y, and a step no longer sees the rows
    moments = loss.name == "squared" and not sp.issparse(X) and X.shape[1] < 4 * run.n_steps
    gram, target = (X.T @ X, data.y @ X) if moments and X.shape[1] < X.shape[0] else (None, None)
    for _ in range(run.n_steps):
        weights = history_weights(np.array(picks, int), np.array(signs), run.radius, X.shape[1])
        if gram is None:
            gradient = loss.slope(X @ weights[:-1], data.y) @ X
        else:
            gradient = gram @ weights[:-1] - target
        j, sign = _pick_vertex(gradient, run.kappa, rng)
        picks.append(j)
        signs.append(sign)
    return names[np.array(picks, int)], np.array(signs, np.int64)


def _pick_vertex(gradient: np.ndarray, kappa: float, rng: np.random.Generator) -> tuple[int, int]:
    """(j, s) with probability proportional to exp(-kappa s G_j); the steepest if kappa is infinite."""
    if math.isinf(kappa):
        j = int(np.abs(gradient).argmax())
        return j, 1 if gradient[j] <= 0 else -1
    scores = kappa * np.concatenate([-gradient, gradient])
    winner = int((scores + gumbel(rng, scores.size)).argmax())
    return winner % gradient.size, 1 if winner < gradient.size else -1

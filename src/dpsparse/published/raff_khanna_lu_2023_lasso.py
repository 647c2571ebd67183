"""Scaling Up Differentially Private LASSO via Faster Frank-Wolfe as printed (Raff, Khanna and Lu, NeurIPS 2023).

    Alg. 2   j ~ exp(kappa |alpha_j|);   w <- (1 - step) w - step radius sign(alpha_j) e_j,   step = 2/(t+2)
             alpha is refreshed from the rows that own feature j alone
    Alg. 4   the draw, in sqrt(D) groups: a big step over groups, a little step inside one

NOT PRIVATE. Only the index is drawn: the sign of the chosen gradient is read off the rows, which gives labels away at
any noise level. Rows that do not own j keep stale slopes although the shrinking weights move every margin, so Alg. 2
is not Alg. 1. Both are kept, because they are what the paper states. Repaired: line 20 of Alg. 2 lacks a plus, lines 24
and 25 index q by j for i, the output is w_m * w.

Alg. 4 to the letter never returns (tests/published/test_published_frank_wolfe.py). `big_step_little_step` is its
repaired form, a valid sampler (A-ExpJ of Efraimidis and Spirakis 2006). Repaired: it starts at item 1, groups are `div`
and not `mod`, line 11 moves to the next group, the bracket of line 21 is exp(w log T), the offset is that of the group
at hand. A threshold below zero in line 4 is no fault: it is the logarithm of a key. Running log-sums (lines 34 and 35)
lose all digits when a large item shrinks; a group is added up anew then.

    draw="printed"   Alg. 2 + 4, repaired
    draw="scan"      Alg. 2 alone: Gumbel noise on every feature
    draw="reject"    the same law by rejection, for nearly uniform draws: nothing is kept beside alpha

Alg. 3, which has no noise, is in experiments/lab/papers/operations.py.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse.jit import njit
from dpsparse.losses import Logistic
from dpsparse.methods.base import BaseDPClassifier
from dpsparse.published._base import PublishedBall

_jit = njit(cache=True)
_sampler = njit(cache=True, error_model="numpy")


def stale_lasso(
    X: Any,
    y: np.ndarray,
    rng: np.random.Generator,
    *,
    radius: float,
    n_iter: int,
    kappa: float,
    draw: str = "printed",
) -> np.ndarray:
    """Weights of Alg. 2 for the logistic loss with labels 0 and 1; `draw` is "printed", "scan" or "reject". `kappa` is
    per unit of the sum of slope times entry; infinity takes the largest."""
    rows, columns = X.tocsr(), X.tocsc()
    d = X.shape[1]
    top = float(abs(columns).sum(axis=0).max()) if draw == "reject" else 0.0
    alpha = np.asarray(columns.T @ (0.5 - y), np.float64)
    weights = np.zeros(d)
    side = max(1, math.isqrt(d)) if draw == "printed" and kappa < math.inf else 0
    _run(
        *(rows.indptr, rows.indices, rows.data), *(columns.indptr, columns.indices, columns.data),
        alpha, np.full(X.shape[0], 0.5), np.zeros(X.shape[0]), weights, radius, n_iter, kappa, side, top, rng,
    )  # fmt: skip
    return weights


@_jit
def _scan(alpha, kappa, top, rng):
    """j with probability proportional to e^{kappa |alpha_j|}; the largest where kappa is infinite. A bound `top` on all
    |alpha_j| above 0 draws by rejection, which takes e^{kappa top} proposals on average at most."""
    while top > 0.0:
        j = int(rng.random() * alpha.size)
        if rng.random() < math.exp(kappa * (abs(alpha[j]) - top)):
            return j
    best, largest = 0, -np.inf
    for j in range(alpha.size):
        key = abs(alpha[j])
        if kappa < np.inf:
            key = kappa * key - math.log(-math.log(1.0 - rng.random()))
        if key > largest:
            best, largest = j, key
    return best


@_jit
def add_up_groups(v, side, c):
    """Log-sums of all groups, and the largest log-weight, which takes the place of z: only ratios matter."""
    largest = v.max()
    for g in range(c.size):
        total = 0.0
        for j in range(g * side, min((g + 1) * side, v.size)):
            total += math.exp(v[j] - largest)
        c[g] = largest + math.log(total)
    return largest


@_sampler
def big_step_little_step(v, c, z, side, rng):
    """Alg. 4, GETNEXT, repaired: j with probability proportional to e^{v_j}; `c` has log-sums of groups of `side`."""
    tiny = 1e-300  # of the largest weight: what underflows stays possible
    j, spent, at = 0, max(math.exp(v[0] - z), tiny), 1  # spent: weight of the group that was passed
    log_key = math.log(1.0 - rng.random()) / spent  # line 4
    if side == 1:
        spent = 0.0
    while at < v.size:
        jump = math.log(1.0 - rng.random()) / log_key  # line 7: the weight to pass
        while at < v.size:
            end = min((at // side + 1) * side, v.size)
            rest = math.exp(c[at // side] - z) - spent
            if rest < jump:  # a big step
                jump, at, spent = jump - rest, end, 0.0
                continue
            while at < end and math.exp(v[at] - z) < jump:  # little steps
                jump -= math.exp(v[at] - z)
                spent += math.exp(v[at] - z)
                at += 1
            if at < end:
                break
            spent = 0.0  # rounding: the sum of a group is not that of its members to the last digit
        if at >= v.size:
            break
        j, weight = at, max(math.exp(v[at] - z), tiny)
        least = math.exp(weight * log_key)  # line 21
        log_key = math.log(least + (1.0 - least) * (1.0 - rng.random())) / weight
        at, spent = at + 1, spent + weight
        if at % side == 0:
            spent = 0.0
    return j


@_jit
def update_weight(v, c, side, i, value):
    """Alg. 4, UPDATE, line 34; the group is added up anew where the difference would lose its digits."""
    g = i // side
    left = 1.0 - math.exp(v[i] - c[g])
    v[i] = value
    if left > 1e-3:
        higher = max(value, c[g])  # an item may rise far above its group
        c[g] = higher + math.log(left * math.exp(c[g] - higher) + math.exp(value - higher))
        return
    start, stop = g * side, min((g + 1) * side, v.size)
    largest, total = v[start:stop].max(), 0.0
    for j in range(start, stop):
        total += math.exp(v[j] - largest)
    c[g] = largest + math.log(total)


@_jit
def _run(
    row_at, row_columns, row_values, column_at, column_rows, column_values, alpha, slopes, margin,
    w, radius, n_iter, kappa, side, top, rng,
):  # fmt: skip
    """Alg. 2 on the arrays it changes. Without groups (`side` 0) `_scan` draws."""
    scale, z = 1.0, 0.0  # scale: w_m
    v = kappa * np.abs(alpha) if side else np.empty(0)
    c = np.empty((alpha.size - 1) // side + 1 if side else 0)
    if side:
        z = add_up_groups(v, side, c)
    for t in range(1, n_iter + 1):
        j = big_step_little_step(v, c, z, side, rng) if side else _scan(alpha, kappa, top, rng)
        step = 2.0 / (t + 2.0)
        move = -step * radius * np.sign(alpha[j])  # line 16: the exact sign
        scale *= 1.0 - step
        w[j] += move / scale
        for p in range(column_at[j], column_at[j + 1]):  # lines 22-28
            i = column_rows[p]
            margin[i] += move * column_values[p] / scale
            slope = 1.0 / (1.0 + math.exp(-scale * margin[i]))
            change = slope - slopes[i]
            if change == 0.0:  # a saturated row: nothing would be added to its features
                continue
            slopes[i] = slope
            for q in range(row_at[i], row_at[i + 1]):
                k = row_columns[q]
                alpha[k] += change * row_values[q]
                if side:
                    update_weight(v, c, side, k, kappa * abs(alpha[k]))
        if side:
            z = c.max()
    w *= scale


@dataclass(eq=False, repr=False, kw_only=True)
class RaffKhannaLuLassoClassifier(BaseDPClassifier, PublishedBall):
    """NOT PRIVATE. Frank-Wolfe on the L1 ball (Raff, Khanna and Lu 2023), logistic loss, as printed.

    The sign of every chosen gradient is read off the rows, which gives back the label of a row that owns a feature, at
    any epsilon. `DPLassoClassifier` is the proven form.

    Parameters
    ----------
    domain : Domain
        Needs `classes`.
    epsilon, delta : float
        What the noise is computed from; the guarantee says infinity. ``epsilon=math.inf`` takes the largest gradient.
    radius : float or None, default=None
        L1 norm of the weights. None: ``10 / feature_bound``.
    n_iter : int, default=100
        Steps.
    fit_intercept : bool, default=True
        Add a constant column inside the ball.
    adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Neighbours, account and noise of the fit.
    """

    _paper = "Raff, Khanna and Lu (2023), Algorithm 2"

    def _constants(self, n_features: int, n_outputs: int) -> dict[str, Any]:
        domain = self._clipping(n_features)
        bound = domain.entry_bound()
        radius = self._radius(bound)
        # The paper's epsilon' of a step by advanced composition, over twice the sensitivity of a gradient.
        share = self.epsilon / math.sqrt(8.0 * self.n_iter * math.log(1.0 / self.delta))
        return {
            "radius": radius,
            "kappa": share / (2.0 * bound * Logistic().slope_bound(domain, radius)),
            "feature_bound": bound,
        }

    def _fit_printed(
        self, X: Any, y: np.ndarray, printed: dict[str, Any], rng: np.random.Generator
    ) -> np.ndarray:
        radius, kappa = printed["radius"], printed["kappa"]
        return stale_lasso(X, y, rng, radius=radius, n_iter=self.n_iter, kappa=kappa)

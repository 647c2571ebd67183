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
    draw="groups"    our groups of whole numbers, W_j = ceil(2^B e^{kappa (|alpha_j| - top)}): propose j ~ W_j, accept
                     with e^{kappa (|alpha_j| - top)} 2^B / W_j

Alg. 3, which has no noise, is in experiments/lab/papers/operations.py.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse.exceptions import InternalError
from dpsparse.jit import njit
from dpsparse.losses import Logistic
from dpsparse.methods.base import BaseDPClassifier
from dpsparse.published._base import Printed, PublishedBall, with_constant_column

B = 24  # 2^24 a feature: sums over fewer than 2^29 features stay below 2^53
PATIENCE = 10_000  # rejections before the weights are taken anew

_jit = njit(cache=True)
_sampler = njit(cache=True, error_model="numpy")
LEAST = 1e-300  # of the largest weight: what underflows stays possible


def stale_lasso(
    X: Any,
    y: np.ndarray,
    rng: np.random.Generator,
    *,
    radius: float,
    n_iter: int,
    kappa: float,
    draw: str = "groups",
) -> np.ndarray:
    """Weights of Alg. 2 for the logistic loss with labels 0 and 1; `draw` is "groups", "printed" or "scan". `kappa` is
    per unit of the sum of slope times entry; infinity takes the largest."""
    rows, columns = X.tocsr(), X.tocsc()
    d = X.shape[1]
    alpha = np.asarray(columns.T @ (0.5 - y), np.float64)
    weights, moved = np.zeros(d), np.zeros(X.shape[0])
    side = max(1, math.isqrt(d)) if draw != "scan" and kappa < math.inf else 0
    run = _run_printed if draw == "printed" and side else _run
    done = run(
        *(rows.indptr, rows.indices, rows.data), *(columns.indptr, columns.indices, columns.data),
        alpha, np.full(X.shape[0], 0.5), moved, weights, radius, n_iter, kappa, side, rng,
    )  # fmt: skip
    if not done:
        raise InternalError("A feature cannot be drawn with its probability. This is a bug.")
    return weights


@_jit
def _weight(size, kappa, top):
    # 1 + 1e-9 covers the error of exp: the weight is never below the envelope.
    return max(1, np.int64(math.ceil(2.0**B * math.exp(-kappa * (top - size)) * (1.0 + 1e-9))))


@_jit
def _weigh_all(alpha, weights, sums, side, kappa):
    """All weights and group sums; returns the top, with room to rise by a factor e^2 below it."""
    top = np.abs(alpha).max() + 2.0 / kappa
    sums[:] = 0
    for j in range(alpha.size):
        weights[j] = _weight(abs(alpha[j]), kappa, top)
        sums[j // side] += weights[j]
    return top


@_jit
def _draw(alpha, weights, sums, side, kappa, top, rng):
    """A feature; -1 after too many rejections, -2 where one would be accepted with a probability above one."""
    total = sums.sum()
    limit = ((1 << 53) // total) * total
    for _ in range(PATIENCE):
        r = np.int64(rng.random() * 2.0**53)
        if r >= limit:
            continue
        r %= total
        b = 0
        while r >= sums[b]:  # big steps
            r -= sums[b]
            b += 1
        j = b * side
        while r >= weights[j]:  # little steps
            r -= weights[j]
            j += 1
        share = 2.0**B * math.exp(-kappa * (top - abs(alpha[j])))
        if share > weights[j]:
            return -2
        if rng.random() * weights[j] < share:
            return j
    return -1


@_jit
def _scan(alpha, kappa, rng):
    """The same law by Gumbel noise on every feature; the largest where kappa is infinite."""
    best, largest = 0, -np.inf
    for j in range(alpha.size):
        key = abs(alpha[j])
        if kappa < np.inf:
            key = kappa * key - math.log(-math.log(1.0 - rng.random()))
        if key > largest:
            best, largest = j, key
    return best


@_jit
def _run(
    row_at, row_columns, row_values, column_at, column_rows, column_values, alpha, slopes, margin,
    w, radius, n_iter, kappa, side, rng,
):  # fmt: skip
    """Alg. 2 on the arrays it changes; False if a draw failed. Without groups (`side` 0) every feature gets noise."""
    scale, top = 1.0, 0.0  # w_m
    weights = np.zeros(alpha.size if side else 0, np.int64)
    sums = np.zeros(alpha.size // side + 1 if side else 0, np.int64)
    if side:
        top = _weigh_all(alpha, weights, sums, side, kappa)
    for t in range(1, n_iter + 1):
        j = -1 if side else _scan(alpha, kappa, rng)
        while j < 0:
            j = _draw(alpha, weights, sums, side, kappa, top, rng)
            if j == -2:
                return False
            if j == -1:
                top = _weigh_all(alpha, weights, sums, side, kappa)
        step = 2.0 / (t + 2.0)
        move = -step * radius * np.sign(alpha[j])  # line 16: the exact sign
        scale *= 1.0 - step
        w[j] += move / scale
        high = top
        for p in range(column_at[j], column_at[j + 1]):  # lines 22-28
            i = column_rows[p]
            margin[i] += move * column_values[p] / scale
            slope = 1.0 / (1.0 + math.exp(-scale * margin[i]))
            change = slope - slopes[i]
            slopes[i] = slope
            for q in range(row_at[i], row_at[i + 1]):
                k = row_columns[q]
                alpha[k] += change * row_values[q]
                high = max(high, abs(alpha[k]))
        if side and high > top:  # a feature rose above all weights
            top = _weigh_all(alpha, weights, sums, side, kappa)
        elif side:
            for p in range(column_at[j], column_at[j + 1]):  # line 29
                i = column_rows[p]
                for q in range(row_at[i], row_at[i + 1]):
                    k = row_columns[q]
                    weight = _weight(abs(alpha[k]), kappa, top)
                    sums[k // side] += weight - weights[k]
                    weights[k] = weight
    w *= scale
    return True


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
    j, spent, at = (
        0,
        max(math.exp(v[0] - z), LEAST),
        1,
    )  # spent: weight of the group that was passed
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
        j, weight = at, max(math.exp(v[at] - z), LEAST)
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
def _run_printed(
    row_at, row_columns, row_values, column_at, column_rows, column_values, alpha, slopes, margin,
    w, radius, n_iter, kappa, side, rng,
):  # fmt: skip
    """Alg. 2 with Alg. 4, repaired."""
    scale, v = 1.0, kappa * np.abs(alpha)
    c = np.empty((alpha.size - 1) // side + 1)
    z = add_up_groups(v, side, c)
    for t in range(1, n_iter + 1):
        j = big_step_little_step(v, c, z, side, rng)
        step = 2.0 / (t + 2.0)
        move = -step * radius * np.sign(alpha[j])  # line 16: the exact sign
        scale *= 1.0 - step
        w[j] += move / scale
        for p in range(column_at[j], column_at[j + 1]):  # lines 22-28
            i = column_rows[p]
            margin[i] += move * column_values[p] / scale
            slope = 1.0 / (1.0 + math.exp(-scale * margin[i]))
            change = slope - slopes[i]
            slopes[i] = slope
            for q in range(row_at[i], row_at[i + 1]):
                k = row_columns[q]
                alpha[k] += change * row_values[q]
                update_weight(v, c, side, k, kappa * abs(alpha[k]))
        z = c.max()
    w *= scale
    return True


@dataclass(frozen=True, kw_only=True)
class LassoConstants(Printed):
    """What one fit uses."""

    radius: float
    kappa: float
    feature_bound: float


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
    adjacency : {"add-remove", "replace-one"}
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int, default=0
        1 tells every phase with its seconds, 0 shows a line on a terminal while a fit takes long, -1 nothing.
    """

    def _constants(self, n_features: int, n_outputs: int) -> LassoConstants:
        domain = self._clipping(n_features)
        bound = domain.entry_bound()
        radius = self._radius(bound)
        # The paper's epsilon' of a step by advanced composition, over twice the sensitivity of a gradient.
        share = self.epsilon / math.sqrt(8.0 * self.n_iter * math.log(1.0 / self.delta))
        return LassoConstants(
            n_outputs=n_outputs,
            n_iter=self.n_iter,
            radius=radius,
            kappa=share / (2.0 * bound * Logistic().slope_bound(domain, radius)),
            feature_bound=bound,
        )

    def _paper(self, printed: Any) -> str:
        return "Raff, Khanna and Lu (2023), Algorithm 2"

    def _fit_printed(
        self, X: Any, y: np.ndarray, printed: LassoConstants, rng: np.random.Generator
    ) -> tuple[np.ndarray, float]:
        d, bound = X.shape[1], printed.feature_bound
        w = stale_lasso(
            with_constant_column(X, bound) if self.fit_intercept else X, y, rng,
            radius=printed.radius, n_iter=printed.n_iter, kappa=printed.kappa,
        )  # fmt: skip
        return w[:d], float(w[d] * bound) if self.fit_intercept else 0.0

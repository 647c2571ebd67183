"""DPSL-KT (Wang and Gu 2020): support, teacher on it, direct release or distillation.

    b0    = private prior of the margin (log-odds or mean target)            proven form only
    G_t   = sum_i slope_i x_i at theta_t;   S_t = Gumbel top-s of |n0/step theta_t - G_t|
    theta_{t+1} = noisy values of theta_t - step/n0 G_t on S_t               (peeling, T rounds)
    theta^ = argmin of the ridge problem on S = S_T                          the teacher
    release theta^ + N(0, scale^2 I), or y~ = X~ theta^ + N(0, (|X~|_op scale)^2 I) and a student

| symbol | variable | meaning |
|---|---|---|
| s, s* | n_nonzero | size of the support |
| T | n_iter | rounds of peeling; the last one releases its support only |
| X~ | public_rows | public features on the support |
| m | n_public | number of public rows |

Cost: T passes over the non-zeros, then the fit on s columns. Deviation: Algorithm 1 of the paper
releases the answers of a non-private teacher whose support may switch when one row changes, so its
Theorem 4.3 and Corollary 4.7 are false; `published/wang_gu_2020_transfer.py` keeps it for reproduction.
Proofs and counterexample: docs/proofs/transfer.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit

from dpsparse.domain import BoundedData
from dpsparse.losses import Loss
from dpsparse.random import gaussian
from dpsparse.selection.top_k import gumbel_top_k


def private_prior(
    y: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    scale: float,
    n_samples: int,
    bound: float,
) -> float:
    """A margin for all rows: clipped log-odds of noisy counts, or the noisy mean target.

    Counts (n+, n-) move by 1 in L2 when a row is added, by sqrt 2 when one is replaced; the sum of
    the targets by `bound`, or twice that.
    """
    if loss.name == "logistic":
        positive = float(np.count_nonzero(y == 1))
        counts = np.array([positive, len(y) - positive]) + gaussian(rng, scale, 2)
        plus, minus = np.maximum(counts, 0.01 * n_samples)
        return math.log(plus / minus)
    total = np.array([np.sum(y)]) + gaussian(rng, scale, 1)
    return min(bound, max(-bound, float(total[0]) / n_samples))


def slope_bound_at(loss: Loss, margin: float, target_bound: float) -> float:
    """Largest |slope| of any row whose margin is known to be `margin`."""
    if loss.name == "logistic":
        return float(expit(abs(margin)))
    return float(loss.slope(np.array([-abs(margin)]), np.array([target_bound]))[0] * -1.0)


def peel_support(
    data: BoundedData,
    y: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    n_nonzero: int,
    n_iter: int,
    eta: float,
    value_ratio: float,
    step: float,
    n_samples: int,
    prior: float,
    replace_one: bool,
) -> np.ndarray:
    """A private support by `n_iter` rounds of peeling from the margin `prior`.

    One row moves each |v_j| by D = slope bound * feature_bound (twice for replace-one). With
    kappa = eta/(2 D) every pick has range `eta`; values get noise of `value_ratio` times their
    L2 sensitivity. D shrinks while the slope bound of the released weights does.
    """
    X, domain = data.X, data.domain
    feature_bound = float(domain.require("feature_bound", "Peeling"))
    target_bound = domain.target_bound or 0.0
    twice = 2.0 if replace_one else 1.0
    theta = np.zeros(X.shape[1])
    support = np.empty(0, dtype=np.intp)
    for t in range(n_iter):
        reach = abs(prior) + feature_bound * float(np.abs(theta).sum())
        bound = slope_bound_at(loss, reach, target_bound)
        moved = twice * bound * feature_bound
        gradient = X.T @ loss.slope(X[:, support] @ theta[support] + prior, y)
        target = n_samples / step * theta - gradient
        kappa = eta / (2.0 * moved) if math.isfinite(eta) else math.inf
        support = gumbel_top_k(np.abs(target), n_nonzero, kappa, rng)
        if t < n_iter - 1:
            norm = min(math.sqrt(len(support)) * feature_bound, domain.row_norm or math.inf)
            scale = value_ratio * twice * bound * norm
            theta = np.zeros(X.shape[1])
            values = target[support] + gaussian(rng, scale, len(support))
            theta[support] = step / n_samples * values
    return support


def distil(
    teacher: np.ndarray, public_rows: np.ndarray, rng: np.random.Generator, *, scale: float
) -> np.ndarray:
    """A student of the teacher's noisy answers on public rows (the constant is the last column).

    Moving the teacher by D moves the answers by at most |public_rows|_op D, so noise of that
    many `scale` costs what direct release with `scale` costs. The student sees answers only.
    """
    operator_norm = float(np.linalg.norm(public_rows, 2))
    answers = public_rows @ teacher + gaussian(rng, operator_norm * scale, len(public_rows))
    return np.asarray(np.linalg.lstsq(public_rows, answers, rcond=None)[0])

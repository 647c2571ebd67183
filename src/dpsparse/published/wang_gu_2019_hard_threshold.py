"""DP-IGHT as later papers implement it (Wang and Gu, IJCAI 2019): noisy gradients, hard thresholding.

    theta <- H_s(theta - step (mean gradient + N(0, T G^2/(n^2 rho) I)))            T rounds
    rho    = epsilon + 2 l - 2 sqrt(l (epsilon + l)),   l = log(1/delta)

G bounds the L2 norm of every row's gradient; the paper assumes it, nobody enforces it here. The noise is
enough under add-remove if G is a true bound (rho is zCDP, at the paper's own conversion), and worth
nothing if it is not. The paper itself is not among ours. `DPHardThreshold*` clips rows to G.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpsparse.losses import Loss
from dpsparse.published.wang_gu_2020_transfer import Steps, alone


def concentrated(epsilon: float, delta: float) -> float:
    """rho: the zCDP that (epsilon, delta) buys by the printed conversion."""
    log = math.log(1.0 / delta)
    return epsilon + 2.0 * log - 2.0 * math.sqrt(log * (epsilon + log))


def private_hard_threshold(
    X: Any,
    y: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    n_nonzero: int,
    n_iter: int,
    step: float,
    epsilon: float,
    delta: float,
    gradient_bound: float,
) -> np.ndarray:
    """theta after `n_iter` rounds; `epsilon=math.inf` adds no noise."""
    scale = noise_scale(X.shape[0], n_iter, epsilon, delta, gradient_bound)
    noise = (scale * rng.standard_normal(X.shape[1]) for _ in range(n_iter))
    return alone(X, threshold_steps(X.shape, y, loss, noise, n_nonzero=n_nonzero, step=step))


def noise_scale(n: int, n_iter: int, epsilon: float, delta: float, gradient_bound: float) -> float:
    """Standard deviation of the noise on every entry of the mean gradient."""
    if math.isinf(epsilon):
        return 0.0
    return math.sqrt(n_iter / concentrated(epsilon, delta)) * gradient_bound / n


def threshold_steps(
    shape: tuple[int, int],
    y: np.ndarray,
    loss: Loss,
    noise: Iterable[np.ndarray],
    *,
    n_nonzero: int,
    step: float,
) -> Steps:
    """The rounds, one for each draw of `noise`, with their products left to the caller."""
    n, d = shape
    theta = np.zeros(d)
    for drawn in noise:
        gradient = (yield True, loss.slope((yield False, theta), y)) / n
        moved = theta - step * (gradient + drawn)
        theta = np.zeros(d)
        kept = np.argpartition(-np.abs(moved), min(n_nonzero, d) - 1)[:n_nonzero]
        theta[kept] = moved[kept]
    return theta

"""Iterative gradient hard thresholding: IGHT, DP-IGHT and peeling.

Papers: Jain, Tewari, Kar 2014 (IGHT); Wang, Gu 2019 (DP-IGHT, as in paper 003); Cai, Wang, Zhang 2021
(peeling; here with one-shot Gumbel noise).

    IGHT      theta <- H_s((1 - step ridge) theta - step/n sum_i g_i)     H_s keeps the s largest
    gaussian  g_i clipped to ||g_i||_2 <= C, noise of sd `scale` on every entry of the sum
    peeling   S = Gumbel top-s of |theta_j - step/n sum_i g_ij|, Gaussian noise on the values of S

| symbol | variable | meaning |
|---|---|---|
| s | n_nonzero | weights kept, all classes together |
| T | n_iter | steps: a privacy parameter |
| C | row_clip | L2 bound on the gradient of a row |
| kappa | kappa | inverse temperature of the selection, per unit of the sum of gradients |

A step costs two passes over the non-zeros and one noise value a feature. Deviations: n is declared or
released, never read; the offset is a released class prior (or mean) and not a column; rows are clipped
where the papers assume a bound. Proofs: docs/proofs/noisy_gradient.md (gaussian), peeling.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsparse.random import gaussian
from dpsparse.selection.top_k import gumbel_top_k
from dpsparse.solvers._noise import SHRINK
from dpsparse.solvers.gradient import Run
from dpsparse.sparsify import top_k


@dataclass(frozen=True)
class Threshold:
    """Public numbers of a run; budgets are sensitivity over noise sd (inf: no noise)."""

    method: str  # "gaussian" or "peeling"
    n_nonzero: int
    n_iter: int
    step: float | None
    ridge: float
    row_clip: float  # L2 bound on x of a row, times the largest slope counted
    budget: float  # of all steps together
    eta: float = math.inf  # peeling: range of one pick
    feature_bound: float = math.inf
    signed: float = 1.0  # 2 under replace-one


def hard_threshold(run: Run, public: Threshold) -> tuple[np.ndarray, np.ndarray]:
    """Weights (K, d) and offsets (K,); `run` has released its prior already."""
    lengths = run.sums.lengths(np.ones(run.width, dtype=np.float32))
    theta = np.zeros((run.width, run.n_outputs), dtype=np.float32)
    step = public.step or default_step(public, run.n, curvature(run))
    decay = 1.0 - step * public.ridge
    for _ in range(public.n_iter):
        slopes = full_slopes(run, run.sums.margins(theta) + run.offset)
        if public.method == "peeling":
            theta = peel(run, public, theta, slopes, step / run.n, decay)
        else:
            norms = lengths * np.sqrt(np.square(slopes).sum(axis=1))
            limit = public.row_clip * slope_unit(run)
            slopes = slopes * (SHRINK * limit / np.maximum(norms, limit))[:, None]
            scale = public.signed * limit * math.sqrt(public.n_iter) / public.budget
            ones = np.ones(run.width, dtype=np.float32)
            run.sums.pull(slopes, ones, scale, theta, decay, -step / run.n)
            theta = top_k(theta, public.n_nonzero)
    return np.ascontiguousarray(theta.T.astype(np.float64)), run.offset


def peel(
    run: Run,
    public: Threshold,
    theta: np.ndarray,
    slopes: np.ndarray,
    gain: float,
    decay: float,
) -> np.ndarray:
    """One round: select with Gumbel noise, release the values of the selected only."""
    # In float32 a value of many rows would round by more than one of them moves it.
    values = theta.astype(np.float64)
    run.sums.pull(slopes, np.ones(run.width, dtype=np.float32), 0.0, values, decay, -gain)
    flat = values.reshape(-1)
    moved = public.signed * gain * public.feature_bound * slope_unit(run)  # of one entry, Linf
    kappa = public.eta / (2.0 * moved)
    chosen = gumbel_top_k(np.abs(flat), public.n_nonzero, kappa, run.rng)
    # a row moves the chosen entries by sqrt(s) times that, and by its clipped norm at most
    spread = min(
        math.sqrt(len(chosen)) * moved, public.signed * gain * public.row_clip * vector_unit(run)
    )
    scale = spread * math.sqrt(public.n_iter) / public.budget
    out = np.zeros_like(flat)
    out[chosen] = flat[chosen] + gaussian(run.rng, scale, len(chosen))
    return out.reshape(theta.shape).astype(np.float32)


def full_slopes(run: Run, margins: np.ndarray) -> np.ndarray:
    """Slopes (n, K): of the loss, or residuals clipped at the released cutoff."""
    if run.loss.name == "huber":
        return run.slopes(margins)
    slopes = run.loss.slope(margins if run.n_outputs > 1 else margins[:, 0], run.data.y)
    return np.asarray(slopes).reshape(len(margins), -1)


def slope_unit(run: Run) -> float:
    """Largest entry of a slope vector: 1 for logistic and softmax, the cutoff for residuals."""
    return run.clip if run.loss.name == "huber" else 1.0


def vector_unit(run: Run) -> float:
    """Largest L2 norm of a slope vector."""
    return slope_unit(run) * (math.sqrt(2.0) if run.n_outputs > 1 else 1.0)


def curvature(run: Run) -> float:
    return run.loss.smoothness


def default_step(public: Threshold, n: float, smoothness: float) -> float:
    """1/curvature for rows of the declared norm, shorter where noise would drown the rows."""
    longest = 1.0 / (smoothness * public.row_clip**2)
    signal = n * public.budget / public.n_iter
    return longest * min(1.0, signal / 10.0)

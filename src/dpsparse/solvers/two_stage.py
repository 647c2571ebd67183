"""Two-Stage (Kifer, Smith, Thakurta 2012): blocks vote for a support, then a private fit on it.

    block_i ~ uniform{1..k}, one secret draw per row          blocks are disjoint
    V_j     = number of blocks whose selector names feature j one row moves each V_j by at most 1
    S       = the s largest of kappa V_j + Gumbel_j           (selection/top_k.py)
    theta   = private fit on the columns S                    (solvers/objective.py, or below)

| symbol | variable | meaning |
|---|---|---|
| k | n_blocks | public; empty blocks abstain |
| s | n_nonzero | size of the support, and of every block's vote |
| T | n_iter | noisy gradients of the gradient stage |

Cost: one pass over the non-zeros for the votes, then the fit on s columns. Deviation from the paper:
a row's block is its own secret draw (contiguous blocks re-block everyone when one row leaves), and
the winners come from one Gumbel draw instead of Laplace counts. Proof: docs/proofs/two_stage.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from dpsparse.losses import Loss
from dpsparse.random import gaussian
from dpsparse.solvers.objective import require_scalar_slope

Selector = Callable[[sp.csr_array, np.ndarray, int], np.ndarray]

MOMENTUM = 0.9


def draw_blocks(n_rows: int, n_blocks: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Row numbers of every non-empty block; each row draws its block alone."""
    block = rng.integers(n_blocks, size=n_rows)
    order = np.argsort(block, kind="stable")
    ends = np.searchsorted(block[order], np.arange(n_blocks + 1))
    parts = [order[ends[i] : ends[i + 1]] for i in range(n_blocks)]
    return [part for part in parts if len(part)]


def block_votes(
    X: sp.csr_array, y: np.ndarray, blocks: list[np.ndarray], n_nonzero: int, selector: Selector
) -> np.ndarray:
    """How many blocks name each feature; a block names at most `n_nonzero`, each once."""
    votes = np.zeros(X.shape[1])
    for block in blocks:
        named = np.unique(selector(X[block], y[block], n_nonzero))
        votes[named[:n_nonzero]] += 1.0
    return votes


def correlation_selector(X: sp.csr_array, y: np.ndarray, n_nonzero: int) -> np.ndarray:
    """The features with the largest |x_j.(y - mean y)| / |x_j|; it sees one block only."""
    squares = np.asarray(X.multiply(X).sum(axis=0)).ravel()
    scores = np.abs(X.T @ (y - y.mean())) / np.sqrt(np.maximum(squares, 1e-300))
    best = np.argsort(-scores, kind="stable")[:n_nonzero]
    return np.asarray(best[scores[best] > 0.0])


def noisy_descent(
    rows: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    ridge: float,
    scale: float,
    n_iter: int,
    step: float,
) -> np.ndarray:
    """`n_iter` noisy gradients of the weighted sum plus ridge, with momentum, from zero."""
    require_scalar_slope(loss)
    theta = np.zeros(rows.shape[1])
    velocity = np.zeros_like(theta)
    for _ in range(n_iter):
        gradient = rows.T @ (weights * loss.slope(rows @ theta, y)) + gaussian(
            rng, scale, len(theta)
        )
        velocity = MOMENTUM * velocity + gradient + ridge * theta
        theta = theta - step * velocity
    return theta

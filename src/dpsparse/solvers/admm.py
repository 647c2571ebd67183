"""Private ADMM for sparse logistic regression (Wang & Zhang 2020), penalties L1 and L_{1/2}.

    x = argmin sum_i a_i l(f_i.x, y_i) + coupling/2 |x - z + u|^2;   x + noise is released
    z = prox(x + u):  soft threshold (L1) or half threshold (L_{1/2}) at `threshold`
    u = u + x - z                                                       K rounds; output z

| symbol | variable | meaning |
|---|---|---|
| n0 c | coupling | augmented-Lagrangian weight in sum form: the modulus of strong convexity |
| K | n_iter | rounds, each pays for one Gaussian release |
| lambda/c | threshold | of the proximal step; public |

Cost per round: a few Newton steps, each some passes over the non-zeros (conjugate gradients).
Deviation: the paper tilts every x-update by one reused vector and pays for one use of it; here each
x gets fresh noise for its sensitivity, and z and u are post-processing of released x.
`published/wang_zhang_2020_admm.py` keeps the paper's noise for reproduction. Several classes are fitted one
against the rest. Proof: docs/proofs/admm.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsparse.nonzeros import top_k
from dpsparse.release import Releases
from dpsparse.rows import RidgeRows, Rows
from dpsparse.solvers.solution import Solution


@dataclass(frozen=True)
class Admm:
    """The public side of a run."""

    n_outputs: int
    penalty: str  # "l1" or "l1/2"
    n_iter: int
    coupling: float
    threshold: float
    row_clip: float
    longest: float  # bound on the L2 norm of a row with its constant
    tol: float
    constant: float  # of the column for the intercept, which is not shrunk; 0 without one
    n_nonzero: int | None = None


def solve(rows: Rows, public: Admm, releases: Releases) -> Solution:
    """Weights (K, d) and intercepts (K,)."""
    outputs, d = public.n_outputs, rows.n_features
    coef, intercept = np.zeros((outputs, d)), np.zeros(outputs)
    for k in range(outputs):
        mine = rows if outputs == 1 else rows.against_rest(k)
        columns = mine.ridge(
            None, constant=public.constant, row_clip=public.row_clip, longest=public.longest,
            spread=True,
        )  # fmt: skip
        z = descend(columns, public, releases)
        coef[k] = z[:d] if public.n_nonzero is None else top_k(z[:d], public.n_nonzero)
        if public.constant > 0.0:
            intercept[k] = z[d]
    return Solution(coef, intercept, public.n_iter)


def descend(columns: RidgeRows, public: Admm, releases: Releases) -> np.ndarray:
    """The sparse z after `n_iter` rounds."""
    z, u = np.zeros(columns.width), np.zeros(columns.width)
    share = 1.0 / (public.n_iter * public.n_outputs)
    for _ in range(public.n_iter):
        problem = columns.problem("logistic", ridge=public.coupling, tol=public.tol, centre=z - u)
        x = releases.gaussian("x-updates", problem.minimiser(), share)
        z = shrink(x + u, public.threshold, public.penalty)
        z[columns.n_columns :] = (x + u)[columns.n_columns :]
        u = u + x - z
    return z


def shrink(v: np.ndarray, threshold: float, penalty: str) -> np.ndarray:
    """argmin_z (z - v)^2/2 + t |z| (L1) or + t |z|^(1/2) (L_{1/2}), coordinate by coordinate."""
    if penalty == "l1":
        return np.asarray(np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0))
    # Xu et al. (2012): zero up to 1.5 t^(2/3), above it the largest root of z - v + t/(2 sqrt z) = 0
    cut = 1.5 * threshold ** (2.0 / 3.0)
    size = np.maximum(np.abs(v), cut)
    angle = np.arccos(threshold / 4.0 * (size / 3.0) ** -1.5)
    root = 2.0 / 3.0 * size * (1.0 + np.cos(2.0 / 3.0 * (np.pi - angle)))
    return np.asarray(np.where(np.abs(v) > cut, np.sign(v) * root, 0.0))

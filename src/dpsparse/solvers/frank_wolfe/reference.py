"""Frank-Wolfe on the L1 ball, the plain way: every row and every feature at every step.

Papers: Raff, Khanna, Lu (2023, faster Frank-Wolfe), Alg. 1; Khanna, Lu, Raff (2023, Sparsifier), Alg. 1.

    w_0 = 0
    G_t = sum_i slope(x_i . w_t, y_i) x_i                                  the sum, never the mean
    (j, s) ~ exp(kappa s G_t[j])       over the 2 D signed vertices         Gumbel noisy max
    w_{t+1} = (1 - eta_t) w_t - eta_t s radius e_j,        eta_t = 2/(t+2), t = 1 .. T

| paper | here |
|---|---|
| v-bar, q-bar, alpha | `margin`, `slopes`, `scores` |
| lambda | `problem.radius` |
| Lap(...) | `selection` (Gumbel; Laplace and the exact sign for reproduction) |

Cost per step O(nnz + D). Deviations: the sign is drawn with the feature (Raff, Khanna, Lu 2023
read it off, which leaks); with K classes one selection over the 2 K p vertices of the entrywise
ball (Khanna, Lu and Raff 2023 make p and
account for K). `fixed_point=True` scores exactly as the fast solver does, which is what an
estimator uses; the float path is the yardstick of speed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

from dpsparse.clipping import BoundedData
from dpsparse.selection.scan import DenseMax, GumbelScan, LaplaceScan, Selection
from dpsparse.solvers.frank_wolfe.kernel import SLOPE_UNITS
from dpsparse.solvers.frank_wolfe.problem import History, Problem


def frank_wolfe(
    data: BoundedData,
    problem: Problem,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
    *,
    noise: str = "gumbel",
    fixed_point: bool = True,
) -> History:
    """`problem.n_iter` selections on exact gradients; the history, as the fast solver returns it."""
    X, bound, K = with_intercept(data, problem), problem.feature_bound, problem.n_outputs
    columns = X.tocsc()
    kappa = problem.unit_kappa if fixed_point else problem.kappa * bound
    selection = _selection(problem, noise, kappa)
    w, start = np.zeros((X.shape[1], K)), np.asarray(problem.offset or np.zeros(K))
    features, outputs, signs = (np.zeros(problem.n_iter, np.int64) for _ in range(3))
    for t in range(1, problem.n_iter + 1):
        margin = X @ w + start  # line 4
        slopes = _slopes(problem, margin, data.y)  # line 5
        scores = score_cells(columns, slopes, problem, fixed_point)  # lines 6-7
        selection.rebuild(scores)
        cell, sign = selection.draw(rng)  # line 8; the sign of line 10 is drawn with it
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step  # line 13
        w[cell // K, cell % K] -= step * sign * problem.radius * bound
        features[t - 1], outputs[t - 1], signs[t - 1] = cell // K, cell % K, -sign
        if progress is not None:
            progress(1)
    return History(
        features, outputs, signs, problem.radius, data.X.shape[1], K, bound, problem.offset
    )


def plain_scores(data: BoundedData, problem: Problem, history: History) -> Iterator[np.ndarray]:
    """Whole-number scores of all cells before each pick of a history: the loop above with released picks."""
    X, K = with_intercept(data, problem), problem.n_outputs
    columns, w = X.tocsc(), np.zeros((X.shape[1], K))
    start = np.asarray(problem.offset or np.zeros(K))
    picks = zip(history.features, history.outputs, history.signs, strict=True)
    for t, (feature, output, sign) in enumerate(picks, 1):
        yield score_cells(columns, _slopes(problem, X @ w + start, data.y), problem, True)
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[feature, output] += step * sign * problem.radius * problem.feature_bound


def score_cells(
    columns: sp.csc_array, slopes: np.ndarray, problem: Problem, fixed_point: bool
) -> np.ndarray:
    """Scores of all cells: whole numbers as the fast solver has them, or plain floats.

    Fixed point: slopes in whole multiples of slope_bound 2^-28, entries in float32, each row's
    contribution rounded to a whole number; all products are exact in float64.
    """
    if not fixed_point:
        return np.asarray(columns.T @ slopes).ravel()
    with np.errstate(over="ignore"):
        q = np.nan_to_num(slopes / problem.slope_bound)  # no number is 0, as in the kernel
    q = np.rint(np.clip(q, -1.0, 1.0) * SLOPE_UNITS)
    q *= problem.resolution / SLOPE_UNITS
    scores = np.zeros((columns.shape[1], problem.n_outputs), np.int64)
    full = np.flatnonzero(np.diff(columns.indptr))
    for k in range(problem.n_outputs if full.size else 0):
        parts = np.rint(columns.data * q[columns.indices, k]).astype(np.int64)
        scores[full, k] = np.add.reduceat(parts, columns.indptr[full])
    return scores.ravel()


def with_intercept(data: BoundedData, problem: Problem) -> sp.csr_array:
    """Entries x / feature_bound cut to [-1, 1] and rounded to float32, and a column of ones for the intercept."""
    X = sp.csr_array(data.X)
    factor = 1.0 / problem.feature_bound
    values = np.clip(X.data * factor, -1.0, 1.0).astype(np.float32).astype(np.float64)
    X = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    if problem.fit_intercept:
        X = sp.csr_array(sp.hstack([X, sp.csr_array(np.ones((X.shape[0], 1)))], format="csr"))
    return X


def _selection(problem: Problem, noise: str, kappa: float) -> Selection:
    if np.isinf(kappa):
        return DenseMax()
    return LaplaceScan(kappa) if noise == "laplace" else GumbelScan(kappa, problem.private_sign)


def _slopes(problem: Problem, margin: np.ndarray, y: np.ndarray | None) -> np.ndarray:
    assert y is not None
    if problem.loss.scalar_slope:
        return problem.loss.slope(margin[:, 0], y)[:, None]
    return problem.loss.slope(margin, y)

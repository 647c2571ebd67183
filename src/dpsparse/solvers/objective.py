"""Objective and output perturbation of a ridge problem on a released support.

Chaudhuri, Monteleoni, Sarwate (2011); Kifer, Smith, Thakurta (2012), Algorithm 1, in sum form:

    J(theta) = sum_i a_i l(f_i.theta, y_i) + ridge/2 |theta - centre|^2 + b.theta,   b ~ N(0, scale^2 I)
    theta    = a point with |grad J| <= tol, plus N(0, jitter^2 I)          objective perturbation
    theta    = the same without b, plus N(0, scale^2 I)                     output perturbation

| symbol | variable | meaning |
|---|---|---|
| f_i | rows | the row on the support, and a constant 1 for the intercept |
| a_i | weights | min(1, row_clip/|f_i|): bounds a_i |l'| |f_i| by slope bound * row_clip |
| Lam | ridge | every coordinate carries it, the intercept included |

Cost: a Newton step is one pass over the rows and one Cholesky factor of the support's size (or
conjugate gradients above 1,500 columns). Deviations: rows are weighted, not shrunk (a shrunk row
biases the margin, a weighted one does not); the gradient norm is checked and really reached, since
an early return or an error would tell something about the rows. Proofs, and why squared and
softmax losses are refused: docs/proofs/objective_perturbation.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit

from dpsparse.domain import BoundedData
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Huber, Loss
from dpsparse.random import gaussian

_DENSE_HESSIAN = 1500  # columns up to which a Newton system is factored


def require_scalar_slope(loss: Loss) -> None:
    """Refuse losses without a proof here: several slopes per row, or an unbounded one."""
    if loss.name not in ("logistic", "huber"):
        raise ParameterError(
            f"The {loss.name} loss has no objective or output perturbation: it needs one bounded "
            "slope per row. Use logistic (one class against the rest) or huber."
        )


def support_rows(
    data: BoundedData, support: np.ndarray, *, fit_intercept: bool, row_clip: float
) -> tuple[np.ndarray, np.ndarray]:
    """The only densified columns (support, then the constant), and the weight of every row."""
    rows = np.ones((data.X.shape[0], len(support) + fit_intercept))
    rows[:, : len(support)] = data.X[:, support].toarray()
    return rows, row_weights(rows, row_clip)


def row_weights(rows: Any, row_clip: float) -> np.ndarray:
    """min(1, row_clip/|f_i|), rounded down; an empty row has weight 1 and no gradient."""
    norms = np.sqrt(_squares(rows)) * (1.0 + 1e-12)
    return np.asarray(row_clip / np.maximum(norms, row_clip))


def objective_perturbation(
    rows: Any,
    y: np.ndarray,
    weights: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    ridge: float,
    scale: float,
    tol: float,
    jitter: float,
) -> np.ndarray:
    """The minimiser of the tilted objective, blurred so that `tol` cannot be seen."""
    require_scalar_slope(loss)
    tilt = gaussian(rng, scale, rows.shape[1])
    theta = minimise(rows, y, weights, loss, ridge=ridge, tilt=tilt, tol=tol)
    return np.asarray(theta + gaussian(rng, jitter, len(theta)))


def output_perturbation(
    rows: Any,
    y: np.ndarray,
    weights: np.ndarray,
    loss: Loss,
    rng: np.random.Generator,
    *,
    ridge: float,
    scale: float,
    tol: float,
) -> np.ndarray:
    """The ridge minimiser plus noise for its sensitivity (slope bound * row_clip + 2 tol)/ridge."""
    require_scalar_slope(loss)
    theta = minimise(rows, y, weights, loss, ridge=ridge, tol=tol)
    return np.asarray(theta + gaussian(rng, scale, len(theta)))


def minimise(
    rows: Any,
    y: np.ndarray,
    weights: np.ndarray,
    loss: Loss,
    *,
    ridge: float,
    tol: float,
    tilt: np.ndarray | None = None,
    centre: np.ndarray | None = None,
) -> np.ndarray:
    """A point where the computed gradient norm is at most tol/2, whatever it takes.

    The other half of `tol` is left to rounding. Damped Newton: J falls at every step while it can
    be told from rounding, then the gradient norm does. (To accept either at any time can cycle: J
    falls while the norm rises, then the norm falls while J rises.)
    """
    tilt = np.zeros(rows.shape[1]) if tilt is None else tilt
    centre = np.zeros(rows.shape[1]) if centre is None else centre
    theta = centre - tilt / ridge

    def evaluate(theta: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        margins = rows @ theta
        gradient = rows.T @ (weights * loss.slope(margins, y)) + ridge * (theta - centre) + tilt
        value = weights @ loss.value(margins, y) + ridge / 2 * np.sum((theta - centre) ** 2)
        return margins, float(value + tilt @ theta), gradient

    margins, value, gradient = evaluate(theta)
    while (norm := float(np.linalg.norm(gradient))) > tol / 2:
        bend = weights * _second_derivative(loss, margins, y)
        step = _newton_step(rows, bend, ridge, gradient, norm)
        descent = float(step @ gradient)
        length = 1.0
        while True:
            trial = theta - length * step
            margins, new_value, new_gradient = evaluate(trial)
            if length * descent > 1e-12 * abs(value):
                if new_value <= value - length / 4 * descent:
                    break
            elif np.linalg.norm(new_gradient) <= (1 - length / 4) * norm:
                break
            length /= 2
            if length < 1e-9:  # rounding hides the descent: the step of plain gradient descent
                smooth = ridge + loss.smoothness * float(weights @ _squares(rows))
                trial = theta - gradient / smooth
                margins, new_value, new_gradient = evaluate(trial)
                break
        theta, value, gradient = trial, new_value, new_gradient
    return theta


def _newton_step(
    rows: Any, bend: np.ndarray, ridge: float, gradient: np.ndarray, norm: float
) -> np.ndarray:
    """(rows' diag(bend) rows + ridge)^-1 gradient, exactly or by conjugate gradients."""
    width = rows.shape[1]
    if width <= _DENSE_HESSIAN and isinstance(rows, np.ndarray):
        hessian = rows.T @ (bend[:, None] * rows)
        hessian[np.diag_indices(width)] += ridge
        return np.asarray(cho_solve(cho_factor(hessian, lower=True), gradient))

    def times(v: np.ndarray) -> np.ndarray:
        return np.asarray(rows.T @ (bend * (rows @ v)) + ridge * v)

    operator = LinearOperator((width, width), matvec=times, dtype=np.float64)
    step, _ = cg(operator, gradient, rtol=min(0.1, norm**0.5), maxiter=2 * width)
    return np.asarray(step)


def _second_derivative(loss: Loss, margins: np.ndarray, y: np.ndarray) -> np.ndarray:
    if isinstance(loss, Huber):
        return np.asarray(np.abs(margins - y) <= loss.cutoff, dtype=np.float64)
    return np.asarray(expit(margins) * expit(-margins))


def _squares(rows: Any) -> np.ndarray:
    if isinstance(rows, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", rows, rows))
    return np.asarray(rows.multiply(rows).sum(axis=1)).ravel()

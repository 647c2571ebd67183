"""The one numerical tool the printed fits share: the minimum of a tilted ridge problem, to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from dpsparse.losses import Loss


def tilted_minimum(
    rows: Any,
    y: np.ndarray,
    loss: Loss,
    *,
    ridge: float,
    tilt: np.ndarray,
    centre: np.ndarray | None = None,
) -> np.ndarray:
    """argmin of sum_i l(f_i.theta, y_i) + ridge/2 |theta - centre|^2 + tilt.theta."""
    centre = np.zeros(rows.shape[1]) if centre is None else centre

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        margin, away = rows @ theta, theta - centre
        value = float(loss.value(margin, y).sum()) + 0.5 * ridge * away @ away + tilt @ theta
        return value, rows.T @ loss.slope(margin, y) + ridge * away + tilt

    found, _, _ = fmin_l_bfgs_b(
        objective, centre, maxiter=2000, factr=10.0, pgtol=1e-7 * max(ridge, 1e-3)
    )
    return np.asarray(found)

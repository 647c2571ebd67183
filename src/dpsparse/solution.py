"""What a solver returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Solution(NamedTuple):
    """Weights (outputs, features) and intercepts (outputs,). The last two are for methods that can tell:
    the steps taken where released numbers decide, and the sd of the noise in the weight of each feature."""

    coef: np.ndarray
    intercept: np.ndarray
    n_iter: int | None = None
    coef_noise: np.ndarray | None = None

"""What a solver returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Solution(NamedTuple):
    """Weights (outputs, features), intercepts (outputs,) and the steps taken. The others are for methods that can
    tell: the sd of the noise in the weight of each feature, and the number of features in the working set over
    time."""

    coef: np.ndarray
    intercept: np.ndarray
    n_iter: int
    coef_noise: np.ndarray | None = None
    n_live: tuple[int, ...] | None = None

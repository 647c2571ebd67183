"""What a method works with, and what it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from dpsparse.release import Releases
    from dpsparse.rows import Rows


class Solution(NamedTuple):
    """Weights (outputs, features), intercepts (outputs,) and the steps taken. The others are for methods that can
    tell: the sd of the noise in the weight of each feature, the features whose scale noise hides although their weight
    is larger than its noise, and the released picks."""

    coef: np.ndarray
    intercept: np.ndarray
    n_iter: int
    coef_noise: np.ndarray | None = None
    drowned: np.ndarray | None = None
    history: Any = None


class Settings(Protocol):
    """The public constants of a fit, and the solver that they are for."""

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        """Fit `rows`; everything that leaves them goes through `releases`."""
        ...

"""A question about the rows whose answer is a vector of whole numbers.

    q_j(unit) = sum_i trunc(v_ij / unit)        v_i: what row i contributes, a function of row i and public numbers

The bound on v_i is enforced on the whole numbers themselves, in the kernel that makes them: a contribution
that is not finite or too long counts as zero. So `sensitivity` is a fact about integers, whatever floats
did before. Rows make queries, `Releases` answers them; nothing else calls `whole`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpsparse.sensitivity import Sensitivity


@dataclass(frozen=True)
class Query:
    """`whole(unit)` is the exact sum on a grid; `sensitivity(adjacency)` its lemma, in units of v."""

    shape: tuple[int, ...]
    sensitivity: Callable[[str], Sensitivity]
    whole: Callable[[float], np.ndarray]
    # A query that is rounded rather than summed (a minimiser) moves by its rounding as well.
    rounded: bool = False

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

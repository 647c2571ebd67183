"""Peeling (Cai, Wang, Zhang 2021): pick the largest entries of a sum privately, then release those alone.

    v = base - G,  G = sum_i r_i x_i / b            base public, entries of a row's contribution at most L
    S = s draws of the exponential mechanism on |v_j|, without replacement
    v_S + Gaussian noise

A row moves every |v_j| by at most L (add-remove), and v_S by at most min(sqrt(s) L, its norm). Only the
chosen indices and their noisy values leave; there is no sqrt(d) anywhere. Proof: docs/proofs/peeling.md.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from dpsparse.release import Releases
from dpsparse.rows import Query
from dpsparse.sensitivity import clipped_gradient_sum


def peel(
    releases: Releases,
    sums: Query,
    base: np.ndarray,
    k: int,
    *,
    norm_bound: float,
    share: float = 1.0,
    picks: str = "selection",
    values: str | None = "values",
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of `k` entries of base - sums (paid by phase `picks`) and their noisy values (phase `values`;
    none are released if it is None).

    `norm_bound` bounds the L2 norm of a contribution; `share` is that of one round in `values`.
    """
    v, k = sums.shifted(base), min(k, base.size)
    largest = sums.sensitivity("add-remove").value
    if values is None:
        return releases.top_k(picks, v.magnitudes(), k, largest * 2.0**-30), np.empty(0)
    moved = partial(clipped_gradient_sum, min(math.sqrt(k) * largest, norm_bound))
    # One grid for both, so that the sums are taken once.
    unit = releases.unit(values, v.entries(np.arange(k), moved), share)
    chosen = releases.top_k(picks, v.magnitudes(), k, unit)
    return chosen, releases.gaussian(values, v.entries(chosen, moved), share)

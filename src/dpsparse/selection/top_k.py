"""One-shot Gumbel top-k: k exponential mechanisms without replacement for one draw per feature.

    keys_j = kappa * score_j + Gumbel_j;   release the indices of the k largest keys

is the same law as k times "pick with probability ~ exp(kappa * score), remove, repeat". If one row
moves every score by at most D (up or down), each pick has range 2 kappa D and costs zCDP
(kappa D)^2/2, so k picks cost `Repeated(Exponential(2 kappa D), k)`. Only the set of indices is
released: the keys would cost more. Proof: docs/proofs/two_stage.md.
"""

from __future__ import annotations

import numpy as np

from dpsparse.random import gumbel


def gumbel_top_k(scores: np.ndarray, k: int, kappa: float, rng: np.random.Generator) -> np.ndarray:
    """Sorted indices of k features; `kappa=inf` takes the largest scores without noise."""
    keys = scores if np.isinf(kappa) else kappa * scores + gumbel(rng, len(scores))
    if k >= len(keys):
        return np.arange(len(keys))
    return np.sort(np.argpartition(-keys, k - 1)[:k])

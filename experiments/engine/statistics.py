"""Seeds, and the two paired tests the papers use."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from scipy import stats


def derive_seed(*words: object) -> int:
    """A 48-bit seed that depends on all words and nothing else."""
    text = "\x1f".join(map(str, words)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:6], "little")


def sign_test(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided sign test of paired samples; ties are dropped. 1.0 if nothing is left."""
    difference = np.asarray(first, float) - np.asarray(second, float)
    above, below = int(np.sum(difference > 0)), int(np.sum(difference < 0))
    if above + below == 0:
        return 1.0
    return float(stats.binomtest(above, above + below).pvalue)


def wilcoxon(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided Wilcoxon signed-rank test of paired samples. 1.0 if all pairs are equal.

    Pairs with a NaN (the AUC of a test part with one class) are left out.
    """
    difference = np.asarray(first, float) - np.asarray(second, float)
    difference = difference[~np.isnan(difference)]
    if not np.any(difference):
        return 1.0
    return float(stats.wilcoxon(difference, method="auto").pvalue)

"""Every tuned number of Frank-Wolfe and of screening, in the rules that use it. N: effective rows, that is rows times
mu.

Chosen on training splits: dpsparse lab run board --training --methods "DPLasso; DPScreenedLasso".
"""

from __future__ import annotations

import math

import numpy as np

from dpsparse.methods.look.defaults import MIN_EFFECTIVE_ROWS_TO_FIT

CLIPPED_ENTRY_PER_TYPICAL = 1.5  # where entries of standardised columns are clipped
COUNT_STEPS = 5000  # noiseless steps behind a `PrivateCount` (Khanna, Lu and Raff use 50,000)


def choose_steps(N: float, n_features: int) -> int:
    """Steps on released scales. A pick among 2d vertices is seen in N/(30 log 2d) units of noise: its square is the
    number of steps."""
    picks = N / (30.0 * math.log(2.0 * n_features))
    return int(min(max(picks**2, 10), 1000))


def choose_declared_steps(n_samples: int | None, epsilon: float) -> int:
    """Steps on declared scales: the (n epsilon)^(2/3) of the utility bound of both papers."""
    if math.isinf(epsilon):
        return 1000
    if n_samples is None:
        return 100
    steps = math.ceil((n_samples * epsilon) ** (2.0 / 3.0) / 4.0)
    return int(min(max(steps, 10), 1000))


def choose_reach(n_iter: int, n_outputs: int, of_numbers: bool) -> float:
    """Largest margin of the ball on released scales, in cutoffs where targets are numbers.

    It grows with the steps (for numbers with their root, or early picks overshoot). Classes share one ball: picks that
    noise blurs gain by the root of their number, and lose by more.
    """
    if of_numbers:
        return min(max(math.sqrt(n_iter / 10.0), 0.5), 10.0)
    return min(max(n_iter / 10.0, 0.5), 30.0) * math.sqrt(n_outputs)


def fewest_effective_rows(n_features: int) -> float:
    """Below so many not even ten picks can be seen: a regression is the mean of its targets."""
    return max(MIN_EFFECTIVE_ROWS_TO_FIT, 15.0 * math.log(2.0 * n_features))


def fewest_rows_to_centre(n_columns: int) -> float:
    """From so many effective rows columns are centred; else one size of entries is released."""
    return 2.5 * math.sqrt(n_columns)


def believable_shares(noisy: np.ndarray, noise: float) -> np.ndarray:
    """Shares of the classes from noisy counts, drawn to even ones by three standard deviations of the noise; no class
    is taken to be rarer than one row in a thousand."""
    share = np.maximum(noisy + 3.0 * noise, 1.0)
    return np.asarray(np.clip(share / share.sum(), 1e-3, 1.0 - 1e-3))

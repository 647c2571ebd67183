"""Every tuned number of Frank-Wolfe and of screening, and the rules for steps and ball.

Chosen on training splits: dpsparse lab run defaults --training --methods DPLasso DPScreenedLasso.
"""

from __future__ import annotations

import math

from dpsparse.methods.look.defaults import MIN_EFFECTIVE_ROWS_FOR_REGRESSION

MIN_STEPS, MAX_STEPS = 10, 1000
# A pick among 2d vertices is seen in N/(30 log 2d) units of noise, N effective rows: its square is the number of steps.
EFFECTIVE_ROWS_PER_PICK = 30.0
MIN_EFFECTIVE_ROWS_PER_ROOT_OF_COLUMNS_TO_CENTRE = 2.5  # else one size of entries is released
CLIPPED_ENTRY_PER_TYPICAL = 1.5  # where entries of standardised columns are clipped
MIN_CLASS_SHARE = 1e-3  # a class is never taken to be rarer
ADDED_ROWS_PER_NOISE = 3.0  # rows of every class, in standard deviations of their noisy counts
COUNT_STEPS = 5000  # noiseless steps behind a `PrivateCount` (Khanna, Lu and Raff use 50,000)
SCARCE_STEPS_FACTOR = 3  # features for each step from which on a useful one is rarely picked twice


def choose_steps(effective_rows: float, n_features: int) -> int:
    """Steps on released scales: each pick must beat log(2d) sqrt(T)/N."""
    picks = effective_rows / (EFFECTIVE_ROWS_PER_PICK * math.log(2.0 * n_features))
    return int(min(max(picks**2, MIN_STEPS), MAX_STEPS))


def choose_declared_steps(n_samples: int | None, epsilon: float) -> int:
    """Steps on declared scales: the (n epsilon)^(2/3) of the utility bound of both papers."""
    if math.isinf(epsilon):
        return MAX_STEPS
    if n_samples is None:
        return 100
    steps = math.ceil((n_samples * epsilon) ** (2.0 / 3.0) / 4.0)
    return int(min(max(steps, MIN_STEPS), MAX_STEPS))


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
    picks = EFFECTIVE_ROWS_PER_PICK / 2.0 * math.log(2.0 * n_features)
    return max(MIN_EFFECTIVE_ROWS_FOR_REGRESSION, picks)

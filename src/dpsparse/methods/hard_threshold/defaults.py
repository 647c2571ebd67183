"""Every tuned number of hard thresholding, and the rule for the number of steps.

Chosen on training splits: dpsparse lab run defaults --training --methods DPHardThreshold.
"""

from __future__ import annotations

import math

LINE_BUDGET_SHARE = 0.05  # of mu^2, for the lengths of the steps
SEARCH_BUDGET_SHARE = 0.7  # of the gradients' budget, for the first half of the steps
SEARCH_WEIGHTS_FACTOR = 3  # weights kept in that half, in units of n_nonzero
MIN_STEPS, MAX_STEPS = 10, 100
SIGNAL_PER_STEP = 2.0  # effective rows over the square root of the columns, for each step
MIN_SIGNAL_OF_REGRESSION = 15.0  # the same, below which a regressor releases the mean alone
CURVATURE_PER_NOISE = 2.0  # least curvature of the loss, in noise of one entry of a gradient
MAX_NOISE_GAIN = 2.0  # mean square of the noise in chosen entries, in units of that in all entries


def choose_steps(effective_rows: float, n_features: int) -> int:
    """A step along one of d columns is seen in N/sqrt(d) units of noise: more signal pays for more steps."""
    steps = effective_rows / (SIGNAL_PER_STEP * math.sqrt(n_features))
    return int(min(max(steps, MIN_STEPS), MAX_STEPS))

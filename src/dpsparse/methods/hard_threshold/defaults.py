"""Every tuned number of hard thresholding.

Chosen on training splits: dpsparse lab run board --training --methods DPHardThreshold.
"""

from __future__ import annotations

LINE_BUDGET_SHARE = 0.05  # of mu^2, for the lengths of the steps
SEARCH_BUDGET_SHARE = 0.7  # of the gradients' budget, for the first half of the steps
SEARCH_WEIGHTS_FACTOR = 3  # weights kept in that half, in units of n_nonzero
MIN_STEPS, MAX_STEPS = 10, 100
SIGNAL_PER_STEP = 2.0  # rows over noise of a slope and over the square root of the columns
MIN_SIGNAL_OF_REGRESSION = 15.0  # effective rows over the same root: below, the mean alone
CURVATURE_PER_NOISE = 2.0  # least curvature of the loss, in noise of one entry of a gradient
MAX_NOISE_GAIN = 2.0  # mean square of the noise in chosen entries, in units of that in all entries

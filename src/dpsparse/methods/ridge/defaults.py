"""Every tuned number of ridge regression on a narrow table. N: effective rows, that is rows times mu.

Chosen on training splits: dpsparse lab run board --training --methods "DPRidge; DPSparse".
"""

from __future__ import annotations

import math

# What is looked at (choose_way in plan.py).
MIN_EFFECTIVE_ROWS_TO_LOOK = 50.0
MIN_EFFECTIVE_ROWS_PER_ROOT_OF_COLUMNS_TO_LOOK = 2.5
MIN_EFFECTIVE_ROWS_PER_ROOT_OF_COLUMNS_TO_FIT = 4.5
# Below so many N a fit on few columns is mostly its ridge, and safe.
MAX_EFFECTIVE_ROWS_OF_SAFE_FIT, MAX_COLUMNS_OF_SAFE_FIT = 20.0, 40
# From so many N a column directions of the rows are told from noise: the noise of their second moments, entry by
# entry, is below half of what a column has.
MIN_EFFECTIVE_ROWS_PER_COLUMN_FOR_AXES = 10.0

ROW_CLIP = 1.0 / 0.3  # length from which rows count less, in units of the constant entry of a row
MEDIAN_LENGTH = math.sqrt(0.91) / 0.3  # of a row, in the same unit
# From so many N a column noise is small beside what bounds on rows and residuals distort. The first then grows with the
# fourth root of N. The share of residuals beyond the second falls with the square of N, as the variance of the noise
# does that a cutoff makes: light tails hardly move it, heavy tails move it far (experiments/notebook/defaults.md).
EFFECTIVE_ROWS_PER_COLUMN_OF_WIDER_BOUNDS = 20.0
DECLARED_ROW_CLIP = math.sqrt(2.0)  # the clip where nothing is looked at
DECLARED_CUTOFF = 0.25  # of the declared range: where residuals begin to count linearly then
CLIPPED_SHARE = 1.0 / 3.0  # of |y - mean| lies beyond the cutoff, where N is smaller

RIDGE_TIMES_EPSILON = 7.0  # in curvatures of a row: 1/7 of epsilon goes to the volume
MAX_EPSILON_OF_RULES = 16.0  # beyond it the ridge falls no more, and bounds do not widen
RIDGE_TIMES_SIGNAL = 4.0  # of columns/(n mu^2): what is smaller than the noise is pulled to zero

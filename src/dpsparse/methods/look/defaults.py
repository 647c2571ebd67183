"""Every tuned number of the look at targets and rows.

Chosen on training splits: dpsparse lab run board --training.
"""

from __future__ import annotations

# Shares of the budget (of mu^2), release by release; the fit takes the rest.
BUDGET_SHARES = {
    "prior": 0.03,
    "mean": 0.06,
    "spread": 0.03,
    "masses": 0.15,
    "length": 0.04,
    "centre": 0.06,
    "columns": 0.06,
    "axes": 0.05,
    "entry": 0.02,
    "intercept": 0.05,
}
QUANTILE_COUNTS = 8  # noisy counts of one search
MAX_EMPTY_SHARE = 0.99  # of the rows, where the quantile of the others is sought
MARGIN_EDGES = tuple(2.0 ** (k / 2.0) for k in range(-6, 7))  # of the bins that a slope is found by
SLOPE_DOUBT, OFFSET_DOUBT = 0.5, 2.0  # sd before rows are seen: octaves, and log odds
OFFSET_ROUNDS = 4  # noisy sums that move the offset of the final model
MIN_CLASS_SHARE = 0.01  # of the rows: a class is never taken to be rarer
MIN_EFFECTIVE_ROWS_TO_FIT = 60.0  # below it the mean of targets, or shares of classes, is all

MIN_MASS_PER_NOISE = 2.0  # a mass is never taken to be smaller, in standard deviations of its noise
MANY_COLUMNS = 2**17  # from which columns below their noise are dropped from tall tables too
# Entries that nobody has bounded lie between these. The search begins in the middle, which is not the size of
# standardised entries: a count among the lengths tells no side, and every octave beyond stays likely.
UNDECLARED_ENTRIES = 2.0**-50, 2.0**40
CLIPPED_LENGTH_PER_MEDIAN = 1.5  # where rows that keep their length are shortened
CUTOFF_PER_SPREAD = 1.5  # where residuals begin to count linearly, in .75-quantiles of |y - mean|

MIN_SQUARED_MEAN_OF_TABLE = 0.15  # of typical rows: with a shorter mean, rows have few entries
MIN_SHARE_OF_MEAN_SIZE = 1e-6  # a column or direction is never taken to be smaller

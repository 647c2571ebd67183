"""Constants of private preparation."""

from __future__ import annotations

# Of delta, for categories that only one row has. A ledger of the same delta keeps 2^-15 of it for all that may go
# wrong, so it holds more than a hundred fits with such categories.
LEAK_SHARE = 2.0**-22

# Shares of mu^2, the budget of a pipeline.
STEP_SHARE = 0.1  # scales of all numbers; all categories; a vocabulary
COUNT_SHARE = 0.01  # counts of kinds of cells, of what declared bounds clip, of declared categories
# Shares of a step's own budget.
COARSE_SHARE = 0.3  # powers of two; the fine cells of a standardizer share the rest
UNLISTED_SHARE = 0.5  # counts of missing values and of categories that were not released; categories have the rest

# Numbers.
FINE_ROUNDS, FINE_CELLS = 3, 16
MIN_SCALE, MAX_SCALE = 2.0**-40, 2.0**41  # where float64 and float32 have digits left

# Counts that are above their noise, in its standard deviations.
MIN_COUNT_IN_SDS = 3.0  # of rows with categories that were not released
MIN_GAPS_IN_SDS = 4.0  # of missing numbers, and of clipped numbers

# Categories. experiments/notebook/preparation.md
MAX_CATEGORIES = 64  # columns of a raw column's released categories
ROWS_PER_BUCKET = 250  # declared rows for every bucket of categories that were not released
# With several buckets a new value seldom shares one with a rare category. A column without a released category has to
# have more: it may number the rows.
MIN_BUCKETS, MAX_BUCKETS = 16, 256

"""Every tuned number behind the choice of DPSparseRegressor. N: effective rows, that is rows times mu.

Chosen on training splits: dpsparse lab run board --training.
"""

from __future__ import annotations

MAX_COLUMNS, MAX_ENTRIES = 1500, 10**8  # of a table: its rows have an entry in every column
MAX_COLUMNS_OF_UNCOUNTED_ROWS = 100  # of a table whose number of rows is not declared
COLUMNS_PER_RARE_WEIGHT = 20  # where one of so many matters, columns are found first
MIN_EFFECTIVE_ROWS_PER_WANTED_WEIGHT = 4.0  # from which some of the declared weights can be found,
EFFECTIVE_ROWS_PER_FOUND_WEIGHT = 12.0  # and for each one: fewer that are right are worth more
MIN_EFFECTIVE_ROWS_PER_COLUMN_TO_FIT_ALL = 6.0  # before some of the weights are chosen
# From so many columns, with so many N, few columns are found and fitted: (N below, columns found).
MIN_COLUMNS_TO_FIND_FEW, MIN_EFFECTIVE_ROWS_TO_FIND_FEW = 40, 30.0
COLUMNS_FOUND_BELOW_EFFECTIVE_ROWS = ((60.0, 3), (100.0, 5))
MAX_AUTO_COLUMNS = 50  # set by judgement: it was not tuned


def choose_columns(effective_rows: float, n_features: int) -> int:
    """n_nonzero="auto": as many columns as the rows can find, from public or released numbers."""
    affordable = min(effective_rows / EFFECTIVE_ROWS_PER_FOUND_WEIGHT, MAX_AUTO_COLUMNS)
    return min(max(int(affordable), 1), n_features)

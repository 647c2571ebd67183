"""Every tuned number of Frank-Wolfe and of screening; solve.py has the rules.

Chosen on training splits: dpsparse lab run board --training --methods "DPLasso; DPScreenedLasso".
"""

from __future__ import annotations

MIN_STEPS, MAX_STEPS = 10, 1000
# A pick among 2d vertices is seen in N/(30 log 2d) units of noise, N effective rows: its square is the number of steps.
EFFECTIVE_ROWS_PER_PICK = 30.0
MIN_EFFECTIVE_ROWS_PER_ROOT_OF_COLUMNS_TO_CENTRE = 2.5  # else one size of entries is released
CLIPPED_ENTRY_PER_TYPICAL = 1.5  # where entries of standardised columns are clipped
MIN_CLASS_SHARE = 1e-3  # a class is never taken to be rarer
ADDED_ROWS_PER_NOISE = 3.0  # rows of every class, in standard deviations of their noisy counts
COUNT_STEPS = 5000  # noiseless steps behind a `PrivateCount` (Khanna, Lu and Raff use 50,000)

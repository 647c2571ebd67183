"""Every tuned number of hard thresholding.

Chosen on training splits: dpsparse lab run board --training --methods DPHardThreshold.
"""

from __future__ import annotations

MIN_SIGNAL_OF_REGRESSION = (
    15.0  # effective rows over the root of the columns: below, the mean alone
)

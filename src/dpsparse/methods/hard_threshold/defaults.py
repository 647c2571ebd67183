"""Every tuned number of hard thresholding.

Chosen on training splits: dpsparse lab run board --training --methods DPHardThreshold.
"""

from __future__ import annotations

import math

from dpsparse.methods.look.defaults import MIN_EFFECTIVE_ROWS_TO_FIT


def fewest_effective_rows(n_features: int) -> float:
    """Below so many a regression is the mean of its targets."""
    return max(MIN_EFFECTIVE_ROWS_TO_FIT, 15.0 * math.sqrt(n_features))

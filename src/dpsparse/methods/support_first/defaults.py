"""Every tuned number of the support-first methods, and the rules that choose settings from public facts.

What a look at the table costs stands in methods/look, the ridge of a tilted fit in methods/ridge. Shares and cutoffs of
Two-Stage and transfer regressions were chosen on training splits. The numbers of classifiers, students and ADMM are
carried over or set by judgement: they were not tuned.
"""

from __future__ import annotations

import math

from dpsparse.methods.minimisers import least_ridge

# Of what the look at targets and entries leaves (of mu^2).
SUPPORT_SHARE = {"objective": 0.6, "output": 0.5, "student": 0.5, "admm": 0.5}
MIN_EFFECTIVE_ROWS_FOR_SCALES = 100.0  # below, declared bounds set all scales
MIN_EFFECTIVE_ROWS_OF_REGRESSION = {"objective": 30.0, "output": 60.0, "student": 60.0}
TARGET_CUTOFF_OF_SCORES = 0.82  # of the cutoff of the fit, where columns are looked for
ENTRY_CUTOFF = 1.5  # of the root mean square of a typical row's entries
BALANCE_OF_OUTPUT_RIDGE = 2.0  # of n/(columns times mu): the square of the ridge
ADMM_THRESHOLD_IN_NOISE = 3.0  # standard deviations of the noise of one round
MIN_ADMM_THRESHOLD = 1e-3  # where there is no noise


def choose_output_ridge(n_samples: int, n_columns: int, mu: float, curvature: float) -> float:
    """Noise ~ 1/ridge and shrinkage ~ ridge/n balance."""
    balanced = math.sqrt(BALANCE_OF_OUTPUT_RIDGE * n_samples / (n_columns * mu))
    return max(balanced, 2.0 * least_ridge(n_columns + 1)) * curvature

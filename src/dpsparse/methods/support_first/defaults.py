"""Every tuned number of the support-first methods, and the rules that choose settings from public facts.

What a look at the table costs stands in methods/look, the ridge of a tilted fit in methods/ridge. Shares and cutoffs of
Two-Stage and transfer regressions were chosen on training splits. The numbers of classifiers, students and ADMM are
carried over or set by judgement: they were not tuned.
"""

from __future__ import annotations

import math

from dpsparse.methods.look.defaults import MIN_EFFECTIVE_ROWS_TO_FIT
from dpsparse.methods.minimisers import least_ridge
from dpsparse.methods.ridge.defaults import choose_way

TARGET_CUTOFF_OF_SCORES = 0.82  # of the cutoff of the fit, where columns are looked for
ENTRY_CUTOFF = 1.5  # of the root mean square of a typical row's entries


def support_share(fit: str) -> float:
    """Of what the look at targets and entries leaves (of mu^2)."""
    return 0.6 if fit == "objective" else 0.5


def fewest_effective_rows(fit: str) -> float:
    """Below so many a regression is the mean of its targets."""
    return 30.0 if fit == "objective" else MIN_EFFECTIVE_ROWS_TO_FIT


def choose_scales(N: float, n_columns: int) -> str:
    """With fewer than 100 effective rows declared bounds set all scales."""
    return "released" if N >= 100.0 and choose_way(N, n_columns) == "released" else "declared"


def admm_threshold(noise: float) -> float:
    """What the noise of one round exceeds seldom; where there is none, next to nothing."""
    return max(3.0 * noise, 1e-3)


def choose_output_ridge(n_samples: int, n_columns: int, mu: float, curvature: float) -> float:
    """Noise ~ 1/ridge and shrinkage ~ ridge/n balance."""
    balanced = math.sqrt(2.0 * n_samples / (n_columns * mu))
    return max(balanced, 2.0 * least_ridge(n_columns + 1)) * curvature

"""Every tuned number of ridge regression and of the support-first methods, in the rules that use it.

N: effective rows, that is rows times mu. What a look at the table costs stands in methods/look. Numbers of ridge
regression, and shares and cutoffs of Two-Stage and transfer regressions, were chosen on training splits: dpsparse lab
run board --training --methods "DPRidge; DPSparse". Those of classifiers, students and ADMM were set by judgement.
"""

from __future__ import annotations

import math

from dpsparse.methods.base import Facts, effective_rows
from dpsparse.methods.look.defaults import MIN_EFFECTIVE_ROWS_TO_FIT
from dpsparse.rows.moments import WIDEST

ROW_CLIP = 1.0 / 0.3  # length from which rows count less, in units of the constant entry of a row
DECLARED_ROW_CLIP = math.sqrt(2.0)  # the same where nothing is looked at
DECLARED_CUTOFF = 0.25  # of the declared range: where residuals begin to count linearly then
MAX_EPSILON = 16.0  # of the rules: beyond it the ridge falls no more, and bounds do not widen


def typical_length(way: str) -> float:
    """Of a standardised row without its constant, in the same unit."""
    return math.sqrt(0.91) / 0.3 if way == "released" else 1.0


def choose_way(N: float, n_columns: int) -> str:
    """How much of the table is looked at. Below N = 20 a fit on few columns is mostly its ridge, and safe."""
    width = math.sqrt(n_columns)
    if max(50.0, 2.5 * width) <= N:
        return "released"
    return "declared" if 4.5 * width <= N or (N < 20.0 and n_columns <= 40) else "mean"


def has_axes(N: float, n_columns: int) -> bool:
    """Whether directions of the rows stand out from noise: that of their second moments, entry by entry, is then below
    half of what a column has."""
    return 10.0 * n_columns <= N and n_columns <= WIDEST


def room_for_bounds(facts: Facts, n_columns: int, share: float = 1.0) -> float:
    """How many times smaller the noise of a prediction is than where bounds on rows and residuals begin to widen;
    `share` of the budget is spent on these columns."""
    epsilon = min(facts.epsilon, MAX_EPSILON)
    n = int(facts.domain.require("n_samples", "A table"))
    N = effective_rows(n, epsilon, facts.delta, facts.adjacency) * math.sqrt(share)
    return max(1.0, N / (20.0 * n_columns))


def choose_row_clip(way: str, room: float) -> float:
    """r, the length from which a row counts less. It grows with the fourth root of N."""
    return (ROW_CLIP if way == "released" else DECLARED_ROW_CLIP) * math.sqrt(math.sqrt(room))


def clipped_share(room: float) -> float:
    """Of the residuals: so many lie beyond the cutoff. It falls with the square of N, as the variance of the noise does
    that a cutoff makes: light tails hardly move it, heavy tails move it far (experiments/notebook/defaults.md)."""
    return 1.0 / 3.0 / room**2


def choose_ridge(epsilon: float, n: int, n_columns: int, curvature: float, mu: float) -> float:
    """In units of a row's curvature: the volume of the objective takes a seventh of epsilon, its slope the rest, and
    weights that the noise would drown are pulled to zero."""
    volume = 7.0 / min(epsilon, MAX_EPSILON)
    drowned = 4.0 * n_columns / (n * mu**2)
    return float(max(volume, drowned) * curvature)


# ---- columns first ----------------------------------------------------------------------

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


def least_ridge(n_columns: int) -> float:
    """In units of the curvature of a row: where a minimiser on that many columns is certified on the largest table."""
    return max(2.0**-20, 2.0**-28 * float(n_columns) ** 2)


def admm_threshold(noise: float) -> float:
    """What the noise of one round exceeds seldom; where there is none, next to nothing."""
    return max(3.0 * noise, 1e-3)


def choose_output_ridge(n_samples: int, n_columns: int, mu: float, curvature: float) -> float:
    """Noise ~ 1/ridge and shrinkage ~ ridge/n balance."""
    balanced = math.sqrt(2.0 * n_samples / (n_columns * mu))
    return max(balanced, 2.0 * least_ridge(n_columns + 1)) * curvature

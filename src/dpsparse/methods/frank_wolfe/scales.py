"""Scales of Frank-Wolfe that are released instead of asked for.

    "table"     x <- D (x - m) sqrt(d)/l1, entries of typical size one (look.py), clipped to ENTRY
    "entries"   b = median over the rows of |x_i|/sqrt(non-zeros of x_i), by noisy counts; the kernel cuts entries to b
    numbers     y <- (y - mean)/c, Huber's loss with cutoff 1: slopes have a bound whatever the ball is
    ball        radius r/b: margins of at most r, in cutoffs

Noise is proportional to b times the largest slope. A declared bound is that of the largest entry there may ever be;
the sums that a pick must see are made of typical ones. Clipped columns fit whole ones badly where all entries are
positive: a table that is narrow enough to be centred is centred first. Weights go back to the original columns
by released numbers. Proof: docs/proofs/frank_wolfe.md, "Released scales".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dpsparse.losses import Huber
from dpsparse.methods.frank_wolfe.problem import check_public
from dpsparse.methods.look.table import ENTRY_HALVINGS, look_at_table, release_entry_size
from dpsparse.methods.look.targets import release_cutoff, release_mean
from dpsparse.release import Releases
from dpsparse.rows import Rows

if TYPE_CHECKING:
    from dpsparse.methods.frank_wolfe.solve import Ball

ENTRY = 1.5  # where entries of standardised columns are clipped, in units of their typical size


@dataclass(frozen=True)
class Scales:
    """The public side: what is released, and how large margins may become."""

    way: str  # "table" or "entries"
    n_samples: int
    longest: float  # declared bound on the length of a row
    largest: float  # and on an entry
    reach: float  # largest margin of the ball, in cutoffs where targets are numbers
    numbers: bool

    def check(self, target: float) -> None:
        """Refuse what floats cannot carry, whatever will be released; `target` is the declared bound, or one."""
        lowest = self.largest / 2.0**ENTRY_HALVINGS
        for bound in (ENTRY,) if self.way == "table" else (lowest, self.largest):
            for slope in (target,) if self.numbers else (0.5, 1.0):  # ends of the logistic bound
                check_public(self.reach * target / bound, bound, slope)


@dataclass(frozen=True)
class Back:
    """From weights on mapped rows to weights on rows as they are; released numbers."""

    stretch: np.ndarray | float
    centre: np.ndarray | None
    middle: float
    unit: float

    def __call__(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        coef = coef * (self.stretch * self.unit)
        intercept = intercept * self.unit + self.middle
        return coef, intercept if self.centre is None else intercept - np.sum(
            coef * self.centre, axis=1
        )


def release_scales(
    rows: Rows, ball: Ball, scales: Scales, releases: Releases
) -> tuple[Rows, Ball, Back]:
    """Mapped rows, the ball on them, and the way back."""
    n = scales.n_samples
    loss, target, middle, unit = ball.loss, 1.0, 0.0, 1.0
    if scales.numbers:
        _, middle = release_mean(rows, releases, n)
        unit = release_cutoff(rows, releases, n, middle)
        target = rows.domain.target_bound or 1.0
        loss = Huber(target)  # kernels have targets in units of their bound
    stretch: np.ndarray | float = 1.0
    centre = None
    if scales.way == "table":
        look = look_at_table(rows, releases, n, scales.longest)
        stretch, centre = look.scaling * (math.sqrt(rows.n_features) / look.length), look.centre
        mapped, bound = rows.standardised(centre, stretch, middle=middle, unit=unit), ENTRY
    else:
        bound = release_entry_size(rows, releases, n, scales.largest)
        mapped = rows.standardised_targets(middle, unit) if scales.numbers else rows
    mapped = mapped.bounded(bound)
    radius = scales.reach * target / bound
    slope_bound = loss.slope_bound(mapped.domain, radius)
    ball = replace(
        ball, loss=loss, feature_bound=bound, radius=radius, slope_bound=slope_bound, scales=None
    )
    return mapped, ball, Back(stretch, centre, middle * target, unit)

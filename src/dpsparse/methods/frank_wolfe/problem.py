"""What a Frank-Wolfe run gets, and what it releases: both public.

    w_T = 2 radius / ((T+1)(T+2)) * sum_t (t+2) (-s_t) e_{j_t}        t = 0 .. T-1

The released history (cells and signs) determines the weights, and together with the rows it determines the state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpsparse.exceptions import ParameterError
from dpsparse.losses import Huber, Loss

INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class Problem:
    """The public side of a run: everything the solver gets besides the rows.

    `offset` is a public margin per output that every row starts from, for instance the log-odds of
    a noisy class count; empty means zero. It must be known when `slope_bound` is chosen
    (`Loss.slope_bound`) and is added to the published intercept.
    """

    loss: Loss
    radius: float
    n_iter: int
    kappa: float  # per unit of sum_i slope_i x_ij; infinite for the arg max
    slope_bound: float
    resolution: int
    feature_bound: float = 1.0
    n_outputs: int = 1
    fit_intercept: bool = True
    offset: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check_public(
            self.radius, self.feature_bound, self.slope_bound, self.offset, self.unit_kappa
        )
        if self.offset and len(self.offset) != self.n_outputs:
            raise ParameterError("offset needs one number per output.")
        S = self.resolution
        if not (0 < S <= 2**30 and S & (S - 1) == 0):
            raise ParameterError("resolution must be a power of two of at most 2^30.")

    @property
    def cutoff(self) -> float:
        """Where the loss becomes linear; 0 for a loss that has no such place."""
        return self.loss.cutoff if isinstance(self.loss, Huber) else 0.0

    @property
    def unit_kappa(self) -> float:
        """kappa per unit of the whole-number scores; a row moves a score by <= resolution units."""
        return self.kappa * self.feature_bound * self.slope_bound / self.resolution


def check_public(
    radius: float,
    feature_bound: float,
    slope_bound: float,
    offset: tuple[float, ...] = (),
    unit_kappa: float = math.inf,
) -> None:
    """Refuse public numbers that cannot be carried through a run; call it before spending."""
    numbers = {
        "radius": radius,
        "feature_bound": feature_bound,
        "slope_bound": slope_bound,
        "radius * feature_bound": radius * feature_bound,
        "feature_bound * slope_bound": feature_bound * slope_bound,
    }
    for name, number in numbers.items():
        if not 2.0**-100 <= number <= 2.0**100:
            raise ParameterError(
                f"{name} must be between 2^-100 and 2^100, got {number!r}; rescale the features."
            )
    if not unit_kappa >= 2.0**-56:  # a depth of the sampler must be a 64-bit number
        raise ParameterError("epsilon is too small for that many steps; lower n_iter.")
    if not all(abs(b) <= 2.0**100 for b in offset):
        raise ParameterError("offset must be finite and at most 2^100.")


@dataclass(frozen=True)
class Units:
    """The way from the weights of a run to weights on the rows as they are; all of it is released or public."""

    stretch: np.ndarray | None = None
    centre: np.ndarray | None = None
    middle: float = 0.0
    unit: float = 1.0

    def publish(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights on the rows as they are."""
        if self.stretch is not None:
            coef = coef * (self.stretch * self.unit)
        elif self.unit != 1.0:
            coef = coef * self.unit
        intercept = intercept * self.unit + self.middle
        if self.centre is not None:
            intercept = intercept - np.sum(coef * self.centre, axis=1)
        return coef, intercept

    def rescaled(self, factors: np.ndarray) -> Units:
        """The same for columns that are multiplied by 1/factors."""
        stretch = factors if self.stretch is None else self.stretch * factors
        centre = None if self.centre is None else self.centre / factors
        return replace(self, stretch=stretch, centre=centre)


@dataclass(frozen=True)
class History:
    """What a run releases: for each step a cell (feature, output) and the sign of its vertex.

    The gap and the objective of a step are not here: both need the exact gradient or the rows, which are not released.
    """

    features: np.ndarray  # the number of features stands for the intercept
    outputs: np.ndarray
    signs: np.ndarray  # of the vertex moved to
    radius: float
    n_features: int
    n_outputs: int
    intercept_value: float
    offset: tuple[float, ...] = ()
    units: Units = Units()

    @classmethod
    def of(cls, problem: Problem, n_features: int, cells: np.ndarray, signs: np.ndarray) -> History:
        """Picks as they may be released: cells in the order of scores, signs of the vertices moved to."""
        K, p = problem.n_outputs, problem
        places = cells // K, cells % K
        return cls(*places, signs, p.radius, n_features, K, p.feature_bound, p.offset)

    def weights(self, n_steps: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """coef of shape (n_outputs, n_features) and intercept of shape (n_outputs,) after the first `n_steps` picks,
        or after all of them."""
        n_iter = len(self.signs) if n_steps is None else n_steps
        if not 0 <= n_iter <= len(self.signs):
            raise ParameterError(f"n_steps must be between 0 and {len(self.signs)}, got {n_iter}.")
        features, outputs = self.features[:n_iter], self.outputs[:n_iter]
        steps = self.signs[:n_iter] * (np.arange(n_iter) + 2.0)
        unit = 2.0 * self.radius / ((n_iter + 1.0) * (n_iter + 2.0))
        coef = np.zeros((self.n_outputs, self.n_features))
        intercept = np.zeros(self.n_outputs)
        constant = features == self.n_features
        inside = ~constant
        picked = outputs[inside], features[inside]
        np.add.at(coef, picked, steps[inside])
        np.add.at(intercept, outputs[constant], steps[constant])
        coef[picked] = unit * coef[picked]  # millions of others stay untouched zeros
        intercept *= unit * self.intercept_value
        return self.units.publish(coef, intercept + np.asarray(self.offset or 0.0))


def choose_resolution(n_samples: int | None, eta: float) -> int:
    """Units a row may add to a score, from public numbers: as fine as 32-bit sums allow, up to a million rows.

    Beyond that about 2 sqrt(n), in 64-bit sums: what rounding adds to a score, of sd .29 sqrt(n)/S rows, stays below
    .3 of a row. Without a public number of rows 2^11, enough for a million rows in one column; more rows than
    stated make the sums 64-bit wide and change nothing else. A large eta needs finer units; what
    one row adds stays a 32-bit number.
    """
    n = n_samples or 2**20
    bits = (
        int(math.log2(INT32_MAX / n)) if n_samples and n < 2**20 else 1 + (n - 1).bit_length() // 2
    )
    needed = math.ceil(math.log2(32.0 * eta)) if eta > 0 else 0
    return int(2 ** min(max(min(bits, 24), 8, needed), 29))

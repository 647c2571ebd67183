"""How many weights to keep: public k, the free mass rule, or a private count.

Paper: Khanna, Lu, Raff, "Sparse Private LASSO Logistic Regression" (2023), Alg. 2 "Sparsifier".

    c <- clip(count, a, b)                       count = non-zeros of a non-private solution
    c <- clip(c + Geometric2(e^{-eps1/(b-a)}), a, b)
    k <- clip(c * rho, 0, number of weights)
    keep the k weights of largest magnitude

| paper | here |
|---|---|
| alpha, beta | `PrivateCount.low`, `PrivateCount.high`: whole numbers |
| epsilon_1 | `PrivateCount.epsilon` |
| rho | `PrivateCount.precision` |

Deviation: the bounds must be whole numbers. With the paper's sqrt(p) and 2 sqrt(p) the clipped
count moves by a fraction, the supports of the noisy counts differ, and no epsilon holds. Keeping
weights is post-processing in every case, so only the private count is charged.
Proof: docs/proofs/sparsifier.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpsparse._checks import is_real, is_whole, safe_repr
from dpsparse.accounting.events import Event, Geometric
from dpsparse.exceptions import ParameterError
from dpsparse.sensitivity import Sensitivity, clipped_count

AUTO = "auto"  # as many as the rows can find
MASS: Literal["mass"] = "mass"


@dataclass(frozen=True)
class PrivateCount:
    """Keep as many weights as a non-private fit has, privately counted (Khanna, Lu, Raff 2023).

    Parameters
    ----------
    low, high : int
        Public whole bounds of the count, ``0 <= low < high``.
    epsilon : float
        Price of the count; it is part of the fit's total, not on top of it.
    precision : float, default=1.0
        Factor on the noisy count (rho of the paper): below 1 keeps fewer weights.

    Examples
    --------
    >>> from dpsparse import Domain, DPLassoClassifier, PrivateCount
    >>> count = PrivateCount(low=5, high=200, epsilon=0.1)
    >>> plan = DPLassoClassifier(Domain(classes=[0, 1]), epsilon=1.0, n_nonzero=count).plan(n_features=1_000)
    >>> print(plan.guarantee.headline)  # the count included
    (1, 1e-6)-DP of the table given to fit, add/remove one row, proven
    """

    low: int
    high: int
    epsilon: float
    precision: float = 1.0

    def __post_init__(self) -> None:
        if not (is_whole(self.low) and is_whole(self.high) and 0 <= self.low < self.high):
            raise ParameterError(
                "PrivateCount needs whole numbers 0 <= low < high (integer noise on a count "
                f"clipped to fractions is not private); got {safe_repr(self.low)}, {safe_repr(self.high)}."
            )
        for name in ("epsilon", "precision"):
            value = getattr(self, name)
            if not (is_real(value) and 0 < value < math.inf):
                raise ParameterError(
                    f"PrivateCount.{name} must be positive and finite, got {safe_repr(value)}."
                )
        # Numbers of Python, which have no width: int8 bounds would wrap round, data-dependently.
        for name, kind in (("low", int), ("high", int), ("epsilon", float), ("precision", float)):
            object.__setattr__(self, name, kind(getattr(self, name)))

    @property
    def scale(self) -> float:
        """Noise scale: P(noise = k) is proportional to exp(-|k|/scale)."""
        return Geometric.for_epsilon(self.epsilon, self.high - self.low).scale

    @property
    def event(self) -> Event:
        """What the count costs; one row may move it across its whole range."""
        return Geometric(scale=self.scale, sensitivity=int(self.moved.value))

    @property
    def moved(self) -> Sensitivity:
        """How far one row may move the clipped count: as far as its bounds allow."""
        return clipped_count(self.low, self.high)

    def clipped(self, count: int) -> int:
        """What the noise is added to: one row moves it by at most high - low."""
        return min(max(int(count), self.low), self.high)

    def kept(self, noisy: int, n_weights: int) -> int:
        """Post-processing: a noisy count as a number of weights."""
        return min(max(math.floor(self.clipped(noisy) * self.precision), 0), int(n_weights))


NNonzero = None | int | Literal["mass"] | PrivateCount


def check_n_nonzero(n_nonzero: Any) -> NNonzero:
    """The estimator parameter `n_nonzero`, validated; the error names the four forms."""
    if n_nonzero is None or isinstance(n_nonzero, PrivateCount):
        return n_nonzero
    if isinstance(n_nonzero, str) and n_nonzero == MASS:
        return MASS
    if is_whole(n_nonzero) and n_nonzero >= 1:
        return int(n_nonzero)
    raise ParameterError(
        "n_nonzero must be None (keep all), a whole number of at least 1, 'mass' or a PrivateCount, "
        f"got {safe_repr(n_nonzero)}."
    )


def check_count_or_auto(n_nonzero: Any) -> None:
    """Refuse what a method that finds its columns first cannot take: its number of picks is part of the price."""
    is_auto = isinstance(n_nonzero, str) and n_nonzero == AUTO
    if not is_auto and not (is_whole(n_nonzero) and n_nonzero >= 1):
        raise ParameterError(
            f"n_nonzero must be a whole number of at least 1 or 'auto', got {safe_repr(n_nonzero)}. The columns share "
            "the budget, so that their number must be known before the rows are read."
        )


def choose_columns(N: float, n_features: int) -> int:
    """What "auto" stands for: as many columns as N effective rows (rows times mu) can find, from public or released
    numbers. That 50 are the most was set by judgement."""
    return min(max(int(min(N / 12.0, 50.0)), 1), n_features)


def count_event(n_nonzero: NNonzero) -> Event | None:
    """The event `n_nonzero` adds to a plan; None where it is free."""
    return n_nonzero.event if isinstance(n_nonzero, PrivateCount) else None


def keep_nonzeros(weights: np.ndarray, n_nonzero: int | Literal["mass"] | None) -> np.ndarray:
    """Released `weights` with the small ones set to zero: post-processing. A `PrivateCount` becomes a
    number first (`Releases.count`)."""
    if n_nonzero is None:
        return weights
    return top_k(weights, mass_rule(weights) if n_nonzero == MASS else int(n_nonzero))


def top_k(weights: np.ndarray, k: int) -> np.ndarray:
    """A copy that keeps the `k` entries of largest magnitude; equal ones by lower index."""
    weights = np.asarray(weights)
    if k >= weights.size:
        return weights.copy()
    out = np.zeros_like(weights)
    if k <= 0:
        return out
    flat, kept = weights.ravel(), out.reshape(-1)
    size = np.abs(flat)
    threshold = np.partition(size, flat.size - k)[flat.size - k]
    above = size > threshold
    kept[above] = flat[above]
    ties = np.flatnonzero(size == threshold)[: k - np.count_nonzero(above)]
    kept[ties] = flat[ties]
    return out


def mass_rule(weights: np.ndarray) -> int:
    """The smallest k whose k largest weights hold nine tenths of the L1 norm."""
    size = np.abs(np.asarray(weights, dtype=np.float64).ravel())
    size = np.sort(size[size > 0])[::-1]
    if not size.size:
        return 0
    held = np.cumsum(size)
    return int(np.searchsorted(held, 0.9 * held[-1]) + 1)

"""How many weights to keep: public k, the free mass rule, or a private count.

Paper: Khanna, Lu, Raff, "Sparse Private LASSO Logistic Regression" (004), Alg. 2 "Sparsifier".

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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dpsparse.exceptions import ParameterError
from dpsparse.privacy.events import Event, Geometric, NonPrivate
from dpsparse.random import two_sided_geometric

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
    published : bool, default=False
        The Python of the paper's Appendix B, which overwrites the noisy count by the exact one
        (its line 58). No guarantee; for reproduction only.
    """

    low: int
    high: int
    epsilon: float
    precision: float = 1.0
    published: bool = False

    def __post_init__(self) -> None:
        if not (_is_whole(self.low) and _is_whole(self.high) and 0 <= self.low < self.high):
            raise ParameterError(
                "PrivateCount needs whole numbers 0 <= low < high (integer noise on a count "
                f"clipped to fractions is not private); got {self.low!r}, {self.high!r}."
            )
        for name in ("epsilon", "precision"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and 0 < value < math.inf):
                raise ParameterError(
                    f"PrivateCount.{name} must be positive and finite, got {value!r}."
                )

    @property
    def scale(self) -> float:
        """Noise scale: P(noise = k) is proportional to exp(-|k|/scale)."""
        return (self.high - self.low) / self.epsilon

    @property
    def event(self) -> Event:
        """What the count costs; one row may move it across its whole range."""
        if self.published:
            return NonPrivate()
        return Geometric(scale=self.scale, sensitivity=int(self.high - self.low))

    def release(self, count: int, n_weights: int, rng: np.random.Generator) -> int:
        """The number of weights to keep, from the exact `count` of a non-private solution."""
        clipped = min(max(int(count), self.low), self.high)
        if not self.published:
            noise = int(two_sided_geometric(rng, self.scale))
            clipped = min(max(clipped + noise, self.low), self.high)
        return min(max(math.floor(clipped * self.precision), 0), n_weights)


NNonzero = None | int | Literal["mass"] | PrivateCount


def check_n_nonzero(n_nonzero: Any) -> NNonzero:
    """The estimator parameter `n_nonzero`, validated; the error names the four forms."""
    if n_nonzero is None or isinstance(n_nonzero, PrivateCount):
        return n_nonzero
    if isinstance(n_nonzero, str) and n_nonzero == MASS:
        return MASS
    if _is_whole(n_nonzero) and n_nonzero >= 1:
        return int(n_nonzero)
    raise ParameterError(
        "n_nonzero must be None (keep all), a whole number of at least 1, 'mass' or a PrivateCount, "
        f"got {n_nonzero!r}."
    )


def count_event(n_nonzero: NNonzero) -> Event | None:
    """The event `n_nonzero` adds to a plan; None where it is free."""
    return n_nonzero.event if isinstance(n_nonzero, PrivateCount) else None


def sparsify_weights(
    weights: np.ndarray,
    n_nonzero: NNonzero,
    rng: np.random.Generator,
    exact_count: Callable[[], int] | None = None,
) -> np.ndarray:
    """Released `weights` with the small ones set to zero, by the rule `n_nonzero`.

    `exact_count` reads the private rows (non-zeros of a non-private fit) and is called only for
    a `PrivateCount`; everything else is post-processing of the weights.
    """
    if n_nonzero is None:
        return weights
    if isinstance(n_nonzero, PrivateCount):
        if exact_count is None:
            raise ParameterError("A PrivateCount needs a method that can count; use n_nonzero=k.")
        return top_k(weights, n_nonzero.release(exact_count(), weights.size, rng))
    if n_nonzero == MASS:
        return top_k(weights, mass_rule(weights))
    return top_k(weights, int(n_nonzero))


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


def mass_rule(weights: np.ndarray, mass: float = 0.9) -> int:
    """The smallest k whose k largest weights hold the share `mass` of the L1 norm."""
    if not 0 < mass <= 1:
        raise ParameterError(f"mass must lie in (0, 1], got {mass!r}.")
    size = np.abs(np.asarray(weights, dtype=np.float64).ravel())
    size = np.sort(size[size > 0])[::-1]
    if not size.size:
        return 0
    held = np.cumsum(size)
    # The last sum is the norm itself, so mass = 1 keeps exactly the non-zero weights.
    return int(np.searchsorted(held, mass * held[-1]) + 1)


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)

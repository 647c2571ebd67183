"""Names that enough rows know, with noisy weights: only names that occur get noise, so a threshold hides which.

A name that only one row has is released with probability at most `leak`; otherwise the release is a Gaussian one
(docs/proofs/preparation.md, Lemma 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import log_ndtr

from dpsparse.accounting.events import ThresholdedGaussian
from dpsparse.mechanisms.base import Answer, Release
from dpsparse.mechanisms.gaussian import GaussianNoise, exact_unit
from dpsparse.random import STEPS, Generator, add_integers
from dpsparse.sensitivity import name_threshold, shared_names

if TYPE_CHECKING:
    from dpsparse.rows import Names


@dataclass(frozen=True)
class CommonNames(Answer):
    """Names whose noisy weight in multiples of `unit` is above `limit`, in their own order, never that of rows."""

    kind: ClassVar[str] = "names"
    events: ClassVar[Any] = (ThresholdedGaussian,)
    proof: ClassVar[str] = "docs/proofs/preparation.md"
    lemmas: ClassVar[tuple[str, ...]] = ("shared_names", "name_threshold")

    names: Names
    scale: float
    unit: float
    limit: int

    @classmethod
    def paid_by(
        cls, event: ThresholdedGaussian | None, names: Names, adjacency: str
    ) -> CommonNames:
        """The noise and the threshold that `event` pays for; None: no noise, every name."""
        if event is None:
            return cls(names, 0.0, exact_unit(names.weights()), 0)
        scale = shared_names(adjacency).value / GaussianNoise.price(event)
        threshold = name_threshold(scale, names.most, event.leak, adjacency)
        # One unit more than the threshold: the rounding of noise and weights is on the safe side.
        return cls(names, scale, scale / STEPS, math.ceil(threshold / (scale / STEPS)) + 1)

    @property
    def step(self) -> float:
        return self.unit / self.scale if self.scale > 0.0 else math.inf

    def question(self) -> np.ndarray:
        return self.names.weights().whole(self.unit).reshape(-1)

    def draw(self, question: np.ndarray, rng: Generator) -> np.ndarray:
        if self.scale > 0.0:
            add_integers(rng, question)
        kept = np.flatnonzero(question > self.limit)
        return np.array(
            [(self.names.known[j], question[j]) for j in kept],
            [("name", object), ("weight", np.int64)],
        )

    def bound(self, adjacency: str) -> tuple[Fraction, str]:
        return Fraction(shared_names(adjacency).value) / Fraction(self.unit), "L2"

    def record(self) -> dict[str, Any]:
        return {"names": self.names.known, "limit": self.limit}

    @classmethod
    def price(cls, event: Any) -> float:
        return GaussianNoise.price(event)

    @classmethod
    def loss(cls, a: Release, b: Release) -> float:
        """Infinite if a name was released that the other table does not have: `leak` pays for that."""
        return cls._log_density(a, a.answer) - cls._log_density(b, a.answer)

    @classmethod
    def leak(cls, a: Release, b: Release) -> float:
        """The probability, over both tables, that a name is released which the other table does not have."""
        total = 0.0
        for one, two in ((a, b), (b, a)):
            foreign = set(two.names)
            own = [
                int(w) for name, w in zip(one.names, one.query, strict=True) if name not in foreign
            ]
            none = sum(float(log_ndtr((one.limit - w) * one.step)) for w in own)
            total -= math.expm1(none)
        return total

    @staticmethod
    def _log_density(on: Release, told: np.ndarray) -> float:
        weights = dict(zip(on.names, on.query, strict=True))
        if any(name not in weights for name in told["name"]):
            return -math.inf
        total = 0.0
        for name, weight in zip(told["name"], told["weight"], strict=True):
            total -= float(int(weight) - int(weights.pop(name))) ** 2 * on.step**2 / 2.0
        silent = [(on.limit - int(w)) * on.step for w in weights.values()]
        return total + float(np.sum(log_ndtr(silent)))

"""Whole numbers with two-sided geometric noise: unit * (q + Z), P(Z = k) ~ exp(-|k|/scale).

Pure privacy. For one number that is released alone it takes less noise than a Gaussian at the same (epsilon, delta):
at epsilon .1 and delta 1e-6 a standard deviation of 14 sensitivities instead of 36. Beside many other releases
Gaussian noise is cheaper. Law and price: docs/proofs/counts.md, Lemma 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpsparse.accounting.events import Event, Geometric, NonPrivate
from dpsparse.exceptions import CalibrationError
from dpsparse.mechanisms.base import Answer, Release, difference
from dpsparse.mechanisms.gaussian import exact_unit
from dpsparse.random import Generator, two_sided_geometric

if TYPE_CHECKING:
    from dpsparse.rows import Query


@dataclass(frozen=True)
class GeometricNoise(Answer):
    """The answer to a `query` of one number in multiples of `unit`; `scale` is that of the noise in whole numbers,
    0 for none."""

    kind: ClassVar[str] = "geometric"
    events: ClassVar[Any] = (Geometric,)
    proof: ClassVar[str] = "docs/proofs/counts.md"
    added: ClassVar[bool] = True

    query: Query
    unit: float
    scale: float

    @classmethod
    def paid_by(cls, event: Event, query: Query, adjacency: str) -> GeometricNoise:
        """The noise that `event` pays for: its whole numbers are units of the sensitivity of the query. No noise
        where nothing is paid; a phase that pays for other noise is refused, or its number would leave as it is."""
        if isinstance(event, NonPrivate):
            return cls(query, exact_unit(query), 0.0)
        if not isinstance(event, Geometric):
            raise CalibrationError("The phase does not pay for geometric noise; a bug.")
        reach = query.sensitivity(adjacency).value
        unit = reach / event.sensitivity
        # Noise in whole numbers hides no fraction of one: the sensitivity must be a whole number of units.
        if (
            query.size != 1
            or query.rounded
            or Fraction(unit) * event.sensitivity != Fraction(reach)
        ):
            raise CalibrationError("The phase pays for another number; a bug.")
        return cls(query, unit, event.scale)

    @property
    def sd(self) -> float:
        """Standard deviation of the noise, in the units of the query: sqrt(2 r)/(1 - r), r = e^(-1/scale)."""
        if self.scale == 0.0:
            return 0.0
        return self.unit / (math.sqrt(2.0) * math.sinh(0.5 / self.scale))

    @property
    def step(self) -> float:
        return 1.0 / self.scale if self.scale > 0.0 else math.inf

    def question(self) -> np.ndarray:
        return self.query.whole(self.unit).reshape(-1)

    def draw(self, question: np.ndarray, rng: Generator) -> np.ndarray:
        if self.scale > 0.0:
            noisy = int(question[0]) + two_sided_geometric(rng, self.scale)
            question[0] = min(max(noisy, -(2**62)), 2**62)  # post-processing
        return question

    def bound(self, adjacency: str) -> tuple[Fraction, str]:
        moved = self.query.sensitivity(adjacency)
        return Fraction(moved.value) / Fraction(self.unit), moved.norm

    @classmethod
    def price(cls, event: Any) -> float:
        return float(event.sensitivity / event.scale)

    @classmethod
    def loss(cls, a: Release, b: Release) -> float:
        own, away = difference(a.answer, a.query), difference(a.answer, b.query)
        return float((np.abs(away) - np.abs(own)).sum()) * a.step

    @classmethod
    def places(cls, release: Release, rng: Generator) -> np.ndarray:
        """P(Z < k) and a uniform part of P(Z = k), k being the noise: P(Z >= k) = r^k/(1 + r), k > 0, r = e^-step."""
        k, step = release.noise.astype(float), release.step
        one_more = 1.0 + math.exp(-step)
        tail = np.exp(-step * np.where(k > 0.0, k, 1.0 - k)) / one_more
        mass = -math.expm1(-step) / one_more * np.exp(-step * np.abs(k))
        below = np.where(k > 0.0, 1.0 - tail, tail)
        return np.asarray(below + rng.random(k.size) * mass)

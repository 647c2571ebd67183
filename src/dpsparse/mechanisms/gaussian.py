"""Sums of whole numbers with rounded Gaussian integers: unit * (q + Z), Z of scale STEPS, scale = STEPS * unit.

Rounding is post-processing, so it costs what Gaussian noise costs, plus 2^-90 a number:
docs/proofs/rounded_gaussian.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpsparse.accounting.events import Gaussian, RoundedGaussian
from dpsparse.exceptions import CalibrationError
from dpsparse.mechanisms.base import Answer, Release, difference
from dpsparse.random import STEPS, Generator, add_integers

if TYPE_CHECKING:
    from dpsparse.rows import Query


@dataclass(frozen=True)
class GaussianNoise(Answer):
    """The answer to `query` in multiples of `unit`; `scale` is the sd of the noise, 0 for none."""

    kind: ClassVar[str] = "gaussian"
    events: ClassVar[Any] = (RoundedGaussian, Gaussian)
    proof: ClassVar[str] = "docs/proofs/rounded_gaussian.md"
    added: ClassVar[bool] = True

    query: Query
    scale: float
    unit: float

    @staticmethod
    def scale_for(query: Query, mu: float, adjacency: str) -> float:
        """The sd of noise for which one row moves the answer by mu of it, at most."""
        moved = query.sensitivity(adjacency).value
        if not query.rounded:
            return moved / mu
        # Rounding moves each entry by half a unit on either table, and the unit is scale/STEPS.
        left = mu - math.sqrt(query.size) / STEPS
        if not left > 0.0:
            raise CalibrationError(
                "Rounding to the grid would cost more than the phase pays; a bug."
            )
        return moved / left

    @property
    def step(self) -> float:
        return self.unit / self.scale if self.scale > 0.0 else math.inf

    def question(self) -> np.ndarray:
        return self.query.whole(self.unit).reshape(-1)

    def draw(self, question: np.ndarray, rng: Generator) -> np.ndarray:
        if self.scale > 0.0:
            add_integers(rng, question)
        return question

    def bound(self, adjacency: str) -> tuple[Fraction, str]:
        whole = Fraction(self.query.sensitivity(adjacency).value) / Fraction(self.unit)
        # A rounded query moves by half a unit an entry on either table: sqrt(size) units, at most.
        return whole + Fraction(math.sqrt(self.query.size) if self.query.rounded else 0), "L2"

    def certified(self) -> bool:
        return self.query.certificate is None or self.query.certificate()

    @classmethod
    def price(cls, event: Any) -> float:
        return float(event.sensitivity / event.scale)

    @classmethod
    def loss(cls, a: Release, b: Release) -> float:
        if not a.noise.size:
            return 0.0
        # With c = q' - q and noise z the difference of squares is c.(c - 2z): no cancellation.
        change = difference(b.query, a.query)
        return float(change @ (change - 2.0 * a.noise)) * a.step**2 / 2.0


def exact_unit(query: Query) -> float:
    """The grid of an answer without noise: sums of whole numbers do not depend on their order."""
    return query.sensitivity("add-remove").value * 2.0**-32

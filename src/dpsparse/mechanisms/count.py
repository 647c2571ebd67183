"""A count, clipped to public whole bounds, with two-sided geometric noise (docs/proofs/sparsifier.md)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpsparse.mechanisms.base import Answer, Release, difference
from dpsparse.privacy.events import Geometric
from dpsparse.random import Generator
from dpsparse.sensitivity import clipped_count

if TYPE_CHECKING:
    from dpsparse.nonzeros import PrivateCount


@dataclass(frozen=True)
class NoisyCount(Answer):
    """The noisy count is not clipped again here: that is post-processing."""

    kind: ClassVar[str] = "count"
    events: ClassVar[Any] = (Geometric,)
    proof: ClassVar[str] = "docs/proofs/sparsifier.md"
    lemmas: ClassVar[tuple[str, ...]] = ("clipped_count",)
    added: ClassVar[bool] = True

    rule: PrivateCount
    count: int

    @property
    def step(self) -> float:
        return 1.0 / self.rule.scale

    def question(self) -> np.ndarray:
        return np.array([self.rule.clipped(self.count)], np.int64)

    def draw(self, question: np.ndarray, rng: Generator) -> np.ndarray:
        return np.array([self.rule.noisy(int(question[0]), rng)], np.int64)

    def bound(self, adjacency: str) -> tuple[Fraction, str]:
        moved = clipped_count(self.rule.low, self.rule.high)  # whatever the neighbours are
        return Fraction(moved.value), moved.norm

    @classmethod
    def price(cls, event: Any) -> float:
        return float(event.sensitivity / event.scale)

    @classmethod
    def loss(cls, a: Release, b: Release) -> float:
        """An upper bound of what the clipped count tells."""
        own, away = difference(a.answer, a.query), difference(a.answer, b.query)
        return float((np.abs(away) - np.abs(own)).sum()) * a.step

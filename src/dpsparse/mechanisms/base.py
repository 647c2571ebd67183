"""What every mechanism is, and what one of its releases looks like when it is written down."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpsparse.accounting.events import Event
from dpsparse.random import Generator

MECHANISMS: dict[str, type[Mechanism]] = {}  # by kind; a class enters itself


@dataclass(frozen=True)
class Release:
    """One release, as a recorded fit writes it down (audit/recorded.py)."""

    phase: str  # the plan's phase that pays
    kind: str  # of mechanism; "fact" for what is public
    query: np.ndarray  # whole numbers: the exact answer
    answer: np.ndarray  # whole numbers that left, or the picks in the order drawn
    step: float  # what one whole number is worth in units of the noise
    paid: int = 1  # picks paid for
    bound: Fraction | None = None  # how far one row may move the query, in its own numbers
    norm: str = "L2"  # and how that is measured
    log_volume: float = 0.0  # of an objective: log det of the Hessian at the released point
    # What each number of the query belongs to, where tables differ in that; released if its answer is above `limit`.
    names: tuple[str, ...] = ()
    limit: int = 0

    @property
    def noise(self) -> np.ndarray:
        """What was added; empty where that does not show."""
        added = self.kind in MECHANISMS and MECHANISMS[self.kind].added
        shown = added and self.answer.size == self.query.size
        return self.answer - self.query if shown else np.empty(0)

    def cost(self, other: Release) -> float:
        """What the answer tells about which of two tables it comes from, their history being the same."""
        change = difference(*self.side_by_side(other))
        if not change.any():
            return 0.0
        return MECHANISMS[self.kind].size(change) * self.step

    @property
    def worst(self) -> float:
        """The most that the answer may tell about any two neighbours, by the bound of its query; 0 where that is not
        written down. Scores that move by at most the bound, up or down, are twice as far apart."""
        if self.bound is None or not math.isfinite(self.step):
            return 0.0
        return float(self.bound) * self.step * (2.0 if self.norm == "Linf" else 1.0)

    def reach(self, other: Release) -> tuple[float, bool]:
        """How far the query moved, as a share of its bound, and whether it kept to it, in exact arithmetic."""
        assert self.bound is not None
        pairs = zip(*self.side_by_side(other), strict=True)
        moved = [int(b) - int(a) for a, b in pairs if a != b]
        if self.norm == "L2":
            squares, limit = sum(m * m for m in moved), self.bound**2
            return float(squares / limit) ** 0.5, squares <= limit
        if self.norm == "range":  # a null candidate never moves
            most = max([0, *moved]) - min([0, *moved])
        elif self.norm == "L1":
            most = sum(map(abs, moved))
        else:
            most = max(map(abs, moved), default=0)
        return float(most / self.bound), most <= self.bound

    def side_by_side(self, other: Release) -> tuple[np.ndarray, np.ndarray]:
        """Both queries in one order; a name that does not occur has weight zero."""
        if self.names == other.names:
            return self.query, other.query
        order = {name: j for j, name in enumerate(sorted({*self.names, *other.names}))}
        sides = np.zeros((2, len(order)), np.int64)
        for side, entry in zip(sides, (self, other), strict=True):
            side[[order[name] for name in entry.names]] = entry.query
        return sides[0], sides[1]


def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a - b as float64, exact for whole numbers up to 2^53 apart and never wrapped around."""
    if a.dtype.kind != "i":
        return np.asarray(a - b)
    return np.array([float(int(x) - int(y)) for x, y in zip(a, b, strict=True)])


class Mechanism(ABC):
    """A law and its price: what pays for a release, what it may cost, what it revealed. The audit tests both."""

    kind: ClassVar[str]
    events: ClassVar[tuple[type[Event], ...]]  # what may pay for it
    proof: ClassVar[str]  # the note with its law and its price
    lemmas: ClassVar[tuple[str, ...]] = ()  # of sensitivity.py; none: the query brings its own
    added: ClassVar[bool] = False  # whether the answer is the question plus noise

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "kind" in cls.__dict__:
            MECHANISMS[cls.kind] = cls

    @classmethod
    def size(cls, change: np.ndarray) -> float:
        """How large a change of the question is, as its noise sees it: the L2 norm, unless said otherwise."""
        return float(np.linalg.norm(change))

    @classmethod
    @abstractmethod
    def price(cls, event: Any) -> float:
        """The largest cost (`Release.cost`) of a release that `event` pays for."""

    @classmethod
    @abstractmethod
    def loss(cls, a: Release, b: Release) -> float:
        """log p(answer of a | D) - log p(answer of a | D'), the history fixed; `b` is the release on D'."""

    @classmethod
    def places(cls, release: Release, rng: Generator) -> np.ndarray:
        """Numbers that are uniform on [0, 1] if the answer has its law; empty where another test looks at it."""
        return np.empty(0)


class Answer(Mechanism):
    """A mechanism that asks first and draws then. An instance is one release about to be made, paid by a phase."""

    @property
    @abstractmethod
    def step(self) -> float:
        """What one whole number of the question is worth in units of the noise."""

    @abstractmethod
    def question(self) -> np.ndarray:
        """The exact answer, in whole numbers; a fresh array."""

    @abstractmethod
    def draw(self, question: np.ndarray, rng: Generator) -> np.ndarray:
        """What leaves; it may be made in the memory of the question, and depends on no row otherwise."""

    @abstractmethod
    def bound(self, adjacency: str) -> tuple[Fraction, str]:
        """How far one row may move the question, in whole numbers, and the norm in which that is measured."""

    def record(self) -> dict[str, Any]:
        """More public facts for the record of a release (fields of `Release`)."""
        return {}

    def certified(self) -> bool:
        """Whether the question is what its lemma assumes (a search that reached its tolerance)."""
        return True

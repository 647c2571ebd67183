"""Candidates drawn with probability proportional to e^(kappa * score), on whole-number scores.

`Picks` draws k of them one after the other, exactly (mechanisms/top_k.py). `Vertices` are signed vertices drawn
inside the kernel of Frank-Wolfe, where rows and noise meet: every step is one pick among all signed cells, and
its scores follow from rows and released history. `NoisyMaxLaw` are the same with Laplace noise, as
Khanna, Lu and Raff (2023) print them. Law and price: docs/proofs/selection.md, docs/proofs/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from dpsparse.accounting.events import Exponential, Pure
from dpsparse.exceptions import CalibrationError
from dpsparse.mechanisms.base import Answer, Mechanism, Release
from dpsparse.mechanisms.top_k import ROUNDING_RANGE, top_k
from dpsparse.random import Generator
from dpsparse.sensitivity import Sensitivity, vertex_score

if TYPE_CHECKING:
    from dpsparse.methods.frank_wolfe.run import History, Steps
    from dpsparse.rows import Query


@dataclass(frozen=True)
class Picks(Answer):
    """`k` entries of `scores`."""

    kind: ClassVar[str] = "picks"
    events: ClassVar[Any] = (Exponential,)
    proof: ClassVar[str] = "docs/proofs/selection.md"

    scores: Query
    k: int
    unit: float
    kappa: float  # for one whole number

    @staticmethod
    def kappa_for(moved: Sensitivity, event: Exponential) -> float:
        """Inverse temperature of a draw whose range is the eta of `event`, less the rounding of the sampler."""
        # Scores that move by at most D, up or down, have range 2 D; some lemmas know better.
        reach = moved.value if moved.norm == "range" else 2.0 * moved.value
        if not event.eta > ROUNDING_RANGE:
            raise CalibrationError("A pick is paid less than its rounding costs. Raise epsilon.")
        return (event.eta - ROUNDING_RANGE) / reach

    @property
    def step(self) -> float:
        return self.kappa

    def question(self) -> np.ndarray:
        return self.scores.whole(self.unit).reshape(-1)

    def draw(self, question: np.ndarray, rng: Generator) -> np.ndarray:
        return top_k(question, self.k, self.kappa, rng)

    def bound(self, adjacency: str) -> tuple[Fraction, str]:
        moved = self.scores.sensitivity(adjacency)
        norm = "range" if moved.norm == "range" else "Linf"
        return Fraction(moved.value) / Fraction(self.unit), norm

    def record(self) -> dict[str, Any]:
        return {"paid": self.k}

    def certified(self) -> bool:
        return self.scores.certificate is None or self.scores.certificate()

    @classmethod
    def size(cls, change: np.ndarray) -> float:
        return float(np.ptp(change))  # only differences between candidates tell

    @classmethod
    def price(cls, event: Any) -> float:
        return float(event.eta)

    @classmethod
    def loss(cls, a: Release, b: Release) -> float:
        return ranking(a) - ranking(b, a.answer)


@dataclass(frozen=True)
class Vertices:
    """`n_steps` signed vertices, drawn inside the kernel; each is written down as a release of kind `picks`."""

    lemmas: ClassVar[tuple[str, ...]] = ("vertex_score", "vertex_score_range")
    proof: ClassVar[str] = "docs/proofs/fast_frank_wolfe.md"

    steps: Steps
    n_steps: int

    def draw(self, rng: Generator, tell: Callable[[int], None]) -> History:
        return self.steps.draw(rng, self.n_steps, tell)

    @property
    def kind(self) -> str:
        return self.steps.kind

    def picks(self, history: History) -> np.ndarray:
        """The candidates that were drawn: the step goes against the sign s of e^{kappa s G}, +G stands first."""
        cells = history.features * self.steps.problem.n_outputs + history.outputs
        picks = cells + np.where(history.signs < 0, 0, self.steps.n_cells)
        return np.asarray(picks[-self.n_steps :])

    def history(self, picks: np.ndarray) -> History:
        """The history in which these candidates were drawn."""
        n = self.steps.n_cells
        return self.steps.history(picks % n, np.where(picks < n, -1, 1))

    def releases(self, phase: str, picks: np.ndarray, adjacency: str, rows: float) -> list[Release]:
        """Every pick with its scores; each of the `rows` of a person moves every one (docs/proofs/persons.md)."""
        resolution, kappa = self.steps.problem.resolution, self.steps.problem.unit_kappa
        bound = Fraction(vertex_score(1.0, 1.0, adjacency).value) * Fraction(rows) * resolution
        return [
            Release(phase, self.kind, scores, np.array([pick]), kappa, 1, bound, "Linf")
            for pick, scores in zip(picks, self._scores(self.history(picks)), strict=True)
        ]

    def _scores(self, history: History) -> Iterator[np.ndarray]:
        for scores in self.steps.scores(history):
            yield np.concatenate([scores, -scores]).astype(np.int64)


class NoisyMaxLaw(Mechanism):
    """The law and price of a vertex by Laplace noisy max."""

    kind: ClassVar[str] = "noisy max"
    events: ClassVar[Any] = (Pure,)
    proof: ClassVar[str] = "docs/proofs/accounting.md"

    @classmethod
    def size(cls, change: np.ndarray) -> float:
        return Picks.size(change)

    @classmethod
    def price(cls, event: Any) -> float:
        return float(event.epsilon)

    @classmethod
    def loss(cls, a: Release, b: Release) -> float:
        pick = int(a.answer[0])
        return noisy_max_log_probability(keys(a), pick) - noisy_max_log_probability(keys(b), pick)


def noisy_max_log_probability(keys: np.ndarray, pick: int) -> float:
    """log P(key_pick + Lap(1) is the largest), by quadrature on the winner's noisy key.

    P = int f(x - key_pick) prod_{k != pick} F(x - key_k) dx; 20001 nodes over +-40 around the keys.
    """
    x = np.linspace(keys.min() - 40.0, keys.max() + 40.0, 20_001)
    others, times = np.unique(np.delete(keys, pick), return_counts=True)
    log_f = -np.abs(x - keys[pick]) - math.log(2.0)
    for key, count in zip(others, times, strict=True):
        gap = x - key
        log_f += count * np.where(
            gap < 0, gap - math.log(2.0), np.log1p(-0.5 * np.exp(-np.maximum(gap, 0.0)))
        )
    return float(logsumexp(log_f) + math.log(x[1] - x[0]))


def keys(release: Release) -> np.ndarray:
    """Logarithms of the weights of the candidates, the largest 0."""
    return np.asarray((release.query - release.query.max()).astype(float) * release.step)


def ranking(release: Release, picks: np.ndarray | None = None) -> float:
    """Log-probability of drawing `picks` in this order, each ~ exp(key) among those left."""
    left = keys(release)
    total = 0.0
    for pick in release.answer if picks is None else picks:
        total += float(left[pick] - logsumexp(left))
        left[pick] = -np.inf
    return total

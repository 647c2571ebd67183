"""The minimiser of an objective tilted by Gaussian noise, blurred so that nobody sees where the search stopped.

The tilt is the rounding of a real Gaussian vector (docs/proofs/objective_perturbation.md, Lemma 3). Releasing theta is
releasing the tilt that leads to it: minus the gradient without tilt, there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dpsparse.accounting.events import ObjectivePerturbation, RoundedGaussian, Sequence
from dpsparse.exceptions import CalibrationError
from dpsparse.mechanisms.base import Mechanism, Release
from dpsparse.random import LARGEST_DRAW, STEPS, Generator, add_integers, integers
from dpsparse.sensitivity import clipped_gradient_sum

if TYPE_CHECKING:
    from dpsparse.rows import Query, RidgeProblem


@dataclass(frozen=True)
class Tilt(Mechanism):
    """The tilt is in multiples of `unit`, the blurred minimiser in multiples of `fine`.

    Written down as three releases: tilt and blur, which are noise, and the gradient at the released point.
    """

    kind: ClassVar[str] = "objective"
    events: ClassVar[Any] = (ObjectivePerturbation,)
    proof: ClassVar[str] = "docs/proofs/objective_perturbation.md"
    lemmas: ClassVar[tuple[str, ...]] = ("tilted_minimiser", "clipped_gradient_sum")

    problem: RidgeProblem
    unit: float
    fine: float

    @classmethod
    def paid_by(cls, event: Sequence, problem: RidgeProblem, adjacency: str) -> Tilt:
        """The tilt and the blur that `event` pays for; refuses an objective that it does not."""
        tilt, blur = event.events
        assert isinstance(tilt, ObjectivePerturbation)
        assert isinstance(blur, RoundedGaussian)
        if (
            problem.gradient_bound > tilt.gradient_bound * (1.0 + 1e-12)
            or problem.curvature > tilt.curvature * (1.0 + 1e-12)
            or problem.ridge < tilt.ridge
            or adjacency != tilt.adjacency
            or tilt.loss not in problem.events
            or LARGEST_DRAW / STEPS * math.sqrt(problem.rows.width) * tilt.scale
            > problem.longest_tilt
            or blur.sensitivity / blur.scale <= math.sqrt(problem.rows.width) / STEPS
        ):
            raise CalibrationError("The phase pays for another objective; a bug.")
        made = cls(problem, tilt.scale / STEPS, 0.0)
        rounding = math.sqrt(problem.rows.width) / STEPS
        scale = made.inexact(adjacency) / (blur.sensitivity / blur.scale - rounding)
        return replace(made, fine=scale / STEPS)

    def inexact(self, adjacency: str) -> float:
        """How far the minimiser that is found may lie from the exact one, on either table."""
        return self.problem.tilted(np.zeros(0), self.unit).sensitivity(adjacency).value

    @property
    def step(self) -> float:
        return 1.0 / (self.unit * STEPS)

    def tilt(self, rng: Generator) -> np.ndarray:
        """Whole numbers of a tilt."""
        return integers(rng, self.problem.rows.width)

    def minimiser(self, tilt: np.ndarray) -> Query:
        """Where the objective with that tilt is least."""
        return self.problem.tilted(self.unit * tilt, self.unit)

    def blurred(self, minimiser: np.ndarray, rng: Generator) -> np.ndarray:
        """The minimiser with noise, in its memory."""
        add_integers(rng, minimiser)
        return minimiser

    def releases(
        self,
        phase: str,
        tilt: np.ndarray,
        asked: np.ndarray,
        whole: np.ndarray,
        adjacency: str,
    ) -> list[Release]:
        """Given the exact minimiser the blurred one moves by no more than both lie away from it, and by their rounding:
        what tells is the gradient, and the volume."""
        gradient, volume = self.problem.stationarity(whole * self.fine)
        none = np.zeros(len(tilt), np.int64)
        away = Fraction(self.inexact(adjacency)) / Fraction(self.fine)
        turned = clipped_gradient_sum(self.problem.gradient_bound, adjacency).value
        return [
            Release(phase, "gaussian", none, tilt, 1.0 / STEPS),
            Release(
                phase,
                "gaussian",
                asked,
                whole,
                1.0 / STEPS,
                bound=away + Fraction(math.sqrt(len(tilt))),
            ),
            Release(
                phase,
                self.kind,
                gradient,
                np.empty(0),
                self.step,
                bound=Fraction(turned),
                log_volume=volume,
            ),
        ]

    @classmethod
    def price(cls, event: Any) -> float:
        moved = clipped_gradient_sum(event.gradient_bound, event.adjacency)
        return float(moved.value / event.scale)

    @classmethod
    def loss(cls, a: Release, b: Release) -> float:
        tilt = float(b.query @ b.query - a.query @ a.query) * a.step**2 / 2.0
        return tilt + a.log_volume - b.log_volume

"""Random stopping: fit and score candidates a secret random number of times, release the best run only.

    split     A (four fifths) and B, secret, once
    repeat    draw a candidate from the public weights; fit on A with mu'; score on B with mu'
    until     a coin of probability gamma says stop             K runs, geometric, mean 1/gamma
    release   the run with the best noisy score; nothing of the others, not even how many there were

A run is dominated by mu' (a row is in A or in B), the whole by the profile of privacy/stopping.py. gamma is chosen so
that the least likely candidate is tried with probability `chance`. What is released is a run itself, so candidates
are compared at the noise they will have. Papernot, Steinke (2022); proof: docs/proofs/tuning.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq

from dpsparse.exceptions import CalibrationError, ParameterError
from dpsparse.model_selection.candidates import linear, variant
from dpsparse.model_selection.design import PARTS, Fit, Setting, Winner, secret_split
from dpsparse.model_selection.pricing import gaussian_parameter, merged
from dpsparse.privacy import Gaussian, Phase, Plan, RandomStopping, RoundedGaussian
from dpsparse.privacy import delta as event_delta
from dpsparse.privacy import epsilon as event_epsilon
from dpsparse.privacy.budget import gaussian_parameter_at
from dpsparse.random import integer_below
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.held_out import centred_scores

ETA = 1.0  # geometric
IN_A_LEDGER = "renyi_epsilon_in_a_ledger"


@dataclass(frozen=True)
class StoppingDesign:
    name: ClassVar[str] = "stopping"

    setting: Setting
    fits: tuple[Fit, ...]
    score: Plan
    gamma: float
    phases: tuple[Phase, ...]
    kept: float
    facts: dict[str, Any]

    def run(self, rows: Rows, releases: Releases) -> Winner:
        setting = self.setting
        training, testing = secret_split(rows, setting.split, releases)
        stop = Fraction(self.gamma)
        best: tuple[float, Winner | None] = (-math.inf, None)
        while True:
            index = int(releases.drawn("candidate", self._candidate))
            score, winner = self._base(index, training, testing, releases)
            # The first of equally good runs: as runs are alike, that is any of them.
            if best[1] is None or score > best[0]:
                best = score, winner
            if releases.drawn("stop", lambda rng: _coin(rng, stop)):
                break
        if best[1] is None:
            raise CalibrationError("The best run of the search has no model; it is paid for.")
        return best[1]

    def _candidate(self, rng: np.random.Generator) -> np.ndarray:
        return np.asarray(rng.choice(len(self.fits), p=self.setting.weights))

    def _base(
        self, index: int, training: Rows, testing: Rows, releases: Releases
    ) -> tuple[float, Winner | None]:
        """One run. It always ends with an outcome: an error that a row could cause is one, the worst."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a run that nobody may hear of
                fit = self.fits[index]
                solution, n_iter = fit.run(training, releases.under(fit.plan, "run", "A"))
                final = variant(solution, self.setting.candidates[index], cut=False)
                query = centred_scores(testing, [linear(final, training.domain)])
                noisy = float(releases.under(self.score, "run", "B").gaussian("score", query)[0])
        except Exception:
            return -math.inf, None
        return noisy, Winner(index, final, n_iter, noisy)


def largest_affordable(excess: Callable[[float], float], whole: float) -> float:
    """The largest mu between whole/1000 and `whole` whose excess is at most 0, from the safe side."""
    if not excess(whole * 1e-3) <= 0.0:
        raise CalibrationError("The runs of this search cannot be paid by so small an epsilon.")
    mu = float(brentq(excess, whole * 1e-3, whole, xtol=1e-9 * whole, rtol=1e-12))
    for _ in range(1000):
        if excess(mu) <= 0.0:
            return mu
        mu *= 1.0 - 1e-8
    raise CalibrationError("The price of a run could not be confirmed; a bug.")


def stopping_design(setting: Setting) -> StoppingDesign:
    """The design, priced: the noise of a run is the least that the whole search can pay."""
    gamma = _stopping_chance(float(setting.weights.min()), setting.chance)
    inside = (PARTS - 1) / PARTS

    def fits_at(mu: float) -> tuple[Fit, ...]:
        return tuple(setting.fit(p, mu, share_of_rows=inside) for p in setting.candidates)

    whole = gaussian_parameter_at(setting.epsilon, setting.delta)
    size = 1 + max(_size(fit) for fit in fits_at(whole))
    slack = min(1.0, size * 2.0**-90 / gamma)  # Lemma 3 of rounded_gaussian.md, mean number of runs

    def excess(mu: float) -> float:
        spent = event_delta(RandomStopping(mu, gamma, ETA, slack), setting.epsilon)
        return math.log(max(spent, 1e-300) / setting.delta)

    mu = largest_affordable(excess, whole)
    fits = fits_at(mu)
    dearest = max(gaussian_parameter(fit.plan.event) or math.inf for fit in fits)
    largest = 1 + max(_size(fit) for fit in fits)
    # The plan charges mu, and the sampler's slack, for every run, whichever candidate it is.
    if dearest > mu * (1.0 + 1e-9) or largest > size:
        raise CalibrationError("A candidate costs more than the search pays for a run; a bug.")
    mu = max(mu, dearest)
    event = RandomStopping(mu, gamma, ETA, slack)
    score = RoundedGaussian(1.0 / mu, 1.0, 1)
    return StoppingDesign(
        setting,
        fits,
        Plan(
            "score",
            (Phase("score", score, "rows of part B that a run predicts rightly"),),
            event_epsilon(score, setting.delta),
            setting.delta,
            setting.adjacency,
            source="docs/proofs/tuning.md",
        ),
        gamma,
        (Phase("search", event, "the best of a secret number of runs"),),
        mu / whole,
        {
            "mean_number_of_runs": 1.0 / gamma,
            IN_A_LEDGER: _renyi(event, setting.delta),
        },
    )


def _coin(rng: np.random.Generator, chance: Fraction) -> np.ndarray:
    """Heads with this probability, exactly."""
    return np.asarray(integer_below(rng, chance.denominator) < chance.numerator)


def _stopping_chance(least: float, chance: float) -> float:
    """gamma with which a candidate of public weight `least` is tried with probability `chance`."""
    if least >= 1.0:
        return 1.0 - 2.0**-20  # one candidate: nothing to search
    gamma = (1.0 - chance) * least / (chance * (1.0 - least))
    return min(gamma, 1.0 - 2.0**-20)


def _size(fit: Fit) -> int:
    event = merged(fit.plan.event)
    if not isinstance(event, RoundedGaussian):
        raise ParameterError(
            f"design='stopping' needs fits whose noise is Gaussian alone, and {type(fit.model).__name__} with "
            "these parameters has other noise; use DPGradientClassifier or DPGradientRegressor, or "
            "design='refit'."
        )
    return event.size


def _renyi(event: RandomStopping, delta: float) -> float:
    """What the search costs beside other fits, where only its Renyi curve counts."""
    from dpsparse.privacy.events import Sequence

    nothing = Gaussian(1e12)
    return event_epsilon(Sequence((event, nothing)), delta)

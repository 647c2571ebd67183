"""The price of a screened fit: events and noise constants from public numbers only.

`proven_prices` charges the vertex selections and, for a paid rule, its draws.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from dpsparse.accounting import (
    Event,
    Exponential,
    NonPrivate,
    Phase,
    Repeated,
    Sequence,
    calibrate,
)
from dpsparse.exceptions import ParameterError
from dpsparse.mechanisms.top_k import ROUNDING_RANGE
from dpsparse.methods.frank_wolfe.scales_plan import NOTES, beside
from dpsparse.methods.frank_wolfe.screening import PICKS
from dpsparse.methods.frank_wolfe.screening_rules import DRAWS
from dpsparse.sensitivity import (
    active_range,
    raj_range,
    vertex_score_range,
)


@dataclass(frozen=True)
class PublicFacts:
    """Everything about the problem that a price depends on; no data."""

    radius: float
    feature_bound: float
    slope_bound: float  # for ||w||_1 <= radius
    smoothness: float
    strong_convexity: float | None  # None where the rule does not need it
    n_samples: int | None
    n_features: int
    adjacency: str

    def raj(self) -> tuple[float, float, float, float, float, int]:
        """What the lemmas on the score of Raj et al. are told."""
        assert self.strong_convexity is not None
        assert self.n_samples is not None
        return (
            self.radius, self.feature_bound, self.slope_bound, self.smoothness,
            self.strong_convexity, self.n_samples,
        )  # fmt: skip


@dataclass(frozen=True)
class Temperatures:
    """Inverse temperatures of the proven forms, and the range of one vertex selection."""

    kappa: float
    eta: float
    screen_kappa: float | None = None  # where screening is paid for


@dataclass(frozen=True)
class Prices:
    """Phases, the epsilon they cost, and the constants they come from."""

    phases: tuple[Phase, ...]
    epsilon: float
    constants: Temperatures

    @property
    def parameters(self) -> Mapping[str, float]:
        """The constants as a plan shows them."""
        return {name: value for name, value in asdict(self.constants).items() if value is not None}


def proven_prices(
    facts: PublicFacts,
    *,
    epsilon: float,
    delta: float,
    rule: str,
    n_iter: int,
    n_draws: int,
    screen_share: float,
    sizes: dict[str, int],
) -> Prices:
    """kappa of the vertex selections and of the screening draws for a true (epsilon, delta)."""
    per_kappa = vertex_score_range(
        1.0, facts.slope_bound, facts.feature_bound, facts.adjacency
    ).value
    paid = rule in ("budgeted", "safe")
    if math.isinf(epsilon):
        parts = (Phase(PICKS, NonPrivate(), "steepest vertex, no noise"),)
        return Prices(parts, epsilon, Temperatures(math.inf, 0.0, math.inf))
    share = screen_share if paid else 0.0

    def sums(x: float) -> dict[str, Event]:
        """Scales that are released first; only free rules have any. Selections are about a Gaussian of mu = x/2."""
        return beside(x / 2.0, sizes)

    def events(x: float) -> tuple[Event, ...]:
        """Range x^2/T a step: the shares of rho go like the squares of the ranges."""
        selections = Repeated(Exponential(x * math.sqrt((1.0 - share) / n_iter)), n_iter)
        if not paid:
            return (selections,)
        return selections, Repeated(Exponential(x * math.sqrt(share / n_draws)), n_draws)

    x = calibrate(lambda x: Sequence((*sums(x).values(), *events(x))), epsilon, delta)
    spent = events(x)
    eta = x * math.sqrt((1.0 - share) / n_iter)
    draw = x * math.sqrt(share / n_draws) if paid else math.inf
    if min(eta, draw) <= 2.0 * ROUNDING_RANGE:
        raise ParameterError("epsilon is too small for so many steps; lower n_iter.")
    phases = [Phase(name, event, NOTES[name]) for name, event in sums(x).items()]
    phases.append(Phase(PICKS, spent[0], "one signed vertex a step"))
    screen_kappa = None
    if paid:
        if rule == "budgeted":
            bounds = (facts.radius, facts.feature_bound, facts.slope_bound)
            reach = active_range(*bounds, facts.adjacency)
        else:
            reach = raj_range(*facts.raj(), facts.adjacency)
        phases.append(Phase(DRAWS, spent[1], "features to drop, or the null"))
        screen_kappa = (draw - ROUNDING_RANGE) / reach.value
    constants = Temperatures((eta - ROUNDING_RANGE) / per_kappa, eta, screen_kappa)
    return Prices(tuple(phases), epsilon, constants)

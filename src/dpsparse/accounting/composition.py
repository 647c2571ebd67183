"""A run as independent pairs side by side: a profile for steps that are few, one Gaussian for the rest.

Every kind of step is dominated by a pair of laws that answers it step by step (docs/proofs/accounting.md,
section 7), so a run of several kinds, interleaved in any order, is dominated by their product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np

from dpsparse.accounting import events as ev
from dpsparse.accounting.adaptive import (
    Profile,
    bounded_range_profile,
    log_profile,
    pure_profile,
    smallest_epsilon,
)
from dpsparse.accounting.adaptive import profile as gaussian_profile
from dpsparse.accounting.dominance import SLACK, bounded_range_mu, perturbation_mu
from dpsparse.accounting.objective import delta_profiles
from dpsparse.accounting.rdp import bounded_range, leaves, loss_bound

# Up to this many steps of a kind the profile is computed; beyond, the dominating Gaussian is
# within a few tenths of a per cent of it and costs nothing.
_FEW = 128
# Beyond this standard deviation of the loss nothing is private, and e^epsilon would overflow.
_LARGE = 5.0


# What a step is: ("range", eta), ("pure", epsilon) or ("objective", event), and how often.
Kind = tuple[str, float | ev.ObjectivePerturbation, int]


def gaussian_parameter(event: ev.Event) -> tuple[float, float]:
    """(mu, slack): with probability 1 - slack the run reveals no more than N(mu, 1) against N(0, 1).

    Runs compose by adding mu^2 and slack, in any order and interleaved, also when a later run is
    chosen after seeing an earlier one. mu is infinite for an event that no Gaussian is known to
    dominate. The distance of a sampler from its law is not part of it (`sampler_slack`).

    Parameters
    ----------
    event : Event
        What runs.

    Returns
    -------
    tuple of float
        mu and slack.

    Examples
    --------
    >>> from dpsparse.accounting import Exponential, Repeated, gaussian_parameter
    >>> mu, slack = gaussian_parameter(Repeated(Exponential(eta=0.1), 100))
    >>> print(f"{mu:.3f} {slack:.0e}")
    0.502 1e-46
    """
    square, slack = total_square(leaves(event))
    return math.sqrt(square) * (1.0 + 1e-15), slack


def total_square(counts: dict[ev.Event, int]) -> tuple[float, float]:
    """(mu^2, slack) of a run of several kinds of steps, in any order and interleaved.

    Every kind is charged as if it were alone. A step that comes *before* a Gaussian costs less beside it, but one whose
    scores are chosen after looking at the Gaussian's output does not, and no plan says which comes first.
    """
    square, slack = 0.0, 0.0
    for leaf, count in counts.items():
        mu, leak = leaf_parameter(leaf, count)
        square, slack = square + mu * mu * (1.0 + 1e-14), slack + leak
    return square, min(1.0, slack)


def leaf_parameter(leaf: ev.Event, count: int) -> tuple[float, float]:
    """(mu, slack) of `count` adaptive uses of one elementary event."""
    if isinstance(leaf, (ev.Gaussian, ev.RoundedGaussian)):
        return leaf.sensitivity / leaf.scale * math.sqrt(count), 0.0
    if isinstance(leaf, ev.ObjectivePerturbation):
        mu, slack = perturbation_mu(leaf)
        return mu * math.sqrt(count), slack * count
    eta = bounded_range(leaf)
    if eta is None:
        return math.inf, 0.0
    return bounded_range_mu(eta, count), (SLACK * count if count > 1 else 0.0)


@dataclass(frozen=True)
class AdaptiveRun:
    """The product that dominates a run: kinds of steps with a profile, and mu for the rest."""

    kinds: tuple[Kind, ...]
    mu: float
    slack: float
    scale: float  # standard deviation of the loss, about
    beats_renyi: bool

    def delta(self, epsilon: float) -> float:
        """The bound at one epsilon >= 0."""
        if (eta := self._single) is not None:
            return _single_delta(eta, epsilon)
        guess = float(log_profile(self.scale, np.array(epsilon))[0]) / math.log(10.0)
        return min(1.0, self._at(epsilon, self._side(guess)) + self.slack)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 at which the bound is at most `delta`, from the safe side."""
        target = (delta - self.slack) * (1.0 - 1e-15)
        if target <= 0.0:
            return math.inf
        if (eta := self._single) is not None:
            return _single_epsilon(eta, target)
        side = self._side(math.log10(target))
        if side is not None and self.mu == 0.0:
            return side.epsilon(target)

        def log_delta(epsilon: float) -> float:
            return math.log(max(self._at(epsilon, side), 1e-300))

        return smallest_epsilon(log_delta, self.scale, math.log(target))

    def _at(self, epsilon: float, side: Profile | None) -> float:
        if side is None:
            return float(gaussian_profile(self.mu, np.array(epsilon)))
        if self.mu == 0.0:
            return float(side.delta(np.array(epsilon)))
        return side.with_gaussian(self.mu, epsilon)

    @property
    def _single(self) -> float | None:
        """The eta of one bounded-range step and nothing else, which has a closed form."""
        match self.kinds:
            case (("range", float(eta), 1),) if self.mu == 0.0:
                return eta
        return None

    def _side(self, log10_delta: float) -> Profile | None:
        """The product of the kinds that have a profile, resolved down to about this delta."""
        if not self.kinds:
            return None
        # Rounded to two decades, so that epsilon and delta of one run share a profile.
        smallest = 10.0 ** (2.0 * math.floor(max(log10_delta, -240.0) / 2.0) - 3.0)
        return _product(self.kinds, smallest)


@lru_cache(maxsize=128)
def adaptive_run(key: tuple[tuple[ev.Event, int], ...]) -> AdaptiveRun | None:
    """The product for these steps and counts, or None if one of them is dominated by no pair."""
    kinds: dict[tuple[str, float | ev.ObjectivePerturbation], int] = {}
    square, slack, spread = 0.0, 0.0, 0.0
    renyi_may_win = False
    for leaf, count in key:
        size = loss_bound(leaf)
        if size is not None and count <= _FEW:
            kind = "range" if isinstance(leaf, ev.Exponential) else "pure"
            kinds[kind, size] = kinds.get((kind, size), 0) + count
            spread += count * (size / 2.0 if kind == "range" else size) ** 2
            renyi_may_win = renyi_may_win or kind == "pure" or count < 32
        elif isinstance(leaf, ev.ObjectivePerturbation) and count <= 3:
            kinds["objective", leaf] = count
            spread += count * _spread(leaf) ** 2
            renyi_may_win = True
        else:
            mu, leak = leaf_parameter(leaf, count)
            square, slack = square + mu * mu, slack + leak
            renyi_may_win = renyi_may_win or (
                size is not None and not isinstance(leaf, ev.Exponential)
            )
    scale = math.sqrt(square + spread)
    if not 1e-100 < scale < _LARGE:
        return None
    return AdaptiveRun(
        kinds=tuple((kind, size, count) for (kind, size), count in kinds.items()),
        mu=math.sqrt(square) * (1.0 + 1e-15),
        slack=slack,
        scale=scale,
        beats_renyi=not renyi_may_win and scale < 1.5,
    )


def _spread(event: ev.ObjectivePerturbation) -> float:
    """About the standard deviation of the loss, for the width of a grid."""
    return event.mu * (2.0 if event.replace_one else 1.0) + math.log1p(event.flatness) / 5.0


@lru_cache(maxsize=64)
def _product(kinds: tuple[Kind, ...], smallest: float) -> Profile:
    # With several kinds each may be a little coarser; the product smooths them.
    coarse = 2 if len(kinds) > 1 else 1
    return reduce(Profile.times, [_profile(*kind, smallest, coarse) for kind in kinds])


def _profile(
    kind: str, size: float | ev.ObjectivePerturbation, count: int, smallest: float, coarse: int
) -> Profile:
    if isinstance(size, ev.ObjectivePerturbation):
        return reduce(Profile.times, [_perturbation_profile(size, smallest)] * count)
    if kind == "pure":
        return pure_profile(size, count)
    resolution = 64 if count <= 12 else 32 if count <= 48 else 16
    return bounded_range_profile(size, count, max(16, resolution // coarse), smallest)


def _perturbation_profile(event: ev.ObjectivePerturbation, smallest: float) -> Profile:
    """The proven deltas on a grid: the true profile is convex, so its chords lie above it."""
    m = 2.0 * event.mu if event.replace_one else event.mu
    top = math.log1p(event.flatness) + m * m / 2.0 + m * math.sqrt(-2.0 * math.log(smallest))
    epsilons = np.linspace(0.0, top, 161)
    deltas = delta_profiles(event.mu, event.flatness, event.loss, event.replace_one, epsilons)
    return Profile(top / 160.0, np.minimum.accumulate(deltas))


def _single_delta(eta: float, epsilon: float) -> float:
    """One bounded-range step, exactly: (1 - e^{(epsilon-eta)/2})^2/(1 - e^-eta)."""
    return math.expm1(min(0.0, (epsilon - eta) / 2.0)) ** 2 / -math.expm1(-eta) * (1.0 + 1e-14)


def _single_epsilon(eta: float, delta: float) -> float:
    """Inverse of `_single_delta`."""
    root = math.sqrt(-delta * math.expm1(-eta))
    return max(0.0, eta + 2.0 * math.log1p(-root) + 1e-15 * eta) if root < 1.0 else 0.0

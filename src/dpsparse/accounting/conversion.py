"""From events to (epsilon, delta): always an upper bound, the smallest of those that hold.

    pure       delta = max(0, e^E-e^eps)/(1+e^E), E = sum of pure epsilons, for runs of pure events only
    Gaussian   delta = Phi(mu/2-eps/mu) - e^eps Phi(-mu/2-eps/mu), mu^2 = sum (D/s)^2, for runs of Gaussian noise only
    adaptive   for all others the product of independent pairs: the profile of adaptive runs of every kind of step
               that is not repeated too often, beside the Gaussian pair that dominates the rest (dominance.py)

plus (1+e^eps) slack for rounded Gaussians, and D/(1-D) for thresholds whose leaks add up to D.

Every kind of step is dominated by a pair of laws that answers it step by step (docs/proofs/accounting.md, section 8),
so a run of several kinds, interleaved in any order, is dominated by their product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial, reduce

import numpy as np

from dpsparse._checks import safe_repr
from dpsparse.accounting import events as ev
from dpsparse.accounting.adaptive import Profile, bounded_range_profile, pure_profile
from dpsparse.accounting.dominance import (
    gaussian_parameter,
    gaussian_profile,
    leaf_parameter,
    log_profile,
)
from dpsparse.accounting.events import Counts, leaves, loss_bound
from dpsparse.accounting.objective import delta_profile
from dpsparse.exceptions import ParameterError

# A bound this close to that of ideal samplers is not improved further.
_NOTHING_TO_WIN = 1.0 + 1e-9
# Up to this many steps of a kind the profile is computed. Beyond, the dominating Gaussian is within a few tenths of a
# per cent of it and costs nothing, unless its table has ended (a parameter above 2.5): then many steps are affordable.
_FEW = 128


@lru_cache(maxsize=1024)
def epsilon(event: ev.Event, delta: float) -> float:
    """The smallest proven epsilon of `event` at `delta`; infinite if there is none.

    `delta = 0` has a finite answer for pure events only.

    Parameters
    ----------
    event : Event
        What runs.
    delta : float
        Probability that the guarantee may fail, from 0 to 1.

    Returns
    -------
    float
        Epsilon in natural log odds.

    Examples
    --------
    >>> from dpsparse.accounting import Gaussian, Repeated, epsilon
    >>> print(f"{epsilon(Repeated(Gaussian(scale=20.0), 10), delta=1e-6):.3f}")
    0.648
    """
    if not 0.0 <= delta < 1.0:
        raise ParameterError(f"delta must be in [0, 1), got {safe_repr(delta)}.")
    counts = leaves(event)
    if not counts:
        return 0.0
    leaked = leaked_delta(counts)
    delta -= leaked
    if leaked > 0.0 and delta <= 0.0:
        return math.inf
    pure = _pure_epsilon(counts)
    best = math.inf if pure is None else _pure_to_epsilon(pure, delta)
    if delta > 0.0:
        run = dominating_run(counts)
        best = min(best, _epsilon_with_slack(run.epsilon, counts, delta))
    return max(0.0, best)


@lru_cache(maxsize=1024)
def delta(event: ev.Event, epsilon: float) -> float:
    """The smallest proven delta of `event` at `epsilon`; 1 if there is none.

    Parameters
    ----------
    event : Event
        What runs.
    epsilon : float
        In natural log odds, 0 or more.

    Returns
    -------
    float
        Delta, from 0 to 1.

    Examples
    --------
    >>> from dpsparse.accounting import Gaussian, delta
    >>> print(f"{delta(Gaussian(scale=5.0), epsilon=1.0):.1e}")
    1.8e-08
    """
    if not epsilon >= 0.0:
        raise ParameterError(f"epsilon must be a number >= 0, got {safe_repr(epsilon)}.")
    counts = leaves(event)
    if ev.NonPrivate() in counts:
        return 1.0
    if not counts or math.isinf(epsilon):
        return leaked_delta(counts)
    run = dominating_run(counts)
    best = _delta_with_slack(run.delta, counts, epsilon)
    pure = _pure_epsilon(counts)
    if pure is not None:
        best = min(best, _pure_to_delta(pure, epsilon))
    return min(1.0, max(0.0, best) + leaked_delta(counts))


def dominated_epsilon(event: ev.Event, delta: float) -> float:
    """A proven epsilon at `delta` from the Gaussians that dominate the steps, without the product of their profiles:
    within a few per cent of `epsilon`, and below it where kinds of steps are many."""
    counts = leaves(event)
    mu, slack = gaussian_parameter(event)
    left = delta - leaked_delta(counts) - slack
    if left <= 0.0:
        return math.inf
    return _epsilon_with_slack(partial(gaussian_epsilon, mu), counts, left)


# ---- the search for parameters --------------------------------------------------------------------

LIMIT = math.log(1e30)  # parameters are sought between 1e-30 and 1e30


def last_affordable(
    excess: Callable[[float], float], start: float, slope: float, close: float
) -> float:
    """The largest y with excess(y) <= 0, to within `close` of the root; -inf where none is, inf where all are.

    `excess` rises, with a slope of about `slope`: secants from `start`, halving where they do not help. Where it jumps
    over zero, the last affordable y before the jump is returned.
    """
    low, high = -math.inf, math.inf  # affordable, too dear
    y, reach, steepest, flattest = start, 1.0, 25.0 * slope, 0.05 * slope
    last: tuple[float, float] | None = None
    for turn in range(400):
        f = excess(y)
        if -close <= f <= 0.0:
            return y
        low, high = (max(low, y), high) if f <= 0.0 else (low, min(high, y))
        if low >= LIMIT:
            return math.inf
        if high <= -LIMIT:
            return -math.inf
        if high - low < max(1e-13, close / 100.0):
            return low
        if last is not None and y != last[0]:
            slope = min(steepest, max(flattest, (f - last[1]) / (y - last[0])))
        last = (y, f)
        ahead = y - (f + close / 2.0) / slope
        if math.isinf(high - low):  # not enclosed yet: ever longer strides
            # Where the excess is flat the secants hardly move: after some turns the strides are as long as they may be.
            least = 1e-9 if turn < 20 else reach
            stride = math.copysign(min(max(abs(ahead - y) * 1.01, least), reach), ahead - y)
            y, reach = min(LIMIT, max(-LIMIT, y + stride)), 2.0 * reach
        elif low < ahead < high and turn % 8 < 7:
            y = ahead
        else:
            y = (low + high) / 2.0
    return low


# ---- pure events ---------------------------------------------------------------------------------


def _pure_epsilon(counts: Counts) -> float | None:
    """Sum of the pure epsilons (basic composition), rounded up, or None if one event is not pure.

    A last digit less has a delta of about 1e-17, which may be more than all that a plan may spend.
    """
    bounds = [(loss_bound(event), count) for event, count in counts.items()]
    if any(bound is None for bound, _ in bounds):
        return None
    total = math.fsum(count * bound for bound, count in bounds if bound is not None)
    if math.isinf(total):
        return total
    exact = sum(count * Fraction(bound) for bound, count in bounds if bound is not None)
    return total if Fraction(total) >= exact else math.nextafter(total, math.inf)


def _pure_to_epsilon(pure: float, delta: float) -> float:
    """Inverse of `_pure_to_delta` in epsilon."""
    loss = delta + delta * math.exp(-pure)
    if loss >= 1.0:
        return 0.0
    return min(pure, math.nextafter(pure + math.log1p(-loss), math.inf))


def _pure_to_delta(pure: float, epsilon: float) -> float:
    """The exact profile of randomised response, the worst pure mechanism."""
    if epsilon >= pure:
        return 0.0
    return -math.expm1(epsilon - pure) / (1.0 + math.exp(-pure))


# ---- Gaussian noise, and everything else ----------------------------------------------------------


def gaussian_log_delta(mu: float, epsilon: float) -> float:
    """log delta(epsilon) of N(0,1) against N(mu,1); the bound on rounding is charged."""
    if mu == 0.0:
        return -math.inf
    if not math.isfinite(mu):
        return 0.0
    value, error = log_profile(mu, np.float64(epsilon))  # type: ignore[arg-type]
    return min(0.0, float(value) + float(error))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon with delta(epsilon) <= delta, from the safe side."""
    if not math.isfinite(mu):
        return math.inf
    if mu == 0.0:
        return 0.0
    return _smallest_epsilon(partial(gaussian_log_delta, mu), mu, math.log(delta))


def _smallest_epsilon(log_delta: Callable[[float], float], mu: float, target: float) -> float:
    """The smallest epsilon >= 0 with log_delta(epsilon) <= target, from the safe side; infinite if none is.

    `log_delta` falls about as the profile of a Gaussian of parameter `mu` does: the depth of the tail,
    sqrt(-2 log delta), is nearly a line in epsilon of slope 1/mu.
    """
    wanted = math.sqrt(-2.0 * target)
    guess = mu * (mu / 2.0 + wanted)

    def excess(y: float) -> float:
        # What is not a number counts as a delta of one.
        return wanted - math.sqrt(-2.0 * max(-1e300, min(0.0, log_delta(guess * math.exp(-y)))))

    if log_delta(0.0) <= target:
        return 0.0
    y = last_affordable(excess, 0.0, wanted + mu, 1e-12)
    return guess * math.exp(-min(y, LIMIT))


def loss_spread(counts: Counts) -> float:
    """About the standard deviation of the privacy loss of a run: a first guess of its cost, and the width of grids."""
    square = 0.0
    for leaf, count in counts.items():
        size = loss_bound(leaf)
        if isinstance(leaf, ev.Gaussian):
            one = leaf.sensitivity / leaf.scale
        elif isinstance(leaf, ev.ObjectivePerturbation):
            one = leaf.mu * (2.0 if leaf.replace_one else 1.0) + math.log1p(leaf.flatness) / 5.0
        elif size is None:
            one = math.inf
        else:
            one = size / 2.0 if isinstance(leaf, ev.Exponential) else size
        square += count * one * one
    return math.sqrt(square)


@dataclass(frozen=True)
class DominatingRun:
    """The product that dominates a run: kinds of steps with a profile, and mu for the rest."""

    kinds: tuple[tuple[ev.Event, int], ...]
    mu: float
    slack: float
    scale: float  # standard deviation of the loss, about

    def delta(self, epsilon: float) -> float:
        """The bound at one epsilon >= 0."""
        if not math.isfinite(self.mu):
            return 1.0
        # First as if the run were Gaussian. Of a few pure steps that is a poor guess: the profile is then taken anew,
        # resolved down to the value that was found, as `epsilon` takes it. Every value is a bound.
        best, log10_delta = 1.0, gaussian_log_delta(self.scale, epsilon) / math.log(10.0)
        tried: set[float] = set()
        while (smallest := _resolved(log10_delta)) not in tried and len(tried) < 8:
            tried.add(smallest)
            best = min(best, self._at(epsilon, self._side(smallest)))
            log10_delta = math.log10(best) if best > 0.0 else log10_delta
        return min(1.0, best + self.slack)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 at which the bound is at most `delta`, from the safe side."""
        target = (delta - self.slack) * (1.0 - 1e-15)
        if target <= 0.0 or not math.isfinite(self.mu):
            return math.inf
        side = self._side(_resolved(math.log10(target)))
        if side is None:
            return gaussian_epsilon(self.mu, target)
        if self.mu == 0.0:
            return side.epsilon(target)

        def log_delta(epsilon: float) -> float:
            return math.log(max(self._at(epsilon, side), 1e-300))

        return _smallest_epsilon(log_delta, self.scale, math.log(target))

    def _at(self, epsilon: float, side: Profile | None) -> float:
        if side is None:
            return float(gaussian_profile(self.mu, np.array(epsilon)))
        if self.mu == 0.0:  # where losses end, a last digit of epsilon is all of delta
            return float(side.delta(np.array(epsilon * (1.0 - 1e-14))))
        return side.with_gaussian(self.mu, epsilon)

    def _side(self, smallest: float) -> Profile | None:
        """The product of the kinds that have a profile, resolved down to about this delta."""
        return _product(self.kinds, smallest) if self.kinds else None


def _resolved(log10_delta: float) -> float:
    """Down to where a profile is resolved that is to give this delta: rounded to two decades, so that epsilon and delta
    of one run share a profile."""
    return float(10.0 ** (2.0 * math.floor(max(log10_delta, -240.0) / 2.0) - 3.0))


def dominating_run(counts: Counts) -> DominatingRun:
    """The product for these steps and counts; its mu is infinite if one of them is dominated by no pair."""
    scale = loss_spread(counts)
    kinds: dict[ev.Event, int] = {}
    square, slack = 0.0, 0.0
    for leaf, count in counts.items():
        size = loss_bound(leaf)
        if size == 0.0:  # infinite noise
            continue
        # Beyond a standard deviation of 20 (an epsilon of about 250) e^epsilon would overflow in products.
        if scale < 20.0 and _has_profile(leaf, count):
            same = ev.Pure(size) if isinstance(leaf, ev.Geometric) and size else leaf
            kinds[same] = kinds.get(same, 0) + count
        else:
            mu, leak = leaf_parameter(leaf, count)
            square, slack = square + mu * mu, slack + leak
    return DominatingRun(
        kinds=tuple(kinds.items()),
        mu=math.sqrt(square) * (1.0 + 1e-15),
        slack=slack,
        scale=scale,
    )


def _has_profile(leaf: ev.Event, count: int) -> bool:
    if isinstance(leaf, ev.ObjectivePerturbation):
        return count <= 3
    return loss_bound(leaf) is not None and (
        count <= _FEW or (count <= 2000 and loss_spread({leaf: count}) > 2.5)
    )


@lru_cache(maxsize=64)
def _product(kinds: tuple[tuple[ev.Event, int], ...], smallest: float) -> Profile:
    # With several kinds each may be a little coarser; the product smooths them.
    coarse = 2 if len(kinds) > 1 else 1
    return reduce(Profile.times, [_profile(*kind, smallest, coarse) for kind in kinds])


def _profile(kind: ev.Event, count: int, smallest: float, coarse: int) -> Profile:
    if isinstance(kind, ev.ObjectivePerturbation):
        return reduce(Profile.times, [_perturbation_profile(kind, smallest)] * count)
    if isinstance(kind, ev.Pure):
        return pure_profile(kind.epsilon, count)
    assert isinstance(kind, ev.Exponential)
    if count > _FEW:
        return bounded_range_profile(kind.eta, count, 8, smallest)
    resolution = 64 if count <= 12 else 32 if count <= 48 else 16
    return bounded_range_profile(kind.eta, count, max(16, resolution // coarse), smallest)


def _perturbation_profile(event: ev.ObjectivePerturbation, smallest: float) -> Profile:
    """The proven deltas on a grid: the true profile is convex, so its chords lie above it."""
    m = 2.0 * event.mu if event.replace_one else event.mu
    near = math.log1p(event.flatness) + m * m / 2.0
    spacing = (
        near + 7.0 * m
    ) / 160.0  # the same for every delta, so that epsilon and delta are inverse
    top = near + m * math.sqrt(-2.0 * math.log(smallest))
    epsilons = spacing * np.arange(math.ceil(top / spacing) + 1.0)
    facts = event.mu, event.flatness, event.loss, event.replace_one
    deltas = np.array([delta_profile(*facts, float(epsilon)) for epsilon in epsilons])
    return Profile(spacing, np.minimum.accumulate(deltas))


# ---- what real samplers and thresholds add --------------------------------------------------------


def sampler_slack(counts: Counts) -> float:
    """Total variation between the run and the same run with ideal samplers."""
    return sum(count * e.slack for e, count in counts.items() if isinstance(e, ev.RoundedGaussian))


def leaked_delta(counts: Counts) -> float:
    """What thresholds add to delta: with probability at most D a run tells a name that is impossible without
    a row, and otherwise is the run without such names (docs/proofs/preparation.md, Lemma 4)."""
    total = sum(n * e.leak for e, n in counts.items() if isinstance(e, ev.ThresholdedGaussian))
    return total / (1.0 - total) * (1.0 + 1e-12) if total < 0.5 else 1.0


# Lemma 4 of rounded_gaussian.md has two bounds. Up to 12 standard deviations a sampler is off by a
# relative error only, so at an epsilon lower by a shift its tail counts once, and no e^eps does.
SHIFT = 2.0**-33
TAIL_LIMIT = 2.0**-19  # below it a run has fewer than 2^54 values, as SHIFT assumes


def sampler_tail(counts: Counts, epsilon: float = math.inf) -> tuple[float, float]:
    """(delta, shift) that samplers cost beside SHIFT, by the cheaper bound for each event."""
    delta, shift = 0.0, 0.0
    for event, count in counts.items():
        if isinstance(event, ev.RoundedGaussian):
            mu = event.sensitivity / event.scale
            large = mu * mu if mu > 1.0 else 0.0  # at most that many values can move by more than 1
            tail = event.size * 2.0**-73 + large * 2.0**-43
            plain = _slack_delta(event.slack, epsilon)
            if mu > 4.5 or plain <= tail:
                delta += count * plain
            else:
                delta, shift = delta + count * tail, shift + count * large * 2.0**-21
    return delta, shift


def _slack_delta(slack: float, epsilon: float) -> float:
    """P, Q within `slack` of P', Q': P(S) <= e^eps Q(S) + delta' + (1 + e^eps) slack."""
    if slack == 0.0 or epsilon > 700.0:
        return math.inf if slack > 0.0 else 0.0
    return (1.0 + math.exp(epsilon)) * slack * (1.0 + 1e-12)


def _epsilon_with_slack(ideal: Callable[[float], float], counts: Counts, delta: float) -> float:
    """An epsilon at which the ideal run leaves room for its samplers; `ideal` maps delta to it."""
    slack = sampler_slack(counts)
    best = ideal(delta)
    if slack == 0.0 or not math.isfinite(best):
        return best
    limit = best + 1.0  # the slack is charged at this epsilon, which may not be exceeded
    left = delta - _slack_delta(slack, limit)
    plain = ideal(left) if left > 0.0 else math.inf
    plain = plain if plain <= limit else math.inf
    if plain <= best * _NOTHING_TO_WIN:
        return plain
    tail, shift = sampler_tail(counts)
    if tail >= min(delta, TAIL_LIMIT):
        return plain
    return min(plain, ideal(delta - tail) + shift + SHIFT)


def _delta_with_slack(ideal: Callable[[float], float], counts: Counts, epsilon: float) -> float:
    """A delta that covers the samplers; `ideal` maps epsilon to the delta of the ideal run."""
    slack = sampler_slack(counts)
    if slack == 0.0:
        return ideal(epsilon)

    def covered(at: float) -> float:
        return ideal(at) + _slack_delta(slack, at)

    best = ideal(epsilon)
    value = best + _slack_delta(slack, epsilon)
    if value <= best * _NOTHING_TO_WIN:
        return value
    tail, shift = sampler_tail(counts)
    if tail < TAIL_LIMIT and epsilon > shift + SHIFT:
        value = min(value, ideal(epsilon - shift - SHIFT) + tail)
    if value > best * _NOTHING_TO_WIN:
        # A fifth of a second: only those who need it wait.
        from scipy.optimize import minimize_scalar

        # A guarantee at a smaller epsilon is one at this: `covered` is convex in e^eps.
        end = min(epsilon, -math.log(slack))
        found = minimize_scalar(
            covered, bounds=(0.0, end), method="bounded", options={"xatol": 1e-9}
        )
        value = min(value, float(found.fun))
    return value

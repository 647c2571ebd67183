"""From events to (epsilon, delta): always an upper bound, the smallest of those that hold.

    Renyi      delta = min_a e^{(a-1)(RDP(a)-eps)}/(a-1) (1-1/a)^a   (Canonne, Kamath, Steinke)
    Gaussian   delta = Phi(mu/2-eps/mu) - e^eps Phi(-mu/2-eps/mu),   mu^2 = sum (D/s)^2
               for runs of Gaussian events only                      (Balle, Wang)
               rounded Gaussians add what their sampler may be off (rounded_gaussian.md)
    adaptive   the exact optimum of adaptive runs (accounting/adaptive.py) for every kind of step that
               is not repeated too often, beside the Gaussian pair that dominates the rest
               (accounting/dominance.py); of many kinds, the Gaussian that dominates all of them
    objective  a single objective perturbation has its own profile (accounting/objective.py)
    pure       delta = max(0, e^E-e^eps)/(1+e^E), E = sum of pure epsilons
               for runs of pure events only

plus (1+e^eps) slack for rounded Gaussians, and D/(1-D) for thresholds whose leaks add up to D. Every
order a gives a valid bound, so the search over orders can only be less than best, never wrong.
Proofs: `docs/proofs/accounting.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np

from dpsparse._checks import safe_repr
from dpsparse.accounting import events as ev
from dpsparse.accounting.adaptive import log_profile, smallest_epsilon
from dpsparse.accounting.composition import adaptive_run, gaussian_parameter
from dpsparse.accounting.objective import delta_profile
from dpsparse.accounting.rdp import Array, leaves, loss_bound, spend
from dpsparse.exceptions import ParameterError

# The search runs over y = log(a-1); the grid covers every order that can matter in float64.
_GRID = np.linspace(math.log(1e-4), math.log(1e9), 61)
_ZOOM = np.linspace(-1.0, 1.0, 33)
# A product of that many profiles has lost more to chords than the Gaussian that dominates the whole run.
_MANY_KINDS = 3
# A bound this close to that of ideal samplers is not improved further.
_NOTHING_TO_WIN = 1.0 + 1e-9
# Below this delta the slack of the dominating Gaussian may matter: Renyi is always asked.
_FAR = 1e-30


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
    return best_bound(event, delta)[0]


@lru_cache(maxsize=1024)
def best_bound(event: ev.Event, delta: float) -> tuple[float, str]:
    """The smallest proven epsilon at `delta`, and the name of the bound that gives it."""
    if not 0.0 <= delta < 1.0:
        raise ParameterError(f"delta must be in [0, 1), got {safe_repr(delta)}.")
    counts = leaves(event)
    if not counts:
        return 0.0, "nothing was released"
    leaked = leaked_delta(counts)
    if leaked > 0.0:
        delta = delta - leaked
        if delta <= 0.0:
            return math.inf, "none"
    bounds = [(math.inf, "none")]
    pure = _pure_epsilon(counts)
    if pure is not None:
        bounds.append((_pure_to_epsilon(pure, delta), "pure"))
    mu = gaussian_mu(counts)
    if delta > 0.0 and mu is not None:
        exact = _epsilon_with_slack(lambda d: gaussian_epsilon(mu, d), counts, delta)
        bounds.append((exact, "Gaussian"))
    elif delta > 0.0 and ev.NonPrivate() not in counts:
        run = adaptive_run(tuple(counts.items()))
        if run is not None:
            bounds.append((_epsilon_with_slack(run.epsilon, counts, delta), "adaptive"))
            if len(run.kinds) >= _MANY_KINDS:
                merged = partial(_merged_epsilon, *gaussian_parameter(event))
                bounds.append((_epsilon_with_slack(merged, counts, delta), "Gaussian parameter"))
        if run is None or not run.beats_renyi or delta < _FAR:
            renyi = partial(renyi_epsilon, event)
            bounds.append((_epsilon_with_slack(renyi, counts, delta), "Renyi"))
        alone = _single_perturbation(counts)
        if alone is not None and bounds[-1][0] > 0.0:
            exact = _perturbation_epsilon(alone, delta, bounds[-1][0])
            bounds.append((exact, "objective perturbation"))
    best, name = min(bounds)
    return max(0.0, best), name


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
    bounds = [1.0]
    pure = _pure_epsilon(counts)
    if pure is not None:
        bounds.append(_pure_to_delta(pure, epsilon))
    mu = gaussian_mu(counts)
    run = adaptive_run(tuple(counts.items())) if mu is None else None

    def ideal(epsilon: float) -> float:
        if mu is not None:
            return math.exp(min(0.0, gaussian_log_delta(mu, epsilon)))
        value = 1.0 if run is None else run.delta(epsilon)
        if run is not None and len(run.kinds) >= _MANY_KINDS:
            merged, slack = gaussian_parameter(event)
            value = min(value, math.exp(gaussian_log_delta(merged, epsilon)) + slack)
        if run is None or not run.beats_renyi or value < _FAR:
            log_delta = _minimise(partial(_renyi_log_delta, counts, epsilon))
            value = min(value, math.exp(min(0.0, log_delta)))
        return value

    bounds.append(_delta_with_slack(ideal, counts, epsilon))
    if mu is None:
        alone = _single_perturbation(counts)
        if alone is not None:
            bounds.append(_perturbation_delta(alone, epsilon))
    return min(1.0, max(0.0, min(bounds)) + leaked_delta(counts))


def renyi_epsilon(event: ev.Event, delta: float) -> float:
    """Epsilon at `delta` > 0 by the Renyi curve alone, samplers taken as ideal."""
    counts, log_delta = leaves(event), math.log(delta)

    def bound(a: Array, y: Array) -> Array:
        return spend(counts, a) + np.log1p(-1.0 / a) - (log_delta + np.log(a)) * np.exp(-y)

    return max(0.0, _minimise(bound))


def _renyi_log_delta(counts: dict[ev.Event, int], epsilon: float, a: Array, y: Array) -> Array:
    return np.exp(y) * (spend(counts, a) - epsilon) - y + a * np.log1p(-1.0 / a)


def _minimise(bound: Callable[[Array, Array], Array]) -> float:
    """Grid, two zooms and a parabola through the best three points: about 1e-12 of the best."""

    def values(y: Array) -> Array:
        a = 1.0 + np.exp(y)
        with np.errstate(all="ignore"):
            out = bound(a, y)
        return np.where(np.isnan(out), np.inf, out)

    y, width = _GRID, float(_GRID[1] - _GRID[0])
    best = math.inf
    for _ in range(3):
        f = values(y)
        i = int(np.argmin(f))
        best = min(best, float(f[i]))
        if not math.isfinite(best):
            return best
        centre, spacing, around = float(y[i]), width, f[max(i - 1, 0) : i + 2]
        y, width = centre + width * _ZOOM, width * 2.0 / (len(_ZOOM) - 1)
    if len(around) == 3 and np.all(np.isfinite(around)):
        left, mid, right = (float(v) for v in around)
        bend = left - 2.0 * mid + right
        if bend > 0.0:
            vertex = centre + 0.5 * spacing * (left - right) / bend
            best = min(best, float(values(np.array([vertex]))[0]))
    return best


def _pure_epsilon(counts: dict[ev.Event, int]) -> float | None:
    """Sum of the pure epsilons (basic composition), or None if one event is not pure."""
    total = 0.0
    for event, count in counts.items():
        bound = loss_bound(event)
        if bound is None:
            return None
        total += count * bound
    return total


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


def _single_perturbation(
    counts: dict[ev.Event, int],
) -> ev.ObjectivePerturbation | None:
    """The one event with a profile of its own of a run that does nothing else, else None."""
    event, count = next(iter(counts.items()))
    alone = len(counts) == 1 and count == 1
    return event if alone and isinstance(event, ev.ObjectivePerturbation) else None


def _perturbation_delta(event: ev.ObjectivePerturbation, epsilon: float) -> float:
    return delta_profile(event.mu, event.flatness, event.loss, event.replace_one, epsilon)


def _perturbation_epsilon(event: ev.ObjectivePerturbation, delta: float, known: float) -> float:
    """Smallest epsilon below `known` whose profile is at most `delta`, from the safe side."""
    if not (math.isfinite(known) and _perturbation_delta(event, known) <= delta):
        return math.inf
    low, high = 0.0, known
    while high - low > 1e-12 * high:  # high always meets delta
        middle = (low + high) / 2.0
        if _perturbation_delta(event, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def gaussian_mu(counts: dict[ev.Event, int]) -> float | None:
    """mu of the Gaussian pair that dominates a run of Gaussian noise only, else None."""
    total = 0.0
    for event, count in counts.items():
        if not isinstance(event, (ev.Gaussian, ev.RoundedGaussian)):
            return None
        total += count * (event.sensitivity / event.scale) ** 2
    return math.sqrt(total)


def sampler_slack(counts: dict[ev.Event, int]) -> float:
    """Total variation between the run and the same run with ideal samplers."""
    return sum(count * e.slack for e, count in counts.items() if isinstance(e, ev.RoundedGaussian))


def leaked_delta(counts: dict[ev.Event, int]) -> float:
    """What thresholds add to delta: with probability at most D a run tells a name that is impossible without
    a row, and otherwise is the run without such names (docs/proofs/preparation.md, Lemma 4)."""
    total = sum(n * e.leak for e, n in counts.items() if isinstance(e, ev.ThresholdedGaussian))
    return total / (1.0 - total) * (1.0 + 1e-12) if total < 0.5 else 1.0


# Lemma 4 of rounded_gaussian.md has two bounds. Up to 12 standard deviations a sampler is off by a
# relative error only, so at an epsilon lower by a shift its tail counts once, and no e^eps does.
SHIFT = 2.0**-33
TAIL_LIMIT = 2.0**-19  # below it a run has fewer than 2^54 values, as SHIFT assumes
_TAIL_OF_A_VALUE, _TAIL_OF_MU2, _SHIFT_OF_MU2, _LARGEST_MU = 2.0**-73, 2.0**-43, 2.0**-21, 4.5


def sampler_tail(counts: dict[ev.Event, int], epsilon: float = math.inf) -> tuple[float, float]:
    """(delta, shift) that samplers cost beside SHIFT, by the cheaper bound for each event."""
    delta, shift = leaked_delta(counts), 0.0
    for event, count in counts.items():
        if isinstance(event, ev.RoundedGaussian):
            mu = event.sensitivity / event.scale
            large = mu * mu if mu > 1.0 else 0.0  # at most that many values can move by more than 1
            tail = event.size * _TAIL_OF_A_VALUE + large * _TAIL_OF_MU2
            plain = _slack_delta(event.slack, epsilon)
            if mu > _LARGEST_MU or plain <= tail:
                delta += count * plain
            else:
                delta, shift = delta + count * tail, shift + count * large * _SHIFT_OF_MU2
    return delta, shift


def _slack_delta(slack: float, epsilon: float) -> float:
    """P, Q within `slack` of P', Q': P(S) <= e^eps Q(S) + delta' + (1 + e^eps) slack."""
    if slack == 0.0 or epsilon > 700.0:
        return math.inf if slack > 0.0 else 0.0
    return (1.0 + math.exp(epsilon)) * slack * (1.0 + 1e-12)


def _epsilon_with_slack(
    ideal: Callable[[float], float], counts: dict[ev.Event, int], delta: float
) -> float:
    """An epsilon at which the ideal run leaves room for its samplers; `ideal` maps delta to it."""
    slack = sampler_slack(counts)
    best = ideal(delta)
    if slack == 0.0 or not math.isfinite(best):
        return best
    value, plain = best, math.inf
    for _ in range(100):  # rises: a larger epsilon leaves less delta to the ideal run
        left = delta - _slack_delta(slack, value)
        # With at least 15/16 left the next step is far smaller than this one.
        if left < 0.9375 * delta:
            break
        ahead = ideal(left)
        if ahead <= value:
            plain = value
            break
        value = ahead * (1.0 + 1e-15)
    if plain <= best * _NOTHING_TO_WIN:
        return plain
    tail, shift = sampler_tail(counts)
    tail -= leaked_delta(counts)  # which the caller has paid
    if tail >= min(delta, TAIL_LIMIT):
        return plain
    return min(plain, ideal(delta - tail) + shift + SHIFT)


def _delta_with_slack(
    ideal: Callable[[float], float], counts: dict[ev.Event, int], epsilon: float
) -> float:
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
    tail -= leaked_delta(counts)  # which the caller adds
    if tail < TAIL_LIMIT and epsilon > shift + SHIFT:
        value = min(value, ideal(epsilon - shift - SHIFT) + tail)
    if value > best * _NOTHING_TO_WIN:
        from scipy.optimize import (
            minimize_scalar,
        )  # a fifth of a second: only those who need it wait

        # A guarantee at a smaller epsilon is one at this: `covered` is convex in e^eps.
        end = min(epsilon, -math.log(slack))
        found = minimize_scalar(
            covered, bounds=(0.0, end), method="bounded", options={"xatol": 1e-9}
        )
        value = min(value, float(found.fun))
    return value


def gaussian_log_delta(mu: float, epsilon: float) -> float:
    """log delta(epsilon) of N(0,1) against N(mu,1); the bound on rounding is charged."""
    if mu == 0.0:
        return -math.inf
    if not math.isfinite(mu):
        return 0.0
    value, error = log_profile(mu, np.float64(epsilon))  # type: ignore[arg-type]
    return min(0.0, float(value) + float(error))


def _merged_epsilon(mu: float, slack: float, delta: float) -> float:
    return gaussian_epsilon(mu, delta - slack) if delta > slack else math.inf


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Smallest epsilon with delta(epsilon) <= delta, from the safe side."""
    if not math.isfinite(mu):
        return math.inf
    if mu == 0.0:
        return 0.0
    return smallest_epsilon(partial(gaussian_log_delta, mu), mu, math.log(delta))

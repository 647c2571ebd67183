"""The noise parameter that spends a given (epsilon, delta), and never more."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from dpsparse._checks import safe_repr
from dpsparse.accounting.conversion import delta as event_delta
from dpsparse.accounting.conversion import epsilon as event_epsilon
from dpsparse.accounting.events import Event
from dpsparse.accounting.gaussian import log_profile
from dpsparse.accounting.rdp import rdp
from dpsparse.exceptions import CalibrationError, ParameterError

_LOG_LIMIT = math.log(1e30)  # the parameter is sought in [1e-30, 1e30]
# The search ends this far below the budget, relatively: some 1e-9 of the noise is given away.
_CLOSE = 5e-10
_found: dict[tuple[Event, Event, float, float], float] = {}  # what fits asked for before
_MANY = 1024


def calibrate(make_event: Callable[[float], Event], epsilon: float, delta: float) -> float:
    """The parameter x > 0 for which `make_event(x)` spends (epsilon, delta) and not more.

    `make_event` maps a positive number (an eta, a rho, a noise scale) to an event whose cost
    rises or falls with it; which of the two is found out. The root is moved to the cheap side
    until the accountant confirms it in both directions (delta at epsilon, epsilon at delta).

    Examples
    --------
    >>> from dpsparse.accounting import Gaussian, Repeated, calibrate
    >>> scale = calibrate(lambda scale: Repeated(Gaussian(scale), 10), epsilon=1.0, delta=1e-6)
    >>> print(f"{scale:.2f}")
    13.36
    """
    if not (0.0 < epsilon < math.inf):
        raise ParameterError(f"epsilon must be a positive finite number, got {safe_repr(epsilon)}.")
    if not (0.0 < delta < 1.0):
        raise ParameterError(f"delta must be strictly between 0 and 1, got {safe_repr(delta)}.")
    # Two events tell one family from another, and if they did not: what was found before is checked as anew.
    key = (make_event(1.0), make_event(2.0), float(epsilon), float(delta))
    before = _found.get(key)  # once: another thread may change or empty what was found
    if before is not None and _affordable(make_event(before), epsilon, delta):
        return before
    rising, guess = _start(make_event, epsilon, delta)
    wanted = _depth(delta)

    def excess(y: float) -> float:
        """log of wanted over reached depth in the tail: nearly a line in log x."""
        depth = _depth(event_delta(make_event(math.exp(rising * y)), epsilon))
        # Bounded, so that the root finder stays finite where delta is 0 or 1.
        return math.log(min(20.0, max(0.05, wanted / depth))) if depth > 0.0 else 3.0

    root = _affordable_root(excess, rising * guess)
    nudge = 0.0
    for _ in range(60):
        x = math.exp(rising * (root - nudge))
        if _affordable(make_event(x), epsilon, delta):
            if len(_found) >= _MANY:
                _found.clear()
            _found[key] = x
            return x
        nudge = max(2.0 * nudge, 1e-12)
    raise CalibrationError("The cost of make_event is not monotone; no safe parameter was found.")


def _affordable(event: Event, epsilon: float, delta: float) -> bool:
    return event_delta(event, epsilon) <= delta and event_epsilon(event, delta) <= epsilon


def _depth(delta: float) -> float:
    """How many standard deviations out a Gaussian tail of about `delta` lies."""
    return math.sqrt(-2.0 * math.log(delta)) if delta > 0.0 else math.inf


@lru_cache(maxsize=256)
def _gaussian_mu(epsilon: float, delta: float) -> float:
    """About the mu of the Gaussian mechanism that spends (epsilon, delta): a first guess."""
    spread = math.sqrt(-2.0 * math.log(delta))
    # Where the depth of the tail is `spread`.
    mu = math.sqrt(spread * spread + 2.0 * epsilon) - spread
    for _ in range(4):  # the true tail is thinner than e^{-depth^2/2}
        found = float(log_profile(mu, np.array(epsilon))[0])
        mu *= math.sqrt(max(-2.0 * found, 1e-6)) / spread
    return mu


def _start(
    make_event: Callable[[float], Event], epsilon: float, delta: float
) -> tuple[float, float]:
    """(+1 if the cost rises with the parameter, else -1; log of a first guess).

    The guess is where the Renyi divergence is that of the Gaussian that spends (epsilon, delta), at the order
    that matters for it: curves that are no line differ from it at any other.
    """
    mu = _gaussian_mu(epsilon, delta)
    order = 1.0 + math.sqrt(-2.0 * math.log(delta)) / mu
    goal = math.log(order * mu * mu / 2.0)
    for x in (1.0, 1e-3, 1e3, 1e-9, 1e9):
        here, there = (float(rdp(make_event(v), order)) for v in (x, 2.0 * x))
        if here != there:
            break
    else:
        raise CalibrationError("The cost of make_event does not depend on its parameter.")
    rising, y = (1.0 if there > here else -1.0), math.log(x)
    for _ in range(4):  # the cost is about quadratic where it matters
        if not (0.0 < here < math.inf and abs(math.log(here) - goal) > 1e-3):
            break
        y += rising * (goal - math.log(here)) / 2.0
        y = min(_LOG_LIMIT, max(-_LOG_LIMIT, y))
        here = float(rdp(make_event(math.exp(y)), order))
    return rising, y


def _affordable_root(excess: Callable[[float], float], start: float) -> float:
    """A y with -_CLOSE <= excess(y) <= 0: secants from `start`, halving where they do not help.

    `excess` rises, with a slope of about 3/4; where it jumps, the largest affordable y is returned.
    """
    low, high = -math.inf, math.inf  # affordable, too dear
    y, slope, reach = start, 0.75, 1.0
    last: tuple[float, float] | None = None
    for turn in range(400):
        f = excess(y)
        if -_CLOSE <= f <= 0.0:
            return y
        low, high = (max(low, y), high) if f <= 0.0 else (low, min(high, y))
        if low >= _LOG_LIMIT:
            raise CalibrationError("Every parameter is affordable; nothing limits the spending.")
        if high <= -_LOG_LIMIT:
            raise CalibrationError(
                "No parameter is affordable: the other parts of the event already cost more than "
                "the budget. Raise epsilon or delta, or spend less elsewhere."
            )
        if high - low < 1e-13:
            return low
        if last is not None and y != last[0]:
            slope = min(20.0, max(0.05, (f - last[1]) / (y - last[0])))
        last = (y, f)
        ahead = y - (f + _CLOSE / 2.0) / slope
        if math.isinf(high - low):  # not enclosed yet: ever longer strides
            stride = math.copysign(min(max(abs(ahead - y) * 1.01, 1e-9), reach), ahead - y)
            y, reach = min(_LOG_LIMIT, max(-_LOG_LIMIT, y + stride)), 2.0 * reach
        elif low < ahead < high and turn % 8 < 7:
            y = ahead
        else:
            y = (low + high) / 2.0
    return low

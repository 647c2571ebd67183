"""The noise parameter that spends a given (epsilon, delta), and never more."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

from dpsparse.exceptions import CalibrationError, ParameterError
from dpsparse.privacy.conversion import delta as event_delta
from dpsparse.privacy.conversion import epsilon as event_epsilon
from dpsparse.privacy.events import Event
from dpsparse.privacy.rdp import rdp

_LOG_LIMIT = math.log(1e30)  # the parameter is sought in [1e-30, 1e30]


def calibrate(make_event: Callable[[float], Event], epsilon: float, delta: float) -> float:
    """The parameter x > 0 for which `make_event(x)` spends (epsilon, delta) and not more.

    `make_event` maps a positive number (an eta, a rho, a noise scale) to an event whose cost
    rises or falls with it; which of the two is found out. The root is moved to the cheap side
    until the accountant confirms it in both directions (epsilon at delta, delta at epsilon).
    """
    if not (0.0 < epsilon < math.inf):
        raise ParameterError(f"epsilon must be a positive finite number, got {epsilon!r}.")
    if not (0.0 < delta < 1.0):
        raise ParameterError(f"delta must be strictly between 0 and 1, got {delta!r}.")
    rising = _direction(make_event)

    def excess(y: float) -> float:
        """log of spent over allowed epsilon, bounded so that the root finder stays finite."""
        spent = event_epsilon(make_event(math.exp(rising * y)), delta)
        return min(700.0, math.log(spent / epsilon)) if spent > epsilon * 1e-300 else -700.0

    low, high = _bracket(excess)
    root = float(brentq(excess, low, high, xtol=1e-14, rtol=1e-14, maxiter=200))
    nudge = 0.0
    for _ in range(60):
        x = math.exp(rising * (root - nudge))
        event = make_event(x)
        if event_epsilon(event, delta) <= epsilon and event_delta(event, epsilon) <= delta:
            return x
        nudge = max(2.0 * nudge, 1e-14)
    raise CalibrationError("The cost of make_event is not monotone; no safe parameter was found.")


def _direction(make_event: Callable[[float], Event]) -> float:
    """+1 if the cost rises with the parameter, -1 if it falls."""
    for x in (1.0, 1e-3, 1e3, 1e-9, 1e9):
        here, there = (float(rdp(make_event(v), 2.0)) for v in (x, 2.0 * x))
        if here != there:
            return 1.0 if there > here else -1.0
    raise CalibrationError("The cost of make_event does not depend on its parameter.")


def _bracket(excess: Callable[[float], float]) -> tuple[float, float]:
    """(affordable, too dear) in the log-parameter oriented so that cost rises."""
    step = 1.0
    here = 0.0
    if excess(here) <= 0.0:
        while here < _LOG_LIMIT:
            ahead = min(here + step, _LOG_LIMIT)
            if excess(ahead) > 0.0:
                return here, ahead
            here, step = ahead, 2.0 * step
        raise CalibrationError("Every parameter is affordable; nothing limits the spending.")
    while here > -_LOG_LIMIT:
        back = max(here - step, -_LOG_LIMIT)
        if excess(back) <= 0.0:
            return back, here
        here, step = back, 2.0 * step
    raise CalibrationError(
        "No parameter is affordable: the other parts of the event already cost more than the "
        "budget. Raise epsilon or delta, or spend less elsewhere."
    )

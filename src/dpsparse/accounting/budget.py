"""The one builder of plans: lines with shares of a privacy budget, priced together by one calibration.

    budget = Budget(epsilon, delta)
    budget.gaussian("class counts", 0.02, numbers=2)
    budget.picks("support", 0.30, picks=k)
    budget.event("fit", REST, lambda mu: tilted_fit(..., ratio=mu))
    phases = budget.phases()

The currency is mu^2. If the whole budget paid for one Gaussian release, mu would be its sensitivity over its noise
scale. A line with share f is priced as a Gaussian release of parameter mu sqrt(f), or as something that costs about as
much. The accountant then finds the mu at which all lines together spend (epsilon, delta) and not more. Only proportions
matter to it, so shares that add up to less than one are stretched.

A run inside a run, such as the model of a pipeline, is a line whose plan is made anew for every price that is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dpsparse._checks import safe_repr
from dpsparse.accounting.conversion import LIMIT, gaussian_epsilon, last_affordable, loss_spread
from dpsparse.accounting.conversion import delta as event_delta
from dpsparse.accounting.conversion import epsilon as event_epsilon
from dpsparse.accounting.events import (
    Event,
    Exponential,
    Gaussian,
    NonPrivate,
    Repeated,
    RoundedGaussian,
    Sequence,
    ThresholdedGaussian,
    leaves,
)
from dpsparse.accounting.guarantee import Phase
from dpsparse.exceptions import CalibrationError, ParameterError


def calibrate(make_event: Callable[[float], Event], epsilon: float, delta: float) -> float:
    """The parameter x > 0 for which `make_event(x)` spends (epsilon, delta) and not more.

    `make_event` maps a positive number (an eta, a rho, a noise scale) to an event whose cost
    rises or falls with it; which of the two is found out. The root is moved to the cheap side
    until the accountant confirms it in both directions (delta at epsilon, epsilon at delta).

    Parameters
    ----------
    make_event : callable
        From the parameter to the event.
    epsilon, delta : float
        What may be spent.

    Returns
    -------
    float
        The parameter.

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
    return _search(make_event, epsilon, delta, 1e-10, *_start(make_event, epsilon, delta))


def _search(
    make_event: Callable[[float], Event],
    epsilon: float,
    delta: float,
    close: float,
    rising: float,
    guess: float,
    most: float = math.inf,
) -> float:
    """The parameter that `calibrate` returns, to within `close` of epsilon; about `most` where all are affordable.

    The cost rises with the parameter if `rising` is 1 and falls if it is -1; `guess` is the log of a first try.
    """

    def excess(y: float) -> float:
        """log of spent over allowed epsilon: nearly a line in log x. Finite, for the secants."""
        spent = event_epsilon(make_event(math.exp(rising * y)), delta)
        if spent <= epsilon:
            return min(0.0, math.log(max(spent / epsilon, 1e-9)))
        return max(1e-15, math.log(min(spent / epsilon, 1e9)))

    root = last_affordable(excess, rising * guess, 1.0, close)
    if root == math.inf:
        root = math.log(most)
    if root == math.inf:
        raise CalibrationError("Every parameter is affordable; nothing limits the spending.")
    if root == -math.inf:
        raise CalibrationError(
            "No parameter is affordable: the other parts of the event already cost more than "
            "the budget. Raise epsilon or delta (or ridge, where one was set), or spend less elsewhere."
        )
    nudge = 0.0
    for _ in range(60):
        x = math.exp(rising * (root - nudge))
        if _affordable(make_event(x), epsilon, delta):
            return x
        nudge = max(2.0 * nudge, 1e-12)
    raise CalibrationError("The cost of make_event is not monotone; no safe parameter was found.")


def _affordable(event: Event, epsilon: float, delta: float) -> bool:
    return event_delta(event, epsilon) <= delta and event_epsilon(event, delta) <= epsilon


def _start(
    make_event: Callable[[float], Event], epsilon: float, delta: float
) -> tuple[float, float]:
    """(+1 if the cost rises with the parameter, else -1; log of a first guess).

    The guess is where the privacy loss spreads as that of the Gaussian mechanism that spends about (epsilon, delta).
    """
    depth = math.sqrt(-2.0 * math.log(delta))
    goal = math.log(math.sqrt(depth * depth + 2.0 * epsilon) - depth)
    for x in (1.0, 1e-3, 1e3, 1e-9, 1e9):
        here, there = (loss_spread(leaves(make_event(v))) for v in (x, 2.0 * x))
        if here != there:
            break
    else:
        raise CalibrationError("The cost of make_event does not depend on its parameter.")
    rising, y = (1.0 if there > here else -1.0), math.log(x)
    for _ in range(4):  # other parts of the event may bend the line
        if not 0.0 < here < math.inf:
            break
        y = min(LIMIT, max(-LIMIT, y + rising * (goal - math.log(here))))
        here = loss_spread(leaves(make_event(math.exp(y))))
    return rising, y


REST: Final = None  # the share of the one line that takes what the other lines leave


@dataclass(frozen=True)
class _Line:
    """`phases` gives what the line pays for, from the parameter of the line."""

    name: str
    share: float | None
    phases: Callable[[float], tuple[Phase, ...]]
    nested: bool = False


@dataclass
class Budget:
    """(epsilon, delta) divided among lines; an infinite epsilon pays for everything without noise.

    Parameters
    ----------
    epsilon : float
        Ceiling for all lines together.
    delta : float
        Probability that the ceiling fails.

    Examples
    --------
    >>> from dpsparse.accounting import REST, Budget, Sequence, epsilon
    >>> budget = Budget(1.0, 1e-6)
    >>> budget.gaussian("class counts", 0.1, numbers=2)
    >>> budget.picks("columns", REST, picks=5)
    >>> phases = budget.phases()
    >>> [phase.name for phase in phases]
    ['class counts', 'columns']
    >>> print(f"{epsilon(Sequence(tuple(phase.event for phase in phases)), 1e-6):.3f}")
    1.000
    """

    epsilon: float
    delta: float
    _lines: list[_Line] = field(default_factory=list, init=False, repr=False)
    _fixed: list[Phase] = field(default_factory=list, init=False, repr=False)
    _found: tuple[int, float] | None = field(default=None, init=False, repr=False)

    # ---- lines ---------------------------------------------------------------------------------

    def gaussian(self, name: str, share: float | None, numbers: int, note: str = "") -> None:
        """A sum of `numbers` whole numbers with Gaussian noise."""
        self.event(name, share, lambda mu: RoundedGaussian(1.0 / mu, 1.0, numbers), note)

    def picks(self, name: str, share: float | None, picks: int, note: str = "") -> None:
        """`picks` draws of the exponential mechanism; one of range eta costs about a Gaussian of parameter eta/2."""
        self.event(name, share, lambda mu: Exponential(2.0 * mu), note, picks)

    def names(self, name: str, share: float | None, leak: float, note: str = "") -> None:
        """Names that enough rows know, found by a noisy threshold; `leak` of delta pays for names of one row. No memory
        holds more than 2^40 different names."""
        self.event(name, share, lambda mu: ThresholdedGaussian(1.0 / mu, 1.0, 2**40, leak), note)

    def event(
        self,
        name: str,
        share: float | None,
        make: Callable[[float], Event],
        note: str = "",
        times: int = 1,
    ) -> None:
        """`times` runs of any mechanism; `make(mu)` is an event that costs about a Gaussian of parameter mu."""

        def phases(mu: float) -> tuple[Phase, ...]:
            if math.isinf(mu):
                return (Phase(name, NonPrivate(), note),)
            once = make(mu / math.sqrt(times))
            return (Phase(name, once if times == 1 else Repeated(once, times), note),)

        self._lines.append(_Line(name, share, phases))

    def nested(
        self, name: str, share: float | None, make: Callable[[float], tuple[Phase, ...]]
    ) -> None:
        """A run inside this one; `make(epsilon)` are the phases of its plan at that price."""
        self._lines.append(_Line(name, share, lambda mu: make(self._price(name, mu)), nested=True))

    def fixed(self, name: str, event: Event, note: str = "") -> None:
        """An event whose price the user has set; the other lines share what it leaves."""
        self._fixed.append(Phase(name, event, note))

    # ---- prices --------------------------------------------------------------------------------

    @property
    def shares(self) -> dict[str, float]:
        """The share of every line; they add up to one."""
        known = {line.name: line.share for line in self._lines if line.share is not None}
        if len(known) < sum(line.share is not None for line in self._lines):
            raise CalibrationError("Two lines of a budget have one name; a bug.")
        total = sum(known.values())
        resting = [line.name for line in self._lines if line.share is None]
        if not all(share > 0.0 for share in known.values()) or len(resting) > 1:
            raise CalibrationError("A line of a budget has no share; a bug.")
        if total > 1.0 + 1e-9 or (resting and total >= 1.0):
            raise ParameterError(
                f"The shares of the budget add up to {total:g}; lower them, so that something is left."
            )
        if resting:
            return {**known, resting[0]: 1.0 - total}
        return {name: share / total for name, share in known.items()}

    @property
    def mu(self) -> float:
        """The parameter of the whole budget; infinite where epsilon is."""
        if math.isinf(self.epsilon):
            return math.inf
        if self._found is None or self._found[0] != len(self._lines) + len(self._fixed):
            if any(line.nested for line in self._lines):
                # A plan inside may change its method with its price, and its spread with it: the search starts where
                # one Gaussian release would spend the budget. Samplers are proven up to an epsilon of about 37, and
                # a run inside spends no more than that.
                most = gaussian_parameter_at(self.epsilon, self.delta)
                found = _search(
                    self._event_at,
                    self.epsilon,
                    self.delta,
                    1e-4,  # plans are made on the way, so a few tries have to do
                    1.0,
                    math.log(most),
                    most,
                )
            else:
                found = calibrate(self._event_at, self.epsilon, self.delta)
            self._found = len(self._lines) + len(self._fixed), found
        return self._found[1]

    def _event_at(self, mu: float) -> Event:
        return Sequence(tuple(phase.event for phase in self._phases_at(mu)))

    def _phases_at(self, mu: float) -> tuple[Phase, ...]:
        shares = self.shares
        lines = (line.phases(mu * math.sqrt(shares[line.name])) for line in self._lines)
        return (*(phase for some in lines for phase in some), *self._fixed)

    def parameter(self, name: str) -> float:
        """The parameter of a line: sensitivity over noise scale if all of it were one Gaussian release."""
        return self.mu * math.sqrt(self.shares[name])

    def price(self, name: str) -> float:
        """The epsilon of a Gaussian release with the parameter of a line: the price of a nested run."""
        return self._price(name, self.parameter(name))

    def _price(self, name: str, mu: float) -> float:
        price = gaussian_epsilon(mu, self.delta)
        if not price > 0.0:
            raise CalibrationError(
                f"epsilon={self.epsilon} leaves nothing to the part {safe_repr(name)}: delta={self.delta} alone "
                "pays for it. Raise epsilon, or lower delta."
            )
        return price

    def phases(self) -> tuple[Phase, ...]:
        """Every line with its priced event, in the order in which they were added; fixed prices come last."""
        if math.isinf(self.epsilon):
            exact = tuple(Phase(each.name, NonPrivate(), each.note) for each in self._fixed)
            return (*self._phases_at(math.inf)[: -len(exact) or None], *exact)
        return self._phases_at(self.mu)


def gaussian_parameter_at(epsilon: float, delta: float) -> float:
    """mu of a single Gaussian release that spends (epsilon, delta)."""
    return calibrate(lambda mu: Gaussian(1.0 / mu), epsilon, delta)

"""Mechanisms as frozen records: what was done to the data, without the data.

An event says everything the accountant needs and nothing else. The set is closed: an event type that `leaves` does
not know is refused, never guessed. Multiplicity lives in `Repeated` alone, and only `leaves` counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Final

from dpsparse._checks import ADJACENCIES, check_choice, is_real, is_whole, safe_repr, show_number
from dpsparse.exceptions import ParameterError, UnknownEventError


def _require_positive(event: object, *names: str) -> None:
    for name in names:
        value = getattr(event, name)
        if not (is_real(value) and float(value) > 0):
            kind = type(event).__name__
            raise ParameterError(
                f"{kind}.{name} must be a positive number, got {safe_repr(value)}."
            )
        # NumPy scalars become plain numbers, so that records are equal, hashed and saved alike.
        plain = int(value) if is_whole(value) else float(value)
        object.__setattr__(event, name, plain)


@dataclass(frozen=True)
class Event:
    """Base of all events. Subclasses are plain records of public numbers.

    `proof` names the note with the law of the mechanism and its curve; a test reads it there.
    """

    proof: ClassVar[str] = "docs/proofs/accounting.md"
    in_words: ClassVar[str] = ""  # where the name of the class does not say it

    def __str__(self) -> str:
        """As people read it, such as "Gaussian, scale 32.7, sensitivity 1.41"; `repr` has all digits."""
        words = [self.in_words or type(self).__name__]
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (int, float)):
                whole = isinstance(value, int)
                words.append(
                    f"{field.name} {value:,}" if whole else f"{field.name} {show_number(value, 4)}"
                )
        return ", ".join(words)


class _Positive:
    """Events of positive numbers and nothing else."""

    def __post_init__(self) -> None:
        _require_positive(self, *(field.name for field in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Exponential(_Positive, Event):
    """Exponential mechanism (Gumbel noisy max) whose log-ratio has range at most `eta`.

    Parameters
    ----------
    eta : float
        Largest range of the log-ratio of probabilities between neighbours; no unit.

    Examples
    --------
    >>> from dpsparse.accounting import Exponential, Repeated, epsilon
    >>> print(f"{epsilon(Repeated(Exponential(eta=0.1), 100), delta=1e-6):.2f}")
    2.25
    """

    in_words: ClassVar[str] = "exponential mechanism"

    eta: float


@dataclass(frozen=True)
class Pure(_Positive, Event):
    """Any mechanism that is `epsilon`-DP with delta 0.

    Parameters
    ----------
    epsilon : float
        Price of one run, in natural log odds.

    Examples
    --------
    >>> from dpsparse.accounting import Pure, Repeated, epsilon
    >>> print(f"{epsilon(Repeated(Pure(0.1), 100), delta=1e-6):.2f}")  # not 10
    4.77
    """

    epsilon: float


@dataclass(frozen=True)
class Gaussian(_Positive, Event):
    """Gaussian noise of standard deviation `scale` on a query of L2 `sensitivity`.

    Parameters
    ----------
    scale : float
        Standard deviation of the noise, in the unit of the query.
    sensitivity : float, default=1.0
        Largest L2 change of the query between neighbours, in the same unit.

    Examples
    --------
    >>> from dpsparse.accounting import Gaussian, epsilon
    >>> print(f"{epsilon(Gaussian(scale=5.0, sensitivity=1.0), delta=1e-6):.2f}")
    0.83
    """

    scale: float
    sensitivity: float = 1.0


@dataclass(frozen=True)
class RoundedGaussian(Gaussian):
    """Gaussian noise rounded to a grid, on `size` values of the grid.

    It costs what Gaussian noise costs, because rounding is post-processing, plus the sampler's distance from that law
    (docs/proofs/rounded_gaussian.md).

    Parameters
    ----------
    scale, sensitivity : as in `Gaussian`
        Standard deviation of the noise, and largest change of the query.
    size : int, default=1
        Number of released values. The distance of the sampler from its law is charged for each.

    Examples
    --------
    >>> from dpsparse.accounting import Gaussian, RoundedGaussian, epsilon
    >>> print(f"{epsilon(RoundedGaussian(scale=5.0, sensitivity=1.0, size=1_000), delta=1e-6):.2f}")
    0.83
    """

    proof: ClassVar[str] = "docs/proofs/rounded_gaussian.md"
    in_words: ClassVar[str] = "Gaussian on a grid"

    size: int = 1

    @property
    def slack(self) -> float:
        """Total variation between what is drawn and the law: 2^-90 a value (Lemma 3)."""
        return min(1.0, self.size * 2.0**-90)


@dataclass(frozen=True)
class ThresholdedGaussian(RoundedGaussian):
    """Rounded Gaussian noise on the weights of names that occur; names above a threshold are released.

    A name that only one row (or person) knows is impossible without it. With probability at most `leak`, over
    both tables together, such a name is released; otherwise the release is the Gaussian one
    (Lemma 4 of its note).

    Parameters
    ----------
    scale, sensitivity : as in `Gaussian`
        Standard deviation of the noise, and largest change of the weights.
    size : int, default=1
        Public bound on the number of names.
    leak : float, default=0.0
        Probability that a name is released which only one table has; it is charged to delta.

    Examples
    --------
    >>> from dpsparse.accounting import Gaussian, ThresholdedGaussian, epsilon
    >>> print(f"{epsilon(ThresholdedGaussian(scale=5.0, size=10_000, leak=1e-8), delta=1e-6):.2f}")
    0.83
    """

    proof: ClassVar[str] = "docs/proofs/preparation.md"
    in_words: ClassVar[str] = "Gaussian on a grid, names above a threshold"

    leak: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.leak < 0.5:
            raise ParameterError(
                f"ThresholdedGaussian.leak must be below one half, got {safe_repr(self.leak)}."
            )


@dataclass(frozen=True)
class Geometric(Event):
    """Two-sided geometric noise, P(k) ~ exp(-|k|/scale), on an integer of `sensitivity`.

    Parameters
    ----------
    scale : float
        Scale of the noise, in units of the count.
    sensitivity : int, default=1
        Largest change of the count between neighbours.

    Examples
    --------
    >>> from dpsparse.accounting import Geometric, epsilon
    >>> print(f"{epsilon(Geometric(scale=10.0, sensitivity=1), delta=1e-6):.2f}")
    0.10
    """

    scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        _require_positive(self, "scale", "sensitivity")
        if math.isinf(self.sensitivity) or self.sensitivity != int(self.sensitivity):
            raise ParameterError(
                "Geometric.sensitivity must be a whole number: integer noise on a query that "
                "moves by fractions is not private. Round the bounds of the count."
            )

    @classmethod
    def for_epsilon(cls, epsilon: float, sensitivity: int) -> Geometric:
        """The noise that costs `epsilon`: a quotient that float64 rounds down would cost more, by one last digit."""
        scale = sensitivity / epsilon
        if math.isinf(scale):
            raise ParameterError(
                f"epsilon={epsilon!r} is too small: no number is as large as its noise."
            )
        if Fraction(scale) * Fraction(epsilon) < sensitivity:
            scale = math.nextafter(scale, math.inf)
        return cls(scale, sensitivity)


@dataclass(frozen=True)
class ObjectivePerturbation(Event):
    """The exact minimiser of sum of losses + ridge/2 |theta|^2 + b.theta, b ~ N(0, scale^2 I).

    Not for losses with several slopes per row, such as softmax.

    Parameters
    ----------
    scale : float
        Standard deviation of the linear term b.
    gradient_bound : float
        Bound on the L2 norm of one row's gradient.
    curvature : float
        Bound on one row's second derivative times the square of its length.
    ridge : float
        Coefficient of the ridge of the summed loss.
    loss : {"one-sided", "glm"}, default="glm"
        "one-sided" has slopes of one sign per row, as the logistic one has, "glm" any scalar slope.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Which tables are neighbours.

    Examples
    --------
    >>> from dpsparse.accounting import ObjectivePerturbation, epsilon
    >>> fit = ObjectivePerturbation(scale=10.0, gradient_bound=1.0, curvature=0.25, ridge=25.0, loss="one-sided")
    >>> print(f"{epsilon(fit, delta=1e-6):.2f}")
    0.41
    """

    proof: ClassVar[str] = "docs/proofs/objective_perturbation.md"

    scale: float
    gradient_bound: float
    curvature: float
    ridge: float
    loss: str = "glm"
    adjacency: str = "add-remove"

    def __post_init__(self) -> None:
        _require_positive(self, "scale", "gradient_bound", "curvature", "ridge")
        check_choice("ObjectivePerturbation.loss", self.loss, ("glm", "one-sided"))
        check_choice("ObjectivePerturbation.adjacency", self.adjacency, ADJACENCIES)

    @property
    def mu(self) -> float:
        """How far one row may move the tilt, in standard deviations of its noise."""
        return self.gradient_bound / self.scale

    @property
    def flatness(self) -> float:
        """How much curvature one row may add, over that of the ridge."""
        return self.curvature / self.ridge

    @property
    def replace_one(self) -> bool:
        return self.adjacency == "replace-one"


@dataclass(frozen=True)
class NonPrivate(Event):
    """No guarantee at all: noiseless, seeded or published without proof.

    Examples
    --------
    >>> from dpsparse.accounting import NonPrivate, epsilon
    >>> epsilon(NonPrivate(), delta=1e-6)
    inf
    """

    proof: ClassVar[str] = ""
    in_words: ClassVar[str] = "no privacy at all"


@dataclass(frozen=True)
class Repeated(Event):
    """The same event `count` times, adaptively.

    Parameters
    ----------
    event : Event
        What is repeated.
    count : int
        Number of times.

    Examples
    --------
    >>> from dpsparse.accounting import Gaussian, Repeated, epsilon
    >>> print(f"{epsilon(Repeated(Gaussian(5.0), 4), delta=1e-6):.2f}")  # as one with scale 2.5
    1.77
    """

    event: Event
    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.event, Event):
            raise UnknownEventError(
                f"Repeated.event must be an event, got {safe_repr(self.event)}."
            )
        count: object = self.count
        if not is_whole(count) or int(self.count) < 0:
            raise ParameterError(f"Repeated.count must be a whole number, got {safe_repr(count)}.")
        object.__setattr__(self, "count", int(self.count))

    def __str__(self) -> str:
        return f"{self.count} x {self.event}"


@dataclass(frozen=True)
class Sequence(Event):
    """Events one after the other, each chosen after seeing the earlier outputs.

    Parameters
    ----------
    events : tuple of Event
        In the order in which they run.

    Examples
    --------
    >>> from dpsparse.accounting import Exponential, Gaussian, Sequence, epsilon
    >>> print(f"{epsilon(Sequence((Gaussian(5.0), Exponential(0.2))), delta=1e-6):.2f}")
    0.94
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))
        for event in self.events:
            if not isinstance(event, Event):
                raise UnknownEventError(f"Sequence holds {event!r}, which is not an event.")

    def __str__(self) -> str:
        return "; then ".join(map(str, self.events)) or "nothing"


Counts = dict[Event, int]  # elementary events with their multiplicity


def leaves(event: Event) -> Counts:
    """Elementary events with their multiplicity: the one place that counts, and refuses."""
    counts: Counts = {}

    def visit(node: Event, times: int) -> None:
        if times == 0:
            return
        if isinstance(node, Repeated):
            visit(node.event, times * node.count)
        elif isinstance(node, Sequence):
            for part in node.events:
                visit(part, times)
        elif type(node) not in ELEMENTARY:
            raise UnknownEventError(
                f"No privacy proof is known for {type(node).__name__}; "
                "describe the mechanism by an event of dpsparse.accounting."
            )
        else:
            counts[node] = counts.get(node, 0) + times

    visit(event, 1)
    return counts


# The known mechanisms: what each costs stands in conversion.py and dominance.py.
ELEMENTARY: Final = (
    Exponential, Pure, Gaussian, RoundedGaussian, ThresholdedGaussian, Geometric, ObjectivePerturbation, NonPrivate,
)  # fmt: skip


def loss_bound(leaf: Event) -> float | None:
    """The range of a bounded-range step, the epsilon of a pure one (rounded up), else None."""
    if isinstance(leaf, Exponential):
        return float(leaf.eta)
    if isinstance(leaf, Pure):
        return float(leaf.epsilon)
    if isinstance(leaf, Geometric):
        bound = leaf.sensitivity / leaf.scale
        known = 0.0 < bound < math.inf
        less = known and Fraction(bound) * Fraction(leaf.scale) < leaf.sensitivity
        return math.nextafter(bound, math.inf) if less else bound
    return None


def to_dict(event: Event) -> dict[str, Any]:
    """The event as plain JSON types, invertible by `from_dict` bit for bit."""
    out: dict[str, Any] = {"type": type(event).__name__}
    for field in fields(event):
        out[field.name] = _encode(getattr(event, field.name))
    return out


def from_dict(record: dict[str, Any]) -> Event:
    """Inverse of `to_dict`; an unknown type is refused."""
    kinds = {kind.__name__: kind for kind in (*ELEMENTARY, Repeated, Sequence)}
    kind = kinds.get(str(record.get("type")))
    if kind is None:
        raise UnknownEventError(f"Unknown event type {record.get('type')!r} in a record.")
    missing = [field.name for field in fields(kind) if field.name not in record]
    if missing:
        raise ParameterError(f"The record of {kind.__name__} lacks {', '.join(missing)}.")
    return kind(**{field.name: _decode(record[field.name]) for field in fields(kind)})


def _encode(value: Any) -> Any:
    if isinstance(value, Event):
        return to_dict(value)
    if isinstance(value, tuple):
        return [_encode(part) for part in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        return from_dict(value)
    if isinstance(value, list):
        return tuple(_decode(part) for part in value)
    return math.inf if value == "inf" else value

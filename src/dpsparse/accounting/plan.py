"""The price before paying: what a fit will do, from hyper-parameters and public facts only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from dpsparse._checks import show_number
from dpsparse.accounting.conversion import best_bound
from dpsparse.accounting.events import Event, RoundedGaussian, Sequence
from dpsparse.accounting.guarantee import FITTED, ROW, Guarantee
from dpsparse.accounting.html import guarantee_html
from dpsparse.accounting.rdp import leaves
from dpsparse.exceptions import ParameterError

# What a plan and the guarantee of a fit that follows it say alike.
PROMISED = (
    "epsilon", "delta", "adjacency", "assumptions", "source", "calibration", "randomness", "unit", "n_units",
    "table",
)  # fmt: skip
# What the body of a run gets besides the price; a plan without it is a Plan[object].
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Settings = TypeVarWithDefault("Settings", covariant=True, default=object)
else:
    Settings = TypeVar("Settings", covariant=True)
_LIMIT = 4096.0  # largest sensitivity over noise scale: whole-number sums must fit 63 bits


@dataclass(frozen=True)
class Phase:
    """One paid step of a fit: its name, its event, and a line on what is released.

    Parameters
    ----------
    name : str
        Name of the step, as the plan shows it.
    event : Event
        What the step costs.
    note : str, default=""
        One line that says what is released.

    Examples
    --------
    >>> from dpsparse.accounting import Gaussian, Phase
    >>> Phase("class counts", Gaussian(scale=20.0), "two noisy counts").name
    'class counts'
    """

    name: str
    event: Event
    note: str = ""


@dataclass(frozen=True)
class Plan(Generic[Settings]):
    """Everything a fit spends and every public constant it uses; no data went in.

    `epsilon` is what was asked for. A proven plan spends no more; a plan that is not proven (seeded, noiseless,
    published) promises nothing, and its `guarantee` has epsilon infinity.
    `settings` is the typed record that the run works with; `parameters` shows the numbers of interest to a reader.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> plan = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=0.5).plan(n_features=1_000)
    >>> plan.method, plan.epsilon, plan.delta
    ('DPGradientClassifier', 0.5, 1e-06)
    >>> from dpsparse.accounting import Repeated, epsilon
    >>> print(f"{epsilon(Repeated(plan.event, 10), 1e-6):.2f}")  # ten such fits
    1.73
    """

    method: str
    phases: tuple[Phase, ...]
    epsilon: float
    delta: float
    adjacency: str
    calibration: str = "proven"
    proven: bool = True
    source: str = ""
    assumptions: tuple[str, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    randomness: str = "cryptographic stream"
    unit: str = ROW
    n_units: int | None = None  # rows or persons, where their number was declared public
    table: str = FITTED  # which table the guarantee is about
    max_rows: int | None = None  # rows that the method's arithmetic is proven for; None: any number
    settings: Settings = field(default=None, repr=False, compare=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for leaf in leaves(self.event):
            if isinstance(leaf, RoundedGaussian) and leaf.sensitivity > _LIMIT * leaf.scale:
                raise ParameterError(
                    f"epsilon={self.epsilon!r} is no privacy; use math.inf for the exact model."
                )
        self.guarantee  # noqa: B018 - recomputed from the events; refuses a plan that claims too little

    @property
    def event(self) -> Event:
        """All phases in order; what the ledger reserves."""
        return Sequence(tuple(phase.event for phase in self.phases))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of a fit that follows this plan with secure randomness."""
        return Guarantee(
            **{name: getattr(self, name) for name in PROMISED},
            proven=self.proven and not math.isinf(self.epsilon),
            events=tuple((phase.name, phase.event) for phase in self.phases),
        )

    @property
    def accounting(self) -> str:
        """The name of the bound that gives this epsilon: the smallest of those that are proven."""
        return best_bound(self.event, self.delta)[1] if self.guarantee.proven else "none"

    def seeded(self) -> Plan[Settings]:
        """The same fit with repeatable noise: whoever knows the seed can subtract it."""
        return replace(self, proven=False, randomness="seeded")

    def without_settings(self) -> Plan[None]:
        """The price alone: what a model keeps whose settings hold more than its file may."""
        return replace(self, settings=None)  # type: ignore[return-value, arg-type]

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [
            (f"step: {phase.name}", phase.event) for phase in self.phases
        ]
        headline = f"{self.method}, not fitted yet: {self.guarantee.headline}"
        g = self.guarantee
        told = [("caution", text) for text in g.cautions]
        facts = [*told, *rows, *self.parameters.items()]
        return guarantee_html(headline, g.proven, facts, caution=bool(told))

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.guarantee.headline}"]
        lines += [f"  {'caution':<22} {text}" for text in self.guarantee.cautions]
        lines += [
            f"  {phase.name:<22} {phase.event}  {phase.note}".rstrip() for phase in self.phases
        ]
        if self.guarantee.proven:
            lines.append(f"  {'accounting':<22} {self.accounting} bound")
        for key, value in self.parameters.items():
            lines.append(f"  {key:<22} {show_number(value) if isinstance(value, float) else value}")
        return "\n".join(lines)

"""The price before paying: what a fit will do, from hyper-parameters and public facts only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dpsparse.exceptions import ParameterError
from dpsparse.privacy.conversion import best_bound
from dpsparse.privacy.events import Event, RoundedGaussian, Sequence
from dpsparse.privacy.guarantee import FITTED, ROW, Guarantee
from dpsparse.privacy.html import guarantee_html
from dpsparse.privacy.rdp import leaves

# What a plan and the guarantee of a fit that follows it say alike.
PROMISED = (
    "epsilon", "delta", "adjacency", "assumptions", "source", "calibration", "randomness", "unit", "n_units",
    "table",
)  # fmt: skip
_LIMIT = 4096.0  # largest sensitivity over noise scale: whole-number sums must fit 63 bits


@dataclass(frozen=True)
class Phase:
    """One paid step of a fit: its name, its event, and a line on what is released.

    Examples
    --------
    >>> from dpsparse.privacy import Gaussian, Phase
    >>> Phase("class counts", Gaussian(scale=20.0), "two noisy counts").name
    'class counts'
    """

    name: str
    event: Event
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """Everything a fit spends and every public constant it uses; no data went in.

    `epsilon` is what was asked for. A proven plan spends no more; a plan that is not proven (seeded, noiseless,
    published) promises nothing, and its `guarantee` has epsilon infinity.
    `public` is what the solver is given; `parameters` shows the numbers of interest to a reader.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> plan = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=0.5).plan(n_features=1_000)
    >>> plan.method, plan.epsilon, plan.delta
    ('DPGradientClassifier', 0.5, 1e-06)
    >>> from dpsparse.privacy import Repeated, epsilon
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
    parameters: Mapping[str, Any] = field(default_factory=dict)
    randomness: str = "cryptographic stream"
    unit: str = ROW
    n_units: int | None = None  # rows or persons, where their number was declared public
    table: str = FITTED  # which table the guarantee is about
    max_rows: int | None = None  # rows that the method's arithmetic is proven for; None: any number
    # the solver's record, made once and passed on
    public: Any = field(default=None, repr=False, compare=False)

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

    def seeded(self) -> Plan:
        """The same fit with repeatable noise: whoever knows the seed can subtract it."""
        return replace(self, proven=False, randomness="seeded")

    def _repr_html_(self) -> str:
        rows: list[tuple[str, Any]] = [
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
            lines.append(
                f"  {key:<22} {value:.6g}" if isinstance(value, float) else f"  {key:<22} {value}"
            )
        return "\n".join(lines)

"""What was promised, on what ground: the record a fitted model carries, and the plan that comes before it.

A plan is the price before paying: what a fit will do, from hyper-parameters and public facts only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dpsparse._checks import check_choice, rounded_up, safe_repr, show_number
from dpsparse._json import plain
from dpsparse.accounting import events as ev
from dpsparse.accounting.conversion import epsilon as event_epsilon
from dpsparse.accounting.events import Event, RoundedGaussian, Sequence, leaves
from dpsparse.exceptions import CalibrationError, ParameterError

NEIGHBOURS = {"add-remove": "add/remove one row", "replace-one": "replace one row"}
ROW, PERSON = "one row", "one person, all of their rows"  # what a guarantee protects
# Which table a guarantee is about, and what that leaves out.
FITTED, RAW, PREPARED = "the table given to fit", "the raw table", "the prepared table"
EVALUATED, ANALYSED = "the evaluated table", "the table given to dp_inference"
TABLES = {
    FITTED: "what was learnt from the rows before (scales, categories, settings) is not counted",
    RAW: "what preparing its rows cost is counted",
    PREPARED: "what preparing it cost stands in the guarantee of the pipeline",
    EVALUATED: "what was learnt from the rows before, such as the model, is not counted",
    ANALYSED: "what was learnt from the rows before (scales, the support) is not counted",
}
SECURE, SEEDED = "cryptographic stream", "seeded"
TRUST_MODEL = (
    "central model: a trusted curator holds the rows and runs the fit; only the released model "
    "is protected"
)
NOT_PROTECTED = (
    "the raw data at rest and in memory",
    "timing, memory and power side channels of the fit",
    "facts about groups and the population that the model learns on purpose",
    "facts declared public: the domain, the number of features, every hyper-parameter",
    "choices made by looking at the data outside this library (tuning, cleaning, feature building)",
)


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-differential privacy of one release, with everything it rests on.

    `proven=False` means no promise at all: `epsilon` is then infinity (`Plan.epsilon` keeps
    that number). A proven one is recomputed from its events when it is made, and refused if they spend more.
    `events` are pairs (name, event) in the order in which they ran; `assumptions` say what must
    hold for the proof to apply (arithmetic, what is public); `source` names the proof note.
    `table` says which table the guarantee is about. `n_units` is the number of rows or persons where it was declared
    public, and serves `cautions` alone.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> guarantee = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=0.5).plan(n_features=1_000).guarantee
    >>> guarantee.headline
    '(0.5, 1e-6)-DP of the table given to fit, add/remove one row, proven'
    >>> guarantee.proven, guarantee.unit, guarantee.source
    (True, 'one row', 'docs/proofs/noisy_gradient.md')
    """

    epsilon: float
    delta: float
    adjacency: str
    proven: bool
    events: tuple[tuple[str, ev.Event], ...] = ()
    assumptions: tuple[str, ...] = ()
    source: str = ""
    unit: str = ROW
    randomness: str = SECURE
    n_units: int | None = None
    table: str = FITTED

    def __post_init__(self) -> None:
        if not self.epsilon >= 0.0:
            raise ParameterError(f"epsilon must be a number >= 0, got {safe_repr(self.epsilon)}.")
        if not 0.0 <= self.delta <= 1.0:
            raise ParameterError(f"delta must be in [0, 1], got {safe_repr(self.delta)}.")
        check_choice("adjacency", self.adjacency, tuple(NEIGHBOURS))
        check_choice("randomness", self.randomness, (SECURE, SEEDED))
        check_choice("table", self.table, tuple(TABLES))
        events = tuple((str(name), event) for name, event in self.events)
        if not all(isinstance(event, ev.Event) for _, event in events):
            raise ParameterError("events must be pairs (name, event).")
        for name, value in (
            ("epsilon", float(self.epsilon) if self.proven else math.inf),
            ("delta", float(self.delta)),
            ("proven", bool(self.proven)),
            ("events", events),
            ("assumptions", tuple(map(str, self.assumptions))),
        ):
            object.__setattr__(self, name, value)
        flaw = self._flaw or ("epsilon is infinite" if math.isinf(self.epsilon) else "")
        if self.proven and flaw:
            raise ParameterError(f"A guarantee cannot be proven here: {flaw}.")
        # The accountant has the last word on what may be claimed; 1e-9 is for rounding alone.
        if self.proven and self.recompute() > self.epsilon * (1.0 + 1e-9):
            raise CalibrationError(
                f"What is recorded here spends more than the epsilon it claims ({self.epsilon!r})."
            )

    @property
    def event(self) -> ev.Event:
        """Everything that ran, as one event."""
        return ev.Sequence(tuple(event for _, event in self.events))

    def recompute(self) -> float:
        """Epsilon at this delta, from the events alone; at most `epsilon` if all is well."""
        return event_epsilon(self.event, self.delta) if self.delta < 1.0 else math.inf

    @property
    def _flaw(self) -> str:
        """Why no proof can hold, or an empty string."""
        if self.randomness == SEEDED:
            return "seeded random numbers: whoever knows the seed can remove the noise"
        if not self.events:
            return "no mechanism is recorded"
        kinds = leaves(self.event).keys()
        if kinds == {ev.NonPrivate()}:
            return "no noise was added"
        if ev.NonPrivate() in kinds:
            return "one step has no guarantee"
        return "delta is 1" if self.delta >= 1.0 else ""

    @property
    def cautions(self) -> tuple[str, ...]:
        """Why a proven guarantee may still promise too little; whoever shows it green shows these amber."""
        if not self.proven:
            return ()
        return cautions(self.epsilon, self.delta, self.n_units, self.unit)

    @property
    def neighbours(self) -> str:
        """Which tables must look alike, in words: what is added, removed or replaced is the unit."""
        words = NEIGHBOURS[self.adjacency]
        return words if self.unit == ROW else words.replace("one row", "one person")

    @property
    def covers(self) -> str:
        """Which table is protected, and what the guarantee leaves out."""
        return f"{self.table}; {TABLES[self.table]}"

    @property
    def headline(self) -> str:
        """One line, for a log or the head of a report."""
        if self.proven:
            terms = f"({rounded_up(self.epsilon)}, {rounded_up(self.delta)})-DP"
            return f"{terms} of {self.table}, {self.neighbours}, proven"
        return f"NOT PRIVATE: {self._flaw or 'its noise is without a proof'}"

    @property
    def caution_lines(self) -> str:
        """A line for every caution, each begun anew, to stand below the headline; empty if there is none."""
        return "".join(f"\ncaution: {text}" for text in self.cautions)

    @property
    def promise(self) -> str:
        """What the headline means, in a sentence."""
        if not self.proven:
            return "Treat the result as if it contained the data: epsilon is infinite, not that of the parameters."
        kept = self.adjacency == "add-remove"
        change = "was used or not" if kept else "was as it is or quite different"
        who = self.unit.replace(", all of their rows", " with all of their rows")
        return (
            f"Whether {who} {change} changes the probability of any outcome by a factor of at most "
            f"{_factor(self.epsilon)}, apart from a further probability of at most {rounded_up(self.delta, 2)}."
        )

    def __str__(self) -> str:
        facts = (f"  {name:<11} {text}" for name, text in self._facts())
        return "\n".join([self.headline, self.promise, *facts])

    def _facts(self) -> list[tuple[str, str]]:
        """What stands below the headline, in words."""
        return [
            *(("caution", text) for text in self.cautions),
            ("covers", self.covers),
            *(("step", f"{name}: {event}") for name, event in self.events),
            *(("assumes", text) for text in self.assumptions),
            ("trust", TRUST_MODEL),
            ("randomness", self.randomness),
            ("proof", self.source or "none"),
        ]

    def _repr_html_(self) -> str:
        facts = [
            ("epsilon", rounded_up(self.epsilon)),
            ("delta", rounded_up(self.delta)),
            ("neighbours", self.neighbours),
            ("unit", self.unit),
            *self._facts(),
        ]
        return guarantee_html(self.headline, self.proven, facts, caution=bool(self.cautions))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; `from_dict` gives back the same guarantee bit for bit.

        `summary` is for a reader of the file; it is derived.
        """
        record = {"format": 1, **{field.name: getattr(self, field.name) for field in fields(self)}}
        record["events"] = [{"name": name, "event": ev.to_dict(e)} for name, e in self.events]
        record["summary"] = {"headline": self.headline, "cautions": self.cautions}
        return dict(plain(record))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Guarantee:
        """Inverse of `to_dict`."""
        if record.get("format") != 1:
            raise ParameterError(f"Unknown guarantee format {record.get('format')!r}; expected 1.")
        try:
            facts = {field.name: record[field.name] for field in fields(cls)}
            for name in ("epsilon", "delta"):  # infinity is written as a text
                facts[name] = math.inf if facts[name] == "inf" else facts[name]
                if type(facts[name]) not in (int, float):
                    raise ParameterError(f"{name} of a guarantee record must be a number.")
            if type(facts["proven"]) is not bool:
                raise ParameterError("proven of a guarantee record must be true or false.")
            facts["events"] = tuple((e["name"], ev.from_dict(e["event"])) for e in facts["events"])
            return cls(**facts)
        except KeyError as error:
            raise ParameterError(f"The guarantee record lacks {error.args[0]!r}.") from None


def cautions(epsilon: float, delta: float, n_units: int | None, unit: str = ROW) -> tuple[str, ...]:
    """Cautions for a reader of a guarantee; none if it is strong enough.

    Both are about the numbers promised, not about the proof: with delta >= 1/n the mechanism that publishes one of n
    rows at random would pass, and beyond epsilon 10 a probability may grow by a factor above 22,000.
    """
    one, many = ("person", "persons") if unit == PERSON else ("row", "rows")
    found = []
    if n_units is not None and delta * n_units >= 1.0:
        found.append(
            f"delta = {show_number(delta)} is not below 1/n for n = {n_units:,} {many}: to publish one {one} at random "
            "would satisfy it; choose delta far below 1/n"
        )
    loose = 10.0  # beyond this epsilon a guarantee says little
    if loose < epsilon < math.inf:
        found.append(
            f"epsilon = {rounded_up(epsilon, 3)} lets one {one} change a probability by a factor of "
            f"{_factor(epsilon)}; above {loose:g} a guarantee says little"
        )
    return tuple(found)


def _factor(epsilon: float) -> str:
    return rounded_up(likelihood_factor(epsilon), 3) if epsilon < 50.0 else "astronomical"


# What a plan and the guarantee of a fit that follows it say alike.
PROMISED = (
    "epsilon", "delta", "adjacency", "assumptions", "source", "randomness", "unit", "n_units", "table",
)  # fmt: skip
# What the body of a run gets besides the price; a plan without it is a Plan[object].
if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Settings = TypeVarWithDefault("Settings", covariant=True, default=object)
else:
    Settings = TypeVar("Settings", covariant=True)


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

    `epsilon` is the parameter of the fit. A proven plan spends no more; a plan that is not proven (seeded, noiseless,
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
    proven: bool = True
    source: str = ""
    assumptions: tuple[str, ...] = ()
    parameters: Mapping[str, object] = field(default_factory=dict)
    randomness: str = SECURE
    unit: str = ROW
    n_units: int | None = None  # rows or persons, where their number was declared public
    table: str = FITTED  # which table the guarantee is about
    max_rows: int | None = None  # rows that the method's arithmetic is proven for; None: any number
    settings: Settings = field(default=None, repr=False, compare=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        for leaf in leaves(self.event):  # whole-number sums must fit 63 bits
            if isinstance(leaf, RoundedGaussian) and leaf.sensitivity > 4096.0 * leaf.scale:
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

    def promises_as(self, other: Plan) -> bool:
        """Whether another plan promises the same on the same ground: what a file claims, against what is computed."""
        phases = [
            [(phase.name, ev.to_dict(phase.event)) for phase in plan.phases]
            for plan in (self, other)
        ]
        alike = all(getattr(self, name) == getattr(other, name) for name in PROMISED)
        return alike and self.method == other.method and _same_numbers(*phases)

    def shows_as(self, other: Plan) -> bool:
        """Whether another plan also shows the same beside its promise: cards print notes and constants."""
        shown = [
            [plan.max_rows, [phase.note for phase in plan.phases], plain(plan.parameters)]
            for plan in (self, other)
        ]
        return _same_numbers(*shown)

    def seeded(self) -> Plan[Settings]:
        """The same fit with repeatable noise: whoever knows the seed can subtract it."""
        return replace(self, proven=False, randomness=SEEDED)

    def without_settings(self) -> Plan[None]:
        """The price alone: what a model keeps whose settings hold more than its file may."""
        return replace(self, settings=None)  # type: ignore[return-value, arg-type]

    def _facts(self) -> list[tuple[str, object]]:
        """What stands below the headline."""
        g = self.guarantee
        return [
            *(("caution", text) for text in g.cautions),
            *((phase.name, f"{phase.event}  {phase.note}".rstrip()) for phase in self.phases),
            *self.parameters.items(),
        ]

    def _repr_html_(self) -> str:
        g = self.guarantee
        headline = f"{self.method}, not fitted yet: {g.headline}"
        return guarantee_html(headline, g.proven, self._facts(), caution=bool(g.cautions))

    def __str__(self) -> str:
        facts = [f"  {name:<22} {show(value)}" for name, value in self._facts()]
        return "\n".join([f"{self.method}: {self.guarantee.headline}", *facts])


def _same_numbers(one: Any, other: Any) -> bool:
    """Whether two records are equal up to the last digits of their numbers."""
    if isinstance(one, float) and isinstance(other, float):
        # A calibration on another processor differs by less.
        return math.isclose(one, other, rel_tol=1e-6)
    if isinstance(one, dict) and isinstance(other, dict):
        same_keys = one.keys() == other.keys()
        return same_keys and all(_same_numbers(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same_numbers, one, other))
    return bool(one == other)


# ---- numbers and pages, also for accounts and cards -------------------------------------------------


def guarantee_html(
    headline: str, proven: bool, rows: Iterable[tuple[str, Any]], *, caution: bool = False
) -> str:
    """A coloured headline above a table of facts: green, amber with a caution, red without a proof."""
    # Readable on light and dark backgrounds.
    colour = "#c4302b" if not proven else "#a86400" if caution else "#1a7f4b"
    cells = "".join(
        '<tr><th scope="row" style="text-align:left;font-weight:normal;opacity:.7;'
        f'padding:1px 12px 1px 0;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(show(value))}</td></tr>'
        for name, value in rows
    )
    return (
        f'<div style="border-left:4px solid {colour};padding:2px 10px;margin:4px 0">'
        f'<div style="font-weight:600;color:{colour}">{escape(headline)}</div>'
        f'<table style="border-collapse:collapse;font-size:90%">{cells}</table></div>'
    )


def likelihood_factor(epsilon: float) -> float:
    """e^epsilon, never below it: the factor by which a probability may change."""
    return math.nextafter(math.exp(min(epsilon, 700.0)), math.inf) if epsilon else 1.0


def show(value: Any) -> str:
    """A number as people read it, anything else as it prints."""
    return show_number(value) if isinstance(value, float) else str(value)

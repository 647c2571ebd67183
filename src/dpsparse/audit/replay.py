"""Replay: the same released history on two neighbouring tables, compared release by release.

For a pair of tables (D, D') a fit on D is recorded, then run again on D' with every answer forced to
the recorded one. Both go through `fit` itself. If the guarantee is true, then

    1. both runs meet the same releases with the same public scales                   control flow
    2. everything `fit` leaves behind is the same bit for bit                           nothing bypasses it
    3. no whole-number query moves by more than its lemma says, in exact arithmetic   sensitivity
    4. each phase costs at most what the plan declares for the phase of that name     accounting
    5. no noise is used twice                                                         independence

| event | kind | cost of a release |
|---|---|---|
| Gaussian, RoundedGaussian | gaussian | |q - q'|_2 * unit/scale; a phase adds them up in squares |
| ThresholdedGaussian | names | the same over the names of either table, and the leak of names of one alone |
| Exponential | picks | range of kappa (q - q'), once for each pick |
| Geometric | geometric | |q - q'| / scale |
| ObjectivePerturbation | objective | |g - g'|_2 / scale, and the volume ratio |
"""

from __future__ import annotations

import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpsparse.accounting.events import (
    Event,
    NonPrivate,
    ObjectivePerturbation,
    Repeated,
    Sequence,
    leaves,
)
from dpsparse.accounting.guarantee import Phase, Plan
from dpsparse.audit.neighbours import Pair, boundary_pairs, climb, pairs, row_weights
from dpsparse.audit.recorded import ControlFlowError, RecordedReleases, Run
from dpsparse.audit.same import differences
from dpsparse.exceptions import UnpaidFitsWarning
from dpsparse.mechanisms import MECHANISMS, CommonNames, Release
from dpsparse.private_run import releases_made_by
from dpsparse.random import make_generator
from dpsparse.release import Releases

ROUNDING = 1e-9  # of the float64 sums of costs; the moves themselves are compared exactly


@dataclass(frozen=True)
class Record:
    """What a recorded fit released, and everything it left behind."""

    entries: list[Release]
    left: dict[str, Any]
    complaints: list[str] = field(default_factory=list)
    runs: tuple[Run, ...] = ()  # inside it: the fits and choices of a search
    plan: Plan | None = None  # that it followed

    @property
    def everything(self) -> list[Release]:
        """Its own releases and those of the runs inside it."""
        return [*self.entries, *(entry for run in self.runs for entry in run.entries)]


@dataclass
class Subject:
    """An estimator and its plan for `n_features` columns."""

    estimator: Any
    n_features: int
    plan: Plan = field(init=False)
    _plans: dict[tuple[int, str], Plan] = field(init=False, default_factory=dict, repr=False)
    _last: tuple[Pair, int, Record] | None = field(init=False, default=None, repr=False)
    _planner: ClassVar[str] = "_make_plan"  # the estimator's method that makes its plan

    def __post_init__(self) -> None:
        self.estimator._check_parameters()
        self.plan = self._make_plan(self.n_features, self.estimator._labels(None))

    def judge(self, first: Record, second: Record) -> tuple[list[str], dict[str, float]]:
        """Complaints about what the releases cost on this pair, and how tight each phase became."""
        return compare_by_phase(self.plan.phases, first.entries, second.entries)

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        """The estimator's plan, made once for the same facts: calibration takes longer than small fits."""
        facts = n_features, repr(labels)
        if facts not in self._plans:
            self._plans[facts] = getattr(self.estimator, self._planner)(n_features, labels)
        return self._plans[facts]

    def run(self, X: Any, y: Any, rng: Any, groups: Any = None) -> dict[str, Any]:
        """Everything a fit on (X, y) leaves behind; weights as `coef`, intercepts as `intercept`."""
        left = self._fit(X, y, groups, lambda plan: Releases(plan, rng))
        return left | {
            "coef": np.atleast_2d(left["coef_"]),
            "intercept": np.atleast_1d(left["intercept_"]),
        }

    def record(self, pair: Pair, seed: int) -> Record:
        """A fit on the first table; what was recorded last is not fitted again."""
        if self._last is None or self._last[1] != seed or not _same_first(self._last[0], pair):
            self._last = pair, seed, self._recorded(pair.X, pair.y, pair.groups, seed, None, None)
        return self._last[2]

    def replay(self, pair: Pair, first: Record, seed: int) -> Record:
        """A fit on the second table with the answers of the first."""
        record = self._recorded(pair.X2, pair.y2, pair.groups2, seed, first, pair.origin)
        books = [[len(r.entries), *(len(run.entries) for run in r.runs)] for r in (record, first)]
        if books[0] != books[1]:
            raise ControlFlowError("the neighbour's run stopped early")
        return record

    def _recorded(
        self, X: Any, y: Any, groups: Any, seed: int, first: Record | None, origin: Any
    ) -> Record:
        made: list[RecordedReleases] = []

        def make(plan: Plan) -> RecordedReleases:
            script = None if first is None else first.entries
            scripts = [] if first is None else [run.entries or None for run in first.runs]
            made.append(RecordedReleases(plan, make_generator(seed), script, origin, scripts))
            return made[-1]

        left = self._fit(X, y, groups, make)
        return Record(made[0].entries, left, made[0].complaints, tuple(made[0].runs), made[0].plan)

    def _fit(self, X: Any, y: Any, groups: Any, make_releases: Any) -> dict[str, Any]:
        """All attributes of a fitted model, and the warnings of the fit."""
        facts = {**self.estimator.get_params(deep=False), "random_state": None, "ledger": None}
        model = type(self.estimator)(**facts)
        setattr(model, self._planner, self._make_plan)
        with releases_made_by(make_releases), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", UnpaidFitsWarning)  # made-up rows: nothing adds up
            model.fit(X, y, groups=groups, **row_weights(model, X))
        left = {name: value for name, value in vars(model).items() if name != self._planner}
        return left | {"warnings": [str(w.message) for w in said]}


def _same_first(a: Pair, b: Pair) -> bool:
    return a.X is b.X and a.y is b.y and a.groups is b.groups


class RunSubject(Subject):
    """Anything private that takes (X, y, groups) and returns what it shows: an evaluation, intervals, a pipeline."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self.estimator = self._run = run

    def judge(self, first: Record, second: Record) -> tuple[list[str], dict[str, float]]:
        assert first.plan is not None
        return compare_by_phase(first.plan.phases, first.entries, second.entries)

    def _fit(self, X: Any, y: Any, groups: Any, make_releases: Any) -> dict[str, Any]:
        with releases_made_by(make_releases), warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", UnpaidFitsWarning)
            shown = self._run(X, y) if groups is None else self._run(X, y, groups)
        return {"result": shown, "warnings": [str(w.message) for w in said]}


@dataclass(frozen=True)
class Finding:
    """What a replay found: `complaints` refute the guarantee, `tightness` says how close it came."""

    complaints: tuple[str, ...]
    tightness: dict[str, float]  # largest cost over declared cost, by phase
    pair: Pair
    reached: dict[str, float] = field(default_factory=dict)  # largest move over its integer bound

    @property
    def height(self) -> float:
        return max(self.tightness.values(), default=0.0)

    @property
    def first_complaint(self) -> str:
        """With the pair of tables it is about; empty if there is none."""
        return f"{self.complaints[0]} ({self.pair.name})" if self.complaints else ""


def worst_of(findings: Iterable[Finding]) -> Finding:
    """The first finding with complaints, else how tight and how far each phase became in any of them."""
    tightness: dict[str, float] = {}
    reached: dict[str, float] = {}
    for finding in findings:
        if finding.complaints:
            return finding
        for total, found in ((tightness, finding.tightness), (reached, finding.reached)):
            for phase, height in found.items():
                total[phase] = max(height, total.get(phase, 0.0))
    return Finding((), tightness, finding.pair, reached)


def check_pair(subject: Subject, pair: Pair, seed: int = 0) -> Finding:
    """Record on the first table, replay on the second, compare with the plan."""
    try:
        first = subject.record(pair, seed)
        second = subject.replay(pair, first, seed)
    except ControlFlowError as error:
        return Finding((f"control flow: {error}",), {}, pair)
    except Exception as error:  # an error on one table only is an answer about the row
        return Finding((f"control flow: {type(error).__name__}: {error}",), {}, pair)
    complaints = [
        f"{name} differs although every answer was the same"
        for name in differences(first.left, second.left, type(subject.estimator).__name__)
    ]
    complaints += _not_finite(first.left)
    one, two = first.everything, second.everything
    if any(a.step != b.step for a, b in zip(one, two, strict=True)):
        complaints.append("the noise of an answer depends on the rows")
    complaints += sorted(set(first.complaints + second.complaints))
    complaints += reused(one)
    too_far, reached = _moves(one, two)
    over, tightness = subject.judge(first, second)
    return Finding((*complaints, *too_far, *over), tightness, pair, reached)


def check_pairs(subject: Subject, neighbours: Iterable[Pair], seed: int = 0) -> Finding:
    """The first finding with complaints over many pairs, else how tight each phase became."""
    return worst_of(check_pair(subject, pair, seed + k) for k, pair in enumerate(neighbours))


def check(
    estimator: Any,
    n_features: int = 7,
    *,
    n_rows: int = 12,
    n_pairs: int = 22,
    n_climbs: int = 20,
    every: int = 16,
    seed: int = 0,
) -> Finding:
    """The first complaint over many pairs and hill climbs, else how tight each phase became.

    Of the rows of boundary floats each `every`-th is tried.
    """
    subject, rng = Subject(estimator, n_features), make_generator(seed)
    domain = estimator._domain
    boundary = worst_of(boundary_findings(subject, every, seed))
    if boundary.complaints:
        return boundary
    source = pairs(domain, estimator.adjacency, n_rows, n_features, rng)
    best: dict[str, tuple[float, int, Finding]] = {}
    for trial in range(n_pairs):
        finding = check_pair(subject, next(source), seed + trial)
        if finding.complaints:
            return finding
        for kind, height in finding.tightness.items():
            if kind not in best or height > best[kind][0]:
                best[kind] = height, seed + trial, finding
    tightness: dict[str, float] = {}
    found = None
    for kind, (height, at, start) in best.items():
        worst: list[Finding] = []

        def effect(
            pair: Pair, kind: str = kind, at: int = at, worst: list[Finding] = worst
        ) -> float:
            finding = check_pair(subject, pair, at)
            if finding.complaints:
                worst.append(finding)
            return finding.tightness.get(kind, 0.0)

        top, climbed = climb(start.pair, height, effect, domain, rng, n_climbs)
        if worst:
            return worst[0]
        tightness[kind] = max(height, climbed)
        found = top
    return Finding((), tightness, found if found is not None else next(source))


def boundary_findings(subject: Subject, every: int = 1, seed: int = 0) -> Iterator[Finding]:
    """Replays of each `every`-th row of boundary floats, beginning at `seed`; one recorded fit serves a form.

    Each of several hundred rows is added to a small table, or put in place of another, so that every query differs by
    that row alone. `reached` is what the row contributes, as a share of the bound of its lemma.
    """
    estimator = subject.estimator
    found = boundary_pairs(estimator._domain, estimator.adjacency, subject.n_features)
    for pair in found[seed % min(every, len(found)) :: every]:
        yield check_pair(subject, pair, seed)


# ---- what may not happen ---------------------------------------------------------------------------


def _not_finite(left: dict[str, Any]) -> list[str]:
    shown = {name: left.get(name) for name in ("coef_", "intercept_", "coef_noise_")}
    return [
        f"{name} is not finite"
        for name, value in shown.items()
        if value is not None and not np.isfinite(np.asarray(value)).all()
    ]


def _moves(first: list[Release], second: list[Release]) -> tuple[list[str], dict[str, float]]:
    complaints: list[str] = []
    reached: dict[str, float] = {}
    for a, b in zip(first, second, strict=True):
        # The gradient of an objective is no whole number (its cost is compared with its price), and where it was
        # minimised is not asked of the second table.
        if a.bound is not None and a.query.dtype.kind == "i" and a.query is not b.query:
            share, kept = a.reach(b)
            reached[a.phase] = max(share, reached.get(a.phase, 0.0))
            if not kept:
                complaints.append(f"one unit moves a query of {a.phase} {share:.8g} times too far")
    return complaints[:1], reached


def reused(entries: list[Release]) -> list[str]:
    """Noise of one fit, compared exactly: equal numbers of long vectors are no chance."""
    drawn: dict[int, list[bytes]] = defaultdict(list)
    for entry in entries:
        if entry.kind == "gaussian" and entry.noise.size:
            size = min(entry.noise.size, 3)
            windows = np.lib.stride_tricks.sliding_window_view(entry.noise, size)
            drawn[size] += [w.tobytes() for w in windows]
    for size, words in drawn.items():
        again = len(words) - len(Counter(words))
        # Two rounded Gaussian integers of scale 2^28 are equal with probability 1/(2 sqrt(pi) 2^28).
        expected = len(words) ** 2 / 2.0 * 2.0 ** (-29.8 * size)
        # The probability of that many coincidences is at most expected^again / again!.
        if again and again * math.log(expected) - math.lgamma(again + 1.0) < math.log(1e-8):
            return [f"the same noise is used {again + 1} times"]
    return []


# ---- costs against the plan ------------------------------------------------------------------------


def compare_by_phase(
    phases: Iterable[Phase], first: list[Release], second: list[Release]
) -> tuple[list[str], dict[str, float]]:
    """Each phase spends at most what the plan's phase of that name declares."""
    events = {phase.name: phase.event for phase in phases}
    declared = {name: declared_costs(event) for name, event in events.items()}
    spent: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    could: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for a, b in zip(first, second, strict=True):
        if a.kind != "draw":
            spent[a.phase][a.kind].extend([a.cost(b)] * a.paid)
            could[a.phase][a.kind].extend([a.worst] * a.paid)
    complaints = _volumes(events, first, second) + _leaks(events, first, second)
    over, tightness = _over(declared, spent, "spent")
    # Noise that is too small for the bound of its query shows on any pair, whether or not it moves the query so far.
    too_little, _ = _over(declared, could, "could spend")
    return complaints + over + (too_little if not over else []), tightness


def _over(
    declared: Mapping[str, Mapping[str, list[float]]],
    costs_of: Mapping[str, Mapping[str, list[float]]],
    did: str,
) -> tuple[list[str], dict[str, float]]:
    """Complaints about phases whose costs are more than they declare, and how tight each phase is."""
    complaints: list[str] = []
    tightness: dict[str, float] = {}
    for phase, kinds in costs_of.items():
        for kind, costs in kinds.items():
            allowed = declared.get(phase, {}).get(kind, [])
            if kind == "gaussian":  # a phase is paid as a whole
                costs, allowed = [float(np.linalg.norm(costs))], [float(np.linalg.norm(allowed))]
            used, limits = np.sort(costs)[::-1], np.sort(allowed)[::-1]
            if len(used) > len(limits) or not limits.all():
                complaints.append(f"{phase} gave {len(used)} {kind} answers that nothing pays for")
                continue
            ratio = float((used / limits[: len(used)]).max())
            tightness[phase] = max(ratio, tightness.get(phase, 0.0))
            if not ratio <= 1.0 + ROUNDING:
                complaints.append(f"the phase {phase} {did} {ratio:.8g} times what it declared")
    return complaints, tightness


def _leaks(events: Mapping[str, Event], first: list[Release], second: list[Release]) -> list[str]:
    """Names that only one table has are released with the declared probability, at most."""
    for a, b in zip(first, second, strict=True):
        allowed = getattr(events.get(a.phase), "leak", 0.0)
        if a.kind == "names" and (
            a.limit != b.limit or CommonNames.leak(a, b) > allowed * (1.0 + ROUNDING)
        ):
            return [f"{a.phase} tells a name of one table with more than its declared probability"]
    return []


def _volumes(events: Mapping[str, Event], first: list[Release], second: list[Release]) -> list[str]:
    """One row changes the volume of an objective by at most a factor 1 + curvature/ridge either way."""
    bounds = [
        math.log1p(leaf.curvature / leaf.ridge)
        for leaf in leaves(Sequence(tuple(events.values())))
        if isinstance(leaf, ObjectivePerturbation)
    ]
    moves = [abs(a.log_volume - b.log_volume) for a, b in zip(first, second, strict=True)]
    if bounds and max(moves) > max(bounds) * (1.0 + ROUNDING):
        return [f"a volume moved by {max(moves):.4g}, declared {max(bounds):.4g}"]
    return []


def declared_costs(event: Event) -> dict[str, list[float]]:
    """The cost of every leaf of an event, by kind of release."""
    out: dict[str, list[float]] = defaultdict(list)
    _collect(event, 1, out)
    return out


def _collect(event: Event, count: int, out: dict[str, list[float]]) -> None:
    if isinstance(event, Sequence):
        for part in event.events:
            _collect(part, count, out)
        return
    if isinstance(event, Repeated):
        _collect(event.event, count * event.count, out)
        return
    for kind, mechanism in MECHANISMS.items():
        if type(event) in mechanism.events:
            out[kind] += [mechanism.price(event)] * count
            return
    if not isinstance(event, NonPrivate):
        out[f"{type(event).__name__} (no replay)"] += [math.inf] * count


def spent_costs(first: list[Release], second: list[Release]) -> dict[str, list[float]]:
    """What the answers on this pair really cost, by kind; a top-k counts once for each pick."""
    out: dict[str, list[float]] = defaultdict(list)
    for a, b in zip(first, second, strict=True):
        out[a.kind] += [a.cost(b)] * a.paid
    return out

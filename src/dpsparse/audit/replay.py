"""Replay: the same released history on two neighbouring tables, compared release by release.

For a pair of tables (D, D') a run on D is recorded, then made again on D' with every answer forced to
the recorded one. Both go through `fit` itself. If the guarantee is true, then

    1. both runs meet the same releases with the same public scales                   control flow
    2. everything the run shows is the same bit for bit                                 nothing bypasses it
    3. no whole-number query moves by more than its lemma says, in exact arithmetic   sensitivity
    4. each phase costs at most what the plan declares for the phase of that name     accounting
    5. no noise is used twice                                                         independence
    6. one plan pays for the run, and it is the plan whose guarantee is shown         claim

A search is many runs under one plan. Each is compared with its own plan, and the phase of its name pays for that.

What a release costs stands in recorded.py.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpsparse.accounting import gaussian_parameter
from dpsparse.accounting.conversion import leaked_delta, sampler_slack
from dpsparse.accounting.events import (
    Event,
    NonPrivate,
    ObjectivePerturbation,
    Repeated,
    Sequence,
    leaves,
)
from dpsparse.accounting.guarantee import Phase
from dpsparse.audit.neighbours import Pair, boundary_pairs, climb
from dpsparse.audit.recorded import FACT, ControlFlowError, Tape
from dpsparse.audit.same import differences
from dpsparse.audit.subject import Subject
from dpsparse.mechanisms import MECHANISMS, CommonNames, Release
from dpsparse.random import make_generator

ROUNDING = 1e-9  # of the float64 sums of costs; the moves themselves are compared exactly


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
    # What is printed is compared where a run is rebuilt: code that is compiled on its way says so once.
    one_sees, other_sees = ({**tape.shown, "printed": ""} for tape in (first, second))
    complaints = [
        f"{name} differs although every answer was the same"
        for name in differences(one_sees, other_sees, type(subject.estimator).__name__)
    ]
    complaints += _not_finite(first.shown["result"])
    one, two = first.entries, second.entries
    if any(a.step != b.step for a, b in zip(one, two, strict=True)):
        complaints.append("the noise of an answer depends on the rows")
    if any(
        a.kind == FACT and list(a.answer) != list(b.answer) for a, b in zip(one, two, strict=True)
    ):
        complaints.append("the number of rows is taken for public")
    complaints += sorted({*first.complaints, *second.complaints})
    complaints += reused(one)
    too_far, reached = _moves(one, two)
    over, tightness = compare_runs(first, second)
    return Finding((*complaints, *too_far, *over, *_claims(first)), tightness, pair, reached)


def check_subject(
    subject: Subject,
    *,
    n_rows: int = 12,
    n_pairs: int = 22,
    n_climbs: int = 20,
    every: int = 16,
    seed: int = 0,
) -> Finding:
    """The first complaint over many pairs and hill climbs, else how tight each phase became in any of them.

    Of the rows of boundary floats each `every`-th is tried.
    """
    rng = make_generator(seed)
    boundary = list(_until_complaint(boundary_findings(subject, every, seed)))
    tables = zip(range(n_pairs), subject.pairs(n_rows, rng), strict=False)
    pairs = (check_pair(subject, pair, seed + trial) for trial, pair in tables)
    paired = [] if boundary and boundary[-1].complaints else list(_until_complaint(pairs))
    found = worst_of([*boundary, *paired])
    if found.complaints:
        return found
    for phase, height in worst_of(paired).tightness.items():
        at = [start.tightness.get(phase) for start in paired].index(height)
        tried: list[Finding] = []

        def effect(
            pair: Pair, phase: str = phase, at: int = at, tried: list[Finding] = tried
        ) -> float:
            tried.append(check_pair(subject, pair, seed + at))
            return tried[-1].tightness.get(phase, 0.0)

        climb(paired[at].pair, height, effect, subject.schema.domain, rng, n_climbs)
        found = worst_of([found, *tried])
        if found.complaints:
            return found
    return found


def _until_complaint(findings: Iterable[Finding]) -> Iterator[Finding]:
    for finding in findings:
        yield finding
        if finding.complaints:
            return


def boundary_findings(subject: Subject, every: int = 1, seed: int = 0) -> Iterator[Finding]:
    """Replays of each `every`-th row of boundary floats, beginning at `seed`; one recorded fit serves a form.

    Each of several hundred rows is added to a small table, or put in place of another, so that every query differs by
    that row alone. `reached` is what the row contributes, as a share of the bound of its lemma.
    """
    schema = subject.schema
    if schema.roles is not None:
        return
    found = boundary_pairs(schema.domain, schema.adjacency, schema.n_features)
    for pair in found[seed % min(every, len(found)) :: every]:
        yield check_pair(subject, pair, seed)


def loudest(subject: Subject, seed: int) -> Pair:
    """The known worst pair, in the direction, on which a history costs most."""
    best, height = None, -1.0
    for pair in subject.worst_pairs():
        for side in (pair, pair.swapped()):
            try:
                first = subject.record(side, seed)
                second = subject.replay(side, first, seed)
            except ControlFlowError:
                continue
            total = 0.0
            for a, b in zip(first.entries, second.entries, strict=True):
                total += a.paid * a.cost(b) ** 2 / (1.0 if a.kind == "gaussian" else 4.0)
            if total > height:
                best, height = side, total
    assert best is not None
    return best


# ---- what may not happen ---------------------------------------------------------------------------


def _not_finite(model: Any) -> list[str]:
    # What a record keeps is not asked for more: a report computes then, and would differ from one that was not asked.
    kept = getattr(model, "__dict__", {})
    shown = {name: kept.get(name) for name in ("coef_", "intercept_", "coef_noise_")}
    return [
        f"{name} is not finite"
        for name, value in shown.items()
        if value is not None and not np.isfinite(np.asarray(value)).all()
    ]


def _claims(first: Tape) -> list[str]:
    """One plan pays for all that was released, and what is shown claims what that plan proves."""
    outer = [run.plan for run in first.runs if not run.name]
    if len(outer) != 1:
        return [f"{len(outer)} private runs were made, and one guarantee speaks of one"]
    followed = outer[0].event, outer[0].epsilon, outer[0].delta
    shown = getattr(first.shown["result"], "privacy_", None)
    if shown is not None and (shown.event, shown.epsilon, shown.delta) != followed:
        return ["the guarantee that is shown is not that of the plan that was followed"]
    return []


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


def compare_runs(first: Tape, second: Tape) -> tuple[list[str], dict[str, float]]:
    """Every run spends at most what its plan declares, and the plans of runs inside another at most what the phase of
    their name declares."""
    complaints: list[str] = []
    tightness: dict[str, float] = {}
    for one, two in zip(first.runs, second.runs, strict=True):
        found, reached = compare_by_phase(one.plan.phases, one.entries, two.entries)
        complaints += [f"{one.name}: {text}" if one.name else text for text in found]
        for phase, height in reached.items():
            name = f"{one.name}: {phase}" if one.name else phase
            tightness[name] = max(height, tightness.get(name, 0.0))
    if not first.runs:
        return complaints, tightness
    outer, *inner = first.runs
    charged = {phase.name: phase.event for phase in outer.plan.phases}
    direct = {entry.phase for entry in outer.entries}
    for name in dict.fromkeys(run.name for run in inner):
        spent = Sequence(tuple(run.plan.event for run in inner if run.name == name))
        if name not in charged or name in direct or not _covers(charged[name], spent):
            complaints.append(f"runs inside ({name}) cost more than the whole charges for them")
    return complaints, tightness


def _covers(charged: Event, spent: Event) -> bool:
    """Whether a charge pays for a run: it holds every step of it, or a Gaussian that dominates all of it and fails as
    often as the run."""
    have, need = leaves(charged), leaves(spent)
    if all(have.get(leaf, 0) >= count for leaf, count in need.items()):
        return True
    (paid, failure), (mu, slack) = gaussian_parameter(charged), gaussian_parameter(spent)
    failure += sampler_slack(have) + leaked_delta(have)
    slack += sampler_slack(need) + leaked_delta(need)
    return mu < math.inf and mu <= paid * (1.0 + ROUNDING) and slack <= failure * (1.0 + ROUNDING)


def compare_by_phase(
    phases: Iterable[Phase], first: list[Release], second: list[Release]
) -> tuple[list[str], dict[str, float]]:
    """Each phase spends at most what the plan's phase of that name declares."""
    events = {phase.name: phase.event for phase in phases}
    declared = {name: declared_costs(event) for name, event in events.items()}
    spent: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    could: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for a, b in zip(first, second, strict=True):
        if a.kind != FACT:
            spent[a.phase][a.kind].extend([a.cost(b)] * a.paid)
            could[a.phase][a.kind].extend([a.worst] * a.paid)
    complaints = _other_promises(events, first, second)
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


def _other_promises(
    events: Mapping[str, Event], first: list[Release], second: list[Release]
) -> list[str]:
    """Names that only one table has are released with the declared probability, at most. One row changes the volume of
    an objective by at most a factor 1 + curvature/ridge either way."""
    for a, b in zip(first, second, strict=True):
        event = events.get(a.phase, NonPrivate())
        leak = getattr(event, "leak", 0.0) * (1.0 + ROUNDING)
        if a.kind == "names" and (a.limit != b.limit or CommonNames.leak(a, b) > leak):
            return [f"{a.phase} tells a name of one table with more than its declared probability"]
        moved = abs(a.log_volume - b.log_volume)
        if moved == 0.0:
            continue
        objectives = [leaf for leaf in leaves(event) if isinstance(leaf, ObjectivePerturbation)]
        most = sum(math.log1p(leaf.curvature / leaf.ridge) for leaf in objectives)
        if not moved <= most * (1.0 + ROUNDING):
            return [f"a volume moved by {moved:.4g}, declared {most:.4g}"]
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

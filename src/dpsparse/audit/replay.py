"""Replay: the same released history on two neighbouring tables, checked at every mechanism.

For a pair of tables (D, D') a fit on D is recorded, then run again on D' with every answer forced to
the recorded one. If the guarantee is true, then

    1. both runs meet the same mechanisms with the same public scales        control flow
    2. the released model is the same bit for bit                            nothing bypasses them
    3. |q - q'| / scale of every answer is within what the plan declared     sensitivity
    4. the plan declares exactly as many mechanisms as there were            counts

3 and 4 need no map from code to plan: accounting does not depend on order, so the costs of a kind,
largest first, must lie below the declared costs of that kind, largest first. Phases that are paid
as a whole (gradient methods) are compared as a whole.

| event | kind | cost of an entry |
|---|---|---|
| Gaussian, DiscreteGaussian, RoundedGaussian | gaussian | |q - q'|_2 / scale |
| Exponential | gumbel | range of q - q' (q = kappa * score), once for each pick |
| NoisyMax | noisy max | range of q - q' (q = score over the scale of the Laplace noise) |
| Geometric | count | |q - q'| / scale |
| ObjectivePerturbation | objective | |gradient - gradient'|_2 / scale, and the volume ratio |
"""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np

from dpsparse.audit.neighbours import Pair, climb, pairs
from dpsparse.audit.tape import ControlFlowError, Entry, Tape
from dpsparse.audit.twins import PAID_AS_A_WHOLE
from dpsparse.estimators._base import Solution
from dpsparse.privacy.events import Event, NonPrivate, Repeated, Sequence
from dpsparse.privacy.plan import Plan
from dpsparse.random import make_generator

ROUNDING = 1e-6  # queries are recomputed in float64, from entries that may be stored in float32


@dataclass
class Subject:
    """An estimator, its plan for `n_features` columns, and how to run it under a tape."""

    estimator: Any
    n_features: int
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        self.estimator._check_parameters()
        self.labels = self.estimator._labels(None)
        self.plan = self.estimator._make_plan(self.n_features, self.labels)

    def run(
        self, X: np.ndarray, y: np.ndarray, rng: Any, tape: Tape | None = None
    ) -> dict[str, Any]:
        """Everything a fit on (X, y) would publish."""
        model = type(self.estimator)(**self.estimator.get_params(deep=False))
        data = self.estimator._domain.clip(X, y, labels=self.labels)
        with nullcontext() if tape is None else tape.installed():
            solution = Solution(*model._solve(data, self.plan, rng))
        own = {k: v for k, v in vars(model).items() if k.endswith("_")}
        return {**solution._asdict(), **own}

    def record(self, pair: Pair, seed: int) -> tuple[Tape, dict[str, Any]]:
        """A fit on the first table."""
        tape = Tape()
        return tape, self.run(pair.X, pair.y, make_generator(seed), tape)

    def replay(self, pair: Pair, first: Tape, seed: int) -> tuple[Tape, dict[str, Any]]:
        """A fit on the second table with the answers of the first."""
        tape = Tape(first.entries, pair.origin)
        tape.blocks = first.blocks
        released = self.run(pair.X2, pair.y2, make_generator(seed), tape)
        if len(tape.entries) != len(first.entries):
            raise ControlFlowError("the neighbour's run stopped early")
        return tape, released


@dataclass(frozen=True)
class Finding:
    """What a replay found: `complaints` refute the guarantee, `tightness` says how close it came."""

    complaints: tuple[str, ...]
    tightness: dict[str, float]  # largest cost over declared cost, by kind
    pair: Pair

    @property
    def height(self) -> float:
        return max(self.tightness.values(), default=0.0)


def check_pair(subject: Subject, pair: Pair, seed: int = 0) -> Finding:
    """Record on the first table, replay on the second, and compare with the plan."""
    complaints: list[str] = []
    try:
        first, released = subject.record(pair, seed)
        second, again = subject.replay(pair, first, seed)
    except ControlFlowError as error:
        return Finding((f"control flow: {error}",), {}, pair)
    except Exception as error:  # an error on one table only is an answer about the row
        return Finding((f"control flow: {type(error).__name__}: {error}",), {}, pair)
    complaints += [
        f"{name} differs although every answer was the same"
        for name in released
        if not _same(released[name], again.get(name))
    ]
    for a, b in zip(first.entries, second.entries, strict=True):
        if a.scale != b.scale:
            complaints.append(f"the noise scale of a {a.kind} answer depends on the rows")
            break
    complaints += sorted(set(first.complaints + second.complaints))
    over, tightness = _phase_costs(subject.plan, first.entries, second.entries)
    complaints += over
    whole = {e.phase for e in first.entries if e.phase}
    rest = tuple(p.event for p in subject.plan.phases if not (whole and p.name in PAID_AS_A_WHOLE))
    declared = declared_costs(Sequence(rest))
    single = [not e.phase for e in first.entries]
    spent = spent_costs(
        list(compress(first.entries, single)), list(compress(second.entries, single))
    )
    for kind in sorted(set(declared) | set(spent)):
        allowed, used = declared[kind], spent[kind]
        if len(allowed) != len(used):
            complaints.append(
                f"the plan declares {len(allowed)} {kind} answers, the run gave {len(used)}"
            )
        if not (allowed and used):
            continue
        m = min(len(allowed), len(used))
        limits = np.sort(allowed)[::-1][:m]
        ratios = np.sort(used)[::-1][:m] / limits
        for number, limit in enumerate(np.unique(limits)[::-1], start=1):
            # one figure for each declared size, so that a climb can push each of them
            tightness[kind if number == 1 else f"{kind} {number}"] = float(
                ratios[limits == limit].max()
            )
        if ratios.max() > 1.0 + ROUNDING:
            complaints.append(
                f"a {kind} answer moved by {ratios.max():.4g} times its declared sensitivity"
            )
    complaints += _volume_complaints(subject.plan.event, first.entries, second.entries)
    return Finding(tuple(complaints), tightness, pair)


def check(
    estimator: Any,
    n_features: int = 7,
    *,
    n_rows: int = 12,
    n_pairs: int = 22,
    n_climbs: int = 20,
    seed: int = 0,
) -> Finding:
    """The first complaint over many pairs and hill climbs, else how tight each kind became."""
    subject, rng = Subject(estimator, n_features), make_generator(seed)
    domain = estimator._domain
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

        top, climbed = climb(start.pair, effect, domain, rng, n_climbs)
        if worst:
            return worst[0]
        tightness[kind] = max(height, climbed)
        found = top
    return Finding((), tightness, found if found is not None else next(source))


def _phase_costs(
    plan: Plan, first: list[Entry], second: list[Entry]
) -> tuple[list[str], dict[str, float]]:
    """Phases paid as a whole: the Gaussian costs of their answers add up in squares."""
    spent: dict[str, float] = defaultdict(float)
    for a, b in zip(first, second, strict=True):
        if a.phase:
            spent[a.phase] += float(np.sum((a.query - b.query) ** 2)) / a.scale**2
    complaints, tightness = [], {}
    for name, squares in spent.items():
        paid = [
            c for p in plan.phases if p.name == name for c in declared_costs(p.event)["gaussian"]
        ]
        ratio = math.sqrt(squares) / max(float(np.linalg.norm(paid)), 1e-300)
        tightness[name] = ratio
        if ratio > 1.0 + ROUNDING:
            complaints.append(f"the phase {name} spent {ratio:.8g} times what it declared")
    return complaints, tightness


def declared_costs(event: Event) -> dict[str, list[float]]:
    """The cost of every leaf of an event, by kind of entry."""
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
    name: str = type(event).__name__
    values: Any = event
    if name in ("Gaussian", "DiscreteGaussian", "RoundedGaussian"):
        out["gaussian"] += [values.sensitivity / values.scale] * count
    elif name == "Exponential":
        out["gumbel"] += [values.eta] * count
    elif name == "NoisyMax":
        out["noisy max"] += [values.epsilon] * count
    elif name == "Geometric":
        out["count"] += [values.sensitivity / values.scale] * count
    elif name == "ObjectivePerturbation":
        out["objective"] += [_tilt(values) / values.scale] * count
    elif not isinstance(event, NonPrivate):
        out[f"{name} (no replay)"] += [math.inf] * count


def spent_costs(first: list[Entry], second: list[Entry]) -> dict[str, list[float]]:
    """What the answers on this pair really cost, by kind; a top-k counts once for each pick."""
    out: dict[str, list[float]] = defaultdict(list)
    for a, b in zip(first, second, strict=True):
        change = a.query - b.query
        if a.kind in ("gumbel", "noisy max"):
            out[a.kind] += [float(np.ptp(change))] * a.cost
        else:
            out[a.kind].append(float(np.linalg.norm(change)) / a.scale)
    return out


def _tilt(event: Any) -> float:
    return float(event.gradient_bound * (2.0 if event.adjacency == "replace-one" else 1.0))


def _volume_complaints(event: Event, first: list[Entry], second: list[Entry]) -> list[str]:
    """One row changes the volume by at most a factor 1 + curvature/ridge either way."""
    from dpsparse.privacy.rdp import leaves

    bounds = [
        math.log1p(leaf.curvature / leaf.ridge)  # type: ignore[attr-defined]
        for leaf in leaves(event)
        if type(leaf).__name__ == "ObjectivePerturbation"
    ]
    moves = [abs(a.log_volume - b.log_volume) for a, b in zip(first, second, strict=True)]
    if bounds and max(moves) > max(bounds) * (1.0 + ROUNDING):
        return [f"a volume moved by {max(moves):.4g}, declared {max(bounds):.4g}"]
    return []


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(np.array_equal(np.asarray(a), np.asarray(b)))
    except (TypeError, ValueError):
        return a is b

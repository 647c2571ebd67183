"""All attacks on one estimator, and what they refute.

    replay      sensitivities, counts and control flow under the same history     replay.py
    rebuild     does everything follow from public facts and released answers     transcript.py
    boundary    the whole numbers that rows of boundary floats contribute         replay.py
    noise       does the noise follow its declared law                            law.py, probes.py
    exact law   the privacy profile of the whole history on a bad pair            law.py
    black box   counted models on the worst of the known bad pairs                blackbox.py

A proof is refuted by any complaint of the first four; an epsilon by a confidence bound above it. The
last two are given `confidence` between them, so "refuted" is wrong with probability at most
1 - confidence; the noise tests use a level of 1e-6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from dpsparse._checks import show_number
from dpsparse.accounting import delta as claimed_delta
from dpsparse.audit import law
from dpsparse.audit.blackbox import Attack, attack, publish
from dpsparse.audit.neighbours import Pair, row_weights, worst_pairs
from dpsparse.audit.probes import first_failure
from dpsparse.audit.recorded import ControlFlowError
from dpsparse.audit.replay import (
    Finding,
    Subject,
    boundary_findings,
    check,
    declared_costs,
    spent_costs,
    worst_of,
)
from dpsparse.audit.tables import Schema
from dpsparse.audit.transcript import rebuild
from dpsparse.mechanisms import Release
from dpsparse.models.files import dumps


@dataclass(frozen=True)
class Row:
    """One attack: the epsilon it refutes (0 if none), its verdict, and what it saw."""

    attack: str
    claimed: float
    refuted: float
    holds: bool
    detail: str

    @property
    def verdict(self) -> str:
        return "holds" if self.holds else "REFUTED"


@dataclass(frozen=True)
class Verdict:
    """The table of an audit."""

    method: str
    calibration: str
    adjacency: str
    claimed: float
    delta: float
    confidence: float
    rows: tuple[Row, ...]

    @property
    def holds(self) -> bool:
        return all(row.holds for row in self.rows)

    @property
    def refuted(self) -> float:
        """The largest epsilon refuted by any attack."""
        return max((row.refuted for row in self.rows), default=0.0)

    def __str__(self) -> str:
        head = (
            f"{self.method} ({self.calibration}, {self.adjacency}) claims "
            f"epsilon = {self.claimed:g} at delta = {show_number(self.delta)}: "
            + ("not refuted" if self.holds else "REFUTED")
        )
        lines = [head, f"{'attack':<12}{'claimed':>9}{'refuted':>9}  verdict   detail"]
        lines += [
            f"{row.attack:<12}{row.claimed:>9.3g}{row.refuted:>9.3g}  {row.verdict:<9} {row.detail}"
            for row in self.rows
        ]
        return "\n".join(lines)


def audit(
    estimator: Any,
    n_features: int = 4,
    *,
    n_runs: int = 2000,
    confidence: float = 0.999,
    seed: int = 0,
    tell: Callable[[str, float], None] = lambda attack, done: None,
) -> Verdict:
    """Attack an estimator; its parameters state the claim, its plan the mechanisms.

    `n_runs` models are fitted on either table for the black box, a quarter as many for the law. `tell` is called with
    the attack that begins, and 0.
    """
    subject = Subject(estimator, n_features)
    claimed, delta = float(estimator.epsilon), float(estimator.delta)
    each = 1.0 - (1.0 - confidence) / 2.0
    rows: list[Row] = []
    if subject.plan.proven:
        tell("replay", 0.0)
        rows.append(replay_row(check(estimator, n_features, seed=seed), claimed))
        tell("rebuild", 0.0)
        schema = Schema(estimator._domain, estimator.adjacency, n_features)
        rows.append(rebuild_row(partial(fitted, estimator), schema, claimed, seed))
        if all(row.holds for row in rows):
            tell("boundary floats", 0.0)
            rows.append(_boundary_row(subject, claimed, seed))
        if all(row.holds for row in rows):
            tell("law of the noise", 0.0)
            rows += _law_rows(subject, claimed, delta, max(50, n_runs // 4), each, seed)
    tell("black box", 0.0)
    rows.append(_black_box_row(subject, claimed, delta, n_runs, each, seed))
    return Verdict(
        subject.plan.method,
        subject.plan.calibration,
        estimator.adjacency,
        claimed,
        delta,
        confidence,
        tuple(rows),
    )


def first_complaint(estimator: Any, n_features: int = 7, *, n_runs: int = 30, seed: int = 0) -> str:
    """What replay or the law of the noise say against an estimator; empty if nothing.

    The quick audit of the test suite: no epsilon is estimated. Wrong with probability below 1e-5.
    """
    finding = check(estimator, n_features, n_climbs=0, seed=seed)
    if finding.complaints:
        return finding.first_complaint
    subject = Subject(estimator, n_features)
    pair = loudest(subject, seed)
    # On both tables of the pair: on one alone a fault may hide (a sign read off a score near 0). One after
    # the other: what is too likely on one table and too unlikely on the other would cancel.
    samples = [
        [e for run in range(n_runs) for e in subject.record(side, seed + run).entries]
        for side in (pair, pair.swapped())
    ]
    # Together as well, for power.
    together = samples[0] + samples[1]
    kind, p_value = _worst_p_value(*samples, together, _choir(subject, n_runs, seed))
    if p_value <= law.NOISE_LEVEL:
        return f"{kind} noise does not follow its law (p = {p_value:.1g})"
    # Last what takes longest.
    return (
        first_failure(estimator, subject.plan, seed)
        or check(estimator, n_features, seed=seed).first_complaint
    )


def _choir(subject: Subject, n_runs: int, seed: int) -> list[Release]:
    """Picks on a crowd with many features that nobody has: unlikely one by one, likely together."""
    if not declared_costs(subject.plan.event)["picks"]:
        return []
    wide = Subject(subject.estimator, 64 * subject.n_features)
    domain, adjacency = wide.estimator._domain, wide.estimator.adjacency
    pairs = worst_pairs(domain, adjacency, wide.n_features)
    crowd = next(pair for pair in pairs if pair.name.startswith("against the crowd"))
    runs = (wide.record(crowd, seed + run).entries for run in range(n_runs))
    return [e for entries in runs for e in entries if e.kind == "picks"]


def _worst_p_value(*samples: list[Release]) -> tuple[str, float]:
    """The smallest p-value, times the number of samples, and what it is about."""
    tests = []
    for entries in samples:
        tests += [(law.noise_p_value(entries, kind), kind) for kind in {e.kind for e in entries}]
        tests.append((law.selection_p_value(entries), "selection"))
        tests.append((law.rare_p_value(entries), "rare picks"))
    p_value, kind = min(tests)
    return kind, min(1.0, len(samples) * p_value)


def replay_row(finding: Finding, claimed: float) -> Row:
    """The line of a replay."""
    if finding.complaints:
        return Row("replay", claimed, math.inf, False, finding.first_complaint)
    reached = ", ".join(f"{kind} {100 * x:.0f} %" for kind, x in finding.tightness.items())
    return Row("replay", claimed, 0.0, True, f"reached of the declared sensitivity: {reached}")


def rebuild_row(run: Callable[..., Any], schema: Schema, claimed: float, seed: int) -> Row:
    """The line of a rebuilt run."""
    found = rebuild(run, *schema.tables(seed=seed))
    return Row("rebuild", claimed, 0.0 if found.holds else math.inf, found.holds, str(found))


def fitted(estimator: Any, X: Any, y: Any, groups: Any = None) -> tuple[Any, str]:
    """A fitted copy, and its file where it has one."""
    more = {} if groups is None else {"groups": groups}
    model = clone(estimator).fit(X, y, **more, **row_weights(estimator, X))
    kept = getattr(model, "best_estimator_", model)
    return model, dumps(kept) if hasattr(kept, "coef_") or hasattr(kept, "model_") else ""


def _boundary_row(subject: Subject, claimed: float, seed: int) -> Row:
    found = worst_of(boundary_findings(subject, seed=seed))
    if found.complaints:
        return Row("boundary", claimed, math.inf, False, found.first_complaint)
    reached = ", ".join(f"{phase} {100 * x:.4f} %" for phase, x in found.reached.items())
    return Row("boundary", claimed, 0.0, True, f"reached of the integer bound: {reached}")


def _law_rows(
    subject: Subject,
    claimed: float,
    delta: float,
    n_runs: int,
    confidence: float,
    seed: int,
) -> Iterator[Row]:
    pair = loudest(subject, seed)
    losses, exact = np.empty(n_runs), 0.0
    here: list[Release] = []
    there: list[Release] = []
    for run, (first, second) in enumerate(law.run_both(subject, pair, n_runs, seed)):
        losses[run] = law.privacy_loss(first, second)
        exact += law.gaussian_epsilon(first.entries, second.entries, delta) / n_runs
        here += first.entries
        there += subject.record(pair.swapped(), seed + run).entries
    kind, p_value = _worst_p_value(here, there, _choir(subject, max(1, n_runs // 4), seed))
    failure = first_failure(subject.estimator, subject.plan, seed)
    fine = p_value > law.NOISE_LEVEL and not failure
    detail = failure or f"smallest p-value {p_value:.2g} ({kind})"
    yield Row("noise", claimed, 0.0 if fine else math.inf, fine, detail)
    grid = claimed * np.array([0.25, 0.5, 0.75, 1.0])
    below = law.delta_below(losses, grid, confidence)
    claims = np.array([claimed_delta(subject.plan.event, float(e)) for e in grid])
    reached = law.epsilon_below(losses, delta, confidence)
    detail = (
        f"{n_runs} histories, {pair.name}: delta({grid[1]:.3g}) is at least "
        f"{below[1]:.2g}, claimed {claims[1]:.2g}"
    )
    if exact > 0.0:
        detail += f"; the Gaussian answers alone cost epsilon {exact:.3g}"
    holds = reached <= claimed and bool((below <= claims).all())
    yield Row("exact law", claimed, reached, holds, detail)


def loudest(subject: Subject, seed: int) -> Pair:
    """The known worst pair, in the direction, on which a history costs most."""
    best, height = None, -1.0
    estimator = subject.estimator
    for pair in worst_pairs(estimator._domain, estimator.adjacency, subject.n_features):
        for side in (pair, pair.swapped()):
            try:
                first = subject.record(side, seed)
                second = subject.replay(side, first, seed)
            except ControlFlowError:
                continue
            costs = spent_costs(first.entries, second.entries)
            total = sum(
                x**2 / (1.0 if kind == "gaussian" else 4.0)
                for kind, xs in costs.items()
                for x in xs
            )
            if total > height:
                best, height = side, total
    assert best is not None
    return best


def _black_box_row(
    subject: Subject, claimed: float, delta: float, n_runs: int, confidence: float, seed: int
) -> Row:
    result, name = black_box(subject, n_runs, delta, confidence, seed)
    detail = (
        f"{n_runs} models a table, {name}: fired {result.hits}/{result.n_hits} "
        f"against {result.false_alarms}/{result.n_false}"
    )
    return Row("black box", claimed, result.epsilon, result.epsilon <= claimed, detail)


def black_box(
    subject: Subject, n_runs: int, delta: float, confidence: float, seed: int
) -> tuple[Attack, str]:
    """The attack on the worst pair that a pilot of a tenth of the runs likes best."""

    def publish_both(pair: Pair, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        return (
            publish(subject, pair.X, pair.y, n, seed, pair.groups),
            publish(subject, pair.X2, pair.y2, n, seed + 1, pair.groups2),
        )

    def promise(pair: Pair) -> float:
        one, two = publish_both(pair, max(20, n_runs // 10), seed + 10)
        shift = np.abs(one.mean(axis=0) - two.mean(axis=0))
        spread = one.std(axis=0) + two.std(axis=0)
        return float(np.divide(shift, spread, out=1e9 * shift, where=spread > 1e-9 * shift).max())

    estimator = subject.estimator
    pair = max(worst_pairs(estimator._domain, estimator.adjacency, subject.n_features), key=promise)
    return attack(*publish_both(pair, n_runs, seed + 20), delta, confidence), pair.name

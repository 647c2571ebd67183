"""Replay of a whole search, `DPSearchCV` over an estimator or a pipeline, on neighbouring tables.

A search is many runs behind one plan: preparation, fits, scores, a choice. Every run is compared with its own plan,
release by release, as a fit is (replay.py). Beyond that

    1. one row, or person, moves the runs on part A or those on part B, never both     tuning.md, Lemma 1
    2. what reads A together with what reads all rows, and the same of B, costs at most what the search charges;
       under random stopping every single run does
    3. what the search leaves is the same if its losers are drawn anew, or never were   losers are not released
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dpsparse.audit.neighbours import Pair, pairs
from dpsparse.audit.recorded import ControlFlowError, Run
from dpsparse.audit.replay import (
    ROUNDING,
    Finding,
    Record,
    Subject,
    check_pair,
    compare_by_phase,
)
from dpsparse.audit.same import differences
from dpsparse.privacy import gaussian_parameter
from dpsparse.privacy.events import Event, RandomStopping, Sequence
from dpsparse.privacy.rdp import leaves
from dpsparse.random import make_generator


class SearchSubject(Subject):
    """A search and its plan for `n_features` columns (raw ones, of a pipeline)."""

    _planner: ClassVar[str] = "_priced"

    def __post_init__(self) -> None:
        self.estimator._check()
        self.plan = self._make_plan(self.n_features, self.estimator.estimator._labels(None))

    def judge(self, first: Record, second: Record) -> tuple[list[str], dict[str, float]]:
        own = getattr(self.plan.public, "own", ())  # of a preparation before the search
        complaints, tightness = compare_by_phase(own, first.entries, second.entries)
        for one, two in zip(first.runs, second.runs, strict=True):
            more, found = compare_by_phase(one.plan.phases, one.entries, two.entries)
            complaints += [f"{text} ({one.name})" for text in more]
            for phase, height in found.items():
                name = f"{one.name}: {phase}"
                tightness[name] = max(height, tightness.get(name, 0.0))
        return [*complaints, *_both_parts(first, second), *self._undercharged(first)], tightness

    def _undercharged(self, record: Record) -> list[str]:
        """Runs that cost more than the search pays, going by what ran and not by what was planned to run."""
        own = {phase.name for phase in getattr(self.plan.public, "own", ())}
        charged = Sequence(tuple(p.event for p in self.plan.phases if p.name not in own))
        for leaf in leaves(charged):
            if isinstance(leaf, RandomStopping):
                dearest = max(gaussian_parameter(run.plan.event)[0] for run in record.runs)
                fine = dearest <= leaf.mu * (1.0 + ROUNDING) and all(r.part for r in record.runs)
                return [] if fine else ["a run of the search costs more than every run may"]
        for part in ("A", "B"):
            reads = tuple(run.plan.event for run in record.runs if run.part in ("", part))
            if not _covers(charged, Sequence(reads)):
                return [f"the runs that read part {part} cost more than the search charges"]
        return []

    def betrays_losers(self, pair: Pair, first: Record, seed: int) -> list[str]:
        """Whether anything that is left on the first table depends on runs that lost."""
        n_units = len(pair.y) if pair.groups is None else len(np.unique(pair.groups))
        try:
            again = self._recorded(
                pair.X, pair.y, pair.groups, seed + 1, without_losers(first), np.arange(n_units)
            )
        except ControlFlowError as error:
            return [f"losers: {error}"]
        return [
            f"{name} tells of runs that lost"
            for name in differences(first.left, again.left, type(self.estimator).__name__)
        ]


def check_search(
    search: Any,
    n_features: int,
    neighbours: Iterable[Pair] | None = None,
    *,
    n_rows: int = 40,
    n_pairs: int = 22,
    seed: int = 0,
) -> Finding:
    """The first complaint about a search over many neighbours, else how tight each phase became.

    `neighbours` are pairs of tables as `search.fit` takes them; None makes pairs of `n_rows` rows of numbers, with
    persons where the domain protects them.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier, DPSearchCV
    >>> from dpsparse.audit import check_search
    >>> model = DPGradientClassifier(Domain(classes=[0, 1]), n_iter=2)
    >>> check_search(DPSearchCV(model, {"threshold": [-0.5, 0.0]}), n_features=3, n_pairs=2).complaints
    ()
    """
    subject = SearchSubject(search, n_features)
    if neighbours is None:
        source = pairs(
            search._model._domain, search.estimator.adjacency, n_rows, n_features, make_generator(seed)
        )  # fmt: skip
        neighbours = (next(source) for _ in range(n_pairs))
    tightness: dict[str, float] = {}
    reached: dict[str, float] = {}
    for number, pair in enumerate(neighbours):
        first = subject.record(pair, seed + number)
        finding = check_pair(subject, pair, seed + number, first)
        if not finding.complaints:
            told = subject.betrays_losers(pair, first, seed + number)
            finding = replace(finding, complaints=tuple(told))
        if finding.complaints:
            return finding
        for total, found in ((tightness, finding.tightness), (reached, finding.reached)):
            for phase, height in found.items():
                total[phase] = max(height, total.get(phase, 0.0))
    return Finding((), tightness, pair, reached)


def without_losers(record: Record) -> Record:
    """The script of a search whose losers answer anew (their books are empty), or, under random stopping, never ran."""
    starts = [i for i, entry in enumerate(record.entries) if entry.phase == "candidate"]
    if not starts:
        return replace(
            record, runs=tuple(replace(r, entries=[]) if r.part == "A" else r for r in record.runs)
        )
    tries: list[list[Run]] = []  # a fit on A each, and its score on B unless the fit failed
    for run in record.runs:
        if run.part == "A":
            tries.append([])
        tries[-1].append(run)
    best = max(range(len(tries)), key=lambda i: (_score(tries[i]), -i))
    drawn = record.entries[starts[best]]
    entries = [*record.entries[: starts[0]], drawn, record.entries[-1]]  # the last coin said "stop"
    return replace(record, entries=entries, runs=tuple(tries[best]))


def _score(runs: list[Run]) -> float:
    """The noisy score of a try; a failed one is the worst."""
    return -np.inf if len(runs) < 2 else float(runs[1].entries[-1].answer[0])


def _both_parts(first: Record, second: Record) -> list[str]:
    moved = {
        one.part
        for one, two in zip(first.runs, second.runs, strict=True)
        for a, b in zip(one.entries, two.entries, strict=True)
        if not np.array_equal(*a.side_by_side(b))
    }
    return ["one unit moves runs on both parts of the rows"] if {"A", "B"} <= moved else []


def _covers(charged: Event, spent: Event) -> bool:
    """Whether a charge pays for a run: it holds every step of it, or a Gaussian that dominates all of it."""
    have, need = leaves(charged), leaves(spent)
    if all(have.get(leaf, 0) >= count for leaf, count in need.items()):
        return True
    mu = gaussian_parameter(spent)[0]
    return mu < math.inf and mu <= gaussian_parameter(charged)[0] * (1.0 + ROUNDING)

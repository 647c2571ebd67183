"""Replay of a whole search, `DPSearchCV` over an estimator or a pipeline, on neighbouring tables.

A search is many runs behind one plan: preparation, fits, scores, a choice. Every run is compared with its own plan,
release by release, as a fit is (replay.py). Beyond that, what really ran must cost at most what the search charges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from dpsparse.accounting import gaussian_parameter
from dpsparse.accounting.events import Event, Sequence, leaves
from dpsparse.accounting.guarantee import Phase
from dpsparse.audit.neighbours import Pair, pairs
from dpsparse.audit.replay import (
    ROUNDING,
    Finding,
    Record,
    Subject,
    check_pairs,
    compare_by_phase,
)
from dpsparse.model_selection.design import Search
from dpsparse.random import make_generator


class SearchSubject(Subject):
    """A search and its plan for `n_features` columns (raw ones, of a pipeline)."""

    _planner: ClassVar[str] = "_priced"

    def __post_init__(self) -> None:
        self.estimator._check()
        self.plan = self._make_plan(self.n_features, self.estimator.estimator._labels(None))

    def judge(self, first: Record, second: Record) -> tuple[list[str], dict[str, float]]:
        complaints, tightness = compare_by_phase(self._own, first.entries, second.entries)
        for one, two in zip(first.runs, second.runs, strict=True):
            more, found = compare_by_phase(one.plan.phases, one.entries, two.entries)
            complaints += [f"{text} ({one.name})" for text in more]
            for phase, height in found.items():
                name = f"{one.name}: {phase}"
                tightness[name] = max(height, tightness.get(name, 0.0))
        return [*complaints, *self._undercharged(first)], tightness

    @property
    def _own(self) -> tuple[Phase, ...]:
        """The phases of a preparation before the search."""
        search = self.plan.settings
        assert isinstance(search, Search)
        n_runs = len(search.fits) + 2  # those to compare, the choice, the last fit
        return self.plan.phases[:-n_runs]

    def _undercharged(self, record: Record) -> list[str]:
        """Runs that cost more than the search pays, going by what ran and not by what was planned to run."""
        charged = Sequence(tuple(p.event for p in self.plan.phases[len(self._own) :]))
        if _covers(charged, Sequence(tuple(run.plan.event for run in record.runs))):
            return []
        return ["the runs cost more than the search charges"]


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
    return check_pairs(subject, neighbours, seed)


def _covers(charged: Event, spent: Event) -> bool:
    """Whether a charge pays for a run: it holds every step of it, or a Gaussian that dominates all of it."""
    have, need = leaves(charged), leaves(spent)
    if all(have.get(leaf, 0) >= count for leaf, count in need.items()):
        return True
    mu = gaussian_parameter(spent)[0]
    return mu < math.inf and mu <= gaussian_parameter(charged)[0] * (1.0 + ROUNDING)

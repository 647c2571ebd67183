"""What an audit attacks: a private run, and what is public of the tables that it takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from dpsparse.accounting.guarantee import Plan
from dpsparse.audit.neighbours import Pair, pairs, row_weights, worst_pairs
from dpsparse.audit.recorded import Tape
from dpsparse.audit.tables import Schema
from dpsparse.domain import Domain
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.random import make_generator
from dpsparse.release import Releases, releases_made_by


class Subject:
    """The fit of an estimator, a pipeline, a search or a feature test; or, with `run`, any call that takes (X, y) or
    (X, y, groups) of such tables and returns what it shows."""

    def __init__(
        self,
        estimator: Any,
        n_features: int,
        roles: Any = None,
        run: Callable[..., Any] | None = None,
    ) -> None:
        unpaid = {"random_state": None, "ledger": None}
        facts = {**estimator.get_params(deep=False), **unpaid}
        self.estimator = clone(type(estimator)(**facts))
        # A line that only slow runs print, as while code compiles, would look like a difference.
        names = self.estimator.get_params()
        self.estimator.set_params(**{n: -1 for n in names if n.split("__")[-1] == "verbose"})
        owner = getattr(self.estimator, "estimator", self.estimator)  # what a search is about
        if not isinstance(owner.domain, Domain):
            raise ParameterError("An audit makes up tables of a declared Domain(...); state one.")
        self.schema = Schema(owner.domain, owner.adjacency, n_features, roles)
        self._run = run
        self._plans: dict[tuple[int, str], Plan] = {}
        self._last: tuple[Pair, int, Tape] | None = None

    @property
    def is_model(self) -> bool:
        """Whether it is the fit of one bare model."""
        return self._run is None and isinstance(self.estimator, BaseDPLinearModel)

    @cached_property
    def plan(self) -> Plan:
        """The plan that it follows on a table of 20 rows."""
        return self.record(next(self.pairs(20, make_generator(0))), 0).runs[0].plan

    @property
    def claimed(self) -> float:
        """Epsilon as it is stated: the plan of a paper's printed form claims nothing, its estimator does."""
        return float(self.plan.epsilon if self.plan.proven else self.estimator.epsilon)

    def worst_pairs(self) -> list[Pair]:
        """Pairs on which known mistakes show."""
        return worst_pairs(self.schema.domain, self.schema.adjacency, self.schema.n_features)

    def pairs(self, n_rows: int, rng: np.random.Generator) -> Any:
        """Neighbours without end, of numbers; they become raw columns on their way into a run."""
        schema = self.schema
        return pairs(schema.domain, schema.adjacency, n_rows, schema.n_features, rng)

    def record(self, pair: Pair, seed: int) -> Tape:
        """A run on the first table; what was recorded last is not run again."""
        if self._last is None or self._last[1] != seed or not _same_first(self._last[0], pair):
            tape = Tape(seed)
            tape.record(self._planned_run, self._table(pair.X, pair.y, pair.groups))
            self._last = pair, seed, tape
        return self._last[2]

    def replay(self, pair: Pair, first: Tape, seed: int) -> Tape:
        """A run on the second table with the answers of the first."""
        tape = Tape(seed, first)
        tape.record(self._planned_run, self._table(pair.X2, pair.y2, pair.groups2))
        return tape

    def run(self, X: Any, y: Any, rng: np.random.Generator, groups: Any = None) -> Any:
        """What a run on (X, y) returns; nothing is recorded."""
        with releases_made_by(lambda plan: Releases(plan, rng)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._planned_run(*self._table(X, y, groups))

    def show(self, *table: Any) -> tuple[Any, ...]:
        """What a run returns, how it prints, and its file where it has one; plans are made anew."""
        from dpsparse.models.files import dumps

        found = self._fit(clone(self.estimator), *table) if self._run is None else self._run(*table)
        kept = getattr(found, "best_estimator_", found)
        file = dumps(kept) if hasattr(kept, "coef_") or hasattr(kept, "model_") else ""
        return found, str(found), file

    def _table(self, X: Any, y: Any, groups: Any) -> tuple[Any, ...]:
        X = self.schema.columns(X)
        return (X, y) if groups is None else (X, y, groups)

    def _planned_run(self, *table: Any) -> Any:
        if self._run is not None:
            return self._run(*table)
        model = type(self.estimator)(**self.estimator.get_params(deep=False))
        model._priced = self._priced
        return self._fit(model, *table)

    def _fit(self, model: Any, X: Any, y: Any, groups: Any = None) -> Any:
        more = {} if groups is None else {"groups": groups}
        return model.fit(X, y, **more, **row_weights(model, X))

    def _priced(self, n_features: int, labels: np.ndarray | None) -> Plan:
        """The estimator's plan, made once for the same facts: calibration takes longer than small fits."""
        facts = n_features, repr(labels)
        if facts not in self._plans:
            self._plans[facts] = self.estimator._priced(n_features, labels)
        return self._plans[facts]


def _same_first(a: Pair, b: Pair) -> bool:
    return a.X is b.X and a.y is b.y and a.groups is b.groups

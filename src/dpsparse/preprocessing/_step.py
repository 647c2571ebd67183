"""What a step of preparation is: a map of single rows whose constants are declared, or released and paid.

    _wants      what it will release, with shares of the budget; nothing for a step of declared facts
    _read       raw input as columns: the last place where anything can be refused
    _learn      the releases; sets attributes that end in "_" and are public from then on
    _map        the row map, total: entries in [-1, 1], rows of a declared length

Alone, a private step has an epsilon of its own and `fit` has the usual order: check, plan, read, reserve, release.
In a `DPPipeline` the pipeline plans and pays for the step and the model at once.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpsparse._checks import ADJACENCIES, check_choice, check_delta, check_epsilon
from dpsparse.accounting import Budget, Guarantee, Plan
from dpsparse.accounting.guarantee import PERSON, ROW
from dpsparse.domain.clipping import by_person
from dpsparse.exceptions import BudgetWarning, DomainError, ParameterError, SchemaError
from dpsparse.preprocessing._tables import Header, Table, read_table
from dpsparse.random import is_seeded
from dpsparse.release import Releases, private_run
from dpsparse.rows import RawRows

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger

SOURCE = "docs/proofs/preparation.md"

# Shares of mu^2, the budget of a pipeline.
STEP_SHARE = 0.1  # scales of all numbers; all categories; a vocabulary
COUNT_SHARE = 0.01  # counts of kinds of cells, of what declared bounds clip, of declared categories
# Of delta, for categories that only one row has. A ledger of the same delta keeps 2^-15 of it for all that may go
# wrong, so it holds more than a hundred fits with such categories.
LEAK_SHARE = 2.0**-22
MIN_COUNT_IN_SDS = 3.0  # of released counts of rows that are above their noise


@dataclass(frozen=True)
class Want:
    """A release that a step asks for: its share of mu^2, how many numbers, what it is for."""

    name: str
    share: float
    size: int
    note: str
    names: bool = False  # a threshold release


def price_wants(prefix: str, wants: list[Want], epsilon: float, delta: float) -> Budget:
    """The budget of all releases that a step asks for, under their names behind `prefix`."""
    budget = Budget(epsilon, delta)
    leak = delta * LEAK_SHARE / max(1, sum(want.names for want in wants))
    for want in wants:
        if want.names:
            budget.names(prefix + want.name, want.share, leak, want.note)
        else:
            budget.gaussian(prefix + want.name, want.share, want.size, want.note)
    return budget


class Step(TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of all steps."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    _declares: ClassVar[bool] = False  # whether facts about columns were declared to it
    # Releases that are not above their noise, in words; known from released numbers.
    weak_: tuple[str, ...] = ()
    # Released shares of missing values, where a step counts them.
    missing_share_: np.ndarray = np.zeros(0)

    # ---- what a step implements -----------------------------------------------------------------

    def _check(self) -> None:
        """Refuse bad parameters."""

    @property
    def _is_open(self) -> bool:
        """Whether it learns from columns that nobody named, whose number only the table knows."""
        return False

    def _wants(self, n_columns: int) -> list[Want]:
        return []

    @abstractmethod
    def _width(self, n_columns: int) -> int:
        """A public bound on the columns that come out."""

    def _norm(self, n_columns: int) -> float:
        """A public bound on the length of the rows that come out: one entry of size one for each column, unless a step
        says otherwise (where a missing value is flagged, the number is 0)."""
        return math.sqrt(n_columns)

    def _read(self, X: Any) -> Table:
        return read_table(X)

    def _learn(self, raw: RawRows, releases: Releases, prefix: str) -> None:
        """Ask for the releases that were planned, under their names behind `prefix`."""

    @abstractmethod
    def _map(self, read: Table) -> Any:
        """The prepared rows, each from its own cells alone."""

    @abstractmethod
    def _names_out(self) -> list[str]:
        """Names of the columns that come out."""

    def _fate(self, j: int) -> str:
        """What became of raw column `j`, for a card."""
        return "by a public hash"

    # ---- what all have in common ----------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Note the columns; the facts were declared, so nothing is learnt and nothing is spent."""
        self._check()
        self._forget()
        self._note(self._read(X).header)
        return self

    def _forget(self) -> None:
        """What an earlier fit learnt was paid then, or not at all: it must not decide this one."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def transform(self, X: Any) -> Any:
        """The prepared rows, each a function of itself and of public numbers; a frame after `set_output`."""
        rows = self._applied(X)
        # scikit-learn makes frames of dense arrays only
        if hasattr(rows, "toarray") and self._shows_frames():
            if rows.shape[1] > 10_000:
                raise ParameterError(
                    f"{rows.shape[1]:,} columns are too many for a data frame; use set_output(transform='default'), "
                    "which gives a sparse array."
                )
            return rows.toarray()
        return rows

    def _applied(self, X: Any) -> Any:
        """The prepared rows as they are made: dense or sparse."""
        check_is_fitted(self)
        read = self._read(X)
        self._compare(read)
        return self._map(read)

    def _shows_frames(self) -> bool:
        own = getattr(self, "_sklearn_output_config", {}).get("transform")
        return bool((own or get_config()["transform_output"]) != "default")

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the prepared columns."""
        check_is_fitted(self)
        return np.array(self._names_out(), object)

    def _note(self, header: Header) -> None:
        """Number and names of the columns that went in."""
        self.n_features_in_ = len(header.names)
        if header.named:
            self.feature_names_in_ = np.array(header.names, object)

    def _compare(self, read: Table) -> None:
        if len(read.columns) != self.n_features_in_:
            raise SchemaError(
                f"X has {len(read.columns)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        names = getattr(self, "feature_names_in_", None)
        if names is not None and read.header.named and list(names) != list(read.names):
            raise SchemaError(
                "The columns of X should have the names, and the order, that they had in fit."
            )

    @property
    def _columns(self) -> list[str]:
        named = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if named is None else list(named)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.non_deterministic = bool(self._wants(1))  # where fitting releases something
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateStep(Step):
    """A step that learns from rows: alone it needs an epsilon, in a pipeline it must have none."""

    epsilon: float | None = None
    delta: float = 1e-6
    adjacency: str = "add-remove"
    ledger: Ledger | None = None
    random_state: int | None = None
    privacy_: Guarantee = field(init=False)
    plan_: Plan = field(init=False)

    def _check(self) -> None:
        """What a step that is fitted by itself must know."""
        check_choice("adjacency", self.adjacency, ADJACENCIES)
        if self.epsilon is not None:
            check_epsilon(self.epsilon, "exact constants")
        check_delta(self.delta)
        is_seeded(self.random_state)

    def plan(self, n_columns: int) -> Plan:
        """What fitting this step by itself on `n_columns` columns will spend."""
        self._check()
        return self._plan(n_columns, ROW)

    def _plan(self, n_columns: int, unit: str) -> Plan:
        if self.epsilon is None:
            raise ParameterError(
                f"{type(self).__name__} learns from private rows: give it an epsilon of its own, or put it into a "
                "DPPipeline, which plans and pays for all steps at once."
            )
        wants = self._wants(n_columns)
        if not wants:
            raise ParameterError(f"{type(self).__name__} learns nothing here; it needs no epsilon.")
        budget = price_wants("", wants, self.epsilon, self.delta)
        plan = Plan(
            method=type(self).__name__,
            phases=budget.phases(),
            epsilon=float(self.epsilon),
            delta=self.delta,
            adjacency=self.adjacency,
            source=SOURCE,
            unit=unit,
            parameters={"mu": budget.mu},
        )
        return plan.seeded() if is_seeded(self.random_state) else plan

    def _must_learn(self) -> bool:
        """Whether there is nothing to be had without an epsilon."""
        return True

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Learn the constants of the map privately; needs an epsilon unless nothing is learnt.

        Parameters
        ----------
        X : table of private rows
        y : ignored
        groups : array of shape (n_samples,), optional
            The person of every row; the guarantee then protects persons.
        """
        self._check()
        self._forget()
        read = self._read(X)
        n_columns = len(read.names)
        if not self._wants(n_columns) or (self.epsilon is None and not self._must_learn()):
            self._note(read.header)
            return self
        plan = self._plan(n_columns, ROW if groups is None else PERSON)
        check_persons(groups, read)

        def learn(releases: Releases) -> None:
            self._note(read.header)
            self._learn(releases.admit(RawRows.of(read, groups=groups)), releases, "")
            self.plan_, self.privacy_ = plan, plan.guarantee

        private_run(plan, None, learn, ledger=self.ledger, random_state=self.random_state)
        warn_weak(self.weak_)
        return self


def of_each_column(fact: str, given: Any, names: Iterable[str]) -> list[Any]:
    """What is declared about each column, by name or once for all of them."""
    if not isinstance(given, Mapping):
        return [given for _ in names]
    missing = [name for name in names if name not in given]
    if missing:
        raise DomainError(f"{fact} lacks the columns {', '.join(missing)}; declare each of them.")
    return [given[name] for name in names]


def narrow(rows: sp.csr_array) -> sp.csr_array:
    """The same rows with places of 32 bits where they suffice, as SciPy chooses them: half the memory, and the kernels
    that a compiled wheel brings along."""
    if rows.indices.dtype != np.int32 and max(rows.nnz, rows.shape[1]) < 2**31:
        rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return rows


def refuse_own_price(name: str, step: Step) -> None:
    """Refuse a step with an account of its own where a pipeline pays for all steps."""
    if isinstance(step, PrivateStep) and (step.epsilon is not None or step.ledger is not None):
        raise ParameterError(
            f"Step {name!r} must have no epsilon and no ledger of its own: DPPipeline(epsilon=..., ledger=...) pays "
            "for all steps."
        )


def check_persons(groups: Any, read: Table) -> None:
    """Refuse groups that do not name one person per row, before anything is spent."""
    if groups is not None:
        by_person(groups, read.n_rows)


def warn_weak(texts: tuple[str, ...]) -> None:
    """Say which releases are of little use, when all is done: a warning may be an error, and the fit is paid."""
    for text in texts:
        warnings.warn(text, BudgetWarning, stacklevel=3)

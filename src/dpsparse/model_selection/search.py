"""DPSearchCV: a search for hyper-parameters that is priced as a whole before any row is read.

One reservation pays for all that the search reads; what is published is the winner.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpsparse._checks import check_terms, check_width
from dpsparse.accounting import Budget, Guarantee, Phase, Plan
from dpsparse.accounting import epsilon as event_epsilon
from dpsparse.accounting.budget import gaussian_parameter_at
from dpsparse.accounting.guarantee import FITTED, PERSON, PREPARED, RAW, ROW
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import BaseDPLinearModel, Solution
from dpsparse.methods.schema import refuse_weights
from dpsparse.model_selection.candidates import list_candidates, model_parameters
from dpsparse.model_selection.design import Search, Setting, price_search
from dpsparse.preprocessing._step import SOURCE as PREPARATION
from dpsparse.preprocessing._step import warn_weak
from dpsparse.preprocessing.pipeline import DPPipeline, RawTable, add_empty_columns
from dpsparse.random import is_seeded
from dpsparse.release import Releases, private_run
from dpsparse.rows import RawRows, Rows
from dpsparse.rows.sources import Source

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger

Body = Callable[[Releases], None]  # what is done with releases that are paid for
TUNING = "docs/proofs/tuning.md"


def _available(name: str) -> Any:
    return available_if(lambda search: hasattr(search.estimator, name))


@dataclass(eq=False, repr=False)
class DPSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Private choice of hyper-parameters.

    **When to use.** If public facts cannot decide a setting, such as a threshold for unequal costs. The default
    settings are usually as good (docs/tuning.md).

    Parameters
    ----------
    estimator : estimator of dpsparse, or DPPipeline
        What is tuned, with its domain and adjacency; its epsilon, delta and seed are set by the search. A pipeline
        prepares once, privately and for the same epsilon, and the search varies its model.
    candidates : mapping of lists or list of mappings
        A grid, or the settings one by one (``{}`` is the estimator as it is). ``threshold`` moves the margin at
        which the second class is predicted. Names are those of the model's parameters, in a pipeline too.
        The list is public: do not make it from the rows.
    epsilon : float, default=1.0
        Privacy loss of the whole search, in natural log odds.
    delta : float, default=1e-6
        Probability that the guarantee fails.
    ledger : Ledger or None, default=None
        Account that pays, once. None keeps no account.
    random_state : int or None, default=None
        None draws secure noise. An int is for experiments and voids the guarantee.

    Attributes
    ----------
    best_params_, best_index_, best_estimator_
        The winner. `best_estimator_` carries the guarantee of the whole search.
    plan_, privacy_

    Notes
    -----
    Candidates that differ in ``n_nonzero`` and ``threshold`` alone are cut from one fit, and 3 % of the budget pays
    for the choice. Other candidates are first fitted with 20 % of the budget together; the winner is fitted again with
    the rest. When tuning pays, and when not: docs/tuning.md. Proof: docs/proofs/tuning.md.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier, DPSearchCV
    >>> from dpsparse.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(n_samples=2_000, n_features=50, seed=0)
    >>> estimator = DPGradientClassifier(Domain(classes=[0, 1], n_samples=2_000))
    >>> search = DPSearchCV(estimator, {"n_nonzero": [5, 10, 20]}, epsilon=1.0)
    >>> print(search.plan(n_features=50).guarantee.headline)  # of the whole search, before any data
    (1, 1e-6)-DP of the table given to fit, add/remove one row, proven
    >>> search.fit(X, y).best_params_["n_nonzero"] in (5, 10, 20)
    True
    """

    estimator: Any
    candidates: Any
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    ledger: Ledger | None = None
    random_state: int | None = None
    best_params_: dict[str, Any] = field(init=False)
    best_index_: int = field(init=False)
    best_estimator_: Any = field(init=False)
    plan_: Plan = field(init=False)
    privacy_: Guarantee = field(init=False)
    n_features_in_: int = field(init=False)

    # ---- the price -----------------------------------------------------------------------------

    def plan(self, n_features: int) -> Plan[Search]:
        """What `fit` on `n_features` columns (raw ones, of a pipeline) will spend and do, without any data.

        ``parameters["kept"]`` is the share of the budget (of mu) that the released fit has, compared with a fit
        that is not tuned; the plan says in words what that asks of the best candidate.
        """
        check_width(n_features)
        self._check()
        return self._priced(int(n_features), self.estimator._labels(None))

    @property
    def _pipeline(self) -> DPPipeline | None:
        return self.estimator if isinstance(self.estimator, DPPipeline) else None

    @property
    def _model(self) -> BaseDPLinearModel:
        """What the candidates vary: the estimator, or the last step of a pipeline."""
        pipeline = self._pipeline
        return self.estimator if pipeline is None else pipeline.steps[-1][1]  # type: ignore[no-any-return]

    def _priced(self, n_features: int, labels: np.ndarray | None) -> Plan[Search]:
        """Its settings are the priced `Search`."""
        pipeline = self._pipeline
        if pipeline is None:
            model, width, left = self.estimator, n_features, 1.0
            budget = Budget(float(self.epsilon), self.delta)
        else:
            wants, width, norm = pipeline._planned(n_features)
            model, budget = pipeline._model(1.0, norm), pipeline._budget(wants, float(self.epsilon))
            left = 1.0 - sum(want.share for want in wants)
        listed = list_candidates(self.candidates, model, 0 if labels is None else len(labels))
        setting = Setting(model, listed, self.delta, width, labels)
        search = price_search(setting, budget, left)
        untuned = gaussian_parameter_at(float(self.epsilon), self.delta) * math.sqrt(left)
        kept = budget.parameter("fit") / untuned
        plan = self._plan(search, budget.phases(), kept)
        return plan.seeded() if is_seeded(self.random_state) else plan

    def _plan(self, search: Search, phases: tuple[Phase, ...], kept: float) -> Plan[Search]:
        model, pipeline = search.setting.estimator, self._pipeline
        inner = type(model).__name__
        persons = model._domain.unit == "person"
        prepares = len(phases) > len(search.fits) + 2
        return Plan(
            method=f"DPSearchCV({inner if pipeline is None else f'DPPipeline({inner})'})",
            phases=phases,
            epsilon=float(self.epsilon),
            delta=self.delta,
            adjacency=self.estimator.adjacency,
            source=f"{PREPARATION}, {TUNING}" if prepares else TUNING,
            assumptions=(
                "the candidates are public",
                *(() if pipeline is None else pipeline._declarations()),
                *model._assumptions(),
                *(model._person_facts() if persons else ()),
            ),
            parameters={
                "n_candidates": len(search.setting.candidates),
                "n_fits": len(search.fits) + 1,
                "kept": kept,
                "break_even": (
                    "tuning pays only if the best candidate beats the default by more than the default loses "
                    f"with {1.0 / kept:.2f} times the noise"
                ),
            },
            unit=PERSON if persons else ROW,
            table=FITTED if pipeline is None else RAW,
            n_units=model._domain.n_samples,
            max_rows=search.max_rows,
            settings=search,
        )

    def _check(self) -> None:
        """Refuse what can be refused before anything is read or spent."""
        estimator, pipeline = self.estimator, self._pipeline
        if not isinstance(estimator, (BaseDPLinearModel, DPPipeline)):
            raise ParameterError(
                "estimator must be an estimator of dpsparse, such as DPGradientClassifier(domain), or a DPPipeline."
            )
        if estimator.ledger is not None:
            raise ParameterError(
                "The estimator carries a ledger of its own; give it to the search: DPSearchCV(..., ledger=ledger)."
            )
        if pipeline is not None and pipeline.delta != self.delta:
            raise ParameterError(
                f"The pipeline has delta={pipeline.delta!r} and the search {self.delta!r}; state the same."
            )
        estimator._check_parameters()
        if self._model._is_published:
            raise ParameterError("A private search needs an estimator that is proven private.")
        check_terms(self.epsilon, self.delta, estimator.adjacency, self.ledger)
        if math.isinf(self.epsilon):
            raise ParameterError(
                "epsilon must be finite; without privacy use scikit-learn's GridSearchCV."
            )
        is_seeded(self.random_state)

    # ---- the search ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, groups: Any = None, **refused: Any) -> Self:
        """Search on private rows; what is published is `best_estimator_` and what belongs to it.

        `groups` names the person of every row, with ``Domain(unit="person")``.
        """
        refuse_weights(refused)
        self._check()
        if isinstance(X, Source):
            raise ParameterError(
                "DPSearchCV searches on tables in memory; of files and clusters read a part, or fit one setting."
            )
        if self._pipeline is None:
            plan, rows, search = self._read_table(X, y, groups)
        else:
            plan, rows, search = self._read_raw_table(clone(self._pipeline), X, y, groups)
        private_run(plan, rows, search, ledger=self.ledger, random_state=self.random_state)
        if isinstance(self.best_estimator_, DPPipeline):
            warn_weak(self.best_estimator_.steps_[0][1].weak_)
        return self

    def _read_table(self, X: Any, y: Any, groups: Any) -> tuple[Plan[Search], Rows, Body]:
        """The plan for a table of numbers, its rows, and what to do with them once it is paid."""
        estimator = self.estimator
        estimator._check_groups(groups)
        X, y, labels, limits = estimator._read_table(X, y, self)
        names = getattr(self, "feature_names_in_", None)
        estimator._check_scales(names)
        plan = self._priced(X.shape[1], labels)
        rows = Rows.clip(X, y, estimator._clipping(X.shape[1]), labels=labels, groups=groups)

        def search_table(releases: Releases) -> None:
            search = plan.settings
            index, solution = search.run(releases.capped(rows), releases)
            model = self._make_winner(index, solution, search, plan)
            model.n_features_in_ = self.n_features_in_
            if names is not None:
                model.feature_names_in_ = names
            if limits is not None:
                model._rescale(1.0 / np.abs(limits).max(axis=1))
            self._publish(model, index, search, plan)

        return plan, rows, search_table

    def _read_raw_table(
        self, pipeline: DPPipeline, X: Any, y: Any, groups: Any
    ) -> tuple[Plan[Search], Rows, Body]:
        """The same for a raw table, which is prepared first; the rows are there to be counted."""
        read = pipeline._inspect(X, y, groups)
        plan = self._priced(len(read.header.names), read.labels)
        return plan, read.blank, partial(self._prepare_and_search, pipeline, read, plan)

    def _prepare_and_search(
        self, pipeline: DPPipeline, read: RawTable, plan: Plan[Search], releases: Releases
    ) -> None:
        prepared = pipeline._prepare(read, releases)
        names = [*pipeline.steps_[0][1]._names_out()]
        search, prepared = _match_width(plan.settings, prepared, len(names))
        names += ["(none)"] * (search.setting.n_features - len(names))
        rows = prepared.clipped(search.setting.estimator._domain, read.labels, len(names))
        index, solution = search.run(releases.capped(rows), releases)
        own = plan.phases[-len(search.fits) - 2 :]  # without those of the steps
        spent = event_epsilon(replace(plan, phases=own).event, self.delta)
        inner = replace(plan, phases=own, epsilon=spent, table=PREPARED, source=TUNING)
        model = self._make_winner(index, solution, search, inner)
        model.n_features_in_, model.feature_names_ = len(names), tuple(names)
        chosen = model_parameters(search.setting.candidates[index])
        pipeline.set_params(epsilon=self.epsilon, random_state=self.random_state)
        pipeline.steps[-1][1].set_params(**chosen)
        pipeline._publish(model, plan)
        self.n_features_in_ = pipeline.n_features_in_
        if hasattr(pipeline, "feature_names_in_"):
            self.feature_names_in_ = pipeline.feature_names_in_
        self._publish(pipeline, index, search, plan)

    def _make_winner(
        self, index: int, solution: Solution, search: Search, plan: Plan
    ) -> BaseDPLinearModel:
        """The chosen candidate as a fitted model, with the plan that paid for it."""
        setting = search.setting
        model = type(setting.estimator)(**setting.estimator.get_params(deep=False))
        model.set_params(
            **model_parameters(setting.candidates[index]),
            epsilon=plan.epsilon,
            delta=self.delta,
            random_state=self.random_state,
        )
        model._keep(solution._replace(history=None), plan, setting.labels)
        return model

    def _publish(self, best: Any, index: int, search: Search, plan: Plan) -> None:
        points = [dict(point) for point in search.setting.candidates]
        best.search_ = {"estimator": clone(self.estimator), "candidates": points}
        self.best_estimator_, self.best_index_ = best, index
        self.best_params_ = points[index]
        self.plan_, self.privacy_ = plan, plan.guarantee

    # ---- the winner speaks ---------------------------------------------------------------------

    @_available("predict")
    def predict(self, X: Any) -> np.ndarray:
        """Predictions of `best_estimator_`."""
        return np.asarray(self._best.predict(X))

    @_available("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of `best_estimator_`."""
        return np.asarray(self._best.predict_proba(X))

    @_available("predict_log_proba")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        return np.asarray(self._best.predict_log_proba(X))

    @_available("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Margins of `best_estimator_`."""
        return np.asarray(self._best.decision_function(X))

    def score(self, X: Any, y: Any) -> float:
        """Exact score of `best_estimator_`; not private if the rows are."""
        return float(self._best.score(X, y))

    @property
    def classes_(self) -> np.ndarray:
        return np.asarray(self._best.classes_)

    @property
    def _best(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = self.estimator.__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.regressor_tags, tags.target_tags = inner.regressor_tags, inner.target_tags
        tags.input_tags.sparse = True
        tags.non_deterministic = True
        return tags


def _match_width(search: Search, rows: RawRows, width: int) -> tuple[Search, RawRows]:
    """Search and prepared rows of one width: the search gets fewer columns, or the rows get empty ones."""
    planned = search.setting.n_features
    if width == planned:
        return search, rows
    fewer = search.for_width(width)
    if fewer is not None:
        return fewer, rows
    return search, rows.map(partial(add_empty_columns, planned - width))

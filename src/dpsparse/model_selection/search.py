"""DPSearchCV: a search for hyper-parameters that is priced as a whole before any row is read.

The corridor of every fit: check -> plan -> reserve -> run -> publish the winner. One reservation pays for all that the
search reads; losers are never released, nor their scores, nor how many runs there were.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dpsparse._checks import check_choice, check_count, check_share, check_terms
from dpsparse.clipping import refuse_malformed, within_limits
from dpsparse.estimators._base import BaseDPLinearModel
from dpsparse.estimators._schema import check_lengths, checked_data, refuse_weights
from dpsparse.estimators.gradient import DPGradientClassifier, DPGradientRegressor
from dpsparse.exceptions import ParameterError
from dpsparse.model_selection.candidates import THRESHOLD, are_free, listed, paid
from dpsparse.model_selection.design import (
    PARTS,
    Design,
    Setting,
    Winner,
    check_split,
    max_rows,
)
from dpsparse.model_selection.path import path_design
from dpsparse.model_selection.prepared import (
    fitting,
    is_pipeline,
    of_the_model,
    outward,
    prepared_search,
)
from dpsparse.model_selection.refit import refit_design
from dpsparse.model_selection.stopping import IN_A_LEDGER, stopping_design
from dpsparse.privacy import Guarantee, Phase, Plan
from dpsparse.privacy.guarantee import FITTED, PERSON, PREPARED, RAW, ROW
from dpsparse.private_run import private_run
from dpsparse.random import is_seeded
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.sources import Source

if TYPE_CHECKING:
    from dpsparse.privacy.ledger import Ledger

DESIGNS: dict[str, Callable[[Setting], Design]] = {
    "path": path_design,
    "refit": refit_design,
    "stopping": stopping_design,
}
SOURCE, PREPARATION = "docs/proofs/tuning.md", "docs/proofs/preparation.md"
FEW = 5  # candidates up to which a refit is worth its searched fits
# Parameters whose best value depends on the noise: a search at other noise than the final fit's misleads.
_TIED_TO_NOISE = {"step_size", "clip", "n_iter", "radius", "prune", "soft_threshold"}


def _has(name: str) -> Any:
    return available_if(lambda search: hasattr(search.estimator, name))


@dataclass(eq=False, repr=False)
class DPSearchCV(MetaEstimatorMixin, BaseEstimator):
    """Private choice of hyper-parameters.

    Parameters
    ----------
    estimator : estimator of dpsparse, or DPPipeline
        What is tuned, with its domain and adjacency; its epsilon, delta and seed are set by the search. A pipeline
        prepares once, privately and for the same epsilon, and the search varies its model.
    candidates : mapping of lists or list of mappings
        A grid, or the settings one by one (``{}`` is the estimator as it is). ``threshold`` moves the margin at
        which the second class is predicted. Parameters of a pipeline's model are ``model__n_nonzero`` and so on. The
        list is public: do not make it from the rows.
    design : {"auto", "path", "refit", "stopping"}, default="auto"
        "path": one fit, candidates are cut from its weights (``n_nonzero``, ``threshold``). "refit": search on a
        secret part, choose on the rest, fit again on all rows. "stopping": a secret random number of runs, of
        which the best is released. "auto" takes the first that suits the candidates.
    epsilon, delta : float
        The guarantee of the whole search.
    ledger : Ledger or None
        Account that pays, once.
    scoring : {"accuracy", "absolute_error"} or None
        What is compared, in rows: right labels, or numbers by their distance. None: by the kind of estimator.
    share : float or None
        Share of mu^2 for the search: of "path" the choice (default 0.03), of "refit" all but the refit (0.2).
    weights : sequence of float or None
        "stopping": public chances of the candidates. None: all alike.
    chance : float, default=0.8
        "stopping": probability with which the least likely candidate is tried.
    split : {"draws", "sizes"}, default="draws"
        How rows come to the held-out fifth: an own secret draw each, or (replace-one only) fixed sizes.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.

    Attributes
    ----------
    best_params_, best_index_, best_estimator_
        The winner. `best_estimator_` carries the guarantee of the whole search.
    best_score_ : float
        "stopping" with a public number of rows: the released noisy score, too good as it was the best of several.
    plan_, privacy_

    Notes
    -----
    When tuning pays, and when not: docs/tuning.md. Proofs: docs/proofs/tuning.md.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier, DPSearchCV
    >>> from dpsparse.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(n_samples=2_000, n_features=50, seed=0)
    >>> estimator = DPGradientClassifier(Domain(classes=[0, 1], n_samples=2_000))
    >>> search = DPSearchCV(estimator, {"n_nonzero": [5, 10, 20]}, epsilon=1.0)
    >>> print(search.plan(n_features=50).guarantee.headline)  # of the whole search, before any data
    (1.0, 1e-06)-DP of the table given to fit, add/remove one row, proven
    >>> search.fit(X, y).best_params_["n_nonzero"] in (5, 10, 20)
    True
    """

    estimator: Any
    candidates: Any
    _: KW_ONLY
    design: str = "auto"
    epsilon: float = 1.0
    delta: float = 1e-6
    ledger: Ledger | None = None
    scoring: str | None = None
    share: float | None = None
    weights: Any = None
    chance: float = 0.8
    split: str = "draws"
    random_state: int | None = None
    best_params_: dict[str, Any] = field(init=False)
    best_index_: int = field(init=False)
    best_estimator_: Any = field(init=False)
    best_score_: float = field(init=False)
    plan_: Plan = field(init=False)
    privacy_: Guarantee = field(init=False)
    n_features_in_: int = field(init=False)

    # ---- the price -----------------------------------------------------------------------------

    def plan(self, n_features: int) -> Plan:
        """What `fit` on `n_features` columns (raw ones, of a pipeline) will spend and do, without any data.

        ``parameters["kept"]`` is the share of the budget (of mu) that the released fit has, compared with a fit
        that is not tuned; the plan says in words what that asks of the best candidate.
        """
        check_count("n_features", n_features)
        self._check()
        return self._priced(int(n_features), self.estimator._labels(None))

    @property
    def _model(self) -> BaseDPLinearModel:
        """What the candidates vary: the estimator, or the last step of a pipeline."""
        estimator = self.estimator
        return estimator.steps[-1][1] if is_pipeline(estimator) else estimator  # type: ignore[no-any-return]

    def _priced(self, n_features: int, labels: np.ndarray | None) -> Plan:
        """`public` is the priced search: a `Design`, or a `Prepared` one behind the steps of a pipeline."""

        def design_at(model: BaseDPLinearModel, width: int, epsilon: float) -> Design:
            setting = self._setting(model, width, labels, epsilon)
            return DESIGNS[self._chosen_design(setting)](setting)

        if not is_pipeline(self.estimator):
            design = design_at(self.estimator, n_features, float(self.epsilon))
            return self._plan(design, design.phases, design.kept, design, float(self.epsilon))
        whole = prepared_search(
            self.estimator, n_features, design_at, float(self.epsilon), self.delta
        )
        return self._plan(whole.design, whole.phases, whole.kept, whole, float(self.epsilon))

    def _plan(
        self, design: Design, phases: tuple[Phase, ...], kept: float, public: Any, epsilon: float
    ) -> Plan:
        model, name = self._model, design.name
        pipeline = is_pipeline(self.estimator)
        persons = model._domain.unit == "person"
        secret = "how long the search takes is outside the guarantee, and depends on its secret number of runs"
        inner = type(model).__name__
        plan = Plan(
            method=f"DPSearchCV({f'DPPipeline({inner})' if pipeline else inner}, {name})",
            phases=phases,
            epsilon=epsilon,
            delta=self.delta,
            adjacency=design.setting.adjacency,
            source=f"{PREPARATION}, {SOURCE}" if len(phases) > len(design.phases) else SOURCE,
            assumptions=(
                "the candidates and their weights are public",
                *((secret,) if name == "stopping" else ()),
                *(self.estimator._declarations() if pipeline else ()),
                *_facts(model, design.setting.adjacency),
                *(model._person_facts() if persons else ()),
            ),
            parameters={
                "design": name,
                "n_candidates": len(design.setting.candidates),
                "kept": kept,
                **{k: v for k, v in design.facts.items() if not (pipeline and k == IN_A_LEDGER)},
                "break_even": (
                    "tuning pays only if the best candidate beats the default by more than the default loses "
                    f"with {1.0 / kept:.2f} times the noise"
                    + ("" if name != "stopping" else f" and {(PARTS - 1) / PARTS:g} of the rows")
                ),
            },
            unit=PERSON if persons else ROW,
            table=RAW if pipeline else FITTED,
            n_units=model._domain.n_samples,
            max_rows=max_rows(design),
            public=public,
        )
        return plan.seeded() if is_seeded(self.random_state) else plan

    def _setting(
        self, model: BaseDPLinearModel, n_features: int, labels: np.ndarray | None, epsilon: float
    ) -> Setting:
        wanted = self.candidates
        if is_pipeline(self.estimator):
            wanted = of_the_model(wanted, self.estimator.steps[-1][0])
        candidates = listed(wanted, model, 0 if labels is None else len(labels))
        return Setting(
            estimator=model,
            candidates=candidates,
            epsilon=epsilon,
            delta=self.delta,
            n_features=n_features,
            labels=labels,
            share=self.share,
            weights=_weights(self.weights, len(candidates)),
            chance=self.chance,
            split=self.split,
        )

    def _chosen_design(self, setting: Setting) -> str:
        free = are_free(setting.candidates, setting.estimator)
        if self.design == "path" and not free:
            raise ParameterError(
                "design='path' can vary n_nonzero (of estimators that cut their weights at the end) and threshold "
                "only; other parameters change the noisy run itself. Use design='refit' or 'stopping'."
            )
        if self.design != "auto":
            return self.design
        if free:
            return "path"
        names = {name for point in setting.candidates for name in point}
        few = len(setting.candidates) <= FEW and not names & _TIED_TO_NOISE
        # The price of "stopping" rests on a Gaussian run.
        gaussian = isinstance(setting.estimator, (DPGradientClassifier, DPGradientRegressor))
        return "refit" if few or not gaussian else "stopping"

    def _check(self) -> None:
        """Refuse what can be refused before anything is read or spent."""
        estimator = self.estimator
        if not isinstance(estimator, BaseDPLinearModel) and not is_pipeline(estimator):
            raise ParameterError(
                "estimator must be an estimator of dpsparse, such as DPGradientClassifier(domain), or a DPPipeline."
            )
        if estimator.ledger is not None:
            raise ParameterError(
                "The estimator carries a ledger of its own; give it to the search: DPSearchCV(..., ledger=ledger)."
            )
        if is_pipeline(estimator):
            if estimator.delta != self.delta:
                raise ParameterError(
                    f"The pipeline has delta={estimator.delta!r} and the search {self.delta!r}; state the same."
                )
        elif estimator._is_published:
            raise ParameterError("A private search needs an estimator that is proven private.")
        estimator._check_parameters()
        check_choice("design", self.design, ("auto", *DESIGNS))
        check_terms(self.epsilon, self.delta, estimator.adjacency, self.ledger)
        if math.isinf(self.epsilon):
            raise ParameterError(
                "epsilon must be finite; without privacy use scikit-learn's GridSearchCV."
            )
        check_share("chance", self.chance)
        if self.share is not None:
            check_share("share", self.share)
        wanted = "accuracy" if is_classifier(self._model) else "absolute_error"
        if self.scoring is not None and (
            not isinstance(self.scoring, str) or self.scoring != wanted
        ):
            raise ParameterError(
                f"scoring must be {wanted!r} or None: what a score may move by one row is part of the proof, and "
                "a function could return anything."
            )
        if self.weights is not None and self.design in ("path", "refit"):
            raise ParameterError("weights are for design='stopping'; other designs try everything.")
        check_split(self.split, estimator.adjacency)
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
        if is_pipeline(self.estimator):
            return self._fit_pipeline(X, y, groups)
        estimator = self.estimator
        estimator._check_groups(groups)
        refuse_malformed(X)
        y, labels = estimator._read_targets(y)
        X = checked_data(self, X, ensure_all_finite=False)
        check_lengths(X, y)
        names = getattr(self, "feature_names_in_", None)
        limits = estimator._domain.column_limits(names, X.shape[1])
        estimator._check_scales(names)
        plan = self._priced(X.shape[1], labels)
        X = within_limits(X, limits)
        rows = Rows.clip(X, y, estimator._clipping(X.shape[1]), labels=labels, groups=groups)

        def search(releases: Releases) -> None:
            design: Design = plan.public
            winner = design.run(releases.capped(rows), releases)
            model = self._winning(winner, design, plan, float(self.epsilon))
            model.n_features_in_ = self.n_features_in_
            if names is not None:
                model.feature_names_in_ = names
            if limits is not None:
                model._rescale(1.0 / np.abs(limits).max(axis=1))
            self._publish(model, winner, design, plan)

        private_run(plan, rows, search, ledger=self.ledger, random_state=self.random_state)
        return self

    def _fit_pipeline(self, X: Any, y: Any, groups: Any) -> Self:
        """The same corridor with the releases of the steps before the search, all from one reservation."""
        pipeline = clone(self.estimator)
        read = pipeline._inspect(X, y, groups)
        plan = self._priced(len(read.header.names), read.labels)

        def prepare_and_search(releases: Releases) -> None:
            self._search_prepared(pipeline, read, plan, releases)

        private_run(
            plan, read.blank, prepare_and_search, ledger=self.ledger, random_state=self.random_state
        )
        pipeline._warn_weak()
        return self

    def _search_prepared(self, pipeline: Any, read: Any, plan: Plan, releases: Releases) -> None:
        """Learn the steps, then search on the prepared rows."""
        prepared = pipeline._learn_steps(releases.admit(read.raw), read.header, releases)
        names = [*pipeline.steps_[-1][1]._names_out()]
        design, prepared = fitting(plan.public.design, prepared, len(names))
        names += ["(none)"] * (design.setting.n_features - len(names))
        domain = design.setting.estimator._domain
        clipped = prepared.clipped(domain, read.labels, len(names))
        winner = design.run(releases.capped(clipped), releases)
        price = design.setting.epsilon
        inside = self._plan(design, design.phases, design.kept, design, price)
        inside = replace(inside, table=PREPARED)
        model = self._winning(winner, design, inside, price)
        model.n_features_in_, model.feature_names_ = len(names), tuple(names)
        pipeline.set_params(
            epsilon=self.epsilon, random_state=self.random_state,
            **{k: v for k, v in outward(design.setting.candidates[winner.index], pipeline.steps[-1][0]).items()
               if k != THRESHOLD},
        )  # fmt: skip
        pipeline.model_, pipeline.plan_ = model, replace(plan, public=None)
        pipeline.privacy_ = plan.guarantee
        self.n_features_in_ = len(read.header.names)
        if hasattr(pipeline, "feature_names_in_"):
            self.feature_names_in_ = pipeline.feature_names_in_
        self._publish(pipeline, winner, design, plan)

    def _winning(
        self, winner: Winner, design: Design, plan: Plan, epsilon: float
    ) -> BaseDPLinearModel:
        """The chosen candidate as a fitted model, with the plan that paid for it."""
        setting = design.setting
        model = type(setting.estimator)(**setting.estimator.get_params(deep=False))
        model.set_params(
            **paid(setting.candidates[winner.index]),
            epsilon=epsilon,
            delta=self.delta,
            random_state=self.random_state,
        )
        model._publish(winner.solution.coef, winner.solution.intercept, setting.labels)
        model.n_iter_ = winner.n_iter
        if winner.solution.coef_noise is not None:
            model.coef_noise_ = winner.solution.coef_noise
        model.plan_, model.privacy_ = plan, plan.guarantee
        return model

    def _publish(self, best: Any, winner: Winner, design: Design, plan: Plan) -> None:
        points = [dict(point) for point in design.setting.candidates]
        if is_pipeline(best):
            points = [outward(point, best.steps[-1][0]) for point in points]
        point = points[winner.index]
        own = ("design", "scoring", "share", "weights", "chance", "split")
        best.search_ = {
            "estimator": clone(self.estimator),
            "candidates": points,
            **{name: getattr(self, name) for name in own},
        }
        self.best_estimator_, self.best_params_, self.best_index_ = best, point, winner.index
        self.plan_, self.privacy_ = plan, plan.guarantee
        n_samples = self._model._domain.n_samples
        if winner.score is not None and n_samples is not None:
            self.best_score_ = min(max(0.5 + winner.score * PARTS / n_samples, 0.0), 1.0)

    # ---- the winner speaks ---------------------------------------------------------------------

    @_has("predict")
    def predict(self, X: Any) -> np.ndarray:
        """Predictions of `best_estimator_`."""
        return np.asarray(self._best.predict(X))

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of `best_estimator_`."""
        return np.asarray(self._best.predict_proba(X))

    @_has("predict_log_proba")
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        return np.asarray(self._best.predict_log_proba(X))

    @_has("decision_function")
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


def _weights(weights: Any, k: int) -> np.ndarray:
    if weights is None:
        return np.full(k, 1.0 / k)
    try:
        chances = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        chances = np.empty(0)
    if chances.shape != (k,) or not (np.all(chances > 0) and np.isfinite(chances.sum())):
        raise ParameterError("weights must hold one positive number for every candidate.")
    return np.asarray(chances / chances.sum())


def _facts(estimator: Any, adjacency: str) -> tuple[str, ...]:
    n_samples = estimator.domain.n_samples
    if n_samples is not None:
        return (f"n_samples={n_samples} is public",)
    if adjacency == "replace-one":
        return (f"the number of {estimator.domain.unit}s is public (replace-one)",)
    return ()

"""`DPPipeline`: preparation and fit as one private step: one plan, one reservation, one model.

    plan       phases of the preparation, then those of the model, with shares of one mu^2; made from public facts
    fit        check -> plan -> read -> reserve -> learn and map -> fit -> commit
    predict    map -> predict

The bounds of the prepared rows come from the preparation, so the domain of the model states what remains: the target,
the number of rows, what is protected. The model's own epsilon is what its share of the budget is worth.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import Bunch, TransformerTags
from sklearn.utils.metaestimators import _BaseComposition, available_if
from sklearn.utils.validation import check_is_fitted

from dpsparse._checks import check_terms
from dpsparse.accounting import (
    REST,
    Budget,
    Exponential,
    Guarantee,
    ObjectivePerturbation,
    Phase,
    Plan,
)
from dpsparse.accounting.events import leaves
from dpsparse.accounting.guarantee import PREPARED, RAW
from dpsparse.domain import Domain
from dpsparse.exceptions import DPSparseError, ParameterError
from dpsparse.methods.base import BaseDPLinearModel, Settings
from dpsparse.methods.schema import (
    check_lengths,
    refuse_weights,
    warn_if_left_in_rows,
)
from dpsparse.preprocessing._step import (
    SOURCE,
    Step,
    Want,
    price_wants,
    refuse_own_price,
    warn_weak,
)
from dpsparse.preprocessing._tables import Header, Table
from dpsparse.random import is_seeded
from dpsparse.release import Releases, private_run
from dpsparse.rows import RawRows, Rows

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger


def _model_has(name: str) -> Any:
    return lambda self: hasattr(self.steps[-1][1], name)


@dataclass(frozen=True, eq=False, repr=False)
class RawTable:
    """A raw table after its checks: private rows, the same without entries, and what is public."""

    raw: RawRows
    blank: Rows
    header: Header
    labels: np.ndarray | None


@dataclass(eq=False, repr=False)
class DPPipeline(_BaseComposition):  # type: ignore[misc]
    """Private preparation and a private model for one (epsilon, delta).

    **When to use.** For a raw table or for texts: one guarantee then covers preparation and fit.

    Parameters
    ----------
    steps : list of two pairs (name, step)
        A step of `dpsparse.preprocessing`, and an estimator of dpsparse. Its domain states the target, and may state
        `n_samples` and ``unit="person"``; bounds of features come from the preparation. Its epsilon, delta, adjacency,
        ledger and random_state are those of the pipeline.
    epsilon : float, default=1.0
        Privacy loss of everything together, in natural log odds; ``math.inf`` learns without noise.
    delta : float, default=1e-6
        Probability that the guarantee fails.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Which tables are neighbours: one row (or person) more or less, or one exchanged.
    ledger : Ledger or None, default=None
        Account that pays, once, before any noise is drawn. None keeps no account.
    random_state : int or None, default=None
        None draws secure noise. An int repeats the noise, for experiments; the result is then not private.

    Attributes
    ----------
    steps_ : list of (name, fitted step)
    model_ : the fitted estimator
    plan_, privacy_
        Price and guarantee of everything. Those of `model_` are for the fit alone, of the prepared table.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> from dpsparse.preprocessing import DPPipeline, DPStandardizer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(2000.0, 5.0, (5_000, 2))
    >>> y = (X[:, 0] > 2000.0).astype(int)
    >>> pipe = DPPipeline([("scale", DPStandardizer()), ("model", DPGradientClassifier(Domain(classes=[0, 1])))])
    >>> bool(pipe.fit(X, y).score(X, y) > 0.8)
    True
    """

    steps: list[tuple[str, Any]]
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    adjacency: str = "add-remove"
    ledger: Ledger | None = None
    random_state: int | None = None
    steps_: list[tuple[str, Step]] = field(init=False)
    model_: BaseDPLinearModel = field(init=False)
    plan_: Plan = field(init=False)
    privacy_: Guarantee = field(init=False)
    n_features_in_: int = field(init=False)
    feature_names_in_: np.ndarray = field(init=False)
    about_: dict[str, str] = field(init=False)
    search_: dict[str, Any] = field(init=False)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters, those of the steps as step__parameter."""
        return dict(self._get_params("steps", deep=deep))

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the pipeline or, as step__parameter, of its steps."""
        self._set_params("steps", **params)
        return self

    # ---- steps by name and number, as in scikit-learn's Pipeline -----------------------------------

    @property
    def _steps_to_show(self) -> list[tuple[str, Any]]:
        """The fitted steps and model once there are some."""
        return (
            [*self.steps_, (self.steps[-1][0], self.model_)]
            if hasattr(self, "model_")
            else list(self.steps)
        )

    @property
    def named_steps(self) -> Bunch:
        """Steps by name: ``pipe.named_steps.model``."""
        return Bunch(**dict(self._steps_to_show))

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, key: Any) -> Any:
        """``pipe["model"]``, ``pipe[-1]``; a slice is a plain pipeline of scikit-learn with these steps."""
        shown = self._steps_to_show
        if isinstance(key, slice):
            from sklearn.pipeline import Pipeline

            return Pipeline(shown[key])
        return dict(shown)[key] if isinstance(key, str) else shown[key][1]

    # ---- parameters -----------------------------------------------------------------------------

    @property
    def _preparation(self) -> Step:
        """The step before the model, told the number of rows where the domain declares it."""
        step: Step = clone(self.steps[0][1])
        if "n_samples" in step.get_params(deep=False) and step.n_samples is None:
            step.set_params(n_samples=self._domain.n_samples)
        return step

    @property
    def _domain(self) -> Domain:
        domain = self.steps[-1][1].domain
        assert isinstance(domain, Domain)  # _check_parameters asked the model
        return domain

    def _labels(self, y: Any = None) -> np.ndarray | None:
        return self.steps[-1][1]._labels(y)  # type: ignore[no-any-return]

    def _check_parameters(self) -> None:
        """Refuse bad parameters, those of steps and model included; nothing was spent."""
        steps = self.steps
        sound = isinstance(steps, (list, tuple)) and len(steps) == 2
        sound = sound and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in steps)
        if not sound or not all(isinstance(name, str) for name, _ in steps):
            raise ParameterError(
                "steps must be two pairs (name, step): a preparation and an estimator of dpsparse; a DPTablePreparer "
                "prepares columns of every kind."
            )
        self._validate_names([name for name, _ in steps])
        name, step = steps[0]
        if not isinstance(step, Step):
            raise ParameterError(
                f"Step {name!r} ({type(step).__name__}) is not of dpsparse.preprocessing: what it would learn from "
                "rows nobody pays for. Use DPStandardizer, DPCategoryEncoder, DPVectorizer, DPTablePreparer, or "
                "declared facts (PublicScaler, PublicEncoder, HashingEncoder)."
            )
        step._check()
        refuse_own_price(name, step)
        model = steps[-1][1]
        if not isinstance(model, BaseDPLinearModel):
            raise ParameterError(
                f"The last step must be an estimator of dpsparse, got {type(model).__name__}."
            )
        if model.ledger is not None:
            raise ParameterError(
                "The model must have no ledger; DPPipeline(ledger=...) pays for all steps."
            )
        if model.random_state is not None:
            raise ParameterError("random_state belongs to the pipeline, not to the model.")
        if model._is_published:
            raise ParameterError("A pipeline needs a model that is proven private.")
        check_terms(self.epsilon, self.delta, self.adjacency, self.ledger)
        is_seeded(self.random_state)
        self._model(1.0, 1.0)._check_parameters()

    def _model(self, epsilon: float, norm: float) -> BaseDPLinearModel:
        """The estimator with the pipeline's terms, a price, and the bounds of prepared rows."""
        model: BaseDPLinearModel = clone(self.steps[-1][1])
        domain = model.domain
        if isinstance(domain, Domain):
            norm = min(norm, domain.row_norm or norm)
            # Facts about raw columns are for the steps; the model sees prepared ones.
            domain = replace(
                domain, feature_bound=1.0, row_norm=norm, bounds=None, categories=None, fill=None
            )
        model.set_params(domain=domain, epsilon=epsilon, delta=self.delta, adjacency=self.adjacency)
        return model

    # ---- the price ------------------------------------------------------------------------------

    def plan(self, n_columns: int | None = None) -> Plan[Plan[Settings]]:
        """What `fit` on a table of `n_columns` columns will spend and do, without any data.

        A `DPTablePreparer` knows its columns, unless it has a role for the `rest`; a `DPVectorizer` has one.
        """
        self._check_parameters()
        if n_columns is None and self.steps[0][1]._is_open:
            raise ParameterError(
                "The preparation has a role for columns that nobody named: state how many columns the table has "
                "without those that are dropped, plan(n_columns=12)."
            )
        return self._priced(1 if n_columns is None else n_columns, self._labels())

    def _priced(self, n_columns: int, labels: np.ndarray | None) -> Plan[Plan[Settings]]:
        plan = self._make_plan(n_columns, labels)
        return plan.seeded() if is_seeded(self.random_state) else plan

    def _planned(self, n_columns: int) -> tuple[list[Want], int, float]:
        """What the preparation wants, and width and length of the rows that reach the model."""
        step = self._preparation
        return step._wants(n_columns), step._width(n_columns), step._norm(n_columns)

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Plan[Settings]]:
        wants, width, norm = self._planned(n_features)
        budget = self._budget(wants, float(self.epsilon))

        def plan_model(epsilon: float) -> Plan[Settings]:
            return self._model(epsilon, norm)._priced(width, labels)

        budget.nested("model", REST, lambda epsilon: plan_model(epsilon).phases)
        fit = plan_model(budget.price("model"))
        return Plan(
            method="DPPipeline",
            phases=budget.phases(),
            epsilon=float(self.epsilon),
            delta=self.delta,
            adjacency=self.adjacency,
            source=f"{SOURCE}, {fit.source}" if wants else fit.source,
            assumptions=(*self._declarations(), *fit.assumptions),
            unit=fit.unit,
            n_units=fit.n_units,
            table=RAW,
            max_rows=fit.max_rows,
            parameters={
                "model": fit.method,
                "mu": budget.mu,
                **{f"share of {name}": share for name, share in budget.shares.items()},
            },
            settings=fit,
        )

    def _budget(self, wants: list[Want], epsilon: float) -> Budget:
        """The lines of the preparation; that of the model, or of a search, is added to it."""
        return price_wants(f"{self.steps[0][0]}: ", wants, epsilon, self.delta)

    def _declarations(self) -> tuple[str, ...]:
        """What the guarantee rests on because it was declared to the preparation."""
        name, step = self.steps[0]
        told = f"what was declared to step {name!r} about columns is public"
        return (told,) if step._declares else ()

    # ---- fitting --------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, groups: Any = None, **refused: Any) -> Self:
        """Prepare and fit, both private.

        Parameters
        ----------
        X : raw rows, as the preparation takes them
        y : array of shape (n_samples,)
        groups : array of shape (n_samples,), optional
            The person of every row, with ``Domain(unit="person")``.
        """
        refuse_weights(refused)
        self._check_parameters()
        read = self._inspect(X, y, groups)
        plan = self._priced(len(read.header.names), read.labels)

        def prepare_and_fit(releases: Releases) -> None:
            prepared = self._prepare(read, releases)
            self._publish(self._fit_model(prepared, plan, releases, read.labels), plan)

        private_run(
            plan, read.blank, prepare_and_fit, ledger=self.ledger, random_state=self.random_state
        )
        warn_weak(self.steps_[0][1].weak_)
        return self

    def _publish(self, model: BaseDPLinearModel, plan: Plan) -> None:
        self.model_ = model
        self.plan_, self.privacy_ = plan.without_settings(), plan.guarantee

    def _inspect(self, X: Any, y: Any, groups: Any) -> RawTable:
        """A raw table, read; everything it can be refused by is refused here."""
        self.steps[-1][1]._check_groups(groups)
        step = self._preparation
        cells = step._read(X)
        header = cells.header
        step._note(header)
        names = header.names if header.named else None
        warn_if_left_in_rows(names, y, groups)
        blank, y, labels = self._check_targets(cells, y, groups)
        return RawTable(RawRows.of(cells, y, groups), blank, header, labels)

    def _prepare(self, read: RawTable, releases: Releases) -> RawRows:
        """The releases of the preparation, paid; returns the prepared rows."""
        raw, header, step = releases.admit(read.raw), read.header, self._preparation
        step._note(header)
        step._learn(raw, releases, f"{self.steps[0][0]}: ")
        self.steps_ = [(self.steps[0][0], step)]
        self.n_features_in_ = len(header.names)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if hasattr(step, "feature_names_in_"):
            self.feature_names_in_ = step.feature_names_in_
        return raw.map(step._map)

    def _check_targets(
        self, read: Table, y: Any, groups: Any
    ) -> tuple[Rows, Any, np.ndarray | None]:
        """Refuse targets and persons that the fit would refuse, before anything is spent."""
        blank = sp.csr_array((read.n_rows, 1))
        model = self._model(1.0, 1.0)
        y, labels = model._read_targets(y)
        check_lengths(blank, y)
        return Rows.clip(blank, y, model._domain, labels=labels, groups=groups), y, labels

    def _fit_model(
        self,
        prepared: RawRows,
        plan: Plan[Plan[Settings]],
        releases: Releases,
        labels: np.ndarray | None,
    ) -> BaseDPLinearModel:
        """The model on prepared rows. Fewer columns than planned for (of a vocabulary, say) are a released fact: the
        solver is told of them, and noise and price stay what was reserved. A model that cannot do with so few is
        given empty columns for the rest: the fit is paid."""
        reserved = plan.settings
        _, planned, norm = self._planned(self.n_features_in_)
        model, names = self._model(reserved.epsilon, norm), list(self.steps_[0][1]._names_out())
        actual = replan_for_width(model, reserved, planned, len(names), labels)
        if actual is None:
            actual, empty = reserved, planned - len(names)
            prepared = prepared.map(partial(add_empty_columns, empty))
            names += ["(none)"] * empty
        actual = replace(actual, table=PREPARED)
        model.n_features_in_ = len(names)
        if is_seeded(self.random_state):
            actual = actual.seeded()
        clipped = prepared.clipped(model._domain, labels, len(names))
        model._carry_out(clipped, actual, releases, labels)
        model.feature_names_ = tuple(names)
        return model

    # ---- what a fitted pipeline can do ----------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """The rows as the model sees them."""
        check_is_fitted(self, "model_")
        rows = self.steps_[0][1]._applied(X)
        empty = self.model_.n_features_in_ - int(rows.shape[1])
        return rows if empty == 0 else add_empty_columns(empty, rows)

    def fit_transform(self, X: Any, y: Any, *, groups: Any = None) -> Any:
        """Fit, then the same rows as the model sees them."""
        return self.fit(X, y, groups=groups).transform(X)

    def predict(self, X: Any) -> np.ndarray:
        """Predictions from raw rows."""
        rows = self.transform(X)
        return self.model_.predict(rows)

    @available_if(_model_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, from raw rows."""
        rows = self.transform(X)
        return self.model_.predict_proba(rows)  # type: ignore[no-any-return]

    @available_if(_model_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Margins, from raw rows."""
        rows = self.transform(X)
        return self.model_.decision_function(rows)  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any) -> float:
        """Accuracy, or R^2; exact, not private if the rows are."""
        rows = self.transform(X)
        return self.model_.score(rows, y)  # type: ignore[no-any-return]

    def plot_weights(self, top: int = 15) -> Any:
        """A matplotlib figure of the largest weights of the prepared columns, with bars of two standard deviations of
        their noise."""
        from dpsparse.report.weights import plot_weights

        check_is_fitted(self, "model_")
        return plot_weights(self, top)

    def weights_frame(self) -> Any:
        """The weights of the prepared columns that are not zero as a pandas data frame: weight, noise, and whether it
        stands out of it."""
        from dpsparse.report.weights import weights_frame

        check_is_fitted(self, "model_")
        return weights_frame(self)

    @property
    def classes_(self) -> np.ndarray:
        return self.model_.classes_

    @property
    def domain(self) -> Any:
        """What was declared about the target."""
        return self.steps[-1][1].domain

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the prepared columns, in the order of the weights."""
        check_is_fitted(self, "model_")
        return np.array(self.model_.feature_names_, object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        model = self.steps[-1][1].__sklearn_tags__()
        tags.estimator_type = model.estimator_type
        tags.classifier_tags, tags.regressor_tags = model.classifier_tags, model.regressor_tags
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        tags.target_tags.required = True
        tags.non_deterministic = True
        tags.input_tags = self.steps[0][1].__sklearn_tags__().input_tags
        return tags


# ---- fewer columns than were planned for -----------------------------------------------------------
# How many columns preparation leaves (of a vocabulary, say) is a released fact, known after the plan was paid. The
# noise of a phase does not depend on it. What a solver derives from the width (steps, cutoffs) does, and is planned
# again. The method, the releases before it and its ridge are those of the planned width, because they were paid for.


def replan_for_width(
    model: BaseDPLinearModel,
    reserved: Plan[Settings],
    planned_width: int,
    width: int,
    labels: np.ndarray | None,
) -> Plan[Settings] | None:
    """The plan for `width` columns with the noise that was reserved, or None if the model has no such plan.

    Fewer columns may call for more steps of Frank-Wolfe; then those that were paid for have to do.
    """
    paid = {phase.name: phase for phase in reserved.phases}
    narrower = clone(model)
    narrower._planned_width = planned_width
    plan = _plan_of(narrower, width, labels)
    if plan is not None and (steps := _most_steps(paid, plan)) is not None:
        plan = _plan_of(narrower.set_params(n_iter=steps), width, labels)
    if plan is None or not all(_pays(paid.get(phase.name), phase) for phase in plan.phases):
        return None
    return replace(plan, phases=tuple(paid[phase.name] for phase in plan.phases))


def _plan_of(
    model: BaseDPLinearModel, width: int, labels: np.ndarray | None
) -> Plan[Settings] | None:
    try:
        return model._priced(width, labels)
    except DPSparseError:
        return None


def _most_steps(paid: dict[str, Phase], plan: Plan) -> int | None:
    """The steps that a reserved phase pays for where the plan wants more; None where it wants none too many."""
    short = [
        _picks(paid[phase.name])
        for phase in plan.phases
        if phase.name in paid and 0 < _picks(paid[phase.name]) < _picks(phase)
    ]
    return min(short, default=None)


def _picks(phase: Phase) -> int:
    """Draws of the exponential mechanism."""
    counts = leaves(phase.event).items()
    return sum(count for leaf, count in counts if isinstance(leaf, Exponential))


def _pays(reserved: Phase | None, phase: Phase) -> bool:
    """Whether the noise of a reserved phase serves this one: as many draws, and a tilt serves no steeper and no flatter
    objective."""
    if reserved is None or _picks(reserved) < _picks(phase):
        return False
    for have, need in zip(_tilts(reserved), _tilts(phase), strict=False):
        if have.gradient_bound < need.gradient_bound or have.curvature < need.curvature:
            return False
        if have.ridge > need.ridge:
            return False
    return len(_tilts(reserved)) == len(_tilts(phase))


def _tilts(phase: Phase) -> list[ObjectivePerturbation]:
    return [leaf for leaf in leaves(phase.event) if isinstance(leaf, ObjectivePerturbation)]


def add_empty_columns(count: int, rows: Any) -> sp.csr_array:
    """The same rows with `count` more columns, all zero."""
    more = sp.csr_array((rows.shape[0], count))
    return sp.csr_array(sp.hstack([sp.csr_array(rows), more], format="csr"))

"""The order of every fit; the only place that knows scikit-learn.

validate -> clip -> plan -> reserve -> draw -> solve -> publish. No step goes back: everything that can be
refused is refused before the ledger is charged, and the ledger is charged before noise is drawn.
A family of methods adds `_make_plan` (public numbers only); the settings of its plan know their solver.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin

from dpsparse._cells import read_labels, read_numbers
from dpsparse._checks import check_terms, check_width, is_whole, safe_repr
from dpsparse.accounting import RoundedGaussian, calibrate
from dpsparse.accounting.budget import Budget
from dpsparse.accounting.guarantee import PERSON, Phase, Plan
from dpsparse.domain import OBSERVED, Domain
from dpsparse.domain.clipping import refuse_malformed, within_limits
from dpsparse.exceptions import DomainError, ParameterError
from dpsparse.methods.fitted import FittedLinearModel, lazily
from dpsparse.methods.schema import (
    accuracy,
    check_lengths,
    check_observed,
    checked_column,
    checked_data,
    checked_score,
    column_names,
    is_dask,
    refuse_spark,
    refuse_weights,
    warn_if_left_in_rows,
)
from dpsparse.progress import FitProgress, tell
from dpsparse.random import is_seeded
from dpsparse.release import Releases, private_run
from dpsparse.rows import Rows
from dpsparse.rows.ridge import MOST_COLUMNS
from dpsparse.rows.sources import Source
from dpsparse.sensitivity import signed_sum

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger
    from dpsparse.methods.frank_wolfe.run import History


@dataclass(frozen=True)
class Facts:
    """What is known of a fit before any row is read."""

    domain: Domain
    n_features: int
    planned_features: int  # by which looks are chosen; fewer columns change no price
    n_classes: int  # 0 where targets are numbers
    epsilon: float
    delta: float
    adjacency: str

    @property
    def of_numbers(self) -> bool:
        return self.n_classes == 0

    @property
    def n_outputs(self) -> int:
        """Weight vectors: one for numbers and two classes, else one per class."""
        return 1 if self.n_classes <= 2 else self.n_classes

    @property
    def loss(self) -> str:
        """The loss of a method that takes slopes at any weights, and so needs them bounded."""
        if self.of_numbers:
            return "huber"
        return "logistic" if self.n_outputs == 1 else "softmax"

    @property
    def target_bound(self) -> float:
        """The unit of targets and weights; one for classes."""
        return float(self.domain.target_bound or 1.0) if self.of_numbers else 1.0

    @property
    def fits_in_memory(self) -> bool:
        """Whether declared rows may be given an entry in every column."""
        n, d = self.domain.n_samples, self.planned_features
        return n is not None and d < MOST_COLUMNS and n * d <= 10**8

    @property
    def is_table(self) -> bool:
        """Whether rows may be centred, and are more than the columns."""
        n, d = self.domain.n_samples, self.planned_features
        if n is None:
            return d <= 100  # any number of rows may come
        return d <= n and self.fits_in_memory

    @property
    def effective_rows(self) -> float:
        """N of the declared rows; infinite without noise."""
        n = int(self.domain.require("n_samples", "The number of effective rows"))
        return effective_rows(n, self.epsilon, self.delta, self.adjacency)


def effective_rows(n_samples: int, epsilon: float, delta: float, adjacency: str) -> float:
    """N = n mu: the mean of numbers in [-1, 1] is known to noise of sd 1/N. Infinite without noise.

    Every rule about small tables is a rule about N.
    """
    if math.isinf(epsilon):
        return math.inf
    mu = calibrate(lambda m: RoundedGaussian(1.0 / m, 1.0, 1), epsilon, delta)
    return n_samples * mu / signed_sum(1.0, adjacency).value


class Solution(NamedTuple):
    """Weights (outputs, features), intercepts (outputs,) and the steps taken. The others are for methods that can
    tell: the sd of the noise in the weight of each feature, the features whose scale noise hides although their weight
    is larger than its noise, and the released picks."""

    coef: np.ndarray
    intercept: np.ndarray
    n_iter: int
    coef_noise: np.ndarray | None = None
    drowned: np.ndarray | None = None
    history: History | None = None


class Settings(Protocol):
    """The public constants of a fit, and the solver that they are for."""

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        """Fit `rows`; everything that leaves them goes through `releases`."""
        ...


S = TypeVar("S", bound=Settings)


@dataclass(eq=False, repr=False)
class BaseDPLinearModel(FittedLinearModel):
    """Common constructor parameters (fields: scikit-learn reads the signature they make), the order of a fit,
    and what a fitted linear model can do."""

    domain: Domain | None = None
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    adjacency: str = "add-remove"
    ledger: Ledger | None = None
    random_state: int | None = None
    verbose: int = 0

    _is_published: ClassVar[bool] = False  # a paper as printed (dpsparse.published)
    _labels_are_numbers: ClassVar[bool] = False

    # ---- what a family implements -------------------------------------------------------------

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        """The price of a fit from hyper-parameters and public facts; never sees data."""
        raise TypeError(f"{type(self).__name__} does not say how to plan a fit.")

    def _check_parameters(self) -> None:
        """Refuse bad hyper-parameters; families extend this for their own."""
        name = type(self).__name__
        if not isinstance(self.domain, Domain):
            fact = "classes=[0, 1]" if isinstance(self, ClassifierMixin) else "target_range=(0, 10)"
            raise ParameterError(
                f"domain is required, and comes first: {name}(Domain({fact}), epsilon=1.0) states the public bounds "
                "of the data. Domain(**facts) takes them from a dictionary, Domain.load(path) from a file."
            )
        check_terms(self.epsilon, self.delta, self.adjacency, self.ledger)
        is_seeded(self.random_state)  # refuses what cannot be a seed
        if not is_whole(self.verbose):
            raise ParameterError(
                f"verbose must be a whole number, got {safe_repr(self.verbose)}; 1 tells every phase, -1 is silent."
            )
        if self._domain.unit == "person" and self._domain.rows_per_unit != 1:
            refusal = self._why_one_row()
            if refusal:
                told = f"{name} and persons with several rows: {refusal}"
                kept = "which keeps one row of every person at random."
                raise ParameterError(
                    f"{told} Declare Domain(rows_per_unit=1), {kept}",
                    in_options=f"{told} State --rows-per-unit 1, {kept}",
                )

    def _why_one_row(self) -> str:
        """Why there is no proof for several rows of a person, or an empty text where it has."""
        return "several rows of a person are not bounded together here."

    # ---- what plans and solvers of all families share ------------------------------------------

    def _planned(
        self,
        phases: Iterable[Phase],
        settings: S,
        *,
        source: str,
        parameters: Mapping[str, object],
        max_rows: int | None = None,
    ) -> Plan[S]:
        """A plan of these phases under the terms of this estimator."""
        return Plan(
            method=type(self).__name__,
            phases=tuple(phases),
            epsilon=float(self.epsilon),
            delta=self.delta,
            adjacency=self.adjacency,
            source=source,
            assumptions=self._assumptions(),
            parameters=parameters,
            max_rows=max_rows,
            settings=settings,
        )

    def _budgeted(
        self,
        settings: S,
        price: Callable[[S, Budget], None],
        shown: Mapping[str, object],
        *,
        source: str,
    ) -> Plan[S]:
        """A plan whose releases `price` adds to one budget."""
        budget = Budget(self.epsilon, self.delta)
        price(settings, budget)
        shares = {f"{name}_share": share for name, share in budget.shares.items()}
        parameters = {**shown, "mu": budget.mu, **shares}
        return self._planned(budget.phases(), settings, source=source, parameters=parameters)

    def _facts(self, n_features: int, labels: np.ndarray | None) -> Facts:
        """What a method is chosen and priced from."""
        return Facts(
            domain=self._domain,
            n_features=n_features,
            planned_features=self._planned_width or n_features,
            n_classes=0 if labels is None else max(2, len(labels)),
            epsilon=float(self.epsilon),
            delta=self.delta,
            adjacency=self.adjacency,
        )

    def _assumptions(self) -> tuple[str, ...]:
        """What a guarantee takes for public: the number of rows, where it is declared or the adjacency shows it."""
        if self._domain.n_samples is not None:
            return (f"n_samples={self._domain.n_samples} is public",)
        if self.adjacency == "replace-one":
            return (f"the number of {self._domain.unit}s is public (replace-one)",)
        return ()

    # ---- the order of a fit -------------------------------------------------------------------

    def plan(self, n_features: int) -> Plan[Settings]:
        """What `fit` on `n_features` columns will spend and do, without any data.

        Parameters
        ----------
        n_features : int
            Number of columns of the data to come.

        Returns
        -------
        Plan
            Phases with their events, the guarantee, and the public constants of the solver.
        """
        check_width(n_features)
        self._check_parameters()
        return self._priced(int(n_features), self._labels(None))

    def _priced(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        plan = replace(self._make_plan(n_features, labels), n_units=self._domain.n_samples)
        if self._domain.unit == "person":
            plan = replace(plan, unit=PERSON, assumptions=plan.assumptions + self._person_facts())
        return plan.seeded() if is_seeded(self.random_state) else plan

    def _person_facts(self) -> tuple[str, ...]:
        """What a guarantee for persons rests on, besides what it says for rows."""
        m = self._domain.rows_per_unit
        dropped = () if m is None else (f"rows of a person beyond {m} are dropped at random",)
        return ("groups names the person of every row (docs/proofs/persons.md)", *dropped)

    @property
    def _weighted(self) -> bool:
        """Whether rows may have weights: a declared fact, and a method that takes them."""
        return False

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **refused: Any) -> Self:
        """Fit a private model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Private rows; clipped to `domain` before anything else happens. Also rows larger than memory
            (`Rows.from_svmlight` and others) or on a cluster (dask arrays, `Rows.from_dask`, `Rows.from_spark`), with
            the same result.
        y : array of shape (n_samples,)
            Private targets; left out where X is a source of rows, which has them.
        groups : array of shape (n_samples,), optional
            The person of every row, by number or by name, with ``Domain(unit="person")``; with rows on a cluster also a
            Dask collection or the name of a Spark column. Pipelines and searches pass it on after
            ``set_fit_request(groups=True)``.

        Returns
        -------
        self
        """
        refuse_weights(refused)
        return self._fit(X, y, groups)

    def _fit(self, X: Any, y: Any, groups: Any, weights: Any = None) -> Self:
        self._check_parameters()
        self._check_groups(groups)
        if weights is not None:
            self._domain.require("weight_bound", "fit with sample_weight")
        refuse_spark(X)
        limits = None
        if is_dask(X):
            X, y = Rows.from_dask(X, y), None
        if isinstance(X, Source):
            if self._domain.bounds is not None:
                raise DomainError(
                    "Domain.bounds by column is for tables in memory; elsewhere use Domain(feature_bound=...).",
                    in_options="--bounds is for tables in memory; state --feature-bound, or leave out --memory.",
                )
            labels = self._source_labels(X, y)
            plan = self._priced(X.n_features, labels)
            rows = X.clipped(self._clipping(X.n_features), labels, groups, weights)
        else:
            X, y, labels, limits = self._read_table(X, y, self)
            self._check_scales(getattr(self, "feature_names_in_", None))
            plan = self._priced(X.shape[1], labels)
            clipping = self._clipping(X.shape[1])
            rows = Rows.clip(X, y, clipping, labels=labels, groups=groups, weights=weights)

        def fit_and_publish(releases: Releases) -> None:
            self._carry_out(rows, plan, releases, labels)
            if limits is not None:  # weights and their noise for the columns as they are
                self._rescale(1.0 / np.abs(limits).max(axis=1))

        private_run(plan, rows, fit_and_publish, ledger=self.ledger, random_state=self.random_state)
        return self

    def _read_table(
        self, X: Any, y: Any, owner: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray | None]:
        """A checked table in memory, clipped to the declared bounds of its columns and divided by them; its targets as
        codes or numbers, the labels, and these bounds.
        `owner` is what is fitted (this model, or a search for it) and keeps the names of columns."""
        refuse_malformed(X)
        warn_if_left_in_rows(column_names(X), y)
        y, labels = self._read_targets(y)
        X = checked_data(owner, X, ensure_all_finite=False)
        check_lengths(X, y)
        names = getattr(owner, "feature_names_in_", None)
        limits = self._domain.column_limits(names, X.shape[1])
        return within_limits(X, limits), y, labels, limits

    def _bounds_rows(self, n_features: int) -> bool:
        """Whether the method itself brings rows to a bounded length."""
        return False

    def _clipping(self, n_features: int) -> Domain:
        """The bounds that rows are clipped to: an entry bound also where none is declared, if the method needs one."""
        if self._bounds_rows(n_features):
            return self._domain
        return replace(self._domain, feature_bound=self._domain.entry_bound())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.non_deterministic = True  # secure noise differs from fit to fit
        return tags

    def _check_scales(self, names: Any) -> None:
        """Ask for the scales of named columns, before anything is spent, where entries would be clipped to 1."""
        domain = self._domain
        stated = (domain.feature_bound, domain.row_norm, domain.bounds)
        known = names is None or any(fact is not None for fact in stated)
        if known or self._bounds_rows(len(names)):
            return
        shown = ", ".join(n if n.isidentifier() else "(unreadable)" for n in list(names)[:50])
        raise DomainError(
            f"{type(self).__name__} needs the public scale of these columns: {shown}. Declare Domain(bounds={{...}}) "
            "with (lowest, highest) for each, Domain(feature_bound=1.0) if all entries lie in [-1, 1], or have "
            'scales learnt privately: DPPipeline([("table", DPTablePreparer(rest="auto")), ...]). Nothing was spent.'
        )

    def _rescale(self, factors: np.ndarray) -> None:
        self.coef_ = self.coef_ * factors
        if hasattr(self, "coef_noise_"):
            self.coef_noise_ = self.coef_noise_ * factors

    def _carry_out(
        self, rows: Rows, plan: Plan[Settings], releases: Releases, labels: np.ndarray | None
    ) -> None:
        """What was planned and paid: solve, and publish what was released."""
        name = type(self).__name__
        with FitProgress(name, self.verbose) as releases.progress:
            solution = plan.settings.solve(releases.capped(rows), releases)
        self._keep(solution, plan, labels)
        if self.verbose > 0:
            tell(f"{name}: kept {self.n_nonzero_:,} of {solution.coef.size:,} weights")

    def _keep(self, solution: Solution, plan: Plan, labels: np.ndarray | None) -> None:
        """Everything that belongs to a fitted model."""
        self._publish(solution.coef, solution.intercept, labels)
        self.n_iter_ = solution.n_iter
        for name in ("coef_noise", "drowned", "history"):
            self.__dict__.pop(f"{name}_", None)  # of an earlier fit by another method
            if getattr(solution, name) is not None:
                self.__dict__[f"{name}_"] = getattr(solution, name)
        self.plan_, self.privacy_ = plan, plan.guarantee

    def _source_labels(self, source: Source, y: Any) -> np.ndarray | None:
        """The declared labels; what scikit-learn's checks would note of a table is noted of its source."""
        if y is not None:
            raise ParameterError("A source of rows has its own targets; call fit(source).")
        self.n_features_in_ = source.n_features
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if source.feature_names is not None:
            self.feature_names_in_ = np.asarray(source.feature_names, dtype=object)
        return self._labels(None)

    def _check_groups(self, groups: Any) -> None:
        """Persons are named if, and only if, they are what is protected."""
        if self._domain.unit == "person" and groups is None:
            raise ParameterError(
                "The domain protects persons; name the person of every row: fit(X, y, groups=ids). "
                "In a Pipeline or search of scikit-learn: set_fit_request(groups=True); on the command line: --person."
            )
        if self._domain.unit == "row" and groups is not None:
            raise ParameterError(
                "groups names persons, and the domain protects single rows; declare Domain(unit='person')."
            )

    @property
    def _domain(self) -> Domain:
        assert self.domain is not None  # _check_parameters refused None
        return self.domain

    def _labels(self, y: np.ndarray | None) -> np.ndarray | None:
        return None

    def _read_targets(self, y: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets in the declared type, and the labels where they are classes. Each cell is read by itself."""
        return read_numbers(checked_column(self, y)), None

    def _publish(self, coef: np.ndarray, intercept: np.ndarray, labels: np.ndarray | None) -> None:
        self.coef_ = coef
        self.intercept_ = intercept


class WeightedFit(BaseDPLinearModel):
    """Methods that are proven for rows with weights."""

    @property
    def _weighted(self) -> bool:
        return self._domain.weight_bound is not None

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        **refused: Any,
    ) -> Self:
        """Fit a private model.

        Parameters
        ----------
        X, y, groups : as in every private model
            Private rows (or a source of rows), their targets, and the person of every row.
        sample_weight : array of shape (n_samples,), optional
            Private weights of the rows, clipped to [0, W] of ``Domain(weight_bound=W)``. A row of weight w counts as
            w/W of a row, so take W no larger than needed. None counts all rows in full. With rows on a cluster: a Dask
            collection cut as X is, or the name of a Spark column.

        Returns
        -------
        self
        """
        refuse_weights(refused)
        return self._fit(X, y, groups, sample_weight)


def hyper_parameters(kind: type[BaseDPLinearModel]) -> tuple[str, ...]:
    """Parameters of a method beyond those that every estimator has (domain, terms, account, seed)."""
    common = {field.name for field in fields(BaseDPLinearModel)}
    return tuple(name for name in kind().get_params(deep=False) if name not in common)


class BaseDPClassifier(ClassifierMixin, BaseDPLinearModel):
    """Classification: labels come from the domain, probabilities from the logistic link."""

    def _labels(self, y: np.ndarray | None) -> np.ndarray | None:
        if y is not None and self._domain.classes == OBSERVED:
            check_observed(y)
        return self._domain.class_labels(y)

    def _read_targets(self, y: Any) -> tuple[np.ndarray, np.ndarray | None]:
        cells = checked_column(self, y)
        labels = self._labels(cells)
        assert labels is not None
        return np.asarray(labels[read_labels(cells, labels)]), labels

    def _publish(self, coef: np.ndarray, intercept: np.ndarray, labels: np.ndarray | None) -> None:
        super()._publish(coef, intercept, labels)
        self.classes_ = np.asarray(labels)

    def decision_function(self, X: Any) -> np.ndarray:
        """Margins x.w + intercept: shape (n,) for two classes, (n, K) for more."""
        if is_dask(X):
            K = len(self.classes_)
            return lazily(self, "decision_function", X, K if K > 2 else None, np.float64)
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def predict(self, X: Any) -> np.ndarray:
        """The most probable label of each row."""
        if is_dask(X):
            return lazily(self, "predict", X, None, self.classes_.dtype)
        margins = self.decision_function(X)
        codes = (margins > 0).astype(np.intp) if margins.ndim == 1 else margins.argmax(axis=1)
        labels: np.ndarray = self.classes_[codes]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of `classes_`."""
        if is_dask(X):
            return lazily(self, "predict_proba", X, len(self.classes_), np.float64)
        margins = self.decision_function(X)
        if margins.ndim == 1:
            positive = expit(margins)
            return np.column_stack([1.0 - positive, positive])
        return np.asarray(softmax(margins, axis=1))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose label is predicted; exact, not private if the rows are."""

        def share(X: Any, y: Any, weights: Any) -> float:
            return accuracy(y, self.predict(X), self.classes_, weights)

        return checked_score(self, share, X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # a few dozen rows cannot be learnt from privately
        return tags


class BaseDPRegressor(RegressorMixin, BaseDPLinearModel):
    """Regression: one weight vector, as scikit-learn's linear models publish it."""

    _labels_are_numbers: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._domain.require("target_bound", type(self).__name__)

    def _publish(self, coef: np.ndarray, intercept: np.ndarray, labels: np.ndarray | None) -> None:
        super()._publish(coef[0], intercept[0] + self._domain.target_middle, labels)

    def densify(self) -> Self:
        super().densify()
        self.coef_ = np.ravel(self.coef_)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets x.w + intercept."""
        if is_dask(X):
            return lazily(self, "predict", X, None, np.float64)
        return self._margins(X).ravel()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions; exact, not private if the rows are."""
        r2 = super().score
        return checked_score(
            self, lambda X, y, weights: r2(X, read_numbers(y), weights), X, y, sample_weight
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

"""DPScreenedLassoClassifier and DPScreenedLassoRegressor: Frank-Wolfe that drops features."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from dpsparse.domain import BoundedData, Domain
from dpsparse.estimators._base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
    check_choice,
    check_count,
    check_positive,
)
from dpsparse.estimators._screening_plan import PublicFacts, proven_prices, published_prices
from dpsparse.estimators.lasso import _default_n_iter
from dpsparse.exceptions import ParameterError, SchemaError
from dpsparse.losses import Loss, get_loss
from dpsparse.privacy import Plan
from dpsparse.published.khanna_lu_raff_2023_screening import published_iterates
from dpsparse.solvers.frank_wolfe import choose_resolution
from dpsparse.solvers.screening import screened_frank_wolfe
from dpsparse.solvers.screening_rules import (
    Budgeted,
    Counts,
    FreeRule,
    PaidRule,
    Safe,
    TopK,
    strong_convexity,
)

if TYPE_CHECKING:
    from dpsparse.privacy.ledger import Ledger

PROVEN_RULES = ("counts", "top-k", "budgeted", "safe")
PUBLISHED_RULES = ("adp", "rnm")


class _ScreenedLasso(BaseDPLinearModel):
    """What the classifier and the regressor share; only the loss differs."""

    radius: float | None
    n_iter: int | None
    rule: str
    n_blocks: int
    level: float
    n_nonzero: int | None
    n_drop: int
    screen_share: float
    fit_intercept: bool
    solver: str

    n_live_: tuple[int, ...]

    _calibrations: ClassVar[tuple[str, ...]] = ("proven", "published")
    _loss: ClassVar[str]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.radius is not None:
            check_positive("radius", self.radius)
            if math.isinf(self.radius):
                raise ParameterError("radius must be finite; it is the size of the L1 ball.")
        for name in ("n_blocks", "n_drop"):
            check_count(name, getattr(self, name))
        for name in ("n_iter", "n_nonzero"):
            check_count(name, getattr(self, name), optional=True)
        if self.n_blocks > self._n_iter:
            raise ParameterError(
                f"n_blocks must be at most n_iter={self._n_iter}, got {self.n_blocks!r}."
            )
        for name in ("level", "screen_share"):
            check_positive(name, getattr(self, name))
            if not getattr(self, name) < 1:
                raise ParameterError(f"{name} must be below 1, got {getattr(self, name)!r}.")
        check_choice("solver", self.solver, ("fast", "reference"))
        published = self.calibration == "published"
        check_choice("rule", self.rule, PUBLISHED_RULES if published else PROVEN_RULES)
        if self.rule == "top-k" and self.n_nonzero is None:
            raise ParameterError("rule='top-k' needs n_nonzero, the number of features to keep.")

    @property
    def _n_iter(self) -> int:
        return int(self.n_iter or _default_n_iter(self._domain.n_samples, self.epsilon))

    @property
    def _radius(self) -> float:
        if self.radius is not None:
            return float(self.radius)
        return self._reach / float(self._domain.require("feature_bound", type(self).__name__))

    @property
    def _reach(self) -> float:
        """Largest margin of the default ball."""
        raise TypeError(f"{type(self).__name__} does not say how large its ball is.")

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        name = type(self).__name__
        if labels is not None and len(labels) > 2:
            raise SchemaError(
                "Only binary classification is supported. The type of the target is multiclass; "
                "use DPLassoClassifier for more than two classes."
            )
        loss, domain, rule = get_loss(self._loss), self._domain, self.rule
        needs_rows = rule in ("safe", "adp", "rnm")
        if needs_rows and not math.isinf(self.epsilon):
            domain.require("n_samples", f"rule={rule!r}")
        facts = PublicFacts(
            radius=self._radius,
            feature_bound=domain.require("feature_bound", name),
            slope_bound=loss.slope_bound(domain, self._radius),
            smoothness=loss.smoothness,
            strong_convexity=strong_convexity(loss, domain, self._radius) if needs_rows else None,
            n_samples=domain.n_samples,
            n_features=n_features + self.fit_intercept,
            adjacency=self.adjacency,
        )
        common: dict[str, Any] = {
            "epsilon": self.epsilon, "delta": self.delta, "rule": rule, "n_iter": self._n_iter,
            "screen_share": self.screen_share,
        }  # fmt: skip
        assumptions = ["the stream of random bits is uniform", "running time is not observed"]
        if self.solver == "reference" or rule not in ("counts", "top-k"):
            assumptions.append("noise in ideal real arithmetic")
        if self.calibration == "published":
            prices = published_prices(facts, loss=self._loss, n_screens=self.n_blocks, **common)
            assumptions.append(
                f"the paper claims epsilon={self.epsilon:g}; epsilon here is recomputed from its noise"
            )
        else:
            prices = proven_prices(facts, n_draws=self.n_blocks * self.n_drop, **common)
        if needs_rows:
            assumptions.append(f"n_samples={domain.n_samples} is public")
        return Plan(
            method=name,
            phases=prices.phases,
            epsilon=prices.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            calibration=self.calibration,
            proven=self.calibration == "proven",
            source="docs/proofs/screening.md",
            assumptions=tuple(assumptions),
            parameters={"n_iter": self._n_iter, "blocks": self._blocks(), **prices.parameters},
        )

    def _blocks(self) -> tuple[int, ...]:
        """n_iter cut into n_blocks parts, the longer ones first."""
        short, longer = divmod(self._n_iter, self.n_blocks)
        return tuple(short + (block < longer) for block in range(self.n_blocks))

    def _make_rule(self, loss: Loss, plan: Plan) -> FreeRule | PaidRule:
        if self.rule == "counts":
            return Counts(self.level)
        if self.rule == "top-k":
            assert self.n_nonzero is not None
            return TopK(self.n_nonzero)
        kappa = plan.parameters["screen_kappa"]
        if self.rule == "budgeted":
            return Budgeted(kappa, self.n_drop, self.level)
        return Safe(
            kappa,
            self.n_drop,
            self.level,
            smoothness=loss.smoothness,
            strong_convexity=strong_convexity(loss, self._domain, self._radius),
            n_samples=self._domain.n_samples or 1,
        )

    def _solve(
        self, data: BoundedData, plan: Plan, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        loss = get_loss(self._loss)
        if self.calibration == "published":
            return self._solve_published(data, loss, plan, rng)
        run = screened_frank_wolfe(
            data,
            loss,
            rng,
            radius=self._radius,
            kappa=plan.parameters["kappa"],
            resolution=choose_resolution(self._domain.n_samples, plan.parameters["eta"]),
            blocks=plan.parameters["blocks"],
            rule=self._make_rule(loss, plan),
            fit_intercept=self.fit_intercept,
            fast=self.solver == "fast",
        )
        self.n_live_ = run.n_live
        return run.weights[None, :-1], run.weights[-1:] * data.domain.feature_bound

    def _solve_published(
        self, data: BoundedData, loss: Loss, plan: Plan, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.fit_intercept:
            data = with_constant_column(data)
        last = None
        for last in published_iterates(  # noqa: B007 - the last iterate is the model
            data.X,
            data.y,
            loss,
            rng,
            radius=self._radius,
            n_iter=self._n_iter,
            vertex_scale=plan.parameters["vertex_scale"],
            rule=self.rule,
            screen_scale=plan.parameters["screen_scale"],
            # 000 screens at the end of each block; 001 RNM-Screen after every step
            screen_steps=set(
                range(1, self._n_iter + 1)
                if self.rule == "rnm"
                else np.cumsum(plan.parameters["blocks"]).tolist()
            ),
            curvature=(loss.smoothness, strong_convexity(loss, data.domain, self._radius)),
            n_samples=self._domain.n_samples or 1,
        ):
            pass
        assert last is not None
        d = data.X.shape[1] - self.fit_intercept
        self.n_live_ = (d, int(np.count_nonzero(last.weights[:d])))
        intercept = last.weights[d:] * data.domain.feature_bound
        return last.weights[None, :d], intercept if self.fit_intercept else np.zeros(1)


class DPScreenedLassoClassifier(_ScreenedLasso, BaseDPClassifier):
    """L1-constrained logistic regression that drops features while it runs.

    The run is cut into `n_blocks`. After a block the rule drops features for good, and the next
    block works on what is left. Free rules read released picks only and cost nothing.

    Parameters
    ----------
    domain : Domain
        Needs `feature_bound` and `classes`; rules "safe", "adp" and "rnm" also `n_samples`.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` gives the non-private model.
    radius : float or None
        L1 bound on the weights. None: ``10 / feature_bound``.
    n_iter : int or None
        Number of private selections; more steps mean more noise in each. None: the default of
        `DPLassoClassifier`.
    rule : {"counts", "top-k", "budgeted", "safe", "adp", "rnm"}
        "counts" keeps features picked significantly often with one sign (free); "top-k" the
        `n_nonzero` largest weights (free); "budgeted" pays to drop features of small gradient;
        "safe" is the rule of Raj et al. with its true sensitivity (exact for epsilon=inf, of
        little use under privacy). "adp" and "rnm" need ``calibration="published"``.
    n_blocks : int
        Number of blocks. "counts" decides after the first one.
    level : float
        "counts": chance to keep a feature if all selections were uniform. "budgeted", "safe":
        chance that a draw takes a feature on the wrong side of the rule.
    n_nonzero : int or None
        Features kept by "top-k".
    n_drop : int
        Draws per block of a paid rule; each drops at most one feature.
    screen_share : float
        Share of the budget that a paid rule gets ("adp", "rnm": share of epsilon).
    fit_intercept : bool
        Add a public constant column inside the ball; it is never dropped.
    solver : {"fast", "reference"}
        "fast" costs what is touched in sparse data, "reference" one pass a step. Same law.
    adjacency : {"add-remove", "replace-one"}
    calibration : {"proven", "published"}
        "published" is Khanna, Lu and Raff (2023) and its sequel, and not proven private.
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int

    Attributes
    ----------
    n_live_ : tuple of int
        Features in the working set of each block, and after the last screening.
    """

    _loss = "logistic"

    def __init__(
        self,
        domain: Domain | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        radius: float | None = None,
        n_iter: int | None = None,
        rule: str = "counts",
        n_blocks: int = 1,
        level: float = 0.1,
        n_nonzero: int | None = None,
        n_drop: int = 10,
        screen_share: float = 0.1,
        fit_intercept: bool = True,
        solver: str = "fast",
        adjacency: str = "add-remove",
        calibration: str = "proven",
        ledger: Ledger | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.domain = domain
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.n_iter = n_iter
        self.rule = rule
        self.n_blocks = n_blocks
        self.level = level
        self.n_nonzero = n_nonzero
        self.n_drop = n_drop
        self.screen_share = screen_share
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _reach(self) -> float:
        return 10.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class DPScreenedLassoRegressor(_ScreenedLasso, BaseDPRegressor):
    """L1-constrained least squares that drops features while it runs.

    Parameters
    ----------
    domain : Domain
        Needs `feature_bound` and `target_bound`; rules "safe", "adp" and "rnm" also `n_samples`.
    radius : float or None
        L1 bound on the weights. None: ``target_bound / feature_bound``.

    All other parameters and attributes are those of `DPScreenedLassoClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPScreenedLassoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2000, 50))
    >>> model = DPScreenedLassoRegressor(Domain(target_bound=1.0, n_samples=2000), n_iter=20)
    >>> print(model.plan(n_features=50).guarantee.headline)
    (1, 1e-06)-DP, add/remove one row, proven
    >>> model.fit(X, X[:, 0]).coef_.shape
    (50,)
    """

    _loss = "squared"

    def __init__(
        self,
        domain: Domain | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        radius: float | None = None,
        n_iter: int | None = None,
        rule: str = "counts",
        n_blocks: int = 1,
        level: float = 0.1,
        n_nonzero: int | None = None,
        n_drop: int = 10,
        screen_share: float = 0.1,
        fit_intercept: bool = True,
        solver: str = "fast",
        adjacency: str = "add-remove",
        calibration: str = "proven",
        ledger: Ledger | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.domain = domain
        self.epsilon = epsilon
        self.delta = delta
        self.radius = radius
        self.n_iter = n_iter
        self.rule = rule
        self.n_blocks = n_blocks
        self.level = level
        self.n_nonzero = n_nonzero
        self.n_drop = n_drop
        self.screen_share = screen_share
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.adjacency = adjacency
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _reach(self) -> float:
        return float(self._domain.require("target_bound", type(self).__name__))


def with_constant_column(data: BoundedData) -> BoundedData:
    """The rows with a last column of feature_bound: the intercept inside the ball."""
    bound = data.domain.require("feature_bound", "An intercept")
    X = sp.csr_array(sp.hstack([data.X, sp.csr_array(np.full((data.X.shape[0], 1), bound))]))
    return BoundedData(X, data.y, data.domain)

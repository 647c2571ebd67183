"""DPScreenedLassoClassifier and DPScreenedLassoRegressor: Frank-Wolfe that drops features."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpsparse._checks import given
from dpsparse.accounting import Plan
from dpsparse.exceptions import ParameterError, SchemaError
from dpsparse.losses import get_loss
from dpsparse.methods.base import (
    BaseDPClassifier,
    BaseDPRegressor,
    check_choice,
    check_count,
    check_positive,
)
from dpsparse.methods.frank_wolfe import check_public, choose_resolution
from dpsparse.methods.frank_wolfe.estimator import _default_n_iter
from dpsparse.methods.frank_wolfe.scales import Scales
from dpsparse.methods.frank_wolfe.scales_plan import ReleasesScales, sizes_of
from dpsparse.methods.frank_wolfe.screening import Screened
from dpsparse.methods.frank_wolfe.screening_plan import (
    Prices,
    PublicFacts,
    proven_prices,
)
from dpsparse.methods.frank_wolfe.screening_rules import (
    Budgeted,
    Counts,
    FreeRule,
    PaidRule,
    Safe,
    TopK,
    strong_convexity,
)
from dpsparse.methods.frank_wolfe.solve import Ball
from dpsparse.methods.look.targets import plan_mean_if_few_rows
from dpsparse.methods.solution import Settings
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.ridge import MANY_ROWS

RULES = ("counts", "top-k", "budgeted", "safe")


@dataclass(eq=False, repr=False, kw_only=True)
class _ScreenedLasso(ReleasesScales):
    """What the classifier and the regressor share; only the loss differs."""

    rule: str = "counts"
    n_blocks: int = 1
    level: float = 0.1
    n_nonzero: int | None = None
    n_drop: int = 10
    screen_share: float = 0.1
    fit_intercept: bool = True
    n_live_: tuple[int, ...] = field(init=False)

    _loss: ClassVar[str]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_blocks", self.n_blocks)
        check_count("n_drop", self.n_drop)
        check_count("n_nonzero", self.n_nonzero, optional=True)
        if self.n_blocks > self._n_iter:
            raise ParameterError(
                f"n_blocks must be at most n_iter={self._n_iter}, got {given(self.n_blocks)}."
            )
        for name in ("level", "screen_share"):
            check_positive(name, getattr(self, name))
            if not getattr(self, name) < 1:
                raise ParameterError(f"{name} must be below 1, got {given(getattr(self, name))}.")
        check_choice("rule", self.rule, RULES)
        if self.rule == "top-k" and self.n_nonzero is None:
            raise ParameterError("rule='top-k' needs n_nonzero, the number of features to keep.")

    def _why_one_row(self) -> str:
        if self.rule == "safe":
            return "the score of rule='safe' divides by the number of rows, of which a person may bring any number."
        return MANY_ROWS if self._domain.rows_per_unit is None else ""

    @property
    def _n_iter(self) -> int:
        return int(self.n_iter or _default_n_iter(self._domain.n_samples, self.epsilon))

    @property
    def _radius(self) -> float:
        if self.radius is not None:
            return float(self.radius)
        return self._reach / self._domain.entry_bound()

    @property
    def _reach(self) -> float:
        """Largest margin of the default ball."""
        raise TypeError(f"{type(self).__name__} does not say how large its ball is.")

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        if labels is not None and len(labels) > 2:
            raise SchemaError(
                "Only binary classification is supported. The type of the target is multiclass; "
                "use DPLassoClassifier for more than two classes."
            )
        fewest = self._fewest(n_features)
        mean = plan_mean_if_few_rows(self, fewest) if self._free and self._plain else None
        if mean is not None:
            return mean
        loss, domain, rule = get_loss(self._loss), self._clipping(n_features), self.rule
        bound = domain.entry_bound()
        scales, n_iter = self._scales(n_features, bound, self._n_iter)
        n_iter = max(n_iter, self.n_blocks)
        needs_rows = rule == "safe"
        if needs_rows and not math.isinf(self.epsilon):
            domain.require("n_samples", f"rule={rule!r}")
        facts = PublicFacts(
            radius=self._radius,
            feature_bound=bound,
            slope_bound=loss.slope_bound(domain, self._radius),
            smoothness=loss.smoothness,
            strong_convexity=strong_convexity(loss, domain, self._radius) if needs_rows else None,
            n_samples=domain.n_samples,
            n_features=n_features + self.fit_intercept,
            adjacency=self.adjacency,
        )
        common: dict[str, Any] = {
            "epsilon": self.epsilon, "delta": self.delta, "rule": rule, "n_iter": n_iter,
            "screen_share": self.screen_share,
        }  # fmt: skip
        assumptions = ["the stream of random bits is uniform", "running time is not observed"]
        sizes = sizes_of(scales, n_features)
        prices = proven_prices(facts, n_draws=self.n_blocks * self.n_drop, sizes=sizes, **common)
        public = self._screened(facts, prices, scales, n_iter)
        if needs_rows:
            assumptions.append(f"n_samples={domain.n_samples} is public")
        return self._planned(
            prices.phases,
            public,
            epsilon=prices.epsilon,
            source="docs/proofs/screening.md",
            assumptions=tuple(assumptions),
            parameters={
                "n_iter": n_iter,
                "blocks": self._blocks(n_iter),
                "scales": "declared" if scales is None else scales.way,
                **prices.parameters,
            },
        )

    @property
    def _free(self) -> bool:
        """Paid rules are priced for declared bounds."""
        return self.rule in ("counts", "top-k")

    @property
    def _plain(self) -> bool:
        return self.radius is None and self.n_iter is None

    def _screened(
        self, facts: PublicFacts, prices: Prices, scales: Scales | None, n_iter: int
    ) -> Screened:
        constants = prices.constants
        resolution = choose_resolution(facts.n_samples, constants.eta)
        reach = facts.feature_bound * facts.slope_bound
        # What floats cannot carry is refused here, before anything is spent.
        check_public(
            facts.radius,
            facts.feature_bound,
            facts.slope_bound,
            (),
            constants.kappa * reach / (resolution * (self._domain.rows_per_unit or 1)),
        )
        ball = Ball(
            loss=get_loss(self._loss),
            radius=facts.radius,
            n_iter=n_iter,
            slope_bound=facts.slope_bound,
            resolution=resolution,
            feature_bound=facts.feature_bound,
            fit_intercept=self.fit_intercept,
            scales=scales,
        )
        return Screened(ball, self._blocks(n_iter), self._make_rule(facts))

    def _make_rule(self, facts: PublicFacts) -> FreeRule | PaidRule:
        if self.rule == "counts":
            return Counts(self.level)
        if self.rule == "top-k":
            assert self.n_nonzero is not None
            return TopK(self.n_nonzero)
        if self.rule == "budgeted":
            return Budgeted(self.n_drop, self.level, facts.n_samples)
        assert facts.strong_convexity is not None
        return Safe(
            self.n_drop, self.level, facts.smoothness, facts.strong_convexity, facts.n_samples or 1
        )

    def _blocks(self, n_iter: int) -> tuple[int, ...]:
        """n_iter cut into n_blocks parts, the longer ones first."""
        short, longer = divmod(n_iter, self.n_blocks)
        return tuple(short + (block < longer) for block in range(self.n_blocks))

    def _carry_out(
        self, rows: Rows, plan: Plan[Settings], releases: Releases, labels: np.ndarray | None
    ) -> None:
        self.n_live_ = (rows.n_features, 0)  # the mean alone keeps no feature
        super()._carry_out(rows, plan, releases, labels)


@dataclass(eq=False, repr=False, kw_only=True)
class DPScreenedLassoClassifier(_ScreenedLasso, BaseDPClassifier):
    """L1-constrained logistic regression that drops features while it runs.

    The run is cut into `n_blocks`. After a block the rule drops features for good, and the next
    block works on what is left. Free rules read released picks only and cost nothing.

    Parameters
    ----------
    domain : Domain
        Needs `feature_bound` and `classes`; rule "safe" also `n_samples`.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` gives the non-private model.
    radius : float or None
        L1 bound on the weights. None: as in `DPLassoClassifier`, released for the free rules where `n_samples` is
        declared and large enough; else ``10 / feature_bound``.
    n_iter : int or None
        Number of private selections; more steps mean more noise in each. None: the default of
        `DPLassoClassifier`.
    rule : {"counts", "top-k", "budgeted", "safe"}
        "counts" keeps features picked significantly often with one sign (free); "top-k" the
        `n_nonzero` largest weights (free); "budgeted" pays to drop features of small gradient;
        "safe" is the rule of Raj et al. with its true sensitivity (exact for epsilon=inf, of
        little use under privacy).
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
        Share of the budget that a paid rule gets.
    fit_intercept : bool
        Add a public constant column inside the ball; it is never dropped.
    adjacency : {"add-remove", "replace-one"}
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int, default=0
        1 tells every phase with its seconds, 0 shows a line on a terminal while a fit takes long, -1 nothing.

    Attributes
    ----------
    n_live_ : tuple of int
        Features in the working set of each block, and after the last screening.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPScreenedLassoClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(classes=[0, 1], row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPScreenedLassoClassifier(domain, epsilon=2.0, n_iter=20).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.coef_.shape, model.privacy_.headline
    ((1, 8), '(2, 1e-6)-DP of the table given to fit, add/remove one row, proven')
    """

    _loss: ClassVar[str] = "logistic"

    @property
    def _reach(self) -> float:
        return 10.0

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class DPScreenedLassoRegressor(_ScreenedLasso, BaseDPRegressor):
    """L1-constrained regression that drops features while it runs: least squares, or Huber's loss on released scales.

    Parameters
    ----------
    domain : Domain
        Needs `feature_bound` and `target_bound`; rule "safe" also `n_samples`.
    radius : float or None
        L1 bound on the weights. None: as in `DPLassoRegressor`, released for the free rules where `n_samples` is
        declared and large enough; else ``target_bound / feature_bound``.

    All other parameters and attributes are those of `DPScreenedLassoClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPScreenedLassoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2000, 50))
    >>> model = DPScreenedLassoRegressor(Domain(target_bound=1.0, n_samples=2000), n_iter=20)
    >>> print(model.plan(n_features=50).guarantee.headline)
    (1, 1e-6)-DP of the table given to fit, add/remove one row, proven
    >>> model.fit(X, X[:, 0]).coef_.shape
    (50,)
    """

    _loss: ClassVar[str] = "squared"

    @property
    def _reach(self) -> float:
        return float(self._domain.require("target_bound", type(self).__name__))

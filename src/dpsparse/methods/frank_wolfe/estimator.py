"""DPLasso and DPScreenedLasso: Frank-Wolfe over the L1 ball with private selections."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from dpsparse._checks import check_count, check_positive, safe_repr
from dpsparse.accounting import Budget, Plan
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import BaseDPClassifier, BaseDPLinearModel, BaseDPRegressor, Settings
from dpsparse.methods.frank_wolfe.run import History
from dpsparse.methods.frank_wolfe.solve import choose, fewest_effective_rows, price
from dpsparse.methods.look.targets import plan_mean_if_few_rows
from dpsparse.nonzeros import NNonzero, check_n_nonzero
from dpsparse.rows.ridge import MANY_ROWS


@dataclass(eq=False, repr=False, kw_only=True)
class _FrankWolfe(BaseDPLinearModel):
    """What all four estimators share: the plan of T selections."""

    radius: float | None = None
    n_iter: int | None = None
    fit_intercept: bool = True
    n_nonzero: NNonzero = None
    history_: History = field(init=False)

    def _rescale(self, factors: np.ndarray) -> None:
        super()._rescale(factors)
        if hasattr(self, "history_"):
            units = self.history_.units.rescaled(factors)
            self.history_ = replace(self.history_, units=units)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_iter", self.n_iter, optional=True)
        check_n_nonzero(self.n_nonzero)
        if self.radius is not None:
            check_positive("radius", self.radius)
            if math.isinf(self.radius):
                raise ParameterError("radius must be finite; it is the size of the L1 ball.")

    def _why_one_row(self) -> str:
        return MANY_ROWS if self._domain.rows_per_unit is None else ""

    def _assumptions(self) -> tuple[str, ...]:
        facts = "the stream of random bits is uniform", "running time is not observed"
        return (*super()._assumptions(), *facts)

    @property
    def _level(self) -> float | None:
        """Of screening; None drops no column."""
        return None

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        if self.radius is None and self.n_iter is None:
            mean = plan_mean_if_few_rows(self, fewest_effective_rows(n_features))
            if mean is not None:
                return mean
        facts = self._facts(n_features, labels)
        settings = choose(
            facts,
            radius=self.radius,
            n_iter=self.n_iter,
            fit_intercept=self.fit_intercept,
            n_nonzero=check_n_nonzero(self.n_nonzero),
            level=self._level,
        )
        budget = Budget(self.epsilon, self.delta)
        eta, kappa, resolution = price(settings, facts, budget)
        ball: dict[str, object] = {
            "radius": settings.radius,
            "kappa": kappa,  # with class counts: as if they were even, an offset makes slopes larger
            "slope_bound": settings.slope_bound,
            "feature_bound": settings.feature_bound,
        }
        if settings.scales != "declared":
            ball = {**dict.fromkeys(ball, "released"), "reach": settings.reach}
        return self._planned(
            budget.phases(),
            settings,
            source="docs/proofs/frank_wolfe.md",
            parameters={
                "n_iter": settings.n_iter,
                "eta": eta,
                **ball,
                "resolution": resolution,  # 0: no noise, as fine as the number of rows allows
                "n_outputs": settings.n_outputs,
                "loss": "huber" if "mean" in settings.looks else settings.loss.name,
                "scales": settings.scales,
            },
        )


@dataclass(eq=False, repr=False, kw_only=True)
class _ScreenedLasso(_FrankWolfe):
    level: float = 0.1

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("level", self.level)
        if not self.level < 1:
            raise ParameterError(f"level must be below 1, got {safe_repr(self.level)}.")

    @property
    def _level(self) -> float | None:
        return self.level


@dataclass(eq=False, repr=False, kw_only=True)
class DPLassoClassifier(_FrankWolfe, BaseDPClassifier):
    """L1-constrained logistic (two classes) or multinomial regression by private Frank-Wolfe.

    Every step draws one signed vertex of the ball ``sum |w| <= radius`` with the exponential
    mechanism on the exact gradient, in time proportional to the non-zeros it touches.

    **When to use.** If the weights must lie in an L1 ball, or with tens of millions of columns: a step touches only the
    rows that have the drawn column. It needs more rows than `DPGradientClassifier`.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `feature_bound` and `classes`; `n_samples` helps the defaults.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    radius : float or None, default=None
        Bound on the L1 norm of the weights, intercept included; costs nothing. None: if `n_samples` is declared and
        large enough, a typical size of entries is released (2 % of the budget) and the ball grows with the steps; else
        ``10 / feature_bound``.
    n_iter : int or None, default=None
        Number of private selections. They share one budget, so more steps mean more noise in each. None: with a
        released scale (N / (30 log 2 d))^2 between 10 and 1000, N = n_samples times mu; else ``(n_samples *
        epsilon)**(2/3) / 4`` between 10 and 1000, and 100 if `n_samples` is not declared. Without noise 1000.
    fit_intercept : bool, default=True
        Margins start from the log-odds of noisy class counts (3 % of the budget), and a constant column inside the ball
        corrects them. Regression has the column only.
    n_nonzero : int, "mass", PrivateCount or None, default=None
        Number of weights to keep: the largest (free), "mass" for the fewest with 90 % of the norm (free), or a private
        count (paid). None keeps all.

    Attributes
    ----------
    coef_ : array of shape (1 or n_classes, n_features); CSR after `sparsify()`
    intercept_ : array of shape (1 or n_classes,)
    classes_, n_iter_, plan_, privacy_, n_features_in_
    history_ : the released picks
        `features`, `outputs` and `signs` of all steps (the number of features stands for the intercept).
        ``history_.weights(t)`` gives coef and intercept after t steps, two-dimensional, in the units of `coef_` and
        before `n_nonzero` drops any. All of it is part of the guarantee. Duality gap and objective are not: they need
        the exact gradient. Model files do not hold it.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPLassoClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 20))
    >>> model = DPLassoClassifier(Domain(classes=[0, 1], n_samples=500), n_iter=20)
    >>> model.fit(X, (X[:, 0] > 0).astype(int)).coef_.shape
    (1, 20)
    >>> coef, intercept = model.history_.weights(10)  # half way
    >>> coef.shape, bool((model.history_.weights()[0] == model.coef_).all())
    ((1, 20), True)
    """


@dataclass(eq=False, repr=False, kw_only=True)
class DPLassoRegressor(_FrankWolfe, BaseDPRegressor):
    """L1-constrained regression by private Frank-Wolfe.

    **When to use.** If the weights must lie in an L1 ball, or with tens of millions of columns. It needs more rows than
    `DPGradientRegressor`.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `feature_bound` and `target_range` or `target_bound`; `n_samples` helps the defaults.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    radius : float or None, default=None
        Bound on the L1 norm of the weights, intercept included; costs nothing. None: the ball grows with the steps
        where scales are released (see Notes); else ``target_bound / feature_bound``. With too few effective rows for
        ten selections only the mean of the targets is released.
    n_iter : as in `DPLassoClassifier`
        Number of private selections.
    fit_intercept : bool, default=True
        Whether a constant column lies inside the ball; costs nothing.
    n_nonzero : as in `DPLassoClassifier`
        Number of weights to keep.

    Notes
    -----
    The loss is Huber's with a released cutoff, on privately centred and scaled columns, where `radius` is None and
    `n_samples` is declared and large enough. Else it is the squared loss, which has slopes up to ``feature_bound *
    radius + target_bound`` and needs that much noise.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPLassoRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 20))
    >>> model = DPLassoRegressor(Domain(target_bound=1.0, n_samples=500), n_iter=20)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (20,)
    """


@dataclass(eq=False, repr=False, kw_only=True)
class DPScreenedLassoClassifier(_ScreenedLasso, BaseDPClassifier):
    """L1-constrained logistic regression that drops the columns which were drawn no more often than chance explains.

    It is `DPLassoClassifier`, and after the last step a free rule that reads the released draws: a weight stays if its
    column was drawn significantly often with one sign.

    **When to use.** To drop columns while a LASSO is fitted, or to compare with screening rules. It gives a smaller
    model and saves no time.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `feature_bound` and `classes`; `n_samples` helps the defaults.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    radius, n_iter, fit_intercept, n_nonzero : as in `DPLassoClassifier`
        Ball, steps, and the number of weights kept of those that the rule left.
    level : float, default=0.1
        Probability to keep a weight if all draws were uniform; costs nothing. Smaller keeps fewer.

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


@dataclass(eq=False, repr=False, kw_only=True)
class DPScreenedLassoRegressor(_ScreenedLasso, BaseDPRegressor):
    """L1-constrained regression that drops the columns which were drawn no more often than chance explains.

    **When to use.** To drop columns while a LASSO is fitted, or to compare with screening rules. It gives a smaller
    model and saves no time.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `feature_bound` and `target_range` or `target_bound`; `n_samples` helps the defaults.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    radius, n_iter, fit_intercept, n_nonzero, level : as in `DPScreenedLassoClassifier`
        Ball, steps and screening.

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

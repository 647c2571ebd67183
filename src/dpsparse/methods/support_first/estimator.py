"""DPTwoStage*, DPTransfer* and DPADMMClassifier: one method, support first, with different fits. DPRidgeRegressor is
the same with all columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from dpsparse._checks import check_count, safe_repr
from dpsparse.accounting import Plan
from dpsparse.domain.clipping import HUGE, check_range
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
    Settings,
    WeightedFit,
)
from dpsparse.methods.look.targets import (
    MIN_EFFECTIVE_ROWS_TO_FIT,
    plan_mean,
    plan_mean_if_few_rows,
)
from dpsparse.methods.support_first.plan import (
    choose,
    choose_table,
    choose_way,
    drowns,
    plan_fit,
)
from dpsparse.nonzeros import AUTO, check_count_or_auto, choose_columns
from dpsparse.rows.ridge import MANY_ROWS, ONE_ROW


@dataclass(eq=False, repr=False, kw_only=True)
class _SupportFirst(BaseDPLinearModel):
    """The plan of all of them; each says how the fit on the columns found is made private."""

    n_nonzero: int | str = AUTO
    ridge: float | None = None

    _source: ClassVar[str]
    _kind: ClassVar[str]  # of fit: "objective", "output", "student" or "admm"

    def _asked(self, n_features: int) -> dict[str, Any]:
        """What a user has set of `choose`, beside columns and ridge."""
        return {}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count_or_auto(self.n_nonzero)
        if self.ridge is not None:
            check_range("ridge", self.ridge, HUGE**2)

    def _why_one_row(self) -> str:
        tilted, many = self._kind == "objective", self._domain.rows_per_unit is None
        if not tilted and not many:
            return ""
        gap = " No support-first method takes persons with any number of rows; DPGradient* and DPHardThreshold* do."
        return (ONE_ROW if tilted else MANY_ROWS) + (gap if many else "")

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        name, fit = type(self).__name__, self._kind
        if self._labels_are_numbers:
            too_few = 30.0 if fit == "objective" else MIN_EFFECTIVE_ROWS_TO_FIT
            mean = plan_mean_if_few_rows(self, too_few)
            if mean is not None:
                return mean
            self._domain.require("target_bound", name)
        self._domain.require("n_samples", name)
        facts, wanted = self._facts(n_features, labels), self.n_nonzero
        if isinstance(wanted, str):
            wanted = choose_columns(facts.effective_rows, n_features)
        asked = self._asked(n_features)
        settings = choose(facts, fit=fit, n_nonzero=wanted, ridge=self.ridge, **asked)
        plan = plan_fit(self, settings, facts.effective_rows, self._source)
        if fit == "output" and settings.of_numbers and drowns(plan, settings.way):
            return plan_mean(self, facts.effective_rows)
        return plan


@dataclass(eq=False, repr=False, kw_only=True)
class _TwoStage(_SupportFirst):
    _source = "docs/proofs/two_stage.md, docs/proofs/objective_perturbation.md"
    _kind = "objective"


@dataclass(eq=False, repr=False, kw_only=True)
class DPTwoStageClassifier(BaseDPClassifier, _TwoStage):
    """Sparse logistic model: columns are found privately, then fitted by objective perturbation.

    With 100 effective rows or more (`n_samples` times mu), declared bounds only bound: the size of entries, and centre,
    scales and length of the rows on the columns found are released for a part of the budget. With fewer rows declared
    bounds set all scales.

    **When to use.** If few columns matter and rows are many, or if there are fewer rows than columns at a large
    epsilon. Otherwise `DPGradientClassifier` is more accurate.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `classes` and `n_samples`; `feature_bound` or `row_norm` if entries exceed 1.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero : int or "auto", default="auto"
        Number of columns to find and fit; for more than two classes per class (one against the rest). Each shares the
        budget with the others. "auto" takes one for every 12 effective rows, 50 at most, which is a public rule and
        costs nothing.
    ridge : float or None, default=None
        Ridge of the summed loss on standardised rows: larger means less noise and more bias. None takes a public
        default.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPTwoStageClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(classes=[0, 1], row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPTwoStageClassifier(domain, epsilon=2.0, n_nonzero=3).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.coef_.shape, model.privacy_.headline
    ((1, 8), '(2, 1e-6)-DP of the table given to fit, add/remove one row, proven')
    """


@dataclass(eq=False, repr=False, kw_only=True)
class DPTwoStageRegressor(BaseDPRegressor, _TwoStage):
    """Sparse Huber regression: columns are found privately, then fitted by objective perturbation.

    Scales are released as by `DPTwoStageClassifier`, mean and spread of the targets as well. Below 30 effective rows
    only the mean of the targets is released.

    **When to use.** If few columns matter and rows are many. Otherwise `DPRidgeRegressor` (narrow tables) or
    `DPGradientRegressor` (wide ones) is more accurate.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `target_range` or `target_bound`, and `n_samples`; `feature_bound` or `row_norm` if entries
        exceed 1.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero, ridge : as in `DPTwoStageClassifier`
        Columns to find, and the ridge of the fit on them.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPTwoStageRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(target_bound=1.0, row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPTwoStageRegressor(domain, epsilon=2.0, n_nonzero=3).fit(X, X[:, 0])
    >>> model.coef_.shape, model.privacy_.headline
    ((8,), '(2, 1e-6)-DP of the table given to fit, add/remove one row, proven')
    """


@dataclass(eq=False, repr=False, kw_only=True)
class _Transfer(_SupportFirst):
    public_X: Any = None

    _source = "docs/proofs/transfer.md"

    @property
    def _kind(self) -> str:  # type: ignore[override]
        return "output" if self.public_X is None else "student"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.public_X is not None and len(getattr(self.public_X, "shape", ())) != 2:
            raise ParameterError(
                f"public_X must be None or an array of public rows, got {safe_repr(self.public_X)}."
            )

    def _asked(self, n_features: int) -> dict[str, Any]:
        rows = self.public_X
        if rows is not None and rows.shape[1] != n_features:
            raise ParameterError(
                f"public_X must have the {n_features} columns of X, got {rows.shape[1]}."
            )
        return {"public_rows": None if rows is None else sp.csc_array(rows)}

    def _assumptions(self) -> tuple[str, ...]:
        public = () if self.public_X is None else ("public_X is public",)
        return super()._assumptions() + public


@dataclass(eq=False, repr=False, kw_only=True)
class DPTransferClassifier(BaseDPClassifier, _Transfer):
    """Sparse logistic model by knowledge transfer.

    Columns are found privately, and a ridge teacher is fitted on them. It is released, or it labels public
    rows from which a student learns.

    **When to use.** If you have public rows without labels, or to compare with knowledge transfer of Wang and Gu.
    Otherwise take `DPSparseClassifier`.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `classes` and `n_samples`; `feature_bound` or `row_norm` if entries exceed 1.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero, ridge : as in `DPTwoStageClassifier`
        Columns to find, and the ridge of the teacher.
    public_X : array of shape (n_public, n_features) or None, default=None
        Public rows. A student learns from the teacher's noisy answers on them. None releases the teacher itself, which
        is better as a rule.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPTransferClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(classes=[0, 1], row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPTransferClassifier(domain, epsilon=2.0, public_X=X[:50]).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.coef_.shape, model.privacy_.headline
    ((1, 8), '(2, 1e-6)-DP of the table given to fit, add/remove one row, proven')
    """


@dataclass(eq=False, repr=False, kw_only=True)
class DPTransferRegressor(BaseDPRegressor, _Transfer):
    """Sparse Huber regression by knowledge transfer.

    Below 60 effective rows only the mean of the targets is released.

    **When to use.** If you have public rows without targets, or to compare with knowledge transfer of Wang and Gu.
    Otherwise take `DPSparseRegressor`.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `target_range` or `target_bound`, and `n_samples`; `feature_bound` or `row_norm` if entries
        exceed 1.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero, public_X, ridge : as in `DPTransferClassifier`
        Columns to find, public rows, and the ridge of the teacher.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPTransferRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(target_bound=1.0, row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPTransferRegressor(domain, epsilon=2.0, public_X=X[:50]).fit(X, X[:, 0])
    >>> model.coef_.shape, model.privacy_.headline
    ((8,), '(2, 1e-6)-DP of the table given to fit, add/remove one row, proven')
    """


@dataclass(eq=False, repr=False, kw_only=True)
class DPADMMClassifier(BaseDPClassifier, _SupportFirst):
    """Sparse logistic model by private ADMM on columns that are found first.

    More than two classes are fitted one against the rest.

    **When to use.** To compare with private ADMM of Wang and Zhang. Otherwise take `DPSparseClassifier`.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `classes` and `n_samples`; `feature_bound` or `row_norm` if entries exceed 1.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero : int or "auto", default="auto"
        Number of columns to find, as in `DPTwoStageClassifier`. The L1 penalty may remove weights of them: those below
        three times the noise of one round.
    ridge : float or None, default=None
        Weight of the augmented term of the summed loss on standardised rows: larger means less noise and slower rounds.
        None takes a public default.
    n_iter : int, default=5
        Number of rounds. Each releases one noisy vector from the same budget, so more rounds mean more noise in each.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPADMMClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(classes=[0, 1], row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPADMMClassifier(domain, epsilon=2.0, n_iter=3).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.coef_.shape, model.privacy_.headline
    ((1, 8), '(2, 1e-6)-DP of the table given to fit, add/remove one row, proven')
    """

    n_iter: int = 5

    _source = "docs/proofs/admm.md"
    _kind = "admm"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_iter", self.n_iter)

    def _asked(self, n_features: int) -> dict[str, Any]:
        return {"n_iter": int(self.n_iter)}


@dataclass(eq=False, repr=False, kw_only=True)
class DPRidgeRegressor(BaseDPRegressor, WeightedFit):
    """Robust ridge regression on a narrow table (up to 1,500 columns), not sparse.

    Where the rows allow it, a part of the budget looks at the table: mean and spread of the targets, centre, scales,
    long directions and length of the rows. Rows far out count less, and the rest of the budget pays for one fit by
    objective perturbation. With fewer rows only declared bounds are used, and with very few only the mean of the
    targets: below ``n_samples * mu`` of about 20 nothing else can be learnt at this epsilon.

    **When to use.** To predict numbers from a narrow table with many rows per column. On wide or sparse tables take
    `DPGradientRegressor`.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `n_samples`, `target_range` or `target_bound`, and `feature_bound` or `row_norm`.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero : int or None, default=None
        Number of weights to keep, the largest on standardised rows; costs nothing. None keeps all.
    ridge : as in `DPTwoStageClassifier`
        Ridge of the summed loss on standardised rows.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPRidgeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2000, 5))
    >>> domain = Domain(n_samples=2000, target_range=(-2, 2))
    >>> model = DPRidgeRegressor(domain).fit(X, X[:, 0])
    >>> model.coef_.shape
    (5,)
    """

    n_nonzero: int | None = None
    ridge: float | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero, optional=True)
        if self.ridge is not None:
            check_range("ridge", self.ridge)

    def _why_one_row(self) -> str:
        return ONE_ROW

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        self._domain.require("n_samples", type(self).__name__)
        facts = self._facts(n_features, labels)
        way = choose_way(facts.effective_rows, facts.planned_features)
        if way == "mean" and self._weighted:
            way = "declared"  # a mean of weighted rows needs the sum of the weights beside it
        if way == "mean":
            return plan_mean(self, facts.effective_rows)
        settings = choose_table(facts, way, ridge=self.ridge, kept=self.n_nonzero)
        return plan_fit(self, settings, facts.effective_rows, "docs/proofs/table_regression.md")

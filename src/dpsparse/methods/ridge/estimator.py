"""DPRidgeRegressor: narrow tables, looked at privately and fitted by objective perturbation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsparse._checks import check_count
from dpsparse.accounting import Plan
from dpsparse.methods.base import BaseDPRegressor, WeightedFit
from dpsparse.methods.fitted import Settings
from dpsparse.methods.look.targets import plan_mean
from dpsparse.methods.minimisers import check_range
from dpsparse.methods.ridge.defaults import choose_way
from dpsparse.methods.support_first.plan import choose_table, plan_fit
from dpsparse.rows.ridge import LARGEST_TABLE, ONE_ROW


@dataclass(eq=False, repr=False, kw_only=True)
class DPRidgeRegressor(BaseDPRegressor, WeightedFit):
    """Robust ridge regression on a narrow table (up to some hundred columns), not sparse.

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
    ridge : float or None, default=None
        Ridge of the summed loss on standardised rows: larger means less noise and more bias. None takes a public
        default.

    Notes
    -----
    Method: docs/choosing_method.md; proof: docs/proofs/table_regression.md.

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

    def _most_rows(self, n_features: int) -> int | None:
        return LARGEST_TABLE

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

"""DPSparseClassifier and DPSparseRegressor: the method and its settings are chosen from public facts.

The choice reads rows, columns, epsilon and what is declared, never the data, so it costs nothing. The rule is a table
made from measurements (docs/defaults.md); `plan()` says what was chosen and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsparse.estimators._base import BaseDPClassifier, BaseDPLinearModel, BaseDPRegressor
from dpsparse.estimators._phases import effective_rows
from dpsparse.estimators.gradient import DPGradientClassifier, DPGradientRegressor
from dpsparse.estimators.ridge import DPRidgeRegressor
from dpsparse.estimators.two_stage import DPTwoStageRegressor
from dpsparse.nonzeros import check_n_nonzero
from dpsparse.privacy import Plan
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.ridge import MOST_ROWS
from dpsparse.solvers.solution import Solution
from dpsparse.solvers.table_regression import MOST_COLUMNS

NARROW = 200  # columns up to which a regression is fitted as a table, all columns at once
RARE = 20  # where one of so many columns matters, features are looked for before they are fitted
ENOUGH_FOR_EACH = 4.0  # effective rows a declared feature from which some of them can be found,
FOR_EACH_FOUND = (
    12.0  # and for each that is looked for: fewer that are right are worth more than all
)
LEAST, SMALL, LARGE = (
    30.0,
    60.0,
    100.0,
)  # effective rows that find 3 columns, 5, and then fit all of a table
MANY = 40  # columns from which that is so
ENOUGH_FOR_ALL = 6.0  # effective rows a column from which all can be fitted before some are chosen


@dataclass(eq=False, repr=False, kw_only=True)
class _DPSparse(BaseDPLinearModel):
    """What both share: the plan and the run of the estimator that was chosen."""

    n_nonzero: Any = None

    def _choose(self, n_features: int) -> tuple[BaseDPLinearModel, str]:
        """The estimator that does the work, and why it was chosen; from public facts only."""
        raise TypeError(f"{type(self).__name__} does not say how to choose.")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_n_nonzero(self.n_nonzero)

    def _why_one_row(self) -> str:
        return ""  # where persons have several rows, a method that bounds them together is chosen

    def _most_rows(self, n_features: int) -> int | None:
        return self._choose(n_features)[0]._most_rows(n_features)

    def _bounds_rows(self, n_features: int) -> bool:
        return self._choose(n_features)[0]._bounds_rows(n_features)

    @property
    def _facts(self) -> dict[str, Any]:
        return {
            "domain": self.domain,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
        }

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        model, why = self._choose(n_features)
        model._check_parameters()
        plan = model._make_plan(n_features, labels)
        chosen = {"chosen": type(model).__name__, "why": why}
        return replace(plan, method=type(self).__name__, parameters={**chosen, **plan.parameters})

    def _solve(self, rows: Rows, plan: Plan, releases: Releases) -> Solution:
        return self._choose(rows.n_features)[0]._run(rows, plan, releases)


@dataclass(eq=False, repr=False, kw_only=True)
class DPSparseClassifier(BaseDPClassifier, _DPSparse):
    """Private sparse classifier with nothing to choose.

    Start here. Method and settings are chosen from public facts alone (rows, columns, epsilon, what is declared), which
    costs nothing; ``plan(n_features)`` says what was chosen and why, before any data. The rule and the measurements
    behind it: docs/defaults.md.

    Parameters
    ----------
    domain : Domain
        Needs `classes`. Declare `n_samples` where it is public: it sets steps, never noise.
    epsilon, delta : float, default=1.0, 1e-6
        The guarantee; ``epsilon=math.inf`` is the same model without noise.
    n_nonzero : int, "mass", PrivateCount or None, default=None
        Weights to keep, of all classes together. An int says that few features matter, which the choice
        uses; "mass" keeps the fewest with 90 % of the absolute sum; None keeps all.
    class_weight : dict, "balanced" or None, default=None
        Public weight of the rows of each class, or one over the released class counts. Costs nothing.
    adjacency : {"add-remove", "replace-one"}
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int, default=0
        1 tells every phase with its seconds, 0 shows a line on a terminal while a fit takes long, -1 nothing.

    Notes
    -----
    What can be learnt depends on N = n_samples * mu(epsilon, delta), about n_samples * epsilon / 4 for small epsilon.
    Below N of about 20 only the mean of a target or the share of a class can be learnt, by any method.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPSparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2000, 5))
    >>> model = DPSparseClassifier(Domain(classes=[0, 1], n_samples=2000)).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.plan_.parameters["chosen"]
    'DPGradientClassifier'
    """

    class_weight: Any = None

    def _choose(self, n_features: int) -> tuple[BaseDPLinearModel, str]:
        model = DPGradientClassifier(
            n_nonzero=self.n_nonzero, class_weight=self.class_weight, **self._facts
        )
        return model, "noisy gradients classify best at every width that was measured"


@dataclass(eq=False, repr=False, kw_only=True)
class DPSparseRegressor(BaseDPRegressor, _DPSparse):
    """Private regression with nothing to choose; sparse where sparsity is declared.

    Start here. Method and settings are chosen from public facts alone, as in `DPSparseClassifier`.

    Parameters
    ----------
    domain : Domain
        Needs `target_range` or `target_bound`. Declare `n_samples` where it is public: without it small tables cannot
        be told from large ones, and the choice is DPGradientRegressor.

    All other parameters are those of `DPSparseClassifier`, without `class_weight`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPSparseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(2000, 5))
    >>> model = DPSparseRegressor(Domain(n_samples=2000, target_range=(-1, 1))).fit(X, X[:, 0])
    >>> model.plan_.parameters["chosen"]
    'DPRidgeRegressor'
    """

    def _choose(self, n_features: int) -> tuple[BaseDPLinearModel, str]:
        domain, k = self._domain, self.n_nonzero
        gradient = DPGradientRegressor(n_nonzero=k, **self._facts)
        n = domain.n_samples
        if n is None:
            return gradient, "n_samples is not declared"
        if domain.unit == "person" and domain.rows_per_unit != 1:
            return gradient, "all rows of a person are bounded together"
        if n > MOST_ROWS:
            return gradient, "more rows than a minimiser is proven for"
        few = isinstance(k, int) and k < n_features
        N = effective_rows(n, self.epsilon, self.delta, self.adjacency)
        size = "without noise" if math.isinf(N) else f"{N:.0f} effective rows"
        rare = few and (RARE * k <= n_features or ENOUGH_FOR_ALL * n_features > N)
        if rare and ENOUGH_FOR_EACH * k <= N:
            found = k if FOR_EACH_FOUND * k <= N else max(int(N / FOR_EACH_FOUND), 1)
            which = "them" if found == k else f"{found} of them"
            why = f"{k} of {n_features} columns matter, {size}: find {which}, then fit"
            return DPTwoStageRegressor(n_nonzero=found, **self._facts), why
        if k is None and MANY < n_features <= NARROW and LEAST <= N < LARGE:
            found = 3 if N < SMALL else 5
            model = DPTwoStageRegressor(n_nonzero=found, **self._facts)
            return model, f"{n_features} columns, {size}: {found} of them can be found and fitted"
        tabular = n_features <= (MOST_COLUMNS if few else NARROW)
        if tabular and (k is None or isinstance(k, int)):
            return DPRidgeRegressor(n_nonzero=k, **self._facts), f"{n_features} columns, {size}"
        if few:
            model = DPTwoStageRegressor(n_nonzero=k, **self._facts)
            return model, f"{k} of {n_features} columns matter: find them, then fit"
        return gradient, f"{n_features} columns, and no few of them are said to matter"

"""DPSparseClassifier and DPSparseRegressor: the method and its settings are chosen from public facts.

The choice reads rows, columns, epsilon and what is declared, never the data, so it costs nothing. The rule is a table
made from measurements (docs/choosing_method.md); `plan()` says what was chosen and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsparse.accounting import Plan
from dpsparse.methods.base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
    Settings,
    WeightedFit,
)
from dpsparse.methods.gradient.estimator import DPGradientClassifier, DPGradientRegressor
from dpsparse.methods.look.targets import plan_shares_if_few_rows
from dpsparse.methods.support_first.estimator import DPRidgeRegressor, DPTwoStageRegressor
from dpsparse.nonzeros import check_n_nonzero
from dpsparse.rows.ridge import MOST_COLUMNS, MOST_ROWS


@dataclass(eq=False, repr=False, kw_only=True)
class _DPSparse(WeightedFit):
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

    def _bounds_rows(self, n_features: int) -> bool:
        return self._choose(n_features)[0]._bounds_rows(n_features)

    @property
    def _terms(self) -> dict[str, Any]:
        shared = ("domain", "epsilon", "delta", "adjacency")
        return {name: getattr(self, name) for name in shared}

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        model, why = self._choose(n_features)
        model._check_parameters()
        model._planned_width = self._planned_width
        plan = model._make_plan(n_features, labels)
        chosen = {"chosen": type(model).__name__, "why": why}
        return replace(plan, method=type(self).__name__, parameters={**chosen, **plan.parameters})


@dataclass(eq=False, repr=False, kw_only=True)
class DPSparseClassifier(BaseDPClassifier, _DPSparse):
    """Private sparse classifier with nothing to choose.

    Method and settings are chosen from public facts alone (rows, columns, epsilon, what is declared), which costs
    nothing. ``plan(n_features)`` says what was chosen and why, before any data. The rule: docs/choosing_method.md.

    **When to use.** Start here, for two classes or more. Take another estimator only if you want one particular method,
    or to compare.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `classes`. Declare `n_samples` if it is public: it sets steps, never noise.
    epsilon : float, default=1.0
        Privacy loss of the whole fit, in natural log odds: smaller is more private and means more noise. ``math.inf``
        runs the same algorithm without noise.
    delta : float, default=1e-6
        Probability that the guarantee fails. Keep it far below one over the number of rows.
    adjacency : {"add-remove", "replace-one"}, default="add-remove"
        Which tables are neighbours: one row (or person) more or less, or one exchanged. The second needs up to twice
        the noise and makes the number of rows public.
    ledger : Ledger or None, default=None
        Account that pays epsilon and delta before noise is drawn. None keeps no account.
    random_state : int or None, default=None
        None draws secure noise. An int repeats the noise, for experiments, and voids the guarantee.
    verbose : int, default=0
        1 prints every phase with its seconds, 0 shows progress on a terminal while a fit takes long, -1 prints nothing.
    n_nonzero : int, "mass", PrivateCount or None, default=None
        Number of weights to keep, over all classes. An int says that few columns matter, and the choice of the method
        uses it. "mass" keeps the fewest that hold 90 % of the absolute sum. A `PrivateCount` costs budget, the others
        nothing. None keeps all.
    class_weight : dict, "balanced" or None, default=None
        Public weight of each class, or "balanced": one over the released class counts. Costs nothing. None weighs all
        rows equally.

    Notes
    -----
    What can be learnt depends on N = n_samples * mu(epsilon, delta), about n_samples * epsilon / 4 for small epsilon.
    Where a declared N is below 60, all of the budget goes to the shares of the classes, and all weights are zero: fits
    with fewer rows were no better than chance.

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

    def _gradient(self) -> DPGradientClassifier:
        return DPGradientClassifier(
            n_nonzero=self.n_nonzero, class_weight=self.class_weight, **self._terms
        )

    def _choose(self, n_features: int) -> tuple[BaseDPLinearModel, str]:
        return self._gradient(), "noisy gradients classify best at every width that was measured"

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        weight = self._gradient()._class_weight(labels)
        few = plan_shares_if_few_rows(self, self._facts(n_features, labels).n_classes, weight)
        return super()._make_plan(n_features, labels) if few is None else few


@dataclass(eq=False, repr=False, kw_only=True)
class DPSparseRegressor(BaseDPRegressor, _DPSparse):
    """Private regression with nothing to choose; sparse where sparsity is declared.

    Method and settings are chosen from public facts alone, as in `DPSparseClassifier`.

    **When to use.** Start here to predict numbers. Take another estimator only if you want one particular method, or to
    compare.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `target_range` or `target_bound`. Declare `n_samples` if it is public; without it
        `DPGradientRegressor` is chosen.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero : int, "mass", PrivateCount or None, default=None
        Number of weights to keep. An int says that few columns matter, and the choice of the method uses it. "mass"
        keeps the fewest that hold 90 % of the absolute sum. A `PrivateCount` costs budget, the others nothing. None
        keeps all.

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
        domain, k, facts = self._domain, self.n_nonzero, self._facts(n_features, None)
        d = facts.planned_features
        gradient = DPGradientRegressor(n_nonzero=k, **self._terms)
        if domain.n_samples is None:
            return gradient, "n_samples is not declared"
        if domain.unit == "person" and domain.rows_per_unit != 1:
            return gradient, "all rows of a person are bounded together"
        if domain.n_samples > MOST_ROWS:
            return gradient, "more rows than a minimiser is proven for"
        N = facts.effective_rows
        size = "without noise" if math.isinf(N) else f"{N:.0f} effective rows"
        few = isinstance(k, int) and k < d
        found = columns_to_find(N, d, k) if (few or k is None) and not self._weighted else 0
        if found:
            asked = f"{k} of {d} columns matter" if few else f"{d} columns"
            model = DPTwoStageRegressor(n_nonzero=found, **self._terms)
            return model, f"{asked}, {size}: find {found} of them, then fit"
        if facts.fits_in_memory and (k is None or isinstance(k, int)):
            return DPRidgeRegressor(n_nonzero=k, **self._terms), f"{d} columns, {size}"
        if few and k < MOST_COLUMNS and not self._weighted:
            model = DPTwoStageRegressor(n_nonzero=k, **self._terms)
            return model, f"{k} of {d} columns matter: find them, then fit"
        return gradient, f"{d} columns, and no few of them are said to matter"


def columns_to_find(N: float, n_features: int, wanted: int | None) -> int:
    """How many columns are found before they are fitted, by effective rows and what is declared; 0: none are.

    Where few are wanted they are found first if they are rare, or if all columns would drown in noise. Each takes
    twelve effective rows: fewer columns that are right are worth more. N: effective rows, that is rows times mu. Chosen
    on training splits: dpsparse lab run board --training.
    """
    if wanted is None:
        if not 40 < n_features < MOST_COLUMNS or N < 30.0:
            return 0
        return 3 if N < 60.0 else 5 if N < 100.0 else 0
    rare, drowned = 20 * wanted <= n_features, 6.0 * n_features > N
    if not (rare or drowned) or 4.0 * wanted > N:
        return 0
    return max(int(min(wanted, N / 12.0, MOST_COLUMNS - 1)), 1)

"""DPHardThresholdClassifier and DPHardThresholdRegressor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsparse.accounting import Plan
from dpsparse.methods.base import BaseDPClassifier, BaseDPLinearModel, BaseDPRegressor
from dpsparse.methods.fitted import Settings
from dpsparse.methods.gradient.estimator import check_steps, price
from dpsparse.methods.hard_threshold.defaults import fewest_effective_rows
from dpsparse.methods.hard_threshold.solve import HardThreshold
from dpsparse.methods.look.rows import choose_rows
from dpsparse.methods.look.targets import plan_mean_if_few_rows
from dpsparse.nonzeros import AUTO, check_count_or_auto


@dataclass(eq=False, repr=False, kw_only=True)
class _DPHardThreshold(BaseDPLinearModel):
    n_nonzero: int | str = AUTO
    n_iter: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count_or_auto(self.n_nonzero)
        check_steps(self.n_iter)

    def _why_one_row(self) -> str:
        return ""

    def _bounds_rows(self, n_features: int) -> bool:
        return True

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        too_few = fewest_effective_rows(n_features)
        mean = plan_mean_if_few_rows(self, too_few) if self.n_iter is None else None
        if mean is not None:
            return mean
        look = choose_rows(self._facts(n_features, labels))
        kept = None
        if not isinstance(self.n_nonzero, str):
            kept = min(int(self.n_nonzero), n_features * look.n_outputs)
        settings = HardThreshold(look=look, n_iter=self.n_iter, n_nonzero=kept)
        later = "from released counts"
        shown = {
            "n_iter": self.n_iter or later,
            "n_nonzero": kept or later,
            "n_outputs": look.n_outputs,
        }
        return self._budgeted(settings, price, shown, source="docs/proofs/noisy_gradient.md")


@dataclass(eq=False, repr=False, kw_only=True)
class DPHardThresholdClassifier(BaseDPClassifier, _DPHardThreshold):
    """Sparse classifier by iterative hard thresholding of noisy gradients.

    **When to use.** If the model must have a small, fixed number of weights at every step, or to compare with DP-IGHT.
    `DPGradientClassifier` with `n_nonzero` is more accurate as a rule.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `classes`. `n_samples` sets the number of steps, never the noise.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero : int or "auto", default="auto"
        Number of weights kept after every step, over all classes; costs nothing. "auto" takes one a class for every 12
        effective rows, 50 at most.
    n_iter : int or None, default=None
        Number of noisy steps. They share one budget, so more steps mean more noise in each. None takes a number that
        grows with the root of rows times budget.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPHardThresholdClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8))
    >>> model = DPHardThresholdClassifier(Domain(classes=[0, 1], n_samples=500), n_nonzero=3)
    >>> model.fit(X, (X[:, 0] > 0).astype(int)).coef_.shape
    (1, 8)
    """


@dataclass(eq=False, repr=False, kw_only=True)
class DPHardThresholdRegressor(BaseDPRegressor, _DPHardThreshold):
    """Sparse robust regression by iterative hard thresholding of noisy gradients.

    With fewer than about 60 or 15 sqrt(d) effective rows (`n_samples` times mu) on d columns, and no `n_iter`, only the
    mean of the targets is released.

    **When to use.** If the model must have a small, fixed number of weights at every step, or to compare with DP-IGHT.
    `DPGradientRegressor` with `n_nonzero` is more accurate as a rule.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `target_range` or `target_bound`. `n_samples` sets the number of steps, never the noise.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero, n_iter : as in `DPHardThresholdClassifier`
        Weights kept, and steps.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPHardThresholdRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8))
    >>> model = DPHardThresholdRegressor(Domain(target_bound=1.0, n_samples=500), n_nonzero=3)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (8,)
    """

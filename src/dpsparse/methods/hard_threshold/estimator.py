"""DPHardThresholdClassifier and DPHardThresholdRegressor."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsparse.accounting import Plan
from dpsparse.methods.base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
    check_count,
)
from dpsparse.methods.hard_threshold.defaults import MIN_SIGNAL_OF_REGRESSION
from dpsparse.methods.hard_threshold.plan import choose, price
from dpsparse.methods.look.defaults import MIN_EFFECTIVE_ROWS_FOR_REGRESSION
from dpsparse.methods.look.targets import plan_mean_if_few_rows
from dpsparse.methods.solution import Settings


@dataclass(eq=False, repr=False, kw_only=True)
class _DPHardThreshold(BaseDPLinearModel):
    n_nonzero: int = 10
    n_iter: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero)
        check_count("n_iter", self.n_iter, optional=True)

    def _why_one_row(self) -> str:
        return ""

    def _bounds_rows(self, n_features: int) -> bool:
        return True

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        signal = MIN_SIGNAL_OF_REGRESSION * math.sqrt(n_features)
        too_few = max(MIN_EFFECTIVE_ROWS_FOR_REGRESSION, signal)
        mean = plan_mean_if_few_rows(self, too_few) if self.n_iter is None else None
        if mean is not None:
            return mean
        settings = choose(
            self._facts(n_features, labels), n_iter=self.n_iter, n_nonzero=int(self.n_nonzero)
        )
        shown = {"n_iter": settings.n_iter, "n_outputs": settings.look.n_outputs}
        return self._budgeted(settings, price, shown, source="docs/proofs/noisy_gradient.md")


@dataclass(eq=False, repr=False, kw_only=True)
class DPHardThresholdClassifier(BaseDPClassifier, _DPHardThreshold):
    """Sparse classifier by iterative hard thresholding of noisy gradients.

    Parameters
    ----------
    domain : Domain
        Needs `classes`. `n_samples` sets the number of steps, never the noise.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` runs the same steps without noise.
    n_nonzero : int, default=10
        Weights kept after every step, of all classes together.
    n_iter : int or None, default=None
        Steps: a privacy parameter. None takes 10 to 100, the more the larger `n_samples` and epsilon are.
    adjacency : {"add-remove", "replace-one"}
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int, default=0
        1 tells every phase with its seconds, 0 shows a line on a terminal while a fit takes long, -1 nothing.

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

    Parameters
    ----------
    domain : Domain
        Needs `target_range` or `target_bound`.

    All other parameters are those of `DPHardThresholdClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPHardThresholdRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8))
    >>> model = DPHardThresholdRegressor(Domain(target_bound=1.0, n_samples=500), n_nonzero=3)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (8,)
    """

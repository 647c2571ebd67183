"""DPHardThresholdClassifier and DPHardThresholdRegressor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpsparse.estimators._base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
    check_count,
    output_count,
)
from dpsparse.estimators._phases import FEW, effective_rows, mean_alone
from dpsparse.estimators.gradient import NARROW
from dpsparse.methods.hard_threshold.defaults import (
    MIN_SIGNAL_OF_REGRESSION,
    MIN_STEPS,
    choose_steps,
)
from dpsparse.methods.hard_threshold.plan import price
from dpsparse.methods.hard_threshold.solve import solve
from dpsparse.privacy import Budget, Plan
from dpsparse.solvers.gradient import Recipe


@dataclass(eq=False, repr=False, kw_only=True)
class _DPHardThreshold(BaseDPLinearModel):
    n_nonzero: int = 10
    n_iter: int | None = None

    _solver: ClassVar[Any] = staticmethod(solve)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero)
        check_count("n_iter", self.n_iter, optional=True)

    def _why_one_row(self) -> str:
        return ""

    def _bounds_rows(self, n_features: int) -> bool:
        return True

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        too_few = max(FEW, MIN_SIGNAL_OF_REGRESSION * math.sqrt(n_features))
        mean = mean_alone(self, too_few) if self.n_iter is None else None
        if mean is not None:
            return mean
        settings = self._settings(n_features, output_count(labels))
        budget = Budget(self.epsilon, self.delta)
        price(settings, n_features, 2 if labels is None else len(labels), budget)
        return self._planned(
            budget.phases(),
            settings,
            source="docs/proofs/noisy_gradient.md",
            parameters={
                "n_iter": settings.n_iter,
                "n_outputs": settings.n_outputs,
                "mu": budget.mu,
                **{f"{name}_share": share for name, share in budget.shares.items()},
            },
        )

    def _settings(self, n_features: int, n_outputs: int) -> Recipe:
        domain, numbers = self._domain, self._labels_are_numbers
        narrow = n_features <= (domain.n_samples or NARROW)
        return Recipe(
            self._loss_name(n_outputs),
            n_outputs,
            domain.n_samples,
            longest=domain.row_norm or domain.entry_bound() * math.sqrt(n_features),
            target_bound=float(domain.require("target_bound", "Regression")) if numbers else 1.0,
            n_iter=self.n_iter or self._steps(n_features),
            masses=None if numbers and narrow else "private",
            n_nonzero=min(int(self.n_nonzero), n_features * n_outputs),
        )

    def _steps(self, n_features: int) -> int:
        n = self._domain.n_samples
        if n is None and not math.isinf(self.epsilon):
            return MIN_STEPS
        N = effective_rows(n or 1, self.epsilon, self.delta, self.adjacency)
        return choose_steps(N, n_features)


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
    {shared}

    {example: n_nonzero=3}

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

    {example: n_nonzero=3}

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPHardThresholdRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8))
    >>> model = DPHardThresholdRegressor(Domain(target_bound=1.0, n_samples=500), n_nonzero=3)
    >>> model.fit(X, X[:, 0]).coef_.shape
    (8,)
    """

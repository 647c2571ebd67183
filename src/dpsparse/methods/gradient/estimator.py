"""DPGradient* and DPHardThreshold*: noisy full gradients on rows of released scale."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpsparse._checks import check_count, check_positive, safe_repr
from dpsparse.accounting import REST, Budget, Plan
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
    Settings,
    WeightedFit,
)
from dpsparse.methods.gradient.solve import MAX_STEPS, HardThreshold
from dpsparse.methods.gradient.solve import Settings as GradientSettings
from dpsparse.methods.look.rows import choose_rows
from dpsparse.methods.look.targets import (
    MIN_EFFECTIVE_ROWS_TO_FIT,
    ClassWeight,
    add_look,
    plan_mean_if_few_rows,
)
from dpsparse.nonzeros import AUTO, check_count_or_auto, check_n_nonzero, count_event


def price(settings: GradientSettings, budget: Budget) -> None:
    """Add the releases of a run to `budget`."""
    look = settings.look
    add_look(budget, look.looks)
    numbers = 3 * MAX_STEPS * (look.n_features + 1) * look.n_outputs  # of all steps, at most
    note = "all steps together: sum of (sensitivity/scale)^2 over the steps"
    budget.gaussian("gradients", REST, numbers, note)
    count = count_event(settings.n_nonzero)
    if count is not None:
        budget.fixed("count", count, "noisy number of weights")


@dataclass(eq=False, repr=False, kw_only=True)
class _NoisyGradients(BaseDPLinearModel):
    """What both methods share: rows are brought to a bounded length, and all rows of a person together."""

    n_nonzero: Any = None
    n_iter: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_iter", self.n_iter, optional=True)
        if (
            self.n_iter is not None and self.n_iter > MAX_STEPS
        ):  # `price` charges the slack of so many
            raise ParameterError(
                f"n_iter must be at most {MAX_STEPS}, got {safe_repr(self.n_iter)}."
            )

    def _bounds_rows(self, n_features: int) -> bool:
        return True

    def _why_one_row(self) -> str:
        return ""


@dataclass(eq=False, repr=False, kw_only=True)
class _DPGradient(_NoisyGradients, WeightedFit):
    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_n_nonzero(self.n_nonzero)

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        mean = plan_mean_if_few_rows(self) if self.n_iter is None else None
        if mean is not None:
            return mean
        look = choose_rows(self._facts(n_features, labels), self._class_weight(labels))
        settings = GradientSettings(
            # The sum of all weights is not the number of rows, and must be released.
            look=replace(look, n_samples=None) if self._weighted else look,
            n_iter=self.n_iter,
            n_nonzero=check_n_nonzero(self.n_nonzero),
        )
        shown = {
            "n_iter": self.n_iter or "from released counts",
            "n_outputs": settings.look.n_outputs,
        }
        return self._budgeted(settings, price, shown, source="docs/proofs/noisy_gradient.md")

    def _class_weight(self, labels: np.ndarray | None) -> ClassWeight:
        """Public weights in the order of the labels, "balanced" or None."""
        return None


@dataclass(eq=False, repr=False, kw_only=True)
class DPGradientClassifier(BaseDPClassifier, _DPGradient):
    """Sparse logistic or multinomial model from a few noisy full gradients.

    **When to use.** For classes, on wide sparse tables and on most narrow ones: text, codes, clicks. It is what
    `DPSparseClassifier` takes. With fewer rows than columns and a large epsilon, `DPTwoStageClassifier` overfits less.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `classes`. Without `n_samples` the number of rows is public under replace-one, and taken
        from a noisy count, a part of the budget, under add-remove.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero : int, "mass", PrivateCount or None, default=None
        Number of weights to keep, over all classes: the largest on scaled rows (free), "mass" for the fewest with 90 %
        of the absolute sum (free), or a private count (paid). None keeps all.
    n_iter : int or None, default=None
        Number of noisy gradients. They share one budget, so more steps mean more noise in each. None takes a number
        that grows with the root of rows times budget.
    class_weight : dict, "balanced" or None, default=None
        Public weight of each class, or "balanced": one over the released class counts. Slopes are weighted before they
        are clipped, so it costs nothing. None weighs all rows equally.

    Notes
    -----
    Rows are brought to length 1 by the method itself, so no bound on features or rows is needed.
    `coef_noise_` is the standard deviation of the privacy noise of each weight and nothing else: no standard error
    (docs/inference.md). The result is a linear model on the original features. Method: docs/choosing_method.md; proof:
    docs/proofs/noisy_gradient.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(classes=[0, 1], row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPGradientClassifier(domain, epsilon=2.0, n_nonzero=3).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.coef_.shape, model.privacy_.headline
    ((1, 8), '(2, 1e-6)-DP of the table given to fit, add/remove one row, proven')
    """

    class_weight: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        weights, sentence = self.class_weight, "class_weight must be None, 'balanced' or"
        if weights is None or (isinstance(weights, str) and weights == "balanced"):
            return
        if not isinstance(weights, dict):
            raise ParameterError(f"{sentence} a dict with a positive number for every class.")
        for value in weights.values():
            check_positive("class_weight", value)
        if max(weights.values()) > 1e9 * min(weights.values()):
            raise ParameterError("class_weight must not differ by more than a factor of 1e9.")

    def _class_weight(self, labels: np.ndarray | None) -> ClassWeight:
        if not isinstance(self.class_weight, dict):
            return None if self.class_weight is None else "balanced"
        known = np.asarray(labels).tolist()
        if set(self.class_weight) != set(known):
            raise ParameterError(
                "class_weight must be None, 'balanced' or a dict with the classes of the domain for keys."
            )
        return tuple(float(self.class_weight[label]) for label in known)


@dataclass(eq=False, repr=False, kw_only=True)
class DPGradientRegressor(BaseDPRegressor, _DPGradient):
    """Sparse robust regression from a few noisy full gradients.

    **When to use.** To predict numbers from wide sparse tables. On narrow tables with many rows `DPRidgeRegressor` is
    more accurate.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `target_range` or `target_bound`; `n_samples` as in `DPGradientClassifier`.
    epsilon, delta, adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Price, neighbours, account and noise of the fit.
    n_nonzero, n_iter : as in `DPGradientClassifier`
        Weights kept, and steps.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPGradientRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(target_bound=1.0, row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPGradientRegressor(domain, epsilon=2.0, n_nonzero=3).fit(X, X[:, 0])
    >>> model.coef_.shape, model.privacy_.headline
    ((8,), '(2, 1e-6)-DP of the table given to fit, add/remove one row, proven')
    """


@dataclass(eq=False, repr=False, kw_only=True)
class _DPHardThreshold(_NoisyGradients):
    n_nonzero: int | str = AUTO

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count_or_auto(self.n_nonzero)

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        too_few = max(MIN_EFFECTIVE_ROWS_TO_FIT, 15.0 * math.sqrt(n_features))
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
        Number of noisy gradients, as in `DPGradientClassifier`.

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

"""DPGradientClassifier and DPGradientRegressor: noisy full gradients on scaled, renormalised rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpsparse._checks import given
from dpsparse.clipping import HUGE, TINY
from dpsparse.estimators._base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
    check_count,
    check_positive,
    output_count,
)
from dpsparse.estimators._phases import mean_alone
from dpsparse.exceptions import ParameterError
from dpsparse.nonzeros import check_n_nonzero, count_event
from dpsparse.privacy import REST, Budget, Plan
from dpsparse.solvers.gradient import (
    INTERCEPT_ROUNDS,
    MAX_ITER,
    MEDIAN_ROUNDS,
    Recipe,
    solve,
)

NARROW = 10_000  # features of narrow data where the number of rows is not declared

NOTES = {
    "prior": "noisy class counts (or count and mean of the targets)",
    "masses": "noisy sum of |x_i|/||x_i||: scale and filter of the features",
    "spread": f"{MEDIAN_ROUNDS} noisy counts: where to clip residuals",
    "gradients": "all steps together: sum of (sensitivity/scale)^2 over the steps",
    "length": f"{MEDIAN_ROUNDS} noisy counts: median length of scaled rows",
    "intercept": f"{INTERCEPT_ROUNDS} noisy sums: offset of the final model",
}


@dataclass(eq=False, repr=False, kw_only=True)
class _DPGradient(BaseDPLinearModel):
    """What classifier and regressor share: the shares of the budget and the plan."""

    n_nonzero: Any = None
    n_iter: int | None = None
    step_size: float | None = None
    clip: float | None = None
    masses: Any = "auto"
    renormalise: bool | None = None
    prune: bool | None = None
    soft_threshold: bool | None = None
    fit_intercept: bool = True

    # Shares of the budget (of mu^2 in Gaussian DP); the gradients get the rest.
    _shares: ClassVar[dict[str, float]] = {
        "prior": 0.02,
        "masses": 0.15,
        "length": 0.01,
        "intercept": 0.03,
    }
    _solver: ClassVar[Any] = staticmethod(solve)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_n_nonzero(self.n_nonzero)
        check_count("n_iter", self.n_iter, optional=True)
        if self.n_iter is not None and self.n_iter > MAX_ITER:
            raise ParameterError(f"n_iter must be at most {MAX_ITER}, got {given(self.n_iter)}.")
        for name in ("step_size", "clip"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), "None chooses it")
                if not TINY <= getattr(self, name) <= HUGE:
                    raise ParameterError(
                        f"{name} must lie between 2**-100 and 2**100, got {given(getattr(self, name))}; "
                        "None chooses it."
                    )
        if isinstance(self.masses, str) and self.masses not in ("auto", "private"):
            raise ParameterError(
                "masses must be 'auto', 'private', None or an array of public feature masses."
            )

    def _bounds_rows(self, n_features: int) -> bool:
        return True

    def _why_one_row(self) -> str:
        return ""

    def _private_masses(self, n_features: int) -> bool:
        """On narrow data masses help to classify, where features are rare or one-hot, and hurt
        regression, where scaling up a small feature fits its noise."""
        narrow = n_features <= (self._domain.n_samples or NARROW)
        skip = self._labels_are_numbers and narrow and self.masses == "auto"
        return isinstance(self.masses, str) and not skip

    def _budget(self, n_features: int, labels: np.ndarray | None) -> Budget:
        """What a fit releases, with its share of the budget."""
        n_outputs, n_classes = output_count(labels), 2 if labels is None else len(labels)
        budget, share = Budget(self.epsilon, self.delta), self._shares
        budget.gaussian("prior", share["prior"], n_classes, NOTES["prior"])
        if self._private_masses(n_features):
            budget.gaussian("masses", share["masses"], n_features, NOTES["masses"])
        if self._labels_are_numbers and self.clip is None:
            budget.gaussian("spread", share["length"], MEDIAN_ROUNDS, NOTES["spread"])
        budget.gaussian("length", share["length"], MEDIAN_ROUNDS, NOTES["length"])
        if self.fit_intercept:
            numbers = INTERCEPT_ROUNDS * n_classes
            budget.gaussian("intercept", share["intercept"], numbers, NOTES["intercept"])
        steps = 3 * MAX_ITER * (n_features + 1) * n_outputs  # numbers of all steps, at most
        budget.gaussian("gradients", REST, steps, NOTES["gradients"])
        count = count_event(check_n_nonzero(self.n_nonzero))
        if count is not None:
            budget.fixed("count", count, "noisy number of weights")
        return budget

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        if isinstance(self.masses, np.ndarray) and self.masses.shape != (n_features,):
            raise ParameterError("masses must hold one public number per feature.")
        if isinstance(self.masses, np.ndarray) and not np.all(
            (self.masses == 0) | ((self.masses >= TINY) & (self.masses <= HUGE))
        ):
            raise ParameterError(
                "masses must be 0 (drop the feature) or lie between 2**-100 and 2**100."
            )
        fewest = mean_alone(self) if self.n_iter is None and self.clip is None else None
        if fewest is not None:
            return fewest
        n_outputs = output_count(labels)
        budget = self._budget(n_features, labels)
        shares = budget.shares
        return self._planned(
            budget.phases(),
            self._recipe(n_features, n_outputs, "masses" in shares, labels),
            source="docs/proofs/noisy_gradient.md",
            parameters={
                "n_iter": self.n_iter or "from released counts",
                "mu": budget.mu,
                "n_outputs": n_outputs,
                **{f"{name}_share": share for name, share in shares.items()},
            },
        )

    def _assumptions(self) -> tuple[str, ...]:
        if self._domain.n_samples is None and self.adjacency == "replace-one":
            return (f"the number of {self._domain.unit}s is public (replace-one)",)
        return super()._assumptions()

    def _recipe(
        self, n_features: int, n_outputs: int, private_masses: bool, labels: np.ndarray | None
    ) -> Recipe:
        domain = self._domain
        bound = domain.entry_bound(math.inf if domain.bounds is None else 1.0)
        longest = domain.row_norm or (None if math.isinf(bound) else bound * math.sqrt(n_features))
        masses = self.masses
        if isinstance(masses, str):
            masses = "private" if private_masses else None
        return Recipe(
            loss=self._loss_name(n_outputs),
            n_outputs=n_outputs,
            n_samples=domain.n_samples,
            longest=longest,
            target_bound=domain.target_bound or 1.0,
            n_iter=self.n_iter,
            step=self.step_size,
            clip=self.clip,
            masses=masses,
            renormalise=self.renormalise,
            prune=self.prune,
            soften=self.soft_threshold,
            fit_intercept=self.fit_intercept,
            n_nonzero=check_n_nonzero(self.n_nonzero),
            class_weight=self._class_weight(labels),
        )

    def _class_weight(self, labels: np.ndarray | None) -> tuple[float, ...] | str | None:
        """Public weights in the order of the labels, "balanced" or None."""
        return None


@dataclass(eq=False, repr=False, kw_only=True)
class DPGradientClassifier(BaseDPClassifier, _DPGradient):
    """Sparse logistic or multinomial model from a few noisy full gradients.

    Parameters
    ----------
    domain : Domain
        Public facts. Needs `classes`. `n_samples` is optional: without it the number of rows is public
        under replace-one and taken from a noisy count, part of the budget, under add-remove.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` gives the non-private model.
    n_nonzero : int, "mass", PrivateCount or None, default=None
        Weights to keep: the largest on scaled rows (free), the fewest with 90 % of the absolute
        sum (free), a private count (paid), or all. For several classes: of all classes together.
    n_iter : int or None, default=None
        Noisy gradients; None takes a number that grows with sqrt(rows * budget).
    step_size : float or None, default=None
        None takes a step that shrinks where noise would drown the rows.
    clip : float or None, default=None
        Largest slope of a row. None: from the released class counts.
    masses : "auto", "private", array of shape (n_features,) or None, default="auto"
        "auto" is "private", but None for regression with no more features than declared rows
        (undeclared: 10,000). Scale of feature j is mass_j^(-1/2). Public masses (say document frequencies of another
        corpus) free their share; zero drops a feature; None leaves features unscaled.
    renormalise : bool or None, default=None
        Whether scaled rows are brought to length 1, or only those longer than 1.5 medians
        shortened. None: the former, except for regression with fewer features than rows.
    prune : bool or None, default=None
        Spend half of the gradients on finding features and refit on them. None: for wide data.
    soft_threshold : bool or None, default=None
        Shrink weights by the noise of a step. None: for wide data.
    fit_intercept : bool, default=True
        Adjust the offset of the final model to the released counts.
    class_weight : dict, "balanced" or None, default=None
        Public weight of the rows of each class: slopes are multiplied by it before they are clipped, so it costs
        nothing. "balanced" takes one over the released class counts.
    adjacency : {"add-remove", "replace-one"}
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int, default=0
        1 tells every phase with its seconds, 0 shows a line on a terminal while a fit takes long, -1 nothing.

    Notes
    -----
    Rows are brought to length 1 by the method itself, so no bound on features or rows is needed.
    `coef_noise_` is the standard deviation of the privacy noise of each weight and nothing else: no standard error
    (docs/inference.md). The result is a linear model on the original features. Method: docs/frontier.md; proof:
    docs/proofs/noisy_gradient.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPGradientClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(classes=[0, 1], row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPGradientClassifier(domain, epsilon=2.0, n_nonzero=3).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.coef_.shape, model.privacy_.headline
    ((1, 8), '(2.0, 1e-06)-DP of the table given to fit, add/remove one row, proven')
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

    def _class_weight(self, labels: np.ndarray | None) -> tuple[float, ...] | str | None:
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

    Parameters
    ----------
    domain : Domain
        Needs `target_bound` or `target_range`; `n_samples` as in `DPGradientClassifier`.
    clip : float or None, default=None
        Largest slope of a row. None: from the released spread of the targets.

    All other parameters are those of `DPGradientClassifier`.

    Notes
    -----
    Method: docs/frontier.md; proof: docs/proofs/noisy_gradient.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPGradientRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(target_bound=1.0, row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPGradientRegressor(domain, epsilon=2.0, n_nonzero=3).fit(X, X[:, 0])
    >>> model.coef_.shape, model.privacy_.headline
    ((8,), '(2.0, 1e-06)-DP of the table given to fit, add/remove one row, proven')
    """

    _shares: ClassVar[dict[str, float]] = {
        "prior": 0.08,
        "masses": 0.15,
        "length": 0.02,
        "intercept": 0.05,
    }

"""A scikit-learn scorer that pays: every call is one private evaluation with its own epsilon."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsparse._checks import check_terms, show_number
from dpsparse.accounting import Event, Gaussian, NonPrivate, calibrate
from dpsparse.evaluation.api import dp_evaluate
from dpsparse.exceptions import BudgetWarning, ParameterError
from dpsparse.methods.schema import request_for_groups

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger

# scikit-learn's name -> metric, sign; a larger score must be better
_NAMES = {
    "accuracy": ("accuracy", 1.0),
    "precision": ("precision", 1.0),
    "recall": ("recall", 1.0),
    "f1": ("f1", 1.0),
    "matthews_corrcoef": ("mcc", 1.0),
    "roc_auc": ("auc", 1.0),
    "roc_auc_ovr": ("auc", 1.0),
    "neg_log_loss": ("log_loss", -1.0),
    "neg_brier_score": ("brier", -1.0),
    "neg_mean_absolute_error": ("mae", -1.0),
    "neg_mean_squared_error": ("mse", -1.0),
    "r2": ("r2", 1.0),
}


@dataclass(frozen=True)
class DPScorer:
    """Call it as scikit-learn does: scorer(model, X, y, groups=ids). Pays `epsilon` at every call."""

    metric: str
    epsilon: float
    delta: float = 1e-6
    ledger: Ledger | None = None
    adjacency: str = "add-remove"
    target_bound: float | None = None
    persons: bool = False

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's metadata routing hands on: `groups`, if persons are to be protected."""
        return request_for_groups(self, self.persons)

    @property
    def event(self) -> Event:
        """What one call costs, for every model: the Gaussian noise that (epsilon, delta) pays for."""
        if math.isinf(self.epsilon):
            return NonPrivate()
        mu = calibrate(lambda m: Gaussian(1.0 / m), self.epsilon, self.delta)
        return Gaussian(1.0 / mu)

    def __call__(self, model: Any, X: Any, y: Any, groups: Any = None) -> float:
        if self.persons and groups is None:
            raise ParameterError(
                "This scorer protects persons; name the person of every row: params={'groups': ids} with "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        if self.ledger is None:
            warnings.warn(
                f"This scorer spends epsilon={self.epsilon:g} at every call and nobody counts; pass "
                "ledger=Ledger(path).",
                BudgetWarning,
                stacklevel=2,
            )
        name, sign = _NAMES[self.metric]
        report = dp_evaluate(
            model,
            X,
            y,
            epsilon=self.epsilon,
            delta=self.delta,
            ledger=self.ledger,
            groups=groups,
            adjacency=self.adjacency,
            metrics=[name],
            target_bound=self.target_bound,
        )
        return sign * float(report.estimates[name])

    def __repr__(self) -> str:
        price = f"epsilon={self.epsilon:g}, delta={show_number(self.delta)}"
        return f"make_dp_scorer({self.metric!r}): pays {price} at every call"


def make_dp_scorer(
    metric: str,
    *,
    epsilon: float,
    delta: float = 1e-6,
    ledger: Ledger | None = None,
    adjacency: str = "add-remove",
    target_bound: float | None = None,
    persons: bool = False,
) -> DPScorer:
    """A scorer for `cross_val_score` and its like. IT PAYS AT EVERY CALL: k folds cost k times epsilon.

    Parameters
    ----------
    metric : str
        Name as in scikit-learn: "accuracy", "roc_auc", "neg_log_loss", "r2", ...
    epsilon : float
        Privacy loss of one call, in natural log odds; all of it is spent on this metric.
    delta : float, default=1e-6
        Probability that the guarantee of one call fails.
    ledger : Ledger or None, default=None
        Account that pays. Without it every call warns.
    adjacency, target_bound : see `dp_evaluate`
        Which tables are neighbours, and the bound on targets of a regressor.
    persons : bool, default=False
        Protect a person with all of their rows: scikit-learn's metadata routing hands `groups` to the scorer.

    Returns
    -------
    DPScorer
        Takes (estimator, X, y), as scikit-learn's scorers do.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier, Ledger, make_dp_scorer
    >>> from dpsparse.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(n_samples=2_000, n_features=50, seed=0)
    >>> model = DPGradientClassifier(Domain(classes=[0, 1]), epsilon=1.0).fit(X[:1_500], y[:1_500])
    >>> scorer = make_dp_scorer("accuracy", epsilon=0.5, ledger=Ledger(epsilon=1.0, delta=1e-6))
    >>> 0.0 <= scorer(model, X[1_500:], y[1_500:]) <= 1.0
    True
    """
    if metric not in _NAMES:
        raise ParameterError(
            f"There is no private scorer {metric!r}; there are: {', '.join(_NAMES)}."
        )
    check_terms(epsilon, delta, adjacency, ledger, "exact evaluation")
    return DPScorer(metric, epsilon, delta, ledger, adjacency, target_bound, bool(persons))

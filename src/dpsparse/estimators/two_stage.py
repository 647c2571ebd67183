"""DPTwoStageClassifier and DPTwoStageRegressor: a private support, then a private fit on it."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from dpsparse.estimators._base import (
    BaseDPClassifier,
    BaseDPRegressor,
    check_choice,
    check_count,
)
from dpsparse.estimators._scaled_support import short_plan
from dpsparse.estimators._support import DPSupportFirst
from dpsparse.privacy import Plan
from dpsparse.rows.votes import Selector, correlation_selector
from dpsparse.solvers.two_stage import Votes

SUPPORTS = ("peeling", "votes")
SELECTORS = ("correlation", "lasso")
STAGES = ("objective", "output", "gradient")
DEFAULT_BLOCKS = 64
TOO_FEW = 30.0  # effective rows below which a regression is the mean of its targets
SCALED_SPLIT = 0.6  # share of the support in what released scales leave
PREFILTER = 4  # the L1 path of a block starts from this many times n_nonzero correlated features


def lasso_selector(X: sp.csr_array, y: np.ndarray, n_nonzero: int) -> np.ndarray:
    """First features to enter the L1 path of one block (squared loss, centred targets)."""
    candidates = correlation_selector(X, y, PREFILTER * n_nonzero)
    columns = X[:, candidates].toarray()
    columns = columns - columns.mean(axis=0)
    from sklearn.linear_model import lars_path  # half a second: only those who need it wait

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning would tell something about one block
            _, order, _ = lars_path(columns, y - y.mean(), method="lasso", max_iter=n_nonzero)
    except Exception:  # whatever a block does must not be seen
        return candidates[:n_nonzero]
    return np.asarray(candidates[np.asarray(order, dtype=np.intp)])


@dataclass(eq=False, repr=False, kw_only=True)
class _DPTwoStage(DPSupportFirst):
    support: str = "peeling"
    n_blocks: int | None = None
    selector: str = "correlation"
    second_stage: str = "objective"
    split: float | None = None
    n_iter: int = 30

    _source: ClassVar[str] = "docs/proofs/two_stage.md, docs/proofs/objective_perturbation.md"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_blocks", self.n_blocks, optional=True)
        check_choice("support", self.support, SUPPORTS)
        check_choice("selector", self.selector, SELECTORS)
        check_choice("second_stage", self.second_stage, STAGES)

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        chosen = (self.support, self.second_stage, self.ridge, self.row_clip)
        plain = chosen == ("peeling", "objective", None, None)
        plan = short_plan(self, n_features, SCALED_SPLIT, TOO_FEW) if plain else None
        return plan or super()._make_plan(n_features, labels)

    def _stage(self) -> str:
        return self.second_stage

    def _selector(self) -> Selector:
        return lasso_selector if self.selector == "lasso" else correlation_selector

    def _votes(self, n_features: int, kappa: float) -> Votes | None:
        """Enough blocks that a unanimous vote beats the noise of all other features, at least the
        square root of n_samples (the paper), and at least ten rows in a block."""
        if self.support != "votes":
            return None
        n_samples = self._domain.n_samples
        if self.n_blocks is not None or n_samples is None:
            return Votes(self.n_blocks or DEFAULT_BLOCKS, self._selector())
        enough = math.ceil(2.0 * math.log(n_features + 1.0) / kappa)
        n_blocks = max(2, min(max(enough, math.isqrt(n_samples)), n_samples // 10))
        return Votes(n_blocks, self._selector())


@dataclass(eq=False, repr=False, kw_only=True)
class DPTwoStageClassifier(BaseDPClassifier, _DPTwoStage):
    """Sparse logistic model: a private support, then a private fit on it.

    Parameters
    ----------
    domain : Domain
        Needs `classes`, and `feature_bound` or `row_norm`. `n_samples` sets the default number of
        blocks, and is needed by `second_stage="output"` (without `ridge`) and `"gradient"`.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` gives the non-private model.
    n_nonzero : int
        Size of the support, per class for more than two classes (one against the rest).
    support : {"peeling", "votes"}
        Private top-k of one gradient (needs `domain.n_samples`), or of the votes of
        blocks as in the paper, which finds far less at the same price.
    n_blocks : int or None
        Public number of blocks; None takes as many as the noise asks for, between the square root
        and a tenth of `domain.n_samples` (64 where that is not declared).
    selector : {"correlation", "lasso"}
        How a block chooses its features: marginal correlation, or the L1 path.
    second_stage : {"objective", "output", "gradient"}
        How the fit on the support is made private.
    split : float or None
        Share of the budget for the support. None takes .4: with the wrong half of a support the right
        weights still predict. Where a regression releases its scales, None is .6 of what they leave.
    ridge : float or None
        Ridge of the summed loss on the support; None takes a public default.
    row_clip : float or None
        Rows longer than this on the support count with less weight (`"gradient"`: their gradients are
        shortened); None is half of the largest norm the domain allows.
    n_iter : int
        Noisy gradients of `second_stage="gradient"`; unused otherwise.
    fit_intercept : bool
        Add a constant column; it carries ridge and noise like every other.
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
    >>> from dpsparse import Domain, DPTwoStageClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(classes=[0, 1], row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPTwoStageClassifier(domain, epsilon=2.0, n_nonzero=3).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.coef_.shape, model.privacy_.headline
    ((1, 8), '(2.0, 1e-06)-DP of the table given to fit, add/remove one row, proven')
    """


@dataclass(eq=False, repr=False, kw_only=True)
class DPTwoStageRegressor(BaseDPRegressor, _DPTwoStage):
    """Sparse Huber regression: a private support, then a private fit on it.

    The squared loss has no bounded slope without a bound on the weights, so residuals count
    linearly beyond `cutoff`.

    As it comes (peeling, objective perturbation, and no `ridge`, `row_clip` or `cutoff`), with `n_samples` declared and
    100 effective rows or more, declared bounds only bound: mean and spread of the targets, the size of entries,
    and centre, scales and length of the rows on the support are released for a part of the budget, and the fit is that
    of `DPRidgeRegressor`. With fewer rows declared bounds set all scales, and below 30 only the mean is released.

    Parameters
    ----------
    domain : Domain
        Needs `target_bound`, and `feature_bound` or `row_norm`.
    cutoff : float or None
        Huber's cutoff; noise is proportional to it. None takes a released spread, or a quarter of the target bound.

    All other parameters are those of `DPTwoStageClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPTwoStageRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(target_bound=1.0, row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPTwoStageRegressor(domain, epsilon=2.0, n_nonzero=3).fit(X, X[:, 0])
    >>> model.coef_.shape, model.privacy_.headline
    ((8,), '(2.0, 1e-06)-DP of the table given to fit, add/remove one row, proven')
    """

    cutoff: float | None = None

"""DPTransferClassifier and DPTransferRegressor: a private support, a teacher on it, its release.

With no public rows this is `DPTwoStage*(second_stage="output", split=0.5)`: a student by least squares only ever loses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from dpsparse._checks import given
from dpsparse.estimators._base import (
    BaseDPClassifier,
    BaseDPRegressor,
    check_count,
)
from dpsparse.estimators._scaled_support import short_plan
from dpsparse.estimators._support import DPSupportFirst
from dpsparse.exceptions import ParameterError
from dpsparse.privacy import Plan
from dpsparse.solvers.two_stage import UNIFORM

SCALED_SPLIT = 0.5  # share of the support in what released scales leave


@dataclass(eq=False, repr=False, kw_only=True)
class _DPTransfer(DPSupportFirst):
    public_X: Any = None
    n_public: int | None = None

    _source: ClassVar[str] = "docs/proofs/transfer.md"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_public", self.n_public, optional=True)
        if isinstance(self.public_X, str) and self.public_X != UNIFORM:
            raise ParameterError(
                f"public_X must be None, an array of public rows or {UNIFORM!r}, "
                f"got {given(self.public_X)}."
            )

    def _rounds(self) -> int:
        return self.n_iter

    def _public_rows(self) -> tuple[Any, int]:
        if self.public_X is None:
            return None, 0
        given = self.public_X if isinstance(self.public_X, str) else sp.csc_array(self.public_X)
        return given, self._public_count()

    def _assumptions(self) -> tuple[str, ...]:
        public = () if self.public_X is None else ("public_X is public",)
        return super()._assumptions() + public

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        public = self.public_X
        if public is not None and not isinstance(public, str) and public.shape[1] != n_features:
            raise ParameterError(
                f"public_X must have the {n_features} columns of X, got {public.shape[1]}."
            )
        chosen = (self.ridge, self.row_clip, getattr(self, "cutoff", None))
        plain = public is None and chosen == (None, None, None) and self.n_iter == 1
        plan = short_plan(self, n_features, SCALED_SPLIT) if plain else None
        return plan or super()._make_plan(n_features, labels)

    def _public_count(self) -> int:
        if self.public_X is None or isinstance(self.public_X, str):
            return int(self.n_public or self._domain.n_samples or 1)
        return int(self.public_X.shape[0])


@dataclass(eq=False, repr=False, kw_only=True)
class DPTransferClassifier(BaseDPClassifier, _DPTransfer):
    """Sparse logistic model by knowledge transfer: private support, ridge teacher, release.

    Parameters
    ----------
    domain : Domain
        Needs `classes`, `feature_bound` and `n_samples`; `row_norm` helps.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` gives the non-private model.
    n_nonzero : int
        Size of the support, per class for more than two classes (one against the rest).
    public_X : None, "uniform" or array of shape (n_public, n_features)
        None releases the teacher directly, which is better as a rule. Otherwise a student learns
        from the teacher's noisy answers on these public rows ("uniform": drawn from
        uniform(-1, 1)): least squares, or, where the rows are short in some directions, what
        stands out of the noise.
    n_public : int or None
        Number of rows drawn for `public_X="uniform"`; None takes `domain.n_samples`.
    split : float
        Share of the budget for the support (a twentieth of it for the prior of the margin).
    ridge : float or None
        Ridge of the summed loss on the support; None takes a public default.
    row_clip : float or None
        Rows longer than this on the support count with less weight; None is half of the largest
        norm the domain allows.
    n_iter : int
        Rounds of peeling that find the support.
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
    >>> from dpsparse import Domain, DPTransferClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(classes=[0, 1], row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPTransferClassifier(domain, epsilon=2.0, public_X=X[:50]).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.coef_.shape, model.privacy_.headline
    ((1, 8), '(2.0, 1e-06)-DP of the table given to fit, add/remove one row, proven')
    """


@dataclass(eq=False, repr=False, kw_only=True)
class DPTransferRegressor(BaseDPRegressor, _DPTransfer):
    """Sparse Huber regression by knowledge transfer: private support, ridge teacher, release.

    As it comes (one round, and no `public_X`, `ridge`, `row_clip` or `cutoff`) and with 100 effective rows or more,
    scales are released as by `DPTwoStageRegressor`; below 60 the mean of the targets is all.

    Parameters
    ----------
    domain : Domain
        Needs `target_bound`, `feature_bound` and `n_samples`; `row_norm` helps.
    cutoff : float or None
        Huber's cutoff; noise is proportional to it. None takes a quarter of the target bound.

    All other parameters are those of `DPTransferClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse import Domain, DPTransferRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(target_bound=1.0, row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPTransferRegressor(domain, epsilon=2.0, public_X=X[:50]).fit(X, X[:, 0])
    >>> model.coef_.shape, model.privacy_.headline
    ((8,), '(2.0, 1e-06)-DP of the table given to fit, add/remove one row, proven')
    """

    cutoff: float | None = None

"""DPTwoStage*, DPTransfer* and DPADMMClassifier: one method, support first, with different fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from dpsparse._checks import check_choice, check_count, given
from dpsparse.accounting import Budget, Plan
from dpsparse.domain.clipping import HUGE
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
)
from dpsparse.methods.look.targets import plan_mean_if_few_rows
from dpsparse.methods.minimisers import check_range, noise_of_the_fit
from dpsparse.methods.solution import Settings
from dpsparse.methods.support_first import defaults
from dpsparse.methods.support_first.plan import choose, price
from dpsparse.methods.support_first.solve import Admm
from dpsparse.rows.ridge import LARGEST_TABLE, MANY_ROWS, ONE_ROW

AUTO = "auto"


@dataclass(eq=False, repr=False, kw_only=True)
class _SupportFirst(BaseDPLinearModel):
    """The plan of all of them; each says how the fit on the columns found is made private."""

    n_nonzero: int | str = AUTO

    _source: ClassVar[str]

    def _fit_kind(self) -> str:
        """ "objective", "output", "student" or "admm"."""
        raise TypeError(f"{type(self).__name__} does not say how it fits.")

    def _asked(self, n_features: int) -> dict[str, Any]:
        """What a user has set of `choose`."""
        return {}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (isinstance(self.n_nonzero, str) and self.n_nonzero == AUTO):
            check_count("n_nonzero", self.n_nonzero)

    def _why_one_row(self) -> str:
        if self._fit_kind() == "objective":
            return ONE_ROW
        return MANY_ROWS if self._domain.rows_per_unit is None else ""

    def _most_rows(self, n_features: int) -> int | None:
        return LARGEST_TABLE

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan[Settings]:
        name, fit = type(self).__name__, self._fit_kind()
        if self._labels_are_numbers:
            too_few = defaults.MIN_EFFECTIVE_ROWS_OF_REGRESSION[fit]
            mean = plan_mean_if_few_rows(self, too_few)
            if mean is not None:
                return mean
            self._domain.require("target_bound", name)
        self._domain.require("n_samples", name)
        facts, wanted = self._facts(n_features, labels), self.n_nonzero
        if isinstance(wanted, str):
            wanted = defaults.choose_columns(facts.effective_rows, n_features)
        settings = choose(facts, fit=fit, n_nonzero=wanted, **self._asked(n_features))
        budget = Budget(self.epsilon, self.delta)
        price(settings, self.adjacency, budget, name)
        phases = budget.phases()
        return self._planned(
            phases,
            settings,
            source=self._source,
            parameters={
                "n_iter": 1 if settings.admm is None else settings.admm.n_iter,
                **noise_of_the_fit(phases),
                "n_nonzero": settings.n_nonzero,
                "scales": settings.way,
                "effective_rows": facts.effective_rows,
                "ridge": settings.ridge,
                "row_clip": settings.row_clip,
                "n_outputs": settings.n_outputs,
                **{f"{name}_share": share for name, share in budget.shares.items()},
            },
        )


@dataclass(eq=False, repr=False, kw_only=True)
class _TwoStage(_SupportFirst):
    ridge: float | None = None

    _source: ClassVar[str] = "docs/proofs/two_stage.md, docs/proofs/objective_perturbation.md"

    def _fit_kind(self) -> str:
        return "objective"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.ridge is not None:
            check_range("ridge", self.ridge, HUGE**2)

    def _asked(self, n_features: int) -> dict[str, Any]:
        return {"ridge": self.ridge}


@dataclass(eq=False, repr=False, kw_only=True)
class DPTwoStageClassifier(BaseDPClassifier, _TwoStage):
    """Sparse logistic model: columns are found privately, then fitted by objective perturbation.

    With 100 effective rows or more (`n_samples` times mu), declared bounds only bound: the size of entries, and centre,
    scales and length of the rows on the columns found are released for a part of the budget. With fewer rows declared
    bounds set all scales.

    Parameters
    ----------
    domain : Domain
        Needs `classes` and `n_samples`; `feature_bound` or `row_norm` where entries exceed 1.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` runs the same algorithm without noise.
    n_nonzero : int or "auto", default="auto"
        Columns that are found and fitted, per class for more than two classes (one against the rest). "auto" takes one
        for every 12 effective rows, 50 at most: a rule of public numbers, which costs nothing.
    ridge : float or None, default=None
        Ridge of the summed loss on standardised rows; None takes a public default.
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
class DPTwoStageRegressor(BaseDPRegressor, _TwoStage):
    """Sparse Huber regression: columns are found privately, then fitted by objective perturbation.

    Scales are released as by `DPTwoStageClassifier`, mean and spread of the targets as well. Below 30 effective rows
    only the mean of the targets is released.

    Parameters
    ----------
    domain : Domain
        Needs `target_bound` or `target_range`, and `n_samples`.

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


@dataclass(eq=False, repr=False, kw_only=True)
class _Transfer(_SupportFirst):
    public_X: Any = None
    ridge: float | None = None

    _source: ClassVar[str] = "docs/proofs/transfer.md"

    def _fit_kind(self) -> str:
        return "output" if self.public_X is None else "student"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.ridge is not None:
            check_range("ridge", self.ridge, HUGE**2)
        if self.public_X is not None and len(getattr(self.public_X, "shape", ())) != 2:
            raise ParameterError(
                f"public_X must be None or an array of public rows, got {given(self.public_X)}."
            )

    def _asked(self, n_features: int) -> dict[str, Any]:
        rows = self.public_X
        if rows is not None and rows.shape[1] != n_features:
            raise ParameterError(
                f"public_X must have the {n_features} columns of X, got {rows.shape[1]}."
            )
        public = None if rows is None else sp.csc_array(rows)
        return {"ridge": self.ridge, "public_rows": public}

    def _assumptions(self) -> tuple[str, ...]:
        public = () if self.public_X is None else ("public_X is public",)
        return super()._assumptions() + public


@dataclass(eq=False, repr=False, kw_only=True)
class DPTransferClassifier(BaseDPClassifier, _Transfer):
    """Sparse logistic model by knowledge transfer: columns are found privately, a ridge teacher is fitted on them and
    released, or answers public rows from which a student learns.

    Parameters
    ----------
    domain : Domain
        Needs `classes` and `n_samples`; `feature_bound` or `row_norm` where entries exceed 1.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` runs the same algorithm without noise.
    n_nonzero : int or "auto", default="auto"
        Columns that are found and fitted, as in `DPTwoStageClassifier`.
    public_X : None or array of shape (n_public, n_features), default=None
        None releases the teacher itself, which is better as a rule. Otherwise a student learns from the teacher's noisy
        answers on these public rows: least squares, or, where the rows are short in some directions, what stands out
        of the noise.
    ridge : float or None, default=None
        Ridge of the summed loss on standardised rows; None takes a public default.
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
class DPTransferRegressor(BaseDPRegressor, _Transfer):
    """Sparse Huber regression by knowledge transfer. Below 60 effective rows only the mean of the targets is released.

    Parameters
    ----------
    domain : Domain
        Needs `target_bound` or `target_range`, and `n_samples`.

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


@dataclass(eq=False, repr=False, kw_only=True)
class DPADMMClassifier(BaseDPClassifier, _SupportFirst):
    """Sparse logistic model by private ADMM on columns that are found first (more than two classes: one against the
    rest).

    Parameters
    ----------
    domain : Domain
        Needs `classes` and `n_samples`; `feature_bound` or `row_norm` where entries exceed 1.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` runs the same algorithm without noise.
    n_nonzero : int or "auto", default="auto"
        Columns that are found, as in `DPTwoStageClassifier`; the penalty may remove weights of them.
    penalty : {"l1", "l1/2"}, default="l1"
    n_iter : int, default=5
        Rounds; each releases one noisy vector. A privacy parameter.
    coupling : float or None, default=None
        Weight of the augmented term of the mean loss on standardised rows: larger means less noise and slower rounds.
        None takes a public default.
    threshold : float or None, default=None
        Of the proximal step on standardised columns; None takes three times the noise of one round.
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
    >>> from dpsparse import Domain, DPADMMClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 8)) / 8
    >>> domain = Domain(classes=[0, 1], row_norm=1.0, feature_bound=1.0, n_samples=500)
    >>> model = DPADMMClassifier(domain, epsilon=2.0, n_iter=3).fit(X, (X[:, 0] > 0).astype(int))
    >>> model.coef_.shape, model.privacy_.headline
    ((1, 8), '(2.0, 1e-06)-DP of the table given to fit, add/remove one row, proven')
    """

    penalty: str = "l1"
    n_iter: int = defaults.ADMM_ROUNDS
    coupling: float | None = None
    threshold: float | None = None

    _source: ClassVar[str] = "docs/proofs/admm.md"

    def _fit_kind(self) -> str:
        return "admm"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("penalty", self.penalty, ("l1", "l1/2"))
        check_count("n_iter", self.n_iter)
        for name in ("coupling", "threshold"):
            if getattr(self, name) is not None:
                check_range(name, getattr(self, name))

    def _asked(self, n_features: int) -> dict[str, Any]:
        weight = None
        if self.coupling is not None:
            n = int(self._domain.require("n_samples", type(self).__name__))
            weight = n * float(self.coupling)
        return {
            "ridge": weight,
            "admm": Admm(self.penalty, int(self.n_iter), self.threshold),
        }

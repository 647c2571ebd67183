"""DPTransferClassifier and DPTransferRegressor: a private support, a teacher on it, its release."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from dpsparse.domain import BoundedData, Domain
from dpsparse.estimators._base import (
    BaseDPClassifier,
    BaseDPLinearModel,
    BaseDPRegressor,
    check_count,
    check_positive,
)
from dpsparse.estimators._support import (
    Peeling,
    RidgeFit,
    assemble,
    check_share,
    find_level,
    make_fit,
    make_peeling,
    output_count,
    phases,
    targets,
)
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Huber, Logistic, Loss, Squared
from dpsparse.privacy import Event, Plan, Sequence
from dpsparse.published import wang_gu_2020_transfer as published
from dpsparse.solvers.transfer import distil

if TYPE_CHECKING:
    from dpsparse.privacy.ledger import Ledger

STUDENT_STEPS = 60
UNIFORM = "uniform"


class _Transfer(BaseDPLinearModel):
    """Planning and solving; the public classes add the loss and their parameters."""

    n_nonzero: int
    public_X: Any
    n_public: int | None
    split: float
    ridge: float | None
    row_clip: float | None
    n_iter: int
    fit_intercept: bool

    _calibrations: ClassVar[tuple[str, ...]] = ("proven", "published")

    def _loss(self) -> tuple[Loss, float]:
        """The loss and the largest slope of any row."""
        return Logistic(), 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero)
        check_count("n_iter", self.n_iter)
        check_count("n_public", self.n_public, optional=True)
        check_share("split", self.split)
        for name in ("ridge", "row_clip"):
            without_ridge = name == "ridge" and self.calibration == "published" and self.ridge == 0
            if getattr(self, name) is not None and not without_ridge:
                check_positive(name, getattr(self, name))
        if isinstance(self.public_X, str) and self.public_X != UNIFORM:
            raise ParameterError(
                f"public_X must be None, an array of public rows or {UNIFORM!r}, "
                f"got {self.public_X!r}."
            )

    def _make_fit(self, n_features: int, n_outputs: int) -> RidgeFit:
        loss, slope_bound = self._loss()
        return make_fit(
            self,
            method="output",
            loss=loss,
            slope_bound=slope_bound,
            n_columns=min(self.n_nonzero, n_features),
            n_outputs=n_outputs,
        )

    def _make_peeling(self, n_features: int, n_outputs: int) -> Peeling:
        return make_peeling(
            self,
            loss=self._loss()[0],
            n_columns=min(self.n_nonzero, n_features),
            n_outputs=n_outputs,
            n_iter=self.n_iter,
            classes=isinstance(self, BaseDPClassifier),
        )

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        public = self.public_X
        if public is not None and not isinstance(public, str) and public.shape[1] != n_features:
            raise ParameterError(
                f"public_X must have the {n_features} columns of X, got {public.shape[1]}."
            )
        if self.calibration == "published":
            return self._published_plan(n_features, labels)
        fit = self._make_fit(n_features, output_count(labels))
        peeling = self._make_peeling(n_features, fit.n_outputs)

        def everything(level: float) -> Event:
            support = peeling.event(level, self.split)
            return Sequence((support, fit.event(level, 1.0 - self.split)))

        private = not math.isinf(self.epsilon)
        level = find_level(everything, self.epsilon, self.delta)
        scale, _ = fit.scales(level, 1.0 - self.split)
        how = "direct release" if self.public_X is None else "answers on public rows"
        named = []
        if private:
            named = [
                ("support", peeling.event(level, self.split), "prior of the margin, then peeling"),
                ("teacher", fit.event(level, 1.0 - self.split), f"ridge minimiser, {how}"),
            ]
        return Plan(
            method=type(self).__name__,
            phases=phases(named, private),
            epsilon=float(self.epsilon),
            delta=self.delta,
            adjacency=self.adjacency,
            source="docs/proofs/transfer.md",
            assumptions=(
                "noise in ideal real arithmetic",
                f"n_samples={self._domain.n_samples} is public",
                *(() if self.public_X is None else ("public_X is public",)),
            ),
            parameters={
                "n_iter": self.n_iter,
                **peeling.parameters(level, self.split),
                "scale": scale,
                "ridge": fit.ridge,
                "row_clip": fit.row_clip,
                "n_outputs": fit.n_outputs,
            },
        )

    def _published_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        """Theorem 4.3, or Corollary 4.7 for `ridge=0`; the scale is read off the rows, as printed."""
        n, epsilon = int(self._domain.n_samples or 1), min(float(self.epsilon), 1e6)
        s = min(self.n_nonzero, n_features)
        width = math.sqrt(s * math.log(n_features + 1.0) * math.log(1.0 / self.delta))
        ridge = 0.1 * math.sqrt(width / (n * epsilon)) if self.ridge is None else self.ridge
        return Plan(
            method=type(self).__name__,
            phases=phases([], False),
            epsilon=math.inf,
            delta=self.delta,
            adjacency=self.adjacency,
            calibration="published",
            proven=False,
            source=f"Wang and Gu (2020), {'Theorem 4.3' if ridge else 'Corollary 4.7'}, which is false; "
            "no guarantee",
            parameters={
                "n_iter": STUDENT_STEPS,
                "epsilon": epsilon,
                "ridge": ridge,
                "n_public": self._public_count(),
                "n_outputs": output_count(labels),
            },
        )

    def _public_count(self) -> int:
        if self.public_X is None or isinstance(self.public_X, str):
            return int(self.n_public or self._domain.n_samples or 1)
        return int(self.public_X.shape[0])

    def _public_variance(self) -> float:
        """beta~ of the paper: 1/3 for uniform(-1, 1), else estimated from the public rows."""
        if self.public_X is None or isinstance(self.public_X, str):
            return 1.0 / 3.0
        return published.top_eigenvalue(self.public_X)

    def _public_rows(self, columns: np.ndarray, rng: np.random.Generator) -> Any:
        """Public features on `columns`; a declared distribution is drawn there only."""
        if self.public_X is None or isinstance(self.public_X, str):
            return rng.uniform(-1.0, 1.0, (self._public_count(), len(columns)))
        return sp.csr_array(self.public_X)[:, columns]

    def _solve(
        self, data: BoundedData, plan: Plan, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        values = plan.parameters
        n_features = data.X.shape[1]
        s = min(self.n_nonzero, n_features)
        parts = []
        for y in targets(data, values["n_outputs"]):
            if plan.calibration == "published":
                parts.append((np.arange(n_features), self._published(data, y, s, values, rng)))
                continue
            fit = self._make_fit(n_features, values["n_outputs"])
            peeling = self._make_peeling(n_features, values["n_outputs"])
            support = peeling.solve(data, y, rng, values)
            if self.public_X is None:
                theta = fit.solve(data, y, support, rng, values["scale"], 0.0)
            else:
                teacher = fit.solve(data, y, support, rng, 0.0, 0.0)
                theta = self._student(teacher, support, values["scale"], rng)
            parts.append((support, theta))
        return assemble(parts, n_features, self.fit_intercept and plan.calibration == "proven")

    def _student(
        self, teacher: np.ndarray, support: np.ndarray, scale: float, rng: np.random.Generator
    ) -> np.ndarray:
        rows = self._public_rows(support, rng)
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        if self.fit_intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
        return distil(teacher, rows, rng, scale=scale)

    def _published(
        self, data: BoundedData, y: np.ndarray, s: int, values: Any, rng: np.random.Generator
    ) -> np.ndarray:
        return published.transfer(
            data.X,
            y,
            self._public_rows(np.arange(data.X.shape[1]), rng),
            Logistic() if isinstance(self, BaseDPClassifier) else Squared(),
            rng,
            n_nonzero=s,
            n_iter=values["n_iter"],
            ridge=values["ridge"],
            epsilon=values["epsilon"],
            delta=self.delta,
            public_variance=self._public_variance(),
        )


class DPTransferClassifier(_Transfer, BaseDPClassifier):
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
        None releases the teacher directly, which is never worse. Otherwise a student learns from
        the teacher's noisy answers on these public rows ("uniform": drawn from uniform(-1, 1)).
    n_public : int or None
        Number of rows drawn for `public_X="uniform"`; None takes `domain.n_samples`.
    split : float
        Share of the budget for the support (a twentieth of it for the prior of the margin).
    ridge : float or None
        Ridge of the summed loss on the support; None takes a public default. With "published" the
        paper's lambda, of the mean loss: above 0 noise by Theorem 4.3, 0 by Corollary 4.7.
    row_clip : float or None
        Rows longer than this on the support count with less weight; None is half of the largest
        norm the domain allows.
    n_iter : int
        Rounds of peeling that find the support.
    fit_intercept : bool
        Add a constant column; it carries ridge and noise like every other.
    adjacency : {"add-remove", "replace-one"}
    calibration : {"proven", "published"}
        "published" is Wang and Gu (2020), whose noise reads the rows and whose theorem is false:
        it carries no guarantee.
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int
    """

    def __init__(
        self,
        domain: Domain | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_nonzero: int = 10,
        public_X: Any = None,
        n_public: int | None = None,
        split: float = 0.5,
        ridge: float | None = None,
        row_clip: float | None = None,
        n_iter: int = 1,
        fit_intercept: bool = True,
        adjacency: str = "add-remove",
        calibration: str = "proven",
        ledger: Ledger | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.domain = domain
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero = n_nonzero
        self.public_X = public_X
        self.n_public = n_public
        self.split = split
        self.ridge = ridge
        self.row_clip = row_clip
        self.n_iter = n_iter
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose


class DPTransferRegressor(_Transfer, BaseDPRegressor):
    """Sparse Huber regression by knowledge transfer: private support, ridge teacher, release.

    Parameters
    ----------
    domain : Domain
        Needs `target_bound`, `feature_bound` and `n_samples`; `row_norm` helps.
    cutoff : float or None
        Huber's cutoff; noise is proportional to it. None takes a quarter of the target bound.
    epsilon, delta, n_nonzero, public_X, n_public, split, ridge, row_clip, n_iter, fit_intercept
        As for `DPTransferClassifier`.
    adjacency, calibration, ledger, random_state, verbose
        As for `DPTransferClassifier`.
    """

    def __init__(
        self,
        domain: Domain | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_nonzero: int = 10,
        cutoff: float | None = None,
        public_X: Any = None,
        n_public: int | None = None,
        split: float = 0.5,
        ridge: float | None = None,
        row_clip: float | None = None,
        n_iter: int = 1,
        fit_intercept: bool = True,
        adjacency: str = "add-remove",
        calibration: str = "proven",
        ledger: Ledger | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.domain = domain
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero = n_nonzero
        self.cutoff = cutoff
        self.public_X = public_X
        self.n_public = n_public
        self.split = split
        self.ridge = ridge
        self.row_clip = row_clip
        self.n_iter = n_iter
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.cutoff is not None:
            check_positive("cutoff", self.cutoff)

    def _loss(self) -> tuple[Loss, float]:
        cutoff = self.cutoff or self._domain.require("target_bound", type(self).__name__) / 4.0
        return Huber(cutoff), cutoff

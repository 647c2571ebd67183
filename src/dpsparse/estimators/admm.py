"""DPADMMClassifier: noisy augmented-Lagrangian rounds with an L1 or L_{1/2} penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpsparse.estimators._base import (
    BaseDPClassifier,
    check_choice,
    check_count,
    output_count,
)
from dpsparse.estimators._support import (
    TOL,
    check_grid,
    check_range,
    check_ridge,
    phases,
    rounded_release,
    row_bound,
)
from dpsparse.losses import Logistic
from dpsparse.privacy import Event, Plan, Repeated, calibrate
from dpsparse.rows.ridge import LARGEST_TABLE, MANY_ROWS
from dpsparse.sensitivity import ridge_minimiser
from dpsparse.solvers.admm import Admm, solve

PENALTIES = ("l1", "l1/2")
THRESHOLD = 3.0  # default threshold in standard deviations of the noise of one x-update


@dataclass(eq=False, repr=False, kw_only=True)
class DPADMMClassifier(BaseDPClassifier):
    """Sparse logistic model by private ADMM (more than two classes: one against the rest).

    Parameters
    ----------
    domain : Domain
        Needs `classes` and `n_samples`, and `row_norm` (or `feature_bound`, much looser).
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` gives the non-private model.
    penalty : {"l1", "l1/2"}
    n_iter : int
        Rounds; each releases one noisy vector. A privacy parameter.
    coupling : float
        Weight of the augmented term of the mean loss: larger means less noise and slower rounds.
    threshold : float or None
        Of the proximal step; None takes three times the (public) noise of one round.
    n_nonzero : int or None
        Keep this many largest weights at the end; None keeps all. Free of charge.
    row_clip : float or None
        Rows longer than this count with less weight; None is half of the largest norm the domain
        allows.
    fit_intercept : bool
        Add a constant column, which is not shrunk; it counts in the row norm.
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
    n_iter: int = 5
    coupling: float = 0.05
    threshold: float | None = None
    n_nonzero: int | None = None
    row_clip: float | None = None
    fit_intercept: bool = True

    _solver: ClassVar[Any] = staticmethod(solve)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("penalty", self.penalty, PENALTIES)
        check_count("n_iter", self.n_iter)
        check_count("n_nonzero", self.n_nonzero, optional=True)
        check_range("coupling", self.coupling)
        for name in ("threshold", "row_clip"):
            if getattr(self, name) is not None:
                check_range(name, getattr(self, name))

    def _why_one_row(self) -> str:
        return MANY_ROWS if self._domain.rows_per_unit is None else ""

    def _most_rows(self, n_features: int) -> int | None:
        return LARGEST_TABLE

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        name, domain = type(self).__name__, self._domain
        n_samples = domain.require("n_samples", name)
        n_outputs = output_count(labels)
        bound = row_bound(domain, n_features, self.fit_intercept)
        clip = min(bound, self.row_clip or bound / 2.0)
        weight = n_samples * self.coupling  # strong convexity of the summed objective
        width = 0 if math.isinf(self.epsilon) else n_features + self.fit_intercept
        check_ridge("coupling", weight, Logistic().smoothness * clip * bound, width, n_samples)
        tol, size = TOL * clip, n_features + self.fit_intercept
        moved = ridge_minimiser(1.0, clip, 1.0, weight, self.adjacency, tol=tol).value
        private = not math.isinf(self.epsilon)

        def event(ratio: float) -> Event:
            return Repeated(rounded_release(moved, ratio, size), self.n_iter * n_outputs)

        scale, named = 0.0, []
        if private:
            ratio = calibrate(event, self.epsilon, self.delta)
            check_grid(name, ratio, size)
            scale = rounded_release(moved, ratio, size).scale
            named = [("x-updates", event(ratio), "ridge minimisers with noise")]
        threshold = self.threshold or max(THRESHOLD * scale, 1e-3)
        if self.penalty == "l1/2" and self.threshold is None:
            threshold = (threshold / 1.5) ** 1.5  # the same point below which weights vanish
        public = Admm(
            n_outputs, self.penalty, self.n_iter, weight, threshold, clip, bound, tol,
            float(self.fit_intercept), self.n_nonzero,
        )  # fmt: skip
        return self._planned(
            phases(named, private),
            public,
            source="docs/proofs/admm.md",
            parameters={
                "n_iter": self.n_iter,
                "scale": scale,
                "coupling": weight,
                "threshold": threshold,
                "row_clip": clip,
                "tol": tol,
                "n_outputs": n_outputs,
            },
        )

"""DPADMMClassifier: noisy augmented-Lagrangian rounds with an L1 or L_{1/2} penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from dpsparse.estimators._base import (
    BaseDPClassifier,
    check_choice,
    check_count,
    output_count,
)
from dpsparse.estimators._support import (
    TOL,
    assemble,
    check_grid,
    check_range,
    check_ridge,
    phases,
    printed_plan,
    rounded_release,
    row_bound,
    targets,
)
from dpsparse.losses import Logistic
from dpsparse.nonzeros import top_k
from dpsparse.privacy import Event, Plan, Repeated, calibrate
from dpsparse.published import wang_zhang_2020_admm
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.ridge import LARGEST_TABLE, MANY_ROWS
from dpsparse.sensitivity import ridge_minimiser
from dpsparse.solvers.admm import Admm, solve
from dpsparse.solvers.solution import Solution

PENALTIES = ("l1", "l1/2")
THRESHOLD = 3.0  # default threshold in standard deviations of the noise of one x-update
PUBLISHED_STRENGTH = 1e-3
PUBLISHED_GAMMA = 1.0


@dataclass(frozen=True)
class Printed:
    """Constants of Wang and Zhang (2020) as printed."""

    n_iter: int
    step_epsilon: float
    strength: float
    gamma: float
    n_samples: int
    n_outputs: int


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
    calibration : {"proven", "published"}
        "published" reuses the paper's one noise vector for all rounds: no guarantee.
    {shared}

    {example: n_iter=3}
    """

    penalty: str = "l1"
    n_iter: int = 5
    coupling: float = 0.05
    threshold: float | None = None
    n_nonzero: int | None = None
    row_clip: float | None = None
    fit_intercept: bool = True

    _calibrations: ClassVar[tuple[str, ...]] = ("proven", "published")
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
        if self.calibration == "published":
            return self._published_plan(n_samples, n_outputs)
        bound = row_bound(domain, n_features, self.fit_intercept, name)
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

    def _published_plan(self, n_samples: int, n_outputs: int) -> Plan:
        public = Printed(
            n_iter=self.n_iter,
            step_epsilon=min(float(self.epsilon), 1e6) / self.n_iter,
            strength=PUBLISHED_STRENGTH if self.threshold is None else self.threshold,
            gamma=PUBLISHED_GAMMA,
            n_samples=n_samples,
            n_outputs=n_outputs,
        )
        return printed_plan(self, "Wang and Zhang (2020), as later papers implement it", public)

    def _solve_published(self, rows: Rows, plan: Plan, releases: Releases) -> Solution:
        printed: Printed = plan.public
        data, d = rows.table(), rows.n_features
        columns = data.X
        if self.fit_intercept:
            columns = sp.hstack([data.X, sp.csr_array(np.ones((len(data.y), 1)))], format="csr")
        parts = []
        for y in targets(data, printed.n_outputs):
            z = wang_zhang_2020_admm.admm(
                columns,
                y,
                Logistic(),
                releases.rng,
                penalty=self.penalty,
                n_iter=printed.n_iter,
                strength=printed.strength,
                gamma=printed.gamma,
                step_epsilon=printed.step_epsilon,
                n_samples=printed.n_samples,
            )
            if self.n_nonzero is not None:
                z[:d] = top_k(z[:d], self.n_nonzero)
            parts.append((np.arange(d), z))
        return assemble(parts, d, self.fit_intercept, printed.n_iter)

"""DPADMMClassifier: noisy augmented-Lagrangian rounds with an L1 or L_{1/2} penalty."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.sparse as sp

from dpsparse.domain import BoundedData, Domain
from dpsparse.estimators._base import BaseDPClassifier, check_choice, check_count, check_positive
from dpsparse.estimators._support import TOL, output_count, phases, row_bound, targets
from dpsparse.losses import Logistic
from dpsparse.privacy import Event, Gaussian, Plan, Repeated, calibrate
from dpsparse.published import wang_zhang_2020_admm
from dpsparse.sensitivity import ridge_minimiser
from dpsparse.solvers.admm import private_admm
from dpsparse.solvers.objective import row_weights

if TYPE_CHECKING:
    from dpsparse.privacy.ledger import Ledger

PENALTIES = ("l1", "l1/2")
SHRINK = 3.0  # default threshold in standard deviations of the noise of one x-update
PUBLISHED_STRENGTH = 1e-3
PUBLISHED_GAMMA = 1.0


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
    calibration : {"proven", "published"}
        "published" reuses the paper's one noise vector for all rounds: no guarantee.
    ledger : Ledger or None
        Account that pays for the fit.
    random_state : int or None
        None draws secure noise. An int is for experiments and voids the guarantee.
    verbose : int
    """

    _calibrations: ClassVar[tuple[str, ...]] = ("proven", "published")

    def __init__(
        self,
        domain: Domain | None = None,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        penalty: str = "l1",
        n_iter: int = 5,
        coupling: float = 0.05,
        threshold: float | None = None,
        n_nonzero: int | None = None,
        row_clip: float | None = None,
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
        self.penalty = penalty
        self.n_iter = n_iter
        self.coupling = coupling
        self.threshold = threshold
        self.n_nonzero = n_nonzero
        self.row_clip = row_clip
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("penalty", self.penalty, PENALTIES)
        check_count("n_iter", self.n_iter)
        check_count("n_nonzero", self.n_nonzero, optional=True)
        check_positive("coupling", self.coupling)
        for name in ("threshold", "row_clip"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        name, domain = type(self).__name__, self._domain
        n_samples = domain.require("n_samples", name)
        n_outputs = output_count(labels)
        if self.calibration == "published":
            return self._published_plan(n_samples, n_outputs)
        bound = row_bound(domain, n_features, self.fit_intercept, name)
        clip = min(bound, self.row_clip or bound / 2.0)
        weight = n_samples * self.coupling  # strong convexity of the summed objective
        tol = TOL * clip
        sensitivity = ridge_minimiser(1.0, clip, 1.0, weight, self.adjacency, tol=tol).value
        private = not math.isinf(self.epsilon)

        def event(scale: float) -> Event:
            return Repeated(Gaussian(scale, sensitivity), self.n_iter * n_outputs)

        scale = calibrate(event, self.epsilon, self.delta) if private else 0.0
        threshold = self.threshold or max(SHRINK * scale, 1e-3)
        if self.penalty == "l1/2" and self.threshold is None:
            threshold = (threshold / 1.5) ** 1.5  # the same point below which weights vanish
        named = [("x-updates", event(scale), "ridge minimisers with noise")] if private else []
        return Plan(
            method=name,
            phases=phases(named, private),
            epsilon=float(self.epsilon),
            delta=self.delta,
            adjacency=self.adjacency,
            source="docs/proofs/admm.md",
            assumptions=("noise in ideal real arithmetic", f"n_samples={n_samples} is public"),
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
        return Plan(
            method=type(self).__name__,
            phases=phases([], False),
            epsilon=math.inf,
            delta=self.delta,
            adjacency=self.adjacency,
            calibration="published",
            proven=False,
            source="Wang and Zhang (2020), as later papers implement it; no guarantee",
            parameters={
                "n_iter": self.n_iter,
                "step_epsilon": min(float(self.epsilon), 1e6) / self.n_iter,
                "strength": PUBLISHED_STRENGTH if self.threshold is None else self.threshold,
                "gamma": PUBLISHED_GAMMA,
                "n_samples": n_samples,
                "n_outputs": n_outputs,
            },
        )

    def _solve(
        self, data: BoundedData, plan: Plan, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        values = plan.parameters
        n, d = data.X.shape
        rows = data.X
        if self.fit_intercept:
            rows = sp.hstack([data.X, sp.csr_array(np.ones((n, 1)))], format="csr")
        coef, intercept = [], []
        for y in targets(data, values["n_outputs"]):
            if plan.calibration == "published":
                z = wang_zhang_2020_admm.admm(
                    rows,
                    y,
                    Logistic(),
                    rng,
                    penalty=self.penalty,
                    n_iter=values["n_iter"],
                    strength=values["strength"],
                    gamma=values["gamma"],
                    step_epsilon=values["step_epsilon"],
                    n_samples=values["n_samples"],
                )
            else:
                z = private_admm(
                    rows,
                    y,
                    row_weights(rows, values["row_clip"]),
                    Logistic(),
                    rng,
                    penalty=self.penalty,
                    n_iter=values["n_iter"],
                    coupling=values["coupling"],
                    threshold=values["threshold"],
                    scale=values["scale"],
                    tol=values["tol"],
                    free=int(self.fit_intercept),
                )
            weights = z[:d].copy()
            if self.n_nonzero is not None and self.n_nonzero < d:
                weights[np.argpartition(np.abs(weights), -self.n_nonzero)[: -self.n_nonzero]] = 0.0
            coef.append(weights)
            intercept.append(float(z[d]) if self.fit_intercept else 0.0)
        return np.array(coef), np.array(intercept)

"""DPGradientClassifier: full noisy gradients, then the largest weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dpsparse.domain import BoundedData, Domain
from dpsparse.estimators._base import BaseDPClassifier, check_count
from dpsparse.losses import get_loss
from dpsparse.privacy import Gaussian, NonPrivate, Phase, Plan, Repeated, calibrate
from dpsparse.sensitivity import clipped_gradient_sum
from dpsparse.solvers.gradient import noisy_gradient_descent

if TYPE_CHECKING:
    from dpsparse.privacy.ledger import Ledger

MOMENTUM = 0.9


class DPGradientClassifier(BaseDPClassifier):
    """Sparse logistic or multinomial model from a few noisy full gradients.

    Parameters
    ----------
    domain : Domain
        Needs `row_norm`, `classes` and `n_samples`.
    epsilon, delta : float
        The guarantee; ``epsilon=math.inf`` gives the non-private model.
    n_nonzero : int or None
        Keep this many largest weights per class; None keeps all. Free of charge.
    n_iter : int
        Number of noisy gradients. A privacy parameter: more steps mean more noise in each.
    fit_intercept : bool
        Add a constant column; it counts in the row norm.
    adjacency : {"add-remove", "replace-one"}
    calibration : {"proven"}
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
        n_nonzero: int | None = None,
        n_iter: int = 30,
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
        self.n_iter = n_iter
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero, optional=True)
        check_count("n_iter", self.n_iter)

    def _make_plan(self, n_features: int, labels: np.ndarray | None) -> Plan:
        name = type(self).__name__
        assert labels is not None
        row_norm = self._domain.require("row_norm", name)
        n_samples = self._domain.require("n_samples", name)
        # ||p - e_y||_2 <= sqrt 2 for softmax, |sigmoid - y| <= 1 for two classes
        n_outputs = 1 if len(labels) == 2 else len(labels)
        slope_norm = 1.0 if n_outputs == 1 else math.sqrt(2.0)
        clip = slope_norm * math.hypot(row_norm, 1.0 if self.fit_intercept else 0.0)
        sensitivity = clipped_gradient_sum(clip, self.adjacency).value
        private = not math.isinf(self.epsilon)
        scale = 0.0
        event: Gaussian | Repeated | NonPrivate = NonPrivate()
        if private:
            scale = calibrate(
                lambda s: Repeated(Gaussian(s, sensitivity), self.n_iter), self.epsilon, self.delta
            )
            event = Repeated(Gaussian(scale, sensitivity), self.n_iter)
        return Plan(
            method=name,
            phases=(Phase("gradients", event, "sum of row gradients plus Gaussian noise"),),
            epsilon=float(self.epsilon),
            delta=self.delta,
            adjacency=self.adjacency,
            source="docs/proofs/gradient_sum.md",
            assumptions=("noise in ideal real arithmetic", f"n_samples={n_samples} is public"),
            parameters={
                "n_iter": self.n_iter,
                "scale": scale,
                "step": _step(n_samples, self.n_iter, scale, clip),
                "n_samples": n_samples,
                "n_outputs": n_outputs,
            },
        )

    def _solve(
        self, data: BoundedData, plan: Plan, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        n_outputs = plan.parameters["n_outputs"]
        coef, intercept = noisy_gradient_descent(
            data,
            get_loss("logistic" if n_outputs == 1 else "softmax"),
            rng,
            n_outputs=n_outputs,
            n_iter=plan.parameters["n_iter"],
            step=plan.parameters["step"],
            scale=plan.parameters["scale"],
            momentum=MOMENTUM,
            n_samples=plan.parameters["n_samples"],
            fit_intercept=self.fit_intercept,
        )
        if self.n_nonzero is not None and self.n_nonzero < coef.shape[1]:
            for weights in coef:
                weights[np.argpartition(np.abs(weights), -self.n_nonzero)[: -self.n_nonzero]] = 0.0
        return coef, intercept


def _step(n_samples: int, n_iter: int, scale: float, clip: float) -> float:
    """Step from public facts: short where the noise of one gradient drowns the rows, and never
    beyond what momentum 0.9 keeps stable at the curvature clip^2/4 of the mean loss."""
    if scale == 0.0:
        return 10.0 / clip**2
    signal = (
        n_samples * clip / (scale * math.sqrt(n_iter))
    )  # n times the noise multiplier of the run
    return min(signal / 10.0, 10.0) / clip**2

"""What the support-first estimators share: the budget of two stages, and the fit on a support.

Everything here is planned from public numbers. One number, `level`, drives all noise: a stage with
share f of the budget spends zCDP of about f * level^2, and the accountant finds the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse.domain import BoundedData, Domain
from dpsparse.exceptions import DomainError, ParameterError
from dpsparse.losses import Loss
from dpsparse.privacy import (
    Event,
    Exponential,
    Gaussian,
    NonPrivate,
    ObjectivePerturbation,
    Phase,
    Repeated,
    Sequence,
    calibrate,
)
from dpsparse.sensitivity import (
    class_counts,
    clipped_gradient_sum,
    ridge_minimiser,
    signed_sum,
)
from dpsparse.solvers.objective import objective_perturbation, output_perturbation, support_rows
from dpsparse.solvers.transfer import peel_support, private_prior
from dpsparse.solvers.two_stage import MOMENTUM, noisy_descent

STAGES = ("objective", "output", "gradient")
PRIOR_SHARE = 0.05  # of peeling's budget, for the prior of the margin
TOL = 1e-6  # gradient norm of a minimiser, relative to the gradient bound of one row
JITTER_SHARE = 1e-3  # of the second stage's budget, to hide what is left of the gradient


def row_bound(domain: Domain, n_columns: int, fit_intercept: bool, method: str) -> float:
    """Largest L2 norm of a row on `n_columns` released columns, the constant included."""
    bounds = []
    if domain.row_norm is not None:
        bounds.append(domain.row_norm)
    if domain.feature_bound is not None:
        bounds.append(math.sqrt(n_columns) * domain.feature_bound)
    if not bounds:
        raise DomainError(
            f"{method} needs a bound on the rows; declare one: Domain(feature_bound=1.0) or "
            "Domain(row_norm=1.0)."
        )
    return math.hypot(min(bounds), 1.0 if fit_intercept else 0.0)


@dataclass(frozen=True)
class RidgeFit:
    """The second stage: a ridge problem on the support, made private in one of three ways."""

    method: str
    loss: Loss
    slope_bound: float
    row_clip: float
    row_bound: float
    ridge: float
    n_outputs: int
    n_iter: int
    n_samples: int | None
    adjacency: str
    fit_intercept: bool

    @property
    def gradient_bound(self) -> float:
        return self.slope_bound * self.row_clip

    @property
    def tol(self) -> float:
        return TOL * self.gradient_bound

    def sensitivity(self) -> float:
        """How far one row moves what is released (for the objective: the tilt)."""
        if self.method == "output":
            return ridge_minimiser(
                self.slope_bound, self.row_clip, 1.0, self.ridge, self.adjacency, tol=self.tol
            ).value
        return clipped_gradient_sum(self.gradient_bound, self.adjacency).value

    def scales(self, level: float, share: float) -> tuple[float, float]:
        """Noise scale and jitter scale for `share` of the level, split over the outputs."""
        if math.isinf(level):
            return 0.0, 0.0
        ratio = level * math.sqrt(2.0 * share / self.n_outputs)
        if self.method == "gradient":
            ratio /= math.sqrt(self.n_iter)
        jitter = 2.0 * self.tol / self.ridge / (ratio * math.sqrt(JITTER_SHARE))
        return self.sensitivity() / ratio, jitter if self.method == "objective" else 0.0

    def event(self, level: float, share: float) -> Event:
        scale, jitter = self.scales(level, share)
        if self.method == "objective":
            # |f| <= row_bound and weight * |f| <= row_clip, so the curvature is smoothness * both
            tilt = ObjectivePerturbation(
                scale=scale,
                gradient_bound=self.gradient_bound,
                curvature=self.loss.smoothness * self.row_clip * self.row_bound,
                ridge=self.ridge,
                loss="logistic" if self.loss.name == "logistic" else "glm",
                adjacency=self.adjacency,
            )
            one: Event = Sequence((tilt, Gaussian(jitter, 2.0 * self.tol / self.ridge)))
        else:
            one = Gaussian(scale, self.sensitivity())
            if self.method == "gradient":
                one = Repeated(one, self.n_iter)
        return Repeated(one, self.n_outputs)

    def step(self) -> float:
        """Never beyond what momentum keeps stable for n_samples rows of the largest curvature."""
        assert self.n_samples is not None
        smooth = self.n_samples * self.loss.smoothness * self.row_clip * self.row_bound
        return 2.0 * (1.0 - MOMENTUM) / (smooth + self.ridge) * 2.0

    def solve(
        self,
        data: BoundedData,
        y: np.ndarray,
        support: np.ndarray,
        rng: np.random.Generator,
        scale: float,
        jitter: float,
    ) -> np.ndarray:
        """Weights on the support, then the intercept if there is one."""
        rows, weights = support_rows(
            data, support, fit_intercept=self.fit_intercept, row_clip=self.row_clip
        )
        if self.method == "objective":
            return objective_perturbation(
                rows, y, weights, self.loss, rng,
                ridge=self.ridge, scale=scale, tol=self.tol, jitter=jitter,
            )  # fmt: skip
        if self.method == "output":
            return output_perturbation(
                rows, y, weights, self.loss, rng, ridge=self.ridge, scale=scale, tol=self.tol
            )
        return noisy_descent(
            rows, y, weights, self.loss, rng,
            ridge=self.ridge, scale=scale, n_iter=self.n_iter, step=self.step(),
        )  # fmt: skip


@dataclass(frozen=True)
class Peeling:
    """The first stage without blocks: a prior of the margin, then Gumbel top-k of gradients."""

    loss: Loss
    n_nonzero: int
    n_iter: int
    n_outputs: int
    n_samples: int
    prior_moved: float
    step: float
    replace_one: bool
    use_prior: bool

    def eta(self, level: float, share: float) -> float:
        """Range of every pick."""
        picks = self.n_nonzero * self.n_iter * self.n_outputs
        return level * math.sqrt(8.0 * share * self._picked / picks)

    @property
    def _picked(self) -> float:
        """Share of the picks: one round releases no values, more rounds pay half for them."""
        kept = 1.0 - PRIOR_SHARE if self.use_prior else 1.0
        return kept * (0.5 if self.n_iter > 1 else 1.0)

    def value_ratio(self, level: float, share: float) -> float:
        """Noise over L2 sensitivity of each release of values."""
        releases = (self.n_iter - 1) * self.n_outputs
        if releases == 0 or math.isinf(level):
            return 0.0
        return math.sqrt(releases / (2.0 * share * self._picked)) / level

    def prior_scale(self, level: float, share: float) -> float:
        if not self.use_prior or math.isinf(level):
            return 0.0
        return self.prior_moved * math.sqrt(self.n_outputs / (2.0 * share * PRIOR_SHARE)) / level

    def event(self, level: float, share: float) -> Event:
        picks = self.n_nonzero * self.n_iter * self.n_outputs
        parts: list[Event] = [Repeated(Exponential(self.eta(level, share)), picks)]
        if self.use_prior:
            prior = Gaussian(self.prior_scale(level, share), self.prior_moved)
            parts.insert(0, Repeated(prior, self.n_outputs))
        if self.n_iter > 1:
            values = Gaussian(self.value_ratio(level, share), 1.0)
            parts.append(Repeated(values, (self.n_iter - 1) * self.n_outputs))
        return Sequence(tuple(parts))

    def parameters(self, level: float, share: float) -> dict[str, float]:
        return {
            "eta": self.eta(level, share),
            "value_ratio": self.value_ratio(level, share),
            "prior_scale": self.prior_scale(level, share),
        }

    def solve(
        self, data: BoundedData, y: np.ndarray, rng: np.random.Generator, values: Mapping[str, Any]
    ) -> np.ndarray:
        """A private support; `values` are `parameters` as planned."""
        prior = 0.0
        if self.use_prior:
            prior = private_prior(
                y, self.loss, rng, scale=values["prior_scale"], n_samples=self.n_samples,
                bound=data.domain.target_bound or math.inf,
            )  # fmt: skip
        return peel_support(
            data, y, self.loss, rng,
            n_nonzero=self.n_nonzero, n_iter=self.n_iter, eta=values["eta"],
            value_ratio=values["value_ratio"], step=self.step, n_samples=self.n_samples,
            prior=prior, replace_one=self.replace_one,
        )  # fmt: skip


def make_peeling(
    model: Any, *, loss: Loss, n_columns: int, n_outputs: int, n_iter: int, classes: bool
) -> Peeling:
    """Peeling for `model`; needs the entries' bound and a public number of rows."""
    name, domain = type(model).__name__, model.domain
    bound = float(domain.require("feature_bound", f"{name} with peeling"))
    n_samples = int(domain.require("n_samples", f"{name} with peeling"))
    moved = (
        class_counts(model.adjacency)
        if classes
        else signed_sum(domain.require("target_bound", name), model.adjacency)
    )
    # One over the curvature of the mean loss along one feature that is uniform in its bounds.
    step = 3.0 / (loss.smoothness * min(bound, domain.row_norm or math.inf) ** 2)
    return Peeling(
        loss=loss,
        n_nonzero=n_columns,
        n_iter=n_iter,
        n_outputs=n_outputs,
        n_samples=n_samples,
        prior_moved=moved.value,
        step=step,
        replace_one=model.adjacency == "replace-one",
        use_prior=model.fit_intercept,
    )


def default_ridge(
    method: str,
    loss: Loss,
    slope_bound: float,
    row_clip: float,
    row_bound: float,
    n_columns: int,
    n_outputs: int,
    epsilon: float,
    delta: float,
    n_samples: int | None,
) -> float:
    """A ridge from public numbers.

    Objective perturbation: 4 curvature/epsilon, from where the curvature is (almost) free for
    logistic and half the budget of a general loss is kept. Output perturbation: where the noise
    ~ 1/ridge and the shrinkage ~ ridge/n of weights of size one balance. Descent: a trace.
    """
    curvature = loss.smoothness * row_clip * row_bound
    if math.isinf(epsilon):
        return 1e-3 * curvature
    if method == "objective":
        return 4.0 * n_outputs * curvature / min(epsilon, 8.0)
    if method == "gradient":
        return curvature
    assert n_samples is not None
    noise = slope_bound * row_clip * math.sqrt(2.0 * n_outputs * math.log(1.0 / delta)) / epsilon
    return math.sqrt(noise * n_samples * curvature / (2.0 * n_columns))


def make_fit(
    model: Any,
    *,
    method: str,
    loss: Loss,
    slope_bound: float,
    n_columns: int,
    n_outputs: int,
    n_iter: int = 1,
) -> RidgeFit:
    """The second stage of `model` (domain, ridge, row_clip, budget), defaults filled in."""
    name, domain = type(model).__name__, model.domain
    bound = row_bound(domain, n_columns, model.fit_intercept, name)
    clip = min(bound, model.row_clip or bound / 2.0)
    if method == "gradient" or (method == "output" and model.ridge is None):
        domain.require("n_samples", f"{name} with the {method} stage")
    ridge = model.ridge or default_ridge(
        method, loss, slope_bound, clip, bound, n_columns + model.fit_intercept, n_outputs,
        model.epsilon, model.delta, domain.n_samples,
    )  # fmt: skip
    return RidgeFit(
        method=method,
        loss=loss,
        slope_bound=slope_bound,
        row_clip=clip,
        row_bound=bound,
        ridge=ridge,
        n_outputs=n_outputs,
        n_iter=n_iter,
        n_samples=domain.n_samples,
        adjacency=model.adjacency,
        fit_intercept=model.fit_intercept,
    )


def output_count(labels: np.ndarray | None) -> int:
    """One weight vector for regression and two classes, else one per class (against the rest)."""
    return 1 if labels is None or len(labels) <= 2 else len(labels)


def check_share(name: str, value: object) -> None:
    """Refuse anything but a number strictly between 0 and 1."""
    number = isinstance(value, (int, float, np.floating)) and not isinstance(value, bool)
    if not (number and 0.0 < value < 1.0):  # type: ignore[operator]
        raise ParameterError(f"{name} must lie strictly between 0 and 1, got {value!r}.")


def find_level(make: Callable[[float], Event], epsilon: float, delta: float) -> float:
    """The level whose events spend (epsilon, delta); infinite without privacy."""
    return math.inf if math.isinf(epsilon) else calibrate(make, epsilon, delta)


def phases(named: list[tuple[str, Event, str]], private: bool) -> tuple[Phase, ...]:
    """Phases as they run; without a guarantee there is one that says so."""
    if not private:
        return (Phase("fit", NonPrivate(), "no guarantee"),)
    return tuple(Phase(name, event, note) for name, event, note in named)


def targets(data: BoundedData, n_outputs: int) -> list[np.ndarray]:
    """One target per output: as it is, or one class against the rest."""
    assert data.y is not None
    if n_outputs == 1:
        return [data.y]
    return [(data.y == k).astype(np.int32) for k in range(n_outputs)]


def assemble(
    parts: list[tuple[np.ndarray, np.ndarray]], n_features: int, fit_intercept: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(support, theta) of every output as weights (n_outputs, n_features) and intercepts."""
    coef = np.zeros((len(parts), n_features))
    intercept = np.zeros(len(parts))
    for k, (support, theta) in enumerate(parts):
        coef[k, support] = theta[: len(support)]
        if fit_intercept:
            intercept[k] = theta[len(support)]
    return coef, intercept

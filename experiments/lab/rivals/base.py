"""What an entry is: a function of rows, public facts and a budget whose only randomness is `Noise`.

`Noise` draws every number that leaves the rows and writes down what it was asked: value, sensitivity, scale. The
ticket (ticket.py) prices these events and replays an entry on neighbouring tables with the answers of the first run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse.accounting import Event, Exponential, Gaussian, ObjectivePerturbation, calibrate

Array = np.ndarray
DENSE = 1500  # columns up to which a matrix of second derivatives is solved
FEW = 10  # columns for which second derivatives are written down


@dataclass(frozen=True)
class Public:
    """What an entry may know: numbers of rows and columns, labels or range of targets, a bound on lengths of rows."""

    n_rows: int
    n_features: int
    row_norm: float
    classes: tuple[Any, ...] | None = None
    target_range: tuple[float, float] | None = None

    @property
    def n_outputs(self) -> int:
        return 1 if len(self.classes or (0, 1)) == 2 else len(self.classes or ())


@dataclass(frozen=True)
class Weights:
    """Weights of the columns as they are, one row an output, and intercepts; numbers are in units of the target."""

    coef: Array
    intercept: Array


@dataclass(frozen=True)
class Release:
    """One answer: what was asked, how far one row may move it, and the law of its noise."""

    name: str
    event: (
        Event | tuple[float, float]
    )  # (rate, noise multiplier) of a Gaussian sum over a Poisson sample
    value: Array
    sensitivity: float
    answer: Any
    curvature: Array | None = None  # at a minimiser, where the columns are few


Objective = Callable[[Array], tuple[float, Array]]
Second = Callable[[Array], Array]


@dataclass
class Noise:
    """The only source of randomness of an entry. With a script it repeats the answers of an earlier run."""

    seed: int
    script: list[Release] | None = None
    must_sample: int | None = None  # a row that every Poisson sample takes, for replays
    log: list[Release] = field(default_factory=list)
    samples: int = 0

    def gaussian(self, name: str, value: Array, sensitivity: float, sigma: float) -> Array:
        """`value` and noise of standard deviation `sigma`; one row moves it by at most `sensitivity` in L2."""
        event = Gaussian(sigma / sensitivity) if sigma > 0 else None
        return self._noised(name, event, value, sensitivity, sigma)

    def sampled_gaussian(
        self, name: str, value: Array, sensitivity: float, sigma: float, rate: float
    ) -> Array:
        """The same for a sum over a Poisson sample of the rows; fresh for every answer."""
        return self._noised(name, (rate, sigma / sensitivity), value, sensitivity, sigma)

    def _noised(self, name: str, event: Any, value: Array, sensitivity: float, sigma: float) -> Any:
        def draw(rng: np.random.Generator, v: Array) -> Array:
            return v + sigma * rng.standard_normal(v.shape)

        return np.asarray(self._answered(name, event, np.asarray(value, float), sensitivity, draw))

    def pick(self, name: str, scores: Array, sensitivity: float, eta: float) -> int:
        """An index with probability proportional to exp(eta score / (2 sensitivity))."""

        def draw(rng: np.random.Generator, v: Array) -> int:
            return int(np.argmax(eta * v / (2.0 * sensitivity) + rng.gumbel(size=v.shape)))

        return int(
            self._answered(name, Exponential(eta), np.asarray(scores, float), sensitivity, draw)
        )

    def minimise(
        self,
        name: str,
        objective: Objective,
        start: Array,
        event: ObjectivePerturbation,
        tolerance: float,
        second: Second | None = None,
    ) -> Array:
        """A point where the gradient of the objective with a random linear term is below `tolerance`."""
        if self.script is not None:
            theta = self.script[len(self.log)].answer
        else:
            rng = np.random.default_rng((self.seed, len(self.log)))
            tilt = event.scale * rng.standard_normal(start.shape)
            theta = _minimised(objective, second, start, tilt, tolerance)
        gradient = objective(theta)[1]
        curvature = _second_derivatives(objective, theta) if theta.size <= FEW else None
        self.log.append(Release(name, event, gradient, event.gradient_bound, theta, curvature))
        return np.asarray(theta)

    def poisson(self, n_rows: int, rate: float) -> Array:
        """Row numbers of a Poisson sample."""
        self.samples += 1
        chosen = np.random.default_rng((self.seed, 7, self.samples)).random(n_rows) < rate
        if self.must_sample is not None and self.must_sample < n_rows:
            chosen[self.must_sample] = True
        return np.flatnonzero(chosen)

    def _answered(self, name: str, event: Any, value: Array, sensitivity: float, draw: Any) -> Any:
        if self.script is not None:
            if len(self.log) >= len(self.script):
                raise RuntimeError("more answers than on the first table")
            answer = self.script[len(self.log)].answer
        else:
            answer = draw(np.random.default_rng((self.seed, len(self.log))), value)
        self.log.append(Release(name, event, value.copy(), sensitivity, answer))
        return answer


def _minimised(
    objective: Objective, second: Second | None, start: Array, tilt: Array, tolerance: float
) -> Array:
    """L-BFGS as far as values tell points apart, then steps that look at gradients alone."""
    from scipy.optimize import minimize, newton_krylov

    def tilted(theta: Array) -> tuple[float, Array]:
        value, gradient = objective(theta)
        return value + float(tilt @ theta), gradient + tilt

    def gradient_norm(theta: Array) -> float:
        return float(np.linalg.norm(tilted(theta)[1]))

    options = {"maxiter": 2000, "gtol": tolerance / math.sqrt(start.size) / 10, "ftol": 0.0}
    theta = minimize(tilted, start, jac=True, method="L-BFGS-B", options=options).x
    if second is not None and start.size <= DENSE:
        for _ in range(50):
            if gradient_norm(theta) <= tolerance:
                return theta
            step = np.linalg.solve(second(theta), tilted(theta)[1])
            while gradient_norm(theta - step) > gradient_norm(theta) and np.any(step):
                step = step / 2.0
            theta = theta - step
    elif gradient_norm(theta) > tolerance:
        theta = newton_krylov(
            lambda x: tilted(x)[1], theta, f_tol=tolerance / 2, tol_norm=np.linalg.norm, maxiter=50
        )
    if not gradient_norm(theta) <= tolerance:
        raise RuntimeError("the minimiser was not reached")
    return np.asarray(theta)


def _second_derivatives(objective: Objective, theta: Array) -> Array:
    """By central differences, for the ticket."""
    steps = 1e-5 * np.eye(theta.size)
    return np.array([(objective(theta + h)[1] - objective(theta - h)[1]) / 2e-5 for h in steps])


Fit = Callable[[Any, Array, Public, float, float, Noise], Weights]


@dataclass(frozen=True)
class Entry:
    """A rival: its fit, what it handles, and its proof note, which says where it comes from."""

    name: str
    fit: Fit
    proof: str
    handles: tuple[str, ...] = ("binary", "numbers")
    most_columns: int = 10**9


# ---- what several entries share ------------------------------------------------------------------


@lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """mu for which Gaussian noise of standard deviation 1/mu times the sensitivity spends exactly (epsilon, delta)."""
    if math.isinf(epsilon):
        return math.inf
    return 1.0 / calibrate(Gaussian, epsilon, delta)


@dataclass(frozen=True)
class Rows:
    """Rows z with a constant one, |z| <= sqrt 2, and targets: 0/1, class numbers, or numbers in [-1, 1]."""

    Z: Any
    t: Array
    length: float
    public: Public

    NORM = math.sqrt(2.0)

    @cached_property
    def norms(self) -> Array:
        if sp.issparse(self.Z):
            return np.sqrt(np.asarray(self.Z.multiply(self.Z).sum(axis=1)).ravel())
        return np.asarray(np.linalg.norm(self.Z, axis=1))

    def weights(self, w: Array) -> Weights:
        """Weights of the rows before they were divided."""
        w = np.atleast_2d(w)
        scale, shift = 1.0, 0.0
        if self.public.target_range is not None:
            low, high = self.public.target_range
            scale, shift = (high - low) / 2.0, (high + low) / 2.0
        return Weights(scale * w[:, :-1] / self.length, scale * w[:, -1] + shift)


def bounded_rows(
    X: Any, y: Array, public: Public, share: float, share_for_numbers: float | None = None
) -> Rows:
    """Rows divided by a `share` of the public bound on their length, shortened to length one, with a constant."""
    if public.target_range is not None and share_for_numbers is not None:
        share = share_for_numbers
    length = share * public.row_norm
    Z = X / length if not sp.issparse(X) else sp.csr_array(X) / length
    if sp.issparse(Z):
        norms = np.sqrt(np.asarray(Z.multiply(Z).sum(axis=1)).ravel())
        Z = sp.csr_array(sp.diags_array(1.0 / np.maximum(norms, 1.0)) @ Z)
        Z = sp.csr_array(sp.hstack([Z, np.ones((Z.shape[0], 1))], format="csr"))
    else:
        Z = Z / np.maximum(np.linalg.norm(Z, axis=1), 1.0)[:, None]
        Z = np.hstack([Z, np.ones((len(Z), 1))])
    return Rows(Z, targets_of(y, public), length, public)


def targets_of(y: Array, public: Public) -> Array:
    """Numbers in [-1, 1], or the place of every label in the list of classes."""
    if public.target_range is None:
        return np.searchsorted(np.asarray(public.classes), y).astype(float)
    low, high = public.target_range
    return np.asarray((2.0 * np.clip(np.asarray(y, float), low, high) - low - high) / (high - low))


def noisy_matrix(name: str, matrix: Array, bound: float, mu: float, noise: Noise) -> Array:
    """A symmetric matrix with noise: its diagonal and sqrt 2 times what is above it, a vector of its length."""
    d = len(matrix)
    upper = np.triu_indices(d, 1)
    asked = np.concatenate([np.diag(matrix), math.sqrt(2.0) * matrix[upper]])
    told = noise.gaussian(name, asked, bound, bound / mu)
    found = np.zeros((d, d))
    found[upper] = told[d:] / math.sqrt(2.0)
    return found + found.T + np.diag(told[:d])


def slopes_of(rows: Rows, W: Array, chosen: Array | None = None) -> Array:
    """Derivatives of the loss of every row by its outputs: logistic, softmax or half the square."""
    Z, t = (rows.Z, rows.t) if chosen is None else (rows.Z[chosen], rows.t[chosen])
    margins = np.asarray(Z @ W.T)
    if rows.public.target_range is not None:
        return margins - t[:, None]
    if rows.public.n_outputs == 1:
        return 1.0 / (1.0 + np.exp(-np.clip(margins, -30, 30))) - t[:, None]
    chances = np.exp(margins - margins.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    chances[np.arange(len(t)), t.astype(int)] -= 1.0
    return np.asarray(chances)


def clipped_gradient(rows: Rows, W: Array, clip: float, chosen: Array | None = None) -> Array:
    """Sum of the gradients of the rows, each shortened to `clip`."""
    Z = rows.Z if chosen is None else rows.Z[chosen]
    norms = rows.norms if chosen is None else rows.norms[chosen]
    slopes = slopes_of(rows, W, chosen)
    lengths = np.linalg.norm(slopes, axis=1) * norms
    slopes *= np.minimum(1.0, clip / np.maximum(lengths, 1e-300))[:, None]
    return np.asarray((Z.T @ slopes).T)

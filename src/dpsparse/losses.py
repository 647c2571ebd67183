"""Losses of a linear model as functions of the margin m = x.w and the target y.

    logistic   log(1 + e^m) - y m            slope sigma(m) - y         y in {0, 1}
    softmax    log sum_k e^{m_k} - m_y       slope softmax(m) - e_y     y in {0, ..., K-1}
    squared    (m - y)^2 / 2                 slope m - y                y real
    huber      squared where |m - y| <= C, linear outside; slope clipped to [-C, C]

`slope_bound(domain, norm_bound)` bounds every |slope| a row of the domain can have while
||w||_1 <= norm_bound (for softmax the sum of |W_kj|): there |m| <= B = feature_bound * norm_bound.
It is what the noise is calibrated to; each bound is attained (privacy notes: docs/proofs/
vertex_selection.md). `norm_bound=math.inf` means no bound on the weights.

A loss is one class here and one branch in every compiled loop that takes its slopes. What a method may ask of it are
its capabilities below, never its name.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit, logsumexp, softmax

from dpsparse import arithmetic
from dpsparse._checks import safe_repr
from dpsparse.domain import Domain
from dpsparse.exceptions import InternalError, ParameterError

Labels = Literal["classes", "numbers"]
Offset = tuple[float, ...]  # a margin for every output, from which a fit starts


class Loss(ABC):
    """What a solver may ask of a loss."""

    name: ClassVar[str]
    labels: ClassVar[Labels]  # what it is a loss of
    objective: ClassVar[str | None] = None  # the kind of `ObjectivePerturbation` that is proven
    smoothness: ClassVar[float]  # bound on the second derivative (softmax: its largest eigenvalue)

    @abstractmethod
    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The loss of every row."""

    @abstractmethod
    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The derivative in the margin, same shape as `margin`."""

    @abstractmethod
    def slope_bound(self, domain: Domain, norm_bound: float, offset: Offset = ()) -> float:
        """The largest |slope| over rows of `domain` and weights with ||w||_1 <= norm_bound, margins starting from
        `offset` (docs/proofs/vertex_selection.md, Lemma 3)."""

    def curvature(self, domain: Domain, norm_bound: float) -> float:
        """The smallest second derivative in the margin over the same; 0 where it may vanish."""
        return 0.0

    def bend(self, slope: np.ndarray) -> np.ndarray:
        """The second derivative where the slope is `slope`."""
        raise InternalError(f"The {self.name} loss has no second derivative that is a number.")


@dataclass(frozen=True)
class Logistic(Loss):
    name = "logistic"
    labels = "classes"
    objective = "one-sided"
    smoothness = 0.25

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(np.logaddexp(0.0, _signs(y) * margin))

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        # sigma(m) - 1 = -sigma(-m): no cancellation where the row is fitted well
        signs = _signs(y)
        return np.asarray(signs * arithmetic.expit(signs * margin))

    def slope_bound(self, domain: Domain, norm_bound: float, offset: Offset = ()) -> float:
        return float(expit(_margin_bound(domain, norm_bound) + _start(offset)))

    def curvature(self, domain: Domain, norm_bound: float) -> float:
        edge = domain.margin_bound(norm_bound)
        return float(expit(edge) * expit(-edge))

    def bend(self, slope: np.ndarray) -> np.ndarray:
        size = np.abs(slope)  # p or 1 - p
        return np.asarray(size * (1.0 - size))


@dataclass(frozen=True)
class Softmax(Loss):
    """Margins have shape (n, K).

    `n_classes` is needed by `slope_bound` only where the domain does not list its classes
    (`classes="observed"`); None takes their number from the domain.
    """

    n_classes: int | None = None

    name = "softmax"
    labels = "classes"
    smoothness = 0.5

    def __post_init__(self) -> None:
        if self.n_classes is not None and self.n_classes < 2:
            raise ParameterError(f"n_classes must be at least 2, got {safe_repr(self.n_classes)}.")

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        # relative to the true class: log(1 + sum of e^{m_k - m_y}) keeps its digits near 0
        others = margin - np.take_along_axis(margin, y[:, None], axis=1)
        np.put_along_axis(others, y[:, None], -np.inf, axis=1)
        return np.asarray(np.logaddexp(0.0, logsumexp(others, axis=1)))

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        slopes = np.asarray(softmax(margin, axis=1))
        np.put_along_axis(slopes, y[:, None], 0.0, axis=1)
        # p_y - 1 as minus the sum of the others: no cancellation where the row is fitted well
        np.put_along_axis(slopes, y[:, None], -slopes.sum(axis=1, keepdims=True), axis=1)
        return slopes

    def slope_bound(self, domain: Domain, norm_bound: float, offset: Offset = ()) -> float:
        reach = _margin_bound(domain, norm_bound)
        if any(offset):
            b = np.asarray(offset, float)
            others = [logsumexp(np.delete(b, k)) - b[k] for k in range(b.size)]
            return float(expit(reach + max(others)))
        n_classes = self.n_classes or len(domain.class_labels())
        # (K-1) e^B / (1 + (K-1) e^B): the true class alone has margin -B, the others 0
        return float(expit(reach + math.log(n_classes - 1)))


@dataclass(frozen=True)
class Squared(Loss):
    """Its slope has a bound only where weights and targets have one."""

    name = "squared"
    labels = "numbers"
    smoothness = 1.0

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(0.5 * (margin - y) ** 2)

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(margin - y)

    def slope_bound(self, domain: Domain, norm_bound: float, offset: Offset = ()) -> float:
        """feature_bound * norm_bound + target_bound; infinite for unbounded weights."""
        target_bound = float(domain.require("target_bound", "The squared loss"))
        return _margin_bound(domain, norm_bound) + target_bound + _start(offset)

    def curvature(self, domain: Domain, norm_bound: float) -> float:
        return 1.0

    def bend(self, slope: np.ndarray) -> np.ndarray:
        return np.ones(slope.shape)


@dataclass(frozen=True)
class Huber(Loss):
    """Bounded slope for any weights; the residual is clipped at `cutoff` (C)."""

    cutoff: float = 1.0

    name = "huber"
    labels = "numbers"
    objective = "glm"
    smoothness = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.cutoff < math.inf:
            raise ParameterError(
                f"cutoff must be a positive finite number, got {safe_repr(self.cutoff)}."
            )

    def value(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        distance = np.abs(margin - y)
        inner = np.minimum(distance, self.cutoff)
        return np.asarray(inner * (distance - 0.5 * inner))

    def slope(self, margin: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip(margin - y, -self.cutoff, self.cutoff))

    def slope_bound(self, domain: Domain, norm_bound: float, offset: Offset = ()) -> float:
        """The cutoff, for every domain and all weights."""
        return float(self.cutoff)

    def bend(self, slope: np.ndarray) -> np.ndarray:
        return np.asarray((np.abs(slope) < self.cutoff).astype(np.float64))


LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Logistic(), Softmax(), Squared(), Huber())}


def get_loss(name: str) -> Loss:
    """The loss called `name`, with its default parameters."""
    if name not in LOSSES:
        raise ParameterError(f"loss must be one of {', '.join(LOSSES)}, got {safe_repr(name)}.")
    return LOSSES[name]


def _start(offset: Offset) -> float:
    return abs(offset[0]) if offset else 0.0


def _signs(y: np.ndarray) -> np.ndarray:
    """+1 for code 0, -1 for code 1: the loss is log(1 + e^{sign * m})."""
    return 1.0 - 2.0 * np.asarray(y)


def _margin_bound(domain: Domain, norm_bound: float) -> float:
    # Without weights, or without a bound on them, the features do not matter: nothing to declare.
    if norm_bound == 0 or norm_bound == math.inf:
        return float(norm_bound)
    if not norm_bound > 0:
        raise ParameterError(f"norm_bound must be a number >= 0, got {safe_repr(norm_bound)}.")
    return domain.margin_bound(norm_bound)

"""Noisy Newton steps on few columns in released coordinates, and what is not known after the last one.

    u_i    = columns brought to [-1, 1] by their declared bounds
    look     second moments of (u_i, 1, 2 y_i - 1)         -> mean and spread of every column, share of the second class
    axes     second moments of the standardised rows       -> v_i = A (u_i, 1), alike in every direction
    psi    = the null model
    step t   psi <- psi - H^-1 g                           g: gradient, H: curvature (step 1: that of the null model)
    last     psi <- psi - d, d = H^-1 g, and M = sum s_i s_i'

Columns far from zero, of unequal scales or nearly collinear are like any others in coordinates v. The truth psi* obeys

    psi_3 - psi* = H^-1 (g - e),    e = (gradient at psi*) + (noise of g) - (noise of H)(psi_3 - psi*) + (second order)

exactly, with the noisy H, so the covariance of the result is H^-1 cov(e) H^-1, with no error for H^-1:

    cov(e) <= M + (s_g^2 + s_M sqrt 2) I + s_H^2 (|d|^2 I + d d') + (.04 n |d|^2)^2 I,    |d|^2 increased by its doubt

Two released numbers say whether this holds: the doubt of the curvature, s_H^2 tr H^-2, and |d|^2. Where one of them is
large no interval is given. Proofs: docs/proofs/inference.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from dpsparse.inference.plan import RAREST_CLASS
from dpsparse.release import Releases
from dpsparse.rows import Query, Rows, moments
from dpsparse.rows.moments import matrix

# "(tables)": seen on the twelve tables of experiments/notebook/inference.md.
EARLY_ROW_LENGTH = 1.5  # times sqrt(k), k coordinates: no row is longer before the last step


@dataclass(frozen=True, eq=False)
class Found:
    """Weights, their covariance over samples and noise together, and why no interval is given, if none is: the
    covariance is infinite then."""

    weights: np.ndarray
    covariance: np.ndarray
    missing: str


def estimate_weights(rows: Rows, to_box: np.ndarray, releases: Releases) -> Found:
    """Weights of (u, 1). `to_box` maps (x, 1) to (u, 1); it is public."""
    k = len(to_box)
    look = _look(rows, to_box, releases)
    to = _even_axes(rows, to_box, look, releases)
    reach = float(np.linalg.norm(np.abs(to).sum(axis=1)))  # of the longest row within the bounds
    steps = _Steps(rows, to @ to_box, look.n_rows, releases)

    early = min(reach, EARLY_ROW_LENGTH * math.sqrt(k))
    psi = np.zeros(k)
    psi[-1] = logit(look.share)
    null = look.n_rows * look.share * (1.0 - look.share)
    curvature = null * np.eye(k)
    gradient, _ = steps.gradient(1, psi, early)
    psi = psi - _short(np.linalg.solve(curvature, gradient))
    for step in (2, 3):
        gradient, _ = steps.gradient(step, psi, early)
        curvature, noise = steps.curvature(step, psi, early**2 / 4.0)
        # Eigenvalues are not taken to be smaller than a tenth of what the null model has.
        curvature = _lifted(curvature, max(2.0 * noise, 0.1 * null))
        psi = psi - _short(np.linalg.solve(curvature, gradient))
    last = steps.last(psi, *_last_bounds(steps, psi, curvature, null, reach, early))
    covariance = last.covariance if last.missing else to.T @ last.covariance @ to
    return Found(to.T @ last.weights, covariance, last.missing)


# ---- coordinates ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Look:
    n_rows: float
    share: float  # of the second class
    mean: np.ndarray  # of every column, in [-1, 1]
    spread: np.ndarray


def _look(rows: Rows, to_box: np.ndarray, releases: Releases) -> _Look:
    size = len(to_box) + 1
    query = moments.products(rows, to_box, float(size), labelled=True)
    noise = releases.scale("look", query)
    found = matrix(releases.gaussian("look", query))
    known = releases.number_of_rows(rows)
    n = max(float(found[-1, -1]), 1.0) if known is None else float(known)
    mean = np.clip(found[:-2, -2] / n, -1.0, 1.0)
    least = min(max(2.0 * noise / n, 1e-9), 1.0)
    variance = np.diag(found)[:-2] / n - mean**2
    spread = np.sqrt(np.clip(variance, least, 1.0))
    share = float(np.clip(0.5 + found[-2, -1] / n / 2.0, RAREST_CLASS, 1.0 - RAREST_CLASS))
    return _Look(n, share, mean, spread)


def _even_axes(rows: Rows, to_box: np.ndarray, look: _Look, releases: Releases) -> np.ndarray:
    """The map from (u, 1) to coordinates with a constant 1 in which rows are as long in every direction."""
    k = len(to_box)
    standard = np.eye(k)
    standard[:-1, :-1] /= look.spread[:, None]
    standard[:-1, -1] = -look.mean / look.spread
    bound = EARLY_ROW_LENGTH**2 * k
    query = moments.products(rows, standard @ to_box, bound)
    noise = releases.scale("axes", query)
    found = matrix(releases.gaussian("axes", query))
    n = max(float(found[-1, -1]), 1.0)  # rows, the long ones for less than one
    mean = np.clip(found[:-1, -1] / n, -3.0, 3.0)
    within = found[:-1, :-1] / n - np.outer(mean, mean)
    sizes, directions = np.linalg.eigh(within)
    sizes = np.maximum(sizes, min(max(3.0 * noise * math.sqrt(k) / n, 1e-9), 1.0))
    turn = (directions / np.sqrt(sizes)) @ directions.T
    even = np.eye(k)
    even[:-1, :-1], even[:-1, -1] = turn, -turn @ mean
    return np.asarray(even @ standard)


# ---- steps ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Steps:
    rows: Rows
    to: np.ndarray
    n_rows: float
    releases: Releases

    def gradient(self, step: int, psi: np.ndarray, bound: float) -> tuple[np.ndarray, float]:
        """Released, and the standard deviation of its noise."""
        return self._released(f"gradient {step}", moments.gradient(self.rows, self.to, psi, bound))

    def curvature(self, step: int, psi: np.ndarray, bound: float) -> tuple[np.ndarray, float]:
        query = moments.curvature(self.rows, self.to, psi, bound)
        found, noise = self._released(f"curvature {step}", query)
        return matrix(found), noise

    def _released(self, phase: str, query: Query) -> tuple[np.ndarray, float]:
        return self.releases.gaussian(phase, query), self.releases.scale(phase, query)

    def last(self, psi: np.ndarray, longest: float, bound: float) -> Found:
        """The step that carries the interval, for gradients of length at most `longest` and curvatures of `bound`."""
        k, one = len(psi), np.eye(len(psi))
        gradient, noise_g = self.gradient(4, psi, longest)
        curvature, noise_h = self.curvature(4, psi, bound)
        query = moments.spread(self.rows, self.to, psi, longest**2)
        spread, noise_m = self._released("spread 4", query)
        inverse = np.linalg.inv(_lifted(curvature, 1e-9))
        move = inverse @ gradient
        squared = float(move @ move)
        doubt = noise_h**2 * float(np.sum(inverse**2))
        missing = _why_missing(doubt, squared)
        if missing:
            return Found(psi - move, np.full((k, k), np.inf), missing)
        sampled = _lifted(matrix(spread), 0.0) + (noise_g**2 + math.sqrt(2.0) * noise_m) * one
        unsure = float(np.trace(inverse @ sampled @ inverse))
        farther = (squared + unsure) / (1.0 - doubt)
        error = sampled + noise_h**2 * (farther * one + np.outer(move, move))
        # The second-order term of the gradient is at most .048 sum |v| (v.d)^2; .04 n |d|^2 was enough (tables).
        error += (0.04 * self.n_rows * squared) ** 2 * one
        return Found(psi - move, inverse @ error @ inverse, "")


def _last_bounds(
    steps: _Steps, psi: np.ndarray, curvature: np.ndarray, null: float, reach: float, early: float
) -> tuple[float, float]:
    """How long gradients, and how large curvatures, may be in the last step.

    Long enough that hardly a row is clipped, unless noise, which grows with it, would make intervals wide."""
    noise = steps.releases.scale("gradient 4", moments.gradient(steps.rows, steps.to, psi, 1.0))
    # The variance of noise may be .3 of that of sampling. With 1.5 sqrt(k) instead of 2.5 what is estimated moved; with
    # rows cut to an eighth of their length instead of a fifth one table missed (tables).
    affordable = math.sqrt(0.3 * null) / noise if noise > 0.0 else math.inf
    least = max(2.5 * math.sqrt(len(psi)), reach / 5.0)
    longest = max(least, affordable)

    query = moments.curvature(steps.rows, steps.to, psi, 1.0)
    noise = steps.releases.scale("curvature 4", query)
    doubt = noise * math.sqrt(float(np.sum(np.linalg.eigvalsh(curvature) ** -2.0)))
    bound = (
        math.sqrt(0.02) / doubt if doubt > 0.0 else math.inf
    )  # a third of the doubt that is allowed
    return min(reach, longest), min(reach**2 / 4.0, max(bound, early**2 / 4.0))


def _why_missing(doubt: float, squared: float) -> str:
    if doubt > 0.06:  # with .1, intervals that were seldom given missed (tables)
        return "the noise hides how the columns go together"
    if squared > 0.3:
        return "the steps have not settled"
    return ""


def _short(step: np.ndarray) -> np.ndarray:
    """The step, at most 2 long: a Newton step from afar overshoots."""
    return step * min(1.0, 2.0 / max(float(np.linalg.norm(step)), 1e-300))


def _lifted(symmetric: np.ndarray, floor: float) -> np.ndarray:
    """The same with eigenvalues of at least `floor`."""
    values, vectors = np.linalg.eigh(symmetric)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)

"""Noisy Newton steps on few public columns, and the sandwich around the last.

    f_i   = (x_i on S, 1), scaled to norm <= R                  psi = R theta, z_i = f_i/R of norm <= 1
    g     = sum z_i (p_i - y_i)          + noise of sd s_g      p_i = sigmoid(z_i.psi)
    H     = sum p_i (1 - p_i) z_i z_i'   + noise of sd s_H      upper triangle, each entry once
    psi  <- psi - H^-1 g                                         H with eigenvalues of at least 3 s_H sqrt(|S| + 1)
    last step: M = sum (p_i - y_i)^2 z_i z_i' + noise,
    cov   = H^-1 (M_+ + (s_g^2 + s_H^2 |step|^2) I) H^-1

A step leaves a bias of the order of the squared distance of its start, so the step that carries the interval
must not be the first one. Asymptotics: docs/proofs/inference.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsparse.release import Releases
from dpsparse.rows import UnitRows
from dpsparse.rows.moments import CURVATURE, SPREAD, matrix, triangle

# Shares of mu^2. The last step is the one that is published.
EARLIER, LAST = 0.25, 0.75
EARLIER_SHARES = {"gradient": 0.55, "curvature": 0.45}
LAST_SHARES = {"gradient": 0.6, "curvature": 0.2, "spread": 0.2}
FLOOR = 3.0  # least eigenvalue of H, in units of the largest that noise alone has


def shares(n_steps: int) -> dict[str, float]:
    """Share of the budget of every release, in order; they add up to 1."""
    out = {}
    for step in range(1, n_steps + 1):
        final = step == n_steps
        whole = 1.0 if n_steps == 1 else LAST if final else EARLIER / (n_steps - 1)
        for name, share in (LAST_SHARES if final else EARLIER_SHARES).items():
            out[f"{name} {step}"] = whole * share
    return out


@dataclass(frozen=True, eq=False)
class Found:
    """Weights of the rows z, constant last, and their covariance over samples and noise together."""

    psi: np.ndarray
    covariance: np.ndarray


def newton(units: UnitRows, start: np.ndarray, n_steps: int, releases: Releases) -> Found:
    """`n_steps` noisy steps from `start`, which must be public or released."""
    psi = start.copy()
    for step in range(1, n_steps + 1):
        slopes = units.gradient(
            "logistic", psi[:-1, None], np.zeros(1), clip=1.0, constant_weight=psi[-1:]
        )
        bends = triangle(CURVATURE, units, psi)
        gradient = releases.gaussian(f"gradient {step}", slopes)[:, 0]
        noise_g = releases.scale(f"gradient {step}", slopes)
        hessian = matrix(releases.gaussian(f"curvature {step}", bends))
        noise_h = releases.scale(f"curvature {step}", bends)
        floor = max(FLOOR * noise_h * math.sqrt(len(psi)), 1e-9)
        inverse = np.linalg.inv(_lifted(hessian, floor))
        if step == n_steps:
            spread = matrix(releases.gaussian(f"spread {step}", triangle(SPREAD, units, psi)))
        move = inverse @ gradient
        psi = psi - move
    extra = noise_g**2 + noise_h**2 * float(move @ move)
    inside = _lifted(spread, 0.0) + extra * np.eye(len(psi))
    return Found(psi, inverse @ inside @ inverse)


def _lifted(symmetric: np.ndarray, floor: float) -> np.ndarray:
    """The same with eigenvalues of at least `floor`."""
    values, vectors = np.linalg.eigh(symmetric)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)

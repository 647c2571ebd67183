"""Noise of objective perturbation as a share of Kifer, Smith and Thakurta's (2012), at their ridge and at twice it.

python benchmarks/objective_scale.py
"""

from __future__ import annotations

import math

from dpsparse.privacy import ObjectivePerturbation, calibrate

EPSILON, DELTA, CURVATURE = 1.0, 1e-6, 0.25


def share(loss: str, times: float, adjacency: str) -> float:
    """Our scale over sqrt(8 log(2/delta) + 4 epsilon)/epsilon, theirs, for gradients of norm 1."""
    theirs = math.sqrt(8.0 * math.log(2.0 / DELTA) + 4.0 * EPSILON) / EPSILON
    ridge = times * 2.0 * CURVATURE / EPSILON
    ours = calibrate(
        lambda scale: ObjectivePerturbation(scale, 1.0, CURVATURE, ridge, loss, adjacency),
        EPSILON,
        DELTA,
    )
    return ours / theirs


if __name__ == "__main__":
    print(f"{'loss':10}{'adjacency':14}{'their ridge':>12}{'twice':>8}")
    for loss in ("logistic", "glm"):
        for adjacency in ("add-remove", "replace-one"):
            at, twice = share(loss, 1.0, adjacency), share(loss, 2.0, adjacency)
            print(f"{loss:10}{adjacency:14}{at:12.3f}{twice:8.3f}")

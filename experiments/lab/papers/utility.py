"""Theorem 1 of 004 and B.1 of 002 with constants, for the Frank-Wolfe fits of this library."""

from __future__ import annotations

import math
from typing import Any

from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.methods.frank_wolfe.solve import Settings as FrankWolfe


def utility_bound(estimator: BaseDPLinearModel, n_features: int) -> float:
    """How far `DPLasso*` is at most from the best weights of its ball: a theorem, from public numbers.

        E mean loss(w) - min over the ball  <=  8 L (r b)^2 / (T + 3)  +  2 g r b / ((T + 1) (T + 2))
                                                + g r b (log(2 D) / (kappa' n) + 1 / S + 2^-26)

    L is the curvature of the loss, g its largest slope, r the radius, b the bound of entries, T the steps, D the
    candidates, kappa' the temperature per row, S the units of a row. It is Theorem 1 of Khanna, Lu and Raff (2023) and
    B.1 of Raff, Khanna and Lu (2023), after Talwar, Thakurta and Zhang (2015), which print no constants. Proof:
    docs/proofs/frank_wolfe.md.

    In units of the mean training loss, before `n_nonzero` drops any weight.
    """
    plan = estimator.plan(n_features)
    public: Any = plan.parameters
    if not isinstance(plan.settings, FrankWolfe) or public["scales"] != "declared":
        raise ParameterError(
            "utility_bound is for DPLassoClassifier(radius=...) and DPLassoRegressor(radius=...)."
        )
    settings, n = plan.settings, estimator._domain.require("n_samples", "utility_bound")
    ball = settings.radius * settings.feature_bound
    # An offset makes slopes larger, up to 1, and the temperature falls with them.
    slope = 1.0 if "prior" in settings.looks else settings.slope_bound
    candidates = 2.0 * (n_features + settings.fit_intercept) * settings.n_outputs
    steps, units = settings.n_iter, float(public["resolution"] or 2**16)  # finer without noise
    per_row = float(public["kappa"]) * settings.slope_bound * settings.feature_bound
    found = 8.0 * settings.loss.smoothness * ball**2 / (steps + 3.0)
    found += 2.0 * slope * ball / ((steps + 1.0) * (steps + 2.0))
    doubt = math.log(candidates) / (per_row * n) + 1.0 / units + 2.0**-26
    return float(found + slope * ball * doubt)

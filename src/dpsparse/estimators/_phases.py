"""Effective rows, and the plan of a regression that has too few of them: the mean alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpsparse.noise import STEPS
from dpsparse.privacy import Geometric, Phase, Plan, RoundedGaussian, calibrate
from dpsparse.sensitivity import signed_sum
from dpsparse.solvers.table_regression import TableRegression

if TYPE_CHECKING:
    from dpsparse.estimators._base import BaseDPLinearModel

FEW = 60.0  # N below which a regression without a method made for small tables is the mean of the targets


def effective_rows(n_samples: int, epsilon: float, delta: float, adjacency: str) -> float:
    """N = n mu: a sum of numbers in [-1, 1] is known to sqrt(n)-independent noise of n/N.

    Infinite without noise. Every rule of thumb of this library about small tables is a rule about N.
    """
    if math.isinf(epsilon):
        return math.inf
    mu = calibrate(lambda m: RoundedGaussian(1.0 / m, 1.0, 1), epsilon, delta)
    return n_samples * mu / signed_sum(1.0, adjacency).value


def mean_alone(model: BaseDPLinearModel, few: float = FEW) -> Plan | None:
    """The plan of a regressor that has too few rows for anything but the mean of its targets; None where it has
    enough, or nobody said how many there are. A rule of public numbers."""
    n = model._domain.n_samples
    if not model._labels_are_numbers or n is None or model._is_published:
        return None
    N = effective_rows(n, model.epsilon, model.delta, model.adjacency)
    return None if few <= N else mean_plan(model, N)


def mean_plan(model: BaseDPLinearModel, effective: float) -> Plan:
    """The sum of the targets and nothing else: all of epsilon, in geometric noise; delta is not used."""
    name = type(model).__name__
    note = f"noisy sum of the targets: {effective:.0f} effective rows tell nothing else"
    public = TableRegression(
        way="mean", longest=1.0, ridge=1.0, tol=1.0, scale_columns=False,
        n_samples=int(model._domain.require("n_samples", name)),
        target_bound=float(model._domain.require("target_bound", name)),
    )  # fmt: skip
    return model._planned(
        [Phase("mean", Geometric.for_epsilon(float(model.epsilon), STEPS), note)],
        public,
        source="docs/proofs/table_regression.md",
        parameters={"n_iter": 1, "way": "mean", "effective_rows": effective},
    )

"""Prices of private minimisers: what a ridge problem on some columns may be asked for, and what an answer costs.

Proofs: docs/proofs/ridge.md, docs/proofs/objective_perturbation.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpsparse._checks import check_positive
from dpsparse.accounting import (
    Event,
    Exponential,
    ObjectivePerturbation,
    Phase,
    Repeated,
    RoundedGaussian,
    Sequence,
)
from dpsparse.domain import Domain
from dpsparse.domain.clipping import HUGE
from dpsparse.exceptions import ParameterError
from dpsparse.random import LARGEST, STEPS
from dpsparse.rows.ridge import (
    FARTHEST,
    MOST_ROWS,
)
from dpsparse.sensitivity import clipped_gradient_sum, tilted_minimiser

GRADIENT_TOLERANCE = 1e-6  # of a minimiser, in units of the gradient bound of one row
BLUR_SHARE = 1e-3  # of a fit's budget (of mu^2), to hide what is left of the gradient


def longest_row(domain: Domain, n_columns: int) -> float:
    """Largest L2 norm of a row on `n_columns` columns, from what is declared."""
    return min(domain.row_norm or math.inf, math.sqrt(n_columns) * domain.entry_bound())


def least_ridge(n_columns: int) -> float:
    """In units of the curvature of a row: where a minimiser on that many columns is certified on the largest table."""
    return max(2.0**-20, 2.0**-28 * float(n_columns) ** 2)


def check_ridge(
    name: str, ridge: float, curvature: float, n_columns: int, n_samples: int | None
) -> None:
    """Refuse a problem whose minimiser float64 cannot certify (docs/proofs/ridge.md, Lemma 2)."""
    least = least_ridge(n_columns)
    if ridge < least * curvature:
        raise ParameterError(
            f"{name} is too small for rows of the declared size: less than {least:.2g} of the "
            "curvature of one row. Raise it, or declare smaller rows."
        )
    if n_samples is not None and n_samples > MOST_ROWS:
        raise ParameterError(
            f"n_samples={n_samples}: minimisers are proven for up to {MOST_ROWS} rows. "
            "DPGradientClassifier and DPGradientRegressor take more."
        )
    if n_columns > 2**26:
        raise ParameterError(
            f"Minimisers are proven for up to {2**26} columns. "
            "DPGradientClassifier and DPGradientRegressor take more."
        )


def check_tilt(method: str, ratio: float, size: int, adjacency: str) -> None:
    """Refuse a tilt of sensitivity over scale `ratio` that may be longer than the arithmetic of its minimiser is proven
    for (docs/proofs/ridge.md, Lemma 2): noise on whole numbers has a largest value."""
    gradients = (
        clipped_gradient_sum(1.0, adjacency).value / ratio
    )  # the scale, in gradients of a row
    if LARGEST / STEPS * math.sqrt(size) * gradients > FARTHEST:
        raise ParameterError(
            f"{method}: epsilon is too small to tilt an objective of {size} weights."
        )


def check_grid(method: str, ratio: float, size: int) -> None:
    """Refuse what rounding to the grid of the noise would cost more than the noise itself."""
    if ratio * STEPS < 4.0 * math.sqrt(size):
        raise ParameterError(f"{method}: epsilon is too small to release {size} numbers at once.")


def rounded_release(moved: float, ratio: float, size: int) -> RoundedGaussian:
    """The event of releasing a rounded vector at `ratio`: rounding moves each of `size` entries by a unit,
    scale/STEPS, which the sensitivity includes (`Releases.scale` solves the same equation)."""
    spare = ratio - math.sqrt(size) / STEPS
    scale = moved / (spare if spare > 0.0 else ratio)  # too small a ratio is refused once known
    return RoundedGaussian(scale, ratio * scale, size)


def tilted_fit(
    gradient_bound: float,
    curvature: float,
    ridge: float,
    loss: str,
    ratio: float,
    size: int,
    tol: float,
    adjacency: str,
) -> Event:
    """The event of `Releases.tilt` for a tilt of sensitivity over scale `ratio`, and a little more for the blur."""
    scale = clipped_gradient_sum(gradient_bound, adjacency).value / ratio
    tilt = ObjectivePerturbation(
        scale=scale,
        gradient_bound=gradient_bound,
        curvature=curvature,
        ridge=ridge,
        loss=loss,
        adjacency=adjacency,
    )
    away = tilted_minimiser(ridge, tol, size, scale / STEPS, adjacency).value
    blur = rounded_release(away, ratio * math.sqrt(BLUR_SHARE), size)
    # The sampler's distance from its law is charged for tilt and blur.
    return Sequence((tilt, RoundedGaussian(blur.scale, blur.sensitivity, 2 * size)))


def noise_of_the_fit(phases: tuple[Phase, ...]) -> dict[str, Any]:
    """What a reader of the plan wants to see: eta of a pick, scale of the fit's noise and of its blur."""
    shown: dict[str, Any] = {"scale": 0.0, "jitter": 0.0}
    for phase in phases:
        event = phase.event
        while isinstance(event, Repeated):
            event = event.event
        if isinstance(event, Exponential):
            shown["eta"] = event.eta
        elif phase.name == "fit" and isinstance(event, RoundedGaussian):
            shown["scale"] = event.scale
        elif isinstance(event, Sequence):
            tilt, blur = event.events
            assert isinstance(tilt, ObjectivePerturbation)
            assert isinstance(blur, RoundedGaussian)
            shown["scale"], shown["jitter"] = tilt.scale, blur.scale
    return shown


def check_range(name: str, value: object, largest: float = HUGE) -> None:
    """Refuse what is not a positive number between 1/largest and largest."""
    check_positive(name, value)
    assert isinstance(value, (int, float, np.integer, np.floating))
    if not 1.0 / largest <= value <= largest:
        power = round(math.log2(largest))
        raise ParameterError(f"{name} must lie between 2**-{power} and 2**{power}, got {value!r}.")

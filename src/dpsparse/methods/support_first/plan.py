"""Settings and prices of support-first fits and of ridge regression, from public facts alone: what a ridge problem on
some columns may be asked for, and what an answer costs.

Proofs: docs/proofs/ridge.md, docs/proofs/objective_perturbation.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import scipy.sparse as sp

from dpsparse.accounting import (
    REST,
    Budget,
    Event,
    ObjectivePerturbation,
    Plan,
    RoundedGaussian,
    Sequence,
)
from dpsparse.accounting.events import leaves
from dpsparse.exceptions import ParameterError
from dpsparse.losses import get_loss
from dpsparse.methods.base import Facts, effective_rows
from dpsparse.methods.look.targets import add_look, left_by, table_looks
from dpsparse.methods.support_first.solve import ROW_CLIP, SupportFirst, typical_length
from dpsparse.random import LARGEST_DRAW, STEPS
from dpsparse.rows.moments import WIDEST
from dpsparse.rows.ridge import FARTHEST, LARGEST_TABLE, MOST_COLUMNS, MOST_ROWS
from dpsparse.sensitivity import clipped_gradient_sum, ridge_minimiser, tilted_minimiser

if TYPE_CHECKING:
    from dpsparse.methods.base import BaseDPLinearModel, Settings

GRADIENT_TOLERANCE = 1e-6  # of a minimiser, in units of the gradient bound of one row
BLUR_SHARE = 1e-3  # of a fit's budget (of mu^2), to hide what is left of the gradient


def choose(
    facts: Facts,
    *,
    fit: str,
    n_nonzero: int,
    ridge: float | None = None,
    public_rows: sp.csc_array | None = None,
    n_iter: int = 1,
) -> SupportFirst:
    """How many columns are found, what is looked at, and the ridge of the fit."""
    N, s = facts.effective_rows, min(n_nonzero, facts.n_features)
    # With fewer than 100 effective rows declared bounds set all scales.
    way = "released" if N >= 100.0 and choose_way(N, s) == "released" else "declared"
    room, split = 1.0, 0.0
    if s < facts.n_features:
        split = 0.6 if fit == "objective" else 0.5
    looks = {"mean": 1} if facts.of_numbers else {"prior": facts.n_classes}
    if way == "released":
        turn = facts.n_outputs == 1 and fit != "admm"
        axes = turn and has_axes(N * math.sqrt(1.0 - split), s)
        found = table_looks(s * facts.n_outputs, entry=split > 0.0, axes=axes)
        if not facts.of_numbers:
            del found["mean"], found["spread"]
        looks |= found
        if facts.of_numbers and fit == "objective":
            room = room_for_bounds(facts, s, 1.0 - split)
    settings = settle(facts, fit, way, looks, room, s, s, ridge, split=split, n_iter=n_iter)
    return replace(settings, public_rows=public_rows)


def choose_table(facts: Facts, way: str, ridge: float | None, kept: int | None) -> SupportFirst:
    """One tilted fit on all columns there are: ridge regression. Rules take the columns that were planned for."""
    d, planned, room = facts.n_features, facts.planned_features, 1.0
    looks: dict[str, int] = {}
    if way == "released":
        axes = has_axes(facts.effective_rows, planned)
        weighted = facts.domain.weight_bound is not None
        looks = table_looks(d, entry=False, axes=axes, weighted=weighted)
        room = room_for_bounds(facts, planned)
    return replace(settle(facts, "objective", way, looks, room, d, planned, ridge), kept=kept)


def settle(
    facts: Facts, fit: str, way: str, looks: dict[str, int], room: float, s: int, width: int,
    ridge: float | None, *, split: float = 0.0, n_iter: int = 1,
) -> SupportFirst:  # fmt: skip
    """The bounds and the ridge of fits on `s` columns each, chosen as for `width` columns."""
    domain, n = facts.domain, int(facts.domain.require("n_samples", "A table"))
    loss = get_loss("huber" if facts.of_numbers else "logistic")
    clip = choose_row_clip(way, room)
    curvature = loss.smoothness * clip**2
    if ridge is None:
        rest = (1.0 - split) * left_by(looks)
        mu = facts.effective_rows / n * math.sqrt(rest / facts.n_outputs)
        if fit == "objective":
            ridge = choose_ridge(facts.epsilon, n, width, curvature, mu)
        else:
            ridge = choose_output_ridge(n, width, mu / math.sqrt(n_iter), curvature)
    return SupportFirst(
        fit=fit,
        loss=loss.name,
        n_outputs=facts.n_outputs,
        n_nonzero=s,
        n_samples=n,
        way=way,
        looks=looks,
        split=split,
        feature_bound=domain.entry_bound(),
        longest=domain.longest_row(facts.n_features),
        longest_on_support=domain.longest_row(s * facts.n_outputs),
        target_bound=facts.target_bound,
        ridge=ridge,
        row_clip=clip,
        # Picks of columns, which share the cutoff, want it near.
        clipped_share=clipped_share(1.0 if split > 0.0 else room),
        curvature=curvature,
        tol=GRADIENT_TOLERANCE * clip,
        n_iter=n_iter,
    )


def plan_fit(
    model: BaseDPLinearModel, settings: SupportFirst, N: float, source: str
) -> Plan[Settings]:
    """The priced plan of a fit; N are its effective rows."""
    budget = Budget(model.epsilon, model.delta)
    price(settings, model.adjacency, budget, type(model).__name__)
    return model._planned(
        budget.phases(),
        settings,
        source=source,
        max_rows=LARGEST_TABLE,
        parameters={
            "n_iter": settings.n_iter,
            "n_nonzero": settings.kept or settings.n_nonzero,
            "way": settings.way,
            "effective_rows": N,
            "ridge": settings.ridge,
            "row_clip": settings.row_clip,
            "n_outputs": settings.n_outputs,
            **{f"{name}_share": share for name, share in budget.shares.items()},
        },
    )


def price(settings: SupportFirst, adjacency: str, budget: Budget, method: str) -> None:
    """Add the releases of `solve` to `budget`, and refuse what its arithmetic cannot carry."""
    add_look(budget, settings.looks)
    if settings.split > 0.0:
        share = settings.split * left_by(settings.looks)
        picks = settings.n_nonzero * settings.n_outputs
        budget.picks("support", share, picks, "columns that go with the targets")
    width = settings.n_nonzero + 1
    check_ridge(settings.ridge, settings.curvature, width, settings.n_samples)
    times = settings.n_outputs * settings.n_iter
    size = width if settings.public_rows is None else max(width, settings.public_rows.shape[0])
    event = partial(fit_event, settings, adjacency, size)
    notes = {
        "objective": "objective perturbation on weighted rows",
        "output": "output perturbation on weighted rows",
        "student": "noisy answers on public rows",
        "admm": "minimisers of rounds, with noise",
    }
    budget.event("fit", REST, event, notes[settings.fit], times)
    if not math.isinf(budget.epsilon):
        ratio = budget.parameter("fit") / math.sqrt(times)
        tilted = settings.fit == "objective"
        check_grid(method, ratio * math.sqrt(BLUR_SHARE if tilted else 1.0), size)
        if tilted:
            check_tilt(method, ratio, size, adjacency)


def drowns(plan: Plan[Settings], way: str) -> bool:
    """Whether the noise of released minimisers moves the prediction of a typical row by more than a cutoff of the
    residuals: no weights are worth that, whatever the rows say."""
    fit = leaves(plan.phases[-1].event)
    noise = max((leaf.scale for leaf in fit if isinstance(leaf, RoundedGaussian)), default=0.0)
    return noise * math.hypot(typical_length(way), 1.0) > 1.0


def fit_event(settings: SupportFirst, adjacency: str, size: int, ratio: float) -> Event:
    """One release of a fit, for a price like that of a Gaussian release of parameter `ratio`."""
    clip, ridge, tol = settings.row_clip, settings.ridge, settings.tol
    if settings.fit != "objective":
        moved = ridge_minimiser(1.0, clip, 1.0, ridge, adjacency, tol).value
        return rounded_release(moved, ratio, size)
    # A tilt of sensitivity over scale `ratio`, and a little more for the blur (`Releases.tilt`).
    scale = clipped_gradient_sum(clip, adjacency).value / ratio
    tilt = ObjectivePerturbation(
        scale=scale,
        gradient_bound=clip,
        curvature=settings.curvature,
        ridge=ridge,
        # Squared weights leave a long row curvature where it uses all of its slope.
        loss="glm" if settings.of_numbers else "one-sided",
        adjacency=adjacency,
    )
    away = tilted_minimiser(ridge, tol, size, scale / STEPS, adjacency).value
    blur = rounded_release(away, ratio * math.sqrt(BLUR_SHARE), size)
    # The sampler's distance from its law is charged for tilt and blur.
    return Sequence((tilt, RoundedGaussian(blur.scale, blur.sensitivity, 2 * size)))


def rounded_release(moved: float, ratio: float, size: int) -> RoundedGaussian:
    """The event of releasing a rounded vector at `ratio`: rounding moves each of `size` entries by a unit,
    scale/STEPS, which the sensitivity includes (`Releases.scale` solves the same equation)."""
    spare = ratio - math.sqrt(size) / STEPS
    scale = moved / (spare if spare > 0.0 else ratio)  # too small a ratio is refused once known
    return RoundedGaussian(scale, ratio * scale, size)


# ---- tuned numbers ---------------------------------------------------------------------------------
# N: effective rows, that is rows times mu. Numbers of ridge regression, and shares and cutoffs of Two-Stage and
# transfer regressions, here and in solve.py, were chosen on training splits: dpsparse lab run board --training
# --methods "DPRidge; DPSparse". Those of classifiers, students and ADMM were set by judgement.

MAX_EPSILON = 16.0  # of the rules: beyond it the ridge falls no more, and bounds do not widen


def choose_way(N: float, n_columns: int) -> str:
    """How much of the table is looked at. Below N = 20 a fit on few columns is mostly its ridge, and safe."""
    width = math.sqrt(n_columns)
    if max(50.0, 2.5 * width) <= N:
        return "released"
    return "declared" if 4.5 * width <= N or (N < 20.0 and n_columns <= 40) else "mean"


def has_axes(N: float, n_columns: int) -> bool:
    """Whether directions of the rows stand out from noise: that of their second moments, entry by entry, is then below
    half of what a column has."""
    return 10.0 * n_columns <= N and n_columns <= WIDEST


def room_for_bounds(facts: Facts, n_columns: int, share: float = 1.0) -> float:
    """How many times smaller the noise of a prediction is than where bounds on rows and residuals begin to widen;
    `share` of the budget is spent on these columns."""
    epsilon = min(facts.epsilon, MAX_EPSILON)
    n = int(facts.domain.require("n_samples", "A table"))
    N = effective_rows(n, epsilon, facts.delta, facts.adjacency) * math.sqrt(share)
    return max(1.0, N / (20.0 * n_columns))


def choose_row_clip(way: str, room: float) -> float:
    """r, the length from which a row counts less. It grows with the fourth root of N."""
    clip = ROW_CLIP if way == "released" else math.sqrt(2.0)
    return clip * math.sqrt(math.sqrt(room))


def clipped_share(room: float) -> float:
    """Of the residuals: so many lie beyond the cutoff. It falls with the square of N, as the variance of the noise does
    that a cutoff makes: light tails hardly move it, heavy tails move it far (experiments/notebook/defaults.md)."""
    return 1.0 / 3.0 / room**2


def choose_ridge(epsilon: float, n: int, n_columns: int, curvature: float, mu: float) -> float:
    """In units of a row's curvature: the volume of the objective takes a seventh of epsilon, its slope the rest, and
    weights that the noise would drown are pulled to zero."""
    volume = 7.0 / min(epsilon, MAX_EPSILON)
    drowned = 4.0 * n_columns / (n * mu**2)
    return float(max(volume, drowned) * curvature)


def choose_output_ridge(n_samples: int, n_columns: int, mu: float, curvature: float) -> float:
    """Noise ~ 1/ridge and shrinkage ~ ridge/n balance."""
    balanced = math.sqrt(2.0 * n_samples / (n_columns * mu))
    return max(balanced, 2.0 * least_ridge(n_columns + 1)) * curvature


def least_ridge(n_columns: int) -> float:
    """In units of the curvature of a row: where a minimiser on that many columns is certified on the largest table."""
    return max(2.0**-20, 2.0**-28 * float(n_columns) ** 2)


# ---- what the arithmetic of a minimiser is proven for ----------------------------------------------


def check_ridge(ridge: float, curvature: float, n_columns: int, n_samples: int) -> None:
    """Refuse a problem whose minimiser float64 cannot certify (docs/proofs/ridge.md, Lemma 2)."""
    least = least_ridge(n_columns)
    if ridge < least * curvature:
        raise ParameterError(
            f"ridge is too small for rows of the declared size: less than {least:.2g} of the "
            "curvature of one row. Raise it, or declare smaller rows."
        )
    if n_samples > MOST_ROWS:
        raise ParameterError(
            f"n_samples={n_samples}: minimisers are proven for up to {MOST_ROWS} rows. "
            "DPGradientClassifier and DPGradientRegressor take more."
        )
    if n_columns > MOST_COLUMNS:
        raise ParameterError(
            f"Minimisers are found on up to {MOST_COLUMNS - 1} columns. "
            "DPGradientClassifier and DPGradientRegressor take more."
        )


def check_tilt(method: str, ratio: float, size: int, adjacency: str) -> None:
    """Refuse a tilt of sensitivity over scale `ratio` that may be longer than the arithmetic of its minimiser is proven
    for (docs/proofs/ridge.md, Lemma 2): noise on whole numbers has a largest value."""
    gradients = (
        clipped_gradient_sum(1.0, adjacency).value / ratio
    )  # the scale, in gradients of a row
    if LARGEST_DRAW / STEPS * math.sqrt(size) * gradients > FARTHEST:
        raise ParameterError(
            f"{method}: epsilon is too small to tilt an objective of {size} weights."
        )


def check_grid(method: str, ratio: float, size: int) -> None:
    """Refuse what rounding to the grid of the noise would cost more than the noise itself."""
    if ratio * STEPS < 4.0 * math.sqrt(size):
        raise ParameterError(f"{method}: epsilon is too small to release {size} numbers at once.")

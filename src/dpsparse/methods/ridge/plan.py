"""The settings and the price of ridge regression on a narrow table, from public facts alone."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from dpsparse.accounting import REST, Budget, Event, Plan
from dpsparse.methods.facts import Facts, effective_rows
from dpsparse.methods.look.defaults import BUDGET_SHARES
from dpsparse.methods.look.targets import add_look, table_looks
from dpsparse.methods.minimisers import (
    BLUR_SHARE,
    GRADIENT_TOLERANCE,
    check_grid,
    check_ridge,
    check_tilt,
    longest_row,
    noise_of_the_fit,
    tilted_fit,
)
from dpsparse.methods.ridge import defaults
from dpsparse.methods.ridge.solve import Settings, row_clip
from dpsparse.rows.moments import WIDEST

if TYPE_CHECKING:
    from dpsparse.methods.base import BaseDPLinearModel


def choose_way(effective_rows: float, n_columns: int) -> str:
    """How much of the table is looked at, from N and the width alone."""
    N, width = effective_rows, math.sqrt(n_columns)
    least = defaults.MIN_EFFECTIVE_ROWS_PER_ROOT_OF_COLUMNS_TO_LOOK * width
    if max(defaults.MIN_EFFECTIVE_ROWS_TO_LOOK, least) <= N:
        return "released"
    narrow = n_columns <= defaults.MAX_COLUMNS_OF_SAFE_FIT
    safe = narrow and defaults.MAX_EFFECTIVE_ROWS_OF_SAFE_FIT > N
    enough = defaults.MIN_EFFECTIVE_ROWS_PER_ROOT_OF_COLUMNS_TO_FIT * width <= N
    return "declared" if safe or enough else "mean"


def choose(
    facts: Facts, way: str, *, ridge: float | None = None, n_nonzero: int | None = None
) -> Settings:
    """One fit on all columns there are."""
    n, N = int(facts.domain.require("n_samples", "A table")), facts.effective_rows
    n_columns, planned = facts.n_features, facts.planned_features
    looks: dict[str, int] = {}
    if way == "released":
        weighted = facts.domain.weight_bound is not None
        looks = table_looks(n_columns, entry=False, axes=has_axes(N, planned), weighted=weighted)
    rest = 1.0 - sum(BUDGET_SHARES[name] for name in looks)
    room = room_for_bounds(facts, planned) if way == "released" else 1.0
    clip = row_clip(way) * math.sqrt(math.sqrt(room))
    if ridge is None:
        mu = N / n * math.sqrt(rest)
        ridge = choose_ridge(facts.epsilon, n, planned, clip**2, mu)
    return Settings(
        way=way,
        looks=looks,
        n_samples=n,
        n_columns=n_columns,
        longest=longest_row(facts.domain, n_columns),
        ridge=ridge,
        row_clip=clip,
        tol=GRADIENT_TOLERANCE * clip,
        clipped_share=defaults.CLIPPED_SHARE / room**2,
        target_bound=facts.target_bound,
        n_nonzero=n_nonzero,
    )


def has_axes(effective_rows: float, n_columns: int) -> bool:
    """Whether directions of the rows stand out from noise."""
    least = defaults.MIN_EFFECTIVE_ROWS_PER_COLUMN_FOR_AXES * n_columns
    return effective_rows >= least and n_columns <= WIDEST


def room_for_bounds(facts: Facts, n_columns: int, share: float = 1.0) -> float:
    """How many times smaller the noise of a prediction is than where bounds on rows and residuals begin to widen;
    `share` of the budget is spent on these columns."""
    epsilon = min(facts.epsilon, defaults.MAX_EPSILON_OF_RULES)
    n = int(facts.domain.require("n_samples", "A table"))
    N = effective_rows(n, epsilon, facts.delta, facts.adjacency) * math.sqrt(share)
    enough = defaults.EFFECTIVE_ROWS_PER_COLUMN_OF_WIDER_BOUNDS * n_columns
    return max(1.0, N / enough)


def choose_ridge(epsilon: float, n: int, n_columns: int, curvature: float, mu: float) -> float:
    """In units of a row's curvature: the volume of the objective leaves most of epsilon to its slope, and weights that
    the noise would drown are pulled to zero."""
    volume = defaults.RIDGE_TIMES_EPSILON / min(epsilon, defaults.MAX_EPSILON_OF_RULES)
    drowned = defaults.RIDGE_TIMES_SIGNAL * n_columns / (n * mu**2)
    return float(max(volume, drowned) * curvature)


def price(settings: Settings, adjacency: str, budget: Budget) -> None:
    """Add the releases of `solve` to `budget`."""
    add_look(budget, settings.looks)
    fit = partial(fit_event, settings, adjacency)
    budget.event("fit", REST, fit, "objective perturbation on weighted rows")


def fit_event(settings: Settings, adjacency: str, ratio: float) -> Event:
    """The fit, for a price like that of a Gaussian release of parameter `ratio`."""
    clip, size = settings.row_clip, settings.n_columns + 1
    return tilted_fit(clip, clip**2, settings.ridge, "glm", ratio, size, settings.tol, adjacency)


def plan_table(model: BaseDPLinearModel, settings: Settings) -> Plan[Settings]:
    """The priced plan of one fit; refuses what noise cannot be drawn for."""
    private, name = not math.isinf(model.epsilon), type(model).__name__
    clip, size = settings.row_clip, settings.n_columns + 1
    if private:
        check_ridge("ridge", settings.ridge, clip**2, size, settings.n_samples)
    budget = Budget(model.epsilon, model.delta)
    price(settings, model.adjacency, budget)
    if private:
        ratio = budget.parameter("fit")
        check_grid(name, ratio * math.sqrt(BLUR_SHARE), size)
        check_tilt(name, ratio, size, model.adjacency)
    phases = budget.phases()
    return model._planned(
        phases,
        settings,
        source="docs/proofs/table_regression.md",
        parameters={
            "n_iter": 1,
            **noise_of_the_fit(phases),
            "way": settings.way,
            "effective_rows": model._facts(settings.n_columns, None).effective_rows,
            "ridge": settings.ridge,
            **{f"{key}_share": share for key, share in budget.shares.items()},
        },
    )

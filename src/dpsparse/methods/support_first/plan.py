"""The settings and the price of a support-first fit, from public facts alone."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from dpsparse.accounting import REST, Budget, Event
from dpsparse.losses import get_loss
from dpsparse.methods.facts import Facts
from dpsparse.methods.look.defaults import BUDGET_SHARES
from dpsparse.methods.look.targets import add_look, table_looks
from dpsparse.methods.minimisers import (
    BLUR_SHARE,
    GRADIENT_TOLERANCE,
    check_grid,
    check_ridge,
    check_tilt,
    longest_row,
    rounded_release,
    tilted_fit,
)
from dpsparse.methods.ridge.defaults import CLIPPED_SHARE
from dpsparse.methods.ridge.plan import choose_ridge, choose_way, has_axes, room_for_bounds
from dpsparse.methods.ridge.solve import row_clip, typical_length
from dpsparse.methods.support_first import defaults
from dpsparse.methods.support_first.solve import SupportFirst
from dpsparse.sensitivity import ridge_minimiser

NOTES = {
    "objective": "objective perturbation on weighted rows",
    "output": "output perturbation on weighted rows",
    "student": "noisy answers on public rows",
    "admm": "minimisers of rounds, with noise",
}


def choose(
    facts: Facts,
    *,
    fit: str,
    n_nonzero: int,
    ridge: float | None = None,
    public_rows: Any = None,
    n_iter: int = 1,
) -> SupportFirst:
    """How many columns are found, what is looked at, and the ridge of the fit."""
    domain, N = facts.domain, facts.effective_rows
    n, s = int(domain.require("n_samples", "Support first")), min(n_nonzero, facts.n_features)
    loss = get_loss("huber" if facts.of_numbers else "logistic")
    way = "declared"
    if N >= defaults.MIN_EFFECTIVE_ROWS_FOR_SCALES and choose_way(N, s) == "released":
        way = "released"
    split = defaults.SUPPORT_SHARE[fit] if s < facts.n_features else 0.0
    looks = choose_looks(facts, way, s, split, turn=facts.n_outputs == 1 and fit != "admm")
    room = 1.0
    if way == "released" and facts.of_numbers and fit == "objective":
        room = room_for_bounds(facts, s, 1.0 - split)
    clip = row_clip(way) * math.sqrt(math.sqrt(room))
    curvature = loss.smoothness * clip**2
    if ridge is None:
        rest = (1.0 - split) * (1.0 - sum(BUDGET_SHARES[name] for name in looks))
        mu = N / n * math.sqrt(rest / facts.n_outputs)
        if fit == "objective":
            ridge = choose_ridge(facts.epsilon, n, s, curvature, mu)
        else:
            ridge = defaults.choose_output_ridge(n, s, mu / math.sqrt(n_iter), curvature)
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
        longest=longest_row(domain, facts.n_features),
        longest_on_support=longest_row(domain, s * facts.n_outputs),
        target_bound=facts.target_bound,
        ridge=ridge,
        row_clip=clip,
        # Picks of columns, which share the cutoff, want it near.
        clipped_share=CLIPPED_SHARE / (1.0 if split > 0.0 else room**2),
        curvature=curvature,
        tol=GRADIENT_TOLERANCE * clip,
        public_rows=public_rows,
        n_iter=n_iter,
    )


def choose_looks(facts: Facts, way: str, s: int, split: float, *, turn: bool) -> dict[str, int]:
    """The releases before the fit, but for the support, with how many numbers each."""
    n_columns = s * facts.n_outputs
    first = {"mean": 1} if facts.of_numbers else {"prior": facts.n_classes}
    if way == "declared":
        return first
    looks = table_looks(
        n_columns,
        entry=split > 0.0,
        axes=turn and has_axes(facts.effective_rows * math.sqrt(1.0 - split), s),
    )
    if not facts.of_numbers:
        del looks["mean"], looks["spread"]
    return {**first, **looks}


def price(settings: SupportFirst, adjacency: str, budget: Budget, method: str) -> None:
    """Add the releases of `solve` to `budget`, and refuse what its arithmetic cannot carry."""
    add_look(budget, settings.looks)
    if settings.split > 0.0:
        share = settings.split * (1.0 - sum(BUDGET_SHARES[name] for name in settings.looks))
        picks = settings.n_nonzero * settings.n_outputs
        budget.picks("support", share, picks, "columns that go with the targets")
    width = settings.n_nonzero + 1
    check_ridge("ridge", settings.ridge, settings.curvature, width, settings.n_samples)
    times = settings.n_outputs * settings.n_iter
    size = width if settings.public_rows is None else max(width, settings.public_rows.shape[0])
    event = partial(fit_event, settings, adjacency, size)
    budget.event("fit", REST, event, NOTES[settings.fit], times)
    if not math.isinf(budget.epsilon):
        ratio = budget.parameter("fit") / math.sqrt(times)
        tilted = settings.fit == "objective"
        check_grid(method, ratio * math.sqrt(BLUR_SHARE if tilted else 1.0), size)
        if tilted:
            check_tilt(method, ratio, size, adjacency)


def drowns(noise: float, way: str) -> bool:
    """Whether the noise of weights moves the prediction of a typical row by more than a cutoff of the residuals: no
    weights are worth that, whatever the rows say."""
    return noise * math.hypot(typical_length(way), 1.0) > 1.0


def fit_event(settings: SupportFirst, adjacency: str, size: int, ratio: float) -> Event:
    """One release of a fit, for a price like that of a Gaussian release of parameter `ratio`."""
    clip, ridge, tol = settings.row_clip, settings.ridge, settings.tol
    if settings.fit == "objective":
        # Squared weights leave a long row curvature where it uses all of its slope.
        loss = "glm" if settings.of_numbers else "one-sided"
        return tilted_fit(clip, settings.curvature, ridge, loss, ratio, size, tol, adjacency)
    moved = ridge_minimiser(1.0, clip, 1.0, ridge, adjacency, tol).value
    return rounded_release(moved, ratio, size)

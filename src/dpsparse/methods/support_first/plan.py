"""The settings and the price of a support-first fit, from public facts alone."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from dpsparse.accounting import REST, Budget, Event, Plan
from dpsparse.losses import get_loss
from dpsparse.methods.base import Facts
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
    rounded_release,
    tilted_fit,
)
from dpsparse.methods.ridge.defaults import (
    choose_ridge,
    choose_row_clip,
    clipped_share,
    has_axes,
    room_for_bounds,
    typical_length,
)
from dpsparse.methods.support_first import defaults
from dpsparse.methods.support_first.solve import SupportFirst
from dpsparse.sensitivity import ridge_minimiser

if TYPE_CHECKING:
    from dpsparse.methods.base import BaseDPLinearModel
    from dpsparse.methods.fitted import Settings


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
    N, s = facts.effective_rows, min(n_nonzero, facts.n_features)
    way, room = defaults.choose_scales(N, s), 1.0
    split = defaults.support_share(fit) if s < facts.n_features else 0.0
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
    return settle(
        facts, fit, way, looks, room, s, s, ridge, split=split, public_rows=public_rows, n_iter=n_iter
    )  # fmt: skip


def choose_table(facts: Facts, way: str, ridge: float | None, kept: int | None) -> SupportFirst:
    """One tilted fit on all columns there are: ridge regression. Rules take the columns that were planned for."""
    d, planned, room = facts.n_features, facts.planned_features, 1.0
    looks: dict[str, int] = {}
    if way == "released":
        axes = has_axes(facts.effective_rows, planned)
        weighted = facts.domain.weight_bound is not None
        looks = table_looks(d, entry=False, axes=axes, weighted=weighted)
        room = room_for_bounds(facts, planned)
    return settle(facts, "objective", way, looks, room, d, planned, ridge, kept=kept)


def settle(
    facts: Facts, fit: str, way: str, looks: dict[str, int], room: float, s: int, width: int,
    ridge: float | None, *, split: float = 0.0, public_rows: Any = None, n_iter: int = 1, kept: int | None = None,
) -> SupportFirst:  # fmt: skip
    """The bounds and the ridge of fits on `s` columns each, chosen as for `width` columns."""
    domain, n = facts.domain, int(facts.domain.require("n_samples", "A table"))
    loss = get_loss("huber" if facts.of_numbers else "logistic")
    clip = choose_row_clip(way, room)
    curvature = loss.smoothness * clip**2
    if ridge is None:
        rest = (1.0 - split) * (1.0 - sum(BUDGET_SHARES[name] for name in looks))
        mu = facts.effective_rows / n * math.sqrt(rest / facts.n_outputs)
        if fit == "objective":
            ridge = choose_ridge(facts.epsilon, n, width, curvature, mu)
        else:
            ridge = defaults.choose_output_ridge(n, width, mu / math.sqrt(n_iter), curvature)
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
        clipped_share=clipped_share(1.0 if split > 0.0 else room),
        curvature=curvature,
        tol=GRADIENT_TOLERANCE * clip,
        public_rows=public_rows,
        n_iter=n_iter,
        kept=kept,
    )


def plan_fit(
    model: BaseDPLinearModel, settings: SupportFirst, N: float, source: str
) -> Plan[Settings]:
    """The priced plan of a fit; N are its effective rows."""
    budget = Budget(model.epsilon, model.delta)
    price(settings, model.adjacency, budget, type(model).__name__)
    phases = budget.phases()
    return model._planned(
        phases,
        settings,
        source=source,
        parameters={
            "n_iter": settings.n_iter,
            **noise_of_the_fit(phases),
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
        share = settings.split * (1.0 - sum(BUDGET_SHARES[name] for name in settings.looks))
        picks = settings.n_nonzero * settings.n_outputs
        budget.picks("support", share, picks, "columns that go with the targets")
    width = settings.n_nonzero + 1
    check_ridge("ridge", settings.ridge, settings.curvature, width, settings.n_samples)
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

"""The settings and the price of Frank-Wolfe, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import replace

from dpsparse.accounting import REST, Budget
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Logistic, Loss, Softmax, Squared
from dpsparse.mechanisms.top_k import ROUNDING_RANGE
from dpsparse.methods.facts import Facts
from dpsparse.methods.frank_wolfe import defaults
from dpsparse.methods.frank_wolfe.problem import check_public, choose_resolution
from dpsparse.methods.frank_wolfe.solve import Settings
from dpsparse.methods.look.defaults import MIN_EFFECTIVE_ROWS_TO_FIT, QUANTILE_COUNTS
from dpsparse.methods.look.table import ENTRY_HALVINGS
from dpsparse.methods.look.targets import add_look, table_looks
from dpsparse.nonzeros import NNonzero, count_event
from dpsparse.sensitivity import vertex_score_range


def choose(
    facts: Facts,
    *,
    radius: float | None,
    n_iter: int | None,
    fit_intercept: bool,
    n_nonzero: NNonzero,
    level: float | None = None,
) -> Settings:
    """The ball, the steps, and what is released of the scales that nobody declared."""
    domain = replace(facts.domain, feature_bound=facts.domain.entry_bound())
    bound, n, d = domain.entry_bound(), domain.n_samples, facts.n_features
    released = radius is None and n is not None
    released = released and facts.effective_rows >= fewest_effective_rows(d)
    if n_iter is None:
        if released:
            n_iter = choose_steps(facts.effective_rows, d)
        else:
            n_iter = choose_declared_steps(n, facts.epsilon)
    looks = {} if facts.of_numbers or not fit_intercept else {"prior": facts.n_classes}
    if released:
        looks |= choose_looks(facts)
    if radius is None:
        radius = (facts.target_bound if facts.of_numbers else 10.0) / bound
    loss = choose_loss(facts)
    return Settings(
        loss=loss,
        radius=float(radius),
        feature_bound=bound,
        slope_bound=loss.slope_bound(domain, float(radius)),
        n_iter=n_iter,
        n_outputs=facts.n_outputs,
        fit_intercept=fit_intercept,
        n_nonzero=n_nonzero,
        looks=looks,
        n_samples=n,
        longest=min(domain.row_norm or math.inf, bound * math.sqrt(d)),
        reach=choose_reach(n_iter, facts.n_outputs, facts.of_numbers),
        level=level,
    )


def choose_loss(facts: Facts) -> Loss:
    """On declared scales numbers have the squared loss; on released ones Huber's takes its place."""
    if facts.of_numbers:
        return Squared()
    return Logistic() if facts.n_outputs == 1 else Softmax(facts.n_classes)


def choose_looks(facts: Facts) -> dict[str, int]:
    """Releases of scales, with how many numbers each.

    Clipped columns fit whole ones badly where all entries are positive: a regression that is narrow enough to be
    centred is centred first. All others release one typical size of entries.
    """
    table = table_looks(facts.n_features, entry=False, axes=False)
    width = math.sqrt(facts.planned_features)
    enough = defaults.MIN_EFFECTIVE_ROWS_PER_ROOT_OF_COLUMNS_TO_CENTRE * width
    if facts.of_numbers and facts.fits_in_memory and enough <= facts.effective_rows:
        return table
    first = {name: table[name] for name in ("mean", "spread") if facts.of_numbers}
    return {**first, "entry": QUANTILE_COUNTS}


def price(settings: Settings, facts: Facts, budget: Budget) -> None:
    """Add the releases of `solve` to `budget`, and refuse what its arithmetic cannot carry."""
    add_look(budget, settings.looks)
    note = f"{settings.n_iter} signed vertices of the L1 ball"
    budget.picks("vertices", REST, settings.n_iter, note)
    count = count_event(settings.n_nonzero)
    if count is not None:
        budget.fixed("number of weights", count, "clipped count of a noiseless fit")
    _, kappa, resolution = temperature(settings, facts, budget)
    if facts.is_private and settings.scales != "declared":
        check_released_scales(settings, facts.target_bound)
    slope, bound = settings.slope_bound, settings.feature_bound
    units = (resolution or 1) * (facts.domain.rows_per_unit or 1)
    check_public(settings.radius, bound, slope, (), kappa * bound * slope / units)


def check_released_scales(settings: Settings, target: float) -> None:
    """Refuse what floats cannot hold, for every possible release; `target` is the declared bound, or one."""
    lowest, highest = settings.feature_bound / 2.0**ENTRY_HALVINGS, settings.feature_bound
    bounds = (lowest, highest)
    if settings.scales == "table":
        bounds = (defaults.CLIPPED_ENTRY_PER_TYPICAL,) * 2
    of_numbers = "mean" in settings.looks
    for bound in bounds:
        for slope in (target,) if of_numbers else (0.5, 1.0):  # ends of the logistic bound
            check_public(settings.reach * target / bound, bound, slope)


def temperature(settings: Settings, facts: Facts, budget: Budget) -> tuple[float, float, int]:
    """The range that one pick pays for, and on declared scales its inverse temperature and the units of a row."""
    if not facts.is_private:
        return 0.0, math.inf, 0
    slope, bound = settings.slope_bound, settings.feature_bound
    eta = 2.0 * budget.parameter("vertices") / math.sqrt(settings.n_iter)
    if eta <= 2.0 * ROUNDING_RANGE:
        raise ParameterError("epsilon is too small for that many steps; lower n_iter.")
    kappa = (eta - ROUNDING_RANGE) / vertex_score_range(1.0, slope, bound, facts.adjacency).value
    return eta, kappa, choose_resolution(settings.n_samples, 4.0 * kappa * bound * slope)


def choose_steps(effective_rows: float, n_features: int) -> int:
    """Steps on released scales: each pick must beat log(2d) sqrt(T)/N."""
    picks = effective_rows / (defaults.EFFECTIVE_ROWS_PER_PICK * math.log(2.0 * n_features))
    return int(min(max(picks**2, defaults.MIN_STEPS), defaults.MAX_STEPS))


def choose_declared_steps(n_samples: int | None, epsilon: float) -> int:
    """Steps on declared scales: the (n epsilon)^(2/3) of the utility bound of both papers."""
    if math.isinf(epsilon):
        return defaults.MAX_STEPS
    if n_samples is None:
        return 100
    steps = math.ceil((n_samples * epsilon) ** (2.0 / 3.0) / 4.0)
    return int(min(max(steps, defaults.MIN_STEPS), defaults.MAX_STEPS))


def choose_reach(n_iter: int, n_outputs: int, of_numbers: bool) -> float:
    """Largest margin of the ball on released scales, in cutoffs where targets are numbers.

    It grows with the steps (for numbers with their root, or early picks overshoot). Classes share one ball: picks that
    noise blurs gain by the root of their number, and lose by more.
    """
    if of_numbers:
        return min(max(math.sqrt(n_iter / 10.0), 0.5), 10.0)
    return min(max(n_iter / 10.0, 0.5), 30.0) * math.sqrt(n_outputs)


def fewest_effective_rows(n_features: int) -> float:
    """Below so many not even ten picks can be seen: a regression is the mean of its targets."""
    picks = defaults.EFFECTIVE_ROWS_PER_PICK / 2.0 * math.log(2.0 * n_features)
    return max(MIN_EFFECTIVE_ROWS_TO_FIT, picks)

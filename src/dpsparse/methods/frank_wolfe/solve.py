"""Frank-Wolfe as a private solver.

    scales  bound of entries, and of numbers mean and cutoff, where nobody declared them             released
    offset  log-odds of noisy class counts, from which the margins of a classifier start             released
    picks   T signed vertices, each drawn by the exponential mechanism on whole-number scores        released
    weights = a function of the picks                                                                post-processing

    "table"     x <- D (x - m) sqrt(d)/l, entries of typical size one (methods/look/rows.py), clipped to 1.5
    "entries"   b = median over the rows of |x_i|/sqrt(non-zeros of x_i), by noisy counts; the kernel cuts entries to b
    numbers     y <- (y - mean)/c, Huber's loss with cutoff 1: slopes have a bound for any ball
    ball        radius reach/b: margins of at most `reach`, in cutoffs

Noise is proportional to b times the largest slope. A declared bound is that of the largest entry there may ever be;
the sums that a pick must see are made of typical ones. What a row adds to a score is a whole number of at most
`resolution`, for any floats. Proofs: docs/proofs/frank_wolfe.md, docs/proofs/fast_frank_wolfe.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.stats import binom

from dpsparse import arithmetic
from dpsparse.accounting import REST, Budget
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Huber, Logistic, Loss, Softmax, Squared
from dpsparse.mechanisms.top_k import ROUNDING_RANGE
from dpsparse.methods.base import Facts, Solution
from dpsparse.methods.frank_wolfe.run import (
    History,
    Problem,
    Steps,
    Units,
    check_public,
    choose_resolution,
)
from dpsparse.methods.look.rows import look_at_table
from dpsparse.methods.look.targets import (
    CUTOFF_PER_SPREAD,
    ENTRY_HALVINGS,
    MIN_EFFECTIVE_ROWS_TO_FIT,
    QUANTILE_COUNTS,
    add_look,
    contrasts,
    release_entry_size,
    release_mean,
    release_spread,
    table_looks,
)
from dpsparse.nonzeros import NNonzero, PrivateCount, count_event, keep_nonzeros, top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.sensitivity import vertex_score_range

CLIPPED_ENTRY_PER_TYPICAL = 1.5  # where entries of standardised columns are clipped
COUNT_STEPS = 5000  # noiseless steps behind a `PrivateCount` (Khanna, Lu and Raff use 50,000)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The public side of a fit. Loss, radius and bounds are those of declared scales; released ones replace them."""

    loss: Loss
    radius: float
    feature_bound: float
    slope_bound: float
    n_iter: int
    n_outputs: int
    fit_intercept: bool
    n_nonzero: NNonzero
    looks: Mapping[str, int]  # releases before the steps, with how many numbers each
    n_samples: int | None  # declared
    longest: float  # declared bound on the length of a row
    reach: float  # largest margin of the ball on released scales
    level: float | None  # of screening

    @property
    def scales(self) -> str:
        """Where the scales come from: "declared", or what is released of them."""
        if "entry" in self.looks:
            return "entries"
        return "table" if "centre" in self.looks else "declared"

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        """Weights (K, d) and intercepts (K,) of the ball's private vertices."""
        scaled = release_scales(rows, self, releases)
        problem = make_problem(scaled, self, releases)
        history = releases.vertices("vertices", Steps(scaled.rows, problem), self.n_iter)
        coef, intercept = history.weights()
        if self.level is not None:
            coef = np.where(picked_beyond_chance(history, self.level), coef, 0.0)
        coef = keep_weights(coef, scaled.rows, problem, self.n_nonzero, releases)
        coef, intercept = scaled.units.publish(coef, intercept)
        middle = scaled.units.middle + rows.domain.target_middle  # of a declared range
        path = replace(history, units=replace(scaled.units, middle=middle))
        return Solution(coef, intercept, self.n_iter, history=path)


@dataclass(frozen=True)
class ScaledRows:
    """Rows as the steps see them, the ball on them, and the way back; all but the rows is released or public."""

    rows: Rows
    loss: Loss
    radius: float
    feature_bound: float
    units: Units = field(default_factory=Units)


def release_scales(rows: Rows, settings: Settings, releases: Releases) -> ScaledRows:
    """Rows on declared scales, or on released ones."""
    declared = ScaledRows(rows, settings.loss, settings.radius, settings.feature_bound)
    if settings.scales == "declared":
        return declared
    n, target = float(settings.n_samples or 0), 1.0
    if of_numbers := "mean" in settings.looks:
        _, middle = release_mean(rows, releases, settings.n_samples)
        unit = CUTOFF_PER_SPREAD * release_spread(rows, releases, n, middle)
        target = rows.domain.target_bound or 1.0  # kernels have targets in units of their bound
        units = Units(middle=middle * target, unit=unit)
        declared = replace(declared, loss=Huber(target), units=units)
    if settings.scales == "table":
        look = look_at_table(rows, releases, n, settings.longest)
        stretch = look.scaling * (math.sqrt(rows.n_features) / look.length)
        rows = rows.standardised(look.centre, stretch, middle=middle, unit=unit)
        bound = CLIPPED_ENTRY_PER_TYPICAL
        units = replace(declared.units, stretch=stretch, centre=look.centre)
        declared = replace(declared, units=units)
    else:
        bound = release_entry_size(rows, releases, n, settings.feature_bound)
        rows = rows.standardised_targets(middle, unit) if of_numbers else rows
    radius = settings.reach * target / bound
    return replace(declared, rows=rows.bounded(bound), radius=radius, feature_bound=bound)


def make_problem(scaled: ScaledRows, settings: Settings, releases: Releases) -> Problem:
    """What the kernel is told: public and released numbers."""
    rows, bound = scaled.rows, scaled.feature_bound
    offset: tuple[float, ...] = ()
    if "prior" in settings.looks:
        offset = release_offset(rows, max(2, settings.n_outputs), releases)
    slope_bound = scaled.loss.slope_bound(rows.domain, scaled.radius, offset)
    # A person is a group of rows, each of which moves every score (docs/proofs/persons.md).
    moved = partial(vertex_score_range, float(rows.rows_per_unit), slope_bound, bound)
    kappa = releases.kappa("vertices", moved)
    if math.isinf(kappa):
        resolution = resolution_without_noise(releases.number_of_rows(rows))
    else:
        resolution = choose_resolution(settings.n_samples, 4.0 * kappa * bound * slope_bound)
    return Problem(
        loss=scaled.loss, radius=scaled.radius, n_iter=settings.n_iter, kappa=kappa,
        slope_bound=slope_bound, resolution=resolution, feature_bound=bound,
        n_outputs=settings.n_outputs, fit_intercept=settings.fit_intercept, offset=offset,
    )  # fmt: skip


def resolution_without_noise(n_rows: int | None) -> int:
    """Nothing is hidden, so the rows may choose the units."""
    return max(choose_resolution(max(n_rows or 1, 1), 0.0), 2**16)


def release_offset(rows: Rows, n_classes: int, releases: Releases) -> tuple[float, ...]:
    """Log-odds of the classes by noisy counts, drawn to even odds where there is more noise than rows.

    The constant column would have to chase them: a pick that touches every row, again and again.
    """
    query = rows.class_counts(n_classes)
    noise = releases.scale("prior", query)
    share = believable_shares(releases.gaussian("prior", query), noise)
    return tuple(float(b) for b in contrasts(arithmetic.log(share)))


def keep_weights(
    coef: np.ndarray, rows: Rows, problem: Problem, rule: NNonzero, releases: Releases
) -> np.ndarray:
    """The weights to keep, by the rule of the plan; a private count reads the rows once more."""
    if not isinstance(rule, PrivateCount):
        return keep_nonzeros(coef, rule)

    def count_without_noise(silent: Releases) -> int:
        resolution = resolution_without_noise(silent.number_of_rows(rows))
        exact = replace(problem, kappa=math.inf, n_iter=COUNT_STEPS, resolution=resolution)
        weights, _ = silent.vertices("vertices", Steps(rows, exact), COUNT_STEPS).weights()
        return int(np.count_nonzero(weights))

    return top_k(coef, releases.count("number of weights", rule, count_without_noise, coef.size))


# ---- screening: weights of columns that were picked no more often than chance are dropped ---------
# Khanna, Lu, Raff (2023) and its sequel; their own rules are in `published/`. The rule reads released picks and nothing
# else, so it is post-processing and costs nothing. Proof: docs/proofs/screening.md.


def picked_beyond_chance(history: History, level: float) -> np.ndarray:
    """Which weights, of shape (n_outputs, n_features), were picked significantly often with one sign.

    A weight stays if |times picked with + minus times picked with -| reaches the smallest s with P(|net| >= s) <=
    level: if every pick were uniform, it would be kept with probability at most `level`.
    """
    net = np.zeros((history.n_outputs, history.n_features + 1), np.int64)
    np.add.at(net, (history.outputs, history.features), history.signs)
    net = net[:, :-1]  # without the intercept
    return np.asarray(np.abs(net) >= count_threshold(len(history.signs), net.size, level))


def count_threshold(n_steps: int, n_weights: int, level: float) -> int:
    """Smallest s with P(|N+ - N-| >= s) <= level for n_steps uniform picks of 2 n_weights vertices."""
    s = 0
    while net_tail(n_steps, n_weights, s) > level and s <= n_steps:
        s += 1
    return s


def net_tail(n_steps: int, n_weights: int, s: int) -> float:
    """P(|N+ - N-| >= s) of one weight for n_steps uniform picks of 2 n_weights vertices."""
    if s <= 0:
        return 1.0
    picks = np.arange(n_steps + 1)
    chance = binom.pmf(picks, n_steps, 1.0 / n_weights)
    relevant = chance > 0.0
    picks, chance = picks[relevant], chance[relevant]
    # given N picks, N+ ~ Bin(N, 1/2): |2 N+ - N| >= s on two mirrored tails
    return float(chance @ (2.0 * binom.sf(np.ceil((picks + s) / 2.0) - 1, picks, 0.5)))


# ---- settings and price, from public facts alone ---------------------------------------------------


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
        longest=domain.longest_row(d),
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
    centred, on enough effective rows, is centred first. All others release one typical size of entries.
    """
    narrow = table_looks(facts.n_features, entry=False, axes=False)
    enough = 2.5 * math.sqrt(facts.planned_features)
    if facts.of_numbers and facts.fits_in_memory and enough <= facts.effective_rows:
        return narrow
    first = {name: narrow[name] for name in ("mean", "spread") if facts.of_numbers}
    return {**first, "entry": QUANTILE_COUNTS}


def price(settings: Settings, facts: Facts, budget: Budget) -> tuple[float, float, int]:
    """Add the releases of `solve` to `budget`, and refuse what its arithmetic cannot carry: the range that one pick
    pays for, and on declared scales its inverse temperature and the units of a row."""
    add_look(budget, settings.looks)
    note = f"{settings.n_iter} signed vertices of the L1 ball"
    budget.picks("vertices", REST, settings.n_iter, note)
    count = count_event(settings.n_nonzero)
    if count is not None:
        budget.fixed("number of weights", count, "clipped count of a noiseless fit")
    slope, bound = settings.slope_bound, settings.feature_bound
    eta, kappa, resolution = 0.0, math.inf, 0
    if not math.isinf(facts.epsilon):
        eta = 2.0 * budget.parameter("vertices") / math.sqrt(settings.n_iter)
        if eta <= 2.0 * ROUNDING_RANGE:
            raise ParameterError("epsilon is too small for that many steps; lower n_iter.")
        moved = vertex_score_range(1.0, slope, bound, facts.adjacency).value
        kappa = (eta - ROUNDING_RANGE) / moved
        resolution = choose_resolution(settings.n_samples, 4.0 * kappa * bound * slope)
        if settings.scales != "declared":
            check_released_scales(settings, facts.target_bound)
    units = (resolution or 1) * (facts.domain.rows_per_unit or 1)
    check_public(settings.radius, bound, slope, (), kappa * bound * slope / units)
    return eta, kappa, resolution


def check_released_scales(settings: Settings, target: float) -> None:
    """Refuse what floats cannot hold, for every possible release; `target` is the declared bound, or one."""
    lowest, highest = settings.feature_bound / 2.0**ENTRY_HALVINGS, settings.feature_bound
    bounds = (lowest, highest)
    if settings.scales == "table":
        bounds = (CLIPPED_ENTRY_PER_TYPICAL,) * 2
    of_numbers = "mean" in settings.looks
    for bound in bounds:
        for slope in (target,) if of_numbers else (0.5, 1.0):  # ends of the logistic bound
            check_public(settings.reach * target / bound, bound, slope)


# ---- tuned numbers ---------------------------------------------------------------------------------
# Chosen on training splits: dpsparse lab run board --training --methods "DPLasso; DPScreenedLasso". N: effective rows,
# that is rows times mu.


def choose_steps(N: float, n_features: int) -> int:
    """Steps on released scales. A pick among 2d vertices is seen in N/(30 log 2d) units of noise: its square is the
    number of steps."""
    picks = N / (30.0 * math.log(2.0 * n_features))
    return int(min(max(picks**2, 10), 1000))


def choose_declared_steps(n_samples: int | None, epsilon: float) -> int:
    """Steps on declared scales: the (n epsilon)^(2/3) of the utility bound of both papers."""
    if math.isinf(epsilon):
        return 1000
    if n_samples is None:
        return 100
    steps = math.ceil((n_samples * epsilon) ** (2.0 / 3.0) / 4.0)
    return int(min(max(steps, 10), 1000))


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
    return max(MIN_EFFECTIVE_ROWS_TO_FIT, 15.0 * math.log(2.0 * n_features))


def believable_shares(noisy: np.ndarray, noise: float) -> np.ndarray:
    """Shares of the classes from noisy counts, drawn to even ones by three standard deviations of the noise; no class
    is taken to be rarer than one row in a thousand."""
    share = np.maximum(noisy + 3.0 * noise, 1.0)
    return np.asarray(np.clip(share / share.sum(), 1e-3, 1.0 - 1e-3))

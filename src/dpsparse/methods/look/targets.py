"""What is released of the targets: where a fit starts, where its slopes are clipped, slope and offset of its model.

    classes   N_k = #{y_i = k} + noise;  p = N/n;  c = sqrt(1 - sum p^2) (two classes: sqrt(p_0 p_1))
    numbers   m = mean of y + noise, shrunk by its known noise;  q = .75-quantile of |y - m|;  c = 3/2 q
    two classes: c_kb = rows of class k with a margin in bin b, + noise; P(class 1 | margin f) = 1/(1 + exp(-(s f + o)))
              with the likeliest s and o; log s is believed to be near 0, and o near what gives the base rate
    offset    more classes: b_k += log(N_k / (sum_i p_ik + noise)); numbers: b += mean of clipped residuals; four times

Noise of known size weighs the counts c_kb, so where rows are few both numbers stay near what was believed. A positive
slope changes no ranking.

n is the declared number of rows; else the true one where it is public (replace-one); else a noisy sum.
Numbers are in units of the declared bound. Proofs: docs/proofs/noisy_gradient.md, docs/proofs/table_regression.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dpsparse import arithmetic
from dpsparse.accounting import REST, Budget, Geometric, Phase, Plan
from dpsparse.domain.clipping import TINY
from dpsparse.methods.base import Solution, effective_rows
from dpsparse.random import STEPS
from dpsparse.release import Releases
from dpsparse.rows import Margins, Query, Rows

if TYPE_CHECKING:
    from dpsparse.methods.base import BaseDPLinearModel

# Tuned numbers of looks stand here, in the rules that use them, and in rows.py. They were chosen on training splits:
# dpsparse lab run board --training.
QUANTILE_COUNTS = 8  # noisy counts of one search
ENTRY_HALVINGS = 8  # below the declared bound a typical entry is sought
OFFSET_ROUNDS = 4  # noisy sums that move the offset of the final model
CUTOFF_PER_SPREAD = 1.5  # where residuals begin to count linearly, in .75-quantiles of |y - mean|
MIN_EFFECTIVE_ROWS_TO_FIT = 60.0  # below it the mean of targets, or shares of classes, is all

# The bins of margins by which a slope is found, and the margin that stands for each: between two edges their geometric
# mean, beside zero half of the edge.
_above = np.array([2.0 ** (k / 2.0) for k in range(-6, 7)])
_between = np.concatenate([_above[:1] / 2.0, np.sqrt(_above[:-1] * _above[1:]), 1.25 * _above[-1:]])
MARGIN_EDGES = np.concatenate([-_above[::-1], [0.0], _above])
MIDDLES = np.concatenate([-_between[::-1], _between])
ClassWeight = tuple[float, ...] | str | None  # public, or "balanced": from the released counts


def release_mean(rows: Rows, releases: Releases, n_samples: int | None) -> tuple[float, float]:
    """The number of rows and the mean of the targets.

    The mean is shrunk towards the middle of the range by its known noise; targets are taken to spread over half of it.
    """
    query = rows.count_and_total() if n_samples is None else rows.target_total()
    noise, sums = releases.scale("mean", query), releases.gaussian("mean", query)
    n = known_rows(rows, releases, n_samples, float(sums[0]), noise)
    mean = float(sums[-1]) / n * 0.25 / (0.25 + (noise / n) ** 2)
    return n, min(max(mean, -1.0), 1.0)


def release_spread(
    rows: Rows, releases: Releases, n: float, mean: float, level: float = 0.75
) -> float:
    """The `level`-quantile of |y - mean|."""
    near = partial(rows.count_near, mean)
    return release_quantile(releases, "spread", near, n, level, 2.0**-10, 2.0)


def known_rows(
    rows: Rows, releases: Releases, n_samples: int | None, noisy: float, noise: float
) -> float:
    """The declared number of rows; else the true one where it is public; else the noisy sum, which is all that is known
    of the weights of rows."""
    if n_samples is not None:
        return float(n_samples)
    public = None if rows.weighted else releases.number_of_rows(rows)
    return max(noisy, noise, 1.0) if public is None else float(public)


@dataclass(frozen=True)
class ClassTargets:
    """Released class counts, and what follows from them."""

    n: float  # rows
    counts: np.ndarray
    doubt: float  # sd of the noise in a count
    weights: np.ndarray | None  # of the classes, at most one each
    clip: float  # largest slope of a row
    offset: np.ndarray  # at which a fit starts

    @property
    def step(self) -> float:
        """A step size that fits the curvature of the loss, in units of the clip."""
        return 1.0 / self.clip

    def calibrate(
        self, margins: Margins, offset: np.ndarray, releases: Releases
    ) -> tuple[float, np.ndarray]:
        """A slope and the offset of the final model: two classes from counts by margin; more by iterative scaling, the
        predicted class totals meet the counts."""
        slope = 1.0
        if len(self.counts) == 2:
            query = margins.labels_by_margin(MARGIN_EDGES)
            noise, cells = releases.scale("intercept", query), releases.gaussian("intercept", query)
            slope, found = likeliest_slope_and_offset(cells, noise, self.counts, self.doubt)
            offset = np.array([found])
        else:
            share = 1.0 / OFFSET_ROUNDS
            for _ in range(OFFSET_ROUNDS):
                query = margins.class_totals(offset)
                # Both sides get twice the noise added: where the rows are few, nothing moves.
                floor = 2.0 * releases.scale("intercept", query, share)
                totals = releases.gaussian("intercept", query, share)
                change = arithmetic.log((self.counts + floor) / np.maximum(totals + floor, 1.0))
                offset = offset + contrasts(np.clip(change, -2.0, 2.0))
        if self.weights is not None:
            # The counts are those of the rows as they are; weighted odds are odds times weights.
            offset = offset + contrasts(arithmetic.log(self.weights))
        return slope, offset


def contrasts(logs: np.ndarray) -> np.ndarray:
    """Numbers of all classes as offsets: of two classes the difference, of more what exceeds their mean."""
    return np.asarray(logs[1:] - logs[:1] if len(logs) == 2 else logs - logs.mean())


def believed_share(found: float, noise: float) -> float:
    """The mean of what a share of the rows can be, if it is seen with noise and none is likelier than another: above
    zero, by more the less is seen. A class that is taken to be too rare costs more than one taken to be too common."""
    if noise == 0.0 or found > 8.0 * noise:
        return found
    below = found / noise  # in sd: how much of the normal law lies above zero
    density = math.exp(-0.5 * below * below) / math.sqrt(2.0 * math.pi)
    above = 0.5 * math.erfc(-below / math.sqrt(2.0))
    return found + noise * density / above if above > 1e-12 else noise / max(-below, 1.0)


def look_at_classes(
    rows: Rows, releases: Releases, n_classes: int, n_samples: int | None, weight: ClassWeight
) -> ClassTargets:
    """Class counts, and the clip and the offset of a fit from them."""
    query = rows.class_counts(n_classes)
    noisy = releases.gaussian("prior", query)
    scale = releases.scale("prior", query)
    n = known_rows(rows, releases, n_samples, float(noisy.sum()), scale)
    share = np.array([believed_share(float(count) / n, scale / n) for count in noisy])
    share = np.clip(share, 0.01, 0.99)  # no class is taken to be rarer
    share /= share.sum()
    counts, weights, typical = share * n, None, 1.0
    if weight is not None:
        weights = 1.0 / share if isinstance(weight, str) else np.asarray(weight)
        weights = weights / weights.max()
        typical = float(arithmetic.exp(arithmetic.log(weights).mean()))
        share = share * weights / float((share * weights).sum())  # of the weight of all rows
    if n_classes > 2:
        clip = math.sqrt(1.0 - float(np.square(share).sum()))
        return ClassTargets(n, counts, scale, weights, clip * typical, arithmetic.log(share))
    # Half way to the offset at which both classes have slopes of equal size.
    p = float(share[1])
    clip, rare = math.sqrt(p * (1.0 - p)), min(p, 1.0 - p)
    balanced = arithmetic.logit(clip * rare / (1.0 - rare)) * (1.0 if p <= 0.5 else -1.0)
    offset = np.array([float(arithmetic.logit(p) + balanced) / 2.0])
    return ClassTargets(n, counts, scale, weights, clip * typical, offset)


@dataclass(frozen=True)
class NumberTargets:
    """The released mean and spread of the targets."""

    n: float  # rows
    clip: float  # largest slope of a row
    offset: np.ndarray  # the mean, at which a fit starts
    weights: None = None
    step: float = 0.5  # slope/clip has curvature 1/clip here, 1/2 for the logistic loss

    def calibrate(
        self, margins: Margins, offset: np.ndarray, releases: Releases
    ) -> tuple[float, np.ndarray]:
        """Slope one. The offset moves by the mean of the residuals, clipped three times wider, as far as it can be
        trusted: a move of variance `doubt` is seen with noise of known variance."""
        share, doubt = 1.0 / OFFSET_ROUNDS, self.clip**2
        for _ in range(OFFSET_ROUNDS):
            query = margins.residual_total(offset, 3.0 * self.clip)
            noise = (releases.scale("intercept", query, share) / self.n) ** 2
            total = releases.gaussian("intercept", query, share)
            gain = doubt / (doubt + noise)
            offset = offset + gain * total / self.n
            doubt *= 1.0 - gain if noise > 0.0 else 1.0
        return 1.0, offset


def look_at_numbers(rows: Rows, releases: Releases, n_samples: int | None) -> NumberTargets:
    """Mean and spread of the targets, and the clip and the offset of a fit from them."""
    n, mean = release_mean(rows, releases, n_samples)
    clip = CUTOFF_PER_SPREAD * release_spread(rows, releases, n, mean)
    return NumberTargets(n, clip, np.array([mean]))


# ---- the mean, or the shares of the classes, alone: too few rows for anything else ----------------


@dataclass(frozen=True)
class MeanAlone:
    """The public side: declared rows, and the bound of the targets."""

    n_samples: int
    target_bound: float

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        """Geometric noise; only what stands out of it by two standard deviations is believed, and that is shrunk as in
        `release_mean`."""
        query = rows.target_total()
        noise = releases.geometric_sd("mean", query) / self.n_samples
        mean = float(releases.geometric("mean", query)[0]) / self.n_samples
        mean *= max(0.0, 1.0 - (2.0 * noise / max(abs(mean), noise, TINY)) ** 2)
        mean = min(max(mean * 0.25 / (0.25 + noise**2), -1.0), 1.0)
        return Solution(np.zeros((1, rows.n_features)), np.array([mean * self.target_bound]), 1)


def plan_mean_if_few_rows(
    model: BaseDPLinearModel, too_few: float = MIN_EFFECTIVE_ROWS_TO_FIT
) -> Plan[MeanAlone] | None:
    """The plan of a regressor with fewer effective rows than `too_few`; None where it has enough, or their number is
    not declared. A rule of public numbers."""
    n = model._domain.n_samples
    if not model._labels_are_numbers or n is None or model._is_published or model._weighted:
        return None  # a mean of weighted rows needs the sum of the weights beside it
    N = effective_rows(n, model.epsilon, model.delta, model.adjacency)
    return plan_mean(model, N) if too_few > N else None


def plan_mean(model: BaseDPLinearModel, N: float) -> Plan[MeanAlone]:
    """The sum of the targets and nothing else: all of epsilon, in geometric noise; delta is not used."""
    name, domain = type(model).__name__, model._domain
    note = f"noisy sum of the targets: {N:.0f} effective rows tell nothing else"
    n, bound = domain.require("n_samples", name), domain.require("target_bound", name)
    return model._planned(
        [Phase("mean", Geometric.for_epsilon(float(model.epsilon), STEPS), note)],
        MeanAlone(int(n), float(bound)),
        source="docs/proofs/table_regression.md",
        parameters={"n_iter": 1, "way": "mean", "effective_rows": N},
    )


@dataclass(frozen=True)
class SharesAlone:
    """The public side of a classifier that predicts the shares of its classes."""

    n_samples: int
    n_classes: int
    class_weight: ClassWeight

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        n, K = None if rows.weighted else self.n_samples, self.n_classes
        found = look_at_classes(rows, releases, K, n, self.class_weight)
        weighted = found.counts if found.weights is None else found.counts * found.weights
        intercept = contrasts(arithmetic.log(weighted))
        return Solution(np.zeros((len(intercept), rows.n_features)), intercept, 1)


def plan_shares_if_few_rows(
    model: BaseDPLinearModel, n_classes: int, class_weight: ClassWeight
) -> Plan[SharesAlone] | None:
    """The plan of a classifier with too few effective rows to fit, None where it has enough, or their number is not
    declared: class counts and nothing else, for all of the budget."""
    n = model._domain.n_samples
    if n is None:
        return None
    N = effective_rows(n, model.epsilon, model.delta, model.adjacency)
    if N >= MIN_EFFECTIVE_ROWS_TO_FIT:
        return None
    note = f"class counts: {N:.0f} effective rows tell nothing else"
    return model._budgeted(
        SharesAlone(n, n_classes, class_weight),
        lambda settings, budget: budget.gaussian("prior", REST, settings.n_classes, note),
        {"chosen": "shares of the classes", "n_iter": 1, "effective_rows": N},
        source="docs/proofs/counts.md",
    )


# ---- quantiles -----------------------------------------------------------------------------------


def release_quantile(
    releases: Releases,
    phase: str,
    count_below: Callable[[float], Query],
    n_rows: float,
    level: float,
    low: float,
    high: float,
    *,
    share: float = 1.0,
    prior: float = 0.0,
    sure: float = 0.5,
    if_below: float | None = None,
    of_filled: bool = False,
) -> float:
    """The `level`-quantile between `low` and `high`, for `share` of what the phase pays.

    A noisy count may be wrong about the side, and what a plain bisection leaves out then is lost. So every count only
    weighs what is believed, and the next one is taken where belief is halved (Horstein 1963). At first a value is
    believed in proportion to its power `prior` (0: every octave alike). The result is large enough with probability
    `sure`: rows that are taken to be too short make weights out of noise, rows that are taken to be too long only
    waste a part of the budget.

    Most rows may lie below `low`, as empty rows do, and tell nothing of the others. Where `if_below` is given this is
    believed to be as likely as not, so the first count is taken at `low`, and `if_below` is the result unless there is
    another that is large enough. With `of_filled` one count more says how many rows lie below `low`, as far as it can
    be told from noise, and the quantile is that of the others.
    """
    share /= QUANTILE_COUNTS + of_filled

    def share_below(edge: float) -> tuple[float, float]:
        """The noisy share of the rows below a point, and the sd of its noise."""
        query = count_below(edge)
        # A count without noise leaves no doubt about the side, and no division by zero.
        noise = max(releases.scale(phase, query, share) / n_rows, 1e-9)
        found = float(releases.gaussian(phase, query, share)[0]) / n_rows
        return min(max(found, 0.0), 1.0), noise

    # Powers of NumPy differ from machine to machine in their last digits; a released length must not.
    logs = (
        float(arithmetic.log(high / low)) * np.arange(2**QUANTILE_COUNTS + 1) / 2**QUANTILE_COUNTS
    )
    edges = low * arithmetic.exp(logs)
    belief = arithmetic.exp(prior * logs[:-1])
    belief /= belief.sum()
    if if_below is not None:
        edges, belief = np.append(0.0, edges), np.append(1.0, belief) / 2.0
    if of_filled:
        found, noise = share_below(low)
        level += (1.0 - level) * min(max(found - noise, 0.0), 0.99)
    for _ in range(QUANTILE_COUNTS):
        i = int(np.argmin(np.abs(np.cumsum(belief)[:-1] - 0.5))) + 1
        found, noise = share_below(float(edges[i]))
        likelihoods = side_likelihoods(found, noise, level)
        belief *= np.repeat(likelihoods, (i, len(belief) - i))
        belief /= belief.sum()
    if if_below is not None:
        if 1.0 - belief[0] <= sure:
            return if_below
        belief[0] = 0.0
    i = int(np.searchsorted(np.cumsum(belief), sure))
    return math.sqrt(float(edges[i]) * float(edges[i + 1]))


def side_likelihoods(found: float, noise: float, level: float) -> tuple[float, float]:
    """How likely a noisy share of the rows below a point is if the `level`-quantile lies below that point, and if it
    lies above; the true share may be anything from `level` to one, and from zero to `level`."""

    def above(true: float) -> float:
        return 0.5 * math.erfc((true - found) / (noise * math.sqrt(2.0)))

    return (above(level) - above(1.0)) / (1.0 - level), (above(0.0) - above(level)) / level


def release_entry_size(rows: Rows, releases: Releases, n: float, bound: float) -> float:
    """The median over the rows of the root mean square of their entries, below the declared bound."""
    return release_quantile(
        releases, "entry", rows.count_small, n, 0.5, bound / 2.0**ENTRY_HALVINGS, bound
    )


# ---- slope and offset of a model of two classes ---------------------------------------------------


def nearest_with_total(noisy: np.ndarray, total: float) -> np.ndarray:
    """The nearest nonnegative numbers that add up to `total`: bins without rows have none, whatever noise says."""
    largest = np.sort(noisy)[::-1]
    over = (np.cumsum(largest) - total) / np.arange(1, len(noisy) + 1)
    return np.maximum(noisy - float(over[np.flatnonzero(largest > over)[-1]]), 0.0)


def power_of_two(octaves: np.ndarray | float) -> np.ndarray:
    return arithmetic.exp(math.log(2.0) * np.asarray(octaves))


def minus_log(error: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Minus twice the logarithm of the normal density, but for a constant."""
    return np.asarray(np.square(error) / variance + arithmetic.log(variance))


def likeliest_slope_and_offset(
    cells: np.ndarray, noise: float, counts: np.ndarray, doubt: float
) -> tuple[float, float]:
    """From noisy counts by class and bin, of shape (2, bins), and the class counts, known to noise of sd `doubt`.

    Where P(class 1) is p in a bin, (1 - p) c_1 - p c_0 is noise and chance alone, however many rows the bin has. Bins
    that may have none tell nothing of p.
    """
    n = float(counts.sum())
    rows = nearest_with_total(cells.sum(axis=0), n)
    filled = rows > 0.0
    rows, middles, (zeros, ones) = rows[filled], MIDDLES[filled], cells[:, filled]
    centre = float((rows * middles).sum()) / n
    base = float(arithmetic.logit(counts[1] / n))

    def badness(octaves: np.ndarray, shift: np.ndarray) -> np.ndarray:
        """Minus twice the log-likelihood, and what was believed before, at every pair."""
        slope = power_of_two(octaves)[:, None, None]
        offset = base - slope * centre + shift[None, :, None]
        chance = arithmetic.expit(slope * middles + offset)
        other = 1.0 - chance
        spread = rows * chance * other
        seen = other * ones - chance * zeros
        variance = noise**2 * (np.square(chance) + np.square(other)) + spread + 1.0
        missed = counts[1] - (rows * chance).sum(axis=2)
        doubts = doubt**2 + spread.sum(axis=2) + 1.0
        # Before rows are seen the slope is in doubt by half an octave, the offset by two of the log odds.
        believed = np.square(octaves / 0.5)[:, None] + np.square(shift / 2.0)
        fits = minus_log(seen, variance).sum(axis=2) + minus_log(missed, doubts)
        return np.asarray(fits + believed)

    octaves, shift, reach = 0.0, 0.0, 4.0
    for _ in range(4):  # a round is eight times as fine as the one before
        grid = np.linspace(-reach, reach, 33)
        found = badness(octaves + grid, shift + grid)
        i, j = np.unravel_index(int(np.argmin(found)), found.shape)
        octaves, shift, reach = octaves + float(grid[i]), shift + float(grid[j]), reach / 8.0
    slope = float(power_of_two(octaves))
    return slope, base - slope * centre + shift


# What a look releases, with its share of the budget (of mu^2); the fit takes the rest.
LOOKS = {
    "prior": (0.03, "noisy class counts"),
    "mean": (0.06, "noisy sum of the targets (and of the rows, where their number is not declared)"),
    "spread": (0.03, f"{QUANTILE_COUNTS} noisy counts: where residuals begin to count linearly"),
    "masses": (0.15, "noisy sum of |x_i|/||x_i||: scale and filter of the features"),
    "length": (0.04, f"{QUANTILE_COUNTS} noisy counts a search: median length of the rows"),
    "centre": (0.06, "noisy sum of shortened rows"),
    "columns": (0.06, "noisy sums of squares (few entries a row: of |x_i|/||x_i||): scale of every column"),
    "axes": (0.05, "noisy second moments of scaled rows: directions in which they are long"),
    "entry": (0.02, f"{QUANTILE_COUNTS} noisy counts: typical size of an entry"),
    "intercept": (
        0.05, f"noisy counts by class and margin (or {OFFSET_ROUNDS} noisy sums): slope and offset of the model",
    ),
}  # fmt: skip


def add_look(budget: Budget, looks: Mapping[str, int]) -> None:
    """Add releases to a budget, each with how many numbers it has."""
    for name, numbers in looks.items():
        share, note = LOOKS[name]
        budget.gaussian(name, share, numbers, note)


def left_by(looks: Iterable[str]) -> float:
    """The share of the budget that these releases leave."""
    return 1.0 - sum(LOOKS[name][0] for name in looks)


def table_looks(
    n_columns: int, *, entry: bool, axes: bool, weighted: bool = False
) -> dict[str, int]:
    """What a method for narrow tables of numbers releases first, with how many numbers each."""
    looks = {"mean": 2 if weighted else 1, "spread": QUANTILE_COUNTS}
    if entry:
        looks["entry"] = QUANTILE_COUNTS
    looks |= {"length": 2 * QUANTILE_COUNTS, "centre": n_columns, "columns": n_columns}
    if axes:
        looks["axes"] = n_columns * (n_columns + 1) // 2
    return looks

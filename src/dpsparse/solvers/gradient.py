"""A few noisy full gradients on scaled, renormalised rows: the champion for wide sparse data.

    counts  N_k = #{y_i = k} + noise;  p = N/n, c = sqrt(1 - sum p^2) (two classes: sqrt(p_0 p_1))
    masses  s_j = sum_i |x_ij|/||x_i|| + noise of sd u
            D_j = max(s_j, 2u)^(-1/2), or 0 where s_j <= u and d > n or d > 2^17  (dropped)
    rows    z_i = D x_i / ||D x_i||                              a per-row map, given released D
            narrow (d <= n): z_i = (D x_i, q) / ||(D x_i, q)||, q = l / sqrt d: sizes are kept
    T times r_i = slope(z_i.w + b, y_i), clipped to ||r_i||_2 <= c
            g = sum_i z_i r_i + noise of sd c/m_t;  v = 0.9 v + g/n;  w -= step v
    prune   (wide) after half of the budget keep the w_j above their known noise, renormalise, repeat;
            for few weights a third round on three times as many features as wanted; what earlier rounds
            found is added to the last one's weights, each as a direction: v = sum_r share_r w_r/||w_r||
    length  l = noisy median of ||D x_i||;  weights on the original features: D w / l
    offset  b_k += log(N_k / (sum_i p_ik + noise)), four times

Where epsilon is infinite the same run has noise 0, and as many steps as a budget of m = 32 has.
Only the lines with "noise" read the rows, through `Releases`. Everything between them uses released or public numbers.
Regression works in units of the target bound and multiplies by it at the end.
The noise of step t has budget m_t^2 ~ a_t, a_t its weight in the last iterate, sum m_t^2 = m^2.

| symbol | variable | meaning |
|---|---|---|
| m | releases.budget("gradients") | L2 sensitivity over noise sd of all gradients together (mu of Gaussian DP) |
| T | n_iter | max(3, ceil(factor sqrt(n m))), factor 0.3 (d > n) or 1 |
| u | releases.scale("masses", ...) | noise of a mass |

A step costs one pass over the non-zeros of kept features and one noise value a kept feature; after
features are dropped nothing is as long as the table is wide. Proof: docs/proofs/noisy_gradient.md. Why each
line is there: docs/frontier.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dpsparse import arithmetic
from dpsparse.jit import njit
from dpsparse.losses import is_of_numbers
from dpsparse.nonzeros import NNonzero, PrivateCount, keep_nonzeros, mass_rule, top_k
from dpsparse.release import Releases
from dpsparse.rows import Query, Rows, UnitRows
from dpsparse.solvers.solution import Solution
from dpsparse.threads import in_pieces, over_rows

MIN_SHARE = 0.01  # a class is never taken to be rarer than this
FLOOR, DROP = 2.0, 1.0  # in units of the noise of a mass
MAX_STEP = 20.0
INTERCEPT_ROUNDS, MEDIAN_ROUNDS = 4, 12
SURE = 3000.0  # n times budget from which a weight must stand out by two standard deviations
SURE_OF_SEVERAL = 1500.0  # and from which those of several classes must by one only
FEW = 300  # up to this many weights a class the refit starts cold
CONSTANT = 1.0  # size of the constant entry of a narrow row, in entries of typical size
ANY_UNIT = 2.0**45  # how far from 1 entries may be that nobody has bounded
LONG = 1.5  # rows that keep their lengths are shortened beyond this many medians
MOMENTUM = 0.9  # of the velocity that noisy gradients move
LARGEST_BUDGET = 32.0  # m of a run without noise, for its number of steps; no private run has more
MAX_ITER = 2000  # no schedule takes more: the plan charges the sampler's slack for this many
# More than fifty million rows: as many steps as 10^11 looks at a row allow, but not fewer than 400 (docs/scaling.md).
LOOKS, LEAST_MOST = 1e11, 400
# Columns from which those with hardly a row are dropped for their cost, however many rows there are.
MANY = 2**17


@dataclass(frozen=True)
class Recipe:
    """The public side of a run. None means: chosen from released numbers, as documented above."""

    loss: str  # "logistic", "softmax" or "huber"
    n_outputs: int = 1
    n_samples: int | None = None
    longest: float | None = None  # public bound on the length of a row
    target_bound: float = 1.0  # regression: the unit of `clip` and of the weights
    n_iter: int | None = None
    step: float | None = None
    clip: float | None = None
    masses: np.ndarray | str | None = "private"
    renormalise: bool | None = None
    prune: bool | None = None
    soften: bool | None = None
    fit_intercept: bool = True
    n_nonzero: NNonzero = None
    # Public, or "balanced": from the released counts.
    class_weight: tuple[float, ...] | str | None = None


def solve(rows: Rows, public: Recipe, releases: Releases) -> Solution:
    """Weights (K, d) on the original features, intercepts (K,), steps taken, noise of a weight."""
    kind = RegressionRun if is_of_numbers(public.loss) else Run
    return kind(rows, public, releases).solve()


class Run:
    """One fit. Attributes are released or public; `rows` and `units` answer queries only."""

    n: float
    clip: float
    unit_step: float
    offset: np.ndarray
    counts: np.ndarray
    class_weight: np.ndarray | None = None  # at most one each
    scales: np.ndarray  # of the kept features
    shortest: float  # rows are divided by this length at least
    units: UnitRows
    weights: np.ndarray  # of scaled rows, (kept features, outputs)

    def __init__(self, rows: Rows, public: Recipe, releases: Releases) -> None:
        self.rows, self.public, self.releases = rows, public, releases
        self.n_outputs, self.width = public.n_outputs, rows.n_features
        self.constant, self.constant_weight = 0.0, np.zeros(public.n_outputs)
        self.shortest = 0.0
        self.n_iter = 0  # noisy gradients taken so far
        self.past = np.empty(0)  # what earlier rounds found on the kept features (few weights)
        self.past_noise = 0.0  # variance of the noise in each of its entries

    def solve(self) -> Solution:
        public = self.public
        self.release_prior()
        scaling = self.release_masses()
        self.units = self.rows.unit(scaling)
        self.scales = scaling[self.units.kept]
        del scaling  # from here on nothing is as long as a wide table is wide
        # Wide rows need their length only for the final model, and then on what was kept.
        length = 0.0 if self.wide else self.release_length()
        self.constant = length * CONSTANT / math.sqrt(self.width)
        self.shortest = 0.0 if self.renormalises else LONG * length
        if self.constant > 0.0 or self.shortest > 0.0:
            self.units = self.unit_rows(self.units.kept)
        self.weights = np.zeros((self.units.width, self.n_outputs))
        noise = self.descend_and_prune()
        length = max(
            math.sqrt((length or self.release_length()) ** 2 + self.constant**2), self.shortest
        )
        weights = self.sparse_weights() / length
        self.offset = self.offset + self.constant_weight * (self.constant / length)
        if public.fit_intercept:
            self.release_intercept(weights)
        if self.class_weight is not None:
            # The totals above are those of the rows as they are; weighted odds are odds times weights.
            shift = arithmetic.log(self.class_weight)
            shift = shift[1:] - shift[:1] if self.n_outputs == 1 else shift - shift.mean()
            self.offset = self.offset + shift
        return self.publish(weights, noise / length)

    def descend_and_prune(self) -> float:
        """All rounds; the sd of the noise in each weight."""
        rounds = self.rounds
        for i, share in enumerate(rounds):
            # The noise of a round that decides about features must be known: no soft threshold.
            soften = self.softens and (len(rounds) == 1 or 0 < i < 2)
            noise = self.descend(share, soften=soften)
            if i < len(rounds) - 1:
                self.prune(noise, share, by_noise=i == 0)
        return self.add_up(noise, rounds[-1]) if len(self.past) else noise

    def unit_rows(self, kept: np.ndarray) -> UnitRows:
        scaling = np.zeros(self.width, np.float32)
        scaling[kept] = self.scales
        return self.rows.unit(scaling, constant=self.constant, shortest=self.shortest)

    def keep_features(self, stays: np.ndarray) -> np.ndarray:
        """Drop all features but some of those kept so far; where each that is left was among those before. Rows answer
        in an order of their own, which need not be that of the round before."""
        kept, self.scales = self.units.kept[stays], self.scales[stays]
        del self.units  # the rows of the round before need not lie beside the new ones
        self.units = self.unit_rows(kept)
        place = np.empty(self.width, np.int32)
        place[kept] = np.arange(len(kept), dtype=np.int32)
        order = place[self.units.kept]
        self.scales = self.scales[order]
        return np.asarray(np.flatnonzero(stays)[order])

    def publish(self, weights: np.ndarray, noise: float) -> Solution:
        """The model on the original features, in the units of the targets."""
        bound = self.public.target_bound
        kept = self.units.kept
        del self.units  # weights on all features take as much memory
        coef = np.zeros((self.n_outputs, self.width))
        for k in range(self.n_outputs):  # millions of others stay untouched zeros
            coef[k, kept] = weights[:, k] * self.scales * bound
        sd = np.float32(min(noise * bound, 1e30))  # where weights are that large, so is this
        coef_noise = np.zeros(self.width, np.float32)
        # A weight that was dropped has no noise to speak of.
        coef_noise[kept] = np.where(coef[:, kept].any(axis=0), self.scales * sd, 0.0)
        return Solution(coef, self.offset * bound, self.n_iter, coef_noise)

    # ---- releases ------------------------------------------------------------------------------

    def release_prior(self) -> None:
        """Number of rows, clip and offset from noisy class counts."""
        query = self.rows.class_counts(max(2, self.n_outputs))
        counts = self.releases.gaussian("prior", query)
        self.n = self.public_n(float(counts.sum()), query)
        share = np.clip(counts / self.n, MIN_SHARE, 1.0 - MIN_SHARE)
        share /= share.sum()
        self.counts = share * self.n
        typical = 1.0
        if self.public.class_weight is not None:
            chosen = self.public.class_weight
            heavy = 1.0 / share if isinstance(chosen, str) else np.asarray(chosen)
            self.class_weight = heavy / heavy.max()
            typical = float(arithmetic.exp(arithmetic.log(self.class_weight).mean()))
            share = share * self.class_weight / float(share @ self.class_weight)  # of the weight
        if self.n_outputs == 1:
            # Half way to the offset at which both classes have slopes of equal size c.
            p = float(share[1])
            clip, h = math.sqrt(p * (1.0 - p)), min(p, 1.0 - p)
            balanced = arithmetic.logit(clip * h / (1.0 - h)) * (1.0 if p <= 0.5 else -1.0)
            self.offset = np.array([float(arithmetic.logit(p) + balanced) / 2.0])
        else:
            clip = math.sqrt(1.0 - float(np.square(share).sum()))
            self.offset = arithmetic.log(share)
        self.clip = self.public.clip or clip * typical
        self.unit_step = 1.0 / self.clip

    def public_n(self, noisy: float, query: Query) -> float:
        """The declared number of rows; else the true one where it is public; else the noisy sum."""
        if self.public.n_samples is not None:
            return float(self.public.n_samples)
        known = self.releases.number_of_rows(self.rows)
        return (
            max(noisy, self.releases.scale("prior", query), 1.0) if known is None else float(known)
        )

    def release_masses(self) -> np.ndarray:
        """D_j as float32: 0 for dropped features, 1 where the masses are switched off."""
        masses = self.public.masses
        if masses is None:
            return np.ones(self.width, np.float32)
        if not isinstance(masses, str):
            masses = np.asarray(masses, np.float32)
            return np.asarray(1.0 / np.sqrt(np.where(masses > 0, masses, np.inf)), np.float32)
        query = self.rows.unit(np.ones(self.width, np.float32)).masses()
        scale = self.releases.scale("masses", query)
        noisy = self.releases.gaussian("masses", query)
        del query  # and with it rows on all columns
        drops = self.wide or self.width > MANY
        least, floor = DROP * scale if drops else -np.inf, max(FLOOR * scale, 1e-6)
        scaling = np.empty(self.width, np.float32)

        def scale_columns(start: int, stop: int) -> None:
            some = noisy[start:stop]
            kept = 1.0 / np.sqrt(np.maximum(some, floor))
            scaling[start:stop] = np.where(some <= least, 0.0, kept)

        in_pieces(self.width, scale_columns)
        return scaling

    def release_length(self) -> float:
        """Noisy median of the lengths by bisection; a guess from the masses where n is too small."""
        kept = self.scales.astype(np.float64)
        if not len(kept):
            return 1.0
        # the longest row there can be, its squares spread over the features like the masses
        longest = self.public.longest or math.sqrt(self.width)
        guess = longest * math.sqrt(len(kept) / float(np.sum(1.0 / (kept * kept))))
        low, high = guess / 2.0**20, guess
        if self.public.longest is None:  # columns may have any unit: seconds, bytes, cents
            low, high = guess / ANY_UNIT, guess * ANY_UNIT
        return self.quantile("length", self.units.count_shorter, 0.5, guess, low, high)

    def quantile(
        self,
        phase: str,
        below: Callable[[float], Query],
        share: float,
        guess: float,
        low: float,
        high: float,
    ) -> float:
        """Bisection in the logarithm on noisy counts of the rows below a point."""
        part = 1.0 / MEDIAN_ROUNDS
        if self.releases.scale(phase, below(high), part) > self.n / 8.0:
            return guess
        for _ in range(MEDIAN_ROUNDS):
            middle = math.sqrt(low * high)
            if self.releases.gaussian(phase, below(middle), part)[0] < share * self.n:
                low = middle
            else:
                high = middle
        return math.sqrt(low * high)

    def release_intercept(self, weights: np.ndarray) -> None:
        """Iterative scaling: the predicted class totals of the final model meet the counts."""
        margins, part = self.units.margins(weights), 1.0 / INTERCEPT_ROUNDS
        for _ in range(INTERCEPT_ROUNDS):
            query = margins.class_totals(self.offset)
            scale = self.releases.scale("intercept", query, part)
            totals = self.releases.gaussian("intercept", query, part)
            # Both sides get twice the noise added: where the rows are few, nothing moves.
            change = arithmetic.log(
                (self.counts + 2.0 * scale) / np.maximum(totals + 2.0 * scale, 1.0)
            )
            change = np.clip(change, -2.0, 2.0)
            if self.n_outputs == 1:
                self.offset = self.offset + change[1:] - change[:1]
            else:
                self.offset = self.offset + change - change.mean()

    def sparse_weights(self) -> np.ndarray:
        """The weights worth keeping, by their size on scaled rows: rare features have large ones
        on the original rows."""
        n_nonzero = self.public.n_nonzero
        if not isinstance(n_nonzero, PrivateCount):
            return keep_nonzeros(self.weights, n_nonzero)
        exact = replace(self.public, n_nonzero=None, n_iter=self.n_iter)
        k = self.releases.count(
            "count",
            n_nonzero,
            lambda silent: mass_rule(solve(self.rows, exact, silent).coef),
            self.weights.size,
        )
        return top_k(self.weights, k)

    # ---- gradients -----------------------------------------------------------------------------

    @property
    def wide(self) -> bool:
        return self.width > self.n

    @property
    def renormalises(self) -> bool:
        return self.public.renormalise is not False

    @property
    def budget(self) -> float:
        return self.releases.budget("gradients")

    @property
    def prunes(self) -> bool:
        """Prune and refit pays on wide data: for few weights, or many more features than rows."""
        if self.public.prune is not None:
            return self.public.prune
        if not self.wide:
            return False
        if self.few:
            return True
        chosen = self.public.n_nonzero is not None or self.n * self.budget >= 1000
        return self.width > 10 * self.n and chosen

    @property
    def softens(self) -> bool:
        return self.wide if self.public.soften is None else self.public.soften

    @property
    def few(self) -> bool:
        k = self.public.n_nonzero
        return isinstance(k, int) and k <= FEW * self.n_outputs

    @property
    def rounds(self) -> tuple[float, ...]:
        """Shares of the gradients' budget: one descent, or descents with pruning in between."""
        if not self.prunes:
            return (1.0,)
        return (0.45, 0.3, 0.25) if self.few else (0.5, 0.5)

    @property
    def stands_out(self) -> float:
        """By how many standard deviations of the noise a feature must stand out to be kept. Where several classes share
        the features, each of them is the mark of a class or two, and dropping it costs more than keeping another."""
        signal = self.n * self.budget
        if self.n_outputs > 1:
            return 1.0 if signal >= SURE_OF_SEVERAL else 1.5
        return 2.0 if signal >= SURE else 1.5

    def prune(self, noise: float, share: float, *, by_noise: bool) -> None:
        """Drop features whose weights do not stand out of the known noise of the weights, or (few
        weights wanted) all but thrice as many as wanted, by what all rounds so far found."""
        k, n_nonzero = self.n_outputs, self.public.n_nonzero
        if by_noise:
            sizes = np.square(self.weights).sum(axis=1)
            limit = (k - 1 + self.stands_out**2 * math.sqrt(k)) * noise**2
        else:
            assert isinstance(n_nonzero, int)
            found = math.sqrt(share) * direction(self.weights) + self.past
            sizes = np.square(found).sum(axis=1)
            kept = min(max(3 * n_nonzero, 1), len(sizes))
            limit = (
                float(np.partition(sizes, len(sizes) - kept)[len(sizes) - kept]) if kept else 0.0
            )
            limit *= 1.0 - 1e-6  # keep what is equal
        stays = self.keep_features(sizes > limit)
        if self.few:
            self.remember(noise, share, stays, first=by_noise)
        self.weights = self.weights[stays]
        self.weights = np.zeros_like(self.weights) if self.few else soft(self.weights, noise)

    def remember(self, noise: float, share: float, stays: np.ndarray, *, first: bool) -> None:
        """Add the direction a round found to those before it. The first round is shrunk by its noise and both
        count less than the last: they paid for features that were dropped since."""
        factor = math.sqrt(share) * (0.5 if first else 0.7)
        if first:
            size = float(np.linalg.norm(self.weights[stays]))
            self.past = factor * soft(self.weights[stays], noise) / max(size, 1e-300)
        else:
            size = float(np.linalg.norm(self.weights))
            self.past = (self.past + factor * direction(self.weights))[stays]
        self.past_noise += (factor * noise / max(size, 1e-300)) ** 2

    def add_up(self, noise: float, share: float) -> float:
        """The last round's weights along the direction of all rounds; the sd of the noise in each."""
        size = float(np.linalg.norm(self.weights))
        found = math.sqrt(share) * direction(self.weights) + self.past
        length = max(float(np.linalg.norm(found)), 1e-300)
        self.weights = found * (size / length)
        return math.sqrt(share * noise**2 + self.past_noise * size**2) / length

    def schedule(self, budget: float) -> tuple[int, float]:
        """Number of steps and step size from n and the budget alone."""
        public = self.public
        signal = self.n * min(budget, LARGEST_BUDGET)
        most = min(MAX_ITER, max(LEAST_MOST, int(LOOKS / self.n)))
        steps = min((0.3 if self.wide else 1.0) * math.sqrt(signal), most)
        n_iter = public.n_iter or max(3, math.ceil(steps))
        return n_iter, public.step or min(signal / (10.0 * n_iter), MAX_STEP) * self.unit_step

    def descend(self, share: float, *, soften: bool) -> float:
        """Noisy descent of `weights`; the sd of the noise in each of them."""
        n_iter, step = self.schedule(self.budget * math.sqrt(share))
        self.n_iter += n_iter
        weight_of = (1.0 - np.cumprod(np.full(n_iter, MOMENTUM))[::-1]) / (1.0 - MOMENTUM)
        # Steps that weigh more in the result have less noise.
        shares = share * weight_of / weight_of.sum()
        scale = self.releases.scale("gradients", self.gradient())  # of one release for all
        noise = step / self.n * scale * math.sqrt(float(np.sum(weight_of**2 / shares)))
        # One threshold a step, as large as the noise a step of even budget would add.
        cut = step / self.n * scale * math.sqrt(n_iter / share) if soften else 0.0
        velocity = np.zeros((self.units.width + 1, self.n_outputs))
        self.weights = np.ascontiguousarray(self.weights)  # moved in place
        for part in shares:
            noisy = self.releases.gaussian("gradients", self.gradient(), part)
            self.move(noisy, velocity, step, cut)
            if self.constant > 0.0:  # one more coordinate of the same noisy vector
                self.constant_weight = self.constant_weight - step * velocity[-1]
        return noise

    def move(self, noisy: np.ndarray, velocity: np.ndarray, step: float, cut: float) -> None:
        """v = 0.9 v + g/n;  w -= step v, moved towards zero by `cut`."""
        flat = (noisy.reshape(-1), velocity.reshape(-1), self.weights.reshape(-1))
        facts = (float(self.n), MOMENTUM, float(step), float(cut))
        over_rows(noisy.size, noisy.size, lambda a, b: _move(*flat, *facts, a, b))

    def gradient(self) -> Query:
        """Slopes at the present weights, of L2 norm at most `clip` a row."""
        return self.units.gradient(
            self.public.loss, self.weights, self.offset, clip=self.clip, cutoff=self.clip,
            constant_weight=self.constant_weight, class_weight=self.class_weight,
        )  # fmt: skip


class RegressionRun(Run):
    """The same with clipped residuals; the clip comes from the released spread of the targets."""

    @property
    def renormalises(self) -> bool:
        """On narrow data the length of a row says something about its target."""
        return self.wide if self.public.renormalise is None else self.public.renormalise

    def release_prior(self) -> None:
        query = self.rows.count_and_total()
        count, total = self.releases.gaussian("prior", query)
        self.n = self.public_n(float(count), query)
        mean = min(max(float(total) / self.n, -1.0), 1.0)
        self.offset = np.array([mean])
        if self.public.clip is not None:
            self.clip = self.public.clip / self.public.target_bound
        else:
            self.clip = 1.5 * self.quantile(
                "spread", partial(self.rows.count_near, mean), 0.75, 0.25, 2.0**-12, 2.0
            )
        self.unit_step = 0.5  # slope/clip has curvature 1/clip here, 1/2 for the logistic loss

    def release_intercept(self, weights: np.ndarray) -> None:
        """Move the offset by the mean of the residuals, clipped three times wider, as far as it can be trusted:
        a move of variance `doubt` is seen with noise of known variance."""
        margins, part = self.units.margins(weights), 1.0 / INTERCEPT_ROUNDS
        doubt = self.clip**2
        for _ in range(INTERCEPT_ROUNDS):
            query = margins.residual_total(self.offset, 3.0 * self.clip)
            noise = (self.releases.scale("intercept", query, part) / self.n) ** 2
            total = self.releases.gaussian("intercept", query, part)
            gain = doubt / (doubt + noise) if noise > 0.0 else 1.0
            self.offset = self.offset + gain * total / self.n
            doubt *= 1.0 - gain if noise > 0.0 else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def _move(noisy, velocity, weights, n, momentum, step, cut, start, stop):  # type: ignore[no-untyped-def]
    """All of a step in one pass: of millions of weights every look at memory counts. The constant, which comes after
    the weights, has a velocity only."""
    for i in range(start, min(stop, weights.size)):
        v = velocity[i] * momentum + noisy[i] / n
        w = weights[i] - step * v
        velocity[i] = v
        weights[i] = w - min(max(w, -cut), cut) if cut > 0.0 else w
    for i in range(max(start, weights.size), stop):
        velocity[i] = velocity[i] * momentum + noisy[i] / n


def direction(weights: np.ndarray) -> np.ndarray:
    """Weights of norm one, or zeros."""
    return np.asarray(weights / max(float(np.linalg.norm(weights)), 1e-300))


def soft(weights: np.ndarray, cut: float) -> np.ndarray:
    """Weights moved towards zero by `cut`."""
    return weights - np.clip(weights, -cut, cut) if cut > 0.0 else weights

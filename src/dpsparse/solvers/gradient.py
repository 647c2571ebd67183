"""A few noisy full gradients on scaled, renormalised rows: the champion for wide sparse data.

    counts  N_k = #{y_i = k} + noise;  p = N/n, c = sqrt(1 - sum p^2) (two classes: sqrt(p_0 p_1))
    masses  s_j = sum_i |x_ij|/||x_i|| + noise of sd u
            D_j = max(s_j, 2u)^(-1/2), or 0 where d > n and s_j <= u  (dropped)
    rows    z_i = D x_i / ||D x_i||                              a per-row map, given released D
            narrow (d <= n): z_i = (D x_i, q) / ||(D x_i, q)||, q = l / sqrt d: sizes are kept
    T times r_i = slope(z_i.w + b, y_i), clipped to ||r_i||_2 <= c
            g = sum_i z_i r_i + noise of sd c/m_t;  v = 0.9 v + g/n;  w -= step v
    prune   (wide) after half of the budget keep the w_j above their known noise, renormalise, repeat;
            for few weights a third round on three times as many features as wanted
    length  l = noisy median of ||D x_i||;  weights on the original features: D w / l
    offset  b_k += log(N_k / (sum_i p_ik + noise)), four times

Only the lines with "noise" read the rows. Everything between them uses released or public numbers.
The noise of step t has budget m_t^2 ~ a_t, a_t its weight in the last iterate, sum m_t^2 = m^2.

| symbol | variable | meaning |
|---|---|---|
| m | Recipe.gradient | L2 sensitivity over noise sd of all gradients together (mu of Gaussian DP) |
| T | n_iter | max(3, ceil(factor sqrt(n m))), factor 0.3 (d > n) or 1 |
| u | scale of masses | 1/Recipe.mass |

A step costs two passes over the non-zeros and one noise value a kept feature; memory is three float32
values a feature (D, D w, v). Proof: docs/proofs/noisy_gradient.md. Why each line is there: docs/frontier.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numba
import numpy as np
import scipy.sparse as sp
from scipy.special import logit, softmax

from dpsparse.domain import BoundedData
from dpsparse.losses import Loss
from dpsparse.solvers._noise import SHRINK, NoisySums
from dpsparse.sparsify import NNonzero, mass_rule, sparsify_weights

MIN_SHARE = 0.01  # a class is never taken to be rarer than this
FLOOR, DROP = 2.0, 1.0  # in units of the noise of a mass
MAX_STEP = 20.0
INTERCEPT_ROUNDS, MEDIAN_ROUNDS = 4, 12
FEW = 300  # up to this many weights a class the refit starts cold
HUGE = 1e30  # entries are clipped to it where the domain states no smaller bound
CONSTANT = 1.0  # size of the constant entry of a narrow row, in entries of typical size
LONG = 1.5  # rows that keep their lengths are shortened beyond this many medians
EXACT_ITER = 200  # steps of a run without noise
MAX_ITER = 2000  # no schedule takes more: the plan charges the sampler's slack for this many


@dataclass(frozen=True)
class Recipe:
    """Public numbers of a run; the first six are sensitivity over noise sd (inf: no noise)."""

    prior: float
    mass: float
    length: float
    gradient: float
    intercept: float
    spread: float = math.inf  # of regression targets
    signed: float = 1.0  # replace-one over add-remove sensitivity of signed sums: 1 or 2
    positive: float = 1.0  # the same for nonnegative contributions: 1 or sqrt 2
    n_is_public: bool = False
    n_samples: int | None = None
    n_iter: int | None = None
    step: float | None = None
    momentum: float = 0.9
    clip: float | None = None
    masses: np.ndarray | str | None = "private"
    renormalise: bool | None = None
    prune: bool | None = None
    soften: bool | None = None
    weighted: bool = True
    fit_intercept: bool = True
    noise: str = "grid"
    n_nonzero: NNonzero = None


class Run:
    """One fit. Attributes are released or public, except `sums`, the door to the rows."""

    n: float
    clip: float
    unit_step: float
    offset: np.ndarray
    counts: np.ndarray
    scaling: np.ndarray

    def __init__(
        self,
        data: BoundedData,
        loss: Loss,
        n_outputs: int,
        recipe: Recipe,
        rng: np.random.Generator,
    ) -> None:
        X = data.X
        if (data.domain.feature_bound or math.inf) > HUGE:  # sums run over float32 columns
            X = sp.csr_array((np.clip(X.data, -HUGE, HUGE), X.indices, X.indptr), shape=X.shape)
        self.sums = NoisySums(X, rng, recipe.noise)
        self.data, self.loss, self.recipe, self.rng = data, loss, recipe, rng
        self.n_outputs, self.width = n_outputs, data.X.shape[1]
        self.weights = np.zeros((self.width, n_outputs), dtype=np.float32)  # D w, not w
        self.offset = np.zeros(n_outputs)
        self.constant, self.constant_weight = 0.0, np.zeros(n_outputs)
        self.n_iter = 0  # noisy gradients taken so far
        self.unit_noise = 0.0  # sd of the noise in a weight on the original features, over D_j

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (K, d) on the original features and intercepts (K,)."""
        recipe = self.recipe
        self.release_prior()
        self.scaling = self.release_masses()
        if self.wide:
            self.sums.drop(self.scaling)
        lengths = self.sums.lengths(self.scaling)
        # Wide rows need their length only for the final model, and then on what was kept.
        length = 0.0 if self.wide else self.release_length(lengths)
        self.constant = length * CONSTANT / math.sqrt(self.width)
        shortest = 0.0 if self.renormalises else LONG * length
        rounds = self.rounds
        for i, share in enumerate(rounds):
            budget, last = recipe.gradient * math.sqrt(share), i == len(rounds) - 1
            # The noise of a round that decides about features must be known: no soft threshold.
            soften = self.softens and (len(rounds) == 1 or 0 < i < 2)
            noise = self.descend(self.inverse(lengths, shortest), budget, soften=soften)
            if not last:
                self.prune(noise, by_noise=i == 0)
                self.sums.drop(self.scaling)
                lengths = self.sums.lengths(self.scaling)
        length = max(math.hypot(length or self.release_length(lengths), self.constant), shortest)
        coef = self.sparse_weights()
        coef /= length
        self.unit_noise = noise / length
        self.offset = self.offset + self.constant_weight * (self.constant / length)
        self.release_intercept(coef)
        return np.ascontiguousarray(coef.T), self.offset

    # ---- releases ------------------------------------------------------------------------------

    def release_prior(self) -> None:
        """Number of rows, clip and offset from noisy class counts."""
        recipe, n_classes = self.recipe, max(2, self.n_outputs)
        scale = recipe.positive / recipe.prior
        members = np.eye(n_classes)[self.data.y]
        counts = self.sums.total(members, scale)
        self.n = self.public_n(float(counts.sum()), scale)
        share = np.clip(counts / self.n, MIN_SHARE, 1.0 - MIN_SHARE)
        share /= share.sum()
        self.counts = share * self.n
        if self.n_outputs == 1:
            # Half way to the offset at which both classes have slopes of equal size c.
            p = float(share[1])
            clip, h = math.sqrt(p * (1.0 - p)), min(p, 1.0 - p)
            balanced = logit(clip * h / (1.0 - h)) * (1.0 if p <= 0.5 else -1.0)
            self.offset = np.array([(logit(p) + balanced) / 2.0])
        else:
            clip = math.sqrt(1.0 - float(np.square(share).sum()))
            self.offset = np.log(share)
        self.clip = recipe.clip or clip
        self.unit_step = 1.0 / self.clip

    def public_n(self, noisy: float, scale: float) -> float:
        """The declared number of rows; else the true one where it is public; else the noisy sum."""
        recipe = self.recipe
        if recipe.n_samples is not None:
            return float(recipe.n_samples)
        if recipe.n_is_public:
            return float(self.data.X.shape[0])
        return max(noisy, scale, 1.0)

    def release_masses(self) -> np.ndarray:
        """D_j as float32: 0 for dropped features, 1 where the masses are switched off."""
        recipe = self.recipe
        ones = np.ones(self.width, dtype=np.float32)
        if recipe.masses is None:
            return ones
        if not isinstance(recipe.masses, str):
            masses = np.asarray(recipe.masses, dtype=np.float32)
            return np.where(masses > 0, masses, np.inf).astype(np.float32) ** np.float32(-0.5)
        scale = recipe.positive / recipe.mass
        lengths = self.sums.lengths(ones)
        masses = np.zeros((self.width, 1), dtype=np.float32)
        self.sums.pull(inverse_of(lengths)[:, None], ones, scale, masses, positive=True)
        masses = masses[:, 0]
        # An exact run has no noise to tell small from absent: an empty column just stays unscaled.
        dropped = masses <= DROP * scale if self.wide and scale > 0 else None
        np.maximum(masses, FLOOR * scale if scale > 0 else 1e-6, out=masses)
        np.power(masses, -0.5, out=masses)
        if dropped is not None:
            masses[dropped] = 0.0
        return masses

    def release_length(self, lengths: np.ndarray) -> float:
        """Noisy median of the lengths by bisection; a guess from the masses where n is too small."""
        kept, masses = _kept(self.scaling)
        if kept == 0:
            return 1.0
        # the longest row there can be, its squares spread over the features like the masses
        domain = self.data.domain
        longest = domain.row_norm or (domain.feature_bound or 1.0) * math.sqrt(self.width)
        guess = longest * math.sqrt(kept / masses)
        reach = 2.0**20
        budget = self.recipe.length
        return self.quantile(lengths, 0.5, budget, guess, guess / reach, guess)

    def quantile(
        self, values: np.ndarray, share: float, budget: float, guess: float, low: float, high: float
    ) -> float:
        """Bisection in the logarithm on noisy counts of the rows below a point."""
        scale = math.sqrt(MEDIAN_ROUNDS) / budget  # a count moves by 1 under either adjacency
        if scale > self.n / 8.0:
            return guess
        target = share * self.n
        for _ in range(MEDIAN_ROUNDS):
            middle = math.sqrt(low * high)
            below = (values <= middle).astype(np.float64)[:, None]
            if self.sums.total(below, scale)[0] < target:
                low = middle
            else:
                high = middle
        return math.sqrt(low * high)

    def release_intercept(self, coef: np.ndarray) -> None:
        """Iterative scaling: the predicted class totals of the final model meet the counts."""
        recipe = self.recipe
        if not recipe.fit_intercept:
            return
        scale = recipe.positive * math.sqrt(INTERCEPT_ROUNDS) / recipe.intercept
        margins = self.sums.margins(coef)
        for _ in range(INTERCEPT_ROUNDS):
            shown = margins + self.offset
            if self.n_outputs == 1:
                shown = np.column_stack([np.zeros(len(shown)), shown])
            totals = self.sums.total(softmax(shown, axis=1), scale)
            # Both sides get twice the noise added: where the rows are few, nothing moves.
            change = np.log((self.counts + 2.0 * scale) / np.maximum(totals + 2.0 * scale, 1.0))
            change = np.clip(change, -2.0, 2.0)
            if self.n_outputs == 1:
                self.offset = self.offset + change[1:] - change[:1]
            else:
                self.offset = self.offset + change - change.mean()

    def sparse_weights(self) -> np.ndarray:
        """The weights worth keeping, by their size on scaled rows: rare features have large ones
        on the original rows."""
        if self.recipe.n_nonzero is None:
            return self.weights.astype(np.float64)
        alive = np.flatnonzero(self.scaling)
        factors = self.scaling[alive].astype(np.float64)[:, None]
        scaled = self.weights[alive] / factors
        kept = sparsify_weights(scaled, self.recipe.n_nonzero, self.rng, self.exact_count)
        out = np.zeros(self.weights.shape)
        out[alive] = kept * factors
        return out

    # ---- gradients -----------------------------------------------------------------------------

    @property
    def wide(self) -> bool:
        return self.width > self.n

    @property
    def renormalises(self) -> bool:
        return self.recipe.renormalise is not False

    @property
    def prunes(self) -> bool:
        """Prune and refit pays on wide data: for few weights, or many more features than rows."""
        recipe, k = self.recipe, self.recipe.n_nonzero
        if recipe.prune is not None:
            return recipe.prune
        if math.isinf(recipe.gradient) or not self.wide:
            return False
        if self.few:
            return True
        chosen = k is not None or self.n * recipe.gradient >= 1000
        return self.width > 10 * self.n and chosen

    @property
    def softens(self) -> bool:
        return self.wide if self.recipe.soften is None else self.recipe.soften

    @property
    def few(self) -> bool:
        k = self.recipe.n_nonzero
        return isinstance(k, int) and k <= FEW * self.n_outputs

    @property
    def rounds(self) -> tuple[float, ...]:
        """Shares of the gradients' budget: one descent, or descents with pruning in between."""
        if not self.prunes:
            return (1.0,)
        return (0.45, 0.3, 0.25) if self.few else (0.5, 0.5)

    def prune(self, noise: float, *, by_noise: bool) -> None:
        """Drop features whose weights do not stand out of the known noise of the weights, or (few
        weights wanted) all but thrice as many as wanted."""
        k, n_nonzero = self.n_outputs, self.recipe.n_nonzero
        if by_noise:
            theta = 2.0 if self.n * self.recipe.gradient >= 1000 else 1.5
            limit = (k - 1 + theta**2 * math.sqrt(k)) * noise**2
        else:
            assert isinstance(n_nonzero, int)
            alive = np.flatnonzero(self.scaling)
            sizes = np.square(self.weights[alive] / self.scaling[alive, None]).sum(axis=1)
            kept = min(max(3 * n_nonzero, 1), len(sizes))
            limit = (
                float(np.partition(sizes, len(sizes) - kept)[len(sizes) - kept]) if kept else 0.0
            )
            limit *= 1.0 - 1e-6  # keep what is equal
        _drop(self.weights, self.scaling, limit)
        if self.few:
            self.weights[:] = 0.0
        else:
            _move(self.weights, self.weights, self.scaling, 0.0, noise)

    def schedule(self, budget: float) -> tuple[int, float]:
        """Number of steps and step size from n and the budget alone."""
        recipe = self.recipe
        if math.isinf(budget):
            return recipe.n_iter or EXACT_ITER, recipe.step or MAX_STEP / 2 * self.unit_step
        signal = self.n * budget
        steps = math.ceil((0.3 if self.wide else 1.0) * math.sqrt(signal))
        n_iter = recipe.n_iter or min(max(3, steps), MAX_ITER)
        return n_iter, recipe.step or min(signal / (10.0 * n_iter), MAX_STEP) * self.unit_step

    def descend(self, inverses: np.ndarray, budget: float, *, soften: bool) -> float:
        """Noisy descent of `weights` in place; the sd of the noise in each of them."""
        recipe, clip, momentum = self.recipe, self.clip, self.recipe.momentum
        n_iter, step = self.schedule(budget)
        self.n_iter += n_iter
        weight_of = (1.0 - momentum ** np.arange(n_iter, 0, -1)) / (1.0 - momentum)
        shares = weight_of if recipe.weighted else np.ones(n_iter)
        scales = recipe.signed * clip / (budget * np.sqrt(shares / shares.sum()))
        velocity, constant_velocity = np.zeros_like(self.weights), np.zeros(self.n_outputs)
        noise = step / self.n * math.sqrt(float(np.sum((weight_of * scales) ** 2)))
        # One threshold a step, as large as the noise a step of even budget would add.
        cut = step / self.n * recipe.signed * clip * math.sqrt(n_iter) / budget if soften else 0.0
        for scale in scales:
            margins = self.sums.margins(self.weights) + self.constant * self.constant_weight
            slopes = self.slopes(margins * inverses[:, None] + self.offset) * inverses[:, None]
            self.sums.pull(slopes, self.scaling, scale, velocity, momentum, 1.0 / self.n)
            _move(self.weights, velocity, self.scaling, step, cut)
            if self.constant > 0.0:  # one more coordinate of the same noisy vector
                total = self.sums.total(self.constant * slopes, scale)
                constant_velocity = momentum * constant_velocity + total / self.n
                self.constant_weight = self.constant_weight - step * constant_velocity
        return noise

    def inverse(self, lengths: np.ndarray, shortest: float) -> np.ndarray:
        """One over the lengths of the rows with their constant (0 for an empty row)."""
        return inverse_of(np.hypot(lengths, self.constant), shortest)

    def slopes(self, margins: np.ndarray) -> np.ndarray:
        """Slopes (n, K) with rows of L2 norm at most `clip`."""
        if self.n_outputs == 1:
            slopes = self.loss.slope(margins[:, 0], self.data.y)
            return np.asarray(np.clip(slopes, -self.clip, self.clip)[:, None])
        slopes = self.loss.slope(margins, self.data.y)
        norms = np.sqrt(np.square(slopes).sum(axis=1))
        return np.asarray(slopes * (self.clip / np.maximum(norms, self.clip))[:, None])

    def exact_count(self) -> int:
        """For `PrivateCount`: the weights the mass rule keeps of the run without noise."""
        exact = replace(
            self.recipe, prior=math.inf, mass=math.inf, length=math.inf, gradient=math.inf,
            intercept=math.inf, spread=math.inf, n_nonzero=None,
        )  # fmt: skip
        run = type(self)(self.data, self.loss, self.n_outputs, exact, self.rng)
        return mass_rule(run.solve()[0])


class RegressionRun(Run):
    """The same with clipped residuals; the clip comes from the released spread of the targets."""

    @property
    def renormalises(self) -> bool:
        """On narrow data the length of a row says something about its target."""
        return self.wide if self.recipe.renormalise is None else self.recipe.renormalise

    def release_prior(self) -> None:
        recipe = self.recipe
        bound = float(self.data.domain.require("target_bound", "Regression"))
        y = self.data.y / bound
        # (1, y) has norm sqrt 2; a replaced row moves y alone, by 2
        scale = (2.0 if recipe.signed == 2.0 else math.sqrt(2.0)) / recipe.prior
        count, total = self.sums.total(np.column_stack([np.ones(len(y)), y]), scale)
        self.n = self.public_n(float(count), scale)
        mean = bound * min(max(float(total) / self.n, -1.0), 1.0)
        self.offset = np.array([mean])
        self.clip = recipe.clip or 1.5 * self.quantile(
            np.abs(self.data.y - mean),
            0.75,
            recipe.spread,
            bound / 4.0,
            bound / 2.0**12,
            2.0 * bound,
        )
        self.unit_step = 0.5  # slope/clip has curvature 1/clip here, 1/2 for the logistic loss

    def slopes(self, margins: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip(margins - self.data.y[:, None], -self.clip, self.clip))

    def release_intercept(self, coef: np.ndarray) -> None:
        """Move the offset by the mean of the residuals, clipped three times wider."""
        recipe, reach = self.recipe, 3.0 * self.clip
        if not recipe.fit_intercept:
            return
        scale = recipe.signed * reach * math.sqrt(INTERCEPT_ROUNDS) / recipe.intercept
        margins = self.sums.margins(coef)
        for _ in range(INTERCEPT_ROUNDS):
            residuals = np.clip(self.data.y[:, None] - margins - self.offset, -reach, reach)
            total = self.sums.total(residuals, scale)
            # Shrunk where the noise of the mean exceeds the residuals themselves.
            self.offset = self.offset + total * self.n / (self.n**2 + (scale / self.clip) ** 2)


def inverse_of(lengths: np.ndarray, least: float = 0.0) -> np.ndarray:
    """Factors that bring rows to length at most 1 (all of them to 1 if `least` is 0)."""
    lengths = np.maximum(lengths, least)
    return np.asarray(np.divide(SHRINK, lengths, out=np.zeros_like(lengths), where=lengths > 0))


@numba.njit(cache=True)
def _move(weights, velocity, scaling, step, cut):  # type: ignore[no-untyped-def]
    """D w <- soft(D w - step D v, cut D), in place."""
    for j in range(weights.shape[0]):
        d = scaling[j]
        for k in range(weights.shape[1]):
            w = weights[j, k] - step * d * velocity[j, k]
            weights[j, k] = max(w - cut * d, 0.0) + min(w + cut * d, 0.0) if cut > 0.0 else w


@numba.njit(cache=True)
def _drop(weights, scaling, limit):  # type: ignore[no-untyped-def]
    """D_j <- 0 and weights 0 where ||w_j||^2 <= limit, w = (D w)/D."""
    for j in range(weights.shape[0]):
        total = 0.0
        for k in range(weights.shape[1]):
            total += np.float64(weights[j, k]) ** 2
        if total <= limit * np.float64(scaling[j]) ** 2:
            scaling[j] = 0.0
            for k in range(weights.shape[1]):
                weights[j, k] = 0.0


@numba.njit(cache=True)
def _kept(scaling):  # type: ignore[no-untyped-def]
    """Number of kept features and the sum of their masses 1/D^2."""
    count, total = 0, 0.0
    for j in range(scaling.size):
        if scaling[j] > 0.0:
            count += 1
            total += 1.0 / np.float64(scaling[j]) ** 2
    return count, total

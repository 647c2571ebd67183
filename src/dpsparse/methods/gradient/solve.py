"""A few noisy full gradients on rows of released scale: the champion for wide sparse data.

    look    n, c, b from released class counts, or mean and spread of numbers            (look/targets.py)
    rows    z_i of length at most one, on released masses and lengths                    (look/rows.py)
    T times r_i = slope(z_i.w + b, y_i), clipped to ||r_i||_2 <= c
            g = sum_i z_i r_i + noise of sd c/m_t;  v = 0.9 v + g/n;  w -= step v
    prune   (wide) after half of the budget keep the w_j above their known noise, renormalise, repeat;
            for few weights a third round on three times as many features as wanted; what earlier rounds
            found is added to the last one's weights, each as a direction: v = sum_r share_r w_r/||w_r||
    publish weights on the original features, D w / l, and a released offset             (look/rows.py)

Hard thresholding (Jain, Tewari, Kar 2014; Wang, Gu 2019) does not prune: after every step the k largest entries of
w - step v stay, all classes together. Unlike in the papers, steps have momentum, n is declared or released, rows are
clipped to a released length, and the offset is released.

The noise of step t has budget m_t^2 ~ a_t, a_t its weight in the last iterate, sum m_t^2 = m^2.

| symbol | variable | meaning |
|---|---|---|
| m | releases.budget("gradients") | L2 sensitivity over noise sd of all gradients together (mu of Gaussian DP) |
| T | n_iter | steps (`schedule`) |

A step costs one pass over the non-zeros of kept features and one noise value a kept feature; after
features are dropped nothing is as long as the table is wide. Proof: docs/proofs/noisy_gradient.md. Why each
line is there: docs/choosing_method.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpsparse.domain.clipping import TINY
from dpsparse.jit import njit
from dpsparse.methods.base import Solution
from dpsparse.methods.look.rows import RowSettings, ScaledRows
from dpsparse.nonzeros import (
    NNonzero,
    PrivateCount,
    choose_columns,
    keep_nonzeros,
    mass_rule,
    top_k,
)
from dpsparse.release import Releases
from dpsparse.rows import Query, Rows
from dpsparse.threads import over_rows

MOMENTUM = 0.9  # of the velocity that noisy gradients move
MAX_STEPS = 2000  # the plan charges the sampler's slack for so many


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The public side of a run. None means: chosen from released numbers, as documented above."""

    look: RowSettings
    n_iter: int | None = None
    n_nonzero: NNonzero = None

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        """Weights (K, d) on the original features, intercepts (K,), steps taken, noise of a weight."""
        scaled = ScaledRows(rows, self.look, releases)
        descent = Descent(scaled, self, releases)
        noise = descent.descend_and_prune()
        weights = keep_weights(descent, rows, self, releases)
        return scaled.publish(weights, descent.constant_weight, descent.n_iter, noise)

    @property
    def keeps_few(self) -> bool:
        """Whether a refit starts cold, and after three rounds."""
        k = self.n_nonzero
        return isinstance(k, int) and k <= 300 * self.look.n_outputs


@dataclass(frozen=True, kw_only=True)
class HardThreshold(Settings):
    """The same for hard thresholding. Without a number of weights it follows from released rows."""

    n_nonzero: int | None = None

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        scaled = ScaledRows(rows, self.look, releases)
        descent = ThresholdedDescent(scaled, self, releases)
        descent.descend(1.0, soften=False)
        return scaled.publish(descent.weights, descent.constant_weight, descent.n_iter, None)


def keep_weights(
    descent: Descent, rows: Rows, settings: Settings, releases: Releases
) -> np.ndarray:
    """The weights worth keeping, by their size on scaled rows: rare features have large ones on the original rows."""
    weights, rule = descent.weights, settings.n_nonzero
    if not isinstance(rule, PrivateCount):
        return keep_nonzeros(weights, rule)
    exact = replace(settings, n_nonzero=None, n_iter=descent.n_iter)

    def count_without_noise(silent: Releases) -> int:
        return mass_rule(exact.solve(rows, silent).coef)

    return top_k(weights, releases.count("count", rule, count_without_noise, weights.size))


class Descent:
    """Weights of scaled rows, (kept features, outputs), and what earlier rounds found."""

    def __init__(self, scaled: ScaledRows, settings: Settings, releases: Releases) -> None:
        self.scaled, self.settings, self.releases = scaled, settings, releases
        self.n, self.clip = scaled.targets.n, scaled.targets.clip
        self.budget = releases.budget("gradients")
        self.n_outputs = settings.look.n_outputs
        self.weights = np.zeros((scaled.units.width, self.n_outputs))
        self.constant_weight = np.zeros(self.n_outputs)
        self.n_iter = 0  # noisy gradients taken so far
        self.past = np.empty(0)  # what earlier rounds found on the kept features (few weights)
        self.past_noise = 0.0  # variance of the noise in each of its entries

    def descend_and_prune(self) -> float:
        """All rounds; the sd of the noise in each weight."""
        wide, width = self.scaled.wide, self.scaled.width
        settings, n = self.settings, self.n
        chosen = settings.n_nonzero is not None
        rounds = round_shares(wide, settings.keeps_few, chosen, width, n, self.budget)
        for i, share in enumerate(rounds):
            # The noise of a round that decides about features must be known: no soft threshold.
            noise = self.descend(share, soften=wide and (len(rounds) == 1 or i == 1))
            if i < len(rounds) - 1:
                self.prune(noise, share, first=i == 0)
        return self.add_up(noise, rounds[-1]) if len(self.past) else noise

    def descend(self, share: float, *, soften: bool) -> float:
        """Noisy descent of `weights`; the sd of the noise in each of them."""
        wide, budget = self.scaled.wide, self.budget * math.sqrt(share)
        n_iter, size = schedule(self.settings.n_iter, wide, self.n, budget)
        step = size * self.scaled.targets.step
        self.n_iter += n_iter
        weight_of = (1.0 - np.cumprod(np.full(n_iter, MOMENTUM))[::-1]) / (1.0 - MOMENTUM)
        # Steps that weigh more in the result have less noise.
        shares = share * weight_of / weight_of.sum()
        scale = self.releases.scale("gradients", self.gradient())  # of one release for all
        noise = step / self.n * scale * math.sqrt(float(np.sum(weight_of**2 / shares)))
        # One threshold a step, as large as the noise a step of even budget would add, and what chance adds.
        cut = 0.0
        if soften:
            # Rows drawn by chance move a slope as noise does, at every step alike: sum of z_ij^2 is n over the width.
            chance = self.clip * math.sqrt(self.n / max(len(self.weights), 1)) / (1.0 - MOMENTUM)
            cut = step / self.n * math.hypot(scale * math.sqrt(n_iter / share), chance)
        velocity = np.zeros((len(self.weights) + 1, self.n_outputs))
        self.weights = np.ascontiguousarray(self.weights)  # moved in place
        for part in shares:
            noisy = self.releases.gaussian("gradients", self.gradient(), part)
            self.move(noisy, velocity, step, cut)
            if self.scaled.constant > 0.0:  # one more coordinate of the same noisy vector
                self.constant_weight = self.constant_weight - step * velocity[-1]
        return noise

    def gradient(self) -> Query:
        return self.scaled.gradient(self.weights, self.constant_weight, self.clip)

    def move(self, noisy: np.ndarray, velocity: np.ndarray, step: float, cut: float) -> None:
        """v = 0.9 v + g/n;  w -= step v, moved towards zero by `cut`."""
        flat = (noisy.reshape(-1), velocity.reshape(-1), self.weights.reshape(-1))
        facts = (float(self.n), MOMENTUM, float(step), float(cut))
        over_rows(noisy.size, noisy.size, lambda a, b: _move(*flat, *facts, a, b))

    def prune(self, noise: float, share: float, *, first: bool) -> None:
        """Drop features whose weights do not stand out of the known noise of the weights, or (later rounds, few
        weights wanted) all but thrice as many as wanted, by what all rounds so far found."""
        if first:
            sizes = np.square(self.weights).sum(axis=1)
            k = self.n_outputs
            limit = (
                k - 1 + stands_out(self.n * self.budget, self.n_outputs) ** 2 * math.sqrt(k)
            ) * noise**2
        else:
            found = math.sqrt(share) * direction(self.weights) + self.past
            sizes = np.square(found).sum(axis=1)
            limit = self.least_of_largest(sizes)
        stays = self.scaled.keep_columns(sizes > limit)
        if self.settings.keeps_few:
            self.remember(noise, share, stays, first=first)
        self.weights = self.weights[stays]
        cold = self.settings.keeps_few
        self.weights = np.zeros_like(self.weights) if cold else soften(self.weights, noise)

    def least_of_largest(self, sizes: np.ndarray) -> float:
        """A little below the least of the sizes that are kept, so that equal ones stay."""
        assert isinstance(self.settings.n_nonzero, int)
        kept = min(3 * self.settings.n_nonzero, len(sizes))
        if kept == 0:
            return 0.0
        return float(np.partition(sizes, len(sizes) - kept)[len(sizes) - kept]) * (1.0 - 1e-6)

    def remember(self, noise: float, share: float, stays: np.ndarray, *, first: bool) -> None:
        """Add the direction a round found to those before it. The first round is shrunk by its noise. Earlier rounds
        are trusted less than the last one: they paid for dropped columns too."""
        factor = math.sqrt(share) * (0.5 if first else 0.7)
        if first:
            size = float(np.linalg.norm(self.weights[stays]))
            self.past = factor * soften(self.weights[stays], noise) / max(size, TINY)
        else:
            size = float(np.linalg.norm(self.weights))
            self.past = (self.past + factor * direction(self.weights))[stays]
        if size > TINY:  # something was found
            self.past_noise += (factor * noise / size) ** 2

    def add_up(self, noise: float, share: float) -> float:
        """The last round's weights along the direction of all rounds; the sd of the noise in each."""
        size = float(np.linalg.norm(self.weights))
        found = math.sqrt(share) * direction(self.weights) + self.past
        length = max(float(np.linalg.norm(found)), TINY)
        self.weights = found * (size / length)
        return math.sqrt(share * noise**2 + self.past_noise * size**2) / length


class ThresholdedDescent(Descent):
    """Descent with only the `keep` largest weights after every step."""

    def __init__(self, scaled: ScaledRows, settings: HardThreshold, releases: Releases) -> None:
        super().__init__(scaled, settings, releases)
        affordable = choose_columns(self.n * self.budget, scaled.width)
        self.keep = settings.n_nonzero or self.n_outputs * affordable

    def move(self, noisy: np.ndarray, velocity: np.ndarray, step: float, cut: float) -> None:
        super().move(noisy, velocity, step, cut)
        self.weights = top_k(self.weights, self.keep)


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
    return np.asarray(weights / max(float(np.linalg.norm(weights)), TINY))


def soften(weights: np.ndarray, cut: float) -> np.ndarray:
    """Weights moved towards zero by `cut`."""
    return weights - np.clip(weights, -cut, cut) if cut > 0.0 else weights


# ---- tuned numbers ---------------------------------------------------------------------------------
# Chosen on training splits: dpsparse lab run board --training --methods "DPGradient; DPHardThreshold". Why each is
# there: experiments/notebook/frontier.md. Signal: rows times budget.


def round_shares(
    wide: bool, keeps_few: bool, chosen: bool, width: int, n: float, budget: float
) -> tuple[float, ...]:
    """Shares of the gradients' budget: one descent, or descents with pruning in between. Pruning pays on wide data, for
    few weights or many more features than rows, and where all weights are kept for much signal alone."""
    if wide and keeps_few:
        return (0.45, 0.3, 0.25)
    pays = chosen or n * budget >= 1000.0
    return (0.5, 0.5) if wide and width > 10.0 * n and pays else (1.0,)


def schedule(asked: int | None, wide: bool, n: float, budget: float) -> tuple[int, float]:
    """Number of steps and step size, in units of that of the loss, from n and the budget alone.

    More than fifty million rows take as many steps as 1e11 reads of a row allow, but not fewer than 400
    (docs/scaling.md). Where noise would be larger than the rows, steps are shorter.
    """
    signal = n * min(budget, 32.0)  # a run without noise has an infinite budget
    most = min(MAX_STEPS, max(400, int(1e11 / n)))
    steps = math.ceil(min((0.3 if wide else 1.0) * math.sqrt(signal), most))
    n_iter = asked or max(3, steps)
    return n_iter, min(signal / (10.0 * n_iter), 20.0)


def stands_out(signal: float, n_outputs: int) -> float:
    """Standard deviations of the noise by which a column must stand out to be kept. Where classes share the columns,
    each is the mark of a class or two, and dropping one costs more than keeping another."""
    if signal < 2000.0:
        return 1.5
    return 1.0 if n_outputs > 1 else 2.0

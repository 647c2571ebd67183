"""Iterative gradient hard thresholding on rows of released scale, with a released length of every step.

Jain, Tewari, Kar 2014 (IGHT); Wang, Gu 2019 (DP-IGHT).

    rows    z_i of length at most one, on released masses and lengths (look/rows.py)
    T times g = sum_i slope_i z_i + noise of sd s;   h = max(L n/d, 2 s)                    L: curvature of the loss
            u' = the k largest entries of u - g/h;   v = u' - u
            q = L (sum_i (z_i.v)^2 + noise), one number, because v is released
            u <- the k largest entries of u + rate v,   rate = (-g.v - e)/q in [0, 1]
            e = min(1 + log(d/k), 2) s^2 k/h: what noise adds to -g.v

The first half of the steps keeps three times as many weights on seven tenths of the budget. What it drops is gone, rows
get new lengths, and the other half keeps k. A step of full length diverges where columns are alike (all entries
positive), so its length is that of a Newton step on the line along v. Where noise is larger than the rows, e is the
larger part, nothing moves, and the model is the mean or the class prior.

| symbol | variable | meaning |
|---|---|---|
| k | n_nonzero | weights kept, all classes together; by default n over sd of a gradient and over 12 a class, up to 50 |
| T | n_iter | steps; by default n over sd of one gradient for all of the budget and over 2 sqrt d, from 10 to 100 |

A step costs two passes over the non-zeros of kept features. Without noise the steps are the same. Deviations from the
papers: n is declared or released, never read; rows are clipped to a released length where the papers assume a bound;
the offset is released. Proof: docs/proofs/noisy_gradient.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsparse.losses import get_loss
from dpsparse.methods.defaults import choose_columns
from dpsparse.methods.hard_threshold.defaults import (
    CURVATURE_PER_NOISE,
    MAX_NOISE_GAIN,
    MAX_STEPS,
    MIN_STEPS,
    SEARCH_BUDGET_SHARE,
    SEARCH_WEIGHTS_FACTOR,
    SIGNAL_PER_STEP,
)
from dpsparse.methods.look.rows import RowSettings, ScaledRows, look_at_targets
from dpsparse.methods.solution import Solution
from dpsparse.nonzeros import top_k
from dpsparse.release import Releases
from dpsparse.rows import Rows


@dataclass(frozen=True, kw_only=True)
class HardThreshold:
    """The public side of a run. No number of steps or weights: chosen from released numbers, as documented above."""

    look: RowSettings
    n_iter: int | None
    n_nonzero: int | None

    def solve(self, rows: Rows, releases: Releases) -> Solution:
        return solve(rows, self, releases)


def solve(rows: Rows, settings: HardThreshold, releases: Releases) -> Solution:
    """Weights (K, d) on the original features and offsets (K,)."""
    targets = look_at_targets(rows, settings.look, releases)
    scaled = ScaledRows(rows, settings.look, targets, releases)
    weights = np.zeros(
        (scaled.units.width + 1, settings.look.n_outputs)
    )  # the constant's come last
    signal = effective_rows(scaled, releases)
    n_iter = settings.n_iter or choose_steps(signal, scaled.width)
    searching = math.ceil(n_iter / 2)
    fitting = n_iter - searching
    few = settings.n_nonzero or settings.look.n_outputs * choose_columns(signal, scaled.width)
    many = SEARCH_WEIGHTS_FACTOR * few
    of_line = 1.0 / n_iter
    for _ in range(searching):
        share = SEARCH_BUDGET_SHARE / searching
        weights = step(scaled, weights, many, share, of_line, releases)
    if fitting == 0:
        weights[:-1] = top_k(weights[:-1], few)
    stays = scaled.keep_columns(np.asarray(weights[:-1].any(axis=1)))
    weights = np.vstack([weights[:-1][stays], weights[-1:]])
    for _ in range(fitting):
        share = (1.0 - SEARCH_BUDGET_SHARE) / fitting
        weights = step(scaled, weights, few, share, of_line, releases)
    return scaled.publish(weights[:-1], weights[-1], n_iter, None)


def effective_rows(scaled: ScaledRows, releases: Releases) -> float:
    """n/(sd of a slope), of released or declared rows."""
    clip, width = scaled.targets.clip, scaled.units.width
    start = np.zeros((width + 1, scaled.settings.n_outputs))
    noise = releases.scale("gradients", scaled.gradient(start[:-1], start[-1], clip)) / clip
    return scaled.targets.n / noise if noise > 0.0 else math.inf


def choose_steps(signal: float, width: int) -> int:
    """A step along one of d columns is seen in n/(sd of a slope)/sqrt(d) units of noise: more signal pays for more
    steps."""
    return int(min(max(signal / (SIGNAL_PER_STEP * math.sqrt(width)), MIN_STEPS), MAX_STEPS))


def step(
    scaled: ScaledRows,
    here: np.ndarray,
    keep: int,
    share: float,
    of_line: float,
    releases: Releases,
) -> np.ndarray:
    """One noisy gradient, the `keep` largest of what it proposes, and as far towards them as is worth it."""
    if len(here) == 1:  # no feature stood out of the noise
        return here
    smoothness = get_loss(scaled.settings.loss).smoothness
    query = scaled.gradient(here[:-1], here[-1], scaled.targets.clip)
    noise = releases.scale("gradients", query, share)
    gradient = releases.gaussian("gradients", query, share)
    if scaled.constant == 0.0:
        gradient[-1] = 0.0
    curvature = max(smoothness * scaled.targets.n / len(here), CURVATURE_PER_NOISE * noise)
    there = here - gradient / curvature
    there[:-1] = top_k(there[:-1], keep)
    towards = there - here
    length = float(np.square(towards).sum())
    if length == 0.0:
        return here
    query = scaled.units.along(towards)
    along = float(releases.gaussian("line", query, of_line)[0])
    along += releases.scale("line", query, of_line)
    bend = max(smoothness * along, 0.5 * curvature) * length
    kept = int(np.count_nonzero(there)) or 1
    gain = min(1.0 + math.log(there.size / kept), MAX_NOISE_GAIN)
    pretended = gain * noise**2 * kept / curvature
    rate = min(max((-float(np.sum(gradient * towards)) - pretended) / bend, 0.0), 1.0)
    moved = here + rate * towards
    moved[:-1] = top_k(moved[:-1], keep)
    return np.asarray(moved)

"""The exact optimum of adaptive runs with fixed prices, from above.

A profile is delta as a function of g = e^epsilon: H(g) = sup E_P (1 - g dQ/dP)_+ over all runs that the
prices allow. One more step in front of a run turns H into, with y = log g,

    bounded range   max over 0 <= t <= eta of   p H(y - t) + (1 - p) H(y - t + eta),
                    p = (1 - e^{t-eta})/(1 - e^{-eta})             t is free in every state
    pure            p H(y - e) + (1 - p) H(y + e),   p = 1/(1 + e^-e)

H is convex in g and known on nodes y = j h, j >= 0; between nodes its chord in g lies above it. On a cell
of t both arguments stay between two nodes and the maximum is in closed form, so the chord is the only loss,
and it is on the safe side. All terms are positive; what rounding can cost is charged at every step. Steps of
different kinds are multiplied as independent pairs, which bounds every order and every interleaving of
them. Proofs: docs/proofs/accounting.md, sections 6 to 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln

from dpsparse.accounting.dominance import gaussian_profile
from dpsparse.jit import njit

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Profile:
    """delta(epsilon) from above: chords in e^epsilon through `values` at 0, spacing, 2 spacing, ...

    The class of runs is closed under swapping the two laws, so the mirror H(1/g) = 1 - 1/g + H(g)/g gives
    negative epsilon, and add and remove cost the same.
    """

    spacing: float
    values: Array

    def __post_init__(self) -> None:
        # What is not a number, after an overflow at an absurd epsilon, costs everything.
        object.__setattr__(self, "values", np.where(self.values <= 1.0, self.values, 1.0))

    def delta(self, epsilon: Any) -> Array:
        """The bound at each epsilon, which may be negative."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        distance = np.abs(epsilon)
        last = len(self.values) - 1
        j = (np.minimum(distance, last * self.spacing) / self.spacing).astype(np.int64)
        into = np.clip(
            distance - j * self.spacing, 0.0, self.spacing
        )  # beyond the last node: its end
        share = np.expm1(into) / math.expm1(self.spacing)
        ahead = self.values[np.minimum(j + 1, last)]
        chord = ((1.0 - share) * self.values[j] + share * ahead) * (1.0 + 1e-14)
        mirror = -np.expm1(-distance) + np.exp(-distance) * chord
        return np.asarray(np.minimum(np.where(epsilon >= 0.0, chord, mirror), 1.0))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 at which the bound is at most `delta`; infinite if none is."""
        target = delta * (1.0 - 2e-14)
        above = int(np.count_nonzero(self.values > target))  # values fall
        if above == 0:
            return 0.0
        if above == len(self.values):
            return math.inf
        high, low = float(self.values[above - 1]), float(self.values[above])
        rise = (high - target) / (high - low) * math.expm1(self.spacing)
        return ((above - 1) * self.spacing + math.log1p(rise)) * (1.0 + 1e-14)

    @cached_property
    def hinges(self) -> tuple[Array, Array, float]:
        """(y_j, w_j g_j, floor): the chords as a sum of w_j (g_j - g)_+ and a constant."""
        last = len(self.values) - 1
        y: Array = self.spacing * np.arange(-last, last + 1.0)
        mirrored = -np.expm1(y[:last]) + np.exp(y[:last]) * self.values[:0:-1]
        values = np.concatenate([mirrored, self.values])
        weights = _bends(y, values, self.spacing)
        return y, weights, float(values[-1])

    def with_gaussian(self, mu: float, epsilon: float) -> float:
        """The bound at one epsilon when a Gaussian pair of parameter `mu` comes on top.

        A hinge w_j (g_j - g)_+ becomes w_j g_j G_mu(g/g_j): one sum.
        """
        y, weights, floor = self.hinges
        total = float(np.sum(weights * gaussian_profile(mu, epsilon - y))) + floor
        return min(1.0, total * (1.0 + 1e-12))

    def times(self, other: Profile) -> Profile:
        """The profile of both pairs side by side, on the finer of the two grids unless that were too long."""
        if other.spacing > self.spacing:
            return other.times(self)
        y, weights, floor = other.hinges
        reach = len(self.values) * self.spacing + len(other.values) * other.spacing
        spacing = max(other.spacing, reach / 4000.0)  # no more nodes
        nodes: Array = spacing * np.arange(math.ceil(reach / spacing), dtype=np.float64)
        values = np.empty(len(nodes))
        _add_chords(self.values, self.spacing, nodes, y, weights, values)
        values += floor
        return Profile(spacing, values * (1.0 + 1e-12))


def _bends(y: Array, values: Array, spacing: float) -> Array:
    """w_j g_j for the chords through `values` at g_j = e^{y_j} as a sum of w_j (g_j - g)_+ and a constant."""
    per_rise = np.exp(-y[:-1]) / math.expm1(spacing)  # 1/(g_{j+1} - g_j)
    slopes = np.diff(values) * per_rise
    first = (float(values[0]) - 1.0) * math.exp(-float(y[0]))  # the chord to (0, 1)
    found = np.diff(slopes, prepend=first, append=0.0)
    # Differences cancel: what rounding can hide in a bend is added to it.
    hidden = 4e-16 * (values[:-1] + values[1:]) * per_rise
    hidden = np.concatenate([[-4e-16 * first], hidden]) + np.append(hidden, 0.0)
    return np.asarray((np.maximum(found, 0.0) + hidden) * np.exp(y))


@njit(cache=True, nogil=True)
def _add_chords(
    values: Array, spacing: float, nodes: Array, y: Array, weights: Array, out: Array
) -> None:
    """out_i <- sum_j weights_j delta(nodes_i - y_j): `Profile.delta` without its temporaries."""
    last, rise = len(values) - 1, math.expm1(spacing)
    end = (last + 1.001) * spacing  # a share of one, whatever the rounding
    for i in range(len(nodes)):
        total = 0.0
        for k in range(len(y)):
            epsilon = nodes[i] - y[k]
            distance = abs(epsilon)
            j = min(int(distance / spacing), last)
            if distance > end:  # half of all pairs: no exponential
                chord = values[last]
            else:
                share = min(max(math.expm1(distance - j * spacing) / rise, 0.0), 1.0)
                chord = (1.0 - share) * values[j] + share * values[min(j + 1, last)]
            chord *= 1.0 + 1e-14
            if epsilon < 0.0:
                chord = -math.expm1(-distance) + math.exp(-distance) * chord
            total += weights[k] * min(chord, 1.0)
        out[i] = total


def bounded_range_profile(eta: float, count: int, resolution: int, smallest: float) -> Profile:
    """All adaptive runs of `count` steps, each with a log-ratio of range at most `eta`.

    A range is cut into `resolution` cells; deltas well below `smallest` are not resolved, the
    bound stays about there.
    """
    # Rounded up, so that `resolution` cells are at least the range.
    spacing = eta / resolution * (1.0 + 2.0**-50)
    mu = eta * math.sqrt(count) / 2.0
    top = mu * mu / 2.0 + mu * math.sqrt(-2.0 * math.log(smallest))
    support = count * resolution  # no loss is larger: from this node on the profile is 0
    values = np.zeros(min(support, math.ceil(top / spacing)) + 1)  # of no step: (1 - g)_+
    return Profile(spacing, steps_in_front(values, spacing, resolution, resolution, count))


def pure_profile(epsilon: float, count: int) -> Profile:
    """All adaptive runs of `count` steps that are `epsilon`-DP: randomised response, `count` times.

    The loss is (2 k - count) epsilon with k binomial; on that lattice the profile is exact.
    """
    k = np.arange(count + 1.0)
    log_choose = gammaln(count + 1.0) - gammaln(k + 1.0) - gammaln(count - k + 1.0)
    log_up = -math.log1p(math.exp(-epsilon))
    masses = np.exp(log_choose + k * log_up + (count - k) * (log_up - epsilon))
    losses = (2.0 * k - count) * epsilon
    nodes = epsilon * np.arange(count + 1.0)
    paid = -np.expm1(np.minimum(0.0, nodes[:, None] - losses))
    # The logarithms above are as large as count and lose that many units in the last place.
    rounding = 1.0 + 1e-15 * (20.0 + count * (3.0 + epsilon + math.log(count + 1.0)))
    paid *= masses  # and added by NumPy: the order of linear algebra depends on the machine
    return Profile(epsilon, np.minimum(1.0, paid.sum(axis=1) * rounding))


def steps_in_front(
    values: Array, spacing: float, resolution: int, support: int, count: int = 1
) -> Array:
    """The profile with `count` steps of range resolution * spacing in front of the one on the grid of that spacing.

    With the first of them it is 0 from node `support` on.
    """
    below = -spacing * np.arange(resolution, 0.0, -1.0)
    mirror = np.stack([-np.expm1(below), np.exp(below)])
    ends = _ends_of_cells(spacing, resolution)
    rise, decay = math.expm1(spacing), math.exp(-spacing * resolution)
    front: Array = _put_in_front(values, support, count, mirror, ends, rise, decay)
    return front


def _ends_of_cells(spacing: float, resolution: int) -> Array:
    """What `_maximise` needs of the ends of the cells of t: probabilities, these times a = e^-t, widths, and a."""
    t = spacing * np.arange(resolution + 1.0)
    eta = float(t[-1])
    a, e, norm = np.exp(-t), math.exp(-eta), -math.expm1(-eta)
    up = np.expm1(t - eta) / -norm
    down = e * np.expm1(t) / norm
    rise = math.expm1(spacing)  # relative width of a cell in a
    return np.stack([up, down, up * a, down * a, rise * a / norm, a])


@njit(cache=True, nogil=True)
def _put_in_front(
    values: Array,
    support: int,
    count: int,
    mirror: Array,
    ends: Array,
    rise: float,
    decay: float,
) -> Array:
    """`count` steps in front of `values`; each moves the node from which the profile is 0 by its range."""
    m, last = ends.shape[1] - 1, len(values) - 1
    wide = np.empty(len(values) + 2 * m)  # the mirror below 0, the values, the constant above them
    out = values.copy()
    for done in range(count):
        for j in range(m):
            wide[j] = mirror[0, j] + mirror[1, j] * out[min(m - j, last)]
        for i in range(
            last + 1
        ):  # loops, because an assignment to a slice takes seconds to compile
            wide[m + i] = out[i]
        for i in range(m):
            wide[m + last + 1 + i] = out[last]
        live = min(last + 1, support + done * m)
        _maximise(wide, live, ends, rise, decay, out)
        # A step is some thirty operations with positive results, each off by at most 2^-53 or, for exp and expm1,
        # 2^-51: together below 1e-14. A product that underflows is off by less than 1e-300.
        for i in range(live):
            out[i] = min(out[i] * (1.0 + 2e-14) + 1e-300, 1.0)
        for i in range(live, last + 1):
            out[i] = 0.0
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _maximise(wide: Array, live: int, ends: Array, rise: float, decay: float, out: Array) -> None:
    """max over t of p H(y - t) + (1 - p) H(y - t + eta) on the nodes 0..live-1.

    On a cell both H are linear in a = e^-t, and so are a p and a (1 - p). With s from 0 to 1 across
    the cell the value is (n0 + n1 s + n2 s^2)/(a (1 + rise s)), n2 <= 0: it rises to one maximum
    and falls. `slope` is its derivative at s = 0 times a, `bend` is n2.
    """
    m = ends.shape[1] - 1
    up, down, a_up, a_down, width, a = ends
    tilt = decay * width[0]
    for i in range(live):
        out[i] = wide[m + i]  # t = 0, where p = 1
    for c in range(1, m + 1):
        # Cells outside, nodes inside, and no branch: the inner loop runs on the processor's vectors.
        ups, downs = wide[m - c : m - c + live + 1], wide[m + m - c : m + m - c + live + 1]
        u, d, au, ad, w, ac = up[c], down[c], a_up[c], a_down[c], width[c], a[c]
        au_last, ad_last = a_up[c - 1], a_down[c - 1]
        for i in range(live):
            h_up, h_down = ups[i], downs[i]
            value = u * h_up + d * h_down
            best = out[i]
            best = value if value > best else best
            gain_up, gain_down = ups[i + 1] - h_up, downs[i + 1] - h_down
            slope = au * gain_up + ad * gain_down
            slope += tilt * (h_up - h_down)
            bend = w * (gain_up - decay * gain_down)
            inside = (slope > 0.0) & (slope < -bend * (2.0 + rise))
            ratio = -slope / (bend if inside else -1.0)
            s = ratio / (1.0 + math.sqrt(1.0 + rise * ratio))
            value = ((1.0 - s) * au + s * au_last) * (h_up + s * gain_up)
            value += ((1.0 - s) * ad + s * ad_last) * (h_down + s * gain_down)
            value /= ac * (1.0 + rise * s)
            better = inside & (value > best)
            out[i] = value if better else best

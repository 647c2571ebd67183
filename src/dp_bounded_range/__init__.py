"""Bounded-range steps for any accountant: exponential mechanisms, Gumbel noisy maxima, private Frank-Wolfe picks.

A step has *bounded range* eta if its privacy loss log(P(o)/Q(o)) lies, for every pair of neighbours, in some
interval of length eta: for an exponential mechanism, eta bounds how far neighbours can spread the exponent's
change over the candidates. Most accountants know such a step only as eta-DP or eta^2/8-zCDP and charge more
than it costs. This package needs NumPy and nothing else of dpsparse; `google` adds the event to dp-accounting.

    renyi(eta, orders)          the exact Renyi curve of one step
    profile(eta, count)         delta(epsilon) of `count` steps, each chosen after the earlier outputs
    masses(eta, count, grid)    the same as the law of a privacy loss, for accountants that convolve

    >>> import dp_bounded_range as br
    >>> run = br.profile(eta=0.1, count=100)
    >>> print(f"{run.epsilon(1e-6):.3f}, as zCDP {100 * 0.1**2 / 8 + 2 * (100 * 0.1**2 / 8 * 13.8) ** 0.5:.3f}")
    2.255, as zCDP 2.752

`profile` is the optimum over all adaptive runs from above, not the composition of one worst pair: convolving
the two-point pair of a single step is *no* bound for adaptive runs, and convolving the pair that dominates a
single step is one that costs about 15 % more. Proof, with what rounding is charged: accounting.md of dpsparse,
sections 2, 3, 7 and 8 (`dpsparse proof accounting`, or docs/proofs/accounting.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Profile", "masses", "profile", "renyi"]

Array = np.ndarray[Any, np.dtype[np.float64]]

_CHARGE = 1.0 + 2e-14  # some thirty roundings of positive numbers, at every step
_TINY = 1e-300  # what a product that underflows can lack
_SERIES = 1.0 / np.cumprod(np.arange(2.0, 16.0))  # 1/2!, 1/3!, ...: (e^z - 1 - z)/z^2 near 0


def _check(eta: float, count: int) -> None:
    if not (math.isfinite(eta) and eta > 0.0):
        raise ValueError(f"eta must be a positive number, got {eta!r}.")
    if count != int(count) or count < 1:
        raise ValueError(f"count must be a whole number of at least 1, got {count!r}.")


def renyi(eta: float, orders: Any) -> Array:
    """The Renyi divergence of one step at each order above 1, attained by two candidates.

    Curves of adaptive steps add.

    >>> bool(renyi(0.5, [2.0])[0] <= 2 * 0.5**2 / 8)
    True
    """
    _check(eta, 1)
    a = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if not np.all((a > 1.0) & np.isfinite(a)):
        raise ValueError("orders must be finite numbers above 1.")
    b = a - 1.0
    with np.errstate(all="ignore"):
        # The two losses of the worst pair are t = eta - s and -s; s maximises the moment.
        s = np.log((np.expm1(-b * eta) / b) / (np.expm1(-a * eta) / a))
        s = np.clip(np.nan_to_num(s, nan=0.0), 0.0, eta)
        t = eta - s
        up = np.expm1(-s) / math.expm1(-eta)
        down = np.exp(-s) * np.expm1(-t) / math.expm1(-eta)
        # Moment - 1 as a sum of positive terms, so that nothing cancels for small eta.
        moment = b * (up * _loss_term(t, b) + down * _loss_term(-s, b))
        exact = np.log1p(moment) / b
        # A large moment is taken as a logarithm at once; nothing cancels there.
        large = t + np.log(up + down * np.exp(-b * eta)) / b
        exact = np.where(b * t > 30.0, large, exact) * (1.0 + 1e-13)
    exact = np.where(np.isfinite(exact), exact, np.inf)
    return np.minimum(np.minimum(exact, a * eta * eta / 8.0), eta).reshape(np.shape(orders))


def _loss_term(u: Array, b: Array) -> Array:
    return u * u * (_second(-u) + b * _second(b * u))


def _second(z: Array) -> Array:
    """(e^z - 1 - z)/z^2, which is positive."""
    near = np.clip(z, -0.5, 0.5)
    far = np.where(np.abs(z) < 0.5, 1.0, z)
    series = np.polynomial.polynomial.polyval(near, _SERIES)
    return np.where(np.abs(z) < 0.5, series, (np.expm1(far) - far) / (far * far))


@dataclass(frozen=True)
class Profile:
    """delta(epsilon) from above: chords in e^epsilon through `values` at 0, spacing, 2 spacing, ...

    The class of runs is closed under swapping the two laws, so the mirror H(1/g) = 1 - 1/g + H(g)/g gives
    negative epsilon, and add and remove cost the same.

    Attributes
    ----------
    spacing : float
    values : array
    """

    spacing: float
    values: Array

    def delta(self, epsilon: Any) -> Array:
        """The bound at each epsilon, which may be negative."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        distance = np.abs(epsilon)
        last = len(self.values) - 1
        j = np.minimum((distance / self.spacing).astype(np.int64), last)
        share = np.expm1(distance - j * self.spacing) / math.expm1(self.spacing)
        share = np.clip(share, 0.0, 1.0)
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


def profile(
    eta: float, count: int, *, resolution: int | None = None, smallest: float = 1e-15
) -> Profile:
    """delta(epsilon) of every adaptive run of `count` steps of range `eta`, from above.

    `resolution` cells make a range: more cost time and lower the bound, by less than 0.2 % of epsilon from the
    default on. Deltas well below `smallest` are not resolved; the bound stays about there.

    >>> one = profile(1.0, 1)
    >>> exact = (1 - math.exp((0.5 - 1.0) / 2)) ** 2 / (1 - math.exp(-1.0))
    >>> bool(exact <= one.delta(0.5) <= 1.001 * exact)
    True
    """
    _check(eta, count)
    resolution = resolution or (64 if count < 20 else 32 if count < 100 else 16)
    # Rounded up, so that `resolution` cells are at least the range.
    spacing = eta / resolution * (1.0 + 2.0**-50)
    mu = eta * math.sqrt(count) / 2.0
    top = mu * mu / 2.0 + mu * math.sqrt(-2.0 * math.log(smallest))
    support = count * resolution  # no loss is larger: from this node on the profile is 0
    values = np.zeros(min(support, math.ceil(top / spacing)) + 1)  # of no step: (1 - g)_+
    for done in range(1, count + 1):
        values = _one_step_more(values, spacing, resolution, done * resolution)
    return Profile(spacing, values)


def _one_step_more(values: Array, spacing: float, m: int, support: int) -> Array:
    """max over 0 <= t <= eta of p H(y - t) + (1 - p) H(y - t + eta), p = (1 - e^{t-eta})/(1 - e^-eta).

    On a cell of t between nodes both H are linear in a = e^-t, and the value rises to one maximum and falls,
    which is found in closed form; it is then evaluated as a sum of positive terms.
    """
    live = min(len(values), support)
    j = np.arange(m, 0, -1)
    mirror = values[np.minimum(j, len(values) - 1)]
    below = -np.expm1(-j * spacing) + np.exp(-j * spacing) * mirror
    wide = np.concatenate([below, values, np.full(m, values[-1])])

    t = spacing * np.arange(m + 1.0)
    eta = float(t[-1])
    a, decay, norm = np.exp(-t), math.exp(-eta), -math.expm1(-eta)
    up, down = np.expm1(t - eta) / -norm, decay * np.expm1(t) / norm
    rise = math.expm1(spacing)  # relative width of a cell in a
    a_up, a_down, width = up * a, down * a, rise * a / norm

    best = wide[m : m + live].copy()  # t = 0, where p = 1
    for c in range(1, m + 1):
        h_up, h_down = wide[m - c : m - c + live], wide[2 * m - c : 2 * m - c + live]
        gain_up = wide[m - c + 1 : m - c + 1 + live] - h_up
        gain_down = wide[2 * m - c + 1 : 2 * m - c + 1 + live] - h_down
        # The derivative of the value at the start of the cell, and the square term of its numerator.
        slope = a_up[c] * gain_up + a_down[c] * gain_down + decay * width[0] * (h_up - h_down)
        bend = width[c] * (gain_up - decay * gain_down)
        inside = (slope > 0.0) & (slope < -bend * (2.0 + rise))
        ratio = np.where(inside, -slope / np.where(inside, bend, -1.0), 0.0)
        s = ratio / (1.0 + np.sqrt(1.0 + rise * ratio))
        value = ((1.0 - s) * a_up[c] + s * a_up[c - 1]) * (h_up + s * gain_up)
        value += ((1.0 - s) * a_down[c] + s * a_down[c - 1]) * (h_down + s * gain_down)
        np.maximum(best, value / (a[c] * (1.0 + rise * s)), out=best)
    out = np.zeros_like(values)
    out[:live] = best * _CHARGE + _TINY
    return np.minimum(out, 1.0)


def masses(
    eta: float, count: int, grid: float, *, resolution: int | None = None, smallest: float = 1e-15
) -> tuple[int, Array, float]:
    """A pair of laws that dominates the run, as the law of its privacy loss: (first, masses, at infinity).

    Loss (first + i) * grid has probability masses[i]. The pair side by side with any others bounds every order
    and every interleaving of them (section 8 of the note). Chords through a convex profile lie above it, so
    a coarser `grid` is never too cheap.

    >>> first, p, infinite = masses(0.3, 5, 0.01)
    >>> bool(abs(p.sum() + infinite - 1) < 1e-8), first
    (True, -151)
    """
    run = profile(eta, count, resolution=resolution, smallest=smallest)
    last = math.ceil((len(run.values) - 1) * run.spacing / grid)
    y = grid * np.arange(-last, last + 1.0)
    values = run.delta(y)
    return -last, bends(y, values, grid), float(values[-1])


def bends(y: Array, values: Array, spacing: float) -> Array:
    """w_j g_j for the chords through `values` at g_j = e^{y_j} as a sum of w_j (g_j - g)_+ and a constant."""
    per_rise = np.exp(-y[:-1]) / math.expm1(spacing)  # 1/(g_{j+1} - g_j)
    slopes = np.diff(values) * per_rise
    first = (float(values[0]) - 1.0) * math.exp(-float(y[0]))  # the chord to (0, 1)
    found = np.diff(slopes, prepend=first, append=0.0)
    # Differences cancel: what rounding can hide in a bend is added to it.
    hidden = 4e-16 * (values[:-1] + values[1:]) * per_rise
    hidden = np.concatenate([[-4e-16 * first], hidden]) + np.append(hidden, 0.0)
    return np.asarray((np.maximum(found, 0.0) + hidden) * np.exp(y))

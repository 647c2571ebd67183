"""Which Gaussian pair dominates a run: the common currency of mixed runs and ledgers.

If the profile H of a run is at most that of N(mu, 1) against N(0, 1) then, step by step as it is
asked, the run is post-processing of that pair (Blackwell). Such runs compose by adding mu^2, in any
order and interleaved; a `slack` d is the probability that a run reveals everything, and slacks add.

    bounded range, once     mu = 2 Phi^-1(1/(1 + e^{-eta/2})), exact
    bounded range, T times  mu^2 = (eta^2/4)(T + c + (T - K) k) from the certified table, K <= T
    pure                    bounded range 2 epsilon covers it
    Gaussian                mu = sensitivity/scale

The table (gaussian_table.json, made by tests/accounting/gaussian_table.py) holds c and k for some K, certified for
eta on a grid; from the grid point below to eta itself the scaling lemma pays. Proofs:
docs/proofs/accounting.md, section 9.

The profile of N(mu, 1) against N(0, 1) comes first, with a bound on its rounding error:

    G_mu(e^y) = Phi(mu/2 - y/mu) - e^y Phi(-mu/2 - y/mu),    dG/dg = -Phi(-mu/2 - y/mu)

With x = y/mu - mu/2 and the Mills ratio m(x) = Phi(-x)/phi(x) this is phi(x) (m(x) - m(x + mu)): no
difference of tiny probabilities, so the far tail keeps its digits (Balle and Wang 2018 for the formula).
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from dpsparse.accounting.events import (
    Event,
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    leaves,
    loss_bound,
)
from dpsparse.accounting.objective import delta_profile, transport_profile

Array = np.ndarray[Any, np.dtype[np.float64]]

# Gauss-Legendre on [-1/2, 1/2].
_NODES, _WEIGHTS = (v / 2.0 for v in np.polynomial.legendre.leggauss(8))


def log_profile(mu: float, y: Array) -> tuple[Array, Array]:
    """log G_mu(e^y) for y >= 0 and mu > 0, and a bound on the error of that logarithm."""
    with np.errstate(all="ignore"):
        x = y / mu - mu / 2.0
        if mu < 0.5:  # m(x) - m(x+mu) would cancel: integrate -m'(z) = 1 - z m(z)
            z = x[..., None] + mu * (0.5 + _NODES)
            gap = mu * np.sum((1.0 - z * _mills(z)) * _WEIGHTS, axis=-1)
        else:
            gap = _mills(x) - _mills(x + mu)
        value = -0.5 * x * x - 0.5 * math.log(2.0 * math.pi) + np.log(np.maximum(gap, 1e-300))
        error = 1e-15 * (4.0 + x * x)
        if np.any(x < -5.0):  # the profile is close to 1
            direct = ndtr(-x) - np.exp(y + log_ndtr(-x - mu))
            value = np.where(x < -5.0, np.log(direct), value)
            error = np.where(x < -5.0, 4e-16 / direct, error)
    return np.asarray(value), np.asarray(error)


def gaussian_profile(mu: float, y: Array) -> Array:
    """An upper bound of G_mu(e^y) for any y, equal to it up to rounding."""
    if mu == 0.0:
        return np.maximum(0.0, -np.expm1(y))
    value, error = log_profile(mu, np.abs(y))
    above = np.exp(np.minimum(0.0, value + error))
    # Swapping the two laws: G(1/g) = 1 - 1/g + G(g)/g.
    below = -np.expm1(np.minimum(y, 0.0)) + np.exp(np.minimum(y, 0.0)) * above
    return np.asarray(np.where(y >= 0.0, above, below))


def _mills(z: Array) -> Array:
    """Phi(-z)/phi(z)."""
    return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(z / math.sqrt(2.0)), dtype=np.float64)


# What a certificate leaves unchecked: profiles below this number. Far below any delta.
CUT = 1e-60
# The same after the scaling lemma, which may multiply it by e^{y/2} eta/eta_i: below 1e12.
SLACK = 1e-48
# The table is certified at K eta^2/4 = FIRST, GRID, 2 GRID, ..., LAST.
FIRST, GRID, LAST = 1e-12, 0.008, 2.8


def gaussian_parameter(event: Event) -> tuple[float, float]:
    """(mu, slack): with probability 1 - slack the run reveals no more than N(mu, 1) against N(0, 1).

    Runs compose by adding mu^2 and slack, in any order and interleaved, also when a later run is
    chosen after seeing an earlier one. mu is infinite for an event that no Gaussian is known to
    dominate. The distance of a sampler from its law is not part of it (`sampler_slack`).

    Parameters
    ----------
    event : Event
        What runs.

    Returns
    -------
    tuple of float
        mu and slack.

    Examples
    --------
    >>> from dpsparse.accounting import Exponential, Repeated, gaussian_parameter
    >>> mu, slack = gaussian_parameter(Repeated(Exponential(eta=0.1), 100))
    >>> print(f"{mu:.3f} {slack:.0e}")
    0.502 1e-46
    """
    # Every kind is charged as if it were alone. A step that comes before a Gaussian costs less beside it, but one whose
    # scores are chosen after looking at the Gaussian's output does not, and no plan says which comes first.
    square, slack = 0.0, 0.0
    for leaf, count in leaves(event).items():
        mu, leak = leaf_parameter(leaf, count)
        square, slack = square + mu * mu * (1.0 + 1e-14), slack + leak
    return math.sqrt(square) * (1.0 + 1e-15), min(1.0, slack)


def leaf_parameter(leaf: Event, count: int) -> tuple[float, float]:
    """(mu, slack) of `count` adaptive uses of one elementary event."""
    if isinstance(leaf, Gaussian):
        return leaf.sensitivity / leaf.scale * math.sqrt(count), 0.0
    if isinstance(leaf, ObjectivePerturbation):
        mu, slack = perturbation_mu(leaf)
        return mu * math.sqrt(count), slack * count
    size = loss_bound(leaf)
    if size is None:
        return math.inf, 0.0
    # A pure step has twice its epsilon as the range of its log-ratio.
    eta = size if isinstance(leaf, Exponential) else 2.0 * size
    return bounded_range_mu(eta, count), (SLACK * count if count > 1 else 0.0)


def is_dominated(values: Array, spacing: float, mu: float, cut: float = CUT) -> bool:
    """Whether the chords through `values` at 0, spacing, ... stay below G_mu wherever above `cut`.

    G is convex in g, so its tangents at the two ends of a cell lie below it; a chord that is
    below both ends and below the crossing of the tangents is below G on the whole cell.
    """
    y: Array = spacing * np.arange(float(len(values)))
    log_value, error = log_profile(mu, y)
    gaussian = np.exp(np.maximum(log_value - error, -700.0)) * (1.0 - 1e-11)
    live = values[:-1] > cut
    # Above the last node a profile is constant and G falls on: nothing there is compared, so it must be slack.
    # What is not a number is below nothing.
    if not (np.all(values <= np.maximum(gaussian, cut)) and values[-1] <= cut):
        return False
    # In units of the cell: fall from the left tangent, fall to the right one.
    rise = np.exp(y[:-1]) * math.expm1(spacing)
    tail = ndtr(-mu / 2.0 - y / mu)  # -dG/dg, which falls
    left, right = tail[:-1] * rise * (1.0 + 1e-11), tail[1:] * rise
    with np.errstate(all="ignore"):
        crossing = (gaussian[:-1] - gaussian[1:] - right) / (left - right)
    crossing = np.clip(np.nan_to_num(crossing, nan=0.5), 0.0, 1.0)
    chord = (1.0 - crossing) * values[:-1] + crossing * values[1:]
    below = np.maximum(gaussian[:-1] - left * crossing, gaussian[1:] + right * (1.0 - crossing))
    return bool(np.all((chord <= below * (1.0 - 1e-11)) | ~live))


@lru_cache(maxsize=4096)
def bounded_range_mu(eta: float, count: int) -> float:
    """mu that dominates every adaptive run of `count` steps of range `eta`, up to count * SLACK."""
    once = _once(eta)
    if count == 1:
        return once
    sizes, _, _ = _table()
    i = bisect_right(sizes, count)
    bounds = [once * math.sqrt(count)]
    bounds += [_from_entry(eta, count, entry) for entry in range(max(0, i - 2), i)]
    if i < len(sizes):  # a longer run costs more: rounding the count up is safe, and monotone
        bounds.append(_from_entry(eta, sizes[i], i))
    return min(bounds)


def _once(eta: float) -> float:
    """2 Phi^-1(1/(1 + e^{-eta/2})) from above; its slope falls from sqrt(2 pi)/4 at 0."""
    linear = math.sqrt(2.0 * math.pi) / 4.0 * eta
    if eta < 1e-3 or eta > 600.0:  # beyond, the exponential would overflow: a chord is above, too
        return linear
    return min(linear, -2.0 * float(ndtri(1.0 / (1.0 + math.exp(eta / 2.0)))) + 1e-13)


def _from_entry(eta: float, count: int, entry: int) -> float:
    """mu from one entry: exact on the grid of eta, by the scaling lemma above a grid point."""
    sizes, excess, per_step = _table()
    size = sizes[entry]
    rate = math.sqrt(count + excess[entry] + (count - size) * per_step[entry]) / 2.0
    square = size * eta * eta / 4.0
    j = min(math.floor(square / GRID), round(LAST / GRID))
    below = math.sqrt(4.0 / size * (j * GRID if j > 0 else FIRST))
    above = math.sqrt(4.0 / size * (j + 1.0) * GRID)
    if eta <= below:  # also when the root was rounded up
        return rate * below
    mu = rate * eta
    if mu > 4.0:
        return math.inf
    # The scaling lemma: a factor e^gap on the profile, paid by mu^(1/elasticity).
    gap = (eta * eta - below * below) * (rate * rate / 8.0 + 1.0 / 24.0)
    half = 1.05 * mu / 2.0
    density = math.exp(-half * half / 2.0) / math.sqrt(2.0 * math.pi)
    elasticity = 2.0 * half * density / math.erf(half / math.sqrt(2.0))
    factor = math.exp(gap / elasticity) * (1.0 + 1e-12)
    scaled = mu * factor if factor <= 1.05 else math.inf
    return min(scaled, rate * above) if (j + 1.0) * GRID <= LAST else scaled


@cache
def _table() -> tuple[list[int], list[float], list[float]]:
    """Sizes K, excess variance c of K steps, and excess k of each further step."""
    text = resources.files("dpsparse.accounting").joinpath("gaussian_table.json").read_text()
    table = json.loads(text)
    if (table["first"], table["spacing"], table["last"]) != (FIRST, GRID, LAST):
        raise RuntimeError("gaussian_table.json was certified on another grid.")
    rows = table["entries"]
    return [r["steps"] for r in rows], [r["c"] for r in rows], [r["k"] for r in rows]


# What the certificate of an objective perturbation leaves unchecked.
LEAK = 1e-30


def perturbation_mu(event: ObjectivePerturbation) -> tuple[float, float]:
    """(mu, slack) of one objective perturbation, from its own profile."""
    own, flatness = event.mu, event.flatness
    if not 1e-6 < own < 4.0 or flatness > 1e3:
        return math.inf, 0.0
    # For mu rounded up to a power of this: plans try many a mu, and each takes a while.
    step = 2.0 ** (1.0 / 64.0)
    rounded = step ** math.ceil(math.log(own) / math.log(step) + 1e-9)
    # A flatness far below mu costs the grid of the bound more memory than it saves.
    mu = _perturbation_mu(rounded, max(flatness, 1e-5 * rounded), event.loss)
    if not event.replace_one or math.isinf(mu):
        return mu, LEAK
    # One row out, one row in: mu doubles. Tests of power below 1e-18 are slack (objective_perturbation.md).
    lost = float(ndtr(ndtri(2e-18) + mu)) + LEAK
    twice = 2.0 * mu + 1e-11
    return twice, lost / (2.0 * float(ndtr(-twice / 2.0)))


@lru_cache(maxsize=1024)
def _perturbation_mu(mu: float, flatness: float, loss: str) -> float:
    """The smallest Gaussian above the profile under add-remove, within 1e-4."""
    near = math.log1p(flatness) + 4.0 * mu  # beyond, the closed forms are close
    spacing = max(mu / 8.0, near / 32.0)
    top = math.log1p(flatness) + mu * mu / 2.0 + mu * math.sqrt(-2.0 * math.log(LEAK / 100.0))
    y: Array = spacing * np.arange(math.ceil(top / spacing) + 1.0)
    values = np.array([delta_profile(mu, flatness, loss, False, float(e)) for e in y])
    inner = y <= near
    values[inner] = np.minimum(values[inner], transport_profile(mu, flatness, loss, y[inner]))
    if not (values[-1] <= LEAK and values[0] < 1.0):
        return math.inf
    low, high = mu, max(1.05 * mu, -2.0 * float(ndtri((1.0 - values[0]) / 2.0)))
    for _ in range(30):
        if is_dominated(values, spacing, high, LEAK):
            break
        high *= 1.2
    else:
        return math.inf
    while high - low > 1e-4 * high:  # `high` is good
        middle = (low + high) / 2.0
        good = is_dominated(values, spacing, middle, LEAK)
        low, high = (low, middle) if good else (middle, high)
    return high

"""Bounded-range steps in plain NumPy, written apart from the accountant: the oracle of test_bounded_range.py.

    profile(eta, count)         delta at epsilon = 0, spacing, 2 spacing, ... of `count` adaptive steps

A step has bounded range eta if its privacy loss lies, for every pair of neighbours, in some interval of length eta.
Proof: docs/proofs/accounting.md, sections 2 and 7.
"""

import math

import numpy as np

_CHARGE = 1.0 + 2e-14  # some thirty roundings of positive numbers, at every step
_TINY = 1e-300  # what a product that underflows can lack


def profile(eta, count, resolution, smallest=1e-15):
    """(spacing, values): delta of every adaptive run of `count` steps of range `eta`, from above.

    `resolution` cells make a range. Deltas well below `smallest` are not resolved; the bound stays about there.
    """
    # Rounded up, so that `resolution` cells are at least the range.
    spacing = eta / resolution * (1.0 + 2.0**-50)
    mu = eta * math.sqrt(count) / 2.0
    top = mu * mu / 2.0 + mu * math.sqrt(-2.0 * math.log(smallest))
    support = count * resolution  # no loss is larger: from this node on the profile is 0
    values = np.zeros(min(support, math.ceil(top / spacing)) + 1)  # of no step: (1 - g)_+
    for done in range(1, count + 1):
        values = _one_step_more(values, spacing, resolution, done * resolution)
    return spacing, values


def _one_step_more(values, spacing, m, support):
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

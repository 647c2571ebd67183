"""A student of noisy answers on public rows: what stands out of noise of known size.

    answers  a = X~ w + b + sd z               released; X~ (m, p) public, sd public
    axes     X~ - mean = U diag(d) V',  c = U'a,  and the mean of a as one axis more
    shares   c ~ N(0, sd^2 + d^2 t^2) with one t for all axes, whose logarithm may be anything:
             share = mean of t^2 d^2/(t^2 d^2 + sd^2) over t, weighted by the likelihood of all c
    weights  w = V (share c/d)
    mean     prior + (1 - 9 sd^2/(m gap^2))_+ gap,  gap = mean of a - prior;  b makes it the mean on X~

| symbol | variable | meaning |
|---|---|---|
| d | lengths | sd/d is the noise of least squares along an axis, sd over the longest that of direct release |
| t | sizes | size of the teacher's weights, in noise of direct release |
| prior | prior | the mean or log-odds that were released before the support |

With shares of one and all of the gap this is least squares. It stays so without noise, and where its noise is
nowhere above three times that of direct release: the teacher was shrunk once, by its ridge, and is not shrunk again
for nothing. On wide sparse rows most d are small, and least squares divides noise by them. The most likely t alone
would do on narrow tables; on wide ones it now and then takes the noise of hundreds of short axes for weights.
All of this reads released and public numbers: docs/proofs/transfer.md, Lemma 2.
"""

from __future__ import annotations

import math

import numpy as np

from dpsparse import arithmetic

STANDS_OUT = 3.0  # standard deviations: what is farther from noise is no noise


def learn(public_rows: np.ndarray, answers: np.ndarray, sd: float, prior: float) -> np.ndarray:
    """Weights, then that of the last column, which is one for all rows; to the bits machines agree about."""
    m, columns = len(answers), public_rows[:, :-1]
    middle = columns.mean(axis=0)
    U, d, axes = np.linalg.svd(columns - middle, full_matrices=False)
    kept = d > np.finfo(np.float64).eps * max(public_rows.shape) * np.linalg.norm(public_rows)
    U, d, axes = U[:, kept], d[kept], axes[kept]
    found = np.append(U.T @ answers, math.sqrt(m) * answers.mean())
    lengths = np.append(d, math.sqrt(m) * math.hypot(1.0, np.linalg.norm(middle)))
    even = len(d) == columns.shape[1] and bool(np.all(lengths * 3.0 >= np.max(lengths)))
    exact = sd == 0.0 or even
    shares = np.ones(len(d)) if exact else shrinkage(found / sd, lengths)[: len(d)]
    weights = arithmetic.leading_bits(axes.T @ (shares * found[: len(d)] / d))
    gap = answers.mean() - prior
    noise = 0.0 if exact else STANDS_OUT * sd / math.sqrt(m)
    mean = prior + gap * (1.0 - (noise / gap) ** 2 if abs(gap) > noise else 0.0)
    return np.append(weights, mean - np.sum(middle * weights))


def shrinkage(found: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Share of every axis that is kept, from the answers along all of them in units of their noise."""
    sizes = np.concatenate(
        [[0.0], 2.0 ** (np.arange(-8, 61) / 2.0)]
    )  # all alike before the answers
    signal = (lengths / np.max(lengths, initial=1e-300) * sizes[:, None]) ** 2
    deviance = np.sum(np.log1p(signal) + found**2 / (1.0 + signal), axis=1)
    likelihood = np.exp(0.5 * (np.min(deviance) - deviance))
    return np.asarray(likelihood @ (signal / (1.0 + signal)) / np.sum(likelihood))

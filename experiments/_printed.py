"""Private LASSO and Sparsifier of paper 004 as printed (Algorithms 1 and 2), straight from the page.

    alpha_s = <s, mean gradient> + Lap(radius sqrt(8 T log(1/delta)) / (n epsilon))   for 2p vertices s
    w <- (1 - mu) w + mu argmin_s alpha_s,   mu = 2/(t+2)

`step_of_002=True` is what the same authors print for this step in 002 (Algorithm 1, lines 8 and 10):
arg max_j |g_j + Lap(radius ...)| chooses the index (the gradient without the radius, the noise with
it), and the step goes against the exact sign of g_j. That is not private at any noise level. The tables
of 004 agree with this step and not with the one above (see paper004_tables.py). Nothing here is private:
it is for reproduction only.
"""

import math

import numpy as np
import scipy.sparse as sp
from scipy.special import expit


def laplace_scale(radius, n_iter, n, epsilon, delta):
    return radius * math.sqrt(8.0 * n_iter * math.log(1.0 / delta)) / (n * epsilon)


def frank_wolfe(X, y, radius, n_iter, scale, rng, *, step_of_002=False):
    """Weights after n_iter steps; scale 0 is the non-private algorithm."""
    columns = sp.csc_array(X)
    rows_of, values, starts = columns.indices, columns.data, columns.indptr
    Xt = columns.T
    n, p = X.shape
    w, margins = np.zeros(p), np.zeros(n)
    for t in range(1, n_iter + 1):
        slopes = expit(margins) - y
        gradient = (Xt @ slopes) / n
        if step_of_002:
            j = int(np.argmax(np.abs(gradient + rng.laplace(0.0, scale, p))))
            sign = -np.sign(gradient[j])
        else:
            both = radius * np.concatenate([gradient, -gradient])
            if scale:
                both += rng.laplace(0.0, scale, 2 * p)
            k = int(np.argmin(both))
            j, sign = (k, 1.0) if k < p else (k - p, -1.0)
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[j] += step * sign * radius
        margins *= 1.0 - step  # margins = X w, kept up with one column a step
        column = slice(starts[j], starts[j + 1])
        margins[rows_of[column]] += step * sign * radius * values[column]
    return w


def noisy_count(count, p, epsilon, rng):
    """Line by line Algorithm 2 with the paper's bounds sqrt(p) and 2 sqrt(p)."""
    low, high = math.sqrt(p), 2.0 * math.sqrt(p)
    c = min(max(count, low), high)
    success = 1.0 - math.exp(-epsilon / (high - low))
    c += int(rng.geometric(success)) - int(rng.geometric(success))
    return int(min(max(c, low), high))


def keep_largest(w, k):
    kept = np.zeros_like(w)
    if k > 0:
        at = np.argpartition(np.abs(w), -k)[-k:]
        kept[at] = w[at]
    return kept

"""Private LASSO and Sparsifier of paper 004 as printed (Algorithms 1 and 2), straight from the page.

    alpha_s = <s, mean gradient> + Lap(radius sqrt(8 T log(1/delta)) / (n epsilon))   for 2p vertices s
    w <- (1 - mu) w + mu argmin_s alpha_s,   mu = 2/(t+2)

`exact_sign=True` is what paper 002 prints for the same step: noise on the magnitude of each of p
coordinates chooses the index, and the step goes against the exact sign of its gradient. That is not
differentially private at any noise level. Neither is anything here: it is for reproduction only.
"""

import math

import numpy as np
import scipy.sparse as sp


def laplace_scale(radius, n_iter, n, epsilon, delta):
    return radius * math.sqrt(8.0 * n_iter * math.log(1.0 / delta)) / (n * epsilon)


def frank_wolfe(X, y, radius, n_iter, scale, rng, *, exact_sign=False):
    """Weights after n_iter steps; scale 0 is the non-private algorithm."""
    X = sp.csr_array(X)
    Xt = X.T.tocsr()
    n, p = X.shape
    w = np.zeros(p)
    for t in range(1, n_iter + 1):
        slopes = 1.0 / (1.0 + np.exp(-(X @ w))) - y
        score = (radius / n) * (Xt @ slopes)
        if exact_sign:
            j = int(np.argmax(np.abs(score) + (rng.laplace(0.0, scale, p) if scale else 0.0)))
            sign = -np.sign(score[j])
        else:
            both = np.concatenate([score, -score])
            if scale:
                both += rng.laplace(0.0, scale, 2 * p)
            k = int(np.argmin(both))
            j, sign = (k, 1.0) if k < p else (k - p, -1.0)
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[j] += step * sign * radius
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

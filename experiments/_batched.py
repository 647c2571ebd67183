"""Many noise draws of a printed algorithm on one dense table at once: the same law, one matrix product a step.

The paper runs its algorithms 50 times on one table. Column r of the weights is one run; with scale 0 each column
is `private_lasso` or `private_hard_threshold` of dpsparse.published, in float32 (tests/reproduce/test_printed.py).
`counts` says how often each row occurs, where equal rows were put together (`distinct`).
"""

import numpy as np
from scipy.special import expit


def distinct(X, y):
    """The rows that occur in (X, y), their targets, and how often each occurs."""
    rows, counts = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)
    return rows[:, :-1], rows[:, -1], counts


def lasso_runs(
    X, y, radius, n_iter, scale, rng, runs, *, exact_sign=False, uniform=False, counts=None
):
    """Algorithm 1 of Khanna, Lu and Raff (2023), or the step with an exact sign; (p, runs) weights.

    `uniform` draws the index uniformly, which is what noise much larger than every gradient does.
    """
    X, y = np.asfortranarray(X, dtype=np.float32), y.astype(np.float32)
    share, p = _shares(X, counts), X.shape[1]
    w, every = np.zeros((p, runs)), np.arange(runs)
    margins = np.zeros((len(y), runs), np.float32)
    for t in range(1, n_iter + 1):
        gradient = X.T @ (share * (expit(margins) - y[:, None]))
        if uniform:
            j = rng.integers(p, size=runs)
        elif exact_sign:
            j = np.argmax(np.abs(gradient + rng.laplace(0.0, scale, (p, runs))), axis=0)
        else:
            both = radius * np.concatenate([gradient, -gradient])
            if scale:
                both += rng.laplace(0.0, scale, (2 * p, runs))
            j = np.argmin(both, axis=0)
        if uniform or exact_sign:
            sign = -np.sign(gradient[j, every])
        else:
            sign, j = np.where(j < p, 1.0, -1.0), j % p
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[j, every] += step * sign * radius
        margins *= np.float32(1.0 - step)
        margins += X[:, j] * (step * sign * radius).astype(np.float32)
    return w


def hard_threshold_runs(X, y, n_nonzero, n_iter, step, scale, rng, runs, *, counts=None):
    """DP-IGHT on the logistic loss with noise of sd `scale` on the mean gradient; (p, runs) weights."""
    X, y = X.astype(np.float32), y.astype(np.float32)
    share, p = _shares(X, counts), X.shape[1]
    theta = np.zeros((p, runs), np.float32)
    for _ in range(n_iter):
        gradient = X.T @ (share * (expit(X @ theta) - y[:, None]))
        theta -= np.float32(step) * (gradient + scale * rng.standard_normal((p, runs))).astype(
            np.float32
        )
        small = np.argpartition(-np.abs(theta), n_nonzero - 1, axis=0)[n_nonzero:]
        np.put_along_axis(theta, small, 0.0, axis=0)
    return theta


def _shares(X, counts):
    """What each row is of all, as a column."""
    counts = np.ones(X.shape[0]) if counts is None else counts
    return (counts / counts.sum()).astype(np.float32)[:, None]

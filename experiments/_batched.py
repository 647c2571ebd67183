"""Many noise draws of a printed algorithm on one table at once: the same law, one matrix product a step.

The paper runs its algorithms 50 times on one table. Column r of the weights is one run; with scale 0 each column
is `private_lasso` of _sparsifier.py or `private_hard_threshold` of dpsparse.published, in float32
(tests/reproduce/test_printed.py).
`counts` says how often each row occurs, where equal rows were put together (`distinct`).
"""

import numpy as np
import scipy.sparse as sp
from numba import njit

from dpsparse.published import wang_gu_2020_transfer as transfer


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
        gradient = X.T @ (share * (_logistic(margins) - y[:, None]))
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


def lasso_splits(X, y, trains, radius, n_iter, scales, rngs, *, exact_sign=False):
    """`private_lasso` on many training parts of one table, run r on the rows trains[r]; (p, runs) weights.

    For a table of so many rows that a pass over it is what costs: each step is one pass for all runs, by blocks of
    rows that agree in their rare columns (covtype: kinds of soil), which then count once for a block. Run r draws from
    rngs[r] as if it were alone; sums of a block are float32, those over blocks are not.
    """
    p, runs = X.shape[1], len(trains)
    dense = np.diff(sp.csc_array(X).indptr) > 0.5 * X.shape[0]
    rare = X[:, ~dense]  # zeros and ones
    _, first, group = np.unique(
        rare @ 2.0 ** np.arange(rare.shape[1]), return_index=True, return_inverse=True
    )
    groups = rare[first].toarray()
    order = np.argsort(group, kind="stable")
    often, targets = X[:, dense].toarray().astype(np.float32)[order], y.astype(np.float32)[order]
    share = np.zeros((X.shape[0], runs), np.float32)
    for r, train in enumerate(trains):
        share[train, r] = 1.0
    share = share[order]
    ends = np.searchsorted(group[order], np.arange(len(groups) + 1))
    blocks = [
        (g, slice(at, min(at + 1024, ends[g + 1])))
        for g in range(len(groups))
        for at in range(ends[g], ends[g + 1], 1024)
    ]
    n, every = np.array([len(train) for train in trains]), np.arange(runs)
    w, gradient = np.zeros((p, runs)), np.zeros((p, runs))
    for t in range(1, n_iter + 1):
        weights, offsets = w[dense].astype(np.float32), (groups @ w[~dense]).astype(np.float32)
        sums, of_group = np.zeros(weights.shape), np.zeros((len(groups), runs))
        for g, rows in blocks:
            slopes = _logistic(often[rows] @ weights + offsets[g])
            slopes -= targets[rows, None]
            slopes *= share[rows]
            sums += often[rows].T @ slopes
            of_group[g] += slopes.sum(axis=0)
        gradient[dense], gradient[~dense] = sums / n, groups.T @ of_group / n
        if exact_sign:
            noise = np.stack(
                [rng.laplace(0.0, s, p) for rng, s in zip(rngs, scales, strict=True)], 1
            )
            j = np.argmax(np.abs(gradient + noise), axis=0)
            sign = -np.sign(gradient[j, every])
        else:
            noise = np.stack(
                [rng.laplace(0.0, s, 2 * p) for rng, s in zip(rngs, scales, strict=True)], 1
            )
            j = np.argmin(radius * np.concatenate([gradient, -gradient]) + noise, axis=0)
            sign, j = np.where(j < p, 1.0, -1.0), j % p
        step = 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[j, every] += step * sign * radius
    return w


def hard_threshold_runs(X, y, n_nonzero, n_iter, step, scale, rng, runs, *, counts=None):
    """DP-IGHT on the logistic loss with noise of sd `scale` on the mean gradient; (p, runs) weights."""
    X, y = X.astype(np.float32), y.astype(np.float32)
    share, p = _shares(X, counts), X.shape[1]
    theta = np.zeros((p, runs), np.float32)
    for _ in range(n_iter):
        gradient = X.T @ (share * (_logistic(X @ theta) - y[:, None]))
        theta -= np.float32(step) * (gradient + scale * rng.standard_normal((p, runs))).astype(
            np.float32
        )
        small = np.argpartition(-np.abs(theta), n_nonzero - 1, axis=0)[n_nonzero:]
        np.put_along_axis(theta, small, 0.0, axis=0)
    return theta


def in_step(X, runs):
    """What each of `runs` (generators of dpsparse.published) returns, their products taken together.

    A dense X should be in Fortran order: then the few columns of a sparse vector lie together. Its gradients are
    float32, whose rounding is far below every noise and spread here.
    """
    dense = isinstance(X, np.ndarray)
    transposed = np.ascontiguousarray(X.T, dtype=np.float32) if dense else sp.csr_array(X.T)
    results, asked = [None] * len(runs), {}

    def send(k, answer):
        try:
            asked[k] = runs[k].send(answer)
        except StopIteration as end:
            results[k] = end.value

    for k in range(len(runs)):
        send(k, None)
    while asked:
        for of_rows in (True, False):
            now = [k for k, (kind, _) in asked.items() if kind == of_rows]
            if not now:
                continue
            vectors = np.stack([asked.pop(k)[1] for k in now], axis=1)
            if of_rows and dense:
                sizes = np.maximum(np.abs(vectors).max(axis=0), 1e-300)  # a fit may run away
                answers = (transposed @ (vectors / sizes).astype(np.float32)) * sizes
            elif of_rows:
                answers = transposed @ vectors
            elif dense:
                answers = np.stack([transfer.margins(X, v) for v in vectors.T], axis=1)
            else:
                answers = X @ vectors
            for k, answer in zip(now, answers.T, strict=True):
                send(k, np.ascontiguousarray(answer))
    return results


def frank_wolfe_runs(X, y, radius, lengths, scales, loss, rng):
    """Algorithm 1: run r takes lengths[r] steps with Laplace noise of scales[r]; (p, runs) weights.

    The gradient of the squared loss on sparse rows is that of the last step, shrunk, and one column of X'X more; any
    other takes one pass over the rows a step, for all runs together, in float32. `rng` may be a list, one for each
    run: runs that share a generator draw from it as if they were alone.
    """
    rngs = rng if isinstance(rng, list) else [rng] * len(lengths)
    dense = isinstance(X, np.ndarray)
    if loss.name == "squared" and not dense:
        rows, columns, n = sp.csr_array(X), sp.csc_array(X), X.shape[0]
        start = -(columns.T @ y) / n
        paths = [
            _squared_path(
                rows.indptr, rows.indices, rows.data, columns.indptr, columns.indices, columns.data, start,
                radius, length, scale, own,
            )
            for length, scale, own in zip(lengths, scales, rngs, strict=True)
        ]  # fmt: skip
        return np.stack(paths, axis=1)
    n, p = X.shape
    columns = np.asfortranarray(X, dtype=np.float32) if dense else sp.csc_array(X, dtype=np.float32)
    lengths, scales = np.asarray(lengths), np.asarray(scales, np.float32)[:, None]
    w, margins = np.zeros((len(lengths), p)), np.zeros((n, len(lengths)), np.float32)
    targets = y.astype(np.float32)[:, None]
    for t in range(1, int(lengths.max()) + 1):
        going = np.flatnonzero(lengths >= t)
        slopes = loss.slope(margins[:, going], targets).astype(np.float32)
        gradient = np.ascontiguousarray((columns.T @ slopes).T) * np.float32(radius / n)
        both = np.concatenate([gradient, -gradient], axis=1)
        for own in dict.fromkeys(rngs if scales.any() else ()):
            mine = [k for k, r in enumerate(going) if rngs[r] is own]
            # the difference of two exponential draws is a Laplace draw
            draws = own.standard_exponential((2, len(mine), 2 * p), dtype=np.float32)
            both[mine] += scales[going[mine]] * (draws[0] - draws[1])
        best, step = np.argmin(both, axis=1), 2.0 / (t + 2.0)
        w[going] *= 1.0 - step
        margins *= np.float32(1.0 - step)
        for r, k in zip(going, best, strict=True):
            j, size = k % p, step * radius * (1.0 if k < p else -1.0)
            w[r, j] += size
            if dense:
                margins[:, r] += np.float32(size) * columns[:, j]
                continue
            at = slice(columns.indptr[j], columns.indptr[j + 1])
            margins[columns.indices[at], r] += np.float32(size) * columns.data[at]
    return w.T


@njit
def _squared_path(
    row_ends, row_columns, row_values, ends, rows, values, start, radius, n_iter, scale, rng
):
    """One run on the squared loss; `start` is the gradient at zero."""
    n, p = len(row_ends) - 1, len(start)
    w, gradient = np.zeros(p), start.copy()
    for t in range(1, n_iter + 1):
        vertex = _noisy_least(radius * gradient, scale, rng)
        best, sign, step = vertex % p, 1.0 if vertex < p else -1.0, 2.0 / (t + 2.0)
        w *= 1.0 - step
        w[best] += step * sign * radius
        gradient = (1.0 - step) * gradient + step * start
        for at in range(ends[best], ends[best + 1]):
            weight = step * sign * radius * values[at] / n
            for k in range(row_ends[rows[at]], row_ends[rows[at] + 1]):
                gradient[row_columns[k]] += weight * row_values[k]
    return w


@njit
def _noisy_least(scores, scale, rng):
    """Place of the least of (scores, -scores) with Laplace noise on each of them.

    None is below `floor`, so noise makes an entry the least so far only if it is below floor - least. Once that is
    negative the walk jumps to the next entry whose noise is: same law as drawing all of it, in fewer draws.
    """
    p = len(scores)
    floor = -np.max(np.abs(scores))
    if scale == 0.0:
        j = np.argmax(np.abs(scores))
        return j if scores[j] <= 0.0 else j + p
    least, best, k = np.inf, 0, 0
    while True:
        if least >= floor:
            noise = rng.standard_exponential() * (1.0 if rng.random() < 0.5 else -1.0)
        else:
            bar = (floor - least) / scale
            skipped = rng.standard_exponential() / -np.log1p(-0.5 * np.exp(-bar))
            if skipped >= 2 * p - k:
                return best
            k += int(skipped)
            noise = -bar - rng.standard_exponential()
        value = (scores[k] if k < p else -scores[k - p]) + scale * noise
        if value < least:
            least, best = value, k
        k += 1
        if k == 2 * p:
            return best


def _logistic(margins):
    """1/(1 + e^-margin) in float32: a third of the time of SciPy's, which is exact to the last digit."""
    with np.errstate(over="ignore"):  # e^-margin may be infinite, and the answer is then 0
        found = np.exp(-margins)
    found += 1.0
    return np.reciprocal(found, out=found)


def _shares(X, counts):
    """What each row is of all, as a column."""
    counts = np.ones(X.shape[0]) if counts is None else counts
    return (counts / counts.sum()).astype(np.float32)[:, None]

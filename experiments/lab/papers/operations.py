"""Algorithms 1, 2 and 3 of Raff, Khanna and Lu (2023) without noise, as printed, with their operations counted.

Printed typos are repaired: line 8 of Algorithm 1 has an arg max, line 20 of Algorithm 2 has a "+", lines 24-25 index q
by row, the output is w_m * w. Nothing else is: Algorithm 2 refreshes only the rows that own the chosen feature, so for
the logistic loss its slopes are stale, because shrinking w moves every margin. The queue of Algorithm 3 is a binary
heap of stale magnitudes; a Fibonacci heap, which the paper names, takes the same items out.

Counted: one per addition, multiplication, comparison or exponential; a heap pop and the return of its item count
2 log2(D) each (a Fibonacci heap takes the item back for less).
"""

import numba
import numpy as np
import scipy.sparse as sp


def standard(X: sp.csr_array, y: np.ndarray, radius: float, n_iter: int):
    """Algorithm 1: weights, gap and cumulative operations by iteration."""
    n, d = X.shape
    nnz = X.nnz
    Xt = X.T.tocsr()
    w, margins = (
        np.zeros(d),
        np.zeros(n),
    )  # the margins are kept up, not recomputed: that is not counted
    gaps = np.empty(n_iter)
    per_step = 2 * nnz + 4 * n + 2 * nnz + 8 * d
    for t in range(1, n_iter + 1):
        alpha = Xt @ (_sigmoid(margins) - y)
        j = int(np.argmax(np.abs(alpha)))
        gaps[t - 1] = alpha @ w + radius * abs(alpha[j])
        step = 2.0 / (t + 2.0)
        move = -step * radius * np.sign(alpha[j])
        w *= 1.0 - step
        w[j] += move
        margins *= 1.0 - step
        at = slice(Xt.indptr[j], Xt.indptr[j + 1])
        margins[Xt.indices[at]] += move * Xt.data[at]
    operations = 2.0 * nnz + per_step * np.arange(1, n_iter + 1, dtype=float)
    return w, gaps / n, operations


def fast(X: sp.csr_array, y: np.ndarray, radius: float, n_iter: int):
    """Algorithms 2 and 3: weights, gap as the algorithm keeps it, operations, heap pops."""
    columns = X.tocsc()
    w, gaps, operations, pops = _fast(
        X.indptr, X.indices, X.data, columns.indptr, columns.indices, columns.data,
        y.astype(np.float64), X.shape[1], radius, n_iter,
    )  # fmt: skip
    return w, gaps / X.shape[0], operations, pops


def exact_gap(X: sp.csr_array, y: np.ndarray, w: np.ndarray, radius: float) -> float:
    """The Frank-Wolfe gap of w, recomputed from scratch."""
    alpha = X.T @ (_sigmoid(X @ w) - y)
    return float((alpha @ w + radius * np.abs(alpha).max()) / X.shape[0])


def _sigmoid(m: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-np.clip(m, -500.0, 500.0)))


@numba.njit(cache=True)
def _fast(rp, ri, rx, cp, ci, cx, y, d, radius, n_iter):
    n = y.size
    w, v, q, alpha = np.zeros(d), np.zeros(n), np.empty(n), np.zeros(d)
    gaps, operations, pops = np.empty(n_iter), np.empty(n_iter), np.zeros(n_iter)
    w_m, g, count = 1.0, 0.0, 4.0 * ri.size + 4.0 * n + 2.0 * d
    for i in range(n):  # lines 9-12: the first gradient
        q[i] = 0.5
        for p in range(rp[i], rp[i + 1]):
            alpha[ri[p]] += (0.5 - y[i]) * rx[p]
    key = np.abs(alpha)
    heap = np.argsort(-key)
    place = np.empty(d, np.int64)
    for k in range(d):
        place[heap[k]] = k
    log_d = 2.0 * np.log2(d)
    taken = np.empty(d, np.int64)
    for t in range(1, n_iter + 1):
        # Algorithm 3: pop until the best true magnitude beats every stale one
        j, best, n_taken, size = -1, -1.0, 0, d
        while size > 0 and (j < 0 or best < key[heap[0]]):
            c = heap[0]
            size -= 1
            heap[0], heap[size] = heap[size], c
            place[heap[0]], place[c] = 0, size
            _down(heap, place, key, 0, size)
            if abs(alpha[c]) > best:
                j, best = c, abs(alpha[c])
            taken[n_taken] = c
            n_taken += 1
        for k in range(n_taken):  # line 9: back with their true priorities
            key[taken[k]] = abs(alpha[taken[k]])
        for k in range(size, d):
            _up(heap, place, key, k)
        pops[t - 1] = n_taken
        count += n_taken * 2.0 * log_d
        move = -radius * np.sign(alpha[j])  # line 16
        gaps[t - 1] = g - move * alpha[j]
        step = 2.0 / (t + 2.0)
        w_m *= 1.0 - step
        w[j] += step * move / w_m
        g = g * (1.0 - step) + step * move * alpha[j]
        count += 12.0
        for r in range(cp[j], cp[j + 1]):  # lines 22-28
            i = ci[r]
            v[i] += step * move * cx[r] / w_m
            change = 1.0 / (1.0 + np.exp(-w_m * v[i])) - q[i]
            q[i] += change
            for p in range(rp[i], rp[i + 1]):
                alpha[ri[p]] += change * rx[p]
            g += change * v[i] * w_m  # v holds the products of the rows with w
            count += 12.0 + 4.0 * (rp[i + 1] - rp[i])
        touched = 0
        for r in range(cp[j], cp[j + 1]):
            touched += rp[ci[r] + 1] - rp[ci[r]]
        count += touched
        if touched > d:  # line 29: only growing magnitudes move up; one look at each is the same
            for k in range(d):
                if abs(alpha[k]) > key[k]:
                    key[k] = abs(alpha[k])
                    _up(heap, place, key, place[k])
        else:
            for r in range(cp[j], cp[j + 1]):
                i = ci[r]
                for p in range(rp[i], rp[i + 1]):
                    k = ri[p]
                    if abs(alpha[k]) > key[k]:
                        key[k] = abs(alpha[k])
                        _up(heap, place, key, place[k])
        operations[t - 1] = count
    return w * w_m, gaps, operations, pops


@numba.njit(cache=True)
def _up(heap, place, key, k):
    item = heap[k]
    while k > 0:
        parent = (k - 1) // 2
        if key[heap[parent]] >= key[item]:
            break
        heap[k] = heap[parent]
        place[heap[k]] = k
        k = parent
    heap[k] = item
    place[item] = k


@numba.njit(cache=True)
def _down(heap, place, key, k, size):
    item = heap[k]
    while 2 * k + 1 < size:
        child = 2 * k + 1
        if child + 1 < size and key[heap[child + 1]] > key[heap[child]]:
            child += 1
        if key[item] >= key[heap[child]]:
            break
        heap[k] = heap[child]
        place[heap[k]] = k
        k = child
    heap[k] = item
    place[item] = k

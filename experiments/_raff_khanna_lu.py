"""Scaling Up Differentially Private LASSO via Faster Frank-Wolfe as printed (Raff, Khanna and Lu, NeurIPS 2023).

    Alg. 1   alpha = X'(sigma(Xw) - y);  j = arg max |alpha_j + Lap(...)|;  w <- (1 - eta) w - eta r sign(alpha_j) e_j
    Alg. 2   the same with w = w_m * w, refreshing alpha only from the rows that own feature j
    Alg. 3   without noise: a Fibonacci heap over stale |alpha|, keys decreased only where |alpha| grew
    Alg. 4   with noise: a "Big-Step Little-Step" sampler of exp(scale |alpha_j|)

Line 8 of Alg. 1 prints an arg min, meant is an arg max: Alg. 2, its rewriting, takes the largest. Other slips repaired
here: line 20 of Alg. 2 lacks a plus, lines 24 and 25 index q by j for i, the output is w_m * w. Kept, because it
is what they state: the sign of the chosen gradient is exact, which gives labels away at any noise level, and
rows that do not own j keep stale slopes although shrinking w moves every margin, so Alg. 2 is not Alg. 1.
`dpsparse.published.raff_khanna_lu_2023_lasso` runs Alg. 2 with the exponential mechanism and a sampler that returns.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit


class FibonacciHeap:
    """Fredman and Tarjan's heap of the items 0 .. D-1: the smallest key first, decrease-key in O(1) amortised."""

    def __init__(self, keys: np.ndarray) -> None:
        size = len(keys)
        self.key = keys.astype(float).tolist()
        self.parent: list[int] = [-1] * size
        self.children: list[set[int]] = [set() for _ in range(size)]
        self.marked = [False] * size
        self.roots = set(range(size))
        self.top = min(self.roots, key=self.key.__getitem__)

    def decrease(self, item: int, key: float) -> None:
        """Cut the item from a parent it now precedes, and every marked ancestor after it."""
        self.key[item] = key
        parent = self.parent[item]
        if parent >= 0 and key < self.key[parent]:
            self._cut(item, parent)
            while self.marked[parent] and self.parent[parent] >= 0:
                above = self.parent[parent]
                self._cut(parent, above)
                parent = above
            self.marked[parent] = self.parent[parent] >= 0
        if item in self.roots and (self.top < 0 or key < self.key[self.top]):
            self.top = item

    def pop(self) -> int:
        """Remove the smallest and join roots of equal degree."""
        top = self.top
        self.roots.remove(top)
        for child in self.children[top]:
            self.parent[child] = -1
            self.roots.add(child)
        self.children[top] = set()
        by_degree: dict[int, int] = {}
        for root in list(self.roots):
            while (other := by_degree.pop(len(self.children[root]), -1)) >= 0:
                low, high = (root, other) if self.key[root] <= self.key[other] else (other, root)
                self.roots.discard(high)
                self.children[low].add(high)
                self.parent[high], self.marked[high] = low, False
                root = low
            by_degree[len(self.children[root])] = root
        self.top = min(self.roots, key=self.key.__getitem__, default=-1)
        return top

    def insert(self, item: int, key: float) -> None:
        self.key[item], self.parent[item], self.marked[item] = key, -1, False
        self.roots.add(item)
        if self.top < 0 or key < self.key[self.top]:
            self.top = item

    def _cut(self, item: int, parent: int) -> None:
        self.children[parent].remove(item)
        self.parent[item], self.marked[item] = -1, False
        self.roots.add(item)


class HeapQueue:
    """Algorithm 3: the coordinate of largest |alpha| from upper bounds of it; `pops` counts the cost."""

    def __init__(self, magnitudes: np.ndarray) -> None:
        self.heap, self.pops = FibonacciHeap(-magnitudes), 0

    def update(self, item: int, magnitude: float) -> None:
        if -magnitude < self.heap.key[item]:  # lines 12-17: only growth is told
            self.heap.decrease(item, -magnitude)

    def next(self, alpha: np.ndarray) -> int:
        best, size, taken = -1, -math.inf, []
        while self.heap.top >= 0 and size <= -self.heap.key[self.heap.top]:  # line 8
            item = self.heap.pop()
            taken.append(item)
            if abs(alpha[item]) > size:
                best, size = item, abs(float(alpha[item]))
        self.pops += len(taken)
        for item in taken:  # line 9
            self.heap.insert(item, -abs(float(alpha[item])))
        return best


def fast_frank_wolfe(
    X: Any, y: np.ndarray, radius: float, n_iter: int, make_queue: Any = HeapQueue
) -> tuple[np.ndarray, np.ndarray, int]:
    """Algorithms 2 and 3 without noise: weights, coordinates in order, and heap pops.

    `make_queue(magnitudes)` may give another queue with `update`, `next` and `pops`.
    """
    rows, columns = X.tocsr(), X.tocsc()
    n, d = X.shape
    w, w_m, margin = np.zeros(d), 1.0, np.zeros(n)
    q = np.full(n, 0.5)
    alpha = np.asarray(columns.T @ (q - y))
    queue, chosen = make_queue(np.abs(alpha)), np.zeros(n_iter, np.intp)
    for t in range(1, n_iter + 1):
        j = chosen[t - 1] = queue.next(alpha)
        move, step = -radius * np.sign(alpha[j]), 2.0 / (t + 2.0)  # lines 16, 18
        w_m *= 1.0 - step
        w[j] += step * move / w_m
        at = slice(columns.indptr[j], columns.indptr[j + 1])
        touched = set()
        for i, x in zip(columns.indices[at], columns.data[at], strict=True):  # lines 22-28
            margin[i] += step * move * x / w_m
            change = float(expit(w_m * margin[i])) - q[i]
            q[i] += change
            row = slice(rows.indptr[i], rows.indptr[i + 1])
            alpha[rows.indices[row]] += change * rows.data[row]
            touched.update(rows.indices[row].tolist())
        for k in touched:  # line 29
            queue.update(k, abs(float(alpha[k])))
    return w_m * w, chosen, queue.pops


def printed_sampler(
    v: np.ndarray, c: np.ndarray, rng: np.random.Generator, max_steps: int = 10_000
) -> int:
    """Algorithm 4, GETNEXT, line by line: log-weights `v`, log-sums `c` of groups of sqrt(N). It does not return.

    Line 4 divides log U by exp(v_j - z): a negative threshold. Line 21 multiplies exp(exp(.)) by that negative
    number, where A-ExpJ has exp(w_j log T_w), so that t_w is below 0, and the next U(t_w, 1) may be negative:
    its logarithm is not a number (2000 of 2000 draws). The group of item c is read at c mod sqrt(N) where it is
    c div sqrt(N), the walk starts at item 0, which line 2 has drawn already, and lines 23 to 26 keep the offset
    where a group begins and drop it inside. `dpsparse.published.raff_khanna_lu_2023_lasso` has the sampler it means.
    Raises FloatingPointError where the printed algorithm takes the logarithm of a negative number, IndexError where
    it leaves the table, RuntimeError where it has walked `max_steps` steps.
    """
    n = len(v)
    size = math.isqrt(n)
    z = float(np.logaddexp.reduce(v))

    def uniform_log(low: float) -> float:
        u = low + (1.0 - low) * rng.random()
        if u <= 0.0:
            raise FloatingPointError("logarithm of a negative number (lines 21 and 22)")
        return math.log(u)

    j, offset = 0, math.exp(v[0] - z)  # lines 2, 3
    log_t = uniform_log(0.0) / math.exp(v[j] - z)  # line 4
    at = steps = 0  # line 5
    while at < n:  # line 6
        x = uniform_log(0.0) / log_t  # line 7
        while math.exp(c[at % size] - z) - offset < x:  # lines 8-12
            x -= math.exp(c[at % size] - z) - offset
            offset, at, steps = 0.0, size - at % size, steps + 1
            if steps > max_steps:
                raise RuntimeError("the walk over groups goes round in circles (line 11)")
        while math.exp(v[at] - z) < x:  # lines 13-17
            x -= math.exp(v[at] - z)
            offset += math.exp(v[at] - z)
            at += 1
        if at < n:  # lines 18-28
            j, at = at, at + 1
            t_w = math.exp(math.exp(v[j] - z)) * log_t
            log_t = uniform_log(t_w) / math.exp(v[j] - z)
            offset = 0.0 if j % size else offset + math.exp(v[j] - z)
    return j


def expected_sparsity(n_features: int, n_iter: int, non_empty: float = 1.0) -> float:
    """Share of zero weights in per cent after `n_iter` uniform draws with the exact sign.

    A column without entries has gradient 0, and sign(0) = 0 leaves its weight at 0.
    """
    never = math.exp(n_iter * math.log1p(-1.0 / n_features))
    return 100.0 * (1.0 - non_empty * (1.0 - never))

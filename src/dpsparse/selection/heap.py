"""Lazily corrected heap: the arg max of |G| without noise.

Paper: Raff, Khanna, Lu (2023), Alg. 3. Keys are upper bounds of |G_j|: a rise enters the heap, a fall
is ignored until the cell comes to the top (lines 3-9). A binary heap of (key, cell) pairs replaces
the Fibonacci heap, which is slower in practice; a stale pair is dropped when it is popped.

Kept for comparison: the dense arg max (`scan.DenseMax`) reads memory in order and is faster.
"""

from __future__ import annotations

import heapq

import numpy as np


class LazyHeap:
    """The cell of largest |G_j|, the lowest among equals."""

    def rebuild(self, scores: np.ndarray) -> None:
        self.scores = scores
        self.keys = np.abs(scores.astype(np.int64))
        self.heap = [(-key, cell) for cell, key in enumerate(self.keys.tolist())]
        heapq.heapify(self.heap)

    def update(self, cells: np.ndarray, scores: np.ndarray) -> None:
        self.scores = scores
        cells = np.unique(cells)
        sizes = np.abs(scores[cells].astype(np.int64))
        risen = sizes > self.keys[cells]
        self.keys[cells[risen]] = sizes[risen]
        for cell, size in zip(cells[risen].tolist(), sizes[risen].tolist(), strict=True):
            heapq.heappush(self.heap, (-size, cell))

    def draw(self, rng: np.random.Generator) -> tuple[int, int]:
        while True:
            key, cell = self.heap[0]
            size = abs(int(self.scores[cell]))
            if -key == size:
                return cell, 1 if self.scores[cell] >= 0 else -1
            heapq.heappop(self.heap)
            if -key == self.keys[cell]:  # the newest pair of a cell that fell: correct it
                self.keys[cell] = size
                heapq.heappush(self.heap, (-size, cell))

"""Selections that look at every candidate: the oracles the fast structures are tested against.

    Gumbel scan      arg max over (j, s) of kappa s G_j + Gumbel(0, 1)      the exponential mechanism
    Laplace scan     arg max over (j, s) of s G_j + Laplace(0, 1/kappa)     Khanna, Lu, Raff 2023
    dense arg max    arg max of |G_j|                                      kappa = infinity

O(cells) a draw. A selection has `rebuild(scores)`, `update(cells, scores)` and
`draw(rng) -> (cell, sign)`, where the sign is the one of s in e^{kappa s G}: the step goes against it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from dpsparse.jit import njit
from dpsparse.random import gumbel


class Selection(Protocol):
    """A structure over signed cells that can be drawn from and told about changed scores."""

    def rebuild(self, scores: np.ndarray) -> None: ...

    def update(self, cells: np.ndarray, scores: np.ndarray) -> None: ...

    def draw(self, rng: np.random.Generator) -> tuple[int, int]: ...


class GumbelScan:
    """The exponential mechanism by Gumbel noise on all 2D signed cells.

    With `private_sign=False` noise goes on |G_j| only and the sign is read off, as in Raff, Khanna and Lu (2023):
    not private, for reproduction.
    """

    def __init__(self, kappa: float, private_sign: bool = True) -> None:
        self.kappa, self.private_sign = kappa, private_sign

    def rebuild(self, scores: np.ndarray) -> None:
        self.scores = scores

    def update(self, cells: np.ndarray, scores: np.ndarray) -> None:
        self.scores = scores

    def draw(self, rng: np.random.Generator) -> tuple[int, int]:
        keys = self.kappa * self.scores
        if not self.private_sign:
            cell = int(np.argmax(np.abs(keys) + gumbel(rng, keys.size)))
            return cell, 1 if self.scores[cell] >= 0 else -1
        noise = gumbel(rng, (2, keys.size))
        noise[0] += keys
        noise[1] -= keys
        return _signed(int(noise.argmax()), keys.size)


class LaplaceScan:
    """Report-noisy-max with Laplace noise of scale 1/kappa on all 2D signed cells (Khanna, Lu, Raff 2023, Alg. 1)."""

    def __init__(self, kappa: float) -> None:
        self.kappa = kappa

    def rebuild(self, scores: np.ndarray) -> None:
        self.scores = scores

    def update(self, cells: np.ndarray, scores: np.ndarray) -> None:
        self.scores = scores

    def draw(self, rng: np.random.Generator) -> tuple[int, int]:
        keys = self.kappa * self.scores
        noise = rng.laplace(size=(2, keys.size))
        noise[0] += keys
        noise[1] -= keys
        return _signed(int(noise.argmax()), keys.size)


class DenseMax:
    """The largest |G_j| without noise; the lowest cell among equals."""

    def rebuild(self, scores: np.ndarray) -> None:
        self.scores = scores

    def update(self, cells: np.ndarray, scores: np.ndarray) -> None:
        self.scores = scores

    def draw(self, rng: np.random.Generator) -> tuple[int, int]:
        cell = int(_largest(self.scores))
        return cell, 1 if self.scores[cell] >= 0 else -1


def _signed(flat: int, n_cells: int) -> tuple[int, int]:
    return flat % n_cells, 1 if flat < n_cells else -1


@njit(cache=True)
def _largest(scores):  # type: ignore[no-untyped-def]
    best = 0
    for cell in range(scores.size):
        if abs(scores[cell]) > abs(scores[best]):
            best = cell
    return best

"""Votes of secret blocks (Kifer, Smith, Thakurta 2012): every block of rows names the features it likes.

    block_i ~ uniform{1..k}, one secret draw a row (or person), made by `Releases`      blocks are disjoint
    V_j     = number of blocks whose selector names feature j                  one of them moves each V_j by at most 1

A block votes by any function of its own rows, so nothing is asked of the selector: what it returns is cut to
`n_nonzero` different features here, and an error counts as an empty vote. Proof: docs/proofs/two_stage.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import scipy.sparse as sp

from dpsparse.clipping import Part
from dpsparse.rows.parts import Parts
from dpsparse.rows.query import Query, units_in_one
from dpsparse.sensitivity import votes

Selector = Callable[[sp.csr_array, np.ndarray, int], np.ndarray]
_Table = tuple[sp.csr_array, np.ndarray, np.ndarray]  # rows, targets, blocks


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which block every row, or person, belongs to: secret, made by `Releases` and read by rows only."""

    _of_unit: np.ndarray = field(repr=False)
    n_blocks: int

    def by_part(self, rows: Parts) -> list[np.ndarray]:
        """The blocks of the rows, or persons, of every part."""
        return np.split(self._of_unit, np.cumsum(rows.collect(n_units))[:-1])


@dataclass(frozen=True, eq=False)
class _Blocked:
    """Rows and the block of each."""

    part: Part
    of_row: np.ndarray


def block_votes(
    rows: Parts, n_features: int, blocks: Blocks, n_nonzero: int, selector: Selector
) -> Query:
    """Vote counts as whole numbers. A block has rows of many parts: the rows of some blocks at a time, about as many as
    a part has, meet in one place, wherever the parts are, and only what they name comes here."""

    def whole(unit: float) -> np.ndarray:
        blocked = rows.map(_blocked, blocks.by_part(rows))
        take = partial(_of_blocks, blocks.n_blocks)
        counts = np.zeros(n_features, np.int64)
        for named in blocked.regrouped(take, partial(_all_votes, n_nonzero, selector)):
            np.add.at(counts, named, 1)
        return counts * units_in_one(unit)

    return Query((n_features,), votes, whole)


def n_units(part: Part) -> int:
    """Rows or persons of a part."""
    return part.n_units


def _blocked(part: Part, of_unit: np.ndarray) -> _Blocked:
    sizes = 1 if part.persons is None else np.diff(part.persons)
    return _Blocked(part, np.repeat(of_unit, sizes))


def _of_blocks(n_blocks: int, blocked: _Blocked, group: int, n_groups: int) -> _Table:
    """The rows of this part in the blocks of one group: consecutive ones."""
    part = blocked.part
    mine = np.flatnonzero(blocked.of_row * n_groups // n_blocks == group)
    return part.table()[mine], part.targets[mine], blocked.of_row[mine]


def _all_votes(n_nonzero: int, selector: Selector, tables: Sequence[_Table]) -> np.ndarray:
    """What every block of a group names, one after the other."""
    X = sp.csr_array(sp.vstack([table for table, _, _ in tables])).astype(np.float64)
    y = np.concatenate([targets for _, targets, _ in tables]).astype(np.float64)
    of_row = np.concatenate([own for _, _, own in tables])
    order = np.argsort(of_row, kind="stable")
    edges = np.flatnonzero(np.diff(of_row[order], prepend=-1))  # empty blocks abstain
    named = [
        _vote(X[mine], y[mine], n_nonzero, selector)
        for mine in np.split(order, edges[1:])
        if len(mine)
    ]
    return np.concatenate([np.empty(0, np.intp), *named])


def _vote(X: sp.csr_array, y: np.ndarray, n_nonzero: int, selector: Selector) -> np.ndarray:
    """At most `n_nonzero` different features; what a block does must not be seen in any other way."""
    try:
        with np.errstate(all="ignore"):
            named = np.unique(np.asarray(selector(X, y, n_nonzero), dtype=np.intp))
    except Exception:
        return np.empty(0, np.intp)
    return named[(named >= 0) & (named < X.shape[1])][:n_nonzero]


def correlation_selector(X: sp.csr_array, y: np.ndarray, n_nonzero: int) -> np.ndarray:
    """The features with the largest |x_j.(y - mean y)| / |x_j|; it sees one block only."""
    squares = np.asarray(X.multiply(X).sum(axis=0)).ravel()
    scores = np.abs(X.T @ (y - y.mean())) / np.sqrt(np.maximum(squares, 1e-300))
    best = np.argsort(-scores, kind="stable")[:n_nonzero]
    return np.asarray(best[scores[best] > 0.0])

"""Votes of secret blocks (Kifer, Smith, Thakurta 2012): every block of rows names the features it likes.

    block_i ~ uniform{1..k}, one secret draw a row (or person), made by `Releases`      blocks are disjoint
    V_j     = number of blocks whose selector names feature j                  one of them moves each V_j by at most 1

A block votes by any function of its own rows, so nothing is asked of the selector: what it returns is cut to
`n_nonzero` different features here, and an error counts as an empty vote. Proof: docs/proofs/two_stage.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from dpsparse.domain import Part
from dpsparse.rows.parts import Parts
from dpsparse.rows.query import Query, units_in_one
from dpsparse.sensitivity import votes

Selector = Callable[[sp.csr_array, np.ndarray, int], np.ndarray]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which block every row, or person, belongs to: secret, made by `Releases` and read by rows only."""

    _of_unit: np.ndarray = field(repr=False)
    n_blocks: int


def block_votes(
    rows: Parts, n_features: int, blocks: Blocks, n_nonzero: int, selector: Selector
) -> Query:
    """Vote counts as whole numbers; a block has rows of many parts, so all of them are brought here."""

    def whole(unit: float) -> np.ndarray:
        parts: list[Part] = rows.collect(_same)
        tables = [
            sp.csr_array(
                (p.values.astype(np.float64), p.indices, p.indptr), shape=(len(p), n_features)
            )
            for p in parts
        ]
        X = tables[0] if len(tables) == 1 else sp.csr_array(sp.vstack(tables))
        y = np.concatenate([part.targets for part in parts]).astype(np.float64)
        counts = np.zeros(n_features, np.int64)
        sizes = [np.ones(len(p), int) if p.persons is None else np.diff(p.persons) for p in parts]
        of_row = np.repeat(blocks._of_unit, np.concatenate(sizes))
        order = np.argsort(of_row, kind="stable")
        edges = np.searchsorted(of_row[order], np.arange(blocks.n_blocks + 1))
        for first, last in pairwise(edges):
            if first < last:  # empty blocks abstain
                mine = order[first:last]
                counts[_vote(X[mine], y[mine], n_nonzero, selector)] += 1
        return counts * units_in_one(unit)

    return Query((n_features,), votes, whole)


def _same(part: Part) -> Part:
    return part


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

"""Rows that are cut into several parts, which changes no answer, and cells of any type."""

from itertools import pairwise

import numpy as np

from dpsparse import Rows
from dpsparse.domain.clipping import by_person


def clip_in_parts(X, y, domain, n_parts, *, labels=None, groups=None):
    """The rows of `Rows.clip` in `n_parts` parts; a person is in one of them."""
    edges = np.linspace(0, X.shape[0], n_parts + 1).astype(int)
    if groups is not None:
        order, starts = by_person(groups, X.shape[0])
        X, y = X[order], y[order]
        groups = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        edges = starts[np.linspace(0, len(starts) - 1, n_parts + 1).astype(int)]
    own = [None if groups is None else groups[a:b] for a, b in pairwise(edges)]
    parts = [
        domain.part(X[a:b], y[a:b], labels=labels, groups=names)
        for (a, b), names in zip(pairwise(edges), own, strict=True)
    ]
    return Rows(parts, domain)


def clip_table(domain, X, y=None, *, labels=None):
    """The rows of one table after clipping, as a matrix `X` and targets `y`."""
    return Rows([domain.part(X, y, labels=labels)], domain).table()


def objects(cells):
    """An array of these cells as they are, lists among them too."""
    return np.array([*cells, None], object)[:-1]

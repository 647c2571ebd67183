"""Tables that are made up for audits of whole workflows: numbers, or raw columns of declared roles.

A run is rebuilt with strangers (transcript.py): tables of the same public schema that differ in everything else. One
has large numbers and other names, one has rows that are all alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse.audit.neighbours import HUGE, Pair, pairs
from dpsparse.domain import Domain
from dpsparse.random import make_generator

WORDS = ("red", "green", "blue", "sky", "sea", "sun")
Arguments = tuple[Any, ...]  # X, y and, where persons are protected, groups


@dataclass(frozen=True)
class Schema:
    """What is public of the tables: the domain, and the number of columns or the roles of raw ones."""

    domain: Domain
    adjacency: str
    n_features: int
    roles: Mapping[str, Any] | None = None  # as DPTablePreparer takes them

    def tables(self, n_rows: int = 90, seed: int = 0) -> tuple[Arguments, list[Arguments]]:
        """A table, and strangers; their numbers of rows differ unless they are public."""
        sizes = [n_rows] * 3
        if self.adjacency == "add-remove":
            sizes = [n_rows, 2 * n_rows // 3, n_rows // 2]
        made = zip(
            sizes, (1.0, 1e3, 0.0), strict=True
        )  # loudness of the table and of two strangers
        table, *strangers = [self.table(n, loud, seed + k) for k, (n, loud) in enumerate(made)]
        return table, strangers

    def table(self, n_rows: int, loudness: float, seed: int) -> Arguments:
        """One table; `loudness` multiplies its numbers, and 0 makes all rows alike."""
        rng = make_generator(seed)
        if self.roles is None:
            shape = n_rows, self.n_features
            X: Any = loudness * rng.standard_normal(shape) * (rng.random(shape) < 0.7)
        else:
            X = {name: _cells(role, n_rows, loudness, rng) for name, role in self.roles.items()}
        y = _targets(self.domain, n_rows, loudness, rng)
        if self.domain.unit == "row":
            return X, y
        n_persons = max(1, n_rows // 3)  # each has a row, and some have many
        more = rng.integers(n_persons, size=n_rows - n_persons)
        return X, y, rng.permutation(np.append(np.arange(n_persons), more))

    def pairs(self, n_rows: int, rng: np.random.Generator) -> Iterator[Pair]:
        """Neighbours without end."""
        if self.roles is None:
            yield from pairs(self.domain, self.adjacency, n_rows, self.n_features, rng)
        while True:
            yield self._raw_pair(n_rows, rng)

    def _raw_pair(self, n_rows: int, rng: np.random.Generator) -> Pair:
        """A loud row, or person of several, more than in the other table, or in the place of another."""
        seed, m = int(rng.integers(2**31)), int(rng.integers(1, 5))
        persons = self.domain.unit == "person"
        more = m if persons else 1
        base, odd = self.table(n_rows, 1.0, seed), self.table(max(more, 3), HUGE, seed + 1)
        X = {name: np.append(column, odd[0][name][:more]) for name, column in base[0].items()}
        y = np.append(base[1], odd[1][:more])
        groups = groups2 = None
        n_units = n_rows
        if persons:
            n_units = int(base[2].max()) + 1
            groups, groups2 = base[2], np.append(base[2], np.full(more, n_units))
        origin = np.append(np.arange(n_units), -1)
        pair = Pair(base[0], base[1], X, y, origin, "a loud unit", groups, groups2)
        if self.adjacency == "add-remove":
            return pair if rng.random() < 0.5 else pair.swapped()
        # Under replace-one an ordinary unit stands where the loud one does.
        plain = self.table(3, 1.0, seed + 2)
        X1 = {name: np.append(column, plain[0][name][:1]) for name, column in base[0].items()}
        y1 = np.append(base[1], plain[1][:1])
        if groups is not None:
            groups = np.append(groups, n_units)
        return Pair(X1, y1, X, y, np.arange(n_units + 1), "a loud unit", groups, groups2)


def _targets(domain: Domain, n: int, loudness: float, rng: np.random.Generator) -> np.ndarray:
    if domain.classes is not None:
        labels = np.asarray(domain.class_labels())
        return np.asarray(rng.choice(labels if loudness == 1.0 else labels[-1:], n))
    return domain.target_middle + loudness * (domain.target_bound or 1.0) * rng.uniform(-1, 1, n)


def _cells(role: Any, n: int, loudness: float, rng: np.random.Generator) -> np.ndarray:
    """Cells for the role of a column, some of them missing."""
    kind = role if isinstance(role, str) else "number" if isinstance(role, tuple) else "category"
    out = np.empty(n, object)
    if loudness == 0.0:
        return out  # all missing
    for i in np.flatnonzero(rng.random(n) >= 0.1):  # a tenth are missing
        if kind == "number" or (kind == "auto" and rng.random() < 0.9):
            out[i] = loudness * float(rng.lognormal(3.0, 1.0))
        elif kind == "date":
            out[i] = str(rng.choice(("1970-01-31", "1980-05-02", "1999-12-24")))
        elif kind in ("text", "words"):
            out[i] = " ".join(rng.choice(_known(WORDS, loudness), 4))
        else:
            names = [str(name) for name in role] if isinstance(role, list) else WORDS
            out[i] = str(rng.choice(_known(names, loudness)))
    return out


def _known(names: Any, loudness: float) -> list[str]:
    """Names of a table; a loud one has names that no other has."""
    return list(names) if loudness == 1.0 else [f"{name} {loudness:g}" for name in names]

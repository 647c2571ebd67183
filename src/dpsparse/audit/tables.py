"""Tables that are made up for audits: numbers, or raw columns of declared roles.

A run is rebuilt with strangers (transcript.py): tables of the same public schema that differ in everything else. One
has large numbers and other names, one has rows that are all alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse.audit.neighbours import sample_table
from dpsparse.domain import Domain
from dpsparse.random import make_generator

Arguments = tuple[Any, ...]  # X, y and, where persons are protected, groups


@dataclass(frozen=True)
class Schema:
    """What is public of the tables: the domain, and the number of columns or the roles of raw ones."""

    domain: Domain
    adjacency: str
    n_features: int
    roles: Mapping[str, Any] | None = None  # as DPTablePreparer takes them

    def tables(self, seed: int = 0) -> tuple[Arguments, list[Arguments]]:
        """A table, and strangers; their numbers of rows differ unless they are public."""
        sizes = [90, 60, 45] if self.adjacency == "add-remove" else [90] * 3
        loudness = (1.0, 1e3, 0.0)  # of the table and of two strangers
        made = enumerate(zip(sizes, loudness, strict=True))
        table, *strangers = [self.table(n, loud, seed + k) for k, (n, loud) in made]
        return table, strangers

    def table(self, n_rows: int, loudness: float, seed: int) -> Arguments:
        """One table; `loudness` multiplies its numbers, and 0 makes all rows alike."""
        rng = make_generator(seed)
        X, y = sample_table(self.domain, n_rows, self.n_features, rng)
        if loudness != 1.0 and self.domain.classes is not None:
            y = np.full(n_rows, self.domain.class_labels()[-1])
        elif loudness != 1.0:
            y = self.domain.target_middle + loudness * (y - self.domain.target_middle)
        X = self.columns(loudness * X)
        if self.domain.unit == "row":
            return X, y
        n_persons = max(1, n_rows // 3)  # each has a row, and some have many
        more = rng.integers(n_persons, size=n_rows - n_persons)
        return X, y, rng.permutation(np.append(np.arange(n_persons), more))

    def columns(self, X: Any) -> Any:
        """A table of numbers as it is, or as raw columns. A cell is a function of its number, so that neighbours stay
        neighbours; a zero is a missing cell."""
        if self.roles is None:
            return X
        bound = self.domain.entry_bound()
        named = zip(self.roles.items(), X.T, strict=True)
        return {name: _cells(role, numbers / bound) for (name, role), numbers in named}


def _cells(role: Any, numbers: np.ndarray) -> np.ndarray:
    """Cells for the role of a column. Numbers beyond one become names that no other table has."""
    kind = role if isinstance(role, str) else "number" if isinstance(role, tuple) else "category"
    place = np.floor(97.0 * np.minimum(np.abs(numbers), 1e6)).astype(np.int64)
    words = role if isinstance(role, list) else ("red", "green", "blue", "sky", "sea", "sun")
    names = np.array([str(word) for word in words], object)
    out = names[place % len(names)]
    if kind in ("text", "words"):
        out = out + " " + names[place // 7 % len(names)] + " " + names[place // 3 % len(names)]
    elif kind == "date":
        out = np.array(["1970-01-31", "1980-05-02", "1999-12-24"], object)[place % 3]
    if kind != "date":
        loud = np.abs(numbers) > 1.0
        out[loud] = out[loud] + " out loud"
    if kind in ("number", "auto"):
        number = (place % 10 > 0) | (kind == "number")  # a tenth of an undeclared column are names
        out[number] = (20.0 + 10.0 * numbers[number]).astype(object)
    out[numbers == 0.0] = None
    return np.asarray(out)

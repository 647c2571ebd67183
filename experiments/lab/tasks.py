"""Tasks: a data set, what is public about it, and which rows are held out.

A row is held out by a hash of its number and the number of the split, so that no state of a generator decides it and
every method sees the same rows. Rows of one person stay together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

TEST_SHARE = 0.2
MOST_TRAINING_ROWS = 50_000


@dataclass(frozen=True)
class Data:
    """All rows of a task; `truth` are true weights where they are known, `persons` the person of every row."""

    X: Any
    y: np.ndarray
    truth: np.ndarray | None = None
    persons: np.ndarray | None = None

    @property
    def digest(self) -> str:
        """Hash of rows and targets."""
        X = sp.csr_array(self.X)
        found = hashlib.sha256(repr((X.shape, self.y.dtype.kind)).encode())
        for part in (X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data.astype(float)):
            found.update(np.ascontiguousarray(part).tobytes())
        found.update("\n".join(map(str, self.y.tolist())).encode())
        return found.hexdigest()[:16]


@dataclass(frozen=True)
class Task:
    """A data set and its public facts. Exactly one of `classes` and `target_range` is given."""

    name: str
    track: str  # tables, regression, text, classes, support, persons, papers
    load: Callable[[], Data]
    classes: tuple[Any, ...] | None = None
    target_range: tuple[float, float] | None = None
    n_nonzero: int | None = None  # declared number of weights
    row_norm: float | None = None  # public bound on the length of a row
    about: str = ""

    @property
    def is_regression(self) -> bool:
        return self.target_range is not None

    @property
    def headline(self) -> str:
        """The measure that ranks methods on this task."""
        if self.is_regression:
            return "R2"
        return "AUC" if len(self.classes or ()) == 2 else "accuracy"


@dataclass(frozen=True)
class Split:
    """Training and test rows of one split."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    persons: np.ndarray | None
    digest: str


def mix(numbers: np.ndarray, salt: str) -> np.ndarray:
    """A 64-bit hash of every number (the finaliser of SplitMix64), other for every salt."""
    key = int.from_bytes(hashlib.sha256(salt.encode()).digest()[:8], "little")
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def held_out(units: np.ndarray, name: str, number: int) -> np.ndarray:
    """Which rows are test rows of a split; `units` are row numbers or codes of persons."""
    return mix(units, f"{name}, split {number}") < np.uint64(TEST_SHARE * 2**64)


@lru_cache(maxsize=2)
def _loaded(task: Task) -> tuple[Data, str]:
    data = task.load()
    return data, data.digest


def split_rows(task: Task, number: int, training: bool = False) -> Split:
    """Split `number` of a task. With `training` the training rows are split again and test rows are never read:
    constants of the library are chosen there."""
    data, digest = _loaded(task)
    units = np.arange(len(data.y))
    if data.persons is not None:
        units = np.unique(data.persons, return_inverse=True)[1]
    out = held_out(units, task.name, number)
    rows, test = np.flatnonzero(~out), np.flatnonzero(out)
    if training:
        out = held_out(units, f"{task.name}, training", number)[rows]
        rows, test = rows[~out], rows[out]
    if len(rows) > MOST_TRAINING_ROWS:
        rows = np.sort(rows[np.argsort(mix(rows, f"{task.name}, fewer"))[:MOST_TRAINING_ROWS]])
    persons = None if data.persons is None else data.persons[rows]
    return Split(data.X[rows], data.y[rows], data.X[test], data.y[test], persons, digest)


def truth_of(task: Task) -> np.ndarray | None:
    """True weights of a made data set."""
    return _loaded(task)[0].truth

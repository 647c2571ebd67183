"""Columns of names as columns of zeros and ones, for the cells that are known to occur.

Every name of a raw column falls into a *cell*: its own, if it is listed, else a bucket of a public hash. Gaps are a
cell too. Where cells were counted, only those whose count stands out of its noise get a column. A row in any other cell
counts as an average row: each column of the group holds the released share of its cell. So no weight is learnt, and
none is used, for a value that no row had.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from sklearn.utils import murmurhash3_32

from dpsparse._cells import MISSING_WORDS
from dpsparse.exceptions import ParameterError
from dpsparse.preprocessing._step import Plain, Step, example, narrow
from dpsparse.preprocessing._tables import Table, texts


class OneHot(Step):
    """Cells of a column: its listed categories, then the buckets, then gaps."""

    categories_: tuple[tuple[str, ...], ...]
    n_buckets_: tuple[int, ...]  # of each column
    kept_: np.ndarray  # of every cell of every column, whether it has a column of its own
    shares_: np.ndarray  # released shares of the cells, 0 of those without a column

    def _note_cells(
        self, categories: tuple[tuple[str, ...], ...], n_buckets: tuple[int, ...]
    ) -> None:
        """Give every cell a column; what is counted may take it away."""
        self.categories_, self.n_buckets_ = categories, n_buckets
        n_cells = int(self._starts()[-1])
        self.kept_, self.shares_ = np.ones(n_cells, bool), np.zeros(n_cells)

    def _keep_cells(self, counts: list[np.ndarray], kept: list[np.ndarray]) -> None:
        """Keep these cells, given column by column; counts are released numbers."""
        shares = [np.where(k, np.maximum(c, 0.0), 0.0) for c, k in zip(counts, kept, strict=True)]
        self.shares_ = np.concatenate([s / max(s.sum(), 1e-300) for s in shares])
        self.kept_ = np.concatenate(kept)
        if not self.kept_.any():  # a table needs a column
            self.kept_[-1] = True

    def _cells(self, read: Table) -> np.ndarray:
        """The cell of every row in every column, counted from 0 in each."""
        cells = np.empty((read.n_rows, len(read.columns)), np.int64)
        for j, column in enumerate(read.columns):
            known, n_buckets = self.categories_[j], self.n_buckets_[j]
            place: dict[str | None, int] = {name: k for k, name in enumerate(known)}
            k = len(known)
            names = texts(column, {*known})
            for name in {*names} - {*known, None}:
                place[name] = k + _bucket(str(name), n_buckets)
            place[None] = k + n_buckets
            cells[:, j] = [place[name] for name in names]
        return cells

    def _starts(self) -> np.ndarray:
        """Where the cells of each column begin among those of all."""
        groups = zip(self.categories_, self.n_buckets_, strict=True)
        sizes = [len(known) + n_buckets + 1 for known, n_buckets in groups]
        return np.concatenate([[0], np.cumsum(sizes)])

    def _rows_of_cells(self) -> sp.csr_array:
        """What a cell becomes: its own column, or the average of its group. (cells, columns that come out)"""
        starts, columns = self._starts(), np.cumsum(self.kept_) - 1
        rows, places, values = [], [], []
        for first, last in pairwise(starts.tolist()):
            group = np.arange(first, last)
            own = group[self.kept_[group]]
            for cell in group.tolist():
                if self.kept_[cell]:
                    rows.append(np.array([cell]))
                    places.append(columns[[cell]])
                    values.append(np.ones(1))
                else:
                    rows.append(np.full(len(own), cell))
                    places.append(columns[own])
                    values.append(self.shares_[own])
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(places))
        made = sp.csr_array(entries, shape=(len(self.kept_), int(self.kept_.sum())))
        made.eliminate_zeros()
        return made

    def _map(self, read: Table) -> sp.csr_array:
        cells = self._cells(read) + self._starts()[:-1]
        n, d = cells.shape
        one_hot = sp.csr_array(
            (np.ones(n * d), cells.ravel(), np.arange(0, n * d + 1, d)), shape=(n, len(self.kept_))
        )
        rows = sp.csr_array(one_hot @ self._rows_of_cells())
        rows.sort_indices()
        return narrow(rows)

    def _names_out(self) -> list[str]:
        names = []
        groups = zip(self._columns, self.categories_, self.n_buckets_, strict=True)
        for column, known, n_buckets in groups:
            names += [f"{column} = {name}" for name in known]
            buckets = [f"{column} # {b}" for b in range(n_buckets)]
            names += buckets if n_buckets > 1 else [f"{column} is other"]
            names.append(f"{column} is missing")
        return [name for name, kept in zip(names, self.kept_.tolist(), strict=True) if kept]

    def _plain(self) -> Plain:
        """OneHotEncoder leaves out what it does not know. As a row has one cell in each group, the weight of "other"
        can be taken from the others of the group and put into the intercept: the margins are the same."""
        from sklearn.preprocessing import OneHotEncoder

        starts = self._starts()
        known_ends = starts[:-1] + [len(known) for known in self.categories_]
        for first, n in zip(known_ends.tolist(), self.n_buckets_, strict=True):
            if n > 1 and self.kept_[first : first + n].any():
                raise ParameterError(
                    "Hashed names have no counterpart in scikit-learn; save the pipeline."
                )
        gaps = [[*sorted(MISSING_WORDS - {*known}), None, np.nan] for known in self.categories_]
        encoder = OneHotEncoder(
            categories=[
                np.array([*known, *missing], object)
                for known, missing in zip(self.categories_, gaps, strict=True)
            ],
            handle_unknown="ignore",
        )
        encoder.fit(example(self, ""))
        rows_of_cells = self._rows_of_cells()

        def weights(coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            of_cells = (rows_of_cells @ coef.T).T
            out, moved = [], np.zeros(len(coef))
            for first, middle, last, words in zip(
                starts, known_ends, starts[1:], gaps, strict=False
            ):
                known, other = of_cells[:, first:middle], of_cells[:, middle : middle + 1]
                missing = of_cells[:, last - 1 : last]
                moved = moved + other[:, 0]
                out += [known - other, np.repeat(missing - other, len(words), axis=1)]
            return np.hstack(out), moved

        return encoder, weights


def _bucket(name: str, n_buckets: int) -> int:
    return int(murmurhash3_32(name.encode(), seed=0, positive=True)) % n_buckets

"""Columns of categories as columns of zeros and ones: categories that are learnt, declared, or hashed.

    DPCategoryEncoder   the categories that enough rows have, by a threshold release; others by a hash
    PublicEncoder       the categories of a list, and "other"
    HashingEncoder      every category in one of a public number of columns, with a sign: free, without names

Numbers count as categories ("3"), so codes can be encoded too. Proof: docs/proofs/preparation.md.

Every category of a raw column belongs to a *cell*: its own, if it is listed, else a bucket of a public hash. Missing
values are a cell too. Where cells were counted, only those whose count is above its noise get a column. A row in any
other cell counts as an average row: each column of the group holds the released share of its cell. So no weight is
learnt, and none is used, for a value that no row had.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import murmurhash3_32

from dpsparse._checks import check_count
from dpsparse.exceptions import DomainError, ParameterError
from dpsparse.preprocessing._step import (
    COUNT_SHARE,
    MIN_COUNT_IN_SDS,
    STEP_SHARE,
    PrivateStep,
    Step,
    Want,
    narrow,
    of_each_column,
)
from dpsparse.preprocessing._tables import Header, Table, declared_names, texts
from dpsparse.release import Releases
from dpsparse.rows import RawRows

# Of a raw column (experiments/notebook/preparation.md): released categories, and columns that all others share.
MAX_CATEGORIES, MIN_BUCKETS = 64, 16


class OneHot(Step):
    """Cells of a column: its listed categories, then the buckets, then missing values."""

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

    def _keep_cells(self, counts: list[np.ndarray], sd: float) -> None:
        """Keep listed categories, and the other cells whose released count is above its noise."""
        kept = [
            (np.arange(len(count)) < len(known)) | (count > MIN_COUNT_IN_SDS * sd)
            for count, known in zip(counts, self.categories_, strict=True)
        ]
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
        starts, n_cells, kept = self._starts(), len(self.kept_), self.kept_.astype(np.float64)
        n_groups = len(starts) - 1
        # An own column, or by way of its group the columns that the group has.
        averages = sp.csr_array(
            (self.shares_, np.arange(n_cells), starts), shape=(n_groups, n_cells)
        )
        group = np.repeat(np.arange(n_groups), np.diff(starts))
        entries = (1.0 - kept, group, np.arange(n_cells + 1))
        members = sp.csr_array(entries, shape=(n_cells, n_groups))
        made = sp.csr_array(sp.diags_array(kept) + members @ averages)[:, self.kept_]
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

    def _fate(self, j: int) -> str:
        known = self.categories_[j]
        first, last = self._starts()[j : j + 2]
        if not self._declares and not self.shares_[first:last].any():
            return "left out: no category is known to enough rows"
        listed = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        how = "declared" if self._declares else "released"
        return f"{how} categories: {listed or 'none'}; all others count as an average row or share columns"


def _bucket(name: str, n_buckets: int) -> int:
    return int(murmurhash3_32(name.encode(), seed=0, positive=True)) % n_buckets


@dataclass(eq=False, repr=False, kw_only=True)
class DPCategoryEncoder(OneHot, PrivateStep):
    """One-hot columns for the categories that enough rows have; which ones is learnt privately.

    Other categories share columns by a public hash. A column for them, or for missing values, exists if its released
    count is above the noise. Without one, a value counts as an average row.

    **When to use.** For columns whose categories are not public. If you can list them, `PublicEncoder` is free.

    Parameters
    ----------
    n_buckets : dict or None, default=None
        How many columns other categories share, by name of the raw column. Without a number it is one for every 250
        declared rows, from 16 to 256, so that codes with many values can be used. Of a column without a released
        category more than 16 are needed: otherwise they might number the rows.
    n_samples : int or None, default=None
        Number of rows, where it is public; a `DPPipeline` knows it from the domain.
    epsilon, delta, adjacency, ledger, random_state : as in every estimator
        For use outside a `DPPipeline`, which pays for all of its steps.

    Attributes
    ----------
    categories_ : tuple of tuples of str
        Released categories of each column, sorted, at most 64. A single occurrence is never revealed.
    kept_, shares_ : ndarray
        Of the cells of all columns (categories, buckets, missing): which have a column, and their released shares.

    Examples
    --------
    >>> from dpsparse.preprocessing import DPCategoryEncoder
    >>> table = {"colour": ["red"] * 900 + ["blue"] * 600 + ["a person's own"]}
    >>> DPCategoryEncoder(epsilon=1.0).fit(table).categories_
    (('blue', 'red'),)
    """

    n_buckets: Any = None
    n_samples: int | None = None

    def _check(self) -> None:
        super()._check()
        if not isinstance(self.n_buckets or {}, Mapping):
            raise ParameterError("n_buckets must be None or a number of columns by name.")
        for count in (self.n_buckets or {}).values():
            check_count("n_buckets", count)

    def _wants(self, n_columns: int) -> list[Want]:
        names = "names that enough rows have, of all columns together"
        rest = "rows by bucket of all other names, and missing values, of each column"
        size = n_columns * (max(self._choose_buckets([*(self.n_buckets or {}), ""])) + 1)
        return [
            Want("categories", STEP_SHARE / 2.0, 1, names, names=True),
            Want("unlisted", STEP_SHARE / 2.0, size, rest),
        ]

    def _choose_buckets(self, names: Iterable[str]) -> tuple[int, ...]:
        # With several buckets a new value seldom shares one with a rare category.
        by_rows = min(max((self.n_samples or 0) // 250, MIN_BUCKETS), 256)
        return tuple((self.n_buckets or {}).get(name, by_rows) for name in names)

    def _width(self, n_columns: int) -> int:
        names = [*(self.n_buckets or {}), *[""] * n_columns][:n_columns]
        return n_columns * (MAX_CATEGORIES + 1) + sum(self._choose_buckets(names))

    def _learn(self, raw: RawRows, releases: Releases, prefix: str) -> None:
        d = self.n_features_in_
        # Names of a person are those of all rows; of one row there is at most one for each column.
        found, weights = releases.names(prefix + "categories", raw.names(_names_of_rows, d))
        kept: list[list[tuple[float, str]]] = [[] for _ in range(d)]
        for text, weight in zip(found, weights.tolist(), strict=True):
            number, name = text.split("\x1f", 1)
            kept[int(number)].append((-weight, name))
        listed = [sorted(sorted(each)[:MAX_CATEGORIES], key=lambda pair: pair[1]) for each in kept]
        categories = tuple(tuple(name for _, name in each) for each in listed)
        self._note_cells(categories, self._choose_buckets(self._columns))
        counts, sd = self._count_unlisted(raw, releases, prefix + "unlisted")
        # A row with d names adds 1/sqrt(d) to the weight of each.
        known = [-math.sqrt(d) * np.array([weight for weight, _ in each]) for each in listed]
        unlisted = [row[: n + 1] for row, n in zip(counts, self.n_buckets_, strict=True)]
        for j, n in enumerate(self.n_buckets_):
            if not categories[j] and n <= MIN_BUCKETS:  # the column may number the rows
                unlisted[j][:n] = 0.0
        self._keep_cells([np.concatenate(pair) for pair in zip(known, unlisted, strict=True)], sd)
        starts = self._starts()
        groups = zip(self._columns, starts[:-1], starts[1:], strict=True)
        # By shares: where no cell is kept at all, one without rows stands for the column that a table needs.
        empty = [name for name, first, last in groups if not self.shares_[first:last].any()]
        if empty:
            self.weak_ = (
                f"No category of these columns is known to enough rows, and they are left out: {', '.join(empty[:20])}."
                " List their categories, hash them, read them as text, or raise epsilon. For codes with many values, "
                "declare a column of categories and the number of rows: --categories COLUMN --n-samples 10000, in "
                'Python {"COLUMN": "category"} and Domain(n_samples=10000).',
            )

    def _count_unlisted(
        self, raw: RawRows, releases: Releases, phase: str
    ) -> tuple[np.ndarray, float]:
        """Rows of each column by bucket, and with a missing value; a listed category is in no cell."""
        listed = np.array([len(known) for known in self.categories_])

        def codes(read: Table) -> np.ndarray:
            cells = self._cells(read) - listed
            return np.where(cells >= 0, cells, np.nan)

        query = raw.numbers(codes, len(listed)).codes(max(self.n_buckets_) + 1)
        return releases.gaussian(phase, query), releases.scale(phase, query)


def _names_of_rows(read: Table) -> list[list[str]]:
    """The names of every row, each behind the number of its column and a separator."""
    columns = [texts(column) for column in read.columns]
    return [
        [f"{j}\x1f{name}" for j, name in enumerate(row) if name is not None]
        for row in zip(*columns, strict=True)
    ]


@dataclass(eq=False, repr=False)
class PublicEncoder(OneHot):
    """One-hot columns for declared categories; other values share the column "other". Free.

    **When to use.** For columns whose categories are public, such as the answers of a questionnaire.

    Parameters
    ----------
    categories : dict or list, default=()
        A list for every column by name, or one list for all of them.
    count_rows : bool, default=False
        In a `DPPipeline`: count the rows of every category, for a hundredth of the budget. "Other" and "missing" then
        have a column only where their count is above the noise. Nothing is counted by default.

    Examples
    --------
    >>> from dpsparse.preprocessing import PublicEncoder
    >>> step = PublicEncoder({"sex": ["f", "m"]}).fit({"sex": ["f", None, "x"]})
    >>> step.get_feature_names_out().tolist()
    ['sex = f', 'sex = m', 'sex is other', 'sex is missing']
    >>> step.transform({"sex": ["f", None, "x"]}).toarray().tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]]
    """

    _declares = True

    categories: Any = ()
    _: KW_ONLY
    count_rows: bool = False

    def _wants(self, n_columns: int) -> list[Want]:
        note = "rows of each declared category, of others, and missing values, of each column"
        size = n_columns * (max(len(known) for known in self._lists()) + 2)
        return [Want("counts", COUNT_SHARE, size, note)] if self.count_rows else []

    def _learn(self, raw: RawRows, releases: Releases, prefix: str) -> None:
        """Which of "other" and "missing" occur, and the shares of all categories."""
        if not self.count_rows:
            return
        sizes = [len(known) for known in self.categories_]
        query = raw.numbers(self._cells, len(sizes)).codes(max(sizes) + 2)
        sd = releases.scale(prefix + "counts", query)
        found = releases.gaussian(prefix + "counts", query)
        self._keep_cells([found[j, : size + 2] for j, size in enumerate(sizes)], sd)

    def _check(self) -> None:
        for known in self._lists():
            names = declared_names(known)
            if not names or None in names or len(set(names)) < len(names):
                raise DomainError(
                    "categories must list different names, at least one for each column."
                )

    def _lists(self) -> list[Any]:
        """The lists of all columns, or the one for each of them."""
        given = self.categories
        lists = list(given.values()) if isinstance(given, Mapping) else [given]
        if not lists or not all(isinstance(known, (list, tuple, np.ndarray)) for known in lists):
            raise DomainError('categories must be declared, for instance {"sex": ["f", "m"]}.')
        return lists

    def _width(self, n_columns: int) -> int:
        lists = self._lists() if isinstance(self.categories, Mapping) else self._lists() * n_columns
        return sum(len(known) + 2 for known in lists)

    def _note(self, header: Header) -> None:
        super()._note(header)
        lists = of_each_column("categories", self.categories, self._columns)
        categories = tuple(tuple(map(str, declared_names(known))) for known in lists)
        self._note_cells(categories, (1,) * len(lists))


@dataclass(eq=False, repr=False)
class HashingEncoder(Step):
    """Every category of a column in one of `n_features` columns, with a sign, by a public hash. Free, without names.

    **When to use.** For columns with very many categories, where weights need no names.

    Parameters
    ----------
    n_features : int, default=64
        Columns for each column that goes in; free. With fewer, more categories share a column.

    Examples
    --------
    >>> from dpsparse import HashingEncoder
    >>> table = [["red", "S"], ["blue", "M"], ["red", "M"]]
    >>> HashingEncoder(64).fit_transform(table).shape
    (3, 128)
    """

    n_features: int = 64

    def _check(self) -> None:
        check_count("n_features", self.n_features)

    def _width(self, n_columns: int) -> int:
        return int(n_columns * self.n_features)

    def _map(self, read: Table) -> sp.csr_array:
        """A missing value has no entry."""
        from sklearn.feature_extraction import FeatureHasher

        hasher = FeatureHasher(self.n_features, input_type="string")
        blocks = [
            hasher.transform([[] if name is None else [name] for name in texts(column)])
            for column in read.columns
        ]
        return narrow(sp.csr_array(sp.hstack(blocks, format="csr")))

    def _names_out(self) -> list[str]:
        return [f"{column} # {k}" for column in self._columns for k in range(self.n_features)]

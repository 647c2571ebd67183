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
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import murmurhash3_32

from dpsparse._cells import MISSING_WORDS
from dpsparse._checks import check_count
from dpsparse.exceptions import DomainError, ParameterError
from dpsparse.preprocessing._step import (
    Plain,
    SharingStep,
    Step,
    Want,
    example,
    narrow,
    unchanged,
)
from dpsparse.preprocessing._tables import Header, Table, declared_names, texts
from dpsparse.preprocessing.defaults import (
    DECLARED_SHARE,
    MAX_BUCKETS,
    MAX_CATEGORIES,
    MIN_BUCKETS,
    MIN_COUNT_IN_SDS,
    ROWS_PER_BUCKET,
    UNLISTED_SHARE,
)
from dpsparse.release import Releases
from dpsparse.rows import RawRows

_BETWEEN = "\x1f"  # separates the number of a column from a name in what is released


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

    def _fate(self, j: int) -> str:
        known = self.categories_[j]
        listed = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        how = "declared" if self._declares else "released"
        return f"{how} categories: {listed or 'none'}; all others count as an average row or share columns"

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


@dataclass(eq=False, repr=False, kw_only=True)
class DPCategoryEncoder(OneHot, SharingStep):
    """One-hot columns for the categories that enough rows have; which ones is learnt privately.

    Other categories share columns by a public hash. A column for them, or for missing values, exists if its released
    count is above the noise. Without one, a value counts as an average row.

    **When to use.** For columns whose categories are not public. If you can list them, `PublicEncoder` is free.

    Parameters
    ----------
    share : float, default=0.1
        Share of a pipeline's budget (of mu^2). A tenth by default, which adds about 5 % to the noise of the model.
    max_categories : int, default=64
        Most categories to keep of each column, those of the largest released weights; costs nothing.
    n_buckets : int, dict or None, default=None
        Columns for categories that were not released, for all columns or by name. None: one for every 250 declared
        rows, from 16 to 256, so that codes with many values can be used. Of a column without a released category
        more than 16 are needed: otherwise they might number the rows.
    epsilon, delta, adjacency, ledger, n_samples, random_state : as in every estimator
        For use outside a `DPPipeline`, which pays for all of its steps and knows the number of rows from the domain.

    Attributes
    ----------
    categories_ : tuple of tuples of str
        Released categories of each column, sorted. A rare one is not among them: a single occurrence is never revealed.
    kept_, shares_ : ndarray
        Of the cells of all columns (categories, buckets, missing): which have a column, and their released shares.

    Examples
    --------
    >>> from dpsparse.preprocessing import DPCategoryEncoder
    >>> table = {"colour": ["red"] * 900 + ["blue"] * 600 + ["a person's own"]}
    >>> DPCategoryEncoder(epsilon=1.0).fit(table).categories_
    (('blue', 'red'),)
    """

    max_categories: int = MAX_CATEGORIES
    n_buckets: Any = None

    def _check(self) -> None:
        super()._check()
        check_count("max_categories", self.max_categories)
        by_name = isinstance(self.n_buckets, Mapping)
        for count in self.n_buckets.values() if by_name else [self.n_buckets]:
            check_count("n_buckets", count, optional=True)

    def _wants(self, n_columns: int) -> list[Want]:
        names = "names that enough rows have, of all columns together"
        rest = "rows by bucket of all other names, and missing values, of each column"
        by_name = list(self.n_buckets) if isinstance(self.n_buckets, Mapping) else []
        size = n_columns * (max(self._choose_buckets([*by_name, ""])) + 1)
        return [
            Want("categories", self.share * (1.0 - UNLISTED_SHARE), 1, names, names=True),
            Want("unlisted", self.share * UNLISTED_SHARE, size, rest),
        ]

    def _choose_buckets(self, names: Iterable[str]) -> tuple[int, ...]:
        by_rows = min(max((self.n_samples or 0) // ROWS_PER_BUCKET, MIN_BUCKETS), MAX_BUCKETS)
        asked = self.n_buckets
        counts = [asked.get(n) if isinstance(asked, Mapping) else asked for n in names]
        return tuple(by_rows if count is None else int(count) for count in counts)

    def _width(self, n_columns: int) -> int:
        known = list(self.n_buckets) if isinstance(self.n_buckets, Mapping) else []
        names = [*known, *[""] * n_columns][:n_columns]
        return n_columns * (self.max_categories + 1) + sum(self._choose_buckets(names))

    def _learn(self, raw: RawRows, releases: Releases, prefix: str) -> None:
        d = self.n_features_in_
        # Names of a person are those of all rows; of one row there is at most one for each column.
        found, weights = releases.names(prefix + "categories", raw.names(_names_of_rows, d))
        kept: list[list[tuple[float, str]]] = [[] for _ in range(d)]
        for text, weight in zip(found, weights.tolist(), strict=True):
            number, name = text.split(_BETWEEN, 1)
            kept[int(number)].append((-weight, name))
        listed = [sorted(sorted(each)[: self.max_categories], key=lambda pair: pair[1]) for each in kept]  # fmt: skip
        categories = tuple(tuple(name for _, name in each) for each in listed)
        self._note_cells(categories, self._choose_buckets(self._columns))
        counts, sd = self._count_unlisted(raw, releases, prefix + "unlisted")
        # A row with d names adds 1/sqrt(d) to the weight of each.
        known = [-math.sqrt(d) * np.array([weight for weight, _ in each]) for each in listed]
        unlisted = [row[: n + 1] for row, n in zip(counts, self.n_buckets_, strict=True)]
        for j, n in enumerate(self.n_buckets_):
            if not categories[j] and n <= MIN_BUCKETS:
                unlisted[j][:n] = 0.0
        clear = [
            np.concatenate([np.ones(len(k), bool), c > MIN_COUNT_IN_SDS * sd])
            for k, c in zip(known, unlisted, strict=True)
        ]
        of_cells = [np.concatenate(pair) for pair in zip(known, unlisted, strict=True)]
        self._keep_cells(of_cells, clear)
        starts = self._starts()
        groups = zip(self._columns, starts[:-1], starts[1:], strict=True)
        empty = [name for name, first, last in groups if not self.kept_[first:last].any()]
        if empty:
            self.weak_ = (
                f"No category of these columns is known to enough rows, and they are left out: {', '.join(empty[:20])}."
                " Declare their categories, or codes with many values as such together with the number of rows; hash "
                "them, read them as text, or raise epsilon.",
            )

    def _count_unlisted(
        self, raw: RawRows, releases: Releases, phase: str
    ) -> tuple[np.ndarray, float]:
        """Rows of each column by bucket, and with a missing value; a listed category is in no cell."""
        listed = np.array([len(known) for known in self.categories_])

        def codes(read: Table) -> np.ndarray:
            cells = self._cells(read) - listed
            return np.where(cells >= 0, cells, np.nan)

        edges = np.tile(np.arange(1, max(self.n_buckets_) + 1) - 0.5, (len(listed), 1))
        query = raw.numbers(codes, len(listed)).between(edges)
        return releases.gaussian(phase, query), releases.scale(phase, query)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "categories_")


def _names_of_rows(read: Table) -> list[list[str]]:
    """The names of every row, each behind the number of its column."""
    columns = [texts(column) for column in read.columns]
    return [
        [f"{j}{_BETWEEN}{name}" for j, name in enumerate(row) if name is not None]
        for row in zip(*columns, strict=True)
    ]


@dataclass(eq=False, repr=False)
class PublicEncoder(OneHot):
    """One-hot columns for declared categories; other values share the column "other". Free.

    **When to use.** For columns whose categories are public, such as the answers of a questionnaire.

    Parameters
    ----------
    categories : dict, list of lists, or list, default=()
        By name of the column, one list for each column in order, or one list for all of them.
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
        return [Want("counts", DECLARED_SHARE, size, note)] if self.count_rows else []

    def _learn(self, raw: RawRows, releases: Releases, prefix: str) -> None:
        """Which of "other" and "missing" occur, and the shares of all categories."""
        if not self.count_rows:
            return
        sizes = [len(known) for known in self.categories_]
        edges = np.tile(np.arange(1, max(sizes) + 2) - 0.5, (len(sizes), 1))
        query = raw.numbers(self._cells, len(sizes)).between(edges)
        sd = releases.scale(prefix + "counts", query)
        found = releases.gaussian(prefix + "counts", query)
        counts = [found[j, : size + 2] for j, size in enumerate(sizes)]
        clear = [
            np.concatenate([np.ones(size, bool), count[size:] > MIN_COUNT_IN_SDS * sd])
            for size, count in zip(sizes, counts, strict=True)
        ]
        self._keep_cells(counts, clear)

    def _check(self) -> None:
        for known in self._lists():
            names = declared_names(known)
            if not names or None in names or len(set(names)) < len(names):
                raise DomainError(
                    "categories must list different names, at least one for each column."
                )

    def _lists(self) -> list[Any]:
        given = self.categories
        if isinstance(given, Mapping):
            return list(given.values())
        if isinstance(given, (list, tuple)) and given and isinstance(given[0], (list, tuple)):
            return list(given)
        if isinstance(given, (list, tuple, np.ndarray)) and len(given):
            return [given]
        raise DomainError('categories must be declared, for instance {"sex": ["f", "m"]}.')

    def _width(self, n_columns: int) -> int:
        lists = self._lists()
        if len(lists) == 1:
            return n_columns * (len(lists[0]) + 2)
        return sum(len(known) + 2 for known in lists)

    def _note(self, header: Header) -> None:
        super()._note(header)
        names, given = self._columns, self.categories
        if isinstance(given, Mapping):
            missing = [name for name in names if name not in given]
            if missing:
                raise DomainError(
                    f"categories lacks the columns {', '.join(missing)}: list the names that may occur."
                )
            lists = [given[name] for name in names]
        else:
            lists = self._lists()
            lists = lists * len(names) if len(lists) == 1 else lists
            if len(lists) != len(names):
                raise DomainError(f"categories has {len(lists)} lists for {len(names)} columns.")
        categories = tuple(tuple(map(str, declared_names(known))) for known in lists)
        self._note_cells(categories, (1,) * len(names))


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
        """As scikit-learn's hashers do it: the place is |h| mod n, the sign that of h; a missing value has no entry."""
        n, d = read.n_rows, len(read.columns)
        known: dict[str, int] = {}
        rows, places, signs = [], [], []
        for j, column in enumerate(read.columns):
            for i, name in enumerate(texts(column)):
                if name is None:
                    continue
                if name not in known:
                    known[name] = int(murmurhash3_32(name.encode(), seed=0))
                rows.append(i)
                places.append(j * self.n_features + abs(known[name]) % self.n_features)
                signs.append(1.0 if known[name] >= 0 else -1.0)
        shape = (n, d * self.n_features)
        return narrow(
            sp.csr_array(
                (np.array(signs), (np.array(rows, int), np.array(places, int))), shape=shape
            )
        )

    def _names_out(self) -> list[str]:
        return [f"{column} # {k}" for column in self._columns for k in range(self.n_features)]

    def _plain(self) -> Plain:
        """One HashingVectorizer a column, whose texts are taken whole; a missing value must be an empty text."""
        from sklearn.compose import ColumnTransformer
        from sklearn.feature_extraction.text import HashingVectorizer

        named = hasattr(self, "feature_names_in_")
        whole = {"lowercase": False, "token_pattern": r"(?s)^.+$", "norm": None}
        parts = [
            (name, HashingVectorizer(n_features=self.n_features, **whole), name if named else j)
            for j, name in enumerate(self._columns)
        ]
        out = ColumnTransformer(parts, sparse_threshold=1.0)
        return out.fit(example(self, "")), unchanged

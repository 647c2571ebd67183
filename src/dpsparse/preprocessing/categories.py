"""Columns of names as columns of zeros and ones: categories that are learnt, declared, or hashed.

    DPCategoryEncoder   the categories that enough rows have, by a threshold release (docs/proofs/preparation.md)
    PublicEncoder       the categories of a list
    HashingEncoder      every name in one of a public number of columns, with a sign: free, without names

A row has one 1 in each group of columns: its category, "other", or "missing". Numbers count as names ("3"), so codes
can be encoded too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import murmurhash3_32

from dpsparse._cells import MISSING_WORDS
from dpsparse._checks import check_count
from dpsparse.exceptions import DomainError
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
from dpsparse.release import Releases
from dpsparse.rows import RawRows

_BETWEEN = "\x1f"  # separates the number of a column from a name in what is released


class _OneHot(Step):
    categories_: tuple[tuple[str, ...], ...]

    def _map(self, read: Table) -> sp.csr_array:
        n, d = read.n_rows, len(read.columns)
        places = np.empty((n, d), np.int64)
        start = 0
        for j, (column, known) in enumerate(zip(read.columns, self.categories_, strict=True)):
            place = {name: start + k for k, name in enumerate(known)}
            other, missing = start + len(known), start + len(known) + 1
            places[:, j] = [
                missing if name is None else place.get(name, other) for name in texts(column, place)
            ]
            start = missing + 1
        indptr = np.arange(0, n * d + 1, d)
        return narrow(sp.csr_array((np.ones(n * d), places.ravel(), indptr), shape=(n, start)))

    def _plain(self) -> Plain:
        """OneHotEncoder leaves out what it does not know. As a row has one 1 in each group, the weight of "other" can
        be taken from the others of the group and put into the intercept: the margins are the same."""
        gaps = [[*sorted(MISSING_WORDS - {*known}), None, np.nan] for known in self.categories_]
        encoder = OneHotEncoder(
            categories=[
                np.array([*known, *missing], object)
                for known, missing in zip(self.categories_, gaps, strict=True)
            ],
            handle_unknown="ignore",
        )
        encoder.fit(example(self, ""))

        def weights(coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            out, moved, start = [], np.zeros(len(coef)), 0
            for known, words in zip(self.categories_, gaps, strict=True):
                group = coef[:, start : start + len(known) + 2]
                other, missing = group[:, -2:-1], group[:, -1:]
                moved = moved + other[:, 0]
                out += [group[:, :-2] - other, np.repeat(missing - other, len(words), axis=1)]
                start += len(known) + 2
            return np.hstack(out), moved

        return encoder, weights

    def _names_out(self) -> list[str]:
        return [
            f"{column} = {name}" if name is not None else f"{column} is {kind}"
            for column, known in zip(self._columns, self.categories_, strict=True)
            for name, kind in [*((c, "") for c in known), (None, "other"), (None, "missing")]
        ]


@dataclass(eq=False, repr=False, kw_only=True)
class DPCategoryEncoder(_OneHot, SharingStep):
    """One-hot columns for the categories that enough rows have; which ones is learnt privately.

    Parameters
    ----------
    share : float, default=0.1
        Share of a pipeline's budget (of mu^2).
    max_categories : int, default=64
        Of each column at most so many are kept, those of the largest released weights.
    epsilon, delta, adjacency, ledger, n_samples, random_state
        For use outside a `DPPipeline`, which pays for all of its steps.

    Attributes
    ----------
    categories_ : tuple of tuples of str
        Released categories of each column, sorted. A rare one is "other": that a name occurs once is never told.

    Examples
    --------
    >>> from dpsparse.preprocessing import DPCategoryEncoder
    >>> table = {"colour": ["red"] * 900 + ["blue"] * 600 + ["a person's own"]}
    >>> DPCategoryEncoder(epsilon=1.0).fit(table).categories_
    (('blue', 'red'),)
    """

    max_categories: int = 64

    def _check(self) -> None:
        super()._check()
        check_count("max_categories", self.max_categories)

    def _wants(self, n_columns: int, adjacency: str) -> list[Want]:
        note = "names that enough rows have, of all columns together"
        return [Want("categories", self.share, 1, note, names=True)]

    def _width(self, n_columns: int) -> int:
        return n_columns * (self.max_categories + 2)

    def _learn(self, raw: RawRows, releases: Releases, prefix: str) -> None:
        # Names of a person are those of all rows; of one row there is at most one for each column.
        names = raw.names(_names_of_rows, self.n_features_in_)
        found, weights = releases.names(prefix + "categories", names)
        kept: list[list[tuple[float, str]]] = [[] for _ in range(self.n_features_in_)]
        for text, weight in zip(found, weights.tolist(), strict=True):
            number, name = text.split(_BETWEEN, 1)
            kept[int(number)].append((-weight, name))
        self.categories_ = tuple(
            tuple(sorted(name for _, name in sorted(each)[: self.max_categories])) for each in kept
        )
        empty = [
            name for name, known in zip(self._columns, self.categories_, strict=True) if not known
        ]
        if empty:
            self.weak_ = (
                f"No category of these columns is known to enough rows: {', '.join(empty[:20])}. Declare their "
                "categories (PublicEncoder), hash them (HashingEncoder), or give the step a larger share.",
            )

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
class PublicEncoder(_OneHot):
    """One-hot columns for declared categories; other values share the column "other". Free.

    Parameters
    ----------
    categories : dict, list of lists, or list
        By name of the column, one list for each column in order, or one list for all of them.

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
        self.categories_ = tuple(tuple(map(str, declared_names(known))) for known in lists)


@dataclass(eq=False, repr=False)
class HashingEncoder(Step):
    """Every name of a column in one of `n_features` columns, with a sign, by a public hash. Free, without names.

    Parameters
    ----------
    n_features : int, default=64
        Columns for each column that goes in.

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
        """As scikit-learn's hashers do it: the place is |h| mod n, the sign that of h; a gap has no entry."""
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
        """One HashingVectorizer a column, whose texts are taken whole; a gap must be an empty text."""
        named = hasattr(self, "feature_names_in_")
        whole = {"lowercase": False, "token_pattern": r"(?s)^.+$", "norm": None}
        parts = [
            (name, HashingVectorizer(n_features=self.n_features, **whole), name if named else j)
            for j, name in enumerate(self._columns)
        ]
        out = ColumnTransformer(parts, sparse_threshold=1.0)
        return out.fit(example(self, "")), unchanged

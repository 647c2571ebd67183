"""Rows that a fit has yet to clip: files and tables larger than memory, arrays on a cluster.

    source = Rows.from_svmlight(["a.svm", "b.svm"], n_features=47_236, memory="1GB")
    model.fit(source)                          # clips by model.domain, part by part; then the same fit as in memory

A source knows the public width. It shows no row to anybody: `clipped` is called by `fit`, before anything is reserved.
"""

from __future__ import annotations

import mmap
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from dpsparse._cells import ONE_WEIGHT_EACH, column_cells
from dpsparse._checks import decoded, safe_repr, without_leaking_errors
from dpsparse.domain import Domain
from dpsparse.domain.clipping import Part, by_person
from dpsparse.exceptions import ParameterError, SchemaError
from dpsparse.io.streams import Layout, iter_svmlight, open_stream
from dpsparse.io.tables import Block, Chosen, batch_blocks, stream_blocks
from dpsparse.progress import told_if_slow
from dpsparse.rows.parts import joined
from dpsparse.rows.spool import Stored

if TYPE_CHECKING:
    from dpsparse.rows.memory import Rows

LARGEST_PART = 2**26  # bytes of a part
Size = int | float | str
Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Source(ABC):
    """Something `fit` can take instead of X and y."""

    n_features: int
    feature_names: tuple[str, ...] | None = None

    @abstractmethod
    def clipped(
        self, domain: Domain, labels: np.ndarray | None, groups: Any = None, weights: Any = None
    ) -> Rows:
        """Every row loaded, validated and clipped with its weight, those of a person (`groups`) together; refuses
        before anything is spent."""


def read_size(size: Size) -> int:
    """Bytes: a number, or a text such as "2GB" or "500 MB" (decimal units)."""
    found = re.fullmatch(r"\s*([\d.]+)\s*([kmgt]?)i?b?\s*", str(size).lower())
    try:
        amount = float(found[1]) * 1000.0 ** " kmgt".find(found[2] or " ") if found else 0.0
    except ValueError:
        amount = 0.0
    if not amount >= 10**6:
        raise ParameterError(
            f"memory must be a size such as '2GB' of at least 1 MB, got {safe_repr(size)}."
        )
    return int(amount)


def bytes_of_a_part(memory: int) -> int:
    """A share of the memory a fit may use: beside it stand the part made of it and one block of text."""
    return min(max(memory // 24, 2**20), LARGEST_PART)


@dataclass(eq=False, repr=False)
class Blocks(Source):
    """A stream of blocks (X, y), clipped and spooled once for each domain."""

    blocks: Callable[[np.ndarray | None], Iterator[Block]]
    n_features: int
    memory: int
    feature_names: tuple[str, ...] | None = None
    _known: list[tuple[Any, Rows]] = field(default_factory=list)

    def clipped(
        self, domain: Domain, labels: np.ndarray | None, groups: Any = None, weights: Any = None
    ) -> Rows:
        key = (domain, None if labels is None else tuple(labels.tolist()))
        for known, rows in self._known:
            if known == key and weights is None:
                return rows
        from dpsparse.rows.memory import Rows  # which offers these sources

        store = self._spooled(domain, labels, weights)
        if groups is not None:
            store = by_persons(store, groups)
        rows = Rows(store, domain, self.n_features)
        if groups is None and weights is None:  # another fit may name other persons and weights
            self._known[:] = [(key, rows)]  # one at a time: another domain is another copy
        return rows

    def _spooled(self, domain: Domain, labels: np.ndarray | None, weights: Any) -> Stored:
        store, n_rows = Stored(self.memory), 0
        full = bytes_of_a_part(self.memory)
        with told_if_slow("dpsparse: reading rows"):
            for part in in_parts(self.blocks(labels), domain, labels, full, weights):
                store.append(part)
                n_rows += len(part)
        if n_rows == 0:
            raise SchemaError("The files hold no rows.")
        return store


def in_parts(
    blocks: Iterable[Block],
    domain: Domain,
    labels: np.ndarray | None,
    full: int,
    weights: Any = None,
) -> Iterator[Part]:
    """Clipped rows in parts of about `full` bytes; `weights` are those of all rows, in the order of the blocks."""
    cells = None if weights is None else column_cells(weights, ONE_WEIGHT_EACH)
    waiting, size, n_rows = [], 0, 0
    for X, y in blocks:
        own = None if cells is None else cells[n_rows : n_rows + X.shape[0]]
        part = domain.part(X, y, labels=labels, weights=own)
        n_rows += len(part)
        waiting.append(part)
        size += part.values.nbytes + part.indices.nbytes + 16 * len(part)
        if size >= full:
            yield joined(waiting)
            waiting, size = [], 0
    if cells is not None and len(cells) != n_rows:
        raise SchemaError(ONE_WEIGHT_EACH)
    if waiting:
        yield joined(waiting)


@dataclass(frozen=True, eq=False)
class Meeting:
    """How the rows of some persons meet in a new part: these rows of every old one, then in this order."""

    taken: list[np.ndarray]
    order: np.ndarray
    starts: np.ndarray

    def part(self, pieces: Sequence[Part]) -> Part:
        return joined(pieces).take(self.order, self.starts)


def meetings(groups: Any, sizes: Sequence[int]) -> list[Meeting]:
    """New parts, each about as large as an old one, whose rows are sorted by person as `Domain.part` sorts them and
    no two of which share a person. A table that is sorted already stays as it is cut."""
    ends = np.cumsum([0, *sizes])
    order, starts = by_person(groups, int(ends[-1]))
    found = []
    for a, b in pairwise(np.unique(starts[np.searchsorted(starts, ends)])):
        wanted = np.sort(order[a:b])
        cuts = pairwise(np.searchsorted(wanted, ends))
        taken = [wanted[lo:hi] - first for (lo, hi), first in zip(cuts, ends[:-1], strict=True)]
        own = starts[(starts >= a) & (starts <= b)] - a
        found.append(Meeting(taken, np.searchsorted(wanted, order[a:b]), own))
    return found


def rows_of(part: Part, rows: np.ndarray) -> Part:
    """These rows, whose persons are named later."""
    return part.take(rows, np.arange(len(rows) + 1))


def by_persons(store: Stored, groups: Any) -> Stored:
    """The same rows sorted by person, one pass over all parts for every new one."""
    grouped = Stored(store.memory)
    for meeting in meetings(groups, store.collect(len)):
        pieces = [rows_of(p, rows) for p, rows in zip(store, meeting.taken, strict=True)]
        grouped.append(meeting.part(pieces))
    return grouped


# ---- the sources that `Rows` offers --------------------------------------------------------------


def of_svmlight(
    paths: Paths,
    *,
    n_features: int,
    zero_based: bool = False,
    memory: Size = "2GB",
) -> Source:
    """Files of svmlight lines with a public width."""
    files = _existing(paths)

    def blocks(labels: np.ndarray | None) -> Iterator[Block]:
        for file in files:
            yield from iter_svmlight(file, n_features=n_features, zero_based=zero_based)

    return Blocks(blocks, n_features, read_size(memory))


def of_csv(
    paths: Paths,
    *,
    target: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    memory: Size = "2GB",
) -> Source:
    """Text files with the same header line; all columns but `target` and `drop`, or those in `features`. What separates
    cells (`sep`), decimal commas and the encoding are stated as for `dpsparse.io.read_table`."""
    tabs = all(".tsv" in file.suffixes for file in _existing(paths))
    layout = Layout("tsv" if tabs else "csv", sep, decimal, encoding)
    return of_files(paths, layout, Chosen(target, None, drop, features), memory)


def of_parquet(
    paths: Paths,
    *,
    target: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    memory: Size = "2GB",
) -> Source:
    """Parquet files, or a folder of them, with a column for every feature."""
    if isinstance(paths, (str, os.PathLike)) and Path(paths).is_dir():
        unreadable = f"{paths} is not a folder of Parquet files."
        folder = without_leaking_errors(unreadable, _parquet_folder, paths)
        return of_batches(folder, target=target, drop=drop, features=features, memory=memory)
    chosen = Chosen(target, None, drop, features)
    return of_files(paths, Layout("parquet"), chosen, memory)


def _parquet_folder(folder: Any) -> Any:
    from pyarrow import dataset

    return dataset.dataset(folder, format="parquet", partitioning="hive")


def of_files(paths: Paths, layout: Layout, chosen: Chosen, memory: Size = "2GB") -> Source:
    """Files of any format with the same named columns."""
    files = _existing(paths)
    streams = [partial(open_stream, file, layout) for file in files]
    names, blocks = stream_blocks(streams, chosen, layout.decimal)
    return Blocks(blocks, len(names), read_size(memory), names)


def of_batches(
    batches: Any,
    *,
    target: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    memory: Size = "2GB",
) -> Source:
    """Rows from anywhere: Arrow record batches (an iterable, or a function that returns one), a polars lazy frame, a
    DuckDB relation, an Arrow table, reader or dataset. An iterator can be read only once."""
    names, blocks = batch_blocks(batches, Chosen(target, None, drop, features))
    return Blocks(blocks, len(names), read_size(memory), names)


def of_csr(X: sp.csr_array, y: np.ndarray, *, memory: Size = "2GB") -> Source:
    """A CSR matrix whose arrays may be memory-mapped files, read a block of rows at a time."""
    if not isinstance(X, (sp.csr_array, sp.csr_matrix)):
        raise SchemaError("X must be a CSR matrix; its arrays may be memory-mapped (np.memmap).")
    if len(y) != X.shape[0]:
        raise SchemaError("X and y have different numbers of rows; pass one target per row.")
    y = decoded(y)
    size = read_size(memory)
    most = bytes_of_a_part(size) // 16  # entries of a block

    def blocks(labels: np.ndarray | None) -> Iterator[Block]:
        start, n = 0, X.shape[0]
        while start < n:
            last = np.searchsorted(X.indptr, int(X.indptr[start]) + most, side="right") - 1
            stop = min(max(int(last), start + 1), start + most, n)
            a, b = int(X.indptr[start]), int(X.indptr[stop])
            block = sp.csr_array(
                (np.array(X.data[a:b]), np.array(X.indices[a:b]), X.indptr[start : stop + 1] - a),
                shape=(stop - start, X.shape[1]),
            )
            for array in (X.data, X.indices):
                _forget(array)
            yield block, np.asarray(y[start:stop])
            start = stop

    return Blocks(blocks, int(X.shape[1]), size)


def _forget(array: np.ndarray) -> None:
    """Give back the pages of a read-only mapped file; they are read again where somebody asks."""
    base: Any = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):  # Windows has no such advice
        base.madvise(mmap.MADV_DONTNEED)


def _existing(paths: Paths) -> tuple[Path, ...]:
    many = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = tuple(Path(path) for path in many)
    if not files:
        raise ParameterError("paths is empty; name at least one file.")
    for file in files:
        if not file.is_file():
            raise SchemaError(f"There is no file {file}.")
    return files

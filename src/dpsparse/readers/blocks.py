"""Files as streams of blocks (X, y, bytes read so far), so that a table larger than memory can be clipped and stored.

Targets have the type of the declared labels, and are numbers where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse._cells import read_targets
from dpsparse._checks import quietly
from dpsparse.exceptions import SchemaError
from dpsparse.readers.svmlight import iter_svmlight
from dpsparse.readers.tables import (
    _arrow_numbers,
    _choose,
    _numbers,
    _sparse,
    arrow_batches,
    csv_table,
)

Block = tuple[sp.csr_array, np.ndarray, int]
Stream = Callable[[np.ndarray | None], Iterator[Block]]


def svmlight_blocks(
    files: Sequence[Path], *, n_features: int, zero_based: bool = False
) -> Iterator[Block]:
    """Blocks of about 4 MB of text."""
    before = 0
    for file in files:
        size = file.stat().st_size
        position = 0
        for X, y in iter_svmlight(file, n_features=n_features, zero_based=zero_based):
            position = min(position + 2**22, size)
            yield X, y, before + position
        before += size


def csv_blocks(
    files: Sequence[Path],
    *,
    target: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    separator: str = ",",
) -> tuple[tuple[str, ...], Stream]:
    """Names of the features, and the stream; every file has the same header."""
    with csv_table(files[0], separator) as (first, _):
        columns, (at, _) = _choose(first, target, None, drop, features)

    def blocks(labels: np.ndarray | None) -> Iterator[Block]:
        before = 0
        for file in files:
            with csv_table(file, separator) as (names, chunks):
                if names != first:
                    raise SchemaError(
                        f"{file.name} has other columns than the first file; all files need the same header line."
                    )
                for rows, position in chunks:
                    y = read_targets([row[at] for row in rows], labels)
                    yield _sparse(_numbers(rows, columns)), y, before + position
            before += file.stat().st_size

    return tuple(first[j] for j in columns), blocks


def parquet_blocks(
    files: Sequence[Path],
    *,
    target: str,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    sparse: tuple[str, str] | None = None,
    n_features: int | None = None,
) -> tuple[tuple[str, ...] | None, int, Stream]:
    """Names (None for sparse rows), width and stream. Sparse rows are two columns of lists, indices and values."""
    with arrow_batches(files[0], "parquet") as (first, _):
        columns, (at, _) = _choose(first, target, None, drop, features or sparse)
    chosen = [first[j] for j in columns]

    def of(file: Path, labels: np.ndarray | None) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
        with arrow_batches(file, "parquet") as (_, batches):
            for batch in batches([*chosen, first[at]]):
                y = read_targets(batch.column(target).to_pylist(), labels)
                if sparse is not None:
                    places, numbers = (batch.column(name) for name in sparse)
                    yield _rows_of_lists(places, numbers, int(n_features or 0)), y
                else:
                    yield _sparse(_arrow_numbers(batch, chosen)), y

    def blocks(labels: np.ndarray | None) -> Iterator[Block]:
        before = 0
        for file in files:
            sentence = f"{file.name} is not a readable Parquet file with the columns of the first."
            parts = of(file, labels)
            while (part := quietly(sentence, next, parts, None)) is not None:
                yield *part, before
            before += file.stat().st_size

    if sparse is not None:
        return None, int(n_features or 0), blocks
    return tuple(chosen), len(chosen), blocks


def _rows_of_lists(indices: Any, values: Any, n_features: int) -> sp.csr_array:
    """CSR of two columns of lists; the order within a row is put right later, by the domain."""
    indptr = np.asarray(indices.offsets.to_numpy(), np.int64)
    other = np.asarray(values.offsets.to_numpy(), np.int64)
    if indices.null_count or values.null_count or np.any(np.diff(indptr) != np.diff(other)):
        raise SchemaError("Every row needs as many indices as values, and no missing list.")
    columns = indices.values.to_numpy(zero_copy_only=False)[indptr[0] : indptr[-1]]
    numbers = values.values.to_numpy(zero_copy_only=False)[other[0] : other[-1]]
    if columns.dtype.kind not in "iu" or numbers.dtype.kind not in "iuf":
        raise SchemaError("Lists of indices must hold whole numbers, lists of values numbers.")
    if len(columns) and not (columns.min() >= 0 and columns.max() < n_features):
        raise SchemaError("An index lies outside 0..n_features-1; state the public n_features.")
    kind = np.int32 if max(n_features, len(columns)) < 2**31 else np.int64
    return sp.csr_array(
        (numbers.astype(np.float64), columns.astype(kind), (indptr - indptr[0]).astype(kind)),
        shape=(len(indptr) - 1, n_features),
    )

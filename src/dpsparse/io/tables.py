"""`read_table` and `read_columns`: one reader of every format, for numbers and for raw columns.

A table has named columns: one is the target, one may name persons, the others are features. Messages show no cell, and
do not say in which column a bad cell stands.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse._cells import (
    column_cells,
    is_missing,
    label_codes,
    person_names,
    read_targets,
    sparse_entries,
    to_numbers,
    with_decimal_point,
)
from dpsparse._checks import no_column, objects_of, without_leaking_errors
from dpsparse.exceptions import ParameterError, SchemaError
from dpsparse.io.streams import (
    Columns,
    Layout,
    Stream,
    batch_stream,
    open_stream,
    read_svmlight,
    stream_names,
)

Path_ = str | os.PathLike[str]


@dataclass(frozen=True, eq=False, repr=False)  # a repr would print private targets
class Table:
    """What a file holds: features, targets and persons (None if not asked for), column names. Rows that are prepared
    or streamed later stand in `X` as raw columns or as a source."""

    X: Any
    y: np.ndarray | None
    feature_names: tuple[str, ...] | None
    persons: np.ndarray | None = None


class NotNumericTable(SchemaError):
    """A feature holds something else than numbers and missing values."""


def read_table(
    path: Path_,
    *,
    target: str | None = None,
    person: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    format: str | None = None,
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    classes: Any = None,
    drop_missing_target: bool = False,
) -> Table:
    """A table of numbers from a file: CSV, TSV, JSON lines, Excel, Parquet or svmlight.

    Parameters
    ----------
    path : path
        The file.
    target : str or None, default=None
        Column of the target; svmlight files carry their labels themselves.
    person : str or None, default=None
        Column that names the person of every row; not a feature.
    drop : sequence of str, default=()
        Columns that are not features.
    features : sequence of str or None, default=None
        Exactly these columns, in this order (the names a model was trained with); others are
        ignored. None takes every column but the target, the dropped ones, and the row numbers that pandas writes
        (``Unnamed: 0``, ``__index_level_0__``, or no name).
    n_features : int or None, default=None
        Public width of a svmlight file.
    zero_based : bool, default=False
        Whether the first feature of a svmlight file is 0.
    format : {"svmlight", "csv", "tsv", "jsonl", "json", "xlsx", "parquet"} or None, default=None
        None follows the file's name.
    sep : str or None, default=None
        What separates the cells of a text file, such as ``";"`` or ``"|"``; None is a comma, in .tsv files a tab.
    decimal : {".", ","}, default="."
        With ``","``, 31.015,50 is the number 31015.5.
    encoding : str, default="utf-8"
        Of a text file, such as ``"latin-1"`` or ``"utf-16"``.
    classes : sequence, "observed" or None, default=None
        The labels that the target may have, as in `Domain`; `y` then has their type. None reads numbers. What cells
        hold decides nothing.
    drop_missing_target : bool, default=False
        Leave out rows without a target instead of refusing the table. Only for add-remove neighbours.

    Returns
    -------
    Table
        Features `X` (CSR), targets `y`, names of columns and persons.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpsparse.io import read_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "table.csv")
    >>> _ = path.write_text("age;dose;ill\\n40;1,5;1\\n57;0,0;0\\n")
    >>> table = read_table(path, target="ill", sep=";", decimal=",")
    >>> table.X.toarray().tolist(), table.feature_names
    ([[40.0, 1.5], [57.0, 0.0]], ('age', 'dose'))
    >>> folder.cleanup()
    """
    path, layout = Path(path), Layout(format, sep, decimal, encoding)
    if layout.kind(path) == "svmlight":
        if person is not None:
            raise SchemaError("A svmlight file has no column of persons; use CSV or Parquet.")
        X, y = read_svmlight(path, n_features=n_features, zero_based=zero_based)
        if X.shape[0] == 0:
            raise _no_rows(path)
        return Table(X, y if classes is None else read_targets(y, classes), None)
    chosen = Chosen(target, person, drop, features)

    def read() -> Table:
        with open_stream(path, layout) as stream:
            names = chosen.features_of(stream.names)
            parts = list(_number_parts(stream, names, chosen.others, layout.decimal))
        if not parts:
            raise _no_rows(path)
        cells = {name: np.concatenate([more[name] for _, more in parts]) for name in chosen.others}
        X = sp.vstack([block for block, _ in parts], format="csr")
        if target is not None and drop_missing_target:
            kept = has_target(cells[target], classes)
            X, cells = X[kept], {name: column[kept] for name, column in cells.items()}
        if X.shape[0] == 0:
            raise _no_rows(path)
        return Table(
            X,
            None if target is None else targets_of(cells[target], classes, layout.decimal),
            tuple(names),
            None if person is None else person_names(column_cells(cells[person])),
        )

    return without_leaking_errors(f"{path.name} is not a readable table.", read)


def read_columns(
    path: Path_,
    *,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    sep: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    names: Collection[str] = (),
) -> Columns:
    """The columns of a file by name, cells as they are.

    JSON has no header: without `columns` all objects must have the same keys.

    Parameters
    ----------
    path : path
        The file.
    columns : sequence of str or None, default=None
        Which columns to read, in this order. None reads all.
    format, sep, decimal, encoding : see `read_table`
        How the file is written.
    names : collection of str, default=()
        Columns that hold names rather than numbers; a decimal comma changes nothing in them.

    Returns
    -------
    dict of arrays
        By name of the column.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpsparse.io import read_columns
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "table.csv")
    >>> _ = path.write_text("age,dose,ill\\n40,1.5,1\\n57,0.0,0\\n")
    >>> list(read_columns(path, columns=["dose"]))
    ['dose']
    >>> folder.cleanup()
    """
    path, layout = Path(path), Layout(format, sep, decimal, encoding)

    def read() -> Columns:
        with open_stream(path, layout, columns) as stream:
            wanted = stream.names if columns is None else list(columns)
            check_names(stream.names, wanted)
            batches = list(stream.batches(wanted, ()))
        if not batches:
            raise _no_rows(path)
        cells = {name: _joined([batch[name] for batch in batches]) for name in wanted}
        if decimal == ",":
            return {n: c if n in names else with_decimal_point(c) for n, c in cells.items()}
        return cells

    return without_leaking_errors(f"{path.name} is not a readable table.", read)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """One column of several batches; where their types differ, cells stay as they are."""
    if len({part.dtype for part in parts}) == 1:
        return np.concatenate(parts)
    return objects_of(chain.from_iterable(part.tolist() for part in parts))


def column_names(
    path: Path_, format: str | None = None, *, sep: str | None = None, encoding: str = "utf-8"
) -> list[str]:
    """The names of the columns of a file, from its header line or schema; of JSON the keys that all objects have."""
    path, layout = Path(path), Layout(format, sep, encoding=encoding)
    unreadable = f"{path.name} is not a readable table."
    return without_leaking_errors(unreadable, stream_names, path, layout)


# ---- which column is what -------------------------------------------------------------------------


@dataclass(frozen=True)
class Chosen:
    """What was said about the columns of a table of numbers."""

    target: str | None = None
    person: str | None = None
    drop: Sequence[str] = ()
    features: Sequence[str] | None = None
    weight: str | None = None

    @property
    def others(self) -> list[str]:
        """Target, person and weight, where there are any."""
        return [name for name in (self.target, self.person, self.weight) if name is not None]

    def features_of(self, names: Sequence[str]) -> list[str]:
        """The features among these columns; what is missing or named twice is refused."""
        found = [] if self.features is None else list(self.features)
        check_names(names, [*self.others, *self.drop, *found])
        if self.features is None:
            left_out = {*self.others, *self.drop, *index_columns(names)}
            found = [name for name in names if name not in left_out]
        if not found:
            raise SchemaError("There is no column left to learn from.")
        return found


def check_names(names: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse columns of the same name, and names that are not there."""
    if len(set(names)) != len(names):
        raise SchemaError(
            "Two columns have the same name; rename one. The first line of a file must name the columns."
        )
    for name in wanted:
        if name not in names:
            raise no_column(name, names, wanted)


def index_columns(names: Sequence[str]) -> list[str]:
    """Columns that hold the row numbers which pandas wrote, by their names; one without a name only if it is first."""
    index = re.compile(r"__index_level_\d+__|Unnamed: 0(_level_\d+)?|")
    return [name for j, name in enumerate(names) if index.fullmatch(name) and (name or j == 0)]


def has_target(cells: np.ndarray, classes: Any) -> np.ndarray:
    """Which rows have a target; a declared label is one, also if it is a word for a missing value."""
    there = np.array([not is_missing(cell) for cell in cells.tolist()], bool)
    if classes is not None and not isinstance(classes, str):
        there |= label_codes(column_cells(cells), np.unique(np.asarray(classes))) >= 0
    return there


def targets_of(cells: np.ndarray, classes: Any, decimal: str = ".") -> np.ndarray:
    """Targets in the declared type; only numbers are written with a decimal comma."""
    if classes is None and decimal == ",":
        cells = with_decimal_point(cells)
    return read_targets(cells, classes)


def _no_rows(path: Path) -> SchemaError:
    return SchemaError(f"{path.name} holds no rows.")


# ---- numbers --------------------------------------------------------------------------------------


def _number_parts(
    stream: Stream, features: Sequence[str], others: Sequence[str], decimal: str
) -> Iterator[tuple[sp.csr_array, Columns]]:
    """Features as sparse rows, and the cells of the other columns, batch by batch."""
    wanted = [*features, *(name for name in others if name not in features)]
    numbers = set(features) - set(others) if decimal == "." else ()
    for batch in stream.batches(wanted, numbers):
        dense = _numbers(batch, features, decimal)
        indptr, indices, entries = sparse_entries(dense)
        X = sp.csr_array((entries, indices, indptr), shape=dense.shape)
        yield X, {name: batch[name] for name in others}


def _numbers(batch: Columns, features: Sequence[str], decimal: str) -> np.ndarray:
    dense = np.empty((len(batch[features[0]]), len(features)))
    for k, name in enumerate(features):
        cells = batch[name] if decimal == "." else with_decimal_point(batch[name])
        dense[:, k] = feature_numbers(cells)
    return dense


def feature_numbers(cells: np.ndarray) -> np.ndarray:
    """The cells of a feature as float64, NaN for missing ones. The column of a cell that is no number is not
    named: one row could decide it."""
    try:
        return to_numbers(cells)
    except ValueError:
        pass
    raise NotNumericTable(
        "A feature has a cell that is no number; drop such columns, or encode them with a public vocabulary."
    )


# ---- blocks of rows, for tables larger than memory -------------------------------------------------

Block = tuple[sp.csr_array, np.ndarray]  # features and targets
Blocks = Callable[[np.ndarray | None], Iterator[Block]]  # of declared labels, or None for numbers


def batch_blocks(rows: Any, chosen: Chosen) -> tuple[tuple[str, ...], Blocks]:
    """`stream_blocks` of Arrow record batches."""
    stream = without_leaking_errors("The batches cannot be read.", batch_stream, rows)
    return stream_blocks([lambda: nullcontext(stream)], chosen, ".")


def stream_blocks(
    streams: Sequence[Callable[[], AbstractContextManager[Stream]]], chosen: Chosen, decimal: str
) -> tuple[tuple[str, ...], Blocks]:
    """Names of the features, and the blocks of streams that all have the same columns."""

    def names_of() -> tuple[list[str], list[str]]:
        with streams[0]() as stream:
            return stream.names, chosen.features_of(stream.names)

    first, features = without_leaking_errors("The first file is not a readable table.", names_of)
    target = str(chosen.target)

    def parts(labels: np.ndarray | None) -> Iterator[Block]:
        for open_ in streams:
            with open_() as stream:
                if stream.names != first:
                    raise SchemaError(
                        "A file has other columns than the first; all files need the same header."
                    )
                for X, cells in _number_parts(stream, features, [target], decimal):
                    yield X, targets_of(cells[target], labels, decimal)

    def blocks(labels: np.ndarray | None) -> Iterator[Block]:
        rows, unreadable = parts(labels), "The rows are not a readable table."
        while (block := without_leaking_errors(unreadable, next, rows, None)) is not None:
            yield block

    return tuple(features), blocks


def label_list(text: str) -> list[Any]:
    """Declared labels `"0,1"` or `"no,yes"`: numbers where all of them are finite numbers, texts otherwise."""
    labels = [cell.strip() for cell in chain.from_iterable(csv.reader([text]))]
    if "" in labels:
        raise ParameterError("The list of classes has an empty label; write it like 0,1 or no,yes.")
    try:
        numbers = [float(label) for label in labels]
    except ValueError:
        return list(labels)
    if not all(map(math.isfinite, numbers)):
        return list(labels)
    return [int(v) if v.is_integer() else v for v in numbers]

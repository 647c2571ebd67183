"""CSV and Parquet as sparse matrices, and one `read_table` for every format.

A table has named columns: one is the target, the others are features and must be numeric.
Messages show no cell, and do not say in which column a bad cell stands.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from dpsparse._cells import column_cells, person_names, read_targets, to_numbers
from dpsparse._checks import array_of, no_column, objects_of, quietly
from dpsparse.exceptions import ParameterError, SchemaError
from dpsparse.readers.files import COMPRESSIONS, open_bytes, pyarrow_for
from dpsparse.readers.svmlight import read_svmlight

# One cell of more than 131,072 characters would refuse the whole table.
csv.field_size_limit(2**31 - 1)
_BLOCK = 2**24  # bytes that pyarrow cuts into cells at a time
ROWS = 20_000  # rows converted at a time, so that the dense form never exists as a whole
FORMATS = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".txt": "svmlight",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}


@dataclass(frozen=True, eq=False, repr=False)  # a repr would print private targets
class Table:
    """What a file holds: features, targets and persons (None if not asked for), column names."""

    X: sp.csr_array
    y: np.ndarray | None
    feature_names: tuple[str, ...] | None
    persons: np.ndarray | None = None


class NotNumericTable(SchemaError):
    """A feature holds something else than numbers and missing values."""


def read_table(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    person: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    n_features: int | None = None,
    zero_based: bool = False,
    format: str | None = None,
    classes: Any = None,
) -> Table:
    """Read svmlight, CSV, TSV, JSON lines, Parquet or Arrow; the format follows from the name unless stated.

    Parameters
    ----------
    path : path
    target : str or None
        Column of the target (CSV and Parquet); svmlight files carry their labels themselves.
    person : str or None
        Column that names the person of every row (CSV and Parquet); not a feature.
    drop : sequence of str
        Columns that are not features.
    features : sequence of str or None
        Exactly these columns, in this order (the names a model was trained with); others are
        ignored. None takes every column but the target and the dropped ones.
    n_features : int or None
        Public width of a svmlight file.
    zero_based : bool
        Whether the first feature of a svmlight file is 0.
    format : {"svmlight", "csv", "tsv", "jsonl", "parquet", "arrow"} or None
    classes : sequence, "observed" or None
        The labels that the target may have, as in `Domain`; `y` then has their type. None reads numbers. What cells
        hold decides nothing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpsparse.readers import read_table
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "table.csv")
    >>> _ = path.write_text("age,dose,ill\\n40,1.5,1\\n57,0.0,0\\n")
    >>> table = read_table(path, target="ill")
    >>> table.X.toarray().tolist(), table.feature_names
    ([[40.0, 1.5], [57.0, 0.0]], ('age', 'dose'))
    >>> folder.cleanup()
    """
    kind = format or format_of(Path(path))
    if kind == "svmlight":
        if person is not None:
            raise SchemaError("A svmlight file has no column of persons; use CSV or Parquet.")
        X, y = read_svmlight(path, n_features=n_features, zero_based=zero_based)
        if X.shape[0] == 0:
            raise _no_rows(path)
        return Table(X, y if classes is None else read_targets(y, classes), None)
    readers: dict[str, Any] = {
        "csv": _read_csv, "tsv": _read_csv, "parquet": _read_arrow, "arrow": _read_arrow, "jsonl": _read_json,
    }  # fmt: skip
    reader = readers.get(kind)
    if reader is None:
        raise SchemaError(f"Unknown format {kind!r}; use svmlight, {', '.join(readers)}.")
    table: Table = quietly(
        f"{Path(path).name} is not a readable table.",
        reader, path, kind, lambda names: _choose(names, target, person, drop, features), classes,
    )  # fmt: skip
    return table


def format_of(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix in COMPRESSIONS:
        suffix = Path(path.stem).suffix.lower()
    if suffix not in FORMATS:
        raise SchemaError(
            f"The name {path.name} does not say its format; name it .svm, .csv, .tsv, .jsonl, .parquet "
            "or .arrow (text also .gz, .bz2, .xz, .zst), or state the format."
        )
    return FORMATS[suffix]


def separator_of(kind: str) -> str:
    return "\t" if kind == "tsv" else ","


Chooser = Callable[[list[str]], tuple[list[int], list[int]]]


def _choose(
    names: list[str],
    target: str | None,
    person: str | None,
    drop: Sequence[str],
    features: Sequence[str] | None,
) -> tuple[list[int], list[int]]:
    """Positions of the feature columns, and of target and person (-1 where there is none)."""
    if len(set(names)) != len(names):
        raise SchemaError(
            "Two columns have the same name; rename one. The first line of a file must name the columns."
        )
    others = [target, person]
    wanted = [*(name for name in others if name is not None), *drop, *(features or [])]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise no_column(missing[0], names, wanted)
    where = {name: position for position, name in enumerate(names)}
    if features is None:
        features = [name for name in names if name not in others and name not in drop]
    if not features:
        raise SchemaError("There is no column left to learn from.")
    return [where[name] for name in features], [
        -1 if name is None else where[name] for name in others
    ]


# ---- CSV ----------------------------------------------------------------------------------------


def _read_csv(path: str | os.PathLike[str], kind: str, choose: Chooser, classes: Any) -> Table:
    separator = separator_of(kind)
    table = quick_csv(path, separator, choose, classes)
    return _read_any_csv(path, separator, choose, classes) if table is None else table


def _read_any_csv(
    path: str | os.PathLike[str], separator: str, choose: Chooser, classes: Any
) -> Table:
    """Cell by cell in Python: what a table may look like, and what is said of one that cannot be read."""
    blocks: list[sp.csr_array] = []
    cells: tuple[list[Any], list[Any]] = [], []
    with csv_table(path, separator) as (names, chunks):
        columns, others = choose(names)
        for rows, _ in chunks:
            blocks.append(_sparse(_numbers(rows, columns)))
            for j, column in zip(others, cells, strict=True):
                if j >= 0:
                    column += [row[j] for row in rows]
    return _table(path, blocks, cells, columns, others, names, classes)


@contextmanager
def csv_table(
    path: str | os.PathLike[str], separator: str
) -> Iterator[tuple[list[str], Iterator[tuple[list[list[str]], int]]]]:
    """The names of the columns, and rows of as many cells in chunks, each with the bytes read so far."""
    path = Path(path)

    def chunks() -> Iterator[tuple[list[list[str]], int]]:
        while chunk := list(islice(lines, ROWS)):
            try:
                rows = [row for row in csv.reader(chunk, delimiter=separator, strict=True) if row]
            except csv.Error:
                raise SchemaError(f"{path.name} is not a readable table.") from None
            if any(len(row) != len(names) for row in rows):
                raise SchemaError(
                    f"A line of {path.name} does not have {len(names)} cells like the header."
                )
            if rows:
                yield rows, 0 if path.suffix.lower() in COMPRESSIONS else raw.tell()

    with open_bytes(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
        lines = _text_lines(text)
        names = table_header(lines, separator, path.name)
        yield names, chunks()


def _text_lines(text: io.TextIOWrapper) -> Iterator[str]:
    """Lines, with a cell's quoted line break kept inside its line."""
    try:
        parts: list[str] = []
        open_quote = False
        for line in text:
            open_quote ^= line.count('"') % 2 == 1
            parts.append(line)
            if not open_quote:
                yield "".join(parts)
                parts = []
        if parts:
            yield "".join(parts)
    except UnicodeDecodeError:
        raise SchemaError("The table is not UTF-8 text; save it as UTF-8.") from None


def table_header(lines: Iterator[str], separator: str, name: str) -> list[str]:
    first = next(lines, "")
    try:
        names = next(csv.reader([first], delimiter=separator, strict=True), [])
    except csv.Error:
        names = []
    names = [cell.strip() for cell in names]
    if not any(names):
        raise SchemaError(f"{name} has no header line; the first line must name the columns.")
    if len(names) == 1 and ";" in names[0]:
        raise SchemaError(f"{name} is separated by semicolons; save it with commas or tabs.")
    if all(re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", cell, re.IGNORECASE) for cell in names):
        raise SchemaError(f"{name} begins with numbers; the first line must name the columns.")
    return names


def _numbers(rows: list[list[str]], columns: list[int]) -> np.ndarray:
    """The feature cells as float64, NaN for missing ones. NumPy parses text cells as Python's float() does."""
    cells = [row if len(columns) == len(row) else [row[j] for j in columns] for row in rows]
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return np.column_stack(
            [feature_numbers(objects_of(column)) for column in zip(*cells, strict=True)]
        )


def feature_numbers(cells: np.ndarray) -> np.ndarray:
    """The cells of a feature as float64, NaN for missing ones. In which column a cell is no number is not told: one row
    could decide it."""
    try:
        return to_numbers(cells)
    except ValueError:
        pass
    raise NotNumericTable(
        "A feature has a cell that is no number; drop such columns, or encode them with a public vocabulary."
    )


class _Unusual(Exception):
    """This file is not for the quick reader; carries nothing."""


def quick_csv(
    path: str | os.PathLike[str], separator: str, choose: Chooser, classes: Any
) -> Table | None:
    """The same table by pyarrow, a dozen times faster; None where it is not installed or not certain to agree.

    Both readers round decimals correctly. Anything on which they might differ (quotes, lone carriage returns,
    NUL, numbers that are not finite, whatever pyarrow refuses) is left to the other one, and so is every error.
    """
    try:
        import pyarrow as pa
    except ImportError:
        return None
    name, blocks = Path(path).name, []
    cells: tuple[list[Any], list[Any]] = [], []
    try:
        with open_bytes(path) as raw:
            first = raw.readline(_BLOCK).removeprefix(b"\xef\xbb\xbf")
            if not first.endswith(b"\n") or b'"' in first or b"\r" in first.removesuffix(b"\r\n"):
                return None
            names = table_header(iter([first.decode()]), separator, name)
            columns, others = choose(names)
            for block in _whole_lines(raw):
                batch = _arrow_cells(block, separator, len(names), columns, others)
                dense = np.empty((batch.num_rows, len(columns)))
                for k, j in enumerate(columns):
                    dense[:, k] = batch.column(str(j)).to_numpy()
                if not (np.isfinite(dense.min()) and np.isfinite(dense.max())):
                    return None
                blocks.append(_sparse(dense))
                for j, column in zip(others, cells, strict=True):
                    if j >= 0:
                        column += batch.column(str(j)).chunks
            columns_of_text = [pa.chunked_array(chunks, pa.string()) for chunks in cells]
    except (pa.ArrowException, _Unusual, UnicodeDecodeError, SchemaError):
        return None
    if not blocks:
        return None
    targets, persons = columns_of_text
    y = None if others[0] < 0 else _text_targets(targets, classes)
    return _joined(blocks, columns, others, names, y, persons.to_pylist())


def _text_targets(texts: Any, classes: Any) -> np.ndarray:
    """Targets of a column of text; every different text is read once."""
    encoded = texts.combine_chunks().dictionary_encode()
    different = encoded.dictionary.to_pylist()
    return np.asarray(read_targets(different, classes)[encoded.indices.to_numpy()])


def _whole_lines(raw: BinaryIO) -> Iterator[bytes]:
    """Blocks that end where a line does, of text that every reader cuts into the same cells."""
    rest = b""
    while data := raw.read(_BLOCK):
        cut = data.rfind(b"\n") + 1
        if cut == 0:
            rest += data
            if len(rest) > 8 * _BLOCK:
                raise _Unusual
            continue
        yield from _checked(rest + data[:cut])
        rest = data[cut:]
    yield from _checked(rest)


def _checked(block: bytes) -> Iterator[bytes]:
    if b'"' in block or b"\0" in block:
        raise _Unusual
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        raise _Unusual
    if not block.isascii():
        block.decode()  # refuses what is not UTF-8
    if block.isspace() and block.strip(b"\r\n"):
        raise _Unusual
    if block and not block.isspace():
        yield block


def _arrow_cells(
    block: bytes, separator: str, n_cells: int, columns: list[int], others: list[int]
) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow

    types = {str(j): pa.float64() for j in columns}
    types |= {str(j): pa.string() for j in others if j >= 0}
    return arrow.read_csv(
        pa.py_buffer(block),
        read_options=arrow.ReadOptions(column_names=[str(j) for j in range(n_cells)]),
        parse_options=arrow.ParseOptions(delimiter=separator, quote_char=False),
        convert_options=arrow.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=[],
            strings_can_be_null=False,
        ),
    )


# ---- Parquet and Arrow --------------------------------------------------------------------------


def _read_arrow(path: str | os.PathLike[str], kind: str, choose: Chooser, classes: Any) -> Table:
    blocks: list[sp.csr_array] = []
    cells: tuple[list[Any], list[Any]] = [], []
    with arrow_batches(path, kind) as (names, batches):
        columns, others = choose(names)
        for batch in batches([names[j] for j in [*columns, *others] if j >= 0]):
            blocks.append(_sparse(_arrow_numbers(batch, [names[j] for j in columns])))
            for j, column in zip(others, cells, strict=True):
                if j >= 0:
                    column += batch.column(names[j]).to_pylist()
    return _table(path, blocks, cells, columns, others, names, classes)


def _arrow_numbers(batch: Any, names: list[str]) -> np.ndarray:
    """Features as float64, NaN for missing ones. The file's schema says which columns are numbers; others are refused
    whatever their cells are."""
    from pyarrow import types

    for name in names:
        kind = batch.schema.field(name).type
        if not (types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)):
            raise NotNumericTable(
                f"Column {name!r} is not of a type of numbers; drop it, or encode it with a public vocabulary."
            )
    return np.column_stack([feature_numbers(array_of(batch.column(name))) for name in names])


@contextmanager
def arrow_batches(
    path: str | os.PathLike[str], kind: str
) -> Iterator[tuple[list[str], Callable[[list[str]], Iterator[Any]]]]:
    """The names of the columns of a Parquet or Arrow file, and its rows in batches of some of them."""
    pa = pyarrow_for("Parquet and Arrow files")
    from pyarrow import feather, parquet

    if not Path(path).is_file():
        raise SchemaError(f"There is no file {path}.")
    try:
        if kind == "arrow":
            table = feather.read_table(path)
            yield list(table.column_names), lambda names: table.select(names).to_batches(ROWS)
        else:
            with parquet.ParquetFile(path) as file:
                yield (
                    list(file.schema_arrow.names),
                    lambda names: file.iter_batches(ROWS, columns=names),
                )
    except (pa.ArrowException, OSError):
        raise SchemaError(f"{Path(path).name} is not a readable Parquet or Arrow file.") from None


# ---- JSON lines ---------------------------------------------------------------------------------


def _read_json(path: str | os.PathLike[str], kind: str, choose: Chooser, classes: Any) -> Table:
    from dpsparse.readers.raw import read_columns  # which reads names and lines as this file does

    found = read_columns(path, format="jsonl")
    names = list(found)
    columns, others = choose(names)
    numbers = np.column_stack([feature_numbers(found[names[j]]) for j in columns])
    target, person = (found[names[j]].tolist() if j >= 0 else [] for j in others)
    return _table(path, [_sparse(numbers)], (target, person), columns, others, names, classes)


# ---- both ---------------------------------------------------------------------------------------


def _sparse(dense: np.ndarray) -> sp.csr_array:
    """The entries other than zero, NaN among them, a few times faster than SciPy finds them."""
    n, d = dense.shape
    there = dense != 0.0
    places = np.flatnonzero(there)  # thrice as fast on truth values as on numbers
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(there.sum(axis=1, dtype=np.int32), out=indptr[1:])
    entries = dense.reshape(-1)[places]
    return sp.csr_array((entries, (places % d).astype(np.int32), indptr), shape=(n, d))


def _table(
    path: str | os.PathLike[str],
    blocks: list[sp.csr_array],
    cells: tuple[list[Any], list[Any]],
    columns: list[int],
    others: list[int],
    names: list[str],
    classes: Any,
) -> Table:
    if not blocks:
        raise _no_rows(path)
    y = None if others[0] < 0 else read_targets(cells[0], classes)
    return _joined(blocks, columns, others, names, y, cells[1])


def _joined(
    blocks: list[sp.csr_array],
    columns: list[int],
    others: list[int],
    names: list[str],
    y: np.ndarray | None,
    persons: list[Any],
) -> Table:
    X = sp.vstack(blocks, format="csr")
    who = None if others[1] < 0 else person_names(column_cells(persons))
    return Table(X, y, tuple(names[j] for j in columns), who)


def _no_rows(path: str | os.PathLike[str]) -> SchemaError:
    return SchemaError(f"{Path(path).name} holds no rows.")


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

"""Any file as a stream of batches: of cells of named columns, or of sparse rows; every reader starts here.

    text       CSV, TSV: cells are texts without blanks around them
    JSON       a line for every object, or one array of objects
    Excel      the first sheet, whose first row names the columns
    Arrow      Parquet files; batches of polars, DuckDB and Arrow datasets
    svmlight   label index:value index:value ... # comment; no named columns, parsed by scikit-learn

How a file is cut into cells follows from its name, its header and `Layout`, never from a cell. A cell is read without
the other rows. Nothing is refused for what a single cell holds, and messages show no cell.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import numpy as np
import scipy.sparse as sp

from dpsparse._checks import array_of, objects_of, safe_repr, without_leaking_errors
from dpsparse.exceptions import ParameterError, SchemaError

# One cell of more than 131,072 characters would refuse the whole table.
csv.field_size_limit(2**31 - 1)
TEXT_BLOCK = 2**24  # characters of text that are parsed at a time
BATCH_ROWS = 20_000  # rows converted at a time, so that the dense form never exists as a whole
FORMATS = {
    "svmlight": (".svm", ".svmlight", ".libsvm", ".txt"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "xlsx": (".xlsx",),
    "parquet": (".parquet", ".pq"),
}

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Layout:
    """How a file is written: stated, or known from its name; never guessed from cells."""

    format: str | None = None
    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise ParameterError(
                f"Unknown format {safe_repr(self.format)}; use {', '.join(FORMATS)}."
            )
        if self.sep is not None and (len(self.separator("csv")) != 1 or self.sep in '"\r\n'):
            raise ParameterError(
                f"The separator (sep) must be one character, such as ; or | or tab, got {safe_repr(self.sep)}."
            )
        if self.decimal not in (".", ","):
            raise ParameterError(f"decimal must be '.' or ',', got {safe_repr(self.decimal)}.")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise ParameterError(
                f"There is no encoding {self.encoding!r}; use utf-8, latin-1, cp1252 or utf-16."
            ) from None

    def kind(self, path: Path) -> str:
        return self.format or format_of(path)

    def separator(self, kind: str) -> str:
        if self.sep is None:
            return "\t" if kind == "tsv" else ","
        words = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
        return words.get(self.sep, self.sep)


@dataclass(frozen=True)
class Stream:
    """A table that is open: the names of its columns, and a function that reads some of them from the start.

    `batches(wanted, numbers)` yields columns. Those of `numbers` may come as float64 where
    every cell of a batch is a plain finite number, which is faster; else they are cells like all others.
    """

    names: list[str]
    batches: Callable[[Sequence[str], Collection[str]], Iterator[Columns]]


def format_of(path: Path) -> str:
    """The format that a file's name tells."""
    suffix = path.suffix.lower()
    if suffix in COMPRESSIONS:
        suffix = Path(path.stem).suffix.lower()
    for kind, suffixes in FORMATS.items():
        if suffix in suffixes:
            return kind
    unknown = (
        f"The name {path.name} does not say its format; name it .svm, .csv, .tsv, .jsonl, .json, .xlsx or .parquet "
        "(text also .gz, .bz2, .xz), or"
    )
    raise SchemaError(
        f"{unknown} state the format.", in_options=f"{unknown} add --format csv (or another)."
    )


@contextmanager
def open_stream(
    path: Path, layout: Layout, stated: Sequence[str] | None = None
) -> Iterator[Stream]:
    """The table of a file. JSON objects have no header: their columns are those `stated`, or the keys that all have."""
    kind = layout.kind(path)
    if kind in ("csv", "tsv"):
        with _open_text(path, layout) as text:
            yield _text_stream(path, text, layout.separator(kind))
    elif kind in ("json", "jsonl"):
        yield _json_stream(path, kind, layout, stated)
    elif kind == "xlsx":
        with _open_sheet(path) as rows:
            yield _sheet_stream(path, rows)
    elif kind == "parquet":
        with _open_parquet(path) as stream:
            yield stream
    else:
        raise SchemaError(f"{path.name} ({kind}) has no named columns.")


# ---- bytes --------------------------------------------------------------------------------------


def pyarrow_for(files: str) -> Any:
    """pyarrow, which `files` of some kind need."""
    try:
        import pyarrow
    except ImportError:
        raise SchemaError(f"{files} need pyarrow: pip install 'dpsparse[parquet]'.") from None
    return pyarrow


COMPRESSIONS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


@contextmanager
def open_bytes(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """The (decompressed) bytes of a file; damage found while reading is a SchemaError."""
    path = Path(path)
    opener = COMPRESSIONS.get(path.suffix.lower(), open)
    try:
        with opener(path, "rb") as file:
            yield cast(BinaryIO, file)
    except FileNotFoundError:
        raise SchemaError(f"There is no file {path}.") from None
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile):
        raise SchemaError(f"{path.name} is not a complete {path.suffix} file.") from None
    except OSError as error:
        reason = error.strerror or "its compression is damaged"
        raise SchemaError(f"{path.name} cannot be read: {reason}.") from None


# ---- CSV and TSV ----------------------------------------------------------------------------------


@contextmanager
def _open_text(path: Path, layout: Layout, errors: str = "strict") -> Iterator[TextIO]:
    encoding = "utf-8-sig" if codecs.lookup(layout.encoding).name == "utf-8" else layout.encoding
    with (
        open_bytes(path) as raw,
        io.TextIOWrapper(raw, encoding=encoding, errors=errors, newline="") as text,
    ):
        try:
            yield text
        except UnicodeError:
            raise SchemaError(
                f"{path.name} is not {layout.encoding} text; state its encoding, such as latin-1, cp1252 or utf-16.",
                in_options=f"{path.name} is not {layout.encoding} text; add --encoding latin-1 (or cp1252, utf-16).",
            ) from None


def stream_names(path: Path, layout: Layout) -> list[str]:
    """The names of the columns. A byte of a row that is no text changes nothing: Python decodes some rows along with
    the header, and marks what it cannot decode."""
    kind = layout.kind(path)
    if kind not in ("csv", "tsv"):
        with open_stream(path, layout) as stream:
            return stream.names
    with _open_text(path, layout, "replace") as text:
        return _text_stream(path, text, layout.separator(kind)).names


def _text_stream(path: Path, text: TextIO, separator: str) -> Stream:
    first = text.readline()
    while first.count('"') % 2 and (more := text.readline()):
        first += more
    if "\ufffd" in first:  # the mark of bytes that are no text
        raise UnicodeError
    names = _text_header(first.removeprefix("\ufeff"), separator, path.name)

    def batches(wanted: Sequence[str], numbers: Collection[str]) -> Iterator[Columns]:
        for block in _whole_records(text, separator):
            columns = _cut_quickly(block, separator, names, wanted, numbers)
            if columns is None:
                columns = _cut(block, separator, names, wanted, numbers, path.name)
            if columns is not None:
                yield columns

    return Stream(names, batches)


def _text_header(first: str, separator: str, file: str) -> list[str]:
    try:
        names = next(csv.reader([first], delimiter=separator, strict=True), [])
    except csv.Error:
        names = []
    names = [cell.strip() for cell in names]
    if not any(names):
        raise SchemaError(f"{file} has no header line; the first line must name the columns.")
    for other, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars"), (",", "commas")):
        if len(names) == 1 and other in names[0]:
            shown = "tab" if other == "\t" else other
            raise SchemaError(
                f"{file} seems to be separated by {word}; state sep={shown!r}.",
                in_options=f"{file} seems to be separated by {word}; add --sep {shown!r}.",
            )
    if all(re.fullmatch(r"(?i)[-+]?[\d.]+(e[-+]?\d+)?", cell) for cell in names):
        raise SchemaError(f"{file} begins with numbers; the first line must name the columns.")
    return names


def _whole_records(text: TextIO, separator: str) -> Iterator[str]:
    """Blocks that end where a row ends: after a line break that is in no quoted cell. A quote opens one only where a
    cell begins: in 5" it is a letter, and to count all quotes would let that row cut the cells of others."""
    quoted = re.compile(rf'"(?<![^{re.escape(separator)}\r\n]")(?:[^"]+|"")*+(?:"|\Z)')
    rest = ""
    while chunk := text.read(TEXT_BLOCK):
        rest += chunk
        end, cut = len(rest), 0
        cells = [cell.span() for cell in quoted.finditer(rest)]
        for start, stop in reversed([(0, 0), *cells]):
            cut = rest.rfind("\n", stop, end) + 1
            if cut:
                break
            end = start
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def _cut(
    block: str,
    separator: str,
    names: list[str],
    wanted: Sequence[str],
    numbers: Collection[str],
    file: str,
) -> Columns | None:
    """The cells of a block by Python, which defines what a table is; None where it has no rows."""
    try:
        lines = csv.reader(io.StringIO(block, newline=""), delimiter=separator, strict=True)
        rows = [row for row in lines if row]
    except csv.Error:
        rows = [[]]
    if any(not row for row in rows):
        raise SchemaError(f"{file} is not a readable table.")
    if any(len(row) != len(names) for row in rows):
        raise SchemaError(f"A line of {file} does not have {len(names)} cells like the header.")
    if not rows:
        return None
    cells = dict(zip(names, zip(*rows, strict=True), strict=True))
    columns = {}
    for name in wanted:
        texts = [cell.strip() for cell in cells[name]]
        columns[name] = np.array(texts, object)
        if name in numbers:
            with suppress(ValueError):  # NumPy parses a text as Python's float() does
                columns[name] = np.array(texts, np.float64)
    return columns


def _cut_quickly(
    block: str, separator: str, names: list[str], wanted: Sequence[str], numbers: Collection[str]
) -> Columns | None:
    """The same cells by pyarrow, a dozen times faster; None where it is absent, or not certain to agree.

    Both round decimals correctly. Whatever they might see differently (quotes, lone carriage returns, NUL, numbers
    that are not finite, what pyarrow refuses) is left to the other one.
    """
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow
    except ImportError:
        return None
    if '"' in block or "\0" in block or block.isspace():
        return None
    if block.count("\r") != block.count("\r\n"):
        return None
    place = {name: str(j) for j, name in enumerate(names)}
    kinds = {place[n]: pa.float64() if n in numbers else pa.string() for n in wanted}
    try:
        table = arrow.read_csv(
            pa.py_buffer(block.encode()),
            read_options=arrow.ReadOptions(column_names=list(place.values())),
            parse_options=arrow.ParseOptions(delimiter=separator, quote_char=False),
            convert_options=arrow.ConvertOptions(
                column_types=kinds,
                include_columns=list(kinds),
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    columns = {}
    for name in wanted:
        column = table.column(place[name])
        if name in numbers:
            columns[name] = column.to_numpy()
            if not np.isfinite(columns[name]).all():
                return None
        else:
            columns[name] = np.array([cell.strip() for cell in column.to_pylist()], object)
    return columns


# ---- JSON -----------------------------------------------------------------------------------------


def _json_stream(path: Path, kind: str, layout: Layout, stated: Sequence[str] | None) -> Stream:
    shape = "one JSON object a line" if kind == "jsonl" else "one array of JSON objects"
    refused = SchemaError(f"{path.name} must hold {shape}.")

    def objects() -> Iterator[dict[str, Any]]:
        with _open_text(path, layout) as text:
            read = partial(json.loads, parse_int=_whole_number)
            rows: Any = map(read, filter(str.strip, text))
            if kind == "json":
                rows = read(text.read())
                if not isinstance(rows, list):
                    raise refused
            for row in rows:
                if not isinstance(row, dict):
                    raise refused
                yield row

    def batches(wanted: Sequence[str], numbers: Collection[str]) -> Iterator[Columns]:
        for rows in _chunks(objects()):
            yield {name: _stripped(row.get(name) for row in rows) for name in wanted}

    return Stream(_json_names(path, objects()) if stated is None else list(stated), batches)


def _whole_number(digits: str) -> Any:
    """A whole number; of so many digits that Python refuses to read them, a text of them, as in a CSV file."""
    return int(digits) if len(digits) <= sys.int_info.str_digits_check_threshold else digits


def _json_names(path: Path, objects: Iterator[dict[str, Any]]) -> list[str]:
    """The keys that all objects have. Were the keys of the first object the columns, one row and its place would decide
    the table, and a message would show them."""
    names: list[str] | None = None
    for row in objects:
        if names is None:
            names = list(row)
        elif row.keys() != set(names):
            raise SchemaError(
                f"The objects of {path.name} have different keys, and one row may not decide which columns there are. "
                "Write every key into every object, null where a row has none, or state the columns: "
                "read_columns(path, columns=[...])."
            )
    if names is None:
        raise SchemaError(f"{path.name} holds no rows.")
    return names


def _stripped(cells: Any) -> np.ndarray:
    return objects_of(cell.strip() if isinstance(cell, str) else cell for cell in cells)


def _chunks(rows: Iterator[Any]) -> Iterator[list[Any]]:
    for first in rows:
        chunk = [first]
        for row in rows:
            chunk.append(row)
            if len(chunk) == BATCH_ROWS:
                break
        yield chunk


# ---- Excel ----------------------------------------------------------------------------------------


@contextmanager
def _open_sheet(path: Path) -> Iterator[Iterator[tuple[Any, ...]]]:
    try:
        import openpyxl
    except ImportError:
        raise SchemaError(
            "Excel files need openpyxl: pip install 'dpsparse[excel]', or save the sheet as CSV."
        ) from None
    with open_bytes(path) as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        try:
            yield book.worksheets[0].iter_rows(values_only=True)
        finally:
            book.close()


def _sheet_stream(path: Path, rows: Iterator[tuple[Any, ...]]) -> Stream:
    header = list(next(rows, ()))
    while header and header[-1] is None:  # columns that were only formatted
        header.pop()
    names = ["" if cell is None else str(cell).strip() for cell in header]
    if not any(names):
        raise SchemaError(f"The first row of {path.name} must name the columns.")

    def batches(wanted: Sequence[str], numbers: Collection[str]) -> Iterator[Columns]:
        places = [(name, names.index(name)) for name in wanted]
        full = (row for row in rows if any(cell is not None for cell in row))
        for chunk in _chunks(full):
            yield {
                name: _stripped(row[j] if j < len(row) else None for row in chunk)
                for name, j in places
            }

    return Stream(names, batches)


# ---- Arrow ----------------------------------------------------------------------------------------


@contextmanager
def _open_parquet(path: Path) -> Iterator[Stream]:
    pa = pyarrow_for("Parquet files")
    from pyarrow import parquet

    if not path.is_file():
        raise SchemaError(f"There is no file {path}.")
    try:
        with parquet.ParquetFile(path) as file:
            yield Stream(
                list(file.schema_arrow.names),
                lambda wanted, _: _arrow_columns(
                    file.iter_batches(BATCH_ROWS, columns=list(wanted))
                ),
            )
    except (pa.ArrowException, OSError):
        raise SchemaError(f"{path.name} is not a readable Parquet file.") from None


def _arrow_columns(batches: Iterator[Any]) -> Iterator[Columns]:
    for batch in batches:
        if batch.num_rows:
            yield {name: array_of(batch.column(name)) for name in batch.schema.names}


def batch_stream(rows: Any) -> Stream:
    """Rows of another program: a (lazy) frame of polars, a DuckDB relation, a table or dataset of Arrow, a list of
    record batches, or a function that returns them."""
    if hasattr(rows, "__next__") or hasattr(rows, "read_next_batch"):  # a generator or reader
        raise SchemaError(
            "These batches can be read only once; pass a function that returns them instead."
        )
    read = _reader(rows)
    first = next(read(), None)
    if first is None:
        raise SchemaError("There are no batches, or they hold no rows.")
    return Stream(
        list(first.schema.names),
        lambda wanted, _: _arrow_columns(batch.select(list(wanted)) for batch in read()),
    )


def _reader(rows: Any) -> Callable[[], Iterator[Any]]:
    """A function that begins to read."""
    pa = pyarrow_for("Record batches")
    if hasattr(rows, "collect_batches"):  # a lazy frame of polars
        return lambda: _as_batches(frame.to_arrow() for frame in rows.collect_batches())
    if hasattr(rows, "__arrow_c_stream__"):
        return lambda: iter(pa.RecordBatchReader.from_stream(rows))
    if hasattr(rows, "to_batches"):  # a dataset of Arrow
        return lambda: iter(rows.to_batches())
    return lambda: _as_batches(rows() if callable(rows) else rows)


def _as_batches(found: Any) -> Iterator[Any]:
    for batch in found:
        if hasattr(batch, "to_batches"):
            yield from batch.to_batches()
        elif hasattr(batch, "num_rows") and hasattr(batch, "schema"):
            yield batch
        else:
            raise SchemaError("Batches must be record batches or tables of Arrow (pyarrow).")


# ---- svmlight -------------------------------------------------------------------------------------


def read_svmlight(
    path: str | os.PathLike[str], *, n_features: int | None = None, zero_based: bool = False
) -> tuple[sp.csr_array, np.ndarray]:
    """Matrix and labels of a file; without `n_features` the largest index is declared public."""
    parts = list(iter_svmlight(path, n_features=n_features, zero_based=zero_based))
    width = n_features or max((X.shape[1] for X, _ in parts), default=0)
    wide = [
        sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width)) for X, _ in parts
    ]
    X = sp.vstack([sp.csr_array((0, width)), *wide], format="csr")
    return X, np.concatenate([np.empty(0), *(y for _, y in parts)])


def iter_svmlight(
    path: str | os.PathLike[str], *, n_features: int | None, zero_based: bool = False
) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
    """The same as a stream, one matrix for each block of text: memory stays bounded."""
    from sklearn.datasets import load_svmlight_file

    def parse(lines: list[bytes]) -> tuple[sp.csr_array, np.ndarray]:
        text = io.BytesIO(b"".join(lines))
        X, y = load_svmlight_file(text, n_features=n_features, zero_based=zero_based)
        # The constructor takes indices of 32 bits where they suffice.
        return sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape), y

    unreadable = (
        "Not a readable svmlight file: a line must be of the form 'label index:value index:value', with rising "
        "indices from 1 to n_features (0 to n_features-1 with zero_based=True); state the public width with n_features."
    )
    with open_bytes(path) as file:
        while lines := file.readlines(TEXT_BLOCK):
            yield without_leaking_errors(unreadable, parse, lines)

"""Raw tables as columns, and cells as numbers or texts: maps of one cell, total, and silent about what they meet.

A table is a data frame (pandas, polars), an Arrow table, a dict of columns, or an array. Words for missing
values (`_cells.MISSING_WORDS`) are missing unless they are declared as categories. A cell that is no number is missing
in a column of numbers. What is neither text nor number is missing in a column of categories: an error would reveal that
a row with such a cell exists.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from dpsparse._cells import MISSING_WORDS, cell_name, column_cells, is_missing
from dpsparse._checks import decoded, is_number, objects_of, without_leaking_errors
from dpsparse.exceptions import SchemaError

KINDS = ("number", "date", "category")  # what cells of a column can be
LONGEST_NAME = 256  # characters of a name; longer ones are cut
_NO_TABLE = "X must be a table: a data frame, an Arrow table, a dict of columns of equal length, or a 2d array."


@dataclass(frozen=True)
class Header:
    """The public side of a table: the names of its columns, x0, x1, ... where it has none."""

    names: tuple[str, ...]
    named: bool


@dataclass(frozen=True, repr=False)
class Table:
    """Columns of equal length; private but for the header."""

    header: Header
    columns: tuple[np.ndarray, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.header.names

    @property
    def n_rows(self) -> int:
        return len(self.columns[0])

    def take(self, names: Sequence[str]) -> Table:
        """These columns, in this order."""
        place = {name: j for j, name in enumerate(self.names)}
        columns = tuple(self.columns[place[name]] for name in names)
        return Table(Header(tuple(names), self.header.named), columns)


def read_table(X: Any) -> Table:
    """The columns of a table of any kind; only shapes and names can be refused."""
    if isinstance(X, Table):
        return X
    table = without_leaking_errors(_NO_TABLE, _read, X)
    if any(column.dtype.kind == "c" for column in table.columns):  # declared so, not found so
        raise SchemaError("Complex data not supported: X must hold numbers, dates or texts.")
    if not table.columns:
        raise SchemaError("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    if table.n_rows == 0:
        raise SchemaError("X holds no rows.")
    return table


def _read(X: Any) -> Table:
    X = decoded(X)
    if hasattr(X, "toarray"):  # sparse; those of keys are mappings, too
        X = X.toarray()
    if isinstance(X, Mapping):
        keys = list(X)
    elif hasattr(X, "column_names"):  # Arrow
        keys = list(X.column_names)
    elif hasattr(X, "columns"):  # pandas, polars
        keys = list(X.columns)
    else:
        return _unnamed(X)
    names = tuple(map(str, keys))
    if len({*names}) < len(names):
        raise SchemaError("Two columns of X have the same name; rename one of them.")
    columns = tuple(column_cells(X[key], _NO_TABLE) for key in keys)
    if len({len(column) for column in columns}) > 1:
        raise SchemaError("The columns of X differ in length.")
    return Table(Header(names, True), columns)


def _unnamed(X: Any) -> Table:
    """An array, or a list of rows, whose cells are taken one by one."""
    if isinstance(X, (str, bytes)):
        raise SchemaError(_NO_TABLE)
    if not hasattr(X, "shape"):
        X = np.asarray(X) if hasattr(X, "__array__") else np.stack([objects_of(row) for row in X])
    if X.ndim != 2:
        raise SchemaError(
            "Expected 2D array X with one row per sample. Reshape your data, for instance with "
            "X.reshape(-1, 1) for a single column."
        )
    columns = tuple(column_cells(X[:, j], _NO_TABLE) for j in range(X.shape[1]))
    return Table(Header(tuple(f"x{j}" for j in range(len(columns))), False), columns)


# ---- cells ----------------------------------------------------------------------------------------


def numbers(column: np.ndarray) -> np.ndarray:
    """float64; a cell that is no number is NaN. Dates are seconds since 1970, durations seconds."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind in "mM":
        seconds = column.astype("datetime64[s]" if column.dtype.kind == "M" else "timedelta64[s]")
        return np.where(np.isnat(column), np.nan, seconds.astype(np.int64).astype(np.float64))
    return np.array([_number(cell) for cell in column.tolist()], np.float64)


def _number(cell: Any) -> float:
    if type(cell) is float:
        return cell
    if isinstance(cell, complex) or cell is None or cell is np.ma.masked:
        return math.nan
    try:
        if isinstance(cell, date):
            return float(_since_1970(cell) // timedelta(seconds=1))
        if isinstance(cell, timedelta):
            return float(cell // timedelta(seconds=1))
        return float(cell)
    except Exception:  # text, lists, pandas.NA, anything: missing
        if not isinstance(cell, str) or len(cell) >= 64:
            return math.nan
        # As people write them: 1,234.50 and 12 % and EUR 7; a public rule, the unit is left out.
        number, before, behind = r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", r"[$€£]", r"[%$€£]"
        pattern = rf"\s*(?:{before}|USD|EUR|GBP)?\s*({number})\s*(?:{behind}|USD|EUR|GBP)?\s*"
        written = re.fullmatch(pattern, cell)
        return float(written[1].replace(",", "")) if written else math.nan


def kinds(column: np.ndarray) -> np.ndarray:
    """The place in KINDS of every cell, NaN if missing. A text that reads as a number is one."""
    if column.dtype.kind in "biufmM":
        gaps = np.isnat(column) if column.dtype.kind in "mM" else np.isnan(column.astype(float))
        return np.where(gaps, np.nan, 1.0 if column.dtype.kind == "M" else 0.0)
    return np.array([_kind(cell) for cell in column.tolist()], np.float64)


def _kind(cell: Any) -> float:
    if not isinstance(cell, date) and not math.isnan(_number(cell)):
        return 0.0
    if not math.isnan(_day(cell)):
        return 1.0
    return math.nan if _name(cell) is None else 2.0


def days(column: np.ndarray) -> np.ndarray:
    """Dates as days since 1970: dates of Python, NumPy and pandas, and texts 2020-01-31, with a time or without,
    31.01.2020, 31/1/2020 or 31-01-2020 14:30 (day first, unless it cannot be). Anything else is missing."""
    if column.dtype.kind == "M":
        return numbers(column) / 86_400.0
    return np.array([_day(cell) for cell in column.tolist()], np.float64)


def _day(cell: Any) -> float:
    try:
        if isinstance(cell, str):
            text = cell.strip()
            # 31.01.2020, 31/1/2020 and 31-01-2020, with a time or without.
            written = r"([0-9]{1,2})([./-])([0-9]{1,2})\2([0-9]{4})"
            hours = r"[ T]+([0-9]{1,2})(:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)"
            if found := re.fullmatch(f"{written}(?:{hours})?", text):
                day, mark, month, year, hours, rest = found.groups(default="")
                if mark == "/" and int(month) > 12:  # month first, as it cannot be otherwise
                    day, month = month, day
                time = f"T{hours:0>2}{rest}" if hours else ""
                text = f"{year}-{month:0>2}-{day:0>2}{time}"
            if text[4:5] != "-":
                return math.nan
            cell = datetime.fromisoformat(text)
        if isinstance(cell, date):
            return _number(cell) / 86_400.0
    except Exception:  # no such day, NaT: missing
        return math.nan
    return math.nan


def _since_1970(cell: date) -> timedelta:
    if not isinstance(cell, datetime):
        return cell - date(1970, 1, 1)
    return (cell if cell.tzinfo else cell.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)


def filled(column: np.ndarray, fill: Any, declared: Container[str | None] = ()) -> np.ndarray:
    """The column with a public constant for its missing values; `declared` categories are not missing."""
    if column.dtype.kind in "biu":
        return column
    if column.dtype.kind == "f":
        return np.where(np.isnan(column), float(fill) if is_number(fill) else np.nan, column)
    names = texts(column, declared)
    return objects_of(
        fill if name is None else cell for cell, name in zip(column.tolist(), names, strict=True)
    )


def texts(column: np.ndarray, declared: Container[str | None] = ()) -> list[str | None]:
    """Every cell as a text, None if missing; 1, 1.0 and True are the names "1", "1" and "True". Names that are
    `declared` come before the words that stand for a missing value."""
    known: dict[Any, str | None] = {}
    out = []
    for cell in column.tolist():
        if type(cell) is not str:
            out.append(_name(cell, declared))
            continue
        if cell not in known:
            known[cell] = _name(cell, declared)
        out.append(known[cell])
    return out


def declared_names(cells: Iterable[Any]) -> list[str | None]:
    """Declared names as they are compared with cells; a word such as NA is one of them."""
    return [_plain_name(cell) for cell in cells]


def _name(cell: Any, declared: Container[str | None] = ()) -> str | None:
    name = _plain_name(cell)
    return None if name in MISSING_WORDS and name not in declared else name


def _plain_name(cell: Any) -> str | None:
    name = cell_name(cell)
    # What UTF-8 cannot write (half of a surrogate pair) no file could keep.
    return name[:LONGEST_NAME].encode("utf-8", "replace").decode("utf-8") or None if name else None


def documents(X: Any) -> Table:
    """One text for every row of a list, series, or table of one column; what is no text is an empty one."""
    unreadable = "X must hold one text per row; name a column of a table in a table preparer."
    if isinstance(X, (Table, Mapping)) or hasattr(X, "columns"):
        columns = read_table(X).columns
        if len(columns) != 1:
            raise SchemaError(unreadable)
        cells = columns[0]
    else:
        cells = column_cells(X, unreadable)
    if len(cells) == 0:
        raise SchemaError("X holds no rows.")
    found = objects_of(
        cell.encode("utf-8", "replace").decode("utf-8")
        if isinstance(cell, str) and not is_missing(cell)
        else ""
        for cell in cells.tolist()
    )
    return Table(Header(("x0",), False), (found,))

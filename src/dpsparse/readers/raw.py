"""Tables as raw columns, for private preparation: CSV, TSV, JSON lines, Parquet and Arrow, plain or compressed.

Cells are texts without blanks around them (CSV, TSV) or what the format holds. Which of them are missing values is
decided where columns are prepared (`_cells.py`), as declared categories come first. Nothing is refused for what a cell
holds: a refusal would tell of a row. Messages show no cell.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpsparse._checks import array_of, no_column, objects_of, quietly
from dpsparse.exceptions import SchemaError
from dpsparse.readers.files import open_bytes
from dpsparse.readers.tables import arrow_batches, csv_table, format_of, separator_of

Columns = dict[str, np.ndarray]
RAW_FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow")


def read_columns(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    format: str | None = None,
) -> Columns:
    """The columns of a file by name; `columns` selects some of them, in that order.

    JSON lines have no header: without `columns` all objects must have the same keys.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpsparse.readers import read_columns
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "table.csv")
    >>> _ = path.write_text("age,dose,ill\\n40,1.5,1\\n57,0.0,0\\n")
    >>> list(read_columns(path, columns=["dose"]))
    ['dose']
    >>> folder.cleanup()
    """
    kind = format or format_of(Path(path))
    readers: dict[str, Any] = {
        "csv": _read_text, "tsv": _read_text, "jsonl": _read_json, "parquet": _read_arrow, "arrow": _read_arrow,
    }  # fmt: skip
    if kind not in readers:
        raise SchemaError(
            f"{Path(path).name} ({kind}) has no named columns to prepare; use {', '.join(RAW_FORMATS)}."
        )
    sentence = f"{Path(path).name} is not a readable table."
    found: Columns = quietly(sentence, readers[kind], path, kind, columns)
    if not found:
        raise SchemaError(f"{Path(path).name} has no columns.")
    if not len(next(iter(found.values()))):
        raise SchemaError(f"{Path(path).name} holds no rows.")
    return found


def column_names(path: str | os.PathLike[str], format: str | None = None) -> list[str]:
    """The names of the columns: from the header line or the schema. JSON lines have neither; their columns are the keys
    that all objects have in common.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dpsparse.readers import column_names
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "table.csv")
    >>> _ = path.write_text("age,dose,ill\\n40,1.5,1\\n57,0.0,0\\n")
    >>> column_names(path)
    ['age', 'dose', 'ill']
    >>> folder.cleanup()
    """
    kind = format or format_of(Path(path))
    if kind not in RAW_FORMATS:
        raise SchemaError(f"{Path(path).name} ({kind}) has no named columns.")
    return quietly(f"{Path(path).name} is not a readable table.", _names_of, path, kind)


def _names_of(path: Any, kind: str) -> list[str]:
    if kind == "jsonl":
        return _json_names(path)
    if kind in ("csv", "tsv"):
        with csv_table(path, separator_of(kind)) as (names, _):
            return names
    with arrow_batches(path, kind) as (names, _):
        return names


def _selected(names: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    if len(set(names)) != len(names):
        raise SchemaError(
            "Two columns have the same name; rename one. The first line of a file must name the columns."
        )
    missing = [name for name in wanted or () if name not in names]
    if missing:
        raise no_column(missing[0], names, wanted or ())
    return list(names if wanted is None else wanted)


def _read_text(path: Any, kind: str, wanted: Sequence[str] | None) -> Columns:
    with csv_table(path, separator_of(kind)) as (names, chunks):
        cells: dict[str, list[Any]] = {name: [] for name in _selected(names, wanted)}
        places = [(column, names.index(name)) for name, column in cells.items()]
        for rows, _ in chunks:
            for column, j in places:
                column += [row[j].strip() for row in rows]
    return {name: objects_of(column) for name, column in cells.items()}


def _json_objects(path: Any) -> Iterator[dict[str, Any]]:
    with open_bytes(path) as raw:
        for line in raw:
            if line.strip():
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise SchemaError(f"{Path(path).name} must hold one JSON object a line.")
                yield row


def _json_names(path: Any) -> list[str]:
    """The keys that all objects have. Were the keys of the first object the columns, one row and its place would decide
    the table, and a message would show them."""
    names: list[str] | None = None
    for row in _json_objects(path):
        if names is None:
            names = list(row)
        elif row.keys() != set(names):
            raise SchemaError(
                f"The objects of {Path(path).name} have different keys, and one row may not decide which columns there "
                "are. Write every key into every object, null where a row has none, or state the columns: "
                "read_columns(path, columns=[...])."
            )
    if names is None:
        raise SchemaError(f"{Path(path).name} holds no rows.")
    return names


def _read_json(path: Any, kind: str, wanted: Sequence[str] | None) -> Columns:
    """Declared columns, where an absent key is a missing value; or the keys that all objects have in common."""
    chosen = _selected(_json_names(path) if wanted is None else list(wanted), None)
    cells: dict[str, list[Any]] = {name: [] for name in chosen}
    for row in _json_objects(path):
        for name, column in cells.items():
            value = row.get(name)
            column.append(value.strip() if isinstance(value, str) else value)
    return {name: objects_of(column) for name, column in cells.items()}


def _read_arrow(path: Any, kind: str, wanted: Sequence[str] | None) -> Columns:
    from pyarrow import Table

    with arrow_batches(path, kind) as (names, batches):
        chosen = _selected(names, wanted)
        found = list(batches(chosen))
    if not found:
        raise SchemaError(f"{Path(path).name} holds no rows.")
    table = Table.from_batches(found)
    return {name: array_of(table[name]) for name in chosen}

"""JSON in one place: strict text that any reader takes, floats bit for bit. TOML is read here as well."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any


def canonical(record: Any) -> str:
    """One line of ASCII with sorted keys, the same for equal records: what is hashed, chained and compared."""
    return json.dumps(record, sort_keys=True, allow_nan=False)


def parsed(text: str | bytes) -> Any:
    """The record of a text; ValueError where it is no JSON, or nested deeper than Python reads."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("The text is nested too deeply.") from None


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; OSError where it cannot be read, ValueError where it is no TOML."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except RecursionError:
        raise ValueError("The text is nested too deeply.") from None


def readable(record: Any) -> str:
    """The same facts line by line, in the order they were put down and in the letters of their language."""
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Any record of ours in the types of JSON: lists for tuples and arrays, the text "inf" for infinity."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)

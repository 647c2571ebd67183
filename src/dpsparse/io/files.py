"""Opening files, plain or compressed, with errors that say what is wrong in one line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from dpsparse.exceptions import SchemaError


def pyarrow_for(files: str) -> Any:
    """pyarrow, which `files` of some kind need."""
    try:
        import pyarrow
    except ImportError:
        raise SchemaError(f"{files} need pyarrow: pip install 'dpsparse[parquet]'.") from None
    return pyarrow


def _open_zstd(path: Path, mode: str) -> Any:
    """Python has no reader of its own for .zst before 3.14; Arrow has."""
    pa = pyarrow_for("Files .zst")
    return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path), mode), "zstd"))


COMPRESSIONS: dict[str, Any] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstd,
}


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

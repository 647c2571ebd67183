"""svmlight files in blocks of lines, parsed by scikit-learn or, where a block has plain numbers alone, by pyarrow.

    label index:value index:value ... # comment

Both round decimals correctly, so which of them reads a block changes no bit.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from dpsparse._checks import without_leaking_errors
from dpsparse.io.streams import open_bytes

BLOCK_BYTES = 1 << 24  # of text that is parsed at a time
_PLAIN = re.compile(rb"(?:[-+0-9.eE]++(?: [0-9]++:[-+0-9.eE]++)*+ ?\n)*+")
_ONE_A_LINE = bytes.maketrans(b" :", b"\n\n")
_UNREADABLE = (
    "Not a readable svmlight file: a line must be of the form 'label index:value index:value', with rising indices "
    "from 1 to n_features (0 to n_features-1 with zero_based=True); state the public width with n_features."
)


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
        found = _parse_quickly(lines, n_features, zero_based)
        if found is None:
            text = io.BytesIO(b"".join(lines))
            found = load_svmlight_file(text, n_features=n_features, zero_based=zero_based)
        X, y = found  # the constructor takes indices of 32 bits where they suffice
        return sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape), y

    with open_bytes(path) as file:
        while lines := file.readlines(BLOCK_BYTES):
            yield without_leaking_errors(_UNREADABLE, parse, lines)


def _parse_quickly(
    lines: list[bytes], n_features: int | None, zero_based: bool
) -> tuple[sp.csr_array, np.ndarray] | None:
    """The same rows by pyarrow, some times faster; None where it is absent, or where a line is not plain and right."""
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return None
    text = b"".join(lines).removesuffix(b"\n") + b"\n"
    if _PLAIN.fullmatch(text) is None:
        return None
    # One number a line. Labels are often written +1, which pyarrow does not know.
    text = text.replace(b"\n+", b"\n").removeprefix(b"+").translate(_ONE_A_LINE)
    try:
        table = csv.read_csv(
            pa.py_buffer(text),
            read_options=csv.ReadOptions(column_names=["number"]),
            convert_options=csv.ConvertOptions(column_types={"number": pa.float64()}),
        )
    except pa.ArrowException:
        return None
    numbers = table.column("number").to_numpy()
    counts = np.array([line.count(b":") for line in lines])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    labels_at = 2 * indptr[:-1] + np.arange(len(lines))
    pairs = np.delete(numbers, labels_at).reshape(-1, 2)
    columns = pairs[:, 0] - (0 if zero_based else 1)
    width = int(columns.max(initial=0)) + 1 if n_features is None else n_features
    if columns.min(initial=0) < 0 or columns.max(initial=0) >= min(width, 2**31):
        return None
    shape = (len(lines), width)
    X = sp.csr_array((pairs[:, 1].copy(), columns.astype(np.int32), indptr), shape=shape)
    rises = X.has_canonical_format and np.isfinite(numbers).all()
    return (X, numbers[labels_at]) if rises else None

"""svmlight files in blocks of lines, parsed by scikit-learn.

label index:value index:value ... # comment
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from dpsparse._checks import without_leaking_errors
from dpsparse.io.streams import TEXT_BLOCK, open_bytes


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

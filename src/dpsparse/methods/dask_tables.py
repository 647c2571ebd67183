"""Predictions of Dask collections, chunk by chunk, when asked for."""

# mypy: disable-error-code="attr-defined, no-untyped-call, no-any-return"

from __future__ import annotations

import copy
from typing import Any

import numpy as np


def lazily(model: Any, method: str, X: Any, n_columns: int | None, dtype: Any) -> np.ndarray:
    """A dask array of `model.method(chunk)`; `n_columns` of a two-dimensional answer.

    For a type checker it is the array it will be."""
    import dask
    import dask.array as da

    model = copy.copy(model)
    model.ledger = None  # a worker has no business with it
    if getattr(X, "numblocks", ())[1:] > (1,):
        X = X.rechunk({1: -1})
    chunks = X if isinstance(X, (list, tuple)) else np.ravel(X.to_delayed())
    sizes = X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(chunks)
    rest = () if n_columns is None else (n_columns,)
    answer = dask.delayed(_answer, pure=True)
    sent = dask.delayed(model, pure=False)
    parts = [
        da.from_delayed(answer(sent, method, chunk), shape=(size, *rest), dtype=dtype)
        for chunk, size in zip(chunks, sizes, strict=True)
    ]
    return da.concatenate(parts, axis=0)


def _answer(model: Any, method: str, chunk: Any) -> np.ndarray:
    return np.asarray(getattr(model, method)(chunk))

"""What a fit and a model do about Dask: no fit inside a task, and predictions chunk by chunk, when asked for."""

# mypy: disable-error-code="attr-defined, no-untyped-call, no-any-return"

from __future__ import annotations

import copy
import math
import os
import sys
from typing import Any

import numpy as np

from dpsparse.exceptions import ParameterError

ALLOW = "DPSPARSE_FIT_IN_TASK"


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask's, or delayed parts; imports nothing."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and is_dask(X[0])
    return "dask" in sys.modules and type(X).__module__.split(".")[0] in ("dask", "dask_expr")


def refuse_inside_task(epsilon: float) -> None:
    """Dask may run a task twice, and a fit that runs twice spends twice."""
    distributed = sys.modules.get("distributed")
    if distributed is None or math.isinf(epsilon) or os.environ.get(ALLOW) == "1":
        return
    try:
        distributed.get_worker()
    except ValueError:
        return
    raise ParameterError(
        "fit was called inside a Dask task. Dask may run a task again, and every run spends epsilon: call fit on the "
        f"client, with Dask arrays. The environment variable {ALLOW}=1 on the workers allows it nevertheless."
    )


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

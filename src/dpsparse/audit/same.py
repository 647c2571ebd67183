"""Whether two objects are equal bit for bit, however deep: what a fit leaves behind on two tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp


def differences(a: Any, b: Any, name: str) -> Iterator[str]:
    """Names of the parts in which `a` and `b` differ; none if they are equal bit for bit."""
    if a is b:
        return
    if type(a) is not type(b):
        yield name
        return
    parts, others = _parts_of(a), _parts_of(b)
    if parts is None or others is None:
        if not _equal(a, b):
            yield name
    elif list(parts) != list(others):
        yield name
    else:
        in_a_row = isinstance(a, (list, tuple, np.ndarray))
        for key in parts:
            part = f"{name}[{key}]" if in_a_row else f"{name}.{key}"
            yield from differences(parts[key], others[key], part)


def _parts_of(value: Any) -> Mapping[Any, Any] | None:
    """What an object is made of, by name or place; None of one that is compared as a whole."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, (list, tuple)) or (
        isinstance(value, np.ndarray) and value.dtype == object
    ):
        return dict(enumerate(value))
    if sp.issparse(value):
        matrix: Any = value
        return dict(vars(matrix.tocoo()))
    if (
        isinstance(value, (np.ndarray, np.generic))
        or callable(value)
        or not hasattr(value, "__dict__")
    ):
        return None
    return dict(vars(value))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, (float, np.floating)):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return bool(a == b)

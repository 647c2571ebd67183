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
    elif isinstance(a, np.ndarray) and a.dtype.kind != "O":
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            yield name
    elif sp.issparse(a):
        yield from differences(vars(_cells(a)), vars(_cells(b)), name)
    elif isinstance(a, (float, np.floating)):
        if np.float64(a).tobytes() != np.float64(b).tobytes():
            yield name
    elif isinstance(a, Mapping):
        if list(a) != list(b):
            yield name
        else:
            for key in a:
                yield from differences(a[key], b[key], f"{name}.{key}")
    elif isinstance(a, (list, tuple, np.ndarray)):
        if len(a) != len(b):
            yield name
        else:
            for i, (x, y) in enumerate(zip(a, b, strict=True)):
                yield from differences(x, y, f"{name}[{i}]")
    elif hasattr(a, "__dict__") and not callable(a):
        yield from differences(vars(a), vars(b), name)
    elif not bool(a == b):
        yield name


def _cells(matrix: Any) -> Any:
    return matrix.tocoo()

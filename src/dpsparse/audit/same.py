"""Whether two objects are equal bit for bit, however deep: what a fit leaves behind on two tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType
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
    if not parts and not others:
        if not _equal(a, b):
            yield name
    elif [label for label, _ in parts] != [label for label, _ in others]:
        yield name
    else:
        for (label, part), (_, other) in zip(parts, others, strict=True):
            yield from differences(part, other, f"{name}{label}")


def _parts_of(value: Any) -> list[tuple[str, Any]]:
    """What an object is made of, by name or place: what it holds, and its attributes, which any subclass may have
    beside that. Nothing of one that is compared as a whole."""
    if isinstance(value, (type, FunctionType, BuiltinFunctionType, MethodType, partial)):
        return []
    own = [(f".{name}", part) for name, part in getattr(value, "__dict__", {}).items()]
    if isinstance(value, Mapping):
        keys = [("{}", list(value))]  # 1, 1.0 and True are one key, and not one value
        return [*keys, *((f".{key}", part) for key, part in value.items()), *own]
    if isinstance(value, (list, tuple)):
        return [*((f"[{i}]", part) for i, part in enumerate(value)), *own]
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [("[]", value.shape), ("", value.ravel().tolist()), *own]
    if isinstance(value, (set, frozenset)):
        return [("{}", sorted(map(repr, value))), *own]
    if sp.issparse(value):
        plain: Any = value
        return [(f".{name}", part) for name, part in vars(plain.tocoo()).items()]
    if isinstance(value, BaseException):
        return [("[]", value.args), *own]
    if own:
        plain_kinds: tuple[Any, ...] = (bool, int, float, complex, str, bytes)
        own += [("", kind(value)) for kind in plain_kinds if isinstance(value, kind)][:1]
        if isinstance(value, np.ndarray):
            own.append(("", value.view(np.ndarray)))
    return own


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, (float, np.floating)):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return bool(a == b)

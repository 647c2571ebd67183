"""Fitted models, and all that they hold, as the JSON of a model file and back, bit for bit.

Whoever reads a file must expect one that somebody else wrote. So everything has the type it is written with, names are
those that a class has, and nothing is made that is larger than the text that describes it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse import methods as estimators
from dpsparse import preprocessing
from dpsparse.accounting import Event, Phase, Plan
from dpsparse.accounting.events import from_dict, to_dict
from dpsparse.domain import Domain
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.nonzeros import PrivateCount
from dpsparse.preprocessing import DPPipeline
from dpsparse.preprocessing._step import Step

# Types of Python that stand for the items of an array, by NumPy's letter.
_ITEMS: dict[str, tuple[type, ...]] = {
    "b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "U": (str,), "O": (str, int, float, bool, type(None)),
}  # fmt: skip


class Damaged(Exception):
    """The file holds what this library does not write; `load` says so and names the file."""


def check(holds: bool) -> None:
    if not holds:
        raise Damaged


def is_int(value: Any, least: int = 0) -> bool:
    return type(value) is int and value >= least


def are_numbers(values: Any, kinds: tuple[type, ...] = (int, float)) -> bool:
    """Whether this is a list of numbers, none of them a text or a truth value."""
    return type(values) is list and all(type(value) in kinds for value in values)


# ---- writing ---------------------------------------------------------------------------------------


def encoded(value: Any) -> Any:
    """Plain JSON types; what JSON lacks is tagged. Foreign objects become null."""
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": repr(value)}
    if sp.issparse(value) or (isinstance(value, np.ndarray) and value.size > 100_000):
        # Of a large array, which no attribute is, the shape alone prices the model.
        shape: tuple[int, ...] = value.shape  # type: ignore[union-attr]
        return {"type": "omitted", "shape": list(shape)}
    if isinstance(value, np.ndarray) and value.dtype.kind in _ITEMS:
        items = [encoded(item) for item in value.ravel().tolist()]
        kind = value.dtype.str if value.dtype.kind != "O" else "O"
        return {"type": "array", "dtype": kind, "shape": list(value.shape), "items": items}
    if isinstance(value, (list, tuple)):
        return {"type": type(value).__name__, "items": [encoded(item) for item in value]}
    if isinstance(value, Mapping):
        pairs = [[encoded(key), encoded(item)] for key, item in value.items()]
        return {"type": "dict", "items": pairs}
    return _encoded_object(value)


def _encoded_object(value: Any) -> Any:
    if isinstance(value, Event):
        return {"type": "event", "event": to_dict(value)}
    if isinstance(value, (Step, BaseDPLinearModel, DPPipeline)):
        given, kept = value.get_params(deep=False), stored_names(type(value))
        attributes = {
            key: _encoded_weights(part) if key in ("coef_", "coef_noise_") else encoded(part)
            for key, part in vars(value).items()
            if key in kept
        }
        parameters = {
            key: encoded(given[key]) for key in given if key not in _left_out(type(value))
        }
        return {
            "type": "object", "kind": type(value).__name__, "parameters": parameters, "attributes": attributes,
        }  # fmt: skip
    if isinstance(value, (Domain, PrivateCount, Plan, Phase)):
        parts = {name: encoded(getattr(value, name)) for name in _field_names(type(value))}
        return {"type": type(value).__name__, "fields": parts}
    return None


def _encoded_weights(coef: Any) -> dict[str, Any]:
    """The weights that are not zero. A dense weight of -0.0 is kept, whose bits are not zero."""
    sparse, flat = sp.issparse(coef), not sp.issparse(coef) and coef.ndim == 1
    if not sparse:
        dense = np.ascontiguousarray(np.atleast_2d(coef))
        bits = dense.view(f"u{dense.itemsize}")
        rows, columns = np.nonzero(bits)
        coef = sp.csr_array((dense[rows, columns], (rows, columns)), shape=dense.shape)
    coef = sp.csr_array(coef)
    return {
        "type": "weights", "dtype": coef.dtype.str, "shape": list(coef.shape), "flat": flat, "sparse": sparse,
        "indptr": coef.indptr.tolist(), "indices": coef.indices.tolist(), "data": coef.data.tolist(),
    }  # fmt: skip


# ---- reading ---------------------------------------------------------------------------------------


def decoded(value: Any) -> Any:
    """The value of an `encoded` one."""
    if not isinstance(value, dict):
        check(not isinstance(value, list))
        return value
    kind = value["type"]
    if kind == "float":
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[value["value"]]
    if kind == "omitted":
        check(are_numbers(value["shape"], (int,)) and len(value["shape"]) == 2)
        return sp.coo_array(tuple(value["shape"]))  # which takes no memory, and has the shape
    if kind == "dict":
        return {decoded(key): decoded(item) for key, item in value["items"]}
    if kind in ("list", "tuple"):
        items = [decoded(item) for item in value["items"]]
        return tuple(items) if kind == "tuple" else items
    if kind == "event":
        return from_dict(value["event"])
    special = {"array": _decoded_array, "weights": _decoded_weights, "object": _decoded_object}
    return special.get(kind, _decoded_record)(value)


def _decoded_array(record: dict[str, Any]) -> np.ndarray:
    dtype, shape = np.dtype(record["dtype"]), record["shape"]
    items = [decoded(item) for item in record["items"]]
    check(are_numbers(shape, (int,)) and min(shape, default=0) >= 0)
    check(math.prod(shape) == len(items) and dtype.kind in _ITEMS)
    check(all(type(item) in _ITEMS[dtype.kind] for item in items))
    longest = max((len(item) for item in items if isinstance(item, str)), default=0)
    check(dtype.itemsize <= (4 * max(longest, 1) if dtype.kind == "U" else 8))
    return np.array(items, dtype=dtype).reshape(shape)


def _decoded_weights(record: dict[str, Any]) -> Any:
    check(record["dtype"] in ("<f4", "<f8"))
    check(are_numbers(record["data"]))
    check(are_numbers(record["indices"], (int,)) and are_numbers(record["indptr"], (int,)))
    indptr, indices = (np.array(record[name], np.int32) for name in ("indptr", "indices"))
    data, shape = np.array(record["data"], record["dtype"]), record["shape"]
    check(are_numbers(shape, (int,)) and len(shape) == 2 and min(shape) >= 1 and max(shape) < 2**31)
    check(type(record["flat"]) is bool and type(record["sparse"]) is bool)
    check(not record["flat"] or shape[0] == 1)
    check(len(indptr) == shape[0] + 1 and bool(np.isfinite(data).all()))
    coef = sp.csr_array((data, indices, indptr), shape=tuple(shape))
    coef.check_format(full_check=True)
    check(coef.has_canonical_format)
    # Of more weights the sparse matrix takes what the file holds, and no more.
    if record["sparse"] or math.prod(shape) > 2**28:
        return coef
    dense = np.zeros(coef.shape, data.dtype)
    rows = np.repeat(np.arange(shape[0]), np.diff(indptr))
    dense[rows, indices] = data  # toarray would add, and 0.0 + -0.0 is 0.0
    return dense[0] if record["flat"] else dense


def _decoded_object(record: dict[str, Any]) -> Any:
    """An estimator, a step or a pipeline; it has these parameters, and declares these attributes."""
    kind = kind_of(record["kind"])
    check(kind is not None and record.keys() == {"type", "kind", "parameters", "attributes"})
    stored = {key: decoded(value) for key, value in record["parameters"].items()}
    check(stored.keys() == set(inspect.signature(kind).parameters) - _left_out(kind))
    made = kind(**stored)
    for key, value in record["attributes"].items():
        check(key in stored_names(kind))
        setattr(made, key, decoded(value))
    if "plan_" in record["attributes"]:
        check(isinstance(made.plan_, Plan))
        made.privacy_ = made.plan_.guarantee
    return made


def _decoded_record(record: dict[str, Any]) -> Any:
    known = {kind.__name__: kind for kind in (Domain, PrivateCount, Plan, Phase)}
    kind = known[record["type"]]
    values = {key: decoded(part) for key, part in record["fields"].items()}
    check(values.keys() == set(_field_names(kind)))
    made: Any = kind(**values)
    texts: list[Any] = []
    if kind is Phase:
        texts = [made.name, made.note]
    elif kind is Plan:
        check(isinstance(made.phases, tuple) and all(type(p) is Phase for p in made.phases))
        check(type(made.proven) is bool and isinstance(made.parameters, dict))
        texts = [made.method, made.source, *made.assumptions]
    check(all(type(text) is str for text in texts))
    return made


# ---- classes ---------------------------------------------------------------------------------------


def stored_names(kind: type) -> set[str]:
    """The attributes that a class declares to publish, names with a type that end in an underscore; but the guarantee
    follows from the plan, and a history belongs to the place of training."""
    declared = {name for base in kind.__mro__ for name in inspect.get_annotations(base)}
    published = {name for name in declared if name.endswith("_") and not name.startswith("_")}
    return published - {"privacy_", "history_"}


def _left_out(kind: type) -> set[str]:
    """Parameters that belong to the place of training."""
    return {"ledger", "random_state"} if issubclass(kind, Step) else {"ledger"}


def _field_names(kind: Any) -> list[str]:
    """The settings of a plan are made anew where the fit is priced again."""
    return [field.name for field in fields(kind) if field.name != "settings"]


def kind_of(name: Any) -> Any:
    """The estimator, step or pipeline of this name, or None."""
    kind: Any = None
    if name in estimators.__all__:
        kind = getattr(estimators, name)
    elif name in preprocessing.__all__:
        kind = getattr(preprocessing, name)
    else:
        from dpsparse import published  # all methods of papers, which most models need not load

        kind = getattr(published, name) if name in published.__all__ else None
    ours = (Step, BaseDPLinearModel, DPPipeline)  # the plain LASSO of papers has no plan
    return kind if isinstance(kind, type) and issubclass(kind, ours) else None

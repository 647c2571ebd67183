"""Parameters, attributes and plans as the JSON of a model file, and back, bit for bit.

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
from dpsparse.accounting import Phase, Plan
from dpsparse.accounting.events import from_dict, to_dict
from dpsparse.domain import Domain
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.nonzeros import PrivateCount
from dpsparse.preprocessing import DPPipeline
from dpsparse.preprocessing._step import Step

LARGEST_ARRAY = 100_000  # items kept as text; of a larger array the shape alone is kept
_RECORDS: dict[str, Any] = {"Domain": Domain, "PrivateCount": PrivateCount}
# Not in `attributes`: stored in a form of their own, or belonging to the place of training.
_OWN_FORM = {
    "coef_", "coef_noise_", "privacy_", "plan_", "feature_names_", "search_", "steps_", "model_",
    "history_",
}  # fmt: skip
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


# ---- values ----------------------------------------------------------------------------------------


def encoded(value: Any) -> Any:
    """Plain JSON types; what JSON lacks is tagged. Foreign objects become null."""
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": repr(value)}
    if sp.issparse(value) or (isinstance(value, np.ndarray) and value.size > LARGEST_ARRAY):
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
    if isinstance(value, (Step, BaseDPLinearModel, DPPipeline)):
        own = {"ledger", "random_state"} if isinstance(value, Step) else {"ledger"}
        return {"type": "object", "kind": type(value).__name__, **facts_of(value, without=own)}
    if type(value).__name__ in _RECORDS:
        parts = {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
        return {"type": type(value).__name__, "fields": parts}
    return None


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
    if kind == "array":
        return _decoded_array(value)
    if kind == "dict":
        return {decoded(key): decoded(item) for key, item in value["items"]}
    if kind == "object":
        known = value["kind"]
        check(known in preprocessing.__all__ or known in estimators.__all__)
        room: Any = preprocessing if known in preprocessing.__all__ else estimators
        return made(getattr(room, known), value)
    if kind in ("list", "tuple"):
        items = [decoded(item) for item in value["items"]]
        return tuple(items) if kind == "tuple" else items
    return _RECORDS[kind](**{key: decoded(part) for key, part in value["fields"].items()})


def _decoded_array(record: dict[str, Any]) -> np.ndarray:
    dtype, shape = np.dtype(record["dtype"]), record["shape"]
    items = [decoded(item) for item in record["items"]]
    check(are_numbers(shape, (int,)) and min(shape, default=0) >= 0)
    check(math.prod(shape) == len(items) and dtype.kind in _ITEMS)
    check(all(type(item) in _ITEMS[dtype.kind] for item in items))
    longest = max((len(item) for item in items if isinstance(item, str)), default=0)
    check(dtype.itemsize <= (4 * max(longest, 1) if dtype.kind == "U" else 8))
    return np.array(items, dtype=dtype).reshape(shape)


# ---- objects ---------------------------------------------------------------------------------------


def facts_of(thing: Any, without: set[str]) -> dict[str, Any]:
    """Parameters of an estimator or a step, and what it published."""
    given = thing.get_params(deep=False)
    names = published_names(type(thing)) - _OWN_FORM
    return {
        "parameters": {key: encoded(given[key]) for key in given if key not in without},
        "attributes": {key: encoded(value) for key, value in vars(thing).items() if key in names},
    }


def published_names(kind: type) -> set[str]:
    """The attributes that a class declares to publish: names with a type that end in an underscore."""
    declared = {name for base in kind.__mro__ for name in inspect.get_annotations(base)}
    return {name for name in declared if name.endswith("_") and not name.startswith("_")}


def made(kind: Any, record: dict[str, Any], **more: Any) -> Any:
    """The estimator or step of such facts; it has these parameters, and declares these attributes."""
    stored = {key: decoded(value) for key, value in record["parameters"].items()} | more
    known = set(inspect.signature(kind).parameters)
    absent = {"ledger", "random_state"} if issubclass(kind, Step) else {"ledger"}
    check(stored.keys() == known - absent)
    model = kind(**stored)
    for key, value in record["attributes"].items():
        check(key in published_names(kind) - _OWN_FORM)
        setattr(model, key, decoded(value))
    return model


def kind_of(name: Any) -> Any:
    """The estimator of this name, or None."""
    if name in estimators.__all__:
        return getattr(estimators, name)
    from dpsparse import published  # all methods of papers, which most models need not load

    kind = getattr(published, name) if name in published.__all__ else object
    return kind if issubclass(kind, BaseDPLinearModel) else None  # the plain LASSO has no plan


# ---- plans -----------------------------------------------------------------------------------------

_OF_A_PLAN = [field.name for field in fields(Plan) if field.name not in ("settings", "phases")]


def encoded_plan(plan: Plan) -> dict[str, Any]:
    phases = [
        {"name": phase.name, "event": to_dict(phase.event), "note": phase.note}
        for phase in plan.phases
    ]
    return {"phases": phases, **{name: encoded(getattr(plan, name)) for name in _OF_A_PLAN}}


def decoded_plan(record: dict[str, Any]) -> Plan:
    check(record.keys() == {"phases", *_OF_A_PLAN})
    values = {name: decoded(record[name]) for name in _OF_A_PLAN}
    texts = [values["method"], values["source"], *values["assumptions"]]
    phases = [(part["name"], from_dict(part["event"]), part["note"]) for part in record["phases"]]
    check(
        all(
            type(text) is str for text in (*texts, *(p[0] for p in phases), *(p[2] for p in phases))
        )
    )
    check(type(values["proven"]) is bool and isinstance(values["parameters"], dict))
    return Plan(phases=tuple(Phase(*phase) for phase in phases), **values)

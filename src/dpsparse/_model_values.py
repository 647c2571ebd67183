"""Parameters, attributes and plans as the JSON of a model file, and back, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from dpsparse import preprocessing
from dpsparse.domain import Domain
from dpsparse.exceptions import ModelFileError
from dpsparse.nonzeros import PrivateCount
from dpsparse.preprocessing._step import Step
from dpsparse.privacy import Phase, Plan
from dpsparse.privacy.events import from_dict, to_dict

_LARGEST = 100_000  # items of an array kept as text
_RECORDS: dict[str, Any] = {"Domain": Domain, "PrivateCount": PrivateCount}
# Not in `attributes`: stored in a form of their own, or belonging to the place of training.
_OWN_FORM = {"coef_", "coef_noise_", "privacy_", "plan_", "feature_names_", "scales_"}


def encoded(value: Any) -> Any:
    """Plain JSON types; what JSON lacks is tagged. Large arrays and foreign objects become null."""
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": repr(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO" and value.size <= _LARGEST:
        items = [encoded(item) for item in value.ravel().tolist()]
        kind = value.dtype.str if value.dtype.kind != "O" else "O"
        return {"type": "array", "dtype": kind, "shape": list(value.shape), "items": items}
    if isinstance(value, (list, tuple)):
        return {"type": type(value).__name__, "items": [encoded(item) for item in value]}
    if isinstance(value, Mapping):
        pairs = [[encoded(key), encoded(item)] for key, item in value.items()]
        return {"type": "dict", "items": pairs}
    if isinstance(value, Step):
        return {
            "type": "step",
            "kind": type(value).__name__,
            **facts_of(value, without={"ledger", "random_state"}),
        }
    if type(value).__name__ in _RECORDS:
        parts = {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
        return {"type": type(value).__name__, "fields": parts}
    return None


def decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kind = value["type"]
    if kind == "float":
        return float(value["value"])
    if kind == "array":
        items = [decoded(item) for item in value["items"]]
        if np.dtype(value["dtype"]).kind not in "biufUO":
            raise ModelFileError("The model file holds an array of an unknown type.")
        return np.array(items, dtype=value["dtype"]).reshape(value["shape"])
    if kind == "dict":
        return {decoded(key): decoded(item) for key, item in value["items"]}
    if kind == "step":
        return _decode_step(value)
    if kind in ("list", "tuple"):
        items = [decoded(item) for item in value["items"]]
        return tuple(items) if kind == "tuple" else items
    return _RECORDS[kind](**{key: decoded(part) for key, part in value["fields"].items()})


def _decode_step(record: dict[str, Any]) -> Step:
    kinds = {name: getattr(preprocessing, name) for name in preprocessing.__all__}
    kind = kinds.get(record["kind"])
    if kind is None or not issubclass(kind, Step):
        raise ModelFileError("The model file holds a step that this version of dpsparse lacks.")
    step: Step = made(kind, record)
    return step


def facts_of(thing: Any, without: set[str]) -> dict[str, Any]:
    """Parameters of an estimator or a step, and what it published."""
    given = thing.get_params(deep=False)
    return {
        "parameters": {key: encoded(given[key]) for key in given if key not in without},
        "attributes": {
            key: encoded(value)
            for key, value in vars(thing).items()
            if key.endswith("_") and not key.startswith("_") and key not in _OWN_FORM
        },
    }


def made(kind: Any, record: dict[str, Any]) -> Any:
    """The estimator or step of such facts; parameters that it does not know any more are left out."""
    known = kind().get_params(deep=False)
    stored = {key: decoded(value) for key, value in record["parameters"].items()}
    model = kind(**{key: value for key, value in stored.items() if key in known})
    for key, value in record["attributes"].items():
        setattr(model, key, decoded(value))
    return model


def encoded_plan(plan: Plan) -> dict[str, Any]:
    out = {field.name: encoded(getattr(plan, field.name)) for field in fields(plan)}
    out["phases"] = [
        {"name": phase.name, "event": to_dict(phase.event), "note": phase.note}
        for phase in plan.phases
    ]
    out["parameters"] = {key: encoded(value) for key, value in plan.parameters.items()}
    return out


def decoded_plan(record: dict[str, Any]) -> Plan:
    values = {key: decoded(v) for key, v in record.items() if key not in ("phases", "parameters")}
    values["phases"] = tuple(
        Phase(part["name"], from_dict(part["event"]), part["note"]) for part in record["phases"]
    )
    values["parameters"] = {key: decoded(v) for key, v in record["parameters"].items()}
    return Plan(**values)

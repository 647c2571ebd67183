"""Model files that outlive Python versions: JSON, or NPZ above 1e5 non-zeros; never a pickle.

A file holds what a fitted model publishes: estimator and parameters, weights, guarantee, plan,
feature names, library version, and a checksum of all that. Numbers come back bit for bit.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.validation import check_is_fitted

import dpsparse
from dpsparse import estimators
from dpsparse.domain import Domain
from dpsparse.estimators._base import BaseDPLinearModel
from dpsparse.exceptions import DPSparseError, ModelFileError
from dpsparse.privacy import Guarantee, Phase, Plan
from dpsparse.privacy.events import from_dict, to_dict
from dpsparse.sparsify import PrivateCount

FORMAT = "dpsparse-model"
SCHEMA = 1
JSON_LIMIT = 100_000  # non-zeros; above, text is slower and larger than NPZ
_LARGEST = 100_000  # items of an array kept as text
_RECORDS: dict[str, Any] = {"Domain": Domain, "PrivateCount": PrivateCount}
# Not in `attributes`: stored in a form of their own, or belonging to the place of training.
_OWN_FORM = {"coef_", "coef_noise_", "privacy_", "plan_", "feature_names_"}


def save(
    model: BaseDPLinearModel,
    path: str | os.PathLike[str],
    *,
    feature_names: Any = None,
    overwrite: bool = False,
) -> Path:
    """Write a fitted model; returns the path, whose ending becomes .npz above 1e5 non-zeros.

    Parameters
    ----------
    model : fitted estimator of dpsparse
    path : path
    feature_names : sequence of str or None
        Names of the columns; None takes those the model was fitted with, if any.
    overwrite : bool
        Whether an existing file may be replaced.
    """
    check_is_fitted(model)
    path = Path(path)
    sparse = sp.issparse(model.coef_)
    coef = sp.csr_array(model.coef_) if sparse else _stored(np.atleast_2d(model.coef_))
    names = _names(model, feature_names)
    header: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "dpsparse": dpsparse.__version__,
        "estimator": type(model).__name__,
        "parameters": {
            key: _encode(value)
            for key, value in model.get_params(deep=False).items()
            if key != "ledger"  # the account belongs to the place of training
        },
        "attributes": {
            key: _encode(value)
            for key, value in vars(model).items()
            if key.endswith("_") and not key.startswith("_") and key not in _OWN_FORM
        },
        "feature_names": names,
        "guarantee": model.privacy_.to_dict(),
        "plan": _encode_plan(model.plan_),
        "coef": {
            "shape": list(coef.shape),
            "flat": not sparse and np.ndim(model.coef_) == 1,
            "sparse": sparse,
        },
    }
    noise = getattr(model, "coef_noise_", None)
    if noise is not None and coef.nnz <= JSON_LIMIT:  # one number for every stored weight
        header["coef"]["noise"] = noise[coef.indices].tolist()
    weights = {"indptr": coef.indptr, "indices": coef.indices, "data": coef.data}
    if not np.isfinite(coef.data).all():
        raise ModelFileError("The weights are not finite; such a model is of no use.")
    if coef.nnz <= JSON_LIMIT:
        header["coef"] |= {name: part.tolist() for name, part in weights.items()}
        header["checksum"] = _checksum(header)
        text = json.dumps(header, allow_nan=False, indent=1, ensure_ascii=False)
        _write(path, text.encode(), overwrite)
        return path
    header["checksum"] = _checksum(header, *weights.values())
    path = path.with_suffix(".npz")
    buffer = np.frombuffer(json.dumps(header, allow_nan=False).encode(), np.uint8)
    with tempfile.TemporaryFile() as file:
        np.savez_compressed(file, header=buffer, **weights)  # type: ignore[arg-type]
        file.seek(0)
        _write(path, file.read(), overwrite)
    return path


def load(path: str | os.PathLike[str]) -> BaseDPLinearModel:
    """The fitted model of a file; refuses what is damaged, foreign or newer than this library.

    The model has no ledger. Column names, if the file has any, are in `feature_names_`.
    """
    path = Path(path)
    try:
        header, coef = _read(path)
        return _rebuild(header, coef)
    except ModelFileError:
        raise
    except FileNotFoundError:
        raise ModelFileError(f"There is no file {path}.") from None
    except OSError as error:
        raise ModelFileError(
            f"{path.name} cannot be read: {error.strerror or 'damaged'}."
        ) from None
    except (DPSparseError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise ModelFileError(f"{path.name} is not a dpsparse model, or is damaged.") from error


def to_sklearn(model: BaseDPLinearModel) -> LogisticRegression | LinearRegression:
    """A plain scikit-learn model with the same weights and predictions, for deployment."""
    check_is_fitted(model)
    coef = _dense(model.coef_)
    if hasattr(model, "classes_"):
        out = LogisticRegression()
        out.classes_ = model.classes_.copy()
        out.n_iter_ = np.array([model.n_iter_], dtype=np.int32)
    else:
        out = LinearRegression()
    out.coef_ = coef.copy()
    out.intercept_ = np.copy(model.intercept_) if np.ndim(model.intercept_) else model.intercept_
    out.n_features_in_ = model.n_features_in_
    if hasattr(model, "feature_names_in_"):
        out.feature_names_in_ = model.feature_names_in_
    return out


# ---- reading and writing ------------------------------------------------------------------------


def _write(path: Path, content: bytes, overwrite: bool) -> None:
    """All or nothing: the name appears when the content is complete, and never by accident."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.chmod(file.name, 0o644)
            if overwrite:
                os.replace(file.name, path)
            else:
                os.link(file.name, path)  # fails where `path` exists
        finally:
            Path(file.name).unlink(missing_ok=True)
    except FileExistsError:
        raise ModelFileError(f"{path} exists; choose another name or overwrite it.") from None
    except OSError as error:
        raise ModelFileError(f"{path} cannot be written: {error.strerror}.") from None


def _read(path: Path) -> tuple[dict[str, Any], sp.csr_array]:
    with path.open("rb") as file:
        start = file.read(2)
    extra: tuple[np.ndarray, ...] = ()
    if start == b"PK":
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                header = json.loads(archive["header"].tobytes())
                parts = [archive[name] for name in ("data", "indices", "indptr")]
        except (zipfile.BadZipFile, EOFError, ValueError, KeyError):
            raise ModelFileError(f"{path.name} is not a dpsparse model, or is damaged.") from None
        extra = (parts[2], parts[1], parts[0])
    else:
        try:
            header = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            raise ModelFileError(f"{path.name} is not a dpsparse model, or is damaged.") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path.name} is not a dpsparse model.")
    if header.get("schema") != SCHEMA:
        raise ModelFileError(
            f"{path.name} has schema {header.get('schema')!r}, written by dpsparse "
            f"{header.get('dpsparse')}; this version reads schema {SCHEMA}."
        )
    if header.pop("checksum", None) != _checksum(header, *extra):
        raise ModelFileError(f"{path.name} is damaged or was edited: its checksum is wrong.")
    record = header["coef"]
    if not extra:
        parts = [
            np.array(record["data"], np.float64),
            np.array(record["indices"], np.int32),
            np.array(record["indptr"], np.int32),
        ]
    coef = sp.csr_array(tuple(parts), shape=tuple(record["shape"]))
    coef.check_format(full_check=True)
    return header, coef


def _rebuild(header: dict[str, Any], coef: sp.csr_array) -> BaseDPLinearModel:
    name = header["estimator"]
    if name not in estimators.__all__:
        raise ModelFileError(
            f"The model is a {name}, which this version of dpsparse ({dpsparse.__version__}) does "
            f"not have; it was written by {header['dpsparse']}."
        )
    kind = getattr(estimators, name)
    known = kind().get_params(deep=False)
    stored = {key: _decode(value) for key, value in header["parameters"].items()}
    model: BaseDPLinearModel = kind(**{k: v for k, v in stored.items() if k in known})
    for key, value in header["attributes"].items():
        setattr(model, key, _decode(value))
    record = header["coef"]
    if not record["sparse"]:
        dense = np.zeros(coef.shape)
        rows = np.repeat(np.arange(coef.shape[0]), np.diff(coef.indptr))
        dense[rows, coef.indices] = coef.data  # toarray would add, and 0.0 + -0.0 is 0.0
        model.coef_ = dense[0] if record["flat"] else dense
    else:
        model.coef_ = coef
    if "noise" in record:
        model.coef_noise_ = np.zeros(coef.shape[1], dtype=np.float32)
        model.coef_noise_[coef.indices] = record["noise"]
    model.privacy_ = Guarantee.from_dict(header["guarantee"])
    model.plan_ = _decode_plan(header["plan"])
    names = header["feature_names"]
    model.feature_names_ = tuple(names) if names is not None else None
    return model


def _checksum(header: dict[str, Any], *arrays: np.ndarray) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True, allow_nan=False).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _dense(coef: Any) -> np.ndarray:
    return np.asarray(coef.toarray() if hasattr(coef, "toarray") else coef)


def _stored(dense: np.ndarray) -> sp.csr_array:
    """CSR that keeps a weight of -0.0, whose bits are not zero."""
    rows, columns = np.nonzero(np.ascontiguousarray(dense, dtype=np.float64).view(np.uint64))
    return sp.csr_array((dense[rows, columns], (rows, columns)), shape=dense.shape)


def _names(model: BaseDPLinearModel, feature_names: Any) -> list[str] | None:
    names = feature_names
    for attribute in ("feature_names_", "feature_names_in_"):
        if names is None:
            names = getattr(model, attribute, None)
    if names is None:
        return None
    if len(names) != model.n_features_in_:
        raise ModelFileError(
            f"There are {len(names)} feature names for {model.n_features_in_} features."
        )
    return [str(name) for name in names]


# ---- values as JSON -----------------------------------------------------------------------------


def _encode(value: Any) -> Any:
    """Plain JSON types; what JSON lacks is tagged. Large arrays and foreign objects become null."""
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"type": "float", "value": repr(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO" and value.size <= _LARGEST:
        items = [_encode(item) for item in value.ravel().tolist()]
        kind = value.dtype.str if value.dtype.kind != "O" else "O"
        return {"type": "array", "dtype": kind, "shape": list(value.shape), "items": items}
    if isinstance(value, (list, tuple)):
        return {"type": type(value).__name__, "items": [_encode(item) for item in value]}
    if type(value).__name__ in _RECORDS:
        parts = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
        return {"type": type(value).__name__, "fields": parts}
    return None


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    kind = value["type"]
    if kind == "float":
        return float(value["value"])
    if kind == "array":
        items = [_decode(item) for item in value["items"]]
        if np.dtype(value["dtype"]).kind not in "biufUO":
            raise ModelFileError("The model file holds an array of an unknown type.")
        return np.array(items, dtype=value["dtype"]).reshape(value["shape"])
    if kind in ("list", "tuple"):
        items = [_decode(item) for item in value["items"]]
        return tuple(items) if kind == "tuple" else items
    return _RECORDS[kind](**{key: _decode(part) for key, part in value["fields"].items()})


def _encode_plan(plan: Plan) -> dict[str, Any]:
    out = {field.name: _encode(getattr(plan, field.name)) for field in fields(plan)}
    out["phases"] = [
        {"name": phase.name, "event": to_dict(phase.event), "note": phase.note}
        for phase in plan.phases
    ]
    out["parameters"] = {key: _encode(value) for key, value in plan.parameters.items()}
    return out


def _decode_plan(record: dict[str, Any]) -> Plan:
    values = {key: _decode(v) for key, v in record.items() if key not in ("phases", "parameters")}
    values["phases"] = tuple(
        Phase(part["name"], from_dict(part["event"]), part["note"]) for part in record["phases"]
    )
    values["parameters"] = {key: _decode(v) for key, v in record["parameters"].items()}
    return Plan(**values)

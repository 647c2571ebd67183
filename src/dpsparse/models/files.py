"""Model files that outlive Python versions: JSON, never a pickle.

A file holds what a fitted model publishes: estimator and parameters, weights, guarantee, plan,
feature names, library version, and a checksum of all that. Numbers come back
bit for bit. Of a `DPPipeline` it holds the steps as well, each with its parameters and what it
released, so that one file predicts from raw rows. The checksum finds damage; it is no signature.
What a file claims is therefore recomputed: its guarantee from the events of its plan, and its plan
from its parameters (models/claims.py). What it holds has the types that this library writes (models/values.py).
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

import dpsparse
from dpsparse._checks import without_leaking_errors
from dpsparse._files import write_whole
from dpsparse._json import canonical, parsed, readable
from dpsparse.accounting import Guarantee
from dpsparse.exceptions import DPSparseError, ModelFileError
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.models.claims import check_claims, check_fitted, check_prices
from dpsparse.models.values import (
    Damaged,
    are_numbers,
    check,
    decoded,
    decoded_plan,
    encoded,
    encoded_plan,
    facts_of,
    is_int,
    kind_of,
    made,
)
from dpsparse.preprocessing import DPPipeline, DPVectorizer

FORMAT = "dpsparse-model"
SCHEMA = 1
MOST_DENSE = (
    2**28
)  # weights; a model of more is loaded with sparse ones, which take what the file holds
Model = BaseDPLinearModel | DPPipeline


def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    feature_names: Any = None,
    overwrite: bool = False,
) -> Path:
    """Write a fitted model; returns the path.

    Parameters
    ----------
    model : fitted estimator or pipeline of dpsparse
        What to write. Its ledger is not written.
    path : path
        Where; a new file unless `overwrite`.
    feature_names : sequence of str or None, default=None
        Names of the columns; None takes those the model was fitted with, if any.
    overwrite : bool, default=False
        Whether an existing file may be replaced.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> from dpsparse import Domain, DPGradientClassifier, load, save
    >>> model = DPGradientClassifier(Domain(classes=[0, 1])).fit([[0.1, 0.2], [0.3, 0.1]] * 50, [0, 1] * 50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(save(model, f"{folder}/model.json", feature_names=["height", "weight"]))
    >>> bool((again.coef_ == model.coef_).all())
    True
    """
    path = Path(path)
    write_whole(path, dumps(model, feature_names=feature_names).encode(), overwrite)
    return path


def dumps(model: Model, *, feature_names: Any = None) -> str:
    """The text of the model file; `load` reads it from a file."""
    header = _header(model, feature_names)
    return readable({**header, "checksum": _checksum(header)})


def load(path: str | os.PathLike[str]) -> Model:
    """The fitted model of a file.

    A file that is damaged, foreign or newer than this library is refused, and so is a guarantee that its own plan and
    parameters contradict. The model has no ledger. Column names, if the file has any, are in `feature_names_`.

    Parameters
    ----------
    path : path
        A file that `save` or the command line wrote.

    Returns
    -------
    estimator or DPPipeline
        Fitted, without a ledger.

    Examples
    --------
    >>> import tempfile
    >>> from dpsparse import Domain, DPGradientClassifier, load, save
    >>> model = DPGradientClassifier(Domain(classes=[0, 1])).fit([[0.1, 0.2], [0.3, 0.1]] * 50, [0, 1] * 50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(save(model, f"{folder}/model.json", feature_names=["height", "weight"]))
    >>> again.privacy_ == model.privacy_, list(again.feature_names_)
    (True, ['height', 'weight'])
    """
    path = Path(path)
    damaged = ModelFileError(f"{path.name} is not a dpsparse model, or is damaged.")

    def read() -> Model:
        try:
            return _rebuild(path.name, *_read(path))
        except Damaged:
            raise damaged from None
        except ModelFileError:
            raise
        except FileNotFoundError:
            raise ModelFileError(f"There is no file {path}.") from None
        except IsADirectoryError:
            raise ModelFileError(f"{path.name} cannot be read: it is a folder.") from None
        except PermissionError:
            raise ModelFileError(f"{path.name} cannot be read: permission denied.") from None
        except DPSparseError:  # of an event, a domain, a parameter: their texts quote the file
            raise damaged from None

    return without_leaking_errors(lambda: damaged, read)


# ---- writing ------------------------------------------------------------------------------------


def _header(model: Model, feature_names: Any) -> dict[str, Any]:
    """Everything but the checksum, as plain JSON types."""
    check_is_fitted(model)
    if isinstance(model, DPPipeline):
        return _pipeline_header(model, feature_names)
    sparse = sp.issparse(model.coef_)
    coef = sp.csr_array(model.coef_) if sparse else _stored(np.atleast_2d(model.coef_))
    names = _names(model, feature_names)
    header: dict[str, Any] = {
        "format": FORMAT,
        "schema": SCHEMA,
        "dpsparse": dpsparse.__version__,
        "estimator": type(model).__name__,
        **facts_of(model, without={"ledger"}),  # the account belongs to the place of training
        **_search_of(model),
        "feature_names": names,
        "guarantee": model.privacy_.to_dict(),
        "plan": encoded_plan(model.plan_),
        "coef": {
            "shape": list(coef.shape),
            "flat": not sparse and np.ndim(model.coef_) == 1,
            "sparse": sparse,
            "indptr": coef.indptr.tolist(),
            "indices": coef.indices.tolist(),
            "data": coef.data.tolist(),
        },
    }
    noise = getattr(model, "coef_noise_", None)
    if noise is not None:  # one number for every stored weight
        header["coef"]["noise"] = noise[coef.indices].tolist()
    if not np.isfinite(coef.data).all():
        raise ModelFileError("The weights are not finite; such a model is of no use.")
    return header


def _pipeline_header(pipe: DPPipeline, feature_names: Any) -> dict[str, Any]:
    """The file of the model inside, and around it what was done to raw rows and what all of it cost."""
    inner = _header(pipe.model_, feature_names)
    header = {key: inner[key] for key in ("format", "schema", "dpsparse")}
    return header | {
        "estimator": "DPPipeline",
        **facts_of(pipe, without={"ledger", "steps"}),
        **_search_of(pipe),
        "steps": encoded(pipe.steps_),
        "model_name": pipe.steps[-1][0],
        "domain": encoded(pipe.domain),
        "guarantee": pipe.privacy_.to_dict(),
        "plan": encoded_plan(pipe.plan_),
        "model": {key: value for key, value in inner.items() if key not in (*header, "coef")},
        "coef": inner["coef"],
    }


def _search_of(model: Model) -> dict[str, Any]:
    """The settings of the search that chose a model: its price follows from them."""
    return {"search": encoded(model.search_)} if hasattr(model, "search_") else {}


# ---- reading ------------------------------------------------------------------------------------

_OF_ALL = {
    "format",
    "schema",
    "dpsparse",
    "estimator",
    "parameters",
    "attributes",
    "guarantee",
    "plan",
    "coef",
}
_OF_A_MODEL = _OF_ALL | {"feature_names"}
_OF_A_PIPELINE = _OF_ALL | {"steps", "model_name", "domain", "model"}


def _read(path: Path) -> tuple[dict[str, Any], sp.csr_array]:
    header = parsed(path.read_bytes())
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path.name} is not a dpsparse model.")
    schema = header.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        found = f"schema {schema}" if type(schema) is int else "an unknown schema"
        raise ModelFileError(f"{path.name} has {found}; this version reads schema {SCHEMA}.")
    if header.pop("checksum", None) != _checksum(header):
        raise ModelFileError(f"{path.name} is damaged or was edited: its checksum is wrong.")
    return header, _read_weights(header["coef"])


def _read_weights(record: dict[str, Any]) -> sp.csr_array:
    """The stored weights; nothing is made that is as large as a stated shape."""
    parts = {"shape", "flat", "sparse", "indptr", "indices", "data"}
    check(parts <= record.keys() <= parts | {"noise"})
    check(are_numbers(record["data"]))
    check(are_numbers(record["indices"], (int,)) and are_numbers(record["indptr"], (int,)))
    indptr, indices = (np.array(record[name], np.int32) for name in ("indptr", "indices"))
    data = np.array(record["data"], np.float64)
    shape = record["shape"]
    check(are_numbers(shape, (int,)) and len(shape) == 2 and min(shape) >= 1 and max(shape) < 2**31)
    check(type(record["flat"]) is bool and type(record["sparse"]) is bool)
    check(len(indptr) == shape[0] + 1 and bool(np.isfinite(data).all()))
    coef = sp.csr_array((data, indices, indptr), shape=tuple(shape))
    coef.check_format(full_check=True)
    check(coef.has_canonical_format)
    noise = np.array(record.get("noise", []), np.float64)
    check(
        are_numbers(record.get("noise", []))
        and bool((noise >= 0.0).all() and np.isfinite(noise).all())
    )
    check("noise" not in record or len(noise) == len(data))
    return coef


def _rebuild(file: str, header: dict[str, Any], coef: sp.csr_array) -> Model:
    if header["estimator"] == "DPPipeline":
        return _rebuild_pipeline(file, header, coef)
    model = _rebuild_model(file, header, coef)
    check_prices(file, model, header["dpsparse"])
    return _without_omitted(model, header)


def _rebuild_pipeline(file: str, header: dict[str, Any], coef: sp.csr_array) -> DPPipeline:
    check(_OF_A_PIPELINE <= header.keys() <= _OF_A_PIPELINE | {"search"})
    common = {key: header[key] for key in ("format", "schema", "dpsparse", "coef")}
    model = _rebuild_model(file, {**header["model"], **common}, coef)
    steps = [tuple(pair) for pair in decoded(header["steps"])]
    check(type(header["model_name"]) is str)
    given = type(model)(
        **{**model.get_params(deep=False), "domain": decoded(header["domain"]), "epsilon": 1.0}
    )
    whole = [*((name, clone(step)) for name, step in steps), (header["model_name"], given)]
    pipe: DPPipeline = made(DPPipeline, header, steps=whole)
    pipe.steps_, pipe.model_ = steps, model
    _add_claims(file, pipe, header)
    check(is_int(pipe.n_features_in_, 1))
    check_prices(file, pipe, header["dpsparse"])
    _without_omitted(model, header["model"])
    pipe.predict(_blank_row(pipe))  # what cannot prepare one row is damaged
    return pipe


def _rebuild_model(file: str, header: dict[str, Any], coef: sp.csr_array) -> BaseDPLinearModel:
    name = header["estimator"]
    kind = kind_of(name) if type(name) is str else None
    if kind is None:
        what = name if re.fullmatch(r"[A-Z][A-Za-z]{1,60}", str(name)) else "kind of model"
        raise ModelFileError(
            f"{file} holds a {what} that this version of dpsparse ({dpsparse.__version__}) does not have."
        )
    check(_OF_A_MODEL <= header.keys() <= _OF_A_MODEL | {"search"})
    model: BaseDPLinearModel = made(kind, header)
    record = header["coef"]
    if record["sparse"] or math.prod(coef.shape) > MOST_DENSE:
        model.coef_ = coef
    else:
        dense = np.zeros(coef.shape)
        rows = np.repeat(np.arange(coef.shape[0]), np.diff(coef.indptr))
        dense[rows, coef.indices] = coef.data  # toarray would add, and 0.0 + -0.0 is 0.0
        model.coef_ = dense[0] if record["flat"] else dense
    check("noise" not in record or getattr(model, "drowned_", None) is not None)
    if "noise" in record and coef.shape[1] <= MOST_DENSE:
        model.coef_noise_ = np.zeros(coef.shape[1], dtype=np.float32)
        model.coef_noise_[coef.indices] = record["noise"]
    names = header["feature_names"]
    check(names is None or (type(names) is list and all(type(each) is str for each in names)))
    check(names is None or len(names) == coef.shape[1])
    model.feature_names_ = tuple(names) if names is not None else None
    check_fitted(model, coef.shape, flat=record["flat"])
    _add_claims(file, model, header)
    return model


def _add_claims(file: str, model: Model, header: dict[str, Any]) -> None:
    model.privacy_ = Guarantee.from_dict(header["guarantee"])
    model.plan_ = decoded_plan(header["plan"])
    if "search" in header:
        model.search_ = decoded(header["search"])
    check_claims(file, model)


def _without_omitted(model: BaseDPLinearModel, header: dict[str, Any]) -> BaseDPLinearModel:
    """Large arrays are not in the file; their shapes have served to price the model."""
    stored = header["parameters"].items()
    omitted = [k for k, value in stored if isinstance(value, dict) and value["type"] == "omitted"]
    model.set_params(**dict.fromkeys(omitted))
    return model


def _blank_row(pipe: DPPipeline) -> Any:
    """One raw row of missing values."""
    if hasattr(pipe, "feature_names_in_"):
        return {str(name): np.array([None], object) for name in pipe.feature_names_in_}
    if isinstance(pipe.steps_[0][1], DPVectorizer):
        return [""]
    return np.full((1, pipe.n_features_in_), None, object)


def _checksum(header: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(header).encode()).hexdigest()


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

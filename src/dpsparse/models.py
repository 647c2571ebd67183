"""Model files that outlive Python versions: JSON, or NPZ above 1e5 non-zeros; never a pickle.

A file holds what a fitted model publishes: estimator and parameters, weights, guarantee, plan,
feature names and declared scales, library version, and a checksum of all that. Numbers come back
bit for bit. Of a `DPPipeline` it holds the steps as well, each with its parameters and what it
released, so that one file predicts from raw rows. The checksum finds damage; it is no signature.
What a file claims is therefore recomputed: its guarantee from the events of its plan, and its plan
against its parameters.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.utils.validation import check_is_fitted

import dpsparse
from dpsparse import estimators, published
from dpsparse._checks import quietly
from dpsparse._files import write_whole
from dpsparse._json import canonical, readable
from dpsparse._model_values import decoded, decoded_plan, encoded, encoded_plan, facts_of, made
from dpsparse.estimators._base import BaseDPLinearModel
from dpsparse.exceptions import DPSparseError, ModelFileError
from dpsparse.preprocessing import DPPipeline
from dpsparse.privacy import Guarantee, Plan
from dpsparse.privacy.guarantee import PERSON, ROW

FORMAT = "dpsparse-model"
SCHEMA = 1
JSON_LIMIT = 100_000  # non-zeros; above, text is slower and larger than NPZ
Model = BaseDPLinearModel | DPPipeline


def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    feature_names: Any = None,
    overwrite: bool = False,
) -> Path:
    """Write a fitted model; returns the path, whose ending becomes .npz above 1e5 non-zeros.

    Parameters
    ----------
    model : fitted estimator or pipeline of dpsparse
    path : path
    feature_names : sequence of str or None
        Names of the columns; None takes those the model was fitted with, if any.
    overwrite : bool
        Whether an existing file may be replaced.

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
    header, weights = _header(model, feature_names)
    if len(weights["data"]) <= JSON_LIMIT:
        write_whole(path, _as_text(header, weights).encode(), overwrite)
        return path
    header["checksum"] = _checksum(header, *weights.values())
    path = path.with_suffix(".npz")
    buffer = np.frombuffer(canonical(header).encode(), np.uint8)
    content = io.BytesIO()
    np.savez_compressed(content, header=buffer, **weights)  # type: ignore[arg-type]
    write_whole(path, content.getvalue(), overwrite)
    return path


def dumps(model: Model, *, feature_names: Any = None) -> str:
    """The text of the model file, whatever its size; `load` reads it from a file."""
    return _as_text(*_header(model, feature_names))


def load(path: str | os.PathLike[str]) -> Model:
    """The fitted model of a file; refuses what is damaged, foreign or newer than this library,
    and a guarantee that its own plan and parameters do not bear out.

    The model has no ledger. Column names, if the file has any, are in `feature_names_`, the public
    constants by which columns were divided before training in `scales_`.

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

    return quietly(lambda: damaged, read)


def to_sklearn(model: Model) -> Any:
    """A plain scikit-learn model (or pipeline) with the same predictions, for deployment.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier, to_sklearn
    >>> model = DPGradientClassifier(Domain(classes=[0, 1])).fit([[0.1, 0.2], [0.3, 0.1]] * 50, [0, 1] * 50)
    >>> type(to_sklearn(model)).__name__
    'LogisticRegression'
    """
    check_is_fitted(model)
    if isinstance(model, DPPipeline):
        return model._plain_pipeline()
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


def _header(model: Model, feature_names: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Everything but the weights as plain JSON types, and the arrays of the weights."""
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
        "feature_names": names,
        "scales": getattr(model, "scales_", None),
        "guarantee": model.privacy_.to_dict(),
        "plan": encoded_plan(model.plan_),
        "coef": {
            "shape": list(coef.shape),
            "flat": not sparse and np.ndim(model.coef_) == 1,
            "sparse": sparse,
        },
    }
    noise = getattr(model, "coef_noise_", None)
    if noise is not None and coef.nnz <= JSON_LIMIT:  # one number for every stored weight
        header["coef"]["noise"] = noise[coef.indices].tolist()
    if not np.isfinite(coef.data).all():
        raise ModelFileError("The weights are not finite; such a model is of no use.")
    return header, {"indptr": coef.indptr, "indices": coef.indices, "data": coef.data}


def _pipeline_header(
    pipe: DPPipeline, feature_names: Any
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The file of the model inside, and around it what was done to raw rows and what all of it cost."""
    inner, weights = _header(pipe.model_, feature_names)
    header = {key: inner[key] for key in ("format", "schema", "dpsparse")}
    header |= {
        "estimator": "DPPipeline",
        "parameters": {
            name: encoded(getattr(pipe, name))
            for name in ("epsilon", "delta", "adjacency", "leak_share", "random_state")
        },
        "attributes": {
            name: encoded(getattr(pipe, name))
            for name in ("n_features_in_", "feature_names_in_", "about_")
            if hasattr(pipe, name)
        },
        "steps": encoded(pipe.steps_),
        "model_name": pipe.steps[-1][0],
        "domain": encoded(pipe.domain),
        "guarantee": pipe.privacy_.to_dict(),
        "plan": encoded_plan(pipe.plan_),
        "model": {key: value for key, value in inner.items() if key != "coef"},
        "coef": inner["coef"],
    }
    return header, weights


def _as_text(header: dict[str, Any], weights: dict[str, np.ndarray]) -> str:
    header["coef"] |= {name: part.tolist() for name, part in weights.items()}
    header["checksum"] = _checksum(header)
    return readable(header)


def _read(path: Path) -> tuple[dict[str, Any], sp.csr_array]:
    content = path.read_bytes()
    extra: tuple[np.ndarray, ...] = ()
    if content.startswith(b"PK"):
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            header = json.loads(archive["header"].tobytes())
            parts = [archive[name] for name in ("data", "indices", "indptr")]
        extra = (parts[2], parts[1], parts[0])
    else:
        header = json.loads(content)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ModelFileError(f"{path.name} is not a dpsparse model.")
    schema = header.get("schema")
    if schema != SCHEMA:
        found = f"schema {schema}" if type(schema) is int else "an unknown schema"
        raise ModelFileError(f"{path.name} has {found}; this version reads schema {SCHEMA}.")
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


def _rebuild_pipeline(file: str, header: dict[str, Any], coef: sp.csr_array) -> DPPipeline:
    inside = {**header["model"], "coef": header["coef"]}
    model = _rebuild(file, inside, coef)
    steps = [tuple(pair) for pair in decoded(header["steps"])]
    given = type(model)(
        **{**model.get_params(deep=False), "domain": decoded(header["domain"]), "epsilon": 1.0}
    )
    parameters = {key: decoded(value) for key, value in header["parameters"].items()}
    pipe = DPPipeline(
        [*((n, clone(s)) for n, s in steps), (header["model_name"], given)], **parameters
    )
    for key, value in header["attributes"].items():
        setattr(pipe, key, decoded(value))
    pipe.steps_, pipe.model_ = steps, model
    pipe.privacy_ = Guarantee.from_dict(header["guarantee"])
    pipe.plan_ = decoded_plan(header["plan"])
    # The fit is a part of what the pipeline pays for: the phases of its plan stand there too.
    paid = {(phase.name, phase.event) for phase in pipe.plan_.phases}
    within = all((phase.name, phase.event) in paid for phase in model.plan_.phases)
    _check_agreement(file, pipe, pipe.plan_, model._domain.unit, within)
    return pipe


def _rebuild(file: str, header: dict[str, Any], coef: sp.csr_array) -> Model:
    name = header["estimator"]
    if name == "DPPipeline":
        return _rebuild_pipeline(file, header, coef)
    home = published if name in published.__all__ else estimators
    if name not in home.__all__:
        kind = name if re.fullmatch(r"DP[A-Za-z]{1,60}", str(name)) else "kind of model"
        raise ModelFileError(
            f"{file} holds a {kind} that this version of dpsparse ({dpsparse.__version__}) does "
            "not have."
        )
    model: BaseDPLinearModel = made(getattr(home, name), header)
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
    model.plan_ = decoded_plan(header["plan"])
    names = header["feature_names"]
    model.feature_names_ = tuple(names) if names is not None else None
    model.scales_ = header.get("scales")
    _check_claims(file, model)
    return model


def _check_claims(file: str, model: BaseDPLinearModel) -> None:
    """What the file promises must follow from its plan, and its plan from its parameters.

    The events of both were recomputed when they were decoded; here the copies must agree. Only
    the noiseless, published and seeded plans may state another epsilon than the parameter.
    """
    right = model._is_published or model.epsilon == model.plan_.epsilon
    _check_agreement(file, model, model.plan_, model._domain.unit, right or not model.plan_.proven)


def _check_agreement(file: str, model: Model, plan: Plan, unit: str, agree: bool) -> None:
    stated = (model.delta, model.adjacency, PERSON if unit == "person" else ROW)
    agree = agree and model.privacy_ == plan.guarantee
    agree = agree and stated == (plan.delta, plan.adjacency, plan.unit)
    if plan.proven:
        agree = agree and model.random_state is None
        agree = agree and (isinstance(model, BaseDPLinearModel) or model.epsilon == plan.epsilon)
    if not agree:
        raise ModelFileError(
            f"{file} contradicts itself: its guarantee does not follow from its plan and "
            "parameters. It was edited; do not trust it."
        )


def _checksum(header: dict[str, Any], *arrays: np.ndarray) -> str:
    digest = hashlib.sha256(canonical(header).encode())
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

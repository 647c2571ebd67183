"""Model files that outlive Python versions: JSON, never a pickle.

A file holds one record, of the fitted model with its parameters and all that it publishes: weights, plan, feature
names. In the record of a `DPPipeline` stand those of its steps and of the model inside, so that one file predicts from
raw rows. Numbers come back bit for bit. Beside the record stand the guarantee, the version of the library and a
checksum, which finds damage and is no signature.
What a file claims is therefore recomputed: its guarantee from the events of its plan, and its plan
from its parameters (models/claims.py). What it holds has the types that this library writes (models/values.py).
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

import dpsparse
from dpsparse._checks import without_leaking_errors
from dpsparse._files import write_whole
from dpsparse._json import canonical, parsed, readable
from dpsparse.accounting import Guarantee
from dpsparse.accounting.guarantee import PREPARED
from dpsparse.exceptions import DPSparseError, ModelFileError
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.models.claims import check_claims, check_fitted, check_prices
from dpsparse.models.values import Damaged, check, decoded, encoded, kind_of
from dpsparse.preprocessing import DPPipeline, DPVectorizer

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
    """The text of the model file; `load` reads it from a file. What `load` would refuse is refused here."""
    if hasattr(model, "best_estimator_"):
        raise ModelFileError("A search is not saved; save its best_estimator_, which paid for it.")
    if not isinstance(model, (BaseDPLinearModel, DPPipeline)):
        raise ModelFileError(
            f"Only fitted estimators of dpsparse and a DPPipeline are saved, not {type(model).__name__}."
        )
    check_is_fitted(model)
    if model.plan_.table == PREPARED:
        raise ModelFileError(
            "This model is the last step of a DPPipeline and knows prepared rows alone; save the pipeline."
        )
    inner: Any = getattr(model, "model_", model)
    record = encoded(model)
    attributes = record["attributes"].get("model_", record)["attributes"]
    attributes["feature_names_"] = encoded(_names(inner, feature_names))
    if not np.isfinite(attributes["coef_"]["data"]).all():
        raise ModelFileError("The weights are not finite; such a model is of no use.")
    header = {
        "format": "dpsparse-model",
        "schema": 1,
        "dpsparse": dpsparse.__version__,
        "guarantee": model.privacy_.to_dict(),
        "model": record,
    }
    text = readable({**header, "checksum": _checksum(header)})
    odd = ModelFileError(
        "This model could not be read again: its parameters or attributes are not those of its fit. Fit it anew."
    )
    without_leaking_errors(lambda: odd, _read_again, text, odd)
    return text


def _read_again(text: str, odd: ModelFileError) -> None:
    try:
        _rebuild("the model", _read("the model", text.encode()))
    except DPSparseError:  # whose text speaks of a file
        raise odd from None


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
            return _rebuild(path.name, _read(path.name, path.read_bytes()))
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


def _names(model: BaseDPLinearModel, feature_names: Any) -> tuple[str, ...] | None:
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
    return tuple(str(name) for name in names)


def _read(file: str, content: bytes) -> dict[str, Any]:
    header = parsed(content)
    if not isinstance(header, dict) or header.get("format") != "dpsparse-model":
        raise ModelFileError(f"{file} is not a dpsparse model.")
    schema = header.get("schema")
    if type(schema) is not int or schema != 1:
        found = f"schema {schema}" if type(schema) is int else "an unknown schema"
        raise ModelFileError(f"{file} has {found}; this version reads schema 1.")
    if header.pop("checksum", None) != _checksum(header):
        raise ModelFileError(f"{file} is damaged or was edited: its checksum is wrong.")
    return header


def _checksum(header: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(header).encode()).hexdigest()


def _rebuild(file: str, header: dict[str, Any]) -> Model:
    check(header.keys() == {"format", "schema", "dpsparse", "guarantee", "model"})
    name = header["model"]["kind"]
    if type(name) is not str or kind_of(name) is None:
        what = name if re.fullmatch(r"[A-Z][A-Za-z]{1,60}", str(name)) else "kind of model"
        raise ModelFileError(
            f"{file} holds a {what} that this version of dpsparse ({dpsparse.__version__}) does not have."
        )
    model: Model = decoded(header["model"])
    model.privacy_ = Guarantee.from_dict(header["guarantee"])
    inner = model.model_ if isinstance(model, DPPipeline) else model
    check_fitted(inner)
    if isinstance(model, DPPipeline):
        check_claims(file, inner)
    check_claims(file, model)
    check_prices(file, model, header["dpsparse"])
    unfitted = [model.steps[-1][1]] if isinstance(model, DPPipeline) else []
    for each in (inner, *unfitted):  # shapes of large arrays have served to price the model
        omitted = [k for k, v in each.get_params(deep=False).items() if isinstance(v, sp.coo_array)]
        each.set_params(**dict.fromkeys(omitted))
    if isinstance(model, DPPipeline):
        model.predict(_blank_row(model))  # what cannot prepare one row is damaged
    return model


def _blank_row(pipe: DPPipeline) -> Any:
    """One raw row of missing values."""
    if hasattr(pipe, "feature_names_in_"):
        return {str(name): np.array([None], object) for name in pipe.feature_names_in_}
    if isinstance(pipe.steps_[0][1], DPVectorizer):
        return [""]
    return np.full((1, pipe.n_features_in_), None, object)

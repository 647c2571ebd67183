"""Checks of private rows: those of scikit-learn, with messages of our own.

A refusal names the kind of fault, and neither a cell, nor where it stands, nor the number of rows, which "add-remove"
protects. The names of columns are public, but a table read without its header has a person's cells for names; names
are shown where scikit-learn's contract demands it (`predict` on other columns than `fit`) and they read like names.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsparse._cells import column_cells, label_codes, natural_type, refuse_complex
from dpsparse._checks import decoded, without_leaking_errors
from dpsparse.exceptions import NotNumericError, ParameterError, SchemaError

_WANTED = (
    "X must be a numeric table (array, CSR or CSC matrix, data frame) with one row per sample."
)


def checked_data(estimator: Any, X: Any, **checks: Any) -> Any:
    """scikit-learn's schema checks of X; every refusal is one of ours."""
    reset = checks.get("reset", True)
    X = without_leaking_errors(_WANTED, decoded, X)
    if isinstance(X, (list, tuple)):
        # Of integers beyond 64 bits scikit-learn takes arrays and refuses lists.
        with contextlib.suppress(Exception):
            X = np.asarray(X)
    out = without_leaking_errors(
        lambda: _fault(estimator, X, reset=reset),
        _validated, estimator, X, **checks,
    )  # fmt: skip
    if not reset:
        fitted = hasattr(estimator, "feature_names_in_")
        named = column_names(X) is not None
        name = type(estimator).__name__
        if fitted and not named:
            _warn(
                f"X does not have valid feature names, but {name} was fitted with feature names",
                UserWarning,
            )
        if named and not fitted:
            _warn(f"X has feature names, but {name} was fitted without feature names", UserWarning)
    return out


def checked_column(estimator: Any, y: Any) -> np.ndarray:
    """The cells of y, one by one; what they are is decided by what is declared."""
    if y is None:
        raise SchemaError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None."
        )
    cells = column_cells(y)
    if len(_shape(y)) == 2:
        _warn(
            "A column-vector y was passed when a 1d array was expected; pass y.ravel().",
            DataConversionWarning,
        )
    return cells


def check_lengths(X: Any, y: np.ndarray) -> None:
    """Refuse targets that are more or fewer than the rows."""
    if X.shape[0] != len(y):
        raise SchemaError("X and y have different numbers of rows; pass one target per row.")


def _validated(estimator: Any, X: Any, **checks: Any) -> Any:
    rows = validate_data(estimator, X, accept_sparse="csr", dtype="numeric", **checks)
    if rows.dtype.kind not in "biuf":  # scikit-learn lets some objects and categories pass
        raise TypeError
    return rows


def check_observed(y: np.ndarray) -> None:
    """Refuse targets with a public set of labels that cannot be class labels, such as fractions or mixed types."""
    if y.dtype.kind in "iu":
        return
    refuse_complex(y)
    without_leaking_errors(
        "Unknown label type: y must hold class labels, whole numbers or text, one kind throughout, none missing. "
        "For numbers use a regressor.",
        check_classification_targets, natural_type(y),
    )  # fmt: skip


def checked_score(
    estimator: Any, score: Callable[..., float], X: Any, y: Any, weights: Any
) -> float:
    """score(X, y, weights); metrics of scikit-learn quote labels and count rows when they refuse."""
    check_is_fitted(estimator)
    sentence = (
        "y cannot be compared with the predictions; pass one target per row of X, of the kind the "
        "model was fitted with."
    )
    return float(without_leaking_errors(sentence, score, X, y, weights))


def accuracy(y: Any, guess: Any, labels: np.ndarray, weights: Any = None) -> float:
    """The share of the rows whose label, read as `fit` reads it, is the predicted one. A label that the model does not
    know is never predicted; a cell that is neither text nor number is no label."""
    cells = column_cells(y)
    truth, guess = label_codes(cells, labels), label_codes(column_cells(guess), labels)
    unknown = cells[truth < 0].tolist()
    if truth.shape != guess.shape or not all(isinstance(cell, (str, Real)) for cell in unknown):
        raise ValueError
    return float(np.average(truth == guess, weights=weights))


# ---- what is wrong, by types and shapes ---------------------------------------------------------


def _fault(estimator: Any, X: Any, *, reset: bool) -> Exception:
    name = type(estimator).__name__
    names, shape = column_names(X), _shape(X)
    if not reset and names is not None and hasattr(estimator, "feature_names_in_"):
        seen = list(estimator.feature_names_in_)
        if seen != names:
            return SchemaError(_other_names(seen, names))
    if len(shape) != 2:
        return SchemaError(
            "Expected 2D array X with one row per sample. Reshape your data, for instance with "
            "X.reshape(-1, 1) for a single feature."
        )
    if names is None and any(isinstance(column, str) for column in getattr(X, "columns", ())):
        return SchemaError("The columns of X must all be named by text, or none of them.")
    fault = _not_numeric(X)
    if fault is not None:
        return fault
    if shape[1] == 0:
        return SchemaError("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    if shape[0] == 0:
        return SchemaError("X holds no rows.")
    if not reset and shape[1] != estimator.n_features_in_:
        return SchemaError(
            f"X has {shape[1]} features, but {name} is expecting {estimator.n_features_in_} "
            "features as input."
        )
    if not np.isfinite(_floats(X)).all():
        return SchemaError(
            "Input X contains NaN or infinity; replace missing values by a public constant."
        )
    return SchemaError(_WANTED)


def _not_numeric(X: Any) -> Exception | None:
    """Complex numbers, and what cannot become a number; its place is not named."""
    if _kind(X) == "c":
        return SchemaError("Complex data not supported; pass real numbers in X.")
    if _floats(X) is not None:
        return None
    return NotNumericError(
        "X must be numeric (an argument must be a numeric string or a number); prepare text, dates and missing values: "
        "DPPipeline([('table', DPTablePreparer(rest='auto')), ('model', model)]), or encode them with a public "
        "vocabulary (sklearn's FeatureHasher) and fill missing cells with a public constant."
    )


def _floats(values: Any) -> Any:
    """All cells, or those that are stored; None where one cannot become a number."""
    try:
        values = values.data if sp.issparse(values) else values  # type: ignore[attr-defined, unused-ignore]
        return np.asarray(values, dtype=np.float64)
    except Exception:
        return None


def _kind(values: Any) -> str:
    try:
        return str((values if hasattr(values, "dtype") else np.asarray(values)).dtype.kind)
    except Exception:
        return "O"


def _shape(values: Any) -> tuple[int, ...]:
    shape = getattr(values, "shape", None)
    if shape is None:
        try:
            shape = np.shape(values)
        except Exception:  # ragged lists
            return ()
    return tuple(shape)


def warn_if_left_in_rows(names: Any, y: Any, groups: Any = None) -> None:
    """A target left among the columns makes a model that knows the answer, and an identifier is learnt as a feature; by
    names alone, never by cells."""
    remedies = {
        "y": "if it is the target, the model will see it",
        "groups": "as a feature, an identifier only adds noise",
    }
    for argument, given in (("y", y), ("groups", groups)):
        name = getattr(given, "name", None)
        if isinstance(name, str) and names is not None and name in set(names):
            why = remedies[argument]
            text = f"X has a column of the name that {argument} has: {why}. Drop it from X."
            warnings.warn(text, UserWarning, stacklevel=3)


def column_names(X: Any) -> list[str] | None:
    """Column names of a data frame, if all of them are text."""
    columns = getattr(X, "columns", None)
    if columns is None or not len(columns) or not all(isinstance(c, str) for c in columns):
        return None
    return list(columns)


def _other_names(seen: list[str], names: list[str]) -> str:
    """In scikit-learn's words, which its contract for estimators prescribes."""
    lines = ["The feature names should match those that were passed during fit."]
    unseen, missing = sorted(set(names) - set(seen)), sorted(set(seen) - set(names))
    readable = [name for name in unseen if name.isidentifier()]
    if unseen:
        lines += ["Feature names unseen at fit time:", *_listed(readable, len(unseen))]
    if missing:
        lines += ["Feature names seen at fit time, yet now missing:", *_listed(missing)]
    if not unseen and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"


def _listed(names: list[str], n_all: int | None = None) -> list[str]:
    shown = [f"- {name}" for name in names[:5]]
    return shown if len(shown) == (len(names) if n_all is None else n_all) else [*shown, "- ..."]


def _warn(text: str, category: type[Warning]) -> None:
    warnings.warn(text, category, stacklevel=4)


def refuse_weights(refused: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that `fit` does not have, weights of rows in words."""
    if "sample_weight" in refused:
        raise ParameterError(
            "This fit takes no sample_weight. Declare Domain(weight_bound=...) and take one of DPSparseClassifier, "
            "DPSparseRegressor, DPGradientClassifier, DPGradientRegressor, DPRidgeRegressor, which are proven for "
            "weights of rows; weights of classes are public: DPGradientClassifier(class_weight=...)."
        )
    if refused:
        raise TypeError(f"fit got an unexpected keyword argument {next(iter(refused))!r}.")


def is_dask(X: Any) -> bool:
    """Whether X is a collection of Dask's, or delayed parts; imports nothing."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and is_dask(X[0])
    return "dask" in sys.modules and type(X).__module__.split(".")[0] in ("dask", "dask_expr")


def refuse_spark(X: Any) -> None:
    """A Spark data frame does not say which of its columns is the target."""
    if type(X).__module__.startswith("pyspark."):
        raise ParameterError("Pass a Spark data frame as fit(Rows.from_spark(frame, target=...)).")

"""From a public model and private rows to scored rows: the last place where an evaluation sees rows.

Everything that can be refused is refused here, before anything is spent, and no message quotes a row. What only one row
could cause (a score that is not a number, a class that does not occur, equal scores) is never refused: the refusal
would show that row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse import methods
from dpsparse._cells import column_cells, label_codes, read_numbers
from dpsparse._checks import refuse_large_labels, without_leaking_errors
from dpsparse.domain import Domain
from dpsparse.domain.clipping import check_range
from dpsparse.evaluation.plan import Subject
from dpsparse.exceptions import ParameterError, SchemaError
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.methods.schema import checked_data
from dpsparse.rows import kernels
from dpsparse.rows.histogram import ScoredLabels, ScoredNumbers, log_odds

Ask = Callable[[Callable[[Any], Any], Any], np.ndarray]  # (method of a model, rows) -> what it says


def describe_model(model: Any, target_bound: float | None, error_bound: float | None) -> Subject:
    """Public facts about a fitted model."""
    subject = _described(model, target_bound, error_bound)
    own = isinstance(model, BaseDPLinearModel)
    proven = own and getattr(getattr(model, "privacy_", None), "proven", False)
    return replace(subject, own=own, private=proven and type(model).__name__ in methods.__all__)


def _described(model: Any, target_bound: float | None, error_bound: float | None) -> Subject:
    if not hasattr(model, "predict"):
        raise ParameterError(
            "model must be a fitted classifier or regressor with a method predict."
        )
    classes = getattr(model, "classes_", None)
    if classes is None:
        if getattr(model, "_estimator_type", "") == "classifier" or hasattr(model, "predict_proba"):
            raise ParameterError("The model is not fitted: it has no classes_. Fit it first.")
        return _describe_regressor(model, target_bound, error_bound)
    if target_bound is not None or error_bound is not None:
        raise ParameterError(
            "target_bound and error_bound are for regressors; this model has classes."
        )
    if isinstance(classes, list) or np.ndim(classes) != 1 or len(classes) < 2:
        raise ParameterError("The model must know two or more classes of one target (classes_).")
    has_chances = hasattr(model, "predict_proba")
    ranks = has_chances or hasattr(model, "decision_function")
    positive = str(classes[1]) if len(classes) == 2 else ""
    return Subject(len(classes), ranks=ranks, has_chances=has_chances, positive=positive)


def _describe_regressor(
    model: Any, target_bound: float | None, error_bound: float | None
) -> Subject:
    middle = 0.0
    domain = getattr(model, "domain", None)
    if target_bound is None and isinstance(domain, Domain):
        target_bound, middle = domain.target_bound, domain.target_middle
    if target_bound is None:
        raise ParameterError(
            "A regressor needs the public bound of its targets; declare it: target_bound=10.0."
        )
    error_bound = target_bound if error_bound is None else error_bound
    # Of bounds that differ by more than floats reach, one row could overflow, and a warning would tell of it.
    check_range("target_bound", target_bound)
    check_range("error_bound", error_bound)
    return Subject(
        0,
        target_bound=float(target_bound),
        error_bound=float(error_bound),
        target_middle=middle,
    )


def name_of(model: Any) -> str:
    """What is evaluated; of a pipeline its last step."""
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if steps else model).__name__


def score_rows(
    model: Any,
    X: Any,
    y: Any,
    subject: Subject,
    groups: Any,
    worth: Callable[[int], np.ndarray | None],
) -> ScoredLabels | ScoredNumbers:
    """Private rows with what the model says about them; `worth` tells how much each of n rows counts."""
    n = _n_rows(X)
    ask = partial(_ask, n=n)
    y = column_cells(y)
    if len(y) != n:
        raise SchemaError("X and y have different numbers of rows; pass one target per row.")
    if n == 0:
        raise SchemaError("There are no rows to evaluate on. Nothing was spent.")
    units = groups, worth(n)
    if subject.n_classes == 0:
        return _score_numbers(model, X, y, subject, units, ask)
    labels = np.asarray(model.classes_)
    truth = _codes(y, labels, "y holds a label that the model does not know (classes_).")
    if isinstance(model, BaseDPLinearModel):
        margins = _margins(model, X)
        chances = np.empty((n, len(labels)))
        kernels.probabilities(margins, np.zeros(margins.shape[1]), chances)
        guess = (margins[:, 0] > 0).astype(np.intp) if margins.shape[1] == 1 else margins.argmax(1)
        score = margins[:, 0] if margins.shape[1] == 1 else log_odds(chances.max(axis=1))
        return ScoredLabels(truth, guess, score, chances, len(labels), *units)
    given = ask(model.predict, X)
    guess = _codes(given, labels, "The model predicts a label that is not in its classes_.")
    chance_table = _numbers(ask(model.predict_proba, X)) if subject.has_chances else None
    return ScoredLabels(
        truth,
        guess,
        _scores(model, X, n, subject, chance_table, ask),
        chance_table,
        len(labels),
        *units,
    )


def _scores(
    model: Any, X: Any, n: int, subject: Subject, chances: np.ndarray | None, ask: Ask
) -> np.ndarray | None:
    """The margin behind a probability: log p - log(1 - p). Without probabilities, the decision function."""
    if chances is not None:
        if chances.shape != (n, subject.n_classes):
            raise SchemaError("predict_proba must give one probability per row and class.")
        return log_odds(chances[:, 1] if subject.n_classes == 2 else chances.max(axis=1))
    if not subject.ranks or subject.n_classes > 2:
        return None
    margins = np.ravel(_numbers(ask(model.decision_function, X)))
    if len(margins) != n:
        raise SchemaError("decision_function must give one number per row.")
    return margins


def _score_numbers(
    model: Any, X: Any, y: np.ndarray, subject: Subject, units: tuple[Any, Any], ask: Ask
) -> ScoredNumbers:
    bound, middle = subject.target_bound, subject.target_middle
    targets = np.clip(read_numbers(y) - middle, -bound, bound)
    own = isinstance(model, BaseDPLinearModel)
    guess = _margins(model, X)[:, 0] if own else np.ravel(_numbers(ask(model.predict, X)))
    if len(guess) != len(y):
        raise SchemaError("predict must give one number per row; evaluate one output at a time.")
    guess = np.clip(np.nan_to_num(guess - middle, nan=0.0), -bound, bound)
    return ScoredNumbers((targets - guess) / subject.error_bound, targets / bound, *units)


def _margins(model: BaseDPLinearModel, X: Any) -> np.ndarray:
    """Margins by the loops of a sparse product: a dense one adds in an order that depends on all rows."""
    if not hasattr(model, "coef_"):
        raise ParameterError("The model is not fitted: it has no coef_. Fit it first.")
    try:
        rows = sp.csr_array(checked_data(model, X, reset=False))
    except ValueError as error:  # the first line names columns or says NaN; the rest is advice
        raise SchemaError(f"{str(error).splitlines()[0]} Nothing was spent.") from None
    coef = model.coef_
    dense = np.atleast_2d(coef.toarray() if hasattr(coef, "toarray") else coef)
    return np.asarray(rows @ dense.T + model.intercept_).reshape(rows.shape[0], -1)


def _ask(method: Callable[[Any], Any], X: Any, n: int) -> np.ndarray:
    """What a model says of all rows. Its own complaints may quote rows, and one row alone may cause a warning: neither
    is passed on, and the refusal is raised outside the handler, so that no log finds a cell behind it."""
    found, failure = np.empty(0), ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.asarray(method(X))
    except Exception as error:
        failure = type(error).__name__
    if failure:
        raise SchemaError(
            f"The model could not score these rows ({failure}); try {method.__name__} on them "
            "where they may be seen. Nothing was spent."
        )
    if found.ndim == 0 or len(found) != n:
        raise SchemaError(f"{method.__name__} must give one answer per row.")
    return found


def _numbers(found: np.ndarray) -> np.ndarray:
    """Scores as float64; a foreign message about one that is no number would quote it."""
    return without_leaking_errors(
        "The scores of the model are no numbers.", np.asarray, found, np.float64
    )


def _codes(y: np.ndarray, labels: np.ndarray, complaint: str) -> np.ndarray:
    """The place of every label among those of the model."""
    refuse_large_labels(labels)
    codes = label_codes(y, labels)
    if np.any(codes < 0):
        raise SchemaError(complaint)
    return codes


def prepared(pipeline: Any, X: Any) -> Any:
    """Raw rows as the model of a pipeline sees them, each a function of itself."""
    return without_leaking_errors(
        "X is not a table that the pipeline can prepare.", pipeline.transform, X
    )


def _n_rows(X: Any) -> int:
    if isinstance(X, Mapping):
        X = next(iter(X.values()), ())
    shape = getattr(X, "shape", None)
    try:
        return int(shape[0]) if shape is not None else len(X)
    except (TypeError, IndexError):
        raise SchemaError("X must be a table with one row per sample.") from None

"""Methods: ours by the names of their estimators, references, and the rivals of rivals/.

A method is written as a call: `DPSparse`, `DPGradient(masses=None)`, `sklearn`, `constant`, `AdaSSP`. It is fitted with
public facts and a budget, never with test rows.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from lab.tasks import Split, Task


@dataclass(frozen=True)
class Setting:
    """The budget of a fit, and whether the declared number of weights is kept to."""

    epsilon: float
    delta: float = 1e-6
    adjacency: str = "add-remove"
    n_nonzero: int | None = None

    def as_row(self) -> dict[str, Any]:
        epsilon = "inf" if math.isinf(self.epsilon) else self.epsilon
        found = {"epsilon": epsilon, "delta": self.delta, "adjacency": self.adjacency}
        return found if self.n_nonzero is None else found | {"n_nonzero": self.n_nonzero}


@dataclass(frozen=True)
class Fitted:
    """A model, what is promised about it, and measures that are no property of predictions."""

    model: Any
    guarantee: dict[str, Any] | None
    extra: dict[str, Any] = field(default_factory=dict)


Fit = Callable[..., Fitted]  # task, split, setting, seed, and what the call names


@dataclass(frozen=True)
class Method:
    """A name, how it is fitted, and on which tasks."""

    name: str
    fit: Fit
    handles: tuple[str, ...] = ("binary", "classes", "numbers")
    tracks: tuple[str, ...] | None = None  # all, or these

    def can_fit(self, task: Task) -> bool:
        return kind_of(task) in self.handles and task.track in (self.tracks or (task.track,))


def kind_of(task: Task) -> str:
    if task.is_regression:
        return "numbers"
    return "binary" if len(task.classes or ()) == 2 else "classes"


def find_method(text: str) -> Method:
    """The method that a call such as `DPGradient(masses=None)` names."""
    call = ast.parse(text.strip(), mode="eval").body
    parameters: dict[str, Any] = {}
    if isinstance(call, ast.Call):
        parameters = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
        call = call.func
    name = ast.unparse(call)
    method = _others().get(name)
    if method is None and name.startswith("DP"):
        method = Method(name, partial(_ours, name), HANDLES.get(name, Method.handles))
    if method is None:
        raise ValueError(f"There is no method {name!r}; known: DP..., {', '.join(_others())}.")
    return replace(method, name=text.strip(), fit=partial(method.fit, **parameters))


# ---- ours ----------------------------------------------------------------------------------------

TAKES_NO_WEIGHTS = ("DPLasso", "DPScreenedLasso", "DPADMM")
HANDLES = {"DPADMM": ("binary", "classes"), "DPRidge": ("numbers",)}


def _ours(
    name: str, task: Task, split: Split, setting: Setting, seed: int, **parameters: Any
) -> Fitted:
    """An estimator of the library."""
    model = our_estimator(name, task, split.X.shape[0], setting, seed, **parameters)
    groups = {} if split.persons is None else {"groups": split.persons}
    model.fit(split.X, split.y, **groups)
    extra = {"nonzero": int(model.n_nonzero_)}
    if chosen := model.plan_.parameters.get("chosen"):
        extra["chosen"] = chosen
    return Fitted(model, _promised(model, split.X.shape[1]), extra)


def our_estimator(
    name: str, task: Task, n_rows: int, setting: Setting, seed: int | None, **parameters: Any
) -> Any:
    """An estimator of the library with the public facts of a task."""
    import dpsparse as dp

    facts: dict[str, Any] = (
        {"target_range": task.target_range} if task.is_regression else {"classes": task.classes}
    )
    # Lengths of rows of a table are bounded by its width alone, which every method knows.
    row_norm = task.row_norm if task.track in ("text", "classes", "support") else None
    unit = {"unit": "person"} if task.track == "persons" else {"n_samples": n_rows}
    weights = setting.n_nonzero
    if weights is not None and name not in TAKES_NO_WEIGHTS:
        if name in ("DPTwoStage", "DPTransfer") and len(task.classes or ()) > 2:
            weights //= len(task.classes or ())
        parameters = {"n_nonzero": weights, **parameters}
    kind = getattr(dp, f"{name}{'Regressor' if task.is_regression else 'Classifier'}")
    return kind(
        dp.Domain(row_norm=row_norm, **unit, **facts),
        epsilon=setting.epsilon,
        delta=setting.delta,
        adjacency=setting.adjacency,
        random_state=seed,
        verbose=-1,
        **parameters,
    )


def promise(model: Any, width: int) -> Any:
    """The guarantee that a fit has with unseeded noise: experiments are seeded so that they repeat."""
    facts = model.get_params(deep=False) | {"random_state": None}
    return type(model)(**facts).plan(width).guarantee


def _promised(model: Any, width: int) -> dict[str, Any]:
    """What a row says of it."""
    found = promise(model, width)
    names = ("epsilon", "delta", "adjacency", "proven")
    said = {name: getattr(found, name) for name in names} | {"proof": found.source}
    return said | ({"epsilon": "inf"} if math.isinf(found.epsilon) else {})


# ---- references ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearModel:
    """Weights and an intercept as a model; `classes_` where it classifies. Several classes have a row each."""

    coef_: np.ndarray
    intercept_: Any
    classes_: np.ndarray | None = None

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(X @ self.coef_ + self.intercept_)

    def decision_function(self, X: Any) -> np.ndarray:
        if self.coef_.ndim == 1:
            return np.asarray(X @ self.coef_ + self.intercept_)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def predict_proba(self, X: Any) -> np.ndarray:
        margins = self.decision_function(X)
        if margins.ndim == 1:
            margins = np.column_stack([np.zeros(len(margins)), margins])
        chances = np.exp(margins - margins.max(axis=1, keepdims=True))
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _constant(task: Task, split: Split, setting: Setting, seed: int) -> Fitted:
    """What knowing nothing but the mean gives, without noise."""
    width = split.X.shape[1]
    if task.is_regression:
        model = LinearModel(np.zeros(width), float(np.mean(split.y)))
    else:
        labels = np.asarray(task.classes)
        shares = np.array([np.mean(split.y == k) for k in labels])
        odds = np.log(np.maximum(shares, 1e-12))
        if len(labels) == 2:
            model = LinearModel(np.zeros(width), odds[1] - odds[0], labels)
        else:
            model = LinearModel(np.zeros((len(labels), width)), odds, labels)
    return Fitted(model, None)


def _sklearn(task: Task, split: Split, setting: Setting, seed: int) -> Fitted:
    """Linear models of scikit-learn without privacy, their penalty chosen by cross-validation on training rows."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.model_selection import GridSearchCV

    if task.is_regression:
        X = sp.csr_array(split.X).toarray()
        return Fitted(RidgeCV(np.geomspace(1e-3, 1e3, 13)).fit(X, split.y), None)
    wide = split.X.shape[1] > 1000
    grid = {"C": [10.0] if wide else [0.1, 1.0, 10.0, 100.0]}
    search = GridSearchCV(LogisticRegression(max_iter=500), grid, scoring="neg_log_loss", cv=3)
    return Fitted(search.fit(split.X, split.y).best_estimator_, None)


# ---- rivals --------------------------------------------------------------------------------------


def _rival(entry: Any, task: Task, split: Split, setting: Setting, seed: int) -> Fitted:
    """An entry of rivals/; its settings are constants of its file."""
    from lab.rivals.base import Noise, Public

    n, d = split.X.shape
    if d > entry.most_columns:
        raise ValueError(f"{entry.name} needs {d:,} x {d:,} numbers")
    public = Public(n, d, task.row_norm or math.sqrt(d), task.classes, task.target_range)
    found = entry.fit(split.X, split.y, public, setting.epsilon, setting.delta, Noise(seed))
    labels = None if task.classes is None else np.asarray(task.classes)
    one = len(found.coef) == 1
    model = LinearModel(
        found.coef[0] if one else found.coef,
        float(found.intercept[0]) if one else found.intercept,
        labels,
    )
    proof = f"experiments/{entry.fit.__module__.replace('.', '/')}.py"
    promised = setting.as_row() | {"proof": proof, "proven": True}
    return Fitted(model, promised, {"nonzero": int(np.count_nonzero(found.coef))})


@cache
def _others() -> dict[str, Method]:
    """References, rivals, libraries of others and methods of one suite, by name."""
    from lab import outside, special
    from lab.rivals import ENTRIES

    fits = {"constant": _constant, "sklearn": _sklearn} | special.FITS
    found = {name: Method(name, fit) for name, fit in fits.items()}
    for name, entry in ENTRIES.items():
        found[name] = Method(name, partial(_rival, entry), entry.handles)
    for name, (_, handles, _) in outside.LIBRARIES.items():
        fit = partial(outside.fit, name)
        found[name] = Method(name, fit, handles, ("tables", "regression"))
    return found

"""The weights of a model as a person reads them: names, noise, and which label they speak for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import chdtri, ndtri

from dpsparse.report.plots import weight_figure


@dataclass(frozen=True)
class Weight:
    """One weight. `noise` is the standard deviation of its privacy noise, None where the method does not state it."""

    name: str
    value: float
    noise: float | None
    clear: bool | None  # whether it stands out of its noise
    effect: float | None = None  # times the declared size of its column


def positive_label(model: Any) -> str | None:
    """The label that positive weights speak for; None unless there are two."""
    labels = getattr(inner_model(model), "classes_", None)
    return str(labels[1]) if labels is not None and len(labels) == 2 else None


def noise_bar(n_weights: int) -> float:
    """Among so many weights of pure noise none is larger than this many standard deviations, with probability .95; a
    weight above it is told from noise even though it was picked for being large."""
    return float(-ndtri(0.025 / max(n_weights, 1)))


def clear_weights(model: Any) -> int | None:
    """How many weights stand out of their noise; None where the method does not state it."""
    coef, noise = _coef(model), _noise(model)
    if noise is None:
        return None
    return int(np.count_nonzero(_clear(coef, noise) & ~_drowned(coef, model)))


def stand_out_together(model: Any) -> bool:
    """Whether all weights together are larger than noise makes them but once in 20 models, where none was left out:
    the largest of many are larger than noise, whatever they are."""
    coef, noise = _coef(model), _noise(model)
    if noise is None or coef.nnz < math.prod(coef.shape):
        return False
    known = ~_drowned(coef, model)
    sizes = (coef.data / noise[coef.row, coef.col])[known]
    return bool(sizes @ sizes > chdtri(max(len(sizes), 1), 0.05))


def largest_weights(model: Any, top: int, reach: np.ndarray | None = None) -> list[Weight]:
    """The largest weights, by size or by effect; those that stand out from their noise come first, since a column that
    hardly any row has may get a large weight of pure noise. Weights of columns whose scale noise hides never do."""
    coef, noise, names = _coef(model), _noise(model), feature_names(model)
    effects = coef.data * (1.0 if reach is None else reach[coef.col])
    clear = np.ones(coef.nnz, bool) if noise is None else _clear(coef, noise)
    clear &= ~_drowned(coef, model)
    rows = []
    for k in np.lexsort((-np.abs(effects), ~clear))[:top]:
        j = int(coef.col[k])
        name = f"feature {j}" if names is None else str(names[j])
        if coef.shape[0] > 1:
            name += f" ({inner_model(model).classes_[coef.row[k]]})"
        sd = None if noise is None else float(noise[coef.row[k], j])
        known = None if noise is None and clear[k] else bool(clear[k])
        effect = None if reach is None else float(effects[k])
        rows.append(Weight(name, float(coef.data[k]), sd, known, effect))
    return rows


def plot_weights(model: Any, top: int = 15) -> Any:
    """A matplotlib figure of the largest weights of a model or pipeline, with bars of two standard deviations of their
    noise."""
    return weight_figure(largest_weights(model, top), positive_label(model))


def weights_frame(model: Any) -> Any:
    """All weights that are not zero, of a model or pipeline, as a pandas data frame: weight, noise, clear."""
    import pandas

    rows = largest_weights(model, _coef(model).nnz)
    columns = {name: [getattr(row, name) for row in rows] for name in ("value", "noise", "clear")}
    return pandas.DataFrame(columns, index=[row.name for row in rows]).rename(
        columns={"value": "weight"}
    )


def inner_model(model: Any) -> Any:
    """The estimator, of a pipeline that behind its preparation."""
    return getattr(model, "model_", model)


def feature_names(model: Any) -> Any:
    """The names of the columns that have weights."""
    inner = inner_model(model)
    names = getattr(inner, "feature_names_", None)
    return getattr(inner, "feature_names_in_", None) if names is None else names


def _coef(model: Any) -> sp.coo_array:
    coef = inner_model(model).coef_
    coef = sp.coo_array(np.atleast_2d(coef) if isinstance(coef, np.ndarray) else coef)
    coef.eliminate_zeros()
    return coef


def _noise(model: Any) -> np.ndarray | None:
    noise = getattr(inner_model(model), "coef_noise_", None)
    if noise is None:
        return None
    return np.broadcast_to(np.asarray(noise, dtype=np.float64), _coef(model).shape)


def _clear(coef: sp.coo_array, noise: np.ndarray) -> np.ndarray:
    bar = noise_bar(math.prod(coef.shape))
    return np.asarray(np.abs(coef.data) > bar * noise[coef.row, coef.col])


def _drowned(coef: sp.coo_array, model: Any) -> np.ndarray:
    """Weights of columns whose scale noise hides: inside the fit, or in its private preparation, of which nothing rose
    above the noise, so that they count as all missing."""
    hidden = getattr(inner_model(model), "drowned_", None)
    columns = set() if hidden is None else set(hidden.tolist())
    missing = {
        str(names[j])
        for _, step in getattr(model, "steps_", [])
        for _, part, names in getattr(
            step, "parts_", [("", step, list(getattr(step, "feature_names_in_", [])))]
        )
        for j in np.flatnonzero(part.missing_share_ >= 1.0)
        if j < len(names)
    }
    known = feature_names(model)
    if known is not None:
        columns |= {j for j, name in enumerate(known) if str(name) in missing}
    return np.isin(coef.col, list(columns))

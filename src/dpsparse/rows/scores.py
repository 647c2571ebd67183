"""How well released models do on the rows.

Scores are centred, v_i - 1/2 with v_i in [0, 1]: adding the same constant to every candidate changes no choice, and a
row then moves a sum by 1/2 (add-remove) or 1 (replace-one).

    classes    v_i = 1 if the predicted label is right, else 0
    numbers    v_i = 1 - |y_i - prediction|/2 in units of the target bound, predictions clipped to it
    persons    the mean of v_i over their rows, made whole once
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp

from dpsparse.domain.clipping import Part
from dpsparse.rows.memory import Rows
from dpsparse.rows.parts import Query, units_in_one
from dpsparse.rows.persons import means
from dpsparse.sensitivity import signed_sum


@dataclass(frozen=True)
class LinearModel:
    """Released weights (outputs, features) and intercepts (outputs,); for numbers in units of the target."""

    coef: np.ndarray
    intercept: np.ndarray
    unit: float = 1.0


def centred_scores(rows: Rows, models: Sequence[LinearModel]) -> Query:
    """sum_i (v_i - 1/2) for every model."""

    def whole(unit: float) -> np.ndarray:
        return rows._parts.sum((len(models),), partial(_add_scores, tuple(models), unit))

    return Query((len(models),), partial(signed_sum, 0.5), whole)


def _add_scores(models: tuple[LinearModel, ...], unit: float, part: Part, out: np.ndarray) -> None:
    table = part.table(np.float64)
    most = units_in_one(2.0 * unit)  # in one half
    for j, model in enumerate(models):
        scores = _contributions(table, part.targets, model)
        values = np.clip(means(part.starts, scores[:, None])[:, 0], -0.5, 0.5)
        # The bound is enforced on the whole numbers; a right row on a grid of 1/2 is one unit, not almost one.
        out[j] += np.clip(np.trunc(values / unit).astype(np.int64), -most, most).sum()


def _contributions(table: sp.csr_array, targets: np.ndarray, model: LinearModel) -> np.ndarray:
    """v_i - 1/2; every row by itself, and what is not a number counts as wrong."""
    with np.errstate(all="ignore"):
        margins = np.asarray(table @ model.coef.T) + model.intercept
    if targets.dtype.kind != "i":
        guess = np.clip(margins[:, 0] / model.unit, -1.0, 1.0)
        return np.asarray(np.nan_to_num(0.5 - np.abs(targets - guess) / 2.0, nan=-0.5))
    guess = margins[:, 0] > 0.0 if margins.shape[1] == 1 else margins.argmax(axis=1)
    return np.where(guess == targets, 0.5, -0.5)

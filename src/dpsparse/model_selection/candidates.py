"""What a search may vary. Paid parameters change the noisy run; free ones only change what is made of its result.

    n_nonzero    weights to keep, of an estimator that keeps the largest at the very end
    threshold    margin above which the second class is predicted; not a parameter of any estimator

Names are those of the estimator's parameters, also where it is the model of a pipeline: the preparation is released
once, before the search, so no candidate can change it. The list is public. A list that was made by looking at the rows
is a release that nobody paid for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid

from dpsparse._checks import is_real, safe_repr
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import BaseDPLinearModel, Solution, hyper_parameters
from dpsparse.nonzeros import MASS, check_n_nonzero, keep_nonzeros

Candidate = dict[str, Any]


def list_candidates(
    candidates: Any, estimator: BaseDPLinearModel, n_classes: int
) -> list[Candidate]:
    """The candidates one by one: a mapping is a grid, a list holds one mapping per candidate."""
    found = _expand(candidates)
    if not found or not candidates:
        raise ParameterError("There are no candidates; a search needs at least one.")
    _check_names({name for point in found for name in point}, estimator)
    for point in found:
        threshold = point.get("threshold", 0.0)
        if not (is_real(threshold) and math.isfinite(threshold)):
            raise ParameterError(f"threshold must be a finite number, got {safe_repr(threshold)}.")
        if "threshold" in point and n_classes != 2:
            raise ParameterError("A threshold is for classifiers of two classes.")
    return found


def _expand(candidates: Any) -> list[Candidate]:
    if isinstance(candidates, Mapping):
        try:
            return [dict(point) for point in ParameterGrid(dict(candidates))]
        except (TypeError, ValueError):
            raise ParameterError(
                "candidates, as a grid, must map names to lists: {'n_nonzero': [10, 100]}."
            ) from None
    is_list = isinstance(candidates, Sequence) and not isinstance(candidates, str)
    if not is_list or not all(isinstance(point, Mapping) for point in candidates):
        raise ParameterError(
            "candidates must be a grid {'clip': [0.1, 0.5]} or a list of settings [{}, {'clip': 0.5}]."
        )
    return [dict(point) for point in candidates]


def _check_names(names: set[Any], estimator: BaseDPLinearModel) -> None:
    known = hyper_parameters(type(estimator))
    for name in names - {"threshold", *known}:
        if name in estimator.get_params(deep=False):
            raise ParameterError(
                f"{name} belongs to the whole search and cannot differ between candidates."
            )
        step = isinstance(name, str) and "__" in name
        alone = "A search varies the model alone: its preparation is released once, before all candidates."
        listed = ", ".join([*known, "threshold"] if is_classifier(estimator) else known)
        raise ParameterError(
            f"{type(estimator).__name__} has no parameter {safe_repr(name)} to search; it has: {listed}."
            + f" {alone}" * step
        )


def group_by_fit(
    candidates: list[Candidate], estimator: BaseDPLinearModel
) -> tuple[list[Candidate], tuple[int, ...]]:
    """The parameters of every fit that the candidates need, and which fit serves each candidate.

    Candidates that differ in free parameters share a fit. It keeps as many weights as the largest of them.
    """
    settings: list[Candidate] = []
    of_candidate: list[int] = []
    for point in candidates:
        paid = {n: v for n, v in point.items() if not _is_free(n, v, estimator)}
        known = [i for i, other in enumerate(settings) if _same(paid, other)]
        if not known:
            settings.append(paid)
        of_candidate.append(known[0] if known else len(settings) - 1)
    fits = [
        {**paid, **_widest([p for p, i in zip(candidates, of_candidate, strict=True) if i == j], estimator)}
        for j, paid in enumerate(settings)
    ]  # fmt: skip
    return fits, tuple(of_candidate)


def _is_free(name: str, value: Any, estimator: BaseDPLinearModel) -> bool:
    """Methods whose default is to keep all weights cut them at the very end; a count that is released is paid for."""
    if name == "threshold":
        return True
    at_the_end = getattr(type(estimator)(), "n_nonzero", 0) is None
    plain = value is None or value == MASS or isinstance(value, (int, np.integer))
    return name == "n_nonzero" and at_the_end and plain


def _same(one: Candidate, other: Candidate) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[n], other[n]) for n in one)


def _widest(candidates: list[Candidate], estimator: Any) -> Candidate:
    if not any(_is_free("n_nonzero", p["n_nonzero"], estimator) for p in candidates if "n_nonzero" in p):  # fmt: skip
        return {}
    counts = [point.get("n_nonzero", estimator.n_nonzero) for point in candidates]
    for count in counts:
        check_n_nonzero(count)
    whole = all(count is not None and count != MASS for count in counts)
    return {"n_nonzero": max(counts) if whole else None}


def apply_free_parameters(
    solution: Solution, candidate: Candidate, estimator: BaseDPLinearModel
) -> Solution:
    """What the free parameters of a candidate make of released weights."""
    coef, intercept = solution.coef, solution.intercept
    count = candidate.get("n_nonzero")
    if count is not None and _is_free("n_nonzero", count, estimator):
        # Weights are compared in units of their noise, where it is known.
        noise = solution.coef_noise
        size = coef if noise is None else coef / np.where(noise > 0.0, noise, np.inf)
        coef = np.where(keep_nonzeros(size, count) != 0.0, coef, 0.0)
        if noise is not None:
            solution = solution._replace(coef_noise=np.where(coef.any(axis=0), noise, 0.0))
    if candidate.get("threshold"):
        intercept = intercept - float(candidate["threshold"])
    return solution._replace(coef=coef, intercept=intercept)


def model_parameters(candidate: Candidate) -> Candidate:
    """The parameters of a candidate that an estimator has."""
    return {name: value for name, value in candidate.items() if name != "threshold"}

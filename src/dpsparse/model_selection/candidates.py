"""What a search may vary: paid parameters change the noisy run, free ones only what is made of its result.

    n_nonzero    weights to keep, of an estimator that keeps the largest at the very end
    threshold    margin above which the second class is predicted; not a parameter of any estimator

The list is public. A list that was made by looking at the rows is a release that nobody paid for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from dpsparse._checks import given, is_real
from dpsparse.domain import Domain
from dpsparse.estimators._base import BaseDPLinearModel, hyper_parameters
from dpsparse.exceptions import CalibrationError, ParameterError
from dpsparse.nonzeros import MASS, check_n_nonzero, keep_nonzeros
from dpsparse.privacy import Gaussian, Plan
from dpsparse.privacy import epsilon as event_epsilon
from dpsparse.rows.held_out import Linear
from dpsparse.solvers.solution import Solution

Candidate = dict[str, Any]
THRESHOLD = "threshold"


def listed(candidates: Any, estimator: BaseDPLinearModel, n_classes: int) -> list[Candidate]:
    """The candidates one by one: a mapping is a grid, a list holds one mapping per candidate."""
    if isinstance(candidates, Mapping):
        try:
            found = [dict(point) for point in ParameterGrid(dict(candidates))]
        except (TypeError, ValueError):
            raise ParameterError(
                "candidates, as a grid, must map names to lists: {'n_nonzero': [10, 100]}."
            ) from None
    else:
        sequence = isinstance(candidates, Sequence) and not isinstance(candidates, str)
        if not sequence or not all(isinstance(point, Mapping) for point in candidates):
            raise ParameterError(
                "candidates must be a grid {'clip': [0.1, 0.5]} or a list of settings [{}, {'clip': 0.5}]."
            )
        found = [dict(point) for point in candidates]
    if not found or not candidates:
        raise ParameterError("There are no candidates; a search needs at least one.")
    known = hyper_parameters(type(estimator))
    for name in {name for point in found for name in point}:
        if name == THRESHOLD or name in known:
            continue
        # The price and the facts are those of the search as a whole.
        if name in estimator.get_params(deep=False):
            raise ParameterError(
                f"{name} belongs to the whole search and cannot differ between candidates."
            )
        raise ParameterError(
            f"{type(estimator).__name__} has no parameter {given(name)} to search; it has: {', '.join(known)}."
        )
    for point in found:
        threshold = point.get(THRESHOLD, 0.0)
        if not (is_real(threshold) and math.isfinite(threshold)):
            raise ParameterError(f"threshold must be a finite number, got {given(threshold)}.")
        if THRESHOLD in point and n_classes != 2:
            raise ParameterError("A threshold is for classifiers of two classes.")
    return found


def are_free(candidates: list[Candidate], estimator: BaseDPLinearModel) -> bool:
    """Whether one fit serves all candidates."""
    cuts_at_the_end = getattr(type(estimator)(), "n_nonzero", 0) is None
    for point in candidates:
        for name, value in point.items():
            free = name == THRESHOLD or (
                name == "n_nonzero"
                and cuts_at_the_end
                and (value is None or value == MASS or isinstance(value, (int, np.integer)))
            )
            if not free:
                return False
    return True


def widest(candidates: list[Candidate], estimator: Any) -> Candidate:
    """Parameters of the one fit from which all free candidates are cut: it keeps the most weights."""
    if not any("n_nonzero" in point for point in candidates):
        return {}
    counts = [point.get("n_nonzero", estimator.n_nonzero) for point in candidates]
    for count in counts:
        check_n_nonzero(count)
    whole = all(count is not None and count != MASS for count in counts)
    return {"n_nonzero": max(counts) if whole else None}


def paid(candidate: Candidate) -> Candidate:
    """The parameters that a fit is given."""
    return {name: value for name, value in candidate.items() if name != THRESHOLD}


def configured(
    estimator: BaseDPLinearModel, candidate: Candidate, *, share_of_rows: float = 1.0
) -> BaseDPLinearModel:
    """A fresh estimator with the parameters of a candidate, for a public share of the rows."""
    model: BaseDPLinearModel = clone(estimator)
    domain = model.domain
    if isinstance(domain, Domain) and domain.n_samples is not None:
        n_samples = max(1, round(domain.n_samples * share_of_rows))
        domain = replace(domain, n_samples=n_samples)
    model.set_params(**paid(candidate), domain=domain, random_state=None, verbose=0)
    return model


def priced(model: BaseDPLinearModel, mu: float, delta: float, context: tuple[int, Any]) -> Plan:
    """The plan of a fit whose budget is about that of a Gaussian of parameter `mu`."""
    price = event_epsilon(Gaussian(1.0 / mu), delta)
    if not price > 0.0:
        raise CalibrationError("The steps of this search cannot be paid by so small an epsilon.")
    model.set_params(epsilon=price, delta=delta)
    model._check_parameters()
    return model._priced(*context)


def variant(solution: Solution, candidate: Candidate, *, cut: bool) -> Solution:
    """What the free parameters of a candidate make of released weights."""
    coef, intercept = solution.coef, solution.intercept
    if cut and candidate.get("n_nonzero") is not None:
        # Weights are compared in units of their noise, where it is known: that is on scaled rows.
        noise = solution.coef_noise
        size = coef if noise is None else coef / np.where(noise > 0.0, noise, np.inf)
        kept = keep_nonzeros(size, candidate["n_nonzero"]) != 0.0
        coef = np.where(kept, coef, 0.0)
        if noise is not None:
            solution = solution._replace(coef_noise=np.where(coef.any(axis=0), noise, 0.0))
    if candidate.get(THRESHOLD):
        intercept = intercept - float(candidate[THRESHOLD])
    return solution._replace(coef=coef, intercept=intercept)


def linear(solution: Solution, domain: Domain) -> Linear:
    """What `rows` needs to score a released model."""
    return Linear(solution.coef, solution.intercept, domain.target_bound or 1.0)

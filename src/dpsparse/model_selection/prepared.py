"""A search behind private preparation, `DPSearchCV` over a `DPPipeline`: one plan and one reservation for both.

    preparation   the phases of the steps, on all rows, once: f_p mu^2
    search        any design on the prepared rows, with the rest: (1 - f_p) mu^2

What preparation releases is public when the search begins, and a prepared row is a function of its raw row alone. So
the search is a mechanism with a fixed price whatever was released before, and both compose (docs/proofs/tuning.md,
"Preparation before the search"). Candidates vary the model; one that changed a step would be another table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import scipy.sparse as sp

from dpsparse.exceptions import ParameterError
from dpsparse.model_selection.candidates import THRESHOLD
from dpsparse.model_selection.design import Design
from dpsparse.model_selection.narrower import narrowed
from dpsparse.privacy import REST, Phase
from dpsparse.privacy.budget import gaussian_parameter_at
from dpsparse.rows import RawRows


def is_pipeline(estimator: Any) -> bool:
    """Whether preparation comes first; a DPPipeline, which this room cannot import."""
    return hasattr(estimator, "_learn_steps")


@dataclass(frozen=True)
class Prepared:
    """A priced search, and the phases of the preparation before it.

    `kept` compares with the same pipeline without a search."""

    design: Design
    own: tuple[Phase, ...]
    kept: float

    @property
    def name(self) -> str:
        return self.design.name

    @property
    def phases(self) -> tuple[Phase, ...]:
        return (*self.own, *self.design.phases)


def prepared_search(
    pipeline: Any, n_columns: int, design_at: Any, epsilon: float, delta: float
) -> Prepared:
    """The whole, priced: `design_at(model, width, epsilon)` makes the search that a price allows."""
    wants, width, norm = pipeline._planned(n_columns)
    model = pipeline._model(1.0, norm)
    budget = pipeline._budget(wants, epsilon)
    budget.nested("search", REST, lambda price: design_at(model, width, price))
    design = design_at(model, width, budget.price("search"))
    pipeline._check_enough(wants, budget.mu)
    own = budget.phases()[: -len(design.phases)]
    inner = gaussian_parameter_at(design.setting.epsilon, delta)
    untuned = gaussian_parameter_at(epsilon, delta) * math.sqrt(budget.shares["search"])
    return Prepared(design, own, design.kept * inner / untuned)


def fitting(design: Design, rows: RawRows, width: int) -> tuple[Design, RawRows]:
    """Design and prepared rows of one width: the search is told of fewer columns, or the rows get empty ones."""
    planned = design.setting.n_features
    if width == planned:
        return design, rows
    fewer = narrowed(design, width)
    if fewer is not None:
        return fewer, rows
    return design, rows.map(partial(wider, planned - width))


def wider(empty: int, rows: Any) -> sp.csr_array:
    """The same rows with so many empty columns more."""
    more = sp.csr_array((rows.shape[0], empty))
    return sp.csr_array(sp.hstack([sp.csr_array(rows), more], format="csr"))


def of_the_model(candidates: Any, name: str) -> Any:
    """Candidates for a pipeline, `model__clip`, as candidates for its last step, `clip`."""

    def renamed(point: Mapping[Any, Any]) -> dict[Any, Any]:
        return {_inner(key, name): value for key, value in point.items()}

    if isinstance(candidates, Mapping):
        return renamed(candidates)
    if isinstance(candidates, Sequence) and not isinstance(candidates, str):
        return [renamed(p) if isinstance(p, Mapping) else p for p in candidates]
    return candidates


def _inner(key: Any, name: str) -> Any:
    if key == THRESHOLD or not isinstance(key, str):
        return key
    step, separator, parameter = key.partition("__")
    if separator and step == name:
        return parameter
    if separator:
        raise ParameterError(
            f"{key} would change the preparation, which is released once, before the search: every candidate would "
            "read another table and have to pay for it. Search over the model "
            f"({name}__n_nonzero, say), or fit two pipelines and evaluate both, each for its own price."
        )
    raise ParameterError(
        f"{key!r} is no parameter of a pipeline's model; write {name}__{key}, as scikit-learn does."
    )


def outward(point: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A candidate for the last step as the pipeline calls it."""
    return {key if key == THRESHOLD else f"{name}__{key}": value for key, value in point.items()}

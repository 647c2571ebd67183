"""Inside an ordinary scikit-learn `Pipeline`: steps that were fitted on the rows are named, and so is what that means.

A `Pipeline` tells its last step nothing about the others. The call of `Pipeline.fit` is the one place that knows them,
so the stack is read, as for searches (_model_search.py). Nothing that is released depends on it. Where the pipeline is
not on the stack (steps fitted by hand, `ColumnTransformer` applied before), nothing can be known; `check_pipeline`
looks at a pipeline directly.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import Any

from dpsparse.exceptions import PreparedDataWarning
from dpsparse.privacy.plan import Plan

_REMEDY = (
    "Learn scales, categories and vocabularies privately with dpsparse.preprocessing.DPPipeline, or declare them "
    "(PublicScaler, PublicEncoder, HashingEncoder)."
)


def check_pipeline(pipeline: Any) -> list[str]:
    """The steps of an ordinary `Pipeline` or `ColumnTransformer` that learn from rows without paying, by name.

    A guarantee of the last step is then one "given the prepared table". Steps of dpsparse that were fitted privately,
    steps of declared facts and stateless steps of scikit-learn (hashing, normalising rows) are not listed.

    Examples
    --------
    >>> from dpsparse import check_pipeline
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> check_pipeline(make_pipeline(StandardScaler(), Normalizer()))
    ["'standardscaler' (StandardScaler)"]
    """
    parts = getattr(pipeline, "steps", None) or getattr(pipeline, "transformers", None) or ()
    found = []
    for name, step, *_ in parts:
        if (
            hasattr(step, "steps")
            or hasattr(step, "transformers")
            or hasattr(step, "transformer_list")
        ):
            inner = getattr(step, "transformer_list", None)
            inside = check_pipeline(step) if inner is None else _learning(inner)
            found += [f"'{name}': {text}" for text in inside]
        elif _learns(step):
            found.append(f"'{name}' ({type(step).__name__})")
    return found


def _learning(parts: Any) -> list[str]:
    return [f"'{name}' ({type(step).__name__})" for name, step, *_ in parts if _learns(step)]


def _learns(step: Any) -> bool:
    """Whether a step learns from rows what nobody pays for."""
    if step is None or isinstance(step, str) or not hasattr(step, "fit"):
        return False
    if hasattr(step, "plan") and type(step).__module__.startswith("dpsparse."):
        return False  # private by itself: it has a plan, and its own guarantee
    try:
        return bool(step.__sklearn_tags__().requires_fit)
    except Exception:  # a step of another library that has no tags
        return True


def given_the_table(plan: Plan, model: Any) -> Plan:
    """The plan with one more assumption, and a warning, where steps around the model learnt from the rows."""
    found = _around(model)
    if not found:
        return plan
    names = ", ".join(found)
    warnings.warn(
        f"The guarantee of {type(model).__name__} is given the prepared table: these steps of the pipeline learn from "
        f"the rows, and what they learn is not counted: {names}. {_REMEDY}",
        PreparedDataWarning,
        stacklevel=3,
    )
    return replace(
        plan, assumptions=(*plan.assumptions, f"given the prepared table: not counted are {names}")
    )


def _around(model: Any) -> list[str]:
    """Learning steps of the innermost scikit-learn pipeline that is fitting `model`."""
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        steps = getattr(owner, "steps", None) if type(owner).__name__ == "Pipeline" else None
        if steps and frame.f_code.co_name.startswith("fit"):
            # scikit-learn fits the last step itself; searches above it fit clones of the pipeline.
            return check_pipeline(owner) if steps[-1][1] is model else []
        frame = frame.f_back  # type: ignore[assignment]
    return []

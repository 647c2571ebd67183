"""What a model file claims, against what follows from the rest of it.

The guarantee must follow from the events of the plan, which is computed where a plan is made. The events must be those
that the parameters in the file pay for: the fit is priced again. So a file in which noise was made larger, or epsilon
smaller, contradicts itself. A file is no signature all the same: whoever changes the parameters too makes another
model, which nobody can tell from a fitted one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import dpsparse
from dpsparse.accounting import Plan
from dpsparse.accounting.guarantee import PERSON, PREPARED, ROW
from dpsparse.domain import Domain
from dpsparse.exceptions import DPSparseError, ModelFileError
from dpsparse.methods.base import BaseDPClassifier, BaseDPLinearModel
from dpsparse.models.values import check, is_int
from dpsparse.preprocessing import DPPipeline
from dpsparse.preprocessing.pipeline import replan_for_width


def check_fitted(model: BaseDPLinearModel) -> None:
    """Refuse attributes that a fit of this model does not leave behind."""
    check(isinstance(model, BaseDPLinearModel) and isinstance(model.domain, Domain))
    coef: Any = model.coef_
    check(isinstance(coef, (np.ndarray, sp.csr_array)))
    check(coef.dtype == np.float64 and coef.ndim in (1, 2))
    n_outputs, width = coef.shape if coef.ndim == 2 else (1, len(coef))
    check(is_int(model.n_features_in_, 1) and model.n_features_in_ == width)
    check(bool(np.isfinite(coef.data if isinstance(coef, sp.csr_array) else coef).all()))
    check(is_int(model.n_iter_))
    labels = None
    if isinstance(model, BaseDPClassifier):
        labels = model.classes_
        check(isinstance(labels, np.ndarray) and labels.ndim == 1 and len(labels) >= 2)
        if not isinstance(model._domain.classes, str):  # "observed" labels stand nowhere else
            declared = model._domain.class_labels()
            check(declared.dtype == labels.dtype and np.array_equal(declared, labels))
    check(
        n_outputs == (1 if labels is None or len(labels) == 2 else len(labels))
        and not (coef.ndim == 1 and labels is not None)
    )
    intercept = np.asarray(model.intercept_)
    check(intercept.dtype.kind in "if" and bool(np.isfinite(intercept).all()))
    check(intercept.shape == (() if labels is None else (n_outputs,)))
    header = getattr(model, "feature_names_in_", None)
    check(header is None or (isinstance(header, np.ndarray) and header.shape == (width,)))
    names = model.feature_names_
    check(names is None or (isinstance(names, tuple) and len(names) == width))
    check(all(type(name) is str for name in names or ()))
    drowned, noise = getattr(model, "drowned_", None), getattr(model, "coef_noise_", None)
    if drowned is not None:
        check(isinstance(drowned, np.ndarray) and drowned.dtype.kind == "i" and drowned.ndim == 1)
        check(bool(((drowned >= 0) & (drowned < width)).all()))
    if noise is not None:
        check(drowned is not None and isinstance(noise, np.ndarray) and noise.shape == (width,))
        check(bool((noise >= 0.0).all() and np.isfinite(noise).all()))


def check_claims(file: str, model: BaseDPLinearModel | DPPipeline) -> None:
    """Refuse a file whose guarantee does not follow from its plan, or its plan from its parameters."""
    about = getattr(model, "about_", {})
    check(isinstance(about, dict) and all(type(t) is str for pair in about.items() for t in pair))
    check(is_int(model.n_features_in_, 1))
    plan, unit = model.plan_, PERSON if model._domain.unit == "person" else ROW
    agree = model.privacy_ == plan.guarantee
    agree = agree and (model.delta, model.adjacency, unit) == (
        plan.delta,
        plan.adjacency,
        plan.unit,
    )
    if plan.proven:
        agree = agree and model.random_state is None and model.epsilon == plan.epsilon
    if isinstance(model, DPPipeline):
        # The fit is a part of what the pipeline pays for: the phases of its plan stand there too.
        paid = {(phase.name, phase.event) for phase in plan.phases}
        inner = model.model_.plan_
        agree = agree and all((phase.name, phase.event) in paid for phase in inner.phases)
        agree = agree and inner.proven <= plan.proven
    if not agree:
        raise _edited(file)


def check_prices(file: str, model: BaseDPLinearModel | DPPipeline, version: Any) -> None:
    """Refuse a plan that is not the one which the parameters in the file have: its noise, what it promises on which
    ground, and what it shows beside. A file may leave out no assumption and no caution, and put no fact of its own on a
    card."""
    if not model.plan_.proven:
        return
    try:
        priced = _priced_again(model)
    except DPSparseError:
        raise _edited(file) from None
    same = model.plan_.promises_as(priced) and model.plan_.shows_as(priced)
    if not (same and _follows_inside(model, priced)):
        if isinstance(version, str) and version != dpsparse.__version__:
            raise ModelFileError(
                f"{file} was written by dpsparse {version}, and its prices are not those of this version "
                f"({dpsparse.__version__}): read it with the other one, or fit anew. If that is not so, it was edited."
            )
        raise _edited(file)


def _follows_inside(model: BaseDPLinearModel | DPPipeline, priced: Plan) -> bool:
    """Whether the model in a pipeline promises what its part of the whole plan does, of the prepared table."""
    if not isinstance(model, DPPipeline):
        return True
    inner, fit = model.model_.plan_, _inner_plan(model, priced)
    said = (
        "delta",
        "adjacency",
        "assumptions",
        "source",
        "randomness",
        "unit",
        "n_units",
        "method",
    )
    alike = all(getattr(inner, name) == getattr(fit, name) for name in said)
    names = [[phase.name for phase in plan.phases] for plan in (inner, fit)]
    return alike and inner.table == PREPARED and names[0] == names[1] and inner.shows_as(fit)


def _inner_plan(model: DPPipeline, priced: Plan) -> Plan:
    """The plan of the model in a pipeline, of as many columns as preparation has left; but for its epsilon."""
    wants, planned, norm = model._planned(model.n_features_in_)
    fit = priced.settings
    if not isinstance(fit, Plan):  # a search paid for it
        source = priced.source.split(", ")[-1]  # without that of preparation
        return replace(priced, phases=priced.phases[len(wants) :], source=source)
    width, labels = model.model_.n_features_in_, getattr(model, "classes_", None)
    found = replan_for_width(model._model(fit.epsilon, norm), fit, planned, width, labels)
    return fit if found is None else found


def _priced_again(model: BaseDPLinearModel | DPPipeline) -> Plan:
    labels = getattr(model, "classes_", None)
    searched = getattr(model, "search_", None)
    if searched is None:
        model._check_parameters()
        return model._priced(model.n_features_in_, labels)
    from dpsparse.model_selection import DPSearchCV  # most models need not load it

    search = DPSearchCV(**searched, epsilon=model.epsilon, delta=model.delta)
    search._check()
    return search._priced(model.n_features_in_, labels)


def _edited(file: str) -> ModelFileError:
    return ModelFileError(
        f"{file} contradicts itself: its guarantee does not follow from its plan and "
        "parameters. It was edited; do not trust it."
    )

"""Fewer columns than were planned for: noise and price stay what was reserved, the solver gets the true width.

How many columns preparation leaves (of a vocabulary, say) is a released fact, known after the plan was paid. The noise
of a phase does not depend on it; what a solver derives from the width (steps, cutoffs) does, and is planned again. The
method, the releases before it and its ridge are those of the planned width, because they were paid for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from dpsparse.accounting import Exponential, ObjectivePerturbation, Phase, Plan
from dpsparse.accounting.rdp import leaves
from dpsparse.exceptions import DPSparseError
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.methods.solution import Settings


def replan_for_width(
    model: BaseDPLinearModel,
    reserved: Plan[Settings],
    planned_width: int,
    width: int,
    labels: np.ndarray | None,
) -> Plan[Settings] | None:
    """The plan for `width` columns with the noise that was reserved, or None if the model has no such plan.

    Fewer columns may call for more steps of Frank-Wolfe; then those that were paid for have to do.
    """
    paid = {phase.name: phase for phase in reserved.phases}
    narrower = clone(model)
    narrower._planned_width = planned_width
    plan = _plan_of(narrower, width, labels)
    if plan is not None and (steps := _most_steps(paid, plan)) is not None:
        plan = _plan_of(narrower.set_params(n_iter=steps), width, labels)
    if plan is None or not all(_pays(paid.get(phase.name), phase) for phase in plan.phases):
        return None
    return replace(plan, phases=tuple(paid[phase.name] for phase in plan.phases))


def _plan_of(
    model: BaseDPLinearModel, width: int, labels: np.ndarray | None
) -> Plan[Settings] | None:
    try:
        return model._priced(width, labels)
    except DPSparseError:
        return None


def _most_steps(paid: dict[str, Phase], plan: Plan) -> int | None:
    """The steps that a reserved phase pays for where the plan wants more; None where it wants none too many."""
    short = [
        _picks(paid[phase.name])
        for phase in plan.phases
        if phase.name in paid and 0 < _picks(paid[phase.name]) < _picks(phase)
    ]
    return min(short, default=None)


def _picks(phase: Phase) -> int:
    """Draws of the exponential mechanism."""
    counts = leaves(phase.event).items()
    return sum(count for leaf, count in counts if isinstance(leaf, Exponential))


def _pays(reserved: Phase | None, phase: Phase) -> bool:
    """Whether the noise of a reserved phase serves this one: as many draws, and a tilt serves no steeper and no flatter
    objective."""
    if reserved is None or _picks(reserved) < _picks(phase):
        return False
    for have, need in zip(_tilts(reserved), _tilts(phase), strict=False):
        if have.gradient_bound < need.gradient_bound or have.curvature < need.curvature:
            return False
        if have.ridge > need.ridge:
            return False
    return len(_tilts(reserved)) == len(_tilts(phase))


def _tilts(phase: Phase) -> list[ObjectivePerturbation]:
    return [leaf for leaf in leaves(phase.event) if isinstance(leaf, ObjectivePerturbation)]


def add_empty_columns(count: int, rows: Any) -> sp.csr_array:
    """The same rows with `count` more columns, all zero."""
    more = sp.csr_array((rows.shape[0], count))
    return sp.csr_array(sp.hstack([sp.csr_array(rows), more], format="csr"))

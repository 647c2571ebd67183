"""Parameters that scikit-learn's linear models have and an estimator here has not: what to write instead, and why."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from dpsparse.exceptions import ParameterError

_STEPS = "every step is paid, so it ends after n_iter steps and not by the data"
_PENALTY = "there is no penalty to choose, settings follow from public facts; n_nonzero says how many weights are kept"
INSTEAD = {
    "class_weight": "there is no proof for it here; DPSparseClassifier and DPGradientClassifier take it",
    "C": _PENALTY,
    "alpha": _PENALTY,
    "l1_ratio": _PENALTY,
    "max_iter": _STEPS,
    "tol": _STEPS,
    "n_jobs": "threads are set by NUMBA_NUM_THREADS",
    "classes": "it is a public fact, Domain(classes=[0, 1])",
    "target_range": "it is a public fact, Domain(target_range=(0, 10))",
    "target_bound": "it is a public fact, Domain(target_range=(0, 10))",
    "n_samples": "it is a public fact, Domain(n_samples=10_000)",
}


def refuse_foreign_parameters(kind: type, stated: Mapping[str, Any]) -> None:
    """Say what stands for a parameter of scikit-learn; other unknown names are Python's to refuse."""
    known = inspect.signature(kind.__init__).parameters  # type: ignore[misc]
    for name in stated:
        if name not in known and name in INSTEAD:
            raise ParameterError(f"{kind.__name__} has no parameter {name}: {INSTEAD[name]}.")


class OwnSignature:
    """The signature of `__init__`, which `__new__` with its refusals would hide from help pages."""

    def __get__(self, instance: object, kind: type) -> inspect.Signature:
        whole = inspect.signature(kind.__init__)  # type: ignore[misc]
        return whole.replace(parameters=list(whole.parameters.values())[1:])

"""Small configurations of every estimator, one for each way through its code, for audits.

A test fails if an estimator of the library has no case here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dpsparse.domain import Domain
from dpsparse.nonzeros import PrivateCount

BINARY: dict[str, Any] = {"classes": (0, 1), "row_norm": 1.0, "n_samples": 12}
TRIPLE: dict[str, Any] = {"classes": (0, 1, 2), "row_norm": 1.0, "n_samples": 12}
PLAIN: dict[str, Any] = {"classes": (0, 1)}
NUMBER: dict[str, Any] = {"target_bound": 2.0, "row_norm": 1.0, "n_samples": 12}
# Public rows for the seven columns of audits.
PUBLIC = np.linspace(-1.0, 1.0, 63).reshape(9, 7)
WIDE: dict[str, Any] = {"classes": (0, 1), "feature_bound": 3.0, "n_samples": 12}

# estimator -> (domain, parameters), cheapest way first
CASES: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "DPADMMClassifier": [
        (BINARY, {"n_iter": 3, "n_nonzero": 3}),
        (TRIPLE, {"n_iter": 2, "ridge": 30.0, "n_nonzero": 2}),
        ({**WIDE, "n_samples": 4000}, {"n_iter": 2, "n_nonzero": 2}),  # released scales
    ],
    "DPGradientClassifier": [
        (PLAIN, {"n_iter": 4}),
        (TRIPLE, {"n_iter": 3, "n_nonzero": 3}),
        ({"classes": (0, 1), "n_samples": 4000}, {"epsilon": 2.0, "n_iter": 2}),
        ({"classes": (0, 1), "n_samples": 3}, {"n_nonzero": 2, "n_iter": 2}),  # wide: prunes
        (BINARY, {"n_nonzero": PrivateCount(1, 4, 0.3), "n_iter": 3}),
        ({**PLAIN, "weight_bound": 3.0}, {"n_iter": 3}),
        ({**TRIPLE, "weight_bound": 0.1}, {"n_iter": 2}),
    ],
    "DPGradientRegressor": [
        (NUMBER, {"n_iter": 4}),
        ({"target_bound": 2.0, "n_samples": 4000}, {"epsilon": 2.0, "n_iter": 2}),
        ({"target_bound": 2.0, "n_samples": 3}, {"n_iter": 2, "n_nonzero": "mass"}),  # wide
        ({**NUMBER, "weight_bound": 3.0}, {"n_iter": 3}),
    ],
    "DPHardThresholdClassifier": [
        (BINARY, {"n_nonzero": 3, "n_iter": 3}),
        ({"classes": (0, 1), "n_samples": 4000}, {"epsilon": 2.0, "n_nonzero": 2, "n_iter": 4}),
        (TRIPLE, {"n_iter": 2}),
    ],
    "DPHardThresholdRegressor": [
        (NUMBER, {"n_nonzero": 3, "n_iter": 3}),
        ({"target_bound": 2.0, "n_samples": 4000}, {"epsilon": 2.0, "n_nonzero": 2, "n_iter": 4}),
        ({"target_bound": 2.0}, {"n_iter": 2}),
        (NUMBER, {}),  # too few rows: the mean
    ],
    "DPLassoClassifier": [
        (WIDE, {"radius": 2.0, "n_iter": 6}),
        (TRIPLE, {"radius": 1.0, "n_iter": 4}),
        (BINARY, {"radius": 3.0, "n_iter": 4, "fit_intercept": False}),
        (WIDE, {"radius": 2.0, "n_iter": 5, "n_nonzero": "mass"}),
        (BINARY, {"radius": 2.0, "n_iter": 3, "n_nonzero": PrivateCount(1, 4, 0.3)}),
        ({**WIDE, "n_samples": 4000}, {"n_iter": 4}),  # a released size of entries
    ],
    "DPLassoRegressor": [
        (NUMBER, {"n_iter": 5}),
        (NUMBER, {"n_iter": 4, "radius": 2.0}),
        ({**NUMBER, "n_samples": 4000}, {"n_iter": 4}),  # released centre, scales and cutoff
        (NUMBER, {}),  # too few rows: the mean
    ],
    "DPRidgeRegressor": [
        ({**NUMBER, "n_samples": 4000}, {}),  # enough to look at the table
        ({"target_range": (-1.0, 5.0), "n_samples": 60}, {}),  # too few: declared bounds only
        ({"target_range": (-1.0, 5.0), "n_samples": 500}, {"ridge": 90.0}),  # either, by adjacency
        ({**NUMBER, "n_samples": 4000, "weight_bound": 3.0}, {}),
        ({"target_range": (-1.0, 5.0), "n_samples": 60, "weight_bound": 0.1}, {}),
    ],
    "DPScreenedLassoClassifier": [
        (WIDE, {"n_iter": 6, "level": 0.9}),
        (TRIPLE, {"radius": 1.0, "n_iter": 6, "n_nonzero": 3}),
        ({**WIDE, "n_samples": 4000}, {"n_iter": 6, "level": 0.9}),
    ],
    "DPScreenedLassoRegressor": [
        (NUMBER, {"n_iter": 6, "n_nonzero": 3}),
        ({**NUMBER, "n_samples": 4000}, {"n_iter": 6, "level": 0.9}),
        (NUMBER, {}),  # too few rows: the mean
    ],
    "DPSparseClassifier": [
        ({"classes": (0, 1), "n_samples": 4000}, {"class_weight": "balanced"}),
        ({**TRIPLE, "n_samples": 4000}, {"n_nonzero": 3}),
        ({"classes": (0, 1), "n_samples": 40}, {"class_weight": "balanced"}),  # the shares alone
        (TRIPLE, {}),
    ],
    "DPSparseRegressor": [
        ({"target_range": (-1.0, 5.0), "n_samples": 4000}, {}),  # DPRidgeRegressor
        ({**NUMBER, "n_samples": 4000}, {"n_nonzero": 2}),  # its two largest weights
        ({"target_bound": 2.0}, {}),  # DPGradientRegressor
        ({**NUMBER, "n_samples": 4000, "weight_bound": 3.0}, {"n_nonzero": 1}),  # not two-stage
    ],
    "DPTransferClassifier": [
        (BINARY, {"n_nonzero": 3}),
        (BINARY, {"n_nonzero": 3, "public_X": PUBLIC}),
        (TRIPLE, {"n_nonzero": 2}),
        ({**WIDE, "n_samples": 4000}, {"n_nonzero": 3, "public_X": PUBLIC}),  # released scales
    ],
    "DPTransferRegressor": [
        (NUMBER, {}),  # too few rows: the mean
        ({**NUMBER, "n_samples": 4000}, {"n_nonzero": 2}),  # released scales
        ({**NUMBER, "n_samples": 4000}, {"n_nonzero": 2, "public_X": PUBLIC}),
        ({**NUMBER, "n_samples": 350}, {"n_nonzero": 2}),  # declared bounds, or the mean
    ],
    "DPTwoStageClassifier": [
        (BINARY, {"n_nonzero": 3}),
        (TRIPLE, {"n_nonzero": 2}),
        ({**WIDE, "n_samples": 4000}, {"n_nonzero": 2}),  # released scales
        ({**TRIPLE, "n_samples": 4000}, {"n_nonzero": 2}),
    ],
    "DPTwoStageRegressor": [
        ({**NUMBER, "n_samples": 4000}, {"n_nonzero": 2}),  # released scales
        ({**NUMBER, "n_samples": 250}, {"n_nonzero": 2}),  # declared bounds, or the mean
    ],
}


ROWS_OF_A_PERSON = (None, 3, 1)  # rows_per_unit: as many as there are, else few, else one


def cases(adjacency: str, unit: str = "row") -> Iterator[tuple[str, Any]]:
    """(name, estimator) of every case under an adjacency."""
    from dpsparse import methods as estimators

    for name in estimators.__all__:
        for number, estimator in enumerate(build(name, adjacency)):
            if unit == "row":
                yield f"{name}-{number}-{adjacency}", estimator
            else:
                yield f"{name}-{number}-{adjacency}-persons", for_persons(estimator)


def for_persons(estimator: Any) -> Any:
    """The estimator for persons with as many rows as it has a proof for."""
    for m in ROWS_OF_A_PERSON:
        domain = replace(estimator.domain, unit="person", rows_per_unit=m)
        other = type(estimator)(**{**estimator.get_params(deep=False), "domain": domain})
        if m == 1 or not other._why_one_row():
            break
    return other


def build(name: str, adjacency: str, **changes: Any) -> list[Any]:
    """The cases of one estimator, with parameters changed where it has them."""
    from dpsparse import methods as estimators

    kind = getattr(estimators, name)
    return [
        kind(Domain(**domain), **{**parameters, **changes}, adjacency=adjacency)
        for domain, parameters in CASES.get(name, [])
    ]

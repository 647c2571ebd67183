"""Fits of made-up rows with the commonest settings: whoever runs them has met nearly every kernel that users meet."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse import methods as est
from dpsparse.accounting import ObjectivePerturbation, gaussian_parameter
from dpsparse.domain import Domain
from dpsparse.exceptions import BudgetWarning


def fit_common_kinds() -> None:
    """Both main families on a few rows, and what a ledger charges two-stage fits."""
    fit_without_warnings(common_fits())
    gaussian_parameter(ObjectivePerturbation(10.0, 1.0, 0.1, 1.0))


def fit_without_warnings(fits: list[tuple[Any, Any, Any]]) -> None:
    """The rows are made up: what their budgets are worth is of no interest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        for model, rows, targets in fits:
            model.fit(rows, targets)


def common_fits() -> list[tuple[Any, Any, Any]]:
    """Model, rows and targets of each; models of one family stand together."""
    X = sp.csr_array(np.maximum(np.cos(np.outer(np.arange(60), np.arange(1, 13))), 0.0))
    labels = np.arange(60) % 2
    two, number = Domain(classes=[0, 1], n_samples=60), Domain(target_bound=1.0, n_samples=60)
    three = Domain(classes=[0, 1, 2], n_samples=60)
    # Wide enough for boxes, and so tall that all scores are exact (methods/frank_wolfe/README.md).
    wide = sp.random_array((500, 3000), density=0.004, rng=0, format="csr")
    tall = sp.csr_array(np.maximum(np.cos(np.outer(np.arange(6000), np.arange(1, 7))), 0.0))
    dense = np.cos(np.outer(np.arange(300), np.arange(1, 21)))
    return [
        (est.DPLassoClassifier(Domain(classes=[0, 1]), n_iter=300), wide, np.arange(500) % 2),
        (est.DPLassoClassifier(Domain(classes=[0, 1]), n_iter=600), tall, np.arange(6000) % 2),
        # With scales that are released because enough rows are declared.
        (est.DPLassoClassifier(Domain(classes=[0, 1], n_samples=300)), dense, np.arange(300) % 2),
        (est.DPLassoRegressor(Domain(target_bound=1.0, n_samples=900)), dense, np.arange(300) % 2),
        (est.DPLassoClassifier(two, n_iter=20), X, labels),
        (est.DPLassoClassifier(two, n_iter=200), X.astype(np.float32), labels),
        (est.DPLassoClassifier(three, n_iter=20), X, np.arange(60) % 3),
        (est.DPLassoRegressor(number, n_iter=20), X, labels - 0.5),
        (est.DPSparseClassifier(two), X, labels),
        (est.DPGradientClassifier(two), X, labels),
        (est.DPGradientClassifier(Domain(classes=[0, 1])), wide, np.arange(500) % 2),
        (est.DPGradientClassifier(two), X.astype(np.float32), labels),
        (est.DPGradientClassifier(three), X, np.arange(60) % 3),
        (est.DPGradientRegressor(number), X, labels - 0.5),
        (est.DPSparseRegressor(Domain(target_range=(-3, 3))), wide, np.arange(500) % 2),
    ]

"""scikit-learn's own battery. Nothing is expected to fail but what private weights of rows cannot promise."""

import math

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from dpsparse.domain import Domain
from dpsparse.methods import (
    DPGradientClassifier,
    DPGradientRegressor,
    DPHardThresholdClassifier,
    DPHardThresholdRegressor,
)

# check_estimator invents data sets with labels of its own, hence "observed".
CLASSES = Domain(feature_bound=10.0, row_norm=10.0, classes="observed", weight_bound=10.0)
TARGETS = Domain(feature_bound=10.0, row_norm=10.0, target_bound=100.0, weight_bound=10.0)

NOISE = "noise is that of rows of the largest weight: repeated rows have less (tests/methods/test_row_weights.py)"
UNPROMISED = {
    "check_all_zero_sample_weights_error": "a refusal would tell of the weights of all rows",
    "check_sample_weight_equivalence_on_dense_data": NOISE,
    "check_sample_weight_equivalence_on_sparse_data": NOISE,
}


def unpromised(estimator):
    """Checks that fail on purpose, with the reason."""
    return UNPROMISED if has_fit_parameter(estimator, "sample_weight") else {}


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")  # checks set a seed
@parametrize_with_checks(
    [
        DPGradientClassifier(CLASSES),
        DPGradientClassifier(CLASSES, epsilon=math.inf, n_iter=20),
        DPGradientRegressor(TARGETS),
        DPHardThresholdClassifier(CLASSES),
        DPHardThresholdRegressor(TARGETS),
    ],
    expected_failed_checks=unpromised,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

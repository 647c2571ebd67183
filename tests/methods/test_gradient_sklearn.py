"""scikit-learn's own battery. Nothing is expected to fail."""

import math

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpsparse.domain import Domain
from dpsparse.methods import (
    DPGradientClassifier,
    DPGradientRegressor,
    DPHardThresholdClassifier,
    DPHardThresholdRegressor,
)

# check_estimator invents data sets with labels of its own, hence "observed".
CLASSES = Domain(feature_bound=10.0, row_norm=10.0, classes="observed")
TARGETS = Domain(feature_bound=10.0, row_norm=10.0, target_bound=100.0)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")  # checks set a seed
@parametrize_with_checks(
    [
        DPGradientClassifier(CLASSES),
        DPGradientClassifier(CLASSES, epsilon=math.inf, n_iter=20),
        DPGradientRegressor(TARGETS),
        DPHardThresholdClassifier(CLASSES),
        DPHardThresholdRegressor(TARGETS),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

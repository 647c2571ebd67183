"""scikit-learn's own battery. Nothing is expected to fail."""

import math

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpsparse.domain import Domain
from dpsparse.methods import DPLassoClassifier, DPLassoRegressor

# check_estimator invents data sets with labels of its own, hence "observed".
LABELS = Domain(feature_bound=10.0, classes="observed", n_samples=50)
TARGETS = Domain(feature_bound=10.0, target_bound=100.0, n_samples=50)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")  # checks set a seed
@parametrize_with_checks(
    [
        DPLassoClassifier(LABELS),
        DPLassoClassifier(LABELS, epsilon=math.inf, n_iter=50),
        DPLassoRegressor(TARGETS),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

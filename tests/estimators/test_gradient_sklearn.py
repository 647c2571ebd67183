"""scikit-learn's own battery. Nothing is expected to fail."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpsparse import Domain, DPGradientClassifier

# check_estimator invents data sets with labels of its own, hence "observed".
DOMAIN = Domain(feature_bound=None, row_norm=10.0, classes="observed", n_samples=50)


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")  # checks set a seed
@parametrize_with_checks(
    [DPGradientClassifier(DOMAIN), DPGradientClassifier(DOMAIN, epsilon=float("inf"))]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

"""scikit-learn's own battery on both estimators, private and not."""

import math

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpsparse import Domain, DPScreenedLassoClassifier, DPScreenedLassoRegressor, published

# check_estimator invents data sets with labels of its own, hence "observed".
DOMAIN = Domain(
    feature_bound=10.0, row_norm=30.0, target_bound=100.0, classes="observed", n_samples=50
)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")  # checks set a seed
@parametrize_with_checks(
    [
        DPScreenedLassoClassifier(DOMAIN, n_iter=6),
        DPScreenedLassoClassifier(DOMAIN, n_iter=6, epsilon=math.inf),
        DPScreenedLassoRegressor(DOMAIN, n_iter=6, n_nonzero=2),
        *(
            getattr(published, name)(DOMAIN)
            for name in published.__all__
            if name != "FrankWolfeLasso"
        ),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

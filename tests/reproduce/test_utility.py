"""The bound on the excess loss of a private LASSO, against measured fits."""

import math

import numpy as np
import pytest

from dpsparse import Domain, DPGradientClassifier, DPLassoClassifier
from dpsparse.exceptions import DomainError, ParameterError
from lab.papers.utility import utility_bound


@pytest.mark.parametrize("offset", [False, pytest.param(True, marks=pytest.mark.heavy)])
def test_the_utility_bound_holds_and_says_something(offset):
    """Mean over fits; the best weights of the ball are within 0.002 of a long fit without noise."""
    rng = np.random.default_rng(0)
    n, d, radius = 20_000, 30, 2.0
    X = rng.uniform(-1.0, 1.0, (n, d))
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-3.0 * X[:, 0] + 2.0 * X[:, 1] - offset))).astype(int)
    domain = Domain(classes=[0, 1], feature_bound=1.0, n_samples=n)

    def loss(epsilon, n_iter):
        model = DPLassoClassifier(
            domain, epsilon=epsilon, radius=radius, n_iter=n_iter, fit_intercept=offset
        ).fit(X, y)
        margin = model.decision_function(X)
        return model, float(np.mean(np.logaddexp(0.0, margin) - y * margin))

    _, best = loss(math.inf, 1_000)
    for epsilon in (0.2, 2.0):
        fits = [loss(epsilon, 60) for _ in range(5)]
        excess = np.mean([found for _, found in fits]) - best
        bound = utility_bound(fits[0][0], d)
        assert excess <= bound < math.log(2.0)
    without = utility_bound(
        DPLassoClassifier(domain, epsilon=math.inf, radius=radius, n_iter=60), d
    )
    assert without < bound
    assert loss(math.inf, 60)[1] - best <= without


def test_the_utility_bound_is_for_a_declared_ball():
    for model in (DPGradientClassifier(Domain(classes=[0, 1], n_samples=1000)),
                  DPLassoClassifier(Domain(classes=[0, 1], n_samples=10_000))):  # fmt: skip
        with pytest.raises(ParameterError, match="radius"):
            utility_bound(model, 10)
    with pytest.raises(DomainError, match="n_samples"):
        utility_bound(DPLassoClassifier(Domain(classes=[0, 1]), radius=1.0), 10)

"""The plain LASSO: scikit-learn's contract, and the minimum that scikit-learn finds."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Lasso
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpsparse.published import FrankWolfeLasso


@pytest.mark.heavy
@parametrize_with_checks([FrankWolfeLasso(n_iter=100)])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_its_objective_is_that_of_scikit_learn_on_the_same_ball(fit_intercept):
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 200), density=0.1, format="csr", rng=rng)
    y = X @ np.r_[rng.standard_normal(10), np.zeros(190)] + 0.1 * rng.standard_normal(400) + 2.0
    y -= 0.0 if fit_intercept else y.mean()
    exact = Lasso(0.003, fit_intercept=fit_intercept, tol=1e-10, max_iter=10_000).fit(X, y)
    loss = np.mean((y - exact.predict(X)) ** 2) / 2
    # The intercept has a place in the ball beside the weights, so that scikit-learn's solution lies inside.
    away = abs(exact.intercept_ - y.mean()) / X.data.max() if fit_intercept else 0.0
    radius = np.abs(exact.coef_).sum() + away
    model = FrankWolfeLasso(radius, n_iter=4000, fit_intercept=fit_intercept).fit(X, y)
    found = np.mean((y - model.predict(X)) ** 2) / 2
    assert found - loss <= model.dual_gap_ < 0.01 * np.var(y)
    assert np.abs(model.coef_).sum() <= radius * (1 + 1e-9)
    if not fit_intercept:
        assert loss <= found < 1.01 * loss


def test_the_gap_shrinks_with_the_steps_and_bounds_what_is_left():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 50))
    y = X[:, :5] @ np.ones(5) + rng.standard_normal(300)
    fits = [FrankWolfeLasso(3.0, n_iter=n).fit(X, y) for n in (100, 2_000)]
    loss = [np.mean((y - fit.predict(X)) ** 2) / 2 for fit in fits]
    assert fits[1].dual_gap_ < fits[0].dual_gap_ / 10
    assert loss[0] - loss[1] <= fits[0].dual_gap_


@pytest.mark.parametrize("wrong", [{"radius": 0.0}, {"n_iter": 0}])
def test_bad_parameters_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        FrankWolfeLasso(**wrong).fit(np.eye(3), np.arange(3.0))

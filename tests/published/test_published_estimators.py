"""Every estimator of a printed paper says that it promises nothing, and is refused where a guarantee is needed."""

import math
import warnings

import numpy as np
import pytest

from dpsparse import Domain, DPPipeline, DPSearchCV, DPStandardizer, Ledger, load, published, save
from dpsparse.accounting import epsilon as spent_epsilon
from dpsparse.exceptions import BudgetError, NotPrivateWarning, ParameterError

N, D = 60, 5
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (N, D))
MARGINS = X @ np.arange(D)


# The plain LASSO has neither a domain nor a guarantee: tests/published/test_frank_wolfe_lasso.py.
PAPERS = [name for name in published.__all__ if name != "FrankWolfeLasso"]


def estimator(name, **parameters):
    if name.endswith("Regressor"):
        return getattr(published, name)(Domain(target_bound=10.0, n_samples=N), **parameters)
    return getattr(published, name)(Domain(classes=[0, 1], n_samples=N), **parameters)


def fitted(name, **parameters):
    y = MARGINS if name.endswith("Regressor") else (MARGINS > 0).astype(int)
    with pytest.warns(NotPrivateWarning, match="NOT proven"):
        return estimator(name, **parameters).fit(X, y)


# Their noise is proven to be worth something, at another epsilon than the paper states.
WORTH = ("KhannaLuRaffLassoClassifier", "KhannaLuRaffLassoRegressor")


@pytest.mark.parametrize("name", WORTH)
def test_the_guarantee_is_what_the_noise_is_worth(name):
    y = MARGINS if name.endswith("Regressor") else (MARGINS > 0).astype(int)
    model = estimator(name, epsilon=2.0).fit(X, y)
    assert model.privacy_.proven
    assert model.privacy_.epsilon == spent_epsilon(model.plan_.event, 1e-6) != 2.0
    assert any("claims epsilon=2" in line for line in model.privacy_.assumptions)
    exact = estimator(name, epsilon=math.inf)
    with pytest.warns(NotPrivateWarning):
        assert math.isinf(exact.fit(X, y).privacy_.epsilon)


@pytest.mark.parametrize("name", [n for n in PAPERS if n not in WORTH])
def test_the_guarantee_is_infinite_and_says_so(name, tmp_path):
    model = fitted(name)
    assert not model.plan_.proven
    assert math.isinf(model.privacy_.epsilon)
    assert model.privacy_.headline.startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in type(model).__doc__.splitlines()[0]
    with pytest.raises(BudgetError, match="no proven guarantee"):
        Ledger(epsilon=10.0, delta=1e-3).reserve(model.plan_)
    save(model, tmp_path / "model.json")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        again = load(tmp_path / "model.json")
    assert np.array_equal(again.coef_, model.coef_)
    assert math.isinf(again.privacy_.epsilon)


@pytest.mark.parametrize("name", PAPERS)
def test_searches_and_pipelines_refuse_it(name):
    pipe = DPPipeline([("scale", DPStandardizer()), ("model", estimator(name))])
    y = MARGINS if name.endswith("Regressor") else (MARGINS > 0).astype(int)
    with pytest.raises(ParameterError, match="proven private"):
        pipe.fit(X, y)
    search = DPSearchCV(estimator(name), {"n_nonzero": [1, 2]})
    with pytest.raises(ParameterError, match="proven private"):
        search.fit(X, y)

"""Hard thresholding: it recovers a support, every release is bounded, steps follow from public facts."""

import math

import numpy as np
import pytest

from dpsparse.domain import Domain
from dpsparse.methods import DPHardThresholdClassifier, DPHardThresholdRegressor
from dpsparse.rows import Rows

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")


def sparse_problem(n=2000, d=50, s=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) / math.sqrt(d)
    w = np.zeros(d)
    w[:s] = 20.0 * np.array([1, -1, 1, -1])[:s]
    return X, w, rng


def test_ight_recovers_the_support():
    X, w, rng = sparse_problem()
    y = (X @ w + 0.1 * rng.standard_normal(2000) > 0).astype(int)
    domain = Domain(row_norm=1.0, classes=[0, 1])
    model = DPHardThresholdClassifier(domain, epsilon=math.inf, n_nonzero=4, n_iter=50).fit(X, y)
    assert set(np.flatnonzero(model.coef_[0])) == {0, 1, 2, 3}
    assert not model.privacy_.proven
    target = Domain(row_norm=1.0, target_bound=10.0)
    model = DPHardThresholdRegressor(target, epsilon=math.inf, n_nonzero=4, n_iter=200)
    model.fit(X, X @ w)
    assert set(np.flatnonzero(model.coef_)) == {0, 1, 2, 3}


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("n_iter", [1, 2, 7])
@pytest.mark.parametrize("classes", [2, 3])
def test_private_fits_keep_their_number_of_weights(adjacency, n_iter, classes):
    X, _, rng = sparse_problem(500, 30)
    y = rng.integers(0, classes, 500)
    model = DPHardThresholdClassifier(
        Domain(row_norm=1.0, classes=list(range(classes))),
        n_nonzero=6, n_iter=n_iter, adjacency=adjacency, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert model.n_nonzero_ <= 6
    assert model.n_iter_ == n_iter
    assert model.plan_.guarantee.recompute() <= 1.0 + 1e-9


@pytest.mark.parametrize("declared", [True, False])
def test_steps_grow_with_rows_and_budget(declared):
    """From the released number of rows where none is declared."""

    def steps(n, n_features=20, **parameters):
        X, y = np.ones((n, n_features)), np.arange(n) % 2
        domain = Domain(classes=[0, 1], n_samples=n if declared else None)
        model = DPHardThresholdClassifier(domain, random_state=0, **parameters)
        assert "n_iter" in model.plan(n_features).parameters
        return model.fit(X, y).n_iter_

    found = [steps(2000, epsilon=epsilon) for epsilon in (0.1, 0.5, 2.0, 100.0, math.inf)]
    assert found == sorted(found)
    assert 3 < found[0] < found[1] < found[2]
    assert steps(400) < steps(4000)
    assert steps(400, n_iter=7) == 7


def test_without_noise_the_run_is_that_of_a_huge_budget():
    """The limit is no other algorithm: a private run with almost no noise gives almost the same direction. Classes that
    hardly overlap tell little of the slope, which is released too."""
    X, w, rng = sparse_problem()
    y = (X @ w + 0.1 * rng.standard_normal(2000) > 0).astype(int)
    domain = Domain(classes=[0, 1], n_samples=2000)
    exact, private = (
        DPHardThresholdClassifier(domain, epsilon=e, n_nonzero=4, n_iter=20, random_state=0).fit(
            X, y
        )
        for e in (math.inf, 1e5)
    )
    assert exact.n_iter_ == private.n_iter_ == 20
    exact, private = (m.coef_ / np.linalg.norm(m.coef_) for m in (exact, private))
    np.testing.assert_allclose(exact, private, rtol=0.1)


def test_released_scales_learn_without_declared_ones():
    """What could not be learnt with the largest norm a row may have, one twentieth of which is used."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (6000, 60)) + 0.5  # columns that are alike
    y = X[:, 0] - X[:, 1] + 0.05 * rng.standard_normal(6000)
    domain = Domain(n_samples=6000, target_range=(-3, 3))
    scores = [
        DPHardThresholdRegressor(domain, epsilon=3.0, n_nonzero=4, random_state=s)
        .fit(X, y)
        .score(X, y)
        for s in range(3)
    ]
    assert min(scores) > 0.9


def test_noise_that_drowns_the_rows_moves_nothing():
    rng = np.random.default_rng(4)
    X, y = rng.uniform(-1, 1, (1500, 300)), rng.uniform(-1, 1, 1500)
    domain = Domain(n_samples=1500, target_range=(-1, 1))
    for seed in range(3):
        model = DPHardThresholdRegressor(domain, epsilon=0.3, n_nonzero=30, random_state=seed)
        assert model.fit(X, y).score(X, y) > -0.1
    few = DPHardThresholdRegressor(domain, epsilon=0.05).plan(300)
    assert [phase.name for phase in few.phases] == ["mean"]


def test_sums_of_many_rows_keep_their_sensitivity():
    """In float32 a sum of 300,001 equal rows rounds by more than one row moves it."""
    whole = []
    for n in (300_001, 300_002):
        domain = Domain(classes=[0, 1])
        rows = Rows.clip(np.full((n, 1), 0.7), np.zeros(n, int), domain, labels=np.array([0, 1]))
        sums = rows.entries(1.0, 1.0).gradient(
            "logistic", np.zeros((1, 1)), np.array([40.0]), clip=1.0, cutoff=1.0
        )
        whole.append(int(sums.whole(1e-6)[0, 0]))
    assert whole[1] - whole[0] == pytest.approx(0.7e6, abs=2)
    assert whole[1] - whole[0] <= 0.7e6

"""Hard thresholding: IGHT recovers, every release is bounded, the choice of method is public."""

import math

import numpy as np
import pytest

from dpsparse.domain import Domain
from dpsparse.estimators import DPHardThresholdClassifier, DPHardThresholdRegressor
from dpsparse.exceptions import DomainError
from dpsparse.losses import get_loss
from dpsparse.random import make_generator
from dpsparse.solvers import gradient, hard_threshold
from dpsparse.solvers.hard_threshold import Threshold, peel

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


def test_one_step_of_ight_by_hand():
    X, _, rng = sparse_problem(60, 8)
    y = (rng.random(60) < 0.4).astype(int)
    domain = Domain(feature_bound=None, row_norm=1.0, classes=[0, 1])
    model = DPHardThresholdClassifier(
        domain, epsilon=math.inf, n_nonzero=3, n_iter=1, step_size=2.0
    ).fit(X, y)
    p = y.mean()
    slopes = p - y  # sigmoid(log odds) = share of the positives
    step = -2.0 / 60 * X.T @ slopes
    step[np.argsort(-np.abs(step))[3:]] = 0.0
    np.testing.assert_allclose(model.coef_[0], step, rtol=2e-5, atol=1e-8)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("method", ["gaussian", "peeling"])
@pytest.mark.parametrize("classes", [2, 3])
def test_private_fits_keep_their_number_of_weights(adjacency, method, classes):
    X, _, rng = sparse_problem(500, 30)
    y = rng.integers(0, classes, 500)
    model = DPHardThresholdClassifier(
        Domain(row_norm=1.0, classes=list(range(classes))),
        n_nonzero=6, method=method, adjacency=adjacency, random_state=0,
    ).fit(X, y)  # fmt: skip
    assert model.n_nonzero_ <= 6
    assert model.plan_.guarantee.recompute() <= 1.0 + 1e-9


def test_method_is_chosen_from_public_constants():
    domain = Domain(feature_bound=1.0, row_norm=1.0, classes=[0, 1])
    assert DPHardThresholdClassifier(domain).plan(10**6).parameters["method"] == "gaussian"
    small = Domain(feature_bound=0.05, row_norm=1.0, classes=[0, 1])
    assert DPHardThresholdClassifier(small).plan(10**6).parameters["method"] == "peeling"
    with pytest.raises(DomainError, match="row_norm"):
        DPHardThresholdClassifier(Domain(classes=[0, 1])).plan(10**6)


def test_published_calibration_is_marked():
    X, _, rng = sparse_problem(200, 10)
    domain = Domain(row_norm=1.0, classes=[0, 1])
    model = DPHardThresholdClassifier(domain, calibration="published", random_state=0)
    model.fit(X, rng.integers(0, 2, 200))
    assert not model.privacy_.proven
    log = math.log(1e6)
    rho = 1 + 2 * log - 2 * math.sqrt(log * (1 + log))
    assert model.plan_.parameters["budget"] == pytest.approx(math.sqrt(rho))


def make_run(X, y, seed=0, signed=1.0):
    recipe = gradient.Recipe(
        prior=math.inf, mass=math.inf, length=math.inf, gradient=math.inf, intercept=math.inf,
        n_samples=100, signed=signed,
    )  # fmt: skip
    domain = Domain(feature_bound=0.5, row_norm=1.0, classes=[0, 1])
    data = domain.clip(X, y, labels=np.array([0, 1]))
    from dpsparse.losses import get_loss

    run = gradient.Run(data, get_loss("logistic"), 1, recipe, make_generator(seed))
    run.release_prior()
    return run


@pytest.mark.parametrize("signed", [1.0, 2.0])
def test_peeling_moves_by_no_more_than_it_pays_for(monkeypatch, signed):
    """Scores and values of neighbours: log-ratio range eta, noise ratio, both attained to 99 %."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.2, 0.2, (40, 12))
    y = rng.integers(0, 2, 40)
    seen = []

    def record(scores, k, kappa, _):
        seen.append((scores.copy(), kappa))
        return np.arange(k)

    scales = []
    monkeypatch.setattr(hard_threshold, "gumbel_top_k", record)
    monkeypatch.setattr(
        hard_threshold, "gaussian", lambda rng, scale, size: scales.append(scale) or np.zeros(size)
    )
    public = Threshold("peeling", 4, 1, 1.0, 0.0, 1.0, 2.0, 0.3, 0.5, signed)
    row = np.zeros(12)
    row[:4] = 0.5  # norm 1, entries at the feature bound
    theta = np.full((12, 1), 5.0, dtype=np.float32)
    outputs = []
    for rows, labels in (
        (X, y) if signed == 1.0 else (np.vstack([X, row]), np.append(y, 0)),
        (np.vstack([X, row]), np.append(y, 1)),
    ):
        run = make_run(rows, labels)
        run.offset = np.zeros(1)
        slopes = np.where(labels == 1, -1.0, 1.0)[:, None]  # the largest slopes there can be
        outputs.append(peel(run, public, theta, slopes, 1.0 / 100, 1.0)[:4, 0].astype(float))
    (first, kappa), (second, _) = seen
    change = kappa * (second - first)
    spread = change.max() - change.min()
    assert 0.99 * 0.3 / 2 <= np.abs(change).max() <= 0.3 / 2 * (1 + 1e-4)
    assert spread <= 0.3 * (1 + 1e-4)
    ratio = np.linalg.norm(outputs[1] - outputs[0]) / scales[0]
    assert 0.99 * 2.0 <= ratio <= 2.0 * (1 + 1e-4)


def test_peeling_values_of_many_rows_keep_their_sensitivity(monkeypatch):
    """In float32 a sum of 300,001 equal rows rounds by more than one row moves it."""
    seen = []

    def spy(scores, k, kappa, rng):
        seen.append((scores.copy(), kappa))
        return np.arange(k)

    monkeypatch.setattr(hard_threshold, "gumbel_top_k", spy)
    public = Threshold("peeling", 1, 1, 1.0, 0.0, 1.0, 1.0, eta=0.1, feature_bound=1.0)
    for n in (300_001, 300_002):
        data = Domain().clip(np.full((n, 1), 0.7), np.zeros(n))
        recipe = gradient.Recipe(1.0, 1.0, 1.0, 1.0, 1.0)
        run = gradient.Run(data, get_loss("logistic"), 1, recipe, make_generator(0))
        peel(run, public, np.zeros((1, 1), np.float32), np.ones((n, 1)), 1e-5, 1.0)
    (before, kappa), (after, _) = seen
    assert float(abs(after - before)[0]) == pytest.approx(0.7e-5, rel=1e-6)
    assert 2.0 * kappa * float(abs(after - before)[0]) <= public.eta

"""Hard thresholding: IGHT recovers, every release is bounded, the choice of method is public."""

import math

import numpy as np
import pytest

from dpsparse.clipping import TINY
from dpsparse.domain import Domain
from dpsparse.estimators import DPHardThresholdClassifier, DPHardThresholdRegressor
from dpsparse.exceptions import DomainError
from dpsparse.rows import Rows
from recording import replay

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
    domain = Domain(row_norm=1.0, classes=[0, 1])
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
    def method(domain, **parameters):
        return DPHardThresholdClassifier(domain, **parameters).plan(10**6).parameters["method"]

    domain = Domain(feature_bound=1.0, row_norm=1.0, classes=[0, 1])
    assert method(domain) == "scaled"
    assert method(Domain(classes=[0, 1])) == "scaled"  # asks for no bound
    assert method(domain, step_size=1.0) == "gaussian"
    small = Domain(feature_bound=0.05, row_norm=1.0, classes=[0, 1])
    assert method(small, step_size=1.0) == "peeling"
    with pytest.raises(DomainError, match="row_norm"):
        method(Domain(classes=[0, 1]), method="gaussian")


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


# ---- the curvature along a direction --------------------------------------------------------------


BOUNDARY = [0.0, 5e-324, 1e-310, TINY, 1e-20, 0.3, 1.0, 1e30, 1e300, -1.0, -1e300]
FREE = Domain(target_bound=1.0)


def along(X, direction, *, constant=0.0, shortest=0.0, unit=2.0**-20, n_parts=1):
    rows = Rows.clip(np.asarray(X, float), np.zeros(len(X)), FREE, n_parts=n_parts)
    units = rows.unit(np.ones(rows.n_features, np.float32), constant=constant, shortest=shortest)
    return units.along(np.asarray(direction, float)), unit


@pytest.mark.parametrize("constant", [0.0, 1.0, 1e-300])
@pytest.mark.parametrize("size", [1.0, 5e-324, 1e-310, 1e150])
def test_a_row_adds_at_most_one_along_any_direction(constant, size):
    reached = 0.0
    for a in BOUNDARY:
        for b in BOUNDARY:
            for direction in ([[1.0], [0.0], [0.0]], [[1.0], [1.0], [1.0]], [[1.0], [-1.0], [0.5]]):
                query, unit = along([[a, b]], np.multiply(direction, size), constant=constant)
                whole = int(query.whole(unit)[0])
                assert 0 <= whole * unit <= query.sensitivity("add-remove").value
                reached = max(reached, whole * unit)
    assert reached > 0.999 or size < 1e-300
    assert query.sensitivity("replace-one").value == 1.0


def test_the_curvature_is_that_of_the_rows_however_they_are_cut():
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(40, 5)), rng.normal(size=(6, 3))
    Z = np.c_[X, np.full(40, 0.7)]
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    answers = [along(X, V, constant=0.7, n_parts=n)[0].whole(2.0**-20)[0] for n in (1, 3)]
    assert answers[0] == answers[1]
    expected = np.sum((Z @ V) ** 2) / np.sum(V * V)
    assert answers[0] * 2.0**-20 == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_peeling_moves_by_no_more_than_it_pays_for(adjacency):
    """Picks and values of neighbours: log-ratio range eta, noise ratio, both attained to 99 %."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.2, 0.2, (40, 12)), rng.integers(0, 2, 40)
    row = np.zeros(12)
    row[:4] = 0.5  # norm 1, entries at the feature bound
    domain = Domain(feature_bound=0.5, row_norm=1.0, classes=[0, 1], n_samples=4060)
    model = DPHardThresholdClassifier(
        domain, n_nonzero=4, n_iter=1, method="peeling", adjacency=adjacency, epsilon=50.0,
        random_state=0,
    )  # fmt: skip
    # A prior of 99 % for one class makes slopes of nearly one for the other; twenty such rows keep sums
    # away from zero, where magnitudes would hide a change of sign.
    y[:] = 1
    X = np.vstack([X, np.zeros((4000, 12)), np.tile(row, (20, 1))])
    y = np.r_[y, np.ones(4000, int), np.zeros(20, int)]
    if adjacency == "add-remove":
        table, near = (X, y), (np.vstack([X, row]), np.append(y, 0))
    else:
        table, near = (
            (np.vstack([X, -row]), np.append(y, 0)),
            (np.vstack([X, row]), np.append(y, 0)),
        )
    again = replay(model, table, near)
    events = {
        phase.name: phase.event.event for phase in model.plan_.phases if phase.name != "prior"
    }
    moved = max(spread for _, spread in again.picks)
    assert moved <= events["selection"].eta
    # Four entries rise by the largest amount and none falls: half of the range.
    assert moved >= 0.97 * events["selection"].eta / 2
    paid = events["values"].sensitivity / events["values"].scale
    assert 0.97 * paid <= again.of("values").max() <= paid


def test_sums_of_many_rows_keep_their_sensitivity():
    """In float32 a sum of 300,001 equal rows rounds by more than one row moves it."""
    whole = []
    for n in (300_001, 300_002):
        domain = Domain(classes=[0, 1])
        rows = Rows.clip(np.full((n, 1), 0.7), np.zeros(n, int), domain, labels=np.array([0, 1]))
        sums = rows.entries(1.0, 1.0).gradient(
            "logistic", np.zeros((1, 1)), np.array([40.0]), clip=1.0, cutoff=1.0, original=True
        )
        whole.append(int(sums.whole(1e-6)[0, 0]))
    assert whole[1] - whole[0] == pytest.approx(0.7e6, abs=2)
    assert whole[1] - whole[0] <= 0.7e6

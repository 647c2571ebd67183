"""Frank-Wolfe without declared scales: bounds for every float, what is learnt, and the limit without noise."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Lasso

from complaints import check
from dpsparse import (
    Domain,
    DPHardThresholdClassifier,
    DPLassoClassifier,
    DPLassoRegressor,
    DPScreenedLassoClassifier,
    DPScreenedLassoRegressor,
)
from dpsparse.domain.clipping import HUGE, TINY, BoundedData
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Logistic
from dpsparse.methods.frank_wolfe.run import Problem, RowArrays, lay_out
from dpsparse.methods.frank_wolfe.solve import choose_reach, make_problem, release_scales
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.cells import CellsAt, cell_scores
from dpsparse.rows.loss_kernels import whole_slope
from plain_frank_wolfe import matrix_of, score_cells, with_intercept

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")

BOUNDARY = [
    0.0, -0.0, 5e-324, 1e-310, TINY * (1 - 2.0**-53), TINY, 1e-20, 0.1, 1.0 - 2.0**-53, 1.0, 3.0,
    HUGE, 1e300, -1.0, -1e300,
]  # fmt: skip
FREE = Domain(target_bound=1.0)


@pytest.mark.parametrize("bound", [1.5, 0.1, 1e-25, float(np.float32(0.3)), 0.3 * (1 + 2.0**-40)])
def test_no_entry_is_above_a_released_bound(bound):
    X = np.array([[a, b] for a in BOUNDARY for b in BOUNDARY])
    rows = Rows.clip(X, np.zeros(len(X)), FREE)
    for mapped in (
        rows,
        rows.standardised(np.array([0.1, 1e-30]), np.array([1e20, 7.0])),
    ):
        arrays = RowArrays(*mapped.bounded(bound).arrays())
        problem = Problem(Logistic(), 1.0, 1, 1.0 / bound, 1.0, 2**8, feature_bound=bound)
        kernel_has, *_ = lay_out(arrays, problem)
        shares = np.abs(kernel_has.entries.astype(np.uint32).view(np.float32))
        assert shares.max() == 1.0
        table = BoundedData(matrix_of(arrays), arrays.targets, FREE)
        assert np.abs(with_intercept(table, problem).data).max() == 1.0
    declared = Domain(classes=[0, 1], row_norm=2.0, bounds=[(0, 1), (0, 1)])
    released = Rows.clip(X, np.zeros(len(X)), declared).bounded(bound).domain
    assert released.feature_bound == bound
    # Rows that were mapped since need not satisfy what was declared of them before.
    assert released.row_norm is None
    assert released.bounds is None


@pytest.mark.parametrize("make", [DPLassoClassifier, DPLassoRegressor, DPScreenedLassoClassifier])
def test_slopes_of_released_scales_reach_their_bound_and_not_more(make):
    """Margins reach as far as radius times bound allows, whatever bound was released: a smaller bound of slopes would
    clip rows, a larger one would pay for slopes that no row has. Seeded."""
    classes = make is not DPLassoRegressor
    facts: dict = {"classes": [0, 1]} if classes else {"target_bound": 2.5}
    domain = Domain(n_samples=2000, **facts)
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-3, 3, (2000, 300)), rng.integers(0, 2, 2000)
    plan = make(domain, epsilon=4.0).plan(300)
    rows = Rows.clip(X, y, domain, labels=np.array([0, 1]) if classes else None)
    releases = Releases(plan, make_generator(0))
    scaled = release_scales(rows, plan.settings, releases)
    ball = make_problem(scaled, plan.settings, releases)
    reach = plan.settings.reach * (1.0 if classes else 2.5)
    assert ball.radius * ball.feature_bound == pytest.approx(reach, rel=1e-12)
    assert ball.feature_bound == scaled.rows.domain.feature_bound
    largest = 1.0 / (1.0 + math.exp(-reach - max(map(abs, ball.offset)))) if classes else 2.5
    assert ball.slope_bound == pytest.approx(largest, rel=1e-12)


def test_no_slope_of_a_kernel_is_above_its_bound():
    """Its own source, uncompiled: slopes keep to their bounds before; the kernel does not rely on it."""
    unit = 2.0**28
    for v in (0.0, 0.5, 1.0, 1.0 + 2.0**-40, 1.02, 1e9, 1e300, math.inf, math.nan):
        for sign in (1.0, -1.0):
            found = whole_slope.py_func(sign * v * unit)
            assert found == (0.0 if math.isnan(v) else sign * np.rint(min(v, 1.0) * unit))


def test_no_slope_adds_more_to_a_score_of_the_plain_loop_than_its_bound():
    """Losses without a kernel are the contributor's: whatever their slope is, a row adds at most `resolution`."""
    problem = Problem(Logistic(), 1.0, 1, 1.0, 0.25, 2**11)
    columns = sp.csc_array(np.array([[1.0, -1.0]]))
    for slope in (0.25, 0.1, 1e300, -math.inf, math.inf, math.nan):
        scores = score_cells(columns, np.array([[slope]]), problem)
        expected = 0.0 if math.isnan(slope) else min(max(slope * 4.0, -1.0), 1.0)
        np.testing.assert_array_equal(scores, np.rint(2**11 * expected * np.array([1, -1])))


@pytest.mark.parametrize("loss", ["logistic", "huber", "squared", "softmax"])
@pytest.mark.parametrize("bound", [1.5, 0.1, 1e-25, 0.3 * (1 + 2.0**-40)])
def test_no_row_of_a_part_adds_more_to_a_score_than_its_bound(bound, loss):
    """Scores of shards: entries beyond the released bound, slopes beyond theirs and weights that are no numbers add at
    most `resolution` each, and that is attained."""
    resolution, k = 2**11, 3 if loss == "softmax" else 1
    labels = np.arange(max(k, 2)) if loss in ("logistic", "softmax") else None
    largest = 0
    for x in [[a, b] for a in BOUNDARY for b in BOUNDARY[::4]]:
        target = np.array([1]) if labels is not None else np.array([-1.0])
        domain = Domain(target_bound=1.0, classes=list(range(max(k, 2))))
        rows = Rows.clip(np.array([x]), target, domain, labels=labels).bounded(bound)
        for size in (0.0, 0.7, 1e30, math.nan):
            at = CellsAt(
                np.full((3, k), size), np.linspace(-99.0, 99.0, k), loss, 1.0, 0.25, 1.0 / bound,
                1.0, resolution, True,
            )  # fmt: skip
            largest = max(largest, int(np.abs(cell_scores(rows, at)).max()))
    assert largest == resolution


@pytest.mark.parametrize("size", [TINY, 1e-3, 1.0, HUGE])
def test_a_row_is_small_or_not_whatever_the_others_are(size):
    """A count of yes and no, each row by itself: alone and in a crowd of extreme rows the answers are the same."""
    X = np.array([[a, b, 0.0] for a in BOUNDARY for b in BOUNDARY])
    unit = 2.0**-20
    alone = [
        int(Rows.clip(x[None, :], np.zeros(1), FREE).count_small(size).whole(unit)[0]) for x in X
    ]
    assert set(alone) <= {0, 2**20}
    crowd = Rows.clip(X, np.zeros(len(X)), FREE).count_small(size)
    assert int(crowd.whole(unit)[0]) == sum(alone)
    assert crowd.sensitivity("add-remove").value == crowd.sensitivity("replace-one").value == 1.0


def test_small_is_about_non_zero_entries():
    rows = Rows.clip(np.array([[0.5, 0, 0, 0], [0.5, 0.5, 0, 0]]), np.zeros(2), FREE)
    assert rows.count_small(0.49).whole(1.0)[0] == 0
    assert rows.count_small(0.51).whole(1.0)[0] == 2


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_replay_of_a_wide_regression(adjacency, monkeypatch):
    """The way that no audit case takes: numbers, and more columns than can be centred."""
    monkeypatch.setattr("dpsparse.methods.base.MOST_COLUMNS", 3)
    model = DPLassoRegressor(
        Domain(target_bound=2.0, n_samples=4000), n_iter=3, adjacency=adjacency
    )
    names = [phase.name for phase in model.plan(6).phases]
    assert names == ["mean", "spread", "entry", "vertices"]
    finding = check(model, n_pairs=12, n_climbs=2, every=100, seed=1)
    assert finding.complaints == ()
    assert finding.tightness["entry"] > 0.3


def test_scales_are_public_rules():
    def way(n, d, **parameters):
        plan = DPLassoRegressor(Domain(target_bound=1.0, n_samples=n), **parameters).plan(d)
        return plan.parameters.get("scales", plan.parameters.get("way"))

    assert way(2000, 20) == "table"
    assert way(2000, 20, radius=1.0) == "declared"
    assert way(2000, 5000) == "entries"
    assert way(100, 20) == "mean"
    assert way(100, 20, n_iter=20) == "declared"
    undeclared = DPLassoRegressor(Domain(target_bound=1.0)).plan(20)
    assert undeclared.parameters["scales"] == "declared"


@pytest.mark.parametrize(
    ("estimator", "facts"),
    [
        (DPLassoClassifier, {"feature_bound": 2.0**-92}),
        (DPScreenedLassoClassifier, {"feature_bound": 2.0**-95}),
        (DPLassoRegressor, {"target_bound": 2.0**98}),
        (DPScreenedLassoRegressor, {"target_bound": 2.0**98}),
    ],
)
def test_units_for_which_a_release_might_leave_the_floats_are_refused_by_the_plan(estimator, facts):
    """They were refused by the solver, after the release of the scale was paid for."""
    labels = {} if "target_bound" in facts else {"classes": [0, 1]}
    with pytest.raises(ParameterError, match="must be between"):
        estimator(Domain(n_samples=4000, **labels, **facts), epsilon=4.0).plan(20)
    mild = {name: math.sqrt(value) for name, value in facts.items()}
    plan = estimator(Domain(n_samples=4000, **labels, **mild), epsilon=4.0).plan(20)
    assert plan.parameters["scales"] in ("table", "entries")


def test_it_learns_out_of_the_box():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 30)) * np.linspace(0.05, 0.5, 30) + 0.4
    y = 20.0 * (X[:, 3] - X[:, 20]) + 0.1 * rng.standard_normal(6000)
    domain = Domain(n_samples=6000, target_range=(-100.0, 100.0))
    for seed in range(3):
        model = DPLassoRegressor(domain, epsilon=3.0, random_state=seed).fit(X, y)
        assert model.score(X, y) > 0.9
    labels = Domain(n_samples=6000, classes=[0, 1])
    X = X - 0.4
    model = DPLassoClassifier(labels, epsilon=3.0, random_state=0)
    assert model.fit(X, (X[:, 3] > X[:, 20]).astype(int)).score(X, (X[:, 3] > X[:, 20])) > 0.85


def test_screening_takes_the_same_scales():
    domain = Domain(n_samples=6000, target_range=(-100.0, 100.0))

    def phases(**parameters):
        return [p.name for p in DPScreenedLassoRegressor(domain, **parameters).plan(30).phases]

    assert phases() == ["mean", "spread", "length", "centre", "columns", "vertices"]
    assert phases(radius=1.0) == ["vertices"]
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 30))
    y = 20.0 * (X[:, 3] - X[:, 20]) + 0.1 * rng.standard_normal(6000)
    model = DPScreenedLassoRegressor(domain, epsilon=3.0, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
    assert {3, 20} <= set(np.flatnonzero(model.coef_))
    assert model.n_nonzero_ < 15


# ---- without noise --------------------------------------------------------------------------------


def table(seed=0, n=400, d=60):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    return X, X[:, :3] @ [1.0, -1.0, 0.5] + 0.2 * rng.standard_normal(n)


def test_without_noise_the_planned_steps_come_close_to_the_lasso():
    """Frank-Wolfe with T steps is within O(1/T) of the minimum over its ball; `n_iter_` is what the plan says."""
    X, y = table()
    plain = Lasso(alpha=0.02, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y)
    model = DPLassoRegressor(
        Domain(target_bound=5.0), epsilon=math.inf, fit_intercept=False,
        radius=float(np.abs(plain.coef_).sum()),
    ).fit(X, y)  # fmt: skip
    assert model.n_iter_ == model.plan_.parameters["n_iter"] == 1000
    ours, least = (np.square(X @ w - y).sum() for w in (model.coef_, plain.coef_))
    assert least <= ours <= 1.01 * least
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.02)


def test_without_noise_the_gap_of_the_logistic_loss_is_small():
    """<G, w> + radius max |G| bounds the distance to the minimum of the loss over the ball."""
    X, y = table()
    y = (y > 0).astype(int)
    model = DPLassoClassifier(
        Domain(classes=[0, 1]), epsilon=math.inf, fit_intercept=False, radius=8.0
    ).fit(X, y)
    w = model.coef_[0]
    slopes = X.T @ (model.predict_proba(X)[:, 1] - y)
    gap = slopes @ w + 8.0 * np.abs(slopes).max()
    assert np.abs(w).sum() <= 8.0 + 1e-9
    assert 0.0 <= gap <= 0.02 * len(y) * math.log(2.0)


@pytest.mark.parametrize("n_samples", [None, 400])
def test_without_noise_the_phases_and_steps_are_those_of_a_private_fit(n_samples):
    X, y = table()
    domain = Domain(target_bound=9.0, feature_bound=1.0, n_samples=n_samples)
    exact = DPLassoRegressor(domain, epsilon=math.inf, n_iter=40).fit(X, y + 1.0)
    noisy = DPLassoRegressor(domain, epsilon=600.0, n_iter=40, random_state=0).fit(X, y + 1.0)
    assert exact.n_iter_ == noisy.n_iter_ == 40
    assert exact.plan_.parameters["scales"] == noisy.plan_.parameters["scales"]
    assert set(np.argsort(-np.abs(exact.coef_))[:3]) == set(np.argsort(-np.abs(noisy.coef_))[:3])
    assert exact.score(X, y + 1.0) == pytest.approx(noisy.score(X, y + 1.0), abs=0.05)


def test_the_intercept_is_inside_the_ball_and_a_default_learns_without_noise():
    X, y = table()
    model = DPLassoRegressor(Domain(target_bound=9.0), epsilon=math.inf, radius=4.0).fit(X, y + 1.0)
    assert model.intercept_ == pytest.approx(1.0, abs=0.05)
    assert np.abs(model.coef_).sum() + abs(model.intercept_) <= 4.0 + 1e-9
    free = DPLassoRegressor(Domain(target_bound=9.0, n_samples=400), epsilon=math.inf).fit(
        X, y + 5.0
    )
    assert free.score(X, y + 5.0) > 0.9


def test_the_ball_of_numbers_grows_with_the_root_of_the_steps():
    """Early picks of a larger ball overshoot; classes keep a ball that grows with the steps."""
    steps = (1, 10, 90, 1000)
    assert [choose_reach(t, 1, of_numbers=True) for t in steps] == [0.5, 1.0, 3.0, 10.0]
    assert [choose_reach(t, 1, of_numbers=False) for t in steps] == [0.5, 1.0, 9.0, 30.0]


def test_hard_thresholding_without_noise_on_more_columns_than_a_table_has():
    X = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], size=(300, 1600))
    y = (X[:, 7] - X[:, 9] + 0.5 > 0).astype(int)
    domain = Domain(classes=[0, 1], n_samples=300)
    model = DPHardThresholdClassifier(domain, epsilon=math.inf, n_nonzero=2)
    assert set(np.flatnonzero(model.fit(X, y).coef_[0])) == {7, 9}

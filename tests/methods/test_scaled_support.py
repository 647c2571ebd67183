"""Columns found with released scales, then fitted (DPTwoStageRegressor as it comes): bounds for every float, the plan,
a replay on a wide table, and what it must learn."""

import math

import numpy as np
import pytest

from complaints import check
from dpsparse import Domain, DPRidgeRegressor, DPTransferRegressor, DPTwoStageRegressor
from dpsparse.accounting import Exponential
from dpsparse.domain.clipping import HUGE, TINY
from dpsparse.methods.support_first.solve import ROW_CLIP
from dpsparse.rows import Rows
from dpsparse.sensitivity import ridge_minimiser

BOUNDARY = [0.0, 5e-324, 1e-310, TINY, 0.3, 1.0 - 2.0**-53, 1.0, 3.0, HUGE, 1e300, -1.0, -1e300]
D = 4
FREE = Domain(target_bound=1.0)


def scores(X, y, *, bound, cut=0.01):
    """The query that columns are found by."""
    rows = Rows.clip(np.asarray(X, float), np.asarray(y, float), FREE)
    entries = rows.standardised_targets(0.25, cut).entries(bound, HUGE)
    start = np.zeros((D, 1))
    sums = entries.gradient("huber", start, np.zeros(1), clip=1.0, cutoff=1.0)
    return sums.magnitudes(len(start))


@pytest.mark.parametrize("bound", [1.0, 0.3, 2.0**-9])
def test_no_row_moves_a_score_by_more_than_its_bound(bound):
    """Whatever stands in a row, beside rows that make sums positive or negative; the bound is attained."""
    unit, reached = 2.0**-30, 0.0
    most = scores(np.ones((1, D)), [1.0], bound=bound).sensitivity("add-remove").value
    for sign in (1.0, -1.0):
        base = np.full((3, D), 1.0) * sign, np.ones(3)
        before = scores(*base, bound=bound).whole(unit)
        for v in BOUNDARY:
            for target in (-1.0, 0.25, 1.0):
                X = np.vstack([base[0], np.r_[v, -v, 0.0, 1.0]])
                after = scores(X, np.append(base[1], target), bound=bound).whole(unit)
                moved = np.abs(after - before).max() * unit
                assert moved <= most
                reached = max(reached, moved)
    assert reached > 0.999 * most


def test_a_replaced_row_moves_a_score_by_twice_as_much():
    unit, others = 2.0**-30, np.ones((3, D))
    tables = [np.vstack([others, np.full((1, D), sign)]) for sign in (1.0, -1.0)]
    first, second = (scores(X, np.ones(4), bound=0.3) for X in tables)
    moved = np.abs(first.whole(unit) - second.whole(unit)).max() * unit
    bound = first.sensitivity("replace-one").value
    assert 0.999 * bound <= moved <= bound


@pytest.mark.parametrize("prior", [0.0, 2.5, -2.5])
@pytest.mark.parametrize("size", [1.0, 0.3])
def test_no_row_moves_a_score_of_classes_by_more_than_the_slope_at_the_prior(prior, size):
    slope, rng = 1.0 / (1.0 + math.exp(-abs(prior))), np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (20, 5)), (rng.random(20) < 0.5).astype(int)
    unit, worst = slope * 2.0**-30, 0.0
    for target in (0, 1):
        for sign in (-1.0, 1.0):
            more = np.vstack([X, sign * size * np.ones(5)]), np.append(y, target)
            found = []
            for table, labels in ((X, y), more):
                rows = Rows.clip(table, labels, Domain(classes=[0, 1]), labels=np.array([0, 1]))
                sums = rows.entries(1.0, 9.0).gradient(
                    "logistic", np.zeros((5, 1)), np.array([prior]), clip=slope, cutoff=slope
                )
                found.append(sums.magnitudes(5).whole(unit) * unit)
                assert sums.sensitivity("add-remove").value == pytest.approx(slope)
            worst = max(worst, float(np.max(np.abs(found[0] - found[1]))))
    assert worst <= slope * (1 + 1e-12)
    assert (worst >= 0.99 * slope) == (size == 1.0)


def planned(n, n_features=200, **parameters):
    domain = Domain(target_bound=1.0, n_samples=n)
    return DPTwoStageRegressor(domain, **{"n_nonzero": 5, **parameters}).plan(n_features)


def names(plan):
    return [phase.name for phase in plan.phases]


RELEASED = ["mean", "spread", "entry", "length", "centre", "columns", "support", "fit"]


def test_the_way_is_a_function_of_public_numbers():
    """1,000 rows at epsilon 1 are 237 effective ones, 300 are 71, 100 are 24."""
    for adjacency in ("add-remove", "replace-one"):
        assert names(planned(1000, n_nonzero=20, adjacency=adjacency)) == RELEASED
    # What finding leaves, 150 effective rows, is enough for the directions of five columns.
    assert names(planned(1000)) == [*RELEASED[:6], "axes", *RELEASED[6:]]
    assert names(planned(300)) == ["mean", "support", "fit"]
    assert names(planned(100)) == ["mean"]
    # All columns are wanted: nothing has to be found, and it is the ridge fit.
    ridge = DPRidgeRegressor(Domain(target_bound=1.0, n_samples=1000)).plan(5)
    assert planned(1000, 5).event == ridge.event


def test_shares_add_up_to_one_and_every_pick_is_paid():
    for adjacency in ("add-remove", "replace-one"):
        plan = planned(2000, adjacency=adjacency)
        shares = [v for k, v in plan.parameters.items() if k.endswith("_share")]
        assert sum(shares) == pytest.approx(1.0)
        (support,) = (phase.event for phase in plan.phases if phase.name == "support")
        assert isinstance(support.event, Exponential)
        assert support.count == 5


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_wide_table_is_replayed(adjacency):
    """The audit's tables are narrow; boundary floats among the rows."""
    domain = Domain(target_range=(-1.0, 5.0), n_samples=4000)
    model = DPTwoStageRegressor(domain, n_nonzero=4, adjacency=adjacency)
    finding = check(model, 40, n_pairs=6, n_climbs=2, every=200)
    assert finding.complaints == ()
    assert finding.height > 0.2


def few_of_many(n, d=150, k=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.standard_normal((n, d)) / 4.5, -1, 1)
    return X, X[:, :k] @ np.array([3.0, -3.0, 2.0, 2.5, -2.0]) + 0.3 * rng.standard_normal(n)


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
def test_entries_far_below_their_bound_are_no_handicap():
    X, y = few_of_many(2500)
    domain = Domain(target_bound=6.0, n_samples=1500)
    found = [
        DPTwoStageRegressor(domain, n_nonzero=5, random_state=s)
        .fit(X[:1500], y[:1500])
        .score(X[1500:], y[1500:])
        for s in range(5)
    ]
    assert np.mean(found) > 0.75
    exact = DPTwoStageRegressor(domain, n_nonzero=5, epsilon=math.inf).fit(X[:1500], y[:1500])
    assert np.flatnonzero(exact.coef_).tolist() == [0, 1, 2, 3, 4]
    assert exact.score(X[1500:], y[1500:]) > 0.9


def test_taken_columns_keep_their_order_and_nothing_else():
    X = np.arange(12.0).reshape(3, 4) / 12.0
    rows = Rows.clip(X, np.zeros(3), FREE).columns(np.array([1, 3]))
    assert rows.n_features == 2
    np.testing.assert_allclose(rows.table().X.toarray(), X[:, [1, 3]], rtol=1e-6)


# ---- the same with noise on the minimiser: DPTransferRegressor -------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_released_minimiser_moves_by_its_lemma_and_not_by_more(adjacency):
    """One row of the largest gradient against none, or against its opposite: 99 % of what the plan pays for."""
    domain = Domain(target_bound=1.0, n_samples=2000)
    plan = DPTransferRegressor(domain, n_nonzero=2, adjacency=adjacency).plan(40)
    public, fit = plan.settings, plan.phases[-1].event
    assert public.fit == "output"
    bound = ridge_minimiser(1.0, ROW_CLIP, 1.0, public.ridge, adjacency, public.tol).value
    assert bound <= fit.sensitivity <= 1.001 * bound
    found, entry = [], math.sqrt((ROW_CLIP**2 - 1.0) / 2.0) * (1 - 1e-6)  # rows of length r
    for y in ([1.0], [-1.0], []):
        rows = Rows.clip(np.full((len(y), 2), 1.0), np.array(y), FREE)
        at = rows.standardised(np.zeros(2), np.full(2, entry), unit=1e-3)
        problem = at.ridge(None, constant=1.0, row_clip=ROW_CLIP, longest=2.0**20).problem(
            "huber", ridge=public.ridge, tol=public.tol
        )
        found.append(problem.minimiser().whole(2.0**-50) * 2.0**-50)
    moved = np.linalg.norm(found[0] - found[1 if adjacency == "replace-one" else 2])
    assert 0.99 * bound < moved <= bound


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_wide_table_is_replayed_with_noise_on_the_minimiser(adjacency):
    domain = Domain(target_range=(-1.0, 5.0), n_samples=4000)
    model = DPTransferRegressor(domain, n_nonzero=4, adjacency=adjacency)
    finding = check(model, 40, n_pairs=6, n_climbs=2, every=200)
    assert finding.complaints == ()
    assert finding.height > 0.2


def test_the_way_of_the_teacher_is_a_function_of_public_numbers():
    """200 rows at epsilon 1 are 47 effective ones, 300 are 71, 1,000 are 237."""

    def way(n, **asked):
        return names(DPTransferRegressor(Domain(target_bound=6.0, n_samples=n), **asked).plan(20))

    assert way(200) == ["mean"]
    assert way(300, n_nonzero=5) == ["mean", "support", "fit"]
    assert way(1000, n_nonzero=5)[-2:] == ["support", "fit"]
    assert way(1000, n_nonzero=5, public_X=np.ones((5, 20)))[-2:] == ["support", "fit"]


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
@pytest.mark.parametrize("kind", [DPTwoStageRegressor, DPTransferRegressor])
def test_rows_that_are_empty_on_the_columns_found_do_not_make_weights_out_of_noise(kind):
    """A row is one of 40 categories: the median length on a few columns is zero, and what was divided by it had an R2
    of minus a million. Seeds are fixed; over noise and tables R2 is .2 with a standard deviation of .2, so that -1 is
    6 of them away (false alarms below 1e-8)."""
    rng = np.random.default_rng(0)
    X = np.eye(40)[rng.integers(0, 40, 1500)]
    y = X @ (rng.standard_normal(40) * (np.arange(40) < 8)) + 0.3 * rng.standard_normal(1500)
    domain = Domain(target_bound=5.0, n_samples=1500)
    for seed in range(3):
        model = kind(domain, epsilon=1.0, n_nonzero=10, random_state=seed).fit(X, y)
        assert model.score(X, y) > -1.0

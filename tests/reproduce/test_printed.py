"""The printed algorithms behind the experiments, against their definitions on small dense data."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

import _sparsifier as printed
from dpsparse.losses import Logistic, Squared
from dpsparse.random import make_generator
from engine import experiments_folder


@pytest.fixture(scope="module")
def operations():
    folder = str(experiments_folder())
    sys.path.insert(0, folder)
    import _operations

    yield _operations
    sys.path.remove(folder)


def problem(n=60, d=12):
    rng = make_generator(1)
    X = rng.uniform(0.1, 1.0, (n, d)) * np.where(rng.random((1, d)) < 0.5, -1, 1)  # no zero entries
    return X, (X @ rng.standard_normal(d) > 0).astype(np.int64)


def reference(X, y, radius, n_iter, scale, rng, exact_sign):
    """Algorithm 1 of 004 (or of 002), dense and literal."""
    n, p = X.shape
    w = np.zeros(p)
    for t in range(1, n_iter + 1):
        g = X.T @ (1 / (1 + np.exp(-X @ w)) - y) / n
        if exact_sign:
            j = np.argmax(np.abs(g + rng.laplace(0, scale, p)))
            vertex = -np.sign(g[j]) * radius * np.eye(p)[j]
        else:
            vertices = radius * np.vstack([np.eye(p), -np.eye(p)])
            noise = rng.laplace(0, scale, 2 * p) if scale else 0.0
            vertex = vertices[np.argmin(vertices @ g + noise)]
        w = w + 2 / (t + 2) * (vertex - w)
    return w


@pytest.mark.parametrize(("scale", "exact_sign"), [(0.0, False), (0.3, False), (0.3, True)])
def test_private_lasso_is_the_printed_one(scale, exact_sign):
    X, y = problem()
    ours = printed.private_lasso(
        sp.csr_array(X), y, 5.0, 80, scale, make_generator(7), exact_sign=exact_sign
    )
    assert ours == pytest.approx(
        reference(X, y, 5.0, 80, scale, make_generator(7), exact_sign), abs=1e-10
    )


def test_count_is_a_coin_flip():
    rng = make_generator(0)
    counts = [printed.noisy_count(20, 100, 0.05, rng) for _ in range(400)]
    assert min(counts) == 10
    assert max(counts) == 20
    # noise of scale 200 on a range of 10: 2.5 % of the draws lie strictly inside; 8 % is far out
    assert np.mean([10 < c < 20 for c in counts]) < 0.08


def test_keep_largest():
    assert printed.keep_largest(np.array([1.0, -3.0, 2.0]), 2).tolist() == [0, -3, 2]
    assert printed.keep_largest(np.array([1.0]), 0).tolist() == [0]


def test_synthetic_values_of_each_mode(operations):
    """004 as printed divides by the largest magnitudes, its published numbers do not; proven by a constant."""
    import _data004

    largest = {
        mode: abs(_data004.parts("synthetic", mode, 0)[0]).max(axis=0).toarray()
        for mode in ("printed", "published", "nonprivate", "proven")
    }
    assert largest["printed"].max() == 1.0
    assert largest["published"].min() > 2.5  # 8,000 standard normal draws
    assert np.array_equal(largest["nonprivate"], largest["published"])
    assert largest["proven"] == pytest.approx(largest["published"] / 5.0)


@pytest.mark.parametrize(("method", "n_iter"), [("", 1000), (", as printed", 30)])
def test_noise_of_private_lasso_stopped_early(operations, monkeypatch, method, n_iter):
    """Published mode keeps the noise of 1000 iterations; as printed the noise is that of the iterations run."""
    import paper004_tables as tables

    used = {}

    def record(X, y, radius, steps, scale, rng, *, exact_sign):
        used.update(steps=steps, scale=scale, exact_sign=exact_sign)
        return np.zeros(X.shape[1])

    monkeypatch.setattr(tables, "private_lasso", record)
    X, y = problem()
    config = {"dataset": "splice", "method": tables.LASSO + method, "mode": "published"}
    tables._weights("004-table2", config, sp.csr_array(X), y, 0, 30)
    assert used["steps"] == 30
    assert used["scale"] == pytest.approx(10 * np.sqrt(8 * n_iter * np.log(60)) / 60)
    assert used["exact_sign"] == (not method)


@pytest.mark.slow
def test_fast_equals_standard_where_every_row_owns_every_feature(operations):
    """Then no slope is ever stale, and Algorithms 1, 2 and 3 take the same steps."""
    X, y = problem()
    w1, gaps1, ops1 = operations.standard(sp.csr_array(X), y, 5.0, 60)
    w2, gaps2, ops2, pops = operations.fast(sp.csr_array(X), y, 5.0, 60)
    assert w2 == pytest.approx(w1, abs=1e-10)
    assert gaps2 == pytest.approx(gaps1, abs=1e-10)
    assert pops.min() >= 1
    assert (np.diff(ops1) > 0).all()
    assert (np.diff(ops2) > 0).all()
    assert operations.exact_gap(sp.csr_array(X), y, np.zeros(12), 5.0) == pytest.approx(gaps1[0])


@pytest.mark.slow
def test_fast_is_stale_on_sparse_rows(operations):
    """Rows e1 and e2, both positive, radius 10: the second step shrinks the first row's margin."""
    X, y = sp.csr_array(np.eye(2)), np.array([1, 1])
    w1, *_ = operations.standard(X, y, 10.0, 50)
    w2, *_ = operations.fast(X, y, 10.0, 50)
    assert np.abs(w1 - w2).sum() > 0.01


@pytest.mark.parametrize("exact_sign", [False, True])
def test_many_runs_at_once_are_single_runs(operations, exact_sign):
    """Without noise every column is the printed algorithm (float32 margins)."""
    import _batched

    X, y = problem()
    scale = 1e-12 if exact_sign else 0.0
    one = printed.private_lasso(X, y, 5.0, 60, scale, make_generator(1), exact_sign=exact_sign)
    many = _batched.lasso_runs(X, y, 5.0, 60, scale, make_generator(1), 3, exact_sign=exact_sign)
    for run in range(3):
        assert many[:, run] == pytest.approx(one, abs=1e-4)


@pytest.mark.parametrize("exact_sign", [False, True])
def test_training_parts_at_once_are_single_runs(operations, exact_sign):
    """Each run has its own rows and its own noise, and takes the steps it takes alone."""
    import _batched

    rng = np.random.default_rng(5)
    kinds = np.eye(4)[rng.integers(4, size=300)]  # as the kinds of soil of covtype
    X = sp.csr_array(np.hstack([rng.uniform(-1.0, 1.0, (300, 3)), kinds]))
    y = (X[:, [0]].toarray().ravel() + kinds[:, 1] > 0.3).astype(int)
    trains = [np.sort(rng.permutation(300)[:240]) for _ in range(3)]
    scales = [0.02, 0.05, 0.1]
    many = _batched.lasso_splits(
        X, y, trains, 5.0, 60, scales, [make_generator(r) for r in range(3)], exact_sign=exact_sign
    )
    for r, train in enumerate(trains):
        one = printed.private_lasso(
            X[train], y[train], 5.0, 60, scales[r], make_generator(r), exact_sign=exact_sign
        )
        assert many[:, r] == pytest.approx(one, abs=1e-12)


def test_noise_of_many_runs_has_the_printed_scale(operations):
    """One step, two features: how often the worse vertex wins, against single runs (2,000 each, 5 sigma)."""
    import _batched

    X, y = np.array([[1.0, 0.2], [1.0, -0.1]]), np.array([1, 1])
    rng = make_generator(2)
    many = _batched.lasso_runs(X, y, 1.0, 1, 0.5, rng, 2000)[0] > 0
    single = np.array([printed.private_lasso(X, y, 1.0, 1, 0.5, rng)[0] > 0 for _ in range(2000)])
    assert abs(many.mean() - single.mean()) < 5 * np.sqrt(2 * 0.25 / 2000)
    assert 0.3 < single.mean() < 0.95


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_frank_wolfe_runs_are_single_runs(operations, loss):
    """Without noise each run is the printed algorithm for its length, on either loss."""
    import _batched

    X, y = problem()
    many = _batched.frank_wolfe_runs(
        sp.csr_array(X), y, 5.0, [20, 60], [0.0, 0.0], loss, make_generator(1)
    )
    for length, run in zip((20, 60), many.T, strict=True):
        one = printed.private_lasso(X, y, 5.0, length, 0.0, None, loss=loss)
        assert run == pytest.approx(one, abs=1e-4)


@pytest.mark.parametrize("scale", [0.2, 1.0, 20.0])
def test_walk_over_noisy_scores_has_the_law_of_drawing_them_all(operations, scale):
    """Each of 12 signed entries wins as often as with all noise drawn (20,000 draws each, 5 sigma)."""
    import _batched

    scores, rng = np.array([0.1, -0.9, 0.4, 0.0, 1.0, -0.3]), make_generator(3)
    walk = [_batched._noisy_least(scores, scale, rng) for _ in range(20_000)]
    both = np.concatenate([scores, -scores])
    drawn = np.argmin(both + rng.laplace(0.0, scale, (20_000, 12)), axis=1)
    shares = [np.bincount(places, minlength=12) / 20_000 for places in (walk, drawn)]
    spread = np.sqrt(2 * np.maximum(shares[1], 1e-3) / 20_000)
    assert (np.abs(shares[0] - shares[1]) < 5 * spread).all()


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
def test_noise_of_frank_wolfe_runs_has_the_printed_scale(operations, loss):
    """One step, two features: how often each of the four vertices wins, against single runs (2,000, 5 sigma)."""
    import _batched

    X, y = np.array([[1.0, 0.2], [1.0, -0.1]]), np.array([1, 1])
    rng = make_generator(2)
    many = _batched.frank_wolfe_runs(sp.csr_array(X), y, 1.0, [1] * 2000, [0.5] * 2000, loss, rng).T
    single = [printed.private_lasso(X, y, 1.0, 1, 0.5, rng, loss=loss) for _ in range(2000)]
    for vertex in (0, 1):
        for sign in (1.0, -1.0):
            won = [np.mean(sign * np.asarray(runs)[:, vertex] > 0) for runs in (many, single)]
            assert abs(won[0] - won[1]) < 5 * np.sqrt(2 * 0.25 / 2000)


def test_hard_thresholding_runs_at_once(operations):
    import _batched
    from dpsparse.published.wang_gu_2019_hard_threshold import private_hard_threshold

    X, y = problem()
    many = _batched.hard_threshold_runs(X, y, 3, 20, 1.0, 0.0, make_generator(0), 2)
    one = private_hard_threshold(
        X, y, Logistic(), make_generator(0), n_nonzero=3, n_iter=20, step=1.0, epsilon=np.inf,
        delta=1e-5, gradient_bound=1.0,
    )  # fmt: skip
    assert many[:, 0] == pytest.approx(one, abs=1e-4)
    assert many[:, 1] == pytest.approx(one, abs=1e-4)


def test_equal_rows_may_be_counted_once(operations):
    import _batched

    X, y = problem()
    X, y = np.vstack([X, X[:5], X[:2]]), np.concatenate([y, y[:5], y[:2]])
    few, targets, counts = _batched.distinct(X, y)
    assert counts.sum() == len(y)
    assert len(few) < len(y)
    whole = _batched.lasso_runs(X, y, 5.0, 60, 0.0, make_generator(1), 2)
    once = _batched.lasso_runs(few, targets, 5.0, 60, 0.0, make_generator(1), 2, counts=counts)
    assert once == pytest.approx(whole, abs=1e-4)
    whole = _batched.hard_threshold_runs(X, y, 3, 20, 1.0, 0.0, make_generator(0), 2)
    once = _batched.hard_threshold_runs(
        few, targets, 3, 20, 1.0, 0.0, make_generator(0), 2, counts=counts
    )
    assert once == pytest.approx(whole, abs=1e-4)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_runs_in_step_are_the_runs_alone(operations, kind):
    """Products of several fits taken together give what each fit gives by itself."""
    from _batched import in_step
    from dpsparse.published import wang_gu_2019_hard_threshold as threshold
    from dpsparse.published import wang_gu_2020_transfer as transfer

    rng = make_generator(5)
    X = rng.uniform(-1.0, 1.0, (120, 40)) * (rng.random((120, 40)) < 0.5)
    y = X[:, :3] @ [2.0, -1.0, 1.5] + 0.1 * rng.standard_normal(120)
    rows = np.asfortranarray(X) if kind == "dense" else sp.csr_array(X)
    ridges = (0.0, 0.1, 1.0)
    together = in_step(
        rows,
        [
            transfer.ight_steps(X.shape, y, Squared(), n_nonzero=3, n_iter=30 + k, ridge=r)
            for k, r in enumerate(ridges)
        ],
    )
    for k, (ridge, weights) in enumerate(zip(ridges, together, strict=True)):
        alone = transfer.ight(rows, y, Squared(), n_nonzero=3, n_iter=30 + k, ridge=ridge)
        assert weights == pytest.approx(alone, abs=1e-5)
        assert np.count_nonzero(weights) == 3
    labels, facts = (y > 0).astype(int), {"n_nonzero": 4, "step": 2.0}
    budget = {"epsilon": 2.0, "delta": 1e-3}
    alone = threshold.private_hard_threshold(
        rows,
        labels,
        Logistic(),
        make_generator(3),
        n_iter=20,
        gradient_bound=1.0,
        **facts,
        **budget,
    )
    scale = threshold.noise_scale(120, 20, gradient_bound=1.0, **budget)
    noise = scale * make_generator(3).standard_normal((20, 40))
    steps = [threshold.threshold_steps(X.shape, labels, Logistic(), noise, **facts) for _ in "ab"]
    for weights in in_step(rows, steps):
        assert weights == pytest.approx(alone, abs=1e-4)


def test_frank_wolfe_runs_on_dense_rows_are_single_runs(operations):
    from _batched import frank_wolfe_runs

    X, y = problem()
    for loss in (Squared(), Logistic()):
        runs = frank_wolfe_runs(X, y, 2.0, (5, 30), (0.0, 0.0), loss, make_generator(0))
        for weights, length in zip(runs.T, (5, 30), strict=True):
            alone = printed.private_lasso(X, y, 2.0, length, 0.0, None, loss=loss)
            assert weights == pytest.approx(alone, abs=1e-5)


def test_baselines_of_the_screening_sequel(operations, monkeypatch):
    """NP-FW is Frank-Wolfe without noise, Preselect-K fits the largest columns, Oracle-K cuts DP-FW to K weights."""
    import _screening
    import _screening_data

    rng, k = make_generator(3), 4
    X = rng.uniform(-0.2, 0.2, (80, 10))
    X[:, :k] *= 5.0
    truth = np.arange(10) < k
    y = X @ np.where(truth, 0.2, 0.0)
    table = _screening_data.Table(X, y, truth, radius=1.0, unit=1.0)
    monkeypatch.setattr(_screening, "_table", lambda name, yeo_johnson: table)
    rows = {row["method"]: row for row in _screening.part_real(0, ["pyrim"], yeo_johnson=True)}
    exact = printed.private_lasso(X, y, 1.0, 100, 0.0, None, loss=Squared())
    assert rows["np-fw"]["mse"] == pytest.approx(_screening._mse(X, y, exact))
    assert rows["np-fw"]["density"] == np.mean(exact != 0)
    assert (rows["preselect-k"]["tpr"], rows["preselect-k"]["fpr"]) == (1.0, 0.0)
    assert rows["dp-fw, as published"]["density"] == 1.0  # its start is random in the ball
    assert rows["oracle-k"]["density"] == k / 10


def test_utility_bounds_are_the_printed_ones(operations):
    """Theorems 1 and 2 of 004 and B.1 of 002 with constant 1, at n = 500, p = 100, epsilon 1, delta 1/n."""
    import paper004_theorem as theorem

    rows = theorem.trial({"n": 500, "epsilon": 1.0}, 0)
    bounds = {row["cell"]["method"]: row["bound with constant 1"] for row in rows}
    first = 0.25 ** (1 / 3) * np.log(500 * 100 * 500) / 500 ** (2 / 3)
    assert bounds[theorem.LASSO] == pytest.approx(first)
    assert bounds[theorem.SPARSIFIER] == pytest.approx(first + 1.0)
    assert theorem.faster_bound(500) == pytest.approx(
        0.25 ** (1 / 3) * np.log(2 * 500 * 100) * np.sqrt(np.log(500)) / 500 ** (2 / 3)
    )
    assert all(row["excess loss"] > 0.0 for row in rows)

"""The printed algorithms behind the experiments, against their definitions on small dense data."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse.losses import Squared
from dpsparse.random import make_generator
from lab.papers import operations, screening, sparsifier_figures, sparsifier_tables
from lab.papers import sparsifier as printed


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


def test_synthetic_values_of_each_mode():
    """004 as printed divides by the largest magnitudes, its published numbers do not; proven by a constant."""
    largest = {
        mode: abs(printed.parts("synthetic", mode, 0)[0]).max(axis=0).toarray()
        for mode in ("printed", "published", "nonprivate", "proven")
    }
    assert largest["printed"].max() == 1.0
    assert largest["published"].min() > 2.5  # 8,000 standard normal draws
    assert np.array_equal(largest["nonprivate"], largest["published"])
    assert largest["proven"] == pytest.approx(largest["published"] / 5.0)


@pytest.mark.parametrize(("method", "n_iter"), [("", 1000), (", as printed", 30)])
def test_noise_of_private_lasso_stopped_early(monkeypatch, method, n_iter):
    """Published mode keeps the noise of 1000 iterations; as printed the noise is that of the iterations run."""
    used = {}

    def record(X, y, radius, steps, scale, rng, *, exact_sign):
        used.update(steps=steps, scale=scale, exact_sign=exact_sign)
        return np.zeros(X.shape[1])

    monkeypatch.setattr(sparsifier_tables, "private_lasso", record)
    X, y = problem()
    config = {"dataset": "splice", "method": sparsifier_tables.LASSO + method, "mode": "published"}
    sparsifier_tables.fit_weights(config, sp.csr_array(X), y, 0, 30)
    assert used["steps"] == 30
    assert used["scale"] == pytest.approx(10 * np.sqrt(8 * n_iter * np.log(60)) / 60)
    assert used["exact_sign"] == (not method)


@pytest.mark.usefixtures("uncompiled_heap")
def test_fast_equals_standard_where_every_row_owns_every_feature():
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


@pytest.mark.usefixtures("uncompiled_heap")
def test_fast_is_stale_on_sparse_rows():
    """Rows e1 and e2, both positive, radius 10: the second step shrinks the first row's margin."""
    X, y = sp.csr_array(np.eye(2)), np.array([1, 1])
    w1, *_ = operations.standard(X, y, 10.0, 50)
    w2, *_ = operations.fast(X, y, 10.0, 50)
    assert np.abs(w1 - w2).sum() > 0.01


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
def test_baselines_of_the_screening_sequel(monkeypatch):
    """NP-FW is Frank-Wolfe without noise, Preselect-K fits the largest columns, Oracle-K cuts DP-FW to K weights."""
    rng, k = make_generator(3), 4
    X = rng.uniform(-0.2, 0.2, (80, 10))
    X[:, :k] *= 5.0
    truth = np.arange(10) < k
    y = X @ np.where(truth, 0.2, 0.0)
    table = screening.Table(X, y, truth, radius=1.0, unit=1.0)
    monkeypatch.setattr(screening, "real", lambda name, yeo_johnson: table)
    found = screening.real_trial(True, {"data": "pyrim"}, 0, 0)
    rows = {part["cell"]["method"]: part for part in found}
    exact = printed.private_lasso(X, y, 1.0, 100, 0.0, None, loss=Squared())
    assert rows["NP-FW"]["MSE"] == pytest.approx(screening.mean_squared_error(X, y, exact))
    assert rows["NP-FW"]["density"] == np.mean(exact != 0)
    assert (rows["Preselect-K"]["TPR"], rows["Preselect-K"]["FPR"]) == (1.0, 0.0)
    assert rows["DP-FW"]["density"] == 1.0  # its start is random in the ball
    assert rows["Oracle-K"]["density"] == k / 10


def test_utility_bounds_are_the_printed_ones():
    """Theorems 1 and 2 of 004 and B.1 of 002 with constant 1, at n = 500, p = 100, epsilon 1, delta 1/n."""
    theorem = sparsifier_figures
    rows = theorem.theorem_trial({"n": 500, "epsilon": 1.0}, 0, 0)
    bounds = {row["cell"]["method"]: row["bound with constant 1"] for row in rows}
    first = 0.25 ** (1 / 3) * np.log(500 * 100 * 500) / 500 ** (2 / 3)
    assert bounds[theorem.LASSO] == pytest.approx(first)
    assert bounds[theorem.THINNED] == pytest.approx(first + 1.0)
    assert theorem.faster_bound(500) == pytest.approx(
        0.25 ** (1 / 3) * np.log(2 * 500 * 100) * np.sqrt(np.log(500)) / 500 ** (2 / 3)
    )
    assert all(row["excess loss"] > 0.0 for row in rows)

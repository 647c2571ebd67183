"""The run: blocks have the law of plain steps on the live columns, dropped columns never come back."""

import math
from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from dpsparse.accounting import Exponential, NonPrivate, Phase, Plan, Repeated
from dpsparse.domain import Domain
from dpsparse.losses import get_loss
from dpsparse.mechanisms.top_k import ROUNDING_RANGE
from dpsparse.methods.frank_wolfe import History, Problem, Run
from dpsparse.methods.frank_wolfe.problem import GONE
from dpsparse.methods.frank_wolfe.screening import Block, Counts, TopK, draw_blocks, next_steps
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.sensitivity import vertex_score_range

RADIUS, TARGET = 2.0, 2.0
DOMAIN = Domain(feature_bound=1.0, target_bound=TARGET, classes=[0, 1], n_samples=80)


def make_data(seed=0, n=80, d=15, loss="squared"):
    """A dense table and its rows."""
    rng = np.random.default_rng(seed)
    X = sp.random_array(
        (n, d), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal
    )
    X.data = np.clip(X.data, -1, 1)
    dense = X.toarray().astype(np.float32).astype(float)
    y = dense[:, 0] - dense[:, 1] + 0.1 * rng.normal(size=n)
    if loss == "squared":
        return dense, np.clip(y, -TARGET, TARGET), Rows.clip(X, y, DOMAIN)
    codes = (y > 0).astype(int)
    return dense, codes, Rows.clip(X, codes, DOMAIN, labels=np.array([0, 1]))


def problem(loss, n_iter, kappa=math.inf, resolution=2**16):
    kind = get_loss(loss)
    return Problem(kind, RADIUS, n_iter, kappa, kind.slope_bound(DOMAIN, RADIUS), resolution)


def history_weights(features, signs, radius, d):
    """All weights of a history, the intercept last; entries of the constant column are one."""
    history = History(features, np.zeros(len(signs), int), signs, radius, d, 1, 1.0)
    coef, intercept = history.weights()
    return np.append(coef[0], intercept)


def releases(kappa, n_iter, seed, slope_bound=None):
    """Releases that draw vertices at `kappa`."""
    event = NonPrivate()
    if not math.isinf(kappa):
        L = slope_bound or get_loss("squared").slope_bound(DOMAIN, RADIUS)
        eta = vertex_score_range(kappa, L, 1.0, "add-remove").value + ROUNDING_RANGE
        event = Repeated(Exponential(eta), n_iter)
    plan = Plan("test", (Phase("vertices", event),), math.inf, 0.5, "add-remove")
    return Releases(plan, make_generator(seed))


# ---- the plain twin: every row and column at every step, in float64 -------------------------------


def plain_run(X, y, loss, blocks, rule):
    """Without noise: steepest vertices, and rules in plain floats."""
    loss, d = get_loss(loss), X.shape[1]
    Z = np.column_stack([X, np.ones(len(X))])
    live, features, signs, n_live = np.arange(d), [], [], []
    for block, n_steps in enumerate(blocks, start=1):
        columns = np.append(live, d)
        features = [j if j in columns else GONE for j in features]
        for _ in range(n_steps):
            w = history_weights(np.array(features, int), np.array(signs, int), RADIUS, d)
            G = Z[:, columns].T @ loss.slope(Z @ w, y)
            k = int(np.abs(G).argmax())
            features.append(int(columns[k]))
            signs.append(1 if G[k] <= 0 else -1)
        n_live.append(live.size)
        w = history_weights(np.array(features), np.array(signs), RADIUS, d)
        net = np.zeros(d + 1, int)
        np.add.at(net, features[-n_steps:], signs[-n_steps:])
        live = live[rule.keep(Block(net[live], w[live], n_steps, block, len(blocks)))]
    n_live.append(live.size)
    w[np.setdiff1d(np.arange(d), live)] = 0.0
    return np.array(features), np.array(signs), w, tuple(n_live)


@pytest.mark.parametrize("rule", [TopK(4), Counts(0.3)], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_without_noise_the_run_picks_and_drops_what_the_plain_one_does(rule, loss):
    X, y, rows = make_data(loss=loss)
    blocks = (12, 12, 6)
    run = draw_blocks(rows, problem(loss, 30), blocks, rule, releases(math.inf, 30, 0))
    features, signs, weights, n_live = plain_run(X, y, loss, blocks, rule)
    np.testing.assert_array_equal(run.history.features, features)
    np.testing.assert_array_equal(run.history.signs, signs)
    coef, intercept = run.survivors().weights()
    np.testing.assert_allclose(np.append(coef[0], intercept), weights, rtol=1e-12)
    assert run.n_live == n_live


def test_weights_follow_the_frank_wolfe_recursion():
    rng = np.random.default_rng(0)
    features, signs, w = rng.integers(0, 5, 40), rng.choice([-1, 1], 40), np.zeros(6)
    for t, (j, s) in enumerate(zip(features, signs, strict=True)):
        w *= 1 - 2 / (t + 3)
        w[j] += 2 / (t + 3) * 3.0 * s
    np.testing.assert_allclose(history_weights(features, signs, 3.0, 5), w, atol=1e-14)
    assert np.abs(w).sum() <= 3.0
    # a step back towards zero shrinks and adds nothing
    features[-1] = GONE
    np.testing.assert_allclose(
        history_weights(features, signs, 3.0, 5),
        history_weights(features[:-1], signs[:-1], 3.0, 5) * (1 - 2 / 42),
        atol=1e-14,
    )


def test_dropped_columns_never_come_back_and_the_intercept_stays():
    _, _, rows = make_data()
    drawing = problem("squared", 40, kappa=0.02)
    run = draw_blocks(rows, drawing, (10,) * 4, TopK(3), releases(0.02, 40, seed=2))
    coef, intercept = run.survivors().weights()
    assert run.n_live == (15, 10, 7, 5, 3)
    assert np.count_nonzero(coef) <= 3
    for block, live in enumerate(run.n_live[:-1]):
        assert len(set(run.history.features[10 * block : 10 * block + 10]) - {GONE, 15}) <= live
    assert 15 in run.history.features  # the name of the intercept
    assert np.abs(coef).sum() + abs(intercept[0]) <= 2.0


def test_everything_may_go():
    _, _, rows = make_data()
    drawing = problem("squared", 6, kappa=1e-6)
    run = draw_blocks(rows, drawing, (3, 3), Counts(1e-12), releases(1e-6, 6, seed=2))
    assert run.n_live == (15, 0, 0)
    assert not run.survivors().weights()[0].any()


@pytest.mark.heavy
def test_law_of_a_step_after_columns_have_left():
    """First draw after a replay on five of fifteen columns, against the exact softmax; level 1e-4.

    A kappa that is 5 % off must fail: the replayed margins and the noise are both right.
    """
    X, y, rows = make_data(1)
    kappa, n = 0.12, 12_000
    live = np.array([0, 1, 4, 7, 9])
    past, signs = np.array([0, 1, GONE, 0, 15, 1, GONE]), np.array([1, -1, 1, 1, -1, -1, -1])
    Z = np.column_stack([X[:, live], np.zeros(80), np.ones(80)])
    columns = np.append(live, [GONE, 15])
    w = history_weights(past, signs, RADIUS, 15)[columns] * (columns >= 0)
    G = Z.T @ (Z @ w - y)
    history = History(past, np.zeros(7, int), signs, RADIUS, 15, 1, 1.0)
    drawing = problem("squared", 8, kappa, resolution=2**20)
    steps = next_steps(rows.columns(live), drawing, history, live)
    # What `steps.draw` does, with the replay made once: to lay out the rows for every draw takes five times as long.
    replayed = Run(steps._arrays, steps.problem)
    replayed.replay(steps.past)

    def drawn(rng):
        run = deepcopy(replayed)
        run.draw(rng, 1)
        return run.history()

    for seed in range(20):
        one, other = drawn(make_generator(seed)), steps.draw(make_generator(seed), 1, None)
        np.testing.assert_array_equal(one.features, other.features)
        np.testing.assert_array_equal(one.signs, other.signs)
    rng, counts = make_generator(5), np.zeros(14)
    for _ in range(n):
        history = drawn(rng)
        counts[history.features[-1] + 7 * (history.signs[-1] < 0)] += 1
    np.testing.assert_array_equal(history.features[:7], [0, 1, 5, 0, 6, 1, 5])

    def statistic(k):
        weight = np.exp(k * np.concatenate([-G, G]))
        expected = n * weight / weight.sum()
        frequent = expected > 5
        rest = expected[~frequent].sum()
        value = np.sum((counts - expected)[frequent] ** 2 / expected[frequent])
        if rest > 0:
            value += (counts[~frequent].sum() - rest) ** 2 / rest
        return value

    assert statistic(kappa) < chi2.ppf(1 - 1e-4, 13)
    assert statistic(1.05 * kappa) > chi2.ppf(1 - 1e-4, 13)
    assert statistic(0.95 * kappa) > chi2.ppf(1 - 1e-4, 13)

"""The run: blocks have the law of plain steps on the live columns, dropped columns never come back."""

import math
from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from dpsparse.accounting import Exponential, NonPrivate, Phase, Plan, Repeated
from dpsparse.domain import Domain
from dpsparse.losses import get_loss
from dpsparse.mechanisms.top_k import ROUNDING_RANGE
from dpsparse.methods.frank_wolfe import Run
from dpsparse.methods.frank_wolfe.screening import (
    GONE,
    Screened,
    history_weights,
    next_steps,
    screened_frank_wolfe,
)
from dpsparse.methods.frank_wolfe.screening_rules import (
    Block,
    Budgeted,
    Counts,
    KeepAll,
    Safe,
    TopK,
)
from dpsparse.methods.frank_wolfe.solve import Ball
from dpsparse.published.khanna_lu_raff_2023_screening import screening_scores
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.sensitivity import vertex_score_range

raj_scores = partial(screening_scores, rescaled=True)  # Theorem 11, for every radius
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


def public(loss, blocks, rule, resolution=2**16):
    kind = get_loss(loss)
    ball = Ball(kind, RADIUS, sum(blocks), kind.slope_bound(DOMAIN, RADIUS), resolution)
    return Screened(ball, tuple(blocks), rule)


def releases(kappa, n_iter, seed, slope_bound=None):
    """Releases that draw vertices at `kappa`."""
    event = NonPrivate()
    if not math.isinf(kappa):
        L = slope_bound or get_loss("squared").slope_bound(DOMAIN, RADIUS)
        eta = vertex_score_range(kappa, L, 1.0, "add-remove").value + ROUNDING_RANGE
        event = Repeated(Exponential(eta), n_iter)
    plan = Plan("test", (Phase("vertex selections", event),), math.inf, 0.5, "add-remove")
    return Releases(plan, make_generator(seed))


# ---- the plain twin: every row and column at every step, in float64 -------------------------------


def active_scores(G, w, radius):
    """A_j = radius |G_j| + <w, G>: at the optimum 0 for every active feature, below 0 elsewhere."""
    return radius * np.abs(G) + w @ G


def plain_run(X, y, setting):
    """Without noise: steepest vertices, and rules in plain floats."""
    loss, rule, d = setting.ball.loss, setting.rule, X.shape[1]
    Z = np.column_stack([X, np.ones(len(X))])
    live, features, signs, n_live = np.arange(d), [], [], []
    for block, n_steps in enumerate(setting.blocks, start=1):
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
        if isinstance(rule, (Budgeted, Safe)):
            A = Z[:, columns]
            G = A.T @ loss.slope(Z @ w, y)
            if isinstance(rule, Budgeted):
                scores = active_scores(G, w[columns], RADIUS)
            else:
                norms = np.linalg.norm(Z @ w), np.linalg.norm(A, axis=0)
                curvature = {
                    "smoothness": rule.smoothness,
                    "strong_convexity": rule.strong_convexity,
                }
                scores = raj_scores(G, w[columns], *norms, radius=RADIUS, **curvature)
            keep = scores[:-1] >= 0.0
        else:
            net = np.zeros(d + 1, int)
            np.add.at(net, features[-n_steps:], signs[-n_steps:])
            keep = rule.keep(Block(w[live], net[live], n_steps, block, len(setting.blocks)))
        live = live[keep]
    n_live.append(live.size)
    w[np.setdiff1d(np.arange(d), live)] = 0.0
    return np.array(features), np.array(signs), w, tuple(n_live)


RULES = [
    KeepAll(), TopK(4), Counts(0.3), Budgeted(5, 0.1, 80),
    Safe(5, 0.1, smoothness=1.0, strong_convexity=1.0, n_samples=1),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_without_noise_the_run_picks_and_drops_what_the_plain_one_does(rule, loss):
    X, y, rows = make_data(loss=loss)
    setting = public(loss, [12, 12, 6], rule)
    run = screened_frank_wolfe(rows, setting, releases(math.inf, 30, 0))
    features, signs, weights, n_live = plain_run(X, y, setting)
    np.testing.assert_array_equal(run.features, features)
    np.testing.assert_array_equal(run.signs, signs)
    np.testing.assert_allclose(run.weights, weights, rtol=1e-12)
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
    run = screened_frank_wolfe(
        rows, public("squared", [10] * 4, TopK(3)), releases(0.02, 40, seed=2)
    )
    assert run.n_live == (15, 10, 7, 5, 3)
    assert np.count_nonzero(run.weights[:-1]) <= 3
    for block, live in enumerate(run.n_live[:-1]):
        assert len(set(run.features[10 * block : 10 * block + 10]) - {GONE, 15}) <= live
    assert 15 in run.features  # the name of the intercept
    assert np.abs(run.weights).sum() <= 2.0


def test_everything_may_go():
    _, _, rows = make_data()
    setting = public("squared", [3, 3], Counts(1e-12))
    run = screened_frank_wolfe(rows, setting, releases(1e-6, 6, seed=2))
    assert run.n_live == (15, 0, 0)
    assert not run.weights[:-1].any()


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
    setting = public("squared", [8], KeepAll(), resolution=2**20)
    steps = next_steps(
        rows.columns(live), setting, releases(kappa, 8, 5), live, 15, past, signs
    )  # fmt: skip
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

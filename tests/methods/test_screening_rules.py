"""Scores, sensitivities and rules: safe where Raj et al. are, attained where a bound is charged."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.linear_model import Lasso

from dpsparse.accounting import Exponential, NonPrivate, Phase, Plan, Repeated
from dpsparse.domain import Domain
from dpsparse.exceptions import ParameterError
from dpsparse.losses import get_loss
from dpsparse.mechanisms.top_k import ROUNDING_RANGE
from dpsparse.methods.frank_wolfe.screening_rules import (
    Block,
    Budgeted,
    Counts,
    Safe,
    TopK,
    count_threshold,
    draw_drops,
    late_threshold,
    strong_convexity,
)
from dpsparse.published.khanna_lu_raff_2023_screening import screening_scores, wolfe_gap
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Point, Query, Rows
from dpsparse.sensitivity import RAJ_GRID, Sensitivity, active_range, raj_range, raj_sensitivity

raj_scores = partial(screening_scores, rescaled=True)  # Theorem 11, for every radius
SQUARED = {"smoothness": 1.0, "strong_convexity": 1.0}
ADJACENCIES = ("add-remove", "replace-one")


def active_scores(G, w, radius):
    """A_j = radius |G_j| + <w, G>: at the optimum 0 for every active feature, below 0 elsewhere."""
    return radius * np.abs(G) + w @ G


def squared_scores(X, y, w, radius, rescaled=True):
    u = X @ w
    return raj_scores(
        X.T @ (u - y), w, np.linalg.norm(u), np.linalg.norm(X, axis=0), radius=radius, rescaled=rescaled, **SQUARED
    )  # fmt: skip


def lasso_problem(seed, n=60, d=12):
    """A LASSO optimum, which is also the optimum over the ball of its own L1 norm."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = X[:, :4] @ rng.normal(size=4) + 0.3 * rng.normal(size=n)
    best = Lasso(alpha=0.05, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y).coef_
    return X, y, best, float(np.abs(best).sum())


def frank_wolfe(X, y, radius, n_iter):
    w = np.zeros(X.shape[1])
    for t in range(n_iter):
        G = X.T @ (X @ w - y)
        j = np.abs(G).argmax()
        w *= 1 - 2 / (t + 3)
        w[j] -= 2 / (t + 3) * radius * np.sign(G[j])
    return w


def test_the_wolfe_gap_is_the_largest_decrease_and_bounds_the_error():
    X, y, best, radius = lasso_problem(0)
    w = frank_wolfe(X, y, radius, 50)
    G = X.T @ (X @ w - y)
    vertices = np.concatenate([radius * np.eye(12), -radius * np.eye(12)])
    assert wolfe_gap(G, w, radius) == pytest.approx(max((w - v) @ G for v in vertices))
    error = 0.5 * np.sum((X @ w - y) ** 2) - 0.5 * np.sum((X @ best - y) ** 2)
    assert 0 <= error <= wolfe_gap(G, w, radius)
    assert wolfe_gap(np.zeros(3), np.zeros(3), 1.0) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_the_rescaled_rule_is_safe_and_finds_every_zero_near_the_optimum(seed):
    X, y, best, radius = lasso_problem(seed)
    for n_iter in (1, 10, 100, 1000, 20_000):
        dropped = squared_scores(X, y, frank_wolfe(X, y, radius, n_iter), radius) < 0
        assert not dropped[best != 0].any()
    # with the optimum itself only rounding keeps the gap from zero
    dropped = squared_scores(X, y, best, radius) < -1e-3
    assert dropped[best == 0].sum() >= 0.5 * (best == 0).sum()


def test_the_logistic_rule_is_safe():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (200, 8))
    y = (X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=200) > 0).astype(int)
    loss, domain, radius = get_loss("logistic"), Domain(feature_bound=1.0), 2.0
    curvature = {"smoothness": 0.25, "strong_convexity": strong_convexity(loss, domain, radius)}
    w, seen = np.zeros(8), []
    for t in range(20_000):
        u = X @ w
        G = X.T @ loss.slope(u, y)
        if t in (10, 100, 1000, 19_999):
            seen.append(
                raj_scores(
                    G, w, np.linalg.norm(u), np.linalg.norm(X, axis=0), radius=radius, **curvature
                )
                < 0
            )
        j = np.abs(G).argmax()
        w *= 1 - 2 / (t + 3)
        w[j] -= 2 / (t + 3) * radius * np.sign(G[j])
    active = np.abs(w) > 0.05
    assert active[[0, 1]].all()
    assert not any(dropped[active].any() for dropped in seen)
    assert seen[-1].any()


def test_the_printed_rule_drops_active_features():
    """Papers 000 and 001, Eq. (1) at radius 5 on their generator: true for radius 1 only."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 200))
    X /= np.abs(X).max()
    truth = np.zeros(200)
    truth[:12], truth[12:24] = 1.0, -1.0
    y = X @ truth
    w = frank_wolfe(X, y, 5.0, 3000)
    G = X.T @ (X @ w - y)
    active = (np.abs(w) > 0.05) & (np.abs(G) > 0.97 * np.abs(G).max())  # surely in the optimum
    assert active.sum() >= 10
    assert (squared_scores(X, y, w, 5.0, rescaled=False)[active] < 0).all()
    assert not (squared_scores(X, y, w, 5.0, rescaled=True)[active] < 0).any()
    np.testing.assert_array_equal(
        squared_scores(X, y, w, 1.0, True), squared_scores(X, y, w, 1.0, False)
    )


def flipped(n, radius, adjacency):
    """All rows fitted exactly; one target flipped, or one such row added."""
    X, w = np.ones((n, 1)), np.array([radius])
    y = np.full(n, radius)
    y2 = y.copy()
    y2[0] = -radius
    first = squared_scores(X, y, w, radius)[0] if adjacency == "replace-one" else 0.0
    return abs(squared_scores(X, y2, w, radius)[0] - first) / n


def test_the_published_sensitivity_is_28_times_too_small_at_3000_rows():
    for n, ratio in ((3000, 27.9), (12_000, 55.3)):  # about sqrt(n)/2
        assert flipped(n, 1.0, "replace-one") / (8.0 / n) == pytest.approx(ratio, abs=0.05)


def bound(adjacency, n, radius=2.0, **changes):
    settings = {
        "feature_bound": 1.0,
        "slope_bound": 2.0 * radius,
        "n_samples": n,
        **SQUARED,
        **changes,
    }
    return raj_sensitivity(radius=radius, adjacency=adjacency, **settings).value


def test_the_true_sensitivity_is_attained():
    assert 0.99 < flipped(10**6, 2.0, "add-remove") / bound("add-remove", 10**6) <= 1.0
    assert 0.95 < flipped(3000, 2.0, "add-remove") / bound("add-remove", 3000) <= 1.0
    assert 0.70 < flipped(10**6, 2.0, "replace-one") / bound("replace-one", 10**6) <= 1.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("n0", [1, 5, 40])
@pytest.mark.parametrize("rescaled", [True, False])
def test_no_neighbour_exceeds_the_sensitivity_for_any_number_of_rows(adjacency, n0, rescaled):
    rng = np.random.default_rng(n0)
    radius, limit = 2.0, bound(adjacency, n0, rescaled=rescaled)
    for _ in range(400):
        n = int(rng.integers(1, 80))
        X = rng.choice([-1.0, 1.0, 0.0], (n + 1, 3), p=[0.2, 0.6, 0.2])
        w = (
            rng.choice([1.0, -1.0]) * radius * np.eye(3)[0]
            if rng.random() < 0.7
            else radius * rng.dirichlet(np.ones(3))
        )
        y = np.where(
            rng.random(n + 1) < 0.8,
            np.clip(X @ w, -radius, radius),
            rng.choice([-radius, radius], n + 1),
        )
        one, other = (X[:n], y[:n]), (X, y) if adjacency == "add-remove" else (X[1:], y[1:])
        values = [
            squared_scores(A, b, w, radius, rescaled) / max(len(b), n0) for A, b in (one, other)
        ]
        assert np.abs(values[0] - values[1]).max() <= limit * (1 + 1e-12)


def change_of_range(X, y, w, extra, radius):
    """Range over features and null of the change of A when the rows `extra` are appended (sign -1: removed)."""
    change = np.zeros(X.shape[1] + 1)
    base = active_scores(X.T @ (X @ w - y), w, radius)
    rows, targets = np.vstack([X, extra[0]]), np.append(y, extra[1])
    change[:-1] = active_scores(rows.T @ (rows @ w - targets), w, radius) - base
    return change


def test_budgeted_range_is_attained():
    """Two features of opposite gradient, a row that raises one and lowers the other."""
    radius, c, target = 3.0, 0.5, 2.0
    w = np.array([0.0, 0.0, radius])
    X = np.array([[c, 0, 0], [0, c, 0]] * 50)
    y = np.array([-target, target] * 50)  # G_0 = +50 c Y, G_1 = -50 c Y
    slope_bound = c * radius + target
    row = np.array([c, c, c])  # margin c * radius, slope c radius + Y
    add = change_of_range(X, y, w, (row, [-target]), radius)
    limit = active_range(radius, c, slope_bound, "add-remove").value
    assert 0.999 * limit <= np.ptp(add) <= limit * (1 + 1e-12)
    # replacing: the row that comes in and the one that goes out pull in opposite directions
    opposite = np.array([c, c, -c])  # margin -c radius, slope -(c radius + Y)
    out = change_of_range(X, y, w, (opposite, [target]), radius)
    limit = active_range(radius, c, slope_bound, "replace-one").value
    assert 0.999 * limit <= np.ptp(add - out) <= limit * (1 + 1e-12)


# ---- the queries in whole numbers ------------------------------------------------------------------


def whole_scores(table, domain, at, kind, n_samples=None, labels=None):
    """Whole numbers of a paid rule's query on a table, with the query and its grid."""
    rows = Rows.clip(*table, domain, labels=labels)
    rule = Budgeted(1, 0.1, n_samples)
    if kind == "safe":
        rule = Safe(1, 0.1, *SQUARED.values(), n_samples=n_samples)
    query, unit = rule.query(rows, at, at.counts.size - 1, exact=False)
    return query.whole(unit), query, unit


def reach(table, other, *arguments):
    """Range of the change over candidates and null, as a share of what is charged, in whole numbers."""
    (one, query, unit), (two, _, _) = (whole_scores(t, *arguments) for t in (table, other))
    assert one.dtype == np.int64
    change = np.append([int(b) - int(a) for a, b in zip(one, two, strict=True)], 0)
    return np.ptp(change), query, unit


def point(picks, signs, d, radius, bound, target, intercept=False):
    """The weights after some picks."""
    counts = np.zeros(d + 1, np.int64)
    np.add.at(counts, picks, np.array(signs) * (np.arange(len(picks)) + 2))
    return Point(counts, len(picks), radius, "squared", bound * radius + target, bound, intercept)


def weights_of(at):
    return at.radius * at.counts / at.denominator


def test_whole_scores_are_the_scores():
    """Within n units of a row on the active grid, and 1e-5 on the safe one; with an intercept."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-0.5, 0.5, (300, 6)).astype(np.float32).astype(float)
    y = rng.uniform(-2, 2, 300)
    domain = Domain(feature_bound=0.5, target_bound=2.0)
    at = point([0, 3, 6, 0, 5, 0, 6, 1], [1, -1, 1, 1, 1, -1, 1, 1], 6, 3.0, 0.5, 2.0, True)
    w, Z = weights_of(at), np.column_stack([X, np.full(300, 0.5)])
    G = Z.T @ (Z @ w - y)
    whole, _, unit = whole_scores((X, y), domain, at, "active", 300)
    np.testing.assert_allclose(whole * unit, -active_scores(G, w, 3.0)[:-1], rtol=3e-6, atol=1e-4)
    whole, _, unit = whole_scores((X, y), domain, at, "safe", 300)
    norms = np.linalg.norm(Z @ w), np.linalg.norm(Z, axis=0)
    plain = raj_scores(G, w, *norms, radius=3.0, **SQUARED)[:-1] / 300
    np.testing.assert_allclose(whole * unit, -plain, rtol=1e-5)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_budgeted_range_is_attained_in_whole_numbers(adjacency):
    """The worst neighbours above reach what is charged and never pass it, compared as integers."""
    radius, c, target = 3.0, 0.5, 2.0
    domain = Domain(feature_bound=c, target_bound=target)
    # a thousand steps to the same vertex: <w, G> is radius G_2 but for 2/(T+1)(T+2)
    at = point([2] * 1000, [1] * 1000, 3, radius, c, target)
    X = np.array([[c, 0, 0], [0, c, 0]] * 50)
    y = np.array([-target, target] * 50)
    one, other = [c, c, c], [c, c, -c]
    first = X, y
    if adjacency == "replace-one":
        first = np.vstack([X, other]), np.append(y, target)
    second = np.vstack([X, one]), np.append(y, -target)
    moved, query, unit = reach(first, second, domain, at, "active", 100)
    charged = Fraction(query.sensitivity(adjacency).value) / Fraction(unit)
    assert 0.999 * charged <= int(moved) <= charged


BOUNDARY = [
    0.0, -0.0, 5e-324, 1e-310, 7.0065e-46, 2.0**-149, 1.1754944e-38, 1e-30, 0.5, -0.5,
    np.nextafter(0.5, 1), np.nextafter(0.5, 0), np.float32(0.1), 1e30, -1e300, 3.4e38,
]  # fmt: skip


@pytest.mark.parametrize("kind", ["active", "safe"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_row_of_boundary_floats_moves_scores_further_than_charged(kind, adjacency):
    rng = np.random.default_rng(5)
    domain = Domain(feature_bound=0.5, target_bound=2.0)
    for trial in range(60):
        n = int(rng.integers(2, 30))
        X = rng.choice([-0.5, 0.5, 0.0], (n + 1, 3), p=[0.2, 0.6, 0.2])
        y = rng.choice([-2.0, 2.0], n + 1)
        X[n] = rng.choice(BOUNDARY, 3)
        y[n] = rng.choice([-2.0, 2.0, 1e308, -5e-324, 0.0])
        picks = np.full(20, trial % 3) if trial % 2 else rng.integers(0, 4, 20)
        at = point(picks, rng.choice([-1, 1], 20), 3, 3.0, 0.5, 2.0, intercept=True)
        first = (X[:n], y[:n]) if adjacency == "add-remove" else (X[1:], y[1:])
        second = (X, y) if adjacency == "add-remove" else (X[:n], y[:n])
        moved, query, unit = reach(first, second, domain, at, kind, 5)
        assert int(moved) <= Fraction(query.sensitivity(adjacency).value) / Fraction(unit)


def test_the_safe_query_reaches_its_charge_and_charges_its_rounding():
    """Rows fitted exactly, one flipped row more: 95 % of the charge at 3000 rows, in whole numbers."""
    n, radius = 3000, 2.0
    domain = Domain(feature_bound=1.0, target_bound=radius)
    at = point([0] * 2000, [1] * 2000, 1, radius, 1.0, radius)
    w = weights_of(at)[0]
    first = np.ones((n - 1, 1)), np.full(n - 1, w)
    second = np.ones((n, 1)), np.append(first[1], -radius)
    moved, query, unit = reach(first, second, domain, at, "safe", n)
    charged = query.sensitivity("add-remove").value / unit
    assert 0.47 * charged <= moved <= charged  # one feature: half of the range
    facts = (radius, 1.0, 2 * radius, 1.0, 1.0, n)
    plain = raj_sensitivity(*facts, "add-remove").value
    assert unit == RAJ_GRID * plain
    assert raj_range(*facts, "add-remove").value >= 2 * (plain + unit)


def test_scores_stay_whole_numbers_for_any_number_of_steps():
    """10^6 steps make M 2^39: sums are clamped so that no score leaves 2^60."""
    domain = Domain(feature_bound=1.0, target_bound=1e3)
    X, y = np.ones((2000, 1)), np.full(2000, -1e3)
    for n_steps in (1, 1000, 10**6):
        at = point(np.zeros(n_steps, int), np.ones(n_steps, int), 1, 1e3, 1.0, 1e3)
        whole, _, unit = whole_scores((X, y), domain, at, "active", None)
        assert 2**20 < -int(whole[0]) <= 2**60
        assert unit > 0.0


# ---- draws ---------------------------------------------------------------------------------------


class FixedScores:
    """A rule whose scores A_j are given; a hundredth is the grid, and a row moves them by `moved`."""

    def __init__(self, scores, n_drop, level, moved=1.0):
        self.scores, self.n_drop, self.level, self.moved = scores, n_drop, level, moved

    def query(self, rows, at, n_live, exact):
        def lemma(adjacency):
            return Sensitivity(2 * self.moved, "range", adjacency, "test")

        def whole(unit):
            return np.rint(-np.asarray(self.scores) / unit).astype(np.int64)

        return Query((n_live,), lemma, whole), 0.01


class Drawn:
    """`draw_drops` again and again at some kappa; each draw is another fit."""

    def __init__(self, kappa, seed):
        event = NonPrivate()
        if not math.isinf(kappa):
            event = Repeated(Exponential(2 * kappa + ROUNDING_RANGE), 10)
        self.plan = Plan(
            "test", (Phase("screening draws", event),), math.inf, 0.5, "add-remove"
        )  # fmt: skip
        self.rng = make_generator(seed)

    def __call__(self, rule):
        releases = Releases(self.plan, self.rng)
        return draw_drops(rule, None, None, len(rule.scores), releases)


def test_the_null_bounds_false_drops():
    """Scores all >= 0: one draw drops something with probability at most `level`. 4 sigma: 6e-5."""
    rule, draw, n = FixedScores(np.zeros(30), 1, 0.2), Drawn(0.7, 1), 20_000
    false = sum(len(draw(rule)) > 0 for _ in range(n))
    exact = 30 / (30 + 30 / 0.2)
    assert exact <= rule.level
    assert abs(false - n * exact) < 4 * math.sqrt(n * exact * (1 - exact))


def test_law_of_one_draw_and_that_five_percent_of_kappa_is_noticed():
    """Chi-square against the exact law at 1e-4; the wrong kappa must fail it."""
    scores, kappa, level, n = np.array([-30.0, -26.0, -20.0, 0.0, 5.0]), 0.3, 0.5, 60_000
    rule, draw, counts = FixedScores(scores, 1, level), Drawn(kappa, 7), np.zeros(6)
    for _ in range(n):
        dropped = draw(rule)
        counts[dropped[0] if dropped.size else -1] += 1

    def statistic(k):
        weight = np.exp(np.append(-k * scores, math.log(5 / level)))
        expected = n * weight / weight.sum()
        return np.sum((counts - expected) ** 2 / expected)

    assert statistic(kappa) < chi2.ppf(1 - 1e-4, 5)
    assert statistic(1.05 * kappa) > chi2.ppf(1 - 1e-4, 5)
    assert statistic(0.95 * kappa) > chi2.ppf(1 - 1e-4, 5)


def test_two_draws_have_the_law_without_replacement():
    """P(both of features 0 and 1 go) from the two orders; 4.5 sigma: 7e-6."""
    scores, kappa, level, n = np.array([-4.0, -3.0, 1.0]), 0.5, 0.5, 40_000
    weight = np.exp(np.append(-kappa * scores, math.log(3 / level)))
    p = weight / weight.sum()
    both = p[0] * p[1] / (1 - p[0]) + p[1] * p[0] / (1 - p[1])
    draw, rule = Drawn(kappa, 3), FixedScores(scores, 2, level)
    seen = sum(np.array_equal(draw(rule), [0, 1]) for _ in range(n))
    assert abs(seen - n * both) < 4.5 * math.sqrt(n * both * (1 - both))
    assert max(len(draw(rule)) for _ in range(200)) == 2


def test_without_noise_every_negative_score_goes():
    """More than `n_drop`, and none whose score is zero."""
    draw = Drawn(math.inf, 0)
    assert list(draw(FixedScores([-1.0, 0.0, -0.1, 2.0], 1, 0.1))) == [0, 2]
    assert draw(FixedScores([0.0, 3.0], 1, 0.1)).size == 0
    assert Drawn(1.0, 0)(FixedScores([], 1, 0.1)).size == 0


def net_tail(n_steps, d, s):
    """P(|N+ - N-| >= s) by walking the chain step by step."""
    law = np.zeros(2 * n_steps + 1)
    law[n_steps] = 1.0
    for _ in range(n_steps):
        law = (1 - 1 / d) * law + (np.roll(law, 1) + np.roll(law, -1)) / (2 * d)
    return law[np.abs(np.arange(-n_steps, n_steps + 1)) >= s].sum()


@pytest.mark.parametrize("n_steps", [1, 7, 60])
@pytest.mark.parametrize("d", [1, 5, 40])
def test_count_threshold_is_the_smallest_that_keeps_the_level(n_steps, d):
    for level in (0.3, 0.1, 0.01, 1e-6):
        s = count_threshold(n_steps, d, level)
        assert net_tail(n_steps, d, s) <= level * (1 + 1e-9)
        assert s <= n_steps + 1
        assert net_tail(n_steps, d, s - 1) > level


def test_uniform_selection_keeps_no_more_than_the_level():
    """Average kept share over 300 runs of 200 uniform picks; P(exceeding level) below 1e-9."""
    rng, d, level = np.random.default_rng(0), 50, 0.1
    kept = []
    for _ in range(300):
        net = np.zeros(d, int)
        np.add.at(net, rng.integers(0, d, 200), rng.choice([-1, 1], 200))
        kept.append(Counts(level).keep(Block(np.zeros(d), net, 200, 1, 1)).mean())
    assert np.mean(kept) <= level
    assert np.mean(kept) == pytest.approx(
        net_tail(200, d, count_threshold(200, d, level)), abs=0.01
    )


@pytest.mark.parametrize(("n_steps", "d"), [(20, 100), (84, 601), (39, 123)])
def test_late_single_picks_use_up_the_level_and_no_more(n_steps, d):
    """All laws of three picks or fewer in closed form, more picks counted in full: the chance to stay is at most the
    level, and one step more would pass it."""
    level = 0.1
    late = late_threshold(n_steps, d, level)
    assert count_threshold(n_steps, d, level) == 2
    once = n_steps / d * (1 - 1 / d) ** (n_steps - 1)

    def chance(first):  # single picks from late count `first` on
        return net_tail(n_steps, d, 1) - once + once * (n_steps + 2 - first) / n_steps

    assert chance(late) <= level < chance(late - 1)
    rng, kept = np.random.default_rng(0), []
    for _ in range(400):
        net, counts = np.zeros(d, int), np.zeros(d, int)
        picks, signs = rng.integers(0, d, n_steps), rng.choice([-1, 1], n_steps)
        np.add.at(net, picks, signs)
        np.add.at(counts, picks, signs * (np.arange(n_steps) + 2))
        kept.append(Counts(level).keep(Block(counts / d, net, n_steps, 1, 1, counts)).mean())
    assert 0.8 * level < np.mean(kept) <= level * 1.02


def test_late_single_picks_stay_only_where_steps_are_scarce():
    assert late_threshold(34, 100, 0.1) is None  # a third of the features
    assert late_threshold(5, 100, 0.1) is None  # one pick is enough
    assert late_threshold(20, 100, 1e-12) is None  # nothing is left to use up


def test_counts_decides_after_the_first_block_only():
    history = Block(np.ones(4), np.array([0, 9, -9, 1]), 20, 2, 2)
    assert Counts(0.05).keep(history).all()


def test_top_k_falls_geometrically_to_k():
    sizes, weights = [], np.arange(1000.0)
    for block in (1, 2, 3):
        keep = TopK(10).keep(Block(weights, np.zeros(weights.size), 5, block, 3))
        weights = weights[keep]
        sizes.append(weights.size)
    assert sizes == [215, 46, 10]
    np.testing.assert_array_equal(weights, np.arange(990.0, 1000.0))
    assert TopK(10).keep(Block(np.ones(4), np.zeros(4), 5, 1, 1)).all()


def test_raj_needs_a_strongly_convex_loss():
    assert strong_convexity(get_loss("logistic"), Domain(feature_bound=1.0), 2.0) == pytest.approx(
        1 / (2 + 2 * math.cosh(2.0))
    )
    with pytest.raises(ParameterError, match="strongly convex"):
        strong_convexity(get_loss("huber"), Domain(feature_bound=1.0), 1.0)

"""The fast solver against the reference: same scores, same law, same state from the history.

Seeds are fixed; a right law fails a chi-square test here with probability 1e-5.
"""

import dataclasses
import math

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare

from dpsparse import DPLassoClassifier, Ledger
from dpsparse.domain import Domain
from dpsparse.exceptions import InternalError, ParameterError
from dpsparse.losses import Huber, Logistic, Softmax, Squared
from dpsparse.methods.frank_wolfe import kernel
from dpsparse.methods.frank_wolfe import run as run_file
from dpsparse.methods.frank_wolfe.run import (
    Problem,
    RowArrays,
    Run,
    choose_resolution,
    lay_out,
)
from dpsparse.random import make_generator
from hot_cold import draw_into
from parts import clip_table
from plain_frank_wolfe import (
    arrays_of,
    fast_frank_wolfe,
    frank_wolfe,
    replay,
    replay_history,
    score_cells,
    slopes_of,
    with_intercept,
)

LOSSES = {
    "logistic": (Logistic(), 1),
    "squared": (Squared(), 1),
    "huber": (Huber(0.5), 1),
    "softmax": (Softmax(3), 3),
}


# Without the compiler (make nojit) the same kernels run on smaller inputs. A vertex picked T times in a row brings the
# margins to 1 - 2/((T + 1)(T + 2)) of the ball: far enough for 99 % of a bound in either case.
UNCOMPILED = bool(numba.config.DISABLE_JIT)
N_ROWS, N_STEPS, N_SAME = (40, 12, 40) if UNCOMPILED else (120, 60, 400)


def make_case(name, n=N_ROWS, p=25, seed=0, bound=2.0, **changes):
    """Sparse rows with an empty row and an empty column, and the problem to solve on them."""
    loss, n_outputs = LOSSES[name]
    rng = np.random.default_rng(seed)
    dense = rng.uniform(-bound, bound, (n, p)) * (rng.random((n, p)) < 0.3)
    dense[3] = 0.0
    dense[:, 5] = 0.0
    domain = Domain(feature_bound=bound, target_bound=3.0, classes=list(range(max(n_outputs, 2))))
    if name in ("squared", "huber"):
        data = clip_table(domain, sp.csr_array(dense), dense[:, 0] + rng.normal(size=n))
    else:
        y = rng.integers(0, max(n_outputs, 2), n)
        data = clip_table(domain, sp.csr_array(dense), y, labels=np.arange(max(n_outputs, 2)))
    slope_bound = loss.slope_bound(domain, 4.0)
    problem = Problem(
        loss=loss, radius=4.0, n_iter=N_STEPS, kappa=0.2 / (bound * slope_bound),
        slope_bound=slope_bound, resolution=2**16, feature_bound=bound, n_outputs=n_outputs,
    )  # fmt: skip
    return data, dataclasses.replace(problem, **changes)


def make_run(data, problem):
    return Run(arrays_of(data), problem)


def use_boxes(run, tau):
    run.exact_scores()
    run.open_boxes(tau)
    run.serve()


def true_scores(data, problem, history, n_steps):
    """Scores at the weights of the first steps, by the reference's formulas."""
    X = with_intercept(data, problem)
    w = np.zeros((X.shape[1], problem.n_outputs))
    for t in range(n_steps):
        step = 2.0 / (t + 3.0)
        w *= 1.0 - step
        w[history.features[t], history.outputs[t]] += (
            step * history.signs[t] * problem.radius * problem.feature_bound
        )
    margin = X @ w
    return score_cells(X.tocsc(), slopes_of(problem, margin, data.y), problem), margin


@pytest.mark.nojit
@pytest.mark.parametrize("name", LOSSES)
def test_state_is_a_function_of_rows_and_history(name):
    data, problem = make_case(name)
    run = make_run(data, problem)
    run.draw(make_generator(3), problem.n_iter)
    again = make_run(data, problem)
    replay_history(again, run.history())
    np.testing.assert_array_equal(again.state.rows.v, run.state.rows.v)
    np.testing.assert_array_equal(again.exact_scores(), run.exact_scores())


@pytest.mark.nojit
@pytest.mark.parametrize("name", LOSSES)
def test_fast_equals_reference_under_the_same_draws(name):
    data, problem = make_case(name)
    history = frank_wolfe(data, problem, make_generator(1))
    run = make_run(data, problem)
    replay_history(run, history)
    expected, margin = true_scores(data, problem, history, problem.n_iter)
    v = run.state.rows.v.reshape(margin.shape)
    np.testing.assert_allclose(v * run.scale, margin, rtol=1e-12, atol=1e-12)
    scores = run.exact_scores().ravel()
    # exp of two libraries may differ in the last bit of a slope: one unit per row at most
    slack = 0 if name == "squared" else data.X.shape[0] // 20
    assert np.abs(scores - expected).max() <= slack + 1


def test_weights_follow_from_the_history_as_frank_wolfe_steps():
    data, problem = make_case("softmax")
    history = fast_frank_wolfe(data, problem, make_generator(2))
    coef, intercept = history.weights()
    w = np.zeros((problem.n_outputs, data.X.shape[1] + 1))
    for t in range(problem.n_iter):
        step = 2.0 / (t + 3.0)
        w *= 1.0 - step
        w[history.outputs[t], history.features[t]] += step * history.signs[t] * problem.radius
    np.testing.assert_allclose(coef, w[:, :-1], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(intercept, w[:, -1] * problem.feature_bound, rtol=1e-12, atol=1e-13)
    assert np.abs(coef).sum() + np.abs(w[:, -1]).sum() <= problem.radius * (1 + 1e-12)


@pytest.mark.parametrize("kappa", [0.02, np.inf])
def test_boxes_are_for_sparse_picks_only(kappa):
    """Narrow: every row at every step, no more refreshes than steps. Wide: boxes, and far fewer rows."""
    rng = np.random.default_rng(0)
    work = {}
    for width, per_row in ((20, 6), (3000, 6)):
        X = sp.random_array((1500, width), density=per_row / width, rng=rng, format="csr")
        y = (X[:, :5].sum(axis=1) > X[:, :5].sum() / 1500).astype(int)
        data = clip_table(Domain(feature_bound=1.0, classes=[0, 1]), X, y, labels=np.array([0, 1]))
        problem = Problem(
            loss=Logistic(), radius=20.0, n_iter=200, kappa=kappa, slope_bound=1.0,
            resolution=2**16, fit_intercept=False,
        )  # fmt: skip
        run = make_run(data, problem)
        run.draw(make_generator(5), 200)
        sc = run.state.sc
        work[width] = (sc.refreshes * X.nnz + sc.scattered) / (200 * X.nnz)
    assert work[20] < 1.2
    assert work[3000] < 0.25


def dense_case():
    rng = np.random.default_rng(0)
    dense = rng.uniform(-1, 1, (200, 12)) * (rng.random((200, 12)) < 0.1)
    dense[:, :8] = rng.uniform(0.2, 1, (200, 8))  # eight full columns, picked nearly always
    y = (dense[:, 0] + rng.normal(size=200) > 0.6).astype(int)
    data = clip_table(
        Domain(feature_bound=1.0, classes=[0, 1]), sp.csr_array(dense), y, labels=np.array([0, 1])
    )
    problem = Problem(
        loss=Logistic(), radius=20.0, n_iter=60, kappa=0.3, slope_bound=1.0, resolution=2**16,
        fit_intercept=False,
    )  # fmt: skip
    return data, problem


def without_boxes(run):
    run.exact_scores()
    run.state.sc.look = 10**6


def leading_case():
    """Three dense columns far ahead of 2000 rare ones, and little noise."""
    rng = np.random.default_rng(0)
    rare = sp.random_array((400, 2000), density=1e-2, rng=rng, format="csr") * 0.05
    y = rng.integers(0, 2, 400)
    dense = np.clip(0.5 + 0.4 * (2 * y[:, None] - 1) * rng.random((400, 3)), 0, 1)
    X = sp.csr_array(sp.hstack([sp.csr_array(dense), rare], format="csr"))
    data = clip_table(Domain(feature_bound=1.0, classes=[0, 1]), X, y, labels=np.array([0, 1]))
    return data, Problem(
        loss=Logistic(), radius=20.0, n_iter=60, kappa=20.0, slope_bound=1.0, resolution=2**16,
        fit_intercept=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tau", [0.25, 0.02])
def test_stale_scores_stay_within_their_slack(name, tau):
    data, problem = make_case(name, n_iter=80, fit_intercept=False)
    run = make_run(data, problem)
    sc = run.state.sc
    sc.debt_limit = sc.refresh_cost = 10**7  # no refresh while we look
    use_boxes(run, tau)
    rng = make_generator(7)
    seen = 0.0
    for t in range(problem.n_iter - 1):
        run.draw(rng, 1)
        run.serve()
        truth, _ = true_scores(data, problem, run.history(), t + 1)
        error = np.abs(run.stored_scores() - truth.reshape(-1, problem.n_outputs))
        assert (error <= run.state.sampler.slack[:, None] + 2).all()
        seen = max(seen, error.max())
    assert sc.way == kernel.BOXES
    assert seen > 100  # the scores really were stale


def draw_counts(state, t, n_draws, seed):
    drawn = np.empty(n_draws, np.int64)
    assert draw_into(drawn, 0, state, make_generator(seed), t) == n_draws
    return np.bincount(drawn, minlength=2 * state.sc.n_cells)


def p_value(counts, scores, kappa):
    keys = np.concatenate([kappa * scores, -kappa * scores])
    law = np.exp(keys - keys.max())
    law /= law.sum()
    expected = law * counts.sum()
    small = expected < 8
    counts = np.append(counts[~small], counts[small].sum())
    expected = np.append(expected[~small], expected[small].sum())
    keep = expected > 0
    return chisquare(counts[keep], expected[keep]).pvalue


@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_exact_mode_has_the_law_of_the_true_gradient_while_rows_are_stale(name):
    data, problem = make_case(name, n=400, p=12, n_iter=200, fit_intercept=False)
    run, t = stale_run(data, problem, 40, seed=5)
    state, sc = run.state, run.state.sc
    # what the mechanism must follow, and the stale scores it must not follow
    stale = run.stored_scores().ravel()
    fresh = make_run(data, problem)
    replay(fresh, state.cells[:t], state.signs[:t])
    truth = fresh.stored_scores().ravel()
    kappa = sc.kappa
    assert np.abs(kappa * (truth - stale)).max() > 0.2
    sc.debt_limit = 2**60  # no refresh while we look
    counts = draw_counts(state, t, 30_000, seed=4)
    assert sc.verified > 0
    assert p_value(counts, truth, kappa) > 1e-5
    assert p_value(counts, stale, kappa) < 1e-5
    if name == "logistic":  # flatter laws need more draws to tell five per cent
        assert p_value(counts, truth, 1.05 * kappa) < 1e-5
    state.sampler.slack[:] = 0  # mutation: proposals and acceptance that trust the stale scores
    sc.rebuild = 1
    assert p_value(draw_counts(state, t, 60_000, seed=4), truth, kappa) < 1e-5


def draw_or_refuse(run, t, n_draws, rng):
    draw_into(np.empty(n_draws, np.int64), 0, run.state, rng, t)
    run.refuse_broken_draw()


@pytest.mark.parametrize("name", LOSSES)
def test_a_score_further_off_than_its_slack_ends_the_run(name):
    """Where a draw reads a column, the score it finds must lie within the slack: else no draw has its law."""
    data, problem = make_case(name, n=400, p=12, n_iter=200, fit_intercept=False)
    run, t = stale_run(data, problem, 40, seed=5)
    run.state.sampler.slack[:] //= 20
    run.state.sc.rebuild = 1
    run.state.sc.debt_limit, draws = 2**60, make_generator(4)
    with pytest.raises(InternalError, match="Nothing was released"):
        draw_or_refuse(run, t, 5000, draws)


@pytest.mark.parametrize("place", ["hot", "cold"])
def test_a_weight_below_its_share_ends_the_run(place):
    """A score that rose without its weight would be accepted with a probability above one."""
    data, problem = make_case("logistic", n=400, p=12, fit_intercept=False, kappa=0.3)
    run = make_run(data, problem)
    run.exact_scores()
    sampler, sc, draws = run.state.sampler, run.state.sc, make_generator(4)
    draw_or_refuse(run, 0, 1, draws)
    hot = np.flatnonzero(sampler.slot > 0)
    cold = np.flatnonzero(sampler.slot == 0)
    cell = (hot if place == "hot" else cold)[-1]
    sampler.score[cell] = sc.top + 2 * sc.width if place == "hot" else sc.top
    with pytest.raises(InternalError):
        draw_or_refuse(run, 0, 20_000, draws)


def test_no_model_comes_of_a_broken_bound(monkeypatch, tmp_path):
    """The whole fit ends with an error of this library: nothing is published, and what was reserved stays reserved. A
    fit meets the broken bound with a probability of about .8; none of twenty does with less than 1e-13."""
    rng = np.random.default_rng(0)
    X = sp.random_array((1500, 3000), density=6 / 3000, rng=rng, format="csr")
    y = rng.integers(0, 2, 1500)
    slack = Run._slack
    monkeypatch.setattr(Run, "_slack", lambda run, tau, columns: slack(run, tau, columns) // 20)
    for attempt in range(20):
        ledger = Ledger(tmp_path / f"{attempt}.db", epsilon=30.0, delta=1e-5)
        model = DPLassoClassifier(
            Domain(feature_bound=1.0, classes=[0, 1]),
            epsilon=20.0,
            radius=30.0,
            n_iter=1500,
            ledger=ledger,
        )
        try:
            model.fit(X, y)
        except InternalError:
            break
    else:
        pytest.fail("no fit noticed that its bound is broken")
    assert not hasattr(model, "coef_")
    assert ledger.spent() > 15.0  # at the delta of the ledger


def stale_run(data, problem, t, seed=2):
    """A run in boxes of tau 0.1 after t picks, none of which had to do with the rows."""
    run = make_run(data, problem)
    run.state.sc.refresh_cost = 10**7  # no refresh while we look
    use_boxes(run, 0.1)
    picks = np.random.default_rng(seed)
    sc = run.state.sc
    cells = picks.integers(0, sc.n_cells, problem.n_iter)
    signs = picks.choice([-1, 1], problem.n_iter)
    for cell, sign in zip(cells[:t], signs[:t], strict=True):
        run.serve()
        run.move(int(cell), int(sign))
    run.serve()
    sc.rebuild = 1
    return run, t


@pytest.mark.parametrize("kappa", [1e-6, 0.02, 5.0])
@pytest.mark.parametrize("case", ["rare", "dense", "leading", "rounded"])
def test_a_fit_ends_after_bounded_work(case, kappa):
    """No step stops the kernel more than a few times, whatever the rows and the noise are."""
    data, problem = {
        "rare": lambda: make_case("logistic", n_iter=100),
        "dense": dense_case,
        "leading": leading_case,
        "rounded": many_rounded,
    }[case]()
    if case != "rounded":  # its kappa is what makes its rounding matter
        problem = dataclasses.replace(problem, kappa=kappa)
    run, stops = make_run(data, problem), {}
    choose = run._choose_way

    def counted(boxes):
        stops[run.step] = stops.get(run.step, 0) + 1
        choose(boxes)

    run._choose_way = counted
    run.draw(make_generator(0), problem.n_iter)
    assert run.step == problem.n_iter
    assert max(stops.values(), default=0) <= 6


def test_scores_without_boxes_are_exact_at_every_step():
    data, problem = dense_case()
    run = make_run(data, dataclasses.replace(problem, kappa=0.02))
    without_boxes(run)
    draws = make_generator(5)
    for t in range(problem.n_iter):
        run.draw(draws, 1)
        again = make_run(data, problem)
        replay(again, run.state.cells[:t], run.state.signs[:t])
        np.testing.assert_array_equal(run.stored_scores(), again.exact_scores())
    assert run.state.sc.refreshes == problem.n_iter  # the first one was exact when the run began
    assert not run.state.sampler.slack.any()


@pytest.mark.parametrize("name", ["dense", "logistic", "softmax"])
def test_draws_without_slack_have_the_law_of_the_true_gradient(name):
    """Intercept, empty column and full columns are among the cells. A right law fails one of the three with probability
    3e-5."""
    data, problem = dense_case() if name == "dense" else make_case(name, n=400, p=12)
    problem = dataclasses.replace(problem, fit_intercept=True)
    picks, n_cells = np.random.default_rng(2), (data.X.shape[1] + 1) * problem.n_outputs
    cells, signs = picks.integers(0, n_cells, 14), picks.choice([-1, 1], 14)
    truth = make_run(data, problem)
    replay(truth, cells, signs)
    exact = truth.exact_scores().ravel()
    wanted = 4.0 / np.abs(exact).max()  # the likeliest cell has e^4 of the weight of an empty one
    problem = dataclasses.replace(problem, kappa=problem.kappa * wanted / problem.unit_kappa)
    counts = {}
    for how in ("right", "trusting"):
        run = make_run(data, problem)
        replay(run, cells[:12], signs[:12])
        stale = run.exact_scores().ravel()
        for t in (12, 13):
            run.move(int(cells[t]), int(signs[t]))
        if how == "trusting":  # mutation: scores of another step are taken for exact
            run.state.sc.fresh_at = run.step
        run.serve()
        counts[how] = draw_counts(run.state, run.step, 6000, seed=4)
    kappa = run.state.sc.kappa
    assert p_value(counts["right"], exact, kappa) > 1e-5
    assert p_value(counts["right"], stale, kappa) < 1e-5
    assert p_value(counts["trusting"], exact, kappa) < 1e-5


@pytest.mark.parametrize("name", LOSSES)
def test_verified_scores_are_the_refreshed_ones_bit_for_bit(name):
    """Vector and scalar code must agree, or the law would depend on which rows are stale."""
    data, problem = make_case(name, n=400, n_iter=60, fit_intercept=False)
    run, t = stale_run(data, problem, 40)
    state, score = run.state, run.state.sampler.score
    verified = np.empty(score.size, np.int64)
    kernel.exact_scores(state.matrix, state.rows, state.sc, np.arange(score.size), t, verified)
    assert (verified != score).any()  # stale before
    run.exact_scores()
    np.testing.assert_array_equal(verified, score)


@pytest.mark.nojit
@pytest.mark.parametrize("name", LOSSES)
def test_one_row_moves_a_score_by_at_most_the_resolution_and_attains_it(name):
    # Adversarial rows: margins at the ends of the ball, entries at the bound, extreme targets.
    loss, n_outputs = LOSSES[name]
    domain = Domain(feature_bound=2.0, target_bound=3.0, classes=list(range(max(n_outputs, 2))))
    radius = 4.0
    slope_bound = loss.slope_bound(domain, radius)
    problem = Problem(loss, radius, N_SAME, 1.0, slope_bound, 2**12, 2.0, n_outputs, False)
    worst = 0
    for entry in (2.0, -2.0, 1.9999999, 0.3):
        for target in (
            (-3.0, 3.0) if n_outputs == 1 and name != "logistic" else range(max(n_outputs, 2))
        ):
            X = np.array([[2.0, entry]])
            if name in ("squared", "huber"):
                data = clip_table(domain, X, np.array([target]))
            else:
                data = clip_table(
                    domain, X, np.array([target]), labels=np.arange(max(n_outputs, 2))
                )
            for sign in (1, -1):
                run = make_run(data, problem)
                replay(run, np.zeros(N_SAME, np.int64), np.full(N_SAME, sign))
                worst = max(worst, int(np.abs(run.exact_scores()).max()))
    assert worst <= problem.resolution
    assert worst >= 0.99 * problem.resolution


def test_wide_and_narrow_sums_agree():
    data, problem = make_case("squared", resolution=2**16)
    wide = dataclasses.replace(problem, resolution=2**30, kappa=problem.kappa)
    narrow, wide = (make_run(data, p).state.sampler.score for p in (problem, wide))
    assert (narrow.dtype, wide.dtype) == (np.int32, np.int64)
    ratio = 2.0 ** (30 - 16)
    assert np.abs(wide / ratio - narrow).max() <= data.X.shape[0]


def test_resolution_comes_from_public_numbers():
    assert choose_resolution(None, 0.01) == 2**11
    assert choose_resolution(20_242, 0.01) == 2**16
    assert choose_resolution(2**20, 0.01) == 2**11
    assert choose_resolution(10**9, 0.01) == 2**16  # 64-bit sums
    assert choose_resolution(10**12, 0.01) == 2**21
    for n in (2**20 + 1, 8_400_000, 10**8, 10**12):
        assert 0.29 * math.sqrt(n) / choose_resolution(n, 0.01) < 0.3
        assert n * choose_resolution(n, 0.01) < 2**62
    assert choose_resolution(None, 1000.0) == 2**15


def test_progress_is_told_every_step_and_may_interrupt():
    data, problem = make_case("logistic")
    steps = []
    fast_frank_wolfe(data, problem, make_generator(0), steps.append)
    assert sum(steps) == problem.n_iter

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fast_frank_wolfe(data, problem, make_generator(0), stop)


def test_the_arg_max_agrees_with_the_plain_one():
    data, problem = make_case("squared", kappa=math.inf, n_iter=40, fit_intercept=False)
    expected = frank_wolfe(data, problem, make_generator(0))
    fused = fast_frank_wolfe(data, problem, make_generator(0))
    np.testing.assert_array_equal(fused.features, expected.features)
    np.testing.assert_array_equal(fused.signs, expected.signs)


# ---- issue 13 A: what a row adds is a whole number of at most S, whatever its floats hold ----

F4, F8 = np.finfo(np.float32), np.finfo(np.float64)
BOUNDARY = [
    0.0, F8.smallest_subnormal, 1e-310, F8.tiny, F8.max, np.inf, np.nan, 1e300, 1e38,
    float(F4.smallest_subnormal), 0.5001 * 2.0**-149, 7.0065e-46, float(F4.tiny), float(F4.max),
    2.0**-100, 0.3, 0.5, 1.0 - 2.0**-53, 1.0 - 2.0**-25, 1.0, 1.0 + 2.0**-52, 1.0 + 2.0**-24, 2.0,
]  # fmt: skip


@pytest.mark.nojit
@pytest.mark.parametrize("bound", [1.0, 3.0, 2.0**-90, 1e-3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LOSSES)
def test_boundary_floats_add_at_most_the_resolution_and_attain_it(name, dtype, bound):
    """276 rows: each value with its sign in a column of its own, beside a column that steers."""
    loss, K = LOSSES[name]
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.array([s * x * bound for x in BOUNDARY for s in (1, -1)]).astype(dtype)
    targets = [0, 1] if name in ("logistic", "softmax") else [-3.0, 3.0, np.nan]
    y = np.repeat(np.array(targets, float), values.size)
    entries = np.tile(values, len(targets))
    n = y.size
    columns = np.stack([np.zeros(n, np.int32), np.arange(1, n + 1, dtype=np.int32)], axis=1)
    data = np.stack([np.full(n, bound, dtype), entries], axis=1)
    rows = RowArrays(
        np.arange(0, 2 * n + 1, 2, dtype=np.int32), columns.ravel(), data.ravel(), y, n + 1
    )
    problem = Problem(
        loss=loss, radius=4.0 / bound, n_iter=N_SAME, kappa=1.0 / bound, resolution=2**12, n_outputs=K,
        slope_bound=loss.slope_bound(Domain(feature_bound=1.0, target_bound=3.0, classes=range(max(K, 2))), 4.0),
        feature_bound=bound, fit_intercept=False,
    )  # fmt: skip
    worst = 0
    for sign in (1, -1):  # margins at both ends of the ball
        run = Run(rows, problem)
        replay(run, np.zeros(N_SAME, np.int64), np.full(N_SAME, sign))
        worst = max(worst, int(np.abs(run.exact_scores()[1:]).max()))  # each of one row only
        scattered = np.abs(run.state.sampler.score.astype(np.int64)).reshape(-1, K)
        assert scattered[1:].max() <= problem.resolution
    assert 0.99 * problem.resolution <= worst <= problem.resolution


@pytest.mark.nojit
@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"feature_bound": 5e-324}, "feature_bound"),
        ({"feature_bound": 1e300}, "feature_bound"),
        ({"radius": 1e300}, "radius"),
        ({"radius": float("nan")}, "radius"),
        ({"slope_bound": 1e40}, "slope_bound"),
        ({"slope_bound": float("inf")}, "slope_bound"),
        ({"offset": (float("nan"),)}, "offset"),
        ({"resolution": 3}, "resolution"),
        ({"kappa": 1e-30}, "epsilon"),
    ],
)
def test_public_numbers_that_floats_cannot_carry_are_refused(changes, name):
    _, problem = make_case("logistic")
    with pytest.raises(ParameterError, match=name):
        dataclasses.replace(problem, **changes)


# ---- a public offset ----


@pytest.mark.parametrize("name", LOSSES)
def test_offset_is_part_of_every_margin_and_of_the_intercept(name):
    data, problem = make_case(name)
    K = problem.n_outputs
    offset = tuple(np.linspace(-1.5, 1.0, K)) if K > 1 else (-1.5,)
    bound = problem.loss.slope_bound(data.domain, problem.radius, offset)
    problem = dataclasses.replace(problem, offset=offset, slope_bound=bound)
    run = make_run(data, problem)
    run.draw(make_generator(3), problem.n_iter)
    _, margin = true_scores(data, problem, run.history(), problem.n_iter)
    margin = margin + np.array(offset)
    y = data.y
    slopes = problem.loss.slope(margin if K > 1 else margin[:, 0], y).reshape(-1, K)
    expected = score_cells(with_intercept(data, problem).tocsc(), slopes, problem)
    assert np.abs(run.exact_scores().ravel() - expected).max() <= data.X.shape[0] // 20 + 1
    plain = dataclasses.replace(run.history(), offset=())
    np.testing.assert_allclose(
        run.history().weights()[1], plain.weights()[1] + np.array(offset), atol=1e-15
    )


@pytest.mark.parametrize("name", LOSSES)
def test_slope_bound_with_an_offset_holds_and_is_attained(name):
    loss, K = LOSSES[name]
    domain = Domain(feature_bound=2.0, target_bound=3.0, classes=list(range(max(K, 2))))
    offset = (0.7, -1.0, 0.2) if K > 1 else (-0.7,)
    bound, reach = loss.slope_bound(domain, 1.5, offset), 3.0
    corners = np.concatenate([reach * np.eye(K), -reach * np.eye(K)]) + np.array(offset)
    targets = range(max(K, 2)) if name in ("logistic", "softmax") else (-3.0, 3.0)
    worst = 0.0
    for y in targets:
        y = np.full(2 * K, y)
        worst = max(worst, np.abs(loss.slope(corners if K > 1 else corners[:, 0], y)).max())
    assert worst == pytest.approx(bound, rel=1e-12)


def test_law_of_a_pick_that_starts_from_an_offset():
    """Right, and neither without the offset nor with 5 % more or less noise. False alarms: 1e-5."""
    data, problem = make_case("logistic", n=300, p=12, fit_intercept=True, kappa=0.12)
    offset = (-1.5,)
    bound = problem.loss.slope_bound(data.domain, problem.radius, offset)
    problem = dataclasses.replace(problem, slope_bound=bound, offset=offset)
    run = make_run(data, problem)
    run.draw(make_generator(1), 5)
    exact = make_run(data, problem)
    replay_history(exact, run.history())
    truth, kappa = exact.stored_scores().ravel(), exact.state.sc.kappa
    blind = make_run(data, dataclasses.replace(problem, offset=()))
    replay_history(blind, run.history())
    exact.state.sc.debt_limit = 2**60
    counts = draw_counts(exact.state, 5, 60_000, seed=4)
    assert p_value(counts, truth, kappa) > 1e-5
    assert p_value(counts, blind.stored_scores().ravel(), kappa) < 1e-5
    for wrong in (0.95, 1.05):
        assert p_value(counts, truth, wrong * kappa) < 1e-5


# ---- every step ends ----


def many_rounded(n=20_000):
    """Dense columns whose rounding alone is more doubt than a draw can bear: 2 kappa n is 24 nats."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)
    data = clip_table(
        Domain(feature_bound=1.0, classes=[0, 1]), sp.csr_array(X), y, labels=np.array([0, 1])
    )
    return data, Problem(
        loss=Logistic(), radius=10.0, n_iter=8, kappa=0.16, slope_bound=1.0, resolution=2**8,
        fit_intercept=False,
    )  # fmt: skip


def test_steps_that_must_be_exact_are_not_tried_in_vain():
    """Where rounding alone is too much doubt (465,000 rows of covtype at epsilon 3), a step costs little more than one
    refresh."""
    data, problem = many_rounded()
    run = make_run(data, dataclasses.replace(problem, n_iter=200))
    run.draw(make_generator(0), 200)
    assert run.state.sc.refreshes < 260


# ---- layout ----


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("groups", [1, 2**8, 2**11])
# Without the compiler 70,000 columns would take half a minute each.
@pytest.mark.parametrize(
    "width", [*(pytest.param(w, marks=pytest.mark.nojit) for w in (40, 3000)), 70_000]
)
def test_layout_is_the_transpose_in_any_number_of_groups(
    monkeypatch, groups, width, kind, fit_intercept
):
    monkeypatch.setattr(run_file, "_GROUPS", groups)
    rng, n = np.random.default_rng(3), 60
    X = sp.random_array((n, width), density=min(0.02, 60 / width), rng=rng, format="csr")
    X.sort_indices()
    rows = RowArrays(X.indptr, X.indices, X.data.astype(kind), np.zeros(n), width)
    problem = Problem(Logistic(), 1.0, 1, 1.0, 1.0, 2**8, fit_intercept=fit_intercept)
    m, mass, longest = lay_out(rows, problem)
    X.data = X.data.astype(np.float32).astype(np.float64)
    columns = sp.hstack([X, np.ones((n, int(fit_intercept)))]).tocsc()
    np.testing.assert_array_equal(m.start, columns.indptr)
    np.testing.assert_array_equal(m.entries >> 32, columns.indices)
    np.testing.assert_array_equal(m.entries.astype(np.uint32).view(np.float32), columns.data)
    true = np.abs(columns).sum(axis=0)
    assert ((mass >= true) & (mass <= true * (1 + 1e-6))).all()
    assert longest == np.diff(columns.indptr).max()


@pytest.mark.parametrize("n_rows", [0, 20])
def test_columns_without_entries_are_drawn_like_all_others(n_rows):
    """Seven empty columns and an intercept of score near 0: nearly uniform over 16 signed cells."""
    rows = RowArrays(
        np.zeros(n_rows + 1, np.int32), np.zeros(0, np.int32), np.zeros(0),
        np.arange(n_rows) % 2, 7,
    )  # fmt: skip
    problem = Problem(Logistic(), 2.0, 2, 0.04, 1.0, 2**24)
    run = Run(rows, problem)
    counts = draw_counts(run.state, 0, 20_000, seed=3)
    assert p_value(counts, run.stored_scores().ravel(), run.state.sc.kappa) > 1e-5
    run.draw(make_generator(1), 2)
    again = Run(rows, problem)
    replay_history(again, run.history())
    np.testing.assert_array_equal(again.state.cells, run.state.cells)

"""The fast solver against the reference: same scores, same law, same state from the history.

Seeds are fixed; a right law fails a chi-square test here with probability 1e-5.
"""

import dataclasses
import math

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit
from scipy.stats import chisquare

from dpsparse import DPLassoClassifier, Ledger
from dpsparse.domain import Domain
from dpsparse.domain.clipping import cast
from dpsparse.exceptions import InternalError, ParameterError
from dpsparse.losses import Huber, Logistic, Softmax, Squared
from dpsparse.methods.frank_wolfe import (
    History,
    Problem,
    RowArrays,
    Run,
    choose_resolution,
    kernel,
    scores,
)
from dpsparse.methods.frank_wolfe.scores import lay_out
from dpsparse.random import make_generator
from dpsparse.rows import loss_kernels
from hot_cold import draw_into
from plain_frank_wolfe import fast_frank_wolfe, frank_wolfe, score_cells, slopes_of, with_intercept

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
        data = domain.clip(sp.csr_array(dense), dense[:, 0] + rng.normal(size=n))
    else:
        y = rng.integers(0, max(n_outputs, 2), n)
        data = domain.clip(sp.csr_array(dense), y, labels=np.arange(max(n_outputs, 2)))
    slope_bound = loss.slope_bound(domain, 4.0)
    problem = Problem(
        loss=loss, radius=4.0, n_iter=N_STEPS, kappa=0.2 / (bound * slope_bound),
        slope_bound=slope_bound, resolution=2**16, feature_bound=bound, n_outputs=n_outputs,
    )  # fmt: skip
    return data, dataclasses.replace(problem, **changes)


def make_run(data, problem):
    return Run(RowArrays.of(data), problem)


def use_boxes(run, tau):
    run.set_tau(tau)
    kernel.schedule_all(run.state.rows, run.state.calendar, run.state.sc, run.step)
    kernel.rebuild(run.state.sampler, run.state.sc)


def slack_by_feature(run):
    labels = labels_of(run.state.matrix, run.state.sc.n_cells // run.problem.n_outputs)
    return np.where(
        labels >= run.state.matrix.begin.size,
        0,
        run.state.sampler.slack[np.minimum(labels, kernel.HEAVY)],
    )


def labels_of(matrix, width):
    """The labels of all columns; columns without entries come after the others, in their order."""
    found = np.empty(width, np.int64)
    kernel.find_labels(matrix.marks, width, matrix.begin.size, np.arange(width), found)
    return found


def spans_of(matrix):
    """Where the entries of every label begin and end."""
    length = np.empty(matrix.begin.size, np.int64)
    kernel.lengths(matrix, np.arange(length.size), length)
    begin = np.where(matrix.begin >= 0, matrix.begin, ~matrix.begin)
    return np.column_stack([begin, begin + length])


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
    again.replay(run.history())
    np.testing.assert_array_equal(again.state.rows.v, run.state.rows.v)
    np.testing.assert_array_equal(again.exact_scores(), run.exact_scores())


@pytest.mark.nojit
@pytest.mark.parametrize("name", LOSSES)
def test_fast_equals_reference_under_the_same_draws(name):
    data, problem = make_case(name)
    history = frank_wolfe(data, problem, make_generator(1))
    run = make_run(data, problem)
    run.replay(history)
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


@pytest.mark.nojit
def test_exponential_is_as_good_as_its_argument():
    x = np.append(np.linspace(-99, 99, 2001), [0.0, -1e4, 1e4])
    exp = njit(lambda at: loss_kernels.exp(at))  # inner functions cannot be called from Python
    got = np.array([exp(at) for at in x])
    true = np.exp(np.clip(x, -99, 99))
    assert (np.abs(got / true - 1) <= (np.minimum(np.abs(x), 99) + 3) * 2.0**-52).all()


@pytest.mark.parametrize("kappa", [0.02, np.inf])
def test_boxes_are_for_sparse_picks_only(kappa):
    """Narrow: every row at every step, no more pulls than steps. Wide: boxes, and far fewer rows."""
    rng = np.random.default_rng(0)
    work = {}
    for width, per_row in ((20, 6), (3000, 6)):
        X = sp.random_array((1500, width), density=per_row / width, rng=rng, format="csr")
        y = (X[:, :5].sum(axis=1) > X[:, :5].sum() / 1500).astype(int)
        data = Domain(feature_bound=1.0, classes=[0, 1]).clip(X, y, labels=np.array([0, 1]))
        problem = Problem(
            loss=Logistic(), radius=20.0, n_iter=200, kappa=kappa, slope_bound=1.0,
            resolution=2**16, fit_intercept=False,
        )  # fmt: skip
        run = make_run(data, problem)
        run.draw(make_generator(5), 200)
        sc = run.state.sc
        work[width] = (sc.pulls * X.nnz + sc.scattered) / (200 * X.nnz)
    assert work[20] < 1.2
    assert work[3000] < 0.25


def dense_case():
    rng = np.random.default_rng(0)
    dense = rng.uniform(-1, 1, (200, 12)) * (rng.random((200, 12)) < 0.1)
    dense[:, :8] = rng.uniform(0.2, 1, (200, 8))  # eight full columns, picked nearly always
    y = (dense[:, 0] + rng.normal(size=200) > 0.6).astype(int)
    data = Domain(feature_bound=1.0, classes=[0, 1]).clip(
        sp.csr_array(dense), y, labels=np.array([0, 1])
    )
    problem = Problem(
        loss=Logistic(), radius=20.0, n_iter=60, kappa=0.3, slope_bound=1.0, resolution=2**16,
        fit_intercept=False,
    )  # fmt: skip
    return data, problem


def test_dense_picks_end_the_boxes():
    data, problem = dense_case()
    run = make_run(data, problem)
    use_boxes(run, 1e-3)
    run.draw(make_generator(5), 30)
    assert not run.state.sc.boxes


def without_boxes(run):
    run.state.sc.boxes, run.state.sc.look = 0, 10**6
    run._set_reserve(run._reserve)
    kernel.rebuild(run.state.sampler, run.state.sc)


def leading_case():
    """Three dense columns far ahead of 2000 rare ones, and little noise."""
    rng = np.random.default_rng(0)
    rare = sp.random_array((400, 2000), density=1e-2, rng=rng, format="csr") * 0.05
    y = rng.integers(0, 2, 400)
    dense = np.clip(0.5 + 0.4 * (2 * y[:, None] - 1) * rng.random((400, 3)), 0, 1)
    X = sp.csr_array(sp.hstack([sp.csr_array(dense), rare], format="csr"))
    data = Domain(feature_bound=1.0, classes=[0, 1]).clip(X, y, labels=np.array([0, 1]))
    return data, Problem(
        loss=Logistic(), radius=20.0, n_iter=60, kappa=20.0, slope_bound=1.0, resolution=2**16,
        fit_intercept=False,
    )  # fmt: skip


@pytest.mark.parametrize("case", ["uncertain", "leading"])
def test_lagging_scores_stay_within_their_slack(case):
    """Without boxes columns are pulled when they lag, or not at all if they cannot win."""
    data, problem = dense_case() if case == "uncertain" else leading_case()
    if case == "uncertain":
        problem = dataclasses.replace(problem, kappa=0.02)
    run = make_run(data, problem)
    without_boxes(run)
    draws, worst = make_generator(5), 0
    for t in range(problem.n_iter - 1):
        run.draw(draws, 1)
        run.serve(t + 1)
        truth, _ = true_scores(data, problem, run.history(), t + 1)
        error = np.abs(run.stored_scores().ravel() - np.ravel(truth))
        assert (error <= slack_by_feature(run) + 10).all()  # exp of two libraries: last bits differ
        worst = max(worst, error.max())
    assert worst > 100  # the scores really lagged
    assert run.state.sc.pulls < (problem.n_iter if case == "uncertain" else 30)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tau", [0.25, 0.02])
def test_stale_scores_stay_within_their_slack(name, tau):
    data, problem = make_case(name, n_iter=80, fit_intercept=False)
    run = make_run(data, problem)
    sc = run.state.sc
    sc.debt_limit = sc.afford = sc.refresh_cost = 10**7  # no refresh while we look
    use_boxes(run, tau)
    rng = make_generator(7)
    seen = 0.0
    for t in range(problem.n_iter - 1):
        run.draw(rng, 1)
        run.serve(t + 1)
        truth, _ = true_scores(data, problem, run.history(), t + 1)
        error = np.abs(run.stored_scores() - truth.reshape(-1, problem.n_outputs))
        assert (error <= slack_by_feature(run)[:, None] + 2).all()
        seen = max(seen, error.max())
    assert sc.boxes
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
    stale = run.all_scores().astype(np.int64)
    fresh = make_run(data, problem)
    fresh.replay_cells(state.cells[:t], state.signs[:t])
    truth = fresh.all_scores().astype(np.int64)
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
    kernel.rebuild(state.sampler, sc)
    assert p_value(draw_counts(state, t, 30_000, seed=4), truth, kappa) < 1e-5


def draw_or_refuse(run, t, n_draws, rng):
    draw_into(np.empty(n_draws, np.int64), 0, run.state, rng, t)
    run.refuse_broken_draw()


@pytest.mark.parametrize("name", LOSSES)
def test_a_score_further_off_than_its_slack_ends_the_run(name):
    """Where a draw reads a column, the score it finds must lie within the slack: else no draw has its law."""
    data, problem = make_case(name, n=400, p=12, n_iter=200, fit_intercept=False)
    run, t = stale_run(data, problem, 40, seed=5)
    run.state.sampler.slack[:] //= 20
    kernel.rebuild(run.state.sampler, run.state.sc)
    run.state.sc.debt_limit, draws = 2**60, make_generator(4)
    with pytest.raises(InternalError, match="Nothing was released"):
        draw_or_refuse(run, t, 5000, draws)


@pytest.mark.parametrize("place", ["hot", "cold"])
def test_a_weight_below_its_share_ends_the_run(place):
    """A score that rose without its weight would be accepted with a probability above one."""
    data, problem = make_case("logistic", n=400, p=12, fit_intercept=False, kappa=0.3)
    run = make_run(data, problem)
    run.refresh()
    run.state.sampler.slack[:] = 0
    kernel.rebuild(run.state.sampler, run.state.sc)
    sampler, sc, draws = run.state.sampler, run.state.sc, make_generator(4)
    hot = np.flatnonzero(sampler.slot[: sampler.score.size] >= 0)
    cold = np.flatnonzero(sampler.slot[: sampler.score.size] < 0)
    cell = (hot if place == "hot" else cold)[-1]
    sampler.score[cell] = sc.top + 2 * sc.width if place == "hot" else sc.top
    with pytest.raises(InternalError):
        draw_or_refuse(run, 0, 20_000, draws)


@pytest.mark.parametrize("shape", ["wide", "narrow"])
def test_no_model_comes_of_a_broken_bound(monkeypatch, shape, tmp_path):
    """The whole fit ends with an error of this library: nothing is published, and what was reserved stays reserved. A
    fit meets the broken bound with a probability of about .8; none of twenty does with less than 1e-13."""
    rng = np.random.default_rng(0)
    n, width = (1500, 3000) if shape == "wide" else (20_000, 30)
    X = sp.random_array((n, width), density=6 / width, rng=rng, format="csr")
    y = rng.integers(0, 2, n)
    masses = scores.kernel.column_bounds

    def too_small(matrix, largest, mass, norm, count):
        masses(matrix, largest, mass, norm, count)
        mass /= 20.0
        count[:] = 0

    if shape == "wide":
        monkeypatch.setattr(kernel, "column_bounds", too_small)
    else:  # scores lag there
        slack = scores.Scores._slack_of
        monkeypatch.setattr(scores.Scores, "_slack_of", lambda run, drift: slack(run, drift) // 50)
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
    use_boxes(run, 0.1)
    picks = np.random.default_rng(seed)
    state, sc = run.state, run.state.sc
    cells = picks.integers(0, sc.n_cells, problem.n_iter)
    signs = picks.choice([-1, 1], problem.n_iter)
    for cell, sign in zip(cells[:t], signs[:t], strict=True):
        run.serve(run.step)
        run.move(int(cell), int(sign))
    run.serve(t)
    kernel.rebuild(state.sampler, sc)
    return run, t


def test_lagging_mode_has_the_law_of_the_true_gradient():
    data, problem = make_case("logistic", n=150, p=12, n_iter=200, fit_intercept=False)
    run = make_run(data, problem)
    sc = run.state.sc
    picks = np.random.default_rng(2)
    cells = picks.integers(0, sc.n_cells, 40)
    run.replay_cells(cells, picks.choice([-1, 1], 40))
    without_boxes(run)
    sc.reserve *= 2  # more doubt than the solver would allow itself
    run.state.sampler.slack[:] = run._slack_of(run._drift + float(sc.reserve))
    run.state.cells[40:43], run.state.signs[40:43] = cells[:3], 1
    stale = run.all_scores().astype(np.int64)
    while run.step < 43 and sc.lag <= sc.reserve:
        kernel.advance(run.state, make_generator(0), run.step, run.step + 1, kernel.MOVE)
        run.step += 1
        kernel.lag_of_rows(run.state.rows, sc, run.step)
    assert 0 < sc.lag <= sc.reserve
    kernel.rebuild(run.state.sampler, sc)
    sc.debt_limit = 2**60
    counts = draw_counts(run.state, run.step, 20_000, seed=4)
    truth = make_run(data, problem)
    truth.replay_cells(run.state.cells[: run.step], run.state.signs[: run.step])
    assert sc.verified > 0
    assert p_value(counts, truth.all_scores().astype(np.int64), sc.kappa) > 1e-5
    assert p_value(counts, stale, sc.kappa) < 1e-5


def led_run(n_picks=20):
    """Two long columns that move all slopes at every step, 1,100 short ones left alone, 50 without entries."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    owners = rng.random((400, 1102)) < np.append(
        [0.9, 0.8], np.where(np.arange(1100) < 1022, 0.075, 0.06)
    )
    dense = (
        owners
        * np.where(y[:, None] == rng.integers(0, 2, 1102), 1.0, 0.3)
        * rng.random((400, 1102))
    )
    X = sp.csr_array(np.hstack([dense, np.zeros((400, 50))]))
    data = Domain(feature_bound=1.0, classes=[0, 1]).clip(X, y, labels=np.array([0, 1]))
    problem = Problem(
        loss=Logistic(), radius=6.0, n_iter=60, kappa=0.3, slope_bound=1.0, resolution=2**16,
        fit_intercept=False,
    )  # fmt: skip
    run = make_run(data, problem)
    without_boxes(run)
    picks = make_generator(5)
    for _ in range(n_picks):
        run.draw(picks, 1)
        run.state.sc.look = 10**6
    run.serve(n_picks)
    return data, problem, run


def test_distance_is_a_number_where_squares_might_overflow():
    """It was infinite from 2^28 slopes on, times the norm 0 of a column without weight: a drift that is no number."""
    rows, sc = led_run(1)[2].state.rows, kernel.make_scalars()
    sc.slope_bound = sc.reach = sc.outputs = 1
    many = [
        np.lib.stride_tricks.as_strided(np.zeros(1, np.int32), (2**28,), (0,)) for _ in range(2)
    ]
    kernel.lag_of_rows(rows._replace(q=many[0], fresh=many[1], y=rows.y[:1], v=0 * rows.v), sc, 0)
    assert sc.lag == 2**55  # every slope moved by a half
    assert 2**41 <= sc.distance < np.inf


@pytest.mark.parametrize("doubt", [0.0, 1.75])
def test_columns_left_alone_stay_below_their_ceiling(monkeypatch, doubt):
    monkeypatch.setattr(scores, "_DOUBT", doubt)
    for t in (1, 5, 20):
        data, problem, run = led_run(t)
        truth, _ = true_scores(data, problem, run.history(), t)
        sc, labels = run.state.sc, labels_of(run.state.matrix, np.size(truth))
        light = (labels >= kernel.HEAVY) & (labels < run.state.matrix.begin.size)
        assert 0 <= np.abs(np.ravel(truth)[light]).max() <= sc.ceiling
        assert sc.ceiling < 2**62
        error = np.abs(run.stored_scores() - truth.reshape(-1, 1))[:, 0]
        assert (error <= slack_by_feature(run) + 10).all()
        pulled = run._drift[: kernel.HEAVY] == 0
        assert 0 < pulled.sum() < kernel.HEAVY // 2
        assert (run.state.sampler.slack[: kernel.HEAVY][pulled] == 0).all() == (sc.reserve == 0)
        assert sc.pulls == 1  # all columns at the start, and never again


@pytest.mark.parametrize("doubt", [0.0, 1.75])
def test_leaders_alone_give_the_law_of_the_true_gradient(monkeypatch, doubt):
    """Some columns exact, some forgotten, light ones known by a ceiling and by the number of their entries."""
    monkeypatch.setattr(scores, "_DOUBT", doubt)
    data, problem, run = led_run()
    state, sc, t = run.state, run.state.sc, run.step
    assert sc.ceiling >= 0
    assert (run._drift > 0).any()
    stale = run.all_scores().astype(np.int64)
    truth = make_run(data, problem)
    truth.replay_cells(state.cells[:t], state.signs[:t])
    exact = truth.all_scores().astype(np.int64)
    sc.debt_limit = 2**60
    kernel.rebuild(state.sampler, sc)
    counts = draw_counts(state, t, 40_000, seed=4)
    light = counts.reshape(2, -1)[:, kernel.HEAVY : state.sampler.score.size]
    assert light.sum() > 1000
    assert sc.verified > 0
    assert p_value(counts, exact, sc.kappa) > 1e-5
    assert p_value(counts, stale, sc.kappa) < 1e-5
    assert p_value(counts, exact, 1.1 * sc.kappa) < 1e-5
    # Mutations: scores of another step are believed; an entry is taken to add no more than a 64th of what it may.
    slack = state.sampler.slack.copy()
    state.sampler.slack[:] = 0
    kernel.rebuild(state.sampler, sc)
    assert p_value(draw_counts(state, t, 20_000, seed=4), exact, sc.kappa) < 1e-5
    state.sampler.slack[:], sc.resolution = slack, sc.resolution // 64
    kernel.rebuild(state.sampler, sc)
    with pytest.raises(InternalError, match="Nothing was released"):
        draw_or_refuse(run, t, 20_000, make_generator(4))


@pytest.mark.parametrize("kappa", [1e-6, 0.02, 5.0])
@pytest.mark.parametrize("case", ["rare", "dense", "leading", "rounded"])
def test_a_fit_ends_after_bounded_work(case, kappa):
    """No step stops the kernel more often than the patience of the run, whatever the rows and the noise are."""
    data, problem = {
        "rare": lambda: make_case("logistic", n_iter=100),
        "dense": dense_case,
        "leading": leading_case,
        "rounded": many_rounded,
    }[case]()
    if case != "rounded":  # its kappa is what makes its rounding matter
        problem = dataclasses.replace(problem, kappa=kappa)
    run, stops = make_run(data, problem), {}
    answer = run._answer

    def counted():
        stops[run.step] = stops.get(run.step, 0) + 1
        answer()

    run._answer = counted
    run.draw(make_generator(0), problem.n_iter)
    assert run.step == problem.n_iter
    assert max(stops.values(), default=0) <= 6


def test_scores_called_exact_are_exact():
    """A draw without slack needs the scores of that very step, whether Python or the kernel pulled them."""
    data, problem = dense_case()
    problem = dataclasses.replace(problem, kappa=0.02)
    run, sure = make_run(data, problem), 0
    without_boxes(run)
    sc, draws = run.state.sc, make_generator(5)
    for t in range(problem.n_iter):
        sc.seek = 5 * (t % 2)  # by turns
        run.draw(draws, 1)
        if sc.exact_at == t and not sc.boxes:
            sure += 1
            again = make_run(data, problem)
            again.replay_cells(run.state.cells[:t], run.state.signs[:t])
            np.testing.assert_array_equal(run.stored_scores(), again.exact_scores())
    assert sure > 5


def lagging_by_two(name, settled):
    """A run without boxes two picks after its scores were made; `settled` one pick after a draw without doubt."""
    data, problem = dense_case() if name == "dense" else make_case(name, n=400, p=12)
    radius = 0.6 if settled else problem.radius  # there slopes move by less than slack would allow
    problem = dataclasses.replace(problem, fit_intercept=True, radius=radius)
    picks, n_cells = np.random.default_rng(2), (data.X.shape[1] + 1) * problem.n_outputs
    cells, signs = picks.integers(0, n_cells, 14), picks.choice([-1, 1], 14)
    truth = make_run(data, problem)
    truth.replay_cells(cells, signs)
    exact = truth.all_scores().astype(np.int64)
    wanted = 4.0 / np.abs(exact).max()  # the likeliest cell has e^4 of the weight of an empty one
    problem = dataclasses.replace(problem, kappa=problem.kappa * wanted / problem.unit_kappa)
    run = make_run(data, problem)
    run.replay_cells(cells[:12], signs[:12])
    without_boxes(run)
    reserve = run.state.sc.reserve
    for t in (12, 13):
        if settled and t == 13:
            run._settle()
        run.move(int(cells[t]), int(signs[t]))
    kernel.lag_of_rows(run.state.rows, run.state.sc, run.step)
    assert (run.state.sc.lag < reserve) == settled
    return run, exact


def first_draws(run, n_draws, how):
    """Cells and signs of `n_draws` draws of this very step, each from the same state."""
    state, sc, t = run.state, run.state.sc, run.step
    arrays = (*state.rows, state.sampler.score, state.sampler.slack, run._drift, sc.base)
    before = [array.copy() for array in arrays]
    wait, rng = run._wait, make_generator(4)
    counts = np.zeros(2 * sc.n_cells, np.int64)
    for _ in range(n_draws):
        for array, was in zip(arrays, before, strict=True):
            array[...] = was
        run.step, run._wait = t, wait
        if how == "kernel":
            sc.seek, state.sampler.score[:] = 5, 0  # the pull makes all of them anew
        elif how == "trusting":  # mutation: scores of another step are taken for exact
            sc.exact_at, sc.fresh_at, sc.lag = t, t, 0
        kernel.rebuild(state.sampler, sc)
        run._advance(rng, t + 1)
        assert sc.exact_at == t  # the draw took no slack
        assert not sc.boxes
        counts[state.cells[t] + sc.n_cells * (state.signs[t] < 0)] += 1
    return counts


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "how"),
    [
        *((name, how) for name in ("dense", "logistic", "softmax") for how in ("kernel", "python")),
        ("dense", "after a settled step"),
    ],
)
def test_draws_without_slack_have_the_law_of_the_true_gradient(name, how):
    """The draw at the step of a pull, by the kernel, by Python, and where the slack was 0 before: intercept, empty
    column and full columns among the cells. A right law fails one of the seven with probability 7e-5."""
    run, exact = lagging_by_two(name, settled=how == "after a settled step")
    stale, kappa = run.all_scores().astype(np.int64), run.state.sc.kappa
    counts = first_draws(run, 3000, how)
    assert p_value(counts, exact, kappa) > 1e-5
    assert p_value(counts, stale, kappa) < 1e-5
    if how == "kernel":
        again, _ = lagging_by_two(name, settled=False)
        assert p_value(first_draws(again, 3000, "trusting"), exact, kappa) < 1e-5


@pytest.mark.parametrize("name", LOSSES)
def test_verified_scores_are_the_refreshed_ones_bit_for_bit(name):
    """Vector and scalar code must agree, or the law would depend on which rows are stale."""
    data, problem = make_case(name, n=400, n_iter=60, fit_intercept=False)
    run, t = stale_run(data, problem, 40)
    state, score = run.state, run.state.sampler.score
    verified = np.empty(score.size, np.int64)
    state.sc.fresh_at = -1
    kernel.exact_scores(state.matrix, state.rows, state.sc, np.arange(score.size), t, verified)
    assert (verified != score).any()  # stale before
    run.refresh()
    np.testing.assert_array_equal(verified, score)


def two_step_law(data, problem):
    """Exact probabilities of all two-step histories of cells and signs, in the reference's order."""
    law = {}
    n_cells = data.X.shape[1]
    unit_kappa = problem.kappa * problem.slope_bound / problem.resolution  # feature_bound is 1
    for first in range(2 * n_cells):
        history = _fixed_history(data, problem, [first])
        p_first = _law_of(true_scores(data, problem, history, 0)[0], unit_kappa)[first]
        second = _law_of(true_scores(data, problem, history, 1)[0], unit_kappa)
        for k in range(2 * n_cells):
            law[(first, k)] = p_first * second[k]
    return law


def _law_of(scores, kappa):
    keys = np.concatenate([kappa * scores, -kappa * scores])
    p = np.exp(keys - keys.max())
    return p / p.sum()


def _fixed_history(data, problem, codes):
    n = data.X.shape[1]
    codes = np.asarray(codes)
    return History(
        codes % n, np.zeros_like(codes), np.where(codes < n, -1, 1), problem.radius, n, 1, 1.0
    )


@pytest.mark.heavy
def test_whole_runs_have_the_law_of_the_reference():
    rng = np.random.default_rng(0)
    X = np.round(rng.uniform(-1, 1, (30, 2)), 2)
    data = Domain(feature_bound=1.0, classes=[0, 1]).clip(
        X, (X[:, 0] > 0).astype(int), labels=np.array([0, 1])
    )
    loss = Logistic()
    bound = loss.slope_bound(data.domain, 3.0)
    problem = Problem(loss, 3.0, 2, 0.15, bound, 2**16, fit_intercept=False)
    law = two_step_law(data, problem)
    counts = dict.fromkeys(law, 0)
    stream = make_generator(8)
    for _ in range(2500):
        history = fast_frank_wolfe(data, problem, stream)
        codes = history.features + 2 * (history.signs > 0)
        counts[tuple(codes.tolist())] += 1
    observed, expected = np.array(list(counts.values())), np.array(list(law.values())) * 2500
    assert chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-5


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
                data = domain.clip(X, np.array([target]))
            else:
                data = domain.clip(X, np.array([target]), labels=np.arange(max(n_outputs, 2)))
            for sign in (1, -1):
                run = make_run(data, problem)
                label = int(run.labels_of(np.array([0]))[0])
                run.replay_cells(np.full(N_SAME, label * n_outputs), np.full(N_SAME, sign))
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


@pytest.mark.parametrize("scale", [1e-4, 1.0, 50.0])
def test_any_noise_level_terminates(scale):
    # From almost uniform draws to almost an arg max, dense columns and an intercept included.
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 1, (3000, 15))
    data = Domain(feature_bound=1.0, classes=[0, 1]).clip(
        X, rng.integers(0, 2, 3000), labels=np.array([0, 1])
    )
    bound = Logistic().slope_bound(data.domain, 10.0)
    resolution = choose_resolution(3000, scale)
    problem = Problem(Logistic(), 10.0, 150, scale / (2 * bound), bound, resolution)
    assert len(fast_frank_wolfe(data, problem, make_generator(0)).signs) == 150


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
        label = int(run.labels_of(np.array([0]))[0])
        run.replay_cells(np.full(N_SAME, label * K), np.full(N_SAME, sign))
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
    data, problem = make_case("logistic", n=300, p=12, fit_intercept=True, kappa=0.05)
    offset = (-1.5,)
    bound = problem.loss.slope_bound(data.domain, problem.radius, offset)
    problem = dataclasses.replace(problem, slope_bound=bound, offset=offset)
    run = make_run(data, problem)
    run.draw(make_generator(1), 5)
    exact = make_run(data, problem)
    exact.replay(run.history())
    truth, kappa = exact.all_scores().astype(np.int64), exact.state.sc.kappa
    blind = make_run(data, dataclasses.replace(problem, offset=()))
    blind.replay(run.history())
    kernel.rebuild(exact.state.sampler, exact.state.sc)
    exact.state.sc.debt_limit = 2**60
    counts = draw_counts(exact.state, 5, 60_000, seed=4)
    assert p_value(counts, truth, kappa) > 1e-5
    assert p_value(counts, blind.all_scores().astype(np.int64), kappa) < 1e-5
    for wrong in (0.95, 1.05):
        assert p_value(counts, truth, wrong * kappa) < 1e-5


# ---- every step ends ----


def many_rounded(n=20_000):
    """Dense columns whose rounding alone is more doubt than a draw can bear: 2 kappa n is 24 nats."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)
    data = Domain(feature_bound=1.0, classes=[0, 1]).clip(
        sp.csr_array(X), y, labels=np.array([0, 1])
    )
    return data, Problem(
        loss=Logistic(), radius=10.0, n_iter=8, kappa=0.16, slope_bound=1.0, resolution=2**8,
        fit_intercept=False,
    )  # fmt: skip


def test_rounding_of_many_entries_does_not_stop_a_run():
    """Found through DPLassoClassifier(Domain(classes=[0, 1]), epsilon=8) on 60,000 dense rows: it did not return."""
    data, problem = many_rounded()
    run, stops = make_run(data, problem), 0
    answer = run._answer

    def counted():
        nonlocal stops
        stops += 1
        assert stops < 100, "the run goes on and on at one step"
        answer()

    run._answer = counted
    run.draw(make_generator(0), problem.n_iter)
    assert run._patience == 1  # a step was made without doubt
    assert (run.history().features[:3] == 0).all()  # and the others after it


def test_steps_that_must_be_settled_are_not_tried_in_vain(monkeypatch):
    """Where rounding alone is too much doubt (465,000 rows of covtype at epsilon 3), a step costs little more than one
    pull."""
    data, problem = many_rounded()
    run = make_run(data, dataclasses.replace(problem, n_iter=200))
    refreshed, refresh = [], type(run).refresh
    monkeypatch.setattr(type(run), "refresh", lambda self: (refreshed.append(1), refresh(self))[1])
    run.draw(make_generator(0), 200)
    assert len(refreshed) < 260


# ---- layout ----


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("bucket", "groups"), [(1, 2**13), (64, 2), (2**17, 2**5)])
# Without the compiler 70,000 columns would take half a minute each.
@pytest.mark.parametrize(
    "width", [*(pytest.param(w, marks=pytest.mark.nojit) for w in (40, 3000)), 70_000]
)
def test_layout_is_the_transpose_in_any_number_of_buckets(
    monkeypatch, bucket, groups, width, fit_intercept
):
    """More columns than HEAVY and than a bucket holds, some empty; every entry is found under its label, in order."""
    monkeypatch.setattr(scores, "_BUCKET", bucket)
    monkeypatch.setattr(scores, "_GROUPS", groups)
    rng = np.random.default_rng(3)
    X = sp.random_array((60, width), density=min(0.02, 60 / width), rng=rng, format="csr")
    X.sort_indices()
    rows = RowArrays(X.indptr, X.indices, X.data, np.zeros(60), width)
    problem = Problem(Logistic(), 1.0, 1, 1.0, 1.0, 2**8, fit_intercept=fit_intercept)
    m, largest = lay_out(rows, problem)
    dense = np.hstack([X.toarray(), np.ones((60, 1))]) if fit_intercept else X.toarray()
    counts = np.count_nonzero(dense, axis=0)
    labels, n_labels = labels_of(m, counts.size), m.begin.size
    assert n_labels == np.count_nonzero(counts)
    assert ((labels >= n_labels) == (counts == 0)).all()
    assert sorted(labels) == list(range(counts.size))
    assert (np.diff(labels[counts == 0]) == 1).all()
    columns = np.empty(counts.size, np.int64)
    kernel.find_columns(m.marks, counts.size, n_labels, np.arange(counts.size), columns)
    np.testing.assert_array_equal(columns[labels], np.arange(counts.size))
    some = np.unique(rng.integers(0, counts.size, 7))
    kernel.find_columns(m.marks, counts.size, n_labels, some, columns[: some.size])
    np.testing.assert_array_equal(labels[columns[: some.size]], some)
    again, spans = np.zeros_like(dense), spans_of(m)
    for j in np.flatnonzero(counts):
        begin, end = spans[labels[j]]
        if counts[j] == 60:  # a full column keeps its numbers alone
            again[:, j] = m.shares[2 * begin : 2 * begin + 60]
            continue
        owners = m.entries[begin:end] >> 32
        assert (owners[1:] > owners[:-1]).all()
        again[owners, j] = m.entries[begin:end].astype(np.uint32).view(np.float32)
    np.testing.assert_array_equal(again, cast(dense.ravel(), 1.0).reshape(dense.shape))
    heavy = labels < kernel.HEAVY
    if (~heavy & (counts > 0)).any():
        assert counts[heavy].min() >= counts[~heavy & (counts > 0)].max()
    assert_bounds_of_columns(m, largest, again)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_layout_names_more_rows_than_16_bits(monkeypatch, kind):
    """Blocks of 2^16 rows, one of them without entries, and columns that begin in any of them."""
    monkeypatch.setattr(scores, "_BUCKET", 200)
    rng, n = np.random.default_rng(4), 300_000
    rows = np.sort(np.append(rng.choice(65_536, 500), 140_000 + rng.choice(n - 140_000, 1500)))
    X = sp.coo_array((rng.uniform(-1, 1, 2000), (rows, rng.integers(0, 50, 2000))), (n, 50)).tocsr()
    X.sum_duplicates()
    X = X.astype(kind)
    problem = Problem(Logistic(), 1.0, 1, 1.0, 1.0, 2**8, fit_intercept=False)
    m, _ = lay_out(RowArrays(X.indptr, X.indices, X.data, np.zeros(n), 50), problem)
    columns = X.tocsc()
    for j, label in enumerate(labels_of(m, 50)):
        found = m.entries[slice(*spans_of(m)[label])]
        lo, hi = columns.indptr[j], columns.indptr[j + 1]
        np.testing.assert_array_equal(found >> 32, columns.indices[lo:hi])
        shares = found.astype(np.uint32).view(np.float32)
        np.testing.assert_array_equal(shares, cast(columns.data[lo:hi], 1.0))


@pytest.mark.parametrize("name", ["logistic", "squared"])
def test_a_table_in_float64_is_read_as_if_it_were_cast(name):
    """No copy is made where entries are clipped one by one, and no bit of the fit is another one."""
    rng = np.random.default_rng(5)
    X = sp.random_array((400, 1500), density=0.02, rng=rng, format="csr")
    X.data[::50], X.data[1::50], X.data[2::50] = 1e300, 5e-324, -1e-310
    y = rng.integers(0, 2, 400).astype(np.float64)
    loss = Logistic() if name == "logistic" else Squared()
    problem = Problem(loss, 5.0, 300, 1.0, 6.0, 2**12, fit_intercept=True, feature_bound=0.7)
    for limit in (0.6, 0.9):
        stored = cast(X.data, limit)
        found = [
            fast_frank_wolfe(
                RowArrays(X.indptr, X.indices, v, y, 1500, limit), problem, make_generator(1)
            )
            for v in (X.data, stored, stored.astype(np.float64))
        ]  # fmt: skip
        for one in found[1:]:
            np.testing.assert_array_equal(one.features, found[0].features)
            np.testing.assert_array_equal(one.signs, found[0].signs)


def assert_bounds_of_columns(m, largest, dense):
    """Those of heavy columns are their own, those of all others the largest, although short ones were not read."""
    mass, norm = np.zeros(kernel.HEAVY + 1), np.zeros(kernel.HEAVY + 1)
    count = np.zeros(kernel.HEAVY + 1, np.int64)
    kernel.column_bounds(m, largest, mass, norm, count)
    labels = labels_of(m, dense.shape[1])
    full = labels < m.begin.size
    place = np.minimum(labels[full], kernel.HEAVY)
    size = np.abs(dense[:, full])
    for found, each in (
        (mass, size.sum(axis=0)),
        (norm, np.sqrt(np.square(size).sum(axis=0))),
        (count, np.count_nonzero(size, axis=0)),
    ):
        wanted = np.zeros(kernel.HEAVY + 1)
        np.maximum.at(wanted, place, each)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_bounds_of_full_columns_beyond_the_heavy_ones(fit_intercept):
    """Of 1,100 full columns of halves some are light, and so is the column of ones."""
    X = sp.csr_array(np.full((5, 1100), 0.5))
    rows = RowArrays(X.indptr, X.indices, X.data, np.zeros(5), 1100)
    problem = Problem(Logistic(), 1.0, 1, 1.0, 1.0, 2**8, fit_intercept=fit_intercept)
    dense = np.hstack([X.toarray(), np.ones((5, 1))]) if fit_intercept else X.toarray()
    assert_bounds_of_columns(*lay_out(rows, problem), dense)


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
    assert p_value(counts, run.all_scores().astype(np.int64), run.state.sc.kappa) > 1e-5
    run.draw(make_generator(1), 2)
    again = Run(rows, problem)
    again.replay(run.history())
    np.testing.assert_array_equal(again.state.cells, run.state.cells)

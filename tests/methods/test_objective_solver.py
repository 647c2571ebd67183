"""Ridge problems on a support: the gradient norm is really reached, whatever the floats hold, sensitivities
are attained, and noise has the planned law. False-alarm rate of each statistical test: below 1e-6 (seeded)."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2, kstest

from dpsparse import DPRidgeRegressor, DPTwoStageClassifier
from dpsparse.accounting import (
    ObjectivePerturbation,
    Phase,
    Plan,
    Repeated,
    RoundedGaussian,
    Sequence,
)
from dpsparse.domain import Domain
from dpsparse.exceptions import CalibrationError, ParameterError
from dpsparse.losses import Huber, Logistic, get_loss
from dpsparse.random import LARGEST_DRAW, STEPS, make_generator
from dpsparse.random import integers as noise_integers
from dpsparse.release import Releases
from dpsparse.rows import Rows, ridge
from dpsparse.sensitivity import ridge_minimiser, tilted_minimiser
from parts import clip_in_parts

CODES = np.array([0, 1])


def columns(
    X,
    y,
    *,
    loss="logistic",
    row_clip=100.0,
    constant=0.0,
    n_parts=1,
    longest=math.inf,
):
    """All columns of a table as ridge rows; targets of huber in [-1, 1]."""
    domain = Domain(target_bound=1.0, classes=[0, 1])
    labels = CODES if loss == "logistic" else None
    rows = clip_in_parts(sp.csr_array(X), np.asarray(y), domain, n_parts, labels=labels)
    return rows.ridge(None, constant=constant, row_clip=row_clip, longest=longest)


def problem(X, y, *, loss="logistic", ridge=1.0, tol=1e-6, cutoff=1.0, centre=None, **options):
    return columns(X, y, loss=loss, **options).problem(
        loss, ridge=ridge, tol=tol, cutoff=cutoff, centre=centre
    )


def releases(event, seed=0, adjacency="add-remove"):
    plan = Plan("test", (Phase("fit", event),), math.inf, 1e-6, adjacency, proven=False)
    return Releases(plan, make_generator(seed))


def sample(seed=0, n=200, d=6):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)).astype(np.float32).astype(float)
    return X, X @ rng.standard_normal(d)


def true_gradient_norm(task, theta, tilt):
    """With 120 decimal digits, from the stored float32 rows and float64 weights."""
    with localcontext() as context:
        context.prec = 120
        exact = [Decimal(float(h)) + Decimal(float(low)) for h, low in zip(*theta, strict=True)]
        away = zip(exact, task.centre, strict=True)
        gradient = [Decimal(task.ridge) * (t - Decimal(float(c))) for t, c in away]
        if tilt is not None:
            gradient = [g + Decimal(float(b)) for g, b in zip(gradient, tilt, strict=True)]
        part = task.rows.gathered
        for i, weight in enumerate(task.rows.weights):
            entries = [
                (int(part.indices[p]), Decimal(float(part.values[p])))
                for p in range(part.indptr[i], part.indptr[i + 1])
            ]
            if task.rows._constant > 0.0:
                entries.append((len(exact) - 1, Decimal(task.rows._constant)))
            margin = sum((x * exact[j] for j, x in entries), Decimal(0))
            y = Decimal(float(part.targets[i]))
            if task.loss.name == "logistic":
                limit = Decimal(10**4)
                slope = 1 / (1 + (-max(min(margin, limit), -limit)).exp()) - y
            else:
                cut = Decimal(task.slope_bound)
                slope = max(min(margin - y, cut), -cut)
            for j, x in entries:
                gradient[j] += Decimal(float(weight)) * slope * x
        return float(sum((g * g for g in gradient), Decimal(0)).sqrt())


@pytest.mark.parametrize("ridge_", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_gradient_norm_is_reached(ridge_, scale):
    X, margins = sample()
    tilt = scale * np.random.default_rng(1).standard_normal(X.shape[1])
    for loss, y in (("logistic", margins > 0), ("huber", np.clip(margins, -1, 1))):
        task = problem(
            X, y * 1, loss=loss, ridge=ridge_, cutoff=0.1, row_clip=1.0,
        )  # fmt: skip
        assert true_gradient_norm(task, ridge.minimise(task, tilt), tilt) <= 1e-6


def test_hard_cases_end():
    """Separable labels, empty rows, repeated rows, a single row, no rows: never an error."""
    X = np.zeros((5, 3))
    X[1] = 1.0
    for y in (np.zeros(5, int), np.array([0, 1, 0, 0, 1])):
        for part in (slice(0, 5), slice(0, 1), slice(0, 0)):
            task = problem(X[part], y[part], ridge=1e-4, tol=1e-7)
            assert true_gradient_norm(task, ridge.minimise(task), None) <= 1e-7


BIG, SMALL = 2.0**100, 2.0**-100
BOUNDARY = np.array([
    [0.0, -0.0, 0.0], [SMALL, -SMALL, SMALL], [BIG, -BIG, BIG], [BIG, BIG, -BIG], [BIG, SMALL, 1.0],
    [1.0 + 2.0**-25, 1.0 - 2.0**-26, 1.0], [1e-310, 5e-324, 1e-46], [1e300, -1e300, 1e300],
    [np.finfo(np.float32).max, np.finfo(np.float32).tiny, 2.0**-149], [0.1, 0.2, -0.3],
    [BIG * (1 - 2.0**-24), -BIG, 0.0],
])  # fmt: skip


@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("row_clip", [BIG, 1.0, 1e-20, SMALL])
@pytest.mark.parametrize("relative", [2.0**-20, 1e-3, 10.0])
@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_boundary_floats_reach_the_norm_and_answer_whole_numbers(
    loss, row_clip, relative, constant
):
    """Huge and vanishing entries, cancelling pairs, a clip of 2^-100 of a row: the true gradient
    (120 digits) is below tol, nothing raises, nothing is infinite."""
    y = np.arange(len(BOUNDARY)) % 2 if loss == "logistic" else np.linspace(-1, 1, len(BOUNDARY))
    longest = math.hypot(math.sqrt(3.0) * BIG, constant)
    curvature = get_loss(loss).smoothness * row_clip * longest
    task = problem(
        BOUNDARY, y, loss=loss, ridge=relative * curvature, tol=1e-6 * 0.25 * row_clip, cutoff=0.25,
        row_clip=row_clip, constant=constant, longest=longest * (1 + 1e-9),
    )  # fmt: skip
    for tilt in (None, row_clip * np.linspace(-3.0, 2.0, 3 + int(constant))):
        theta = ridge.minimise(task, tilt)
        assert true_gradient_norm(task, theta, tilt) <= task.tol
    unit = 1e-9 * task.minimiser().sensitivity("add-remove").value
    assert np.abs(task.minimiser().whole(unit)).max() < 2**60


def test_one_float64_would_not_hold_theta():
    """Why theta is a sum of two: a long tilt across cancelling entries, and no float64 is near enough."""
    clip = math.sqrt(2.0)
    facts = {"ridge": 2.0**-20 * 0.25 * clip**2, "tol": 1e-6 * clip, "row_clip": clip}
    task = problem(np.array([[1.0, -1.0]] * 9), np.arange(9) % 2, **facts)
    tilt = 2.0**24 * np.ones(2) + np.array([0.0, 1.7e-7])
    theta = ridge.minimise(task, tilt)
    assert true_gradient_norm(task, theta, tilt) <= task.tol / 2
    assert true_gradient_norm(task, (theta.high, np.zeros(2)), tilt) > task.tol


@pytest.mark.parametrize("where", ["tilt", "centre"])
def test_the_norm_is_reached_at_the_end_of_the_range_of_tilts_and_centres(where):
    """docs/proofs/ridge.md, Lemma 2: |tilt| or ridge |centre| of 2^25 gradients of a row."""
    longest = math.sqrt(3.0) * BIG
    facts = {
        "row_clip": 1.0,
        "ridge": 0.25 * 2.0**-20 * longest,
        "longest": longest * (1 + 1e-9),
    }
    end = ridge.FARTHEST * np.array([0.6, 0.8 * 0.6, -0.64])
    assert np.linalg.norm(end) == pytest.approx(ridge.FARTHEST)
    tilt = end if where == "tilt" else None
    centre = 1e9 * end / facts["ridge"] if where == "centre" else None
    task = problem(BOUNDARY, np.arange(len(BOUNDARY)) % 2, tol=1e-6, centre=centre, **facts)
    if where == "centre":  # released, so it may be moved back, and it is
        reach = facts["ridge"] * np.linalg.norm(task.centre)
        assert 0.999 * ridge.FARTHEST < reach <= ridge.FARTHEST * task.gradient_bound
        np.testing.assert_allclose(task.centre * facts["ridge"], end, rtol=1e-5)
    else:
        assert task.longest_tilt == ridge.FARTHEST * task.gradient_bound
    assert true_gradient_norm(task, ridge.minimise(task, tilt), tilt) <= task.tol


def test_a_centre_within_the_range_keeps_its_bits():
    centre = np.array([0.1, -3e5, 1e-30])
    task = problem(BOUNDARY, np.arange(len(BOUNDARY)) % 2, centre=centre, row_clip=1.0, ridge=7.0)
    np.testing.assert_array_equal(task.centre, centre)


def test_the_range_of_tilts_is_what_the_largest_table_leaves():
    """n + B <= 2^27 with B = n + FARTHEST, and no drawn whole number is above LARGEST_DRAW."""
    assert 2 * ridge.LARGEST_TABLE + ridge.FARTHEST <= 2**27
    assert LARGEST_DRAW == 16 * STEPS
    drawn = noise_integers(make_generator(0), 2**16)
    assert 4 * STEPS < np.abs(drawn).max() < LARGEST_DRAW


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("front", ["ridge", "two-stage"])
def test_a_tilt_beyond_the_range_is_refused_by_the_plan_and_by_the_door(front, adjacency):
    """The smallest epsilon of a plan keeps to the range: 16 sd of noise in every weight. Before, the check of the
    blur's grid stopped at about twice of it (replace-one), and nothing else did."""

    def plan(epsilon):
        if front == "ridge":
            domain = Domain(target_bound=1.0, n_samples=4000)
            model = DPRidgeRegressor(domain, epsilon=epsilon, delta=1e-12, adjacency=adjacency)
            return model.plan(3)
        domain = Domain(classes=[0, 1], row_norm=1.0, n_samples=4000)
        return DPTwoStageClassifier(
            domain, epsilon=epsilon, delta=1e-12, adjacency=adjacency, n_nonzero=3
        ).plan(30)

    low, high = 1e-6, 1.0
    while high / low > 1.05:
        middle = math.sqrt(low * high)
        try:
            (event,) = [p.event for p in plan(middle).phases if p.name == "fit"]
            high = middle
        except ParameterError:
            low = middle
    with pytest.raises(ParameterError, match="epsilon is too small"):
        plan(low)
    event = event.event if isinstance(event, Repeated) else event
    tilt, blur = event.events
    longest = LARGEST_DRAW / STEPS * math.sqrt(blur.size / 2) * tilt.scale
    assert 0.4 * ridge.FARTHEST < longest / tilt.gradient_bound <= ridge.FARTHEST
    X, margins = sample(n=20)
    task = problem(X, (margins > 0) * 1, ridge=5.0, row_clip=1.0, longest=10.0)
    scale = ridge.FARTHEST * STEPS / LARGEST_DRAW / math.sqrt(X.shape[1])
    for factor in (0.999, 1.001):
        door = releases(tilted_event(task, factor * scale, 1.0))
        if factor < 1.0:
            door.tilt("fit", task)
        else:
            with pytest.raises(CalibrationError, match="another objective"):
                door.tilt("fit", task)


def test_a_minimiser_is_rounded_to_the_nearest_multiple_of_its_grid():
    """Both float64s of it, in rational arithmetic: the price allows half a unit of an entry on either table."""
    rng = np.random.default_rng(0)
    for unit in (1.0, 2.0**-30, 0.1, 1e-9 / 3):
        high = np.concatenate([rng.uniform(-1, 1, 50) * 10.0**p for p in (-3, 0, 4, 7)])
        low = high * rng.uniform(-1, 1, high.size) * 2.0**-53
        high[::7] = unit * (np.arange(len(high[::7])) + 0.5)  # ties, but for what follows
        for a, b, found in zip(high, low, ridge._to_grid(high, low, unit), strict=True):
            exact = (Fraction(float(a)) + Fraction(float(b))) / Fraction(unit)
            assert abs(Fraction(int(found)) - exact) <= Fraction(1, 2) + Fraction(2) ** -40


@pytest.mark.parametrize("row_clip", [BIG, 1.5, 1e-20])
def test_row_weights_bound_the_gradient_exactly(row_clip):
    """weight^2 |f|^2 <= row_clip^2 in rational arithmetic, on the stored numbers."""
    rng = np.random.default_rng(0)
    for X in (BOUNDARY, rng.uniform(-1, 1, (40, 30)), rng.uniform(-1, 1, (3, 20_000))):
        rows = columns(X, np.zeros(len(X), int), row_clip=row_clip, constant=1.0)
        part = rows.gathered
        for i, weight in enumerate(rows.weights):
            values = part.values[part.indptr[i] : part.indptr[i + 1]]
            squares = 1 + sum(Fraction(float(v)) ** 2 for v in values)
            assert Fraction(float(weight)) ** 2 * squares <= Fraction(row_clip) ** 2
            expected = min(1.0, row_clip / math.sqrt(float(squares))) ** 2
            assert weight == pytest.approx(expected, rel=1e-10)


def test_a_row_beyond_the_declared_length_does_not_count():
    rows = columns(np.array([[3.0, 4.0], [0.3, 0.4]]), [0, 1], row_clip=1.0, longest=2.0)
    assert list(rows.weights) == pytest.approx([0.0, 1.0])


def test_only_the_support_is_densified():
    X = sp.random_array((50, 10_000), density=0.01, format="csr", rng=np.random.default_rng(0))
    rows = Rows.clip(X, np.zeros(50), Domain(target_bound=1.0))
    support = np.array([3, 70, 9000])
    table = rows.ridge(support, constant=1.0, row_clip=2.0, longest=9.0).table
    assert table.shape == (50, 4)
    np.testing.assert_allclose(table[:, :3], X.toarray()[:, support], rtol=1e-7)
    assert np.all(table[:, 3] == 1.0)


@pytest.mark.parametrize("loss", ["squared", "softmax"])
def test_losses_without_a_proof_are_refused(loss):
    with pytest.raises(ParameterError, match="bounded"):
        columns(np.ones((2, 1)), np.zeros(2, int)).problem(loss, ridge=1.0, tol=1e-6)


def test_squared_loss_has_no_slope_bound():
    """Why: with all targets in [-1, 1], one more row moves the ridge minimiser of the squared loss
    by more than slope * row_clip/ridge for the slope 1 that residuals of bounded targets suggest."""
    n, ridge_ = 10_000, 1.0
    rows = np.c_[np.full(n, 0.01), np.ones(n)]
    y = np.where(np.arange(n) % 2, 1.0, 0.97)
    y[:100] = -1.0
    solved = []
    for extra in ([], [[1.0, -1.0]]):
        A, t = np.vstack([rows, *extra]), np.append(y, [1.0] * len(extra))
        solved.append(np.linalg.solve(A.T @ A + ridge_ * np.eye(2), A.T @ t))
    reached = abs(np.array([1.0, -1.0]) @ solved[0] - 1.0)
    assert reached > 1.5  # the slope of the added row before it is added


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("size", [1.0, BIG / 8, 2.0**20 * SMALL])
def test_sensitivity_of_the_ridge_minimiser_is_attained(adjacency, size):
    """Rows with a nearly constant slope: the answer in whole numbers moves by 99 % of the bound, and
    beyond it only by its rounding. Entries of ordinary size, of 2^97 and of 2^-80."""
    cutoff, clip = 1e-4, 2.0 * size
    ridge_, d = 50.0 * clip**2, 3
    lemma = ridge_minimiser(cutoff, clip, 1.0, ridge_, adjacency, 1e-9 * cutoff * clip).value
    unit = lemma * 1e-7
    rng = np.random.default_rng(0)
    worst = 0.0
    for far in (1e-5, 1e-4, 0.1):
        base, targets = size * rng.uniform(-1, 1, (10, d)), 1e-4 * rng.uniform(-1, 1, 10)
        direction = rng.standard_normal(d)
        row = clip * direction / np.linalg.norm(direction) * (1 - 1e-6)
        if far == 0.1:  # the other rows are flat far from their targets too
            targets = np.ones(10)
        tables = [
            (np.vstack([base, row]), np.append(targets, far)),
            (base, targets)
            if adjacency == "add-remove"
            else (np.vstack([base, row]), np.append(targets, -far)),
        ]
        answers = []
        for X, y in tables:
            task = problem(
                X, y, loss="huber", ridge=ridge_, tol=1e-9 * cutoff * clip, cutoff=cutoff, row_clip=clip
            )  # fmt: skip
            query = task.minimiser()
            assert query.rounded
            assert query.sensitivity(adjacency).value == lemma
            answers.append(query.whole(unit))
        moved = float(np.linalg.norm((answers[0] - answers[1]).astype(float)))
        assert moved <= lemma / unit + math.sqrt(d)
        worst = max(worst, moved)
    assert worst >= 0.99 * lemma / unit


def test_parts_do_not_matter():
    X, margins = sample(n=50)
    thetas = [
        ridge.minimise(problem(X, (margins > 0) * 1, n_parts=parts, ridge=5.0))
        for parts in (1, 2, 7)
    ]
    for theta in thetas[1:]:
        np.testing.assert_array_equal(theta, thetas[0])


def test_sums_of_many_rows_keep_the_digits_of_each():
    """A quarter of a million equal contributions: what one word of 33 bits loses of each would pass the tolerance."""
    n, at = 2**18, 0.3
    x = float(np.float32(0.7))
    task = problem(np.full((n, 1), x), np.zeros(n, int), row_clip=1.0, tol=1e-6)
    found = task.evaluate(ridge.Precise(np.array([at]), np.zeros(1)))[0]
    with localcontext() as context:
        context.prec = 50
        slope = 1 / (1 + (-Decimal(x) * Decimal(at)).exp())
        true = n * slope * Decimal(x) + Decimal(at)
        assert abs(Decimal(float(found)) - true) < Decimal("1e-15") * n


@pytest.mark.parametrize("n_failures", [1, 2, math.inf])
def test_a_hessian_that_cannot_be_factored_is_no_exception(monkeypatch, n_failures):
    """Rounding of many rows may hide more than the first repair adds; whoever sees an exception knows of the rows."""
    X, margins = sample(n=20, d=3)
    task = problem(X, (margins > 0) * 1, ridge=5.0)
    factor, calls = ridge.cho_factor, []

    def fails(matrix, **options):
        calls.append(matrix)
        if len(calls) <= n_failures:
            raise ridge.LinAlgError
        return factor(matrix, **options)

    monkeypatch.setattr(ridge, "cho_factor", fails)
    assert ridge._norm(task.evaluate(ridge.minimise(task))) <= task.tol / 2
    assert calls


def test_a_point_without_numbers_has_no_gradient():
    """Margins that overflow must not look like a small gradient: not a number is cast to whole ones that cancel."""
    task = problem(np.full((2, 2), 2.0**90) * [[1, -1], [1, -1]], [0, 1])
    for far in (2.0**1000, np.inf, np.nan):
        assert np.isnan(task.evaluate(ridge.Precise(np.full(2, far), np.zeros(2)))).all()


def law_accepts(noise, scale, alpha=1e-6):
    total = float(np.sum((noise / scale) ** 2))
    low, high = chi2.ppf([alpha / 2, 1 - alpha / 2], noise.size)
    return low <= total <= high and kstest(noise / scale, "norm").pvalue > alpha


def test_output_noise_has_the_planned_law_and_lies_on_the_grid():
    X, margins = sample(n=20, d=40)
    query = problem(X, (margins > 0) * 1, ridge=5.0, tol=1e-9).minimiser()
    moved = query.sensitivity("add-remove").value
    clean = query.whole(1e-12) * 1e-12
    door = releases(Repeated(RoundedGaussian(0.3, moved, 40), 250))
    scale = moved / (moved / 0.3 - math.sqrt(40) / STEPS)  # the rounding is paid
    assert door.scale("fit", query, 1 / 250) == pytest.approx(scale, rel=1e-12)
    noisy = [door.gaussian("fit", query, 1 / 250) for _ in range(250)]
    for answer in noisy:
        np.testing.assert_array_equal(np.rint(answer / (scale / STEPS)) * (scale / STEPS), answer)
    noise = np.concatenate([answer - clean for answer in noisy])
    assert law_accepts(noise, 0.3)
    assert not law_accepts(noise, 1.05 * 0.3)
    assert not law_accepts(noise, 0.3 / 1.05)
    with pytest.raises(CalibrationError, match="more than it pays"):
        door.gaussian("fit", query, 1 / 250)


def tilted_event(task, scale, jitter, count=1, adjacency="add-remove"):
    width = task.rows.width
    away = tilted_minimiser(task.ridge, task.tol, width, scale / STEPS, adjacency).value
    ratio = away / jitter + math.sqrt(width) / STEPS
    tilt = ObjectivePerturbation(
        scale, task.gradient_bound, task.curvature, task.ridge, "one-sided", adjacency
    )
    blur = RoundedGaussian(jitter, ratio * jitter, 2 * width)
    return Repeated(Sequence((tilt, blur)), count)


def test_objective_noise_has_the_planned_law():
    """The tilt can be read off the released point: b = -(gradient of the rest), up to the blur."""
    X, margins = sample(n=20, d=40)
    task = problem(X, (margins > 0) * 1, ridge=5.0, tol=1e-9, longest=10.0)
    door = releases(tilted_event(task, 3.0, 1e-6, 250), seed=8)
    tilts = np.concatenate([-task.stationarity(door.tilt("fit", task))[0] for _ in range(250)])
    assert law_accepts(tilts, 3.0)
    assert not law_accepts(tilts, 1.05 * 3.0)
    assert not law_accepts(tilts, 3.0 / 1.05)
    with pytest.raises(CalibrationError, match="more than it pays"):
        door.tilt("fit", task)


def test_blur_is_added_on_its_grid():
    X, margins = sample(n=10, d=3000)
    task = problem(X, (margins > 0) * 1, ridge=5.0, tol=1e-8, longest=100.0)
    clean = task.minimiser().whole(1e-12) * 1e-12
    noisy = releases(tilted_event(task, 1e-6, 0.5), seed=1).tilt("fit", task)
    assert law_accepts(noisy - clean, 0.5)
    assert not law_accepts(noisy - clean, 0.5 * 1.15)
    np.testing.assert_allclose(np.rint(noisy / (0.5 / STEPS)) * (0.5 / STEPS), noisy, rtol=1e-12)


@pytest.mark.parametrize("change", [{"row_clip": 2.0}, {"ridge": 4.0}])
def test_a_tilt_pays_for_one_objective_only(change):
    X, margins = sample(n=20)
    facts = {"ridge": 5.0, "row_clip": 1.0, "longest": 10.0}
    event = tilted_event(problem(X, (margins > 0) * 1, **facts), 3.0, 1e-6)
    with pytest.raises(CalibrationError, match="another objective"):
        releases(event).tilt("fit", problem(X, (margins > 0) * 1, **{**facts, **change}))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_tilt_pays_for_slopes_and_neighbours_of_its_own_only(adjacency):
    """A larger cutoff of Huber's loss has longer gradients and the same curvature; a tilt for a row more or less is too
    small for a row that is replaced."""
    X, margins = sample(n=20)
    facts = {"loss": "huber", "ridge": 5.0, "row_clip": 1.0, "longest": 10.0}
    one, two = (problem(X, np.clip(margins, -1, 1), cutoff=c, **facts) for c in (1.0, 1.001))
    assert one.curvature == two.curvature
    tilt = ObjectivePerturbation(
        3.0, one.gradient_bound, one.curvature, one.ridge, "glm", adjacency
    )
    event = Sequence((tilt, RoundedGaussian(1.0, 1.0, 12)))
    releases(event, adjacency=adjacency).tilt("fit", one)
    with pytest.raises(CalibrationError, match="another objective"):
        releases(event, adjacency=adjacency).tilt("fit", two)
    other = "add-remove" if adjacency == "replace-one" else "replace-one"
    with pytest.raises(CalibrationError, match="another objective"):
        releases(event, adjacency=other).tilt("fit", one)


@pytest.mark.parametrize(
    ("event", "loss", "fits"),
    [
        ("one-sided", "logistic", True),
        ("glm", "logistic", True),
        ("one-sided", "huber", False),
        ("glm", "huber", True),
    ],
)
def test_a_tilt_pays_only_where_its_loss_is_proven(event, loss, fits):
    X, y = sample(n=20)
    domain = Domain(target_bound=1.0, classes=[0, 1])
    labels = CODES if loss == "logistic" else None
    targets = (y > 0).astype(int) if labels is not None else np.clip(y, -1.0, 1.0)
    rows = Rows.clip(X, targets, domain, labels=labels).ridge(
        None, constant=0.0, row_clip=1.0, longest=3.0
    )
    task = rows.problem(loss, ridge=4.0, tol=1e-6)
    tilt = ObjectivePerturbation(1.0, task.gradient_bound, task.curvature, 4.0, event)
    phase = Sequence((tilt, RoundedGaussian(1.0, 1.0, 12)))
    if fits:
        releases(phase).tilt("fit", task)
    else:
        with pytest.raises(CalibrationError, match="another objective"):
            releases(phase).tilt("fit", task)


def test_rounding_of_the_tilt_stays_below_what_the_blur_covers():
    """The minimisers under a real vector and under its rounding to `unit`, with a coarse unit."""
    X, margins = sample(n=50)
    task = problem(X, (margins > 0) * 1, ridge=0.5, tol=1e-10)
    rng = np.random.default_rng(0)
    unit, worst = 0.1, 0.0
    for _ in range(20):
        b = 3.0 * rng.standard_normal(6)
        exact, rounded = (ridge.minimise(task, t).high for t in (b, unit * np.rint(b / unit)))
        worst = max(worst, float(np.linalg.norm(exact - rounded)))
    bound = tilted_minimiser(0.5, 1e-10, 6, unit, "add-remove").value / 2
    assert 0.05 * bound < worst <= bound


def test_half_a_constant_is_seen():
    """With half of the lemma's slope the attained movement exceeds the bound: the tests above can fail."""
    row = np.array([[2.0, 0.0]])
    task = problem(row, [1.0], loss="huber", ridge=50.0, tol=1e-9, cutoff=0.5, row_clip=2.0)
    moved = np.linalg.norm(task.minimiser().whole(1e-9) * 1e-9)
    assert moved > ridge_minimiser(0.5 / 2, 2.0, 1.0, 50.0, "add-remove", 1e-9).value
    assert moved <= ridge_minimiser(0.5, 2.0, 1.0, 50.0, "add-remove", 1e-9).value * (1 + 1e-6)


def test_losses_agree_with_the_house():
    """Slope and curvature of the kernel are those of losses.py."""
    X, margins = sample()
    theta = np.linspace(-2, 2, 6)
    for name, loss, y in (
        ("logistic", Logistic(), (margins > 0) * 1),
        ("huber", Huber(0.3), np.clip(margins, -1, 1)),
    ):
        task = problem(X, y, loss=name, cutoff=0.3, ridge=0.7)
        at = ridge.Precise(theta, np.zeros(6))
        gradient, bend = task.evaluate(at), task._slopes_and_bends(theta)[1]
        weights = task.rows.weights
        expected = X.T @ (weights * loss.slope(X @ theta, y)) + 0.7 * theta
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-10)
        step = 1e-6
        slopes = [loss.slope(X @ theta + s, y) for s in (-step, step)]
        smooth = np.abs(np.abs(X @ theta - y) - 0.3) > 1e-5
        np.testing.assert_allclose(
            bend[smooth], (weights * (slopes[1] - slopes[0]) / (2 * step))[smooth], atol=1e-8
        )

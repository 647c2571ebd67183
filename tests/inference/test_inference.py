"""Private intervals and tests: contributions by brute force, replay, coverage, false discoveries, refusals.

Coverage and error rates are random; seeds are fixed, and the thresholds are five standard deviations away, so a
correct method fails one of them for fewer than one choice of seeds in a million.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from dpsparse import Domain, Ledger
from dpsparse.clipping import HUGE, TINY
from dpsparse.exceptions import BudgetError, DomainError, ParameterError, SchemaError
from dpsparse.inference import DPFeatureTest, dp_inference
from dpsparse.inference.feature_test import discoveries, statistic
from dpsparse.inference.intervals import inference_plan
from dpsparse.inference.newton import newton, shares
from dpsparse.privacy.guarantee import PERSON
from dpsparse.rows import Rows
from dpsparse.rows.moments import CURVATURE, SPREAD, matrix, squares, triangle
from recording import Recorder

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
DOMAIN = Domain(classes=[0, 1])
LABELS = np.array([0, 1])
R = 3.0


def units_of(X, y, constant=1.0, shortest=R):
    rows = Rows.clip(sp.csr_array(np.atleast_2d(X)), np.atleast_1d(y), DOMAIN, labels=LABELS)
    return rows.unit(np.ones(rows.n_features, np.float32), constant=constant, shortest=shortest)


def rows_to_try():
    """Directions, lengths, and boundary floats."""
    rng = np.random.default_rng(0)
    for x in np.vstack([np.eye(3), -np.eye(3), rng.standard_normal((12, 3)), np.ones((1, 3))]):
        for length in (1e-3, 1.0, 1e6):
            yield length * x
    for v in (0.0, 5e-324, 1e-310, TINY, 1.0 - 2.0**-53, HUGE, 1e300):
        yield np.full(3, v)
        yield np.array([v, -v, 0.0])


@pytest.mark.parametrize("unit", [1e-6, 0.003])
@pytest.mark.parametrize("kind", [CURVATURE, SPREAD])
def test_matrices_move_by_their_bound_and_attain_it(kind, unit):
    """Both adjacencies, on a fine grid and on one where truncation is felt."""
    answers, query = [], None
    for x, y in itertools.product(rows_to_try(), (0, 1)):
        for psi in (np.zeros(4), np.array([40.0, -1.0, 2.0, -60.0])):
            query = triangle(kind, units_of(x, y), psi)
            answers.append(query.whole(unit).astype(float) * unit)
    answers = np.unique(answers, axis=0)
    bound = {a: query.sensitivity(a).value for a in ("add-remove", "replace-one")}
    longest = np.linalg.norm(answers, axis=1).max()
    apart = max(np.linalg.norm(a - answers, axis=1).max() for a in answers)
    assert 0.97 * bound["add-remove"] < longest <= bound["add-remove"]
    assert 0.8 * bound["replace-one"] < apart <= bound["replace-one"]


def test_squares_move_by_their_bound_and_attain_it():
    unit = 1e-6
    answers = [
        squares(units_of(x, 0, 0.0, 0.0)).whole(unit).astype(float) * unit for x in rows_to_try()
    ]
    longest = max(np.linalg.norm(a) for a in answers)
    apart = max(np.linalg.norm(a - b) for a, b in itertools.combinations(answers, 2))
    assert 0.999 < longest <= 1.0
    assert 0.999 * math.sqrt(2.0) < apart <= math.sqrt(2.0)


def test_a_row_that_is_not_a_number_moves_nothing():
    for bad in (math.nan, math.inf, 1e308):
        query = triangle(SPREAD, units_of(np.ones(3), 1), np.full(4, bad))
        assert np.linalg.norm(query.whole(1e-6).astype(float)) * 1e-6 <= 1.0


def test_moments_are_those_of_a_dense_reference():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((50, 3)) * 2.0, rng.integers(0, 2, 50)
    f = np.column_stack([X, np.ones(50)])
    z = f / np.maximum(np.linalg.norm(f, axis=1, keepdims=True), R)
    psi = rng.standard_normal(4)
    p = expit(z @ psi)
    for kind, c in ((CURVATURE, p * (1 - p)), (SPREAD, (p - y) ** 2)):
        whole = triangle(kind, units_of(X, y), psi).whole(1e-9)
        np.testing.assert_allclose(matrix(whole * 1e-9), (z.T * c) @ z, atol=1e-3)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_replay_stays_below_the_price(adjacency):
    """All releases of both procedures on neighbouring tables, each given the answers of the other."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((60, 3)), rng.integers(0, 2, 60)
    options = {"epsilon": 2.0, "delta": 1e-6, "adjacency": adjacency}
    interval = inference_plan(3, DOMAIN, **options)
    test = DPFeatureTest(DOMAIN, **options).plan(3)
    worst = 0.0
    for x, label in ((np.full(3, 9.0), 1), (np.array([0.0, 0.0, -50.0]), 0), (np.zeros(3), 1)):
        one = np.vstack([X, x]), np.append(y, label)
        other = (X, y) if adjacency == "add-remove" else (np.vstack([X, -x]), np.append(y, label))
        for plan, run in (
            (interval, lambda t, r: newton(units_of(*t), np.zeros(4), 2, r)),
            (test, lambda t, r: statistic(Rows.clip(*t, DOMAIN, labels=LABELS), r)),
        ):
            for first, second in ((one, other), (other, one)):
                script = Recorder(plan, 0)
                run(first, script)
                tape = Recorder(plan, 0, script)
                run(second, tape)
                spent = math.sqrt(sum(ratio**2 for _, ratio in tape.ratios))
                assert spent <= plan.parameters["mu"] * (1 + 1e-9)
                worst = max(worst, spent / plan.parameters["mu"])
    assert worst > 0.5


def test_shares_fill_the_budget():
    for steps in (1, 2, 4):
        assert sum(shares(steps).values()) == pytest.approx(1.0)


# ---- coverage ------------------------------------------------------------------------------------

BETA = np.linspace(-1.0, 1.0, 5)


def sample(n, rng, misspecified=False):
    X = rng.standard_normal((n, 5))
    margin = X @ BETA - 0.5 + (0.3 * (X[:, 0] ** 2 - 1.0) if misspecified else 0.0)
    return X, (rng.random(n) < expit(margin)).astype(int), margin


def target(misspecified=False):
    """The population's minimiser on scaled rows, from 400,000 rows with exact probabilities."""
    X, _, margin = sample(400_000, np.random.default_rng(99), misspecified)
    f = np.column_stack([X, np.ones(len(X))])
    f *= np.minimum(1.0, R / np.linalg.norm(f, axis=1))[:, None]
    theta = np.zeros(6)
    for _ in range(20):
        p = expit(f @ theta)
        theta -= np.linalg.solve((f.T * (p * (1 - p))) @ f, f.T @ (p - expit(margin)))
    return theta


def coverage(n, epsilon, runs, truth, *, away=None, misspecified=False, **options):
    """Share of the weights that lie in their intervals, and the mean half width."""
    hits, width = 0, 0.0
    for k in range(runs):
        rng = np.random.default_rng(1000 + k)
        X, y, _ = sample(n, rng, misspecified)
        start = None if away is None else truth + away * np.array([1, -1, 1, -1, 1, -1])
        found = dp_inference(
            X,
            y,
            np.arange(5),
            DOMAIN,
            epsilon=epsilon,
            row_clip=R,
            start=start,
            random_state=k,
            **options,
        )
        hits += int(np.sum((found.low <= truth) & (truth <= found.high)))
        width += float(np.mean(found.high - found.low)) / 2.0
    return hits / (6 * runs), width / runs


def test_intervals_cover_and_one_step_does_not():
    """180 intervals, nearly independent: five standard deviations below 95 % is 87 %. One step from zero keeps a
    bias of many half widths: the counterexample."""
    truth = target()
    warm, width = coverage(20_000, 1.0, 30, truth, away=0.15)
    cold, _ = coverage(20_000, 1.0, 30, truth)
    one, _ = coverage(20_000, 1.0, 10, truth, n_steps=1)
    assert warm > 0.87
    assert cold > 0.87
    assert one < 0.75
    assert width < 0.06


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "epsilon", "misspecified"),
    [(5000, 1.0, False), (20_000, 1.0, False), (20_000, 0.3, False), (20_000, 1.0, True)],
)
@pytest.mark.parametrize("away", [None, 0.15])
def test_coverage_in_a_thousand_runs(n, epsilon, misspecified, away):
    """6,000 intervals at 95 %: at least 94 %, more than three standard deviations below nominal."""
    truth = target(misspecified)
    share, _ = coverage(n, epsilon, 1000, truth, away=away, misspecified=misspecified)
    assert share >= 0.94


# ---- false discoveries ---------------------------------------------------------------------------


def features(n, d, true, rng):
    X = (rng.random((n, d)) < 0.05).astype(float)
    beta = rng.choice([-1.0, 1.0], true) * rng.uniform(1.0, 2.0, true)
    y = (rng.random(n) < expit(X[:, :true] @ beta - 0.3)).astype(int)
    return sp.csr_array(X), y


def false_share(n, d, true, runs, **options):
    shares_, power, any_ = [], [], 0
    for k in range(runs):
        X, y = features(n, d, true, np.random.default_rng(k))
        found = DPFeatureTest(DOMAIN, random_state=k, **options).fit(X, y).support_
        shares_.append(np.sum(found >= true) / max(len(found), 1))
        power.append(np.sum(found < true) / max(true, 1))
        any_ += len(found) > 0
    return np.mean(shares_), np.mean(power), any_


def test_false_discoveries_are_few_and_true_ones_found():
    """Shares of false discoveries have sd below .12: the mean of 20 is below .1 + 5 * .12/sqrt(20) = .235."""
    wrong, power, _ = false_share(8000, 100, 10, 20)
    assert wrong < 0.235
    assert power > 0.9
    strict, _, _ = false_share(8000, 100, 10, 10, control="by")
    assert strict <= wrong + 0.05


def test_nothing_is_found_where_there_is_nothing():
    """Without effects any discovery is false: at most one fit in ten has one; of 40 more than 13 is 5 sigma."""
    assert false_share(3000, 50, 0, 40)[2] <= 13


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_false_discovery_rate_in_many_runs(epsilon):
    wrong, power, _ = false_share(20_000, 500, 20, 150, epsilon=epsilon)
    assert wrong <= 0.1
    assert power > 0.5


def test_control_by_hand():
    p = np.array([0.001, 0.04, 0.03, 0.9, 0.5])
    np.testing.assert_array_equal(discoveries(p, 0.1, "bh"), [0, 1, 2])
    np.testing.assert_array_equal(discoveries(p, 0.1, "by"), [0])
    assert len(discoveries(np.ones(4), 0.1, "bh")) == 0


# ---- the corridor --------------------------------------------------------------------------------

RNG = np.random.default_rng(5)
TABLE = RNG.standard_normal((200, 4))
Y = RNG.integers(0, 2, 200)


def test_results_say_what_they_cover_and_are_paid():
    ledger = Ledger(epsilon=1.5, delta=1e-5)
    domain = Domain(classes=[0, 1], row_norm=4.0)
    found = dp_inference(TABLE, Y, [0, 2], domain, epsilon=0.5, ledger=ledger)
    assert found.privacy_.proven
    assert found.feature == (0, 2, "intercept")
    assert np.all((found.low < found.estimate) & (found.estimate < found.high))
    assert "same rows" in found.covers
    assert found.covers in str(found)
    assert list(found.to_frame().columns) == ["estimate", "low", "high"]
    test = DPFeatureTest(domain, epsilon=0.5, ledger=ledger).fit(TABLE, Y)
    assert test.pvalues_.shape == (4,)
    assert "marginal" in test.covers_
    assert [entry.method for entry in ledger.history()] == ["dp_inference", "DPFeatureTest"]
    with pytest.raises(BudgetError):
        dp_inference(TABLE, Y, [0], domain, epsilon=3.0, ledger=ledger)


def test_without_noise_it_is_the_maximum_likelihood_estimate():
    from sklearn.linear_model import LogisticRegression

    found = dp_inference(TABLE, Y, np.arange(4), DOMAIN, epsilon=math.inf, row_clip=1e3, n_steps=8)
    plain = LogisticRegression(C=1e8, tol=1e-10, max_iter=1000).fit(TABLE, Y)
    expected = np.r_[plain.coef_[0], plain.intercept_]
    np.testing.assert_allclose(found.estimate, expected, atol=2e-4)
    assert not found.privacy_.proven


STATED = {
    "row_norm": (Domain(classes=[0, 1], row_norm=1e3), "length 1000"),
    "feature_bound": (Domain(classes=[0, 1], feature_bound=50.0), "entries to +-50"),
    "bounds": (
        Domain(classes=[0, 1], bounds=[(-9.0, 9.0), (-6.0, 50.0)] * 2),
        "their declared bounds",
    ),
}


@pytest.mark.parametrize("fact", STATED)
def test_a_bound_that_nobody_declared_clips_nothing(fact):
    """Entries of these rows reach 3; clipped to 1 they would have other weights, and covers would not say so."""
    domain, said = STATED[fact]
    exact = {"epsilon": math.inf, "n_steps": 9}
    found = dp_inference(TABLE, Y, [3, 0], domain, **exact)
    plain = dp_inference(TABLE, Y, [3, 0], DOMAIN, row_clip=1e3, **exact)
    np.testing.assert_allclose(found.estimate, plain.estimate, atol=1e-3)
    np.testing.assert_allclose(found.high, plain.high, atol=1e-3)
    assert said in found.covers
    narrow = replace(domain, row_norm=0.5) if fact == "row_norm" else None
    if narrow is not None:
        assert (
            np.abs(dp_inference(TABLE, Y, [3, 0], narrow, **exact).estimate - plain.estimate).max()
            > 0.05
        )


def test_bounds_by_column_are_used_and_a_start_is_in_the_units_of_the_columns():
    domain, _ = STATED["bounds"]
    plain = dp_inference(TABLE, Y, [3, 0], DOMAIN, row_clip=1e3, epsilon=math.inf, n_steps=9)
    again = dp_inference(
        TABLE, Y, [3, 0], domain, start=plain.estimate, epsilon=math.inf, n_steps=1
    )
    np.testing.assert_allclose(again.estimate, plain.estimate, atol=1e-3)
    huge = TABLE * 1e5  # far beyond the bounds: clipped, not refused
    assert np.isfinite(dp_inference(huge, Y, [3, 0], domain, epsilon=1.0).estimate).all()
    assert np.isfinite(DPFeatureTest(domain).fit(huge, Y).pvalues_).all()
    with pytest.raises(DomainError, match="4 pairs for 3 columns"):
        dp_inference(TABLE[:, :3], Y, [0], domain)


def test_the_length_of_rows_has_to_be_stated():
    with pytest.raises(ParameterError, match="State row_clip"):
        dp_inference(TABLE, Y, [0], Domain(classes=[0, 1]))


def test_columns_by_name_and_in_any_order():
    """Names of a data frame stand for column numbers, and the answer is in the order that was asked."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE, columns=list("abcd"))
    options = {"epsilon": 5.0, "row_clip": 3.0, "random_state": 1, "n_steps": 2}
    plain = dp_inference(TABLE, Y, [0, 2], DOMAIN, start=[0.1, 0.2, 0.3], **options)
    named = dp_inference(frame, Y, ["c", "a"], DOMAIN, start=[0.2, 0.1, 0.3], **options)
    assert named.feature == ("c", "a", "intercept")
    order = [1, 0, 2]
    np.testing.assert_array_equal(named.estimate, plain.estimate[order])
    np.testing.assert_array_equal(named.high, plain.high[order])
    np.testing.assert_array_equal(named.covariance, plain.covariance[np.ix_(order, order)])
    with pytest.raises(ParameterError, match="no such column"):
        dp_inference(frame, Y, ["a", "age"], DOMAIN, row_clip=3.0)


def test_the_feature_test_is_a_selector():
    pandas = pytest.importorskip("pandas")
    X, y = features(8000, 6, 2, np.random.default_rng(0))
    frame = pandas.DataFrame(X.toarray(), columns=list("abcdef"))
    test = DPFeatureTest(DOMAIN, q=0.01, epsilon=5.0, random_state=0).fit(frame, y)
    assert set(test.get_feature_names_out()) >= {"a", "b"}
    assert test.transform(frame).shape == (8000, len(test.support_))
    assert not hasattr(test.fit(X, y), "feature_names_in_")


def test_persons_by_one_random_row():
    domain = Domain(classes=[0, 1], row_norm=4.0, unit="person", rows_per_unit=1)
    groups = np.arange(200) // 2
    assert dp_inference(TABLE, Y, [0], domain, groups=groups).privacy_.unit == PERSON
    assert DPFeatureTest(domain).fit(TABLE, Y, groups=groups).privacy_.unit == PERSON
    ledger = Ledger(epsilon=5.0, delta=1e-5)  # of rows
    with pytest.raises(BudgetError, match="neither implies the other"):
        dp_inference(TABLE, Y, [0], domain, groups=groups, ledger=ledger)
    with pytest.raises(BudgetError, match="neither implies the other"):
        DPFeatureTest(domain, ledger=ledger).fit(TABLE, Y, groups=groups)
    assert ledger.history() == []


BAD = [
    ({"support": []}, ParameterError, "column numbers"),
    ({"support": np.arange(80)}, ParameterError, "between 1 and"),
    ({"support": [0, 0]}, ParameterError, "once"),
    ({"support": [9]}, ParameterError, "column 9"),
    ({"support": ["a"]}, ParameterError, "column numbers"),
    ({"start": [0.0]}, ParameterError, "start"),
    ({"start": [0.0, math.nan]}, ParameterError, "start"),
    ({"start": "zero"}, ParameterError, "start"),
    ({"X": TABLE[:0], "y": Y[:0]}, SchemaError, "no rows"),
    ({"y": Y[:-1]}, SchemaError, "different numbers"),
    ({"level": 1.0}, ParameterError, "level"),
    ({"epsilon": 0.0}, ParameterError, "epsilon"),
    ({"delta": 0.0}, ParameterError, "delta"),
    ({"adjacency": "rows"}, ParameterError, "adjacency"),
    ({"domain": DOMAIN}, ParameterError, "row_clip"),
    ({"domain": None}, ParameterError, "domain"),
    ({"domain": Domain(classes=[0, 1, 2])}, ParameterError, "two classes"),
    ({"domain": Domain(classes="observed")}, DomainError, "labels"),
    ({"domain": Domain(classes=[0, 1], unit="person")}, ParameterError, "rows_per_unit=1"),
    ({"groups": Y}, ParameterError, "groups"),
    ({"y": Y + 7}, SchemaError, "label"),
    ({"X": TABLE * np.nan}, SchemaError, "NaN"),
    ({"n_steps": 0}, ParameterError, "n_steps"),
]


@pytest.mark.parametrize(("change", "error", "text"), BAD, ids=lambda v: str(v)[:24])
def test_bad_input_costs_nothing(change, error, text):
    ledger = Ledger(epsilon=9.0, delta=1e-5)
    domain = Domain(classes=[0, 1], row_norm=4.0)
    call = {"X": TABLE, "y": Y, "support": [0], "domain": domain, "ledger": ledger} | change
    with pytest.raises(error, match=text) as caught:
        dp_inference(**call)
    assert "\n" not in str(caught.value)
    assert ledger.history() == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"q": 0.0}, "q"),
        ({"q": 1.0}, "q"),
        ({"control": "none"}, "control"),
        ({"domain": None}, "domain"),
    ],
)
def test_bad_tests_are_refused(change, text):
    with pytest.raises(ParameterError, match=text):
        DPFeatureTest(**({"domain": DOMAIN} | change)).fit(TABLE, Y)

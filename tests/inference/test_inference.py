"""Private intervals and tests: contributions by brute force, replay, coverage, false discoveries, refusals.

Coverage and error rates are random; seeds are fixed, and the thresholds are five standard deviations away, so a
correct method fails one of them for fewer than one choice of seeds in a million.
"""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit

from dpsparse import Domain, Ledger
from dpsparse.accounting.guarantee import PERSON
from dpsparse.audit.replay import check_subject
from dpsparse.audit.subject import Subject
from dpsparse.domain.clipping import HUGE, TINY
from dpsparse.exceptions import BudgetError, DomainError, ParameterError, SchemaError
from dpsparse.inference import DPFeatureTest, dp_inference
from dpsparse.inference.feature_test import discoveries
from dpsparse.inference.intervals import INTERVAL_SHARES
from dpsparse.rows import Rows, moments
from dpsparse.rows.moments import matrix

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
DOMAIN = Domain(classes=[0, 1])
LABELS = np.array([0, 1])
R = 3.0
TO = np.array(
    [[1.0, 0.5, 0.0, 0.1], [0.0, 2.0, 0.0, 0.0], [0.0, -1.0, 1.0, 3.0], [0.0, 0.0, 0.0, 1.0]]
)
AT = np.array([0.3, -1.0, 0.5, -0.2])


def rows_of(X, y, domain=DOMAIN, groups=None):
    return Rows.clip(
        sp.csr_array(np.atleast_2d(X)), np.atleast_1d(y), domain, labels=LABELS, groups=groups
    )


QUERIES = {
    "moments": lambda rows, at: moments.products(rows, TO, 5.0),
    "labelled": lambda rows, at: moments.products(rows, TO, 5.0, labelled=True),
    "gradient": lambda rows, at: moments.gradient(rows, TO, at, R),
    "curvature": lambda rows, at: moments.curvature(rows, TO, at, 0.5),
    "spread": lambda rows, at: moments.spread(rows, TO, at, R * R),
}


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
@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("persons", [False, True])
def test_a_unit_moves_a_query_by_its_bound_and_attains_it(kind, unit, persons):
    """Both adjacencies, on a fine grid and on one where truncation is felt; a person has one to seven rows."""
    domain = Domain(classes=[0, 1], unit="person") if persons else DOMAIN
    answers, query = [], None
    for k, (x, y) in enumerate(itertools.product(rows_to_try(), (0, 1))):
        m = 1 + k % 7 if persons else 1
        X = np.tile(x, (m, 1)) * np.where(np.arange(m) % 3 == 2, 0.5, 1.0)[:, None]
        rows = rows_of(X, np.full(m, y), domain, np.zeros(m) if persons else None)
        for at in (
            np.zeros(4),
            AT,
            np.array([40.0, -1.0, 2.0, -60.0]),
            np.array([-1e5, 3e4, 1.0, 0.0]),
        ):
            query = QUERIES[kind](rows, at)
            answers.append(query.whole(unit).astype(float) * unit)
    answers = np.unique(answers, axis=0)
    bound = {a: query.sensitivity(a).value for a in ("add-remove", "replace-one")}
    longest = np.linalg.norm(answers, axis=1).max()
    apart = max(np.linalg.norm(a - answers, axis=1).max() for a in answers)
    assert 0.95 * bound["add-remove"] < longest <= bound["add-remove"]
    assert 0.75 * bound["replace-one"] < apart <= bound["replace-one"]


def test_squares_move_by_their_bound_and_attain_it():
    unit = 1e-6
    answers = [
        rows_of(x, 0).unit(np.ones(3, np.float32)).squares().whole(unit).astype(float) * unit
        for x in rows_to_try()
    ]
    longest = max(np.linalg.norm(a) for a in answers)
    apart = max(np.linalg.norm(a - b) for a, b in itertools.combinations(answers, 2))
    assert 0.999 < longest <= 1.0
    assert 0.999 * math.sqrt(2.0) < apart <= math.sqrt(2.0)


@pytest.mark.parametrize("kind", QUERIES)
def test_weights_that_are_no_numbers_move_nothing_beyond_the_bound(kind):
    for bad in (math.nan, math.inf, 1e308):
        query = QUERIES[kind](rows_of(np.ones(3), 1), np.full(4, bad))
        moved = np.linalg.norm(query.whole(1e-6).astype(float)) * 1e-6
        assert moved <= query.sensitivity("add-remove").value


@pytest.mark.parametrize("persons", [False, True])
def test_queries_are_those_of_a_dense_reference(persons):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((50, 3)) * 2.0, rng.integers(0, 2, 50)
    whose = np.sort(rng.integers(0, 20, 50)) if persons else np.arange(50)
    domain = Domain(classes=[0, 1], unit="person") if persons else DOMAIN
    rows = rows_of(X, y, domain, whose if persons else None)
    v = np.column_stack([X, np.ones(50)]) @ TO.T
    z = np.column_stack([v, 2 * y - 1])
    p = expit(v @ AT)

    def mean_by_unit(values):
        units = np.unique(whose)
        return np.array([values[whose == u].mean(axis=0) for u in units])

    def outer(vectors, c, bound):
        c = np.minimum(c, bound / np.sum(vectors**2, axis=1))
        return mean_by_unit(c[:, None, None] * vectors[:, :, None] * vectors[:, None, :]).sum(
            axis=0
        )

    slopes = mean_by_unit(v * (p - y)[:, None])
    slopes *= np.minimum(1.0, R / np.linalg.norm(slopes, axis=1))[:, None]
    expected = {
        "moments": outer(v, np.ones(50), 5.0),
        "labelled": outer(z, np.ones(50), 5.0),
        "gradient": slopes.sum(axis=0),
        "curvature": outer(v, p * (1 - p), 0.5),
        "spread": slopes.T @ slopes,
    }
    for kind, make in QUERIES.items():
        answer = make(rows, AT).whole(1e-9) * 1e-9
        answer = answer if kind == "gradient" else matrix(answer)
        np.testing.assert_allclose(answer, expected[kind], atol=1e-4)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("what", ["intervals", "feature test"])
def test_replay_finds_nothing(what, adjacency):
    """Every phase of both procedures moves by what it pays for, and by half of that at least."""
    domain = Domain(classes=[0, 1], feature_bound=2.0)
    terms = {"epsilon": 2.0, "adjacency": adjacency}
    subject = Subject(DPFeatureTest(domain, **terms), 3)
    if what == "intervals":
        subject = Subject(
            subject.estimator, 3, run=lambda X, y: dp_inference(X, y, [0, 2], domain, **terms)
        )
    finding = check_subject(subject, n_rows=60, n_climbs=4, every=40)
    assert finding.complaints == ()
    assert set(finding.tightness) == {phase.name for phase in subject.plan.phases}
    assert min(finding.tightness.values()) > (0.75 if adjacency == "add-remove" else 0.5)


def test_shares_fill_the_budget():
    assert sum(INTERVAL_SHARES.values()) == pytest.approx(1.0)


# ---- coverage ------------------------------------------------------------------------------------

BOUNDS = {"year": (1900.0, 2020.0), "size": (0.0, 60.0), "flag": (0.0, 1.0)}


def population(n=40_000):
    """Columns far from zero, of unequal scales, one of them skewed and two correlated; the model is not logistic."""
    rng = np.random.default_rng(3)
    flag = (rng.random(n) < 0.3).astype(float)
    year = np.clip(rng.normal(1985.0 + 4.0 * flag, 8.0), 1900.0, 2020.0)
    size = np.clip(rng.gamma(4.0, 3.0, n), 0.0, 60.0)
    margin = 0.05 * (year - 1985.0) - 0.1 * (size - 12.0) + 0.8 * flag + 0.003 * (size - 12.0) ** 2
    return np.column_stack([year, size, flag]), (rng.random(n) < expit(margin)).astype(int)


def plain_estimate(X, y):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler, model = make_pipeline(
        StandardScaler(), LogisticRegression(C=1e8, tol=1e-10, max_iter=500)
    ).fit(X, y)
    weights = model.coef_[0] / scaler.scale_
    return np.append(weights, model.intercept_[0] - weights @ scaler.mean_)


def coverage(n, epsilon, runs, *, persons=1):
    """Share of the weights that lie in their intervals, weight by weight, the mean half width, and the share given."""
    X, y = population()
    truth = plain_estimate(X, y)
    facts = {"unit": "person"} if persons > 1 else {}
    domain = Domain(classes=[0, 1], bounds=tuple(BOUNDS.values()), **facts)
    hits, width, given = np.zeros(4), np.zeros(4), 0
    for k in range(runs):
        drawn = np.random.default_rng(1000 + k).integers(0, len(X), n)
        rows = np.repeat(drawn, persons)  # every person has the same row several times
        groups = np.repeat(np.arange(n), persons) if persons > 1 else None
        found = dp_inference(
            X[rows], y[rows], [0, 1, 2], domain, epsilon=epsilon, random_state=k, groups=groups
        )
        if not found.missing:
            given += 1
            hits += (found.low <= truth) & (truth <= found.high)
            width += (found.high - found.low) / 2.0
    return hits / given, width / given, given / runs


@pytest.mark.heavy
@pytest.mark.parametrize("persons", [1, 3])
def test_intervals_of_uncentred_columns_cover(persons):
    """Of 40 intervals of a weight fewer than 31 are right with a probability below 1e-4 if each is with .95."""
    share, width, given = coverage(8000, 1.0, 40, persons=persons)
    assert share.min() >= 31 / 40
    assert given > 0.9
    assert width[0] < 0.02  # without noise .0066


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(4000, 1.0), (8000, 0.5), (8000, 3.0), (40_000, 1.0)])
def test_coverage_in_a_thousand_runs(n, epsilon):
    """At 95 % fewer than 93 % of a thousand have a probability of .002."""
    assert coverage(n, epsilon, 1000)[0].min() >= 0.93


def test_where_noise_hides_the_answer_no_interval_is_given():
    X, y = population(400)
    domain = Domain(
        classes=[0, 1], bounds=tuple((low, 1e4 + high) for low, high in BOUNDS.values())
    )
    found = dp_inference(X, y, [0, 1, 2], domain, epsilon=1.0)
    assert np.all(np.isinf(found.low) & np.isinf(found.high))
    assert "No interval is given" in found.covers
    assert found.missing in str(found)
    assert "closer bounds" in found.missing


def test_equal_columns_get_no_interval():
    """Their weights are not determined; a noisy matrix of second moments does not hide that."""
    X, y = population(20_000)
    domain = Domain(classes=[0, 1], bounds=((1900.0, 2020.0), (1900.0, 2020.0)))
    twice = np.column_stack([X[:, 0], X[:, 0]])
    given = [
        not dp_inference(twice, y, [0, 1], domain, epsilon=1.0, random_state=k).missing
        for k in range(20)
    ]
    assert sum(given) <= 2


def test_behind_a_pipeline():
    from dpsparse import DPGradientClassifier
    from dpsparse.preprocessing import DPPipeline, DPStandardizer

    X, y = population(20_000)
    model = DPGradientClassifier(Domain(classes=[0, 1]))
    pipe = DPPipeline(
        [("scale", DPStandardizer()), ("model", model)], epsilon=3.0, random_state=0
    ).fit(X, y)
    found = dp_inference(
        X, y, list(pipe.get_feature_names_out()), pipeline=pipe, epsilon=3.0, random_state=0
    )
    truth = plain_estimate(pipe.transform(X), y)
    assert np.all(np.abs(found.estimate - truth) < 2.0 * (found.high - found.low) / 2.0)
    assert found.feature[:-1] == tuple(pipe.get_feature_names_out())
    with pytest.raises(ParameterError, match="comes from the pipeline"):
        dp_inference(X, y, [0], model.domain, pipeline=pipe)


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
    assert found.covers in str(found)
    test = DPFeatureTest(domain, epsilon=0.5, ledger=ledger).fit(TABLE, Y)
    assert test.pvalues_.shape == (4,)
    assert "marginal" in test.covers_
    assert [entry.method for entry in ledger.history()] == ["dp_inference", "DPFeatureTest"]
    with pytest.raises(BudgetError):
        dp_inference(TABLE, Y, [0], domain, epsilon=3.0, ledger=ledger)


def test_results_name_the_label_and_have_odds_ratios():
    X, y = population(20_000)
    labels = np.array(["ill", "well"])
    domain = Domain(classes=["ill", "well"], bounds=tuple(BOUNDS.values()))
    found = dp_inference(X, labels[y], [0, 1, 2], domain, epsilon=3.0)
    assert np.all((found.low < found.estimate) & (found.estimate < found.high))
    assert "same rows" in found.covers
    assert "Positive weights speak for: well." in str(found)
    ratio, low, high = found.odds_ratios
    np.testing.assert_allclose(np.log(ratio[:-1]), found.estimate[:-1])
    assert np.all((low < ratio) & (ratio < high) | np.isnan(ratio))
    frame = found.to_frame()
    assert list(frame.columns) == ["estimate", "low", "high", "odds_ratio", "odds_low", "odds_high"]


def test_without_noise_it_is_the_maximum_likelihood_estimate():
    X, y = population()
    domain = Domain(classes=[0, 1], bounds=tuple(BOUNDS.values()))
    found = dp_inference(X, y, [0, 1, 2], domain, epsilon=math.inf)
    truth = plain_estimate(X, y)
    assert np.all(np.abs(found.estimate - truth) < 0.01 * (found.high - found.low))
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
def test_bounds_clip_what_they_say_and_nothing_else(fact):
    domain, said = STATED[fact]
    found = dp_inference(TABLE, Y, [3, 0], domain, epsilon=math.inf)
    plain = plain_estimate(TABLE[:, [3, 0]], Y)
    np.testing.assert_allclose(found.estimate, plain, atol=1e-3)
    assert said in found.covers


def test_bounds_by_column():
    domain, _ = STATED["bounds"]
    huge = TABLE * 1e5  # far beyond the bounds: clipped, not refused
    assert np.isfinite(dp_inference(huge, Y, [3, 0], domain, epsilon=1.0).estimate).all()
    assert np.isfinite(DPFeatureTest(domain).fit(huge, Y).pvalues_).all()
    with pytest.raises(DomainError, match="4 pairs for 3 columns"):
        dp_inference(TABLE[:, :3], Y, [0], domain)


def test_columns_by_name_and_in_any_order():
    """Names of a data frame stand for column numbers, and the answer is in the order that was asked."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE, columns=list("abcd"))
    domain, _ = STATED["bounds"]
    plain = dp_inference(TABLE, Y, [0, 3], domain, epsilon=math.inf)
    named = dp_inference(frame, Y, ["d", "a"], domain, epsilon=math.inf)
    assert named.feature == ("d", "a", "intercept")
    order = [1, 0, 2]
    np.testing.assert_allclose(named.estimate, plain.estimate[order], atol=1e-4)
    np.testing.assert_allclose(named.high, plain.high[order], atol=1e-4)
    with pytest.raises(ParameterError, match="no such column"):
        dp_inference(frame, Y, ["a", "age"], domain)


def test_the_feature_test_is_a_selector():
    pandas = pytest.importorskip("pandas")
    X, y = features(8000, 6, 2, np.random.default_rng(0))
    frame = pandas.DataFrame(X.toarray(), columns=list("abcdef"))
    test = DPFeatureTest(DOMAIN, q=0.01, epsilon=5.0, random_state=0).fit(frame, y)
    assert set(test.get_feature_names_out()) >= {"a", "b"}
    assert test.transform(frame).shape == (8000, len(test.support_))
    assert not hasattr(test.fit(X, y), "feature_names_in_")


@pytest.mark.parametrize("rows_per_unit", [1, 2, None])
def test_persons(rows_per_unit):
    domain = Domain(classes=[0, 1], row_norm=4.0, unit="person", rows_per_unit=rows_per_unit)
    groups = np.arange(200) // 2
    assert dp_inference(TABLE, Y, [0], domain, groups=groups).privacy_.unit == PERSON
    ledger = Ledger(epsilon=5.0, delta=1e-5)  # of rows
    with pytest.raises(BudgetError, match="neither implies the other"):
        dp_inference(TABLE, Y, [0], domain, groups=groups, ledger=ledger)
    if rows_per_unit != 1:
        with pytest.raises(ParameterError, match="rows_per_unit=1"):
            DPFeatureTest(domain).fit(TABLE, Y, groups=groups)
        return
    assert DPFeatureTest(domain).fit(TABLE, Y, groups=groups).privacy_.unit == PERSON
    with pytest.raises(BudgetError, match="neither implies the other"):
        DPFeatureTest(domain, ledger=ledger).fit(TABLE, Y, groups=groups)
    assert ledger.history() == []


BAD = [
    ({"support": []}, ParameterError, "column numbers"),
    ({"support": np.arange(80)}, ParameterError, "between 1 and"),
    ({"support": [0, 0]}, ParameterError, "once"),
    ({"support": [9]}, ParameterError, "column 9"),
    ({"support": ["a"]}, ParameterError, "column numbers"),
    ({"X": TABLE[:0], "y": Y[:0]}, SchemaError, "no rows"),
    ({"y": Y[:-1]}, SchemaError, "different numbers"),
    ({"level": 1.0}, ParameterError, "level"),
    ({"epsilon": 0.0}, ParameterError, "epsilon"),
    ({"delta": 0.0}, ParameterError, "delta"),
    ({"adjacency": "rows"}, ParameterError, "adjacency"),
    ({"domain": DOMAIN}, ParameterError, "how large"),
    ({"domain": None}, ParameterError, "domain"),
    ({"domain": Domain(classes=[0, 1, 2])}, ParameterError, "two classes"),
    ({"domain": Domain(classes="observed")}, DomainError, "labels"),
    ({"domain": Domain(classes=[0, 1], row_norm=4.0, unit="person")}, ParameterError, "groups"),
    ({"groups": Y}, ParameterError, "groups"),
    ({"y": Y + 7}, SchemaError, "label"),
    ({"X": TABLE * np.nan}, SchemaError, "NaN"),
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


def test_a_regression_is_told_that_there_are_no_intervals_for_it():
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    with pytest.raises(ParameterError, match="no version for regression"):
        dp_inference(np.eye(3), np.ones(3), [0], Domain(target_range=(0, 60)), ledger=ledger)
    assert ledger.spent() == 0.0


def test_a_raw_name_in_a_support_shows_the_columns_that_were_made_of_it():
    frame = pd.DataFrame(np.eye(3), columns=["age", "sex = f", "sex = m"])
    domain = Domain(classes=[0, 1], feature_bound=1.0)
    with pytest.raises(ParameterError, match=r"names 'sex', .* are 'sex = f', 'sex = m'"):
        dp_inference(frame, [0, 1, 0], ["age", "sex"], domain)

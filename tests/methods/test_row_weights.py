"""Weights of rows: private, bounded by a public maximum (docs/proofs/weights.md)."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import AdaBoostClassifier
from sklearn.utils.validation import has_fit_parameter

import dpsparse.domain.domain
from complaints import check, first_complaint
from dpsparse import (
    Domain,
    DPFeatureTest,
    DPGradientClassifier,
    DPGradientRegressor,
    DPHardThresholdClassifier,
    DPLassoClassifier,
    DPPipeline,
    DPRidgeRegressor,
    DPSearchCV,
    DPSparseClassifier,
    DPSparseRegressor,
    DPStandardizer,
    Rows,
    dp_evaluate,
    load,
    methods,
    save,
)
from dpsparse.audit.replay import boundary_findings, worst_of
from dpsparse.audit.subject import Subject
from dpsparse.domain.clipping import TINY
from dpsparse.exceptions import DomainError, ParameterError, SchemaError
from dpsparse.rows.histogram import ScoredLabels, ScoredNumbers
from dpsparse.rows.moments import products
from dpsparse.rows.unit import UnitRows

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")

N, W = 400, 3.0
RNG = np.random.default_rng(3)
X = RNG.normal(size=(N, 5))
TWO = (X[:, 0] + 0.5 * RNG.normal(size=N) > 0).astype(int)
THREE = np.digitize(X[:, 0], [-0.4, 0.6])
NUMBER = np.clip(X[:, 0] - X[:, 1] + 0.2 * RNG.normal(size=N), -4.0, 4.0)
WHOLE = RNG.integers(0, 4, N).astype(float)
GROUPS = np.arange(N) // 3
TAKERS = {
    "DPGradientClassifier", "DPGradientRegressor", "DPRidgeRegressor", "DPSparseClassifier", "DPSparseRegressor",
}  # fmt: skip
NUMBERS = Domain(target_bound=4.0, weight_bound=W)
RIDGE = Domain(target_bound=4.0, n_samples=N, feature_bound=4.0, weight_bound=W)
CASES = {
    "two": (DPGradientClassifier(Domain(classes=[0, 1], weight_bound=W)), TWO, None),
    "three": (DPGradientClassifier(Domain(classes=[0, 1, 2], weight_bound=W)), THREE, None),
    "persons": (
        DPGradientClassifier(Domain(classes=[0, 1], weight_bound=W, unit="person")), TWO, GROUPS,
    ),
    "numbers": (DPGradientRegressor(NUMBERS), NUMBER, None),
    "person numbers": (DPGradientRegressor(replace(NUMBERS, unit="person")), NUMBER, GROUPS),
    "ridge": (DPRidgeRegressor(RIDGE), NUMBER, None),
    "front": (DPSparseRegressor(RIDGE), NUMBER, None),
}  # fmt: skip


def fit(case, rows=slice(None), weights=None, **changes):
    model, y, groups = CASES[case]
    made = type(model)(**{**model.get_params(deep=False), "random_state": 0, **changes})
    some = None if groups is None else groups[rows]
    return made.fit(X[rows], y[rows], sample_weight=weights, groups=some)


def same(a, b):
    return np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_)


# ---- what weights mean ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_rows_of_the_largest_weight_are_rows_without_weights(case):
    weighted = fit(case, weights=np.full(N, W))
    assert same(weighted, fit(case))
    domain = CASES[case][0].domain
    if (
        domain.n_samples is None
    ):  # else the declared number of rows is used where there are no weights
        assert same(weighted, fit(case, domain=replace(domain, weight_bound=None)))


def test_the_declared_way_of_ridge_needs_no_number_of_rows():
    domain = Domain(target_bound=4.0, n_samples=40, feature_bound=4.0, weight_bound=W)
    plain = fit("ridge", domain=replace(domain, weight_bound=None))
    assert plain.plan_.parameters["way"] == "declared"
    assert same(fit("ridge", weights=np.full(N, W), domain=domain), plain)


@pytest.mark.parametrize("case", [case for case in CASES if "person" not in case])
def test_whole_weights_are_repeated_rows_where_there_is_no_noise(case):
    again = np.repeat(np.arange(N), WHOLE.astype(int))
    weighted = fit(case, weights=WHOLE, epsilon=math.inf)
    repeated = fit(case, again, np.ones(len(again)), epsilon=math.inf)
    size = np.abs(repeated.coef_).max()
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6 * size)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-6 * size)


@pytest.mark.parametrize("case", [case for case in CASES if "person" not in case])
def test_a_row_of_weight_zero_is_no_row(case):
    kept = np.flatnonzero(WHOLE > 0.0)
    assert same(
        fit(case, weights=np.where(WHOLE > 0.0, W, 0.0)), fit(case, kept, np.full(len(kept), W))
    )


@pytest.mark.parametrize("case", ["two", "three", "numbers", "ridge", "persons"])
def test_weights_beyond_the_domain_are_clipped_in_silence(case):
    inside = np.where(WHOLE == 0.0, 0.0, np.where(WHOLE == 1.0, 1.0, W))
    beyond = np.where(WHOLE == 0.0, -7.0, np.where(WHOLE == 1.0, 1.0, 1e300))
    assert same(fit(case, weights=beyond), fit(case, weights=inside))


def test_weights_and_their_bound_have_no_unit():
    small = replace(CASES["two"][0].domain, weight_bound=W / 1024)
    assert same(fit("two", weights=WHOLE / 1024, domain=small), fit("two", weights=WHOLE))


def test_weights_are_used():
    """Rows of one half say the opposite and weigh a tenth."""
    half = np.arange(N) < N // 2
    y = np.where(half, TWO, 1 - TWO)
    model = DPGradientClassifier(Domain(classes=[0, 1], weight_bound=1.0), epsilon=math.inf)
    model.fit(X, y, sample_weight=np.where(half, 1.0, 0.1))
    assert model.score(X[half], TWO[half]) > 0.8


def test_the_front_chooses_among_methods_that_take_weights():
    wide = Domain(target_bound=1.0, n_samples=100_000, weight_bound=1.0)
    chosen = {
        DPSparseRegressor(domain, epsilon=epsilon, n_nonzero=k).plan(d).parameters["chosen"]
        for domain in (wide, replace(wide, n_samples=None))
        for epsilon in (0.01, 1.0, math.inf)
        for k in (None, 2, 50)
        for d in (3, 100, 20_000)
    }
    assert chosen == {"DPRidgeRegressor", "DPGradientRegressor"}
    few = DPGradientRegressor(Domain(target_bound=1.0, n_samples=20, weight_bound=1.0)).plan(3)
    assert "way" not in few.parameters  # the mean alone has no sum of weights


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("case", ["two", "three", "numbers"])
def test_an_evaluation_counts_repeated_rows(case, adjacency):
    model, y, _ = CASES[case]
    model = fit(case)
    again = np.repeat(np.arange(N), WHOLE.astype(int))
    terms = {"epsilon": math.inf, "adjacency": adjacency}
    weighted = dp_evaluate(model, X, y, sample_weight=WHOLE, **terms)
    repeated = dp_evaluate(model, X[again], y[again], **terms)
    for name, found in weighted.estimates.items():
        other = repeated.estimates[name]
        if "auc" not in name:  # whose bins are chosen by the number of rows
            assert found.value == pytest.approx(other.value, abs=1e-6), name
        assert found.high - found.low >= 0.999 * (other.high - other.low), name
    full = dp_evaluate(model, X, y, sample_weight=np.full(N, W), epsilon=1.0, random_state=1)
    plain = dp_evaluate(model, X, y, epsilon=1.0, random_state=1)
    assert [str(e) for e in full.estimates.values()] == [str(e) for e in plain.estimates.values()]


def test_an_evaluation_of_persons_is_a_mean_of_their_weighted_means():
    model = fit("two")
    weighted = dp_evaluate(
        model, X, TWO, epsilon=math.inf, groups=GROUPS, sample_weight=WHOLE, metrics=["accuracy"]
    )
    right = model.predict(X) == TWO
    sizes = np.bincount(GROUPS)[GROUPS]
    assert weighted.accuracy.value == pytest.approx(
        np.average(right, weights=WHOLE / sizes), abs=1e-6
    )


# ---- bounds --------------------------------------------------------------------------------------

EDGES = [
    0.0, -1.0, 5e-324, 1e-310, TINY * W, W / 3.0, np.nextafter(W, 0.0), W * (1 - 2.0**-25), W, np.nextafter(W, 9.0),
    1e300, 1.7e308,
]  # fmt: skip
ROWS = [np.r_[v, np.zeros(4)] for v in (1.0, -1.0, 1e-30, 2.0**90)] + [np.arange(1.0, 6.0)]
UNIT = 1e-7


def queries(rows):
    """Every sum that a weighted row enters, with its bound."""
    units = rows.unit(np.ones(5, np.float32), constant=0.5)
    plain = rows.unit(np.ones(5, np.float32))
    zeros = np.zeros((5, 1))
    yield rows.class_counts(2), 1.0
    yield rows.count_near(0.0, 5.0), 1.0
    yield plain.count_shorter(1e30), 1.0
    yield plain.masses(), 1.0
    yield plain.total(), 1.0
    yield plain.squares(), 1.0
    yield products(rows, None, 1.0), 1.0
    margins = plain.margins(zeros)
    yield margins.class_totals(np.full(1, 60.0)), 1.0
    yield margins.labels_by_margin(np.array([0.0])), 1.0
    yield margins.residual_total(np.zeros(1), 0.5), 0.5
    offset = np.zeros(1)
    yield units.gradient("logistic", zeros, offset, clip=0.3), 0.3
    yield units.gradient("softmax", np.zeros((5, 3)), np.zeros(3), clip=0.3), 0.3


def norm(whole):
    return math.sqrt(sum(int(v) ** 2 for v in np.ravel(whole)))


def test_no_weight_moves_a_sum_further_than_the_largest_and_that_one_attains_the_bound():
    domain = Domain(classes=[0, 1], weight_bound=W)
    reached = {}
    for row in ROWS:
        for groups in (None, np.zeros(1)):
            full = None
            for weight in (W, *EDGES):
                rows = Rows.clip(
                    sp.csr_array(row[None, :]), np.ones(1, int), domain, labels=np.arange(2),
                    groups=groups, weights=[weight],
                )  # fmt: skip
                found = [(query.whole(UNIT), bound) for query, bound in queries(rows)]
                full = full or found
                for k, ((whole, bound), (most, _)) in enumerate(zip(found, full, strict=True)):
                    assert norm(whole) <= bound / UNIT
                    assert (np.abs(whole) <= np.abs(most)).all()
                    reached[k] = max(reached.get(k, 0.0), norm(whole) * UNIT / bound)
                    if weight <= 0.0:
                        assert not whole.any()
    assert min(reached.values()) > 0.9999


@pytest.mark.parametrize("one", [W, W / 3.0, np.nextafter(W, 0.0), 0.0])
@pytest.mark.parametrize("other", [W, W / 3.0])
def test_number_and_total_move_by_two_when_a_row_is_replaced(one, other):
    domain = Domain(target_bound=1.0, weight_bound=W)

    def answer(weight, target):
        rows = Rows.clip(np.ones((1, 2)), [target], domain, weights=[weight])
        return rows.count_and_total().whole(UNIT)

    for a in (-1.0, 0.3, 1.0):
        assert norm(answer(one, a)) <= math.sqrt(2.0) / UNIT
        for b in (-1.0, 1.0):
            assert norm(answer(one, a) - answer(other, b)) <= 2.0 / UNIT
    if one == other == W:
        assert norm(answer(one, 1.0) - answer(other, -1.0)) * UNIT > 1.9999


@pytest.mark.parametrize("weight", EDGES)
def test_a_row_of_a_minimiser_has_at_most_its_gradient(weight):
    domain = Domain(target_bound=1.0, weight_bound=W)
    for row in ROWS:
        rows = Rows.clip(row[None, :], [1.0], domain, weights=[weight])
        weighed = rows.ridge(None, constant=1.0, row_clip=2.0, longest=2.0**120)
        length = math.sqrt(1.0 + float(np.sum(weighed.gathered.values.astype(float) ** 2)))
        assert 0.0 <= weighed.weights[0] <= 1.0
        assert weighed.weights[0] * length <= 2.0
        assert weighed.weights[0] * length**2 <= 4.0
    if weight >= W:
        assert weighed.weights[0] * length > 0.5


@pytest.mark.parametrize("groups", [None, np.zeros(2)])
def test_contributions_to_an_evaluation(groups):
    K = 1 if groups is None else 2  # the rows of one person
    for weight in EDGES:
        worth = Domain(weight_bound=W).worth(np.full(K, weight), K)
        labels = ScoredLabels(
            np.ones(K, np.intp), np.ones(K, np.intp), np.ones(K), np.full((K, 2), 0.5), 2, groups, worth,
        )  # fmt: skip
        numbers = ScoredNumbers(np.ones(K), -np.ones(K), groups, worth)
        bounds = [
            (labels.confusion(), 1.0), (labels.count(), 1.0), (labels.loss("brier"), 0.5),
            (numbers.absolute(), 0.5), (numbers.total(), 1.0), (numbers.spread(1.0, cross=True), 0.5),
        ]  # fmt: skip
        for query, bound in bounds:
            found = norm(query.whole(UNIT)) * UNIT
            assert found <= bound
            assert found == 0.0 or weight > 0.0
            if weight >= W and query is not bounds[2][0]:
                assert found > 0.9999 * bound


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_replay_reaches_the_bounds_with_weights(adjacency):
    domain = Domain(classes=(0, 1), weight_bound=W)
    model = DPGradientClassifier(domain, n_iter=4, adjacency=adjacency)
    finding = check(model, n_pairs=22, n_climbs=12, every=40, seed=1)
    assert finding.first_complaint == ""
    assert finding.tightness["prior"] > 0.99
    assert finding.tightness["gradients"] > (0.8 if adjacency == "add-remove" else 0.5)
    reached = worst_of(boundary_findings(Subject(model, 7), every=40)).reached
    assert reached["masses" if "masses" in reached else "columns"] > 0.99


@pytest.mark.heavy
@pytest.mark.parametrize("case", ["two", "ridge"])
def test_noise_has_its_law_with_weights(case):
    model, _, _ = CASES[case]
    assert first_complaint(model, n_runs=60) == ""


def test_weights_that_are_not_clipped_are_found(monkeypatch):
    monkeypatch.setattr(dpsparse.domain.domain, "cast", lambda t, limit: np.float32(2.0 * t))
    model = DPGradientClassifier(Domain(classes=(0, 1), weight_bound=W), n_iter=3)
    assert "too far" in check(model, n_pairs=11, n_climbs=0, every=1000).first_complaint


def test_a_weight_outside_of_the_clip_is_found(monkeypatch):
    """Weights multiplied into rows, whose lengths are not compared again."""
    gradient = UnitRows.gradient

    def heavier(self, *facts, clip, **more):
        wide = gradient(self, *facts, clip=W * clip, **more)
        return replace(gradient(self, *facts, clip=clip, **more), whole=wide.whole)

    monkeypatch.setattr(UnitRows, "gradient", heavier)
    model = DPGradientClassifier(Domain(classes=(0, 1), weight_bound=W), n_iter=3)
    assert check(model, n_pairs=11, n_climbs=0, every=1000).first_complaint != ""


# ---- who takes them, and what is refused ----------------------------------------------------------


def test_exactly_those_with_a_proof_take_weights():
    takers = {
        name
        for name in methods.__all__
        if has_fit_parameter(getattr(methods, name)(), "sample_weight")
    }
    assert takers == TAKERS
    for other in (
        DPPipeline([]),
        DPSearchCV(DPLassoClassifier(), [{}]),
        DPFeatureTest(),
        DPStandardizer(),
    ):
        assert not has_fit_parameter(other, "sample_weight")


FACTS = Domain(classes=[0, 1], row_norm=3.0, weight_bound=W)
GRADIENT = DPGradientClassifier(FACTS)


@pytest.mark.parametrize(
    "model",
    [
        DPHardThresholdClassifier(FACTS),
        DPLassoClassifier(FACTS),
        DPSearchCV(GRADIENT, [{}]),
        DPPipeline([("scale", DPStandardizer()), ("model", GRADIENT)], epsilon=5.0),
        DPFeatureTest(FACTS),
    ],
    ids=lambda model: type(model).__name__,
)
def test_others_refuse_weights_with_a_sentence(model):
    with pytest.raises(
        ParameterError, match=r"takes no sample_weight.*weight_bound.*DPSparseClassifier"
    ):
        model.fit(X, TWO, sample_weight=np.ones(N))
    with pytest.raises(TypeError, match="unexpected keyword argument 'offset'"):
        model.fit(X, TWO, offset=1)


@pytest.mark.parametrize("kind", [DPGradientClassifier, DPSparseClassifier])
def test_weights_need_a_declared_bound(kind):
    with pytest.raises(DomainError, match=r"Domain\(weight_bound=5.0\)"):
        kind(Domain(classes=[0, 1])).fit(X, TWO, sample_weight=np.ones(N))
    model = kind(Domain(classes=[0, 1])).fit(X, TWO)
    with pytest.raises(DomainError, match=r"Domain\(weight_bound=5.0\)"):
        dp_evaluate(model, X, TWO, epsilon=1.0, sample_weight=np.ones(N))
    for bad in (0.0, -1.0, math.nan, "much", 1e300):
        with pytest.raises(DomainError, match="weight_bound"):
            Domain(weight_bound=bad)


SECRET = 123.456


@pytest.mark.parametrize(
    "bad",
    [math.nan, math.inf, None, "heavy", 1j],
    ids=str,
)
def test_what_is_no_weight_is_refused_as_among_targets(bad):
    weights = [SECRET] * (N - 1) + [bad]
    for call in (
        lambda: GRADIENT.fit(X, TWO, sample_weight=weights),
        lambda: dp_evaluate(fit("two"), X, TWO, epsilon=1.0, sample_weight=weights),
    ):
        with pytest.raises(SchemaError) as caught:
            call()
        text = str(caught.value)
        assert "123" not in text
        assert "heavy" not in text
        assert caught.value.__context__ is None


@pytest.mark.parametrize("weights", [np.ones(N - 1), np.ones((N, 2)), 1.0, []])
def test_one_weight_a_row(weights):
    with pytest.raises(SchemaError, match="sample_weight must hold one number per row of X"):
        GRADIENT.fit(X, TWO, sample_weight=weights)


def test_a_source_without_weights_counts_all_rows_in_full():
    source = Rows.from_csr(sp.csr_array(X), TWO)
    assert same(
        DPGradientClassifier(FACTS, random_state=0).fit(source),
        DPGradientClassifier(FACTS, random_state=0).fit(X, TWO, np.full(N, W)),
    )


def test_a_model_file_keeps_the_bound(tmp_path):
    save(fit("two", weights=WHOLE, random_state=None), tmp_path / "model.json")
    assert load(tmp_path / "model.json").domain.weight_bound == W


def test_adaboost():
    """Its weights add up to one, so a bound of some rows' share; what it adds to a guarantee: docs/from_sklearn.md."""
    base = DPGradientClassifier(Domain(classes=[0, 1], weight_bound=4.0 / N), epsilon=math.inf)
    boosted = AdaBoostClassifier(base, n_estimators=3).fit(X, TWO)
    assert boosted.score(X, TWO) > 0.7

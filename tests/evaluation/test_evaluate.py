"""dp_evaluate from outside: right numbers, refusals before payment, payment before noise, free afterwards."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import metrics as sk
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
    Ledger,
    dp_evaluate,
    release,
)
from dpsparse.evaluation import Report
from dpsparse.exceptions import (
    BudgetError,
    NotPrivateWarning,
    ParameterError,
    SchemaError,
)
from dpsparse.report.evaluation import evaluation_section
from dpsparse.rows.histogram import ScoredLabels

RNG = np.random.default_rng(0)
N = 3000
X = RNG.normal(size=(N, 4))
Y = (X[:, 0] + 0.5 * X[:, 1] + RNG.normal(size=N) > 0).astype(int)
Y3 = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=N), [-0.5, 0.5])
T = 3.0 + X[:, 0] + RNG.normal(size=N)
MODEL = LogisticRegression().fit(X[:500], Y[:500])
MODEL3 = RandomForestClassifier(20, random_state=0).fit(X[:500], Y3[:500])
LINE = LinearRegression().fit(X[:500], T[:500])


def seeded(*arguments, **keywords):
    with pytest.warns(NotPrivateWarning):
        return dp_evaluate(*arguments, **keywords)


# ---- the numbers are the right ones -------------------------------------------------------------


def test_without_noise_they_are_those_of_scikit_learn():
    report = dp_evaluate(MODEL, X, Y, epsilon=math.inf)
    p, guess = MODEL.predict_proba(X)[:, 1], MODEL.predict(X)
    for name, value in {
        "accuracy": sk.accuracy_score(Y, guess),
        "precision": sk.precision_score(Y, guess),
        "recall": sk.recall_score(Y, guess),
        "f1": sk.f1_score(Y, guess),
        "mcc": sk.matthews_corrcoef(Y, guess),
        "log_loss": sk.log_loss(Y, p),
        "brier": sk.brier_score_loss(Y, p),
    }.items():
        assert getattr(report, name).value == pytest.approx(value, abs=2e-6), name
    exact = sk.roc_auc_score(Y, p)
    assert report.auc.value == pytest.approx(exact, abs=1e-3)
    assert report.auc_certain.low <= exact <= report.auc_certain.high
    np.testing.assert_allclose(
        report.confusion["count"], sk.confusion_matrix(Y, guess).ravel(), atol=1e-4
    )
    above = p[:, None] > report.roc["threshold"]
    np.testing.assert_allclose(report.roc["tpr"], above[Y == 1].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(report.roc["fpr"], above[Y == 0].mean(axis=0), atol=1e-6)
    assert not report.privacy_.proven


def test_several_classes_without_noise():
    report = dp_evaluate(MODEL3, X, Y3, epsilon=math.inf)
    p, guess = MODEL3.predict_proba(X), MODEL3.predict(X)
    assert report.accuracy.value == pytest.approx(sk.accuracy_score(Y3, guess), abs=1e-6)
    assert report.f1.value == pytest.approx(sk.f1_score(Y3, guess, average="macro"), abs=1e-6)
    assert report.mcc.value == pytest.approx(sk.matthews_corrcoef(Y3, guess), abs=1e-6)
    mine = p[np.arange(N), Y3]
    assert report.brier.value == pytest.approx(((p**2).sum(axis=1) - 2 * mine + 1).mean(), abs=1e-5)
    with np.errstate(divide="ignore"):
        cut = np.minimum(-np.log(mine), 6.0).mean()
    assert report.log_loss.value == pytest.approx(cut, abs=1e-5)
    assert len(report.per_class["class"]) == 3


def test_regression_without_noise():
    report = dp_evaluate(LINE, X, T, epsilon=math.inf, target_bound=20.0)
    assert report.mae.value == pytest.approx(sk.mean_absolute_error(T, LINE.predict(X)), rel=1e-6)
    assert report.mse.value == pytest.approx(sk.mean_squared_error(T, LINE.predict(X)), rel=1e-6)
    assert report.r2.value == pytest.approx(sk.r2_score(T, LINE.predict(X)), rel=1e-6)


def test_persons_are_averaged():
    groups = np.repeat(np.arange(N // 3), 3)
    report = dp_evaluate(MODEL, X, Y, epsilon=math.inf, groups=groups)
    right = (MODEL.predict(X) == Y).reshape(-1, 3).mean(axis=1).mean()
    assert report.accuracy.value == pytest.approx(right, abs=1e-6)
    assert report.plan_.unit == "one person, all of their rows"
    private = dp_evaluate(MODEL, X, Y, epsilon=1.0, groups=groups)
    assert private.privacy_.proven
    assert "person" in private.privacy_.headline
    assert "row" not in private.privacy_.headline


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_private_values_are_near_and_inside(adjacency):
    """Intervals at level 1 - 1e-6 hold the exact value of the rows: false alarms below 1e-4."""
    exact = dp_evaluate(MODEL, X, Y, epsilon=math.inf, adjacency=adjacency)
    noisy = dp_evaluate(MODEL, X, Y, epsilon=1.0, adjacency=adjacency, level=1.0 - 1e-6)
    for name, estimate in noisy.estimates.items():
        assert estimate.low <= exact.estimates[name].value <= estimate.high, name
    assert noisy.accuracy.width < 0.2
    assert noisy.privacy_.adjacency == adjacency
    assert noisy.privacy_.recompute() <= 1.0


def test_models_of_every_kind():
    domain = Domain(row_norm=4.0, classes=[0, 1], n_samples=N)
    own = DPGradientClassifier(domain, epsilon=5.0, n_iter=3).fit(X, Y)
    report = dp_evaluate(own, X, Y, epsilon=math.inf)
    assert report.accuracy.value == pytest.approx(own.score(X, Y), abs=1e-6)
    assert report.auc.value == pytest.approx(
        sk.roc_auc_score(Y, own.decision_function(X)), abs=2e-3
    )
    assert dp_evaluate(own, sp.csr_array(X), Y, epsilon=math.inf).mcc == report.mcc
    margins = RidgeClassifier().fit(X[:500], Y[:500])
    report = dp_evaluate(margins, X, Y, epsilon=1.0)
    assert {"accuracy", "auc"} <= set(report)
    assert not {"log_loss", "brier", "calibration"} & set(report)
    pipe = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:500], Y[:500])
    assert 0.5 < dp_evaluate(pipe, X, Y, epsilon=1.0).accuracy.value < 0.95
    words = LogisticRegression().fit(X[:500], np.array(["no", "yes"])[Y[:500]])
    assert dp_evaluate(words, X, np.array(["no", "yes"])[Y], epsilon=1.0).accuracy.value > 0.6
    facts = Domain(row_norm=4.0, target_bound=8.0, n_samples=N)
    line = DPGradientRegressor(facts, epsilon=5.0, n_iter=3).fit(X, T)
    assert math.isfinite(dp_evaluate(line, X, T, epsilon=2.0).mae.value)


# ---- refused before anything is spent ------------------------------------------------------------


class Broken:
    """A classifier that quotes a row when it fails."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        raise ValueError(f"secret {X[0]}")


FACTS = Domain(row_norm=4.0, target_bound=8.0, n_samples=N)


def own_regressor():
    """Fitted when it is used: what runs while tests are collected runs on every worker."""
    return DPGradientRegressor(FACTS, n_iter=2).fit(X, T)


PAIR = LinearRegression().fit(X[:500], np.column_stack([T, T])[:500])
BAD = [
    ({"model": own_regressor, "y": T, "X": np.where(X > 3, np.nan, X)}, SchemaError, "NaN"),
    ({"model": own_regressor, "y": T, "X": X[:, :2]}, SchemaError, "features"),
    ({"model": DPGradientRegressor(FACTS), "y": T}, ParameterError, "not fitted"),
    ({"model": DPGradientClassifier(FACTS)}, ParameterError, "not fitted"),
    ({"model": LinearRegression(), "y": T, "target_bound": 9.0}, SchemaError, "NotFittedError"),
    ({"model": PAIR, "y": T, "target_bound": 9.0}, SchemaError, "one number per row"),
    ({"metrics": ["aucc"]}, ParameterError, "no metric 'aucc'"),
    ({"metrics": "auc"}, ParameterError, "list"),
    ({"metrics": []}, ParameterError, "list"),
    ({"y": Y[:-1]}, SchemaError, "different numbers of rows"),
    ({"X": X[:0], "y": Y[:0]}, SchemaError, "no rows"),
    ({"y": np.where(Y == 1, 7, Y)}, SchemaError, "does not know"),
    ({"y": np.where(Y == 1, np.nan, Y)}, SchemaError, "does not know"),
    ({"y": np.where(Y == 1, "one", "0")}, SchemaError, "does not know"),
    ({"X": np.where(X > 3, np.nan, X)}, SchemaError, "could not score"),
    ({"X": X[:, :2]}, SchemaError, "could not score"),
    ({"model": Broken()}, SchemaError, "could not score"),
    ({"model": LogisticRegression()}, ParameterError, "not fitted"),
    ({"model": object()}, ParameterError, "predict"),
    ({"model": LINE, "y": T}, ParameterError, "target_bound"),
    ({"model": LINE, "y": T, "target_bound": -1.0}, ParameterError, "target_bound"),
    ({"model": LINE, "y": T, "target_bound": 1e200}, ParameterError, "target_bound"),
    (
        {"model": LINE, "y": T, "target_bound": 9.0, "error_bound": 1e-200},
        ParameterError,
        "error_bound",
    ),
    (
        {"model": LINE, "y": np.where(T > 5, np.nan, T), "target_bound": 9.0},
        SchemaError,
        "NaN or infinity",
    ),
    ({"target_bound": 3.0}, ParameterError, "regressors"),
    ({"epsilon": 0.0}, ParameterError, "epsilon"),
    ({"delta": 1.0}, ParameterError, "delta"),
    ({"level": 2.0}, ParameterError, "level"),
    ({"adjacency": "rows"}, ParameterError, "adjacency"),
    ({"random_state": -1}, ParameterError, "random_state"),
    ({"groups": np.arange(N)}, BudgetError, "protects one person"),
]


@pytest.mark.parametrize(("change", "error", "text"), BAD, ids=lambda v: str(v)[:20])
def test_bad_input_costs_nothing(change, error, text):
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    call = {"model": MODEL, "X": X, "y": Y, "epsilon": 0.5, "ledger": ledger} | change
    model = call.pop("model")
    model = model() if model is own_regressor else model
    with pytest.raises(error, match=text) as caught:
        dp_evaluate(model, call.pop("X"), call.pop("y"), **call)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
    assert "secret" not in str(caught.value)
    assert ledger.history() == []


def test_equal_numbers_of_two_types_are_one_person():
    """As text 1 and 1.0 would be two persons, and each half as well protected."""
    none = np.zeros(4, np.intp)
    assert len(ScoredLabels(none, none, None, None, 2, [1, 1.0, np.int8(1), 2])) == 2


@pytest.mark.parametrize("groups", [np.arange(5), np.full(N, np.nan), [None] * N])
def test_bad_groups(groups):
    with pytest.raises(SchemaError, match="groups"):
        dp_evaluate(MODEL, X, Y, epsilon=1.0, groups=groups)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_what_one_row_could_cause_is_answered(adjacency):
    """A class that does not occur, equal scores, one row, scores that are no numbers: a refusal would show a row."""

    class Nothing:
        classes_ = np.array([0, 1])

        def __init__(self, p):
            self.p = p

        def predict(self, X):
            return np.zeros(len(X), int)

        def predict_proba(self, X):
            return np.tile([1.0 - self.p, self.p], (len(X), 1))

    for p in (0.0, 1.0, 0.5, math.nan):
        for y in (np.zeros(50, int), np.ones(50, int), np.zeros(1, int)):
            report = dp_evaluate(Nothing(p), X[: len(y)], y, epsilon=1.0, adjacency=adjacency)
            for estimate in report.estimates.values():
                assert estimate.low <= estimate.value <= estimate.high
    flat = LinearRegression().fit(X[:10], np.zeros(10))
    report = dp_evaluate(flat, X[:1], np.zeros(1), epsilon=0.1, target_bound=1.0)
    assert report.r2.low == -math.inf


# ---- payment -------------------------------------------------------------------------------------


def test_charged_once_and_before_noise(monkeypatch):
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    report = dp_evaluate(MODEL, X, Y, epsilon=0.5, ledger=ledger)
    (entry,) = ledger.history()
    assert entry.committed
    assert entry.event == report.plan_.event
    monkeypatch.setattr(
        release, "Releases", lambda *a: pytest.fail("noise before the ledger could refuse")
    )
    with pytest.raises(BudgetError):
        dp_evaluate(MODEL, X, Y, epsilon=0.9, ledger=ledger)
    assert len(ledger.history()) == 1

    class Crash(Exception):
        pass

    def crash(*arguments):
        raise Crash

    monkeypatch.setattr(release, "Releases", crash)
    with pytest.raises(Crash):
        dp_evaluate(MODEL, X, Y, epsilon=0.2, ledger=ledger)
    assert [e.committed for e in ledger.history()] == [
        True,
        False,
    ]  # spent, though nothing was seen


def test_seeded_reports_are_not_private():
    first, again = (seeded(MODEL, X, Y, epsilon=1.0, random_state=3) for _ in range(2))
    assert first.estimates == again.estimates
    assert not first.privacy_.proven
    assert dp_evaluate(MODEL, X, Y, epsilon=1.0).estimates != first.estimates


def test_fewer_metrics_are_sharper():
    everything, alone = (
        seeded(MODEL, X, Y, epsilon=0.3, metrics=metrics, random_state=0)
        for metrics in (None, ["accuracy"])
    )
    assert alone.accuracy.width < 0.9 * everything.accuracy.width
    report = dp_evaluate(MODEL, X, Y, epsilon=0.3, metrics=["accuracy"])
    assert list(report) == ["accuracy"]
    assert [p.name for p in report.plan_.phases] == ["confusion"]


# ---- cross-validation ----------------------------------------------------------------------------


def test_a_function_as_scorer_pays_at_every_fold():
    """As docs/evaluation.md writes it."""
    ledger = Ledger(epsilon=0.5, delta=1e-6)

    def score(model, X, y):
        return dp_evaluate(model, X, y, epsilon=0.2, ledger=ledger, metrics=["auc"]).auc.value

    scores = cross_val_score(LogisticRegression(), X, Y, cv=3, scoring=score, error_score="raise")
    assert scores.mean() > 0.6
    assert len(ledger.history()) == 3
    with pytest.raises(BudgetError):
        cross_val_score(MODEL, X, Y, cv=9, scoring=score, error_score="raise")


# ---- the report ----------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_report_is_read_only_with_the_noise_of_its_guarantee(adjacency):
    """Less noise on paper would make its intervals too short."""
    how = {"epsilon": 1.0, "adjacency": adjacency}
    reports = [
        dp_evaluate(MODEL, X, Y, **how),
        dp_evaluate(MODEL3, X, Y3, metrics=["accuracy", "mcc"], **how),
        dp_evaluate(LINE, X, T, target_bound=9.0, **how),
        dp_evaluate(MODEL, X, Y, epsilon=math.inf, adjacency=adjacency),
    ]
    for report in reports:
        record = json.loads(json.dumps(report.to_dict()))
        assert str(Report.from_dict(record)) == str(report)
        for name in record["released"]["noise_variance"]:
            edited = copy.deepcopy(record)
            edited["released"]["noise_variance"][name] = (
                0.25 if math.isinf(report.plan_.epsilon) else 1e-9
            )
            with pytest.raises(ParameterError, match=f"noise of {name}"):
                Report.from_dict(edited)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("fact", ["epsilon", "n_units", "table", "source", "unit"])
def test_a_report_may_not_promise_more_than_its_metrics_cost(adjacency, fact):
    report = dp_evaluate(MODEL, X, Y, epsilon=1.0, metrics=["accuracy", "auc"], adjacency=adjacency)
    record = json.loads(json.dumps(report.to_dict()))
    assert Report.from_dict(record).privacy_ == report.privacy_
    guarantee = record["guarantee"]
    if fact == "epsilon":  # ten times the noise
        guarantee["epsilon"] = 0.1
        for each in guarantee["events"]:
            each["event"]["scale"] *= 10.0
    else:
        forged = {"n_units": 3, "table": "the raw table", "source": "none", "unit": "nobody"}
        guarantee[fact] = forged[fact]
    with pytest.raises(ParameterError, match="contradicts itself"):
        Report.from_dict(record)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_report_may_leave_out_nothing_that_its_guarantee_rests_on(adjacency):
    private = DPGradientClassifier(Domain(row_norm=9.0, classes=[0, 1])).fit(X, Y)
    reports = [
        dp_evaluate(MODEL, X, Y, epsilon=1.0, adjacency=adjacency),
        dp_evaluate(private, X, Y, epsilon=1.0, adjacency=adjacency),
        dp_evaluate(clone(private).set_params(epsilon=math.inf).fit(X, Y), X, Y, epsilon=1.0),
    ]
    public = [any("the model is public" in a for a in r.privacy_.assumptions) for r in reports]
    assert public == [True, False, True]
    for report in reports:
        record = json.loads(json.dumps(report.to_dict()))
        for left_out in record["guarantee"]["assumptions"]:
            forged = copy.deepcopy(record)
            forged["guarantee"]["assumptions"].remove(left_out)
            with pytest.raises(ParameterError, match="contradicts itself"):
                Report.from_dict(forged)
    # A model of others is neither private nor known to score every row by itself.
    record = json.loads(json.dumps(reports[0].to_dict()))
    record["subject"].update(own=True, private=True)
    record["guarantee"]["assumptions"] = reports[1].to_dict()["guarantee"]["assumptions"]
    with pytest.raises(ParameterError, match="contradicts itself"):
        Report.from_dict(record)


def test_report_as_text_page_and_json():
    report = dp_evaluate(MODEL, X, Y, epsilon=1.0)
    record = json.loads(json.dumps(report.to_dict()))
    assert pickle.loads(pickle.dumps(report)).to_dict() == report.to_dict()
    back = Report.from_dict(record)
    assert json.loads(json.dumps(back.to_dict())) == record
    assert str(back) == str(report)
    assert evaluation_section(back) == evaluation_section(report)
    assert back.threshold_for(recall=0.8).value == report.threshold_for(recall=0.8).value
    with pytest.raises(ParameterError, match="not a report"):
        Report.from_dict({"format": 1})
    praised = {**record["estimates"], "accuracy": {"value": 1.0, "low": 1.0, "high": 1.0}}
    edited = Report.from_dict({**record, "estimates": praised})
    assert edited.accuracy == report.accuracy  # computed from what was released
    assert record["estimates"]["accuracy"]["value"] == report.accuracy.value
    assert record["guarantee"]["epsilon"] == 1.0
    assert "accuracy" in str(report)
    assert "proven" in str(report)
    page = evaluation_section(report)
    assert "<svg" in page
    assert "http" not in page.split("<svg")[0]
    assert "roc" in dir(report)
    assert next(iter(report.roc)) == "threshold"
    with pytest.raises(AttributeError, match="it has"):
        _ = report.nothing
    assert len(report.plot().axes) == 3
    assert len(dp_evaluate(LINE, X, T, epsilon=1.0, target_bound=9.0).plot().axes) == 1


def test_threshold_for_a_target():
    report = seeded(MODEL, X, Y, epsilon=4.0, random_state=0)
    chosen = report.threshold_for(precision=0.9)
    p = MODEL.predict_proba(X)[:, 1]
    assert chosen.precision.value >= 0.9
    assert chosen.precision.low <= sk.precision_score(Y, p > chosen.value) <= chosen.precision.high
    assert chosen.recall.low <= sk.recall_score(Y, p > chosen.value) <= chosen.recall.high
    assert chosen.value in report.roc["threshold"]
    able = report.threshold_for(recall=0.9)
    assert able.recall.value >= 0.9
    assert able.value < chosen.value
    with pytest.raises(ParameterError, match="one target"):
        report.threshold_for()
    with pytest.raises(ParameterError, match="between 0 and 1"):
        report.threshold_for(recall=1.5)
    with pytest.raises(ParameterError, match="No threshold"):
        seeded(MODEL, X[:, :], 1 - Y, epsilon=4.0, random_state=0).threshold_for(precision=0.99)
    with pytest.raises(ParameterError, match="curve"):
        dp_evaluate(MODEL3, X, Y3, epsilon=1.0).threshold_for(recall=0.9)


def test_a_label_is_no_formula_on_a_page():
    """matplotlib reads $...$ as a formula, and ended the page of a report that was paid."""
    names = np.array(["no", "yes $\\foo{$"])
    model = LogisticRegression().fit(X[:500], names[Y[:500]])
    report = dp_evaluate(model, X, names[Y], epsilon=1.0, metrics=["precision"])
    assert "<svg" in evaluation_section(report)


# ---- models of others ----------------------------------------------------------------------------


def test_a_guarantee_says_that_the_model_is_taken_as_public():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = (X[:, 0] > 0).astype(int)
    plain = DPGradientClassifier(Domain(classes=[0, 1], row_norm=1.0), epsilon=math.inf).fit(X, y)
    private = DPGradientClassifier(Domain(classes=[0, 1], row_norm=1.0)).fit(X, y)
    told = [
        any(
            "the model is public" in text
            for text in dp_evaluate(m, X, y, epsilon=1.0).privacy_.assumptions
        )
        for m in (plain, private, LogisticRegression().fit(X, y))
    ]
    assert told == [True, False, True]


@pytest.mark.parametrize("method", ["predict_proba", "decision_function", "predict"])
def test_scores_that_are_no_numbers_are_not_quoted(method):
    class Talking:
        if method != "predict":
            classes_ = np.array([0, 1])

        def predict(self, X):
            return (
                np.array(["zq7-SECRET"] * len(X)) if method == "predict" else np.zeros(len(X), int)
            )

    def said(self, X):
        return np.array([["zq7-SECRET", "zq7-SECRET"]] * len(X))

    if method != "predict":
        setattr(Talking, method, said)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    more = {"target_bound": 1.0} if method == "predict" else {}
    with pytest.raises(SchemaError) as caught:
        dp_evaluate(
            Talking(), np.zeros((5, 2)), np.zeros(5, int), epsilon=0.5, ledger=ledger, **more
        )
    link = caught.value
    while link is not None:
        assert "SECRET" not in str(link)
        link = link.__cause__ or link.__context__
    assert ledger.history() == []


def test_a_model_that_fails_leaves_no_cell_behind_the_refusal():
    rows = X[:50].astype(object)
    rows[7, 1] = "zq7-SECRET"
    with pytest.raises(SchemaError, match="ValueError") as caught:
        dp_evaluate(LogisticRegression().fit(X[:50], Y[:50]), rows, Y[:50], epsilon=0.5)
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.filterwarnings("error")
def test_one_row_causes_no_warning():
    """NumPy warns where a model overflows, and the warning would tell that there is such a row."""

    class Doubled:
        classes_ = np.array([0, 1])

        def predict(self, X):
            return np.asarray(X[:, 0] * 10.0 > 0.0, int)

    rows = X[:50].copy()
    rows[7] = 1e308
    dp_evaluate(Doubled(), rows, Y[:50], epsilon=0.5, metrics=["accuracy"])


def test_targets_count_from_the_middle_of_a_declared_range():
    """Between 100 and 110 the report is that of targets between -5 and 5, bit for bit where the shift is exact."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 2))
    y = np.round(np.clip(X[:, 0] + rng.standard_normal(4000), -5, 5) * 64) / 64
    near = DPGradientRegressor(Domain(target_range=(-5, 5))).fit(X, y)
    near.coef_, near.intercept_ = np.array([1.0, 0.0]), np.array([0.0])
    X[:, 0] = np.round(X[:, 0] * 64) / 64
    far = copy.deepcopy(near)
    far.domain, far.intercept_ = Domain(target_range=(100, 110)), np.array([105.0])
    one = seeded(near, X, y, epsilon=1.0, random_state=3)
    other = seeded(far, X, y + 105.0, epsilon=1.0, random_state=3)
    assert other.estimates == one.estimates
    assert other.subject.target_bound == other.subject.error_bound == 5.0
    assert "clipped to 100 to 110" in other.covers
    assert "clipped to +-5" in one.covers
    assert Report.from_dict(other.to_dict()).covers == other.covers
    assert other.r2.high - other.r2.low < 0.2


def test_targets_outside_a_declared_range_count_as_its_ends():
    """What a row adds is bounded by the range: far targets give the report of targets at its ends."""
    X = np.linspace(-1.0, 1.0, 3000)[:, None]
    model = DPGradientRegressor(Domain(target_range=(100, 110))).fit(X, 105.0 + 4.0 * X[:, 0])
    y = np.where(X[:, 0] > 0, 110.0, 100.0)
    wild = np.where(X[:, 0] > 0, 1e300, -1e300)
    one = seeded(model, X, y, epsilon=1.0, random_state=3)
    other = seeded(model, X, wild, epsilon=1.0, random_state=3)
    assert other.estimates == one.estimates

"""DPSearchCV over a DPPipeline: preparation and search are one plan and one reservation."""

import math

import numpy as np
import pytest

import dpsparse
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
    DPHardThresholdClassifier,
    DPLassoClassifier,
    DPPipeline,
    DPRidgeRegressor,
    DPScreenedLassoClassifier,
    DPSearchCV,
    DPSparseClassifier,
    DPSparseRegressor,
    DPVectorizer,
    Ledger,
)
from dpsparse.accounting import epsilon
from dpsparse.exceptions import BudgetError, DPSparseError, NotPrivateWarning, ParameterError
from dpsparse.preprocessing import DPStandardizer, DPTablePreparer
from dpsparse.preprocessing.pipeline import replan_for_width
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Rows

RNG = np.random.default_rng(3)
N = 3000
AGE, INCOME = RNG.uniform(0, 100, N), RNG.lognormal(10, 1, N)
REGION = RNG.choice(["north", "south", "west"], N)
X = {"age": AGE, "income": INCOME, "region": REGION}
y = np.where((AGE - 50) / 30 + (REGION == "north") + 0.3 * RNG.normal(size=N) > 0, "yes", "no")
CANDIDATES = {
    "free": {"n_nonzero": [1, 4, None], "threshold": [0.0, 30.0]},
    "paid": [
        {},
        {"class_weight": "balanced"},
        {"class_weight": {"no": 1.0, "yes": 2.0}, "threshold": 0.1},
    ],
}


def pipeline(adjacency="add-remove", step=None, model=None, **facts):
    domain = Domain(classes=["no", "yes"], n_samples=N, **facts)
    return DPPipeline(
        [
            ("table", step or DPTablePreparer(rest="auto")),
            ("model", model or DPGradientClassifier(domain, n_iter=4)),
        ],
        adjacency=adjacency,
    )


def search(kind, *, adjacency="add-remove", epsilon=3.0, pipe=None, **more):
    return DPSearchCV(pipe or pipeline(adjacency), CANDIDATES[kind], epsilon=epsilon, **more)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", CANDIDATES)
def test_one_plan_pays_for_preparation_and_search(kind, adjacency):
    plan = search(kind, adjacency=adjacency).plan(3)
    spent = epsilon(plan.event, 1e-6)
    assert 0.999 * 3.0 < spent <= 3.0
    names = [phase.name for phase in plan.phases]
    assert names[:4] == [
        "table: kinds", "table: numbers scales", "table: categories categories", "table: categories unlisted",
    ]  # fmt: skip
    paid = ["search 1", "search 2", "search 3", "choice", "fit"]
    assert names[4:] == (["fit", "choice"] if kind == "free" else paid)
    least = 0.97 if kind == "free" else 0.86
    assert least < plan.parameters["kept"] < 1.0  # compared with the same pipeline without a search
    assert "what was declared to step 'table'" in str(plan.guarantee)


@pytest.mark.parametrize("kind", CANDIDATES)
def test_the_whole_corridor(tmp_path, kind):
    ledger = Ledger(tmp_path / "book.db", epsilon=9.0, delta=1e-6)
    found = search(kind, ledger=ledger).fit(X, y)
    (entry,) = ledger.history()
    assert entry.committed
    assert entry.method == "DPSearchCV(DPPipeline(DPGradientClassifier))"
    best = found.best_estimator_
    assert best.privacy_.epsilon == 3.0 == found.privacy_.epsilon
    assert best.privacy_.proven
    assert found.score(X, y) > 0.65  # .82 to .93 seen; .59 without a model
    assert list(found.classes_) == ["no", "yes"]
    assert set(found.best_params_) <= {name for p in _points(CANDIDATES[kind]) for name in p}
    if kind == "free":
        assert found.best_params_["threshold"] == 0.0  # the other one loses half of the rows
        assert best.steps[-1][1].n_nonzero == found.best_params_["n_nonzero"]
    again = dpsparse.load(dpsparse.save(best, tmp_path / "model.json"))
    assert np.array_equal(again.predict(X), found.predict(X))
    assert again.privacy_ == found.privacy_
    assert len(best.get_feature_names_out()) == best.model_.coef_.shape[1]
    assert "of the prepared table" in str(best.model_.privacy_)


def _points(candidates):
    return [candidates] if isinstance(candidates, dict) else candidates


def test_refused_before_anything_is_charged(tmp_path):
    ledger = Ledger(tmp_path / "book.db", epsilon=1.0, delta=1e-6)
    with pytest.raises(BudgetError):
        search("free", ledger=ledger).fit(X, y)
    for wrong in (
        {"candidates": {"table__rest": ["auto", "drop"]}},
        {"candidates": {"model__n_nonzero": [1, 2]}},
        {"candidates": {"nonsense": [1]}},
        {"candidates": {"epsilon": [1.0]}},
        {"candidates": {"threshold": [math.nan]}},
        {"candidates": {3: [1]}},
        {"candidates": "n_iter"},
        {"delta": 1e-5},
        {"estimator": pipeline().set_params(ledger=ledger)},
        {"estimator": pipeline(step=DPStandardizer(epsilon=1.0))},
        {"epsilon": math.inf},
    ):
        given = {"candidates": CANDIDATES["free"], "epsilon": 0.5, "ledger": ledger} | wrong
        with pytest.raises(DPSparseError) as caught:
            DPSearchCV(given.pop("estimator", None) or pipeline(), **given).fit(X, y)
        assert "\n" not in str(caught.value)
    for bad_y in (y[:-1], np.full(N, "maybe")):
        with pytest.raises(DPSparseError):
            search("free", epsilon=0.5, ledger=ledger).fit(X, bad_y)
    assert not ledger.history()


def test_a_candidate_that_changes_the_preparation_is_told_why():
    for name in ("table__share", "model__n_iter"):
        with pytest.raises(ParameterError, match="varies the model alone: its preparation"):
            DPSearchCV(pipeline(), {name: [2, 3]}).plan(3)


def test_fewer_words_than_planned_are_told_to_the_search():
    """A vocabulary has room for many words and finds few; weights are of those that were found."""
    texts = [" ".join(RNG.choice(["good", "bad", "film", "long"], 3)) for _ in range(N)]
    labels = np.array(["yes" if "good" in text else "no" for text in texts])
    pipe = pipeline(step=DPVectorizer("vocabulary"))
    for kind in CANDIDATES:
        found = search(kind, pipe=pipe, epsilon=4.0).fit(texts, labels)
        names = list(found.best_estimator_.get_feature_names_out())
        assert 4 <= len(names) < 20
        assert found.best_estimator_.model_.n_features_in_ == len(names)
        assert found.score(texts, labels) > 0.8


def test_a_method_that_cannot_do_with_fewer_columns_gets_empty_ones():
    pipe = pipeline(model=DPLassoClassifier(Domain(classes=["no", "yes"], n_samples=N), n_iter=20))
    candidates = [{"radius": 2.0}, {"radius": 8.0}]
    found = DPSearchCV(pipe, candidates, epsilon=4.0).fit(X, y)
    assert found.score(X, y) > 0.55
    assert found.privacy_.proven
    assert found.predict(X).shape == (N,)


@pytest.mark.parametrize("kind", [DPLassoClassifier, DPScreenedLassoClassifier])
@pytest.mark.parametrize(("planned", "width"), [(45, 3), (120, 20), (2000, 1)])
def test_fewer_columns_take_no_more_steps_than_were_paid_for(kind, planned, width):
    """Frank-Wolfe wants more steps on fewer columns: a fit that asked for them failed after it had paid."""
    model, labels = kind(Domain(classes=[0, 1], n_samples=1000), epsilon=5.0), np.array([0, 1])
    reserved = model._priced(planned, labels)
    actual = replan_for_width(model, reserved, planned, width, labels)
    assert {phase.name: phase for phase in actual.phases}.items() <= {
        phase.name: phase for phase in reserved.phases
    }.items()
    wanted, steps = (plan.parameters["n_iter"] for plan in (model._priced(width, labels), actual))
    assert steps == reserved.parameters["n_iter"] < wanted
    rows = Rows.clip(
        RNG.uniform(-1, 1, (50, width)), np.arange(50) % 2, model._domain, labels=labels
    )
    model._carry_out(rows, actual, Releases(reserved, make_generator(1)), labels)
    assert model.n_iter_ == steps


@pytest.mark.parametrize(
    ("model", "planned", "width"),
    [
        (DPGradientClassifier(Domain(classes=[0, 1], n_samples=1000)), 5000, 4),
        (DPHardThresholdClassifier(Domain(classes=[0, 1], n_samples=1000)), 5000, 4),
        (DPSparseClassifier(Domain(classes=[0, 1])), 150, 3),
        (DPSparseRegressor(Domain(target_bound=1.0, n_samples=3000)), 2000, 4),
        (DPSparseRegressor(Domain(target_bound=1.0, n_samples=3000)), 600, 4),
        (DPRidgeRegressor(Domain(target_bound=1.0, n_samples=3000)), 600, 1),
    ],
)
def test_fewer_columns_are_looked_at_as_was_planned(model, planned, width):
    """A narrow table would be centred, or its axes released; what was paid for is the look at the planned width."""
    labels = None if model.domain.classes is None else np.array([0, 1])
    reserved = model._priced(planned, labels)
    actual = replan_for_width(model, reserved, planned, width, labels)
    assert actual.phases == reserved.phases
    assert actual.phases != model._priced(width, labels).phases
    assert actual.parameters.get("chosen") == reserved.parameters.get("chosen")
    X, y = RNG.uniform(-1, 1, (200, width)), np.arange(200) % 2
    rows = Rows.clip(X, y, model._clipping(width), labels=labels)
    releases = Releases(reserved, make_generator(1))
    model._carry_out(rows, actual, releases, labels)
    assert np.ravel(model.coef_).shape == (width,)


def test_persons_are_protected_with_all_of_their_rows():
    ids = np.arange(N) // 3
    found = search("free", pipe=pipeline(unit="person")).fit(X, y, groups=ids)
    assert "person" in found.privacy_.headline
    with pytest.raises(ParameterError, match="groups"):
        search("free", pipe=pipeline(unit="person")).fit(X, y)


def test_numbers_are_tuned_by_their_distance():
    pipe = pipeline(model=DPGradientRegressor(Domain(target_range=(0, 100), n_samples=N), n_iter=4))
    found = DPSearchCV(pipe, [{}, {"n_iter": 6}], epsilon=4.0).fit(X, AGE)
    assert found.score(X, AGE) > 0.3


def test_a_seed_repeats_the_search_and_voids_the_guarantee():
    with pytest.warns(NotPrivateWarning):
        one = search("paid", random_state=1).fit(X, y)
    with pytest.warns(NotPrivateWarning):
        two = search("paid", random_state=1).fit(X, y)
    assert np.array_equal(one.best_estimator_.model_.coef_, two.best_estimator_.model_.coef_)
    assert not one.privacy_.proven

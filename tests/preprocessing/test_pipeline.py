"""DPPipeline: one plan, one reservation, one file; replayed as a whole; nothing is spent on what is refused."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

import dpsparse
from complaints import check
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
    DPLassoClassifier,
    Ledger,
)
from dpsparse.accounting import epsilon as event_epsilon
from dpsparse.audit.neighbours import Pair
from dpsparse.audit.replay import check_pair
from dpsparse.audit.subject import Subject
from dpsparse.exceptions import (
    BudgetError,
    BudgetWarning,
    DPSparseError,
    ModelFileError,
    ParameterError,
)
from dpsparse.preprocessing import (
    DPCategoryEncoder,
    DPPipeline,
    DPStandardizer,
    DPTablePreparer,
    DPVectorizer,
    PublicScaler,
)
from parts import objects

ADJACENCIES = ("add-remove", "replace-one")
BINARY = Domain(classes=[0, 1])


def classifier(**parameters):
    return DPGradientClassifier(BINARY, **{"n_iter": 3, **parameters})


def mixed(n=400, seed=0):
    """A messy table: scales apart, gaps, names, texts; and a label that depends on three of them."""
    rng = np.random.default_rng(seed)
    income = rng.lognormal(10.0, 1.0, n)
    colour = rng.choice(["red", "blue", "green"], n, p=[0.5, 0.4, 0.1]).astype(object)
    words = np.array(["good fine film", "bad dull film", "a film"], object)[rng.integers(3, size=n)]
    age = np.where(rng.random(n) < 0.2, np.nan, rng.normal(50, 15, n))
    y = ((income > 22_000) ^ (rng.random(n) < 0.1)).astype(int)
    colour[rng.random(n) < 0.05] = None
    return {"income": income, "age": age, "colour": colour, "note": words}, y


ROLES = {"income": "number", "age": (0, 120), "colour": "category", "note": "words"}


def table_pipeline(model=None, roles=ROLES, **parameters):
    model = classifier() if model is None else model
    return DPPipeline([("table", DPTablePreparer(roles)), ("model", model)], **parameters)


# ---- price ----------------------------------------------------------------------------------------


def test_an_account_of_the_same_delta_holds_many_preparations():
    """Names take so little of delta that epsilon decides, and such a fit opens a Gaussian account."""
    ledger = Ledger(epsilon=4.0, delta=1e-6)
    plan = table_pipeline(epsilon=0.25, delta=1e-6).plan()
    for _ in range(40):
        ledger.reserve(plan)
    assert ledger.spent() < 4.0


def test_a_refusal_for_delta_says_so(monkeypatch):
    monkeypatch.setattr("dpsparse.preprocessing._step.LEAK_SHARE", 2.0**-16)
    ledger = Ledger(epsilon=4.0, delta=1e-6)
    greedy = table_pipeline(epsilon=0.5, delta=1e-6).plan()
    ledger.reserve(greedy)
    with pytest.raises(BudgetError, match="smaller delta than 1e-6, such as 6e-8"):
        ledger.reserve(greedy)
    ledger.reserve(table_pipeline(epsilon=0.5, delta=6e-8).plan())


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_everything_together_costs_what_was_asked(adjacency, epsilon):
    for model in (
        classifier(),
        DPLassoClassifier(BINARY, radius=2.0, n_iter=20),
        DPGradientRegressor(Domain(target_bound=2.0)),
    ):
        plan = table_pipeline(model, epsilon=epsilon, adjacency=adjacency).plan()
        spent = event_epsilon(plan.event, plan.delta)
        assert 0.999 * epsilon <= spent <= epsilon * (1 + 1e-12)
        assert plan.guarantee.proven
        own = [phase for phase in plan.phases if phase.name.startswith("table: ")]
        assert len(own) == 5  # clipped numbers, scales, categories, unlisted names, words


def test_shares_are_shares_of_mu_squared():
    pipe = DPPipeline([("scale", DPStandardizer()), ("model", classifier())])
    plan = pipe.plan(4)
    mu2 = {p.name: (p.event.sensitivity / p.event.scale) ** 2 for p in plan.phases}
    assert mu2["scale: scales"] / sum(mu2.values()) == pytest.approx(0.1, rel=1e-3)


def test_one_reservation_for_everything():
    X, y = mixed()
    ledger = Ledger(epsilon=10.0, delta=1e-6)
    pipe = table_pipeline(ledger=ledger, epsilon=8.0).fit(X, y)
    assert [entry.committed for entry in ledger.history()] == [True]
    assert ledger.spent() == pytest.approx(8.0, rel=1e-3)
    assert pipe.privacy_.epsilon == 8.0
    assert pipe.privacy_.proven
    assert pipe.model_.privacy_.epsilon < 8.0
    assert "of the prepared table" in pipe.model_.privacy_.headline
    with pytest.raises(BudgetError):
        pipe.fit(X, y)
    assert len(ledger.history()) == 1


def test_a_weak_release_is_said_after_the_fit_is_done():
    X, y = mixed(100)
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    pipe = table_pipeline(ledger=ledger, epsilon=0.1)
    with pytest.raises(
        BudgetWarning, match=r"enough rows|above the noise"
    ):  # warnings are errors here
        pipe.fit(X, y)
    assert ledger.history()[0].committed
    assert pipe.predict(X).shape == (100,)


def test_what_declared_bounds_clip_is_told_and_paid():
    X, y = mixed(3000)
    roles = {"income": (0, 10_000), "age": (0, 120), "colour": "drop", "note": "drop"}
    pipe = table_pipeline(roles=roles)
    with pytest.raises(BudgetWarning, match=r"income \(.*Declare wider bounds") as said:
        pipe.fit(X, y)
    assert "age" not in str(said.value)
    scaler = pipe.steps_[0][1].parts_[0][1]
    assert scaler.clipped_share_ == pytest.approx([np.mean(X["income"] > 10_000), 0.0], abs=0.1)
    free = DPTablePreparer(roles).fit(X)  # alone nothing is counted and nothing is paid
    assert not hasattr(free.parts_[0][1], "clipped_share_")


def test_steps_have_prices_of_their_own_outside_a_pipeline():
    X, _ = mixed()
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    step = DPCategoryEncoder(epsilon=0.5, ledger=ledger).fit({"colour": X["colour"]})
    assert step.privacy_.epsilon == 0.5
    assert step.privacy_.proven
    assert ledger.spent() == pytest.approx(0.5, rel=1e-3)
    with pytest.raises(ParameterError, match="epsilon of its own"):
        DPStandardizer().fit(np.ones((5, 1)))


# ---- replay of the whole --------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("unit", ["row", "person"])
def test_replay_through_scales_and_fit_finds_nothing(adjacency, unit):
    model = DPGradientClassifier(Domain(classes=[0, 1], unit=unit), n_iter=3)
    steps = [("scale", DPStandardizer()), ("model", model)]
    pipe = DPPipeline(steps, epsilon=3.0, adjacency=adjacency)
    finding = check(pipe, 3, n_pairs=4, n_climbs=1, every=100)
    assert finding.complaints == ()
    assert finding.tightness["scale: scales"] > 0.2


def pairs_of_tables(adjacency):
    """A row whose names and words nobody else has, cells that are gaps, boundary floats and strange objects."""
    X, y = mixed(60)
    X["age"][0] = 50.0
    odd = [
        {"income": math.inf, "age": math.nan, "colour": "own", "note": "own words of one row"},
        {"income": -5e-324, "age": 1e308, "colour": None, "note": None},
        {"income": math.nan, "age": -math.inf, "colour": ["list"], "note": "x" * 3000},
        {"income": "text", "age": None, "colour": "\ud800", "note": "film " * 500},
        {"income": 10**400, "age": "12", "colour": 1.0, "note": 7},
        {"income": 2.0**40, "age": True, "colour": "", "note": ""},
    ]
    for number, cells in enumerate(odd):
        if adjacency == "add-remove":
            X2 = {name: objects([*column, cells[name]]) for name, column in X.items()}
            yield Pair(X, y, X2, np.append(y, 1), f"odd {number}")
        else:
            X2 = {name: objects([cells[name], *list(column)[1:]]) for name, column in X.items()}
            yield Pair(X, y, X2, np.append(1 - y[:1], y[1:]), f"odd {number}")


def persons_of_tables(adjacency):
    """The odd rows together are one person, of many names; everybody else has two rows."""
    pairs = list(pairs_of_tables("add-remove"))
    X, y = pairs[0].X, pairs[0].y
    groups, odd = np.repeat(np.arange(30), 2), [{n: p.X2[n][-1] for n in X} for p in pairs]
    for rows in (odd, odd[:1] * 7):
        more = {n: objects([*X[n], *(row[n] for row in rows)]) for n in X}
        y2, theirs = np.append(y, [1] * len(rows)), np.append(groups, [30] * len(rows))
        if adjacency == "add-remove":
            yield Pair(X, y, more, y2, "person", groups, theirs)
        else:  # a person of other names in the place of the odd one
            other = {n: objects([*X[n], X[n][0] if n != "colour" else "other"]) for n in X}
            first = np.append(groups, 30)
            yield Pair(other, np.append(y, 0), more, y2, "person", first, theirs)


@pytest.mark.usefixtures("many_names")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_replay_through_a_mixed_table_finds_nothing(adjacency):
    pipe = table_pipeline(epsilon=8.0, adjacency=adjacency)
    subject = Subject(pipe, 4)
    reached = {}
    for number, pair in enumerate(pairs_of_tables(adjacency)):
        for one in (pair, pair.swapped()):
            finding = check_pair(subject, one, seed=number)
            assert finding.complaints == (), pair.name
            for phase, share in finding.reached.items():
                reached[phase] = max(share, reached.get(phase, 0.0))
    for phase in (
        "table: bounds clipped",
        "table: numbers scales",
        "table: categories categories",
        "table: note vocabulary",
    ):
        assert reached[phase] > 0.9, phase


@pytest.mark.usefixtures("many_names")
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_replay_of_persons_in_a_mixed_table_finds_nothing(adjacency):
    model = DPGradientClassifier(Domain(classes=[0, 1], unit="person"), n_iter=3)
    pipe = table_pipeline(model, epsilon=8.0, adjacency=adjacency)
    subject, reached = Subject(pipe, 4), {}
    for number, pair in enumerate(persons_of_tables(adjacency)):
        for one in (pair, pair.swapped()):
            finding = check_pair(subject, one, seed=number)
            assert finding.complaints == ()
            for phase, share in finding.reached.items():
                reached[phase] = max(share, reached.get(phase, 0.0))
    assert reached["table: categories categories"] > 0.9
    assert reached["table: numbers scales"] > 0.6


@pytest.mark.usefixtures("many_names")
@pytest.mark.parametrize("fault", ["order", "threshold", "weights"])
def test_replay_finds_faults_of_names(fault, monkeypatch):
    from dpsparse.rows import columns

    if fault == "weights":  # a row with k names counts k times

        def weigh(shares, place, named, out):
            np.add.at(out, [place[name] for own in named for name in own], shares[1])

        monkeypatch.setattr(columns, "_add_names", weigh)
    pipe = table_pipeline(epsilon=8.0)
    if fault == "threshold":
        from dpsparse.mechanisms import names

        monkeypatch.setattr(names, "name_threshold", lambda *facts: 0.5)
    if fault == "order":  # names told although they do not come out of the door
        original = DPCategoryEncoder._learn

        def learn(self, raw, releases, prefix):
            original(self, raw, releases, prefix)
            [self.first_] = raw._parts.collect(lambda part: str(part.cells.columns[0][-1]))

        monkeypatch.setattr(DPCategoryEncoder, "_learn", learn)
    subject = Subject(pipe, 4)
    found = [
        check_pair(subject, pair, seed=n).complaints
        for n, pair in enumerate(pairs_of_tables("add-remove"))
    ]
    assert any(found)


# ---- persons --------------------------------------------------------------------------------------


def test_persons_are_protected_as_a_whole():
    X, y = mixed()
    model = DPGradientClassifier(Domain(classes=[0, 1], unit="person"), n_iter=3)
    groups = np.repeat(np.arange(100), 4)
    pipe = table_pipeline(model, epsilon=20.0)
    with pytest.raises(ParameterError, match="groups"):
        pipe.fit(X, y)
    pipe.fit(X, y, groups=groups)
    assert pipe.privacy_.unit == "one person, all of their rows"
    with pytest.raises(DPSparseError):
        pipe.fit(X, y, groups=groups[:-1])


# ---- files and plain pipelines --------------------------------------------------------------------


def fitted(**parameters):
    X, y = mixed(3000)
    roles = {**ROLES, "income": "number"}
    return table_pipeline(roles=roles, epsilon=20.0, **parameters).fit(X, y), X, y


def test_a_file_predicts_from_raw_rows(tmp_path):
    pipe, X, y = fitted()
    path = dpsparse.save(pipe, tmp_path / "model.json")
    again = dpsparse.load(path)
    np.testing.assert_array_equal(again.decision_function(X), pipe.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), pipe.predict(X))
    assert again.privacy_ == pipe.privacy_
    assert again.plan_ == pipe.plan_
    assert list(again.get_feature_names_out()) == list(pipe.get_feature_names_out())
    assert dpsparse.save(again, tmp_path / "again.json").read_text() == path.read_text()
    again.fit(X, y)  # the parameters came along


def test_an_edited_file_is_refused(tmp_path):
    import json

    from dpsparse.models.files import _checksum

    pipe, _, _ = fitted()
    path = dpsparse.save(pipe, tmp_path / "model.json")
    record = json.loads(path.read_text())
    for edit in (
        lambda r: r["model"]["parameters"].update(epsilon=0.1),
        lambda r: r["model"]["attributes"]["plan_"]["fields"]["phases"]["items"].pop(0),
        lambda r: r["guarantee"].update(epsilon=0.1),
        lambda r: r["model"]["attributes"]["steps_"]["items"][0]["items"][1].update(kind="os"),
    ):
        changed = json.loads(json.dumps(record))
        edit(changed)
        changed.pop("checksum")
        changed["checksum"] = _checksum(changed)
        path.write_text(json.dumps(changed))
        with pytest.raises(ModelFileError):
            dpsparse.load(path)


# ---- scikit-learn ---------------------------------------------------------------------------------


def test_clones_parameters_and_inputs_of_other_kinds():
    pandas = pytest.importorskip("pandas")
    X, y = mixed()
    pipe = table_pipeline(random_state=1)
    with pytest.warns(dpsparse.exceptions.NotPrivateWarning):
        first = clone(pipe).set_params(model__n_iter=2).fit(X, y)
    assert pipe.get_params()["model__n_iter"] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        second = clone(pipe).set_params(model__n_iter=2).fit(pandas.DataFrame(X), y)
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    assert list(first.feature_names_in_) == list(X)
    assert not hasattr(pipe, "model_")
    reordered = {name: X[name] for name in reversed(X)}
    np.testing.assert_array_equal(first.predict(reordered), first.predict(X))


def test_raw_text_in_five_lines():
    texts = ["a good fine film", "a bad dull film"] * 400
    for mode in ("hash", "vocabulary"):
        pipe = DPPipeline([("words", DPVectorizer(mode)), ("model", classifier())], epsilon=2.0)
        pipe.fit(texts, [1, 0] * 400)
        assert pipe.score(texts, [1, 0] * 400) == 1.0
    named = dict(zip(pipe.get_feature_names_out(), pipe.model_.coef_[0], strict=True))
    assert named["good"] > 0 > named["dull"]
    assert set(named) == {"bad", "dull", "film", "fine", "good"}


def test_a_model_that_cannot_do_with_the_columns_found_gets_empty_ones(tmp_path, monkeypatch):
    original = DPGradientClassifier._make_plan

    def wants_twenty(self, n_features, labels):
        if n_features < 20:
            raise ParameterError("Twenty columns, please.")
        return original(self, n_features, labels)

    monkeypatch.setattr(DPGradientClassifier, "_make_plan", wants_twenty)
    texts, y = ["a good fine film", "a bad dull film"] * 400, [1, 0] * 400
    words = DPVectorizer("vocabulary", max_features=50)
    ledger = Ledger(epsilon=5.0, delta=1e-6)
    pipe = DPPipeline([("words", words), ("model", classifier())], epsilon=4.0, ledger=ledger)
    pipe.fit(texts, y)
    assert len(pipe.steps_[0][1].vocabulary_) == 5
    assert pipe.model_.n_features_in_ == 50
    assert ledger.history()[0].committed
    again = dpsparse.load(dpsparse.save(pipe, tmp_path / "m.json"))
    np.testing.assert_array_equal(again.predict(texts), pipe.predict(texts))


@pytest.mark.parametrize("terms", [{"epsilon": math.inf}, {"random_state": 3}])
def test_models_without_a_guarantee_say_so_in_their_files(tmp_path, terms):
    X, y = mixed(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = table_pipeline(**terms).fit(X, y)
    again = dpsparse.load(dpsparse.save(pipe, tmp_path / "m.json"))
    assert not again.privacy_.proven
    assert again.privacy_ == pipe.privacy_
    np.testing.assert_array_equal(again.predict(X), pipe.predict(X))


# ---- refused before anything is spent -------------------------------------------------------------

X, Y = mixed(200)
SECRET = "Zx9-secret"


@pytest.mark.parametrize(
    ("make", "data"),
    [
        (lambda: DPPipeline([]), (X, Y)),
        (lambda: DPPipeline([("model", classifier())]), (X, Y)),
        (lambda: DPPipeline([("a", DPStandardizer()), ("b", DPStandardizer()), ("m", classifier())]), (X, Y)),
        (lambda: DPPipeline([("a", StandardScaler()), ("m", classifier())]), (X, Y)),
        (lambda: DPPipeline([("a", DPStandardizer()), ("m", StandardScaler())]), (X, Y)),
        (lambda: DPPipeline([("a", DPStandardizer(epsilon=1.0)), ("m", classifier())]), (X, Y)),
        (lambda: DPPipeline([("a", DPStandardizer()), ("m", classifier(random_state=1))]), (X, Y)),
        (lambda: DPPipeline([("a", DPStandardizer()), ("m", DPGradientClassifier())]), (X, Y)),
        (lambda: table_pipeline(epsilon=-1.0), (X, Y)),
        (lambda: table_pipeline(delta=0.0), (X, Y)),
        (lambda: table_pipeline(adjacency="both"), (X, Y)),
        (lambda: table_pipeline(roles={"income": "number"}), (X, Y)),
        (lambda: table_pipeline(roles={**ROLES, "absent": "number"}), (X, Y)),
        (lambda: table_pipeline(roles={**ROLES, "age": "median"}), (X, Y)),
        (lambda: table_pipeline(roles={**ROLES, "age": (5, 5)}), (X, Y)),
        (lambda: table_pipeline(roles={**ROLES, "age": (0, math.inf)}), (X, Y)),
        (lambda: table_pipeline(roles={**ROLES, "colour": []}), (X, Y)),
        (lambda: table_pipeline(roles={**ROLES, "colour": ["a", "a"]}), (X, Y)),
        (lambda: table_pipeline(roles=dict.fromkeys(ROLES, "drop")), (X, Y)),
        (lambda: table_pipeline(), (X, Y[:-1])),
        (lambda: table_pipeline(), (X, [SECRET] * 200)),
        (lambda: table_pipeline(), (X, None)),
        (lambda: table_pipeline(), (np.ones((200, 4)), Y)),
        (lambda: table_pipeline(), ({**X, "age": X["age"][:-1]}, Y)),
        (lambda: table_pipeline(), ({name: [] for name in X}, [])),
        (lambda: table_pipeline(), (SECRET, Y)),
        (lambda: table_pipeline(), (None, Y)),
        (lambda: DPPipeline([("w", DPVectorizer("both")), ("m", classifier())]), (["a"] * 200, Y)),
        (lambda: DPPipeline([("w", DPVectorizer()), ("m", classifier())]), (SECRET, Y)),
        (lambda: DPPipeline([("w", DPVectorizer(n_features=0)), ("m", classifier())]), (["a"] * 200, Y)),
    ],
)  # fmt: skip
def test_refusals_spend_nothing_and_quote_nothing(make, data):
    ledger = Ledger(epsilon=5.0, delta=1e-6)
    pipe = make()
    pipe.ledger = ledger
    with pytest.raises(DPSparseError) as refusal:
        pipe.fit(*data)
    assert SECRET not in str(refusal.value)
    assert ledger.history() == []


def test_a_column_without_a_role_is_named_with_all_others():
    with pytest.raises(DPSparseError, match="age, colour, note"):
        table_pipeline(roles={"income": "number"}).fit(X, Y)


@pytest.mark.parametrize("epsilon", [30.0, 40.0, 100.0])
def test_a_huge_budget_gives_a_plan_of_what_samplers_are_proven_for(epsilon):
    """They are proven up to about 37: the model spends no more, whatever is offered."""
    model = DPGradientClassifier(Domain(classes=[0, 1]))
    pipe = DPPipeline([("scale", PublicScaler((0, 1))), ("model", model)], epsilon=epsilon)
    assert 29.0 < event_epsilon(pipe.plan(3).guarantee.event, 1e-6) <= epsilon


def test_a_plan_for_columns_that_nobody_named_asks_how_many_there_are():
    pipe = DPPipeline([("table", DPTablePreparer(rest="auto")), ("model", classifier())])
    with pytest.raises(ParameterError, match="n_columns"):
        pipe.plan()
    assert "table: kinds" in {phase.name for phase in pipe.plan(n_columns=4).phases}


def test_a_fit_warns_of_identifiers_among_the_columns_that_nobody_named():
    frame = pd.DataFrame({"age": np.arange(60.0), "who": np.arange(60) % 7, "idNum": np.arange(60)})
    y = np.arange(60) % 2
    model = DPGradientClassifier(Domain(classes=[0, 1], unit="person"), n_iter=3)
    pipe = DPPipeline([("table", DPTablePreparer(rest="auto")), ("model", model)], epsilon=math.inf)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipe.fit(frame, y, groups=frame.who)
    told = " ".join(str(warning.message) for warning in caught)
    assert "number rows or persons, and as features they add noise: idNum." in told
    assert "a column of the name that groups has" in told
    pipe.set_params(table__columns={"idNum": "drop", "age": "number"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pipe.fit(frame.drop(columns="who"), y, groups=frame.who)
    assert not [w for w in caught if "noise" in str(w.message) and w.category is UserWarning]


def test_a_plan_warns_of_a_large_delta_as_that_of_its_model_does():
    """The number of rows was declared to the model, and the guarantee of the pipeline did not know it."""
    model = DPGradientClassifier(Domain(classes=[0, 1], n_samples=1_000), n_iter=3)
    pipe = DPPipeline([("scale", DPStandardizer()), ("model", model)], delta=0.001)
    assert "is not below 1/n for n = 1,000 rows" in str(pipe.plan(3).guarantee.cautions)
    assert not pipe.set_params(delta=1e-6).plan(3).guarantee.cautions

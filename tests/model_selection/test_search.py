"""DPSearchCV through the whole corridor: what is paid is what is released, once."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import dpsparse
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
    DPLassoClassifier,
    DPSearchCV,
    Ledger,
    release,
)
from dpsparse.accounting import Exponential, ObjectivePerturbation, delta, epsilon
from dpsparse.exceptions import (
    BudgetError,
    CalibrationError,
    DPSparseError,
    NotPrivateWarning,
    ParameterError,
)
from dpsparse.model_selection.design import Fit, dearest_event
from dpsparse.nonzeros import PrivateCount
from dpsparse.release import Releases, _squares

RNG = np.random.default_rng(5)
X = RNG.normal(size=(400, 6))
y = (X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=400) > 0).astype(int)
DOMAIN = Domain(row_norm=1.0, feature_bound=1.0, classes=[0, 1], n_samples=400)
MODEL = DPGradientClassifier(DOMAIN, n_iter=4)
FREE = {"n_nonzero": [1, 3, None], "threshold": [-0.5, 0.0, 0.5]}
FEW = [{}, {"class_weight": "balanced"}, {"class_weight": {0: 1.0, 1: 2.0}, "threshold": 0.1}]
BOTH = {"n_iter": [2, 3], "n_nonzero": [2, None]}
SEARCHES = {"free": FREE, "paid": FEW, "both": BOTH}


def made(kind, **more):
    adjacency = more.pop("adjacency", "add-remove")
    model = more.pop("model", MODEL)
    return DPSearchCV(clone(model).set_params(adjacency=adjacency), SEARCHES[kind], **more)


# ---- price ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", SEARCHES)
def test_the_plan_spends_what_it_says_and_names_the_break_even(kind, adjacency):
    plan = made(kind, adjacency=adjacency).plan(6)
    spent = epsilon(plan.event, 1e-6)
    assert 0.999 < spent <= 1.0
    assert plan.guarantee.proven
    text = str(plan)
    assert f"with {1 / plan.parameters['kept']:.2f} times the noise" in text
    least = 0.98 if kind == "free" else 0.87
    assert least == pytest.approx(plan.parameters["kept"], abs=0.005)


def test_candidates_that_differ_in_free_parameters_share_a_fit():
    for candidates, n_fits in (
        (FREE, 1),
        (FEW, 4),
        (BOTH, 3),
        ([{"class_weight": "balanced", "threshold": 0.01 * k} for k in range(1, 8)], 1),
        ([{"n_nonzero": PrivateCount(1, 5, 0.1)}, {}], 3),
    ):
        assert DPSearchCV(MODEL, candidates).plan(6).parameters["n_fits"] == n_fits


class Ears:
    """Every release of a run: mu^2 of Gaussian releases and range of choices, by the rows they read."""

    def __init__(self, monkeypatch):
        self.heard = []
        ears = self

        class Listening(Releases):
            def gaussian(self, phase, query, share=1.0):
                ears.heard.append(("gaussian", phase, share * _squares(self._event(phase))))
                assert self.scale(phase, query, share) >= query.sensitivity(
                    self._adjacency
                ).value / math.sqrt(share * _squares(self._event(phase))) * (1 - 1e-12)
                return super().gaussian(phase, query, share)

            def top_k(self, phase, scores, k, unit):
                ears.heard.append(("choice", phase, self._event(phase).eta))
                return super().top_k(phase, scores, k, unit)

        monkeypatch.setattr(release, "Releases", Listening)  # and what is made under it

    @property
    def mu2(self):
        return sum(value for kind, _, value in self.heard if kind == "gaussian")

    @property
    def etas(self):
        return [value for kind, _, value in self.heard if kind == "choice"]


def nearly_all(released, paid):
    """Never more than is paid; on few rows a fit leaves one per cent (the median length) unused."""
    return 0.98 * paid < released <= paid * (1 + 1e-9)


def charged(plan, name):
    event = {phase.name: phase.event for phase in plan.phases}[name]
    return (event.sensitivity / event.scale) ** 2


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", SEARCHES)
def test_what_a_search_releases_is_what_it_charges(monkeypatch, kind, adjacency):
    ears = Ears(monkeypatch)
    plan = made(kind, adjacency=adjacency).fit(X, y).plan_
    names = [phase.name for phase in plan.phases]
    n_fits = {"free": 0, "paid": 3, "both": 2}[kind]
    compared = [f"search {i + 1}" for i in range(n_fits)]
    assert names == ([*compared, "choice", "fit"] if compared else ["fit", "choice"])
    fits = sum(charged(plan, name) for name in names if name != "choice")
    assert nearly_all(ears.mu2, fits) or kind == "paid"  # unlike fits are charged as the dearest
    assert ears.mu2 <= fits * (1 + 1e-9)
    assert ears.etas == [phase.event.eta for phase in plan.phases if phase.name == "choice"]


def test_a_choice_beside_other_noise_is_charged_as_itself():
    lasso = DPLassoClassifier(DOMAIN, n_iter=5)
    free = DPSearchCV(lasso, {"n_nonzero": [1, 2]}).plan(6)
    assert isinstance(free.phases[1].event, Exponential)
    paid = DPSearchCV(lasso, {"radius": [1.0, 10.0]}).plan(6)
    assert [phase.name for phase in paid.phases] == ["search 1", "search 2", "choice", "fit"]
    assert paid.phases[2].event == paid.settings.choice.phases[0].event


@pytest.mark.parametrize(
    "candidates",
    [
        [{}, {"radius": 1.0}, {"radius": 10.0}],
        [{"n_iter": 3}, {"n_iter": 200}],
        [{}, {"n_iter": 5}],
    ],
)
def test_a_last_fit_of_unlike_candidates_pays_for_each_of_them(candidates):
    """Released and given scales, few and many steps: whichever wins, its profile lies below what is charged."""
    plan = DPSearchCV(DPLassoClassifier(DOMAIN), candidates).plan(6)
    charged_event, finals = plan.phases[-1].event, [fit.plan.event for fit in plan.settings.finals]
    assert len(set(finals)) > 1
    for at in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        dearest = max(delta(event, at) for event in finals)
        assert dearest <= delta(charged_event, at) * (1.0 + 1e-9)
    assert max(delta(event, 0.1) for event in finals) > 0.9 * delta(charged_event, 0.1)
    # A Gaussian 5 % too small would not do.
    cheap = replace(charged_event, scale=1.05 * charged_event.scale)
    assert max(delta(event, 0.1) for event in finals) > delta(cheap, 0.1)


def test_unlike_candidates_without_a_dominating_gaussian_are_refused():
    events = [ObjectivePerturbation(scale, 1.0, 1e4, 1.0) for scale in (2.0, 3.0)]
    with pytest.raises(ParameterError, match="dearest"):
        dearest_event(events)
    assert dearest_event(events[:1]) is events[0]


# ---- the corridor --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SEARCHES)
def test_one_reservation_one_commit_and_nothing_but_the_winner(tmp_path, kind, capfd):
    ledger = Ledger(tmp_path / "book.db", epsilon=1.0, delta=1e-6)
    search = made(kind, ledger=ledger)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, y)
    (entry,) = ledger.history()
    assert entry.committed
    assert 0.999 < ledger.spent() <= 1.0 + 1e-9
    assert ledger.verify() == 2
    assert capfd.readouterr() == ("", "")
    fitted = {name for name in vars(search) if name.endswith("_")}
    assert fitted == {
        "best_estimator_", "best_index_", "best_params_", "plan_", "privacy_", "n_features_in_",
    }  # fmt: skip
    assert search.privacy_.proven
    assert search.privacy_.epsilon == 1.0
    assert search.best_estimator_.privacy_ == search.privacy_
    with pytest.raises(BudgetError):
        made(kind, ledger=ledger).fit(X, y)
    assert len(ledger.history()) == 1


def test_a_search_that_breaks_stays_paid_and_uncommitted(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "book.db", epsilon=1.0, delta=1e-6)

    def broken(self, rows, releases):
        raise RuntimeError

    monkeypatch.setattr(Fit, "run", broken)
    with pytest.raises(RuntimeError):
        made("free", ledger=ledger).fit(X, y)
    (entry,) = ledger.history()
    assert not entry.committed
    assert ledger.spent() > 0.99


@pytest.mark.parametrize("kind", SEARCHES)
def test_the_winner_is_a_model_like_any_other(tmp_path, kind):
    search = made(kind, epsilon=30.0)
    with pytest.raises(NotFittedError):
        search.predict(X)
    assert is_classifier(search)
    search.fit(X, y)
    assert search.score(X, y) > 0.8  # lowest of 60 fits: .89; at epsilon 8 it was .71
    model = search.best_estimator_
    assert np.array_equal(search.predict(X), model.predict(X))
    assert search.predict_proba(X).shape == (400, 2)
    path = dpsparse.save(model, tmp_path / "model.json")
    loaded = dpsparse.load(path)
    assert np.array_equal(loaded.predict(X), search.predict(X))
    assert loaded.privacy_ == search.privacy_
    for name, value in search.best_params_.items():
        if name != "threshold":
            assert getattr(model, name) == value
    copy = clone(search)
    assert not hasattr(copy, "best_estimator_")
    assert copy.fit(X, y).n_features_in_ == 6


def test_free_candidates_are_cut_from_one_fit():
    search = DPSearchCV(MODEL, [{"n_nonzero": 1, "threshold": 50.0}], epsilon=50.0).fit(X, y)
    assert search.best_estimator_.n_nonzero_ == 1
    assert set(search.predict(X)) == {0}
    chosen = DPSearchCV(MODEL, {"threshold": [-50.0, 0.0, 50.0]}, epsilon=5.0).fit(X, y)
    assert chosen.best_params_ == {"threshold": 0.0}  # the others are 150 rows behind


@pytest.mark.parametrize("kind", SEARCHES)
def test_regression_and_tiny_tables(kind):
    domain = Domain(row_norm=1.0, target_bound=3.0, n_samples=400)
    model = DPGradientRegressor(domain, n_iter=4)
    wanted = {
        "free": {"n_nonzero": [1, 3]},
        "paid": [{}, {"n_iter": 3}],
        "both": BOTH,
    }
    search = DPSearchCV(model, wanted[kind], epsilon=4.0)
    search.fit(X, X[:, 0] - X[:, 1])
    assert not hasattr(search, "classes_")
    assert search.predict(X).shape == (400,)
    for n in (1, 2, 3):
        made(kind).fit(X[:n], y[:n])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"candidates": []}, "no candidates"),
        ({"candidates": "n_nonzero"}, "candidates must be"),
        ({"candidates": {"n_nonzero": 3}}, "must map names to lists"),
        ({"candidates": {"nonsense": [1]}}, "no parameter 'nonsense'"),
        ({"candidates": {"epsilon": [1.0, 2.0]}}, "whole search"),
        ({"candidates": {"domain": [DOMAIN]}}, "whole search"),
        ({"candidates": {"n_iter": [2, -1]}}, "n_iter must be"),
        ({"candidates": {"threshold": [math.nan]}}, "threshold must be"),
        ({"candidates": {"n_nonzero": [0, 2]}}, "n_nonzero must be"),
        ({"epsilon": math.inf}, "finite"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"delta": 1.0}, "delta must lie"),
        ({"ledger": "book.db"}, "ledger must be"),
        ({"random_state": -1}, "random_state"),
        ({"estimator": clone(MODEL).set_params(ledger=object())}, "ledger"),
        ({"estimator": "DPGradientClassifier"}, "estimator must be"),
        ({"estimator": DPGradientClassifier()}, "domain is required"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_before_anything_is_spent(tmp_path, change, sentence):
    ledger = Ledger(tmp_path / "book.db", epsilon=1.0, delta=1e-6)
    search = DPSearchCV(MODEL, FREE, ledger=ledger).set_params(**change)
    for attempt in (lambda: search.plan(6), lambda: search.fit(X, y)):
        with pytest.raises(DPSparseError, match=sentence) as caught:
            attempt()
        assert "\n" not in str(caught.value)
    assert not ledger.history()


@pytest.mark.parametrize("table", [X * np.nan, X[:0], X[:, :0], X[:5]])
def test_bad_tables_spend_nothing(tmp_path, table):
    ledger = Ledger(tmp_path / "book.db", epsilon=1.0, delta=1e-6)
    with pytest.raises(DPSparseError) as caught:
        made("free", ledger=ledger).fit(table, y[:400])
    assert "\n" not in str(caught.value)
    assert not ledger.history()


def test_seeded_searches_repeat_and_promise_nothing():
    search = made("paid", random_state=1)
    with pytest.warns(NotPrivateWarning):
        first = search.fit(X, y).best_estimator_.coef_
    with pytest.warns(NotPrivateWarning):
        again = search.fit(X, y).best_estimator_.coef_
    assert np.array_equal(first, again)
    assert not search.privacy_.proven


# ---- persons -------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("kind", ["free", "paid"])
def test_persons_are_searched_and_paid_as_persons(kind, adjacency):
    """Whole persons are scored and protected; row accounts refuse, and so does fit without names."""
    from dpsparse.accounting.guarantee import PERSON

    domain = Domain(row_norm=1.0, classes=[0, 1], unit="person", rows_per_unit=5)
    points = [{}, {"n_nonzero": 3}] if kind == "free" else [{}, {"n_iter": 4}]
    groups = np.arange(len(y)) // 3
    ledger = Ledger(epsilon=9.0, delta=1e-5, adjacency=adjacency, unit="person")
    search = DPSearchCV(
        DPGradientClassifier(domain, n_iter=3, adjacency=adjacency),
        points,
        epsilon=2.0,
        ledger=ledger,
    )
    search.fit(X, y, groups=groups)
    assert search.privacy_.unit == search.best_estimator_.privacy_.unit == PERSON
    assert "rows of a person beyond 5 are dropped at random" in search.privacy_.assumptions
    assert len(ledger.history()) == 1
    with pytest.raises(ParameterError, match="groups"):
        search.fit(X, y)
    rows = DPSearchCV(DPGradientClassifier(Domain(classes=[0, 1])), [{}], ledger=ledger)
    with pytest.raises(ParameterError, match="unit='person'"):
        rows.fit(X, y, groups=groups)
    with pytest.raises(BudgetError):
        search.set_params(ledger=Ledger(epsilon=9.0, delta=1e-5, adjacency=adjacency)).fit(
            X, y, groups=groups
        )
    assert len(ledger.history()) == 1


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
@pytest.mark.parametrize("kind", ["free", "paid"])
def test_persons_of_one_row_search_as_rows_do(kind):
    """The same plan and, with a seed, the same winner and the same weights bit for bit."""
    points = [{}, {"n_nonzero": 3}] if kind == "free" else [{}, {"n_iter": 4}]
    found = []
    for unit in ("row", "person"):
        domain = Domain(row_norm=1.0, classes=[0, 1], unit=unit)
        search = DPSearchCV(DPGradientClassifier(domain, n_iter=3), points, random_state=3)
        groups = np.arange(len(y)) if unit == "person" else None
        found.append(search.fit(X, y, groups=groups))
    rows, persons = found
    assert rows.plan_.event == persons.plan_.event
    np.testing.assert_array_equal(rows.best_estimator_.coef_, persons.best_estimator_.coef_)


def test_persons_are_refused_where_the_estimator_refuses_them():
    domain = Domain(row_norm=1.0, classes=[0, 1], unit="person")
    with pytest.raises(ParameterError, match="rows_per_unit=1"):
        DPSearchCV(DPLassoClassifier(domain), [{}, {"radius": 2.0}]).plan(5)


@pytest.mark.parametrize("kind", ["free", "paid"])
def test_a_candidate_that_loses_half_of_the_rows_is_not_chosen(kind):
    """The choice reads the scores: at epsilon 8 the far worse of two is taken less than once in 1e6 searches."""
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(4000, 3)), 4000
    model = DPGradientClassifier(Domain(row_norm=1.0, classes=[0, 1], n_samples=n), n_iter=3)
    candidates = [{"threshold": 50.0}, {} if kind == "free" else {"n_iter": 4}]
    for _ in range(8):
        search = DPSearchCV(model, candidates, epsilon=8.0)
        assert search.fit(X, (X[:, 0] > 0).astype(int)).best_index_ == 1


def test_rows_of_files_are_refused_in_words():
    source = dpsparse.Rows.from_csr(sp.csr_array(X), y)
    ledger = Ledger(epsilon=5.0, delta=1e-6)
    with pytest.raises(ParameterError, match="tables in memory"):
        DPSearchCV(MODEL, [{}], ledger=ledger).fit(source, None)
    assert ledger.history() == []


def test_an_empty_grid_is_refused_and_no_setting_is_meant_by_it():
    """{} as a grid would be the default alone, for the price of a search; [{}] says so."""
    with pytest.raises(ParameterError, match="no candidates"):
        DPSearchCV(MODEL, {}).plan(6)
    assert DPSearchCV(MODEL, [{}]).plan(6).parameters["n_candidates"] == 1


def test_an_epsilon_too_small_for_the_steps_is_said_to_be_so():
    with pytest.raises(CalibrationError, match="leaves nothing"):
        made("free", epsilon=1e-9).plan(6)


def test_a_price_that_no_fit_affords_names_the_ridge():
    domain = Domain(feature_bound=1, target_bound=1, n_samples=1000)
    search = DPSearchCV(dpsparse.DPRidgeRegressor(domain), {"ridge": [1.0, 10.0]}, epsilon=1.0)
    with pytest.raises(CalibrationError, match=r"Raise epsilon or delta \(or ridge"):
        search.plan(10)

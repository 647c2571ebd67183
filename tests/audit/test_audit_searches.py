"""Whole searches replayed on neighbours, over estimators and over pipelines of raw tables; and faults put in, found.

Both adjacencies, rows and persons.
"""

from dataclasses import replace

import pytest

from complaints import check
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
    DPLassoClassifier,
    DPPipeline,
    DPSearchCV,
    DPTwoStageClassifier,
)
from dpsparse.accounting import (
    Exponential,
    Gaussian,
    Repeated,
    RoundedGaussian,
    Sequence,
    gaussian_parameter,
)
from dpsparse.audit import replay
from dpsparse.audit.neighbours import SHAPES
from dpsparse.audit.replay import check_subject
from dpsparse.audit.subject import Subject
from dpsparse.model_selection import design
from dpsparse.model_selection.search import DPSearchCV as Search
from dpsparse.preprocessing import DPTablePreparer
from dpsparse.rows import scores

ADJACENCIES = ("add-remove", "replace-one")
CANDIDATES = {
    "free": {"n_nonzero": [1, 3, None], "threshold": [-0.5, 0.0, 0.5]},
    "paid": [{}, {"class_weight": "balanced"}, {"threshold": 0.4}],
}
BINARY = {"classes": (0, 1)}


def searched(kind, adjacency="add-remove", unit="row", model=None, candidates=None, **more):
    model = model or DPGradientClassifier(
        Domain(**BINARY, unit=unit), n_iter=2, adjacency=adjacency
    )
    return DPSearchCV(model, candidates or CANDIDATES[kind], epsilon=3.0, **more)


def replayed(search, n_features, n_rows=40, **how):
    return check(search, n_features, n_rows=n_rows, n_climbs=0, every=1000, **how)


# ---- nothing is found ----------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", CANDIDATES)
def test_replay_of_a_search_finds_nothing(kind, adjacency, unit):
    finding = replayed(searched(kind, adjacency, unit), 5, n_pairs=len(SHAPES), seed=1)
    assert finding.complaints == ()
    assert max(finding.reached.values()) > 0.99  # the pairs do move the queries


OTHERS = {
    "lasso": (
        DPLassoClassifier(Domain(**BINARY, feature_bound=1.0), n_iter=4),
        [{"radius": 1.0}, {"radius": 3.0}],
    ),
    "lasso, unlike": (
        DPLassoClassifier(Domain(**BINARY, feature_bound=1.0), radius=2.0),
        [{"n_iter": 3}, {"n_iter": 6}],
    ),
    "two stages": (
        DPTwoStageClassifier(Domain(**BINARY, row_norm=1.0, n_samples=40), n_nonzero=2),
        [{}, {"threshold": 0.3}],
    ),
    "numbers": (DPGradientRegressor(Domain(target_bound=2.0), n_iter=2), [{}, {"n_iter": 3}]),
    "few rows of a person": (
        DPLassoClassifier(
            Domain(**BINARY, feature_bound=1.0, unit="person", rows_per_unit=3), n_iter=3
        ),
        [{"radius": 1.0}, {"radius": 3.0}],
    ),
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", OTHERS)
def test_replay_of_other_methods_finds_nothing(kind, adjacency):
    model, candidates = OTHERS[kind]
    model = type(model)(**model.get_params(deep=False) | {"adjacency": adjacency})
    search = searched("paid", model=model, candidates=candidates)
    assert replayed(search, 5, n_pairs=6, n_rows=24).complaints == ()


# ---- raw tables ----------------------------------------------------------------------------------


# Columns of numbers (one of declared bounds) and of names with gaps (one hashed).
ROLES = {"age": "number", "income": (0.0, 100.0), "region": "category", "code": "hash"}


def over_a_pipeline(kind, adjacency, unit, **more):
    model = DPGradientClassifier(Domain(**BINARY, unit=unit), n_iter=2)
    table = DPTablePreparer({"income": (0.0, 100.0), "code": "hash"}, rest="auto")
    pipe = DPPipeline([("table", table), ("model", model)], adjacency=adjacency)
    return DPSearchCV(pipe, CANDIDATES[kind], epsilon=8.0, **more)


@pytest.mark.heavy
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.usefixtures("many_names")
@pytest.mark.parametrize("kind", CANDIDATES)
def test_replay_of_a_search_over_a_pipeline_finds_nothing(kind, adjacency, unit):
    search = over_a_pipeline(kind, adjacency, unit)
    finding = check_subject(Subject(search, 4, ROLES), n_rows=40, n_pairs=7, n_climbs=0)
    assert finding.complaints == ()
    for phase in ("table: kinds", "table: numbers scales", "table: categories categories"):
        assert finding.reached[phase] > 0.3, phase


# ---- what is put in is found ---------------------------------------------------------------------


def found(search, n_pairs=30):
    return " ".join(replayed(search, 5, n_pairs=n_pairs).complaints)


def test_a_second_fit_of_the_same_candidate_is_found(monkeypatch):
    run = design.Search.run

    def again(self, rows, releases):
        self.fits[0].run(rows, releases)
        return run(self, rows, releases)

    monkeypatch.setattr(design.Search, "run", again)
    assert "more than the whole charges" in found(searched("paid"))


@pytest.mark.usefixtures("many_names")
@pytest.mark.parametrize("pipeline", [False, True])
def test_a_choice_sharper_than_its_price_is_found(monkeypatch, pipeline):
    choose = design.Search._choose

    def sharper(self, rows, solutions, releases):
        (phase,) = self.choice.phases
        event = replace(phase.event, eta=1.05 * phase.event.eta)
        choice = replace(self.choice, phases=(replace(phase, event=event),), epsilon=event.eta)
        return choose(replace(self, choice=choice), rows, solutions, releases)

    monkeypatch.setattr(design.Search, "_choose", sharper)
    if pipeline:
        search = over_a_pipeline("free", "add-remove", "row")
        finding = check_subject(Subject(search, 4, ROLES), n_rows=40, n_pairs=2, n_climbs=0)
        assert "more than the whole charges" in finding.first_complaint
    else:
        assert "more than the whole charges" in found(searched("free"))


@pytest.mark.parametrize("kind", CANDIDATES)
def test_scores_that_count_the_rows_of_a_person_are_found(monkeypatch, kind):
    monkeypatch.setattr(scores, "means", lambda persons, found: found)
    assert "too far" in found(searched(kind, unit="person"), n_pairs=50)


def test_a_look_beside_the_door_is_found(monkeypatch):
    """Every answer is the same, so nothing that is left may differ: not the number of rows, say."""
    publish, sizes = Search._publish, []
    run = design.Search.run

    def counting(self, rows, releases):
        sizes.append(len(rows))
        return run(self, rows, releases)

    def telling(self, *facts):
        publish(self, *facts)
        self.n_fitted_ = sizes[-1]

    monkeypatch.setattr(design.Search, "run", counting)
    monkeypatch.setattr(Search, "_publish", telling)
    assert "n_fitted_ differs" in found(searched("paid"))


def test_an_error_of_one_table_is_found(monkeypatch):
    """A fit that gives up on a row nobody else resembles tells that the row is there."""
    run = design.Fit.run

    def choosy(self, rows, releases):
        if len(rows) > 40:
            raise ZeroDivisionError
        return run(self, rows, releases)

    monkeypatch.setattr(design.Fit, "run", choosy)
    assert "control flow" in found(searched("free"))


def test_a_charge_must_pay_for_the_slack_of_what_it_dominates():
    """A mixed run is dominated but for a small probability, which a Gaussian of one released number has no room for."""
    run = Sequence((RoundedGaussian(10.0, 1.0, 3), Repeated(Exponential(0.1), 50)))
    mu, slack = gaussian_parameter(run)
    assert slack > 0.0
    assert replay._covers(RoundedGaussian(1.0 / mu, 1.0, 53), run)
    assert not replay._covers(Gaussian(1.0 / mu), run)
    assert not replay._covers(RoundedGaussian(1.0 / mu, 1.0, 2), run)
    assert not replay._covers(RoundedGaussian(1.01 / mu, 1.0, 53), run)

"""Whole searches replayed on neighbours, over estimators and over pipelines of raw tables; and faults put in, found.

Both adjacencies, rows and persons. What is compared stands in audit/searches.py.
"""

from dataclasses import replace

import numpy as np
import pytest

from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
    DPLassoClassifier,
    DPPipeline,
    DPSearchCV,
    DPTwoStageClassifier,
)
from dpsparse.audit import check_search
from dpsparse.audit.neighbours import SHAPES, pairs
from dpsparse.model_selection import design, path, refit, stopping
from dpsparse.model_selection.search import DPSearchCV as Search
from dpsparse.preprocessing import DPTablePreparer
from dpsparse.random import make_generator
from dpsparse.rows import held_out

ADJACENCIES = ("add-remove", "replace-one")
CANDIDATES = {
    "path": {"n_nonzero": [1, 3, None], "threshold": [-0.5, 0.0, 0.5]},
    "refit": [{}, {"masses": None}, {"threshold": 0.4}],
    "stopping": {"step_size": [0.5, 5.0]},
}
BINARY = {"classes": (0, 1)}


def searched(design, adjacency="add-remove", unit="row", model=None, candidates=None, **more):
    model = model or DPGradientClassifier(
        Domain(**BINARY, unit=unit), n_iter=2, adjacency=adjacency
    )
    return DPSearchCV(model, candidates or CANDIDATES[design], design=design, epsilon=3.0, **more)


# ---- nothing is found ----------------------------------------------------------------------------


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("design", CANDIDATES)
def test_replay_of_a_search_finds_nothing(design, adjacency, unit):
    finding = check_search(searched(design, adjacency, unit), 5, n_pairs=len(SHAPES), seed=1)
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
    "votes of blocks": (
        DPTwoStageClassifier(
            Domain(**BINARY, row_norm=1.0), n_nonzero=2, n_blocks=3, support="votes"
        ),
        [{}, {"threshold": 0.3}],
    ),
    "numbers": (DPGradientRegressor(Domain(target_bound=2.0), n_iter=2), [{}, {"clip": 0.3}]),
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
    split = "sizes" if adjacency == "replace-one" else "draws"
    search = searched("refit", model=model, candidates=candidates, split=split)
    assert check_search(search, 5, n_pairs=6, n_rows=24).complaints == ()


# ---- raw tables ----------------------------------------------------------------------------------


def raw(X):
    """Columns of numbers (one of declared bounds) and of names with gaps (one hashed)."""
    names = np.array([None, "south", "own"], object)[np.sign(X[:, 2]).astype(int)]
    return {"age": 50.0 * X[:, 0], "income": np.exp(np.clip(X[:, 1], -30, 30)), "region": names,
            "code": np.where(X[:, 3] > 0.5, "x", "y").astype(object)}  # fmt: skip


def raw_pairs(adjacency, unit, n_pairs=7):
    source = pairs(Domain(**BINARY, unit=unit), adjacency, 40, 4, make_generator(2))
    for _ in range(n_pairs):
        pair = next(source)
        yield replace(pair, X=raw(pair.X), X2=raw(pair.X2))


def over_a_pipeline(design, adjacency, unit, **more):
    model = DPGradientClassifier(Domain(**BINARY, unit=unit), n_iter=2)
    table = DPTablePreparer({"income": (0.0, 100.0), "code": "hash"}, rest="auto")
    pipe = DPPipeline([("table", table), ("model", model)], adjacency=adjacency, leak_share=0.1)
    points = CANDIDATES[design]
    grid = isinstance(points, dict)
    points = [_outward(p) for p in ([points] if grid else points)]
    return DPSearchCV(pipe, points[0] if grid else points, design=design, epsilon=8.0, **more)


def _outward(point):
    return {n if n == "threshold" else f"model__{n}": value for n, value in point.items()}


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("design", CANDIDATES)
def test_replay_of_a_search_over_a_pipeline_finds_nothing(design, adjacency, unit):
    search = over_a_pipeline(design, adjacency, unit)
    finding = check_search(search, 4, raw_pairs(adjacency, unit))
    assert finding.complaints == ()
    for phase in ("table: kinds", "table: numbers scales", "table: categories categories"):
        assert finding.reached[phase] > 0.3, phase


# ---- what is put in is found ---------------------------------------------------------------------


def found(search, n_features=5, neighbours=None, n_pairs=30):
    return " ".join(check_search(search, n_features, neighbours, n_pairs=n_pairs).complaints)


@pytest.mark.parametrize("pipeline", [False, True])
def test_a_choice_on_rows_that_were_fitted_is_found(monkeypatch, pipeline):
    """Part B is charged for the choice and part A for the fits; scores of all rows cost both."""

    def careless(rows, split, releases):
        training, _ = design.secret_split(rows, split, releases)
        return training, rows

    monkeypatch.setattr(refit, "secret_split", careless)
    if pipeline:
        search = over_a_pipeline("refit", "add-remove", "row")
        assert "both parts" in found(search, 4, raw_pairs("add-remove", "row", 20))
    else:
        assert "both parts" in found(searched("refit"))


def test_a_person_in_both_parts_is_found(monkeypatch):
    """The last person, whom the neighbours differ in, is held out and fitted as well."""
    chosen = held_out._chosen

    def everywhere(part, mask):
        return chosen(part, mask | (np.arange(len(mask)) == len(mask) - 1))

    monkeypatch.setattr(held_out, "_chosen", everywhere)
    assert "both parts" in found(searched("refit", unit="person"))


def test_equal_parts_under_add_remove_are_found(monkeypatch):
    monkeypatch.setattr("dpsparse.model_selection.search.check_split", lambda *facts: None)
    assert "equal blocks" in found(searched("refit", split="sizes"))


@pytest.mark.parametrize("pipeline", [False, True])
def test_what_is_told_of_losers_is_found(monkeypatch, pipeline):
    """The searched fits are paid for the choice alone; a number made of their weights must not be left."""
    run, seen = refit.RefitDesign.run, []

    def heard(solution, domain):
        seen.append(float(np.abs(solution.coef).sum()))
        return linear(solution, domain)

    def telling(self, rows, releases):
        seen.clear()
        return replace(run(self, rows, releases), n_iter=max(seen))

    linear = refit.linear
    monkeypatch.setattr(refit, "linear", heard)
    monkeypatch.setattr(refit.RefitDesign, "run", telling)
    if pipeline:
        search = over_a_pipeline("refit", "add-remove", "row")
        assert "tells of runs that lost" in found(search, 4, raw_pairs("add-remove", "row", 2))
    else:
        assert "tells of runs that lost" in found(searched("refit"))


def test_the_number_of_runs_is_found(monkeypatch):
    runs = []
    base, run = stopping.StoppingDesign._base, stopping.StoppingDesign.run

    def counted(self, *facts):
        runs.append(1)
        return base(self, *facts)

    def telling(self, rows, releases):
        runs.clear()
        return replace(run(self, rows, releases), n_iter=len(runs))

    monkeypatch.setattr(stopping.StoppingDesign, "_base", counted)
    monkeypatch.setattr(stopping.StoppingDesign, "run", telling)
    assert "tells of runs that lost" in found(searched("stopping"))


def test_a_second_fit_of_the_same_candidate_is_found(monkeypatch):
    run = refit.RefitDesign.run

    def again(self, rows, releases):
        self.fits[0].run(rows, releases.under(self.fits[0].plan, "one more"))
        return run(self, rows, releases)

    monkeypatch.setattr(refit.RefitDesign, "run", again)
    assert "more than the search charges" in found(searched("refit"))


def test_a_choice_sharper_than_its_price_is_found(monkeypatch):
    plan = path.choice_plan
    monkeypatch.setattr(path, "choice_plan", lambda eta, *terms: plan(1.05 * eta, *terms))
    assert "more than the search charges" in found(searched("path"))


def test_a_run_dearer_than_the_others_is_found(monkeypatch):
    """Random stopping pays the same for every run, whichever candidate is tried and however it is scored."""
    run = stopping.StoppingDesign.run

    def sharper(self, rows, releases):
        event = self.score.phases[0].event
        phase = replace(self.score.phases[0], event=replace(event, scale=event.scale / 1.05))
        score = replace(self.score, phases=(phase,), epsilon=2.0 * self.score.epsilon)
        return run(replace(self, score=score), rows, releases)

    monkeypatch.setattr(stopping.StoppingDesign, "run", sharper)
    assert "more than every run may" in found(searched("stopping"))


@pytest.mark.parametrize("design", CANDIDATES)
def test_scores_that_count_the_rows_of_a_person_are_found(monkeypatch, design):
    monkeypatch.setattr(held_out, "means", lambda persons, scores: scores)
    assert "too far" in found(searched(design, unit="person"), n_pairs=50)


def test_a_look_beside_the_door_is_found(monkeypatch):
    """Every answer is the same, so nothing that is left may differ: not the size of a secret part, say."""
    publish, sizes = Search._publish, []
    split = design.held_out

    def counting(rows, blocks):
        training, testing = split(rows, blocks)
        sizes.append(len(training))
        return training, testing

    def telling(self, *facts):
        publish(self, *facts)
        self.n_fitted_ = sizes[-1]

    monkeypatch.setattr(design, "held_out", counting)
    monkeypatch.setattr(Search, "_publish", telling)
    assert "n_fitted_ differs" in found(searched("refit"))


def test_an_error_of_one_table_is_found(monkeypatch):
    """A fit that gives up on a row nobody else resembles tells that the row is there."""
    run = design.Fit.run

    def choosy(self, rows, releases):
        if len(rows) > 40:
            raise ZeroDivisionError
        return run(self, rows, releases)

    monkeypatch.setattr(design.Fit, "run", choosy)
    assert "control flow" in found(searched("path"))

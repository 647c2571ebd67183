"""Whole fits of Frank-Wolfe, for every combination of options: each pick has the law its plan pays for.

Fits go through `fit`. Scores are made again by the plain formulas from the rows and the released picks, the inverse
temperature from the range that the plan declares, so that nothing of the solver is asked about itself. A right law
fails a test here with probability 1e-6.
"""

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse import (
    Domain,
    DPLassoClassifier,
    DPLassoRegressor,
    DPScreenedLassoClassifier,
    DPScreenedLassoRegressor,
)
from dpsparse.accounting.events import Exponential, leaves
from dpsparse.audit.noise import rare_p_value, selection_p_value
from dpsparse.audit.subject import Subject
from dpsparse.mechanisms import Release
from dpsparse.methods.frank_wolfe.run import Steps
from dpsparse.random import make_generator
from dpsparse.release import Releases, releases_made_by
from plain_frank_wolfe import scores_along
from rows.test_engines import Apart, Cut

ALARM, STEPS = 1e-6, 20
ADJACENCIES = {"add-remove": 2.0, "replace-one": 4.0}  # how far a row may move the range of scores
LOSSES = {
    "logistic": (DPLassoClassifier, {"classes": (0, 1)}),
    "softmax": (DPLassoClassifier, {"classes": (0, 1, 2)}),
    # The squared loss on declared scales, Huber's on released ones.
    "numbers": (DPLassoRegressor, {"target_bound": 1.0}),
    "screened logistic": (DPScreenedLassoClassifier, {"classes": (0, 1)}),
    "screened numbers": (DPScreenedLassoRegressor, {"target_bound": 1.0}),
}


class Watched(Releases):
    """Releases that write down which vertices were drawn, and from which rows."""

    def __init__(self, plan, rng, seen):
        super().__init__(plan, rng)
        self.seen = seen

    def _vertices(self, phase, vertices):
        history = super()._vertices(phase, vertices)
        self.seen.append((vertices.steps, history))
        return history


def table(loss, n_rows=48, width=4):
    """Weak signals: several vertices are likely at every step, and every step moves them."""
    rng = np.random.default_rng(5)
    X = np.where(rng.random((n_rows, width)) < 0.7, rng.uniform(-1.0, 1.0, (n_rows, width)), 0.0)
    if loss == "softmax":
        y = rng.integers(0, 3, n_rows)
    elif "logistic" in loss:
        y = rng.integers(0, 2, n_rows)
    else:
        y = np.clip(0.3 * X[:, 0] + rng.normal(0.0, 0.6, n_rows), -1.0, 1.0)
    return sp.csr_array(X), y


def make_model(loss, adjacency, scales, fit_intercept, **more):
    kind, facts = LOSSES[loss]
    declared = {"radius": 3.0} if scales == "declared" else {}
    # So many declared rows that scales are released; fewer are there.
    n_samples = 48 if scales == "declared" else 4000
    return kind(
        Domain(**facts, feature_bound=1.0, n_samples=n_samples), epsilon=60.0, delta=1e-3, n_iter=STEPS,
        adjacency=adjacency, fit_intercept=fit_intercept, **declared, **more,
    )  # fmt: skip


def picks_of_fits(model, source, n_runs, seed=0):
    """Every pick of `n_runs` fits: scores by the plain formulas, and the candidate that was drawn."""
    subject, rng, found = Subject(model, source.n_features), make_generator(seed), []
    (event,) = (e for e in leaves(subject.plan.event) if isinstance(e, Exponential))
    for _ in range(n_runs):
        seen = []
        with releases_made_by(lambda plan, seen=seen: Watched(plan, rng, seen)):
            model.fit(source)
        assert seen
        for steps, history in seen:
            kappa = (event.eta - 2.0**-37) / ADJACENCIES[model.adjacency] / steps.problem.resolution
            cells = history.features * steps.problem.n_outputs + history.outputs
            plain = scores_along(steps.rows.table(), steps.problem, history)
            for scores, cell, sign in zip(plain, cells, history.signs, strict=True):
                # The step goes against the sign s of e^{kappa s G}; candidates with s = +1 stand first.
                pick = cell + (scores.size if sign > 0 else 0)
                query = np.concatenate([scores, -scores])
                found.append(Release("vertices", "picks", query, np.array([pick]), kappa))
    return found


def with_kappa(entries, factor):
    return [Release(e.phase, e.kind, e.query, e.answer, factor * e.step) for e in entries]


def assert_law(model, source, n_runs):
    entries = picks_of_fits(model, source, n_runs)
    assert len(entries) == STEPS * n_runs
    assert selection_p_value(entries) > ALARM
    assert rare_p_value(entries) > ALARM
    for factor in (2.0, 0.5):  # the power of the test: another temperature is seen
        assert selection_p_value(with_kappa(entries, factor)) < ALARM
    return entries


def combinations():
    """All of them; those that are not marked slow hold every pair of loss and engine, and both values of all else."""
    for (i, loss), adjacency, fit_intercept, (j, engine), scales in itertools.product(
        enumerate(LOSSES),
        ADJACENCIES,
        (True, False),
        enumerate((Cut, Apart)),
        ("declared", "released"),
    ):
        chosen = (
            adjacency == ("add-remove", "replace-one")[(i + j) % 2],
            fit_intercept == bool(i % 4 < 2),
            scales == ("declared", "released")[(i // 2 + j) % 2],
        )
        name = f"{loss}, {adjacency}, {'' if fit_intercept else 'no '}intercept, {engine.__name__}, {scales}"
        marks = [] if all(chosen) else [pytest.mark.slow]
        yield pytest.param(loss, adjacency, fit_intercept, engine, scales, id=name, marks=marks)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("loss", "adjacency", "fit_intercept", "engine", "scales"), [*combinations()]
)
def test_every_pick_of_a_fit_has_its_law(loss, adjacency, fit_intercept, engine, scales):
    model = make_model(loss, adjacency, scales, fit_intercept)
    released = {phase.name for phase in model.plan(4).phases} & {"entry", "columns"}
    assert bool(released) == (scales == "released")
    assert_law(model, engine(*table(loss), 2), 40)


@pytest.mark.parametrize("engine", [Cut, Apart])
def test_large_tables_release_the_size_of_entries(engine):
    """Regression on more rows than can be centred goes another way than on few."""
    model = make_model("numbers", "add-remove", "released", True)
    model.domain = dataclasses.replace(model.domain, n_samples=10**9)
    assert "entry" in {phase.name for phase in model.plan(4).phases}
    assert_law(model, engine(*table("numbers"), 2), 40)


def test_scores_of_an_earlier_step_are_seen(monkeypatch):
    """The fault that once made a guarantee false: vertices are drawn by scores that are some steps old."""
    at = Steps._at
    monkeypatch.setattr(Steps, "_at", lambda self, history, t: at(self, history, max(t - 3, 0)))
    model = make_model("logistic", "add-remove", "declared", True)
    assert selection_p_value(picks_of_fits(model, Apart(*table("logistic"), 2), 40)) < ALARM

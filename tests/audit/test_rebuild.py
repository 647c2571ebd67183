"""Every private run is rebuilt, bit for bit, from public facts and what it released: nothing else leaves.

Leaks that are seeded into the real code show: numbers that stay exact while every release is priced right.
"""

import inspect
import warnings
from dataclasses import replace

import numpy as np
import pytest

import dpsparse.evaluation.api
import dpsparse.inference.feature_test
import dpsparse.methods.gradient.solve
import dpsparse.models.files
import dpsparse.preprocessing.categories
from audit.runs import all_runs
from dpsparse import DPFeatureTest, DPSearchCV
from dpsparse.audit import rebuild
from dpsparse.audit.recorded import RecordedReleases
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.release import Releases
from dpsparse.rows import Rows

RUNS = {run.name: run for run in all_runs()}


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(run, id=run.name, marks=[] if run.quick else [pytest.mark.slow])
        for run in RUNS.values()
    ],
)
def test_a_run_is_rebuilt_from_its_transcript(run):
    found = rebuild(run.build(), *run.tables())
    assert found.differences == ()
    assert found.n_answers > 0


def test_every_way_out_is_in_the_transcript():
    """A new public method of Releases must be put into one of these lists, and into the transcript if it tells."""
    public = {name for name, _ in inspect.getmembers(Releases, inspect.isfunction)}
    public = {name for name in public if not name.startswith("_")}
    prices = {
        "exact",
        "budget",
        "scale",
        "geometric_sd",
        "kappa",
    }  # of plan and lemmas alone
    through_the_door = {"gaussian", "geometric", "top_k", "count", "names", "release"}  # _release
    through_the_door |= {"vertices", "tilt"}  # _vertices, _tilted
    own = {name for name in vars(RecordedReleases) if name in public}
    assert public - prices - through_the_door == own
    assert {"_release", "_vertices", "_tilted"} <= set(vars(RecordedReleases))


# ---- seeded leaks --------------------------------------------------------------------------------

LEAKS = []


def leak(run):
    """Register a leak that shows in a run."""

    def register(seed):
        LEAKS.append(pytest.param(run, seed, id=seed.__name__))
        return seed

    return register


@leak("evaluate numbers-add-remove-row")
def spread_about_the_exact_mean(patch):
    """The centre of the spread is the mean itself, not the noisy one that was paid for."""
    original = dpsparse.evaluation.api.release_numbers

    def release(rows, *more):
        [mean] = rows._parts.collect(lambda part: float(part.truth.mean()))
        return replace(original(rows, *more), centre=mean)

    patch.setattr(dpsparse.evaluation.api, "release_numbers", release)


@leak("evaluate numbers-replace-one-person")
def spread_about_an_exact_mean_that_is_kept_aside(patch):
    """The same, taken where rows are scored: no look at the rows of the run."""
    original, release = dpsparse.evaluation.api.score_rows, dpsparse.evaluation.api.release_numbers
    aside = []

    def score(model, X, y, *more):
        aside.append(float(np.mean(y)))
        return original(model, X, y, *more)

    patch.setattr(dpsparse.evaluation.api, "score_rows", score)
    patch.setattr(
        dpsparse.evaluation.api,
        "release_numbers",
        lambda *facts: replace(release(*facts), centre=aside[-1]),
    )


@leak("feature test-add-remove-row")
def exact_class_counts_of_the_feature_test(patch):
    original = Releases.gaussian

    def gaussian(self, phase, query, share=1.0):
        noisy = original(self, phase, query, share)
        return query.whole(0.5) * 0.5 if phase == "counts" else noisy

    patch.setattr(Releases, "gaussian", gaussian)


@leak("feature test-replace-one-person")
def exact_class_counts_that_are_kept(patch):
    original = DPFeatureTest.fit

    def fit(self, X, y, **more):
        original(self, X, y, **more)
        self.counts_ = np.bincount(y)
        return self

    patch.setattr(DPFeatureTest, "fit", fit)


@leak("DPGradientClassifier-0-add-remove")
def an_exact_count_is_kept(patch):
    original = BaseDPLinearModel._fit

    def fit(self, X, y, *more):
        original(self, X, y, *more)
        self.n_seen_ = len(y)
        return self

    patch.setattr(BaseDPLinearModel, "_fit", fit)


@leak("DPRidgeRegressor-0-add-remove")
def an_exact_mean_is_used(patch):
    original = BaseDPLinearModel._carry_out

    def carry_out(self, rows, plan, releases, labels):
        total = rows.target_total().whole(2.0**-20)[0] * 2.0**-20
        original(self, rows, plan, releases, labels)
        self.intercept_ += total / len(rows)

    patch.setattr(BaseDPLinearModel, "_carry_out", carry_out)


@leak("DPGradientClassifier-0-replace-one-persons")
def a_warning_depends_on_rows(patch):
    original = BaseDPLinearModel._fit

    def fit(self, X, y, *more):
        if np.abs(X).max() > 10.0:
            warnings.warn("Some entries are large.", stacklevel=2)
        return original(self, X, y, *more)

    patch.setattr(BaseDPLinearModel, "_fit", fit)


@leak("DPGradientClassifier-0-add-remove")
def a_line_on_the_terminal_counts_rows(patch):
    original = BaseDPLinearModel._carry_out

    def carry_out(self, rows, *more):
        print(f"{len(rows)} rows")
        original(self, rows, *more)

    patch.setattr(BaseDPLinearModel, "_carry_out", carry_out)


@leak("DPGradientClassifier-0-add-remove")
def the_noise_follows_the_rows(patch):
    original = Rows.class_counts

    def class_counts(self, n_classes):
        query = original(self, n_classes)
        most = query.whole(0.5).max() / 2
        return replace(query, sensitivity=lambda adjacency: _times(query, adjacency, most))

    def _times(query, adjacency, most):
        moved = query.sensitivity(adjacency)
        return replace(moved, value=moved.value * most)

    patch.setattr(Rows, "class_counts", class_counts)


@leak("DPHardThresholdRegressor-0-add-remove")
def the_number_of_steps_follows_the_rows(patch):
    original = BaseDPLinearModel._carry_out

    def carry_out(self, rows, plan, releases, labels):
        original(self, rows, plan, releases, labels)
        self.n_iter_ = min(self.n_iter_, len(rows) // 30)

    patch.setattr(BaseDPLinearModel, "_carry_out", carry_out)


@leak("encoder-add-remove-row")
def a_category_that_nobody_released(patch):
    encoder = dpsparse.preprocessing.categories.DPCategoryEncoder
    original = encoder._learn

    def learn(self, raw, releases, prefix):
        original(self, raw, releases, prefix)
        [self.first_] = raw._parts.collect(lambda part: str(part.cells.columns[0][0]))

    patch.setattr(encoder, "_learn", learn)


@leak("pipeline-words-lasso-add-remove-row")
def a_file_that_counts_rows(patch):
    seen, clipped = [], dpsparse.rows.RawRows.of

    def of(cells, targets=None, groups=None):
        seen.append(cells.n_rows)
        return clipped(cells, targets, groups)

    readable = dpsparse.models.files.readable

    def counted(header):
        return readable(header) + "\n" * seen[-1]

    patch.setattr(dpsparse.rows.RawRows, "of", of)
    patch.setattr(dpsparse.models.files, "readable", counted)


@leak("search free-add-remove-row")
def the_exact_score_of_the_winner(patch):
    original = DPSearchCV.fit

    def fit(self, X, y, **more):
        original(self, X, y, **more)
        self.best_score_ = self.score(X, y)
        return self

    patch.setattr(DPSearchCV, "fit", fit)


@pytest.mark.parametrize(("name", "seed"), LEAKS)
def test_a_leak_shows(name, seed, monkeypatch):
    run = RUNS[name]
    seed(monkeypatch)
    found = rebuild(run.build(), *run.tables())
    assert not found.holds
    assert found.differences[0]

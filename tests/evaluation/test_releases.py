"""The releases of an evaluation: on neighbours nothing else moves, what moves is paid, the noise has its law."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from dpsparse import Domain, DPGradientClassifier, DPGradientRegressor, dp_evaluate
from dpsparse.audit.recorded import RecordedReleases
from dpsparse.audit.replay import check_subject
from dpsparse.audit.subject import Subject as Audited
from dpsparse.evaluation.plan import Subject, make_plan, number_of_bins
from dpsparse.evaluation.released import release_labels, release_numbers
from dpsparse.random import make_generator
from dpsparse.rows.histogram import ScoredLabels, ScoredNumbers

RNG = np.random.default_rng(0)
# Rows (class, feature); the model shows the feature itself as margin.
N = 736  # with one row more there would be one bin more, if bins were counted by the true number
ROWS = np.column_stack([RNG.integers(0, 2, N), RNG.normal(size=N)])


class Shown:
    classes_ = np.array([0, 1])

    def predict(self, X):
        return (X[:, 0] > 0).astype(int)

    def predict_proba(self, X):
        with np.errstate(over="ignore"):
            p = 1.0 / (1.0 + np.exp(-X[:, 0]))
        return np.column_stack([1.0 - p, p])


class Three(Shown):
    """A third class that is as likely as the feature is near 0."""

    classes_ = np.array([0, 1, 2])

    def predict(self, X):
        return self.predict_proba(X).argmax(axis=1)

    def predict_proba(self, X):
        with np.errstate(over="ignore"):
            near = 0.5 / (1.0 + X[:, 0] ** 2)
        return np.column_stack([(1.0 - near[:, None]) * super().predict_proba(X), near])


class Line:
    def predict(self, X):
        return 0.5 * X[:, 0]


TASKS = {
    "classifier": (Shown(), DPGradientClassifier, {"classes": [0, 1]}),
    "three classes": (Three(), DPGradientClassifier, {"classes": [0, 1, 2]}),
    "regressor": (Line(), DPGradientRegressor, {"target_bound": 1.0}),
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_replay_on_neighbours(adjacency, task):
    """Every number, threshold and table of a report follows from what was released, which moves by what is paid."""
    model, claim, facts = TASKS[task]
    more = {name: facts[name] for name in facts if name == "target_bound"}

    def run(X, y):
        rows = X.toarray() if hasattr(X, "toarray") else X
        return dp_evaluate(model, rows, y, epsilon=1.0, adjacency=adjacency, **more)

    subject = Audited(claim(Domain(**facts), adjacency=adjacency), 2, run=run)
    finding = check_subject(subject, n_rows=N, n_pairs=22, n_climbs=2, every=40)
    assert finding.complaints == ()
    assert set(finding.tightness) == {phase.name for phase in subject.plan.phases}
    assert min(finding.tightness.values()) > (0.99 if adjacency == "add-remove" else 0.8)


def test_the_number_of_rows_would_show_in_the_bins():
    """What makes the replay above notice a number of bins that is taken from the rows."""
    mu = make_plan(
        Subject(2), Subject(2).metrics, epsilon=1.0, delta=1e-6, adjacency="add-remove"
    ).parameters["mu"]
    assert number_of_bins(N, mu * math.sqrt(0.4)) < number_of_bins(N + 1, mu * math.sqrt(0.4))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_output_law(adjacency):
    """Released minus exact, over the stated standard deviation, is standard normal: Kolmogorov-Smirnov on some
    4,000 numbers of each kind, false alarms 2e-6 in all; every phase by itself has the stated variance (6 sd)."""
    noise = make_generator(1)
    truth, margin = ROWS[:, 0].astype(np.intp), ROWS[:, 1]
    chances = Shown().predict_proba(margin[:, None])
    labels = ScoredLabels(truth, (margin > 0).astype(np.intp), margin, chances, 2)
    three = Three().predict_proba(margin[:, None])
    several = ScoredLabels(truth, three.argmax(axis=1), margin, three, 3)
    numbers = ScoredNumbers(0.1 * margin, truth - 0.5)
    for subject, rows, release in (
        (Subject(2), labels, release_labels),
        (Subject(3), several, release_labels),
        (Subject(0), numbers, release_numbers),
    ):
        plan = make_plan(subject, subject.metrics, epsilon=1.0, delta=1e-6, adjacency=adjacency)
        names = [phase.name for phase in plan.phases]
        deviations = {name: [] for name in names}
        for _ in range(30 if subject.n_classes else 500):
            releases = RecordedReleases(plan, noise)
            released = release(rows, names, subject, releases)
            for entry in releases.entries:
                if entry.kind == "gaussian":
                    unit = entry.step * math.sqrt(released.variance[entry.phase])
                    np.testing.assert_allclose(
                        released.numbers[entry.phase], entry.answer * unit, rtol=1e-12
                    )
                    deviations[entry.phase] += (entry.noise * entry.step).tolist()
        everything = np.concatenate([np.array(d) for d in deviations.values()])
        assert len(everything) > 3000
        assert stats.kstest(everything, "norm").pvalue > 1e-6
        for phase, parts in deviations.items():
            n = len(parts)
            assert abs(np.var(parts) * n - n) < 6 * math.sqrt(2 * n) + 12, phase
        # What the plan pays for is what was drawn: scale times sensitivity of the lemma.
        for phase in plan.phases:
            query_scale = math.sqrt(released.variance[phase.name])
            bound = query_scale / phase.event.scale
            expected = {
                "add-remove": (1.0, 0.5),
                "replace-one": (math.sqrt(2.0), 1.0, 2.0),
            }[adjacency]
            assert min(abs(bound - e) for e in expected) < 1e-9, phase.name


@pytest.mark.heavy
def test_shares_are_the_same_in_every_process():
    """Python orders sets of words anew in every process; the last digit of a share must not follow."""
    code = (
        "from dpsparse.evaluation.plan import Subject, shares\n"
        "print([shares(Subject(n_classes=k), m, 'add-remove') for k, m in "
        "((2, ('accuracy', 'log_loss', 'brier', 'auc', 'f1')), (0, ('mae', 'mse', 'r2')))])"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
            timeout=300,
        ).stdout
        for seed in range(3)
    }
    assert len(told) == 1

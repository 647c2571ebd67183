"""The lemma of the choice, on exact laws: what one row or person may move, and what that costs."""

import itertools

import numpy as np
import pytest

from dpsparse import Domain
from dpsparse.accounting import Exponential, Phase, Plan
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.scores import LinearModel, centred_scores


def choice_plan(eta, adjacency):
    return Plan("choice", (Phase("choice", Exponential(eta)),), eta, 1e-6, adjacency)


class Recording(Releases):
    """The exponent and the whole-number scores of a choice."""

    def _release(self, phase, picks):
        self.kappa, self.whole = picks.kappa, picks.question()
        return super()._release(phase, picks)


# ---- persons: the same with whole persons ------------------------------------------------


def persons(sizes, right, unit="person", **facts):
    """Rows of one feature; row i of a person is predicted rightly by the model x > 0 where `right` says so."""
    domain = Domain(feature_bound=1.0, classes=[0, 1], unit=unit, **facts)
    y = np.ones(sum(sizes), int)
    X = np.where(np.asarray(right), 1.0, -1.0)[:, None]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return Rows.clip(X, y, domain, labels=np.array([0, 1]), groups=groups)


MODEL = [LinearModel(np.ones((1, 1)), np.zeros(1))]


def test_a_person_counts_once_however_many_rows():
    """Means over rows: persons of 1, m and 10^4 rows add at most half a unit, and a person of two minds nothing."""
    unit = 2.0**-12
    for size in (1, 5, 10_000):
        for right, expected in ((True, 0.5), (False, -0.5)):
            whole = centred_scores(persons([size], [right] * size), MODEL).whole(unit)
            assert whole[0] * unit == expected
    mixed = centred_scores(persons([4], [True, False, True, False]), MODEL).whole(unit)
    assert mixed[0] == 0
    # Row by row, made whole one at a time, three minds of a person would leave more than their mean.
    thirds = centred_scores(persons([3], [True, True, False]), MODEL).whole(unit)
    assert thirds[0] == int(np.trunc(0.5 / 3 / unit))


# ---- the choice -------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_drawn_choice_has_the_range_it_pays_for(adjacency):
    """Exact law of the choice on all neighbours of a small table: range at most eta, and nearly attained."""
    eta, k, domain = 0.7, 3, Domain(feature_bound=1.0, classes=[0, 1])
    # Three models on one feature each; a row of signs is right for any pattern of the models.
    models = [LinearModel(np.eye(k)[[j]], np.zeros(1)) for j in range(k)]
    patterns = np.array(list(itertools.product([-1.0, 1.0], repeat=k)))

    def log_law(rows):
        X, y = patterns[list(rows)], np.ones(len(rows), int)
        table = Rows.clip(X, y, domain, labels=np.array([0, 1]))
        door = Recording(choice_plan(eta, adjacency), make_generator(1))
        door.top_k("choice", centred_scores(table, models), 1, 0.5)
        exponents = door.kappa * door.whole
        return exponents - np.logaddexp.reduce(exponents)

    widest = 0.0
    for first, other in itertools.product(range(8), repeat=2):
        common = [1, 6, 3]
        neighbour = [*common, other] if adjacency == "replace-one" else common
        ratio = log_law([*common, first]) - log_law(neighbour)
        widest = max(widest, np.ptp(ratio))
    assert 0.999 * eta < widest <= eta


def test_scores_are_whole_numbers_per_row():
    """A NaN, an infinity or a wild target moves a sum by at most half a row (one, if replaced)."""
    domain = Domain(feature_bound=1.0, target_bound=2.0)
    X = np.array([[1.0, 0.0], [0.5, -1.0], [-1.0, 1.0]])
    wild = [
        LinearModel(np.array([[1e300, 1e300]]), np.array([-1e300]), 2.0),
        LinearModel(np.array([[np.inf, 0.0]]), np.zeros(1), 2.0),
    ]
    tame = LinearModel(np.array([[2.0, 0.0]]), np.zeros(1), 2.0)
    y = np.array([2.0, -2.0, 1e9])
    for n in (1, 2, 3):
        rows = Rows.clip(X[:n], y[:n], domain)
        whole = centred_scores(rows, [*wild, tame]).whole(2.0**-12)
        assert np.all(np.abs(whole) <= n * 2**11)
    # 1 - |y - yhat|/2 in units of the bound: 1, 1 - .75, 0
    assert centred_scores(Rows.clip(X, y, domain), [tame]).whole(0.25).tolist() == [2 - 1 - 2]

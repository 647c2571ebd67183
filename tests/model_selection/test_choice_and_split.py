"""The two lemmas of the designs without stopping, on exact laws: what a choice costs, and what a split saves."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from dpsparse import Domain
from dpsparse.exceptions import ParameterError
from dpsparse.model_selection.design import check_split, secret_split
from dpsparse.model_selection.pricing import choice_parameter, choice_plan, choice_range
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.held_out import Linear, centred_scores


def gaussian(mu, eps):
    return ndtr(mu / 2 - eps / mu) - math.exp(eps) * ndtr(-mu / 2 - eps / mu)


class Recording(Releases):
    """The exponent and the whole-number scores of a choice."""

    def _release(self, phase, picks):
        self.kappa, self.whole = picks.kappa, picks.question()
        return super()._release(phase, picks)


# ---- persons: the same lemmas with whole persons ------------------------------------------------


def persons(sizes, right, unit="person", **facts):
    """Rows of one feature; row i of a person is predicted rightly by the model x > 0 where `right` says so."""
    domain = Domain(feature_bound=1.0, classes=[0, 1], unit=unit, **facts)
    y = np.ones(sum(sizes), int)
    X = np.where(np.asarray(right), 1.0, -1.0)[:, None]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    return Rows.clip(X, y, domain, labels=np.array([0, 1]), groups=groups)


MODEL = [Linear(np.ones((1, 1)), np.zeros(1))]


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


@pytest.mark.parametrize("split", ["draws", "sizes"])
def test_a_split_keeps_persons_whole(split):
    sizes = np.random.default_rng(0).integers(1, 6, 200)
    rows = persons(sizes, np.ones(sizes.sum(), bool))
    releases = Releases(choice_plan(1.0, 1e-6, "replace-one"), make_generator(1))
    training, testing = secret_split(rows, split, releases)
    assert len(training) + len(testing) == 200
    assert len(testing) == 40 if split == "sizes" else 10 < len(testing) < 80
    kept = np.sort(
        np.concatenate([np.diff(part.persons) for r in (training, testing) for part in r._parts])
    )
    np.testing.assert_array_equal(kept, np.sort(sizes))


# ---- Lemma 2: the choice -------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [1e-3, 0.06, 0.5, 2.0, 6.0])
def test_a_gaussian_dominates_the_choice_and_no_smaller_one_does(eta):
    mu = choice_parameter(eta)
    for t in np.linspace(0.0, eta, 41)[
        1:-1
    ]:  # the two-point pairs of range eta: losses t and t - eta
        q = math.expm1(-t) / math.expm1(-eta)
        pairs = np.array([[(1 - q) * math.exp(t), q * math.exp(t - eta)], [1 - q, q]])
        assert pairs.sum(axis=1) == pytest.approx([1.0, 1.0])
        for one, other in (pairs, pairs[::-1]):
            for eps in np.linspace(0.0, eta, 15):
                exact = np.maximum(one - math.exp(eps) * other, 0.0).sum()
                assert exact <= gaussian(mu, eps) * (1 + 1e-9) + 1e-15
    assert math.tanh(eta / 4) > gaussian(0.999 * mu, 0.0)  # attained at t = eta/2
    assert choice_range(mu) == pytest.approx(eta, rel=1e-9)
    assert choice_parameter(choice_range(mu)) <= mu * (1 + 1e-11)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_drawn_choice_has_the_range_it_pays_for(adjacency):
    """Exact law of the choice on all neighbours of a small table: range at most eta, and nearly attained."""
    eta, k, domain = 0.7, 3, Domain(feature_bound=1.0, classes=[0, 1])
    # Three models on one feature each; a row of signs is right for any pattern of the models.
    models = [Linear(np.eye(k)[[j]], np.zeros(1)) for j in range(k)]
    patterns = np.array(list(itertools.product([-1.0, 1.0], repeat=k)))

    def log_law(rows):
        X, y = patterns[list(rows)], np.ones(len(rows), int)
        table = Rows.clip(X, y, domain, labels=np.array([0, 1]))
        door = Recording(choice_plan(eta, 1e-6, adjacency), make_generator(1))
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
        Linear(np.array([[1e300, 1e300]]), np.array([-1e300]), 2.0),
        Linear(np.array([[np.inf, 0.0]]), np.zeros(1), 2.0),
    ]
    tame = Linear(np.array([[2.0, 0.0]]), np.zeros(1), 2.0)
    y = np.array([2.0, -2.0, 1e9])
    for n in (1, 2, 3):
        rows = Rows.clip(X[:n], y[:n], domain)
        whole = centred_scores(rows, [*wild, tame]).whole(2.0**-12)
        assert np.all(np.abs(whole) <= n * 2**11)
    # 1 - |y - yhat|/2 in units of the bound: 1, 1 - .75, 0
    assert centred_scores(Rows.clip(X, y, domain), [tame]).whole(0.25).tolist() == [2 - 1 - 2]


# ---- Lemma 1: the split --------------------------------------------------------------------------

GRID = np.linspace(-9.0, 9.0, 361)
CELL = (GRID[1] - GRID[0]) ** 2


def noisy_sums(mixture):
    """Density of (sum of A, sum of B) + standard noise for [(weight, sum A, sum B)]."""
    return sum(w * norm.pdf(GRID, a)[:, None] * norm.pdf(GRID, b)[None, :] for w, a, b in mixture)


def worst(P, Q, eps):
    return max(
        np.maximum(one - math.exp(eps) * other, 0.0).sum() * CELL for one, other in ((P, Q), (Q, P))
    )


def test_own_draws_cost_one_part_only():
    """Rows {1} against {1, -1}, one noisy sum a part: a draw for every row costs what one part costs."""
    P = noisy_sums([(0.5, 1, 0), (0.5, 0, 1)])
    Q = noisy_sums([(0.25, 0, 0), (0.25, 1, -1), (0.25, -1, 1), (0.25, 0, 0)])
    assert worst(P, Q, 1.0) <= gaussian(1.0, 1.0)


def test_fixed_sizes_under_add_remove_are_refused_because_they_cost_more():
    """Half of the rows in A: the extra row pushes the other one to another part (delta .2635, not .1269)."""
    P = noisy_sums([(1.0, 0, 1)])  # A holds floor(1/2) rows
    Q = noisy_sums([(0.5, 1, -1), (0.5, -1, 1)])
    assert gaussian(1.0, 1.0) == pytest.approx(0.1269, abs=1e-4)
    assert worst(P, Q, 1.0) == pytest.approx(0.2635, abs=1e-3)
    with pytest.raises(ParameterError, match="not private under add-remove"):
        check_split("sizes", "add-remove")
    check_split("sizes", "replace-one")


def test_a_split_by_content_is_refused_because_replacing_a_row_moves_both_parts():
    P, Q = noisy_sums([(1.0, 1, 0)]), noisy_sums([(1.0, 0, 1)])
    assert worst(P, Q, 1.0) > 1.5 * gaussian(1.0, 1.0)
    for adjacency in ("replace-one", "add-remove"):
        with pytest.raises(ParameterError, match="looks at rows"):
            check_split("content", adjacency)


@pytest.mark.parametrize("split", ["draws", "sizes"])
def test_a_split_keeps_every_row_once(split):
    domain = Domain(feature_bound=100.0, classes=[0, 1])
    X = np.arange(1.0, 41.0)[:, None] @ np.array([[1.0, 0.0]])
    X[:, 1] = X[:, 0] % 3
    rows = Rows.clip(X, np.arange(40) % 2, domain, labels=np.array([0, 1]), n_parts=3)
    door = Releases(choice_plan(0.1, 1e-6, "replace-one"), make_generator(3))
    inside, outside = secret_split(rows, split, door)
    tables = [part.table() for part in (inside, outside)]
    values = np.concatenate([np.column_stack([t.X.toarray(), t.y]) for t in tables])
    expected = np.column_stack([X, np.arange(40) % 2])
    assert np.array_equal(values[np.argsort(values[:, 0])], expected)
    assert len(outside) == 8 or split == "draws"
    assert 0 < len(outside) < 40

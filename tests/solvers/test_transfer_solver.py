"""Prior, peeling and distillation: the support-flip counterexample, sensitivities and the law of every noise."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from dpsparse import DPTransferClassifier
from dpsparse.domain import Domain
from dpsparse.mechanisms import Picks
from dpsparse.noise import STEPS
from dpsparse.privacy import Exponential, NonPrivate, Phase, Plan, Repeated, RoundedGaussian
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.sensitivity import class_counts, ridge_minimiser, signed_sum
from dpsparse.solvers.two_stage import (
    Peeling,
    RidgeFit,
    SupportFirst,
    fit,
    peel_support,
    release_prior,
    slope_bound_at,
)
from recording import replay

CODES = np.array([0, 1])


class Recorder(Releases):
    """Notes what leaves, and picks the first features."""

    def __init__(self, plan, rng):
        super().__init__(plan, rng)
        self.picked, self.answered = [], []

    def _release(self, phase, made):
        if isinstance(made, Picks):
            self.picked.append((made.kappa / made.unit, made.question() * made.unit, made.scores))
            return np.arange(made.k)
        self.answered.append((phase, made.scale, made.query))
        return super()._release(phase, made)


def door(phases, adjacency="add-remove", seed=0, kind=Recorder):
    named = tuple(Phase(name, event) for name, event in phases.items())
    plan = Plan("test", named, math.inf, 1e-6, adjacency, proven=False)
    return kind(plan, make_generator(seed))


def table(X, y, loss="logistic"):
    domain = Domain(feature_bound=1.0, classes=[0, 1], target_bound=2.0)
    return Rows.clip(sp.csr_array(X), y, domain, labels=CODES if loss == "logistic" else None)


def public(loss="logistic", n_nonzero=2, n_outputs=1, cutoff=1.0, public_rows=None, **peeling):
    facts = {"n_samples": 30, "feature_bound": 1.0, "longest": 9.0, "step": 1.0, **peeling}
    stage = RidgeFit(
        "output", cutoff, 1.0, 9.0, 50.0, 1e-9, public_rows=public_rows,
        n_public=0 if public_rows is None else len(public_rows),
    )  # fmt: skip
    return SupportFirst(loss, n_outputs, n_nonzero, 0.0, 1.0, Peeling(**facts), stage)


def flip(m):
    """m + 1 rows (e1, 1) and m rows (e2, 1), and the neighbour with one row replaced."""
    rows = np.zeros((2 * m + 1, 2))
    rows[: m + 1, 0] = 1.0
    rows[m + 1 :, 1] = 1.0
    other = rows.copy()
    other[m] = [0.0, 1.0]
    return rows, other, np.ones(2 * m + 1)


def test_support_flip_leaves_the_proven_teacher_within_its_sensitivity():
    """Given the released support the teacher moves by no more than the plan pays for."""
    X, other, y = flip(500)
    ridge = 0.1 * 1001
    for support in ([0], [1], [0, 1]):
        for cutoff in (0.25, 0.5):
            answers = []
            for table_ in (X, other):
                columns = table(table_, y, "huber").ridge(
                    np.array(support), constant=0.0, row_clip=1.0, longest=2.0
                )
                query = columns.problem("huber", ridge=ridge, tol=1e-9, cutoff=cutoff).minimiser()
                answers.append(query.whole(1e-9) * 1e-9)
            bound = ridge_minimiser(cutoff, 1.0, 1.0, ridge, "replace-one", tol=1e-9).value
            assert np.linalg.norm(answers[0] - answers[1]) <= bound + 2e-9


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_prior_sensitivities_are_attained(adjacency):
    """Class counts, and the sum of targets in units of the bound."""
    y = np.array([0, 1, 1, 0])
    more = np.append(y, 1) if adjacency == "add-remove" else np.array([1, 1, 1, 0])
    unit, ones = 2.0**-20, np.ones((5, 1))
    counts = [table(ones[: len(t)], t).class_counts(2) for t in (y, more)]
    moved = np.linalg.norm(counts[0].whole(unit) - counts[1].whole(unit)) * unit
    assert moved == pytest.approx(class_counts(adjacency).value, rel=1e-5)
    assert moved <= counts[0].sensitivity(adjacency).value
    numbers = np.array([2.0, 1.0])
    more = np.append(numbers, -9.0) if adjacency == "add-remove" else np.array([-2.0, 1.0])
    sums = [table(ones[: len(t)], t, "huber").target_total() for t in (numbers, more)]
    moved = abs(int(sums[0].whole(unit)[0]) - int(sums[1].whole(unit)[0])) * unit
    assert moved == pytest.approx(signed_sum(1.0, adjacency).value, rel=1e-5)
    assert moved <= sums[0].sensitivity(adjacency).value


@pytest.mark.parametrize("loss", ["huber", "logistic"])
def test_prior_noise_law(loss):
    """Noisy mean: scale/n; log-odds far from the floor: to first order scale sqrt(1/n+^2 + 1/n-^2). Accepts
    the right scale, rejects 10 % off (2,000 draws, rate 1e-6)."""
    n = 50 if loss == "huber" else 200
    y = np.zeros(n) if loss == "huber" else np.arange(n) % 2
    rows = table(np.zeros((n, 1)), y, loss)
    draws = []
    for seed in range(2000):
        releases = door({"prior": RoundedGaussian(0.4, 1.0, 2)}, seed=seed, kind=Releases)
        recipe = public(loss, n_samples=n)
        draws.append(release_prior(rows, recipe, recipe.first, releases)[0])
    per_unit = 1.0 / n if loss == "huber" else math.sqrt(2.0) / (n / 2)
    total = np.sum((np.array(draws) / per_unit) ** 2)
    for scale, good in ((0.4, True), (0.44, False), (0.36, False)):
        low, high = chi2.ppf([5e-7, 1 - 5e-7], 2000)
        assert (low <= total / scale**2 <= high) == good


def test_prior_of_several_classes_is_one_release():
    y = np.repeat([0, 1, 2], [10, 20, 30])
    domain = Domain(feature_bound=1.0, classes=[0, 1, 2])
    rows = Rows.clip(sp.csr_array((60, 1)), y, domain, labels=np.arange(3))
    recipe = public(n_outputs=3, n_samples=60)
    releases = door({"prior": NonPrivate()})
    prior = release_prior(rows, recipe, recipe.first, releases)
    np.testing.assert_allclose(prior, np.log([10 / 50, 20 / 40, 30 / 30]), atol=1e-6)
    assert len(releases.answered) == 1


@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("prior", [0.0, -1.3])
@pytest.mark.parametrize("size", [1.0, 2.0**-100])
def test_peeling_scores_move_by_at_most_the_charged_bound(loss, prior, size):
    """One added row moves every score by at most the slope bound, in units of feature_bound, which is
    attained by the largest entries (and not by the smallest ones)."""
    rng = np.random.default_rng(0)
    cutoff = 0.7 if loss == "huber" else 1.0
    bound = slope_bound_at(loss, cutoff, abs(prior))
    X = rng.uniform(-1, 1, (20, 5))
    y = (rng.random(20) < 0.5) * 1 if loss == "logistic" else rng.uniform(-2, 2, 20)
    worst = 0.0
    for target in (0, 1) if loss == "logistic" else (-2.0, 2.0):
        for sign in (-1.0, 1.0):
            scores = []
            for rows, targets in (
                (X, y),
                (np.vstack([X, sign * size * np.ones(5)]), np.append(y, target)),
            ):
                query = table(rows, targets, loss).entries(1.0, 9.0).gradient(
                    loss, np.zeros((5, 1)), np.array([prior]), clip=bound, cutoff=bound, original=True
                )  # fmt: skip
                assert query.sensitivity("add-remove").value == bound
                whole = query.shifted(np.zeros(5)).magnitudes().whole(bound * 2.0**-30)
                scores.append(whole * bound * 2.0**-30)
            worst = max(worst, float(np.max(np.abs(scores[0] - scores[1]))))
    assert worst <= bound
    assert (worst >= 0.99 * bound) == (size == 1.0)


@pytest.mark.parametrize(("adjacency", "twice"), [("add-remove", 1.0), ("replace-one", 2.0)])
def test_peeling_uses_the_planned_kappa_and_noise(adjacency, twice):
    """eta = 2 kappa D with D = slope bound * feature bound, doubled for replace-one; values get ratio times
    slope bound * sqrt(s)."""
    X = np.random.default_rng(0).uniform(-1, 1, (30, 6))
    y = np.arange(30) % 2
    phases = {
        "support": Repeated(Exponential(0.3), 4),
        "values": RoundedGaussian(3.0, 1.0, 2),
    }
    releases = door(phases, adjacency)
    recipe = public(rounds=2, use_prior=False)
    peel_support(table(X, y), recipe, recipe.first, releases, 0.0)
    (first, scores, _), (second, _, _) = releases.picked
    assert first == pytest.approx(0.3 / (2 * 0.5 * twice))  # slope bound 1/2 at zero weights
    assert second < first  # the released weights raise the slope bound
    np.testing.assert_allclose(scores, np.abs(X.T @ (0.5 - y)), rtol=2e-5, atol=1e-6)
    ((_, scale, _),) = releases.answered
    assert scale == pytest.approx(3.0 * 0.5 * math.sqrt(2.0) * twice)


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_peeling_moves_by_no_more_than_it_pays_for(adjacency):
    """Picks and values of neighbours: log-ratio range eta, noise ratio, both attained to 99 %."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.2, 0.2, (40, 12)), rng.integers(0, 2, 40)
    row = np.zeros(12)
    row[:4] = 0.5  # norm 1, entries at the feature bound
    domain = Domain(feature_bound=0.5, row_norm=1.0, classes=[0, 1], n_samples=4060)
    model = DPTransferClassifier(
        domain, n_nonzero=4, n_iter=2, adjacency=adjacency, epsilon=50.0,
        random_state=0,
    )  # fmt: skip
    # A prior of 99 % for one class makes slopes of nearly one for the other; twenty such rows keep sums
    # away from zero, where magnitudes would hide a change of sign.
    y[:] = 1
    X = np.vstack([X, np.zeros((4000, 12)), np.tile(row, (20, 1))])
    y = np.r_[y, np.ones(4000, int), np.zeros(20, int)]
    if adjacency == "add-remove":
        table, near = (X, y), (np.vstack([X, row]), np.append(y, 0))
    else:
        table, near = (
            (np.vstack([X, -row]), np.append(y, 0)),
            (np.vstack([X, row]), np.append(y, 0)),
        )
    again = replay(model, table, near)
    events = {phase.name: phase.event for phase in model.plan_.phases}
    support, values = events["support"].event, events["values"].event
    moved = max(spread for _, spread in again.picks)
    assert moved <= support.eta
    # Four entries rise by the largest amount and none falls: half of the range.
    assert moved >= 0.97 * support.eta / 2
    paid = values.sensitivity / values.scale
    assert 0.97 * paid <= again.of("values").max() <= paid


def test_answers_carry_operator_norm_noise_and_its_rounding():
    """Noise on the answers is |X~|_op times that of the teacher: a teacher that moves by D moves them by no more."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 5))
    rows = table(X, (X[:, 0] > 0) * 1)
    public_rows = rng.uniform(-1, 1, (300, 5))
    norm = np.linalg.norm(public_rows, 2)
    direction = np.linalg.svd(public_rows)[2][0]
    assert np.linalg.norm(public_rows @ direction) == pytest.approx(norm)  # attained
    support = np.arange(5)
    teacher = fit(rows, support, public(), door({"fit": NonPrivate()}))
    recipe = public(public_rows=public_rows)
    student = fit(rows, support, recipe, door({"fit": NonPrivate()}))
    np.testing.assert_allclose(student, teacher, rtol=1e-6, atol=1e-9)
    moved = ridge_minimiser(1.0, 1.0, 1.0, 50.0, "add-remove", 1e-9).value
    event = Repeated(RoundedGaussian(0.01, moved, 300), 2000)
    students = []
    for seed in range(500):
        releases = door({"fit": event.event}, seed=seed)
        students.append(fit(rows, support, recipe, releases) - teacher)
    ((_, scale, query),) = releases.answered
    assert query.sensitivity("add-remove").value == pytest.approx(norm * moved, rel=1e-8)
    assert scale == pytest.approx(norm * moved / (moved / 0.01 - math.sqrt(300) / STEPS), rel=1e-8)
    covariance = (norm * 0.01) ** 2 * np.linalg.inv(public_rows.T @ public_rows)
    total = np.einsum("ij,jk,ik->", students, np.linalg.inv(covariance), students)
    for factor, good in ((1.0, True), (1.1, False), (0.9, False)):
        low, high = chi2.ppf([5e-7, 1 - 5e-7], 2500)
        assert (low <= total / factor**2 <= high) == good


def test_direct_release_is_never_worse_than_distillation():
    public_rows = np.random.default_rng(1).uniform(-1, 1, (400, 6))
    norm = np.linalg.norm(public_rows, 2)
    covariance = norm**2 * np.linalg.inv(public_rows.T @ public_rows)  # per unit of scale^2
    assert np.min(np.linalg.eigvalsh(covariance)) >= 1.0 - 1e-9

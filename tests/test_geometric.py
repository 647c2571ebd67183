"""One number with geometric noise (docs/proofs/counts.md, Lemma 7): bound for every float, both adjacencies and
persons, law of what a fit releases, and what is refused. False-alarm rate of the statistical test: 1e-6 (seeded)."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from dpsparse import Domain, DPGradientRegressor, PrivateCount
from dpsparse.accounting import (
    Exponential,
    Geometric,
    NonPrivate,
    Repeated,
    RoundedGaussian,
    epsilon,
)
from dpsparse.audit.recorded import RecordedReleases
from dpsparse.exceptions import CalibrationError
from dpsparse.mechanisms import GeometricNoise
from dpsparse.random import make_generator
from dpsparse.rows import Query, Rows
from dpsparse.sensitivity import signed_sum

TARGETS = [0.0, -0.0, 5e-324, 0.3, 2.0 * (1 - 2.0**-53), 2.0, -2.0, 1e300, -1e300]
ADJACENCIES = ("add-remove", "replace-one")


def plan_of(adjacency, eps=0.5):
    domain = Domain(target_bound=2.0, n_samples=12)
    return DPGradientRegressor(domain, epsilon=eps, adjacency=adjacency).plan(3)


def whole(y, adjacency, persons):
    """The target total of one row, or of a person with several, in the whole numbers of the plan."""
    domain = Domain(target_bound=2.0, unit="person" if persons else "row")
    groups = np.zeros(len(y)) if persons else None
    rows = Rows.clip(np.ones((len(y), 1)), np.array(y), domain, groups=groups)
    (phase,) = plan_of(adjacency).phases
    noise = GeometricNoise.paid_by(phase.event, rows.target_total(), adjacency)
    assert noise.bound(adjacency) == (phase.event.sensitivity, "abs")
    return int(noise.question()[0])


@pytest.mark.parametrize("persons", [False, True])
def test_no_target_moves_the_sum_by_more_than_the_event_says(persons):
    lines = [[y] for y in TARGETS]
    if persons:
        lines += [[y] * 60 for y in TARGETS] + [[2.0, -2.0, 2.0], [2.0] * 7 + [1e-300]]
    for adjacency in ADJACENCIES:
        (phase,) = plan_of(adjacency).phases
        found = [whole(y, adjacency, persons) for y in lines]
        moved = max(found) - min(found) if adjacency == "replace-one" else max(map(abs, found))
        assert 0.999 * phase.event.sensitivity < moved <= phase.event.sensitivity


@pytest.mark.parametrize("factor", [1.0, 0.95, 0.5])
def test_the_mean_alone_has_the_planned_law(factor):
    """|Z|/scale is exponential on so fine a grid; 5 % less noise is rejected, and half of it."""
    (phase,) = plan_of("add-remove").phases
    query = Query((1,), lambda a: signed_sum(1.0, a), lambda unit: np.array([5]))
    noise = GeometricNoise.paid_by(phase.event, query, "add-remove")
    drawn = replace(noise, scale=noise.scale * factor)
    rng = make_generator(4)
    draws = np.array([int(drawn.draw(drawn.question(), rng)[0]) - 5 for _ in range(12_000)])
    total = 2.0 * np.abs(draws).sum() / phase.event.scale
    p = 2 * min(chi2.cdf(total, 2 * draws.size), chi2.sf(total, 2 * draws.size))
    assert (p > 1e-6) == (factor == 1.0)
    assert abs(np.mean(draws > 0) - 0.5) < 5 * 0.5 / math.sqrt(draws.size)
    if factor == 1.0:
        assert np.std(draws) * noise.unit == pytest.approx(noise.sd, rel=0.05)


def test_all_of_epsilon_pays_for_the_mean_and_no_delta():
    for eps in (0.1, 1.0, 3.0):
        plan = plan_of("add-remove", eps)
        (phase,) = plan.phases
        assert epsilon(plan.event, 1e-12) == pytest.approx(eps)
        query = Query((1,), lambda a: signed_sum(1.0, a), lambda unit: np.array([0]))
        sd = GeometricNoise.paid_by(phase.event, query, "add-remove").sd
        assert sd == pytest.approx(math.sqrt(2.0) / eps, rel=1e-6)


def test_a_number_that_the_event_does_not_pay_for_is_refused():
    def query(bound, size=1):
        return Query((size,), lambda a: signed_sum(bound, a), lambda unit: np.zeros(size, np.int64))

    with pytest.raises(CalibrationError, match="another number"):  # a third is no whole part of one
        GeometricNoise.paid_by(Geometric(9.0, 3), query(1.0), "add-remove")
    with pytest.raises(CalibrationError, match="another number"):
        GeometricNoise.paid_by(Geometric(9.0, 4), query(1.0, 2), "add-remove")
    for other in (RoundedGaussian(1.0, 1.0, 1), Exponential(0.1), Repeated(Geometric(9.0, 4), 2)):
        with pytest.raises(CalibrationError, match="does not pay"):  # not: no noise at all
            GeometricNoise.paid_by(other, query(1.0), "add-remove")
    exact = GeometricNoise.paid_by(NonPrivate(), query(1.0), "add-remove")
    assert exact.sd == exact.scale == 0.0
    far = GeometricNoise(query(1.0), 1.0, 1e300)
    assert abs(int(far.draw(np.array([3]), make_generator(0))[0])) == 2**62


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_mean_of_a_fit_is_recorded_and_told_once(adjacency):
    plan = plan_of(adjacency)
    rows = Rows.clip(np.ones((100, 1)), np.linspace(-3.0, 3.0, 100), Domain(target_bound=3.0))
    releases = RecordedReleases(plan, make_generator(0))
    releases.geometric("mean", rows.target_total())
    (entry,) = releases.entries
    assert entry.kind == "geometric"
    assert entry.bound == Fraction(plan.phases[0].event.sensitivity)
    with pytest.raises(CalibrationError, match="more than it pays"):
        releases.geometric("mean", rows.target_total())


@pytest.mark.parametrize("eps", [0.1, 0.3, 0.7, 1.1, 1.3, 4.9, 1.0 - 2.0**-53])
def test_no_scale_is_rounded_below_what_epsilon_pays_for(eps):
    count = PrivateCount(low=5, high=200, epsilon=eps)
    for event in (plan_of("add-remove", eps).phases[0].event, count.event):
        assert Fraction(event.sensitivity) / Fraction(event.scale) <= Fraction(eps)
        assert event.scale <= math.nextafter(event.sensitivity / eps, math.inf)

"""The threshold release: exact laws of small tables against what is claimed, and the law of what is drawn."""

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest

from dpsparse.accounting import (
    Phase,
    Plan,
    RoundedGaussian,
    Sequence,
    ThresholdedGaussian,
    delta,
    epsilon,
)
from dpsparse.accounting.events import from_dict, to_dict
from dpsparse.exceptions import ParameterError
from dpsparse.ledger import Ledger
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows.columns import RawRows
from dpsparse.sensitivity import name_threshold


def names_of(rows, most, groups=None):
    return RawRows.of(rows, groups=groups).names(list, most)


def gaussian_delta(mu, eps):
    if mu == 0.0:
        return max(0.0, -math.expm1(eps))
    return float(ndtr(mu / 2 - eps / mu) - math.exp(eps) * ndtr(-mu / 2 - eps / mu))


def one_name(w, w2, sigma, tau, eps):
    """Exact delta(eps) of one common name of weight w against w2, told above tau."""
    x = np.linspace(tau, max(w, w2, tau) + 12 * sigma, 40_001)
    p, q = (np.exp(-((x - v) ** 2) / (2 * sigma**2)) for v in (w, w2))
    above = np.trapezoid(np.maximum(p - math.exp(eps) * q, 0), x) / (sigma * math.sqrt(2 * math.pi))
    low_p, low_q = ndtr((tau - w) / sigma), ndtr((tau - w2) / sigma)
    return float(above + max(low_p - math.exp(eps) * low_q, 0.0))


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize(("sigma", "leak"), [(1.0, 1e-3), (2.0, 1e-5), (4.0, 1e-7)])
def test_exact_law_is_within_the_claim_and_reaches_it(sigma, leak, k):
    """A row with t names of its own and one that `crowd` other rows share; both directions, many epsilons."""
    tau = name_threshold(sigma, k, leak, "add-remove")
    event = ThresholdedGaussian(sigma, 1.0, 1, leak)
    nearest = 0.0
    for eps in (0.1, 0.5, 1.0, 2.0, 4.0):
        claimed = delta(event, eps)
        for n_names in range(1, k + 1):
            weight = 1.0 / math.sqrt(n_names)
            for own in range(n_names + 1):
                d = -math.expm1(own * math.log(ndtr((tau - weight) / sigma)))
                shared = weight if own < n_names else 0.0
                for crowd in (1.0, tau - shared / 2, tau + 6 * sigma):
                    # own names are impossible on the smaller table
                    up = d + (1 - d) * one_name(
                        crowd + shared, crowd, sigma, tau, eps - math.log1p(-d)
                    )
                    down = one_name(crowd, crowd + shared, sigma, tau, eps + math.log1p(-d))
                    assert max(up, down) <= claimed * (1 + 1e-9)
                    nearest = max(nearest, up / claimed)
    assert nearest > 0.5  # not claimed far from the truth


@pytest.mark.parametrize("k", [1, 3])
def test_exact_formulas_of_both_adjacencies_are_within_the_claim(k):
    for sigma, leak in ((1.0, 1e-3), (4.0, 1e-6)):
        for adjacency, both in (("add-remove", 1), ("replace-one", 2)):
            tau = name_threshold(sigma, k, leak, adjacency)
            event = ThresholdedGaussian(sigma, math.sqrt(both), 1, leak)

            def leaks(t, n, tau=tau, sigma=sigma):
                return -math.expm1(t * math.log(ndtr((tau - 1 / math.sqrt(n)) / sigma)))

            rows = [(t, n) for n in range(1, k + 1) for t in range(n + 1)]
            others = rows if both == 2 else [(1, 1)]
            for eps in (0.2, 1.0, 3.0):
                claimed = delta(event, eps)
                for t, n in rows:
                    for t2, n2 in others:
                        d, d2 = leaks(t, n), leaks(t2, n2) if both == 2 else 0.0
                        square = 1 - t / n + (1 - t2 / n2 if both == 2 else 0.0)
                        shifted = eps + math.log1p(-d2) - math.log1p(-d)
                        exact = d + (1 - d) * gaussian_delta(math.sqrt(square) / sigma, shifted)
                        assert exact <= claimed * (1 + 1e-9)


def test_weights_of_one_and_the_threshold_of_one_name_leak_sixty_times():
    sigma, leak = 4.2, 1e-7
    naive = name_threshold(sigma, 1, leak, "add-remove")
    told = -math.expm1(60 * math.log(ndtr((naive - 1.0) / sigma)))
    assert told == pytest.approx(60 * leak, rel=1e-3)
    right = name_threshold(sigma, 60, leak, "add-remove")
    assert -math.expm1(60 * math.log(ndtr((right - 60**-0.5) / sigma))) <= leak


def releases(mu, leak, seed, adjacency="add-remove"):
    event = ThresholdedGaussian(1.0 / mu, 1.0, 2**40, leak)
    plan = Plan("test", (Phase("words", event),), epsilon(event, 0.5), 0.5, adjacency)
    return Releases(plan, make_generator(seed))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_told_weights_have_the_declared_noise(adjacency):
    """False alarms: 1e-4 for the shape, 6e-7 for the scale; a tenth more or less noise is found with near certainty."""
    n = 4000
    rows = [[f"w{j}"] for j in range(n) for _ in range(6)]
    door = releases(10.0, 1e-9, 3, adjacency)
    names = names_of(rows, 1)
    scale = door.scale("words", names.weights())
    told, weights = door.names("words", names)
    assert len(told) == n
    noise = (weights - 6.0) / scale
    assert kstest(noise, "norm").pvalue > 1e-4
    away = abs(noise.std() - 1.0) * math.sqrt(2 * n)  # in standard deviations of what it should be
    assert away < 5.0 < min(abs(f * noise.std() - 1.0) for f in (0.9, 1.1)) * math.sqrt(2 * n)
    assert scale == pytest.approx(0.1 * (1 if adjacency == "add-remove" else math.sqrt(2)))


def test_a_name_of_one_row_is_told_as_often_as_declared():
    """3,000 releases with a leak of .1: 300 +- 16; the bounds are five standard deviations wide."""
    rows = [["a", "b"], *([["c"]] * 9)]
    told = sum(
        any(
            name in ("a", "b")
            for name in releases(2.0, 0.1, seed).names("words", names_of(rows, 2))[0]
        )
        for seed in range(3000)
    )
    own = name_threshold(0.5, 2, 0.1, "add-remove")
    exact = 1 - ndtr((own - 0.5**0.5) / 0.5) ** 2
    assert exact <= 0.1
    assert abs(told - 3000 * exact) < 5 * math.sqrt(3000 * exact)


def test_what_is_told_is_sorted_and_no_matter_of_the_order_of_rows():
    rows = [[w] for w in ["pear", "apple", "fig", "rare"] for _ in range(1 if w == "rare" else 30)]
    first = releases(10.0, 1e-9, 5).names("words", names_of(rows, 1))
    second = releases(10.0, 1e-9, 5).names("words", names_of(rows[::-1], 1))
    assert first[0] == second[0] == ("apple", "fig", "pear")
    np.testing.assert_array_equal(first[1], second[1])


def test_the_event_counts_its_leak_once_and_nothing_else():
    noise = RoundedGaussian(4.0, 1.0, 1)
    event = ThresholdedGaussian(4.0, 1.0, 1, 1e-7)
    assert from_dict(to_dict(event)) == event
    assert delta(event, 1.0) == pytest.approx(delta(noise, 1.0) + 1e-7, rel=1e-6)
    assert epsilon(event, 1e-6) == pytest.approx(epsilon(noise, 0.9e-6), rel=1e-6)
    twice = Sequence((event, ThresholdedGaussian(4.0, 1.0, 2, 1e-7)))
    plain = Sequence((noise, RoundedGaussian(4.0, 1.0, 2)))
    assert delta(twice, 1.0) == pytest.approx(delta(plain, 1.0) + 2e-7, rel=1e-6)
    assert epsilon(event, 1e-8) == math.inf  # the leak alone is more
    for bad in (0.0, -1.0, 0.5, 1.0, math.nan):
        with pytest.raises(ParameterError):
            ThresholdedGaussian(4.0, 1.0, 1, bad)


def test_a_ledger_pays_small_leaks_from_its_reserve_and_refuses_large_ones_beside_other_fits():
    def plan(leak):
        event = ThresholdedGaussian(20.0, 1.0, 1, leak)
        return Plan("words", (Phase("words", event),), epsilon(event, 1e-6), 1e-6, "add-remove")

    ledger = Ledger(epsilon=3.0, delta=1e-6)
    for _ in range(3):
        ledger.reserve(plan(1e-6 * 2.0**-17)).commit()
    assert 0 < ledger.spent() < 3.0
    assert not ledger.would_allow(plan(1e-7))
    alone = Ledger(epsilon=3.0, delta=1e-6)
    assert alone.would_allow(plan(1e-7))  # nothing was adaptive yet

"""Random stopping against exact laws: bases with finitely many outcomes, every outcome enumerated.

A base is N(mu, 1) against N(0, 1) seen through a grid, so it is dominated by mu; which outcome counts as better is an
arbitrary order. Tuned probabilities are differences of the generating function, without any sampling.
"""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from dpsparse.exceptions import ParameterError
from dpsparse.privacy import Gaussian, RandomStopping, Sequence, delta, epsilon, rdp
from dpsparse.privacy.events import from_dict, to_dict
from dpsparse.privacy.stopping import _edges, mean_runs, stopping_curve, stopping_profile

LAWS = [(1.0, 1 / 16), (1.0, 0.2), (0.0, 0.02), (0.5, 0.05), (3.0, 0.1), (-0.5, 0.05)]
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)
ORDERS = np.array([1.1, 1.5, 2.0, 4.0, 10.0, 40.0])


def generating(x, gamma, eta):
    if eta == 0.0:
        return np.log(1 - (1 - gamma) * x) / math.log(gamma)
    return ((1 - (1 - gamma) * x) ** -eta - 1) / (gamma**-eta - 1)


def base(mu, cells):
    edges = np.concatenate([[-np.inf], np.linspace(-4, 4 + mu, cells - 1), [np.inf]])
    return np.diff(ndtr(edges - mu)), np.diff(ndtr(edges))


def orders(k, rng):
    yield np.arange(k)
    yield np.arange(k)[::-1]
    # The worst have at the very top what speaks for Q, and below it what speaks for P.
    for a in range(1, k, max(1, k // 20)):
        yield np.roll(np.arange(k), -a)
        yield np.roll(np.arange(k), -a)[::-1]
    for _ in range(4):
        yield rng.permutation(k)


def tuned(p, gamma, eta):
    return np.diff(generating(np.concatenate([[0.0], np.cumsum(p)]), gamma, eta))


@pytest.mark.parametrize("mu", [0.15, 0.6, 1.5])
@pytest.mark.parametrize(("eta", "gamma"), LAWS)
def test_exact_laws_stay_below_both_bounds_in_both_directions(mu, eta, gamma):
    rng = np.random.default_rng(7)
    for cells in (2, 5, 40):
        p, q = base(mu, cells)
        for order in orders(cells, rng):
            P, Q = tuned(p[order], gamma, eta), tuned(q[order], gamma, eta)
            assert np.isclose(P.sum(), 1.0)
            for one, other in ((P, Q), (Q, P)):
                for eps in EPSILONS:
                    exact = np.maximum(one - math.exp(eps) * other, 0.0).sum()
                    assert exact <= stopping_profile(mu, gamma, eta, eps) + 1e-12
                keep = one > 1e-13  # differences below this are rounding
                exact = [
                    math.log((one[keep] ** a * np.maximum(other[keep], 1e-300) ** (1 - a)).sum())
                    / (a - 1)
                    for a in ORDERS[:4]
                ]
                assert np.all(exact <= stopping_curve(mu, gamma, eta, ORDERS[:4]) + 1e-9)


def test_the_bounds_are_sharp_so_half_the_price_is_refuted():
    """An order comes within a third of the profile, far above what half of mu^2 or half of the runs would claim."""
    mu, gamma, eps = 0.6, 1 / 16, 3.0
    p, q = base(mu, 100)
    exact = max(
        np.maximum(tuned(p[o], gamma, 1.0) - math.exp(eps) * tuned(q[o], gamma, 1.0), 0.0).sum()
        for o in orders(100, np.random.default_rng(1))
    )
    bound = stopping_profile(mu, gamma, 1.0, eps)
    assert 0.65 * bound < exact <= bound
    assert exact > 1e3 * stopping_profile(mu / math.sqrt(2), gamma, 1.0, eps)
    assert exact > 3 * stopping_profile(mu, 2 * gamma, 1.0, eps)


def test_the_case_of_a_large_mu():
    """mu = 3, gamma = .9 at order 1.5: the formula for small mu would claim .715, the truth is 6.870."""
    mu, gamma, a = 3.0, 0.9, 1.5

    def slope(x):
        return gamma / (1 - (1 - gamma) * x) ** 2

    def density(x):
        p, q = norm.logpdf(x, mu), norm.logpdf(x)
        log = a * (p + math.log(slope(ndtr(x - mu)))) + (1 - a) * (q + math.log(slope(ndtr(x))))
        return math.exp(log)

    truth = math.log(quad(density, -10, 20, limit=400)[0]) / (a - 1)
    log = -math.log(gamma)
    naive = a * mu**2 / 2 + 2 * (mu * math.sqrt(2 * log) - mu**2 / 2) + log / (a - 1)
    assert naive == pytest.approx(0.715, abs=1e-3)
    assert truth == pytest.approx(6.870, abs=1e-3)
    assert stopping_curve(mu, gamma, 1.0, np.array([a]))[0] >= truth


def test_losers_and_their_number_must_stay_secret():
    """The same runs with all their outcomes shown, or the number of runs chosen by rows, break the price."""
    mu, gamma, eps = 0.15, 1 / 16, 1.0
    claimed = stopping_profile(mu, gamma, 1.0, eps)
    shown = 0.0
    p, q = ndtr(mu / 2), ndtr(-mu / 2)  # one bit a run, the best the Gaussian pair allows
    for k in range(1, 400):  # (K, number of ones) is sufficient
        weight = gamma * (1 - gamma) ** (k - 1)
        j = np.arange(k + 1)
        log_choose = np.array(
            [math.lgamma(k + 1) - math.lgamma(i + 1) - math.lgamma(k - i + 1) for i in j]
        )
        one = np.exp(log_choose + j * math.log(p) + (k - j) * math.log1p(-p))
        other = np.exp(log_choose + j * math.log(q) + (k - j) * math.log1p(-q))
        shown += weight * np.maximum(one - math.exp(eps) * other, 0.0).sum()
    assert shown > 1e3 * claimed


def test_cells_cover_the_interval_and_fewer_cells_cost_more(monkeypatch):
    for gamma in (1e-6, 0.05, 0.9):
        edges = _edges(gamma)
        assert (edges[0], edges[-1]) == (0.0, 1.0)
        assert all(a < b for a, b in pairwise(edges))
    fine = stopping_profile(0.2, 0.05, 1.0, 1.0)
    monkeypatch.setattr("dpsparse.privacy.stopping.CELLS", 300)
    stopping_profile.cache_clear()
    coarse = stopping_profile(0.2, 0.05, 1.0, 1.0)
    stopping_profile.cache_clear()
    assert fine <= coarse <= 1.5 * fine


def test_the_table_of_the_note():
    """Share of mu that a run keeps at (1, 1e-6), best of k tried with probability .8: .653, .549, .473."""
    mu = 0.23668  # of (1, 1e-6)
    for k, kept in ((5, 0.653), (20, 0.549), (100, 0.473)):
        gamma = 0.25 / (k - 1)
        assert mean_runs(gamma, 1.0) == pytest.approx(4 * (k - 1))
        assert stopping_profile((kept - 0.002) * mu, gamma, 1.0, 1.0) <= 1e-6
        assert stopping_profile((kept + 0.002) * mu, gamma, 1.0, 1.0) > 1e-6


def test_alone_the_profile_counts_and_in_company_the_curve():
    event = RandomStopping(0.15, 1 / 16)
    alone = epsilon(event, 1e-6)
    assert delta(event, alone) <= 1e-6 * (1 + 1e-9)
    both = epsilon(Sequence((event, Gaussian(1e9))), 1e-6)
    assert 1.3 * alone < both
    assert epsilon(RandomStopping(0.15, 1 / 16, 1.0, 1e-8), 1e-6) > alone
    assert rdp(event, ORDERS) == pytest.approx(stopping_curve(0.15, 1 / 16, 1.0, ORDERS))
    assert from_dict(to_dict(event)) == event


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 1.0},
        {"gamma": 0.0},
        {"mu": 0.0},
        {"eta": -1.0},
        {"slack": -1e-9},
        {"slack": math.nan},
    ],
)
def test_impossible_events_are_refused(wrong):
    with pytest.raises(ParameterError):
        RandomStopping(**({"mu": 0.1, "gamma": 0.1} | wrong))

"""epsilon(delta) and delta(epsilon): exact where a closed form exists, bounds everywhere."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsparse.accounting import (
    Event,
    Exponential,
    Gaussian,
    Geometric,
    NonPrivate,
    ObjectivePerturbation,
    Pure,
    Repeated,
    RoundedGaussian,
    Sequence,
    calibrate,
    delta,
    epsilon,
)
from dpsparse.exceptions import ParameterError, UnknownEventError


def laplace(scale):
    """Laplace noise, up to 1e-11 of its curve: geometric noise on steps of a millionth."""
    return Geometric(1e6 * scale, 10**6)


# Scales such that one event costs an epsilon of about x.
MAKERS = {
    "exponential": Exponential,
    "pure": Pure,
    "gaussian": lambda x: Gaussian(1 / x),
    "laplace": lambda x: laplace(1 / x),
    "geometric": lambda x: Geometric(3 / x, 3),
    "mixed": lambda x: Sequence((Gaussian(1 / x), Repeated(Exponential(x), 3), laplace(2 / x))),
}
makers = st.sampled_from(sorted(MAKERS)).map(MAKERS.__getitem__)


def exact_gaussian_delta(mu, eps):
    with mp.workdps(400):
        mu, eps = mp.mpf(mu), mp.mpf(eps)
        phi = lambda z: mp.erfc(-z / mp.sqrt(2)) / 2  # noqa: E731
        return phi(mu / 2 - eps / mu) - mp.exp(eps) * phi(-mu / 2 - eps / mu)


@pytest.mark.parametrize("mu", [1e-9, 1e-6, 1e-3, 0.1, 1.0, 5.0, 40.0])
@pytest.mark.parametrize("x", [-0.4, 0.0, 1.0, 6.0, 20.0, 35.0])
def test_the_gaussian_profile_is_exact_far_into_the_tail(mu, x):
    eps = max(0.0, mu * (x + mu / 2))
    exact = float(exact_gaussian_delta(mu, eps))
    value = delta(Gaussian(1 / mu), eps)
    # 1/mu is rounded once, which the tail multiplies by x^2.
    assert value == pytest.approx(exact, rel=1e-14 * (10 + x * x), abs=0)


def test_gaussian_runs_add_their_squares():
    run = Sequence((Repeated(Gaussian(10.0), 36), Gaussian(4.0, 2.0), Gaussian(5.0, 1.0)))
    single = Gaussian(1 / math.sqrt(0.36 + 0.25 + 0.04))
    assert epsilon(run, 1e-6) == pytest.approx(epsilon(single, 1e-6), rel=1e-13)


def test_one_gaussian_of_known_noise():
    # Balle-Wang: sigma 1, epsilon 1 has delta 0.12693673750664394.
    assert delta(Gaussian(1.0), 1.0) == pytest.approx(0.12693673750664394, rel=1e-14)
    assert delta(Gaussian(1.0), 0.0) == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-14)


def test_pure_events_take_the_best_of_three_bounds():
    assert epsilon(Repeated(Pure(0.1), 3), 0.0) == pytest.approx(0.3)
    assert epsilon(
        Sequence((Exponential(0.5), laplace(4.0), Geometric(8.0, 2), Pure(0.25))), 0.0
    ) == pytest.approx(1.25)
    # One randomised response: the exact profile.
    assert delta(Pure(1.0), 0.5) == pytest.approx((math.e - math.exp(0.5)) / (1 + math.e))
    assert epsilon(Pure(1.0), 0.1) == pytest.approx(math.log(0.9 * math.e - 0.1))
    assert epsilon(Pure(1.0), 0.7) == 0.0
    # Many small steps: advanced composition beats basic composition by far.
    assert epsilon(Repeated(Pure(0.01), 10_000), 1e-6) < 7.0
    assert math.isinf(epsilon(Gaussian(1.0), 0.0))
    assert math.isinf(epsilon(Sequence((Pure(1.0), Gaussian(2.0))), 0.0))


def test_nothing_costs_nothing_and_no_noise_costs_everything():
    for empty in (Sequence(()), Repeated(Gaussian(1.0), 0), Repeated(Sequence(()), 9)):
        assert epsilon(empty, 0.0) == 0.0
        assert epsilon(empty, 1e-6) == 0.0
        assert delta(empty, 0.0) == 0.0
    for bare in (NonPrivate(), Sequence((Gaussian(1.0), NonPrivate()))):
        assert math.isinf(epsilon(bare, 1e-6))
        assert math.isinf(epsilon(bare, 0.0))
        assert delta(bare, 1.0) == 1.0
        assert delta(bare, math.inf) == 1.0


def test_unknown_events_and_bad_numbers_are_refused():
    class Homemade(Event):
        pass

    for event in (Homemade(), Sequence((Gaussian(1.0), Homemade()))):
        with pytest.raises(UnknownEventError):
            epsilon(event, 1e-6)
        with pytest.raises(UnknownEventError):
            epsilon(event, 0.0)
        with pytest.raises(UnknownEventError):
            delta(event, 1.0)
        with pytest.raises(UnknownEventError):
            delta(event, math.inf)
    for bad in (-1e-9, 1.0, 2.0, math.nan):
        with pytest.raises(ParameterError, match="delta"):
            epsilon(Pure(1.0), bad)
    for bad in (-1e-9, math.nan):
        with pytest.raises(ParameterError, match="epsilon"):
            delta(Pure(1.0), bad)


@given(make=makers, x=st.floats(1e-3, 2.0), log_delta=st.floats(-30, -1))
@settings(max_examples=200, derandomize=True)
def test_epsilon_and_delta_are_inverse(make, x, log_delta):
    event, d = make(x), math.exp(log_delta)
    eps = epsilon(event, d)
    back = delta(event, eps)
    assert back <= d * (1 + 1e-6) + 1e-15
    if eps > 0:
        assert epsilon(event, back) == pytest.approx(eps, rel=1e-6)


@pytest.mark.heavy
@given(make=makers, x=st.floats(1e-3, 2.0), eps=st.floats(0, 5), log_delta=st.floats(-30, -1))
@settings(max_examples=200, derandomize=True)
def test_both_are_monotone(make, x, eps, log_delta):
    event, d = make(x), math.exp(log_delta)
    assert epsilon(event, d) <= epsilon(event, d / 2) * (1 + 1e-9)
    assert delta(event, eps * 1.1 + 1e-3) <= delta(event, eps) * (1 + 1e-9)
    assert epsilon(event, d) <= epsilon(make(1.1 * x), d) * (1 + 1e-9)
    assert epsilon(event, d) <= epsilon(Repeated(event, 2), d) * (1 + 1e-9)


@given(make=makers, x=st.floats(1e-2, 1.0), count=st.integers(0, 40))
@settings(max_examples=60, derandomize=True)
def test_repeated_costs_what_the_copies_cost(make, x, count):
    event = make(x)
    assert epsilon(Repeated(event, count), 1e-6) == epsilon(Sequence([event] * count), 1e-6)
    assert delta(Repeated(event, count), 1.0) == delta(Sequence([event] * count), 1.0)


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_a_hundred_times_costs_more_than_once(name):
    """Fails if the count is dropped anywhere on the way to epsilon."""
    event = MAKERS[name](0.1)
    once, often = epsilon(event, 1e-6), epsilon(Repeated(event, 100), 1e-6)
    assert often > 3 * once


@given(
    eta=st.floats(0.05, 3.0),
    eps=st.floats(0.0, 4.0),
    count=st.integers(1, 6),
    share=st.floats(0.02, 0.98),
)
@settings(max_examples=100, derandomize=True)
def test_the_exact_hockey_stick_of_composed_two_point_mechanisms_is_below(eta, eps, count, share):
    """Binomial composition of an exponential mechanism with two candidates, computed exactly."""
    t = share * eta
    q = math.expm1(eta - t) / math.expm1(eta)
    p = q * math.exp(t)
    k = np.arange(count + 1)
    choose = np.array([math.comb(count, int(i)) for i in k], dtype=float)
    big, small = choose * p**k * (1 - p) ** (count - k), choose * q**k * (1 - q) ** (count - k)
    exact = max(
        np.maximum(big - math.exp(eps) * small, 0).sum(),
        np.maximum(small - math.exp(eps) * big, 0).sum(),
    )
    assert exact <= delta(Repeated(Exponential(eta), count), eps) * (1 + 1e-9) + 1e-13


# ---- noise that is drawn by a real sampler ------------------------------------------------------


def scale_of(eps, d, size, n_iter, other=None):
    """Noise scale of a calibrated run of rounded Gaussians, after another event if there is one."""

    def run(scale):
        steps = Repeated(RoundedGaussian(scale, 1.0, size), n_iter)
        return steps if other is None else Sequence((other, steps))

    return calibrate(run, eps, d)


@given(
    log_eps=st.floats(math.log(1e-3), math.log(200.0)),
    rise=st.floats(0.0, 3.0),
    log_delta=st.floats(-25.0, -5.0),
    size=st.sampled_from([1, 10**3, 10**6, 10**9]),
    n_iter=st.integers(1, 300),
    more=st.integers(1, 30),
)
@settings(max_examples=60, derandomize=True)
def test_calibrated_noise_is_monotone_in_epsilon_delta_and_n_iter(
    log_eps, rise, log_delta, size, n_iter, more
):
    eps, d = math.exp(log_eps), math.exp(log_delta)
    here = scale_of(eps, d, size, n_iter) * (1 + 1e-9)
    assert scale_of(min(200.0, eps * math.exp(rise)), d, size, n_iter) <= here
    assert scale_of(eps, min(0.1, d * math.exp(rise)), size, n_iter) <= here
    assert scale_of(eps, d, size, n_iter + more) * (1 + 1e-9) >= here / (1 + 1e-9)
    assert scale_of(eps, d, size + more, n_iter) * (1 + 1e-9) >= here / (1 + 1e-9)


@pytest.mark.parametrize("other", [None, Exponential(0.5)])
def test_noise_falls_up_to_epsilon_200(other):
    """A real sampler costs less than 1 % of the noise of an ideal one, at every epsilon."""
    scales = []
    for eps in (1.0, 10.0, 30.0, 40.0, 100.0, 200.0):
        real = scale_of(eps, 1e-6, 10**6, 100, other)
        tail = [] if other is None else [other]
        ideal = calibrate(lambda s, t=tail: Sequence((*t, Repeated(Gaussian(s), 100))), eps, 1e-6)
        assert ideal * (1 - 1e-9) <= real <= 1.01 * ideal
        scales.append(real)
    assert all(later < 0.9 * earlier for earlier, later in pairwise(scales))


@given(
    mu=st.floats(0.01, 8.0),
    size=st.sampled_from([1, 10**4, 10**8, 10**12]),
    eps=st.floats(0.0, 200.0),
    step=st.floats(0.0, 20.0),
)
@settings(max_examples=100, derandomize=True)
def test_delta_of_a_real_sampler_is_monotone_and_above_the_ideal_one(mu, size, eps, step):
    real, ideal = RoundedGaussian(1 / mu, 1.0, size), Gaussian(1 / mu)
    assert delta(real, eps) >= delta(ideal, eps)
    assert delta(real, eps + step) <= delta(real, eps) * (1 + 1e-9)
    # At a smaller epsilon with the plain bound of Lemma 4: never better than what is found.
    for at in np.linspace(0.0, eps, 9):
        plain = delta(ideal, float(at)) + (1 + math.exp(min(at, 700.0))) * real.slack
        assert delta(real, eps) <= plain * (1 + 1e-9)


def test_the_sampler_is_charged():
    """Both bounds of Lemma 4 by hand."""
    many, ideal = RoundedGaussian(1.0, 1.0, 2**60), Gaussian(1.0)  # too many values for a shift
    plain = (1 + math.e) * 2.0**-30
    assert delta(many, 1.0) - delta(ideal, 1.0) == pytest.approx(plain, rel=1e-6)
    run = Repeated(RoundedGaussian(0.5, 1.0, 2**20), 12)
    mu, tail, shift = math.sqrt(48.0), 12 * 2.0**-53 + 48 * 2.0**-43, 48 * 2.0**-21 + 2.0**-33
    by_hand = delta(Gaussian(1 / mu), 90.0 - shift) + tail
    assert delta(run, 90.0) == pytest.approx(by_hand, rel=1e-9, abs=0)
    assert epsilon(run, 1e-6) == pytest.approx(
        epsilon(Gaussian(1 / mu), 1e-6 - tail) + shift, rel=1e-12
    )
    # Noise far smaller than what it hides is outside the sampler's reach.
    assert delta(RoundedGaussian(0.1, 1.0, 2**20), 90.0) > 1e-3


# Oracles, for tests only.


@pytest.mark.parametrize(("mu", "count"), [(0.01, 1000), (0.3, 10), (1.0, 3)])
def test_gaussian_runs_agree_with_dp_accounting(mu, count):
    gaussian = pytest.importorskip("dp_accounting.gaussian_mechanism", exc_type=ImportError)
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution", exc_type=ImportError)
    total = mu * math.sqrt(count)
    run = Repeated(Gaussian(1 / mu), count)
    theirs = gaussian.get_epsilon_gaussian(1 / total, 1e-6)
    assert epsilon(run, 1e-6) == pytest.approx(theirs, rel=1e-5)
    oracle = pld.from_gaussian_mechanism(1 / total, value_discretization_interval=1e-4)
    assert epsilon(run, 1e-6) == pytest.approx(oracle.get_epsilon_for_delta(1e-6), rel=2e-3)


@pytest.mark.parametrize(("scale", "count"), [(10.0, 50), (3.0, 4)])
def test_laplace_and_geometric_runs_lie_just_above_the_numerical_optimum(scale, count):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution", exc_type=ImportError)
    for event, oracle in (
        (laplace(scale), pld.from_laplace_mechanism(scale, value_discretization_interval=1e-3)),
        (
            Geometric(scale, 2),
            pld.from_discrete_laplace_mechanism(1 / scale, 2, value_discretization_interval=1e-3),
        ),
        (
            Pure(1 / scale),
            pld.from_randomized_response(
                2 / (1 + math.exp(1 / scale)), 2, value_discretization_interval=1e-3
            ),
        ),
    ):
        best = oracle.self_compose(count).get_epsilon_for_delta(1e-6)
        ours = epsilon(Repeated(event, count), 1e-6)
        # The oracle rounds losses up to its grid: allow it that much.
        assert best * 0.99 - 1e-3 * count <= ours <= 1.15 * best


@pytest.mark.parametrize(
    "event", [Gaussian(3.0), Repeated(Pure(0.018), 1999), Repeated(Exponential(1.0), 20)], ids=str
)
@pytest.mark.parametrize("eps", [1e-6, 1e-4, 1e-2])
def test_a_small_epsilon_comes_back_from_its_delta(event, eps):
    # There delta hardly depends on epsilon, so the search meets a flat curve.
    assert epsilon(event, delta(event, eps)) == pytest.approx(eps, rel=1e-5)


@pytest.mark.parametrize(
    "event", [Pure(3.0), Exponential(1e-18), Geometric(1e19), Repeated(Exponential(1e-200), 2)]
)
def test_an_epsilon_far_above_every_loss_needs_no_delta(event):
    assert delta(event, 1e300) == 0.0
    assert delta(event, 10.0) == 0.0


def test_infinite_noise_costs_nothing():
    for event in (Geometric(math.inf), Gaussian(math.inf)):
        assert (delta(event, 0.0), epsilon(event, 1e-6)) == (0.0, 0.0)
        both = Sequence((event, Gaussian(5.0)))
        assert epsilon(both, 1e-6) == epsilon(Gaussian(5.0), 1e-6)
    fit = ObjectivePerturbation(math.inf, 1.0, 0.25, 25.0)  # its curvature has a price all the same
    assert 0.009 < epsilon(fit, 1e-6) < 0.01


@settings(max_examples=200)
@given(
    scales=st.lists(st.floats(0.05, 50.0), min_size=1, max_size=3, unique=True),
    counts=st.lists(st.integers(1, 4), min_size=3, max_size=3),
    make=st.sampled_from([Pure, Geometric]),
)
def test_no_last_digit_of_pure_steps_is_lost(scales, counts, make):
    """One less in the last digit of epsilon is a delta of 1e-17, a million times what a tiny delta allows."""
    event = Sequence(tuple(map(Repeated, map(make, scales), counts)))
    losses = [Fraction(x) if make is Pure else 1 / Fraction(x) for x in scales]
    exact = sum(n * loss for n, loss in zip(counts, losses, strict=False))
    assert Fraction(epsilon(event, 0.0)) >= exact
    assert Fraction(epsilon(event, 1e-60)) >= exact
    below = float(exact) if Fraction(float(exact)) < exact else math.nextafter(float(exact), 0.0)
    always = math.prod((1 + math.exp(-loss)) ** -n for n, loss in zip(counts, losses, strict=False))
    assert delta(event, below) >= always * float(exact - Fraction(below)) * (1.0 - 1e-9)

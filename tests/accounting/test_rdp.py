"""The curves: exact values, bounds that hold, bounds that are attained, extremes."""

import math

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
    Pure,
    Repeated,
    Sequence,
    rdp,
)
from dpsparse.exceptions import ParameterError, UnknownEventError


def laplace(scale):
    """Laplace noise, up to 1e-11 of its curve: geometric noise on steps of a millionth."""
    return Geometric(1e6 * scale, 10**6)


ORDERS = 1.0 + np.geomspace(1e-4, 1e6, 41)
EVENTS = [
    Exponential(0.3),
    Pure(0.7),
    Gaussian(3.0, 2.0),
    laplace(2.0),
    Geometric(2.5, 3),
]
EXTREMES = [
    (a, x) for a in (1.0001, 1.5, 2.0, 33.3, 1e3, 1e6) for x in (1e-9, 1e-4, 0.03, 1.0, 7.0, 50.0)
]


def exact_exponential(a, eta):
    """The closed form of the worst case, coded literally in 60 digits or more."""
    with mp.workdps(80):
        a, eta = mp.mpf(a), mp.mpf(eta)
        top, bottom = 1 - mp.exp(-a * eta), mp.exp(-eta) * (1 - mp.exp(-(a - 1) * eta))
        t = mp.log((a - 1) * top / (a * bottom))
        t = min(max(t, mp.mpf(0)), eta)
        moment = mp.exp((a - 1) * t) * (top - mp.exp(t) * bottom) / (1 - mp.exp(-eta))
        return float(mp.log(moment) / (a - 1))


def exact_pure(a, eps):
    with mp.workdps(80):
        a, eps = mp.mpf(a), mp.mpf(eps)
        p = 1 / (1 + mp.exp(-eps))
        return float(mp.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1))


def exact_laplace(a, loss):
    with mp.workdps(80):
        a, loss = mp.mpf(a), mp.mpf(loss)
        c = 2 * a - 1
        return float(
            mp.log(a / c * mp.exp((a - 1) * loss) + (a - 1) / c * mp.exp(-a * loss)) / (a - 1)
        )


def exact_geometric(a, scale, sensitivity):
    """Direct sum over the middle, geometric tails: nothing shared with the library's form."""
    with mp.workdps(80):
        a, r = mp.mpf(a), mp.exp(-1 / mp.mpf(scale))
        d = sensitivity
        weights = [r ** (a * abs(k) - (a - 1) * abs(k - d)) for k in range(d + 1)]
        weights[0] /= 1 - r
        weights[d] /= 1 - r
        return float(mp.log((1 - r) / (1 + r) * mp.fsum(weights)) / (a - 1))


@pytest.mark.parametrize(("a", "x"), EXTREMES)
def test_golden_values_to_twelve_digits_at_the_extremes(a, x):
    assert float(rdp(Exponential(x), a)) == pytest.approx(exact_exponential(a, x), rel=1e-12)
    assert float(rdp(Pure(x), a)) == pytest.approx(exact_pure(a, x), rel=1e-12)
    assert float(rdp(laplace(1 / x), a)) == pytest.approx(exact_laplace(a, x), rel=1e-10)
    for d in (1, 2, 7):
        event = Geometric(d / x, d)
        assert float(rdp(event, a)) == pytest.approx(exact_geometric(a, d / x, d), rel=1e-12)


def test_known_constants():
    a = np.array([1.5, 2.0, 64.0])
    np.testing.assert_allclose(rdp(Gaussian(3.0, 2.0), a), a * 4 / 18, rtol=1e-15)
    np.testing.assert_allclose(rdp(Gaussian(3.0, 2.0), a), a * 4 / 18, rtol=1e-15)
    # eps = log 3, a = 2: M = (9/4*... ) of the coin 3/4 against 1/4
    assert float(rdp(Pure(math.log(3)), 2.0)) == pytest.approx(
        math.log(0.75**2 / 0.25 + 0.25**2 / 0.75)
    )


def test_small_parameters_reach_the_quadratic_limit_and_never_exceed_it():
    """Fails if a constant is halved: the limits a eta^2/8 and a eps^2/2 are attained."""
    a = np.array([1.001, 2.0, 50.0])
    for x in (1e-9, 1e-6):
        for event, limit in (
            (Exponential(x), a * x * x / 8),
            (Pure(x), a * x * x / 2),
            (laplace(1 / x), a * x * x / 2),
            (Geometric(1 / x), a * x * x / 2),
            (Gaussian(1 / x), a * x * x / 2),
        ):
            value = rdp(event, a)
            assert np.all(value <= limit * (1 + 1e-15))
            np.testing.assert_allclose(value, limit, rtol=1e-4)


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_curves_are_positive_rising_and_bounded_by_the_pure_parameter(event):
    value = rdp(event, ORDERS)
    assert np.all(value > 0)
    assert np.all(np.diff(value) >= -1e-13 * value[1:])


@pytest.mark.parametrize("x", [1e-12, 1e-9, 1e-3, 1.0, 50.0, 1e3, 1e6])
def test_nothing_overflows_and_large_orders_reach_the_pure_parameter(x):
    for event in (Exponential(x), Pure(x), laplace(1 / x), Geometric(1 / x)):
        value = rdp(event, ORDERS)
        assert np.all(np.isfinite(value))
        assert np.all(value > 0)
        assert np.all(value <= x)
    assert float(rdp(Exponential(50.0), 1e6)) == pytest.approx(50.0, rel=1e-4)


def test_a_shape_is_kept_and_orders_are_checked():
    assert rdp(Pure(1.0), 2.0).shape == ()
    assert rdp(Pure(1.0), [[2.0, 3.0]]).shape == (1, 2)
    for bad in (1.0, 0.5, math.nan, math.inf):
        with pytest.raises(ParameterError, match="orders"):
            rdp(Pure(1.0), bad)


def moments(p, q, a):
    """RDP of two strictly positive finite laws, both directions, in logs."""

    def one(p, q):
        w = a * np.log(p) + (1 - a) * np.log(q)
        return (w.max() + np.log(np.exp(w - w.max()).sum())) / (a - 1)

    return max(one(p, q), one(q, p))


@given(
    eta=st.floats(1e-2, 8.0),
    a=st.floats(1.05, 200.0),
    loss=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8),
    base=st.lists(st.floats(0.01, 1.0), min_size=8, max_size=8),
)
@settings(max_examples=100, derandomize=True)
def test_no_mechanism_of_range_eta_exceeds_the_bounded_range_curve(eta, a, loss, base):
    """An exponential mechanism: log-ratio = score change + a constant, change in [0, eta]."""
    q = np.array(base[: len(loss)])
    q /= q.sum()
    p = q * np.exp(eta * np.array(loss))
    p /= p.sum()
    assert moments(p, q, a) <= float(rdp(Exponential(eta), a)) * (1 + 1e-9) + 1e-11


@given(eta=st.floats(1e-2, 8.0), a=st.floats(1.05, 200.0))
@settings(max_examples=100, derandomize=True)
def test_a_two_point_mechanism_attains_the_bounded_range_curve(eta, a):
    bound = float(rdp(Exponential(eta), a))
    t = np.linspace(0, eta, 4003)[1:-1]
    q = np.expm1(eta - t) / np.expm1(eta)
    log_first = np.log(q) + a * t
    log_second = np.log1p(-q) - a * (eta - t)
    attained = np.logaddexp(log_first, log_second).max() / (a - 1)
    assert attained <= bound * (1 + 1e-9) + 1e-11
    assert attained >= 0.999 * bound


@given(eps=st.floats(1e-2, 6.0), a=st.floats(1.05, 100.0), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=100, derandomize=True)
def test_no_pure_mechanism_exceeds_the_pure_curve(eps, a, seed):
    """Random laws with |log p/q| <= eps: weights reweighted between the two extreme ratios."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(6))
    ratio = np.exp(eps * rng.uniform(-1, 1, 6) / 2)
    p = q * ratio / np.sum(q * ratio)  # the normaliser also lies within e^{+-eps/2}
    assert moments(p, q, a) <= float(rdp(Pure(eps), a)) * (1 + 1e-9) + 1e-11


def test_laplace_with_a_split_shift_costs_no_more_than_with_one_coordinate():
    whole = rdp(laplace(1.0), ORDERS)
    for share in (0.1, 0.5):
        split = rdp(laplace(1 / share), ORDERS) + rdp(laplace(1 / (1 - share)), ORDERS)
        assert np.all(split <= whole * (1 + 1e-12))


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
@given(count=st.integers(0, 60))
@settings(max_examples=15, derandomize=True)
def test_repeated_equals_a_sequence_of_copies(event, count):
    repeated = rdp(Repeated(event, count), ORDERS)
    np.testing.assert_array_equal(repeated, rdp(Sequence([event] * count), ORDERS))
    # Fails if the count is dropped.
    np.testing.assert_allclose(repeated, count * rdp(event, ORDERS), rtol=1e-14)


def test_nesting_multiplies_and_order_does_not_matter():
    inner = Sequence((Gaussian(2.0), Repeated(laplace(5.0), 3)))
    nested = Sequence((Repeated(Repeated(inner, 4), 5), Exponential(0.1)))
    flat = (
        20 * rdp(Gaussian(2.0), ORDERS)
        + 60 * rdp(laplace(5.0), ORDERS)
        + rdp(Exponential(0.1), ORDERS)
    )
    np.testing.assert_allclose(rdp(nested, ORDERS), flat, rtol=1e-13)
    np.testing.assert_array_equal(rdp(Sequence(()), ORDERS), 0.0)
    np.testing.assert_array_equal(rdp(Repeated(NonPrivate(), 0), ORDERS), 0.0)


def test_non_private_costs_infinity_and_unknown_events_are_refused():
    class Homemade(Event):
        pass

    assert np.all(np.isinf(rdp(Sequence((Pure(0.1), NonPrivate())), ORDERS)))
    for event in (Homemade(), Event(), Repeated(Homemade(), 2), Sequence((Pure(1.0), Homemade()))):
        with pytest.raises(UnknownEventError, match="No privacy proof"):
            rdp(event, ORDERS)
    with pytest.raises(UnknownEventError):
        rdp("gaussian", ORDERS)  # type: ignore[arg-type]

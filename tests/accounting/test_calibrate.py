"""Calibration: the table of the design note, both directions, and never too much."""

import math
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsparse.accounting import (
    Exponential,
    Gaussian,
    Geometric,
    NonPrivate,
    Pure,
    Repeated,
    Sequence,
    calibrate,
    delta,
    epsilon,
)
from dpsparse.exceptions import CalibrationError, ParameterError

module = sys.modules["dpsparse.accounting.budget"]  # the function has its name

# epsilon, steps, eta by the zCDP bound a eta^2/8, eta by the exact Renyi curve, and eta by the optimum of adaptive
# runs: a lower bound of what is calibrated; delta = 1e-6.
TABLE = [
    (0.1, 100, 5.0679e-3, 5.0929e-3, 5.49e-3),
    (1.0, 100, 4.4141e-2, 4.4422e-2, 4.725e-2),
    (1.0, 1000, 1.39588e-2, 1.39675e-2, 1.492e-2),
    (1.0, 4000, 6.97939e-3, 6.98049e-3, 7.456e-3),
    (4.0, 1000, 4.98851e-2, 4.99241e-2, 5.28e-2),
    (1.0, 400_000, 6.97939e-4, 6.97940e-4, 7.42e-4),
]


@pytest.mark.parametrize(("eps", "steps", "zcdp", "renyi", "least"), TABLE)
def test_the_adaptive_optimum_allows_more_per_step_than_the_renyi_curve(
    eps, steps, zcdp, renyi, least
):
    """Never more than the Gaussian limit eta sqrt(T)/2 = mu, which no run can beat."""
    eta = calibrate(lambda x: Repeated(Exponential(x), steps), eps, 1e-6)
    limit = 2.0 / math.sqrt(steps) / calibrate(Gaussian, eps, 1e-6)
    assert zcdp < renyi < least <= eta < limit
    assert eta >= 1.05 * renyi


MAKERS = {
    "exponential": lambda n: lambda x: Repeated(Exponential(x), n),
    "gaussian": lambda n: lambda x: Repeated(Gaussian(x, 2.0), n),
    "geometric": lambda n: lambda x: Repeated(Geometric(x, 4), n),
    "pure": lambda n: lambda x: Repeated(Pure(x), n),
    "mixed": lambda n: lambda x: Sequence((Repeated(Exponential(x), n), Gaussian(3 / x))),
}


@given(
    name=st.sampled_from(sorted(MAKERS)),
    steps=st.integers(1, 10_000),
    eps=st.floats(1e-3, 50.0),
    log_delta=st.floats(-40.0, -1.0),
)
@settings(max_examples=120, derandomize=True)
def test_calibrated_parameters_never_overspend_and_waste_nothing(name, steps, eps, log_delta):
    make, d = MAKERS[name](steps), math.exp(log_delta)
    x = calibrate(make, eps, d)
    assert epsilon(make(x), d) <= eps
    assert delta(make(x), eps) <= d
    # The parameter that spends a little more is over the budget.
    assert max(epsilon(make(x * 1.0001), d), epsilon(make(x / 1.0001), d)) > eps


STEPS = {"pure": Pure, "range": Exponential, "count": lambda x: Geometric(1.0 / x)}


@given(
    parts=st.lists(
        st.tuples(
            st.sampled_from(sorted(STEPS)), st.floats(0.05, 7.0), st.sampled_from((1, 2, 5, 20))
        ),
        min_size=2,
        max_size=3,
    ),
    eps=st.sampled_from((0.1, 1.0, 5.0, 20.0)),
    delta_=st.sampled_from((1e-6, 1e-9, 1e-12)),
)
@example([("count", 0.11838, 1), ("pure", 3.02754, 2), ("range", 0.08496, 20)], 5.0, 1e-9)
@example([("range", 0.05, 20), ("pure", 4.0, 2), ("count", 0.2, 1)], 5.0, 1e-12)
@settings(max_examples=40, derandomize=True, deadline=None)
def test_mixtures_of_a_few_steps_waste_nothing(parts, eps, delta_):
    """Their losses have an end where those of a Gaussian have a tail, so it is a poor guess of their delta."""

    def make(x):
        return Sequence(tuple(Repeated(STEPS[kind](w * x), n) for kind, w, n in parts))

    x = calibrate(make, eps, delta_)
    assert delta(make(x), eps) <= delta_
    assert eps * (1.0 - 1e-6) <= epsilon(make(x), delta_) <= eps


def test_the_noise_scale_grows_with_the_steps_and_falls_with_epsilon():
    once = calibrate(lambda s: Repeated(Gaussian(s), 1), 1.0, 1e-6)
    often = calibrate(lambda s: Repeated(Gaussian(s), 100), 1.0, 1e-6)
    assert often == pytest.approx(10 * once, rel=1e-9)
    assert calibrate(Gaussian, 2.0, 1e-6) < once
    # The classical value for epsilon 1, delta 1e-5 (Balle-Wang).
    assert calibrate(Gaussian, 1.0, 1e-5) == pytest.approx(3.730632, rel=1e-6)


def test_fixed_parts_leave_less_for_the_rest():
    alone = calibrate(lambda x: Repeated(Exponential(x), 50), 1.0, 1e-6)
    beside = calibrate(
        lambda x: Sequence((Gaussian(20.0), Repeated(Exponential(x), 50))), 1.0, 1e-6
    )
    assert beside < alone


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_must_be_positive_and_finite(bad):
    with pytest.raises(ParameterError, match="epsilon"):
        calibrate(Gaussian, bad, 1e-6)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_delta_must_be_inside_the_unit_interval(bad):
    with pytest.raises(ParameterError, match="delta"):
        calibrate(Gaussian, 1.0, bad)


def test_impossible_calibrations_say_why():
    with pytest.raises(CalibrationError, match="already cost more"):
        calibrate(lambda s: Sequence((Gaussian(0.1), Gaussian(s))), 1.0, 1e-6)
    with pytest.raises(CalibrationError, match="does not depend"):
        calibrate(lambda s: Gaussian(1.0), 1.0, 1e-6)
    with pytest.raises(CalibrationError, match="does not depend"):
        calibrate(lambda s: NonPrivate(), 1.0, 1e-6)


def test_the_largest_parameter_of_a_search_is_checked_as_any_other(monkeypatch):
    """Where every parameter seems affordable the search ends at `most`, which the accountant must confirm."""
    search = (lambda x: Gaussian(1e3), 1.0, 1e-6, 1e-4, 1.0, math.log(0.2), 0.25)
    assert module._search(*search) == pytest.approx(0.25)
    asked = []
    monkeypatch.setattr(module, "_affordable", lambda *of: asked.append(of))
    with pytest.raises(CalibrationError, match="no safe parameter"):
        module._search(*search)
    assert asked

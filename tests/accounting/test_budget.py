"""The builder of plans: one calibration pays for all lines, and never for more."""

import math

import pytest

from dpsparse.accounting import (
    REST,
    Budget,
    Exponential,
    Gaussian,
    Geometric,
    NonPrivate,
    Phase,
    Plan,
    Repeated,
    RoundedGaussian,
    Sequence,
    epsilon,
)
from dpsparse.exceptions import CalibrationError, ParameterError

DELTA = 1e-6


def spent(phases):
    return epsilon(Sequence(tuple(phase.event for phase in phases)), DELTA)


def mixed(price, count=None):
    budget = Budget(price, DELTA)
    budget.gaussian("counts", 0.1, numbers=3)
    budget.picks("support", 0.3, picks=7)
    budget.names("words", 0.05, leak=1e-9)
    budget.event("gradients", REST, lambda mu: RoundedGaussian(1.0 / mu, 1.0, 50), times=4)
    if count is not None:
        budget.fixed("count", count)
    return budget


@pytest.mark.parametrize("price", [0.01, 0.3, 1.0, 8.0])
@pytest.mark.parametrize("count", [None, Geometric.for_epsilon(0.005, 1)])
def test_all_lines_together_spend_the_budget_and_not_more(price, count):
    phases = mixed(price, count).phases()
    assert price * (1.0 - 1e-6) <= spent(phases) <= price


def test_a_line_has_the_parameter_of_its_share():
    budget = mixed(1.0)
    events = {phase.name: phase.event for phase in budget.phases()}
    assert events["counts"].scale == pytest.approx(1.0 / (budget.mu * math.sqrt(0.1)))
    # T draws of range eta cost about a Gaussian of parameter eta sqrt(T)/2.
    assert isinstance(events["support"].event, Exponential)
    eta = events["support"].event.eta
    assert eta * math.sqrt(7) / 2.0 == pytest.approx(budget.parameter("support"))
    # Four sums split their share: together they have the parameter of the line.
    assert events["gradients"].count == 4
    one = events["gradients"].event
    assert isinstance(one, RoundedGaussian)
    assert 2.0 / one.scale == pytest.approx(budget.parameter("gradients"))
    assert budget.shares["gradients"] == pytest.approx(0.55)


def test_shares_that_leave_something_are_stretched():
    part, whole = Budget(1.0, DELTA), Budget(1.0, DELTA)
    for budget, factor in ((part, 0.1), (whole, 0.5)):
        budget.gaussian("a", factor, numbers=1)
        budget.gaussian("b", factor, numbers=1)
    assert part.phases() == whole.phases()
    assert part.shares == {"a": 0.5, "b": 0.5}


def test_without_a_limit_nothing_has_noise():
    budget = mixed(math.inf, Geometric.for_epsilon(1.0, 1))
    assert [phase.name for phase in budget.phases()] == [
        "counts", "support", "words", "gradients", "count",
    ]  # fmt: skip
    assert {phase.event for phase in budget.phases()} == {NonPrivate()}
    assert math.isinf(budget.mu)


def test_a_run_inside_is_planned_for_its_price():
    """The nested plan is made at the epsilon of its line, and the whole costs what was asked."""

    def plan(price):
        inner = Budget(price, DELTA)
        inner.picks("steps", REST, picks=20)
        return Plan("inner", inner.phases(), price, DELTA, "add-remove")

    budget = Budget(1.0, DELTA)
    budget.gaussian("scales", 0.2, numbers=4)
    budget.nested("model", REST, lambda price: plan(price).phases)
    phases = budget.phases()
    assert [phase.name for phase in phases] == ["scales", "steps"]
    assert 1.0 - 2e-4 <= spent(phases) <= 1.0
    assert phases[1:] == plan(budget.price("model")).phases


@pytest.mark.parametrize("shares", [(0.7, 0.6), (1.0, REST), (0.5, 0.6, REST)])
def test_shares_that_leave_nothing_are_refused(shares):
    budget = Budget(1.0, DELTA)
    for number, share in enumerate(shares):
        budget.gaussian(f"line {number}", share, numbers=1)
    with pytest.raises(ParameterError, match="add up to"):
        budget.phases()


@pytest.mark.parametrize("shares", [(0.0, 0.1), (-0.1, 0.2), (REST, REST)])
def test_lines_without_a_share_are_refused(shares):
    budget = Budget(1.0, DELTA)
    for number, share in enumerate(shares):
        budget.gaussian(f"line {number}", share, numbers=1)
    with pytest.raises(CalibrationError):
        budget.phases()


def test_two_lines_of_one_name_are_refused():
    budget = Budget(1.0, DELTA)
    budget.gaussian("a", 0.2, numbers=1)
    budget.gaussian("a", 0.2, numbers=1)
    with pytest.raises(CalibrationError, match="one name"):
        budget.phases()


def test_a_fixed_price_above_the_budget_is_refused():
    budget = Budget(0.5, DELTA)
    budget.gaussian("a", REST, numbers=1)
    budget.fixed("count", Gaussian(0.01))
    with pytest.raises(CalibrationError, match="already cost more"):
        budget.phases()


def test_any_event_can_be_a_line():
    budget = Budget(1.0, DELTA)
    budget.event("fit", REST, lambda mu: Gaussian(3.0 / mu, 3.0), "a line", times=2)
    (phase,) = budget.phases()
    assert phase == Phase(
        "fit", Repeated(Gaussian(3.0 * math.sqrt(2) / budget.mu, 3.0), 2), "a line"
    )

"""The record a model carries: readable, exact through JSON, impossible to make false by hand."""

import json
import math
import pickle
import re
from fractions import Fraction

import mpmath
import pytest

from dpsparse.accounting import Exponential, Gaussian, Guarantee, NonPrivate, Phase, Plan, Repeated
from dpsparse.accounting.guarantee import RAW, SEEDED
from dpsparse.exceptions import CalibrationError, ParameterError, UnknownEventError

WITH_A_SEED = {"proven": False, "randomness": SEEDED}


def make(**changes):
    facts = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "adjacency": "add-remove",
        "proven": True,
        "events": (("select", Repeated(Exponential(0.0139), 1000)),),
        "assumptions": (
            "ideal real arithmetic in the Gumbel draws",
            "radius and n_iter are public",
        ),
        "source": "docs/proofs/accounting.md",
    }
    return Guarantee(**(facts | changes))


def test_the_headline_is_one_line():
    assert make().headline == "(1, 1e-6)-DP of the table given to fit, add/remove one row, proven"
    raw = make(adjacency="replace-one", table=RAW)
    assert raw.headline == "(1, 1e-6)-DP of the raw table, replace one row, proven"
    # Rounded up: a printed guarantee never understates the loss.
    assert make(epsilon=1.2345671, delta=1.0000001e-6).headline.startswith("(1.23457, 1.00001e-6)")
    assert make(**WITH_A_SEED).headline.startswith("NOT PRIVATE: seeded")
    bare = make(epsilon=math.inf, proven=False, events=(("fit", NonPrivate()),))
    assert bare.headline.startswith("NOT PRIVATE: no noise")
    assert make(proven=False).headline == "NOT PRIVATE: its noise is without a proof"


def test_the_text_names_everything_an_officer_asks():
    text = str(make())
    for words in (
        "factor of at most 2.72",
        "1e-6",
        "select",
        "exponential mechanism",
        "trusted curator",
        "ideal real arithmetic",
        "cryptographic stream",
        "docs/proofs/accounting.md",
    ):
        assert words in text
    assert "epsilon is infinite" in str(make(**WITH_A_SEED))
    assert "seed" in str(make(**WITH_A_SEED))


@pytest.mark.parametrize(
    "guarantee",
    [
        make(epsilon=0.1 + 0.2, delta=1 / 3 * 1e-7, events=(("select", Exponential(0.01)),)),
        make(**WITH_A_SEED),
        make(epsilon=math.inf, delta=1.0, proven=False, events=(("fit", NonPrivate()),)),
        make(adjacency="replace-one", unit="one patient, at most one row each"),
    ],
)
def test_json_and_pickle_give_back_the_same_guarantee(guarantee):
    text = json.dumps(guarantee.to_dict(), allow_nan=False)
    assert Guarantee.from_dict(json.loads(text)) == guarantee
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee


def test_the_record_says_in_words_what_is_promised():
    said = make(epsilon=12.0).to_dict()["summary"]
    assert said["headline"] == make(epsilon=12.0).headline
    assert "says little" in said["cautions"][0]


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"delta": -0.1},
        {"delta": 1.1},
        {"delta": math.nan},
        {"adjacency": "neighbour"},
        {"randomness": "dice"},
        {"events": (("select", "exponential"),)},
        {"epsilon": math.inf},
        {"delta": 1.0},
        {"randomness": "seeded"},
        {"events": (("a", Gaussian(1.0)), ("b", Repeated(NonPrivate(), 1)))},
        {"events": ()},
    ],
)
def test_false_guarantees_cannot_be_made(change):
    with pytest.raises(ParameterError):
        make(**change)


@pytest.mark.parametrize(
    ("epsilon", "event"),
    [
        (0.01, Gaussian(0.1)),  # the event costs much more
        (0.99, Repeated(Exponential(0.0150), 1000)),
        (0.1, Repeated(Gaussian(10.0), 10)),
    ],
)
def test_a_guarantee_recomputes_its_events(epsilon, event):
    with pytest.raises(CalibrationError, match="spends more"):
        make(epsilon=epsilon, events=(("step", event),))
    record = make(epsilon=100.0, delta=1e-2, events=(("step", event),)).to_dict()
    with pytest.raises(CalibrationError, match="spends more"):
        Guarantee.from_dict(record | {"epsilon": 1e-3})
    assert not make(epsilon=epsilon, events=(("step", event),), proven=False).proven


def printed_factor(text):
    return Fraction(re.search(r"factor of at most ([\d.e+]+),", text)[1])


@pytest.mark.parametrize("epsilon", [1.0, 1.001, 1.1, 2.0, 3.3, 7.6, 10.0, 20.0, 30.0, 49.9])
def test_the_printed_factor_is_rounded_up(epsilon):
    """Three digits of e^1.1 = 3.0042 are 3.01: "at most 3" would be false."""
    with mpmath.workdps(50):
        true = mpmath.e ** mpmath.mpf(epsilon)
        assert true <= mpmath.mpf(str(float(printed_factor(str(make(epsilon=epsilon))))))
        assert float(printed_factor(str(make(epsilon=epsilon)))) < 1.011 * true


def test_damaged_records_are_refused():
    record = make().to_dict()
    with pytest.raises(ParameterError, match="format"):
        Guarantee.from_dict(record | {"format": 99})
    with pytest.raises(ParameterError, match="adjacency"):
        Guarantee.from_dict({k: v for k, v in record.items() if k != "adjacency"})
    with pytest.raises(UnknownEventError):
        Guarantee.from_dict(record | {"events": [{"name": "x", "event": {"type": "Magic"}}]})


def test_epsilon_can_be_recomputed_from_the_events():
    assert make().recompute() <= 1.0
    assert make(events=(), proven=False).recompute() == 0.0
    assert math.isinf(make(delta=1.0, proven=False).recompute())


def test_a_plan_states_its_guarantee():
    plan = Plan(
        "demo",
        (Phase("select", Repeated(Exponential(0.0139), 1000), "one index a step"),),
        1.0,
        1e-6,
        "add-remove",
        parameters={"n_iter": 1000, "kappa": 0.5},
    )
    assert plan.guarantee.proven
    assert plan.guarantee.recompute() <= plan.epsilon
    assert "one index a step" in str(plan)

"""`dp_look` counts what a raw table holds, for the price of its plan."""

import math

import numpy as np
import pytest

from dpsparse import Domain, Ledger
from dpsparse.exceptions import BudgetError, DomainError, ParameterError, SchemaError
from dpsparse.preprocessing import dp_look
from dpsparse.preprocessing.look import plan_look

N = 3_000
TABLE = {
    "age": [*range(N - 300), *[None] * 300],
    "born": ["2001-05-01"] * N,
    "sex": ["f", "m", "none"] * (N // 3),
}
LABELS = ["no", "yes", "?"] * (N // 3)
BINARY = Domain(classes=["no", "yes"])


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
def test_without_noise_the_counts_are_exact():
    look = dp_look(
        TABLE, LABELS, domain=BINARY, epsilon=math.inf, missing_values=("none",), random_state=0
    )
    assert look.target == pytest.approx({"no": 1000, "yes": 1000, "none of these": 1000}, abs=1e-3)
    assert look.n_units == pytest.approx(N)
    assert look.shares("age") == pytest.approx({"number": 0.9, "missing": 0.1})
    assert look.shares("born") == pytest.approx({"date": 1.0})
    assert look.shares("sex") == pytest.approx({"category": 2 / 3, "missing": 1 / 3})


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")
def test_targets_that_are_numbers_are_counted_by_their_range():
    look = dp_look(
        {"x": [1.0] * 5},
        [-1.0, 0.5, 2.0, 2.5, None],
        domain=Domain(target_range=(0, 2)),
        epsilon=math.inf,
    )
    expected = {"below the range": 1, "within": 2, "above": 1, "missing": 1}
    assert look.target == pytest.approx(expected, abs=1e-3)


@pytest.mark.filterwarnings("ignore:.*NOT private")
@pytest.mark.parametrize("odd", [[0, 1], [], ["no"], None])
def test_a_target_that_is_a_list_changes_no_other_target(odd):
    terms = {"domain": BINARY, "epsilon": math.inf, "random_state": 0}
    found = dp_look({"x": [1.0] * 4}, [["no"], ["yes"], ["yes"], odd], **terms).target
    assert list(found.values()) == pytest.approx([0.0, 0.0, 4.0])  # a list is no label


def test_the_ledger_pays_and_refuses():
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    look = dp_look(TABLE, LABELS, domain=BINARY, epsilon=0.5, ledger=ledger)
    assert look.privacy_ == plan_look(BINARY, 3, epsilon=0.5).guarantee
    assert ledger.spent() == pytest.approx(0.5, rel=1e-3)
    assert abs(look.n_units - N) < 10 * look.column_sd
    with pytest.raises(BudgetError):
        dp_look(TABLE, LABELS, domain=BINARY, epsilon=0.9, ledger=ledger)
    assert len(ledger.history()) == 1


def test_a_person_counts_once():
    """A person of many rows has the weight of one row in every count."""
    groups = np.repeat(np.arange(N // 3), 3)
    domain = Domain(classes=["no", "yes"], unit="person")
    look = dp_look(TABLE, LABELS, domain=domain, epsilon=3.0, groups=groups)
    assert look.privacy_.unit.startswith("one person")
    assert look.n_units == pytest.approx(N / 3, abs=20 * look.column_sd)


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"domain": Domain()}, DomainError),
        ({"domain": None}, ParameterError),
        ({"domain": BINARY, "groups": [1] * N}, ParameterError),
        ({"domain": BINARY, "y": LABELS[:-1]}, SchemaError),
        ({"domain": BINARY, "epsilon": -1.0}, ParameterError),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(facts, error):
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    arguments = {"epsilon": 0.5, "y": LABELS, **facts}
    with pytest.raises(error):
        dp_look(TABLE, ledger=ledger, **arguments)
    assert ledger.history() == []

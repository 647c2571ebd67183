"""Events are plain, hashable, exact records; impossible ones cannot be made."""

import json
import math

import numpy as np
import pytest

from dpsparse.accounting import (
    Exponential,
    Gaussian,
    Geometric,
    NonPrivate,
    Pure,
    Repeated,
    Sequence,
)
from dpsparse.accounting.events import from_dict, to_dict
from dpsparse.exceptions import ParameterError, UnknownEventError


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, "1", None, True, [1.0]])
def test_parameters_must_be_positive_numbers(bad):
    for make in (Exponential, Pure, Gaussian, lambda v: Gaussian(1.0, v)):
        with pytest.raises(ParameterError, match="positive number"):
            make(bad)


def test_geometric_noise_needs_an_integer_query():
    for bad in (1.5, math.inf):
        with pytest.raises(ParameterError, match="whole number"):
            Geometric(1.0, bad)


@pytest.mark.parametrize("bad", [-1, 1.0, 2.5, True, "3", None])
def test_counts_are_whole_numbers(bad):
    with pytest.raises(ParameterError, match="count"):
        Repeated(Pure(1.0), bad)


def test_parts_must_be_events():
    with pytest.raises(UnknownEventError):
        Repeated(1.0, 2)
    with pytest.raises(UnknownEventError):
        Sequence((Pure(1.0), "x"))


def test_numpy_scalars_become_plain_numbers():
    event = Repeated(Exponential(np.float64(0.1)), np.int64(7))
    assert event == Repeated(Exponential(0.1), 7)
    assert type(event.count) is int
    assert type(event.event.eta) is float
    assert type(Exponential(np.float32(0.5)).eta) is float
    json.dumps(to_dict(event))


def test_records_survive_json_bit_for_bit():
    event = Sequence(
        (
            Repeated(Exponential(0.1 + 0.2), 400),
            Gaussian(math.pi, 1 / 3),
            Geometric(7.25, 3),
            Geometric(math.inf),
            NonPrivate(),
        )
    )
    assert from_dict(json.loads(json.dumps(to_dict(event), allow_nan=False))) == event


def test_foreign_records_are_refused():
    with pytest.raises(UnknownEventError, match="Unknown event type"):
        from_dict({"type": "Magic", "epsilon": 1.0})
    with pytest.raises(ParameterError, match="lacks epsilon"):
        from_dict({"type": "Pure"})

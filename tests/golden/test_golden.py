"""The seeded model and the price of every audit case, as they were when golden.json was last written.

A change that moves one of them on purpose rewrites the file with

    PYTHONPATH=tests python tests/golden/test_golden.py

and says why in CHANGELOG.md. Weights are compared to seven digits, because minimisers are found by the linear
algebra of the machine; prices are compared to the last digit that is written down.
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from audit_cases import cases
from dpsparse.accounting.events import to_dict
from dpsparse.audit.neighbours import row_weights
from dpsparse.exceptions import NotPrivateWarning
from dpsparse.random import make_generator

FILE = Path(__file__).with_name("golden.json")
ALL = [case for adjacency in ("add-remove", "replace-one") for case in cases(adjacency)]


def record(model):
    """What one seeded fit on a small table of its own gives."""
    rng = make_generator(7)
    width = 6 if getattr(model, "public_X", None) is None else model.public_X.shape[1]
    X = rng.uniform(-1.0, 1.0, (12, width))
    classes = model.domain.classes
    y = rng.uniform(-2.0, 2.0, 12) if classes is None else rng.choice(classes, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        model.set_params(random_state=3).fit(X, y, **row_weights(model, X))
    return {
        "coef": np.ravel(model.coef_).tolist(),
        "intercept": np.ravel(model.intercept_).tolist(),
        "n_iter": model.n_iter_,
        "events": {phase.name: to_dict(phase.event) for phase in model.plan_.phases},
    }


def rounded(value):
    """Numbers of nine digits, so that the file says no more than the test compares."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.fixture(scope="module")
def golden():
    return json.loads(FILE.read_text())


@pytest.mark.parametrize(("name", "model"), ALL, ids=[name for name, _ in ALL])
def test_seeded_models_and_prices_stay(name, model, golden):
    found, kept = rounded(record(model)), golden[name]
    assert found["events"] == kept["events"]
    assert found["n_iter"] == kept["n_iter"]
    for part in ("coef", "intercept"):
        np.testing.assert_allclose(found[part], kept[part], rtol=1e-7, atol=1e-9)


def test_the_file_has_every_case_and_no_other(golden):
    assert set(golden) == {name for name, _ in ALL}


if __name__ == "__main__":
    FILE.write_text(
        json.dumps({name: rounded(record(model)) for name, model in ALL}, indent=0) + "\n"
    )

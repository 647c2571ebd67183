"""A table passed where a parameter belongs, `plan(X)` for `plan(n_features)`, is refused without its cells.

The repr of a data frame shows rows and counts them, so no refusal may hold the repr of what it was given.
"""

import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsparse
from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPPipeline,
    DPSearchCV,
    DPTablePreparer,
    Ledger,
    dp_evaluate,
    expected_accuracy,
)
from dpsparse import methods as estimators
from dpsparse._checks import safe_repr

CELLS = ("Meier-Huber", "73951", "7 rows", "(7,")
FRAME = pd.DataFrame({"name": ["Meier-Huber"] * 7, "age": [73951.5] * 7})
TABLES = [
    FRAME,
    FRAME[["age"]],
    FRAME["name"],
    FRAME["age"].to_numpy(),
    FRAME.to_numpy(),
    FRAME[["age"]].to_numpy().tolist(),
    {"name": ["Meier-Huber"]},
]
CLASSES = Domain(classes=[0, 1], row_norm=1.0, n_samples=600)
NUMBERS = Domain(target_bound=1.0, row_norm=1.0, n_samples=600)
PIPE = [("table", DPTablePreparer(rest="auto")), ("model", DPGradientClassifier(CLASSES))]


def shown(call, *arguments, **options):
    """Cells in what a caller sees of a refusal."""
    try:
        call(*arguments, **options)
    except Exception as error:
        return [cell for cell in CELLS if cell in f"{error} {error.args}"]
    return []


@pytest.mark.parametrize("name", [n for n in estimators.__all__ if n.startswith("DP")])
def test_no_parameter_of_an_estimator_shows_cells(name):
    kind = getattr(estimators, name)
    domain = CLASSES if name.endswith("Classifier") else NUMBERS
    for table in TABLES:
        assert not shown(kind(domain).plan, table)
        for parameter in kind().get_params(deep=False):
            stated = {"domain": domain, parameter: table}
            assert not shown(lambda stated=stated: kind(**stated).plan(5)), parameter


def test_nothing_else_that_takes_parameters_shows_cells():
    model = DPGradientClassifier(CLASSES).fit(np.full((60, 2), 0.5), np.arange(60) % 2)
    calls = [
        (Domain, {}),
        (Ledger, {"epsilon": 1.0, "delta": 1e-6}),
        (dp_evaluate, {"model": model, "X": np.ones((6, 2)), "y": np.arange(6) % 2, "epsilon": 1.0}),
        (expected_accuracy, {"estimator": model, "n_samples": 100, "n_features": 2, "repeats": 1}),
        (lambda **o: DPSearchCV(**o).plan(5), {
            "estimator": DPGradientClassifier(CLASSES), "candidates": {"n_nonzero": [1]}, "epsilon": 1.0
        }),
        (lambda **o: DPPipeline(**o).plan(), {"steps": PIPE, "epsilon": 1.0}),
    ]  # fmt: skip
    signatures = [*(call for call, _ in calls[:4]), DPSearchCV, DPPipeline]
    for (call, sound), signed in zip(calls, signatures, strict=True):
        for parameter in inspect.signature(signed).parameters:
            for table in TABLES:
                assert not shown(call, **{**sound, parameter: table}), (signed, parameter)


def test_what_was_given_is_shown_where_it_is_plain():
    assert safe_repr(-1.0) == "-1.0"
    assert safe_repr("private") == "'private'"
    assert safe_repr((5, 0)) == "(5, 0)"
    assert safe_repr(None) == "None"
    assert safe_repr(FRAME) == "an object of type DataFrame"
    assert safe_repr(np.ones(3)) == "an object of type ndarray"
    assert safe_repr("Meier-Huber " * 20) == "an object of type str"


def test_no_message_shows_what_it_got_by_repr():
    """Files of fixed choices of the library's own are left out, and so are solvers, which see numbers of plans."""
    source = Path(dpsparse.__file__).parent
    found = [
        path.name
        for path in source.rglob("*.py")
        if re.search(r"[gG]ot \{[^}]*!r\}", path.read_text("utf-8"))
        and not {"frank_wolfe", "audit", "datasets"} & set(path.parts)
    ]
    assert found == []

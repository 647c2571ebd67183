"""Docstrings of public names are complete, by numpydoc; estimators say when to use them."""

import sys
from pathlib import Path

import pytest

import dpsparse.methods

validate = pytest.importorskip("numpydoc.validate").validate
sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))

from notes import public_names  # noqa: E402

# Records that other names return, and errors: nobody calls them. Audits have their own page. numpydoc takes
# accounting.rdp for the module of that name.
RECORDS = {
    "Guarantee", "Plan", "Rows", "evaluation.Estimate", "evaluation.Report",
    "inference.Inference", "model_selection.Forecast", "preprocessing.TableLook", "io.Table", "accounting.rdp",
}  # fmt: skip
CALLED = [
    name
    for name in public_names()
    if name not in RECORDS and not name.startswith(("audit.", "exceptions."))
]
# No parameter is missing, unknown, without type or description; what is returned is said.
CODES = {"GL08", "PR01", "PR02", "PR04", "PR05", "PR07", "RT01", "RT03", "SS06"}


@pytest.mark.parametrize("name", CALLED)
def test_a_docstring_is_complete(name):
    errors = validate(f"dpsparse.{name}")["errors"]
    assert not [text for code, text in errors if code in CODES and "**refused" not in text]


@pytest.mark.parametrize("name", dpsparse.methods.__all__)
def test_an_estimator_says_when_to_use_it(name):
    if name.startswith("DP"):
        assert "**When to use.**" in getattr(dpsparse.methods, name).__doc__

"""Docstrings of public names are complete, by numpydoc; estimators say when to use them."""

import inspect
import re
from importlib import import_module

import pytest
from reference import public_names

import dpsparse.methods
import dpsparse.preprocessing

validate = pytest.importorskip("numpydoc.validate").validate
from numpydoc.docscrape import NumpyDocString  # noqa: E402

# Records that other names return, and errors: nobody calls them. Audits have their own page.
RECORDS = {
    "Guarantee", "Plan", "Rows", "evaluation.Estimate", "evaluation.Report",
    "inference.Inference", "model_selection.Forecast", "preprocessing.TableLook", "io.Table",
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


@pytest.mark.parametrize("name", [n for n in CALLED if n not in ("Domain", "Rows")])
def test_a_docstring_states_every_default(name):
    """Facts that a method needs are declared in a domain, which has no useful default."""
    room, _, last = name.rpartition(".")
    found = getattr(import_module(f"dpsparse.{room}" if room else "dpsparse"), last)
    defaults = inspect.signature(found).parameters
    for entry in NumpyDocString(inspect.getdoc(found) or "")["Parameters"]:
        if not re.search("default=|optional|as in |see `|^Domain$", entry.type):
            given = [defaults[n].default for n in entry.name.split(", ") if n in defaults]
            assert given == [inspect.Parameter.empty] * len(given), entry.name


ESTIMATORS = [*dpsparse.methods.__all__, *dpsparse.preprocessing.__all__, "DPSearchCV", "DPFeatureTest"]  # fmt: skip


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if hasattr(getattr(dpsparse, n, None), "fit")])  # fmt: skip
def test_an_estimator_says_when_to_use_it(name):
    assert "**When to use.**" in getattr(dpsparse, name).__doc__

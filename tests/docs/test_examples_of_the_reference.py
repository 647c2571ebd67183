"""The examples of the reference run: those of docstrings, and those that the site adds to estimators without one."""

import doctest
import sys
from pathlib import Path

import pytest

import dpsparse
from dpsparse import estimators

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))

from notes import example


def run(text: str, name: str) -> None:
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    out: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=out.append)
    assert not out, "".join(out)


@pytest.mark.parametrize("name", [n for n in dpsparse.__all__ if not n.startswith("_")])
def test_examples_of_docstrings(name):
    text = getattr(dpsparse, name).__doc__ or ""
    if ">>>" not in text:
        pytest.skip("no example in the docstring")
    run(text, name)


@pytest.mark.parametrize(
    "name", [n for n in estimators.__all__ if ">>>" not in (getattr(estimators, n).__doc__ or "")]
)
def test_examples_that_the_site_adds(name):
    run(example(name), name)

"""The examples of the reference run, and every public name has one."""

import doctest
from importlib import import_module
from typing import Any

import pytest
from reference import public_names

# Records that other names return, audits that take minutes; errors speak for themselves.
WITHOUT = {
    "audit.Verdict", "audit.audit", "audit.Rebuilt",
    "evaluation.Report", "inference.Inference", "model_selection.Forecast", "io.Table",
    "accounting.Event", "preprocessing.TableLook",
}  # fmt: skip


def docstring(name: str) -> str:
    room, _, last = name.rpartition(".")
    found: Any = getattr(import_module(f"dpsparse.{room}" if room else "dpsparse"), last)
    return found.__doc__ or ""


@pytest.mark.parametrize("name", [n for n in public_names() if ">>>" in docstring(n)])
def test_examples_run(name):
    test = doctest.DocTestParser().get_doctest(docstring(name), {}, name, None, 0)
    out: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=out.append)
    assert not out, "".join(out)


def test_every_public_name_has_an_example():
    lacking = {n for n in public_names() if ">>>" not in docstring(n)}
    assert {n for n in lacking if not n.startswith("exceptions.")} == WITHOUT

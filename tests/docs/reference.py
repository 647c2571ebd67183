"""The names on the page of the reference: all public ones, as test_site_sources.py checks."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def public_names():
    """`Ledger`, `accounting.epsilon`, `exceptions.BudgetError` ... as docs/api.md lists them."""
    return re.findall(r"^   ([\w.]+)$", (DOCS / "api.md").read_text("utf-8"), re.MULTILINE)

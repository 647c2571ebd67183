"""What the audits share."""

import pytest


@pytest.fixture(autouse=True)
def short_counts(monkeypatch):
    """A private count needs some noiseless fit; five thousand steps of it are not needed here."""
    from dpsparse.methods.frank_wolfe import solve

    monkeypatch.setattr(solve, "COUNT_STEPS", 30)

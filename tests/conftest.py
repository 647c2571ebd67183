"""Fixtures that tests of several rooms share."""

import sys

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes to make or to run tells how busy the machine is, and nothing about the code.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture
def run(capsys, monkeypatch):
    """dpsparse ARGS -> (exit code, stdout, stderr), through the real entry point but in this process: to start
    Python and to import scikit-learn takes longer than most commands."""
    from dpsparse.cli import main

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpsparse", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return stop.value.code, out, err

    return call

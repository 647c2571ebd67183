"""Fixtures that tests of several rooms share."""

import sys

import pytest


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

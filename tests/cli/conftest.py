"""A command writes where it is run, so every test of the command line runs in a folder of its own."""

import pytest


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def command(run):
    """dpsparse ARGS -> (exit code, everything printed)."""

    def call(*words):
        code, out, err = run(*words)
        return code, out + err

    return call

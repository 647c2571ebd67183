"""docs/cli.md names every command and every option of the parser, and no other."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("click")
sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))

from cli_options import PAGE, written


def test_commands_and_options_are_on_the_page_with_the_words_of_their_help():
    assert written(PAGE.read_text()) == PAGE.read_text(), "run python docs/_ext/cli_options.py"

"""docs/cli.md names every command and every option of the parser, and no other."""

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("click")
sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))

from cli_options import PAGE, commands, written
from dpsparse.cli.commands import program


@pytest.mark.parametrize("name", [name for name, _ in commands(program)])
def test_every_command_is_on_the_page(name):
    group, _, last = name.rpartition(" ")
    pattern = rf"`{group} [\w, ]*\b{last}\b" if group else rf"`{re.escape(name)}\b"
    assert re.search(pattern, PAGE.read_text()), name


def test_every_option_is_on_the_page_with_the_words_of_its_help():
    assert written(PAGE.read_text()) == PAGE.read_text(), "run python docs/_ext/cli_options.py"

"""A page with measured numbers names the command that makes them."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
COMMAND = re.compile(
    r"(python (-m )?[\w./]+|pytest [\w./]+|dpsparse [a-z]+|make [a-z-]+|benchmarks/\w+\.py)"
)
PAGES = [*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_tables_of_numbers_name_their_command(page):
    """A row of a table with two decimal numbers or more is taken for a measurement; its section or the
    introduction of the page has the command."""
    introduction, *sections = re.split(r"\n(?=## )", page.read_text("utf-8"))
    for section in [introduction, *sections]:
        told = re.sub(r"`[^`\n]*`", "", section)  # numbers inside code are settings
        measured = [
            row
            for row in told.splitlines()
            if row.startswith("|") and len(re.findall(r"\d?\.\d", row)) > 1
        ]
        named = COMMAND.search(introduction) or COMMAND.search(section)
        assert not measured or named, f"{page.name}: {measured[0]}"


def test_the_commands_exist():
    """Scripts that pages name are in the repository."""
    for page in PAGES:
        for script in re.findall(
            r"\b((?:benchmarks|experiments|examples|tests|docs)/[\w/]+\.py)\b",
            page.read_text("utf-8"),
        ):
            assert (DOCS.parent / script).exists(), f"{page.name}: {script}"

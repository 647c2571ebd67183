"""A page with measured numbers names the command that makes them, and every command that a page names exists."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md"]
FOLDERS = ("src", "tests", "experiments", "benchmarks", "examples", "docs", ".ci")
FILES = [file.as_posix() for top in FOLDERS for file in (DOCS.parent / top).rglob("*.py")]
CODE = re.compile(r"```.*?```|`[^`\n]+`|^ {4}.*$", re.DOTALL | re.MULTILINE)
# What makes a number: a script, a test, a paper's table, a plan or a check of the project; not `dpsparse fit`.
COMMAND = re.compile(
    r"python (-m |-c )?[\w./\"]|pytest tests/|experiments/[\w/]+\.py|print\("
    r"|dpsparse (lab|demo|plan|tune|audit)\b|make (demo|docs|wheel|bench-check|test[\w-]*)\b"
)
DECIMAL = re.compile(r"(?<![\w./-])\d*\.\d+\b(?!\.\d)")


def code_and_prose(text: str) -> tuple[str, str]:
    return "\n".join(CODE.findall(text)), CODE.sub("", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_measured_numbers_name_their_command(page):
    """A row of a table, a point of a list or a paragraph with two decimal numbers or more is taken for a measurement;
    its section or the introduction of the page has the command, as code. Numbers inside code are settings."""
    introduction, *sections = re.split(r"\n(?=## )", page.read_text("utf-8"))
    for section in [introduction, *sections]:
        code, prose = code_and_prose(section)
        pieces = re.split(r"\n\s*\n|\n(?=[-*|])", prose)
        measured = [piece for piece in pieces if len(DECIMAL.findall(piece)) > 1]
        named = COMMAND.search(code) or COMMAND.search(code_and_prose(introduction)[0])
        assert not measured or named, f"{page.name}: {measured[0]}"


def test_a_word_is_no_command():
    assert not COMMAND.search("make sure that dpsparse is private; dpsparse fit makes a model")


def test_the_commands_exist():
    """Targets of make and subcommands that pages name are there."""
    from dpsparse.cli.commands import program

    targets = re.findall(
        r"^([a-z-]+):", (DOCS.parent / "Makefile").read_text("utf-8"), re.MULTILINE
    )
    for page in PAGES:
        text = page.read_text("utf-8")
        code, _ = code_and_prose(text)
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", code, re.MULTILINE):
            assert target in targets, f"{page.name}: make {target}"
        for name in re.findall(r"(?:^|`) *dpsparse ([a-z][a-z-]*)", code, re.MULTILINE):
            assert name in program.commands, f"{page.name}: dpsparse {name}"


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted((DOCS / "proofs").glob("*.md"))], ids=lambda p: p.stem
)
def test_the_files_that_a_page_names_exist(page):
    for name in re.findall(r"(?<![\w/.<*])((?:[\w-]+/)*\w+\.py)\b", page.read_text("utf-8")):
        assert any(file.endswith(f"/{name}") for file in FILES), f"{page.name}: {name}"

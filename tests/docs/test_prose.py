"""The product speaks of itself alone: no page, comment, docstring or name of a test tells how it was made."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROCESS = re.compile(
    r"\b(this session|sessions? before|session of|helper.s report|in the afternoon|this morning|last night"
    r"|quiet machine"
    r"|calm machine|busy machine|beside other work|at load \d+|commit [0-9a-f]{7}|\d+ (?:January|February|March|April"
    r"|May|June|July|August|September|October|November|December) 20\d\d|were asked for|the issue that|third attack)\b",
    re.IGNORECASE,
)
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/proofs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
]
CODE = [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "examples").glob("*.py"))]


@pytest.mark.parametrize("files", [PAGES, CODE], ids=["pages", "code"])
def test_nothing_tells_how_it_was_made(files):
    found = [
        f"{path.relative_to(ROOT)}: {match.group(0)}"
        for path in files
        for match in PROCESS.finditer(path.read_text("utf-8"))
    ]
    assert not found


def test_names_of_tests_tell_nothing_of_it_either():
    names = re.compile(r"def (test_\w*(?:session|issue_\d+)\w*)")
    found = [
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in names.findall(path.read_text("utf-8"))
    ]
    assert not found

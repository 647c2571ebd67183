"""The product speaks of itself alone, in plain words: nothing in it tells how it was made."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

from style import sentences_of  # noqa: E402

PROCESS = re.compile(
    r"\b(this session|sessions? before|session of|helper.s report|in the afternoon|this morning|last night"
    r"|quiet machine"
    r"|calm machine|busy machine|beside other work|at load \d+|commit [0-9a-f]{7}|\d+ (?:January|February|March|April"
    r"|May|June|July|August|September|October|November|December) 20\d\d|were asked for|the issue that|third attack)\b",
    re.IGNORECASE,
)
# Words with a plainer one: "so many" is "this number of", a "gap" in a table is a missing value.
COINED = re.compile(r"\b(as ever|to speak of|so many|whatever|gaps)\b", re.IGNORECASE)
WITHOUT_A_LEAD = {"index", "guide", "api"}
MAX_WORDS = 50  # of a sentence
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
    names = re.compile(r"def (test_\w*(?:session|issue_\d+)\w*|test_[a-f]\d_\w*)|\b(\d+-[A-F]\d)\b")
    found = [
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in names.findall(path.read_text("utf-8"))
    ]
    assert not found


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_says_first_what_its_reader_will_be_able_to_do(page):
    beginning = "\n".join(page.read_text("utf-8").split("\n## ")[0].splitlines()[:12])
    assert "After this page" in beginning or page.stem in WITHOUT_A_LEAD


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_use_plain_words_and_short_sentences(page):
    if page.parent.name == "proofs":
        return  # mathematics has sentences of its own
    text = page.read_text("utf-8")
    assert not COINED.findall(text)
    assert not [s for s in sentences_of(text) if len(s.split()) > MAX_WORDS]

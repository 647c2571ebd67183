"""The sources of the site: formulas lose nothing on their way to LaTeX, every public name is in the reference."""

import re
import sys

import pytest
from reference import DOCS, public_names

import dpsparse

sys.path.insert(0, str(DOCS / "_ext"))

from notes import proof_of
from plain_math import NotMath, formulas, latex

COMMANDS = "Vert|vert|le|ge|ne|to|ll|gg|ldots|cdot|sim|quad|pm|langle|rangle|blacksquare|mathrm"


def letters(text: str) -> str:
    """Letters and digits of a note in order, with LaTeX commands undone."""
    text = re.sub(r"\\begin\{aligned\}|\\end\{aligned\}|\\\\ &", "", text)
    text = text.replace(r"\varepsilon", "eps").replace(r"\infty", "inf").replace(r"\Lambda", "Lam")
    text = re.sub(rf"\\(?:{COMMANDS})(?![a-z])", "", text)
    text = text.replace("epsilon", "eps").replace("infinity", "inf")
    text = re.sub(r"(?<!\d)1e-?(\d)", r"10\1", text)  # 1e-9 is set as a power of ten
    text = re.sub(r"(\d)e-?(\d)", r"\g<1>10\2", text)
    return re.sub(r"[^A-Za-z0-9]", "", text)


@pytest.mark.parametrize("note", sorted((DOCS / "proofs").glob("*.md")), ids=lambda p: p.stem)
def test_no_letter_of_a_proof_is_lost_or_moved(note):
    text = note.read_text("utf-8")
    assert letters(formulas(text)) == letters(text)


@pytest.mark.parametrize(
    ("plain", "set_as"),
    [
        ("||x_i||_2 <= r", r"\Vert x_{i}\Vert _{2} \le  r"),
        ("e^-eta", r"e^{-\eta }"),
        ("2^-37", "2^{-37}"),
        ("sqrt(n m)", r"\sqrt{n m}"),
        ("x_i . w", r"x_{i} \cdot  w"),
        ("y_1..y_T", r"y_{1}\ldots y_{T}"),
    ],
)
def test_formulas(plain, set_as):
    assert latex(plain) == set_as


@pytest.mark.parametrize("broken", ["f(x", "`code`", "100 %"])
def test_what_is_not_understood_stays_as_written(broken):
    with pytest.raises(NotMath):
        latex(broken)
    assert formulas(broken + "\n") == broken + "\n"


def test_prose_stays_prose():
    text = "A row adds a log line; the (epsilon, 3)-DP of section 1-5 holds, and so on.\n"
    assert "a log line" in formulas(text)
    assert "1-5" in formulas(text)


def test_every_public_name_is_in_the_reference():
    """What is not listed in docs/api.md has no page; what is listed there exists."""
    listed = public_names()
    assert len(listed) == len(set(listed)), "a name is listed twice"
    lines = (DOCS.parent / "tests/golden/public_api.txt").read_text("utf-8").splitlines()
    names = {line.partition("(")[0] for line in lines if line[0] not in "$_"}
    short = {name for name in names if "." not in name}
    rooms = {name for name in names - short if name.partition(".")[2] not in short}
    published = {name for name in rooms if name.startswith("published.")}  # on docs/papers.md
    assert set(listed) == short | (rooms - published - {"accounting.REST"})


def test_every_promise_leads_to_its_proof():
    """Estimators, events and all else that promises: the note exists, also inside the package."""
    kinds = [getattr(dpsparse.methods, name) for name in dpsparse.methods.__all__]
    kinds += [
        dpsparse.Ledger,
        dpsparse.DPSearchCV,
        dpsparse.dp_evaluate,
        dpsparse.accounting.Gaussian,
    ]
    for kind in kinds:
        note = proof_of(kind)
        assert note.startswith("docs/proofs/"), kind
        assert all((DOCS.parent / part).exists() for part in note.split(", ")), (kind, note)

"""How plain the pages are: `python docs/_ext/style.py` prints size, numbers and the ten hardest places.

A sentence is hard to read if it is long or holds many numbers. Code, tables and formulas do not count.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1]
MANY_WORDS = 30
MANY_NUMBERS = 2


def prose_of(text: str) -> str:
    """The text without code, tables, directives, link targets and headings."""
    text = re.sub(r"```.*?```|:::+.*|^---\n.*?\n---\n", " ", text, flags=re.DOTALL)
    text = re.sub(r"^(\||    |#|%|:|\(\w+\)=).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)|\{\w+\}", "]", text)
    return re.sub(r"`[^`\n]*`", "code", text)


def sentences_of(text: str) -> list[str]:
    """Sentences of a page; points of a list and paragraphs end one too."""
    pieces = re.split(r"\n\s*\n|\n(?=[-*] |\d+\. )", prose_of(text))
    found = (re.split(r"(?<=[.!?:;])\s+(?=[A-Z*\[(]|code\b)", " ".join(p.split())) for p in pieces)
    return [sentence for some in found for sentence in some if len(sentence.split()) > 2]


def hardness(sentence: str) -> float:
    numbers = len(re.findall(r"(?<![\w.])\d[\d,.]*", sentence))
    return len(sentence.split()) / MANY_WORDS + max(numbers - MANY_NUMBERS, 0)


def main() -> None:
    pages = [*sorted(DOCS.glob("*.md")), DOCS.parent / "README.md"]
    texts = {page.name: page.read_text("utf-8") for page in pages}
    sentences = [(hardness(s), name, s) for name, text in texts.items() for s in sentences_of(text)]
    words = sum(len(prose_of(text).split()) for text in texts.values())
    numbers = sum(len(re.findall(r"(?<![\w.])\d[\d,.]*", prose_of(t))) for t in texts.values())
    longest = max(len(s.split()) for _, _, s in sentences)
    print(
        f"{len(pages)} pages, {words} words of prose, {1000 * numbers / words:.1f} numbers per thousand words"
    )
    print(f"longest sentence: {longest} words")
    for score, name, sentence in sorted(sentences, reverse=True)[:10]:
        print(f"{score:4.1f}  {name}: {sentence[:160]}")


if __name__ == "__main__":
    main()

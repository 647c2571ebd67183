"""What the notes of this repository need to become pages.

* a mention of `docs/x.md` in a docstring or a note becomes a link to that page;
* proofs in plain text are shown as formulas (plain_math.py), set by a copy of MathJax that needs no network;
* the book of the experiments, a file outside docs/, becomes a section of papers.md and a page a chapter.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import dpsparse
import dpsparse.methods
from plain_math import formulas

DOCS = Path(__file__).parents[1]
BOOK = DOCS.parent / "experiments" / "book" / "reproduction.md"
FINDINGS = "% the findings of the book\n"
# Files of the repository that notes link to and that are no pages: the name stays, the link goes.
_OUTSIDE = re.compile(
    r"(?<!!)\[([^\]]+)\]\((?:\.\./)*(?:src|experiments|benchmarks|tests|examples)/[^)]*\)"
)


def on_source(app: Any, docname: str, source: list[str]) -> None:
    if not (DOCS / f"{docname}.md").exists():
        return
    text = source[0]
    if FINDINGS in text:
        findings = re.sub(r"^(#+ )", r"#\1", _book()[""], flags=re.MULTILINE)
        text = text.replace(
            FINDINGS, findings.replace("](figures/", "](../experiments/book/figures/")
        )
    text = re.sub(
        r"\]\(#(\d{3}-[a-z]+\d*|leaks)-[^)]*\)",
        r"](book/\1.md)",
        text,
    )
    text = _OUTSIDE.sub(r"`\1`", text)
    depth = "../" * docname.count("/")
    text = re.sub(
        r"(?<![\w/`(\[])docs/((?:proofs/)?\w+)\.md(?!\w)",
        lambda m: (
            f"[{m[1].split('/')[-1]}]({depth}{m[1]}.md)" if (DOCS / f"{m[1]}.md").exists() else m[0]
        ),
        text,
    )
    if docname.startswith("proofs/") and not docname.endswith("index"):
        text = re.sub(
            r"(?<![\w/`(\[])(\w+)\.md(?![\w)])",
            lambda m: f"[{m[1]}]({m[1]}.md)" if (DOCS / "proofs" / f"{m[1]}.md").exists() else m[0],
            text,
        )
        text = formulas(text)
    source[0] = text


def _book() -> dict[str, str]:
    """Chapters of the book by name; under the empty name what comes before them."""
    parts = re.split(r"\n(?=## (?:[a-z0-9-]+): )", BOOK.read_text("utf-8"))
    return {"": parts[0]} | {part[3:].split(":")[0]: part for part in parts[1:]}


def write_book() -> None:
    """docs/book/, a page a chapter: all of it on one page is three hundred screens long."""
    folder = DOCS / "book"
    folder.mkdir(exist_ok=True)
    chapters = {name: text for name, text in _book().items() if name}
    for page in folder.glob("*.md"):
        if page.stem not in chapters:
            page.unlink()
    for name, text in chapters.items():
        text = re.sub(r"^#(#+ )", r"\1", text, flags=re.MULTILINE)
        text = text.replace("](figures/", "](../../experiments/book/figures/") + "\n"
        page = folder / f"{name}.md"
        if not page.exists() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")


def on_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """`docs/proofs/x.md` in a docstring leads to the page; |x| and coef_ are text and no markup."""
    for i, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...", "..", ":")):
            continue
        parts = re.split(r"(``.*?``|(?<!:)`[^`]*`|:\w+:`[^`]*`|\*\*.*?\*\*)", line)
        for j in range(0, len(parts), 2):
            text = re.sub(r"(?<!\\)\|", r"\\|", parts[j])
            text = re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text)
            parts[j] = re.sub(
                r"(?<![`\w/])docs/((?:proofs/)?\w+)\.md",
                lambda m: f":doc:`/{m[1]}`" if (DOCS / f"{m[1]}.md").exists() else m[0],
                text,
            )
        lines[i] = "".join(parts)


ATTRIBUTES = """
Attributes
----------
coef_ : array of shape (1 or n_classes, n_features), for numbers (n_features,); CSR after `sparsify()`
intercept_ : array of shape (1 or n_classes,), for numbers a float
privacy_ : Guarantee
    What may be promised about this model.
plan_ : Plan
    What was paid, step by step.
n_iter_, n_nonzero_, n_features_in_ : int
classes_ : array
    Classifiers only.
"""


# Of an estimator its plan names the note, of an event its class; of the rest this table.
PROOFS = {
    "Domain": "whole_numbers",
    "Rows": "whole_numbers",
    "Guarantee": "accounting",
    "Plan": "accounting",
    "Phase": "accounting",
    "Ledger": "ledger",
    "PrivateCount": "counts",
    "DPPipeline": "preparation",
    "DPTablePreparer": "preparation",
    "DPStandardizer": "preparation",
    "DPCategoryEncoder": "preparation",
    "DPVectorizer": "preparation",
    "DPSearchCV": "tuning",
    "DPFeatureTest": "inference",
    "dp_inference": "inference",
    "dp_evaluate": "evaluation",
    "epsilon": "accounting",
    "delta": "accounting",
    "calibrate": "accounting",
    "gaussian_parameter": "accounting",
}


def proof_of(obj: Any) -> str:
    """The path of the proof note behind a public name; empty where nothing is promised."""
    name = getattr(obj, "__name__", "")
    if name in PROOFS:
        return f"docs/proofs/{PROOFS[name]}.md"
    if name in dpsparse.methods.__all__:
        facts = {"row_norm": 1.0, "feature_bound": 1.0, "n_samples": 500}
        facts |= {"classes": [0, 1]} if name.endswith("Classifier") else {"target_bound": 1.0}
        more = {"public_X": np.zeros((8, 8))} if "Transfer" in name else {}
        return str(obj(dpsparse.Domain(**facts), **more).plan(8).source)
    return str(getattr(obj, "proof", "") or "") if isinstance(obj, type) else ""


def on_public_name(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """What all estimators have in common is said on the page of each, and every promise leads to its proof."""
    if what not in ("class", "function") or not name.startswith("dpsparse."):
        return
    text = "\n".join(lines)
    if getattr(obj, "__name__", "") in dpsparse.methods.__all__ and "Attributes\n---" not in text:
        lines += ATTRIBUTES.split("\n")
    note = proof_of(obj)
    if note and note not in text:
        lines += ["", ".. rubric:: Proof", "", f"The proof behind it: {note}.", ""]


def on_finished(app: Any, error: Exception | None) -> None:
    """MathJax from the package sphinx-mathjax-offline: the one script and the fonts that these pages use."""
    if error is not None or app.builder.format != "html":
        return
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    source = Path(spec.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / "tex-chtml.js", target)
    shutil.copytree(source / "output", target / "output", dirs_exist_ok=True)


def setup(app: Any) -> dict[str, bool]:
    write_book()
    app.connect("source-read", on_source)
    app.connect("autodoc-process-docstring", on_public_name, priority=100)
    app.connect("autodoc-process-docstring", on_docstring, priority=900)
    app.connect("build-finished", on_finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The recipes of docs/other_tools.md, run as they stand: one integration for every heading with a block of Python."""

from __future__ import annotations

import os
import re
import tempfile
from functools import partial
from pathlib import Path

from integrations.registry import ALL, NAMES, Integration, X, classifier, frame, y

PAGE = Path(__file__).parents[2] / "docs" / "other_tools.md"


def recipes() -> dict[str, str]:
    """The Python of every recipe by its heading."""
    section = re.search(
        r"^## Recipes\n(.*?)(?=^## )", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    parts = re.split(r"^### (.+)\n", section[1], flags=re.MULTILINE) if section else [""]
    return {
        heading: "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
        for heading, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def run_recipe(code: str) -> None:
    """In an empty folder, with what the page takes for granted: a table `frame`, X, y, and a fitted `model`."""
    given = {"X": frame()[NAMES], "y": y, "frame": frame(), "model": classifier().fit(X, y)}
    with tempfile.TemporaryDirectory() as folder:
        frame().to_parquet(f"{folder}/rows.parquet", index=False)
        os.chdir(folder)
        exec(compile(code, "recipe", "exec"), given)
        os.chdir("/")


ALL.extend(
    Integration(heading, "the recipe of this page", "tools", partial(run_recipe, code))
    for heading, code in recipes().items()
)

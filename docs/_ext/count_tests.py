"""Counts of tests on docs/how_we_test.md, from pytest: `python docs/_ext/count_tests.py` writes them anew."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parents[1] / "how_we_test.md"
ROOT = PAGE.parents[1]
ROW = re.compile(r"^(\|.*\| )\d+( \| `pytest (tests/[^`]*)` \|)$", re.MULTILINE)


def collect(paths: set[str]) -> Counter[str]:
    """How many tests pytest finds in each file below these paths."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *sorted(paths)]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return Counter(line.split("::")[0] for line in found.splitlines() if "::" in line)


def rewrite(page: str) -> str:
    """The page with every count made anew and rounded down to tens."""
    counts = collect({path for row in ROW.finditer(page) for path in row[3].split()})

    def row(match: re.Match[str]) -> str:
        found = sum(
            number
            for file, number in counts.items()
            if any(file == path or file.startswith(f"{path}/") for path in match[3].split())
        )
        return f"{match[1]}{found // 10 * 10}{match[2]}"

    return ROW.sub(row, page)


if __name__ == "__main__":
    PAGE.write_text(rewrite(PAGE.read_text("utf-8")), "utf-8")

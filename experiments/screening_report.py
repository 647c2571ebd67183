"""Tables and plots of `screening.py` from its JSON lines."""

from __future__ import annotations

import json
from pathlib import Path


def read(path: Path) -> list[dict]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(out: Path) -> None:
    pass

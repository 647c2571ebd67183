"""Result rows on disk: JSON lines, resumable by key, grouped for tables and plots."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import numpy as np


class Rows:
    """Rows keyed by the fields `key`; a row is on disk as soon as it is added."""

    def __init__(self, path: Path, key: tuple[str, ...]) -> None:
        self.path, self.key = path, key
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        self.rows = [json.loads(line) for line in lines]
        self._seen = {tuple(row[name] for name in key) for row in self.rows}

    def __contains__(self, values: tuple) -> bool:
        return values in self._seen

    def add(self, values: tuple, **measured: float) -> None:
        row = dict(zip(self.key, values, strict=True)) | measured
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)
        self._seen.add(values)

    def group(self, by: tuple[str, ...], field: str) -> dict[tuple, list[float]]:
        out: dict[tuple, list[float]] = {}
        for row in self.rows:
            out.setdefault(tuple(row[name] for name in by), []).append(row[field])
        return out

    def paired(self, panel: tuple[str, ...], cell: tuple[str, ...]) -> Rows:
        """The rows of those trials that, within a panel, every cell has."""
        done: dict[tuple, dict[tuple, set[int]]] = {}
        for row in self.rows:
            cells = done.setdefault(tuple(row[name] for name in panel), {})
            cells.setdefault(tuple(row[name] for name in cell), set()).add(row["trial"])
        common = {name: set.intersection(*cells.values()) for name, cells in done.items()}
        out = copy.copy(self)
        out.rows = [r for r in self.rows if r["trial"] in common[tuple(r[n] for n in panel)]]
        return out


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """Mean and its standard error."""
    spread = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(np.mean(values)), spread


def markdown(header: list[str], body: list[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])

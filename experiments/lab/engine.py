"""The engine: cells (task, method, setting, split) to rows of measures, resumable, on several cores.

A row is one line of JSON: the cell, measures, hash of the data, versions, guarantee. A cell whose row is in the file is
not run again. A fit that fails is a row with its error.
"""

from __future__ import annotations

import json
import lzma
import os
import platform
import subprocess
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from lab.measures import measured, score_model, support_f1
from lab.methods import Method, Setting, find_method
from lab.tasks import Split, Task, split_rows, truth_of

Row = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One fit; `training` scores on training rows that were held out, and reads no test row."""

    task: Task
    method: str
    setting: Setting
    split: int
    training: bool = False

    @property
    def key(self) -> str:
        return key_of(self.as_row())

    def as_row(self) -> Row:
        found = {
            "task": self.task.name,
            "method": self.method,
            "setting": self.setting.as_row(),
            "split": self.split,
        }
        return found | {"training": True} if self.training else found


def key_of(row: Row) -> str:
    names = ("task", "method", "setting", "split", "training")
    return json.dumps({name: row[name] for name in names if name in row}, sort_keys=True)


def run_cell(cell: Cell) -> Row:
    """Fit, score, and what it cost. The seed of the noise is the number of the split."""
    warnings.simplefilter("ignore")
    row = cell.as_row()
    try:
        split = split_rows(cell.task, cell.split, cell.training)
        row |= {"data": split.digest, "shape": [int(v) for v in split.X.shape]}
        method = find_method(cell.method)
        _warm_up(cell, method, split)
        with measured() as cost:
            fitted = method.fit(cell.task, split, cell.setting, cell.split)
        found: dict[str, Any] = dict(fitted.extra)
        if fitted.model is not None:
            found |= score_model(cell.task, fitted.model, split.X_test, split.y_test)
            truth = truth_of(cell.task)
            if truth is not None and hasattr(fitted.model, "coef_"):
                found["F1"] = support_f1(fitted.model.coef_, truth)
        row |= {"measures": {**found, **cost}, "guarantee": fitted.guarantee}
    except Exception as error:  # a rival that cannot fit a task is a result, too
        row["error"] = f"{type(error).__name__}: {error}"[:300]
    return row | {"versions": versions()}


_WARM: set[str] = set()
_WARM_UP_ROWS = 200


def _warm_up(cell: Cell, method: Method, split: Split) -> None:
    """The first fit of a process compiles and imports; that is no time of the method."""
    kind = f"{cell.method} {cell.task.headline}"
    if kind not in _WARM:
        _WARM.add(kind)
        few = replace(split, X=split.X[:_WARM_UP_ROWS], y=split.y[:_WARM_UP_ROWS])
        if split.persons is not None:
            few = replace(few, persons=split.persons[:_WARM_UP_ROWS])
        with suppress(Exception):
            method.fit(cell.task, few, cell.setting, 0)


@cache
def versions() -> dict[str, str]:
    """Versions that may move a number."""
    import numpy
    import scipy
    import sklearn

    import dpsparse

    try:
        asked = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
        commit = subprocess.run(asked, capture_output=True, text=True, timeout=10).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        commit = ""
    return {
        "dpsparse": f"{dpsparse.__version__} {commit}".strip(),
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
    }


def read_rows(path: Path) -> list[Row]:
    """All rows of a file and of its packed form; of several for one cell the last one."""
    packed = path.with_name(path.name + ".xz")
    text = lzma.decompress(packed.read_bytes()).decode() if packed.exists() else ""
    text += path.read_text() if path.exists() else ""
    rows = map(json.loads, text.splitlines())
    return list({key_of(row): row for row in rows}.values())


def pack_rows(path: Path) -> None:
    """Compress the rows of a file, for the repository."""
    rows = read_rows(path)
    with lzma.open(path.with_name(path.name + ".xz"), "wt", preset=9) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    path.unlink(missing_ok=True)


def run_cells(
    cells: Iterable[Cell],
    path: Path,
    *,
    jobs: int = 1,
    limit: float | None = None,
    patience: float | None = None,
    quiet: bool = False,
) -> list[Row]:
    """Run what is not in the file yet, cheapest first, and return all rows of these cells.

    After `limit` seconds no further cell is started; more splits of a method that took more than `patience` processor
    seconds on a task are left out.
    """
    cells = list({cell.key: cell for cell in cells}.values())
    done = {key_of(row): row for row in read_rows(path) if "error" not in row}
    todo = _cheapest_first([cell for cell in cells if cell.key not in done], done.values())
    start, slow, failed = time.time(), set(), 0

    def waiting() -> Iterator[Cell]:
        for cell in todo:
            if limit and time.time() - start > limit:
                return
            if (cell.task.name, cell.method) not in slow:
                yield cell

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for number, row in enumerate(_results(waiting(), jobs), 1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            done[key_of(row)] = row
            failed += "error" in row
            if patience and row.get("measures", {}).get("seconds", 0.0) > patience:
                slow.add((row["task"], row["method"]))
            if not quiet:
                said = f"\r{number} of {len(todo)} fits, {failed} failed, {time.time() - start:.0f} s: "
                sys.stderr.write(f"{said}{row['method']} on {row['task']}".ljust(100)[:120])
                sys.stderr.flush()
    if not quiet and todo:
        sys.stderr.write("\n")
    return [done[cell.key] for cell in cells if cell.key in done]


def _results(cells: Iterator[Cell], jobs: int) -> Iterator[Row]:
    """Rows as they are made; at most two cells a process wait, so that limits are obeyed."""
    if jobs <= 1:
        yield from map(run_cell, cells)
        return
    with ProcessPoolExecutor(jobs, initializer=_one_thread) as pool:
        waiting = []
        for cell in cells:
            waiting.append(pool.submit(run_cell, cell))
            if len(waiting) >= 2 * jobs:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


def _one_thread() -> None:
    """Processes share the cores; threads of one would only wait for those of another."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    os.environ["NUMBA_NUM_THREADS"] = "1"


def _cheapest_first(cells: list[Cell], done: Iterable[Row]) -> list[Cell]:
    """Split by split, and task by task, so that data is loaded once; what took least in earlier rows first."""
    by_task, by_method = defaultdict(list), defaultdict(list)
    for row in done:
        by_task[row["task"]].append(row["measures"].get("seconds", 0.0))
        by_method[row["method"]].append(row["measures"].get("seconds", 0.0))

    def mean(found: list[float]) -> float:
        return sum(found) / len(found) if found else 0.0

    return sorted(
        cells,
        key=lambda c: (
            c.split, mean(by_task[c.task.name]), c.task.name, mean(by_method[c.method]), c.method, c.setting.epsilon,
        ),
    )  # fmt: skip

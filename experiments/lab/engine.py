"""The engine: cells (task, method, setting, split) to rows of measures, resumable, on several cores.

A row is one line of JSON: the cell, measures, hash of the data, versions, guarantee. A cell whose row is in the file is
not run again. A fit that fails is a row with its error. Trials of the papers are cells, too (papers/chapter.py).
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
from typing import Any, Protocol

from lab.measures import measured, score_model, support_f1
from lab.methods import Method, Setting, find_method
from lab.tasks import Split, Task, split_rows, truth_of

Row = dict[str, Any]


class Job(Protocol):
    """What the engine runs: it names its row, and makes it."""

    def as_row(self) -> Row: ...

    def run(self) -> Row: ...


@dataclass(frozen=True)
class Cell:
    """One fit; `training` scores on training rows that were held out, and reads no test row."""

    task: Task
    method: str
    setting: Setting
    split: int
    training: bool = False

    def as_row(self) -> Row:
        found = {
            "task": self.task.name,
            "method": self.method,
            "setting": self.setting.as_row(),
            "split": self.split,
        }
        return found | {"training": True} if self.training else found

    def run(self) -> Row:
        """Fit, score, and what it cost. The seed of the noise is the number of the split."""
        split = split_rows(self.task, self.split, self.training)
        row: Row = {"data": split.digest, "shape": [int(v) for v in split.X.shape]}
        method = find_method(self.method)
        _warm_up(self, method, split)
        with measured() as cost:
            fitted = method.fit(self.task, split, self.setting, self.split)
        found: dict[str, Any] = dict(fitted.extra)
        if fitted.model is not None:
            found |= score_model(self.task, fitted.model, split.X_test, split.y_test)
            truth = truth_of(self.task)
            if truth is not None and hasattr(fitted.model, "coef_"):
                found["F1"] = support_f1(fitted.model.coef_, truth)
        return row | {"measures": {**cost, **found}, "guarantee": fitted.guarantee}


def key_of(row: Row) -> str:
    names = ("task", "method", "setting", "split", "training")
    return json.dumps({name: row[name] for name in names if name in row}, sort_keys=True)


def run_job(job: Job) -> Row:
    """The row of a job, with versions; an error is a result, too."""
    warnings.simplefilter("ignore")
    row = job.as_row()
    try:
        row |= job.run()
    except Exception as error:
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
    """All rows of a file and of its packed form; of several for one cell the last one. A line cut short is left out."""
    packed = path.with_name(path.name + ".xz")
    text = lzma.decompress(packed.read_bytes()).decode() if packed.exists() else ""
    text += path.read_text() if path.exists() else ""
    rows = {}
    for line in text.splitlines():
        with suppress(json.JSONDecodeError):
            row = json.loads(line)
            rows[key_of(row)] = row
    return list(rows.values())


def pack_rows(path: Path) -> None:
    """Compress the rows of a file, for the repository."""
    rows = read_rows(path)
    with lzma.open(path.with_name(path.name + ".xz"), "wt", preset=9) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    path.unlink(missing_ok=True)


def run_cells(
    cells: Iterable[Job],
    path: Path,
    *,
    jobs: int = 1,
    limit: float | None = None,
    quiet: bool = False,
) -> list[Row]:
    """Run what is not in the file yet, cheapest first, and return all rows of these cells.

    After `limit` seconds no further cell is started.
    """
    wanted = {key_of(cell.as_row()): cell for cell in cells}
    done = {key_of(row): row for row in read_rows(path) if "error" not in row}
    todo = _cheapest_first([c for key, c in wanted.items() if key not in done], done.values())
    start, failed = time.time(), 0
    shows = not quiet and sys.stderr.isatty()

    def waiting() -> Iterator[Job]:
        for cell in todo:
            if limit and time.time() - start > limit:
                return
            yield cell

    path.parent.mkdir(parents=True, exist_ok=True)
    cut_short = path.exists() and not path.read_bytes().endswith(b"\n")
    with path.open("a") as file:
        file.write("\n" if cut_short else "")
        for number, row in enumerate(_results(waiting(), jobs), 1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            done[key_of(row)] = row
            failed += "error" in row
            if shows:
                said = f"\r{number} of {len(todo)} fits, {failed} failed, {time.time() - start:.0f} s: "
                sys.stderr.write(f"{said}{row['method']} on {row['task']}".ljust(100)[:120])
                sys.stderr.flush()
    if shows and todo:
        sys.stderr.write("\n")
    return [done[key] for key in wanted if key in done]


def _results(cells: Iterator[Job], jobs: int) -> Iterator[Row]:
    """Rows as they are made; at most two cells a process wait, so that limits are obeyed."""
    if jobs <= 1:
        yield from map(run_job, cells)
        return
    with ProcessPoolExecutor(jobs, initializer=_one_thread) as pool:
        waiting = []
        for cell in cells:
            waiting.append(pool.submit(run_job, cell))
            if len(waiting) >= 2 * jobs:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()


def _one_thread() -> None:
    """Processes share the cores; threads of one would only wait for those of another."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    os.environ["NUMBA_NUM_THREADS"] = "1"


def _cheapest_first(cells: list[Job], done: Iterable[Row]) -> list[Job]:
    """Split by split, and task by task, so that data is loaded once; what took least in earlier rows first."""
    spent = defaultdict(list)
    for row in done:
        for kind in ("task", "method"):
            spent[row[kind]].append(row["measures"].get("seconds", 0.0))

    def order(cell: Job) -> tuple[Any, ...]:
        row = cell.as_row()
        means = [sum(spent[row[k]]) / max(len(spent[row[k]]), 1) for k in ("task", "method")]
        return row["split"], means[0], row["task"], means[1], row["method"], str(row["setting"])

    return sorted(cells, key=order)

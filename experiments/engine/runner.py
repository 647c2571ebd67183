"""Run the trials of an experiment and keep one JSON line for each; a second run does the rest only."""

from __future__ import annotations

import json
import lzma
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dpsparse.exceptions import NotPrivateWarning
from engine.experiment import Config, Experiment, find
from engine.statistics import derive_seed

Row = dict[str, Any]


def rows_file(results: Path, experiment: Experiment, *, quick: bool) -> Path:
    """Where the rows of an experiment are kept."""
    return results / ("quick" if quick else "full") / f"{experiment.rows_name}.jsonl"


def packed(path: Path) -> Path:
    """Where the same rows are kept compressed, for the repository."""
    return path.with_name(f"{path.name}.xz")


def pack(path: Path) -> None:
    """Move the rows of a file into its compressed twin."""
    rows = read_rows(path)
    with lzma.open(packed(path), "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    path.unlink(missing_ok=True)


def read_rows(path: Path) -> list[Row]:
    """The rows of a file and of its compressed twin; a last line cut short is dropped."""
    text = lzma.decompress(packed(path).read_bytes()).decode() if packed(path).exists() else ""
    text += path.read_text() if path.exists() else ""
    rows = []
    for line in text.splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def run(
    experiment: Experiment,
    folder: Path,
    path: Path,
    *,
    quick: bool,
    n_jobs: int = 1,
    trials: int | None = None,
    progress: bool | None = None,
) -> list[Row]:
    """All rows of `experiment`, after running those that `path` does not hold yet.

    `trials` caps the trials of each cell; rows that are there already count, whatever the cap.
    """
    rows = read_rows(path)
    wanted = list(_tasks(experiment, quick=quick))
    keys = {_key(config, trial) for config, trial in wanted}
    kept = [row for row in rows if _key(row["config"], row["trial"]) in keys]
    done = {_key(row["config"], row["trial"]) for row in kept}
    todo = [
        (config, trial)
        for config, trial in wanted
        if _key(config, trial) not in done and (trials is None or trial < trials)
    ]
    if not todo:
        return kept
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.read_text().endswith("\n"):  # after an interruption
        path.write_text(
            path.read_text().rpartition("\n")[0] + "\n" if "\n" in path.read_text() else ""
        )
    bar = _bar(len(todo), experiment.name, progress)
    with path.open("a") as file:
        for row in _results(experiment, folder, todo, n_jobs):
            file.write(json.dumps(row) + "\n")
            file.flush()
            kept.append(row)
            if bar is not None:
                bar.update()
    if bar is not None:
        bar.close()
    return kept


def _tasks(experiment: Experiment, *, quick: bool) -> Iterator[tuple[Config, int]]:
    for config in experiment.configurations(quick):
        trials = config.get("trials", experiment.trials[0 if quick else 1])
        for trial in range(trials):
            yield config, trial


def _key(config: Config, trial: int) -> str:
    named = {k: v for k, v in config.items() if k != "trials"}
    return json.dumps([named, trial], sort_keys=True)


def _results(
    experiment: Experiment, folder: Path, todo: list[tuple[Config, int]], n_jobs: int
) -> Iterator[Row]:
    if n_jobs == 1:
        for config, trial in todo:
            yield one_row(experiment, config, trial)
        return
    from joblib import Parallel, delayed, parallel_config

    # Workers import the experiment by name: functions of files found by path do not pickle.
    calls = (
        delayed(_row_by_name)(experiment.name, folder, config, trial) for config, trial in todo
    )
    with parallel_config("loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(calls)


def _row_by_name(name: str, folder: Path, config: Config, trial: int) -> Row:
    return one_row(find(name, folder), config, trial)


def one_row(experiment: Experiment, config: Config, trial: int) -> Row:
    """One trial as a JSON-ready row."""
    seed = derive_seed(experiment.rows_name, trial)
    began = time.process_time()  # processor time: trials share the machine
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)  # experiments are seeded on purpose
        found = experiment.trial(config, seed)
        parts = [dict(part) for part in found] if experiment.many else [dict(found)]
    row: Row = {
        "experiment": experiment.rows_name,
        "config": config,
        "trial": trial,
        "seed": seed,
        "seconds": round(time.process_time() - began, 4),
        "versions": _versions(),
    }
    measured = [_measured(part) for part in parts]
    return row | ({"parts": measured} if experiment.many else measured[0])


def _measured(part: dict[str, Any]) -> Row:
    """Metrics and guarantee of one fit in JSON types, with its cell where a trial has several."""
    guarantee = part.pop("guarantee", None)
    cell = {"cell": part.pop("cell")} if "cell" in part else {}
    return cell | {
        "metrics": {name: _plain(value) for name, value in part.items()},
        "guarantee": None if guarantee is None else _guarantee(guarantee),
    }


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [float(f"{v:.6g}") for v in value]
    return float(f"{value:.9g}")


def _guarantee(guarantee: Any) -> dict[str, Any]:
    """The short form: what is promised, without the list of events."""
    return {
        "headline": guarantee.headline,
        "proven": guarantee.proven,
        "calibration": guarantee.calibration,
        "source": guarantee.source,
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("dpsparse", "numpy", "scipy", "scikit-learn", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a checkout that is not installed
            from dpsparse import __version__

            found[package] = __version__ if package == "dpsparse" else "?"
    return found


def _bar(total: int, name: str, progress: bool | None) -> Any:
    if not (sys.stderr.isatty() if progress is None else progress):
        return None
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, desc=name, unit="trial")

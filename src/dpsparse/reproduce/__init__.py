"""Regenerate the tables and figures of the papers: configuration -> trials -> rows -> table and plot.

The experiments themselves live in the folder `experiments` of the source checkout, one short file per
table or figure; this package finds them, runs them, compares them with the published numbers and
writes the book. Names load on first use, so that the command line starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpsparse.reproduce.experiment import (
        AFTER_THE_FACT,
        AS_PRINTED,
        BY_CONSTRUCTION,
        Experiment,
        discover,
        experiments_folder,
        find,
    )
    from dpsparse.reproduce.runner import read_rows, run
    from dpsparse.reproduce.statistics import derive_seed, sign_test, wilcoxon
    from dpsparse.reproduce.summary import Summary, summarise

_HOMES = {
    "AFTER_THE_FACT": "experiment",
    "AS_PRINTED": "experiment",
    "BY_CONSTRUCTION": "experiment",
    "Experiment": "experiment",
    "Summary": "summary",
    "derive_seed": "statistics",
    "discover": "experiment",
    "experiments_folder": "experiment",
    "find": "experiment",
    "read_rows": "runner",
    "run": "runner",
    "sign_test": "statistics",
    "summarise": "summary",
    "wilcoxon": "statistics",
}

__all__ = [
    "AFTER_THE_FACT",
    "AS_PRINTED",
    "BY_CONSTRUCTION",
    "Experiment",
    "Summary",
    "derive_seed",
    "discover",
    "experiments_folder",
    "find",
    "read_rows",
    "run",
    "sign_test",
    "summarise",
    "wilcoxon",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpsparse.reproduce' has no attribute {name!r}")
    value = getattr(import_module(f"dpsparse.reproduce.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""Regenerate the tables and figures of the papers: configuration -> trials -> rows -> table and plot.

The experiments are the files paper*.py beside this folder, one for every few tables or figures; the engine finds
them, runs them, compares them with the published numbers and writes the book. `dpsparse reproduce` is its command.
"""

from engine.experiment import (
    AFTER_THE_FACT,
    AS_PRINTED,
    BY_CONSTRUCTION,
    Experiment,
    discover,
    experiments_folder,
    find,
)
from engine.runner import read_rows, run
from engine.statistics import derive_seed, sign_test, wilcoxon
from engine.summary import Summary, summarise

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

"""Regenerate the tables and figures of the papers: configuration -> trials -> rows -> table and plot.

The experiments themselves live in the folder `experiments` of the source checkout, one short file per
table or figure; this package finds them, runs them, compares them with the published numbers and
writes the book.
"""

from dpsparse.reproduce.experiment import Experiment, discover, experiments_folder, find
from dpsparse.reproduce.runner import read_rows, run
from dpsparse.reproduce.statistics import derive_seed, sign_test, wilcoxon
from dpsparse.reproduce.summary import Summary, summarise

__all__ = [
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

"""The data sets of the papers by name, and the papers' synthetic data.

`load("a9a")` reads a checked file from the folder in DPSPARSE_DATA; `names()` lists what there is, and `info("a9a")`
says where it comes from.
"""

from papers_data.loaders import data_folder, is_here, load
from papers_data.newsgroups import load_newsgroups_bigrams
from papers_data.registry import Dataset, info, names
from papers_data.synthetic import (
    GAUSSIAN_BOUND,
    make_screening_regression,
    make_sparsifier_classification,
    make_transfer_data,
    make_wide_text,
)

__all__ = [
    "GAUSSIAN_BOUND",
    "Dataset",
    "data_folder",
    "info",
    "is_here",
    "load",
    "load_newsgroups_bigrams",
    "make_screening_regression",
    "make_sparsifier_classification",
    "make_transfer_data",
    "make_wide_text",
    "names",
]

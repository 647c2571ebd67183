"""The data sets of the papers by name, and the papers' synthetic data.

`load("a9a")` reads a checked file from the folder in DPSPARSE_DATA; `names()` lists what there is
and `info("a9a")` says where it comes from. Names load on first use, so importing this is free.
"""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use

if TYPE_CHECKING:
    from dpsparse.datasets.loaders import data_folder, load
    from dpsparse.datasets.newsgroups import load_newsgroups_bigrams
    from dpsparse.datasets.papers import (
        make_screening_regression,
        make_sparsifier_classification,
        make_transfer_data,
        make_wide_text,
    )
    from dpsparse.datasets.registry import Dataset, info, names
    from dpsparse.datasets.synthetic import make_sparse_classification

_HOMES = {
    "loaders": "data_folder load",
    "newsgroups": "load_newsgroups_bigrams",
    "papers": (
        "make_screening_regression make_sparsifier_classification make_transfer_data make_wide_text"
    ),
    "registry": "Dataset info names",
    "synthetic": "make_sparse_classification",
}

__all__ = [
    "Dataset",
    "data_folder",
    "info",
    "load",
    "load_newsgroups_bigrams",
    "make_screening_regression",
    "make_sparse_classification",
    "make_sparsifier_classification",
    "make_transfer_data",
    "make_wide_text",
    "names",
]

__getattr__, __dir__ = names_on_first_use(__name__, _HOMES, globals())

"""The data sets of the papers by name, and the papers' synthetic data.

`load("a9a")` reads a checked file from the folder in DPSPARSE_DATA; `names()` lists what there is
and `info("a9a")` says where it comes from. Names load on first use, so importing this is free.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "Dataset": "registry",
    "data_folder": "loaders",
    "info": "registry",
    "load": "loaders",
    "load_newsgroups_bigrams": "newsgroups",
    "make_screening_regression": "papers",
    "make_sparse_classification": "synthetic",
    "make_sparsifier_classification": "papers",
    "make_transfer_data": "papers",
    "make_wide_text": "papers",
    "names": "registry",
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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dpsparse.datasets' has no attribute {name!r}")
    value = getattr(import_module(f"dpsparse.datasets.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

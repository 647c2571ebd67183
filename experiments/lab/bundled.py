"""Tasks of the data folder (DPSPARSE_DATA) and made data: entries are brought into [-1, 1] by public constants."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from lab.tasks import Data, Task

Span = tuple[float, float]


def load_bundled(name: str) -> Data:
    import papers_data

    if name.startswith("news"):
        return _news(name)
    X: Any
    X, y = papers_data.load(name, scaled=True)
    if name == "a9a":
        X2, y2 = papers_data.load("a9a.t", scaled=True)
        X, y = sp.csr_array(sp.vstack([X, X2])), np.concatenate([y, y2])
    elif name == "splice":
        X2, y2 = papers_data.load("splice.t", scaled=True)
        X, y = sp.csr_array(sp.vstack([X, X2])), np.concatenate([y, y2])
    elif name == "bodyfat":  # age in years, weight in pounds, height in inches, girths in cm
        largest = np.array([100.0, 400.0, 90.0, *[200.0] * (X.shape[1] - 3)])
        X = np.minimum(X.toarray() / largest, 1.0)
    elif name == "blogfeedback":
        X, y = sp.csr_array(np.log1p(np.maximum(X.toarray(), 0.0)) / 12.0), np.log1p(y)
    return Data(X, y)


def _news(name: str) -> Data:
    """Newsgroups: rows of length one."""
    import papers_data

    if name == "news-bigrams":
        return Data(*papers_data.load_newsgroups_bigrams())
    X, y = papers_data.load("news20-multiclass", scaled=True)
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, 1e-300), np.diff(X.indptr))
    if name == "news20-halves":
        y = (y % 2).astype(int)
    if name == "news20-one":
        y = (y == np.unique(y)[3]).astype(int)
    return Data(X, y)


def load_made(name: str) -> Data:
    """Made data whose true weights are known."""
    import papers_data
    from dpsparse.datasets import make_sparse_classification
    from dpsparse.random import make_generator

    if name == "easy":
        rng = make_generator(5)
        X = rng.uniform(-1.0, 1.0, (25_000, 400))
        w = np.zeros(400)
        w[:5] = (1.0, -1.0, 1.0, -1.0, 0.5)
        return Data(X, X @ w + 0.15 * rng.standard_normal(25_000), w)
    if name == "papers-3000x600":
        return Data(*papers_data.make_screening_regression(0, n_samples=3750, scaled_by="bound"))
    if name == "papers-800x1000":
        return Data(*papers_data.make_transfer_data(0, n_samples=1000))
    if name == "papers-10000x100":
        made = papers_data.make_sparsifier_classification(0, n_samples=12_500, scaled_by="bound")
        return Data(*made)
    return Data(*make_sparse_classification(50_000, 100_000, seed=1))


# name -> (range of the targets or None, most entries of a row that are not 0, what it is)
_TABLES: dict[str, tuple[Span | None, int, str]] = {
    "a9a": (None, 14, "Adult: income above 50,000 dollars"),
    "phishing": (None, 30, "web sites: which steal passwords"),
    "mushrooms": (None, 22, "mushrooms: which are poisonous"),
    "w8a": (None, 40, "web pages: one category against the rest"),
    "covtype": (None, 12, "forest plots: one kind of tree against the rest"),
    "kddcup99": (None, 41, "connections: normal or an attack"),
    "splice": (None, 60, "DNA: one kind of splice junction against the other"),
    "colon-cancer": (None, 2000, "62 tissues, 2,000 genes: which are tumours"),
    "abalone": ((0.0, 30.0), 8, "abalone: rings of the shell"),
    "housing": ((0.0, 50.0), 13, "Boston: median value of homes in thousand dollars"),
    "bodyfat": ((0.9, 1.2), 14, "men: density of the body"),
    "communities": ((0.0, 1.0), 122, "communities: violent crimes"),
    "blogfeedback": ((0.0, 8.0), 280, "blogs: logarithm of the comments of the next day"),
}
# name -> (classes, declared weights, what it is)
_TEXTS = {
    "news-bigrams": (2, 100, "20 Newsgroups, 1.39 million words and pairs: ten groups against ten"),
    "news20-halves": (2, 100, "news20: every other group against the rest"),
    "news20-one": (2, 100, "news20: one group against the rest"),
    "news20": (20, 2000, "news20: 20 groups"),
}
# name -> (range of the targets or None, true weights, length of a row or None, what it is)
_MADE: dict[str, tuple[Span | None, int, float | None, str]] = {
    "easy": ((-5.0, 5.0), 5, None, "25,000 x 400, five true weights"),
    "papers-3000x600": ((-4.0, 4.0), 70, None, "the screening papers' regression, 70 true weights"),
    "papers-800x1000": ((-8.0, 8.0), 10, None, "the transfer paper's regression, ten true weights"),
    "papers-10000x100": (None, 8, None, "the Sparsifier paper's classes, eight true weights"),
    "wide-40000x100000": (None, 50, 1.0, "sparse rows, 100,000 columns, 50 true weights"),
}


def bundled_tasks(*tracks: str) -> list[Task]:
    """Tasks of these tracks: tables, regression, text, classes, support."""
    found = [
        Task(
            name,
            "regression" if span else "tables",
            partial(load_bundled, name),
            classes=None if span else (0, 1),
            target_range=span,
            row_norm=math.sqrt(entries),
            about=about,
        )
        for name, (span, entries, about) in _TABLES.items()
    ]
    found += [
        Task(
            name,
            "text" if classes == 2 else "classes",
            partial(load_bundled, name),
            classes=(0, 1) if classes == 2 else tuple(range(1, classes + 1)),
            n_nonzero=weights,
            row_norm=1.0,
            about=about,
        )
        for name, (classes, weights, about) in _TEXTS.items()
    ]
    found += [
        Task(
            name,
            "support",
            partial(load_made, name),
            classes=None if span else (0, 1),
            target_range=span,
            n_nonzero=weights,
            row_norm=length,
            about=about,
        )
        for name, (span, weights, length, about) in _MADE.items()
    ]
    return [task for task in found if task.track in tracks]

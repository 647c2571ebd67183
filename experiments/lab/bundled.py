"""Tasks of the data folder (DPSPARSE_DATA) and made data: entries are brought into [-1, 1] by public constants."""

from __future__ import annotations

import math
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lab.tasks import Data, Task


def load_bundled(name: str) -> Data:
    import papers_data

    if name.startswith("news"):
        return _news(name)
    X: Any
    X, y = papers_data.load(name, scaled=True)
    if name in ("a9a", "splice"):
        X2, y2 = papers_data.load(f"{name}.t", scaled=True)
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


def bundled_tasks(*tracks: str) -> list[Task]:
    """Tasks of these tracks (tables, regression, text, classes, support), by the public facts of bundled.toml."""
    found = []
    listed = tomllib.loads(Path(__file__).with_name("bundled.toml").read_text("utf-8"))
    for name, facts in listed.items():
        span, many = facts.get("target_range"), facts.get("classes")
        labels = tuple(range(1, many + 1)) if many else (0, 1)
        norm = math.sqrt(facts["entries"]) if "entries" in facts else facts.get("row_norm")
        load = load_made if facts["track"] == "support" else load_bundled
        found.append(
            Task(
                name,
                facts["track"],
                partial(load, name),
                classes=None if span else labels,
                target_range=tuple(span) if span else None,
                n_nonzero=facts.get("weights"),
                row_norm=norm,
                about=facts["about"],
            )
        )
    return [task for task in found if task.track in tracks]

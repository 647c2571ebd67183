"""The synthetic data of the papers, and stand-ins of the shapes of data sets that cannot be had.

| function | paper | data |
|---|---|---|
| make_screening_regression | Khanna, Lu, Raff 2023 (screening) | 3000 x 600, 35 weights +1 and 35 weights -1 |
| make_transfer_data | Wang, Gu 2020 | 1,000 uniform(-1, 1) columns, ten random weights, linear |
| make_sparsifier_classification | Khanna, Lu, Raff 2023 | 10,000 x 100, correlation 0.5^|i-j|, 8 weights |
| make_wide_text | stand-in for RCV1, News20, URL, Web, KDDA, E2006 | Zipf columns, rows of norm 1 |

Scaling by the largest entry of the sample is part of the papers' recipes; it looks at the data, so
`scaled_by="sample"` is for reproduction and `scaled_by="bound"` divides by a public constant instead.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.signal import lfilter

from dpsparse.exceptions import ParameterError
from dpsparse.random import Generator, make_generator

GAUSSIAN_BOUND = 5.0  # a public clip of standard normal entries; 6 in 10 million lie outside

# rows, columns, average entries of a row, dense informative columns; shapes from Raff, Khanna, Lu 2023,
# Table 2, and Wang, Gu 2020,
# densities from the sources' descriptions, rounded.
STAND_INS = {
    "rcv1": (20_242, 47_236, 74, 0),
    "news20": (19_996, 1_355_191, 455, 0),
    "url": (2_396_130, 3_231_961, 116, 200),
    "web": (350_000, 16_609_143, 3_728, 0),
    "kdda": (8_407_752, 20_216_830, 36, 0),
    "e2006": (16_087, 25_000, 300, 0),
}


def make_screening_regression(
    seed: int,
    *,
    correlated: bool = False,
    n_samples: int = 3000,
    scaled_by: Literal["sample", "bound"] = "sample",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y = X w and w of Khanna, Lu and Raff (2023, screening): 35 weights +1, as many -1, 530 of 0.

    The papers do not say where the weights stand. They come first here: only neighbours make
    correlation help as the sequel of that paper reports.
    """
    rng = make_generator(seed)
    X = _correlated_normal(rng, n_samples, 600, 0.5 if correlated else 0.0)
    X = _unit_entries(X, scaled_by, per_column=False)
    w = np.repeat([1.0, -1.0, 0.0], [35, 35, 530])
    return X, X @ w, w


def make_transfer_data(
    seed: int, n_samples: int = 800
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X uniform in [-1, 1], y and the ten true weights of the linear model of Wang and Gu (2020), section 5.1.

    The paper says that the weights are "randomly generated"; here they are standard normal.
    """
    rng = make_generator(seed)
    X = rng.uniform(-1.0, 1.0, (n_samples, 1000))
    w = np.zeros(1000)
    w[rng.permutation(1000)[:10]] = rng.standard_normal(10)
    return X, X @ w + math.sqrt(0.1) * rng.standard_normal(n_samples), w


def make_sparsifier_classification(
    seed: int,
    *,
    n_samples: int = 10_000,
    scaled_by: Literal["sample", "bound"] = "sample",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, noiseless labels 0/1 and the eight true weights of Khanna, Lu and Raff (2023), section 4.2."""
    rng = make_generator(seed)
    X = _correlated_normal(rng, n_samples, 100, 0.5)
    X = _unit_entries(X, scaled_by, per_column=True)
    w = np.zeros(100)
    w[:8] = (10, 9, 8, 7, 6, 5, 4, 0.5)
    return X, (X @ w > 0).astype(np.int64), w


def make_wide_text(
    seed: int,
    like: str,
    *,
    fraction: float = 1.0,
    task: Literal["binary", "regression"] = "binary",
) -> tuple[sp.csr_array, np.ndarray]:
    """A stand-in of the shape of `like` (see STAND_INS): Zipf columns, non-negative rows of norm 1.

    Labels come from about 200 words, frequent to middling, with logistic noise; nothing
    else is like the original. `fraction` shrinks rows and columns alike, the entries of a row stay.
    """
    if like not in STAND_INS:
        raise ParameterError(f"No stand-in for {like!r}; known: {', '.join(STAND_INS)}.")
    n, d, per_row, n_dense = STAND_INS[like]
    n, d = max(int(n * fraction), 10), max(int(d * fraction), 100)
    rng = make_generator(seed)
    counts = np.minimum(1 + rng.poisson(per_row, n), d // 2)
    rows = np.repeat(np.arange(n), counts)
    # Inverse of the distribution function of density 1/rank: rank = d^u, u uniform. Frequent words
    # weigh little, as inverse document frequencies make them.
    ranks = (d - n_dense) ** rng.random(len(rows))
    values = np.log1p(ranks) * (1.0 + rng.exponential(1.0, len(rows)))
    columns = np.minimum(ranks.astype(np.int64) - 1 + n_dense, d - 1)
    X = sp.csr_array((values, (rows, columns)), shape=(n, d))
    if n_dense:
        dense = math.log(d) * rng.random((n, n_dense))
        X = sp.csr_array(X + sp.hstack([sp.csr_array(dense), sp.csr_array((n, d - n_dense))]))
    X.sum_duplicates()
    norms = np.sqrt(X.multiply(X).sum(axis=1))
    X.data /= np.repeat(norms, np.diff(X.indptr))
    w = np.zeros(d)
    place = np.unique((10.0 * (d / 200.0) ** rng.random(200)).astype(np.int64)) + n_dense
    place = np.concatenate([np.arange(n_dense), place[place < d]])
    signs = np.where(np.arange(len(place)) % 2, 1.0, -1.0)
    w[place] = signs * (0.5 + rng.exponential(0.5, len(place)))
    margins = np.asarray(X @ w)
    margins /= np.std(margins) + 1e-12
    if task == "regression":
        return X, np.clip(margins + 0.3 * rng.standard_normal(n), -4.0, 4.0)
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-6.0 * margins))).astype(np.int64)


def _correlated_normal(rng: Generator, n: int, d: int, correlation: float) -> np.ndarray:
    """Rows N(0, S), S_ij = correlation^|i-j|, by the recursion of an autoregressive process."""
    noise = rng.standard_normal((n, d))
    if correlation == 0.0:
        return noise
    noise[:, 1:] *= math.sqrt(1.0 - correlation**2)
    return np.asarray(lfilter([1.0], [1.0, -correlation], noise, axis=1))


def _unit_entries(X: np.ndarray, scaled_by: str, *, per_column: bool) -> np.ndarray:
    if scaled_by == "bound":
        return np.clip(X / GAUSSIAN_BOUND, -1.0, 1.0)
    if scaled_by != "sample":
        raise ParameterError(f"scaled_by must be 'sample' or 'bound', got {scaled_by!r}.")
    return np.asarray(X / np.abs(X).max(axis=0 if per_column else None))

"""Wide sparse data that needs no download: a bag of words with a few words that matter.

columns of a row   j = floor(d^u), u uniform            (popularity falls as 1/j, like words)
values             1/sqrt(number of columns)            (rows have L2 norm 1)
label              1 with probability sigmoid(12 (x.w - median)), w = +-1 on the informative columns
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import expit

from dpsparse.exceptions import ParameterError
from dpsparse.random import make_generator

__all__ = ["make_sparse_classification"]


def make_sparse_classification(
    n_samples: int = 20_000,
    n_features: int = 50_000,
    *,
    seed: int | None = 0,
) -> tuple[sp.csr_array, np.ndarray]:
    """Sparse rows of norm 1 and labels 0/1 that depend on a few of many features.

    Parameters
    ----------
    n_samples : int, default=20_000
        Number of rows.
    n_features : int, default=50_000
        Number of columns, at least 50, of which 50 popular ones carry a weight.
    seed : int or None, default=0
        The same int gives the same data.

    Returns
    -------
    X : csr_array of shape (n_samples, n_features)
        Rows of length one.
    y : array of 0 and 1
        Labels.

    Examples
    --------
    >>> from dpsparse.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(n_samples=1_000, n_features=5_000, seed=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 5000), [0, 1])
    """
    n_words, n_informative = 40, 50  # draws a row (repeated ones count once), columns with a weight
    if n_samples < 1 or n_features < n_informative:
        raise ParameterError(f"n_samples must be at least 1, n_features at least {n_informative}.")
    rng = make_generator(seed)
    # Places of 32 bits where they suffice, as SciPy chooses them.
    whole = np.int32 if max(n_features, n_samples * n_words) < 2**31 else np.int64
    words = np.exp(rng.random((n_samples, n_words)) * np.log(n_features)).astype(whole)
    words = np.minimum(words, n_features) - 1
    rows = np.repeat(np.arange(n_samples, dtype=whole), n_words)
    X = sp.csr_array((np.ones(words.size), (rows, words.ravel())), shape=(n_samples, n_features))
    X.sum_duplicates()
    X.data = np.repeat(np.diff(X.indptr) ** -0.5, np.diff(X.indptr))
    weights = np.zeros(n_features)
    # Popular but not ubiquitous: the very first columns occur in every row and say little.
    first = min(4, n_features - n_informative)
    weights[first : first + n_informative] = rng.integers(0, 2, n_informative) * 2.0 - 1.0
    margin = X @ weights
    y = rng.random(n_samples) < expit(12.0 * (margin - np.median(margin)))
    return X, y.astype(np.int64)

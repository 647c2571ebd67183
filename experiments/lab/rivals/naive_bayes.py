"""Noisy-count naive Bayes: counts of cells by class (tables), or sums of entries by class (text).

Proof. Every entry of a row falls into one of five public bins (below -1/2, below 0, 0, up to 1/2, above). Of every
row the first m entries that are not 0 are kept, m the square of the public length. The counts "class, column, bin" of
these, and the count of the class, are moved by one row by at most sqrt(m + 1) in L2. With more than `WIDE` columns
rows are shortened to length one instead and their entries are added up by class: one row moves these sums by at most
1 and the count of its class by 1, sqrt 2 together. One Gaussian answer of parameter mu, the one whose curve passes
through (epsilon, delta); the weights are post-processing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from lab.rivals.base import Array, Entry, Noise, Public, Weights, gaussian_mu

WIDE = 1000  # columns
EDGES = (-0.5, 0.0, 0.5)
BINS = 4  # of entries that are not 0
SMOOTHING = 1.0


def fit(X: Any, y: Array, public: Public, epsilon: float, delta: float, noise: Noise) -> Weights:
    mu = gaussian_mu(epsilon, delta)
    labels = np.searchsorted(np.asarray(public.classes), y)
    K, d = len(public.classes or ()), public.n_features
    members = sp.csr_array(
        (np.ones(len(labels)), (labels, np.arange(len(labels)))), (K, len(labels))
    )
    X = sp.csr_array(X)
    sizes = np.bincount(labels, minlength=K).astype(float)
    if d > WIDE:
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        Z = sp.diags_array(1.0 / np.maximum(norms, public.row_norm)) @ X
        sums = (members @ Z).toarray()
        asked = np.concatenate([sizes, sums.ravel()])
        told = noise.gaussian("sums", asked, math.sqrt(2.0), math.sqrt(2.0) / mu)
        sums = np.maximum(told[K:].reshape(K, d), 0.0) + SMOOTHING
        coef = np.log(sums / sums.sum(axis=1, keepdims=True))
        offsets = np.log(np.maximum(told[:K], 1.0))
        return _weights(coef, offsets, public)
    return _by_bins(X, members, sizes, public, mu, noise)


def _by_bins(
    X: Any, members: Any, sizes: Array, public: Public, mu: float, noise: Noise
) -> Weights:
    """Log odds of bins; the model is linear in indicators of bins, so it is fitted on the entries by least squares over
    the bins' middles: a linear model is what is compared here."""
    K, d = len(sizes), public.n_features
    most = min(d, math.ceil(public.row_norm**2 - 1e-9))
    X.sort_indices()
    X.eliminate_zeros()
    place = np.arange(X.nnz) - np.repeat(X.indptr[:-1], np.diff(X.indptr))
    held = place < most
    codes = np.searchsorted(EDGES, X.data)
    counts = np.zeros((K, d, BINS))
    for b in range(BINS):
        here = sp.csr_array((((codes == b) & held).astype(float), X.indices, X.indptr), X.shape)
        counts[:, :, b] = (members @ here).toarray()
    bound = math.sqrt(most + 1.0)
    told = noise.gaussian("counts", np.concatenate([sizes, counts.ravel()]), bound, bound / mu)
    sizes, counts = np.maximum(told[:K], 1.0), told[K:].reshape(K, d, BINS)
    counts = np.maximum(counts, 0.0)
    zeros = np.maximum(sizes[:, None] - counts.sum(axis=2), 0.0)
    cells = np.concatenate([zeros[:, :, None], counts], axis=2) + SMOOTHING
    middles = np.array([0.0, -0.75, -0.25, 0.25, 0.75])
    totals = cells.sum(axis=(0, 2))
    shares = cells.sum(axis=0) / totals[:, None]
    centre = (shares * middles).sum(axis=1)
    spread = (shares * (middles - centre[:, None]) ** 2).sum(axis=1)
    logs = np.log(cells / cells.sum(axis=2, keepdims=True))
    logs -= logs.mean(axis=0)
    mean_logs = (shares * logs).sum(axis=2)
    # slope of the log likelihood ratio on the middles, weighted by the cells
    slope = (shares * (logs - mean_logs[:, :, None]) * (middles - centre[:, None])).sum(axis=2)
    slope = np.where(spread > 1e-6, slope / np.maximum(spread, 1e-6), 0.0)
    offsets = np.log(sizes) + (mean_logs - slope * centre).sum(axis=1)
    return _weights(slope, offsets, public)


def _weights(coef: Array, offsets: Array, public: Public) -> Weights:
    if len(public.classes or ()) == 2:
        return Weights((coef[1] - coef[0])[None], np.array([offsets[1] - offsets[0]]))
    return Weights(coef, offsets)


NAIVE_BAYES = Entry("NaiveBayes", fit, __doc__ or "", ("binary", "classes"))

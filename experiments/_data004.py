"""The data of Khanna, Lu and Raff (2023), prepared as the paper does and with public bounds."""

from functools import lru_cache

import numpy as np
import scipy.sparse as sp

import papers_data
from _common import split
from dpsparse.exceptions import DPSparseError
from dpsparse.random import make_generator
from papers_data.loaders import find_file
from papers_data.synthetic import GAUSSIAN_BOUND

NAMES = (
    "splice", "phishing", "mushrooms", "colon-cancer", "synthetic", "a9a", "w8a", "kddcup99", "covtype",
)  # fmt: skip
FILES = tuple(name for name in NAMES if name != "synthetic")
# Tables with values above 1, or all below it, that the published numbers say were not divided by the largest
# value of each feature: so the non-private solutions have 52 to 59, 2, 47 to 69 and 7 or 8 non-zeros,
# published are 52, 2, 58 and 7; divided, the first three have 14, 13 and 30.
AS_SHIPPED = ("splice", "phishing", "colon-cancer", "synthetic")
KDD_NOTE = (
    "kddcup99: 38,420 normal and 21,580 denial-of-service connections drawn from the 10 % file, one-hot protocol, "
    "service and flag (122 columns), rows of norm 1."
)
NOTE = (
    'Data: LIBSVM sets as the paper names them, gisette is not to be had here. "As published" leaves splice '
    "(1 to 4), phishing (0 and 0.18), colon-cancer and the synthetic table as they come, although the algorithm "
    'asks for entries of at most 1; "as printed" divides each feature by its largest magnitude, which looks '
    'at private rows; "proven" uses public bounds (papers_data). The other tables are 0/1 or are divided '
    f"in every mode. {KDD_NOTE} 80 % of the rows train, 20 % test, a new split each trial."
)


def names_here() -> tuple[str, ...]:
    """NAMES, and gisette where its file is."""
    try:
        find_file(papers_data.info("gisette"))
    except DPSparseError:
        return NAMES
    return (*NAMES, "gisette")


def parts(name: str, mode: str, seed: int):
    """Training and test rows: (A, a, B, b). Mode "printed" is that of Algorithm 1 to the letter."""
    divided = mode == "printed" or name not in AS_SHIPPED
    X, y = prepared(name, "public" if mode == "proven" else "largest" if divided else "")
    train, test = split(X.shape[0], seed)
    return X[train], y[train], X[test], y[test]


@lru_cache(maxsize=3)
def prepared(name: str, divided_by: str):
    """X, y with entries divided by public bounds, by the largest of each feature, or not at all."""
    public = divided_by == "public"
    if name == "synthetic":
        X, y, _ = papers_data.make_sparsifier_classification(
            0, scaled_by="sample" if divided_by == "largest" else "bound"
        )
        return sp.csr_array(X if divided_by else X * GAUSSIAN_BOUND), y
    X, y = papers_data.load(name, scaled=public)
    if name == "kddcup99":
        X, y = _sixty_thousand(X, y)
    if divided_by == "largest":
        largest = abs(X).max(axis=0).toarray().ravel()
        X = sp.csr_array(X @ sp.diags_array(1.0 / np.where(largest > 0, largest, 1.0)))
    if name == "kddcup99":
        norms = np.sqrt(X.multiply(X).sum(axis=1))
        X = sp.csr_array(sp.diags_array(1.0 / np.maximum(norms, 1e-300)) @ X)
    return X, y


def _sixty_thousand(X, y):
    rng = make_generator(99)
    chosen = [rng.permutation(np.flatnonzero(y == c))[:k] for c, k in ((1, 38_420), (0, 21_580))]
    rows = rng.permutation(np.concatenate(chosen))
    return X[rows], y[rows]

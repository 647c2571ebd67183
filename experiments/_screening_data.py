"""Data of Khanna, Lu and Raff (2023, screening) and its sequel, prepared as they do.

Preparation follows section 6 of the sequel: Yeo-Johnson and scaling by the largest entry look at private
rows. That is the papers' protocol, not ours: a guarantee below starts from the prepared table. Which
scaling the papers used was found by trying: one factor for the whole table after Yeo-Johnson, LIBSVM's
_scale files (or one factor for the UCI tables) without it, give their non-private errors to 2-3 digits.
"""

from __future__ import annotations

import csv
import io
import lzma
import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import Lasso
from sklearn.preprocessing import PowerTransformer, normalize

DATA = Path(os.environ.get("DPSPARSE_DATA", Path(__file__).parents[1] / ".." / "shared" / "data"))

# Iterations of the real tables, sorted by their number of features.
ITERATIONS = {
    "abalone": 100, "housing": 100, "bodyfat": 100, "pyrim": 100, "triazines": 100, "residential": 200,
    "communities": 200, "blogfeedback": 1000,
}  # fmt: skip
NAMES = list(ITERATIONS)
LIBSVM = NAMES[:5]


def synthetic(seed: int, correlated: bool, n: int = 3000, d: int = 600, active: int = 70):
    """Normal rows scaled by their largest entry, half the active weights +1, half -1, y = Xw*.

    The active features come first. Only that order makes correlation help as the paper reports:
    at random places its correlated result is the uncorrelated one.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if correlated:  # Sigma_ij = 0.5^|i-j| is an autoregression
        for j in range(1, d):
            X[:, j] = 0.5 * X[:, j - 1] + math.sqrt(0.75) * X[:, j]
    X /= np.abs(X).max()
    weights = np.zeros(d)
    weights[: active // 2], weights[active // 2 : active] = 1.0, -1.0
    return X, X @ weights, weights


@dataclass(frozen=True)
class Table:
    """A prepared data set and the non-private LASSO that the sequel measures against."""

    X: np.ndarray  # |x| <= 1
    y: np.ndarray
    support: np.ndarray  # of the LASSO with about d/3 non-zeros
    radius: float  # its L1 norm
    unit: (
        float  # what one standard deviation of a standardised column became; 1 without Yeo-Johnson
    )


NEWS20 = DATA / "news20_multiclass.svm.xz"


def news20():
    """LIBSVM news20 counts, rows of norm 1, classes 1-10 against 11-20."""
    with lzma.open(NEWS20) as file:
        X, y = load_svmlight_file(file, n_features=62_061)
    return normalize(X), (y > 10).astype(int)


def real(name: str, yeo_johnson: bool) -> Table:
    """Section 6.2 (Yeo-Johnson) or appendix D (linear scaling only)."""
    X, y = _READERS[name]()
    unit = 1.0
    if yeo_johnson:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # constant columns
            X = np.nan_to_num(PowerTransformer().fit_transform(X))
            y = PowerTransformer().fit_transform(y[:, None])[:, 0]
        unit = 1.0 / float(np.abs(X).max())  # one standard deviation after scaling
        X = X * unit
    else:
        y = y / np.abs(y).max()
        if name in LIBSVM:  # the _scale files: each column mapped to [-1, 1]
            low, span = X.min(axis=0), X.max(axis=0) - X.min(axis=0)
            X = np.where(span > 0, 2.0 * (X - low) / np.where(span > 0, span, 1.0) - 1.0, 0.0)
        else:
            X = X / np.abs(X).max()
    support, radius = _lasso_support(X, y, max(1, round(X.shape[1] / 3)))
    return Table(X, y, support, radius, unit)


def _lasso_support(X: np.ndarray, y: np.ndarray, target: int) -> tuple[np.ndarray, float]:
    """Bisect the penalty on a log scale until about `target` weights are non-zero."""
    high = float(np.abs(X.T @ (y - y.mean())).max() / len(y))
    low = high * 1e-5
    best: tuple[int, np.ndarray] | None = None
    gram = X.T @ X if len(y) > X.shape[1] else False
    for _ in range(25):
        alpha = math.sqrt(low * high)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tiny penalties converge slowly; the support suffices
            model = Lasso(
                alpha=alpha, max_iter=2000, tol=1e-3, fit_intercept=False, precompute=gram
            )
            coef = model.fit(X, y).coef_
        count = int(np.count_nonzero(coef))
        if best is None or abs(count - target) < abs(best[0] - target):
            best = (count, coef)
        if count == target:
            break
        low, high = (low, alpha) if count < target else (alpha, high)
    assert best is not None
    return best[1] != 0, float(np.abs(best[1]).sum())


_FILES = {
    "abalone": "abalone.csv.xz", "housing": "housing.csv.xz", "bodyfat": "bodyfat.csv.xz",
    "pyrim": "pyrim.csv.xz", "triazines": "triazines.csv.xz",
    "residential": "residential_building.csv.xz", "communities": "communities_and_crime.csv.xz",
    "blogfeedback": "blogfeedback_train.csv.xz",
}  # fmt: skip


def _cells(name: str, skip: int) -> list[list[str]]:
    with lzma.open(DATA / _FILES[name], "rt") as file:
        return [row for row in csv.reader(file) if row][skip:]


def _plain(name: str, target: int = -1):
    values = np.array(_cells(name, 1), dtype=float)
    y = values[:, target]
    return np.delete(values, target % values.shape[1], axis=1), y


def _abalone():
    sex = {"M": "1", "F": "2", "I": "3"}  # LIBSVM's coding
    values = np.array([[sex[row[0]], *row[1:]] for row in _cells("abalone", 1)], dtype=float)
    return values[:, :-1], values[:, -1]


def _residential():
    values = np.array(_cells("residential", 2), dtype=float)
    return values[:, 4:-2], values[:, -2] - values[:, -1]  # profit = price - cost; dates left out


def _communities():
    rows = [
        ["nan" if cell == "?" else cell for cell in row[5:]] for row in _cells("communities", 1)
    ]
    values = np.array(rows, dtype=float)
    means = np.nanmean(values, axis=0)
    values = np.where(np.isnan(values), means, values)
    return values[:, :-1], values[:, -1]


def _blogfeedback():
    with lzma.open(DATA / _FILES["blogfeedback"]) as file:
        values = np.loadtxt(io.BytesIO(file.read()), delimiter=",")
    return values[:, :-1], values[:, -1]


_READERS = {
    "abalone": _abalone,
    "housing": lambda: _plain("housing"),
    "bodyfat": lambda: _plain("bodyfat", 0),
    "pyrim": lambda: _plain("pyrim"),
    "triazines": lambda: _plain("triazines"),
    "residential": _residential,
    "communities": _communities,
    "blogfeedback": _blogfeedback,
}

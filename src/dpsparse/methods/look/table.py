"""Centre, scales and axes of the columns of a narrow table, and the length that standardised rows have.

    l0 = median of |x_i|;  m = mean of x_i shortened to l0, shrunk by its known noise
    v  = sum of (x_i - m)^2 shortened to l0, column by column;  D_j = (v_j/mean v)^(-1/2)
    S  = sum of z_i z_i', z_i = D (x_i - m) shortened to its typical length;  A = S^(-1/2) but for what noise may be
    l1 = median of |D (x_i - m)|, or of |A D (x_i - m)|

Proof: docs/proofs/table_regression.md, Lemmas 1 and 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsparse.methods.look.defaults import MIN_SHARE_OF_MEAN_SIZE
from dpsparse.methods.look.targets import release_quantile
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.moments import matrix, products, squares

ENTRY_HALVINGS = 8  # below the declared bound a typical entry is sought


@dataclass(frozen=True)
class Standardisation:
    """Released numbers: rows become A D (x - m), of median length `length`."""

    centre: np.ndarray
    scaling: np.ndarray
    axes: np.ndarray | None
    length: float
    median: float  # length of a row before it is centred and scaled


def declared_standardisation(n_columns: int, length: float) -> Standardisation:
    """Rows as they are; `length` is declared."""
    return Standardisation(np.zeros(n_columns), np.ones(n_columns), None, length, length)


def look_at_table(
    rows: Rows, releases: Releases, n: float, longest: float, *, scales: bool, axes: bool = False
) -> Standardisation:
    """Centre, scales and axes where they are asked for, and lengths; `longest` is the declared bound of a row."""
    d = rows.n_features
    ones, scaling = np.ones(d, np.float32), np.ones(d)

    def median(some: Rows, low: float, high: float, prior: float, sure: float) -> float:
        return release_quantile(
            releases, "length", some.unit(ones).count_shorter, n, 0.5, low, high,
            share=0.5, prior=prior, sure=sure,
        )  # fmt: skip

    length = median(rows, longest / 2.0**10, longest, 0.5, 0.8)
    total = rows.unit(ones, shortest=length).total()
    noise, found = releases.scale("centre", total), releases.gaussian("centre", total)
    kept = 1.0 - d * noise**2 / max(float(found @ found), 1e-300)  # James and Stein
    centre = length / n * max(0.0, kept) * found

    typical = length * math.sqrt(2.0)  # length of a centred row, where columns are not looked at
    if scales:
        query = squares(rows.standardised(centre, scaling).unit(ones, shortest=length))
        # An empty column keeps its (absent) entries small; with noise its scale is not known better than this.
        least = max(2.0 * releases.scale("columns", query), MIN_SHARE_OF_MEAN_SIZE * n / d)
        found = np.maximum(releases.gaussian("columns", query), least)
        scaling = np.sqrt(found.mean() / found)
        typical = length * math.sqrt(float(found.sum()) / n)
    turn = None
    if axes:
        moments = products(rows.standardised(centre, scaling).unit(ones, shortest=typical))
        noise, second = releases.scale("axes", moments), releases.gaussian("axes", moments)
        turn = even_axes(matrix(second), noise, MIN_SHARE_OF_MEAN_SIZE * n / d)
    mapped = rows.standardised(centre, scaling, axes=turn)
    final = median(mapped, typical / 16.0, typical * 16.0, 0.0, 0.7)
    return Standardisation(centre, scaling, turn, final, length)


def release_entry_size(rows: Rows, releases: Releases, n: float, bound: float) -> float:
    """The median over the rows of the root mean square of their entries, below the declared bound."""
    return release_quantile(
        releases, "entry", rows.count_small, n, 0.5, bound / 2.0**ENTRY_HALVINGS, bound
    )


def even_axes(found: np.ndarray, noise: float, least: float) -> np.ndarray:
    """A symmetric matrix A: rows with these second moments, times A, are as long in every direction.

    Beside many equal eigenvalues one that is t larger is found, with noise of sd s, at t + s^2 d/t, and all that noise
    makes of equal ones lies within 2 s sqrt(d). So what lies within is taken for the middle, what lies beyond is
    moved back, and nothing is taken to be below 2 s.
    """
    sizes, directions = np.linalg.eigh(found)
    middle, edge = float(np.median(sizes)), 2.0 * noise * math.sqrt(len(found))
    away = sizes - middle
    beyond = np.sqrt(np.maximum(away**2 - edge**2, 0.0))
    away = np.where(np.abs(away) > edge, (away + np.copysign(beyond, away)) / 2.0, 0.0)
    sizes = np.maximum(middle + away, max(2.0 * noise, least))
    axes = (directions * np.sqrt(sizes.mean() / sizes)) @ directions.T
    return leading_digits(axes)


def leading_digits(product: np.ndarray) -> np.ndarray:
    """Without the last digits, which are those of the machine's linear algebra."""
    return np.asarray(product, np.float32).astype(np.float64)

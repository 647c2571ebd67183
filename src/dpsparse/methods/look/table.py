"""Centre, scales and axes of the columns of a narrow table, and the length that standardised rows have.

    l0 = median of |x_i|;  m = mean of x_i shortened to l0, shrunk by its known noise
    v  = sum of (x_i - m)^2 shortened to l0, column by column;  D_j = (v_j/mean v)^(-1/2)
    S  = sum of z_i z_i', z_i = D (x_i - m) shortened to its typical length;  A = S^(-1/2) but for what noise may be
    l1 = median of |D (x_i - m)|, or of |A D (x_i - m)|

Rows of few entries are far from their mean. Gradients do not centre them where |m|^2 < .15 l0^2, and masses scale their
columns: D_j = s_j^(-1/2), s_j the sum of |x_ij|/||x_i||.

Proof: docs/proofs/table_regression.md, Lemmas 1 and 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsparse import arithmetic
from dpsparse.methods.look.defaults import MIN_SHARE_OF_MEAN_SIZE
from dpsparse.methods.look.targets import release_quantile
from dpsparse.release import Releases
from dpsparse.rows import Query, Rows, UnitRows
from dpsparse.rows.moments import matrix, products

ENTRY_HALVINGS = 8  # below the declared bound a typical entry is sought


@dataclass(frozen=True)
class Standardisation:
    """Released numbers: rows become A D (x - m), of median length `length`."""

    centre: np.ndarray
    scaling: np.ndarray
    axes: np.ndarray | None
    length: float


def declared_standardisation(n_columns: int, length: float) -> Standardisation:
    """Rows as they are; `length` is declared."""
    return Standardisation(np.zeros(n_columns), np.ones(n_columns), None, length)


@dataclass(frozen=True)
class Columns:
    """Released numbers: centre and scale of every column, and lengths of rows."""

    centre: np.ndarray | None  # None: rows of few entries, which are not centred
    scaling: np.ndarray
    drowned_scale: float  # that of a column that noise hides
    typical: float  # about the length of a row after that


def look_at_columns(
    rows: Rows,
    releases: Releases,
    n: float,
    lengths: tuple[float, float, float],
    *,
    share: float = 0.5,
    min_squared_mean: float = 0.0,
) -> Columns:
    """Centre and scales of the columns; `lengths` are the public range of the length of a row, and its prior. Rows
    whose mean has a smaller square, in typical squared lengths, than `min_squared_mean` are not centred."""
    ones = np.ones(rows.n_features, np.float32)
    low, high, prior = lengths
    length = release_quantile(
        releases, "length", rows.unit(ones).count_shorter, n, 0.5, low, high,
        share=share, prior=prior, sure=0.8, if_below=high,
    )  # fmt: skip
    total = rows.unit(ones, shortest=length).total()
    noise, found = releases.scale("centre", total), releases.gaussian("centre", total)
    kept = 1.0 - len(found) * noise**2 / max(
        float(np.square(found).sum()), 1e-300
    )  # James and Stein
    centre = length / n * max(0.0, kept) * found
    if float(np.square(centre).sum()) < min_squared_mean * length**2:
        sizes, least = believable_sizes(rows.unit(ones).masses(), releases, n)
        scaling = np.sqrt(sizes.mean() / sizes)
        return Columns(None, scaling, math.sqrt(sizes.mean() / least), length)
    centred = rows.standardised(centre, np.ones(len(found)))
    query = centred.unit(ones, shortest=length).squares()
    sizes, least = believable_sizes(query, releases, n)
    scaling, drowned = np.sqrt(sizes.mean() / sizes), math.sqrt(sizes.mean() / least)
    return Columns(centre, scaling, drowned, length * math.sqrt(float(sizes.sum()) / n))


def believable_sizes(query: Query, releases: Releases, n: float) -> tuple[np.ndarray, float]:
    """Released sizes of the columns, and the least: with noise the scale of an empty column is not known better."""
    least = max(2.0 * releases.scale("columns", query), MIN_SHARE_OF_MEAN_SIZE * n / query.size)
    return np.maximum(releases.gaussian("columns", query), least), least


def look_at_table(
    rows: Rows, releases: Releases, n: float, longest: float, *, axes: bool = False
) -> Standardisation:
    """Centre and scales, axes where they are asked for, and lengths; `longest` is the declared bound of a row."""
    columns = look_at_columns(rows, releases, n, (longest / 2.0**10, longest, 0.5))
    assert columns.centre is not None
    centre, scaling, typical = columns.centre, columns.scaling, columns.typical
    ones, turn = np.ones(rows.n_features, np.float32), None
    if axes:
        moments = products(rows.standardised(centre, scaling / typical), None, 1.0)
        noise, second = releases.scale("axes", moments), releases.gaussian("axes", moments)
        turn = even_axes(matrix(second), noise, MIN_SHARE_OF_MEAN_SIZE * n / rows.n_features)
    mapped = rows.standardised(centre, scaling, axes=turn).unit(ones)
    final = release_final_length(mapped, releases, n, typical)
    return Standardisation(centre, scaling, turn, final)


def release_final_length(units: UnitRows, releases: Releases, n: float, typical: float) -> float:
    """The median length of standardised rows; `typical` is about what it will be."""
    return release_quantile(
        releases, "length", units.count_shorter, n, 0.5, typical / 16.0, typical * 16.0,
        share=0.5, sure=0.7, if_below=typical,
    )  # fmt: skip


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
    return arithmetic.leading_bits(axes, 24)

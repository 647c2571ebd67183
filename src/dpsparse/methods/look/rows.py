"""Rows on released scales, of length at most one: what first-order methods work on.

    table   (declared rows, not too many entries) centre m and scales D of the columns
    masses  (else) m = 0; s_j = sum_i |x_ij|/||x_i|| + noise of sd u
            D_j = max(s_j, 2u)^(-1/2), or 0 where s_j <= u and d > n or d > 2^17  (dropped)
    length  l = noisy median of ||D (x_i - m)|| (masses: of the rows that are not empty)
    rows    wide (d > n): z_i = D x_i / ||D x_i||
            narrow: z_i = (D (x_i - m), q) / ||(D (x_i - m), q)||, q = l / sqrt d: sizes are kept
            narrow, numbers: the same divided by max(||.||, 3/2 l): lengths are kept

Every row is mapped by itself, given released numbers. Proof: docs/proofs/noisy_gradient.md.

All looks at narrow tables share one way to centre, scale and turn rows (docs/proofs/table_regression.md, Lemmas 1, 2):

    l0 = median of |x_i|;  m = mean of x_i shortened to l0, shrunk by its known noise
    v  = sum of (x_i - m)^2 shortened to l0, column by column;  D_j = (v_j/mean v)^(-1/2)
    S  = sum of z_i z_i', z_i = D (x_i - m) shortened to its typical length;  A = S^(-1/2) but for what noise may be
    l1 = median of |D (x_i - m)|, or of |A D (x_i - m)|

A table whose mean row is short has few entries a row, as a text has. Gradients do not centre it, and masses scale its
columns: what a rare column says is worth more there, and centring would give the empty row a length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsparse import arithmetic
from dpsparse.methods.base import Facts, Solution
from dpsparse.methods.look.targets import (
    MIDDLES,
    OFFSET_ROUNDS,
    QUANTILE_COUNTS,
    ClassTargets,
    ClassWeight,
    NumberTargets,
    look_at_classes,
    look_at_numbers,
    release_quantile,
)
from dpsparse.release import Releases
from dpsparse.rows import Query, Rows, UnitRows
from dpsparse.rows.moments import matrix, products
from dpsparse.threads import in_pieces

MANY_COLUMNS = 2**17  # from which columns below their noise are dropped from tall tables too
MIN_SHARE_OF_MEAN_SIZE = 1e-6  # a column or direction is never taken to be smaller


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
    square = max(float(np.square(found).sum()), 1e-300)
    kept = 1.0 - len(found) * noise**2 / square  # James and Stein
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


@dataclass(frozen=True, kw_only=True)
class RowSettings:
    """The public side of a fit on rows of released scale."""

    loss: str
    n_classes: int  # 0: numbers
    n_outputs: int
    n_features: int
    n_samples: int | None  # declared
    longest: float  # declared bound on the length of a row; infinite where there is none
    target_bound: float
    table: bool  # whether columns are centred and scaled; else released masses scale them
    class_weight: ClassWeight = None

    @property
    def looks(self) -> dict[str, int]:
        """The releases before and after the steps, with how many numbers each."""
        if self.n_classes == 0:
            looks = {"mean": 2 if self.n_samples is None else 1, "spread": QUANTILE_COUNTS}
        else:
            looks = {"prior": self.n_classes}
        if self.table:
            looks |= {"centre": self.n_features, "columns": self.n_features}
        else:
            looks["masses"] = self.n_features
        final = 2 * len(MIDDLES) if self.n_classes == 2 else OFFSET_ROUNDS * max(self.n_classes, 1)
        counts = QUANTILE_COUNTS + 1  # one more tells how many rows are empty
        if self.table:
            counts = (2 if self.is_bounded else 1) * QUANTILE_COUNTS
        return looks | {"length": counts, "intercept": final}

    @property
    def is_bounded(self) -> bool:
        """Whether something declared bounds the length of a row."""
        return math.isfinite(self.longest)


def choose_rows(facts: Facts, class_weight: ClassWeight = None) -> RowSettings:
    """Whether the table is centred, and what is declared. Centred rows have an entry in every column, so the number of
    rows must be known beforehand."""
    domain = facts.domain
    return RowSettings(
        loss=facts.loss,
        n_classes=facts.n_classes,
        n_outputs=facts.n_outputs,
        n_features=facts.n_features,
        n_samples=domain.n_samples,
        # Infinite where nothing bounds a row; bounds by column are those of entries of at most 1.
        longest=domain.longest_row(facts.n_features, math.inf if domain.bounds is None else 1.0),
        target_bound=facts.target_bound,
        table=facts.is_table,
        class_weight=class_weight,
    )


def look_at_targets(
    rows: Rows, settings: RowSettings, releases: Releases
) -> ClassTargets | NumberTargets:
    """Class counts, or mean and spread of numbers."""
    if settings.n_classes == 0:
        return look_at_numbers(rows, releases, settings.n_samples)
    return look_at_classes(
        rows, releases, settings.n_classes, settings.n_samples, settings.class_weight
    )


class ScaledRows:
    """Attributes are released or public; `rows` and `units` answer queries only."""

    def __init__(self, rows: Rows, settings: RowSettings, releases: Releases) -> None:
        self.rows, self.settings, self.releases = rows, settings, releases
        self.targets = look_at_targets(rows, settings, releases)
        self.width = rows.n_features
        self.wide = not settings.table and self.width > self.targets.n
        self.centre: np.ndarray | None = None
        self.typical = 0.0  # length of a standardised row
        self.drowned_scale = np.float32(np.inf)  # of columns that noise hides
        scaling = self.release_scales() if settings.table else self.release_masses()
        self.units = self.rows.unit(scaling)
        self.scales = scaling[self.units.kept]
        # From here on nothing is as long as a wide table is wide. Wide rows need their length only for the final model,
        # and then on what was kept.
        self.length = self.constant = self.shortest = 0.0
        if not self.wide:
            self.length = self.release_length()
            self.constant = self.length / math.sqrt(self.width)
            if settings.n_classes == 0:  # the length of a row says something about its target
                self.shortest = 1.5 * self.length  # longer rows are shortened to it
            self._take(self.units.kept)

    def release_scales(self) -> np.ndarray:
        """D of a table as float32; from here on rows are centred unless their mean is short."""
        n, releases = self.targets.n, self.releases
        columns = look_at_columns(
            self.rows, releases, n, self.length_range(self.width),
            share=0.5 if self.settings.is_bounded else 1.0,
            min_squared_mean=0.15,  # with a shorter mean, rows have few entries
        )  # fmt: skip
        self.typical, self.drowned_scale = columns.typical, np.float32(columns.drowned_scale)
        if columns.centre is not None:
            self.centre = columns.centre
            self.rows = self.rows.standardised(self.centre, np.ones(self.width))
        return columns.scaling.astype(np.float32)

    def length_range(self, squared: float) -> tuple[float, float, float]:
        """Where the typical length of a row is sought, and the power that it is believed in proportion to. Of a unit
        that nobody knows (seconds, bytes, cents) it is sought on both sides."""
        if self.settings.is_bounded:
            longest = self.settings.longest * math.sqrt(squared / self.width)
            return longest / 2.0**20, longest, 0.5
        # Entries lie between 2^-50 and 2^40. The search begins in the middle, which is not the size of standardised
        # entries: a count among the lengths tells no side, and every octave beyond stays likely.
        return math.sqrt(squared) * 2.0**-50, math.sqrt(squared) * 2.0**40, 0.0

    def release_masses(self) -> np.ndarray:
        """D as float32: 0 for dropped columns."""
        query = self.rows.unit(np.ones(self.width, np.float32)).masses()
        scale = self.releases.scale("masses", query)
        noisy = self.releases.gaussian("masses", query)
        del query  # and with it rows on all columns
        drops = self.wide or self.width > MANY_COLUMNS
        least = scale if drops else -np.inf
        floor = max(2.0 * scale, 1e-6)  # no mass is taken to be smaller
        self.drowned_scale = np.float32(1.0 / math.sqrt(floor))
        scaling = np.empty(self.width, np.float32)

        def scale_columns(start: int, stop: int) -> None:
            some = noisy[start:stop]
            kept = 1.0 / np.sqrt(np.maximum(some, floor))
            scaling[start:stop] = np.where(some <= least, 0.0, kept)

        in_pieces(self.width, scale_columns)
        return scaling

    def release_length(self) -> float:
        """The median length of the rows that have an entry in a kept column. Most may have none, and weights in units
        of a length that only empty rows have would be immense."""
        kept = self.scales.astype(np.float64)
        if not len(kept):
            return 1.0
        if self.settings.table and not self.settings.is_bounded:
            return self.typical  # the wide search took all that lengths may cost
        if self.settings.table:
            return release_final_length(self.units, self.releases, self.targets.n, self.typical)
        # A row as long as its bound, its squares spread over the columns like the masses.
        spread = len(kept) * self.width / float(np.sum(1.0 / (kept * kept)))
        low, high, prior = self.length_range(spread)
        return release_quantile(
            self.releases, "length", self.units.count_shorter, self.targets.n, 0.5, low, high,
            prior=prior, of_filled=True,
        )  # fmt: skip

    def gradient(self, weights: np.ndarray, constant_weight: np.ndarray, clip: float) -> Query:
        """Slopes at these weights, of L2 norm at most `clip` a row."""
        return self.units.gradient(
            self.settings.loss, weights, self.targets.offset, clip=clip, cutoff=clip,
            constant_weight=constant_weight, class_weight=self.targets.weights,
        )  # fmt: skip

    def _take(self, kept: np.ndarray) -> None:
        scaling = np.zeros(self.width, np.float32)
        scaling[kept] = self.scales
        self.units = self.rows.unit(scaling, constant=self.constant, shortest=self.shortest)

    def keep_columns(self, stays: np.ndarray) -> np.ndarray:
        """Drop all columns but some of those kept so far; where each that is left was among those before. Rows answer
        in an order of their own, which need not be that of the round before."""
        kept, self.scales = self.units.kept[stays], self.scales[stays]
        del self.units  # the rows of the round before need not lie beside the new ones
        self._take(kept)
        place = np.empty(self.width, np.int32)
        place[kept] = np.arange(len(kept), dtype=np.int32)
        order = place[self.units.kept]
        self.scales = self.scales[order]
        return np.asarray(np.flatnonzero(stays)[order])

    def publish(
        self, weights: np.ndarray, constant_weight: np.ndarray, n_iter: int, noise: float | None
    ) -> Solution:
        """The model on the original columns, in the units of the targets; `noise` is the sd of that in a weight."""
        length = math.hypot(self.length or self.release_length(), self.constant)
        length = max(length, self.shortest)
        weights = weights / length
        offset = self.targets.offset + constant_weight * (self.constant / length)
        margins = self.units.margins(weights)
        slope, offset = self.targets.calibrate(margins, offset, self.releases)
        weights = weights * slope
        bound, kept = self.settings.target_bound, self.units.kept
        del self.units  # weights on all columns take as much memory
        coef = np.zeros((self.settings.n_outputs, self.width))
        for k in range(len(coef)):  # millions of others stay untouched zeros
            coef[k, kept] = weights[:, k] * self.scales * bound
        if self.centre is not None:
            offset = offset - np.sum(coef * self.centre, axis=1) / bound
        if noise is None:
            return Solution(coef, offset * bound, n_iter)
        # Where weights are as large as float32 allows, so is their noise. A weight that was dropped has none.
        sd = np.float32(min(slope * noise * bound / length, 1e30))
        coef_noise = np.zeros(self.width, np.float32)
        coef_noise[kept] = np.where(coef[:, kept].any(axis=0), self.scales * sd, 0.0)
        large = (np.abs(coef[:, kept]) > coef_noise[kept]).any(axis=0)
        drowned = np.sort(kept[large & (self.scales >= self.drowned_scale)])
        return Solution(coef, offset * bound, n_iter, coef_noise, drowned=drowned)

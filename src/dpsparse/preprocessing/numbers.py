"""Columns of numbers: `DPStandardizer` learns centre, scale and missing values, `PublicScaler` takes declared bounds.

    round 0     rows of each column by power of two (.3 of the budget): where its numbers are
    rounds 1-3  16 equal cells of that range (.7 together): median, 5 % and 95 % by interpolation; columns whose range
                is less than a quarter of the cells' are looked at again, closer
    map         missing -> centre; clip to centre +- 3 scale; divide by 3 scale: in [-1, 1]

with scale = half of the distance between the quantiles. All columns share a release, which one row moves by
sqrt(columns): letting a row report fewer columns would cost more than it saves. What a column needs no more is paid
all the same. Sensitivities: docs/proofs/preparation.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from dpsparse._checks import is_number, safe_repr
from dpsparse.exceptions import DomainError
from dpsparse.preprocessing._step import (
    COUNT_SHARE,
    STEP_SHARE,
    PrivateStep,
    Step,
    Want,
    of_each_column,
)
from dpsparse.preprocessing._tables import Header, Table, numbers
from dpsparse.release import Releases
from dpsparse.rows.columns import POWER_CELLS, POWER_EDGES, RawRows

FINE_ROUNDS, FINE_CELLS = 3, 16
MIN_SCALE, MAX_SCALE = 2.0**-40, 2.0**41  # where float64 and float32 have digits left
MIN_GAPS_IN_SDS = (
    4.0  # of released counts of missing, or of clipped, numbers that are above their noise
)


class _Scaled(Step):
    """The map that both have in common: (x - centre)/reach, clipped, and flags for missing values."""

    center_: np.ndarray
    reach_: np.ndarray
    flagged_: np.ndarray  # columns with a further column that is 1 where a number is missing

    def _matrix(self, read: Table) -> np.ndarray:
        return np.column_stack([numbers(column) for column in read.columns])

    def _map(self, read: Table) -> np.ndarray:
        x = self._matrix(read)
        gaps = np.isnan(x)
        x = np.where(gaps, getattr(self, "fill_", self.center_), x)
        with np.errstate(all="ignore"):
            z = np.clip((x - self.center_) / self.reach_, -1.0, 1.0)
        return np.hstack([z, gaps[:, self.flagged_].astype(np.float64)])

    def _names_out(self) -> list[str]:
        names = self._columns
        return [*names, *(f"{names[j]} is missing" for j in self.flagged_)]

    def _fate(self, j: int, *, dates: bool = False) -> str:
        """`dates` says that the numbers are days since 1970."""
        ends = self.center_[j] - self.reach_[j], self.center_[j] + self.reach_[j]
        how = "declared bounds" if self._declares else "released range"
        if dates and max(map(abs, ends)) < 719_000:  # years 1 to 3938; noise may lead further
            low, high = (str(np.datetime64(round(end), "D")) for end in ends)
        else:
            low, high = (f"{end:.6g}" for end in ends)
        return f"{how} {low} to {high}, brought to -1 to 1"


@dataclass(eq=False, repr=False, kw_only=True)
class DPStandardizer(_Scaled, PrivateStep):
    """Centre and scale of columns of numbers, learnt privately; missing values are filled and, where frequent, flagged.

    **When to use.** For columns of numbers whose bounds you do not know. If you know them, `PublicScaler` is free.

    A further column marks missing numbers where their released share is above 1 % and above its noise.

    Parameters
    ----------
    epsilon, delta, adjacency, ledger, random_state : as in every estimator
        For use outside a `DPPipeline`, which pays for all of its steps.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (n_features_in_,)
        Released median, and half the distance between the 5 % and 95 % quantiles.
    missing_share_ : ndarray
        Released shares of the rows without a number, about.
    privacy_, plan_
        Only if fitted by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsparse.preprocessing import DPStandardizer
    >>> X = np.random.default_rng(0).normal(2000.0, 5.0, (20_000, 1))
    >>> step = DPStandardizer(epsilon=1.0).fit(X)
    >>> bool(abs(step.center_[0] - 2000.0) < 2.0), bool(abs(step.transform(X)).max() <= 1.0)
    (True, True)
    """

    scale_: np.ndarray = field(init=False)
    missing_share_: np.ndarray = field(init=False)

    def _wants(self, n_columns: int) -> list[Want]:
        size = n_columns * (POWER_CELLS + FINE_ROUNDS * (FINE_CELLS + 2))
        note = "rows by cell of each column, four times: centre, scale and missing values"
        return [Want("scales", STEP_SHARE, size, note)]

    def _width(self, n_columns: int) -> int:
        return 2 * n_columns

    def _learn(self, raw: RawRows, releases: Releases, prefix: str) -> None:
        """The four rounds; everything after a release is post-processing of it."""
        d, phase, coarse_share = self.n_features_in_, prefix + "scales", 0.3
        columns = raw.numbers(self._matrix, d)
        query = columns.powers()
        noise = releases.scale(phase, query, coarse_share)
        coarse = releases.gaussian(phase, query, coarse_share)
        gaps, coarse = coarse[:, -1], coarse[:, :-1]
        least = noise * math.sqrt(2.0 * math.log(2.0 * d * POWER_CELLS))
        mass = np.where(coarse > least, coarse, 0.0)
        low, high = np.empty(d), np.empty(d)
        for j in range(d):
            low[j], high[j] = _range(mass[j])
        centre, scale = (low + high) / 2.0, (high - low) / 2.0
        open_ = mass.sum(axis=1) > 0.0
        for _ in range(FINE_ROUNDS):
            edges = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, FINE_CELLS + 1)
            query = columns.between(edges)
            share = (1.0 - coarse_share) / FINE_ROUNDS
            sd = releases.scale(phase, query, share)
            fine = releases.gaussian(phase, query, share)
            fine = np.where(fine > 2.0 * sd, fine, 0.0)
            for j in np.flatnonzero(open_ & (fine.sum(axis=1) > 0.0)).tolist():
                width = (high[j] - low[j]) / FINE_CELLS
                lower, centre[j], upper = _quantiles(fine[j], edges[j], width)
                scale[j] = max((upper - lower) / 2.0, width / 4.0)
                if upper - lower > (high[j] - low[j]) / 4.0:
                    open_[j] = False  # fine enough
                else:
                    low[j], high[j] = lower - width, upper + width
        self.center_ = np.clip(centre, -MAX_SCALE, MAX_SCALE)
        # Not below the spacing of float64 at the centre, where x - centre has no digits left.
        least_scale = np.maximum(MIN_SCALE, np.abs(self.center_) * 2.0**-40)
        self.scale_ = np.clip(scale, least_scale, MAX_SCALE)
        self.reach_ = 3.0 * self.scale_
        rows = np.maximum(mass.sum(axis=1) + np.maximum(gaps, 0.0), 1.0)
        nothing = mass.sum(axis=1) == 0.0  # no number rose above the noise
        self.missing_share_ = np.where(nothing, 1.0, np.clip(gaps / rows, 0.0, 1.0))
        often = (self.missing_share_ > 0.01) & (gaps > MIN_GAPS_IN_SDS * noise)
        self.flagged_ = np.flatnonzero(often)
        if np.any(nothing):
            drowned = [self._columns[j] for j in np.flatnonzero(nothing)]
            self.weak_ = (
                "No number or date of these columns rises above the noise; they count as all missing: "
                f"{', '.join(drowned[:20])}. Declare their bounds, or drop them.",
            )


def _range(mass: np.ndarray) -> tuple[float, float]:
    """The cells of the 2 % and 98 % quantiles."""
    if mass.sum() <= 0.0:
        return -1.0, 1.0
    rising = np.cumsum(mass) / mass.sum()
    first, last = (int(np.searchsorted(rising, q)) for q in (0.02, 0.98))
    return float(POWER_EDGES[first]), float(POWER_EDGES[min(last, len(mass) - 1) + 1])


def _quantiles(cells: np.ndarray, edges: np.ndarray, width: float) -> tuple[float, float, float]:
    rising = np.concatenate([[0.0], np.cumsum(cells) / cells.sum()])
    places = np.concatenate([[edges[0] - width], edges, [edges[-1] + width]])
    low, middle, high = np.interp([0.05, 0.5, 0.95], rising, places)
    return float(low), float(middle), float(high)


@dataclass(eq=False, repr=False)
class PublicScaler(_Scaled):
    """Columns of numbers with declared bounds: clipped to them and mapped to [-1, 1]. Free.

    **When to use.** For columns of numbers whose bounds are public, such as an age.

    Parameters
    ----------
    bounds : (low, high) or dict, default=(-1.0, 1.0)
        One pair for all columns, or one for each by name, in the unit of the column. Public facts: not the smallest
        and largest number of the table.
    fill : number, dict or None, default=None
        A public constant for missing values, for all columns or by name; None takes the middle of the bounds.
    count_rows : bool, default=False
        A further column for each column marks missing numbers. In a `DPPipeline` a hundredth of the budget then pays
        for counts of them and of numbers outside the bounds: only columns with many missing numbers are marked, and
        bounds that clip many numbers give a warning.

    Attributes
    ----------
    clipped_share_ : ndarray of shape (n_features_in_,)
        With `count_rows`: released shares of the numbers outside the bounds.

    Examples
    --------
    >>> from dpsparse.preprocessing import PublicScaler
    >>> PublicScaler(bounds={"age": (0, 120)}).fit_transform({"age": [0.0, 60.0, 200.0]}).ravel().tolist()
    [-1.0, 0.0, 1.0]
    """

    _declares = True

    bounds: Any = (-1.0, 1.0)
    _: KW_ONLY
    fill: Any = None
    count_rows: bool = False
    fill_: np.ndarray = field(init=False)
    clipped_share_: np.ndarray = field(init=False)

    def _wants(self, n_columns: int) -> list[Want]:
        note = "rows below, within and above the declared bounds of each column, and missing values"
        return [Want("clipped", COUNT_SHARE, 4 * n_columns, note)] if self.count_rows else []

    def _learn(self, raw: RawRows, releases: Releases, prefix: str) -> None:
        """How much the declared bounds clip, and which columns have enough missing values for a flag."""
        if not self.count_rows:
            return
        columns = raw.numbers(self._matrix, self.n_features_in_)
        query = columns.outside(self.center_ - self.reach_, self.center_ + self.reach_)
        noise = releases.scale(prefix + "clipped", query)
        sides = releases.gaussian(prefix + "clipped", query)
        outside, numbers = sides[:, 0] + sides[:, 2], sides[:, :3].sum(axis=1)
        self.clipped_share_ = np.clip(outside / np.maximum(numbers, 1.0), 0.0, 1.0)
        self.flagged_ = self.flagged_[sides[self.flagged_, 3] > MIN_GAPS_IN_SDS * noise]
        much = (self.clipped_share_ > 0.05) & (outside > MIN_GAPS_IN_SDS * math.sqrt(2.0) * noise)
        if much.any():
            told = [
                f"{self._columns[j]} ({self.clipped_share_[j]:.0%})" for j in np.flatnonzero(much)
            ]
            self.weak_ = (
                "Many numbers lie outside the declared bounds and were clipped to them, about: "
                f"{', '.join(told[:20])}. Declare wider bounds, or have the scale learnt privately.",
            )

    def _check(self) -> None:
        by_name = isinstance(self.bounds, Mapping)
        for pair in self.bounds.values() if by_name else [self.bounds]:
            _check_pair(pair)
        fills = self.fill.values() if isinstance(self.fill, Mapping) else [self.fill]
        for fill in fills:
            if fill is not None and not (is_number(fill) and abs(fill) <= MAX_SCALE):
                raise DomainError("fill must be a public number for gaps, such as 0.0.")

    def _width(self, n_columns: int) -> int:
        return 2 * n_columns if self.count_rows else n_columns

    def _norm(self, n_columns: int) -> float:
        return math.sqrt(self._width(n_columns))

    def _note(self, header: Header) -> None:
        super()._note(header)
        names = self._columns
        pairs = of_each_column("bounds", self.bounds, names)
        low, high = np.array(pairs, np.float64).T
        self.center_, self.reach_ = (low + high) / 2.0, (high - low) / 2.0
        self.flagged_ = np.arange(len(names) if self.count_rows else 0)
        fills = self.fill if isinstance(self.fill, Mapping) else dict.fromkeys(names, self.fill)
        chosen = [fills.get(name) for name in names]
        self.fill_ = np.array(
            [c if f is None else float(f) for f, c in zip(chosen, self.center_, strict=True)]
        )


def _check_pair(pair: Any) -> None:
    try:
        low, high = (float(v) for v in pair)
        sound = -MAX_SCALE <= low < high <= MAX_SCALE and high - low >= MIN_SCALE
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise DomainError(
            f"bounds must be pairs (low, high) of finite numbers with low < high, got {safe_repr(pair)}."
        )

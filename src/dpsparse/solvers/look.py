"""What a fit may want to know about a table before it starts: released centre, scales, axes and lengths.

    mean of y;  q = .75-quantile of |y - mean|, cutoff c = 3/2 q
    l0 = median of |x_i|;  m = mean of x_i shortened to l0, shrunk by its known noise
    v  = sum of (x_i - m)^2 shortened to l0, column by column;  D_j = (v_j/mean v)^(-1/2)
    S  = sum of z_i z_i', z_i = D (x_i - m) shortened to its typical length;  A = S^(-1/2) but for what noise may be
    l1 = median of |D (x_i - m)|, or of |A D (x_i - m)|

Each line is a sum of whole numbers with Gaussian noise (a mean alone: geometric), paid by a phase of its name: mean,
spread, length, centre, columns, axes. Proof: docs/proofs/table_regression.md, Lemmas 1 and 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from dpsparse.clipping import TINY
from dpsparse.release import Releases
from dpsparse.rows import Query, Rows
from dpsparse.rows.moments import matrix, products, squares

COUNTS = 8  # noisy counts of a quantile
LEAST_NOISE = 1e-9  # of a share of the rows: a count without noise leaves no doubt about the side
CUTOFF = 1.5  # of the .75-quantile of |y - mean|, unless a fit wants another
EMPTY = 1e-6  # of what a column or direction has on average: the least that is believed


class Look:
    """Attributes are released or public; rows answer queries only."""

    def __init__(
        self,
        rows: Rows,
        releases: Releases,
        *,
        n_samples: int,
        longest: float,
        scale_columns: bool,
        turn: bool = False,
    ) -> None:
        self.rows, self.releases = rows, releases
        self.n_samples, self.longest = n_samples, longest
        self.scale_columns, self.turn = scale_columns, turn
        d = rows.n_features
        # What is used where nothing is looked at.
        self.mean, self.cutoff = 0.0, 0.25
        self.centre, self.scaling = np.zeros(d), np.ones(d)
        self.axes: np.ndarray | None = None
        self.length = longest / 2.0 / math.sqrt(2.0)
        self.median = longest  # of all rows, before they are centred and scaled

    def release_mean(self, *, alone: bool = False) -> None:
        """Shrunk towards the middle of the range by its known noise; targets are taken to spread over half of it.
        A mean that is all there is has geometric noise, and only what stands out of it by two sd is believed."""
        query, n, releases = self.rows.target_total(), self.n_samples, self.releases
        if alone:
            noise, total = releases.geometric_sd("mean", query), releases.geometric("mean", query)
        else:
            noise, total = releases.scale("mean", query), releases.gaussian("mean", query)
        noise, mean = noise / n, float(total[0]) / n
        if alone:
            mean *= max(0.0, 1.0 - (2.0 * noise / max(abs(mean), noise, TINY)) ** 2)
        self.mean = min(max(mean * 0.25 / (0.25 + noise**2), -1.0), 1.0)

    def release_spread(self, cutoff: float = CUTOFF) -> None:
        """Where residuals begin to count linearly."""
        near = partial(self.rows.count_near, self.mean)
        self.cutoff = cutoff * self.quantile("spread", near, 0.75, 2.0**-8, 2.0)

    def take_columns(self, kept: np.ndarray) -> None:
        """Go on with released columns only."""
        self.rows = self.rows.columns(kept, spare=False)
        self.centre, self.scaling = np.zeros(len(kept)), np.ones(len(kept))

    def look_at_rows(self) -> None:
        """Centre and scale of the columns, the directions in which rows are long, and the length they have then."""
        d, n, releases = self.rows.n_features, self.n_samples, self.releases
        ones = np.ones(d, np.float32)
        longest = self.longest
        plain = self.rows.unit(ones)
        length = self.quantile(
            "length", plain.count_shorter, 0.5, longest / 2.0**10, longest, 0.5, prior=0.5, sure=0.8
        )
        self.median = length

        total = self.rows.unit(ones, shortest=length).total()
        noise, found = releases.scale("centre", total), releases.gaussian("centre", total)
        kept = 1.0 - d * noise**2 / max(float(found @ found), 1e-300)  # James and Stein
        self.centre = length / n * max(0.0, kept) * found

        spread = length * math.sqrt(2.0)  # of a centred row, where columns are not looked at
        if self.scale_columns:
            centred = self.rows.standardised(self.centre, np.ones(d))
            query = squares(centred.unit(ones, shortest=length))
            noise = releases.scale("columns", query)
            # An empty column keeps its (absent) entries small; with noise its scale is not known better than this.
            least = max(2.0 * noise, EMPTY * n / d)
            found = np.maximum(releases.gaussian("columns", query), least)
            self.scaling = np.sqrt(found.mean() / found)
            spread = length * math.sqrt(float(found.sum()) / n)
        if self.turn:
            scaled = self.rows.standardised(self.centre, self.scaling)
            moments = products(scaled.unit(ones, shortest=spread))
            noise = releases.scale("axes", moments)
            self.axes = even_axes(matrix(releases.gaussian("axes", moments)), noise, EMPTY * n / d)
        scaled = self.rows.standardised(self.centre, self.scaling, axes=self.axes)
        self.length = self.quantile(
            "length",
            scaled.unit(ones).count_shorter,
            0.5,
            spread / 16.0,
            spread * 16.0,
            0.5,
            sure=0.7,
        )

    def quantile(
        self,
        phase: str,
        below: Callable[[float], Query],
        share: float,
        low: float,
        high: float,
        part: float = 1.0,
        prior: float = 0.0,
        sure: float = 0.5,
    ) -> float:
        """Search in the logarithm by counts of the rows below a point.

        A noisy count may be wrong about the side, and what a plain bisection leaves out
        then is lost (one bad first count, and rows are taken to be a thousandth as long as they are). So every
        count only weighs what is believed, and the next one is taken where that is halved (Horstein 1963). At first a
        value is believed in proportion to its power `prior` (0: any octave as much as any other), and in the end the
        one is taken that is large enough with probability `sure`: rows that are taken to be shorter than they are
        make weights out of noise, rows that are taken to be longer only make less of the budget."""
        n, edges = self.n_samples, np.geomspace(low, high, 2**COUNTS + 1)
        belief = edges[:-1] ** prior
        belief /= belief.sum()
        for _ in range(COUNTS):
            i = int(np.argmin(np.abs(np.cumsum(belief)[:-1] - 0.5))) + 1
            query = below(float(edges[i]))
            noise = max(self.releases.scale(phase, query, part / COUNTS) / n, LEAST_NOISE)
            count = float(self.releases.gaussian(phase, query, part / COUNTS)[0]) / n
            belief *= np.repeat(
                sides(min(max(count, 0.0), 1.0), noise, share), (i, len(belief) - i)
            )
            belief /= belief.sum()
        i = int(np.searchsorted(np.cumsum(belief), sure))
        return math.sqrt(float(edges[i]) * float(edges[i + 1]))


def sides(found: float, noise: float, share: float) -> tuple[float, float]:
    """How likely a noisy share of the rows below a point is if the `share`-quantile lies below that point, and if it
    lies above; the true share is taken to be anything from `share` to one, and from zero to `share`."""

    def above(true: float) -> float:
        return 0.5 * math.erfc((true - found) / (noise * math.sqrt(2.0)))

    return (above(share) - above(1.0)) / (1.0 - share), (above(0.0) - above(share)) / share


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

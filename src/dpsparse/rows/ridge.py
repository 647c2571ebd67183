"""Ridge problems on the columns of a released support: rows that answer with a minimiser.

    J(theta) = sum_i a_i l(f_i.theta, y_i) + ridge/2 |theta - centre|^2 + tilt.theta
    f_i = (x_i on the support, constant),  a_i = min(1, row_clip/|f_i|)^2

The answer is a point where |grad J| <= tol, rounded to a public grid; its sensitivity (docs/proofs/ridge.md)
holds because that norm is really reached, on every table. Two things make sure of it. Margins are added with twice
the digits of a float64, theta is a sum of two float64s, and sums over rows are whole numbers of 66 bits, so what is
compared with tol is the true gradient up to a fraction of a row's (Lemma 2). And the search cannot stop early, fail
or cycle.

Rows come here, on the columns of the support, from wherever they are; whole numbers do not tell how rows are cut.

| symbol | variable | meaning |
|---|---|---|
| a_i | weights | a row longer than `row_clip` counts less, as does one of small weight; its margin is not touched |
| L | slope_bound | largest slope of a row: 1 (logistic), the cutoff (huber) |
| X | longest | public bound on |f_i|; a row that exceeds it has weight 0 |
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dpsparse.exceptions import InternalError, ParameterError
from dpsparse.jit import njit
from dpsparse.losses import Huber, Loss, get_loss
from dpsparse.rows.loss_kernels import CODES, slope_in_parts
from dpsparse.rows.parts import Query
from dpsparse.sensitivity import linear_answers, ridge_minimiser, tilted_minimiser
from dpsparse.threads import sum_over_rows

if TYPE_CHECKING:
    from dpsparse.domain.clipping import Part
    from dpsparse.rows.memory import Rows

# Declared rows: half of what Lemma 2 allows, and a sixteenth of what fits a word of a sum.
MOST_ROWS = 2**25
LARGEST_TABLE = 3 * 2**24  # rows that are there: Lemma 2 has n + B <= 2^27, and B is n and FARTHEST
FARTHEST = 2.0**25  # |tilt| or ridge |centre| in gradients of a row: what that leaves
# Why persons with several rows are refused, or need a bound on their number.
ONE_ROW = "objective perturbation is proven for one row of a person."
MANY_ROWS = "every row of a person moves the result, so the noise grows with a public bound on their number."
MOST_COLUMNS = 1501  # the constant among them: a Newton system is factored
BITS = 33  # of either word of a contribution: 2^29 of them fit 63

_jit = njit(cache=True, nogil=True, error_model="numpy")


class Precise(NamedTuple):
    """A vector as an unevaluated sum of two, about 106 bits."""

    high: np.ndarray
    low: np.ndarray

    def plus(self, step: np.ndarray) -> Precise:
        total, rest = _two_sum(self.high, step)
        return Precise(*_two_sum(total, rest + self.low))


class RidgeRows:
    """Rows on released columns, and a constant if there is an intercept; private."""

    def __init__(
        self,
        rows: Rows,
        support: np.ndarray | None,
        *,
        constant: float,
        row_clip: float,
        longest: float,
    ) -> None:
        self.row_clip, self.longest, self._constant = row_clip, longest, constant
        self._rows, self._support = rows, support
        self._rows_per_unit = rows.rows_per_unit
        self.width = (rows.n_features if support is None else len(support)) + (constant > 0.0)

    @cached_property
    def gathered(self) -> Part:
        """All rows as one part; made when a query is asked, not before: nothing else may look at rows."""
        if self._support is None:
            return self._rows.gathered()
        return self._rows.columns(self._support).gathered()

    @cached_property
    def weights(self) -> np.ndarray:
        """min(1, row_clip/|f_i|)^2 of every row, rounded down, and 0 where |f_i| exceeds `longest`: values lie in
        2^-100..2^100, so squares keep their digits, and their sum is right to one part in 2^52 an entry."""
        part = self.gathered
        norms = np.sqrt(part.squares() + self._constant**2)
        norms *= 1.0 + (np.diff(part.indptr) + 8.0) * 2.0**-52
        quotients = self.row_clip / np.maximum(norms, self.row_clip)
        # The square of what is rounded is rounded again.
        squares = np.where(quotients < 1.0, quotients**2 * (1.0 - 2.0**-50), 1.0)
        weights = np.where(norms <= self.longest, squares, 0.0)
        return weights if part.worth is None else weights * part.worth

    def problem(
        self,
        loss: str,
        *,
        ridge: float,
        tol: float,
        cutoff: float = 1.0,
        centre: np.ndarray | None = None,
    ) -> RidgeProblem:
        """The objective on these rows; everything but the rows is public. A centre farther away than the arithmetic is
        proven for is moved back: it was released, so that costs nothing."""
        known = get_loss(loss)
        known = Huber(cutoff) if isinstance(known, Huber) else known
        if known.objective is None:
            raise ParameterError(
                f"The {loss} loss has no objective or output perturbation: it needs one bounded "
                "slope per row. Use logistic (one class against the rest) or huber."
            )
        slope_bound = known.slope_bound(self._rows.domain, math.inf)
        centre = np.zeros(self.width) if centre is None else centre
        farthest = FARTHEST * slope_bound * self.row_clip / ridge * (1.0 - 2.0**-20)
        centre = centre * (farthest / max(_norm(centre), farthest))
        return RidgeProblem(self, known, slope_bound, ridge, tol, centre)

    @cached_property
    def table(self) -> np.ndarray:
        """The columns for Newton systems, with the constant as the last."""
        table: np.ndarray = self.gathered.table(np.float64).toarray()
        if self._constant > 0.0:
            table = np.column_stack([table, np.full(len(table), self._constant)])
        return table

    @cached_property
    def size(self) -> tuple[int, float]:
        """The number of rows and the largest a_i |f_i|^2."""
        squares = self.gathered.squares() + self._constant**2
        return len(squares), float(np.max(self.weights * squares, initial=0.0))


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    """J on private rows. `Releases` asks it for queries; a solver only passes it on."""

    rows: RidgeRows
    loss: Loss
    slope_bound: float
    ridge: float
    tol: float
    centre: np.ndarray

    @property
    def gradient_bound(self) -> float:
        """Largest L2 norm of one row's gradient."""
        return self.slope_bound * self.rows.row_clip

    @property
    def longest_tilt(self) -> float:
        """Largest L2 norm of a tilt whose minimiser the arithmetic below certifies."""
        return FARTHEST * self.gradient_bound

    @property
    def events(self) -> tuple[str, ...]:
        """The losses of `ObjectivePerturbation` whose bounds hold here."""
        return ("glm", "one-sided") if self.loss.objective == "one-sided" else ("glm",)

    @property
    def curvature(self) -> float:
        """Largest second derivative of one row's loss along any direction: a_i |f_i|^2 at most."""
        return self.loss.smoothness * self.rows.row_clip**2

    def minimiser(self, public_rows: np.ndarray | None = None) -> Query:
        """The minimiser, or (a linear map of it) its answers on public rows."""
        # A person is a group of rows: each moves the minimiser by at most its own distance.
        many = self.rows._rows_per_unit
        lemma = partial(
            ridge_minimiser,
            many * self.slope_bound,
            self.rows.row_clip,
            1.0,
            self.ridge,
            tol=self.tol,
        )
        if public_rows is None:
            return self._query(lambda adjacency: lemma(adjacency=adjacency), None, None)
        # Rounded up to 36 bits, because the last digits are those of the machine's linear algebra.
        part, power = math.frexp(float(np.linalg.norm(public_rows, 2)) * (1.0 + 1e-9))
        norm = math.ldexp(math.ceil(part * 2.0**36), power - 36)
        return self._query(
            lambda adjacency: linear_answers(lemma(adjacency=adjacency), norm), None, public_rows
        )

    def tilted(self, tilt: np.ndarray, unit: float) -> Query:
        """The minimiser of the objective with `tilt`, the rounding to `unit` of a real Gaussian vector.

        Given the exact minimiser under that vector, only the distance from it moves. The proof knows one row
        of a person: several turn the gradient in more directions than one (docs/proofs/persons.md)."""
        if self.rows._rows_per_unit > 1:
            raise ParameterError(ONE_ROW)
        lemma = partial(tilted_minimiser, self.ridge, self.tol, self.rows.width, unit)
        return self._query(lemma, tilt, None)

    def _query(self, lemma: Any, tilt: np.ndarray | None, public_rows: np.ndarray | None) -> Query:
        found: list[Precise] = []

        def whole(unit: float) -> np.ndarray:
            if not found:
                found.append(minimise(self, tilt))
            at = found[0] if public_rows is None else _answers(public_rows, found[0])
            return np.asarray(_to_grid(at.high, at.low, unit))

        def reached() -> bool:
            return _norm(self.evaluate(found[0], tilt)) <= self.tol

        size = self.rows.width if public_rows is None else len(public_rows)
        return Query((size,), lemma, whole, rounded=True, certificate=reached)

    def evaluate(self, theta: Precise, tilt: np.ndarray | None = None) -> np.ndarray:
        """grad J at theta, right to the digits Lemma 2 promises; no number where margins could overflow."""
        if not np.max(np.abs(theta.high), initial=0.0) < 2.0**800:
            return np.full(self.rows.width, np.nan)
        first = _leading_bits(theta.high)
        split = np.column_stack([first, theta.high - first, theta.low])
        unit = 2.0 ** (BITS - math.frexp(self.gradient_bound)[1])  # a power of two: nothing is lost
        part, sums = self.rows.gathered, np.zeros((len(split), 2), np.int64)
        rows = part.indptr, part.indices, part.values, self.rows._constant, self.rows.weights
        targets, code = part.targets.astype(np.float64), CODES[self.loss.name]
        add = partial(_add_gradient, *rows, targets, code, self.slope_bound, split, unit)
        sum_over_rows(len(part), len(part.values), sums, add)
        whole = sums[:, 0] + (sums[:, 1] >> BITS)
        total = whole.astype(np.float64)
        rest = (whole - total.astype(np.int64)) + (sums[:, 1] & (2**BITS - 1)) * 2.0**-BITS
        pull = self.ridge * ((theta.high - self.centre) + theta.low)
        return np.asarray(total / unit + (rest / unit + (pull if tilt is None else pull + tilt)))

    def guess(self, theta: Precise, tilt: np.ndarray | None = None) -> np.ndarray:
        """The gradient in plain float64: fast, and right enough far from the minimiser."""
        slopes, _ = self._slopes_and_bends(theta.high)
        pull = self.ridge * (theta.high - self.centre)
        return np.asarray(self.rows.table.T @ slopes + (pull if tilt is None else pull + tilt))

    def _slopes_and_bends(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """a_i l' and a_i l'' of every row, in plain float64."""
        slopes = self.loss.slope(self.rows.table @ theta, self.rows.gathered.targets)
        return self.rows.weights * slopes, self.rows.weights * self.loss.bend(slopes)

    def stationarity(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Gradient and log determinant of the Hessian of the untilted objective at a released theta: what
        the density of objective perturbation is made of. For the audit."""
        gradient = self.evaluate(Precise(theta, np.zeros_like(theta)))
        table, bend = self.rows.table, self._slopes_and_bends(theta)[1]
        hessian = table.T @ (bend[:, None] * table) + self.ridge * np.eye(self.rows.width)
        return gradient, float(np.linalg.slogdet(hessian)[1])


def minimise(problem: RidgeProblem, tilt: np.ndarray | None = None) -> Precise:
    """A point where the gradient norm is at most tol/2, in as many steps as needed; the other half is for rounding.

    Some steps in plain float64 come near; what counts is decided with all digits.
    """
    start = Precise(problem.centre.copy(), np.zeros(problem.rows.width))
    if tilt is not None:
        start = start.plus(-tilt / problem.ridge)
    near, _ = _search(problem, tilt, start, problem.guess, problem.tol / 4, 30)
    start = near if np.all(np.isfinite(near.high)) else start
    found, norm = _search(problem, tilt, start, problem.evaluate, problem.tol / 2, math.inf)
    if not norm <= problem.tol / 2:  # a norm that is not a number ends the search as well
        raise InternalError(
            "The search for a minimiser ended before its tolerance was reached. Nothing was released. "
            "This is a bug."
        )
    return found


def _search(
    problem: RidgeProblem,
    tilt: np.ndarray | None,
    theta: Precise,
    evaluate: Callable[..., np.ndarray],
    enough: float,
    n_steps: float,
) -> tuple[Precise, float]:
    """A point and its gradient norm.

    Newton's direction, halved until J has fallen for certain: J is convex, so it fell if it still falls at the end
    of the step. A step that halves the smallest norm so far is taken as well; that can happen only so
    often. (To accept a smaller norm or a smaller J at any time can cycle.)"""
    gradient = evaluate(theta, tilt)
    norm = best = _norm(gradient)
    while norm > enough and n_steps > 0:
        for step in _steps(problem, theta, gradient):
            trial = theta.plus(-step)
            new = evaluate(trial, tilt)
            new_norm = _norm(new)
            if new_norm <= best / 2 or _dot(step, new) >= 0.0:
                break
        theta, gradient, norm = trial, new, new_norm
        best, n_steps = min(best, norm), n_steps - 1
    return theta, norm


def _steps(problem: RidgeProblem, theta: Precise, gradient: np.ndarray) -> Iterator[np.ndarray]:
    """The Newton step, its halves, and at last one that is short enough for any rows."""
    # To 26 bits, because the last digits are those of the machine's linear algebra.
    step = _leading_bits(_newton(problem, theta, gradient))
    if np.all(np.isfinite(step)) and _dot(step, gradient) > 0.0:
        for halving in range(60):
            yield step * 0.5**halving
    # Between theta and here the curvature is at most that of all rows at once, at their largest.
    n, most = problem.rows.size
    yield gradient / (problem.ridge + n * most)


def _newton(problem: RidgeProblem, theta: Precise, gradient: np.ndarray) -> np.ndarray:
    """The Newton step."""
    rows = problem.rows
    table, bend = rows.table, problem._slopes_and_bends(theta.high)[1]
    hessian = table.T @ (bend[:, None] * table)
    corner = np.diag_indices(rows.width)
    hessian[corner] += problem.ridge
    for share in (0.0, 2.0**-40, 2.0**-20):  # of the trace, where rounding hides the ridge
        hessian[corner] += share * np.trace(hessian)
        try:
            return np.asarray(cho_solve(cho_factor(hessian, lower=True), gradient))
        except LinAlgError:  # of many rows rounding may hide more; an exception would tell of them
            continue
    return np.zeros_like(gradient)  # no direction: the short step is taken


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    """NumPy adds in one order on every processor; its linear algebra does not."""
    return float(np.sum(a * b))


def _norm(a: np.ndarray) -> float:
    return math.sqrt(_dot(a, a))


def _answers(public_rows: np.ndarray, theta: Precise) -> Precise:
    """Every public row times theta, with all digits of theta."""
    out = Precise(np.empty(len(public_rows)), np.empty(len(public_rows)))
    _products(np.ascontiguousarray(public_rows, np.float64), *theta, *out)
    return out


# ---- kernels -------------------------------------------------------------------------------------


@_jit
def _two_sum(a, b):
    """a + b and what rounding lost of it, exactly."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


@_jit
def _leading_bits(a):
    """a to 26 bits; what is left has 26 as well. Products of either with a float32 are exact."""
    c = 134217729.0 * a  # 2^27 + 1
    return c - (c - a)


@_jit
def _two_product(a, b):
    p = a * b
    a_high, b_high = _leading_bits(a), _leading_bits(b)
    a_low, b_low = a - a_high, b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@_jit
def _put(value, sums, j):
    """Two words += value: whole numbers, and 33 more bits."""
    high = np.rint(value)
    sums[j, 0] += np.int64(high)
    sums[j, 1] += np.int64(np.rint((value - high) * 2.0**BITS))


@_jit
def _add_gradient(
    indptr, columns, values, constant, weights, targets, loss, cutoff, split, unit, start, stop, sums
):  # fmt: skip
    """sums += sum_i a_i l'(f_i.theta) f_i in units of 1/unit. theta is split into three parts, so that products of
    the first two with a float32 are exact."""
    last = split.shape[0] - 1
    for i in range(start, stop):
        m, lost = 0.0, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j, x = columns[p], np.float64(values[p])
            m, first = _two_sum(m, x * split[j, 0])
            m, second = _two_sum(m, x * split[j, 1])
            lost += first + second + x * split[j, 2]
        if constant > 0.0:
            m, first = _two_sum(m, constant * (split[last, 0] + split[last, 1]))
            lost += first + constant * split[last, 2]
        slope = slope_in_parts(loss, m, lost, targets[i], cutoff) * weights[i] * unit
        for p in range(indptr[i], indptr[i + 1]):
            _put(slope * np.float64(values[p]), sums, columns[p])
        if constant > 0.0:
            _put(slope * constant, sums, last)


@_jit
def _products(rows, high, low, out, out_low):
    for i in range(rows.shape[0]):
        m, lost = 0.0, 0.0
        for j in range(rows.shape[1]):
            p, first = _two_product(rows[i, j], high[j])
            m, second = _two_sum(m, p)
            lost += first + second + rows[i, j] * low[j]
        out[i], out_low[i] = m, lost


@_jit
def _to_grid(high, low, unit):
    """(high + low)/unit to the nearest whole number: what the division loses is put back."""
    out = np.empty(high.size, np.int64)
    for j in range(high.size):
        k = np.rint(min(max(high[j] / unit, -(2.0**60)), 2.0**60))
        p, lost = _two_product(k, unit)
        more = ((high[j] - p) - lost + low[j]) / unit
        out[j] = np.int64(k) + np.int64(np.rint(min(max(more, -(2.0**60)), 2.0**60)))
    return out

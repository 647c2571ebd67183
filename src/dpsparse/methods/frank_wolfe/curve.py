"""Scores of a narrow table followed by their curvature: no row is read between two anchors.

Where every pick touches a large part of the rows, boxes do not pay and lagging scores must look at all slopes at
every step. With few columns the second derivative says more. From an anchor with exact scores, at weights a,

    G_j(w) = G_j(a) + S/L (H (w - a))_j + rest,        H = sum_i slope'_i x_i x_i'   taken at weights h
    |rest| <= S/L * c3 (q^2/2 + q far) + rounding,     q = ||X (w - a)||, far = ||X (a - h)||, c3 >= |slope''|

H (w - a), q and far follow from two tables of columns x columns (H and X'X), a few additions per column and step.
The rest is the slack of the draw, as everywhere in this package, so the law does not depend on any of this: a draw in
doubt reads its column. When the slack has used up its budget the scores are made exact again (an anchor); when
anchors since the last H cost as much as H does, H is taken anew. Proof: docs/proofs/fast_frank_wolfe.md, Lemma 6.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpsparse.jit import njit
from dpsparse.methods.frank_wolfe import kernel
from dpsparse.methods.frank_wolfe.kernel import HEAVY
from dpsparse.rows.loss_kernels import exp

if TYPE_CHECKING:
    from dpsparse.methods.frank_wolfe.scores import Scores

# A bound on the second derivative of the slope: logistic 1/(6 sqrt 3), squared 0.
THIRD = {"logistic": 0.09623, "squared": 0.0}
_DOUBT = 1.0  # kappa * slack at which an anchor is cheaper than more doubt
_kernel: Any = njit(cache=True, error_model="numpy", no_cfunc_wrapper=True, _nrt=False)  # type: ignore[call-overload, unused-ignore]


class Tables(NamedTuple):
    """By label; weights are scale(t) * moved."""

    hessian: np.ndarray  # (d, d) at the weights h
    gram: np.ndarray  # (d, d)
    moved: np.ndarray  # sum of the picks, each with weight t + 2
    bent: np.ndarray  # hessian @ moved
    spread: np.ndarray  # gram @ moved
    anchor: np.ndarray  # weights a
    anchor_bent: np.ndarray  # hessian @ a
    anchor_spread: np.ndarray  # gram @ a
    anchor_scores: np.ndarray  # exact
    most: np.ndarray  # no |score| is larger
    rounding: np.ndarray  # (HEAVY + 1,) slack of an anchor: what whole numbers and floats leave


@_kernel
def add_products(matrix, sc, weight, labels, values, out):
    """out += sum_i weight_i x_i x_i', every pair of entries once, in either triangle."""
    for i in range(weight.size):
        lo, hi = matrix.indptr[i], matrix.indptr[i + 1]
        n = 0
        for p in range(lo, hi):
            labels[n] = kernel._label(matrix.marks, np.uint64(matrix.indices[p]))
            values[n] = kernel._entry(
                kernel._raw(matrix.floats, matrix.doubles, p), sc.factor, sc.limit
            )
            n += 1
        if sc.intercept >= 0:
            labels[n], values[n] = sc.intercept, 1.0
            n += 1
        for a in range(n):
            x = weight[i] * values[a]
            row = out[labels[a]]
            for b in range(a, n):
                row[labels[b]] += x * values[b]


@_kernel
def curvatures(v, offset, scale, out):
    """Second derivatives of the logistic loss at the margins of all rows."""
    for i in range(v.size):
        s = exp(-abs(offset + scale * v[i]))
        out[i] = s / ((1.0 + s) * (1.0 + s))


@_kernel
def follow(st, tables, rng, first, last, unit, third, far, noise, budget):
    """Steps first..last-1; returns the step to go on with, before `last` if an anchor is needed first."""
    sc, sampler = st.sc, st.sampler
    score, slack = sampler.score, sampler.slack
    moved, bent, spread, anchor = tables.moved, tables.bent, tables.spread, tables.anchor
    d = moved.size
    sc.exact_at = -1  # scores are rounded predictions from the first step on
    for t in range(first, last):
        scale = kernel._scale(sc, t)
        squares = noise
        for j in range(d):
            squares += (scale * moved[j] - anchor[j]) * (
                scale * spread[j] - tables.anchor_spread[j]
            )
        q = math.sqrt(max(squares, noise))
        rest = unit * third * (0.5 * q + far) * q
        if rest > budget:
            return t
        whole = np.int64(math.ceil(rest))
        for j in range(d):
            step = unit * (scale * bent[j] - tables.anchor_bent[j])
            g = tables.anchor_scores[j] + np.int64(np.rint(step))
            score[j] = min(max(g, -tables.most[j]), tables.most[j])  # fits where exact scores do
            slack[j] = whole + tables.rounding[j]
        kernel.rebuild(sampler, sc)
        cell, sign = kernel._draw(st, rng, t)
        if cell < 0:
            return t
        st.cells[t], st.signs[t] = cell, sign
        kernel._move(st, t, cell, sign)
        if cell < d:
            step = -sign * (t + 2.0)
            moved[cell] += step
            for j in range(d):
                bent[j] += step * tables.hessian[cell, j]
                spread[j] += step * tables.gram[cell, j]
    return last


class Curve:
    """Curvature of one run, and the steps that go by it."""

    def __init__(self, run: Scores) -> None:
        matrix, problem = run.state.matrix, run.problem
        self._run, d, n = run, matrix.begin.size, run.state.rows.y.size
        S, reach = problem.resolution, float(run.state.sc.reach)
        self._unit = S / problem.slope_bound
        # Floats: sums of n products and of n_iter steps, each right to 2^-52, of margins up to `reach`.
        small = 2.0**-40 + (n + problem.n_iter + d) * 2.0**-50
        self._noise = n * reach * reach * small
        rounding = self._unit * n * reach * small + S * 2.0**-27 * run.column_mass
        self._tables = Tables(
            hessian=np.zeros((d, d)),
            gram=self._products(np.ones(n)),
            moved=self._moved(),
            bent=np.zeros(d),
            spread=np.zeros(d),
            anchor=np.zeros(d),
            anchor_bent=np.zeros(d),
            anchor_spread=np.zeros(d),
            anchor_scores=np.zeros(d, np.int64),
            most=np.floor((run.column_mass[:d] + 0.5) * S).astype(np.int64) + run.column_count[:d],
            rounding=np.ceil(rounding).astype(np.int64) + run.column_count + 1,
        )
        self._tables.spread[:] = self._tables.gram @ self._tables.moved
        self._cost = _Cost(run)
        self._credit = 0.0  # what anchors cost since the hessian was taken
        self.began, self.anchors = run.step, 0
        self._take_hessian()
        self._anchor()

    @staticmethod
    def pays(run: Scores) -> bool:
        """Whether following curvature is expected to cost less than scores that lag."""
        problem, n_labels = run.problem, run.state.matrix.begin.size
        if problem.n_outputs > 1 or problem.loss.name not in THIRD or n_labels > HEAVY:
            return False
        cost, left = _Cost(run), problem.n_iter - run.step
        # Twice: anchors are charged with as much again for the hessians between them (`_anchor`).
        anchors = 2.0 * cost.anchor * cost.anchors_per_step()
        saved = 0.7 * cost.lagging - cost.step - anchors
        return saved * left > 4.0 * cost.hessian

    def advance(self, rng: np.random.Generator, last: int) -> bool:
        """Go on to `last`, or to where the kernel stopped; False if this should end."""
        run, third = self._run, THIRD[self._run.problem.loss.name]
        sc = run.state.sc
        budget = _DOUBT / sc.kappa
        stops = 0
        while run.step < last:
            before = run.step
            run.step = int(
                follow(run.state, self._tables, rng, before, last, self._unit, third, self._far,
                       self._noise, budget)
            )  # fmt: skip
            run.refuse_broken_draw()
            sc.event = kernel.NOTHING
            if run.step == last:
                return True
            stops = stops + 1 if run.step == before else 0
            per_step = self._cost.anchor * self.anchors / (run.step - self.began + 8)
            if stops > 2 or (self.anchors > 20 and per_step > self._cost.lagging):
                return False
            self._anchor()
        return True

    def _anchor(self) -> None:
        """Exact scores here; a new hessian if anchors without one have cost as much."""
        run, tables = self._run, self._tables
        self.anchors += 1
        self._credit += self._cost.anchor
        if self._credit > self._cost.hessian and THIRD[run.problem.loss.name] > 0.0:
            self._take_hessian()
        run.refresh()
        tables.anchor[:] = run.scale * tables.moved
        tables.anchor_bent[:] = run.scale * tables.bent
        tables.anchor_spread[:] = run.scale * tables.spread
        tables.anchor_scores[:] = run.state.sampler.score
        gap = tables.anchor - self._hessian_at
        self._far = math.sqrt(max(float(gap @ tables.gram @ gap), 0.0) + self._noise)

    def _take_hessian(self) -> None:
        run, tables = self._run, self._tables
        if run.problem.loss.labels == "classes":
            weight = np.empty(run.state.rows.v.size)
            curvatures(run.state.rows.v, run.state.rows.offset[0], run.scale, weight)
            tables.hessian[:] = self._products(weight)
        else:
            tables.hessian[:] = tables.gram
        tables.bent[:] = tables.hessian @ tables.moved
        self._hessian_at, self._credit = run.scale * tables.moved, 0.0

    def _products(self, weight: np.ndarray) -> np.ndarray:
        matrix = self._run.state.matrix
        d = matrix.begin.size
        out, room = np.zeros((d, d)), d + 1
        add_products(
            matrix, self._run.state.sc, weight, np.empty(room, np.int64), np.empty(room), out
        )
        total: np.ndarray = out + out.T
        total[np.diag_indices(d)] = np.diag(out)
        return total

    def _moved(self) -> np.ndarray:
        run = self._run
        d, picks = run.state.matrix.begin.size, run.state.cells[: run.step]
        steps = -run.state.signs[: run.step] * (np.arange(run.step) + 2.0)
        full = picks < d
        return np.bincount(picks[full], steps[full], d)


class _Cost:
    """Rough nanoseconds."""

    def __init__(self, run: Scores) -> None:
        matrix = run.state.matrix
        n, d, nnz = run.state.rows.y.size, matrix.begin.size, matrix.entries.size
        lengths = np.diff(matrix.indptr).astype(np.float64) + (run.state.sc.intercept >= 0)
        self._run = run
        self.lagging = 3.0 * n + run.pull_rate * nnz
        self.anchor = 3.0 * n + 0.7 * nnz + 50_000.0
        self.hessian = 0.6 * float((lengths * lengths).sum()) + 5.0 * d * d + 100_000.0
        self.step = 5000.0 + 20.0 * d

    def anchors_per_step(self) -> float:
        """Picks move q^2 by the squared step and the rows they touch, as if at random."""
        run = self._run
        third = THIRD[run.problem.loss.name]
        if third == 0.0 or run.step == 0:
            return 0.0 if third == 0.0 else 1.0
        recent = run.state.cells[max(0, run.step - 50) : run.step]
        rows = run.column_count[np.minimum(recent, HEAVY)].mean()
        step = 2.0 * float(run.state.sc.reach) / (run.step + 3.0)
        budget = 2.0 * _DOUBT / (run.state.sc.kappa * third * run.problem.resolution)
        return min(1.0, float(rows * step * step / (budget * run.problem.slope_bound)))

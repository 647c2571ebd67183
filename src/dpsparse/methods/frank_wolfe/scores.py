"""Rows, columns and scores as the kernel of Frank-Wolfe reads them.

Nothing of the rows is copied but their transpose: the kernel walks along rows to change scores and down columns to
change margins. Features are rounded to float32 after division by the feature bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dpsparse.domain.clipping import BoundedData
from dpsparse.methods.frank_wolfe import kernel
from dpsparse.methods.frank_wolfe.kernel import B
from dpsparse.methods.frank_wolfe.problem import INT32_MAX, Problem
from dpsparse.rows.loss_kernels import CODES

_GROUPS = 2**8  # of columns: as many places as the transpose writes to at a time


@dataclass(frozen=True, eq=False)
class RowArrays:
    """Clipped rows as plain CSR arrays with sorted indices; `values` in float32 or float64.

    Nothing is copied: the solver reads these arrays and keeps its own transpose beside them.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    targets: np.ndarray  # class codes, or numbers
    n_features: int

    def matrix(self) -> sp.csr_array:
        """The same as a SciPy matrix, for the plain solver."""
        shape = (len(self.indptr) - 1, self.n_features)
        return sp.csr_array(
            (self.values.astype(np.float64), self.indices, self.indptr),
            shape=shape,
        )

    @classmethod
    def of(cls, data: BoundedData) -> RowArrays:
        X = data.X
        return cls(X.indptr, X.indices, X.data, data.y, X.shape[1])


def lay_out(rows: RowArrays, problem: Problem) -> tuple[kernel.Matrix, np.ndarray, int]:
    """Rows and their transpose, a bound on the sum of magnitudes of every column, and the length of the longest.

    The intercept is a last column of ones.
    """
    n, p = rows.indptr.size - 1, rows.n_features
    width = p + int(problem.fit_intercept)
    indices = rows.indices[: rows.indptr[-1]]
    nnz = indices.size + (n if problem.fit_intercept else 0)
    pointer = np.int32 if nnz <= INT32_MAX else np.int64
    start, mass = np.zeros(width + 1, pointer), np.zeros(width, np.float32)
    entries, room = np.empty(nnz, np.uint64), np.empty(indices.size, np.uint64)
    shift = min(16, max(0, p.bit_length() - _GROUPS.bit_length() + 1))
    longest = kernel.transpose(
        rows.indptr, indices, rows.values, 1.0 / problem.feature_bound, shift,
        start[: p + 1], np.empty((p >> shift) + 1, pointer), np.empty(indices.size, np.uint16),
        room, entries, mass[:p],
    )  # fmt: skip
    if problem.fit_intercept:
        one = np.float32(1.0).view(np.uint32).astype(np.uint64)
        entries[nnz - n :] = np.arange(n, dtype=np.uint64) << np.uint64(32) | one
        start[width], mass[p], longest = nnz, n, n
    matrix = kernel.Matrix(rows.indptr, rows.indices, rows.values, start, entries)
    return matrix, mass, int(longest)


def make_state(
    rows: RowArrays, problem: Problem, matrix: kernel.Matrix, mass: np.ndarray, longest: int
) -> kernel.State:
    n, K, T = rows.indptr.size - 1, problem.n_outputs, problem.n_iter
    nnz, width = matrix.entries.size, mass.size
    cells = width * K
    sc = kernel.make_scalars()
    sc.outputs, sc.loss, sc.steps = K, CODES[problem.loss.name], T
    sc.resolution, sc.n_cells = problem.resolution, cells
    sc.intercept = rows.n_features if problem.fit_intercept else -1
    sc.reach, sc.factor = problem.radius * problem.feature_bound, 1.0 / problem.feature_bound
    sc.slope_bound, sc.smoothness = problem.slope_bound, problem.loss.smoothness
    sc.cutoff, sc.fresh_at, sc.width = getattr(problem.loss, "cutoff", 0.0), -1, 1
    if not math.isinf(problem.kappa):
        sc.kappa = problem.unit_kappa
        sc.width = math.ceil(math.log(2.0) / sc.kappa * (1.0 + 1e-12))
    sc.debt_limit = cells // 8 + nnz // 16 + 1000
    # Nanoseconds, roughly: a new box of a row, whose scores may lie outside of the caches, and all rows and scores.
    row = 100 + 3 * K * (1 + 8 * cells / 2**22) * nnz / max(n, 1)
    sc.refresh_cost = 1 + (K * (3 * n + 0.7 * nnz) + 4 * cells) / row
    # The width of the sums is invisible in the law: the sums are exact either way.
    wide = (float(mass.max(initial=0.0)) + 1.0) * problem.resolution + longest > INT32_MAX
    sums = np.int64 if wide else np.int32
    pool = 2 * cells + 64 * (B + 2)
    return kernel.State(
        matrix,
        kernel.Rows(
            y=np.asarray(rows.targets, np.float64) if rows.targets.size else np.zeros(n),
            v=np.zeros(n * K),
            mref=np.zeros(n * K),
            q=np.zeros(n * K, np.int32),
            offset=np.asarray(problem.offset or np.zeros(K), np.float64),
            units=np.zeros(K, np.int32),
            leavers=np.zeros(n, np.int32),
        ),
        kernel.Calendar(
            due=np.full(n, T, np.int32),
            after=np.full(n, -1, np.int32),
            before=np.full(n, -1, np.int32),
            head=np.full(T + 1, -1, np.int32),
        ),
        kernel.Sampler(
            score=np.zeros(cells, sums),
            slack=np.zeros(width, sums),
            slot=np.zeros(cells, np.int32),
            members=np.zeros(pool, np.int32),
            depth_of=np.zeros(pool, np.uint8),
            start=np.ones(B + 2, np.int64),
            size=np.zeros(B + 1, np.int64),
            risers=np.zeros(4096, np.int32),
        ),
        cells=np.zeros(T, np.int64),
        signs=np.zeros(T, np.int8),
        sc=sc,
    )

"""Rows and columns laid out for the kernel, and the empty state of a run.

Nothing of the rows is copied but their transpose: the kernel walks along rows to refresh slopes and down columns to
move scores. Features are rounded to float32 after division by the feature bound. Columns that have entries get labels,
heavy ones first, so that what is read at every step lies together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dpsparse.domain.clipping import HUGE, BoundedData, cast
from dpsparse.methods.frank_wolfe import kernel
from dpsparse.methods.frank_wolfe.kernel import BLOCK, HEAVY, B
from dpsparse.methods.frank_wolfe.problem import INT32_MAX, Problem
from dpsparse.rows.loss_kernels import CODES

# Entries go to buckets of this size, each sorted within the caches, and columns to at most this many groups.
_BUCKET, _GROUPS = 2**15, 2**12


@dataclass(frozen=True, eq=False)
class RowArrays:
    """Clipped rows as plain CSR arrays with sorted indices; `values` in float32 or float64, which the kernel clips to
    `limit` and casts as it reads them.

    Nothing is copied: the solver reads these arrays and keeps its own transpose beside them.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    targets: np.ndarray  # class codes, or numbers
    n_features: int
    limit: float = HUGE

    def matrix(self) -> sp.csr_array:
        """The same as a SciPy matrix, for the plain solver."""
        shape = (len(self.indptr) - 1, self.n_features)
        return sp.csr_array(
            (cast(self.values, self.limit).astype(np.float64), self.indices, self.indptr),
            shape=shape,
        )

    @classmethod
    def of(cls, data: BoundedData) -> RowArrays:
        X = data.X
        return cls(X.indptr, X.indices, X.data, data.y, X.shape[1])


def lay_out(rows: RowArrays, problem: Problem) -> tuple[kernel.Matrix, float]:
    """The transpose of the rows, a label for every column that has entries, and the largest entry.

    Cells are named label * K + output; the intercept is a column of ones, in the transpose only.
    """
    n, p = rows.indptr.size - 1, rows.n_features
    width = p + int(problem.fit_intercept)
    indptr, indices = rows.indptr, rows.indices[: rows.indptr[-1]]
    nnz = indices.size + (n if problem.fit_intercept else 0)
    # One type of pointers for nearly all data: one compiled kernel.
    pointer, name = (np.int32, np.uint32) if nnz <= INT32_MAX else (np.int64, np.int64)
    counts = np.zeros(width, name)  # of the entries of each column
    entries = np.empty(nnz, np.uint64)
    largest = _sort_by_columns(rows, indices, problem, counts[:p], entries)
    if problem.fit_intercept:
        counts[p] = n
    tally, heavy = np.zeros(n + 1, np.int64), np.empty(min(HEAVY, width), np.int64)
    heavy = heavy[: kernel.choose_heavy(counts, tally, heavy)]
    begin, heavy_end = (np.empty(size, pointer) for size in (width - int(tally[0]) + 1, heavy.size))
    marks = np.empty((-(-width // 64), 4), np.uint64)
    kernel.label_columns(counts, heavy, begin, heavy_end, marks)
    begin = begin[:-1]
    most = float(np.uint32(largest).view(np.float32))
    if problem.fit_intercept and n > 0:
        one = np.float32(1.0).view(np.uint32).astype(np.uint64)
        entries[nnz - n :] = np.arange(n, dtype=np.uint64) << np.uint64(32) | one
        most = 1.0 if heavy[-1] != p else most  # heavy columns are read in any case
    shares = entries.view(np.float32)
    values = rows.values
    floats, doubles = values, np.empty(0)
    if values.dtype == np.float64:
        floats, doubles = np.empty(0, np.float32), values
    matrix = kernel.Matrix(
        indptr,
        rows.indices,
        floats,
        doubles,
        marks,
        entries,
        shares,
        begin,
        heavy_end,
        np.empty(2**11, np.int64),
    )
    if tally[n] > 0:
        kernel.close_ranks(matrix, n)
    return matrix, most


def _sort_by_columns(
    rows: RowArrays, indices: np.ndarray, problem: Problem, counts: np.ndarray, entries: np.ndarray
) -> int:
    """Entries by columns, in the order of columns and rows, and their numbers; few places are written to at a time.

    Returns the largest magnitude, as bits.
    """
    n, shift = (
        rows.indptr.size - 1,
        max(0, min(16, counts.size.bit_length() - _GROUPS.bit_length())),
    )
    groups = np.zeros((counts.size >> shift) + 1, np.int64)
    kernel.count_groups(indices, shift, groups)
    bucket_of = np.empty(groups.size, np.int32)
    columns, ends = np.zeros(groups.size + 1, np.int64), np.empty(groups.size, np.int64)
    ends = ends[: kernel.bound_buckets(groups, shift, _BUCKET, bucket_of, columns, ends)]
    places = np.append(0, ends[:-1])
    begins, reached, largest = places.copy(), [], 0
    for first in range(0, n, BLOCK):
        found = kernel.scatter_rows(
            rows.indptr, indices, rows.values, 1.0 / problem.feature_bound, rows.limit, shift, first,
            min(first + BLOCK, n), bucket_of, columns, places, entries,
        )  # fmt: skip
        largest = max(largest, int(found))
        reached.append(places.copy())
    several = np.diff(columns[: ends.size + 1]) > 1  # one column alone is in order
    room = np.empty(int((ends - begins)[several].max(initial=0)), np.uint64)
    kernel.sort_buckets(
        columns, np.array(reached or [begins]), counts, entries, room, np.empty(BLOCK, np.int64)
    )
    return largest


def nanoseconds_of_a_row(matrix: kernel.Matrix, width: int, n: int, K: int) -> float:
    """What a new box costs, roughly: labels and scores of its entries, which may lie outside of the caches."""
    read = 4 * (width + matrix.begin.size * K)
    return 100 + 3 * K * (1 + read / 2**22) * matrix.entries.size / max(n, 1)


def make_state(
    rows: RowArrays, problem: Problem, matrix: kernel.Matrix, wide: bool
) -> kernel.State:
    n, K, T = rows.indptr.size - 1, problem.n_outputs, problem.n_iter
    nnz, cells = matrix.entries.size, matrix.begin.size * K
    width = rows.n_features + int(problem.fit_intercept)
    drawing = not math.isinf(problem.kappa)
    sc = kernel.make_scalars()
    sc.outputs, sc.loss, sc.steps = K, CODES[problem.loss.name], T
    sc.resolution, sc.n_cells, sc.intercept = problem.resolution, width * K, -1
    if problem.fit_intercept and n > 0:
        label = np.empty(1, np.int64)
        kernel.find_labels(
            matrix.marks, width, matrix.begin.size, np.array([rows.n_features]), label
        )
        sc.intercept = label[0]
    sc.reach, sc.factor = problem.radius * problem.feature_bound, 1.0 / problem.feature_bound
    sc.limit = rows.limit
    sc.slope_bound, sc.smoothness = problem.slope_bound, problem.loss.smoothness
    sc.cutoff, sc.fresh_at, sc.exact_at = getattr(problem.loss, "cutoff", 0.0), -1, -1
    sc.width, sc.ceiling = 1, -1
    if not math.isinf(problem.kappa):
        sc.kappa = problem.unit_kappa
        sc.width = math.ceil(math.log(2.0) / sc.kappa * (1.0 + 1e-12))
    sc.debt_limit = cells // 8 + nnz // 16 + 1000
    # A refresh of all rows and scores in new boxes of rows, from rough costs in nanoseconds.
    row = nanoseconds_of_a_row(matrix, width, n, K)
    sc.refresh_cost = 1 + (K * (3 * n + 0.7 * nnz) + 2 * cells) / row
    pool = (cells if cells <= 10**6 else cells // 8) * 2 + 64 * (B + 2) if drawing else 1
    return kernel.State(
        matrix,
        kernel.Rows(
            y=np.asarray(rows.targets, np.float64) if rows.targets.size else np.zeros(n),
            v=np.zeros(n * K),
            mref=np.zeros(n * K),
            q=np.zeros(n * K, np.int32),
            fresh=np.zeros(n * K, np.int32),
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
            score=np.zeros(cells, np.int64 if wide else np.int32),
            slack=np.zeros(HEAVY + 1, np.int64),
            limit=np.full(HEAVY * K + 1, 2**62, np.int64),
            slot=np.full(cells if drawing else 1, -1, np.int32),
            members=np.zeros(pool, np.int32),
            depth_of=np.zeros(pool, np.uint8),
            start=np.zeros(B + 1, np.int64),
            size=np.zeros(B + 1, np.int64),
            room=np.zeros(B + 1, np.int64),
            risers=np.zeros(4096, np.int32),
            bins=np.zeros(4 * B + 1, np.int64),
        ),
        cells=np.zeros(T, np.int64),
        signs=np.zeros(T, np.int8),
        sc=sc,
    )

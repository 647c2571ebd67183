"""The Frank-Wolfe step fused with its private draw: work proportional to the non-zeros touched.

Paper: Raff, Khanna, Lu, "Scaling Up Differentially Private LASSO" (Alg. 2), with another sampler
than its Alg. 4 and without its staleness. README.md beside this file explains boxes, calendar, hot
and cold with pictures; read it first.

    pick (cell j, sign s) with probability proportional to e^{kappa s G_j}
    G_j  = sum_i round(S q_i x_ij)                q_i = slope of row i / slope_bound, whole units
    v_i += -s (t+2) x_ij      for the rows that own j          margin m_i = offset + scale(t) v_i
    scale(t) = 2 radius c / ((t+1)(t+2))          steps 2/(t+3) from w = 0, in closed form

The scores may be stale, never by more than `slack`: |G_j - score_j| <= slack_j at every draw. Who
keeps that promise is the one thing that differs between the two ways to run:

    boxes   every row's margin stays within theta of the margin its slope was taken at (calendar)
    lagging every slope is taken anew at every step and compared with the slope behind the scores;
            the scores are pulled again when the sum of all differences exceeds a reserve

A draw is settled by the two ends of the stale score where they agree, otherwise by the exact G_j
from column j. Proofs: docs/proofs/fast_frank_wolfe.md, docs/proofs/selection.md.

What is rare (refresh all rows, choose tau, rebuild the sampler) happens in run.py: `advance` stops
at the step, says why in `event`, and is called again. That keeps what must be compiled small; for
the same reason inner functions have no Python wrappers and take the groups of arrays they use. One
file but for the losses, because Numba's cache does not see edits in another.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpsparse.jit import njit, ones
from dpsparse.rows.loss_kernels import SOFTMAX, exp, slope

DRAW, SERVE, MOVE = 0, 1, 2  # what `advance` does with a step
# Events: why it stopped. BROKEN: a promise of the sampler does not hold, so no draw may be made.
NOTHING, LAGS, PULL, CROWDED, REBUILD, RETUNE, LOOK, BROKEN = 0, 1, 2, 3, 4, 5, 6, 7
ACCEPTED, NEAR, FAR, STALE, OUTSIDE = 0, 1, 2, 3, 4  # verdicts on a proposal

B = 20  # weights span 2^-20 .. 1 of the top; totals of 2^31 cells stay below 2^52
HEADROOM = 3  # empty depths above the largest cell, so that it may rise
SLOPE_BITS = 28  # slopes in units of slope_bound * 2^-28: products with float32 are exact
SLOPE_UNITS = 2.0**SLOPE_BITS
LN2 = math.log(2.0)
# The envelope of a proposal holds up to this much in its logarithm: rounding alone stays below 1e-12.
ENVELOPE_ROUNDING = 1e-9
TINY = 2.0**-100  # smaller entries are none (`clipping.TINY`)
QUARTERS = 2.0 ** (-0.25 * np.arange(4 * B + 1))  # weights of quarter depths
# The HEAVY fullest columns have the first labels and bounds of their own; all others share one.
HEAVY = 1024
BLOCK = 2**16  # columns of a bucket, and rows named together, while entries are laid out

_SCALARS = np.dtype(
    [
        # The problem: constant through a run.
        ("outputs", np.int64),  # K; a cell is label * K + output
        ("loss", np.int64),
        ("steps", np.int64),
        ("resolution", np.int64),  # S: whole units a row may add to a score
        ("n_cells", np.int64),  # columns without entries included: they have no arrays
        ("intercept", np.int64),  # label of the constant column, -1 without one
        ("kappa", np.float64),  # per unit of score; 0 for the arg max
        ("reach", np.float64),  # radius * feature_bound
        ("factor", np.float64),  # 1 / feature_bound
        ("limit", np.float64),  # of entries, before they are divided by the feature bound
        ("slope_bound", np.float64),
        ("smoothness", np.float64),
        ("cutoff", np.float64),
        # How stale the scores may be.
        ("boxes", np.int64),  # 1: boxes, 0: lagging
        ("theta", np.float64),  # half width of a box
        ("reserve", np.int64),  # lagging: sum of slope differences the slack allows
        ("lag", np.int64),  # that sum at the step `fresh_at`
        ("distance", np.float64),  # at least the L2 norm of these differences
        ("fresh_at", np.int64),
        ("exact_at", np.int64),  # lagging: step at which all scores are exact, for one draw
        ("light", np.int64),  # largest |score| of a light column at the last pull of all
        # Lagging: no light |score| can be larger, for any stored ones; -1: the stored ones say.
        ("ceiling", np.int64),
        ("seek", np.int64),  # lagging: pulls of all columns until run.py looks for leaders again
        ("n_leavers", np.int64),  # rows that left their box since the last draw
        # Is it worth it? All in row renewals.
        ("renewed", np.int64),  # spent, less what the steps so far may cost
        ("afford", np.int64),  # what one step may cost: as much as one without boxes
        ("refresh_cost", np.int64),  # of all rows and all scores
        ("look", np.int64),  # step at which boxes are tried again
        # The sampler.
        ("top", np.int64),  # depth 0 begins here
        ("width", np.int64),  # of a depth, in units of score: weights halve
        ("cold_weight", np.int64),
        ("log_cold", np.float64),
        ("total", np.int64),  # of all proposal weights
        ("rebuild", np.int64),
        ("n_risers", np.int64),
        ("debt", np.int64),  # rejections not yet excused by accepted draws
        ("debt_limit", np.int64),
        # Why `advance` stopped, and what it did so far.
        ("event", np.int64),
        ("verified", np.int64),
        ("scattered", np.int64),
        ("pulls", np.int64),
    ]
)


def make_scalars() -> np.record:
    """The numbers of a run, all 0; Numba passes them by reference, so kernels can change them."""
    scalars: np.record = np.zeros(1, _SCALARS).view(np.recarray)[0]
    return scalars


class Matrix(NamedTuple):
    """The rows as they came and, beside them, the same entries by columns."""

    indptr: np.ndarray
    indices: np.ndarray
    # Entries, not yet divided by the feature bound: one of the two, the other is empty (one compiled kernel for both).
    floats: np.ndarray
    doubles: np.ndarray
    # feature -> label, the HEAVY fullest columns first, no empty ones: of every 64 columns the bits of the light and of
    # the heavy ones that have entries, and the labels of the first light and of the first heavy one
    marks: np.ndarray
    # Entries by columns, in the order of columns, each uint64: a row, and the bits of entry / feature bound in float32.
    entries: np.ndarray
    shares: np.ndarray  # the same memory as float32: a column that owns all rows keeps its numbers alone, side by side
    # By label: where its entries begin; ~ of that for a light one with a heavy one or none behind it (`_span`)
    begin: np.ndarray
    heavy_end: np.ndarray  # where a heavy column ends; a light one ends where the next begins
    sums: np.ndarray  # room for running sums of the entries of short columns


class Rows(NamedTuple):
    """One number per row and output, (n * K,), unless said otherwise."""

    y: np.ndarray  # (n,) class code or target
    v: np.ndarray  # margins in units of _scale, without the offset
    mref: np.ndarray  # scale * v at which the stored slopes were taken: centre of the box
    q: np.ndarray  # slopes behind the scores, int32 in units of slope_bound * 2^-28
    fresh: np.ndarray  # slopes at the true margins of step `fresh_at`
    offset: np.ndarray  # (K,) public margin of a row without features
    units: np.ndarray  # (K,) slopes of the row at hand
    leavers: np.ndarray  # (n,) rows that need a new box before the next draw


class Calendar(NamedTuple):
    """Doubly linked lists of rows by the step at which they must be looked at."""

    due: np.ndarray  # `steps` means never
    after: np.ndarray
    before: np.ndarray
    head: np.ndarray  # (steps + 1,) first row of each list


class Sampler(NamedTuple):
    """Scores, how far they may be off, and the lists of hot cells."""

    score: np.ndarray  # int32, or int64 where 32 bits might not do
    slack: np.ndarray  # (HEAVY + 1,) by label: how far a score may be from exact; last: all others
    limit: np.ndarray  # (HEAVY * K + 1,) by cell: a |score| above it may have left its depth
    slot: np.ndarray  # position in `members`, -1 for a cold cell
    members: np.ndarray
    depth_of: np.ndarray  # of each member
    start: np.ndarray  # (B + 1,) of each depth in `members`
    size: np.ndarray
    room: np.ndarray
    risers: np.ndarray  # cells seen above their limit since the last draw
    bins: np.ndarray  # (4 B + 1,) cells by quarter depth, at the last rebuild


class State(NamedTuple):
    matrix: Matrix
    rows: Rows
    calendar: Calendar
    sampler: Sampler
    cells: np.ndarray  # the released history
    signs: np.ndarray
    sc: np.record


# Kernels can be called from Python; inner functions only from kernels (Python would crash), whose
# cached code holds them. Nothing here allocates, so references need not be counted (`_nrt`):
# together with the missing wrappers this halves the time to compile.
_OPTIONS: Any = {"error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}
_kernel: Any = njit(cache=True, **_OPTIONS)  # type: ignore[call-overload, unused-ignore]
_summing: Any = njit(cache=True, fastmath={"reassoc"}, **_OPTIONS)  # type: ignore[call-overload, unused-ignore]
_inner: Any = njit(no_cpython_wrapper=True, **_OPTIONS)  # type: ignore[call-overload, unused-ignore]


@_inner
def _scale(sc, t):
    return 2.0 * sc.reach / ((t + 1.0) * (t + 2.0))


# ---- where numbers become whole: the sensitivity of a score is decided in these three ----


@_inner
def _entry(value, factor, limit):
    """An entry over the feature bound: float32 in [-1, 1] for every float; NaN is 0.

    Before it is divided it is what `clipping._cast_rows` makes of it: clipped to `limit`, the float32 next to it on the
    side of zero, 0 below TINY. So a table is read where it is, without a clipped copy.
    """
    whole = min(max(np.float64(value), -limit), limit) if value == value else 0.0
    y = np.float32(whole)
    bits = y.view(np.int32) - np.int32(abs(np.float64(y)) > abs(whole))
    stored = np.float64(np.int32(bits).view(np.float32))
    x = stored * factor if abs(stored) >= TINY else 0.0
    x = min(max(x, -1.0), 1.0)
    return np.float32(x)


@_inner
def _raw(floats, doubles, p):
    """The entry at p of the array that is in use."""
    return np.float64(floats[p]) if doubles.size == 0 else doubles[p]


@_inner
def _whole(r):
    """A slope in units of 2^-28 of its bound: a whole number of at most 2^28, NaN is 0."""
    r = min(max(r, -SLOPE_UNITS), SLOPE_UNITS) if r == r else 0.0
    return np.int32(np.rint(r))


@_inner
def _part(q, unit, x):
    """What a row adds to a score: exact product of 29 and 24 bits, rounded once: at most S."""
    return np.int32(np.rint(q * unit * np.float64(x)))


@_inner
def _pack(row, x):
    """A row and a float32 in one word: a column is written, and read, at one place."""
    return np.uint64(row) << np.uint64(32) | np.uint64(np.float32(x).view(np.uint32))


@_inner
def _owner(entry):
    return entry >> np.uint64(32)


@_inner
def _share(entry):
    return np.uint32(entry & np.uint64(0xFFFFFFFF)).view(np.float32)


@_inner
def _row_at(entries, full, lo, p):
    """The row of place p in a column that begins at lo; one that owns all rows (`full`) does not name them."""
    return p - lo if full else _owner(entries[p])


@_inner
def _share_at(entries, shares, full, lo, p):
    return shares[p + lo] if full else _share(entries[p])  # 2 lo + (p - lo)


@_inner
def _size_bits(entry):
    """The bits of |share|, which are in the order of the numbers."""
    return np.uint32(entry & np.uint64(0x7FFFFFFF))


# ---- slopes ----


@_inner
def _row_slopes(margins, scale, y, offset, units, sc, i):
    """Slopes of row i at offset + scale * margins into `units`.

    Every slope is taken by these formulas, here or in `lag_of_rows`: an exact score is the same
    bit for bit, whoever asked for it.
    """
    K = sc.outputs
    at = i * K
    unit = SLOPE_UNITS / sc.slope_bound
    if sc.loss != SOFTMAX:
        m = offset[0] + scale * margins[at]
        units[0] = _whole(slope(sc.loss, m, y[i], sc.cutoff) * unit)
        return
    largest = offset[0] + scale * margins[at]
    for k in range(1, K):
        largest = max(largest, offset[k] + scale * margins[at + k])
    total = 0.0
    for k in range(K):
        total += exp(offset[k] + scale * margins[at + k] - largest)
    for k in range(K):
        p = exp(offset[k] + scale * margins[at + k] - largest) / total
        units[k] = _whole((p - (k == y[i])) * unit)


@_kernel
def lag_of_rows(rows, sc, t):
    """Slopes of all rows at their true margins into `fresh`; how far they are from the stored ones."""
    v, y, q, fresh = rows.v, rows.y, rows.q, rows.fresh
    scale, unit = _scale(sc, t), SLOPE_UNITS / sc.slope_bound
    loss, cutoff, offset, K = sc.loss, sc.cutoff, rows.offset[0], sc.outputs
    if loss == SOFTMAX:
        for i in range(y.size):
            _row_slopes(v, scale, y, rows.offset, rows.units, sc, i)
            for k in range(K):
                fresh[i * K + k] = rows.units[k]
    else:
        for i in range(y.size):
            fresh[i] = _whole(slope(loss, offset + scale * v[i], y[i], cutoff) * unit)
    # Squares in units of 2^-16, rounded up: whole numbers, so the loop vectorises.
    lag, squares = np.int64(0), np.int64(0)
    for i in range(q.size):
        d = np.int64(abs(fresh[i] - q[i]))
        lag += d
        coarse = (d + 4095) >> 12
        squares += coarse * coarse
    sc.lag, sc.fresh_at = lag, t
    # Squares of more rows might overflow: there the L2 norm is only known to be at most the L1 norm.
    sc.distance = 4096.0 * math.sqrt(squares) if q.size < 2**28 else float(lag)


# ---- boxes and calendar ----


@_inner
def _outside(v, mref, K, theta, i, scale):
    out = False
    for k in range(i * K, i * K + K):
        out |= abs(scale * v[k] - mref[k]) > theta
    return out


@_inner
def _schedule(v, mref, due, after, before, head, sc, i, t):
    """Enter row i at the step t' at which m (t+1)(t+2)/((t'+1)(t'+2)) will have left its box."""
    K, steps, theta = sc.outputs, sc.steps, sc.theta
    sc.renewed += 1
    if due[i] < steps:  # leave the old place in the calendar
        a, b = after[i], before[i]
        if a >= 0:
            before[a] = b
        if b >= 0:
            after[b] = a
        else:
            head[due[i]] = a
    scale = _scale(sc, t)
    when = steps
    for k in range(i * K, i * K + K):
        m = scale * v[k]
        # Left alone the margin shrinks towards zero: it can leave through one edge only.
        edge = mref[k] - theta if m > 0 else -mref[k] - theta
        if edge <= 0.0:
            continue
        z = (t + 1.0) * (t + 2.0) * (abs(m) / edge)
        when = min(when, max(t + 1, np.int64(min(math.sqrt(0.25 + z) - 1.5, 2.0**30)) + 1))
    if when < steps:
        a = head[when]
        head[when], after[i], before[i] = i, a, -1
        if a >= 0:
            before[a] = i
    due[i] = when


@_kernel
def schedule_all(rows, calendar, sc, t):
    """A new calendar for all rows, whose boxes were just centred."""
    calendar.head[:] = -1
    calendar.due[:] = sc.steps
    for i in range(calendar.due.size):
        _schedule(
            rows.v, rows.mref, calendar.due, calendar.after, calendar.before, calendar.head,
            sc, i, t,
        )  # fmt: skip


@_inner
def _collect_due(rows, calendar, sc, t):
    """Add the rows due at step t to the leavers, or enter them again if their box still holds."""
    v, mref, due, after, head = rows.v, rows.mref, calendar.due, calendar.after, calendar.head
    K, theta, scale = sc.outputs, sc.theta, _scale(sc, t)
    i = np.int64(head[t])
    head[t] = -1
    while i >= 0:
        following = np.int64(after[i])
        due[i] = sc.steps
        if _outside(v, mref, K, theta, i, scale):
            rows.leavers[sc.n_leavers] = i
            sc.n_leavers += 1
        else:
            _schedule(v, mref, due, after, calendar.before, head, sc, i, t)
        i = following


@_inner
def _renew(matrix, rows, calendar, sampler, sc, t):
    """New boxes for the leavers: new slopes, and their change added to the scores."""
    v, mref, q, units = rows.v, rows.mref, rows.q, rows.units
    indptr, indices, marks = matrix.indptr, matrix.indices, matrix.marks
    floats, doubles = matrix.floats, matrix.doubles
    score, slot, depth_of, limit = sampler.score, sampler.slot, sampler.depth_of, sampler.limit
    risers, light_slack = sampler.risers, sampler.slack[HEAVY]
    K, unit, factor = sc.outputs, sc.resolution / SLOPE_UNITS, sc.factor
    scale, ahead = _scale(sc, t), 0.5 * sc.theta
    top, width, light = sc.top, sc.width, limit.size - 1
    n_risers, n_scattered = sc.n_risers, np.int64(0)
    if 3 * sc.n_leavers > rows.y.size:
        sc.event = PULL  # pulling all columns is cheaper than scattering that many rows
    for r in range(sc.n_leavers):
        i = np.int64(rows.leavers[r])
        # The box is centred ahead of the margins, on their way to zero: they stay for longer.
        for k in range(i * K, i * K + K):
            m = scale * v[k]
            mref[k] = m - min(max(m, -ahead), ahead)
        _row_slopes(mref, 1.0, rows.y, rows.offset, units, sc, i)
        for k in range(K):
            old, new = q[i * K + k] * unit, units[k] * unit
            q[i * K + k] = units[k]
            if sc.event == PULL or old == new:
                continue
            lo, hi = np.int64(indptr[i]), np.int64(indptr[i + 1])
            n_scattered += hi - lo
            for p in range(lo, hi + (sc.intercept >= 0)):
                if p < hi:
                    label = _label(marks, np.uint64(indices[p]))
                    x = _entry(_raw(floats, doubles, p), factor, sc.limit)
                else:
                    label, x = sc.intercept, np.float32(1.0)
                cell = label * K + k
                g = np.int64(score[cell]) + _part(new, 1.0, x) - _part(old, 1.0, x)
                score[cell] = g
                g = abs(g)
                if g > limit[min(cell, light)]:
                    s = slot[cell]
                    if cell >= light and s >= 0 and g + light_slack <= top - depth_of[s] * width:
                        continue  # a hot cell that is still within its depth
                    if n_risers < risers.size:
                        risers[n_risers] = cell
                    n_risers += 1
        _schedule(v, mref, calendar.due, calendar.after, calendar.before, calendar.head, sc, i, t)
    sc.n_risers, sc.n_leavers = n_risers, 0
    sc.scattered += n_scattered


# ---- scores ----


@_inner
def _first(begin, label):
    """Where the entries of a label begin."""
    at = np.int64(begin[label])
    return np.uint64(at if at >= 0 else ~at)


@_inner
def _span(matrix, label):
    """Where the entries of a label begin and end. Entries are in the order of columns, as light labels are: a light
    column ends where the next label begins, or the next heavy column if there is one in between."""
    begin, lo, n_heavy = matrix.begin, _first(matrix.begin, label), matrix.heavy_end.size
    if label < n_heavy:
        return lo, np.uint64(matrix.heavy_end[label])
    if begin[label] >= 0:
        return lo, _first(begin, label + 1)
    a, b = 0, n_heavy
    while a < b:
        middle = (a + b) >> 1
        if np.uint64(begin[middle]) > lo:
            b = middle
        else:
            a = middle + 1
    return lo, np.uint64(begin[a]) if a < n_heavy else np.uint64(matrix.entries.size)


@_kernel
def lengths(matrix, labels, out):
    """Numbers of entries of some labels."""
    for c in range(labels.size):
        lo, hi = _span(matrix, labels[c])
        out[c] = hi - lo


@_inner
def _pull_light(matrix, slopes, score, unit, first, last):
    """Scores of light labels, one output each: as differences of running sums, so that the ends of short columns are
    not guessed. Their sums are of whole numbers, and the same."""
    begin, entries, sums = matrix.begin, matrix.entries, matrix.sums
    n, room, label = np.uint64(slopes.size), np.uint64(sums.size), first
    while label < last:
        lo, hi = _span(matrix, label)
        # Columns side by side that have room together; those that own all rows do not name them.
        stop, at, to, end = label, lo, hi, lo
        while stop < last and at == end and to - lo < room and to - at != n:
            stop, end = stop + 1, to
            if stop < last:
                at, to = _span(matrix, stop)
        g = np.int64(0)
        if stop > label:
            for s in range(end - lo):
                sums[s] = g
                g += _part(slopes[_owner(entries[lo + s])], unit, _share(entries[lo + s]))
            sums[end - lo] = g
            for c in range(stop - 1, label - 1, -1):  # each ends where the one behind it begins
                at = _first(begin, c)
                score[c] = sums[end - lo] - sums[at - lo]
                end = at
        else:
            stop, full = label + 1, hi - lo == n
            for p in range(lo, hi):
                x = _share_at(entries, matrix.shares, full, lo, p)
                g += _part(slopes[_row_at(entries, full, lo, p)], unit, x)
            score[label] = g
        label = stop


@_kernel
def pull(matrix, slopes, score, sc, first, last):
    """Scores of the labels first..last-1 from the given slopes, column by column."""
    K, unit, entries = np.uint64(sc.outputs), sc.resolution / SLOPE_UNITS, matrix.entries
    stop = min(max(first, HEAVY), last) if K == 1 else last
    _pull_light(matrix, slopes, score, unit, stop, last)
    for label in range(first, stop):
        # Unsigned positions allow vector instructions.
        lo, hi = _span(matrix, label)
        full = (hi - lo) * K == np.uint64(slopes.size)
        if K == 1 and full:
            g = np.int64(0)
            for i in range(hi - lo):
                g += _part(slopes[i], unit, matrix.shares[lo + lo + i])
            score[label] = g
        elif K == 1:
            g = np.int64(0)
            for p in range(lo, hi):
                g += _part(slopes[_owner(entries[p])], unit, _share(entries[p]))
            score[label] = g
        else:
            for k in range(K):
                g = np.int64(0)
                for p in range(lo, hi):
                    x = _share_at(entries, matrix.shares, full, lo, p)
                    g += _part(slopes[_row_at(entries, full, lo, p) * K + k], unit, x)
                score[np.uint64(label) * K + k] = g


@_kernel
def pull_some(matrix, slopes, score, sc, labels):
    """The same for some labels."""
    for c in range(labels.size):
        pull(matrix, slopes, score, sc, labels[c], labels[c] + 1)


@_inner
def _exact_score(matrix, rows, sc, cell, t):
    """The score of one cell at the true margins."""
    K, unit, scale = sc.outputs, sc.resolution / SLOPE_UNITS, _scale(sc, t)
    label, k = cell // K, cell % K
    entries, shares, units = matrix.entries, matrix.shares, rows.units
    g = np.int64(0)
    if label >= matrix.begin.size:
        return g
    lo, hi = _span(matrix, label)
    n = np.int64(hi - lo)
    full = n == rows.y.size
    sc.verified += n
    if sc.fresh_at == t:  # the slopes are known: a fast read
        sc.debt += n // 32
        for p in range(lo, hi):
            i = np.int64(_row_at(entries, full, lo, p))
            g += _part(rows.fresh[i * K + k], unit, _share_at(entries, shares, full, lo, p))
        return g
    sc.debt += n // 4
    sc.renewed += n // 8
    if (
        sc.loss != SOFTMAX
    ):  # the same formulas, in a loop that the processor can take several at a time
        v, y, offset, loss, cutoff = rows.v, rows.y, rows.offset[0], sc.loss, sc.cutoff
        bound = SLOPE_UNITS / sc.slope_bound
        for p in range(lo, hi):
            i = _row_at(entries, full, lo, p)
            q = _whole(slope(loss, offset + scale * v[i], y[i], cutoff) * bound)
            g += _part(q, unit, _share_at(entries, shares, full, lo, p))
        return g
    for p in range(lo, hi):
        i = np.int64(_row_at(entries, full, lo, p))
        _row_slopes(rows.v, scale, rows.y, rows.offset, units, sc, i)
        g += _part(units[k], unit, _share_at(entries, shares, full, lo, p))
    return g


@_kernel
def exact_scores(matrix, rows, sc, cells, t, out):
    """The scores of some cells at the true margins."""
    for c in range(cells.size):
        out[c] = _exact_score(matrix, rows, sc, cells[c], t)


# ---- sampler ----


@_inner
def _upper(score, slack, K, cell):
    """The largest |G| a cell can have."""
    return abs(np.int64(score[cell])) + slack[min(cell // K, HEAVY)]


@_inner
def _append(sampler, sc, cell, d):
    """List a cell at depth d, or ask for a rebuild if there is no room."""
    if d < 0 or sampler.size[d] == sampler.room[d]:
        sc.rebuild = 1
        return
    s = sampler.start[d] + sampler.size[d]
    sampler.size[d] += 1
    sampler.members[s], sampler.depth_of[s], sampler.slot[cell] = cell, d, s
    sc.total += 1 << (B - d)
    if cell < sampler.limit.size - 1:
        sampler.limit[cell] = sc.top - d * sc.width - sampler.slack[cell // sc.outputs]


@_inner
def _quarter(gap, width):
    """4 gap // width, rounded down exactly: where all numbers fit, the quotient of floats never reaches a whole number
    that the true one does not, and is found several times faster."""
    if width < 2**40:  # gap is less than B of them
        return np.int64(np.float64(4 * gap) / np.float64(width))
    return 4 * gap // width


@_kernel
def rebuild(sampler, sc):
    """Choose the top and the cold threshold from a histogram of bounds; list the hot cells."""
    K, width, kappa = sc.outputs, sc.width, sc.kappa
    score, slot, slack, limit = sampler.score, sampler.slot, sampler.slack, sampler.limit
    bins = sampler.bins
    n_heavy = min(HEAVY * K, score.size)
    # Light cells of which only a ceiling is known cannot be listed, like columns without entries.
    n_listed = n_heavy if sc.ceiling >= 0 else score.size
    light = np.int64(0)
    for cell in range(n_heavy, n_listed):
        light = max(light, abs(np.int64(score[cell])))
    light = sc.ceiling if sc.ceiling >= 0 else light + slack[HEAVY]
    largest = light
    for cell in range(n_heavy):
        largest = max(largest, _upper(score, slack, K, cell))
    top = (largest // width + 1 + HEADROOM) * width
    bins[:] = 0  # quarter depths; the last bin is everything below
    # Where heavy columns lead by more than all depths, the others need no look.
    n_seen = n_heavy if light <= top - B * width else n_listed
    bins[4 * B] = n_listed - n_seen
    light_top = top - slack[HEAVY]
    for cell in range(n_seen):
        if cell < n_heavy:
            gap = top - _upper(score, slack, K, cell)
        else:
            gap = light_top - abs(np.int64(score[cell]))
        bins[_quarter(gap, width) if gap < B * width else 4 * B] += 1
    # Columns without entries have score 0 and no list to be in: the cold threshold stays above what
    # cells without a list can reach.
    n_unlisted = sc.n_cells - n_listed
    lowest = min(4 * B, 4 * (top - max(sc.ceiling, 0)) // width) if n_unlisted > 0 else 4 * B
    bins[lowest] += n_unlisted
    mass = 0.0
    for b in range(4 * B + 1):
        mass += bins[b] * QUARTERS[b]
    # Listing a cell costs memory traffic at every touch, not listing it costs rejections: the cold
    # set may take the weight that one cell at its threshold has, times all cells, up to 1.3 of the
    # weight that would be proposed anyway.
    edge = 0  # cells of quarter depth >= edge are cold
    n_hot = 0
    while edge < lowest and sc.n_cells * QUARTERS[edge] > 1.3 * mass:
        if 2 * (n_hot + bins[edge]) > sampler.members.size - 64 * (B + 1):
            break
        n_hot += bins[edge]
        edge += 1
    cold_top = top - (edge * width) // 4
    weight = math.ceil(2.0**B * math.exp(-kappa * (top - cold_top)) * (1.0 + 1e-9))
    sc.top, sc.cold_weight = top, int(weight)
    sc.log_cold = math.log(weight) - B * LN2
    sc.total = sc.n_cells * sc.cold_weight
    for c in range(limit.size):
        limit[c] = cold_top - slack[min(c // K, HEAVY)]
    at = 0
    for d in range(B + 1):
        for m in range(sampler.start[d], sampler.start[d] + sampler.size[d]):
            slot[sampler.members[m]] = -1
        sampler.start[d], sampler.size[d] = at, 0
        count = np.int64(0)
        for b in range(4 * d, min(4 * d + 4, edge)):
            count += bins[b]
        sampler.room[d] = count + count // 2 + 64
        at += sampler.room[d]
    cold_score = cold_top - slack[HEAVY]
    for cell in range(n_heavy if light <= cold_top else n_listed):
        if cell >= n_heavy and abs(np.int64(score[cell])) <= cold_score:
            continue
        bound = _upper(score, slack, K, cell)
        if bound > cold_top:
            _append(sampler, sc, cell, (top - bound) // width)
    sc.n_risers, sc.rebuild, sc.debt = 0, 0, 0


@_inner
def _raise_cells(sampler, sc):
    """Move the cells that rose above their depth."""
    K, top, width = sc.outputs, sc.top, sc.width
    slot, members, limit = sampler.slot, sampler.members, sampler.limit
    n = sc.n_risers
    sc.n_risers = 0
    if n > sampler.risers.size:
        sc.rebuild = 1
        return
    for r in range(n):
        cell = np.int64(sampler.risers[r])
        bound = _upper(sampler.score, sampler.slack, K, cell)
        s = slot[cell]
        if s >= 0:
            d = np.int64(sampler.depth_of[s])
            if bound <= top - d * width:
                continue  # it sank again
            last = sampler.start[d] + sampler.size[d] - 1
            moved = members[last]
            members[s], slot[moved] = moved, s
            sampler.size[d] -= 1
            slot[cell] = -1
            sc.total -= 1 << (B - d)
        elif abs(np.int64(sampler.score[cell])) <= limit[min(cell, limit.size - 1)]:
            continue
        _append(sampler, sc, cell, (top - bound) // width if bound <= top else -1)


@_inner
def _zeros(rng, n):
    """True with probability 2^-n, exactly."""
    while n >= 53:
        if rng.random() != 0.0:
            return False
        n -= 53
    return rng.random() < 2.0 ** (-n)


@_inner
def _propose(matrix, sampler, sc, rng, sure):
    """Propose until one is accepted or in doubt, or too many were rejected (STALE).

    A proposal (cell, sign) of weight W is accepted with probability e^{kappa (s G - top)} 2^B / W.
    The stale score tells two ends of it; where both say the same the exact G is not needed:
    ACCEPTED. Otherwise NEAR, with the uniform number to compare, or FAR, with the log of the
    probability already spent on leading zero bits. If all scores are exact (`sure`) both ends are one.
    OUTSIDE: the upper end is above one, so that no draw would have the right law. The last two numbers are the
    score and how far it may be off.
    """
    score, slot, slack, size = sampler.score, sampler.slot, sampler.slack, sampler.size
    kappa, top, K, n_cells = sc.kappa, sc.top, sc.outputs, sc.n_cells
    cold_total = n_cells * sc.cold_weight
    total = 2 * sc.total
    limit = ((1 << 53) // total) * total
    while sc.debt <= sc.debt_limit:
        r = np.int64(rng.random() * 2.0**53)  # 53 uniform bits, exactly
        if r >= limit:
            continue
        r %= total
        sign = 1 - 2 * (r & 1)
        r >>= 1
        sc.debt += 1  # taken back by `_draw` if this is the last one
        if r < cold_total:
            cell = r % n_cells
            if cell < score.size and slot[cell] >= 0:
                continue  # hot: proposed by its depth, not by the cold set
            log_weight = sc.log_cold
        else:
            r -= cold_total
            d = 0
            while r >= size[d] << (B - d):
                r -= size[d] << (B - d)
                d += 1
            cell = np.int64(sampler.members[sampler.start[d] + (r >> (B - d))])
            log_weight = -d * LN2
        g, e = np.int64(0), np.int64(0)  # a column without entries has score 0, exactly
        highest = np.int64(2**62)  # that sign * G can be, where more is known than score and slack
        if cell < score.size:
            label = cell // K
            g, e = np.int64(score[cell]), np.int64(0) if sure else slack[min(label, HEAVY)]
            if sc.ceiling >= 0 and label >= HEAVY:
                # An entry adds at most S: of a column with few the number says more than a score of long ago.
                lo, hi = _span(matrix, label)
                most_units = np.int64(hi - lo) * sc.resolution
                if most_units < e:
                    g, e = np.int64(0), most_units
                highest = sc.ceiling
        if log_weight + kappa * (top - min(sign * g + e, highest)) < -ENVELOPE_ROUNDING:
            return cell, sign, OUTSIDE, log_weight, 0.0, g, e
        least = max(log_weight + kappa * (top - sign * g - e), 0.0)  # - log of the upper end
        most = log_weight + kappa * (top - sign * g + e)
        if most < 7.0:
            u = rng.random()
            # The margins are wider than the error of exp.
            if u < math.exp(-most) * (1.0 - 2.0**-30):
                return cell, sign, ACCEPTED, log_weight, u, g, e
            if u <= math.exp(-least) * (1.0 + 2.0**-30):
                return cell, sign, NEAR, log_weight, u, g, e
        else:
            # Small probabilities keep their relative precision: zero bits first.
            n = np.int64(least / LN2)
            if _zeros(rng, n):
                return cell, sign, FAR, log_weight, n * LN2, g, e
    return np.int64(-1), np.int64(0), STALE, 0.0, 0.0, np.int64(0), np.int64(0)


@_inner
def _draw(st, rng, t):
    """(cell, sign) with probability proportional to e^{kappa s G}, exactly at the true margins.

    The cell is -1 and `event` says what is needed first if there can be no draw yet: a trial that
    was broken off leaves no trace, so the law does not depend on when that happens. BROKEN ends the run: a score is
    further off than its slack says, or a proposal would be accepted with a probability above one.
    """
    sampler, sc = st.sampler, st.sc
    if sc.n_risers > 0:
        _raise_cells(sampler, sc)
    if sc.rebuild:
        sc.event = REBUILD
        return np.int64(-1), np.int64(0)
    sure = sc.exact_at == t and not sc.boxes
    while True:
        cell, sign, verdict, log_weight, u, g, e = _propose(st.matrix, sampler, sc, rng, sure)
        if verdict == STALE:
            sc.event = RETUNE
            return cell, sign
        if verdict == OUTSIDE:
            sc.event = BROKEN
            return np.int64(-1), np.int64(0)
        if verdict != ACCEPTED:
            off = False
            if e > 0:
                exact = _exact_score(st.matrix, st.rows, sc, cell, t)
                off = abs(exact - g) > e
                g = exact
            x = log_weight + sc.kappa * (sc.top - sign * g)
            if off or x < -ENVELOPE_ROUNDING:
                sc.event = BROKEN
                return np.int64(-1), np.int64(0)
            if verdict == FAR:
                n = np.int64(max(x - u, 0.0) / LN2)
                x -= u + n * LN2
                u = rng.random() if _zeros(rng, n) else np.inf
            if not u < math.exp(-x):
                continue
        sc.debt = max(0, sc.debt - 5)
        return cell, sign


# ---- the step ----


@_inner
def _serve(st, t, drawing):
    """Bring the scores within their slack of step t; False if run.py must help (see `event`)."""
    rows, calendar, sc = st.rows, st.calendar, st.sc
    if sc.boxes:
        if calendar.head[t] >= 0:
            _collect_due(rows, calendar, sc, t)
        if sc.n_leavers > 0:
            _renew(st.matrix, rows, calendar, st.sampler, sc, t)
        return sc.event == NOTHING
    if sc.fresh_at != t:
        lag_of_rows(rows, sc, t)
    if sc.lag > sc.reserve and drawing and sc.seek > 0:
        _catch_up(st.matrix, rows, st.sampler, sc, t)
    elif sc.lag > sc.reserve:
        sc.event = LAGS
    return sc.event == NOTHING


@_inner
def _catch_up(matrix, rows, sampler, sc, t):
    """All scores from the slopes of step t: what `Run._catch_up` does where it does not look for leaders.

    Between two looks every pull is one of all columns, so none has drifted and the slack stays as it is.
    """
    score, q, fresh = sampler.score, rows.q, rows.fresh
    for i in range(q.size):
        q[i] = fresh[i]
    pull(matrix, q, score, sc, 0, matrix.begin.size)
    light = np.int64(0)
    for cell in range(min(HEAVY * sc.outputs, score.size), score.size):
        light = max(light, abs(np.int64(score[cell])))
    sc.light, sc.ceiling, sc.lag, sc.exact_at = light, -1, 0, t
    sc.pulls += 1
    sc.seek -= 1
    rebuild(sampler, sc)


@_inner
def _move(st, t, cell, sign):
    """Move along the vertex (the shrink is in _scale) and note the rows that leave their box."""
    matrix, rows, calendar, sc = st.matrix, st.rows, st.calendar, st.sc
    v, mref, due, entries, shares = rows.v, rows.mref, calendar.due, matrix.entries, matrix.shares
    K, theta, boxes = sc.outputs, sc.theta, sc.boxes
    label, k = cell // K, cell % K
    if label >= matrix.begin.size:
        return  # a column without entries: no row moves
    step = -sign * (t + 2.0)
    scale = _scale(sc, t + 1)
    n = sc.n_leavers
    lo, hi = _span(matrix, label)
    full = np.int64(hi - lo) == rows.y.size
    for p in range(lo, hi):
        i = np.int64(_row_at(entries, full, lo, p))
        v[i * K + k] += step * np.float64(_share_at(entries, shares, full, lo, p))
        if not boxes:
            continue
        if _outside(v, mref, K, theta, i, scale):
            if due[i] != t + 1:  # else the calendar will bring it
                rows.leavers[n] = i
                n += 1
        elif _outside(v, mref, K, theta, i, _scale(sc, due[i])):
            # The box must also hold at the step the row is due (or at the last step).
            _schedule(v, mref, due, calendar.after, calendar.before, calendar.head, sc, i, t + 1)
    sc.n_leavers = n
    sc.debt = max(0, sc.debt - np.int64(hi - lo) // 4)
    sc.renewed = max(0, sc.renewed - sc.afford)


@_kernel
def advance(st, rng, first, last, mode):
    """Steps first..last-1; returns the step to go on with, before `last` only if there is an event.

    DRAW picks; SERVE stops before the pick, and MOVE begins after one that stands in the history.
    """
    sc = st.sc
    free = mode == DRAW  # the law does not depend on boxes: they may end
    for t in range(first, last):
        if free and not sc.boxes and t > sc.look:
            sc.event = LOOK
            return t
        if mode != MOVE and not _serve(st, t, mode == DRAW):
            return t
        if mode == SERVE:
            continue
        cell, sign = st.cells[t], np.int64(st.signs[t])
        if mode == DRAW:
            cell, sign = _draw(st, rng, t)
            if cell < 0:
                return t
            st.cells[t], st.signs[t] = cell, sign
        _move(st, t, cell, sign)
        if free and sc.boxes and sc.n_leavers > sc.refresh_cost:
            sc.event = CROWDED
            return t + 1
        if free and sc.boxes and sc.renewed > 4 * sc.refresh_cost:
            sc.event = RETUNE
            return t + 1
    return last


# ---- layout ----


@_kernel
def count_groups(indices, shift, groups):
    """Entries of each group of 2^shift columns: few enough counts to stay cached."""
    bits = np.uint64(shift)
    for p in range(indices.size):
        groups[np.uint64(indices[p]) >> bits] += 1


@_kernel
def bound_buckets(groups, shift, most, bucket_of, columns, ends):
    """Runs of groups with about `most` entries and at most BLOCK columns: first column and end of each; how many."""
    n, held, first, at = 0, np.int64(0), 0, np.int64(0)
    for g in range(groups.size):
        if g > first and (held + groups[g] > most or (g + 1 - first) << shift > BLOCK):
            columns[n + 1], ends[n] = g << shift, at
            n, held, first = n + 1, np.int64(0), g
        bucket_of[g] = n
        held += groups[g]
        at += groups[g]
    columns[n + 1], ends[n] = groups.size << shift, at
    return n + 1


@_kernel
def scatter_rows(
    indptr, indices, values, factor, limit, shift, first, last, bucket_of, columns, places, entries
):
    """Every entry of the rows first..last-1, at most BLOCK, to its bucket: few places are written to.

    An entry is column in the bucket (16 bits), row - first (16 bits), share. Returns the largest magnitude, as bits.
    """
    largest, bits = np.uint32(0), np.uint64(shift)
    for i in range(np.uint64(first), np.uint64(last)):
        row = (i - np.uint64(first)) << np.uint64(32)
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j = np.uint64(indices[p])
            b = np.uint64(bucket_of[j >> bits])
            f = np.uint64(places[b])
            places[b] = f + np.uint64(1)
            share = _pack(0, _entry(values[p], factor, limit))
            entries[f] = (j - np.uint64(columns[b])) << np.uint64(48) | row | share
            largest = max(largest, _size_bits(share))
    return largest


@_kernel
def sort_buckets(columns, ends, counts, entries, room, places):
    """The entries of each bucket by columns, in the order of rows, and their number in each column.

    `ends[k, b]` is where bucket b ends after the k-th BLOCK of rows: an entry learns the rest of its row's number.
    """
    lo, last, within = np.uint64(0), ends.shape[0] - 1, np.uint64(2**48 - 1)
    for b in range(ends.shape[1]):
        hi, first = np.uint64(ends[last, b]), columns[b]
        width = min(columns[b + 1], counts.size) - first
        places[:width] = 0
        for f in range(lo, hi):
            entry = entries[f]
            places[entry >> np.uint64(48)] += 1
            if width > 1:
                room[f - lo] = entry
        at = np.int64(lo)
        for c in range(width):
            n = places[c]
            counts[first + c] = n
            places[c] = at
            at += n
        begin = lo
        for k in range(last + 1):
            block, end = np.uint64(k) << np.uint64(48), np.uint64(ends[k, b])
            for f in range(begin, end):
                entry = room[f - lo] if width > 1 else entries[f]
                c = entry >> np.uint64(48)
                entries[np.uint64(places[c])] = (entry & within) + block
                places[c] += 1
            begin = end
        lo = hi


@_kernel
def choose_heavy(counts, tally, heavy):
    """The fullest columns in their order; returns how many. `tally` becomes the number of columns of each count."""
    for j in range(counts.size):
        tally[counts[j]] += 1
    floor, n_above = tally.size, np.int64(0)
    while floor > 1 and n_above + tally[floor - 1] <= heavy.size:
        floor -= 1
        n_above += tally[floor]
    spare = (
        heavy.size - n_above if floor > 1 else 0
    )  # the first ones of count floor - 1 are heavy as well
    n = 0
    for j in range(counts.size):
        c = np.int64(counts[j])
        if c >= floor or (c == floor - 1 and spare > 0):
            spare -= c < floor
            heavy[n] = j
            n += 1
    return n


@_inner
def _mark_last(begin, n_heavy, label):
    """The next label, if there is one, does not begin where this light one ends."""
    if label >= n_heavy and begin[label] >= 0:
        begin[label] = ~begin[label]


@_kernel
def label_columns(counts, heavy, begin, heavy_end, marks):
    """Labels, heavy columns first; entries stay where they are, in the order of columns.

    A column without entries is overwritten by the next one, so that no branch is guessed: `begin` has room for one
    label more than there are.
    """
    at, label, h = np.int64(0), np.int64(heavy.size), np.int64(0)
    for word in range(marks.shape[0]):
        first, light, full = 64 * word, np.uint64(0), np.uint64(0)
        marks[word, 2], marks[word, 3] = label, h
        for j in range(first, min(first + 64, counts.size)):
            n, bit = np.int64(counts[j]), np.uint64(1) << np.uint64(j - first)
            if h < heavy.size and heavy[h] == j:
                begin[h], heavy_end[h] = at, at + n
                full |= bit
                h += 1
                _mark_last(begin, heavy.size, label - 1)
            else:
                begin[label] = at
                light |= bit if n > 0 else np.uint64(0)
                label += np.int64(n > 0)
            at += n
        marks[word, 0], marks[word, 1] = light, full
    _mark_last(begin, heavy.size, label - 1)


@_inner
def _label(marks, j):
    """The label of a column that has entries, by those before it among 64 columns; without a branch to guess."""
    word, at = j >> np.uint64(6), j & np.uint64(63)
    kind = (marks[word, 1] >> at) & np.uint64(1)
    below = marks[word, kind] & ((np.uint64(1) << at) - np.uint64(1))
    return np.int64(marks[word, np.uint64(2) + kind] + ones(below))


@_inner
def _empty(marks, width, n_labels, word):
    """The bits of columns without entries among 64 columns, and the label of the first of them: they come last."""
    inside = np.uint64(2**64 - 1) >> np.uint64(64 - min(64, width - 64 * word))
    before = np.int64(marks[word, 2] - marks[0, 2] + marks[word, 3])  # that have entries
    return ~(marks[word, 0] | marks[word, 1]) & inside, n_labels + 64 * word - before


@_kernel
def find_labels(marks, width, n_labels, columns, found):
    """The labels of columns; those of columns without entries come after the others."""
    for c in range(columns.size):
        word, bit = columns[c] >> 6, np.uint64(1) << np.uint64(columns[c] & 63)
        empty, first = _empty(marks, width, n_labels, word)
        if empty & bit != np.uint64(0):
            found[c] = first + np.int64(ones(empty & (bit - np.uint64(1))))
        else:
            found[c] = _label(marks, np.uint64(columns[c]))


@_kernel
def close_ranks(matrix, n_rows):
    """The numbers of columns that own all rows move together: half the memory is read."""
    for label in range(matrix.begin.size):
        lo, hi = _span(matrix, label)
        if np.int64(hi - lo) == n_rows:
            for i in range(hi - lo):  # never ahead of what is still to be read
                matrix.shares[lo + lo + i] = _share(matrix.entries[lo + i])


@_inner
def _find(bits, first, column, wanted, at, stop, found):
    """The columns of wanted labels, from wanted[at] on, that are among the next ones."""
    end = first + np.int64(ones(bits))
    while at < stop and wanted[at] < end:
        rest = bits
        for _ in range(wanted[at] - first):
            rest &= rest - np.uint64(1)  # without its lowest bit
        found[at] = column + np.int64(ones((rest ^ (rest - np.uint64(1))) >> np.uint64(1)))
        at += 1
    return at


@_kernel
def find_columns(marks, width, n_labels, wanted, found):
    """The columns of rising labels; those after the last are columns without entries."""
    e = np.searchsorted(wanted, n_labels)
    a, b, c = 0, min(np.searchsorted(wanted, HEAVY), e), e
    last_heavy = b
    for word in range(marks.shape[0]):
        column, light, heavy = 64 * word, np.int64(marks[word, 2]), np.int64(marks[word, 3])
        a = _find(marks[word, 1], heavy, column, wanted, a, last_heavy, found)
        b = _find(marks[word, 0], light, column, wanted, b, e, found)
        empty, first = _empty(marks, width, n_labels, word)
        c = _find(empty, first, column, wanted, c, wanted.size, found)


@_summing
def column_bounds(matrix, largest, mass, norm, count):
    """Sum of magnitudes, L2 norm and number of entries of the heavy columns; the largest of all others.

    The order of a sum is free here: bounds have a margin for rounding. No entry is above `largest`, so a short column
    need not be read to know that others weigh more.
    """
    longest, n_labels = np.int64(0), matrix.begin.size
    for label in range(HEAVY, n_labels):
        lo, hi = _span(matrix, label)
        longest = max(longest, np.int64(hi - lo))
    for label in range(n_labels):
        c = min(label, HEAVY)
        lo, hi = _span(matrix, label)
        n = np.int64(hi - lo)
        count[c] = n if c < HEAVY else longest
        if c < HEAVY or n * largest > mass[c] or n * largest * largest > norm[c] * norm[c]:
            total, squares = 0.0, 0.0
            if (
                n == matrix.indptr.size - 1
            ):  # two loops, each of which takes several entries at a time
                for p in range(lo + lo, lo + hi):
                    x = np.float64(abs(matrix.shares[p]))
                    total += x
                    squares += x * x
            else:
                for p in range(lo, hi):
                    x = np.float64(abs(_share(matrix.entries[p])))
                    total += x
                    squares += x * x
            mass[c], norm[c] = max(mass[c], total), max(norm[c], math.sqrt(squares))

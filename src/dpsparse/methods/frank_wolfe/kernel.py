"""The Frank-Wolfe step fused with its private draw: work proportional to the non-zeros touched.

Paper: Raff, Khanna, Lu, "Scaling Up Differentially Private LASSO" (Alg. 2), with another sampler
than its Alg. 4 and without its staleness. README.md beside this file explains boxes, calendar, hot
and cold with pictures; read it first.

    pick (cell j, sign s) with probability proportional to e^{kappa s G_j}
    G_j  = sum_i round(S q_i x_ij)                q_i = slope of row i / slope_bound, whole units
    v_i += -s (t+2) x_ij      for the rows that own j          margin m_i = offset + scale(t) v_i
    scale(t) = 2 radius c / ((t+1)(t+2))          steps 2/(t+3) from w = 0, in closed form

There are two ways to make a step, and a pick has the same law in both:

    BOXES   scores may be stale, never by more than `slack`: every row's margin stays within theta of
            the margin its slope was taken at. A draw in doubt reads column j and computes G_j.
    EXACT   all slopes and all scores are computed at every step; the slack is 0.

Which way pays is decided in run.py: `advance` stops at the step, says so in `event`, and is called
again. Proofs: docs/proofs/fast_frank_wolfe.md, docs/proofs/selection.md.

Inner functions have no Python wrappers and take the groups of arrays they use, each is called from as few
places as possible, and nothing is assigned to slices: that keeps the time to compile short. All is in one
file but for the losses, because Numba's cache does not see edits in another.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from dpsparse.jit import njit
from dpsparse.rows.loss_kernels import (
    SLOPE_UNITS,
    SOFTMAX,
    entry_over_bound,
    exp,
    slope,
    whole_slope,
)

DRAW, SERVE, MOVE = 0, 1, 2  # what `advance` does with a step
EXACT, OPENING, BOXES = 0, 1, 2  # how it is made; OPENING: boxes will be centred first
# Why `advance` stopped. BROKEN: a promise of the sampler does not hold, so no draw may be made.
NOTHING, RETUNE, BROKEN = 0, 1, 2

B = 20  # weights span 2^-20 .. 1 of the top; totals of 2^31 cells stay below 2^52
LN2 = math.log(2.0)

# The numbers of a run. Numba passes a record of them by reference, so that kernels can change them.
SCALARS = np.dtype(
    [
        # The problem: constant through a run.
        ("outputs", np.int64),  # K; a cell is column * K + output
        ("loss", np.int64),
        ("steps", np.int64),
        ("resolution", np.int64),  # S: whole units a row may add to a score
        ("n_cells", np.int64),
        ("intercept", np.int64),  # the constant column, -1 without one
        ("kappa", np.float64),  # per unit of score; 0 for the arg max
        ("reach", np.float64),  # radius * feature_bound
        ("factor", np.float64),  # 1 / feature_bound
        ("slope_bound", np.float64),
        ("smoothness", np.float64),
        ("cutoff", np.float64),
        # How stale the scores may be.
        ("way", np.int64),
        ("theta", np.float64),  # half width of a box
        ("fresh_at", np.int64),  # step at which all slopes and scores were last computed
        ("n_leavers", np.int64),  # rows that left their box since the last draw
        # Is it worth it? All in row renewals.
        ("renewed", np.int64),  # spent, less what as many steps without boxes would cost
        ("refresh_cost", np.int64),  # of all rows and all scores
        ("look", np.int64),  # step at which boxes are tried again
        # The sampler.
        ("top", np.int64),  # depth 0 begins here
        ("width", np.int64),  # of a depth, in units of score: weights halve
        ("edge", np.int64),  # the depth of all cells that are not listed
        ("total", np.int64),  # of all proposal weights
        ("rebuild", np.int64),
        ("n_risers", np.int64),
        ("debt", np.int64),  # rejections not yet excused by accepted draws
        ("debt_limit", np.int64),
        # Why `advance` stopped, and what it did so far.
        ("event", np.int64),
        ("verified", np.int64),
        ("scattered", np.int64),
        ("refreshes", np.int64),
    ]
)


class Matrix(NamedTuple):
    """The rows as they came and, beside them, the same entries by columns."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray  # not yet divided by the feature bound: `entry_over_bound` does it
    start: np.ndarray  # (columns + 1,) where the entries of a column begin
    entries: np.ndarray  # each uint64: a row, and the bits of entry / feature bound in float32


class Rows(NamedTuple):
    """One number per row and output, (n * K,), unless said otherwise."""

    y: np.ndarray  # (n,) class code or target
    v: np.ndarray  # margins in units of _scale, without the offset
    mref: np.ndarray  # scale * v at which the stored slopes were taken: centre of the box
    q: np.ndarray  # slopes behind the scores, int32 in units of slope_bound * 2^-28
    offset: np.ndarray  # (K,) public margin of a row without features
    units: np.ndarray  # (K,) slopes of the row at hand
    leavers: np.ndarray  # (n,) rows that need a new box before the next draw


class Calendar(NamedTuple):
    """Doubly linked lists of rows by the step at which they leave their box."""

    due: np.ndarray  # `steps` means never
    after: np.ndarray
    before: np.ndarray
    head: np.ndarray  # (steps + 1,) first row of each list


class Sampler(NamedTuple):
    """Scores, how far they may be off, and the lists of hot cells."""

    score: np.ndarray  # int32, or int64 where 32 bits might not do
    slack: np.ndarray  # by column: how far a score may be from exact
    slot: (
        np.ndarray
    )  # position in `members`, 0 for a cold cell; zeros that nobody writes take no memory
    members: np.ndarray  # the first place is not used
    depth_of: np.ndarray  # of each member
    start: np.ndarray  # (B + 2,) of each depth in `members`
    size: np.ndarray  # (B + 1,)
    risers: np.ndarray  # cells seen above their depth since the last draw


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
_inner: Any = njit(no_cpython_wrapper=True, **_OPTIONS)  # type: ignore[call-overload, unused-ignore]


@_inner
def _scale(sc, t):
    return 2.0 * sc.reach / ((t + 1.0) * (t + 2.0))


# ---- where numbers become whole: the sensitivity of a score is decided here and in rows/loss_kernels.py ----


@_inner
def _part(q, unit, x):
    """What a row adds to a score: exact product of 29 and 24 bits, rounded once: at most S."""
    return np.int32(np.rint(q * unit * np.float64(x)))


@_inner
def _share(entry):
    return np.uint32(entry & np.uint64(0xFFFFFFFF)).view(np.float32)


# ---- slopes and scores ----


@_inner
def _row_slopes(margins, scale, y, offset, units, sc, i):
    """Slopes of row i at offset + scale * margins into `units`.

    Every slope is taken by these formulas, here or in `_refresh`: an exact score is the same bit for bit, whoever
    asked for it.
    """
    K = sc.outputs
    at = i * K
    unit = SLOPE_UNITS / sc.slope_bound
    if sc.loss != SOFTMAX:
        m = offset[0] + scale * margins[at]
        units[0] = whole_slope(slope(sc.loss, m, y[i], sc.cutoff) * unit)
        return
    largest = offset[0] + scale * margins[at]
    for k in range(1, K):
        largest = max(largest, offset[k] + scale * margins[at + k])
    total = 0.0
    for k in range(K):
        total += exp(offset[k] + scale * margins[at + k] - largest)
    for k in range(K):
        p = exp(offset[k] + scale * margins[at + k] - largest) / total
        units[k] = whole_slope((p - (k == y[i])) * unit)


@_inner
def _refresh(matrix, rows, score, sc, t):
    """All slopes at the true margins of step t, and all scores from them, column by column."""
    v, y, q, entries = rows.v, rows.y, rows.q, matrix.entries
    scale, K = _scale(sc, t), np.uint64(sc.outputs)
    if sc.loss == SOFTMAX:
        for i in range(y.size):
            _row_slopes(v, scale, y, rows.offset, rows.units, sc, i)
            for k in range(sc.outputs):
                q[i * sc.outputs + k] = rows.units[k]
    else:  # the same formulas, in a loop that the processor can take several at a time
        loss, cutoff, offset, unit = (
            sc.loss,
            sc.cutoff,
            rows.offset[0],
            SLOPE_UNITS / sc.slope_bound,
        )
        for i in range(y.size):
            q[i] = whole_slope(slope(loss, offset + scale * v[i], y[i], cutoff) * unit)
    unit, lo = sc.resolution / SLOPE_UNITS, np.uint64(0)
    for j in range(matrix.start.size - 1):
        hi = np.uint64(matrix.start[j + 1])
        if sc.outputs == 1:  # two loops, because this one takes several entries at a time
            g = np.int64(0)
            for p in range(lo, hi):
                g += _part(q[entries[p] >> np.uint64(32)], unit, _share(entries[p]))
            score[j] = g
        else:
            for k in range(K):
                g = np.int64(0)
                for p in range(lo, hi):
                    g += _part(q[(entries[p] >> np.uint64(32)) * K + k], unit, _share(entries[p]))
                score[np.uint64(j) * K + k] = g
        lo = hi
    sc.fresh_at = t
    sc.refreshes += 1


@_inner
def _exact_score(matrix, rows, sc, cell, t):
    """The score of one cell at the true margins."""
    K, unit, scale = sc.outputs, sc.resolution / SLOPE_UNITS, _scale(sc, t)
    column, k = cell // K, cell % K
    g, lo, hi = np.int64(0), np.int64(matrix.start[column]), np.int64(matrix.start[column + 1])
    for p in range(lo, hi):
        entry = matrix.entries[p]
        _row_slopes(
            rows.v, scale, rows.y, rows.offset, rows.units, sc, np.int64(entry >> np.uint64(32))
        )
        g += _part(rows.units[k], unit, _share(entry))
    sc.verified += hi - lo
    sc.debt += (hi - lo) // 4
    sc.renewed += (hi - lo) // 8
    return g


@_kernel
def exact_scores(matrix, rows, sc, cells, t, out):
    """The scores of some cells at the true margins."""
    for c in range(cells.size):
        out[c] = _exact_score(matrix, rows, sc, cells[c], t)


# ---- boxes and calendar ----


@_inner
def _outside(v, mref, K, theta, i, scale):
    out = False
    for k in range(i * K, i * K + K):
        out |= abs(scale * v[k] - mref[k]) > theta
    return out


@_inner
def _schedule(v, mref, calendar, sc, i, t):
    """Enter row i at the step t' at which m (t+1)(t+2)/((t'+1)(t'+2)) will have left its box."""
    due, after, before, head = calendar.due, calendar.after, calendar.before, calendar.head
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


@_inner
def _open_boxes(rows, calendar, sc, t):
    """Boxes of all rows, centred at the margins that the slopes were just taken at, and a new calendar."""
    scale = _scale(sc, t)
    for k in range(rows.v.size):
        rows.mref[k] = scale * rows.v[k]
    for day in range(calendar.head.size):
        calendar.head[day] = -1
    renewed = sc.renewed
    for i in range(calendar.due.size):
        calendar.due[i] = sc.steps
        _schedule(rows.v, rows.mref, calendar, sc, i, t)
    sc.n_leavers, sc.way, sc.renewed = 0, BOXES, renewed


@_inner
def _renew(matrix, rows, calendar, sampler, sc, t):
    """New boxes for the leavers: new slopes, and their change added to the scores."""
    v, mref, q, units, values = rows.v, rows.mref, rows.q, rows.units, matrix.values
    score, slack, slot, risers = sampler.score, sampler.slack, sampler.slot, sampler.risers
    K, unit, scale, ahead = sc.outputs, sc.resolution / SLOPE_UNITS, _scale(sc, t), 0.5 * sc.theta
    top, width, n_risers = sc.top, sc.width, sc.n_risers
    cold_top = top - sc.edge * width
    for r in range(sc.n_leavers):
        i = np.int64(rows.leavers[r])
        # The box is centred ahead of the margins, on their way to zero: they stay for longer.
        for k in range(i * K, i * K + K):
            m = scale * v[k]
            mref[k] = m - min(max(m, -ahead), ahead)
        _row_slopes(mref, 1.0, rows.y, rows.offset, units, sc, i)
        lo, hi = np.int64(matrix.indptr[i]), np.int64(matrix.indptr[i + 1])
        for k in range(K):
            old, new = q[i * K + k] * unit, units[k] * unit
            q[i * K + k] = units[k]
            if old == new:
                continue
            sc.scattered += hi - lo
            for p in range(lo, hi + (sc.intercept >= 0)):
                if p < hi:
                    column = np.int64(matrix.indices[p])
                    x = entry_over_bound(values[p], sc.factor)
                else:
                    column, x = sc.intercept, np.float32(1.0)
                cell = column * K + k
                g = np.int64(score[cell]) + _part(new, 1.0, x) - _part(old, 1.0, x)
                score[cell] = g
                upper = abs(g) + slack[column]
                if upper > cold_top:
                    s = slot[cell]
                    if s == 0 or upper > top - np.int64(sampler.depth_of[s]) * width:
                        if n_risers < risers.size:
                            risers[n_risers] = cell
                        n_risers += 1
        _schedule(v, mref, calendar, sc, i, t)
    sc.n_risers, sc.n_leavers = n_risers, 0


# ---- sampler ----


@_inner
def _depth(gap, width):
    """gap // width, rounded down exactly, and at most B: where all numbers fit, the quotient of floats never reaches
    a whole number that the true one does not, and is found several times faster."""
    if gap >= B * width:
        return np.int64(B)
    if width < 2**40:
        return np.int64(np.float64(gap) / np.float64(width))
    return gap // width


@_inner
def _append(sampler, sc, cell, d):
    """List a cell at depth d, or ask for a rebuild if there is no room."""
    s = sampler.start[d] + sampler.size[d]
    if s == sampler.start[d + 1]:
        sc.rebuild = 1
        return
    sampler.size[d] += 1
    sampler.members[s], sampler.depth_of[s], sampler.slot[cell] = cell, d, s
    sc.total += 1 << (B - d)


@_inner
def _rebuild(sampler, sc):
    """Choose the top and the cold depth from a histogram of bounds; list the hot cells."""
    score, slot, slack, members = sampler.score, sampler.slot, sampler.slack, sampler.members
    start, size = sampler.start, sampler.size
    K, width, largest = sc.outputs, sc.width, np.int64(0)
    for j in range(slack.size):
        for cell in range(j * K, j * K + K):
            largest = max(largest, abs(np.int64(score[cell])) + slack[j])
    top = (
        largest // width + 4
    ) * width  # three empty depths above the largest cell, so that it may rise
    for d in range(B + 1):
        for m in range(start[d], start[d] + size[d]):
            slot[members[m]] = 0
        size[d] = 0
    for j in range(slack.size):
        for cell in range(j * K, j * K + K):
            size[_depth(top - abs(np.int64(score[cell])) - slack[j], width)] += 1
    mass = 0.0
    for d in range(B + 1):
        mass += size[d] * 2.0**-d
    # Listing a cell costs memory traffic at every touch, not listing it costs rejections: the cold
    # set may take the weight that one cell at its depth has, times all cells, up to 1.3 of the
    # weight that would be proposed anyway.
    edge = 0
    while edge < B and sc.n_cells * 2.0**-edge > 1.3 * mass:
        edge += 1
    for d in range(B + 1):
        room = size[d] + size[d] // 2 + 64 if d < edge else 0
        start[d + 1] = start[d] + room
        size[d] = 0
    sc.top, sc.edge, sc.total = top, edge, sc.n_cells << (B - edge)
    sc.n_risers, sc.rebuild, sc.debt = 0, 0, 0
    cold_top = top - edge * width
    for j in range(slack.size):
        for cell in range(j * K, j * K + K):
            bound = abs(np.int64(score[cell])) + slack[j]
            if bound > cold_top:
                _append(sampler, sc, cell, _depth(top - bound, width))


@_inner
def _raise_cells(sampler, sc):
    """Move the cells that rose above their depth."""
    slot, members, depth_of, size = sampler.slot, sampler.members, sampler.depth_of, sampler.size
    if sc.n_risers > sampler.risers.size:
        sc.rebuild = 1
        return
    for r in range(sc.n_risers):
        cell = np.int64(sampler.risers[r])
        gap = sc.top - abs(np.int64(sampler.score[cell])) - sampler.slack[cell // sc.outputs]
        if gap < 0:
            sc.rebuild = 1
            return
        s, d = slot[cell], sc.edge
        if s > 0:
            d = np.int64(depth_of[s])
        if gap >= d * sc.width:
            continue  # it sank again
        if s > 0:
            size[d] -= 1
            moved = members[sampler.start[d] + size[d]]
            members[s], slot[moved], slot[cell] = moved, s, 0
            sc.total -= 1 << (B - d)
        _append(sampler, sc, cell, _depth(gap, sc.width))
    sc.n_risers = 0


@_inner
def _zeros(rng, n):
    """True with probability 2^-n, exactly."""
    while n >= 53:
        if rng.random() != 0.0:
            return False
        n -= 53
    return n == 0 or rng.random() < 2.0 ** (-n)


@_inner
def _proposed(sampler, edge, cold_total, r):
    """The cell and the depth at place r of all weights; -1 for a hot cell found in the cold set: it is proposed by its
    depth."""
    if r < cold_total:
        cell = r >> (B - edge)
        return (np.int64(-1) if sampler.slot[cell] > 0 else cell), edge
    r -= cold_total
    d = np.int64(0)
    while r >= sampler.size[d] << (B - d):
        r -= sampler.size[d] << (B - d)
        d += 1
    return np.int64(sampler.members[sampler.start[d] + (r >> (B - d))]), d


@_inner
def _draw(st, rng, t):
    """(cell, sign) with probability proportional to e^{kappa s G}, exactly at the true margins.

    A proposal (cell, sign) of weight W = 2^(B-d) is accepted with probability e^{kappa (s G - top)} 2^B / W.
    The stale score tells two ends of it; where both say the same the exact G is not needed.
    The cell is -1 and `event` says why if there is no draw. RETUNE: too many rejections; a trial that was broken off
    leaves no trace, so the law does not depend on when that happens. BROKEN ends the run: a score is
    further off than its slack says, or a proposal would be accepted with a probability above one.
    """
    sampler, sc = st.sampler, st.sc
    if sc.n_risers > 0:
        _raise_cells(sampler, sc)
    if sc.rebuild:
        _rebuild(sampler, sc)
    kappa, top, edge, total = sc.kappa, sc.top, sc.edge, 2 * sc.total
    cold_total = sc.n_cells << (B - edge)
    limit = ((1 << 53) // total) * total
    while sc.debt <= sc.debt_limit:
        r = np.int64(rng.random() * 2.0**53)  # 53 uniform bits, exactly
        if r >= limit:
            continue
        r %= total
        sign = 1 - 2 * (r & 1)
        sc.debt += 1
        cell, d = _proposed(sampler, edge, cold_total, r >> 1)
        if cell < 0:
            continue
        g, e = np.int64(sampler.score[cell]), np.int64(sampler.slack[cell // sc.outputs])
        least = kappa * (top - sign * g - e) - d * LN2  # - log of the upper end
        if least < -1e-9:  # rounding alone stays below 1e-12
            sc.event = BROKEN
            break
        # Small probabilities keep their relative precision: zero bits first, which both ends require.
        n = np.int64(max(least, 0.0) / LN2)
        if n > 0 and not _zeros(rng, n):
            continue
        spent = n * LN2
        most, u = kappa * (top - sign * g + e) - d * LN2 - spent, np.inf
        if most < 7.0:
            u = rng.random()
            # The margins are wider than the error of exp.
            if u > math.exp(spent - least) * (1.0 + 2.0**-30):
                continue
        if not u < math.exp(-most) * (1.0 - 2.0**-30):
            if e > 0:
                exact = _exact_score(st.matrix, st.rows, sc, cell, t)
                if abs(exact - g) > e:
                    sc.event = BROKEN
                    break
                g = exact
            x = kappa * (top - sign * g) - d * LN2 - spent
            if u == np.inf:
                n = np.int64(max(x, 0.0) / LN2)
                x -= n * LN2
                u = rng.random() if _zeros(rng, n) else np.inf
            if not u < math.exp(-x):
                continue
        sc.debt = max(0, sc.debt - 5)
        return cell, sign
    else:
        sc.event = RETUNE
    return np.int64(-1), np.int64(0)


# ---- the step ----


@_inner
def _serve(st, t):
    """Bring the scores within their slack of step t."""
    rows, calendar, sc = st.rows, st.calendar, st.sc
    if sc.way == BOXES:
        i = np.int64(calendar.head[t])
        while i >= 0:  # the rows that leave their box at this step
            rows.leavers[sc.n_leavers] = i
            sc.n_leavers += 1
            i = np.int64(calendar.after[i])
        if sc.n_leavers <= sc.refresh_cost:
            _renew(st.matrix, rows, calendar, st.sampler, sc, t)
            return
        sc.renewed += 2 * sc.refresh_cost  # a dense pick: everything anew instead of row by row
    if sc.fresh_at != t:
        _refresh(st.matrix, rows, st.sampler.score, sc, t)
    if sc.way != EXACT:
        _open_boxes(rows, calendar, sc, t)
    sc.rebuild = 1


@_inner
def _move(matrix, rows, calendar, sc, t, cell, sign):
    """Move along the vertex (the shrink is in _scale) and note the rows that leave their box."""
    v, mref, due, entries = rows.v, rows.mref, calendar.due, matrix.entries
    K, theta, boxes = sc.outputs, sc.theta, sc.way == BOXES
    column, k = cell // K, cell % K
    step, scale = -sign * (t + 2.0), _scale(sc, t + 1)
    for p in range(np.int64(matrix.start[column]), np.int64(matrix.start[column + 1])):
        i = np.int64(entries[p] >> np.uint64(32))
        v[i * K + k] += step * np.float64(_share(entries[p]))
        if not boxes or due[i] == t + 1:
            continue  # the calendar will bring it
        if _outside(v, mref, K, theta, i, scale):
            rows.leavers[sc.n_leavers] = i
            sc.n_leavers += 1
        elif _outside(v, mref, K, theta, i, _scale(sc, due[i])):
            # The box must also hold at the step the row is due (or at the last step).
            _schedule(v, mref, calendar, sc, i, t + 1)
    sc.debt = max(0, sc.debt - np.int64(matrix.start[column + 1] - matrix.start[column]) // 4)
    sc.renewed = max(0, sc.renewed - sc.refresh_cost)


@_kernel
def advance(st, rng, first, last, mode):
    """Steps first..last-1; returns the step to go on with, before `last` only if there is an event.

    DRAW picks; SERVE stops before the pick, and MOVE begins after one that stands in the history.
    """
    sc = st.sc
    for t in range(first, last):
        if mode == DRAW and sc.way == EXACT and t >= sc.look:
            sc.event = RETUNE
            return t
        if mode != MOVE:
            _serve(st, t)
        if mode == SERVE:
            continue
        cell, sign = st.cells[t], np.int64(st.signs[t])
        if mode == DRAW:
            cell, sign = _draw(st, rng, t)
            if cell < 0:
                return t
            st.cells[t], st.signs[t] = cell, sign
        _move(st.matrix, st.rows, st.calendar, sc, t, cell, sign)
        if mode == DRAW and sc.renewed > 4 * sc.refresh_cost:
            sc.event = RETUNE
            return t + 1
    return last


# ---- layout ----


@_kernel
def transpose(
    indptr, indices, values, factor, shift, start, group, within, room, entries, mass
):  # fmt: skip
    """The entries by columns, in the order of rows, and of each column where it begins and a bound on its sum of
    magnitudes. Returns the number of entries of the longest.

    First by groups of 2^shift columns, at most 2^16, which stay in the caches while each is sorted; `within` is the
    place of an entry's column in its group.
    """
    one, bits, mask = np.uint64(1), np.uint64(shift), np.uint64((1 << shift) - 1)
    n_columns, longest = start.size - 1, np.int64(0)
    for p in range(indices.size):
        start[np.uint64(indices[p]) + one] += 1
    for j in range(n_columns):
        longest = max(longest, np.int64(start[j + 1]))
        start[j + 1] += start[j]
    for g in range(group.size):
        group[g] = start[min(g << shift, n_columns)]
    for i in range(np.uint64(indptr.size - 1)):
        row = i << np.uint64(32)
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + one])):
            column = np.uint64(indices[p])
            at = np.uint64(group[column >> bits])
            group[column >> bits] = at + one
            share = np.float32(entry_over_bound(values[p], factor)).view(np.uint32)
            entries[at], within[at] = row | np.uint64(share), column & mask
    lo = np.int64(0)
    for g in range(group.size):  # each of them ends now where the next one begins
        first, hi = np.uint64(g) << bits, np.int64(group[g])
        for p in range(lo, hi):
            room[p - lo] = entries[p]
        for p in range(lo, hi):
            column = first + np.uint64(within[p])
            at = np.uint64(start[column])
            start[column] = at + one
            entries[at] = room[p - lo]
        for j in range(g << shift, min((g + 1) << shift, n_columns)):
            total = 0.0
            for p in range(lo, np.int64(start[j])):
                total += np.float64(abs(_share(entries[p])))
            mass[j] = np.float32(total * (1.0 + 2.0**-21))
            lo = np.int64(start[j])
    for j in range(n_columns, 0, -1):  # where a column ends the next one begins
        start[j] = start[j - 1]
    start[0] = 0
    return longest

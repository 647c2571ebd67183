"""Hot/cold sampler of the exponential mechanism, and the Frank-Wolfe step fused with it.

Paper: Raff, Khanna, Lu (002), Alg. 2, with another sampler than Alg. 4 and without the staleness.

    pick (cell j, sign s) with probability proportional to e^{kappa s G_j}
    G_j  = sum_i round(S q_i x_ij)                q_i = slope of row i / slope_bound, whole units
    v_i += -s (t+2) x_ij      for the rows that own j          margin m_i = scale(t) v_i
    scale(t) = 2 radius c / ((t+1)(t+2))          Frank-Wolfe steps 2/(t+3) from w = 0, in closed form

Slopes behind `score` may be stale, |m_i - mref_i| <= theta for every row at every draw: a row is
refreshed when touched and out of its box, or at the step its box ends. So |G_j - score_j| <= slack;
draws are settled by the two ends where they agree, otherwise by the exact G_j from column j.
Proofs: docs/proofs/fast_frank_wolfe.md, docs/proofs/selection.md.

Cost of a step: O(1) proposals + rows of the picked column + non-zeros of the rows that left their
box, or all if cheaper. One file, because Numba's cache does not see edits in another.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np
from numba import njit

LOSSES = {"logistic": 0, "squared": 1, "huber": 2, "softmax": 3}
EXACT, TOLERANCE, PUBLISHED = 0, 1, 2
DRAW, ARGMAX, REPLAY, MOVE = 0, 1, 2, 3
REJECTED, ACCEPTED, NEAR, FAR, STALE = 0, 1, 2, 3, 4

# Scalars of the state: whole numbers, then reals.
(OUTPUTS, LOSS, RESOLUTION, STEPS, FRESHNESS, EXACT_SIGN, TOP, WIDTH, COLD_WEIGHT, TOTAL, REBUILD,
 RISERS, DEBT, DEBT_LIMIT, RENEWED, AFFORD, LOOK, VERIFIED, SCATTERED, PULLS) = range(20)  # fmt: skip
KAPPA, REACH, SLOPE_BOUND, SMOOTHNESS, CUTOFF, TAU, THETA, LOG_COLD = range(8)

B = 20  # weights span 2^-20 .. 1 of the top; totals of 2^31 cells stay below 2^52
HEADROOM = 3  # empty depths above the largest cell, so that it may rise
SLOPE_BITS = 28  # slopes in units of slope_bound * 2^-28: products with float32 are exact
LN2 = math.log(2.0)
# Labels go by falling frequency: the first HEAVY have bounds of their own, all others share one.
HEAVY = 1024

_jit = njit(cache=True, error_model="numpy")


@_jit
def _scale(reals, t):
    return 2.0 * reals[REACH] / ((t + 1.0) * (t + 2.0))


# ---- rows: slopes, boxes, calendar ----
# What runs once per row takes single arrays: passing the state costs more than the work.


@_jit
def _whole(r):
    # The clip makes the sensitivity of a score exactly RESOLUTION, whatever rounding did to r.
    return np.int32(np.rint(min(max(r, -(2.0**SLOPE_BITS)), 2.0**SLOPE_BITS)))


@_jit
def _exp(x):
    """e^x on -99..99, relative error below 2^-45; no call, so loops over it vectorise."""
    x = min(max(x, -99.0), 99.0)
    n = np.rint(x * (1 / LN2))
    r = x - n * LN2
    z = r * r
    sinh = 1 / 6 + z * (1 / 120 + z * (1 / 5040 + z * (1 / 362880 + z * (1 / 39916800))))
    cosh = 1 / 24 + z * (1 / 720 + z * (1 / 40320 + z * (1 / 3628800 + z * (1 / 479001600))))
    e = 1 + (r * (1 + z * sinh) + z * (1 / 2 + z * cosh))
    return e * np.int64((np.int64(np.int32(n)) + 1023) << 52).view(np.float64)


@_jit
def _slope(loss, m, y, cutoff):
    """The slope at one margin; plain numbers only: inlined."""
    if loss == 0:
        sign = 1.0 - 2.0 * y
        return sign / (1.0 + _exp(-sign * m))
    return m - y if loss == 1 else min(max(m - y, -cutoff), cutoff)


@_jit
def _row_units(m, y, units, ints, reals, i, scale):
    """Slopes of row i at the margins scale * m into `units`."""
    K, loss = ints[OUTPUTS], ints[LOSS]
    at = i * K
    unit = 2.0**SLOPE_BITS / reals[SLOPE_BOUND]
    if loss == 3:
        largest = m[at]
        for k in range(1, K):
            largest = max(largest, m[at + k])
        total = 0.0
        for k in range(K):
            total += math.exp(scale * m[at + k] - scale * largest)
        for k in range(K):
            r = math.exp(scale * m[at + k] - scale * largest) / total - (k == y[i])
            units[k] = _whole(r * unit)
        return
    units[0] = _whole(_slope(loss, scale * m[at], y[i], reals[CUTOFF]) * unit)


@_jit
def _outside(v, mref, K, theta, i, scale):
    out = False
    for k in range(i * K, i * K + K):
        out |= abs(scale * v[k] - mref[k]) > theta
    return out


@_jit
def _settle(v, mref, q, y, units, ints, reals, i, scale, ahead):
    """A new box for row i and the slopes at its centre, `ahead` of the margins on their way to zero:
    shrinking margins stay inside for longer. Old slopes stay in `units`."""
    K = ints[OUTPUTS]
    for k in range(i * K, i * K + K):
        m = scale * v[k]
        mref[k] = m - min(max(m, -ahead), ahead)
    _row_units(mref, y, units, ints, reals, i, 1.0)
    for k in range(K):
        q[i * K + k], units[k] = units[k], q[i * K + k]


@_jit
def _scatter(cols, vals, lo, hi, K, k, old, new, score, slot, depth_of, slack, limit, risers, ints):
    """Add the change of one row's contributions; note the cells that rise above their bound."""
    top, width = ints[TOP], ints[WIDTH]
    n_risers = ints[RISERS]
    light = limit.size - 1
    for p in range(lo, hi):
        x = np.float64(vals[p])
        change = np.int64(np.rint(new * x)) - np.int64(np.rint(old * x))
        cell = np.int64(cols[p]) * K + k
        g = np.int64(score[cell]) + change
        score[cell] = g
        g = abs(g)
        if g > limit[min(cell, light)]:
            s = slot[cell]
            if cell >= light and s >= 0 and g + slack[HEAVY] <= top - depth_of[s] * width:
                continue
            if n_risers < risers.size:
                risers[n_risers] = cell
            n_risers += 1
    ints[RISERS] = n_risers
    ints[SCATTERED] += hi - lo


@_jit
def _schedule(v, mref, due, after, before, head, ints, reals, i, t):
    """Enter row i at the step t' at which m (t+1)(t+2)/((t'+1)(t'+2)) will have left its box."""
    K, steps, theta = ints[OUTPUTS], ints[STEPS], reals[THETA]
    ints[RENEWED] += 1
    if due[i] < steps:  # leave the old place in the calendar
        a, b = after[i], before[i]
        if a >= 0:
            before[a] = b
        if b >= 0:
            after[b] = a
        else:
            head[due[i]] = a
    scale = _scale(reals, t)
    when = steps
    for k in range(i * K, i * K + K):
        m = scale * v[k]
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


@_jit
def _renew(st, n_out, t):
    """New boxes for the first n_out rows of `scratch`, at step t."""
    v, mref, q, y, units, ints, reals = st.v, st.mref, st.q, st.y, st.units, st.ints, st.reals
    K, unit = ints[OUTPUTS], ints[RESOLUTION] * 2.0**-SLOPE_BITS
    scale, half = _scale(reals, t), 0.5 * reals[THETA]
    heavy = 3 * n_out > st.due.size  # pulling all columns is cheaper than scattering
    for r in range(n_out):
        i = np.int64(st.scratch[r])
        _settle(v, mref, q, y, units, ints, reals, i, scale, half)
        for k in range(0 if heavy else K):
            old, new = units[k] * unit, q[i * K + k] * unit
            if old != new:
                _scatter(
                    st.cols, st.vals, st.indptr[i], st.indptr[i + 1], K, k, old, new,
                    st.score, st.slot, st.depth_of, st.slack, st.limit, st.risers, ints,
                )  # fmt: skip
        if ints[FRESHNESS] != PUBLISHED:
            _schedule(v, mref, st.due, st.after, st.before, st.head, ints, reals, i, t)
    if heavy:
        _pull(st)


@_jit
def _serve_due(st, t):
    v, mref, due, after, before, head = st.v, st.mref, st.due, st.after, st.before, st.head
    ints, reals = st.ints, st.reals
    scale = _scale(reals, t)
    n_out = 0
    i = np.int64(head[t])
    head[t] = -1
    while i >= 0:
        a = np.int64(after[i])
        due[i] = ints[STEPS]
        if _outside(v, mref, ints[OUTPUTS], reals[THETA], i, scale):
            st.scratch[n_out] = i
            n_out += 1
        else:
            _schedule(v, mref, due, after, before, head, ints, reals, i, t)
        i = a
    _renew(st, n_out, t)


# ---- scores ----


@_jit
def _pull(st):
    """All scores from the stored slopes, column by column."""
    K, n = st.ints[OUTPUTS], st.due.size
    unit = st.ints[RESOLUTION] * 2.0**-SLOPE_BITS
    rows, cvals, q, score = st.rows, st.cvals, st.q, st.score
    # 32-bit terms and unsigned positions allow vector instructions.
    lo = np.uint64(0)
    for label in range(st.colptr.size - 1):
        hi = np.uint64(st.colptr[label + 1])
        for k in range(K):
            g = np.int64(0)
            p = lo
            if K == 1 and hi - lo == n:  # a full column: its rows are 0, 1, 2, ...
                column = cvals[lo:hi]
                for i in range(n):
                    g += np.int32(np.rint(q[i] * unit * np.float64(column[i])))
                p = hi
            while p < hi:
                x = np.float64(cvals[p])
                g += np.int32(np.rint(q[np.int64(rows[p]) * K + k] * unit * x))
                p += np.uint64(1)
            score[label * K + k] = g
        lo = hi
    st.ints[PULLS] += 1
    st.ints[REBUILD] = 1


@_jit
def _exact_score(st, cell, t):
    """The score of one cell at the true margins."""
    rows, cvals, v, y = st.rows, st.cvals, st.v, st.y
    units, ints, reals = st.units, st.ints, st.reals
    K, unit, scale = ints[OUTPUTS], ints[RESOLUTION] * 2.0**-SLOPE_BITS, _scale(reals, t)
    label, k = cell // K, cell % K
    lo, hi = st.colptr[label], st.colptr[label + 1]
    ints[VERIFIED] += hi - lo
    ints[DEBT] += (hi - lo) // 4
    ints[RENEWED] += (hi - lo) // 8
    g = np.int64(0)
    for p in range(lo, hi):
        i = np.int64(rows[p])
        _row_units(v, y, units, ints, reals, i, scale)
        g += np.int32(np.rint(units[k] * unit * np.float64(cvals[p])))
    return g


@_jit
def _refresh_all(st, t):
    """Every row exact at step t, scores pulled, calendar rewritten."""
    v, mref, q, y, units, ints, reals = st.v, st.mref, st.q, st.y, st.units, st.ints, st.reals
    scale = _scale(reals, t)
    st.head[:] = -1
    st.due[:] = ints[STEPS]
    loss, cutoff, unit = ints[LOSS], reals[CUTOFF], 2.0**SLOPE_BITS / reals[SLOPE_BOUND]
    for i in range(y.size if loss < 3 else 0):
        mref[i] = scale * v[i]
        q[i] = _whole(_slope(loss, mref[i], y[i], cutoff) * unit)
    for i in range(y.size if loss == 3 else 0):
        _settle(v, mref, q, y, units, ints, reals, i, scale, 0.0)
    _pull(st)


@_jit
def _schedule_all(st, t):
    due, ints, reals = st.due, st.ints, st.reals
    for i in range(due.size if reals[THETA] > 0.0 else 0):
        _schedule(st.v, st.mref, due, st.after, st.before, st.head, ints, reals, i, t)


# ---- slack: how stale rows may be ----


@_jit
def _set_tau(st, tau):
    """Allow slopes off by tau * slope_bound and their rounding; `count`: of two contributions."""
    st.reals[TAU] = tau
    st.reals[THETA] = tau * st.reals[SLOPE_BOUND] / st.reals[SMOOTHNESS]
    st.slack[:] = 0
    for c in range(HEAVY + 1 if tau > 0.0 and st.ints[FRESHNESS] == EXACT else 0):
        mass = st.ints[RESOLUTION] * (tau + 2.0 ** (1 - SLOPE_BITS)) * st.column_mass[c]
        st.slack[c] = math.ceil(mass * (1.0 + 1e-6)) + st.column_count[c]


@_jit
def _choose_tau(st, t):
    """The largest tau whose doubts cost little, or 0 if so many rows would leave their boxes that
    refreshing all is cheaper. Exact picks do not depend on it in law."""
    K, reals = st.ints[OUTPUTS], st.reals
    mass, work = np.zeros(HEAVY + 1), np.zeros(HEAVY + 1)
    largest = _largest(st.score, 0, st.score.size)
    kappa = reals[KAPPA] if reals[KAPPA] > 0.0 else 30.0 / (largest + 1.0)  # arg max: few rivals
    for cell in range(st.score.size):
        label = cell // K
        x = kappa * (largest - abs(np.int64(st.score[cell])))
        w = math.exp(-x) if x < 40.0 else 0.0
        mass[min(label, HEAVY)] += w
        work[min(label, HEAVY)] += w * (st.colptr[label + 1] - st.colptr[label])
    work /= mass.sum()
    mass /= mass.sum()
    touched = work.sum()  # rows of a pick
    shrink = _scale(reals, t) * np.abs(st.v).sum() * 2.0 / (t + 2.0)  # of all margins, in a step
    tau = 0.25
    while tau > 1e-5:
        _set_tau(st, tau)
        waste = 0.0
        for c in range(HEAVY + 1):
            doubt = min(2.0 * kappa * st.slack[c], 50.0)
            waste += math.expm1(doubt) * (mass[c] + 0.2 * work[c])
        if waste <= 0.4 + 0.8 * touched:
            if touched + shrink / (1.5 * reals[THETA]) < st.ints[AFFORD]:
                return
            break
        tau *= 0.5
    _set_tau(st, 0.0)


@_jit
def _retune(st, t):
    """New slack and new proposals; only exact freshness may also refresh rows here."""
    if st.ints[FRESHNESS] == EXACT:
        _refresh_all(st, t)
        _choose_tau(st, t)
        _schedule_all(st, t)
        st.ints[RENEWED], st.ints[LOOK] = 0, t + t // 2 + 16
    if st.reals[KAPPA] > 0.0:
        _rebuild(st)


# ---- sampler ----


@_jit
def _largest(score, first, last):
    largest = score.dtype.type(0)
    for cell in range(first, last):
        largest = max(largest, abs(score[cell]))
    return np.int64(largest)


@_jit
def _upper(score, slack, K, cell):
    """The largest |G| of a cell."""
    return abs(np.int64(score[cell])) + slack[cell // K if cell < HEAVY * K else HEAVY]


@_jit
def _rebuild(st):
    """Choose the top and the cold threshold from a histogram of bounds; list the hot cells."""
    ints = st.ints
    K, width, kappa = ints[OUTPUTS], ints[WIDTH], st.reals[KAPPA]
    score, slot, slack = st.score, st.slot, st.slack
    n_heavy = min(HEAVY, st.colptr.size - 1) * K
    light = _largest(score, n_heavy, score.size) + slack[HEAVY]
    largest = light
    for cell in range(n_heavy):
        largest = max(largest, _upper(score, slack, K, cell))
    top = (largest // width + 1 + HEADROOM) * width
    bins = np.zeros(4 * B + 1, np.int64)  # quarter depths; the last bin is everything below
    # Where heavy columns lead by more than all depths, the others need no look.
    n_seen = n_heavy if light <= top - B * width else score.size
    bins[4 * B] = score.size - n_seen
    for cell in range(n_seen):
        gap = top - _upper(score, slack, K, cell)
        bins[4 * gap // width if gap < B * width else 4 * B] += 1
    mass = 0.0
    for b in range(4 * B + 1):
        mass += bins[b] * 2.0 ** (-0.25 * b)
    edge = 0  # cells of quarter depth >= edge are cold
    n_hot = 0
    while edge < 4 * B and score.size * 2.0 ** (-0.25 * edge) > 1.3 * mass:
        if 2 * (n_hot + bins[edge]) > st.members.size - 64 * (B + 1):
            break
        n_hot += bins[edge]
        edge += 1
    cold_top = top - (edge * width) // 4
    weight = math.ceil(2.0**B * math.exp(-kappa * (top - cold_top)) * (1.0 + 1e-9))
    ints[TOP], ints[COLD_WEIGHT] = top, int(weight)
    st.reals[LOG_COLD] = math.log(weight) - B * LN2
    for c in range(st.limit.size):
        st.limit[c] = cold_top - slack[min(c // K, HEAVY)]
    at = 0
    for d in range(B + 1):
        for m in range(st.start[d], st.start[d] + st.size[d]):
            slot[st.members[m]] = -1
        st.start[d], st.size[d] = at, 0
        count = bins[4 * d : min(4 * d + 4, edge)].sum() if 4 * d < edge else 0
        st.room[d] = count + count // 2 + 64
        at += st.room[d]
    for cell in range(n_heavy if light <= cold_top else score.size):
        bound = _upper(score, slack, K, cell)
        if bound > cold_top:
            _append(st, cell, (top - bound) // width)
    ints[RISERS], ints[REBUILD], ints[DEBT] = 0, 0, 0
    _count_weights(st)


@_jit
def _append(st, cell, d):
    if d < 0 or st.size[d] == st.room[d]:
        st.ints[REBUILD] = 1
        return
    s = st.start[d] + st.size[d]
    st.size[d] += 1
    st.members[s], st.depth_of[s], st.slot[cell] = cell, d, s
    if cell < st.limit.size - 1:
        st.limit[cell] = st.ints[TOP] - d * st.ints[WIDTH] - st.slack[cell // st.ints[OUTPUTS]]


@_jit
def _raise_cells(st):
    """Move the cells that rose above their bound."""
    ints = st.ints
    n = ints[RISERS]
    ints[RISERS] = 0
    if ints[REBUILD] or n > st.risers.size:
        ints[REBUILD] = 1
        return
    K, top, width = ints[OUTPUTS], ints[TOP], ints[WIDTH]
    for r in range(n):
        cell = np.int64(st.risers[r])
        bound = _upper(st.score, st.slack, K, cell)
        s = st.slot[cell]
        if s >= 0:
            d = st.depth_of[s]
            if bound <= top - d * width:
                continue  # it sank again
            last = st.start[d] + st.size[d] - 1
            moved = st.members[last]
            st.members[s], st.slot[moved] = moved, s
            st.size[d] -= 1
            st.slot[cell] = -1
        elif abs(np.int64(st.score[cell])) <= st.limit[min(cell, st.limit.size - 1)]:
            continue
        _append(st, cell, (top - bound) // width if bound <= top else -1)
    _count_weights(st)


@_jit
def _count_weights(st):
    total = st.score.size * st.ints[COLD_WEIGHT]
    for d in range(B + 1):
        total += st.size[d] << (B - d)
    st.ints[TOTAL] = total


@_jit
def _zeros(rng, n):
    """True with probability 2^-n, exactly."""
    while n >= 53:
        if rng.random() != 0.0:
            return False
        n -= 53
    return rng.random() < 2.0 ** (-n)


@_jit
def _judge(score, slack, ints, reals, rng, cell, sign, log_weight):
    """Accept with probability e^{kappa s G} over the proposal weight, as far as the bounds tell:
    (ACCEPTED or REJECTED, 0), or what the exact score is needed for: (NEAR, the uniform) or
    (FAR, the log of the probability already spent on leading zero bits)."""
    kappa, top = reals[KAPPA], ints[TOP]
    e = slack[min(cell // ints[OUTPUTS], HEAVY)]
    g = sign * np.int64(score[cell])
    if ints[EXACT_SIGN] and (score[cell] < 0) != (sign < 0):
        return REJECTED, 0.0  # paper 002 reads the sign off (not private)
    least = max(log_weight + kappa * (top - g - e), 0.0)  # minus the log of the upper end
    most = log_weight + kappa * (top - g + e)
    if most < 7.0:
        u = rng.random()
        # Both ends agree nearly always; the margins are wider than the error of exp.
        if u < math.exp(-most) * (1.0 - 2.0**-30):
            return ACCEPTED, 0.0
        if u > math.exp(-least) * (1.0 + 2.0**-30):
            return REJECTED, 0.0
        return NEAR, u
    # Small probabilities keep their relative precision: zero bits first.
    n = int(least / LN2)
    return (FAR, n * LN2) if _zeros(rng, n) else (REJECTED, 0.0)


@_jit
def _propose(score, slot, members, start, size, slack, ints, reals, rng):
    """Propose until one is accepted or in doubt, or a rebuild is due (STALE)."""
    n_cells = score.size
    cold_total = n_cells * ints[COLD_WEIGHT]
    total = 2 * ints[TOTAL]
    limit = ((1 << 53) // total) * total
    while ints[DEBT] <= ints[DEBT_LIMIT]:
        r = np.int64(rng.random() * 2.0**53)  # 53 uniform bits, exactly
        if r >= limit:
            continue
        r %= total
        sign = 1 - 2 * (r & 1)
        r >>= 1
        if r < cold_total:
            cell = r % n_cells
            if slot[cell] >= 0:  # hot: not the cold set's
                ints[DEBT] += 1
                continue
            log_weight = reals[LOG_COLD]
        else:
            r -= cold_total
            d = 0
            while r >= size[d] << (B - d):
                r -= size[d] << (B - d)
                d += 1
            cell = np.int64(members[start[d] + (r >> (B - d))])
            log_weight = -d * LN2
        verdict, u = _judge(score, slack, ints, reals, rng, cell, sign, log_weight)
        if verdict != REJECTED:
            return cell, sign, verdict, log_weight, u
        ints[DEBT] += 1
    return -1, 0, STALE, 0.0, 0.0


@_jit
def draw(st, rng, t):
    """(cell, sign) with probability proportional to e^{kappa s G}, exactly at the true margins."""
    ints = st.ints
    if ints[RISERS] > 0:
        _raise_cells(st)
    if ints[REBUILD]:
        _rebuild(st)
    while True:
        cell, sign, verdict, log_weight, u = _propose(
            st.score, st.slot, st.members, st.start, st.size, st.slack, ints, st.reals, rng
        )
        if verdict == STALE:
            _retune(st, t)
            continue
        if verdict != ACCEPTED:
            g = np.int64(st.score[cell])
            if st.slack[min(cell // ints[OUTPUTS], HEAVY)] > 0:
                g = _exact_score(st, cell, t)
            x = log_weight + st.reals[KAPPA] * (ints[TOP] - sign * g)
            if verdict == FAR:
                n = int(max(x - u, 0.0) / LN2)
                x -= u + n * LN2
                u = rng.random() if _zeros(rng, n) else np.inf
            if not u < math.exp(-x):
                ints[DEBT] += 1
                continue
        label = cell // ints[OUTPUTS]
        ints[DEBT] = max(0, ints[DEBT] - 4 - (st.colptr[label + 1] - st.colptr[label]) // 4)
        return cell, sign


@_jit
def _argmax(st, t):
    """The cell of largest |G|, exactly: every cell whose upper end reaches the best lower end."""
    K, score, slack = st.ints[OUTPUTS], st.score, st.slack
    n_heavy = min(HEAVY, st.colptr.size - 1) * K
    light = _largest(score, n_heavy, score.size)
    floor = light - slack[HEAVY]
    for cell in range(n_heavy):
        floor = max(floor, abs(np.int64(score[cell])) - slack[cell // K])
    best, best_g = -1, np.int64(0)
    for cell in range(score.size if light + slack[HEAVY] >= floor else n_heavy):
        g = np.int64(score[cell])
        upper = _upper(score, slack, K, cell)
        if upper >= floor:
            if upper > abs(g):
                g = _exact_score(st, cell, t)
            if best < 0 or abs(g) > abs(best_g):
                best, best_g = cell, g
    return best, 1 if best_g >= 0 else -1


# ---- the step ----


@njit(cache=True, error_model="numpy", inline="always")
def _move(st, t, cell, sign, free):
    """Move along the vertex (the shrink is in _scale) and refresh rows out of their box. If `free`
    (exact picks), boxes end when they cost more than refreshing all rows."""
    v, mref, due, after, before, head = st.v, st.mref, st.due, st.after, st.before, st.head
    ints, reals, rows, cvals = st.ints, st.reals, st.rows, st.cvals
    K, theta, fresh = ints[OUTPUTS], reals[THETA], ints[FRESHNESS]
    label, k = cell // K, cell % K
    step = -sign * (t + 2.0)
    scale = _scale(reals, t + 1)
    n_out = 0
    for p in range(st.colptr[label], st.colptr[label + 1]):
        i = np.int64(rows[p])
        v[i * K + k] += step * np.float64(cvals[p])
        if fresh != PUBLISHED:
            if theta == 0.0:
                continue
            if not _outside(v, mref, K, theta, i, scale):
                # The box must also hold at the step the row is due (or at the last step).
                if _outside(v, mref, K, theta, i, _scale(reals, due[i])):
                    _schedule(v, mref, due, after, before, head, ints, reals, i, t + 1)
                continue
        st.scratch[n_out] = i
        n_out += 1
    ints[RENEWED] = max(0, ints[RENEWED] - ints[AFFORD])  # each step may cost that
    if free and ints[RENEWED] + n_out > 4 * ints[AFFORD]:
        _set_tau(st, 0.0)
    elif n_out > 0:
        _renew(st, n_out, t + 1)


@_jit
def prepare(st, t):
    """Bring rows up to date before the draw of step t."""
    if st.ints[FRESHNESS] == PUBLISHED:
        return
    if st.reals[THETA] == 0.0:  # no tolerance: every row, every step
        if t > 0:
            _refresh_all(st, t)
    elif st.head[t] >= 0:
        _serve_due(st, t)


@_jit
def advance(st, rng, first, last, mode):
    """Steps first..last-1. REPLAY and MOVE read the picks from the history; MOVE is prepared."""
    for t in range(first, last):
        free = mode <= ARGMAX and st.ints[FRESHNESS] == EXACT
        if free and st.reals[THETA] == 0.0 and t > st.ints[LOOK]:
            _retune(st, t)
        elif mode != MOVE:
            prepare(st, t)
        if mode == DRAW:
            cell, sign = draw(st, rng, t)
        elif mode == ARGMAX:
            cell, sign = _argmax(st, t)
        else:
            cell, sign = np.int64(st.cells[t]), np.int64(st.signs[t])
        st.cells[t], st.signs[t] = cell, sign
        _move(st, t, cell, sign, free)

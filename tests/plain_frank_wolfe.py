"""Frank-Wolfe on the L1 ball, the plain way: every row and every feature at every step. The oracle of the solver.

    w_0 = 0
    G_t = sum_i slope(x_i . w_t, y_i) x_i                                  the sum, never the mean
    (j, s) ~ exp(kappa s G_t[j])       over the 2 D signed vertices         Gumbel noisy max
    w_{t+1} = (1 - step) w_t - step s radius e_j,        step = 2/(t+2), t = 1 .. T

Scores are whole numbers by the same rule as in the solver, written with NumPy alone.
"""

import numpy as np
import scipy.sparse as sp

from dpsparse.methods.frank_wolfe.run import History, RowArrays, Run

SLOPE_UNITS = 2.0**28


def arrays_of(data):
    """Clipped rows as the solver reads them."""
    X = data.X
    return RowArrays(X.indptr, X.indices, X.data, data.y, X.shape[1])


def matrix_of(rows):
    """What the solver reads, as a SciPy matrix."""
    shape = (len(rows.indptr) - 1, rows.n_features)
    return sp.csr_array((rows.values.astype(np.float64), rows.indices, rows.indptr), shape=shape)


def fast_frank_wolfe(data, problem, rng, progress=None):
    """The solver itself on clipped data, or on arrays."""
    run = Run(data if isinstance(data, RowArrays) else arrays_of(data), problem)
    run.draw(rng, problem.n_iter, progress)
    return run.history()


def replay(run, cells, signs):
    """Make picks from outside, by cells and the signs s of e^{kappa s G}."""
    run._leave_boxes()
    for cell, sign in zip(cells, signs, strict=True):
        run.move(int(cell), int(sign))
    run._choose_way()


def replay_history(run, history):
    """Make all picks of `history` again."""
    replay(run, history.features * run.problem.n_outputs + history.outputs, -history.signs)


def frank_wolfe(data, problem, rng):
    """`problem.n_iter` selections on exact gradients; the history, as the solver returns it."""
    run = PlainRun(data, problem)
    for _ in range(problem.n_iter):
        scores = run.scores()
        if np.isinf(problem.kappa):
            cell = int(np.abs(scores).argmax())
            sign = 1 if scores[cell] >= 0 else -1
        else:
            cell, sign = gumbel_draw(scores, problem.unit_kappa, rng)
        run.move(cell // problem.n_outputs, cell % problem.n_outputs, -sign)
    return run.history()


def scores_along(data, problem, history):
    """Whole-number scores of all cells before each pick of a history."""
    run = PlainRun(data, problem)
    for feature, output, sign in zip(history.features, history.outputs, history.signs, strict=True):
        yield run.scores()
        run.move(feature, output, sign)


def gumbel_draw(scores, kappa, rng):
    """(cell, sign) with probability proportional to e^{kappa s G}, by Gumbel noise on all signed cells."""
    keys = np.concatenate([kappa * scores, -kappa * scores])
    best = int((keys + rng.gumbel(size=keys.size)).argmax())
    return best % scores.size, 1 if best < scores.size else -1


class PlainRun:
    def __init__(self, data, problem):
        self.X, self.y, self.problem = with_intercept(data, problem), data.y, problem
        self.columns, self.n_features = self.X.tocsc(), data.X.shape[1]
        self.w = np.zeros((self.X.shape[1], problem.n_outputs))
        self.picks = []

    def scores(self):
        start = np.asarray(self.problem.offset or np.zeros(self.problem.n_outputs))
        slopes = slopes_of(self.problem, self.X @ self.w + start, self.y)
        return score_cells(self.columns, slopes, self.problem)

    def move(self, feature, output, sign):
        """Towards the vertex of this sign."""
        step = 2.0 / (len(self.picks) + 3.0)
        self.w *= 1.0 - step
        self.w[feature, output] += step * sign * self.problem.radius * self.problem.feature_bound
        self.picks.append((feature, output, sign))

    def history(self):
        features, outputs, signs = (
            np.array(part, np.int64) for part in zip(*self.picks, strict=True)
        )
        p = self.problem
        return History(
            features,
            outputs,
            signs,
            p.radius,
            self.n_features,
            p.n_outputs,
            p.feature_bound,
            p.offset,
        )


def slopes_of(problem, margin, y):
    if problem.loss.name != "softmax":
        return problem.loss.slope(margin[:, 0], y)[:, None]
    return problem.loss.slope(margin, y)


def score_cells(columns, slopes, problem):
    """Slopes in whole multiples of slope_bound 2^-28, entries in float32, what each row adds rounded to a whole number;
    all products are exact in float64."""
    with np.errstate(over="ignore"):
        q = np.nan_to_num(slopes / problem.slope_bound)  # no number is 0, as in the kernel
    q = np.rint(np.clip(q, -1.0, 1.0) * SLOPE_UNITS)
    q *= problem.resolution / SLOPE_UNITS
    scores = np.zeros((columns.shape[1], problem.n_outputs), np.int64)
    full = np.flatnonzero(np.diff(columns.indptr))
    for k in range(problem.n_outputs if full.size else 0):
        parts = np.rint(columns.data * q[columns.indices, k]).astype(np.int64)
        scores[full, k] = np.add.reduceat(parts, columns.indptr[full])
    return scores.ravel()


def with_intercept(data, problem):
    """Entries x / feature_bound cut to [-1, 1] and rounded to float32, and a column of ones for the intercept."""
    X = sp.csr_array(data.X)
    factor = 1.0 / problem.feature_bound
    values = np.clip(X.data * factor, -1.0, 1.0).astype(np.float32).astype(np.float64)
    X = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
    if problem.fit_intercept:
        X = sp.csr_array(sp.hstack([X, sp.csr_array(np.ones((X.shape[0], 1)))], format="csr"))
    return X

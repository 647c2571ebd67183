"""DPSL-KT as printed (Wang and Gu, AAAI 2020): a teacher, noisy answers on public rows, a student.

    theta^ = IGHT(L_S + ridge/2 |theta|^2, s)                 the teacher, not private      Alg. 1, line 1
    y~_i   = <x~_i, theta^> + N(0, sigma^2)                   answers on m public rows             line 2
    theta  = IGHT((2m)^-1 sum_i (y~_i - <theta, x~_i>)^2, s)  the student                      lines 3, 4

    Theorem 4.3    sigma^2 = 8 m beta~ s gamma^2 log(2.5/delta) / (n epsilon ridge)^2
    Corollary 4.7  the same with mu for the ridge, and ridge = 0

| paper | here |
|---|---|
| gamma | `largest_gradient_entry`: largest entry of a row's gradient at the minimiser |
| mu | `sparse_curvature` of the loss on the teacher's support |
| beta~ | the largest eigenvalue of the public rows' second moments: 1/3 of uniform(-1, 1) rows |

Both gamma and mu read the private rows, which the paper's conditions allow. mu is an infimum over all
supports and all theta in Condition 4.2, which nobody can compute; the teacher's own support is the natural
stand-in, and it gives less noise. No privacy: over |theta|_0 <= s the teacher is not a continuous
function of the rows. One row can switch its support, and the theorem bounds its movement as if it
could not (docs/proofs/transfer.md, experiments/lab/papers/leaks.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse._checks import check_count, safe_repr
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Loss, Squared
from dpsparse.methods.base import BaseDPClassifier, BaseDPRegressor
from dpsparse.published._base import PublishedModel


def transfer(
    X: Any,
    y: np.ndarray,
    public_X: Any,
    loss: Loss,
    rng: np.random.Generator,
    *,
    n_nonzero: int,
    n_iter: int,
    ridge: float,
    epsilon: float,
    delta: float,
    public_variance: float,
) -> np.ndarray:
    """Algorithm 1 with the noise of Theorem 4.3, or for `ridge=0` of Corollary 4.7. Not private."""
    teacher = ight(X, y, loss, n_nonzero=n_nonzero, n_iter=n_iter, ridge=ridge)
    scale = answer_scale(
        n_public=public_X.shape[0],
        n_samples=X.shape[0],
        n_nonzero=n_nonzero,
        epsilon=epsilon,
        delta=delta,
        public_variance=public_variance,
        gamma=largest_gradient_entry(X, y, loss, teacher),
        curvature=ridge or sparse_curvature(X, y, loss, teacher),
    )
    answers = public_X @ teacher + scale * rng.standard_normal(public_X.shape[0])
    return ight(public_X, answers, Squared(), n_nonzero=n_nonzero, n_iter=n_iter)


def answer_scale(
    *,
    n_public: int,
    n_samples: int,
    n_nonzero: int,
    epsilon: float,
    delta: float,
    public_variance: float,
    gamma: float,
    curvature: float,
) -> float:
    """sigma of both statements; `curvature` is the ridge (4.3) or mu (4.7)."""
    variance = 8.0 * n_public * public_variance * n_nonzero * math.log(2.5 / delta)
    return math.sqrt(variance) * gamma / (n_samples * epsilon * curvature)


def largest_gradient_entry(X: Any, y: np.ndarray, loss: Loss, theta: np.ndarray) -> float:
    """gamma: max_i |slope_i| max_j |x_ij| at `theta`."""
    largest = abs(X).max(axis=1)
    entries = np.ravel(largest if isinstance(largest, np.ndarray) else largest.toarray())
    return float(np.max(np.abs(loss.slope(margins(X, theta), y)) * entries))


def sparse_curvature(
    X: Any, y: np.ndarray, loss: Loss, theta: np.ndarray, *, strict: bool = False
) -> float:
    """mu on the support of `theta`: mean curvature of the loss times the features' smallest
    eigenvalue, or for `strict` the smallest eigenvalue of the Hessian itself.

    For the squared loss both are the same. For the logistic loss the first is an average where
    Condition 4.2 asks for an infimum (which over all theta is 0). Dependent columns have mu = 0, for
    which no noise is enough; with the smallest number allowed here, noise hides the answers.
    """
    support = np.flatnonzero(theta)
    if not len(support):
        return 1.0
    rows = X[:, support] if isinstance(X, np.ndarray) else X[:, support].toarray()
    bend = loss.bend(loss.slope(rows @ theta[support], y))
    moments = rows.T @ ((bend if strict else np.full(len(y), bend.mean()))[:, None] * rows)
    return max(float(np.linalg.eigvalsh(moments / len(y))[0]), 1e-12)


def ight(
    X: Any, y: np.ndarray, loss: Loss, *, n_nonzero: int, n_iter: int, ridge: float = 0.0
) -> np.ndarray:
    """Algorithm 2, iterative gradient hard thresholding on the mean loss: not private.

    The paper leaves the step size open; this is the normalised one: exact for the current support
    and halved while a change of support would overshoot. Margins move with theta, so that a round
    multiplies with the rows once for the gradient and once for every step that is tried.
    """
    n, d = X.shape
    theta, reached = np.zeros(d), np.zeros(n)
    support = np.empty(0, dtype=np.intp)

    def best_step(direction: np.ndarray, moves: np.ndarray) -> float:
        """|v|^2 over its curvature: the step that minimises the quadratic bound along v."""
        length = float(direction @ direction)
        bend = loss.smoothness * float(moves @ moves) / n + ridge * length
        return length / bend if bend > 0.0 else 0.0

    for _ in range(n_iter):
        gradient = np.asarray(X.T @ loss.slope(reached, y)) / n + ridge * theta
        if not len(support):
            support = _largest(gradient, n_nonzero)
        direction = np.zeros(d)
        direction[support] = gradient[support]
        step = best_step(direction, margins(X, direction))
        if step == 0.0:
            break
        while True:
            moved = theta - step * gradient
            kept = _largest(moved, n_nonzero)
            new = np.zeros(d)
            new[kept] = moved[kept]
            change = new - theta
            moves = margins(X, change)
            if np.array_equal(kept, support) or step <= 0.99 * best_step(change, moves):
                break
            step /= 2.0
        converged = np.linalg.norm(change) <= 1e-10 * (1.0 + np.linalg.norm(new))
        theta, support, reached = new, kept, reached + moves
        if converged:
            break
    return theta


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    if k >= len(values):
        return np.arange(len(values))
    return np.sort(np.argpartition(-np.abs(values), k - 1)[:k])


def margins(X: Any, weights: np.ndarray) -> np.ndarray:
    """X @ weights; of dense rows only the columns in use are read."""
    if not isinstance(X, np.ndarray):
        return np.asarray(X @ weights)
    support = np.flatnonzero(weights)
    return np.asarray(X[:, support] @ weights[support])


@dataclass(eq=False, repr=False, kw_only=True)
class _Transfer(PublishedModel):
    n_nonzero: int = 10
    n_iter: int = 60
    ridge: float | None = None
    n_public: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_nonzero", self.n_nonzero)
        check_count("n_iter", self.n_iter)
        check_count("n_public", self.n_public, optional=True)
        if self.ridge is not None and not self.ridge >= 0:
            raise ParameterError(f"ridge must be a number >= 0, got {safe_repr(self.ridge)}.")

    def _constants(self, n_features: int, n_outputs: int) -> dict[str, Any]:
        n = int(self._domain.require("n_samples", type(self).__name__))
        s, epsilon = min(self.n_nonzero, n_features), min(float(self.epsilon), 1e6)
        width = math.sqrt(s * math.log(n_features + 1.0) * math.log(1.0 / self.delta))
        return {
            "n_nonzero": s,
            "epsilon": epsilon,
            "ridge": 0.1 * math.sqrt(width / (n * epsilon)) if self.ridge is None else self.ridge,
            "n_public": int(self.n_public or n),
        }

    @property
    def _paper(self) -> str:  # type: ignore[override]
        theorem = "Corollary 4.7" if self.ridge == 0 else "Theorem 4.3"
        return f"Wang and Gu (2020), {theorem}, which is false"

    def _fit_printed(
        self, X: Any, y: np.ndarray, printed: dict[str, Any], rng: np.random.Generator
    ) -> np.ndarray:
        fit = dict(printed)
        public_rows = rng.uniform(-1.0, 1.0, (fit.pop("n_public"), X.shape[1]))
        return transfer(
            X, y, public_rows, self._loss, rng, n_iter=self.n_iter, delta=self.delta,
            public_variance=1.0 / 3.0, **fit,
        )  # fmt: skip


@dataclass(eq=False, repr=False, kw_only=True)
class WangGuTransferClassifier(BaseDPClassifier, _Transfer):
    """NOT PRIVATE. DPSL-KT (Wang and Gu 2020), logistic loss, as printed.

    Its noise is computed from the private rows, and its theorem is false: one row can switch the support of the
    teacher. `DPTransferClassifier` is the proven form.

    Parameters
    ----------
    domain : Domain
        Needs `classes` and `n_samples`.
    epsilon, delta : float
        What the noise is computed from; the guarantee says infinity.
    n_nonzero : int, default=10
        Size of the support, per class for more than two classes (one against the rest).
    n_iter : int, default=60
        Steps of the teacher, and of the student.
    ridge : float or None, default=None
        Lambda, of the mean loss: above 0 noise by Theorem 4.3, 0 by Corollary 4.7. None takes a value of the order
        that the paper's Theorem 4.3 suggests.
    n_public : int or None, default=None
        Number of public rows of the student, drawn from uniform(-1, 1); None takes `domain.n_samples`.
    adjacency, ledger, random_state, verbose : as in `DPSparseClassifier`
        Neighbours, account and noise of the fit.
    """


@dataclass(eq=False, repr=False, kw_only=True)
class WangGuTransferRegressor(BaseDPRegressor, _Transfer):
    """NOT PRIVATE. The same with the squared loss.

    Parameters are those of `WangGuTransferClassifier`; `domain` needs `target_bound` instead of `classes`.
    """

"""Support first: find a support privately, then fit a ridge problem on it.

Kifer, Smith, Thakurta 2012 (Two-Stage); Wang, Gu 2020 (DPSL-KT); Cai, Wang, Zhang 2021 (peeling).

    prior    b0 = log-odds of noisy class counts, or the noisy mean target
    support  S  = peeling: T rounds of private top-s of |n0/step theta - G|, G = sum_i slope_i x_i at (theta, b0),
                  noisy values between rounds;  or private top-s of the votes of secret blocks
    fit      on the columns S, rows weighted by a_i = min(1, row_clip/|f_i|):
             objective   argmin of the ridge objective tilted by noise            (`Releases.tilt`)
             output      argmin of the ridge objective, plus noise
             gradient    n_iter noisy gradients with momentum
             student     noisy answers of the argmin on public rows, then what stands out of them (student.py)

| symbol | variable | meaning |
|---|---|---|
| s | n_nonzero | size of the support |
| T | rounds | rounds of peeling; the last one releases its support only |
| X~ | public_rows | public features on the support |

Cost: one pass over the non-zeros a round, then the fit on s columns. Deviations: a row's block is its own secret
draw (contiguous blocks re-block everyone when one row leaves), the winners come from exact exponential
mechanisms instead of Laplace counts, and the teacher of DPSL-KT is fitted on a released support:
in the paper it may switch its support when one row changes, so its theorem is false (published/ keeps it).
Several classes are fitted one against the rest; regression works in units of the target bound.
Proofs: docs/proofs/two_stage.md, transfer.md, ridge.md, objective_perturbation.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsparse import arithmetic
from dpsparse.losses import is_of_numbers
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.votes import Selector
from dpsparse.solvers.peeling import peel
from dpsparse.solvers.solution import Solution
from dpsparse.solvers.student import learn

MOMENTUM = 0.9
MIN_SHARE = 0.01  # a class is never taken to be rarer than this
UNIFORM = "uniform"


@dataclass(frozen=True)
class Peeling:
    """The public side of a support by peeling."""

    n_samples: int
    feature_bound: float
    longest: float  # bound on the L2 norm of a row
    step: float
    rounds: int = 1
    use_prior: bool = True


@dataclass(frozen=True)
class Votes:
    """The public side of a support by votes."""

    n_blocks: int
    selector: Selector


@dataclass(frozen=True)
class RidgeFit:
    """The public side of the fit on a support."""

    method: str  # "objective", "output" or "gradient"
    slope_bound: float  # huber: the cutoff
    row_clip: float
    longest: float  # bound on |f_i|
    ridge: float
    tol: float
    n_iter: int = 1
    step: float = 0.0
    public_rows: Any = None  # None, "uniform" or an array: a student learns on them
    n_public: int = 0


@dataclass(frozen=True)
class SupportFirst:
    """The public side of a run."""

    loss: str  # "logistic" or "huber"
    n_outputs: int
    n_nonzero: int
    constant: float  # of the column for the intercept; 0 without one
    target_bound: float
    first: Peeling | Votes
    fit: RidgeFit


def solve(rows: Rows, public: SupportFirst, releases: Releases) -> Solution:
    """Weights (K, d) and intercepts (K,)."""
    first, outputs = public.first, public.n_outputs
    priors = np.zeros(outputs)
    coef, intercept = np.zeros((outputs, rows.n_features)), np.zeros(outputs)
    if isinstance(first, Peeling):
        priors = release_prior(rows, public, first, releases)
    else:
        blocks = releases.blocks(rows, first.n_blocks)
    for k in range(outputs):
        mine = rows if outputs == 1 else rows.against_rest(k)
        if isinstance(first, Peeling):
            support = peel_support(mine, public, first, releases, float(priors[k]))
        else:
            votes = mine.votes(blocks, public.n_nonzero, first.selector)
            support = releases.top_k("support", votes, public.n_nonzero, unit=1.0)
        theta = fit(mine, support, public, releases, float(priors[k]))
        coef[k, support] = theta[: len(support)]
        if public.constant > 0.0:
            intercept[k] = theta[-1]
    bound = public.target_bound
    rounds = first.rounds if isinstance(first, Peeling) else 1
    return Solution(coef * bound, intercept * bound, max(public.fit.n_iter, rounds))


def release_prior(
    rows: Rows, public: SupportFirst, first: Peeling, releases: Releases
) -> np.ndarray:
    """A margin for all rows, output by output: log-odds of noisy counts, or the noisy mean target."""
    if not first.use_prior:
        return np.zeros(public.n_outputs)
    if is_of_numbers(public.loss):
        total = releases.gaussian("prior", rows.target_total())
        return np.asarray(np.clip(total / first.n_samples, -1.0, 1.0))
    counts = releases.gaussian("prior", rows.class_counts(max(2, public.n_outputs)))
    floor = MIN_SHARE * first.n_samples
    own = np.maximum(counts, floor)
    rest = np.maximum(counts.sum() - counts, floor)
    odds = arithmetic.log(own / rest)
    return np.asarray(odds[1:] if public.n_outputs == 1 else odds)


def slope_bound_at(loss: str, cutoff: float, margin: float) -> float:
    """Largest |slope| of any row whose margin is known to lie within `margin` of zero."""
    if is_of_numbers(loss):
        return min(cutoff, margin + 1.0)
    return float(arithmetic.expit(margin))


def peel_support(
    rows: Rows, public: SupportFirst, first: Peeling, releases: Releases, prior: float
) -> np.ndarray:
    """A private support by rounds of peeling from the margin `prior`.

    The bound on a slope is that of the released weights: at zero weights half of the logistic loss's.
    """
    bound = first.feature_bound
    longest = first.longest / bound
    units, gain = rows.entries(bound, longest), first.step * bound / first.n_samples
    theta = np.zeros((rows.n_features, 1))
    for t in range(first.rounds):
        last = t == first.rounds - 1
        reach = abs(prior) + bound * float(np.abs(theta).sum())
        slope = slope_bound_at(public.loss, public.fit.slope_bound, reach)
        sums = units.gradient(
            public.loss, theta, np.array([prior]), clip=slope, cutoff=slope, original=True
        )
        support, values = peel(
            releases, sums, theta / gain, public.n_nonzero,
            norm_bound=slope * longest, picks="support", values=None if last else "values",
            share=1.0 / max(1, (first.rounds - 1) * public.n_outputs),
        )  # fmt: skip
        theta = np.zeros_like(theta)
        if not last:
            theta[support, 0] = gain * values
    return support


def fit(
    rows: Rows, support: np.ndarray, public: SupportFirst, releases: Releases, prior: float = 0.0
) -> np.ndarray:
    """Weights on the support, then the intercept if there is one; a student falls back to `prior`."""
    stage, share = public.fit, 1.0 / public.n_outputs
    if stage.method == "gradient":
        return descend(rows, support, public, releases)
    problem = rows.ridge(
        support, constant=public.constant, row_clip=stage.row_clip, longest=stage.longest
    ).problem(public.loss, ridge=stage.ridge, tol=stage.tol, cutoff=stage.slope_bound)
    if stage.method == "objective":
        return releases.tilt("fit", problem)
    if stage.public_rows is None:
        return releases.gaussian("fit", problem.minimiser(), share)
    public_rows = rows_on(support, public, releases)
    query = problem.minimiser(public_rows)
    sd = releases.scale("fit", query, share)
    answers = releases.gaussian("fit", query, share)
    return learn(public_rows, answers, sd, public.constant, prior)


def rows_on(support: np.ndarray, public: SupportFirst, releases: Releases) -> np.ndarray:
    """Public features on the support, and the constant; a declared law is drawn there only."""
    given = public.fit.public_rows
    if isinstance(given, str):
        columns = releases.public_uniform(public.fit.n_public, len(support))
    else:
        columns = given[:, support]
        columns = columns if isinstance(columns, np.ndarray) else columns.toarray()
    if public.constant > 0.0:
        columns = np.column_stack([columns, np.full(len(columns), public.constant)])
    return columns


def descend(
    rows: Rows, support: np.ndarray, public: SupportFirst, releases: Releases
) -> np.ndarray:
    """Noisy gradients of the clipped sum plus ridge, with momentum, from zero."""
    stage = public.fit
    chosen = np.zeros(rows.n_features, np.float32)
    chosen[support] = 1.0
    units = rows.unit(chosen, constant=public.constant)
    theta = np.zeros((len(support) + 1, 1))
    velocity = np.zeros_like(theta)
    share = 1.0 / (stage.n_iter * public.n_outputs)
    for _ in range(stage.n_iter):
        query = units.gradient(
            public.loss, theta[:-1], np.zeros(1), clip=stage.slope_bound, cutoff=stage.slope_bound,
            original=True, stretch=1.0 / stage.row_clip, constant_weight=theta[-1],
        )  # fmt: skip
        gradient = stage.row_clip * releases.gaussian("fit", query, share)
        velocity = MOMENTUM * velocity + gradient + stage.ridge * theta
        theta = theta - stage.step * velocity
        if public.constant == 0.0:
            theta[-1] = 0.0
    return theta[:, 0]

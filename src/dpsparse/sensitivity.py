"""How far one row can move each query: one pure function per lemma, for both adjacencies.

Every function takes public numbers and returns a `Sensitivity` that names its norm and its proof.
"add-remove" compares a table with the same table and one more row; "replace-one" compares tables
that differ in one row. All bounds are attained (tests/test_sensitivity.py).

    query                                     norm    add-remove           replace-one
    sum of gradients, each clipped to C       L2      C                    2 C
    sum of numbers in [-b, b]                 abs     b                    2 b
    signed vertex scores +-G_j                Linf    c L                  2 c L
    exponential mechanism on kappa * score    range   2 kappa c L          4 kappa c L
    the score of Raj et al. over max(n, n0)   Linf    see raj_sensitivity
    class counts                              L2      1                    sqrt 2
    sum of |x_i|, rows of norm <= r           L2      r                    sqrt 2 r
    upper triangle of sum c z z', c z z' >= 0, Frobenius <= b     L2      b      sqrt 2 b
    rows for which something holds            abs     1                    1
    number of rows, sum of y in [-1, 1]       L2      sqrt 2               2
    integer clipped to [low, high]            abs     high - low           high - low
    ridge minimiser up to gradient tol        L2      (D + 2 tol)/ridge    (2 D + 2 tol)/ridge
    distance from a tilted minimiser          L2      2 tol'/ridge         2 tol'/ridge
    a linear map P of a vector                L2      |P| times            |P| times
    cells of d columns, one a column          L2      sqrt d               sqrt(2 d)
    names of a row, k of them, 1/sqrt k each  L2      1                    sqrt 2

with L = slope_bound, c = feature_bound, r = row_norm, D = L r/n0, tol' = tol + sqrt(width) unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import ndtri

from dpsparse._checks import check_choice, is_real, is_whole, safe_repr
from dpsparse.exceptions import ParameterError

Norm = Literal["L2", "Linf", "range", "abs"]


@dataclass(frozen=True)
class Sensitivity:
    """The largest change of a query between neighbours.

    `norm` says how change is measured: "L2", "Linf", "abs" for a single number, or "range" for
    the largest minus the smallest change over all candidates of an exponential mechanism (of their
    log-probabilities: its eta).
    """

    value: float
    norm: Norm
    adjacency: str
    source: str


def clipped_gradient_sum(clip: float, adjacency: str) -> Sensitivity:
    """Sum over rows of gradients with L2 norm at most `clip` (Frobenius for K classes)."""
    _require_positive(clip=clip)
    return _of_rows(clip, 2 * clip, "L2", adjacency, "docs/proofs/gradient_sum.md, Lemma 1")


def signed_sum(bound: float, adjacency: str) -> Sensitivity:
    """Sum over rows of one number in [-bound, bound], as the gradient of an intercept."""
    _require_positive(bound=bound)
    return _of_rows(bound, 2 * bound, "abs", adjacency, "docs/proofs/gradient_sum.md, Lemma 3")


def vertex_score(slope_bound: float, feature_bound: float, adjacency: str) -> Sensitivity:
    """G = sum_i slope_i x_i, entry by entry; the scores of the signed vertices are +-G_j."""
    _require_positive(slope_bound=slope_bound, feature_bound=feature_bound)
    move = slope_bound * feature_bound
    return _of_rows(move, 2 * move, "Linf", adjacency, "docs/proofs/vertex_selection.md, Lemma 1")


def vertex_score_range(
    kappa: float, slope_bound: float, feature_bound: float, adjacency: str
) -> Sensitivity:
    """Bounded range eta of drawing a signed vertex with probability ~ exp(kappa * score)."""
    _require_positive(kappa=kappa)
    move = vertex_score(slope_bound, feature_bound, "add-remove").value
    eta = 2 * kappa * move  # one score may rise while its mirror image falls
    return _of_rows(eta, 2 * eta, "range", adjacency, "docs/proofs/vertex_selection.md, Lemma 2")


def raj_sensitivity(
    radius: float,
    feature_bound: float,
    slope_bound: float,
    smoothness: float,
    strong_convexity: float,
    n_samples: int,
    adjacency: str,
    rescaled: bool = True,
) -> Sensitivity:
    """The score of Raj et al. divided by max(n, n_samples), for every number of rows n.

    (2 A + (1 + sqrt n0) K)/n0 for AR, (2 A + sqrt(2 n0 + 1) K)/n0 for RP, where
    A = c L (u + radius), K = b c (u + radius) sqrt(2 c radius L/mu), u = radius (1 as printed).
    """
    _require_positive(
        radius=radius, feature_bound=feature_bound, slope_bound=slope_bound,
        smoothness=smoothness, strong_convexity=strong_convexity,
    )  # fmt: skip
    reach, n0 = feature_bound * ((radius if rescaled else 1.0) + radius), float(n_samples)
    linear, gap = slope_bound * reach, 2.0 * feature_bound * radius * slope_bound
    product = smoothness * reach * math.sqrt(gap / strong_convexity)
    move = (2.0 * linear + (1.0 + math.sqrt(n0)) * product) / n0
    away = (2.0 * linear + math.sqrt(2.0 * n0 + 1.0) * product) / n0
    return _of_rows(move, away, "Linf", adjacency, "docs/proofs/screening.md, Lemma 1")


def class_counts(adjacency: str) -> Sensitivity:
    """The number of rows of every class, as one vector."""
    return _of_rows(1.0, math.sqrt(2), "L2", adjacency, "docs/proofs/counts.md, Lemma 1")


def feature_masses(row_norm: float, adjacency: str) -> Sensitivity:
    """sum_i |x_i| entry by entry, rows of L2 norm at most `row_norm`.

    Two nonnegative vectors are never more than a right angle apart: sqrt(2), not 2.
    """
    _require_positive(row_norm=row_norm)
    away = math.sqrt(2) * row_norm
    return _of_rows(row_norm, away, "L2", adjacency, "docs/proofs/counts.md, Lemma 2")


def second_moments(bound: float, adjacency: str) -> Sensitivity:
    """The upper triangle of a sum of positive semidefinite matrices of Frobenius norm at most `bound`, every
    entry once. With off-diagonals twice there is no such proof: 1.471 was reached where this says 1.414."""
    _require_positive(bound=bound)
    away = math.sqrt(2) * bound
    return _of_rows(bound, away, "L2", adjacency, "docs/proofs/inference.md, Lemma 1")


def count_below(adjacency: str) -> Sensitivity:
    """The number of rows for which something holds."""
    return _of_rows(1.0, 1.0, "abs", adjacency, "docs/proofs/counts.md, Lemma 5")


def count_and_total(adjacency: str) -> Sensitivity:
    """The number of rows and the sum of numbers in [-1, 1], as one vector.

    A row has norm at most sqrt 2; a replaced row leaves the number and moves the sum by at most 2.
    """
    return _of_rows(math.sqrt(2), 2.0, "L2", adjacency, "docs/proofs/counts.md, Lemma 6")


def clipped_count(low: int, high: int) -> Sensitivity:
    """Any integer that depends on the data, clipped to [low, high]; holds for any neighbours."""
    for name, value in (("low", low), ("high", high)):
        if not is_whole(value):
            raise ParameterError(
                f"{name} must be a whole number, got {safe_repr(value)}: integer noise does not hide "
                "fractions. Round the bound."
            )
    low, high = int(low), int(high)  # int8 and its kind would overflow below
    if low >= high:
        raise ParameterError(
            f"low must be less than high, got {safe_repr(low)} and {safe_repr(high)}."
        )
    return Sensitivity(float(high - low), "abs", "any", "docs/proofs/counts.md, Lemma 3")


def ridge_minimiser(
    slope_bound: float,
    row_norm: float,
    n0: float,
    ridge: float,
    adjacency: str,
    tol: float = 0.0,
) -> Sensitivity:
    """A point where (1/n0) sum_i loss(x_i.w) + ridge/2 ||w||^2 has a gradient of norm <= tol.

    `n0` is public and the same for both neighbours; `tol` must really be reached.
    """
    _require_positive(slope_bound=slope_bound, row_norm=row_norm, n0=n0, ridge=ridge)
    if not 0 <= tol < math.inf:
        raise ParameterError(f"tol must be a finite number >= 0, got {safe_repr(tol)}.")
    move = slope_bound * row_norm / (n0 * ridge)
    inexact = 2 * tol / ridge
    source = "docs/proofs/ridge.md, Lemma 1"
    return _of_rows(move + inexact, 2 * move + inexact, "L2", adjacency, source)


def tilted_minimiser(
    ridge: float, tol: float, width: int, unit: float, adjacency: str
) -> Sensitivity:
    """How far a computed minimiser lies from the exact one under a real Gaussian tilt, on either table.

    The tilt used is rounded to multiples of `unit`, and the gradient norm reached is `tol`.
    """
    _require_positive(ridge=ridge, unit=unit)
    away = 2.0 * (tol + math.sqrt(width) * unit) / ridge
    source = "docs/proofs/objective_perturbation.md, Lemma 3"
    return _of_rows(away, away, "L2", adjacency, source)


def linear_answers(vector: Sensitivity, operator_norm: float) -> Sensitivity:
    """A public linear map of a vector whose L2 sensitivity is known."""
    _require_positive(operator_norm=operator_norm)
    source = "docs/proofs/transfer.md, Lemma 2"
    return replace(vector, value=vector.value * operator_norm, source=source)


def column_cells(n_columns: int, adjacency: str) -> Sensitivity:
    """How many rows lie in each cell of each column: a row is in at most one cell of every column."""
    _require_positive(n_columns=n_columns)
    norm = math.sqrt(n_columns)
    source = "docs/proofs/preparation.md, Lemma 1"
    return _of_rows(norm, math.sqrt(2.0 * n_columns), "L2", adjacency, source)


def shared_names(adjacency: str) -> Sensitivity:
    """Weights of names: a row with k different ones adds 1/sqrt(k) to each. Nonnegative, of norm one."""
    source = "docs/proofs/preparation.md, Lemma 2"
    return _of_rows(1.0, math.sqrt(2.0), "L2", adjacency, source)


def name_threshold(scale: float, most: int, leak: float, adjacency: str) -> float:
    """Above it a name may be released: that one row's own names, at most `most` of them, get there has probability
    at most `leak`, over both tables together (two rows have names of their own under replace-one)."""
    _require_positive(scale=scale, most=most, leak=leak)
    own = _of_rows(leak, leak / 2.0, "abs", adjacency, "docs/proofs/preparation.md, Lemma 3").value
    t = np.arange(1.0, most + 1.0)
    tail = -ndtri(-np.expm1(math.log1p(-own) / t))  # Phi^-1((1 - leak)^(1/t)), from its tail
    return float(np.max(1.0 / np.sqrt(t) + scale * tail)) * (1.0 + 1e-12)


def _of_rows(
    add_remove: float, replace_one: float, norm: Norm, adjacency: str, source: str
) -> Sensitivity:
    values = {"add-remove": add_remove, "replace-one": replace_one}
    check_choice("adjacency", adjacency, tuple(values))
    return Sensitivity(float(values[adjacency]), norm, adjacency, source)


def _require_positive(**values: float) -> None:
    for name, value in values.items():
        if not (is_real(value) and 0 < value < math.inf):
            remedy = (
                " Bound the weights, or use a loss of bounded slope (logistic, huber)."
                if name == "slope_bound" and value == math.inf
                else ""
            )
            raise ParameterError(
                f"{name} must be a positive finite number, got {safe_repr(value)}.{remedy}"
            )

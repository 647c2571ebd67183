"""What accuracy can I expect? A public simulation, so that epsilon is chosen before a row is touched.

    rows      `entries` non-zeros each, columns with popularity 1/j, values of one size, norm as declared; where there
              are no more columns than entries a row is dense, its values uniform
    persons   have one row each, where the domain protects them: with more the fit is better
    targets   depend on `informative` of the popular columns; classes by a logistic law whose gain is set so that
              the best possible accuracy is `reachable`, numbers with noise so that the best possible R^2 is
    score     of the estimator itself, fitted on n_samples made-up rows and tested on others

No private row is read, so nothing is spent. What comes out is a forecast for tables that are like this; the two numbers
that matter, `reachable` and the rows at hand, are yours to state.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.base import clone

from dpsparse._checks import check_count, is_number, safe_repr
from dpsparse.accounting.guarantee import cautions
from dpsparse.domain import Domain
from dpsparse.exceptions import NotPrivateWarning, ParameterError
from dpsparse.methods.base import BaseDPLinearModel
from dpsparse.random import make_generator


@dataclass(frozen=True)
class Forecast:
    """Scores to expect for every epsilon: mean over made-up tables, and the lowest and highest of them."""

    method: str
    metric: str
    n_samples: int
    n_features: int
    epsilon: tuple[float, ...]
    score: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    without_privacy: float
    constant: float
    reachable: float
    cautions: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.method} on {self.n_samples:,} made-up rows x {self.n_features:,} features, {self.metric}:"
        ]
        lines += [
            f"  epsilon {e:<8g} {s:.3f}  ({low:.3f} to {high:.3f})"
            for e, s, low, high in zip(self.epsilon, self.score, self.low, self.high, strict=True)
        ]
        lines.append(f"  without privacy  {self.without_privacy:.3f}")
        lines.append(f"  constant answer  {self.constant:.3f}, best possible {self.reachable:.3f}")
        return "\n".join([*lines, *(f"  caution: {text}" for text in self.cautions)])


def expected_accuracy(
    estimator: BaseDPLinearModel,
    n_samples: int,
    n_features: int,
    *,
    epsilon: float | Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0),
    reachable: float = 0.9,
    informative: int = 20,
    entries: int = 20,
    repeats: int = 3,
    seed: int = 0,
) -> Forecast:
    """Scores that `estimator` reaches on made-up tables of a declared shape; reads no data, spends nothing.

    Parameters
    ----------
    estimator : estimator of dpsparse
        With its domain (two classes, or a target bound) and parameters; delta is its own.
    n_samples, n_features : int
        Shape of the table to come.
    epsilon : float or sequence of float, default=(0.1, 0.3, 1, 3, 10)
        Privacy losses to try, in natural log odds.
    reachable : float, default=0.9
        Best possible accuracy (or R^2) you would expect of the data. Take it from experience or public data.
    informative, entries : int, default=20
        Features that matter; non-zeros of a row (with as many columns or fewer, rows are dense).
    repeats : int, default=3
        Made-up tables; the spread over them is shown.
    seed : int, default=0
        Of the made-up tables and their noise.

    Returns
    -------
    Forecast
        Scores by epsilon, the lowest and highest of them, and what a constant answer reaches.

    Examples
    --------
    >>> from dpsparse import Domain, DPGradientClassifier, expected_accuracy
    >>> model = DPGradientClassifier(Domain(classes=[0, 1]))
    >>> forecast = expected_accuracy(model, 1_000, n_features=50, epsilon=[0.1, 10.0], repeats=1)
    >>> print(forecast)
    DPGradientClassifier on 1,000 made-up rows x 50 features, accuracy:
      epsilon 0.1      ...
      epsilon 10       ...
      without privacy  0.8...
      constant answer  0.500, best possible 0.900
    """
    for name, value in (
        ("n_samples", n_samples), ("n_features", n_features), ("informative", informative),
        ("entries", entries), ("repeats", repeats),
    ):  # fmt: skip
        check_count(name, value)
    if not isinstance(estimator, BaseDPLinearModel) or not isinstance(estimator.domain, Domain):
        raise ParameterError("estimator must be an estimator of dpsparse with a domain.")
    numbers, domain = estimator._labels_are_numbers, estimator.domain
    low_end = 0.0 if numbers else 0.5
    if not is_number(reachable) or not low_end < reachable < 1.0:
        raise ParameterError(
            f"reachable must lie strictly between {low_end:g} and 1, got {safe_repr(reachable)}."
        )
    asked = tuple(epsilon) if np.iterable(epsilon) else (epsilon,)
    grid = tuple(sorted(float(e) for e in asked if is_number(e) and 0 < e < math.inf))
    if not grid or len(grid) != len(asked):
        raise ParameterError("epsilon must list positive finite numbers, such as [0.3, 1, 3].")
    labels = None if numbers else domain.class_labels()
    if labels is not None and len(labels) != 2:
        raise ParameterError("The forecast is for two classes or for numbers.")
    domain = replace(domain, n_samples=domain.n_samples and n_samples)
    persons = {"groups": np.arange(n_samples)} if domain.unit == "person" else {}
    scores = np.empty((repeats, len(grid) + 2))
    for r in range(repeats):
        rng = make_generator(seed + r)
        shape = (n_samples + 5_000, n_features, entries, informative)  # the last ones to score
        X, y = _made_up(rng, *shape, reachable, domain, labels)
        for j, eps in enumerate((*grid, math.inf)):
            model = clone(estimator).set_params(
                domain=domain, epsilon=eps, ledger=None, random_state=seed + r, verbose=0
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotPrivateWarning)
                model.fit(X[:n_samples], y[:n_samples], **persons)
            scores[r, j] = model.score(X[n_samples:], y[n_samples:])
        test = y[n_samples:]
        scores[r, -1] = 0.0 if labels is None else max(np.mean(test == c) for c in labels)
    mean, (least, most) = scores.mean(axis=0), (scores.min(axis=0), scores.max(axis=0))
    return Forecast(
        method=type(estimator).__name__,
        metric="R^2" if numbers else "accuracy",
        n_samples=int(n_samples),
        n_features=int(n_features),
        epsilon=grid,
        score=tuple(mean[:-2].tolist()),
        low=tuple(least[:-2].tolist()),
        high=tuple(most[:-2].tolist()),
        without_privacy=float(mean[-2]),
        constant=float(mean[-1]),
        reachable=float(reachable),
        cautions=cautions(max(grid), estimator.delta, n_samples),
    )


def _made_up(
    rng: np.random.Generator,
    n: int,
    d: int,
    entries: int,
    informative: int,
    reachable: float,
    domain: Domain,
    labels: np.ndarray | None,
) -> tuple[sp.csr_array, np.ndarray]:
    informative = min(informative, d)
    if d <= entries:
        size = domain.row_norm / math.sqrt(d) if domain.row_norm else domain.entry_bound()
        X = sp.csr_array(rng.uniform(-size, size, (n, d)))
    else:
        places = np.exp(rng.random((n, entries)) * np.log(d + 1)).astype(np.int64)
        columns = np.minimum(places, d) - 1
        indptr = np.arange(0, n * entries + 1, entries)
        X = sp.csr_array((np.ones(n * entries), columns.ravel(), indptr), shape=(n, d))
        X.sum_duplicates()
        counts = np.diff(X.indptr)
        sizes = domain.row_norm * counts**-0.5 if domain.row_norm else domain.entry_bound()
        X.data = np.repeat(np.broadcast_to(sizes, n), counts)
    weights = np.zeros(d)
    # The very first columns occur in nearly every row and say little. No two weights have the same size, or rows
    # whose weights cancel could be guessed by nobody, and `reachable` would not be.
    first = min(4, d - informative)
    signs = rng.integers(0, 2, informative) * 2.0 - 1.0
    weights[first : first + informative] = signs * rng.uniform(0.5, 1.5, informative)
    margin = np.asarray(X @ weights)
    margin = (margin - np.median(margin)) / max(float(margin.std()), 1e-12)
    if labels is None:
        noise = rng.standard_normal(n) * math.sqrt(1.0 / reachable - 1.0)
        bound = domain.target_bound or 1.0
        return X, np.clip((margin + noise) / 4.0, -1.0, 1.0) * bound
    gain = find_gain(np.abs(margin), reachable)
    return X, labels[(rng.random(n) < expit(gain * margin)).astype(np.intp)]


def find_gain(sizes: np.ndarray, reachable: float) -> float:
    """Gain at which predicting by the sign of the margin is right with probability `reachable`."""

    def excess(gain: float) -> float:
        return float(expit(gain * sizes).mean()) - reachable

    return float(brentq(excess, 0.0, 1e3)) if excess(1e3) > 0.0 else 1e3

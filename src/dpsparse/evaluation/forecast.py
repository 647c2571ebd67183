"""The widths to expect, before any row is read: the report of a made-up population, without its randomness.

Two classes: normal scores, calibrated probabilities, AUC `assumed`. Several classes: a normal score for each, moved up
for the true one, so that accuracy is `assumed`. Numbers: normal targets with a standard deviation of a third of their
bound, R2 `assumed`. Made-up rows are measured as private ones are, by releases that leave out the noise and scale sums
to the number of rows to come.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri, softmax

from dpsparse._checks import check_count, check_share, check_terms
from dpsparse.accounting.plan import Plan
from dpsparse.evaluation.api import report_on
from dpsparse.evaluation.intervals import Estimate
from dpsparse.evaluation.plan import Measured, Subject, make_plan
from dpsparse.exceptions import ParameterError
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows.histogram import ScoredLabels, ScoredNumbers, log_odds
from dpsparse.rows.query import Query

MADE_UP_ROWS = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """The plan of an evaluation, and the interval of every metric where the population is as assumed."""

    plan: Plan[Measured]
    n_samples: int
    expected: Mapping[str, Estimate]
    without_privacy: Mapping[str, Estimate]

    @property
    def widths(self) -> dict[str, float]:
        """Width of the interval of every metric."""
        return {name: part.width for name, part in self.expected.items()}

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_samples": self.n_samples,
            "guarantee": self.plan.guarantee.to_dict(),
            "widths": self.widths,
            "widths_without_privacy": {k: e.width for k, e in self.without_privacy.items()},
        }

    def __str__(self) -> str:
        lines = [
            f"Evaluation on {self.n_samples:,} rows: {self.plan.guarantee.headline}",
            f"  {'metric':<12} {'width to expect':>16} {'without privacy':>16}",
        ]
        for name, part in self.expected.items():
            lines.append(
                f"  {name:<12} {part.width:>16.3g} {self.without_privacy[name].width:>16.3g}"
            )
        lines += [f"  caution: {text}" for text in self.plan.guarantee.cautions]
        return "\n".join(lines)

    __repr__ = __str__


def evaluation_plan(
    n_samples: int,
    epsilon: float,
    *,
    delta: float = 1e-6,
    adjacency: str = "add-remove",
    n_classes: int = 2,
    metrics: Iterable[str] | None = None,
    positive_rate: float = 0.5,
    assumed: float | None = None,
    level: float = 0.95,
) -> Forecast:
    """What `dp_evaluate` will cost and how wide its intervals will be, without data.

    Parameters
    ----------
    n_samples : int
        Rows (or persons) to come.
    epsilon, delta, adjacency, metrics, level : see `dp_evaluate`
        Price of the whole report, and what it holds.
    n_classes : int
        0 for a regressor, whose targets and errors are then in units of their bound.
    positive_rate : float
        Share of the second of two classes.
    assumed : float or None
        AUC of two classes (None: 0.8), accuracy of several (0.8), R2 of a regressor (0.5).

    Returns
    -------
    Forecast
        Widths to expect, with and without privacy.

    Examples
    --------
    >>> from dpsparse import evaluation_plan
    >>> forecast = evaluation_plan(n_samples=5_000, epsilon=0.2, metrics=["accuracy"])
    >>> print(forecast)
    Evaluation on 5,000 rows: (0.2, 1e-6)-DP of the evaluated table, add/remove one row, proven
      metric        width to expect  without privacy
      accuracy               0.0317           0.0265
    """
    check_count("n_samples", n_samples)
    check_terms(epsilon, delta, adjacency)
    if n_classes != 0:
        check_count("n_classes", n_classes)
    assumed = (0.8 if n_classes else 0.5) if assumed is None else assumed
    for name, value in (("positive_rate", positive_rate), ("assumed", assumed), ("level", level)):
        check_share(name, value)
    if n_classes == 1:
        raise ParameterError("n_classes must be 0 (a regressor), 2 or more.")
    subject = Subject(n_classes)
    asked = subject.check(metrics)

    rows = _make_up_rows(n_classes, assumed, positive_rate)

    def expected(plan: Plan[Measured]) -> Mapping[str, Estimate]:
        labels = list(range(n_classes))
        return report_on(rows, "", plan, labels, level, _ExpectedAnswers(plan, n_samples)).estimates

    terms: dict[str, Any] = {"delta": delta, "adjacency": adjacency}
    plan = make_plan(subject, asked, epsilon=epsilon, **terms)
    plan = replace(plan, n_units=int(n_samples))
    exact = make_plan(subject, asked, epsilon=math.inf, **terms)
    return Forecast(plan, int(n_samples), expected(plan), expected(exact))


class _ExpectedAnswers(Releases):
    """Answers that `n_samples` rows like the made-up ones would give on average; scales are those of the plan."""

    def __init__(self, plan: Plan[Measured], n_samples: int) -> None:
        super().__init__(plan, make_generator(0))
        self._n_samples = n_samples

    def number_of_rows(self, rows: Any) -> int | None:
        return self._n_samples if self._adjacency == "replace-one" else None

    def gaussian(self, phase: str, query: Query, share: float = 1.0) -> np.ndarray:
        unit = 2.0**-20
        return np.asarray(query.whole(unit) * (unit * self._n_samples / MADE_UP_ROWS))


def _make_up_rows(
    n_classes: int, assumed: float, positive_rate: float
) -> ScoredLabels | ScoredNumbers:
    rng = make_generator(0)
    if n_classes == 0:
        guess, error = rng.standard_normal((2, MADE_UP_ROWS)) / 3.0
        error *= math.sqrt(1.0 - assumed)
        return ScoredNumbers(error, guess * math.sqrt(assumed) + error)
    if n_classes == 2:
        n_positive = round(MADE_UP_ROWS * positive_rate)
        truth = np.repeat([0, 1], [MADE_UP_ROWS - n_positive, n_positive])
        # The log odds of a normal score with means -apart/2 and apart/2, at its quantiles.
        apart = math.sqrt(2.0) * float(ndtri(assumed))
        places = [ndtri((np.arange(n) + 0.5) / n) for n in np.bincount(truth, minlength=2)]
        score = apart * (np.concatenate(places) + apart * (truth - 0.5))
        score += math.log(positive_rate / (1.0 - positive_rate))
        chance = expit(score)
        chances = np.column_stack([1.0 - chance, chance])
        return ScoredLabels(truth, (score > 0).astype(np.intp), score, chances, 2)
    grid = np.linspace(-9.0, 9.0, 2001)
    density = np.exp(-0.5 * grid**2) / math.sqrt(2.0 * math.pi) * (grid[1] - grid[0])

    def accuracy(apart: float) -> float:
        """Probability that the true class has the largest score."""
        return float(density @ ndtr(grid + apart) ** (n_classes - 1))

    apart = brentq(lambda a: accuracy(a) - max(assumed, 1.01 / n_classes), 0.0, 20.0)
    truth = rng.integers(n_classes, size=MADE_UP_ROWS)
    scores = rng.standard_normal((MADE_UP_ROWS, n_classes))
    scores[np.arange(MADE_UP_ROWS), truth] += apart
    chances = softmax(apart * scores, axis=1)
    guess = chances.argmax(axis=1)
    return ScoredLabels(truth, guess, log_odds(chances.max(axis=1)), chances, n_classes)

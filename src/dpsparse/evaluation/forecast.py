"""The widths to expect, before any row is read: the report of a made-up population, without its randomness.

Two classes: normal scores, calibrated probabilities, AUC `assumed`. Several classes: accuracy `assumed`, errors
spread evenly. Numbers: normal targets with a standard deviation of a third of their bound, R2 `assumed`.
Expected sums go through the same formulas as released ones, with the noise variances of the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, ndtr, ndtri

from dpsparse._checks import check_count, check_share, check_terms
from dpsparse.accounting.events import RoundedGaussian
from dpsparse.accounting.plan import Plan
from dpsparse.evaluation import classification, regression
from dpsparse.evaluation.intervals import Estimate
from dpsparse.evaluation.plan import EDGES, Measured, Subject, cuts, make_plan, number_of_bins
from dpsparse.evaluation.released import Released
from dpsparse.exceptions import ParameterError
from dpsparse.rows.histogram import LONGEST_LOSS
from dpsparse.sensitivity import count_below, feature_masses, signed_sum

_HALVES = {  # sums of numbers in [0, 1], centred
    "log_loss", "log_loss_squares", "brier", "brier_squares", "absolute", "squares", "spread",
    "squares_squares", "spread_squares", "cross",
}  # fmt: skip


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
    n_classes : int
        0 for a regressor, whose targets and errors are then in units of their bound.
    positive_rate : float
        Share of the second of two classes.
    assumed : float or None
        AUC of two classes (None: 0.8), accuracy and AUC of several (0.8), R2 of a regressor (0.5).

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

    def expected(plan: Plan[Measured]) -> dict[str, Estimate]:
        if n_classes == 0:
            released = _numbers(plan, n_samples, assumed)
            return regression.measure(released, subject, asked, level)
        make = _two_classes if n_classes == 2 else _many_classes
        released = make(plan, n_samples, assumed, positive_rate if n_classes == 2 else n_classes)
        labels = list(range(n_classes))
        return classification.measure(released, subject, asked, labels, level)[0]

    terms: dict[str, Any] = {"delta": delta, "adjacency": adjacency}
    plan = make_plan(subject, asked, epsilon=epsilon, **terms)
    plan = replace(plan, n_units=int(n_samples))
    exact = make_plan(subject, asked, epsilon=math.inf, **terms)
    return Forecast(plan, int(n_samples), expected(plan), expected(exact))


def _variances(plan: Plan[Measured]) -> dict[str, float]:
    """Noise variance of one entry of every release, from the plan and the lemmas of `rows/histogram.py`."""
    out = {}
    for phase in plan.phases:
        name = phase.name
        if not isinstance(phase.event, RoundedGaussian):
            out[name] = 0.0
            continue
        if name in _HALVES:
            moved = signed_sum(0.5, plan.adjacency)
        elif name == "total":
            moved = signed_sum(1.0, plan.adjacency)
        elif name == "count":
            moved = count_below(plan.adjacency)
        else:
            times = plan.settings.subject.n_classes if name.startswith("class_") else 1
            moved = feature_masses(math.sqrt(times), plan.adjacency)
        out[name] = (moved.value * phase.event.scale) ** 2
    return out


def _released(
    plan: Plan[Measured], n: int, numbers: dict[str, np.ndarray], **more: Any
) -> Released:
    variance = _variances(plan)
    public = n if plan.adjacency == "replace-one" else None
    kept = {name: numbers[name] for name in variance}
    return Released(kept, variance, public, **more)


def _centred(n: int, mean: float) -> np.ndarray:
    return np.array([n * (mean - 0.5)])


def _two_classes(plan: Plan[Measured], n: int, auc: float, positive_rate: float) -> Released:
    apart = math.sqrt(2.0) * float(ndtri(auc))
    grid = np.linspace(-9.0, 9.0, 4001)
    weight = np.exp(-0.5 * grid**2)
    weight /= weight.sum()
    # Margins of the two classes: the log odds of a normal score with means -apart/2, apart/2.
    base = math.log(positive_rate / (1.0 - positive_rate))
    margins = [apart * (grid - apart / 2.0) + base, apart * (grid + apart / 2.0) + base]
    share = [1.0 - positive_rate, positive_rate]

    def histogram(edges: np.ndarray) -> np.ndarray:
        return np.array(
            [
                n * share[k] * np.bincount(np.searchsorted(edges, m), weight, len(edges) + 1)
                for k, m in enumerate(margins)
            ]
        )

    numbers = {"confusion": histogram(np.zeros(1)).ravel(), "cells": histogram(EDGES).sum(axis=0)}
    moments = np.zeros(4)
    for k, m in enumerate(margins):
        log_loss = np.minimum(np.logaddexp(0.0, -m if k else m) / LONGEST_LOSS, 1.0)
        brier = (k - expit(m)) ** 2
        moments += [share[k] * (weight @ v) for v in (log_loss, log_loss**2, brier, brier**2)]
    for name, moment in zip(
        ("log_loss", "log_loss_squares", "brier", "brier_squares"), moments, strict=True
    ):
        numbers[name] = _centred(n, float(moment))
    variance = _variances(plan)
    edges = None
    if "cells" in variance:
        v = variance["histogram"]
        moved = feature_masses(1.0, plan.adjacency).value
        n_bins = number_of_bins(n, moved / math.sqrt(v) if v > 0.0 else math.inf)
        edges = cuts(numbers["cells"], math.sqrt(variance["cells"]), n_bins)
        numbers["histogram"] = histogram(edges).ravel()
    return _released(plan, n, numbers, cuts=edges)


def _many_classes(plan: Plan[Measured], n: int, accuracy: float, n_classes: float) -> Released:
    K = int(n_classes)
    wrong = (1.0 - accuracy) / (K - 1)
    C = np.full((K, K), n * wrong / K)
    np.fill_diagonal(C, n * accuracy / K)
    edges = np.linspace(-2.0, 2.0, 15)
    sizes = np.array([1.0 - accuracy, accuracy])[:, None] * np.full(16, n / 16)
    log_loss = np.minimum(-np.log([accuracy, wrong]) / LONGEST_LOSS, 1.0)
    brier = np.array([0.5 * (1.0 - accuracy) ** 2, 0.5 * (1.0 + accuracy**2)])
    chance = np.array([accuracy, 1.0 - accuracy])
    numbers = {
        "outcomes": n * chance[::-1],
        "confusion": C.ravel(),
        "cells": np.zeros(len(EDGES) + 1),
        "histogram": sizes.ravel(),
        "log_loss": _centred(n, float(chance @ log_loss)),
        "log_loss_squares": _centred(n, float(chance @ log_loss**2)),
        "brier": _centred(n, float(chance @ brier)),
        "brier_squares": _centred(n, float(chance @ brier**2)),
    }
    # Of every class against the rest, normal scores in 16 bins of equal size.
    quantiles = ndtri(np.arange(1, 16) / 16)
    above = np.diff(ndtr(quantiles - math.sqrt(2.0) * ndtri(accuracy)), prepend=0.0, append=1.0)
    numbers["class_cells"] = np.zeros(K * (len(EDGES) + 1))
    of_class = np.concatenate([np.full(16, n * (K - 1) / K / 16), n / K * above])
    numbers["class_histogram"] = np.tile(of_class, K)
    return _released(plan, n, numbers, cuts=edges, class_cuts=(quantiles,) * K)


def _numbers(plan: Plan[Measured], n: int, r2: float) -> Released:
    y, e = 1.0 / 9.0, (1.0 - r2) / 9.0  # variances of target and error; their covariance is e
    moments = {
        "absolute": math.sqrt(2.0 * e / math.pi),
        "squares": e,
        "spread": y,
        "squares_squares": 3.0 * e * e,
        "spread_squares": 3.0 * y * y,
        "cross": e * y + 2.0 * e * e,
    }
    numbers = {name: _centred(n, value) for name, value in moments.items()}
    numbers |= {"count": np.array([float(n)]), "total": np.zeros(1)}
    return _released(plan, n, numbers)

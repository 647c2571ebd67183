"""What an evaluation releases and what it costs, before any row is read.

Every release is a histogram or a sum with Gaussian noise; a share f of the budget means m^2 = f mu^2. Only what
the asked metrics need is released, and the shares are stretched to fill the budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpsparse.accounting.budget import Budget
from dpsparse.accounting.events import NonPrivate, RoundedGaussian
from dpsparse.accounting.guarantee import EVALUATED, PERSON, ROW, Plan
from dpsparse.exceptions import ParameterError
from dpsparse.sensitivity import Sensitivity, count_below, feature_masses, signed_sum

MOST_BINS = 64  # of a histogram of scores
# Public cells of scores: +-2^(k/4), from 1/256 to 64.
SCORE_EDGES = np.sort(np.outer([-1.0, 1.0], 2.0 ** (np.arange(-32, 25) / 4.0)), axis=None)

# What is released, and its share of mu^2 by kind of model: all metrics together then have intervals of about one width
# (tests/evaluation/interval_coverage.py). What is not asked for is left out and the rest stretched.
RELEASES: dict[str, tuple[str, dict[str, float]]] = {
    "outcomes": ("rows guessed right and wrong", {"several classes": 0.15}),
    "confusion": ("rows by class and guess", {"two classes": 0.20, "several classes": 0.25}),
    "cells": ("rows by public cell of the score: where to cut", {"two classes": 0.15, "several classes": 0.10}),
    "histogram": (
        "rows by class (or right and wrong) and bin of the score", {"two classes": 0.40, "several classes": 0.25},
    ),
    "log_loss": ("sum of the log loss, cut at 6", {"two classes": 0.07, "several classes": 0.07}),
    "log_loss_squares": ("sum of its squares: sampling error", {"two classes": 0.055, "several classes": 0.055}),
    "brier": ("sum of the squared errors of the probabilities", {"two classes": 0.07, "several classes": 0.07}),
    "brier_squares": ("sum of their squares: sampling error", {"two classes": 0.055, "several classes": 0.055}),
    "count": ("number of rows or persons", {"numbers": 0.15}),
    "total": ("sum of the targets", {"numbers": 0.10}),
    "absolute": ("sum of the absolute errors", {"numbers": 0.15}),
    "squares": ("sum of the squared errors", {"numbers": 0.20}),
    "spread": ("sum of the squared targets about their mean", {"numbers": 0.15}),
    "squares_squares": ("sum of fourth powers of the errors: sampling error", {"numbers": 0.10}),
    "spread_squares": ("sum of fourth powers of the targets: sampling error", {"numbers": 0.05}),
    "cross": ("sum of squared error times squared target: sampling error", {"numbers": 0.10}),
}  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """Public facts about a model: how many classes (0: it predicts numbers) and what it can say of a row."""

    n_classes: int
    ranks: bool = True  # a score for every row
    has_chances: bool = True  # probabilities of the classes
    target_bound: float = 1.0
    error_bound: float = 1.0
    target_middle: float = 0.0  # of a declared range, from which its targets are taken
    positive: str = ""  # of two classes the one that precision, recall and F1 are about
    weighted: bool = False  # rows have weights, and their sum is not public
    own: bool = False  # a linear model of this library, which scores every row by itself
    private: bool = False  # its own guarantee is proven

    @property
    def metrics(self) -> tuple[str, ...]:
        """What can be measured for such a model."""
        if self.n_classes == 0:
            return ("mae", "mse", "r2")
        ranked = ("roc", "auc") if self.ranks and self.n_classes == 2 else ()
        chances = ("calibration", "log_loss", "brier") if self.has_chances else ()
        return ("accuracy", "precision", "recall", "f1", "mcc", "confusion", *ranked, *chances)

    def check(self, metrics: Iterable[str] | None) -> tuple[str, ...]:
        """The asked metrics, or all; one that this model has not is refused."""
        listed = metrics is None or (
            isinstance(metrics, (list, tuple, set))
            and all(isinstance(name, str) for name in metrics)
        )
        asked = self.metrics if metrics is None else tuple(metrics)
        if (
            not listed or not asked
        ):  # a column passed by mistake is no list: its cells are not shown
            raise ParameterError("metrics must be a list of names, or None for all.")
        for name in asked:
            if name not in self.metrics:
                raise ParameterError(
                    f"There is no metric {name!r} for this model; there are: {', '.join(self.metrics)}."
                )
        return asked


def shares(subject: Subject, metrics: Iterable[str], adjacency: str) -> dict[str, float]:
    """Share of the budget of every release that the metrics need; they add up to 1."""
    kind = {0: "numbers", 2: "two classes"}.get(subject.n_classes, "several classes")
    table = {name: shares[kind] for name, (_, shares) in RELEASES.items() if kind in shares}
    needed: set[str] = set()
    for metric in metrics:
        needed |= _needs(metric, subject, adjacency == "replace-one" and not subject.weighted)
    # In the order of the table: that of a set differs from process to process, and with it the last digit of a sum.
    chosen = {name: share for name, share in table.items() if name in needed}
    total = sum(chosen.values())
    return {name: share / total for name, share in chosen.items()}


def _needs(metric: str, subject: Subject, number_is_public: bool) -> set[str]:
    counting = "confusion" if subject.n_classes == 2 else "outcomes"
    if subject.n_classes == 0:
        needs = {
            "mae": {"absolute", "squares"},
            "mse": {"squares", "squares_squares"},
            "r2": {"total", "squares", "spread", "squares_squares", "spread_squares", "cross"},
        }[metric]
        return needs if number_is_public else needs | {"count"}
    if metric in ("log_loss", "brier"):
        return {metric, f"{metric}_squares"} | (set() if number_is_public else {counting})
    if metric in ("roc", "auc", "calibration"):
        return {"cells", "histogram"}
    return {counting} if metric == "accuracy" else {"confusion"}


def make_plan(
    subject: Subject,
    metrics: tuple[str, ...],
    *,
    epsilon: float,
    delta: float,
    adjacency: str,
    unit: str = ROW,
) -> Plan:
    """The price of an evaluation, from public facts only."""
    sizes = {
        "confusion": subject.n_classes**2,
        "outcomes": 2,
        "cells": len(SCORE_EDGES) + 1,
        "histogram": 2 * MOST_BINS,
    }
    budget = Budget(epsilon, delta)
    for name, share in shares(subject, metrics, adjacency).items():
        budget.gaussian(name, share, sizes.get(name, 1), RELEASES[name][0])
    return Plan(
        method="dp_evaluate",
        phases=budget.phases(),
        epsilon=float(epsilon),
        delta=delta,
        adjacency=adjacency,
        unit=unit,
        table=EVALUATED,
        source="docs/proofs/evaluation.md",
        assumptions=_assumptions(subject, adjacency, unit),
        parameters={"metrics": ", ".join(metrics), "mu": budget.mu},
    )


def _assumptions(subject: Subject, adjacency: str, unit: str) -> tuple[str, ...]:
    """What a guarantee rests on. Our linear models are evaluated row by row here; of others this is assumed."""
    facts = ["tables have at least one row"]
    if not subject.private:
        facts.append("the model is public: it was not fitted on these rows without privacy")
    if not subject.own:
        facts.append(
            "the model scores every row by itself: the score of a row does not depend on other rows"
        )
    if adjacency == "replace-one":
        of = "persons" if unit == PERSON else "rows"
        facts.append(f"the number of {of} is public (replace-one)")
    return tuple(facts)


def noise_variance(name: str, plan: Plan) -> float:
    """The variance of the noise on one number of a release: what its phase says, in units of what a row adds."""
    event = next((phase.event for phase in plan.phases if phase.name == name), None)
    if isinstance(event, RoundedGaussian):
        return (_sensitivity(name, plan.adjacency).value * event.scale) ** 2
    return 0.0 if isinstance(event, NonPrivate) else math.inf


def _sensitivity(name: str, adjacency: str) -> Sensitivity:
    """What one row or person adds to a release, at most (rows/histogram.py)."""
    if name == "count":
        return count_below(adjacency)
    if name in ("confusion", "outcomes", "cells", "histogram"):
        return feature_masses(1.0, adjacency)
    return signed_sum(1.0 if name == "total" else 0.5, adjacency)


def number_of_bins(n: float, mu: float) -> int:
    """Bins of the histogram: sqrt(rows * mu), so that a bin holds more than its noise. 8 to 64."""
    product = min(max(n, 0.0) * mu, 1e9) if n > 0.0 else 0.0
    return int(np.clip(round(math.sqrt(product)), 8, MOST_BINS))


def cuts(cells: np.ndarray, sd: float, n_bins: int) -> np.ndarray:
    """Cut points at the quantiles of a released coarse histogram; linear inside a cell."""
    mass = np.where(cells >= 2.0 * sd, np.maximum(cells, 0.0), 0.0)
    if mass.sum() <= 0.0:
        return SCORE_EDGES[:: -(-len(SCORE_EDGES) // (n_bins - 1))]
    rising = np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])
    quantiles = np.arange(1, n_bins) / n_bins
    at = np.clip(np.searchsorted(rising, quantiles) - 1, 0, len(mass) - 1)
    left = np.concatenate([[1.25 * SCORE_EDGES[0]], SCORE_EDGES])[at]
    right = np.concatenate([SCORE_EDGES, [1.25 * SCORE_EDGES[-1]]])[at]
    inside = (quantiles - rising[at]) / np.maximum(rising[at + 1] - rising[at], 1e-12)
    return np.unique(left + (right - left) * np.clip(inside, 0.0, 1.0))

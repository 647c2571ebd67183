"""A search, priced and run: small fits to compare, one private choice, and a fit of the winner with the rest.

    search i   a small fit of every setting that changes the noisy run; left out where one fit serves all candidates
    choice     j with probability proportional to e^(kappa score_j), by the exact draw on whole numbers
               score_j = number of rows that candidate j predicts rightly, minus half of all rows
    fit        the chosen setting, with what is left of the budget

Every line reads all rows and pays for what it releases, so the whole is an adaptive composition. Which setting is
fitted last depends on rows, so the last line is charged as the dearest of all settings. With probability .95 the chosen
candidate has at most log(k/.05)/kappa fewer right rows than the best of k. Proof: docs/proofs/tuning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from sklearn.base import clone

from dpsparse.accounting import (
    REST,
    Budget,
    Event,
    Exponential,
    Phase,
    Plan,
    RoundedGaussian,
    ThresholdedGaussian,
    gaussian_parameter,
)
from dpsparse.accounting.events import leaves
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import BaseDPLinearModel, Settings, Solution
from dpsparse.model_selection.candidates import Candidate, apply_free_parameters, group_by_fit
from dpsparse.preprocessing.pipeline import replan_for_width
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.scores import LinearModel, centred_scores


@dataclass(frozen=True)
class Setting:
    """What is searched, before any row is read; everything in it is public."""

    estimator: BaseDPLinearModel
    candidates: list[Candidate]
    delta: float
    n_features: int
    labels: np.ndarray | None

    @property
    def score_unit(self) -> float:
        """Grid of scores: a row is right or wrong by one half; those of numbers and of persons are rounded to it."""
        rows = self.estimator._domain.unit == "row"
        return 0.5 if self.labels is not None and rows else 2.0**-12

    def plan_fit(self, name: str, candidate: Candidate, epsilon: float) -> Fit:
        """The fit of a setting at a price."""
        model: BaseDPLinearModel = clone(self.estimator)
        model.set_params(
            **candidate, epsilon=epsilon, delta=self.delta, random_state=None, verbose=0
        )
        model._check_parameters()
        return Fit(name, model, model._priced(self.n_features, self.labels))


@dataclass(frozen=True)
class Fit:
    """One fit of a search: an estimator with its own priced plan."""

    name: str
    model: BaseDPLinearModel
    plan: Plan[Settings] = field(repr=False)

    def run(self, rows: Rows, releases: Releases) -> Solution:
        return self.plan.settings.solve(rows, releases.under(self.plan, self.name))


@dataclass(frozen=True)
class Search:
    """A priced search and the run that spends its phases."""

    setting: Setting
    of_candidate: tuple[int, ...]  # which fit serves a candidate
    fits: tuple[Fit, ...]  # to compare; empty where one final fit serves all candidates
    finals: tuple[Fit, ...]
    choice: Plan

    @property
    def max_rows(self) -> int | None:
        """Rows that every fit is proven for; None: any number."""
        limits = [fit.plan.max_rows for fit in (*self.fits, *self.finals)]
        return min((limit for limit in limits if limit is not None), default=None)

    def run(self, rows: Rows, releases: Releases) -> tuple[int, Solution]:
        """Which candidate was chosen, and its released weights."""
        if not self.fits:
            solution = self.finals[0].run(rows, releases)
            best = self._choose(rows, [solution], releases)
        else:
            best = self._choose(rows, [fit.run(rows, releases) for fit in self.fits], releases)
            solution = self.finals[self.of_candidate[best]].run(rows, releases)
        return best, self._apply(best, solution)

    def _apply(self, index: int, solution: Solution) -> Solution:
        setting = self.setting
        return apply_free_parameters(solution, setting.candidates[index], setting.estimator)

    def _choose(self, rows: Rows, solutions: list[Solution], releases: Releases) -> int:
        bound = rows.domain.target_bound or 1.0
        models = []
        for index, place in enumerate(self.of_candidate):
            made = self._apply(index, solutions[place])
            models.append(LinearModel(made.coef, made.intercept, bound))
        scores = centred_scores(rows, models)
        choice = releases.under(self.choice, "choice")
        return int(choice.top_k("choice", scores, 1, self.setting.score_unit)[0])

    def for_width(self, width: int) -> Search | None:
        """The same search for fewer columns with the noise that was reserved, or None if a fit has no such plan."""
        planned, labels = self.setting.n_features, self.setting.labels
        fits = []
        for fit in (*self.fits, *self.finals):
            plan = replan_for_width(fit.model, fit.plan, planned, width, labels)
            if plan is None:
                return None
            fits.append(replace(fit, plan=plan))
        k, setting = len(self.fits), replace(self.setting, n_features=width)
        return replace(self, setting=setting, fits=tuple(fits[:k]), finals=tuple(fits[k:]))


def price_search(setting: Setting, budget: Budget, left: float) -> Search:
    """The search that a budget pays for; `left` is the share that other lines leave, and all of it is spent: .2 for the
    fits that are compared, together, .03 for the choice (docs/tuning.md), the rest for the last fit."""
    settings, of_candidate = group_by_fit(setting.candidates, setting.estimator)
    k = len(settings)

    def price_compared(name: str, point: Candidate, epsilon: float) -> tuple[Phase, ...]:
        fit = setting.plan_fit(name, point, epsilon)
        note = f"a fit of {type(fit.model).__name__}"
        return (Phase(name, merge_gaussians(fit.plan.event), note),)

    def plan_finals(epsilon: float) -> tuple[Fit, ...]:
        return tuple(setting.plan_fit("fit", point, epsilon) for point in settings)

    def price_finals(epsilon: float) -> tuple[Phase, ...]:
        """The last fit is charged as the dearest setting, whichever of them runs."""
        event = dearest_event([merge_gaussians(fit.plan.event) for fit in plan_finals(epsilon)])
        return (Phase("fit", event, "the model that is released"),)

    compared = [(f"search {i + 1}", point) for i, point in enumerate(settings)] if k > 1 else []
    for name, point in compared:
        budget.nested(name, left * 0.2 / k, partial(price_compared, name, point))
    if not compared:
        budget.nested("fit", REST, price_finals)
    note = f"one of {len(setting.candidates)} candidates, by the exponential mechanism"
    budget.picks("choice", left * 0.03, 1, note)
    if compared:
        budget.nested("fit", REST, price_finals)
    (chosen,) = (phase for phase in budget.phases() if phase.name == "choice")
    assert isinstance(chosen.event, Exponential)
    return Search(
        setting,
        of_candidate,
        tuple(setting.plan_fit(name, point, budget.price(name)) for name, point in compared),
        plan_finals(budget.price("fit")),
        Plan("choice", (chosen,), chosen.event.eta, setting.delta, setting.estimator.adjacency),
    )


def merge_gaussians(event: Event) -> Event:
    """One Gaussian event for a run of Gaussian events, whose mu^2 add up; anything else as it is."""
    if all(type(leaf) is RoundedGaussian for leaf in leaves(event)):
        return _dominating_gaussian(event) or event
    return event


def dearest_event(events: list[Event]) -> Event:
    """An event that is at least as dear as each of these: one of them if all are alike, else a dominating Gaussian."""
    if len(set(events)) == 1:
        return events[0]
    gaussians = [_dominating_gaussian(event) for event in events]
    known = [event for event in gaussians if event is not None]
    if len(known) < len(gaussians):
        raise ParameterError(
            "These candidates pay for their noise in different ways, and a search must charge the dearest, which "
            "is not known here. Give them the same number of steps, and the same ridge where a fit tilts its objective."
        )
    return RoundedGaussian(min(e.scale for e in known), 1.0, max(e.size for e in known))


def _dominating_gaussian(event: Event) -> RoundedGaussian | None:
    """The Gaussian event that dominates a run of any steps for which one is known (docs/proofs/accounting.md).

    A step may reveal more with a probability far below the distance of one drawn value from its law, so every step
    is charged as such a value.
    """
    counts = leaves(event)
    size = sum(count * getattr(leaf, "size", 1) for leaf, count in counts.items())
    mu, slack = gaussian_parameter(event)
    leaks = any(isinstance(leaf, ThresholdedGaussian) for leaf in counts)
    if leaks or math.isinf(mu) or slack > size * 2.0**-100:
        return None
    return RoundedGaussian(1.0 / mu, 1.0, size)

"""Free candidates: one fit on all rows, every candidate is made of its released weights, one paid choice.

    fit        mu sqrt(1-f)
    scores_j   number of rows that variant j predicts rightly, minus half of all rows
    choice     j with probability proportional to e^(eta' scores_j), by the exact draw on whole numbers
               mu sqrt(f), f = 3 % by default

The choice reads the rows that the fit has read and pays for it. With probability .95 the chosen variant has at most
log(k/.05)/eta fewer right rows than the best of k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dpsparse.model_selection.candidates import linear, variant, widest
from dpsparse.model_selection.design import Fit, Setting, Winner
from dpsparse.model_selection.pricing import (
    choice_parameter,
    choice_plan,
    choice_range,
    gaussian_parameter,
    merged,
)
from dpsparse.privacy import Event, Exponential, Gaussian, Phase, Plan, Sequence
from dpsparse.privacy.budget import gaussian_parameter_at, largest_affordable
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.held_out import centred_scores

SHARE = 0.03


@dataclass(frozen=True)
class PathDesign:
    name: ClassVar[str] = "path"

    setting: Setting
    fit: Fit
    choice: Plan
    phases: tuple[Phase, ...]
    kept: float
    facts: dict[str, Any]

    def run(self, rows: Rows, releases: Releases) -> Winner:
        setting = self.setting
        solution, n_iter = self.fit.run(rows, releases.under(self.fit.plan, "fit"))
        variants = [variant(solution, point, cut=True) for point in setting.candidates]
        models = [linear(v, rows.domain) for v in variants]
        choice = releases.under(self.choice, "choice")
        best = int(choice.top_k("choice", centred_scores(rows, models), 1, setting.unit)[0])
        return Winner(best, variants[best], n_iter)


def path_design(setting: Setting) -> PathDesign:
    """The design, priced."""
    f = SHARE if setting.share is None else setting.share
    base = widest(setting.candidates, setting.estimator)

    def spend(mu: float) -> tuple[Event, tuple[Fit, float, Event, Event]]:
        fit = setting.fit(base, mu * math.sqrt(1.0 - f))
        eta = choice_range(mu * math.sqrt(f))
        event = merged(fit.plan.event)
        paid = choice_event(eta, event)
        return Sequence((event, paid)), (fit, eta, event, paid)

    mu, (fit, eta, event, paid) = largest_affordable(spend, setting.epsilon, setting.delta)
    k = len(setting.candidates)
    return PathDesign(
        setting,
        fit,
        choice_plan(eta, setting.delta, setting.adjacency),
        (
            Phase("fit", event, "one fit on all rows"),
            Phase("choice", paid, f"one of {k} free candidates on the same rows, eta {eta:.4g}"),
        ),
        mu * math.sqrt(1.0 - f) / gaussian_parameter_at(setting.epsilon, setting.delta),
        {"rows_lost_at_95": math.ceil(math.log(k / 0.05) / eta)},
    )


def choice_event(eta: float, beside: Event) -> Event:
    """What a choice of range `eta` costs: beside Gaussians as the Gaussian that dominates it."""
    if gaussian_parameter(beside) is None:
        return Exponential(eta)
    return Gaussian(1.0 / choice_parameter(eta))

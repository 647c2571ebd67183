"""Search, choose, refit: all candidates on a secret part A, the choice on the rest B, the winner on all rows.

    fits on A     mu sqrt(f/k) each                      a row of A pays  f mu^2 for the search
    choice on B   exponential mechanism of range eta     a row of B pays at most that: eta is chosen so
    refit         mu sqrt(1-f) on all rows

A row is in one part only, so it pays the larger of the two, and both are equal (docs/proofs/tuning.md, Lemma 1). That
needs fits of Gaussian noise alone; for others the rows of B and A are charged for both. For few candidates whose
ranking does not depend on the noise: the searched fits have sqrt(k/f) times the noise of an untuned one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpsparse.exceptions import ParameterError
from dpsparse.model_selection.candidates import linear, paid, variant
from dpsparse.model_selection.design import PARTS, Fit, Setting, Winner, secret_split
from dpsparse.model_selection.pricing import (
    choice_plan,
    choice_range,
    dominating,
    gaussian_parameter,
    merged,
)
from dpsparse.privacy import Event, Exponential, Phase, Plan, RoundedGaussian, Sequence
from dpsparse.privacy.budget import gaussian_parameter_at, largest_affordable
from dpsparse.release import Releases
from dpsparse.rows import Rows
from dpsparse.rows.held_out import centred_scores

SHARE = 0.2
_CHOICE = 0.03  # of mu^2, where the choice is charged beside fits that are not Gaussian


@dataclass(frozen=True)
class RefitDesign:
    name: ClassVar[str] = "refit"

    setting: Setting
    fits: tuple[Fit, ...]
    of_candidate: tuple[int, ...]  # which fit serves a candidate
    finals: tuple[Fit, ...]  # one for every fit; only the winner's runs
    choice: Plan
    phases: tuple[Phase, ...]
    kept: float
    facts: dict[str, Any]

    def run(self, rows: Rows, releases: Releases) -> Winner:
        setting = self.setting
        training, testing = secret_split(rows, setting.split, releases)
        searched = [
            fit.run(training, releases.under(fit.plan, f"search {i}", "A"))[0]
            for i, fit in enumerate(self.fits)
        ]
        models = [
            linear(variant(searched[i], point, cut=False), rows.domain)
            for i, point in zip(self.of_candidate, setting.candidates, strict=True)
        ]
        choice = releases.under(self.choice, "choice", "B")
        best = int(choice.top_k("choice", centred_scores(testing, models), 1, setting.unit)[0])
        final = self.finals[self.of_candidate[best]]
        solution, n_iter = final.run(rows, releases.under(final.plan, "refit"))
        return Winner(best, variant(solution, setting.candidates[best], cut=False), n_iter)


def refit_design(setting: Setting) -> RefitDesign:
    """The design, priced."""
    f = SHARE if setting.share is None else setting.share
    settings, of_candidate = _different(setting)
    k, delta = len(settings), setting.delta
    inside = (PARTS - 1) / PARTS

    def spend(mu: float) -> tuple[Event, tuple[Any, ...]]:
        small, large = mu * math.sqrt(f / k), mu * math.sqrt(1.0 - f)
        fits = tuple(setting.fit(point, small, share_of_rows=inside) for point in settings)
        finals = tuple(setting.fit(point, large) for point in settings)
        search = merged(Sequence(tuple(fit.plan.event for fit in fits)))
        last = _dearest([merged(fit.plan.event) for fit in finals])
        parameter = gaussian_parameter(search)
        if parameter is None:
            eta = choice_range(mu * math.sqrt(_CHOICE))
            search = Sequence((search, Exponential(eta)))
        else:
            eta = choice_range(parameter)
        return Sequence((search, last)), (fits, finals, eta, search, last)

    mu, (fits, finals, eta, search, last) = largest_affordable(spend, setting.epsilon, delta)
    whole = gaussian_parameter_at(setting.epsilon, delta)
    return RefitDesign(
        setting,
        fits,
        of_candidate,
        finals,
        choice_plan(eta, delta, setting.adjacency),
        (
            Phase("search", search, f"{k} fits on part A, or one choice on part B, eta {eta:.4g}"),
            Phase("refit", last, "the chosen candidate on all rows"),
        ),
        mu * math.sqrt(1.0 - f) / whole,
        {"searched_fits_keep": mu * math.sqrt(f / k) / whole},
    )


def _different(setting: Setting) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
    """Settings that need a fit of their own, and which of them serves each candidate."""
    settings: list[dict[str, Any]] = []
    places = []
    for point in setting.candidates:
        mine = paid(point)
        known = [i for i, other in enumerate(settings) if _same(mine, other)]
        if not known:
            settings.append(mine)
        places.append(known[0] if known else len(settings) - 1)
    return settings, tuple(places)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[n], other[n]) for n in one)


def _dearest(events: list[Event]) -> Event:
    """Which candidate is refitted depends on rows, so the refit is charged as the dearest of all.

    Runs of different kinds are compared, and charged, by the Gaussians that dominate them.
    """
    if len(set(events)) == 1:
        return events[0]
    gaussians = [dominating(event) for event in events]
    known = [event for event in gaussians if event is not None]
    if len(known) < len(gaussians):
        raise ParameterError(
            "These candidates pay for their noise in different ways, and a search must charge the dearest, which "
            "is not known here; give them the same kind of noise and number of steps."
        )
    return RoundedGaussian(min(e.scale for e in known), 1.0, max(e.size for e in known))

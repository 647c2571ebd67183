"""The noise of whole runs of `dp_inference`, for every combination of its options, has the law that its price buys.

Scales are made again here: the sensitivity that the adjacency gives a query of the bound at hand, over mu, the Gaussian
parameter of (epsilon, delta) found by bisection on its formula. Nothing of plan or releases is asked about itself. The
right noise fails a test with probability 1e-5, and noise 10 % too small passes one with 1e-3; seeds are fixed.
"""

import itertools
import math
from collections import defaultdict
from functools import cache

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from dpsparse import Domain, DPGradientClassifier, dp_inference
from dpsparse.inference.intervals import INTERVAL_SHARES
from dpsparse.preprocessing import DPPipeline, DPStandardizer
from dpsparse.random import make_generator
from dpsparse.release import Releases, releases_made_by

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.BudgetWarning")
ALARM, RUNS, N = 1e-5, 20, 300
EPSILON, DELTA = 2.0, 1e-5
UNITS = {
    "row": {},
    "person": {"unit": "person"},
    "two rows of a person": {"unit": "person", "rows_per_unit": 2},
}
BOUNDS = {
    "bounds": {"bounds": [(0, 100), (-1, 1), (0, 1), (-9, 9), (5, 6)]},
    "feature_bound": {"feature_bound": 50.0},
    "row_norm": {"row_norm": 60.0},
}
OPTIONS = [
    *itertools.product(("add-remove", "replace-one"), UNITS, BOUNDS),
    *itertools.product(("add-remove", "replace-one"), UNITS, ("pipeline",)),
]


def gaussian_parameter():
    """mu with delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)."""

    def excess(mu):
        far = stats.norm.cdf(-mu / 2 - EPSILON / mu)
        return stats.norm.cdf(mu / 2 - EPSILON / mu) - math.exp(EPSILON) * far - DELTA

    return brentq(excess, 1e-3, 10.0)


class Watched(Releases):
    """Writes down the noise of every release in units of the sensitivity of its query."""

    factor = 1.0

    def __init__(self, plan, seen, seed):
        super().__init__(plan, make_generator(seed))
        self.seen = seen

    def scale(self, phase, query, share=1.0):
        return self.factor * super().scale(phase, query, share)

    def _release(self, phase, mechanism):
        whole = mechanism.question()
        answer = mechanism.draw(whole.copy(), self.rng)
        moved = mechanism.query.sensitivity("add-remove").value
        self.seen.append((phase, (answer - whole) * mechanism.unit / moved))
        return answer


class TooQuiet(Watched):
    factor = 0.9


@cache
def table():
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [
            rng.uniform(0, 100, N), rng.uniform(-1, 1, N), rng.random(N) < 0.3, 3 * rng.standard_normal(N),
            5.5 + 0.1 * rng.standard_normal(N),
        ]
    )  # fmt: skip
    y = (X[:, 0] / 50 - 1 + X[:, 1] + rng.logistic(size=N) > 0).astype(int)
    return X.astype(float), y, rng.integers(0, 150, N)


@cache
def fitted_pipeline(unit):
    X, y, persons = table()
    model = DPGradientClassifier(Domain(classes=[0, 1], **UNITS[unit]), n_iter=2)
    pipe = DPPipeline([("scale", DPStandardizer()), ("model", model)], epsilon=5.0)
    return pipe.fit(X, y, **({} if unit == "row" else {"groups": persons}))


@cache
def noise_of_runs(kind):
    """(options, phase) -> all noise of some runs, which is standard normal if it is right."""
    mu = gaussian_parameter()
    X, y, persons = table()
    found = defaultdict(list)
    for adjacency, unit, bounds in OPTIONS:
        terms = {"epsilon": EPSILON, "delta": DELTA, "adjacency": adjacency}
        if bounds == "pipeline":
            terms["pipeline"] = fitted_pipeline(unit)
        else:
            terms["domain"] = Domain(classes=[0, 1], **UNITS[unit], **BOUNDS[bounds])
        # Removing a row moves a sum by its bound, exchanging one moves signed sums by twice the bound and sums of
        # positive semidefinite matrices by sqrt 2 times.
        for _ in range(RUNS):
            seen, seed = [], len(found) + len(found[(adjacency, unit, bounds), "look"])
            with releases_made_by(lambda plan, seen=seen, seed=seed: kind(plan, seen, seed)):
                dp_inference(
                    X, y, [2, 0, 1, 4, 3], groups=None if unit == "row" else persons, **terms
                )
            assert [phase for phase, _ in seen] == list(INTERVAL_SHARES)
            for phase, noise in seen:
                factor = 1.0
                if adjacency == "replace-one":
                    factor = 2.0 if phase.startswith("gradient") else math.sqrt(2.0)
                size = mu * math.sqrt(INTERVAL_SHARES[phase]) / factor
                found[(adjacency, unit, bounds), phase].append(size * noise)
    return {key: np.concatenate(parts) for key, parts in found.items()}


def p_value(noise):
    squares = stats.chi2(len(noise)).cdf(float(noise @ noise))
    return min(1.0, 2 * min(stats.kstest(noise, "norm").pvalue, 2 * min(squares, 1 - squares)))


def pooled(kind, chosen):
    parts = [noise for key, noise in noise_of_runs(kind).items() if chosen(*key)]
    return np.concatenate(parts)


@pytest.mark.heavy
@pytest.mark.parametrize("phase", INTERVAL_SHARES)
def test_every_release_has_the_noise_it_is_paid_for(phase):
    def of_phase(options, name):
        return name == phase

    assert p_value(pooled(Watched, of_phase)) > ALARM
    assert p_value(pooled(TooQuiet, of_phase)) < ALARM


@pytest.mark.parametrize("options", OPTIONS, ids=lambda parts: ", ".join(parts))
def test_every_combination_of_options_has_the_noise_it_is_paid_for(options):
    assert p_value(pooled(Watched, lambda found, name: found == options)) > ALARM


def test_the_noise_of_all_options_together_shows_a_tenth():
    for adjacency, unit in itertools.product(("add-remove", "replace-one"), UNITS):
        quiet = pooled(TooQuiet, lambda found, name, at=(adjacency, unit): found[:2] == at)
        assert p_value(quiet) < ALARM

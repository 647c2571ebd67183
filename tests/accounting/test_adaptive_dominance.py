"""Gaussian domination: the shipped table is certified, the lemmas around it hold, mutants do not."""

import importlib.util
import math
from itertools import pairwise
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtri

from dpsparse.accounting import (
    Exponential,
    Gaussian,
    Geometric,
    NonPrivate,
    ObjectivePerturbation,
    Pure,
    Repeated,
    Sequence,
    gaussian_parameter,
)
from dpsparse.accounting.adaptive import bounded_range_profile
from dpsparse.accounting.dominance import (
    GRID,
    _from_entry,
    _table,
    bounded_range_mu,
    is_dominated,
)


def _script():
    path = Path(__file__).with_name("gaussian_table.py")
    spec = importlib.util.spec_from_file_location("gaussian_table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _entries():
    return [dict(zip(("steps", "c", "k"), row, strict=True)) for row in zip(*_table(), strict=True)]


def exact_gaussian(mu, y):
    """G_mu(e^y) with fifty digits."""
    phi = lambda z: mp.erfc(-z / mp.sqrt(2)) / 2  # noqa: E731
    mu, y = mp.mpf(mu), mp.mpf(y)
    return phi(mu / 2 - y / mu) - mp.exp(y) * phi(-mu / 2 - y / mu)


@pytest.mark.parametrize("seed", range(12))
def test_random_entries_of_the_table_are_certified_again(seed):
    rng = np.random.default_rng(seed)
    entries, script = _entries(), _script()
    index = int(rng.integers(len(entries)))
    assert script.entry_certified(entries, index, float(rng.choice(script.grid())))


def test_the_table_was_made_by_the_script():
    script = _script()
    assert [e["steps"] for e in _entries()] == [*script.DIRECT, *script.CHAINED, *script.LONG]


@pytest.mark.parametrize(("count", "resolution"), [(2, 64), (8, 64), (32, 48)])
def test_a_certificate_is_refused_when_a_number_is_too_small(count, resolution):
    """A tenth less variance, or a step at half its price, is noticed."""
    (sizes, c, k), script = _table(), _script()
    i = sizes.index(count)
    for square in (1e-12, 0.056):
        eta = 2.0 * math.sqrt(square / count)
        assert not script.run_fits(eta, count, 0.9 * c[i], resolution)
        assert not script.step_fits(eta, count + c[i], 0.5 * k[i], resolution)


@pytest.mark.parametrize("seed", range(8))
def test_runs_between_the_grid_points_are_dominated(seed):
    """eta and T that no certificate was made for: computed step by step, compared cell by cell."""
    rng = np.random.default_rng(100 + seed)
    count = int(rng.integers(2, 90))
    eta = 2.0 * math.exp(rng.uniform(math.log(1e-3), math.log(1.5))) / math.sqrt(count)
    run = bounded_range_profile(eta, count, 64, 1e-60)
    mu = bounded_range_mu(eta, count)
    assert is_dominated(run.values, run.spacing, mu)
    assert mu <= 1.13 * eta * math.sqrt(count) / 2.0
    # Fifty digits at random points between the nodes.
    with mp.workdps(50):
        for y in rng.uniform(0.0, 8.0, 20) * mu:
            if y < run.spacing * (len(run.values) - 1):
                assert float(run.delta(np.array(y))) <= exact_gaussian(mu, y)


def test_a_profile_that_ends_early_is_not_certified():
    """Above its last node it stands still and the Gaussian falls on."""
    run = bounded_range_profile(0.2, 128, 16, 1e-62)
    mu = 0.1 * math.sqrt(130.0)
    assert is_dominated(run.values, run.spacing, mu)
    assert not is_dominated(run.values[: len(run.values) // 2], run.spacing, mu)


def test_one_step_is_dominated_exactly():
    for eta in (0.01, 0.3, 1.0, 4.0):
        mu = bounded_range_mu(eta, 1)
        assert mu == pytest.approx(2.0 * ndtri(1.0 / (1.0 + math.exp(-eta / 2.0))), rel=1e-9)
        y = np.linspace(0.0, eta, 400)
        exact = np.expm1((y - eta) / 2.0) ** 2 / -math.expm1(-eta)
        with mp.workdps(50):
            gaussian = np.array([float(exact_gaussian(mu, v)) for v in y])
            assert np.all(exact <= gaussian * (1 + 1e-12))
            # The total variation binds: nothing smaller dominates.
            assert exact_gaussian(mu * (1 - 1e-9), 0.0) < exact[0]


def test_the_scaling_lemma():
    """e^{-y/2} H(y)/(2 sinh(eta/2)) at y = z eta falls with eta, H itself rises."""
    m, count = 32, 12
    scaled, plain = [], []
    for eta in (1e-4, 0.05, 0.2, 0.6, 1.5):
        run = bounded_range_profile(eta, count, m, 1e-60)
        values = run.values[: 8 * m]
        y = run.spacing * np.arange(len(values))
        plain.append(values)
        scaled.append(np.exp(-y / 2.0) * values / (2.0 * math.sinh(eta / 2.0)))
    live = scaled[0] > 1e-12
    assert np.all(np.diff(scaled, axis=0)[:, live] <= 1e-12)
    assert np.all(np.diff(plain, axis=0) >= 0.0)


@pytest.mark.parametrize("entry", range(0, 17, 4))
@pytest.mark.parametrize("cell", [0, 1, 6, 40])
def test_the_price_between_grid_points_is_what_the_scaling_lemma_asks(entry, cell):
    """The certificate at the grid point e below is for eta = e alone. From there to eta the lemma allows

        H(z eta; eta) <= sinh(eta/2)/sinh(e/2) e^{z (eta - e)/2} G_m(z e),     m = rate e,

    which must stay below G_mu for the mu that is charged, in fifty digits; with rate eta itself, or with a quarter of
    what the lemma adds to it, it does not.
    """
    size, c, _ = (column[entry] for column in _table())
    rate = math.sqrt(size + c) / 2.0
    below = math.sqrt(4.0 / size * (cell * GRID if cell else 1e-12))
    above = math.sqrt(4.0 / size * (cell + 1.0) * GRID)
    eta = below + 0.05 * (above - below)
    mu = _from_entry(eta, size, entry)
    assert rate * eta < mu < rate * above

    def holds(mu):
        with mp.workdps(50):
            ratio = mp.sinh(mp.mpf(eta) / 2) / mp.sinh(mp.mpf(below) / 2)
            for z in np.linspace(0.0, 6.0 * rate, 25):
                lifted = (
                    ratio * mp.exp(z * (eta - below) / 2) * exact_gaussian(rate * below, z * below)
                )
                if lifted > exact_gaussian(mu, z * eta):
                    return False
        return True

    assert holds(mu)
    assert not holds(rate * eta)
    assert not holds(rate * eta * (mu / (rate * eta)) ** 0.25)


def test_mu_is_monotone_and_continuous_across_the_grid():
    for count in (2, 5, 30, 1000, 5000, 3_000_000):
        around = 2.0 * np.sqrt(GRID * np.array([0.5, 1.0, 7.0, 40.0]) / count)
        for centre in around:
            etas = centre * np.linspace(0.97, 1.03, 61)
            mus = [bounded_range_mu(float(e), count) for e in etas]
            assert mus == sorted(mus)
    for eta in (1e-3, 0.02, 0.3):
        mus = [bounded_range_mu(eta, n) for n in range(1, 1500)]
        assert mus == sorted(mus)
    # Many steps: close to the Gaussian limit, from above.
    for count, eta, most in (
        (1000, 0.0149, 1.003),
        (4000, 0.00746, 1.004),
        (400_000, 7.4e-4, 1.008),
    ):
        ratio = bounded_range_mu(eta, count) / (eta * math.sqrt(count) / 2.0)
        assert 1.0 < ratio < most


def test_the_parameter_of_every_event():
    mu = lambda eps: 2.0 * ndtri(1.0 / (1.0 + math.exp(-eps)))  # noqa: E731
    for event in (Pure(0.4), Geometric(5.0, 2)):
        assert gaussian_parameter(event) == (pytest.approx(mu(0.4), rel=1e-9), 0.0)
    assert gaussian_parameter(Gaussian(4.0, 2.0)) == (pytest.approx(0.5), 0.0)
    assert gaussian_parameter(Exponential(0.8))[0] == pytest.approx(mu(0.4), rel=1e-9)
    assert gaussian_parameter(Sequence(())) == (0.0, 0.0)
    assert math.isinf(gaussian_parameter(Sequence((Pure(0.1), NonPrivate())))[0])
    both, slack = gaussian_parameter(Sequence((Repeated(Exponential(0.05), 40), Gaussian(3.0))))
    one, leak = gaussian_parameter(Repeated(Exponential(0.05), 40))
    assert both == pytest.approx(math.hypot(one, 1 / 3), rel=1e-12)
    assert 0.0 < slack == leak < 1e-40


PERTURBATIONS = [
    ObjectivePerturbation(10.0, 1.0, 0.25, 20.0, "one-sided"),
    ObjectivePerturbation(5.0, 1.0, 0.25, 40.0, "one-sided", "replace-one"),
    ObjectivePerturbation(8.0, 1.0, 1.0, 100.0, "glm"),
    ObjectivePerturbation(8.0, 2.0, 1.0, 30.0, "one-sided"),
]


@pytest.mark.parametrize("event", PERTURBATIONS)
def test_objective_perturbation_has_a_parameter_close_to_its_noise(event):
    """Dominated from its own profile; tests/accounting/test_transport.py plays rows against it."""
    mu, slack = gaussian_parameter(event)
    own = event.gradient_bound / event.scale
    rows = 2.0 if event.adjacency == "replace-one" else 1.0
    assert rows * own < mu < rows * own * {"one-sided": 1.2, "glm": 1.4}[event.loss]
    assert 0.0 < slack < 1e-15


def test_a_huge_range_has_a_huge_parameter():
    """An attack found mu capped at a range of 600: a mechanism of epsilon 1e6 looked like mu = 48.65."""
    mus = [gaussian_parameter(Exponential(eta))[0] for eta in (500.0, 599.0, 601.0, 700.0, 1e6)]
    assert all(a < b for a, b in pairwise(mus))
    assert mus[-1] > 1e5

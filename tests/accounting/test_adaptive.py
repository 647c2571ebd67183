"""The adaptive optimum: never below an exact adversary, never far above it, at every precision."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.special import ndtr

from dpsparse.accounting import (
    Exponential,
    Gaussian,
    ObjectivePerturbation,
    Pure,
    Repeated,
    Sequence,
    adaptive,
    delta,
    epsilon,
)
from dpsparse.accounting.adaptive import bounded_range_profile, pure_profile
from dpsparse.accounting.conversion import _perturbation_profile, dominating_run
from dpsparse.accounting.events import leaves
from dpsparse.accounting.objective import delta_profile


def adversary(eta, count, cells):
    """(losses, law under P) of a player who chooses the best two-point step in every state.

    t is a multiple of eta/cells, so all losses lie on a lattice. The policy comes from a dynamic
    programme for delta at one epsilon; its law is then computed forward, on its own.
    """
    h = eta / cells
    t = h * np.arange(cells + 1)
    p = np.expm1(t - eta) / math.expm1(-eta)
    span = min(count * cells, int(9 * cells * math.sqrt(count)))  # the rest is lost: below 1e-17

    def play(eps):
        y = eps + h * np.arange(-span, span + 1)  # still to lose: epsilon minus the loss so far
        values = np.maximum(-np.expm1(y), 0.0)
        policies = []
        for _ in range(count):
            wide = np.concatenate([np.full(cells, values[0]), values, np.zeros(cells)])
            n = len(values)
            options = np.stack(
                [
                    p[j] * wide[cells - j : cells - j + n]
                    + (1 - p[j]) * wide[2 * cells - j : 2 * cells - j + n]
                    for j in range(cells + 1)
                ]
            )
            policies.append(options.argmax(axis=0))
            values = options.max(axis=0)
        mass = np.zeros(len(y))
        mass[span] = 1.0
        for choice in reversed(policies):
            moved = np.zeros(len(y) + 2 * cells)
            at = np.arange(len(y))
            np.add.at(moved, at - choice + cells, mass * p[choice])
            np.add.at(moved, at - choice + 2 * cells, mass * (1 - p[choice]))
            mass = moved[cells:-cells]
        return -(y - eps), mass  # loss, law under P; what left the span is missing, so too small

    return play


def exact_delta(play, eps):
    losses, mass = play(eps)
    return float(mass @ np.maximum(0.0, -np.expm1(eps - losses)))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("eta", "count", "cells", "resolution"),
    [
        (1.0, 2, 64, 64),
        (0.5, 5, 64, 64),
        (0.15, 10, 32, 64),
        (0.045, 100, 16, 48),
        (0.0149, 1000, 8, 24),
    ],
)
def test_the_best_adversary_stays_below_and_comes_within_a_thousandth(
    eta, count, cells, resolution
):
    play, profile = (
        adversary(eta, count, cells),
        bounded_range_profile(eta, count, resolution, 1e-12),
    )
    scale = eta * math.sqrt(count) / 2.0
    for eps in (0.0, scale, 2.5 * scale):
        exact = exact_delta(play, eps)
        assert 1e-12 < exact <= float(profile.delta(np.array(eps)))
        # The bound comes down to the adversary's delta less than 1e-3 later in epsilon.
        assert profile.epsilon(exact) <= eps + 1e-3


def _mutants(eta, count):
    yield "a step is dropped", bounded_range_profile(eta, count - 1, 32, 1e-12)
    yield "eta is one per cent too small", bounded_range_profile(0.99 * eta, count, 32, 1e-12)


@pytest.mark.parametrize("which", [0, 1])
def test_the_adversary_catches_a_cheaper_bound(which):
    """The adversary is strong enough to refute what a wrong accountant would claim."""
    eta, count = 0.15, 20
    _, mutant = list(_mutants(eta, count))[which]
    play = adversary(eta, count, 32)
    eps = 1.0
    assert exact_delta(play, eps) > float(mutant.delta(np.array(eps)))


def test_the_adversary_catches_the_wrong_direction(monkeypatch):
    """Probabilities of the two outcomes under Q instead of P give a bound that is refuted."""
    eta, count = 0.4, 5
    good = adaptive._ends_of_cells

    def wrong(spacing, resolution):
        up, down, _, _, width, a = good(spacing, resolution)
        up, down = up * a, 1.0 - up * a
        return np.stack([up, down, up * a, down * a, width, a])

    monkeypatch.setattr(adaptive, "_ends_of_cells", wrong)
    mutant = bounded_range_profile(eta, count, 32, 1e-12)
    assert exact_delta(adversary(eta, count, 32), 0.5) > float(mutant.delta(np.array(0.5)))


# Random adaptive runs with several outcomes a step and several kinds of steps, interleaved.


def _two_point(rng, eta):
    t = rng.choice([0.5 * eta, rng.uniform(0.0, eta)])
    p = math.expm1(t - eta) / math.expm1(-eta)
    return np.array([p, 1 - p]), np.array([p * math.exp(-t), (1 - p) * math.exp(eta - t)])


def _bounded_range(rng, eta):
    if rng.random() < 0.6:
        return _two_point(rng, eta)
    q = rng.dirichlet(np.ones(rng.integers(2, 5)))
    p = q * np.exp(rng.uniform(0.0, eta, len(q)))
    return p / p.sum(), q


def _pure(rng, eps):
    a = 1.0 / (1.0 + math.exp(-eps))
    pair = (np.array([a, 1 - a]), np.array([1 - a, a]))
    return pair if rng.random() < 0.5 else pair[::-1]


def _gaussian(rng, mu):
    """A Gaussian pair that is only seen in bins: post-processing."""
    cuts = np.concatenate(
        [[-np.inf], np.sort(rng.normal(mu / 2, 1.0, rng.integers(1, 6))), [np.inf]]
    )
    return np.diff(ndtr(cuts - mu)), np.diff(ndtr(cuts))


KINDS = {
    "range": (_bounded_range, Exponential),
    "pure": (_pure, Pure),
    "gaussian": (_gaussian, lambda mu: Gaussian(1.0 / mu)),
}


def _law(rng, left, p=1.0, q=1.0):
    """All outcomes of a random run, each step chosen after the history from what is left."""
    open_kinds = [i for i, (_, _, n) in enumerate(left) if n > 0]
    if not open_kinds:
        return [(p, q)]
    i = rng.choice(open_kinds)
    name, size, n = left[i]
    rest = [*left[:i], (name, size, n - 1), *left[i + 1 :]]
    pair = KINDS[name][0](rng, size)
    return [leaf for a, b in zip(*pair, strict=True) for leaf in _law(rng, rest, p * a, q * b)]


@pytest.mark.heavy
def test_no_random_interleaved_run_exceeds_the_bound():
    """Deterministic: 300 trees, exact laws, both directions."""
    rng = np.random.default_rng(20)
    closest = 0.0
    for _ in range(300):
        run = [
            (
                str(rng.choice(list(KINDS))),
                float(np.exp(rng.uniform(-2.0, 1.0))),
                int(rng.integers(1, 3)),
            )
            for _ in range(rng.integers(1, 4))
        ]
        p, q = np.array(_law(rng, run)).T
        event = Sequence(tuple(Repeated(KINDS[k][1](size), n) for k, size, n in run))
        product = dominating_run(leaves(event))
        for eps in (0.0, *rng.uniform(0.0, 2.5, 2)):
            both = [np.maximum(a - math.exp(eps) * b, 0.0).sum() for a, b in ((p, q), (q, p))]
            bound = delta(event, float(eps))
            assert max(both) <= bound * (1 + 1e-12) + 1e-15
            assert max(both) <= product.delta(float(eps)) * (1 + 1e-12) + 1e-15
            closest = max(closest, max(both) / max(bound, 1e-12))
    assert closest > 0.999  # some runs attain it: the test has teeth


def test_fifty_digits_agree_with_the_kernel():
    """The same recursion on the same nodes, in mpmath, with a fine search over t in every cell."""
    eta, count, m = 0.7, 2, 3
    profile = bounded_range_profile(eta, count, m, 1e-12)
    with mp.workdps(50):
        h = mp.mpf(profile.spacing)
        e = h * m
        n = count * m

        def at(values, j, s):
            """The chord between nodes j-1 and j at share s of g from below; mirrored below 0."""

            def node(i):
                if i >= 0:
                    return values[min(i, n)]
                return 1 - mp.exp(i * h) + mp.exp(i * h) * values[min(-i, n)]

            return (1 - s) * node(j - 1) + s * node(j)

        values = [mp.mpf(0)] * (n + 1)
        for _ in range(count):
            new = []
            for i in range(n + 1):
                best = mp.mpf(0)
                for c in range(1, m + 1):

                    def value(s, i=i, c=c, values=values):
                        a = mp.exp(-c * h) * (1 + s * mp.expm1(h))
                        p = (1 - mp.exp(-e) / a) / (1 - mp.exp(-e))
                        return p * at(values, i - c + 1, s) + (1 - p) * at(values, i - c + 1 + m, s)

                    low, high = mp.mpf(0), mp.mpf(1)  # golden section: concave on the cell
                    for _ in range(70):
                        x, z = (
                            low + (high - low) * mp.mpf("0.382"),
                            low + (high - low) * mp.mpf("0.618"),
                        )
                        low, high = (x, high) if value(x) < value(z) else (low, z)
                    best = max(best, value(low), value(mp.mpf(0)), value(mp.mpf(1)))
                new.append(best)
            values = new
    for ours, exact in zip(profile.values, values, strict=True):
        assert float(exact) <= ours <= float(exact) * (1 + 1e-13) + 1e-290


def test_one_step_is_the_closed_form():
    for eta in (1e-6, 0.1, 1.0, 6.0):
        profile = bounded_range_profile(eta, 1, 16, 1e-12)
        y = profile.spacing * np.arange(len(profile.values))
        exact = np.expm1((y - eta) / 2.0) ** 2 / -math.expm1(-eta)
        np.testing.assert_allclose(profile.values[:-1], exact[:-1], rtol=1e-12)
        assert np.all(profile.values[:-1] >= exact[:-1] * (1 - 1e-14))
        assert float(profile.delta(np.array(0.0))) == pytest.approx(math.tanh(eta / 4), rel=1e-12)


@pytest.mark.parametrize("eta", [0.02, 0.3])
def test_monotone_in_steps_eta_and_grid(eta):
    at = np.linspace(0.0, 12.0 * eta, 25)
    coarse = bounded_range_profile(eta, 20, 8, 1e-12).delta(at)
    finer = bounded_range_profile(eta, 20, 32, 1e-12).delta(at)
    assert np.all(finer <= coarse * (1 + 1e-12))
    more = bounded_range_profile(eta, 21, 32, 1e-12).delta(at)
    assert np.all(more >= finer)
    wider = bounded_range_profile(eta * 1.01, 20, 32, 1e-12).delta(at)
    assert np.all(wider >= finer * (1 - 1e-3))  # on another grid: the chord may hide a little
    spent = [
        epsilon(Repeated(Exponential(eta), n), 1e-6)
        for n in (1, 2, 3, 12, 13, 48, 49, 128, 129, 500)
    ]
    assert spent == sorted(spent)
    etas = eta * np.geomspace(0.5, 2.0, 60)
    for count in (40, 700):
        spent = [epsilon(Repeated(Exponential(float(e)), count), 1e-6) for e in etas]
        assert spent == sorted(spent)


def test_pure_runs_are_exact():
    """Randomised response in exact rational weights."""
    eps, count = 0.4, 7
    profile = pure_profile(eps, count)
    with mp.workdps(40):
        p = 1 / (1 + mp.exp(-mp.mpf(eps)))
        for at in (0.0, 0.2, 1.0, 2.3):
            exact = mp.mpf(0)
            for k in range(count + 1):
                loss = (2 * k - count) * mp.mpf(eps)
                mass = mp.binomial(count, k) * p**k * (1 - p) ** (count - k)
                exact += mass * max(0, 1 - mp.exp(mp.mpf(at) - loss))
            value = float(profile.delta(np.array(at)))
            assert float(exact) <= value <= float(exact) * (1 + 1e-12)


def test_mixed_runs_agree_with_dp_accounting():
    """Pure and Gaussian steps: no choice to make, so a numerical convolution is the optimum."""
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution", exc_type=ImportError)
    step = 1e-4
    response = pld.from_randomized_response(
        2 / (1 + math.exp(0.1)), 2, value_discretization_interval=step
    )
    gaussian = pld.from_gaussian_mechanism(4.0, value_discretization_interval=step)
    theirs = response.self_compose(30).compose(gaussian).get_epsilon_for_delta(1e-6)
    ours = epsilon(Sequence((Repeated(Pure(0.1), 30), Gaussian(4.0))), 1e-6)
    assert ours == pytest.approx(theirs, rel=2e-3)
    alone = epsilon(Repeated(Pure(0.1), 30), 1e-6)
    assert alone == pytest.approx(response.self_compose(30).get_epsilon_for_delta(1e-6), rel=2e-3)


def test_several_kinds_cost_what_the_engineering_note_says():
    event = Sequence((Repeated(Exponential(0.1), 30), Gaussian(1 / 0.15)))
    value = epsilon(event, 1e-6)
    assert value == pytest.approx(1.34798, abs=2e-5)
    # The order of the record does not matter: the bound holds for every interleaving.
    turned = Sequence((Gaussian(1 / 0.15), Repeated(Exponential(0.1), 30)))
    assert epsilon(turned, 1e-6) == pytest.approx(value, rel=1e-12)
    two = Sequence((Repeated(Exponential(0.1), 30), Repeated(Exponential(0.05), 30)))
    assert epsilon(two, 1e-6) < epsilon(Repeated(Exponential(0.1), 38), 1e-6)
    assert epsilon(two, 1e-6) > epsilon(Repeated(Exponential(0.1), 30), 1e-6)


def test_objective_perturbation_beside_selections():
    """Its profile enters the product: cheaper than Renyi, dearer than either part, and never below
    the run whose loss is linear, where objective perturbation is a Gaussian mechanism."""
    tilt = ObjectivePerturbation(4.0, 0.7, 0.25, 5.0, "one-sided")
    picks = Repeated(Exponential(0.09), 10)
    event = Sequence((picks, tilt))
    value = epsilon(event, 1e-6)
    assert max(epsilon(tilt, 1e-6), epsilon(picks, 1e-6)) < value
    assert value < 0.9 * (epsilon(tilt, 1e-6) + epsilon(picks, 1e-6))
    for eps in (0.0, 0.3, 0.9):
        assert delta(Sequence((picks, Gaussian(4.0, 0.7))), eps) <= delta(event, eps)
    # On the nodes and between them the profile that is multiplied lies above the proven one.
    profile = _perturbation_profile(tilt, 1e-12)
    for eps in np.linspace(0.0, 1.5, 37):
        own = delta_profile(0.7 / 4.0, 0.25 / 5.0, "one-sided", False, float(eps))
        assert own <= float(profile.delta(np.array(eps))) * (1 + 1e-9)


def test_steps_that_are_pure_need_no_delta():
    assert epsilon(Repeated(Exponential(0.01), 3), 0.0) == pytest.approx(0.03)
    assert epsilon(Sequence(()), 1e-6) == 0.0

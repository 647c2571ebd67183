"""Exact likelihood ratios, confidence bounds and tests of noise, against closed forms."""

import math

import numpy as np
import pytest
from scipy import stats

from dpsparse import Domain
from dpsparse.accounting import Exponential, Gaussian, calibrate, delta
from dpsparse.audit import law, noise
from dpsparse.audit.neighbours import add_row
from dpsparse.audit.subject import Subject
from dpsparse.mechanisms import Release
from dpsparse.mechanisms.picks import noisy_max_log_probability, ranking
from dpsparse.methods import DPGradientClassifier, DPLassoClassifier
from dpsparse.random import make_generator, two_sided_geometric

# A fit that is one sum of rows of length one with slopes of at most one.

NONE = np.empty(0)
GRID = (0.25, 0.5, 1.0)


def gaussian_entry(scale, query, answer):
    return Release("phase", "gaussian", query, answer, 1.0 / scale)


def picks_entry(keys, picks):
    """One whole number is worth 1e-9: scores of a selection are integers."""
    return Release("phase", "picks", np.rint(1e9 * keys).astype(np.int64), np.array(picks), 1e-9)


def gaussian_losses(scale, n, seed):
    rng = make_generator(seed)
    outputs = rng.normal(0.0, scale, n)
    entries = [gaussian_entry(scale, np.zeros(1), np.array([o])) for o in outputs]
    other = gaussian_entry(scale, np.ones(1), NONE)
    return np.array([law.loss(entry, other) for entry in entries])


def refutes(losses, event):
    return bool((law.delta_below(losses, GRID) > [delta(event, e) for e in GRID]).any())


def test_gaussian_losses_have_their_law():
    """Loss ~ N(mu^2/2, mu^2); false alarm rate 1e-4."""
    losses = gaussian_losses(2.0, 4000, seed=1)
    assert stats.kstest((losses - 0.125) / 0.5, "norm").pvalue > 1e-4


def test_gaussian_profile_is_met_and_half_the_noise_is_refuted():
    """Right with probability 0.999; the other side has power close to 1."""
    scale = calibrate(lambda s: Gaussian(s, 1.0), 1.0, 1e-2)
    claimed = Gaussian(scale, 1.0)
    right = gaussian_losses(scale, 4000, 2)
    assert not refutes(right, claimed)
    for e in GRID:
        assert abs(np.maximum(0.0, 1.0 - np.exp(e - right)).mean() - delta(claimed, e)) < 0.02
    assert refutes(gaussian_losses(scale / 2, 4000, 3), claimed)
    assert refutes(gaussian_losses(0.8 * scale, 4000, 4), claimed)


def test_gaussian_strength_is_half_the_claim():
    scale = calibrate(lambda s: Gaussian(s, 1.0), 1.0, 1e-2)
    reached = law.epsilon_below(gaussian_losses(scale, 8000, 5), 1e-2)
    assert 0.5 <= reached <= 1.0


def test_selection_strength_is_half_the_claim():
    """Two candidates whose scores move apart by the whole range: the worst case of the curve."""
    eta = calibrate(lambda x: Exponential(x), 1.0, 1e-2)
    rng = make_generator(6)
    here, there = np.array([0.0, 1.0]), np.array([0.0, 1.0 - eta])
    losses = []
    for gumbel in rng.gumbel(size=(4000, 2)):
        pick = [int(np.argmax(there + gumbel))]
        losses.append(law.loss(picks_entry(there, pick), picks_entry(here, pick)))
    reached = law.epsilon_below(np.array(losses), 1e-2)
    assert 0.5 <= reached <= 1.0


@pytest.mark.slow
def test_whole_estimators_reach_half_the_claim():
    """Gaussian and selection estimators on worst pairs: 0.5 of epsilon from whole histories."""
    domain = Domain(classes=(0, 1), row_norm=1.0, n_samples=1000)
    gradient = DPGradientClassifier(domain, delta=1e-2, n_iter=1)
    X, y = np.zeros((1000, 2)), np.zeros(1000, int)  # a row of the other class has slope 1
    pair = add_row(X, y, np.array([1.0, 0.0]), 1, "owner")
    losses = law.privacy_losses(Subject(gradient, 2), pair, 1000)
    assert 0.5 <= law.epsilon_below(losses, 1e-2) <= 1.0
    lasso = DPLassoClassifier(
        Domain(classes=(0, 1), n_samples=3), delta=1e-2, n_iter=1, radius=0.01, fit_intercept=False
    )
    pair = add_row(np.ones((3, 1)), np.array([1, 1, 0]), np.ones(1), 0, "against two").swapped()
    losses = law.privacy_losses(Subject(lasso, 1), pair, 1000)
    assert 0.5 <= law.epsilon_below(losses, 1e-2) <= 1.0


@pytest.mark.parametrize("p", [0.01, 0.3, 0.9])
def test_bounds_of_means_hold(p):
    """Bernoulli means: each bound fails with probability 0.01; 10 of 200 failures have 2e-5."""
    rng = make_generator(7)
    samples = rng.random((200, 300)) < p
    assert sum(law.mean_below(s.astype(float), 0.01) > p for s in samples) < 10
    assert np.mean([law.mean_below(s.astype(float), 0.01) for s in samples]) > p - 0.15


def test_ranking_is_the_law_of_gumbel_top_k():
    """Ordered picks of noisy keys against their probability; chi-square level 1e-4."""
    keys, n = np.array([0.3, -0.5, 1.0]), 20_000
    order = np.argsort(-(keys + make_generator(8).gumbel(size=(n, 3))), axis=1)[:, :2]
    seen = np.bincount(3 * order[:, 0] + order[:, 1], minlength=9)
    pairs = [(i, j) for i in range(3) for j in range(3) if i != j]
    expected = np.array([n * math.exp(ranking(picks_entry(keys, p))) for p in pairs])
    assert expected.sum() == pytest.approx(n)
    observed = np.array([seen[3 * i + j] for i, j in pairs])
    assert stats.chisquare(observed, expected).pvalue > 1e-4


def test_laplace_noisy_max_costs_twice_what_004_says():
    """Lap(1/eps') on scores that move by 1: the log-ratio of a pick reaches 1.98 eps', not eps'."""
    step = 0.1
    here, there = np.array([200.0, 0.0]), np.array([200.0 - step, step])  # the loser gains on both
    ratio = noisy_max_log_probability(there, 1) - noisy_max_log_probability(here, 1)
    assert 1.97 * step < ratio <= 2.0 * step


def test_laplace_noisy_max_probability():
    """Quadrature against 40,000 draws, four standard errors; and it adds up to one."""
    keys = np.array([0.0, 0.7, -1.0, 0.7])
    p = np.exp([noisy_max_log_probability(keys, k) for k in range(4)])
    assert p.sum() == pytest.approx(1.0, abs=1e-6)
    draws = (keys + make_generator(9).laplace(size=(40_000, 4))).argmax(axis=1)
    seen = np.bincount(draws, minlength=4) / 40_000
    assert np.all(np.abs(seen - p) < 4 * np.sqrt(p / 40_000))


def test_noise_tests_accept_right_and_reject_slightly_wrong_noise():
    """Level 1e-6 for acceptance; 10 % of a Gaussian scale is seen in 4,000 draws."""
    drawn = make_generator(10).normal(0.0, 3.0, 4000)
    assert noise.noise_p_value([gaussian_entry(3.0, np.zeros(4000), drawn)], "gaussian") > 1e-6
    assert noise.noise_p_value([gaussian_entry(3.3, np.zeros(4000), drawn)], "gaussian") < 1e-6


def test_noise_test_of_counts_sees_the_sign():
    """Level 1e-6; 60 counts of which none is lowered have probability 2^-40 and less."""
    rng = make_generator(11)
    drawn = np.array([two_sided_geometric(rng, 3.0) for _ in range(60)])

    def p_value(drawn):
        none = np.zeros(1, np.int64)
        entries = [Release("count", "geometric", none, none + k, 1.0 / 3.0) for k in drawn]
        return noise.noise_p_value(entries, "geometric")

    assert p_value(drawn) > 1e-6
    assert p_value(np.abs(drawn)) < 1e-6


def test_selection_test_sees_temperature_and_exact_signs():
    rng = make_generator(12)

    def picks(factor, exact_sign=False):
        entries = []
        for _ in range(400):
            score = 0.2 * rng.standard_normal(6)
            keys = np.append(score, -score)
            if exact_sign:
                j = int(rng.integers(6))
                pick = j if score[j] > 0 else j + 6
            else:
                pick = int(np.argmax(factor * keys + rng.gumbel(size=12)))
            entries.append(picks_entry(keys, [pick]))
        return noise.selection_p_value(entries)

    assert picks(1.0) > 1e-6
    assert picks(4.0) < 1e-6
    assert picks(1.0, exact_sign=True) < 1e-6


def test_rare_picks_must_occur():
    """400 picks among a likely candidate and 99 of weight e^-5 each: none of these has p = e^-160."""
    rng = make_generator(13)
    keys = np.append(0.0, np.full(99, -5.0))
    drawn = [int(np.argmax(keys + rng.gumbel(size=100))) for _ in range(400)]
    assert noise.rare_p_value([picks_entry(keys, [pick]) for pick in drawn]) > 1e-6
    assert noise.rare_p_value([picks_entry(keys, [0])] * 400) < 1e-6


@pytest.mark.heavy
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["class counts", "vertices only"])
def test_losses_of_a_whole_fit_respect_the_plan(fit_intercept):
    """Mean of (1 - e^(eps - loss))^+ below the claimed delta with confidence 0.999, T = 3."""
    domain = Domain(classes=(0, 1), n_samples=4)
    lasso = DPLassoClassifier(domain, delta=1e-2, n_iter=3, radius=0.5, fit_intercept=fit_intercept)
    subject = Subject(lasso, 2)
    pair = add_row(np.ones((4, 2)), np.array([1, 1, 1, 0]), np.ones(2), 0, "row")
    losses = law.privacy_losses(subject, pair, 100)
    assert not refutes(losses, subject.plan.event)
    if not fit_intercept:  # Gaussian class counts have losses without a bound
        assert losses.max() <= 3 * subject.plan.phases[0].event.event.eta
    assert delta(subject.plan.event, 1.0) <= 1e-2 * (1 + 1e-9)

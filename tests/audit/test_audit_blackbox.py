"""Counting attacks: exact bounds, the theorem of one run, and their strength."""

import importlib.metadata
import importlib.util
import sys

import numpy as np
import pytest
from scipy import stats

from dpsparse import Domain
from dpsparse.accounting import Exponential, Gaussian, calibrate
from dpsparse.audit import blackbox
from dpsparse.audit.neighbours import add_row
from dpsparse.audit.subject import Subject
from dpsparse.methods import DPGradientClassifier, DPLassoClassifier
from dpsparse.random import make_generator
from lab.papers.one_run import one_run_epsilon, one_run_p_value

# A fit that is one sum of rows of length one with slopes of at most one.


def test_clopper_pearson_is_exact():
    low, high = blackbox.clopper_pearson(7, 50, 0.01)
    assert stats.binom.sf(6, 50, low) == pytest.approx(0.01)
    assert stats.binom.cdf(7, 50, high) == pytest.approx(0.01)
    assert blackbox.clopper_pearson(0, 10, 0.01)[0] == 0.0
    assert blackbox.clopper_pearson(10, 10, 0.01)[1] == 1.0


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_gaussian_noise_is_attacked_at_half_its_epsilon(share):
    """40,000 draws a table: the right noise is not refuted, reached >= 0.5; half of it is refuted."""
    scale = share * calibrate(lambda s: Gaussian(s, 1.0), 1.0, 1e-2)
    rng = make_generator(1)
    one, two = rng.normal(0.0, scale, (40_000, 1)), 1.0 + rng.normal(0.0, scale, (40_000, 1))
    reached = blackbox.attack(one, two, 1e-2).epsilon
    assert (0.5 <= reached <= 1.0) if share == 1.0 else reached > 1.0


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_selection_is_attacked_at_half_its_epsilon(factor):
    eta = factor * calibrate(lambda x: Exponential(x), 1.0, 1e-2)
    noise = make_generator(2).gumbel(size=(40_000, 2))
    half = len(noise) // 2
    one = (np.array([0.0, 1.0]) + noise[:half]).argmax(axis=1)[:, None].astype(float)
    two = (np.array([0.0, 1.0 - eta]) + noise[half:]).argmax(axis=1)[:, None].astype(float)
    reached = blackbox.attack(one, two, 1e-2).epsilon
    assert (0.5 <= reached <= 1.0) if factor == 1.0 else reached > 1.0


def test_equal_tables_are_never_told_apart():
    """False alarm rate 0.001 each; two of fifty have probability 1e-3."""
    rng = make_generator(3)
    found = [
        blackbox.attack(rng.random((200, 3)), rng.random((200, 3)), 0.0).epsilon for _ in range(50)
    ]
    assert sum(e > 0 for e in found) < 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gaussian", "selection"])
def test_models_alone_give_half_the_epsilon(kind):
    """Black box on whole estimators, worst pairs, 99.9 % confidence: 0.5 of the claim, not above it."""
    if kind == "gaussian":
        domain = Domain(classes=(0, 1), row_norm=1.0, n_samples=1000)
        model = DPGradientClassifier(domain, delta=1e-2, n_iter=1)
        # Rows of length 1 in the other column, whose sum is zero: their length is released, and moves no weight.
        X = np.column_stack([np.zeros(1000), np.resize([1.0, -1.0], 1000)])
        # A row of the other class has slope 1.
        pair = add_row(X, np.zeros(1000, int), np.array([1.0, 0.0]), 1, "owner")
    else:
        model = DPLassoClassifier(
            Domain(classes=(0, 1), n_samples=3), delta=1e-2, n_iter=1, radius=0.01,
            fit_intercept=False,
        )  # fmt: skip
        pair = add_row(np.ones((3, 1)), np.array([1, 1, 0]), np.ones(1), 0, "against two")
    subject = Subject(model, pair.X.shape[1])
    one = blackbox.publish(subject, pair.X, pair.y, 20_000, 0)
    two = blackbox.publish(subject, pair.X2, pair.y2, 20_000, 1)
    reached = blackbox.attack(one, two, 1e-2).epsilon
    assert 0.5 <= reached <= 1.0


# ---- one run --------------------------------------------------------------------------------------


def test_one_run_p_value_by_hand():
    """delta = 0 is the binomial tail of randomised response; delta adds a term linear in it."""
    assert one_run_p_value(100, 50, 40, 1.0, 0.0) == pytest.approx(
        stats.binom.sf(39, 50, 1 / (1 + np.exp(-1.0)))
    )
    q = 1 / (1 + np.exp(-1.0))
    term = max(
        (stats.binom.cdf(39, 50, q) - stats.binom.cdf(39 - i, 50, q)) / i for i in range(1, 41)
    )
    more = one_run_p_value(100, 50, 40, 1.0, 1e-5)
    assert more == pytest.approx(stats.binom.sf(39, 50, q) + 2 * 100 * 1e-5 * term)


def test_one_run_agrees_with_jax_privacy():
    """An independent implementation, read as a single file so that jax need not be installed."""
    try:
        files = importlib.metadata.files("jax-privacy") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("jax-privacy is not installed (pip install --no-deps jax-privacy)")
    path = next(f.locate() for f in files if str(f) == "jax_privacy/auditing.py")
    spec = importlib.util.spec_from_file_location("auditing_oracle", path)
    oracle = importlib.util.module_from_spec(spec)
    sys.modules["auditing_oracle"] = oracle
    spec.loader.exec_module(oracle)
    for m, r, v, delta in [(1000, 250, 213, 1e-6), (200, 80, 76, 1e-5), (500, 40, 40, 1e-9)]:
        # v members and r - v others lie above the threshold: r guesses, v of them right
        members = np.where(np.arange(m // 2) < v, 1.0, -1.0)
        others = np.where(np.arange(m // 2) < r - v, 1.0, -1.0)
        auditor = oracle.CanaryScoreAuditor(members, others)
        strategy = oracle.Explicit(threshold=0.0)
        theirs = auditor.epsilon_one_run(0.05, delta, threshold_strategy=strategy)
        assert one_run_epsilon(m, r, v, delta, 0.95) == pytest.approx(theirs, rel=1e-4)
        low = blackbox.clopper_pearson(v, m // 2, 0.025)[0]
        high = blackbox.clopper_pearson(r - v, m // 2, 0.025)[1]
        theirs = auditor.epsilon_clopper_pearson(0.05, delta, threshold_strategy=strategy)
        assert np.log((low - delta) / high) == pytest.approx(theirs, rel=1e-4)

"""A student keeps what stands out of noise of known size, and is least squares where that is right."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom, norm

from dpsparse import Domain, DPTransferClassifier, DPTransferRegressor
from dpsparse.accounting import Phase, Plan, RoundedGaussian
from dpsparse.methods.support_first.solve import Run
from dpsparse.methods.support_first.student import STANDS_OUT, learn, shrinkage
from dpsparse.random import make_generator
from dpsparse.release import Releases
from dpsparse.rows import Rows
from papers_data import make_wide_text

pytestmark = pytest.mark.filterwarnings("ignore::dpsparse.exceptions.NotPrivateWarning")


def uneven(m=60, p=6):
    """Public rows whose columns differ a hundredfold in size, and the constant."""
    rows = np.random.default_rng(0).uniform(-1, 1, (m, p)) * np.geomspace(1.0, 0.01, p)
    return np.column_stack([rows, np.ones(m)])


def least_squares(rows, answers):
    return np.linalg.lstsq(rows, answers, rcond=None)[0]


def test_least_squares_stays_where_it_is_right():
    """On rows that are long in every direction whatever the noise, and on any rows without noise."""
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.uniform(-1, 1, (300, 5)), np.ones(300)])
    for sd in (0.0, 1e-3, 10.0):
        answers = rows @ rng.standard_normal(rows.shape[1]) + sd * rng.standard_normal(300)
        student = learn(rows, answers, sd, prior=7.0)
        np.testing.assert_allclose(student, least_squares(rows, answers), rtol=1e-6, atol=1e-7)
    rows = uneven()
    answers = rows @ rng.standard_normal(rows.shape[1]) + rng.standard_normal(60)
    student = learn(rows, answers, 0.0, prior=7.0)
    np.testing.assert_allclose(student, least_squares(rows, answers), rtol=1e-6, atol=1e-7)


def test_what_stands_out_by_far_is_kept():
    rows = uneven()
    truth = np.arange(1.0, 8.0)
    answers = rows @ truth + 1e-6 * np.random.default_rng(2).standard_normal(60)
    np.testing.assert_allclose(learn(rows, answers, 1e-6, 0.0), truth, rtol=1e-3)


def test_the_mean_is_the_prior_unless_it_stands_out():
    """A teacher of zero weights: its answers are noise, and their mean is kept where it is more than 3 of its standard
    deviations from the prior, in a share of the fits that the normal law tells (10 %; 800 fits, false alarms 2e-6).
    Rejects half and twice the noise."""
    n, prior, q = 800, 0.5, 0.3
    public_rows = uneven()[:, :-1]
    domain = Domain(feature_bound=1.0, target_bound=1.0, n_samples=400)
    model = DPTransferRegressor(domain, n_nonzero=6, public_X=public_rows, ridge=50.0)
    settings = model.plan(6).settings
    event = RoundedGaussian(q, (settings.row_clip + 2 * settings.tol) / 50.0, 60)
    plan = Plan("test", (Phase("fit", event),), math.inf, 1e-6, "add-remove", proven=False)
    rows = Rows.clip(sp.csr_array(np.eye(6)), np.zeros(6), domain, labels=None)
    rng = make_generator(0)
    rows_on = np.column_stack([public_rows, np.ones(60)])
    sd = q * np.linalg.norm(rows_on, 2)
    means = []
    for _ in range(n):
        run = Run(rows, settings, Releases(plan, rng))
        run.priors[:] = prior
        theta = run.fit_output(rows, 0, np.arange(6))
        means.append(rows_on.mean(axis=0) @ theta)
    away = np.sum(np.abs(np.array(means) - prior) > 1e-6)
    noise = sd / math.sqrt(60)
    for factor, good in ((1.0, True), (0.5, False), (2.0, False)):
        out = STANDS_OUT * factor
        beyond = norm.sf(out - prior / noise) + norm.sf(out + prior / noise)
        low, high = binom.ppf([1e-6, 1 - 1e-6], n, beyond)
        assert (low <= away <= high) == good


def test_noise_alone_leaves_little():
    """Answers that are noise, on rows with many short directions: what is left of it on these rows, on the average over
    200 draws, is below 3 of the 31 directions; least squares keeps all. False alarms below 1e-6: the mean is 1.0, its
    standard error 0.15."""
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.uniform(-1, 1, (200, 30)) * 0.05, np.ones(200)])
    left, before = [], []
    for _ in range(200):
        answers = rng.standard_normal(200)
        left.append(np.sum((rows @ learn(rows, answers, 1.0, 0.0)) ** 2))
        before.append(np.sum((rows @ least_squares(rows, answers)) ** 2))
    assert np.mean(left) < 3.0
    assert np.mean(before) > 25.0


def test_shares_follow_the_size_of_the_weights():
    """More is kept of long axes than of short ones, and of large weights than of small ones; little of none."""
    lengths = np.geomspace(1.0, 0.01, 40)
    noise = np.random.default_rng(4).standard_normal(40)
    before = np.zeros(40)
    for size in (3.0, 30.0, 300.0):
        shares = shrinkage(noise * np.sqrt(1.0 + (size * lengths) ** 2), lengths)
        assert np.all(np.diff(shares) <= 0)
        assert np.all(shares >= before)
        before = shares
    assert before[0] > 0.99
    assert np.max(shrinkage(np.zeros(40), lengths)) < 0.1


def test_rows_that_say_nothing():
    """One row, empty rows, fewer rows than columns, equal columns: finite weights, and the prior if that is all."""
    rng = np.random.default_rng(5)
    for columns in (
        np.zeros((4, 3)),
        np.ones((1, 3)),
        rng.uniform(-1, 1, (3, 8)),
        np.repeat(rng.uniform(-1, 1, (9, 1)), 4, axis=1),
    ):
        rows = np.column_stack([columns, np.ones(len(columns))])
        for sd in (0.0, 1.0):
            student = learn(rows, sd * rng.standard_normal(len(rows)), sd, prior=0.0)
            assert np.all(np.isfinite(student))
        student = learn(rows, 0.1 * np.ones(len(rows)), 5.0, 0.2)
        np.testing.assert_allclose(rows.mean(axis=0) @ student, 0.2, atol=1e-6)


def test_a_student_on_wide_sparse_rows_is_no_worse_than_no_model():
    """Mean squared error of six fits on rows of text: that of least squares is more than a hundred times the variance.
    False alarms, were the seeds not fixed: the mean answer beyond 3 standard deviations in one of six fits, 2 %."""
    X, y = make_wide_text(0, "e2006", fraction=0.1, task="regression")
    half = len(y) // 2
    domain = Domain(target_bound=4.0, row_norm=1.0, n_samples=half)
    for epsilon in (1.0, 4.0):
        for seed in range(3):
            model = DPTransferRegressor(
                domain, epsilon=epsilon, n_nonzero=200, public_X=X[half:], random_state=seed
            ).fit(X[:half], y[:half])
            assert np.mean((model.predict(X[half:]) - y[half:]) ** 2) < 1.3 * np.var(y)


def test_a_classifier_on_wide_sparse_rows_has_margins_of_the_size_of_its_prior():
    """As above: margins of least squares were of the size 10 and more, where the log-odds are below 1."""
    X, y = make_wide_text(0, "rcv1", fraction=0.1)
    half = len(y) // 2
    domain = Domain(classes=[0, 1], row_norm=1.0, n_samples=half)
    for seed in range(3):
        model = DPTransferClassifier(
            domain, epsilon=1.0, n_nonzero=100, public_X=X[half:], random_state=seed
        ).fit(X[:half], y[:half])
        assert np.sqrt(np.mean(model.decision_function(X[half:]) ** 2)) < 2.0

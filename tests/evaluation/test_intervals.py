"""Intervals: known limits, edge cases, and coverage with the integer sampler."""

import math

import numpy as np
import pytest
from interval_coverage import (
    CLASSIFIERS,
    REGRESSORS,
    cover_classifier,
    cover_many_classes,
    cover_regressor,
)
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from dpsparse.evaluation.intervals import (
    area_under_curve,
    fieller,
    mean,
    proportion,
    quantile,
    ratio,
)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999, 1 - 1e-12])
def test_intervals_are_made_for_a_quarter_less_error_than_they_claim(level):
    """Formulas for many rows keep a reserve: what is said then holds for few rows too."""
    assert 2 * norm.sf(quantile(level)) == pytest.approx(0.75 * (1 - level), rel=1e-4)
    assert quantile(level) > norm.ppf(0.5 + level / 2)


def test_without_noise_a_proportion_is_wilson_with_correction():
    found = proportion(30.0, 70.0, 0.0, 0.0, 0.95)
    z, n, p = quantile(0.95), 100, 0.3
    middle, inner = 2 * n * p + z * z, 2 * (n + z * z)
    low = (middle - 1 - z * math.sqrt(z * z - 2 - 1 / n + 4 * p * (n * (1 - p) + 1))) / inner
    high = (middle + 1 + z * math.sqrt(z * z + 2 - 1 / n + 4 * p * (n * (1 - p) - 1))) / inner
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)


@pytest.mark.parametrize("v", [0.0, 4.0])
def test_a_proportion_of_all_or_nothing_holds_its_end(v):
    """The quadratic alone excludes 1 here: N p(1-p) turns negative beyond it."""
    assert proportion(50.0, 0.0, v, v, 0.95).high == 1.0
    assert proportion(0.0, 50.0, v, v, 0.95).low == 0.0
    assert proportion(50.0, 0.0, v, v, 0.95).value == 1.0


def test_drowned_counts_are_not_measurable():
    assert proportion(3.0, 2.0, 100.0, 100.0, 0.95).width == 1.0
    assert proportion(-3.0, -2.0, 1.0, 1.0, 0.95).width == 1.0
    assert mean(1.0, -2.0, 0.0, 1.0, 1.0, 0.95).width == 1.0
    assert area_under_curve(np.zeros(8), np.full(8, -1.0), 1.0, 0.95).width == 1.0
    assert fieller(1.0, 0.0, 1.0, 0.0, 1.0, 2.0) is None
    assert ratio(5.0, -1.0, (1.0, 0.0, 1.0), -1.0, 1.0, 0.0, 0.95).value == 0.0


def test_without_noise_area_is_that_of_scikit_learn_with_delongs_interval():
    rng = np.random.default_rng(0)
    score, y = rng.integers(0, 12, 400), rng.integers(0, 2, 400)
    score = score + y
    H0, H1 = (np.bincount(score[y == k], minlength=13).astype(float) for k in (0, 1))
    found = area_under_curve(H0, H1, 0.0, 0.95)
    assert found.value == pytest.approx(roc_auc_score(y, score), abs=1e-12)
    wins = (score[y == 1][:, None] > score[y == 0]) + 0.5 * (
        score[y == 1][:, None] == score[y == 0]
    )
    delong = np.var(wins.mean(axis=1)) / H1.sum() + np.var(wins.mean(axis=0)) / H0.sum()
    assert found.width == pytest.approx(2 * quantile(0.95) * math.sqrt(delong), rel=0.03)


def test_more_noise_is_wider():
    widths = [proportion(300.0, 700.0, v, v, 0.95).width for v in (0.0, 10.0, 1e3, 1e4)]
    assert widths == sorted(widths)
    assert len(set(widths)) == 4


# ---- coverage ------------------------------------------------------------------------------------

QUICK = 200
# At a true coverage of 95 % fewer than 87.5 % of 200 runs hold the truth with probability 9e-6 (binomial); 68
# rates are compared here, so a false alarm has probability below 7e-4. The seeds are fixed.
LEAST = 0.875


@pytest.mark.heavy
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_quick_coverage(adjacency):
    tallies = [
        cover_classifier((1, 1000, 0.3, 1.5, 1.5, -1.0), QUICK, 1, adjacency),
        cover_classifier((1, 2000, 0.5, 1.5, 1.5, 0.0), QUICK, 2, adjacency, rows_of_a_person=2),
        cover_many_classes((1, 2000, 3), QUICK, 3, adjacency, draws=200_000),
        cover_regressor((1, 2000, 0.5, True, 0.3), QUICK, 4, adjacency, draws=400_000),
    ]
    for tally in tallies:
        for name, rate in tally.rates().items():
            assert rate >= LEAST, (name, rate)


def test_noise_left_out_of_the_intervals_is_noticed(monkeypatch):
    """The test above can fail: with the variance of the noise forgotten, coverage breaks down."""
    import dataclasses

    import interval_coverage

    from dpsparse.evaluation.released import release_labels

    def forgetful(*arguments):
        released = release_labels(*arguments)
        return dataclasses.replace(released, variance=dict.fromkeys(released.variance, 0.0))

    monkeypatch.setattr(interval_coverage, "release_labels", forgetful)
    rates = cover_classifier((0.3, 1000, 0.3, 1.5, 1.5, -1.0), 60, 1).rates()
    for name in ("accuracy", "recall", "auc", "log_loss", "brier", "calibration"):
        assert rates[name] < 0.8, name


@pytest.mark.slow
@pytest.mark.parametrize("setting", CLASSIFIERS, ids=str)
def test_coverage_of_classifiers(setting):
    """At least 94 % in 1,000 runs, which a true 96.2 % misses with probability 3e-4."""
    for name, rate in cover_classifier(setting, 1000, 100).rates().items():
        assert rate >= 0.94, (name, rate)


@pytest.mark.slow
@pytest.mark.parametrize("setting", REGRESSORS, ids=str)
def test_coverage_of_regressors(setting):
    for name, rate in cover_regressor(setting, 1000, 100).rates().items():
        assert rate >= 0.94, (name, rate)

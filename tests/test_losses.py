"""Losses against mpmath, finite differences, saturation, and their slope bounds."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsparse.domain import Domain
from dpsparse.exceptions import DomainError, ParameterError
from dpsparse.jit import njit
from dpsparse.losses import LOSSES, Huber, Logistic, Softmax, Squared, get_loss
from dpsparse.rows import loss_kernels
from dpsparse.rows.loss_kernels import CODES
from parts import clip_table

MARGINS = [0.0, 1e-9, -1e-9, 0.3, -0.3, 1.0, -1.0, 7.5, -7.5, 36.0, -36.0, 300.0, -300.0]
HUGE = [1e6, -1e6, 1e12, -1e12]
SCALAR = [(Logistic(), 0), (Logistic(), 1), (Squared(), 0.7), (Huber(), 0.7), (Huber(2.5), -0.4)]
DOMAIN = Domain(feature_bound=2.0, target_bound=3.0, classes=[0, 1])


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(500):  # log(1 + e^-300) needs 130 before its first one
        yield


def exact(loss, m, y):
    """Value and slope in 500 digits, straight from the definitions."""
    m, y = mpmath.mpf(m), mpmath.mpf(y)
    if isinstance(loss, Logistic):
        return mpmath.log(1 + mpmath.exp(m)) - y * m, 1 / (1 + mpmath.exp(-m)) - y
    residual = m - y
    if isinstance(loss, Squared) or abs(residual) <= loss.cutoff:
        return residual**2 / 2, residual
    c = mpmath.mpf(loss.cutoff)
    return c * abs(residual) - c**2 / 2, c * mpmath.sign(residual)


def exact_softmax(m, y):
    weights = [mpmath.exp(mpmath.mpf(v)) for v in m]
    total = mpmath.fsum(weights)
    slope = [w / total - (k == y) for k, w in enumerate(weights)]
    return mpmath.log(total / weights[y]), slope


@pytest.mark.parametrize(("loss", "y"), SCALAR)
def test_golden_values(loss, y):
    for m in MARGINS:
        value, slope = exact(loss, m, y)
        margin, target = np.array([m]), np.array([y])
        assert loss.value(margin, target)[0] == pytest.approx(float(value), rel=1e-14, abs=1e-300)
        assert loss.slope(margin, target)[0] == pytest.approx(float(slope), rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 200.0])
def test_softmax_golden_values(scale):
    margin = scale * np.array([[0.3, -1.2, 1.0], [-0.5, 0.5, 0.1]])
    for codes in ([0, 0], [1, 2], [2, 1]):
        y = np.array(codes, dtype=np.int32)
        values, slopes = Softmax().value(margin, y), Softmax().slope(margin, y)
        for i in range(2):
            value, slope = exact_softmax(margin[i], y[i])
            assert values[i] == pytest.approx(float(value), rel=1e-13)
            np.testing.assert_allclose(slopes[i], [float(s) for s in slope], rtol=1e-12)


@pytest.mark.parametrize(("loss", "y"), SCALAR)
def test_slope_is_the_derivative(loss, y):
    # central differences in 500 digits of the exact value against the float slope
    h = mpmath.mpf(10) ** -20
    for m in [-5.0, -1.3, -0.2, 0.0, 0.45, 2.0, 6.0]:
        up, down = exact(loss, mpmath.mpf(m) + h, y)[0], exact(loss, mpmath.mpf(m) - h, y)[0]
        slope = loss.slope(np.array([m]), np.array([y]))[0]
        assert slope == pytest.approx(float((up - down) / (2 * h)), rel=1e-12)


def test_softmax_slope_is_the_derivative():
    rng = np.random.default_rng(0)
    margin, y, h = rng.normal(size=(5, 4)), np.array([0, 1, 2, 3, 1]), 1e-6
    for k in range(4):
        step = h * np.eye(4)[k]
        numeric = (Softmax().value(margin + step, y) - Softmax().value(margin - step, y)) / (2 * h)
        np.testing.assert_allclose(Softmax().slope(margin, y)[:, k], numeric, atol=1e-8)


@pytest.mark.parametrize(("loss", "y"), SCALAR)
def test_saturation_without_warnings(loss, y):
    # warnings are errors: no overflow in any intermediate
    for m in HUGE:
        value, slope = exact(loss, m, y)
        assert loss.value(np.array([m]), np.array([y]))[0] == pytest.approx(float(value), rel=1e-12)
        assert loss.slope(np.array([m]), np.array([y]))[0] == pytest.approx(float(slope), rel=1e-12)


def test_softmax_saturation_without_warnings():
    margin = np.array([[1e6, -1e6, 0.0], [-1e12, 1e12, 1e12]])
    y = np.array([1, 0])
    np.testing.assert_allclose(Softmax().value(margin, y), [2e6, 2e12])
    np.testing.assert_allclose(Softmax().slope(margin, y), [[1, -1, 0], [-1, 0.5, 0.5]])
    np.testing.assert_array_equal(Softmax().slope(margin, np.array([0, 1]))[0], [0, 0, 0])


def test_softmax_leaves_its_input_alone_and_is_logistic_for_two_classes():
    margin = np.array([[0.2, -0.4], [3.0, 1.0]])
    before = margin.copy()
    y = np.array([1, 0], dtype=np.int32)
    gap = margin[:, 1] - margin[:, 0]
    np.testing.assert_allclose(Softmax().value(margin, y), Logistic().value(gap, y), rtol=1e-14)
    np.testing.assert_allclose(Softmax().slope(margin, y)[:, 1], Logistic().slope(gap, y))
    np.testing.assert_array_equal(margin, before)


def test_smoothness_is_attained_and_not_exceeded():
    grid, h = np.linspace(-4, 4, 801), 1e-5
    for loss, y in SCALAR:
        target = np.full_like(grid, y)
        second = (loss.slope(grid + h, target) - loss.slope(grid - h, target)) / (2 * h)
        assert loss.smoothness * 0.999 <= second.max() <= loss.smoothness + 1e-9
    rng = np.random.default_rng(0)
    points = [np.array([0.0, 0.0, -60.0]), *rng.normal(scale=3, size=(200, 3))]
    largest = []
    for m in points:
        p = Softmax().slope(m[None], np.array([0]))[0] + np.array([1.0, 0, 0])
        largest.append(np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max())
    assert Softmax().smoothness * 0.999 <= max(largest) <= Softmax().smoothness + 1e-12


@pytest.mark.parametrize("norm_bound", [0.0, 0.5, 3.0, 100.0])
def test_slope_bounds_are_attained(norm_bound):
    # the worst row of the domain: feature 0 at its bound, all weight on it, the wrong label
    margin = np.array([DOMAIN.feature_bound * norm_bound])
    worst = {
        Logistic(): Logistic().slope(margin, np.array([0])),
        Squared(): Squared().slope(margin, np.array([-DOMAIN.target_bound])),
        Huber(2.0): Huber(2.0).slope(margin, np.array([-DOMAIN.target_bound])),
    }
    for loss, slope in worst.items():
        assert abs(slope[0]) == pytest.approx(loss.slope_bound(DOMAIN, norm_bound), rel=1e-15)
    for n_classes in (2, 3, 10):
        margins = np.zeros((1, n_classes))
        margins[0, 0] = -margin[0]
        slope = Softmax().slope(margins, np.array([0]))[0, 0]
        bound = Softmax(n_classes).slope_bound(DOMAIN, norm_bound)
        assert -slope == pytest.approx(bound, rel=1e-14)


def test_slope_bound_golden():
    assert Logistic().slope_bound(Domain(), 0.0) == 0.5
    e4 = math.exp(4)
    assert Logistic().slope_bound(DOMAIN, 2.0) == pytest.approx(e4 / (1 + e4), rel=1e-15)
    assert Softmax(5).slope_bound(DOMAIN, 2.0) == pytest.approx(4 * e4 / (1 + 4 * e4), rel=1e-15)
    assert Softmax().slope_bound(Domain(classes=[1, 2, 3]), 0.0) == pytest.approx(2 / 3, rel=1e-15)
    assert Squared().slope_bound(DOMAIN, 2.0) == 7.0
    assert Huber(2.5).slope_bound(Domain(), 2.0) == 2.5


@settings(max_examples=200, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    norm_bound=st.floats(0, 50),
    feature_bound=st.floats(0.01, 5),
    target_bound=st.floats(0.01, 5),
    n_classes=st.integers(2, 5),
    n_features=st.integers(1, 6),
)
def test_slope_bounds_are_never_exceeded(
    seed, norm_bound, feature_bound, target_bound, n_classes, n_features
):
    rng = np.random.default_rng(seed)
    domain = Domain(feature_bound, target_bound=target_bound, classes=range(n_classes))
    labels = domain.class_labels()

    def on_ball(*shape):  # the boundary, often a corner
        w = rng.normal(size=shape) * (rng.random(shape) < rng.random())
        return w * norm_bound / max(np.abs(w).sum(), 1e-12)

    X = clip_table(domain, rng.normal(scale=3 * feature_bound, size=(20, n_features))).X
    w, W = on_ball(n_features), on_ball(n_features, n_classes)
    binary, codes = rng.integers(2, size=20), rng.integers(n_classes, size=20)
    target = clip_table(domain, X, rng.normal(scale=3 * target_bound, size=20)).y
    slack = 1 + 1e-12  # rounding of the dot product
    for loss, y in ((Logistic(), binary), (Squared(), target), (Huber(target_bound), target)):
        worst = np.abs(loss.slope(X @ w, y)).max()
        assert worst <= loss.slope_bound(domain, norm_bound) * slack
    worst = np.abs(Softmax().slope(X @ W, codes)).max()
    assert len(labels) == n_classes
    assert worst <= Softmax().slope_bound(domain, norm_bound) * slack


def test_unbounded_weights():
    nothing = Domain(target_bound=1.0, classes=[0, 1, 2])
    assert Logistic().slope_bound(nothing, math.inf) == 1.0
    assert Softmax().slope_bound(nothing, math.inf) == 1.0
    assert Squared().slope_bound(nothing, math.inf) == math.inf
    assert Huber().slope_bound(nothing, math.inf) == 1.0


def test_missing_facts_are_named():
    with pytest.raises(DomainError, match=r"Domain\.target_range"):
        Squared().slope_bound(Domain(), 1.0)
    with pytest.raises(DomainError, match=r"Domain\.feature_bound"):
        Logistic().slope_bound(Domain(), 1.0)
    with pytest.raises(DomainError, match=r"Domain\.classes"):
        Softmax().slope_bound(Domain(feature_bound=1.0), 1.0)
    with pytest.raises(DomainError, match="observed"):
        Softmax().slope_bound(Domain(feature_bound=1.0, classes="observed"), 1.0)
    assert Softmax(3).slope_bound(
        Domain(feature_bound=1.0, classes="observed"), 0.0
    ) == pytest.approx(2 / 3)


@pytest.mark.parametrize("bad", [-1.0, math.nan])
def test_bad_norm_bound_is_named(bad):
    for loss in (Logistic(), Softmax(2), Squared()):
        with pytest.raises(ParameterError, match="norm_bound"):
            loss.slope_bound(DOMAIN, bad)


def test_get_loss():
    for name in ("logistic", "softmax", "squared", "huber"):
        assert get_loss(name).name == name
    assert get_loss("huber") == Huber(1.0)
    with pytest.raises(ParameterError, match="loss must be one of logistic"):
        get_loss("hinge")
    with pytest.raises(ParameterError, match="cutoff"):
        Huber(0.0)
    with pytest.raises(ParameterError, match="n_classes"):
        Softmax(1)
    with pytest.raises(AttributeError):
        Huber().cutoff = 2.0


# ---- compiled loops know every loss ----------------------------------------------------------------


@pytest.mark.parametrize("name", CODES)
def test_every_loss_has_its_compiled_slope(name):
    """One code for each class, and the same slope at every margin."""
    assert CODES.keys() == LOSSES.keys()
    loss = get_loss(name)
    margins = np.linspace(-30.0, 30.0, 121)
    if name != "softmax":
        taken = njit()(lambda code, m, y: loss_kernels.slope(code, m, y, 1.0))
        for y in (0, 1) if loss.labels == "classes" else (-2.0, 0.3):
            found = [taken(CODES[name], m, float(y)) for m in margins]
            np.testing.assert_allclose(found, loss.slope(margins, np.full(121, y)), rtol=1e-14)
    else:
        chances = njit()(lambda m: loss_kernels.softmax(m))
        table = np.column_stack([margins, margins[::-1], 0.1 * margins])
        for row in table:
            expected = loss.slope(row[None, :], np.array([1]))[0] + np.array([0.0, 1.0, 0.0])
            chances(row)
            np.testing.assert_allclose(row, expected, rtol=1e-13, atol=1e-15)

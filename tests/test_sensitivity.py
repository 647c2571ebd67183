"""Every lemma of sensitivity.py against the actual query on actual neighbours.

For each: random neighbours never exceed the bound (hypothesis), one adversarial pair attains at
least 99 % of it, so that halving a constant fails the first and doubling it fails the second.
"""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from dpsparse import sensitivity
from dpsparse.domain import Domain
from dpsparse.exceptions import ParameterError
from dpsparse.losses import Huber, Logistic, Softmax
from dpsparse.methods.look.targets import MARGIN_EDGES
from dpsparse.rows import Rows
from dpsparse.rows.columns import RawRows
from dpsparse.rows.moments import products
from parts import clip_table

AR, RP = "add-remove", "replace-one"
SLACK = 1 + 1e-9  # rounding of float sums

random_neighbours = given(seed=st.integers(0, 2**32 - 1), n=st.integers(0, 6), d=st.integers(1, 5))
quick = settings(max_examples=100, derandomize=True)
both = pytest.mark.parametrize("adjacency", [AR, RP])


def spread(rng, *shape):
    """Numbers of very different sizes, many of them zero, so that clipping is active and not."""
    return rng.normal(size=shape) * 10.0 ** rng.integers(-2, 3) * (rng.random(shape) < 0.7)


def rows(rng, n, d, domain):
    """Rows of the domain, through its own door."""
    return clip_table(domain, spread(rng, n, d)).X.toarray()


def neighbours(rng, n, d, domain, adjacency):
    """Tables (X, y), (X', y') that share n rows; y holds class codes 0/1."""
    X, y = rows(rng, n, d, domain), rng.integers(2, size=n)
    one, other = rows(rng, 1, d, domain), rows(rng, 1, d, domain)
    yes = rng.integers(2, size=2)
    second = np.vstack([X, other]), np.append(y, yes[1])
    if adjacency == AR:
        return (X, y), second
    return (np.vstack([X, one]), np.append(y, yes[0])), second


def change(query, first, second, order):
    """The norm of the difference; arrays are flattened, as noise is added entry by entry."""
    return np.linalg.norm(np.ravel(query(*first) - query(*second)), order)


# ---- gradient_sum.md --------------------------------------------------------------------------


def clipped_gradients(w, clip):
    def query(X, y):
        slopes = Logistic().slope(X @ w, y)
        norms = np.abs(slopes) * np.linalg.norm(X, axis=1)
        shrink = np.minimum(1.0, clip / np.where(norms > 0, norms, 1.0))
        return (slopes * shrink) @ X

    return query


@both
@random_neighbours
@quick
def test_clipped_gradient_sum_holds(adjacency, seed, n, d):
    rng = np.random.default_rng(seed)
    clip, w = 10.0 ** rng.uniform(-1, 1), spread(rng, d)
    pair = neighbours(rng, n, d, Domain(feature_bound=100.0), adjacency)
    bound = sensitivity.clipped_gradient_sum(clip, adjacency)
    assert bound.norm == "L2"
    assert change(clipped_gradients(w, clip), *pair, 2) <= bound.value * SLACK


@both
@random_neighbours
@quick
def test_clipped_gradient_sum_holds_for_softmax(adjacency, seed, n, d):
    rng = np.random.default_rng(seed)
    clip, W = 10.0 ** rng.uniform(-1, 1), spread(rng, d, 3)

    def query(X, y):
        total = np.zeros((d, 3))
        for x, slope in zip(X, Softmax().slope(X @ W, y), strict=True):
            gradient = np.outer(x, slope)
            total += gradient * min(1.0, clip / max(np.linalg.norm(gradient), 1e-300))
        return total

    pair = neighbours(rng, n, d, Domain(feature_bound=100.0), adjacency)
    bound = sensitivity.clipped_gradient_sum(clip, adjacency).value
    assert change(query, *pair, 2) <= bound * SLACK


@both
def test_clipped_gradient_sum_is_attained(adjacency):
    # at w = 0 the same row with the other label has exactly the opposite gradient
    x, clip = np.array([[3.0, 4.0]]), 0.7
    first = (x[:0], np.zeros(0, int)) if adjacency == AR else (x, np.array([0]))
    moved = change(clipped_gradients(np.zeros(2), clip), first, (x, np.array([1])), 2)
    assert moved >= 0.99 * sensitivity.clipped_gradient_sum(clip, adjacency).value


def peeling(theta, step, clip, n0):
    def query(X, y):
        gradients = np.clip(Logistic().slope(X @ theta, y)[:, None] * X, -clip, clip)
        return theta - step / n0 * gradients.sum(axis=0)

    return query


@both
@random_neighbours
@quick
def test_signed_sum_holds(adjacency, seed, n, d):
    rng = np.random.default_rng(seed)
    w, cutoff = spread(rng, d), rng.uniform(0.1, 3)
    pair = neighbours(rng, n, d, Domain(feature_bound=10.0), adjacency)
    bound = sensitivity.signed_sum(cutoff, adjacency)
    assert bound.norm == "abs"
    moved = change(lambda X, y: Huber(cutoff).slope(X @ w, y).sum(keepdims=True), *pair, 2)
    assert moved <= bound.value * SLACK


@both
def test_signed_sum_is_attained(adjacency):
    slopes = Huber(2.0).slope(np.array([0.0, 0.0]), np.array([9.0, -9.0]))
    moved = abs(slopes[0] - (0.0 if adjacency == AR else slopes[1]))
    assert moved >= 0.99 * sensitivity.signed_sum(2.0, adjacency).value


# ---- vertex_selection.md ----------------------------------------------------------------------


def gradient(w):
    return lambda X, y: Logistic().slope(X @ w, y) @ X


def log_law(kappa, G):
    """Log-probabilities of the 2d signed vertices."""
    keys = kappa * np.concatenate([-G, G])
    shifted = keys - keys.max()
    return shifted - np.log(np.exp(shifted).sum())


def range_of(kappa, w, first, second):
    ratio = log_law(kappa, gradient(w)(*first)) - log_law(kappa, gradient(w)(*second))
    return np.ptp(ratio)


@both
@random_neighbours
@quick
def test_vertex_bounds_hold(adjacency, seed, n, d):
    rng = np.random.default_rng(seed)
    domain = Domain(feature_bound=rng.uniform(0.1, 4))
    w, kappa = spread(rng, d) / 10, rng.uniform(0.1, 3)
    pair = neighbours(rng, n, d, domain, adjacency)
    slope_bound = Logistic().slope_bound(domain, float(np.abs(w).sum()))
    score = sensitivity.vertex_score(slope_bound, domain.feature_bound, adjacency)
    eta = sensitivity.vertex_score_range(kappa, slope_bound, domain.feature_bound, adjacency)
    assert (score.norm, eta.norm) == ("Linf", "range")
    assert change(gradient(w), *pair, np.inf) <= score.value * SLACK
    assert range_of(kappa, w, *pair) <= eta.value * SLACK + 1e-12


@both
def test_vertex_bounds_are_attained(adjacency):
    # All weight on feature 0, which drives the margin to its bound; feature 1 has no weight and is
    # free to point either way.
    domain, w, kappa = Domain(feature_bound=2.0), np.array([1.5, 0.0]), 0.3
    plus, minus = np.array([[2.0, 2.0]]), np.array([[2.0, -2.0]])
    y = np.array([0])
    pair = (plus[:0], y[:0]) if adjacency == AR else (minus, y), (plus, y)
    slope_bound = Logistic().slope_bound(domain, 1.5)
    score = sensitivity.vertex_score(slope_bound, 2.0, adjacency).value
    eta = sensitivity.vertex_score_range(kappa, slope_bound, 2.0, adjacency).value
    assert change(gradient(w), *pair, np.inf) >= 0.99 * score
    assert range_of(kappa, w, *pair) >= 0.99 * eta


# ---- counts.md --------------------------------------------------------------------------------


def count_classes(X, y):
    return np.bincount(y, minlength=2)


@both
@random_neighbours
@quick
def test_class_counts_hold(adjacency, seed, n, d):
    rng = np.random.default_rng(seed)
    pair = neighbours(rng, n, d, Domain(), adjacency)
    bound = sensitivity.class_counts(adjacency)
    assert bound.norm == "L2"
    assert change(count_classes, *pair, 2) <= bound.value * SLACK


@both
def test_class_counts_are_attained(adjacency):
    X, none = np.zeros((1, 1)), np.zeros(0, int)
    first = (X[:0], none) if adjacency == AR else (X, np.array([0]))
    moved = change(count_classes, first, (X, np.array([1])), 2)
    assert moved >= 0.99 * sensitivity.class_counts(adjacency).value


def masses(X, y):
    return np.abs(X).sum(axis=0)


@both
@random_neighbours
@quick
def test_feature_masses_hold(adjacency, seed, n, d):
    rng = np.random.default_rng(seed)
    row_norm = rng.uniform(0.1, 5)
    pair = neighbours(rng, n, d, Domain(row_norm=row_norm), adjacency)
    bound = sensitivity.feature_masses(row_norm, adjacency)
    assert bound.norm == "L2"
    assert change(masses, *pair, 2) <= bound.value * SLACK


@both
def test_feature_masses_are_attained(adjacency):
    r, y = 1.7, np.array([0])
    first = (np.zeros((0, 2)), y[:0]) if adjacency == AR else (np.array([[r, 0.0]]), y)
    moved = change(masses, first, (np.array([[0.0, -r]]), y), 2)
    assert moved >= 0.99 * sensitivity.feature_masses(r, adjacency).value


@both
@random_neighbours
@quick
def test_clipped_count_holds(adjacency, seed, n, d):
    rng = np.random.default_rng(seed)
    low, high = sorted(rng.choice(8, size=2, replace=False).tolist())
    first, second = neighbours(rng, n, d, Domain(), adjacency)

    def query(X, y):  # the number of features that more than half of the rows own
        return np.clip(np.sum((X != 0).sum(axis=0) > len(X) / 2), low, high)

    bound = sensitivity.clipped_count(low, high)
    assert bound.norm == "abs"
    assert abs(query(*first) - query(*second)) <= bound.value


def test_clipped_count_is_attained():
    # the only row decides about all ten features at once
    counts = [np.clip(np.sum(row != 0), 2, 9) for row in (np.zeros(10), np.ones(10))]
    assert abs(counts[0] - counts[1]) >= 0.99 * sensitivity.clipped_count(2, 9).value


# ---- ridge.md ---------------------------------------------------------------------------------


def ridge_gradient(w, X, y, n0, ridge):
    return Huber().slope(X @ w, y) @ X / n0 + ridge * w


def minimise(X, y, n0, ridge, tol):
    """Gradient descent until the gradient is really at most tol."""
    w = np.zeros(X.shape[1])
    step = 1 / (np.linalg.norm(X, 2) ** 2 / n0 + ridge) if len(X) else 1 / ridge
    while np.linalg.norm(g := ridge_gradient(w, X, y, n0, ridge)) > tol:
        w -= step * g
    return w


@both
@random_neighbours
@settings(max_examples=60, derandomize=True)
def test_ridge_minimiser_holds(adjacency, seed, n, d):
    rng = np.random.default_rng(seed)
    row_norm, n0, ridge = rng.uniform(0.2, 2), rng.uniform(1, 10), rng.uniform(0.1, 1)
    tol = 10.0 ** rng.uniform(-8, -1)
    (X, _), (Z, _) = neighbours(rng, n, d, Domain(None, row_norm=row_norm), adjacency)
    y = 5 * rng.normal(size=n + 1)
    z = y.copy()
    z[-1] = -y[-1]
    moved = minimise(X, y[: len(X)], n0, ridge, tol) - minimise(Z, z, n0, ridge, tol)
    bound = sensitivity.ridge_minimiser(1.0, row_norm, n0, ridge, adjacency, tol)
    assert bound.norm == "L2"
    assert np.linalg.norm(moved) <= bound.value * SLACK


@both
@pytest.mark.parametrize("tol", [0.0, 0.3])
def test_ridge_minimiser_is_attained(adjacency, tol):
    # Far targets keep the Huber slope at -+1, so the minimiser of one row is +-x/(n0 ridge); the
    # allowed error of each solver pushes the two apart.
    r, n0, ridge = 2.0, 5.0, 0.4
    X = np.array([[r, 0.0]])
    away = np.array([tol / ridge, 0.0])

    def solve(X, y, push):
        w = minimise(X, y, n0, ridge, 1e-12) + push
        assert np.linalg.norm(ridge_gradient(w, X, y, n0, ridge)) <= tol + 1e-9
        return w

    first = (X[:0], np.zeros(0)) if adjacency == AR else (X, np.array([-99.0]))
    moved = np.linalg.norm(solve(*first, -away) - solve(X, np.array([99.0]), away))
    bound = sensitivity.ridge_minimiser(1.0, r, n0, ridge, adjacency, tol).value
    assert 0.99 * bound <= moved <= bound * SLACK  # random tables do not test the share of tol


@both
def test_tilted_minimiser_is_attained(adjacency):
    """Two searches may stop tol/ridge away from the exact minimiser, on opposite sides of it: 2 tol/ridge apart."""
    ridge, tol, tilt = 0.4, 0.3, np.array([1.5, -2.0])
    exact, away = -tilt / ridge, np.array([0.6, 0.8]) * (tol / ridge)
    for found in (exact + away, exact - away):
        assert np.linalg.norm(ridge * found + tilt) <= tol * SLACK
    bound = sensitivity.tilted_minimiser(ridge, tol, 2, 1e-9, adjacency)
    moved = 2.0 * np.linalg.norm(away)
    assert bound.norm == "L2"
    assert 0.99 * bound.value <= moved <= bound.value * SLACK


# ---- queries of rows, in whole numbers, whose bound is attained by two rows or a row and none ----


def targets_of(*y):
    return Rows.clip(np.ones((len(y), 1)), np.array(y), Domain(target_bound=1.0))


def cells_of(*lines):
    return RawRows.of(np.array(lines)).numbers(np.asarray, 3).between(np.tile([0.0, 1.0], (3, 1)))


def units_of(*lines):
    return Rows.clip(np.array(lines), np.zeros(len(lines)), Domain()).unit(np.ones(2, np.float32))


def squares_of(*lines):
    return units_of(*lines).squares()


def products_of(*lines):
    rows = Rows.clip(np.array(lines), np.zeros(len(lines)), Domain())
    return products(rows, None, 1.0)


def bins_of(*lines):
    """Rows of one entry with their class: the entry is the margin."""
    X, y = np.array(lines)[:, :1], np.array(lines)[:, 1]
    rows = Rows.clip(X, y, Domain(classes=[0, 1]), labels=np.array([0, 1]))
    return rows.unit(np.ones(1, np.float32)).margins(np.ones((1, 1))).labels_by_margin(MARGIN_EDGES)


UNIT = 2.0**-20
ATTAINED = {
    "count": (lambda y: targets_of(y).count_near(0.0, 0.5), (0.0,), (1.0,)),
    "number and total": (lambda y: targets_of(y).count_and_total(), (1.0,), (-1.0,)),
    "total": (lambda y: targets_of(y).target_total(), (1.0,), (-1.0,)),
    "cells": (cells_of, ([-1.0, 0.5, 2.0],), ([0.5, 2.0, -1.0],)),
    "squares": (squares_of, ([1.0, 0.0],), ([0.0, 1.0],)),
    "products": (products_of, ([1.0, 0.0],), ([0.0, 1.0],)),
    "class and bin of the margin": (bins_of, ([-3.0, 1.0],), ([3.0, 1.0],)),
    "class at one margin": (bins_of, ([0.3, 0.0],), ([0.3, 1.0],)),
}


@both
@pytest.mark.parametrize("name", ATTAINED)
def test_whole_numbers_attain_the_lemma_of_their_query(name, adjacency):
    ask, one, other = ATTAINED[name]
    moved = ask(*one).whole(UNIT).ravel()
    if adjacency == RP:
        moved = moved - ask(*other).whole(UNIT).ravel()
    bound = ask(*one).sensitivity(adjacency).value / UNIT
    assert 0.99 * bound <= np.linalg.norm(moved.astype(float)) <= bound


@both
def test_names_attain_their_lemma(adjacency):
    def weights(*names):
        asked = RawRows.of([names]).names(list, 4)
        return dict(zip(asked.known, asked.weights().whole(UNIT).tolist(), strict=True))

    one, other = weights("a", "b", "c", "d"), weights("e")
    moved = [*one.values(), *(other.values() if adjacency == RP else ())]
    bound = sensitivity.shared_names(adjacency).value / UNIT
    assert 0.99 * bound <= np.linalg.norm(moved) <= bound


@both
@pytest.mark.parametrize("most", [1, 5])
def test_a_name_of_one_row_is_told_with_the_probability_of_the_leak(adjacency, most):
    """The worst number of own names uses the leak up; two rows have names of their own under replace-one."""
    scale, leak = 3.0, 1e-4
    threshold = sensitivity.name_threshold(scale, most, leak, adjacency)
    told = max(
        -math.expm1(t * log_ndtr((threshold - 1.0 / math.sqrt(t)) / scale))
        for t in range(1, most + 1)
    )
    assert 0.99 * leak <= told * (2.0 if adjacency == RP else 1.0) <= leak


# ---- the record and its errors ----------------------------------------------------------------

CALLS = [
    lambda a: sensitivity.clipped_gradient_sum(1.0, a),
    lambda a: sensitivity.signed_sum(1.0, a),
    lambda a: sensitivity.vertex_score(1.0, 1.0, a),
    lambda a: sensitivity.vertex_score_range(1.0, 1.0, 1.0, a),
    sensitivity.class_counts,
    lambda a: sensitivity.feature_masses(1.0, a),
    lambda a: sensitivity.ridge_minimiser(1.0, 1.0, 1.0, 1.0, a),
    lambda a: sensitivity.tilted_minimiser(1.0, 1e-6, 4, 1e-9, a),
    lambda a: sensitivity.linear_answers(sensitivity.ridge_minimiser(1.0, 1.0, 1.0, 1.0, a), 2.0),
]


@pytest.mark.parametrize("call", CALLS)
def test_unknown_adjacency_is_named(call):
    for adjacency in (AR, RP):
        assert call(adjacency).adjacency == adjacency
    with pytest.raises(
        ParameterError, match="adjacency must be one of 'add-remove', 'replace-one'"
    ):
        call("swap")


@pytest.mark.parametrize("call", [*CALLS, lambda a: sensitivity.clipped_count(0, 1)])
def test_source_is_a_proof_note(call, request):
    path, lemma = call(AR).source.split(", ")
    note = (request.config.rootpath / path).read_text(encoding="utf-8")
    assert f"## {lemma}" in note


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_bad_bounds_are_named(bad):
    with pytest.raises(ParameterError, match="clip must be a positive finite number"):
        sensitivity.clipped_gradient_sum(bad, AR)
    with pytest.raises(ParameterError, match="kappa must be"):
        sensitivity.vertex_score_range(bad, 1.0, 1.0, AR)
    with pytest.raises(ParameterError, match="ridge must be"):
        sensitivity.ridge_minimiser(1.0, 1.0, 1.0, bad, AR)
    if bad != 0:
        with pytest.raises(ParameterError, match="tol must be"):
            sensitivity.ridge_minimiser(1.0, 1.0, 1.0, 1.0, AR, bad)


def test_unbounded_slope_says_what_to_do():
    with pytest.raises(ParameterError, match="use a loss of bounded slope"):
        sensitivity.ridge_minimiser(math.inf, 1.0, 1.0, 1.0, AR)


@pytest.mark.parametrize(("low", "high"), [(0.5, 3), (0, 2.5), (3, 3), (4, 3), (True, 3)])
def test_counts_have_whole_bounds(low, high):
    with pytest.raises(ParameterError, match=r"must be (a whole number|less than high)"):
        sensitivity.clipped_count(low, high)


def test_record_is_frozen():
    with pytest.raises(FrozenInstanceError):
        sensitivity.class_counts(AR).value = 0.5


def test_small_numpy_integers_do_not_overflow():
    assert sensitivity.clipped_count(np.int8(-100), np.int8(100)).value == 200.0

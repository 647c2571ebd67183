"""Holes that an attack on the first release found, each by the input that opened it.

They need nothing but `fit`, so they can be run on the old code, where each of them fails.
The ledger's holes are in tests/privacy/test_ledger_*.py, those of messages and files in tests/fuzz and tests/cli.
"""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse import Domain, DPGradientClassifier, DPGradientRegressor
from dpsparse import estimators as all_estimators
from dpsparse.audit.cases import build
from dpsparse.exceptions import DomainError, NotPrivateWarning, ParameterError, SchemaError


@pytest.fixture(autouse=True)
def seeded():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        yield


def ordinary_table(n=4000, d=20):
    rng = np.random.default_rng(0)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.3)
    return X, (X[:, 0] > X[:, 1]).astype(int)


@pytest.mark.parametrize("entry", [1e-310, 1e-320, 5e-324])
def test_a1_one_tiny_entry_does_not_decide_the_model(entry):
    """The same noise with and without the row: an honest row moves a weight a little, never this far."""
    X, y = ordinary_table()
    row = np.zeros(20)
    row[3] = entry
    fits = [
        DPGradientClassifier(
            Domain(classes=[0, 1], n_samples=4000), epsilon=0.1, random_state=5
        ).fit(A, b)
        for A, b in ((X, y), (np.vstack([X, row]), np.append(y, 1)))
    ]
    assert np.abs(fits[1].coef_ - fits[0].coef_).max() < 0.5


def test_a1_many_tiny_entries_with_unequal_scales():
    """4001 entries of 2^-149 in wide data, after columns were dropped."""
    rng = np.random.default_rng(1)
    X = sp.random_array((300, 4001), density=0.01, rng=rng, format="csr")
    y = rng.integers(0, 2, 300)
    row = sp.csr_array(np.full((1, 4001), 2.0**-149))
    domain = Domain(classes=[0, 1], n_samples=300)
    fits = [
        DPGradientClassifier(domain, epsilon=1.0, random_state=2).fit(A, b)
        for A, b in ((X, y), (sp.vstack([X, row], format="csr"), np.append(y, 1)))
    ]
    size = np.abs(fits[0].coef_).max()
    assert np.abs(fits[1].coef_ - fits[0].coef_).max() < 0.05 * size


def test_a2_what_cannot_be_represented_is_refused_before_anything_is_spent():
    with pytest.raises(DomainError, match="another unit"):
        DPGradientRegressor(Domain(target_bound=1e40))
    for name in ("step_size", "clip"):
        for value in (1e300, 1e-300):
            with pytest.raises(ParameterError, match=name):
                DPGradientClassifier(Domain(classes=[0, 1]), **{name: value}).plan(10)


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_a2_large_and_small_parameters_give_finite_models(size):
    X, y = ordinary_table(300)
    model = DPGradientClassifier(Domain(classes=[0, 1]), step_size=size, clip=size, random_state=0)
    assert np.isfinite(model.fit(X, y).coef_).all()
    domain = Domain(target_bound=size, feature_bound=None)
    model = DPGradientRegressor(domain, random_state=0).fit(X * size, y * size)
    assert np.isfinite(model.coef_).all()
    assert math.isfinite(model.intercept_)


@pytest.mark.parametrize("name", all_estimators.__all__)
@pytest.mark.parametrize("index", [-1, 7, 2**30])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array])
def test_a3_indices_out_of_range_are_refused(name, index, form):
    """They used to corrupt the heap."""
    X = form(np.eye(7))
    X.indices = X.indices.copy()
    X.indices[0] = index
    estimator = build(name, "add-remove")[0]
    with pytest.raises(SchemaError, match="malformed"):
        estimator.fit(X, np.arange(7) % 2)


def test_a3_a_stale_flag_does_not_let_a_long_row_pass():
    """Two entries of one cell, flagged as canonical: together 1.8, longer than the row_norm of 1."""
    X = sp.csr_array(
        (np.array([0.9, 0.9, 0.5]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2)
    )
    X.has_canonical_format = True
    clipped = Domain(feature_bound=None, row_norm=1.0).clip(X, np.zeros(2)).X
    assert np.linalg.norm(clipped.toarray(), axis=1).max() <= 1.0

"""Indices of 64 bits: stored as 32 where that is enough, refused where they point outside."""

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse import Domain, DPGradientClassifier
from dpsparse.domain.clipping import clipped_rows
from dpsparse.exceptions import SchemaError

INF = float("inf")


def table(dtype, n=40, d=30):
    X = sp.random_array((n, d), density=0.3, rng=np.random.default_rng(0), format="csr")
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    return X


def test_rows_are_the_same_and_those_of_32_bits_are_shared():
    short, long = table(np.int32), table(np.int64)
    for a, b in zip(clipped_rows(short, 1.0, INF), clipped_rows(long, 1.0, INF), strict=True):
        assert np.array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype
    assert np.shares_memory(clipped_rows(short, 1.0, INF)[1], short.indices)
    assert long.indices.dtype == long.indptr.dtype == np.int64  # the caller's are left alone


def test_models_have_the_same_bits():
    y = np.arange(40) % 2
    with pytest.warns(UserWarning, match="NOT private"):
        fitted = [
            DPGradientClassifier(Domain(classes=[0, 1]), random_state=0).fit(table(dtype), y)
            for dtype in (np.int32, np.int64)
        ]
    assert np.array_equal(fitted[0].coef_, fitted[1].coef_)


@pytest.mark.parametrize("bad", [2**32, 2**32 + 5, -(2**32) + 5, 2**31, -1, 30])
def test_what_would_wrap_around_to_a_column_is_refused(bad):
    X = table(np.int64)
    X.indices[7] = bad
    with pytest.raises(SchemaError, match="malformed"):
        clipped_rows(X, 1.0, INF)


@pytest.mark.parametrize("bad", [2**32 + 3, -(2**32) + 3])
def test_rows_that_would_wrap_around_are_refused(bad):
    X = table(np.int64)
    X.indptr[3] = bad
    with pytest.raises(SchemaError, match="malformed"):
        clipped_rows(X, 1.0, INF)


def test_duplicates_of_64_bits_are_added_up():
    long = sp.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([3, 1, 3]), np.array([0, 3])), shape=(1, 5)
    )
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    indptr, indices, values = clipped_rows(long, 100.0, INF)
    assert (indptr.tolist(), indices.tolist(), values.tolist()) == ([0, 2], [1, 3], [2.0, 5.0])


@pytest.mark.parametrize("which", ["indptr", "indices"])
@pytest.mark.parametrize("value", [3.0, np.nan])
def test_places_that_are_no_whole_numbers_are_refused(which, value):
    """NaN is in no wrong order, and as 32 bits it is a place far outside."""
    X = table(np.int32)
    places = getattr(X, which).astype(float)
    places[3] = value
    setattr(X, which, places)
    with pytest.raises(SchemaError, match="malformed"):
        clipped_rows(X, 1.0, INF)

"""Domain: the bounds hold afterwards, nothing is said about rows, nothing of the user's is touched."""

import math
import pickle
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dpsparse import Domain, Rows
from dpsparse.domain.clipping import by_person
from dpsparse.evaluation.scores import _codes
from dpsparse.exceptions import DomainError, SchemaError
from parts import clip_table

FINITE = st.floats(-1e200, 1e200, allow_nan=False)
MATRICES = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=FINITE
)


@settings(max_examples=60)
@given(X=MATRICES, feature_bound=st.floats(1e-3, 1e3), row_norm=st.floats(1e-3, 1e3))
def test_bounds_hold_after_clipping(X, feature_bound, row_norm):
    data = clip_table(Domain(feature_bound=feature_bound, row_norm=row_norm), X)
    dense = data.X.toarray()
    assert np.abs(dense).max(initial=0) <= feature_bound
    assert np.sqrt((dense**2).sum(axis=1)).max(initial=0) <= row_norm


def test_rows_inside_the_bounds_are_unchanged():
    X = sp.random_array((40, 30), density=0.2, rng=0, format="csr")
    data = clip_table(Domain(feature_bound=1.0, row_norm=100.0), X)
    # stored in float32, towards zero
    np.testing.assert_allclose(data.X.toarray(), X.toarray(), rtol=2.0**-22)
    assert np.all(np.abs(data.X.toarray()) <= np.abs(X.toarray()))


@pytest.mark.nojit
def test_scaling_is_per_row():
    """A row's image does not depend on its neighbours: clipping a part equals a part of the clipped."""
    X = np.random.default_rng(1).normal(size=(20, 7)) * 5
    domain = Domain(feature_bound=2.0, row_norm=1.0)
    whole = clip_table(domain, X).X.toarray()
    for i in range(20):
        np.testing.assert_array_equal(clip_table(domain, X[i : i + 1]).X.toarray()[0], whole[i])


@pytest.mark.nojit
@pytest.mark.parametrize(
    "make", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, pd.DataFrame]
)
def test_every_format_gives_the_same_rows(make):
    X = np.random.default_rng(2).normal(size=(12, 5)) * (
        np.random.default_rng(3).random((12, 5)) < 0.4
    )
    expected = clip_table(Domain(row_norm=1.0), X).X
    got = clip_table(Domain(row_norm=1.0), make(X)).X
    np.testing.assert_array_equal(got.indptr, expected.indptr)
    np.testing.assert_array_equal(got.indices, expected.indices)
    np.testing.assert_array_equal(got.data, expected.data)


@pytest.mark.nojit
def test_unsorted_and_duplicate_entries_become_canonical():
    # row 0: column 1 twice (0.25 + 0.5) and unsorted
    X = sp.csr_array(
        (np.array([0.25, 1.0, 0.5]), np.array([1, 0, 1]), np.array([0, 3, 3])), shape=(2, 2)
    )
    before = X.data.copy()
    data = clip_table(Domain(), X)
    np.testing.assert_array_equal(data.X.toarray(), [[1.0, 0.75], [0.0, 0.0]])
    assert data.X.has_canonical_format
    np.testing.assert_array_equal(X.data, before)


def test_the_users_matrix_is_untouched_and_indices_are_shared():
    X = sp.random_array((50, 40), density=0.1, rng=4, format="csr") * 10
    before = X.data.copy()
    data = clip_table(Domain(feature_bound=0.5, row_norm=0.5), X)
    np.testing.assert_array_equal(X.data, before)
    assert np.shares_memory(data.X.indices, X.indices)  # one copy: the values
    assert np.shares_memory(data.X.indptr, X.indptr)
    assert not np.shares_memory(data.X.data, X.data)


def test_integer_and_float32_values_become_float64():
    for dtype in (np.int64, np.float32, np.bool_):
        assert clip_table(Domain(), sp.csr_array(np.eye(3, dtype=dtype))).X.dtype == np.float64


def test_empty_rows_and_columns():
    data = clip_table(Domain(row_norm=1.0), sp.csr_array((4, 3)))
    assert data.X.shape == (4, 3)
    assert data.X.nnz == 0


def test_targets_are_clipped():
    data = clip_table(Domain(target_bound=2.0), np.eye(3), [-5.0, 1.0, 9.0])
    np.testing.assert_array_equal(data.y, [-2.0, 1.0, 2.0])


def test_labels_become_codes():
    domain = Domain(classes=["no", "yes"])
    data = clip_table(domain, np.eye(3), ["yes", "no", "yes"], labels=domain.class_labels())
    np.testing.assert_array_equal(data.y, [1, 0, 1])


@pytest.mark.parametrize("labels", [[2, 0, 1], ["yes", "no", "maybe"]])
def test_labels_keep_the_order_of_their_declaration(labels):
    domain = Domain(classes=labels)
    assert domain.classes == tuple(labels)
    for cells in (labels, np.array(labels), np.array(labels, object)):
        data = clip_table(domain, np.eye(3), cells, labels=domain.class_labels())
        np.testing.assert_array_equal(data.y, [0, 1, 2])


@pytest.mark.parametrize("label", [-1, 7, 0.5])
def test_undeclared_label_is_a_schema_error_that_does_not_quote_it(label):
    domain = Domain(classes=[0, 1])
    with pytest.raises(SchemaError, match=r"Domain\.classes") as caught:
        clip_table(domain, np.eye(3), [0, 1, label], labels=domain.class_labels())
    assert str(label) not in str(caught.value)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_non_finite_values_are_refused_without_naming_rows(bad):
    X = np.eye(4)
    X[2, 1] = bad
    with pytest.raises(SchemaError, match="Input X contains NaN or infinity") as caught:
        clip_table(Domain(), X)
    assert "2" not in str(caught.value)
    with pytest.raises(SchemaError, match="Input y contains NaN or infinity"):
        clip_table(Domain(target_bound=1.0), np.eye(2), [0.0, bad])


@pytest.mark.parametrize("name", ["feature_bound", "row_norm", "target_bound"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "1", True])
def test_impossible_bounds_are_refused_by_name(name, value):
    with pytest.raises(DomainError, match=f"Domain.{name} must be"):
        Domain(**{name: value})


@pytest.mark.parametrize("value", [0, -3, 2.5, True, "10"])
def test_impossible_n_samples(value):
    with pytest.raises(DomainError, match=r"Domain\.n_samples must be"):
        Domain(n_samples=value)


@pytest.mark.parametrize("classes", [[], [1], [1, 1], "seen"])
def test_impossible_classes(classes):
    with pytest.raises(DomainError, match=r"Domain\.classes must"):
        Domain(classes=classes)


def test_missing_fact_says_what_to_declare():
    with pytest.raises(
        DomainError,
        match=r"needs the public fact Domain.row_norm; declare it: Domain\(row_norm=1.0\)",
    ):
        Domain().require("row_norm", "DPGradientClassifier")


def test_observed_classes_are_an_explicit_choice():
    with pytest.raises(DomainError, match=r"Domain\.classes"):
        Domain().class_labels(np.array([0, 1]))
    np.testing.assert_array_equal(
        Domain(classes="observed").class_labels(np.array([3, 1, 3])), [1, 3]
    )
    with pytest.raises(DomainError, match="one class only"):
        Domain(classes="observed").class_labels(np.array([1, 1]))


def test_no_person_is_two_because_names_have_no_exact_order():
    """As floats of NumPy 2**53 + 1 equals 2.0**53, which equals 2**53, which is another; sets have no order at all."""
    one, other = np.int64(2**53 + 1), np.int64(2**53)
    order, starts = by_person([one, 2.0**53, other, one], 4)
    assert [sorted(order[a:b].tolist()) for a, b in pairwise(starts)] == [[1, 2], [0, 3]]
    sets = [frozenset({1}), frozenset({2}), frozenset({1})]
    with pytest.raises(SchemaError, match="by numbers or by text"):
        by_person(sets, 3)
    times = [np.datetime64("2020-01-01", "ns"), np.datetime64("2020-01-01", "ps")]
    with pytest.raises(SchemaError, match="by numbers or by text"):
        by_person(times, 2)


def test_names_that_differ_in_a_last_nul_are_two_persons():
    """NumPy drops it. Two persons taken for one have one mean, which the second turns around: a sum moved by more
    than its bound."""
    names = ["a", "a\0", "a\0\1", "a\1", "a\0\0", "b"]
    for groups in (names, np.array(names, object), np.array(names, np.dtypes.StringDType())):
        assert len(by_person(groups, 6)[1]) == 7
    assert len(by_person(names * 2, 12)[1]) == 7
    domain, y = Domain(unit="person", target_bound=1.0), np.array([1.0, -1.0, -1.0, -1.0])
    one, both = (
        Rows.clip(np.ones((n, 1)), y[:n], domain, groups=["a", "a\0", "a\0", "a\0"][:n])
        .target_total()
        .whole(2.0**-20)
        for n in (1, 4)
    )
    assert abs(int(both[0]) - int(one[0])) <= 2**20


@pytest.mark.parametrize("labels", [[0, 2**53], [-(2**53), 1], [2**53, 2**53 + 1], [0, 2**70]])
def test_labels_that_one_float_among_them_would_make_equal_are_refused(labels):
    """[2**53 + 1, 2**53 + 1, 2**53] are two classes, and one if the last is a float: the row of one person changed the
    class of all others. Declared, observed, and known to a model that is evaluated."""
    assert np.asarray([2**53 + 1, 2.0**53])[0] == 2**53
    with pytest.raises(DomainError, match="below"):
        Domain(classes=labels)
    with pytest.raises(DomainError, match="below"):
        Domain(classes="observed").class_labels(np.array(labels))
    with pytest.raises(DomainError, match="below"):
        _codes(np.array(labels), np.array(labels), "")


@pytest.mark.parametrize(
    "labels", [[-(2**53) + 1, 2**53 - 1], ["9007199254740992", "9007199254740993"]]
)
def test_labels_below_are_told_apart_as_numbers_of_either_kind(labels):
    domain = Domain(classes=labels)
    for kind in (None, float) if isinstance(labels[0], int) else (None,):
        y = np.array([labels[1], labels[0]], kind)
        part = domain.part(np.eye(2), y, labels=domain.class_labels())
        assert part.targets.tolist() == [1, 0]


@pytest.mark.parametrize(
    "groups",
    [
        np.ma.array([1, 1, 2], mask=[0, 1, 1]),
        np.array(["a", np.nan, np.nan], np.dtypes.StringDType(na_object=np.nan)),
        np.array(["a", None, None], np.dtypes.StringDType(na_object=None)),
        np.array(["2020-01-01", "NaT"], "datetime64[ns]"),
    ],
    ids=["masked", "NaN of texts", "None of texts", "NaT"],
)
def test_a_missing_name_is_no_person(groups):
    with pytest.raises(SchemaError, match="names are missing"):
        by_person(groups, len(groups))


@pytest.mark.parametrize(
    "text",
    [
        "Domain()",
        "Domain(classes=('no', 'yes'))",
        "Domain(feature_bound=1.0, classes=(0, 1), unit='person')",
        "Domain(feature_bound=2.0, target_range=(0.0, 10.0))",
        "Domain(target_bound=5.0, bounds={'age': (0.0, 120.0)})",
    ],
)
def test_the_repr_is_what_was_stated(text):
    """Every estimator shows its domain, and twelve fields hid the two that were stated."""
    domain = eval(text)
    assert repr(domain) == text
    assert repr(pickle.loads(pickle.dumps(domain))) == text


def test_classes_of_several_kinds_are_refused_in_words():
    with pytest.raises(DomainError, match="one kind"):
        Domain(classes=np.array([0, "yes"], object))


def test_a_bound_that_is_not_declared_is_none_and_differs_from_one():
    """The two were equal although one refuses a data frame that the other fits."""
    undeclared, declared = Domain(classes=[0, 1]), Domain(classes=[0, 1], feature_bound=1.0)
    assert undeclared != declared
    assert undeclared.feature_bound is None
    assert (undeclared.entry_bound(), undeclared.entry_bound(math.inf)) == (1.0, math.inf)
    assert declared.entry_bound(math.inf) == 1.0
    X = np.array([[3.0, -0.5]])
    np.testing.assert_array_equal(clip_table(undeclared, X).X.toarray(), X)
    np.testing.assert_array_equal(clip_table(declared, X).X.toarray(), [[1.0, -0.5]])


@pytest.mark.parametrize(
    "kind",
    ["DPLassoClassifier", "DPScreenedLassoClassifier", "DPTwoStageClassifier", "DPADMMClassifier"],
)
def test_methods_that_need_an_entry_bound_clip_to_one_where_none_is_declared(kind):
    """Their prices rest on it: entries of 1000 and of 1 must be one row to them."""
    from dpsparse import methods as estimators

    X = np.random.default_rng(0).choice([-1.0, 1.0], (40, 3))
    y = (X[:, 0] > 0).astype(int)
    facts = {"classes": [0, 1], "n_samples": 40}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same = [
            getattr(estimators, kind)(Domain(**facts, **bound), random_state=1)
            .fit(size * X, y)
            .coef_
            for bound, size in (({}, 1000.0), ({"feature_bound": 1.0}, 1.0))
        ]
    np.testing.assert_array_equal(*same)

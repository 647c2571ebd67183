"""Tables of every kind, and cells of every kind: total maps of one cell that quote nothing."""

import datetime
import math

import numpy as np
import pytest
import scipy.sparse as sp

from dpsparse.exceptions import DPSparseError
from dpsparse.preprocessing import (
    DPStandardizer,
    DPTablePreparer,
    DPVectorizer,
    HashingEncoder,
    PublicEncoder,
    PublicScaler,
)
from dpsparse.preprocessing._tables import LONGEST_NAME, documents, numbers, read_table, texts
from parts import objects


class Liar:
    """An object whose every method fails, with a secret in its message."""

    def __float__(self):
        raise RuntimeError("Zx9-secret")

    __str__ = __repr__ = __hash__ = __eq__ = __bool__ = __len__ = __float__


ODD = [
    None, "", " ", "a", "x" * 5000, "\ud800", "\0", "é", 1, 1.0, True, -0.0, math.nan, math.inf, -math.inf,
    10**400, 5e-324, 1e308, 1 + 2j, [1], {"a": 1}, (1, 2), {1}, b"bytes", Liar(), np.float32(2.5), np.int8(3),
    datetime.date(2020, 1, 2), np.datetime64("NaT", "s"), object,
]  # fmt: skip


def test_cells_become_numbers_or_gaps():
    found = numbers(objects(ODD))
    assert found.dtype == np.float64
    assert found[ODD.index("a")] != found[ODD.index("a")]
    assert found[8] == found[9] == found[10] == 1.0
    assert numbers(np.array(["2020-01-02", "NaT"], "datetime64[D]"))[0] == 1577923200.0
    assert np.isnan(numbers(np.array(["2020-01-02", "NaT"], "datetime64[D]"))[1])


def test_cells_become_names_or_gaps():
    found = texts(objects(ODD))
    assert all(name is None or 0 < len(name) <= LONGEST_NAME for name in found)
    assert all(name is None or name.encode() for name in found)  # every name can be written
    assert [found[i] for i in (0, 1, 3, 8, 9, 10)] == [None, None, "a", "1", "1", "True"]
    gaps = {type(cell).__name__ for cell, name in zip(ODD, found, strict=True) if name is None}
    assert {"list", "dict", "set", "tuple", "Liar", "complex", "bytes", "NoneType"} <= gaps


def test_texts_are_total():
    found = documents(objects(ODD)).columns[0].tolist()
    assert found[3] == "a"
    assert found.count("") == len(ODD) - sum(isinstance(c, str) and c.strip() != "" for c in ODD)


@pytest.mark.parametrize(
    "step",
    [
        PublicScaler((0, 1), fill=0.3, count_rows=True),
        PublicEncoder(["a", "1"]),
        HashingEncoder(4),
        DPVectorizer(n_features=8),
    ],
)
def test_every_map_is_total_and_bounded(step):
    column = {"c": objects(ODD)}
    rows = step.fit(column).transform(column)
    dense = rows.toarray() if sp.issparse(rows) else rows
    assert dense.shape == (len(ODD), len(step.get_feature_names_out()))
    assert np.isfinite(dense).all()
    assert abs(dense).max() <= 1.0
    assert np.linalg.norm(dense, axis=1).max() <= step._norm(1) * (1 + 1e-12)
    # A row is mapped as if it were alone.
    for i, cell in enumerate(ODD):
        alone = step.transform({"c": objects([cell])})
        np.testing.assert_array_equal(
            alone.toarray() if sp.issparse(alone) else alone, dense[i : i + 1]
        )


def test_scales_of_odd_columns_are_finite_and_bounded():
    column = {
        "c": objects(ODD * 50),
        "d": np.full(len(ODD) * 50, 1e300),
        "e": np.full(len(ODD) * 50, 5.0),
    }
    step = DPStandardizer(epsilon=5.0).fit(column)
    rows = step.transform(column)
    assert np.isfinite(rows).all()
    assert abs(rows).max() <= 1.0
    assert (step.scale_ > 0).all()


def test_kinds_of_tables():
    pandas = pytest.importorskip("pandas")
    columns = {"a": [1.0, 2.0], "b": ["x", None]}
    arrow = pytest.importorskip("pyarrow").table(columns)
    for X in (columns, pandas.DataFrame(columns), pandas.DataFrame(columns).convert_dtypes(), arrow,
              pandas.DataFrame({"a": [1.0, 2.0], "b": pandas.Categorical(["x", None])})):  # fmt: skip
        table = read_table(X)
        assert table.names == ("a", "b")
        assert numbers(table.columns[0]).tolist() == [1.0, 2.0]
        assert texts(table.columns[1]) == ["x", None]
    for X in ([[1, "x"], [2, None]], np.array([[1, "x"], [2, None]], object)):
        assert texts(read_table(X).columns[1]) == ["x", None]
    assert numbers(read_table(sp.csr_array(np.eye(2))).columns[0]).tolist() == [1.0, 0.0]


def test_values_under_a_mask_are_missing():
    column = np.ma.masked_array([5.0, 1.0], [True, False])
    table = np.ma.masked_array([[5.0], [1.0]], [[True], [False]])
    for X in ({"a": column}, table):
        assert np.isnan(numbers(read_table(X).columns[0])).tolist() == [True, False]


@pytest.mark.parametrize(
    "X",
    ["Zx9-secret", 5, None, [], {}, [["Zx9-secret"], ["a", "b"]], {"a": [1], "b": [1, 2]}, np.ones(3),
     np.ones((0, 2)), {"a": []}, Liar(), [Liar()], np.ones((2, 2, 2))],
    ids=str.__class__,
)  # fmt: skip
def test_what_is_no_table_is_refused_without_quotes(X):
    with pytest.raises(DPSparseError) as refusal:
        PublicScaler().fit(X)
    assert "Zx9" not in str(refusal.value)


def test_other_columns_in_transform_are_refused():
    step = PublicScaler((0, 1)).fit({"a": [1.0], "b": [2.0]})
    for X in ({"a": [1.0]}, {"b": [1.0], "a": [2.0]}, np.ones((1, 3))):
        with pytest.raises(DPSparseError):
            step.transform(X)
    table = DPTablePreparer({"a": (0, 1), "b": "drop"}).fit({"a": [1.0], "b": [2.0]})
    np.testing.assert_array_equal(
        table.transform({"a": [0.25]}).toarray(), table.transform({"b": [9], "a": [0.25]}).toarray()
    )


def test_declared_facts_are_used_as_declared():
    X = {"age": [0, 60, 120, 500, None], "sex": ["m", "f", "?", "", None]}
    step = DPTablePreparer({"age": (0, 120), "sex": ["f", "m"]}, fill={"age": 30}).fit(X)
    rows = step.transform(X).toarray()
    assert rows[:, 0].tolist() == [-1.0, 0.0, 1.0, 1.0, -0.5]
    assert rows[:, 1].tolist() == [0, 0, 0, 0, 1]
    assert rows[:, 2:].argmax(axis=1).tolist() == [1, 0, 2, 3, 3]
    assert step.set_output(transform="default") is step


def test_hashing_is_that_of_scikit_learn():
    from sklearn.feature_extraction.text import HashingVectorizer

    words = ["red", "blue", "Red", "a b"]
    plain = HashingVectorizer(n_features=16, lowercase=False, token_pattern=r"(?s)^.+$", norm=None)
    ours = HashingEncoder(16).fit_transform({"c": words})
    np.testing.assert_array_equal(ours.toarray(), plain.transform(words).toarray())

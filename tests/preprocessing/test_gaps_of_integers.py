"""A gap in one row leaves the cells of all others as they are, whatever holds the column."""

import numpy as np
import pandas as pd
import pytest

from dpsparse import (
    Domain,
    DPGradientClassifier,
    DPGradientRegressor,
    DPRidgeRegressor,
    Ledger,
    dp_evaluate,
)
from dpsparse.exceptions import SchemaError
from dpsparse.io import read_columns
from dpsparse.preprocessing import DPCategoryEncoder, DPPipeline, DPTablePreparer
from dpsparse.preprocessing._tables import days, kinds, numbers, read_table, texts

IDS = [2**53, 2**53 + 1, 2**60 + 3]


def run_ends(cells):
    import pyarrow as pa

    ends = pa.array(range(1, len(cells) + 1), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, pa.array(cells, pa.int64()))


def categorical(cells):
    known = [cell for cell in cells if cell is not None]
    codes = [-1 if cell is None else known.index(cell) for cell in cells]
    return pd.Categorical.from_codes(codes, categories=np.array(known, np.int64))


def holders():
    import polars as pl
    import pyarrow as pa

    yield "arrow", lambda cells: pa.table({"id": pa.array(cells, pa.int64())})
    yield "polars", lambda cells: pl.DataFrame({"id": pl.Series(cells, dtype=pl.Int64)})
    yield "pandas", lambda cells: pd.DataFrame({"id": pd.array(cells, dtype="Int64")})
    yield "run-end encoded", lambda cells: pa.table({"id": run_ends(cells)})
    yield (
        "dictionary",
        lambda cells: pa.table({"id": pa.array(cells, pa.int64()).dictionary_encode()}),
    )
    yield "batch", lambda cells: pa.record_batch({"id": pa.array(cells, pa.int64())})
    yield "array", lambda cells: {"id": pa.array(cells, pa.int64())}
    yield "categorical", lambda cells: pd.DataFrame({"id": categorical(cells)})
    yield "pandas on arrow", lambda cells: pd.DataFrame({"id": pd.array(cells, "int64[pyarrow]")})


@pytest.mark.parametrize(("name", "table"), list(holders()), ids=lambda value: str(value)[:20])
def test_a_gap_changes_no_other_cell(name, table):
    [alone] = read_table(table(IDS)).columns
    [beside] = read_table(table([*IDS, None])).columns
    assert [int(cell) for cell in beside[:3]] == [int(cell) for cell in alone] == IDS
    assert np.isnan(numbers(beside)[3])  # and no other cell fills it


def encoded_tables():
    import pyarrow as pa

    for cells in (
        ["b", "a", None, "c"],
        [5, 7, None, 6],
        [0.5, 7.0, None, 6.0],
        [False, True, None, True],
    ):
        yield pa.table({"a": pa.array(cells).dictionary_encode()}), cells


@pytest.mark.parametrize(
    ("table", "cells"), list(encoded_tables()), ids=lambda value: str(value)[:9]
)
def test_a_gap_is_not_filled_with_the_last_name_of_a_dictionary(table, cells, tmp_path):
    """Otherwise the row that brings the last name decides the cells of all rows with a gap."""
    import pyarrow.parquet as pq

    pq.write_table(table, tmp_path / "a.parquet")
    pandas = table.to_pandas()
    for [column] in (
        read_table(table).columns,
        read_table({"a": table["a"]}).columns,
        read_table(pandas).columns,
        read_columns(tmp_path / "a.parquet").values(),
    ):
        assert texts(column) == texts(np.array(cells, object))


@pytest.mark.parametrize("chunks", [1, 2])
def test_a_fit_takes_no_gap_of_a_dictionary_for_its_last_name(chunks):
    """Features, targets and persons: what NumPy makes of such a column of Arrow, other rows decide."""
    import pyarrow as pa

    def column(*cells):
        return pa.chunked_array([pa.array(cells).dictionary_encode()] * chunks)

    n = 4 * chunks
    X, labels = np.ones((n, 2)), ["no", "yes"] * (2 * chunks)
    names, numbers = column("no", "yes", None, "yes"), column(1, 2, None, 5)
    assert np.asarray(names)[2] == "yes"  # otherwise nothing is tried here
    classifier = DPGradientClassifier(Domain(classes=["no", "yes"]))
    persons = DPGradientClassifier(Domain(classes=["no", "yes"], unit="person"))
    for refused in (
        lambda: classifier.fit(X, names),
        lambda: classifier.fit(pa.table({"a": numbers, "b": numbers}), labels),
        lambda: DPGradientRegressor(Domain(target_bound=9.0)).fit(X, numbers),
        lambda: persons.fit(X, labels, groups=names),
        lambda: dp_evaluate(classifier.fit(X, labels), X, names, epsilon=1.0),
    ):
        with pytest.raises(SchemaError):
            refused()
    whole = pa.table({"a": column(1, 2, 3, 5), "b": column(0.5, 1.0, 2.0, 4.0)})
    assert classifier.fit(whole, column("no", "yes", "no", "yes")).n_features_in_ == 2


@pytest.mark.parametrize("unit", ["datetime64[us]", "timedelta64[us]"])
def test_times_read_alike_as_arrays_and_cell_by_cell(unit):
    """One date that NumPy cannot hold turns a column into objects."""
    whole = np.array([1_577_934_245_678_901, -7_500_000, 5], unit)
    cells = np.array([*whole.tolist(), None], object)[:3]
    for read in (numbers, kinds, days):
        np.testing.assert_array_equal(read(cells), read(whole))


def test_a_gap_in_a_file_changes_no_other_cell(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "ids.parquet"
    pq.write_table(pa.table({"id": pa.array([*IDS, None], pa.int64())}), path)
    assert [int(cell) for cell in read_columns(path)["id"][:3]] == IDS


def test_kinds_of_an_earlier_fit_do_not_decide_a_later_one():
    """Learnt without noise, they would pass under the guarantee of a fit that never paid for them."""
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame({"a": rng.normal(size=400)})
    names = pd.DataFrame({"a": rng.choice(["x", "y"], 400)})
    step = DPTablePreparer(rest="auto", epsilon=8.0).fit(numbers)
    assert step.kinds_ == {"a": "number"}
    assert step.fit(names).kinds_ == {"a": "category"}


@pytest.mark.filterwarnings("ignore::dpsparse.exceptions.BudgetWarning")
@pytest.mark.parametrize("n_rows", [200, 600])
def test_a_narrower_table_than_reserved_is_still_fitted(n_rows, tmp_path):
    """A tilt pays for the ridge of the widest table; fewer released columns would ask for a smaller one."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({f"c{j}": rng.choice(["a", "b", "c"], n_rows) for j in range(2)})
    y = (table["c0"] == "a").to_numpy(float) + 0.1 * rng.normal(size=n_rows)
    ledger = Ledger(tmp_path / "b.db", epsilon=3.0, delta=1e-5)
    pipe = DPPipeline(
        [
            ("prepare", DPCategoryEncoder()),
            ("model", DPRidgeRegressor(Domain(target_range=(-1.0, 2.0), n_samples=n_rows))),
        ],
        epsilon=1.0,
        delta=1e-6,
        ledger=ledger,
    )
    assert np.isfinite(pipe.fit(table, y).predict(table)).all()

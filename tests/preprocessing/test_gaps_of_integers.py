"""A gap in one row leaves the cells of all others as they are, whatever holds the column."""

import numpy as np
import pandas as pd
import pytest

from dpsparse import Domain, DPRidgeRegressor, Ledger
from dpsparse.preprocessing import DPPipeline, DPTablePreparer
from dpsparse.preprocessing._tables import read_table
from dpsparse.readers.raw import read_columns

IDS = [2**53, 2**53 + 1, 2**60 + 3]


def holders():
    import polars as pl
    import pyarrow as pa

    yield "arrow", lambda cells: pa.table({"id": pa.array(cells, pa.int64())})
    yield "polars", lambda cells: pl.DataFrame({"id": pl.Series(cells, dtype=pl.Int64)})
    yield "pandas", lambda cells: pd.DataFrame({"id": pd.array(cells, dtype="Int64")})
    yield "pandas on arrow", lambda cells: pd.DataFrame({"id": pd.array(cells, "int64[pyarrow]")})


@pytest.mark.parametrize(("name", "table"), list(holders()), ids=lambda value: str(value)[:20])
def test_a_gap_changes_no_other_cell(name, table):
    [alone] = read_table(table(IDS)).columns
    [beside] = read_table(table([*IDS, None])).columns
    assert [int(cell) for cell in beside[:3]] == [int(cell) for cell in alone] == IDS


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
@pytest.mark.parametrize(("n_rows", "most"), [(200, 64), (600, 16)])
def test_a_narrower_table_than_reserved_is_still_fitted(n_rows, most, tmp_path):
    """A tilt pays for the ridge of the widest table; fewer released columns would ask for a smaller one."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({f"c{j}": rng.choice(["a", "b", "c"], n_rows) for j in range(2)})
    y = (table["c0"] == "a").to_numpy(float) + 0.1 * rng.normal(size=n_rows)
    ledger = Ledger(tmp_path / "b.db", epsilon=3.0, delta=1e-5)
    pipe = DPPipeline(
        [
            ("prepare", DPTablePreparer(rest="category", max_categories=most)),
            ("model", DPRidgeRegressor(Domain(target_range=(-1.0, 2.0), n_samples=n_rows))),
        ],
        epsilon=1.0,
        delta=1e-6,
        ledger=ledger,
    )
    assert np.isfinite(pipe.fit(table, y).predict(table)).all()

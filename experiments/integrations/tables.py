"""Rows from other libraries: in memory, from files, from data bases, from a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import make_pipeline

from dpsparse import Domain, DPPipeline, DPSparseClassifier, DPTablePreparer, Rows
from dpsparse.io import read_table
from integrations.registry import (
    NAMES,
    Later,
    X,
    check_same,
    classifier,
    frame,
    integrate,
    integration,
    y,
)

da, dd, distributed = Later("dask.array"), Later("dask.dataframe"), Later("distributed")
duckdb, fsspec, ibis, pl = Later("duckdb"), Later("fsspec"), Later("ibis"), Later("polars")
pa, ds, pq = Later("pyarrow"), Later("pyarrow.dataset"), Later("pyarrow.parquet")
pd, skrub, xr = Later("pandas"), Later("skrub"), Later("xarray")


def from_table(X: Any, y: Any = y) -> str:
    """The weights are those of the fit on a pandas table."""
    return check_same(classifier().fit(X, y), classifier().fit(frame()[NAMES], frame()["y"]))


def from_rows(rows: Rows) -> str:
    return from_table(rows, None)


def from_batches(batches: Any) -> str:
    return from_rows(Rows.from_batches(batches, target="y"))


def in_folder(write_and_fit: Callable[[str], str | None]) -> Callable[[], str | None]:
    """With the name of a folder that is deleted afterwards."""

    def run() -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            return write_and_fit(folder)

    return run


def arrow() -> Any:
    return pa.Table.from_pandas(frame(), preserve_index=False)


def two_files(folder: str) -> str:
    """Two Parquet files in a folder; its name."""
    for part, rows in enumerate((frame()[:300], frame()[300:])):
        rows.to_parquet(f"{folder}/{part}.parquet", index=False)
    return folder


def cluster() -> Any:
    """A client of Dask in this process."""
    settings = {"processes": False, "n_workers": 2, "threads_per_worker": 1}
    return distributed.Client(dashboard_address=None, **settings)


@integration("NumPy", "arrays of other types and orders", "tables")
def arrays() -> str:
    check_same(classifier().fit(np.asfortranarray(X), y.astype(np.uint8)))
    check_same(classifier().fit(X.tolist(), y.tolist()))
    return check_same(classifier().fit(np.ma.masked_array(X), y))


@integration("SciPy", "sparse matrices and arrays", "tables")
def sparse() -> str:
    for kind in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix):
        same = check_same(classifier().fit(kind(X), y))
    return same


@integration("pandas", "data frame and series", "tables")
def pandas() -> str:
    model = classifier().fit(frame()[NAMES], frame()["y"])
    assert list(model.feature_names_in_) == NAMES
    return check_same(model)


@integration("pandas", "nullable and Arrow types", "tables")
def pandas_types() -> str:
    for backend in ("numpy_nullable", "pyarrow"):
        converted = frame().convert_dtypes(dtype_backend=backend)
        same = check_same(classifier().fit(converted[NAMES], converted["y"]))
    return same


@integration("pandas", "raw table with text, dates and missing cells in a DPPipeline", "tables")
def raw_table() -> None:
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(y)) % 90, unit="D")
    data = frame()[NAMES].assign(word=np.where(y == 1, "yes", None), day=days)
    model = DPSparseClassifier(Domain(classes=[0, 1]))
    pipe = DPPipeline([("table", DPTablePreparer(rest="auto")), ("model", model)], epsilon=8.0)
    assert pipe.fit(data, y).score(data, y) > 0.6


integrate("polars", "tables", {
    "data frame": lambda: from_table(pl.from_pandas(frame())[NAMES], pl.from_pandas(frame())["y"]),
    "lazy frame": lambda: from_batches(pl.from_pandas(frame()).lazy()),
    "lazy frame passed to fit": lambda: from_table(pl.from_pandas(frame()).lazy().select(NAMES)),
    "scan_parquet of several files": in_folder(
        lambda folder: from_batches(pl.scan_parquet(f"{two_files(folder)}/*.parquet"))
    ),
})  # fmt: skip


@integration("DuckDB", "relation", "tables")
def duckdb_relation() -> str:
    data = frame()
    return from_batches(duckdb.from_df(data).filter("y >= 0"))


@integration("DuckDB", "relation passed to fit", "tables")
def duckdb_to_fit() -> str:
    data = frame()
    return from_table(duckdb.from_df(data).select(*NAMES))


integrate("DuckDB", "tables", {
    "query over a Parquet file": in_folder(
        lambda folder: from_batches(duckdb.sql(f"select * from '{two_files(folder)}/*.parquet'"))
    ),
})  # fmt: skip


@integration("Arrow", "table", "tables")
def arrow_table() -> str:
    table = arrow()
    from_table(table.select(NAMES), table["y"])
    return from_batches(table)


@integration("Arrow", "partitioned folder of Parquet files", "tables")
@in_folder
def partitioned(folder: str) -> str:
    data = frame().assign(year=np.where(np.arange(len(y)) < 300, 2023, 2024))
    data.to_parquet(folder, partition_cols=["year"], index=False)
    return from_rows(Rows.from_parquet(folder, target="y", features=NAMES))


integrate("Arrow", "tables", {
    "record batches from a generator": lambda: from_batches(
        lambda: (batch for batch in arrow().to_batches(max_chunksize=100))
    ),
    "reader of record batches": lambda: from_batches(
        lambda: arrow().to_reader(max_chunksize=100)
    ),
    "dataset of Parquet files": in_folder(
        lambda folder: from_batches(ds.dataset(two_files(folder), format="parquet"))
    ),
})  # fmt: skip


@integration("fsspec", "Parquet files in a memory file system", "tables")
def memory_file_system() -> str:
    files = fsspec.filesystem("memory")
    with files.open("/rows/a.parquet", "wb") as file:
        pq.write_table(arrow(), file)
    return from_batches(ds.dataset("/rows", filesystem=files, format="parquet"))


@integration("Ibis", "table expression", "tables")
def ibis_table() -> str:
    return from_batches(ibis.memtable(frame()).to_pyarrow())


@integration("CSV", "Rows.from_csv", "tables")
@in_folder
def csv(folder: str) -> str:
    frame().to_csv(f"{folder}/a.csv", index=False)
    return from_rows(Rows.from_csv(f"{folder}/a.csv", target="y"))


@integration("svmlight", "Rows.from_svmlight", "tables")
@in_folder
def svmlight(folder: str) -> str:
    path = str(Path(folder) / "a.svm")
    dump_svmlight_file(X, y, path, zero_based=False)
    return check_same(classifier().fit(Rows.from_svmlight(path, n_features=6)))


@integration("Excel", "dpsparse.io.read_table", "tables")
@in_folder
def excel(folder: str) -> str:
    frame().to_excel(f"{folder}/a.xlsx", index=False)
    table = read_table(f"{folder}/a.xlsx", target="y", classes=[0, 1])
    return check_same(classifier().fit(table.X, table.y))


@integration("Dask", "arrays on a cluster", "tables")
def dask_arrays() -> str:
    with cluster():
        return check_same(classifier().fit(da.from_array(X, (200, 6)), da.from_array(y, 200)))


@integration("Dask", "data frame on a cluster", "tables")
def dask_frames() -> str:
    with cluster():
        data = dd.from_pandas(frame(), npartitions=3)
        return from_table(data[NAMES], data["y"])


@integration("Dask", "predictions of a Dask array", "tables")
def dask_predictions() -> None:
    model = classifier().fit(X, y)
    assert np.array_equal(model.predict(da.from_array(X, (200, 6))).compute(), model.predict(X))


@integration("xarray", "DataArray", "tables")
def xarray() -> str:
    return check_same(classifier().fit(xr.DataArray(X, dims=("row", "column")), y))


@integration("skrub", "TableVectorizer before a model", "tables")
def table_vectorizer() -> str:
    model = make_pipeline(skrub.TableVectorizer(), classifier(random_state=None))
    assert model.fit(frame()[NAMES], y).score(frame()[NAMES], y) > 0.6
    return model[-1].privacy_.headline

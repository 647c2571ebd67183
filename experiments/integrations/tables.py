"""Rows from other libraries: in memory, from files, from data bases, from a cluster."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from dpsparse import Domain, DPPipeline, DPSparseClassifier, DPTablePreparer, Rows
from integrations.registry import NAMES, X, check_same, classifier, frame, integration, y


def named(**settings: Any) -> Any:
    """What every table with these names must give: the fit on pandas."""
    return classifier(**settings).fit(frame()[NAMES], y)


def from_batches(rows: Any) -> str:
    return check_same(classifier().fit(Rows.from_batches(rows, target="y")), named())


def arrow() -> Any:
    import pyarrow as pa

    return pa.Table.from_pandas(frame(), preserve_index=False)


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
    data = frame()
    model = classifier().fit(data[NAMES], data["y"])
    assert list(model.feature_names_in_) == NAMES
    return check_same(model)


@integration("pandas", "nullable and Arrow types", "tables")
def pandas_types() -> str:
    data = frame()
    for backend in ("numpy_nullable", "pyarrow"):
        converted = data.convert_dtypes(dtype_backend=backend)
        same = check_same(classifier().fit(converted[NAMES], converted["y"]))
    return same


@integration("pandas", "raw table with text, dates and missing cells in a DPPipeline", "tables")
def raw_table() -> None:
    import pandas as pd

    data = frame()
    data["word"] = np.where(y == 1, "yes", None)
    data["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(len(y)) % 90, unit="D")
    pipe = DPPipeline(
        [
            ("table", DPTablePreparer(rest="auto")),
            ("model", DPSparseClassifier(Domain(classes=[0, 1]))),
        ],
        epsilon=8.0,
    )
    assert pipe.fit(data.drop(columns="y"), data["y"]).score(data.drop(columns="y"), y) > 0.6


@integration("polars", "data frame", "tables")
def polars() -> str:
    import polars as pl

    data = pl.from_pandas(frame())
    return check_same(classifier().fit(data.select(NAMES), data["y"]), named())


@integration("polars", "lazy frame", "tables")
def polars_lazy() -> str:
    import polars as pl

    return from_batches(pl.from_pandas(frame()).lazy())


@integration("polars", "lazy frame passed to fit", "tables")
def polars_lazy_to_fit() -> str:
    import polars as pl

    lazy = pl.from_pandas(frame()).lazy()
    return check_same(classifier().fit(lazy.select(NAMES), y), named())


@integration("polars", "scan_parquet of several files", "tables")
def polars_scan() -> str:
    import polars as pl

    with tempfile.TemporaryDirectory() as folder:
        data = pl.from_pandas(frame())
        data[:300].write_parquet(f"{folder}/a.parquet")
        data[300:].write_parquet(f"{folder}/b.parquet")
        return from_batches(pl.scan_parquet(f"{folder}/*.parquet"))


@integration("DuckDB", "relation", "tables")
def duckdb() -> str:
    import duckdb

    data = frame()
    return from_batches(duckdb.from_df(data).filter("y >= 0"))


@integration("DuckDB", "relation passed to fit", "tables")
def duckdb_to_fit() -> str:
    import duckdb

    relation = duckdb.from_df(frame()).select(*NAMES)
    return check_same(classifier().fit(relation, y), named())


@integration("DuckDB", "query over a Parquet file", "tables")
def duckdb_file() -> str:
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        frame().to_parquet(f"{folder}/a.parquet")
        return from_batches(duckdb.sql(f"select * from '{folder}/a.parquet'"))


@integration("Arrow", "table", "tables")
def arrow_table() -> str:
    table = arrow()
    check_same(classifier().fit(table.select(NAMES), table["y"]), named())
    return from_batches(table)


@integration("Arrow", "record batches from a generator", "tables")
def arrow_batches() -> str:
    return from_batches(batch for batch in arrow().to_batches(max_chunksize=100))


@integration("Arrow", "reader of record batches", "tables")
def arrow_reader() -> str:
    return from_batches(arrow().to_reader(max_chunksize=100))


@integration("Arrow", "dataset of Parquet files", "tables")
def arrow_dataset() -> str:
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(arrow().slice(0, 300), f"{folder}/a.parquet")
        pq.write_table(arrow().slice(300), f"{folder}/b.parquet")
        return from_batches(ds.dataset(folder, format="parquet"))


@integration("Arrow", "partitioned folder of Parquet files", "tables")
def partitioned() -> str:
    import pyarrow.parquet as pq

    with tempfile.TemporaryDirectory() as folder:
        data = frame().assign(year=np.where(np.arange(len(y)) < 300, 2023, 2024))
        data.to_parquet(folder, partition_cols=["year"], index=False)
        source = Rows.from_parquet(folder, target="y", features=NAMES)
        same = check_same(classifier().fit(source), named())
        assert pq.ParquetDataset(folder).files
    return same


@integration("fsspec", "Parquet files in a memory file system", "tables")
def memory_file_system() -> str:
    import fsspec
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    files = fsspec.filesystem("memory")
    with files.open("/rows/a.parquet", "wb") as file:
        pq.write_table(arrow(), file)
    return from_batches(ds.dataset("/rows", filesystem=files, format="parquet"))


@integration("Ibis", "table expression", "tables")
def ibis() -> str:
    import ibis

    return from_batches(ibis.memtable(frame()).to_pyarrow())


@integration("CSV", "Rows.from_csv", "tables")
def csv() -> str:
    with tempfile.TemporaryDirectory() as folder:
        frame().to_csv(f"{folder}/a.csv", index=False)
        return check_same(classifier().fit(Rows.from_csv(f"{folder}/a.csv", target="y")), named())


@integration("svmlight", "Rows.from_svmlight", "tables")
def svmlight() -> str:
    from sklearn.datasets import dump_svmlight_file

    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "a.svm")
        dump_svmlight_file(X, y, path, zero_based=False)
        return check_same(classifier().fit(Rows.from_svmlight(path, n_features=6)))


@integration("Excel", "dpsparse.io.read_table", "tables")
def excel() -> str:
    from dpsparse.io import read_table

    with tempfile.TemporaryDirectory() as folder:
        frame().to_excel(f"{folder}/a.xlsx", index=False)
        table = read_table(f"{folder}/a.xlsx", target="y", classes=[0, 1])
    return check_same(classifier().fit(table.X, table.y))


@integration("Dask", "arrays on a cluster", "tables")
def dask_arrays() -> str:
    import dask.array as da
    from distributed import Client

    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
        return check_same(classifier().fit(da.from_array(X, (200, 6)), da.from_array(y, 200)))


@integration("Dask", "data frame on a cluster", "tables")
def dask_frames() -> str:
    import dask.dataframe as dd
    from distributed import Client

    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
        data = dd.from_pandas(frame(), npartitions=3)
        return check_same(classifier().fit(data[NAMES], data["y"]), named())


@integration("Dask", "predictions of a Dask array", "tables")
def dask_predictions() -> None:
    import dask.array as da

    model = classifier().fit(X, y)
    assert np.array_equal(model.predict(da.from_array(X, (200, 6))).compute(), model.predict(X))


@integration("xarray", "DataArray", "tables")
def xarray() -> str:
    import xarray as xr

    return check_same(classifier().fit(xr.DataArray(X, dims=("row", "column")), y))


@integration("skrub", "TableVectorizer before a model", "tables")
def skrub() -> str:
    from sklearn.pipeline import make_pipeline
    from skrub import TableVectorizer

    model = make_pipeline(TableVectorizer(), classifier(random_state=None)).fit(frame()[NAMES], y)
    assert model.score(frame()[NAMES], y) > 0.6
    return model[-1].privacy_.headline

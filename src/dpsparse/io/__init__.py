"""Files in: CSV, TSV, JSON, Excel, Parquet, Arrow and svmlight, plain or compressed: one sparse matrix, or columns."""

from dpsparse.io.svmlight import iter_svmlight, read_svmlight
from dpsparse.io.tables import Table, column_names, read_columns, read_table

__all__ = [
    "Table",
    "column_names",
    "iter_svmlight",
    "read_columns",
    "read_svmlight",
    "read_table",
]

"""Files in: svmlight, CSV, TSV, JSON lines, Parquet and Arrow, plain or compressed: one sparse matrix, or columns."""

from dpsparse.readers.raw import column_names, read_columns
from dpsparse.readers.svmlight import iter_svmlight, read_svmlight
from dpsparse.readers.tables import Table, read_table

__all__ = ["Table", "column_names", "iter_svmlight", "read_columns", "read_svmlight", "read_table"]

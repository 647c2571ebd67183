"""Files in: CSV, TSV, JSON lines, Excel, Parquet and svmlight, plain or compressed: one sparse matrix, or columns."""

from dpsparse.io.tables import Table, read_columns, read_table

__all__ = ["Table", "read_columns", "read_table"]

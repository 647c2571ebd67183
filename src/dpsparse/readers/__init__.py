"""Files in: svmlight, CSV and Parquet, plain or compressed, as one sparse matrix."""

from dpsparse.readers.svmlight import iter_svmlight, read_svmlight
from dpsparse.readers.tables import Table, read_table

__all__ = ["Table", "iter_svmlight", "read_svmlight", "read_table"]

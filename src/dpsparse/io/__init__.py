"""Files in: CSV, TSV, JSON, Excel, Parquet, Arrow and svmlight, plain or compressed: one sparse matrix, or columns."""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use

if TYPE_CHECKING:
    from dpsparse.io.svmlight import iter_svmlight as iter_svmlight
    from dpsparse.io.svmlight import read_svmlight as read_svmlight
    from dpsparse.io.tables import Table as Table
    from dpsparse.io.tables import column_names as column_names
    from dpsparse.io.tables import read_columns as read_columns
    from dpsparse.io.tables import read_table as read_table

# Names load on first use: the reader of svmlight files imports Numba.
_HOMES = {
    "svmlight": "iter_svmlight read_svmlight",
    "tables": "Table column_names read_columns read_table",
}
__all__ = sorted(" ".join(_HOMES.values()).split())
__getattr__, __dir__ = names_on_first_use(__name__, _HOMES, globals())

"""Door one, queries in: private rows that answer with whole numbers and nothing else."""

from dpsparse.rows.memory import Margins, Rows, UnitRows
from dpsparse.rows.query import Query

__all__ = ["Margins", "Query", "Rows", "UnitRows"]

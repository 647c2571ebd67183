"""Queries: private rows that answer with whole numbers and nothing else."""

from dpsparse.rows.columns import Names, NumberColumns, RawRows
from dpsparse.rows.memory import Rows
from dpsparse.rows.parts import Margins, Query
from dpsparse.rows.ridge import RidgeProblem, RidgeRows
from dpsparse.rows.unit import UnitRows

__all__ = [
    "Margins",
    "Names",
    "NumberColumns",
    "Query",
    "RawRows",
    "RidgeProblem",
    "RidgeRows",
    "Rows",
    "UnitRows",
]

"""Frank-Wolfe on the L1 ball: the fast solver (run.py, kernel.py) and the plain one (reference.py)."""

from dpsparse.solvers.frank_wolfe.layout import FRESHNESS, RowArrays
from dpsparse.solvers.frank_wolfe.problem import History, Problem, check_public, choose_resolution
from dpsparse.solvers.frank_wolfe.run import (
    Run,
    extend,
    extend_with,
    fast_frank_wolfe,
    fast_frank_wolfe_with,
)

__all__ = [
    "FRESHNESS",
    "History",
    "Problem",
    "RowArrays",
    "Run",
    "check_public",
    "choose_resolution",
    "extend",
    "extend_with",
    "fast_frank_wolfe",
    "fast_frank_wolfe_with",
]

"""Frank-Wolfe on the L1 ball: README.md beside this file says how it works."""

from dpsparse.methods.frank_wolfe.layout import RowArrays
from dpsparse.methods.frank_wolfe.problem import History, Problem, check_public, choose_resolution
from dpsparse.methods.frank_wolfe.run import Run, extend, fast_frank_wolfe

__all__ = [
    "History",
    "Problem",
    "RowArrays",
    "Run",
    "check_public",
    "choose_resolution",
    "extend",
    "fast_frank_wolfe",
]

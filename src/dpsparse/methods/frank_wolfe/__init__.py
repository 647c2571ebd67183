"""Frank-Wolfe on the L1 ball: README.md beside this file says how it works."""

from dpsparse.methods.frank_wolfe.problem import History, Problem, check_public, choose_resolution
from dpsparse.methods.frank_wolfe.run import RowArrays, Run, Steps

__all__ = [
    "History",
    "Problem",
    "RowArrays",
    "Run",
    "Steps",
    "check_public",
    "choose_resolution",
]

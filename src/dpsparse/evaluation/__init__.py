"""Private evaluation: how good a public model is on private rows, with honest intervals."""

from dpsparse.evaluation.api import dp_evaluate
from dpsparse.evaluation.intervals import Estimate
from dpsparse.evaluation.report import Report

__all__ = [
    "Estimate",
    "Report",
    "dp_evaluate",
]

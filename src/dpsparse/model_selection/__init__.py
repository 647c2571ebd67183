"""Choosing hyper-parameters and epsilon: private search, and a public forecast before any row is read."""

from dpsparse.model_selection.forecast import Forecast, expected_accuracy
from dpsparse.model_selection.search import DPSearchCV

__all__ = ["DPSearchCV", "Forecast", "expected_accuracy"]

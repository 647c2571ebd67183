"""scikit-learn estimators, one file per family."""

from dpsparse.estimators.gradient import DPGradientClassifier

__all__ = ["DPGradientClassifier"]

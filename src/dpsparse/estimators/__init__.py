"""scikit-learn estimators, one file per family."""

from dpsparse.estimators.gradient import DPGradientClassifier
from dpsparse.estimators.lasso import DPLassoClassifier, DPLassoRegressor

__all__ = ["DPGradientClassifier", "DPLassoClassifier", "DPLassoRegressor"]

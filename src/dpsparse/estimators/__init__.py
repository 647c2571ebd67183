"""scikit-learn estimators, one file per family."""

from dpsparse.estimators.admm import DPADMMClassifier
from dpsparse.estimators.gradient import DPGradientClassifier
from dpsparse.estimators.lasso import DPLassoClassifier, DPLassoRegressor
from dpsparse.estimators.screened_lasso import DPScreenedLassoClassifier, DPScreenedLassoRegressor
from dpsparse.estimators.transfer import DPTransferClassifier, DPTransferRegressor
from dpsparse.estimators.two_stage import DPTwoStageClassifier, DPTwoStageRegressor

__all__ = [
    "DPADMMClassifier",
    "DPGradientClassifier",
    "DPLassoClassifier",
    "DPLassoRegressor",
    "DPScreenedLassoClassifier",
    "DPScreenedLassoRegressor",
    "DPTransferClassifier",
    "DPTransferRegressor",
    "DPTwoStageClassifier",
    "DPTwoStageRegressor",
]

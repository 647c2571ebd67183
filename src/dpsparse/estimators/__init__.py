"""scikit-learn estimators, one file per family."""

from dpsparse.estimators.admm import DPADMMClassifier
from dpsparse.estimators.gradient import DPGradientClassifier
from dpsparse.estimators.transfer import DPTransferClassifier, DPTransferRegressor
from dpsparse.estimators.two_stage import DPTwoStageClassifier, DPTwoStageRegressor

__all__ = [
    "DPADMMClassifier",
    "DPGradientClassifier",
    "DPTransferClassifier",
    "DPTransferRegressor",
    "DPTwoStageClassifier",
    "DPTwoStageRegressor",
]

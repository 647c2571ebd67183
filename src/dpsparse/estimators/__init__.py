"""scikit-learn estimators, one file per family."""

from dpsparse.estimators._yaml import register as _register_yaml
from dpsparse.estimators.admm import DPADMMClassifier
from dpsparse.estimators.gradient import DPGradientClassifier, DPGradientRegressor
from dpsparse.estimators.hard_threshold import DPHardThresholdClassifier, DPHardThresholdRegressor
from dpsparse.estimators.lasso import DPLassoClassifier, DPLassoRegressor
from dpsparse.estimators.ridge import DPRidgeRegressor
from dpsparse.estimators.screened_lasso import DPScreenedLassoClassifier, DPScreenedLassoRegressor
from dpsparse.estimators.sparse import DPSparseClassifier, DPSparseRegressor
from dpsparse.estimators.transfer import DPTransferClassifier, DPTransferRegressor
from dpsparse.estimators.two_stage import DPTwoStageClassifier, DPTwoStageRegressor

__all__ = [
    "DPADMMClassifier",
    "DPGradientClassifier",
    "DPGradientRegressor",
    "DPHardThresholdClassifier",
    "DPHardThresholdRegressor",
    "DPLassoClassifier",
    "DPLassoRegressor",
    "DPRidgeRegressor",
    "DPScreenedLassoClassifier",
    "DPScreenedLassoRegressor",
    "DPSparseClassifier",
    "DPSparseRegressor",
    "DPTransferClassifier",
    "DPTransferRegressor",
    "DPTwoStageClassifier",
    "DPTwoStageRegressor",
]

_register_yaml()

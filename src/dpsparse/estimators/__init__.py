"""scikit-learn estimators, one file per family. Names load on first use: a Lasso need not wait for the others."""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use
from dpsparse.estimators._yaml import register as _register_yaml

if TYPE_CHECKING:
    from dpsparse.estimators.admm import DPADMMClassifier
    from dpsparse.estimators.gradient import DPGradientClassifier, DPGradientRegressor
    from dpsparse.estimators.hard_threshold import (
        DPHardThresholdClassifier,
        DPHardThresholdRegressor,
    )
    from dpsparse.estimators.lasso import DPLassoClassifier, DPLassoRegressor
    from dpsparse.estimators.ridge import DPRidgeRegressor
    from dpsparse.estimators.screened_lasso import (
        DPScreenedLassoClassifier,
        DPScreenedLassoRegressor,
    )
    from dpsparse.estimators.sparse import DPSparseClassifier, DPSparseRegressor
    from dpsparse.estimators.transfer import DPTransferClassifier, DPTransferRegressor
    from dpsparse.estimators.two_stage import DPTwoStageClassifier, DPTwoStageRegressor

_HOMES = {
    "admm": "DPADMMClassifier",
    "gradient": "DPGradientClassifier DPGradientRegressor",
    "hard_threshold": "DPHardThresholdClassifier DPHardThresholdRegressor",
    "lasso": "DPLassoClassifier DPLassoRegressor",
    "ridge": "DPRidgeRegressor",
    "screened_lasso": "DPScreenedLassoClassifier DPScreenedLassoRegressor",
    "sparse": "DPSparseClassifier DPSparseRegressor",
    "transfer": "DPTransferClassifier DPTransferRegressor",
    "two_stage": "DPTwoStageClassifier DPTwoStageRegressor",
}

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

__getattr__, __dir__ = names_on_first_use(__name__, _HOMES, globals())
_register_yaml()

"""scikit-learn estimators, one file per family. Names load on first use: a Lasso need not wait for the others."""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use

if TYPE_CHECKING:  # names that a type checker and an editor know
    from dpsparse.estimators.admm import DPADMMClassifier as DPADMMClassifier
    from dpsparse.estimators.gradient import DPGradientClassifier as DPGradientClassifier
    from dpsparse.estimators.gradient import DPGradientRegressor as DPGradientRegressor
    from dpsparse.estimators.lasso import DPLassoClassifier as DPLassoClassifier
    from dpsparse.estimators.lasso import DPLassoRegressor as DPLassoRegressor
    from dpsparse.estimators.ridge import DPRidgeRegressor as DPRidgeRegressor
    from dpsparse.estimators.screened_lasso import (
        DPScreenedLassoClassifier as DPScreenedLassoClassifier,
    )
    from dpsparse.estimators.screened_lasso import (
        DPScreenedLassoRegressor as DPScreenedLassoRegressor,
    )
    from dpsparse.estimators.sparse import DPSparseClassifier as DPSparseClassifier
    from dpsparse.estimators.sparse import DPSparseRegressor as DPSparseRegressor
    from dpsparse.estimators.transfer import DPTransferClassifier as DPTransferClassifier
    from dpsparse.estimators.transfer import DPTransferRegressor as DPTransferRegressor
    from dpsparse.estimators.two_stage import DPTwoStageClassifier as DPTwoStageClassifier
    from dpsparse.estimators.two_stage import DPTwoStageRegressor as DPTwoStageRegressor
    from dpsparse.methods.hard_threshold.estimator import (
        DPHardThresholdClassifier as DPHardThresholdClassifier,
    )
    from dpsparse.methods.hard_threshold.estimator import (
        DPHardThresholdRegressor as DPHardThresholdRegressor,
    )

_HOMES = {
    "admm": "DPADMMClassifier",
    "gradient": "DPGradientClassifier DPGradientRegressor",
    ".methods.hard_threshold.estimator": "DPHardThresholdClassifier DPHardThresholdRegressor",
    "lasso": "DPLassoClassifier DPLassoRegressor",
    "ridge": "DPRidgeRegressor",
    "screened_lasso": "DPScreenedLassoClassifier DPScreenedLassoRegressor",
    "sparse": "DPSparseClassifier DPSparseRegressor",
    "transfer": "DPTransferClassifier DPTransferRegressor",
    "two_stage": "DPTwoStageClassifier DPTwoStageRegressor",
}

__all__ = sorted(" ".join(_HOMES.values()).split())

__getattr__, __dir__ = names_on_first_use(__name__, _HOMES, globals())

"""scikit-learn estimators, one folder per method. Names load on first use: a Lasso need not wait for the others."""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use

if TYPE_CHECKING:  # names that a type checker and an editor know
    from dpsparse.methods.frank_wolfe.estimator import DPLassoClassifier as DPLassoClassifier
    from dpsparse.methods.frank_wolfe.estimator import DPLassoRegressor as DPLassoRegressor
    from dpsparse.methods.frank_wolfe.estimator import (
        DPScreenedLassoClassifier as DPScreenedLassoClassifier,
    )
    from dpsparse.methods.frank_wolfe.estimator import (
        DPScreenedLassoRegressor as DPScreenedLassoRegressor,
    )
    from dpsparse.methods.front import DPSparseClassifier as DPSparseClassifier
    from dpsparse.methods.front import DPSparseRegressor as DPSparseRegressor
    from dpsparse.methods.gradient.estimator import DPGradientClassifier as DPGradientClassifier
    from dpsparse.methods.gradient.estimator import DPGradientRegressor as DPGradientRegressor
    from dpsparse.methods.gradient.estimator import (
        DPHardThresholdClassifier as DPHardThresholdClassifier,
    )
    from dpsparse.methods.gradient.estimator import (
        DPHardThresholdRegressor as DPHardThresholdRegressor,
    )
    from dpsparse.methods.ridge.estimator import DPRidgeRegressor as DPRidgeRegressor
    from dpsparse.methods.support_first.estimator import DPADMMClassifier as DPADMMClassifier
    from dpsparse.methods.support_first.estimator import (
        DPTransferClassifier as DPTransferClassifier,
    )
    from dpsparse.methods.support_first.estimator import DPTransferRegressor as DPTransferRegressor
    from dpsparse.methods.support_first.estimator import (
        DPTwoStageClassifier as DPTwoStageClassifier,
    )
    from dpsparse.methods.support_first.estimator import DPTwoStageRegressor as DPTwoStageRegressor

_HOMES = {
    "front": "DPSparseClassifier DPSparseRegressor",
    "frank_wolfe.estimator": (
        "DPLassoClassifier DPLassoRegressor DPScreenedLassoClassifier DPScreenedLassoRegressor"
    ),
    "gradient.estimator": (
        "DPGradientClassifier DPGradientRegressor DPHardThresholdClassifier DPHardThresholdRegressor"
    ),
    "ridge.estimator": "DPRidgeRegressor",
    "support_first.estimator": (
        "DPADMMClassifier DPTransferClassifier DPTransferRegressor DPTwoStageClassifier DPTwoStageRegressor"
    ),
}

__all__ = sorted(" ".join(_HOMES.values()).split())

__getattr__, __dir__ = names_on_first_use(__name__, _HOMES, globals())

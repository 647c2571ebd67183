"""scikit-learn estimators, one folder per method. Names load on first use: a Lasso need not wait for the others."""

from dpsparse._lazy import names_on_first_use

__all__, __getattr__, __dir__ = names_on_first_use(
    __name__,
    {
        "front": "DPSparseClassifier DPSparseRegressor",
        "frank_wolfe.estimator": (
            "DPLassoClassifier DPLassoRegressor DPScreenedLassoClassifier DPScreenedLassoRegressor"
        ),
        "gradient.estimator": (
            "DPGradientClassifier DPGradientRegressor DPHardThresholdClassifier DPHardThresholdRegressor"
        ),
        "support_first.estimator": (
            "DPADMMClassifier DPRidgeRegressor DPTransferClassifier DPTransferRegressor "
            "DPTwoStageClassifier DPTwoStageRegressor"
        ),
    },
    globals(),
)

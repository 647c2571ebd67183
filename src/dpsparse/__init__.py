"""Differentially private sparse linear models with true guarantees.

Declare what is public (`Domain`), choose an estimator, ask its price (`plan`), fit, publish.
"""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use

if TYPE_CHECKING:
    from dpsparse.domain import Domain
    from dpsparse.estimators import (
        DPADMMClassifier,
        DPGradientClassifier,
        DPGradientRegressor,
        DPHardThresholdClassifier,
        DPHardThresholdRegressor,
        DPLassoClassifier,
        DPLassoRegressor,
        DPRidgeRegressor,
        DPScreenedLassoClassifier,
        DPScreenedLassoRegressor,
        DPSparseClassifier,
        DPSparseRegressor,
        DPTransferClassifier,
        DPTransferRegressor,
        DPTwoStageClassifier,
        DPTwoStageRegressor,
    )
    from dpsparse.estimators._pipelines import check_pipeline
    from dpsparse.evaluation import dp_evaluate, evaluation_plan, make_dp_scorer
    from dpsparse.inference import DPFeatureTest, dp_inference
    from dpsparse.model_selection import DPSearchCV, expected_accuracy
    from dpsparse.models import load, save, to_sklearn
    from dpsparse.nonzeros import PrivateCount
    from dpsparse.preprocessing import (
        DPCategoryEncoder,
        DPPipeline,
        DPStandardizer,
        DPTablePreparer,
        DPVectorizer,
        HashingEncoder,
        PublicEncoder,
        PublicScaler,
    )
    from dpsparse.privacy import Guarantee, Ledger, Plan
    from dpsparse.rows import Rows

__version__ = "0.2.0"

# Names load on first use: `import dpsparse` alone pulls in neither scikit-learn (which imports
# pandas where it finds it) nor Numba, so the command line answers at once.
_HOMES = {
    "PublicScaler": "preprocessing",
    "PublicEncoder": "preprocessing",
    "HashingEncoder": "preprocessing",
    "DPVectorizer": "preprocessing",
    "DPTablePreparer": "preprocessing",
    "DPStandardizer": "preprocessing",
    "DPPipeline": "preprocessing",
    "DPCategoryEncoder": "preprocessing",
    "DPADMMClassifier": "estimators",
    "DPFeatureTest": "inference",
    "DPGradientClassifier": "estimators",
    "DPGradientRegressor": "estimators",
    "DPHardThresholdClassifier": "estimators",
    "DPHardThresholdRegressor": "estimators",
    "DPLassoClassifier": "estimators",
    "DPLassoRegressor": "estimators",
    "DPRidgeRegressor": "estimators",
    "DPScreenedLassoClassifier": "estimators",
    "DPScreenedLassoRegressor": "estimators",
    "DPSearchCV": "model_selection",
    "DPSparseClassifier": "estimators",
    "DPSparseRegressor": "estimators",
    "DPTransferClassifier": "estimators",
    "DPTransferRegressor": "estimators",
    "DPTwoStageClassifier": "estimators",
    "DPTwoStageRegressor": "estimators",
    "Domain": "domain",
    "Guarantee": "privacy",
    "Ledger": "privacy",
    "Plan": "privacy",
    "PrivateCount": "nonzeros",
    "Rows": "rows",
    "check_pipeline": "estimators._pipelines",
    "dp_evaluate": "evaluation",
    "dp_inference": "inference",
    "evaluation_plan": "evaluation",
    "make_dp_scorer": "evaluation",
    "expected_accuracy": "model_selection",
    "load": "models",
    "save": "models",
    "to_sklearn": "models",
}

__all__ = [
    "DPADMMClassifier",
    "DPCategoryEncoder",
    "DPFeatureTest",
    "DPGradientClassifier",
    "DPGradientRegressor",
    "DPHardThresholdClassifier",
    "DPHardThresholdRegressor",
    "DPLassoClassifier",
    "DPLassoRegressor",
    "DPPipeline",
    "DPRidgeRegressor",
    "DPScreenedLassoClassifier",
    "DPScreenedLassoRegressor",
    "DPSearchCV",
    "DPSparseClassifier",
    "DPSparseRegressor",
    "DPStandardizer",
    "DPTablePreparer",
    "DPTransferClassifier",
    "DPTransferRegressor",
    "DPTwoStageClassifier",
    "DPTwoStageRegressor",
    "DPVectorizer",
    "Domain",
    "Guarantee",
    "HashingEncoder",
    "Ledger",
    "Plan",
    "PrivateCount",
    "PublicEncoder",
    "PublicScaler",
    "Rows",
    "__version__",
    "check_pipeline",
    "dp_evaluate",
    "dp_inference",
    "evaluation_plan",
    "expected_accuracy",
    "load",
    "make_dp_scorer",
    "save",
    "to_sklearn",
]

__getattr__, __dir__ = names_on_first_use(__name__, _HOMES, globals())

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
    "domain": "Domain",
    "estimators": (
        "DPADMMClassifier DPGradientClassifier DPGradientRegressor DPHardThresholdClassifier "
        "DPHardThresholdRegressor DPLassoClassifier DPLassoRegressor DPRidgeRegressor "
        "DPScreenedLassoClassifier DPScreenedLassoRegressor DPSparseClassifier "
        "DPSparseRegressor DPTransferClassifier DPTransferRegressor DPTwoStageClassifier "
        "DPTwoStageRegressor"
    ),
    "estimators._pipelines": "check_pipeline",
    "evaluation": "dp_evaluate evaluation_plan make_dp_scorer",
    "inference": "DPFeatureTest dp_inference",
    "model_selection": "DPSearchCV expected_accuracy",
    "models": "load save to_sklearn",
    "nonzeros": "PrivateCount",
    "preprocessing": (
        "DPCategoryEncoder DPPipeline DPStandardizer DPTablePreparer DPVectorizer "
        "HashingEncoder PublicEncoder PublicScaler"
    ),
    "privacy": "Guarantee Ledger Plan",
    "rows": "Rows",
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

"""Differentially private sparse linear models with true guarantees.

Declare what is public (`Domain`), choose an estimator, ask its price (`plan`), fit, publish.
"""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use

if TYPE_CHECKING:  # names that a type checker and an editor know
    from dpsparse.domain import Domain as Domain
    from dpsparse.estimators import DPADMMClassifier as DPADMMClassifier
    from dpsparse.estimators import DPGradientClassifier as DPGradientClassifier
    from dpsparse.estimators import DPGradientRegressor as DPGradientRegressor
    from dpsparse.estimators import DPHardThresholdClassifier as DPHardThresholdClassifier
    from dpsparse.estimators import DPHardThresholdRegressor as DPHardThresholdRegressor
    from dpsparse.estimators import DPLassoClassifier as DPLassoClassifier
    from dpsparse.estimators import DPLassoRegressor as DPLassoRegressor
    from dpsparse.estimators import DPRidgeRegressor as DPRidgeRegressor
    from dpsparse.estimators import DPScreenedLassoClassifier as DPScreenedLassoClassifier
    from dpsparse.estimators import DPScreenedLassoRegressor as DPScreenedLassoRegressor
    from dpsparse.estimators import DPSparseClassifier as DPSparseClassifier
    from dpsparse.estimators import DPSparseRegressor as DPSparseRegressor
    from dpsparse.estimators import DPTransferClassifier as DPTransferClassifier
    from dpsparse.estimators import DPTransferRegressor as DPTransferRegressor
    from dpsparse.estimators import DPTwoStageClassifier as DPTwoStageClassifier
    from dpsparse.estimators import DPTwoStageRegressor as DPTwoStageRegressor
    from dpsparse.evaluation import dp_evaluate as dp_evaluate
    from dpsparse.evaluation import evaluation_plan as evaluation_plan
    from dpsparse.evaluation import make_dp_scorer as make_dp_scorer
    from dpsparse.inference import DPFeatureTest as DPFeatureTest
    from dpsparse.inference import dp_inference as dp_inference
    from dpsparse.model_selection import DPSearchCV as DPSearchCV
    from dpsparse.model_selection import expected_accuracy as expected_accuracy
    from dpsparse.models import load as load
    from dpsparse.models import save as save
    from dpsparse.models import to_sklearn as to_sklearn
    from dpsparse.nonzeros import PrivateCount as PrivateCount
    from dpsparse.preprocessing import DPCategoryEncoder as DPCategoryEncoder
    from dpsparse.preprocessing import DPPipeline as DPPipeline
    from dpsparse.preprocessing import DPStandardizer as DPStandardizer
    from dpsparse.preprocessing import DPTablePreparer as DPTablePreparer
    from dpsparse.preprocessing import DPVectorizer as DPVectorizer
    from dpsparse.preprocessing import HashingEncoder as HashingEncoder
    from dpsparse.preprocessing import PublicEncoder as PublicEncoder
    from dpsparse.preprocessing import PublicScaler as PublicScaler
    from dpsparse.privacy import Guarantee as Guarantee
    from dpsparse.privacy import Ledger as Ledger
    from dpsparse.privacy import Plan as Plan
    from dpsparse.rows import Rows as Rows

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

__all__ = sorted(["__version__", *" ".join(_HOMES.values()).split()])

__getattr__, __dir__ = names_on_first_use(__name__, _HOMES, globals())

"""Differentially private sparse linear models with true guarantees.

Declare what is public (`Domain`), choose an estimator, ask its price (`plan`), fit, publish.
"""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use

if TYPE_CHECKING:  # names that a type checker and an editor know
    from dpsparse.accounting import Guarantee as Guarantee
    from dpsparse.accounting import Plan as Plan
    from dpsparse.domain import Domain as Domain
    from dpsparse.evaluation import dp_evaluate as dp_evaluate
    from dpsparse.inference import DPFeatureTest as DPFeatureTest
    from dpsparse.inference import dp_inference as dp_inference
    from dpsparse.ledger import Ledger as Ledger
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
    from dpsparse.methods.support_first.estimator import DPADMMClassifier as DPADMMClassifier
    from dpsparse.methods.support_first.estimator import DPRidgeRegressor as DPRidgeRegressor
    from dpsparse.methods.support_first.estimator import (
        DPTransferClassifier as DPTransferClassifier,
    )
    from dpsparse.methods.support_first.estimator import DPTransferRegressor as DPTransferRegressor
    from dpsparse.methods.support_first.estimator import (
        DPTwoStageClassifier as DPTwoStageClassifier,
    )
    from dpsparse.methods.support_first.estimator import DPTwoStageRegressor as DPTwoStageRegressor
    from dpsparse.model_selection import DPSearchCV as DPSearchCV
    from dpsparse.model_selection import expected_accuracy as expected_accuracy
    from dpsparse.models.files import load as load
    from dpsparse.models.files import save as save
    from dpsparse.nonzeros import PrivateCount as PrivateCount
    from dpsparse.preprocessing import DPCategoryEncoder as DPCategoryEncoder
    from dpsparse.preprocessing import DPPipeline as DPPipeline
    from dpsparse.preprocessing import DPStandardizer as DPStandardizer
    from dpsparse.preprocessing import DPTablePreparer as DPTablePreparer
    from dpsparse.preprocessing import DPVectorizer as DPVectorizer
    from dpsparse.preprocessing import HashingEncoder as HashingEncoder
    from dpsparse.preprocessing import PublicEncoder as PublicEncoder
    from dpsparse.preprocessing import PublicScaler as PublicScaler
    from dpsparse.rows import Rows as Rows

__version__ = "0.2.0"

# Names load on first use: `import dpsparse` alone pulls in neither scikit-learn (which imports
# pandas where it finds it) nor Numba, so the command line answers at once.
__all__, __getattr__, __dir__ = names_on_first_use(
    __name__,
    {
        "accounting": "Guarantee Plan",
        "domain": "Domain",
        "ledger": "Ledger",
        "methods": (
            "DPADMMClassifier DPGradientClassifier DPGradientRegressor DPHardThresholdClassifier "
            "DPHardThresholdRegressor DPLassoClassifier DPLassoRegressor DPRidgeRegressor "
            "DPScreenedLassoClassifier DPScreenedLassoRegressor DPSparseClassifier "
            "DPSparseRegressor DPTransferClassifier DPTransferRegressor DPTwoStageClassifier "
            "DPTwoStageRegressor"
        ),
        "evaluation": "dp_evaluate",
        "inference": "DPFeatureTest dp_inference",
        "model_selection": "DPSearchCV expected_accuracy",
        "models.files": "load save",
        "nonzeros": "PrivateCount",
        "preprocessing": (
            "DPCategoryEncoder DPPipeline DPStandardizer DPTablePreparer DPVectorizer "
            "HashingEncoder PublicEncoder PublicScaler"
        ),
        "rows": "Rows",
    },
    globals(),
)
__all__.append("__version__")

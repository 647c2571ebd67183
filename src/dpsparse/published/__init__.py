"""The papers as printed, one file each, for reproduction and never for release: NOT PRIVATE.

| file | paper |
|---|---|
| `kifer_smith_thakurta_2012_two_stage` | Private Convex Empirical Risk Minimization and High-dimensional Regression |
| `wang_gu_2019_hard_threshold` | Differentially Private Iterative Gradient Hard Thresholding (DP-IGHT) |
| `wang_gu_2020_transfer` | A Knowledge Transfer Framework for Differentially Private Sparse Learning |
| `wang_zhang_2020_admm` | Differential Privacy for Sparse Classification Learning |
| `khanna_lu_raff_2023_screening` | The Challenge of Private Screening Rules, and Iterative Screening Rules |
| `khanna_lu_raff_2023_sparsifier` | Sparse Private LASSO Logistic Regression |
| `raff_khanna_lu_2023_lasso` | Scaling Up Differentially Private LASSO via Faster Frank-Wolfe |

The algorithms are functions of arrays, numbers and a generator that depend on nothing but the losses: the proven
solvers may change without moving a printed number. The estimators have the guarantee epsilon = infinity, or what
their noise is proven to be worth. What each paper gets wrong is said in its file and attacked in
experiments/lab/papers/leaks.py.
"""

from typing import TYPE_CHECKING

from dpsparse._lazy import names_on_first_use

if TYPE_CHECKING:  # names that a type checker and an editor know
    from dpsparse.published.khanna_lu_raff_2023_screening import (
        ADPScreenClassifier as ADPScreenClassifier,
    )
    from dpsparse.published.khanna_lu_raff_2023_screening import (
        ADPScreenRegressor as ADPScreenRegressor,
    )
    from dpsparse.published.khanna_lu_raff_2023_screening import (
        RNMScreenClassifier as RNMScreenClassifier,
    )
    from dpsparse.published.khanna_lu_raff_2023_screening import (
        RNMScreenRegressor as RNMScreenRegressor,
    )
    from dpsparse.published.khanna_lu_raff_2023_sparsifier import (
        KhannaLuRaffLassoClassifier as KhannaLuRaffLassoClassifier,
    )
    from dpsparse.published.khanna_lu_raff_2023_sparsifier import (
        KhannaLuRaffLassoRegressor as KhannaLuRaffLassoRegressor,
    )
    from dpsparse.published.kifer_smith_thakurta_2012_two_stage import (
        KiferSmithThakurtaTwoStageClassifier as KiferSmithThakurtaTwoStageClassifier,
    )
    from dpsparse.published.kifer_smith_thakurta_2012_two_stage import (
        KiferSmithThakurtaTwoStageRegressor as KiferSmithThakurtaTwoStageRegressor,
    )
    from dpsparse.published.raff_khanna_lu_2023_lasso import (
        RaffKhannaLuLassoClassifier as RaffKhannaLuLassoClassifier,
    )
    from dpsparse.published.wang_gu_2019_hard_threshold import (
        WangGuHardThresholdClassifier as WangGuHardThresholdClassifier,
    )
    from dpsparse.published.wang_gu_2019_hard_threshold import (
        WangGuHardThresholdRegressor as WangGuHardThresholdRegressor,
    )
    from dpsparse.published.wang_gu_2020_transfer import (
        WangGuTransferClassifier as WangGuTransferClassifier,
    )
    from dpsparse.published.wang_gu_2020_transfer import (
        WangGuTransferRegressor as WangGuTransferRegressor,
    )
    from dpsparse.published.wang_zhang_2020_admm import (
        WangZhangADMMClassifier as WangZhangADMMClassifier,
    )

_HOMES = {
    "khanna_lu_raff_2023_screening": (
        "ADPScreenClassifier ADPScreenRegressor RNMScreenClassifier RNMScreenRegressor"
    ),
    "khanna_lu_raff_2023_sparsifier": "KhannaLuRaffLassoClassifier KhannaLuRaffLassoRegressor",
    "kifer_smith_thakurta_2012_two_stage": (
        "KiferSmithThakurtaTwoStageClassifier KiferSmithThakurtaTwoStageRegressor"
    ),
    "raff_khanna_lu_2023_lasso": "RaffKhannaLuLassoClassifier",
    "wang_gu_2019_hard_threshold": "WangGuHardThresholdClassifier WangGuHardThresholdRegressor",
    "wang_gu_2020_transfer": "WangGuTransferClassifier WangGuTransferRegressor",
    "wang_zhang_2020_admm": "WangZhangADMMClassifier",
}

__all__ = sorted(" ".join(_HOMES.values()).split())

__getattr__, __dir__ = names_on_first_use(__name__, _HOMES, globals())

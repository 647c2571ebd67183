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
| `frank_wolfe_lasso` | the same without noise: a plain LASSO for those who want the solver and no privacy |

The algorithms are functions of arrays, numbers and a generator that depend on nothing but the losses: the proven
solvers may change without moving a printed number. The estimators have the guarantee epsilon = infinity, or what
their noise is proven to be worth. What each paper gets wrong is said in its file and attacked in
experiments/lab/papers/leaks.py.
"""

from dpsparse.published.frank_wolfe_lasso import FrankWolfeLasso
from dpsparse.published.khanna_lu_raff_2023_screening import (
    ADPScreenClassifier,
    ADPScreenRegressor,
    RNMScreenClassifier,
    RNMScreenRegressor,
)
from dpsparse.published.khanna_lu_raff_2023_sparsifier import (
    KhannaLuRaffLassoClassifier,
    KhannaLuRaffLassoRegressor,
)
from dpsparse.published.kifer_smith_thakurta_2012_two_stage import (
    KiferSmithThakurtaTwoStageClassifier,
    KiferSmithThakurtaTwoStageRegressor,
)
from dpsparse.published.raff_khanna_lu_2023_lasso import RaffKhannaLuLassoClassifier
from dpsparse.published.wang_gu_2019_hard_threshold import (
    WangGuHardThresholdClassifier,
    WangGuHardThresholdRegressor,
)
from dpsparse.published.wang_gu_2020_transfer import (
    WangGuTransferClassifier,
    WangGuTransferRegressor,
)
from dpsparse.published.wang_zhang_2020_admm import WangZhangADMMClassifier

__all__ = [
    "ADPScreenClassifier",
    "ADPScreenRegressor",
    "FrankWolfeLasso",
    "KhannaLuRaffLassoClassifier",
    "KhannaLuRaffLassoRegressor",
    "KiferSmithThakurtaTwoStageClassifier",
    "KiferSmithThakurtaTwoStageRegressor",
    "RNMScreenClassifier",
    "RNMScreenRegressor",
    "RaffKhannaLuLassoClassifier",
    "WangGuHardThresholdClassifier",
    "WangGuHardThresholdRegressor",
    "WangGuTransferClassifier",
    "WangGuTransferRegressor",
    "WangZhangADMMClassifier",
]

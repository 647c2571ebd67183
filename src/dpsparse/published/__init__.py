"""The papers as printed, one file each, for reproduction and never for release.

| file | paper |
|---|---|
| `kifer_smith_thakurta_2012_two_stage` | Private Convex Empirical Risk Minimization and High-dimensional Regression |
| `wang_gu_2019_hard_threshold` | Differentially Private Iterative Gradient Hard Thresholding (DP-IGHT) |
| `wang_gu_2020_transfer` | A Knowledge Transfer Framework for Differentially Private Sparse Learning |
| `wang_zhang_2020_admm` | Differential Privacy for Sparse Classification Learning |
| `khanna_lu_raff_2023_screening` | The Challenge of Private Screening Rules, and Iterative Screening Rules |
| `khanna_lu_raff_2023_sparsifier` | Sparse Private LASSO Logistic Regression |

Every function takes arrays, numbers and a generator, and depends on nothing but the losses: the proven
solvers may change without moving a printed number. Estimators reach them by `calibration="published"`,
which promises nothing; printed forms that no estimator runs live in experiments/.
What each paper gets wrong is said in its file and attacked in experiments/paper_leaks.py.
"""

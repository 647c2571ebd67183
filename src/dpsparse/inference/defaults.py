"""Every tuned constant of inference, with its unit and where its value comes from.

"Tables" are the twelve of experiments/inference.py. Lengths are in coordinates in which the released second moments of
rows are one in every direction; k is their number, the constant among them.
"""

# ---- intervals -----------------------------------------------------------------------------------

# Shares of mu^2, in the order of the releases. The last step is the one that is published.
INTERVAL_SHARES = {
    "look": 0.05,
    "axes": 0.09,
    "gradient 1": 0.05,
    "gradient 2": 0.05,
    "curvature 2": 0.06,
    "gradient 3": 0.05,
    "curvature 3": 0.07,
    "gradient 4": 0.39,
    "curvature 4": 0.14,
    "spread 4": 0.05,
}
RAREST_CLASS = 0.01  # share of rows: no class is taken to be rarer
MAX_STEP = 2.0  # length of a step: longer ones are cut, since a Newton step from afar overshoots
# Eigenvalues of the curvature are not taken to be smaller on the way, in units of what the null model has.
LEAST_CURVATURE = 0.1
EARLY_ROW_LENGTH = 1.5  # times sqrt(k): rows count with at most this length before the last step
LAST_ROW_LENGTH = (
    2.5  # times sqrt(k): the same in the last step, or more; 1.5 moved what is estimated (tables)
)
# Noise variance over sampling variance of the last gradient: rows are clipped less where noise stays below this.
NOISE_TO_SAMPLING = 0.3
LARGEST_CUT = 5.0  # a row within declared bounds is shortened by at most this factor; with 8 one table missed (spam7)
# Noise variance of the last curvature over its square, summed over directions: aimed at, and the most that is allowed.
# With .1 allowed, intervals that were seldom given missed (tables).
CURVATURE_DOUBT_AIMED = 0.02
CURVATURE_DOUBT_ALLOWED = 0.06
LARGEST_LAST_STEP = (
    0.3  # squared length: beyond it the steps have not settled, and no interval is given
)
# The second-order term of a logistic gradient is at most .048 sum |v| (v.d)^2; .04 n |d|^2 was enough (tables).
SECOND_ORDER = 0.04

# ---- feature test --------------------------------------------------------------------------------

TEST_SHARES = {"counts": 0.1, "squares": 0.2, "gradient": 0.7}  # of mu^2

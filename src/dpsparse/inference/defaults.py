"""Every tuned constant of inference, with its unit and where its value comes from.

"Tables" are the twelve of experiments/inference.py. Lengths are in coordinates in which the released second moments of
rows are one in every direction; k is their number, the constant among them.
"""

# Shares of mu^2 of intervals, in the order of the releases. The last step is the one that is published.
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
EARLY_ROW_LENGTH = 1.5  # times sqrt(k): rows count with at most this length before the last step

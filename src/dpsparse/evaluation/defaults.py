"""Every tuned constant of evaluations, with its unit and where its value comes from."""

import numpy as np

MOST_BINS = 64  # of a histogram of scores
# Public cells of scores: +-2^(k/4), from 1/256 to 64.
EDGES = np.sort(np.outer([-1.0, 1.0], 2.0 ** (np.arange(-32, 25) / 4.0)), axis=None)

# Shares of mu^2 by kind of model: what a report of all metrics needs for intervals of about one width
# (tests/evaluation/interval_coverage.py). Those that are not asked for are left out and the others stretched.
SHARES = {
    "two classes": {
        "confusion": 0.20, "cells": 0.15, "histogram": 0.40,
        "log_loss": 0.07, "log_loss_squares": 0.055, "brier": 0.07, "brier_squares": 0.055,
    },
    "several classes": {
        "outcomes": 0.15, "confusion": 0.25, "cells": 0.10, "histogram": 0.25,
        "log_loss": 0.07, "log_loss_squares": 0.055, "brier": 0.07, "brier_squares": 0.055,
    },
    "numbers": {
        "count": 0.15, "total": 0.10, "absolute": 0.15, "squares": 0.20, "spread": 0.15,
        "squares_squares": 0.10, "spread_squares": 0.05, "cross": 0.10,
    },
}  # fmt: skip

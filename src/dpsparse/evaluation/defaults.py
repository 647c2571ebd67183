"""Every tuned constant of evaluations, with its unit and where its value comes from."""

import numpy as np

MOST_BINS = 64  # of a histogram of scores
# Public cells of scores: +-2^(k/4), from 1/256 to 64.
EDGES = np.sort(np.outer([-1.0, 1.0], 2.0 ** (np.arange(-32, 25) / 4.0)), axis=None)

# What is released, and its share of mu^2 by kind of model: all metrics together then have intervals of about one width
# (tests/evaluation/interval_coverage.py). What is not asked for is left out and the rest stretched.
RELEASES: dict[str, tuple[str, dict[str, float]]] = {
    "outcomes": ("rows guessed right and wrong", {"several classes": 0.15}),
    "confusion": ("rows by class and guess", {"two classes": 0.20, "several classes": 0.25}),
    "cells": ("rows by public cell of the score: where to cut", {"two classes": 0.15, "several classes": 0.10}),
    "histogram": (
        "rows by class (or right and wrong) and bin of the score", {"two classes": 0.40, "several classes": 0.25},
    ),
    "log_loss": ("sum of the log loss, cut at 6", {"two classes": 0.07, "several classes": 0.07}),
    "log_loss_squares": ("sum of its squares: sampling error", {"two classes": 0.055, "several classes": 0.055}),
    "brier": ("sum of the squared errors of the probabilities", {"two classes": 0.07, "several classes": 0.07}),
    "brier_squares": ("sum of their squares: sampling error", {"two classes": 0.055, "several classes": 0.055}),
    "count": ("number of rows or persons", {"numbers": 0.15}),
    "total": ("sum of the targets", {"numbers": 0.10}),
    "absolute": ("sum of the absolute errors", {"numbers": 0.15}),
    "squares": ("sum of the squared errors", {"numbers": 0.20}),
    "spread": ("sum of the squared targets about their mean", {"numbers": 0.15}),
    "squares_squares": ("sum of fourth powers of the errors: sampling error", {"numbers": 0.10}),
    "spread_squares": ("sum of fourth powers of the targets: sampling error", {"numbers": 0.05}),
    "cross": ("sum of squared error times squared target: sampling error", {"numbers": 0.10}),
}  # fmt: skip

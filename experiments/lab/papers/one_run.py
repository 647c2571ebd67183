"""Audit in one run (Steinke, Nasr, Jagielski 2023).

m canaries enter independently with probability 1/2, the auditor guesses r of them from the one model, v guesses are
right. For an (epsilon, delta)-DP fit (their main theorem, with W ~ Binomial(r, q), q = e^epsilon/(1+e^epsilon))

    P(right guesses >= v) <= P(W >= v) + 2 m delta max_i P(v > W >= v - i) / i.
"""

import math

import numpy as np
from scipy import stats


def one_run_p_value(m, r, v, epsilon, delta):
    """Probability of v or more right guesses out of r, at most, if the fit is (epsilon, delta)-DP."""
    q = 1.0 / (1.0 + math.exp(-epsilon))
    right = stats.binom.sf(v - 1, r, q)
    if delta > 0.0 and v > 0:
        below = np.cumsum(stats.binom.pmf(v - np.arange(1, v + 1), r, q))
        right += 2.0 * m * delta * float((below / np.arange(1, v + 1)).max())
    return float(min(1.0, right))


def one_run_epsilon(m, r, v, delta, confidence=0.999):
    """The largest epsilon that v right guesses out of r refute."""
    alpha = 1.0 - confidence
    if one_run_p_value(m, r, v, 0.0, delta) > alpha:
        return 0.0
    low, high = 0.0, 1.0
    while one_run_p_value(m, r, v, high, delta) <= alpha and high < 100.0:
        low, high = high, 2.0 * high
    for _ in range(50):
        middle = 0.5 * (low + high)
        if one_run_p_value(m, r, v, middle, delta) <= alpha:
            low = middle
        else:
            high = middle
    return low

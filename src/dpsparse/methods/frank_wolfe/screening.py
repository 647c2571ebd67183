"""Screening of a released run: weights of columns that were picked no more often than chance are dropped.

Papers: Khanna, Lu, Raff, "The Challenge of Differentially Private Screening Rules" (2023) and its anonymous sequel,
"Differentially Private Iterative Screening Rules for Linear Regression". Their own rules are in `published/`.

The rule reads released picks and nothing else, so it is post-processing and costs nothing.
Proof: docs/proofs/screening.md.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

from dpsparse.methods.frank_wolfe.problem import History


def picked_beyond_chance(history: History, level: float) -> np.ndarray:
    """Which weights, of shape (n_outputs, n_features), were picked significantly often with one sign.

    A weight stays if |times picked with + minus times picked with -| reaches the smallest s with P(|net| >= s) <=
    level: if every pick were uniform, it would be kept with probability at most `level`.
    """
    net = np.zeros((history.n_outputs, history.n_features + 1), np.int64)
    np.add.at(net, (history.outputs, history.features), history.signs)
    net = net[:, :-1]  # without the intercept
    return np.asarray(np.abs(net) >= count_threshold(len(history.signs), net.size, level))


def count_threshold(n_steps: int, n_weights: int, level: float) -> int:
    """Smallest s with P(|N+ - N-| >= s) <= level for n_steps uniform picks of 2 n_weights vertices."""
    s = 0
    while net_tail(n_steps, n_weights, s) > level and s <= n_steps:
        s += 1
    return s


def net_tail(n_steps: int, n_weights: int, s: int) -> float:
    """P(|N+ - N-| >= s) of one weight for n_steps uniform picks of 2 n_weights vertices."""
    if s <= 0:
        return 1.0
    picks = np.arange(n_steps + 1)
    chance = binom.pmf(picks, n_steps, 1.0 / n_weights)
    relevant = chance > 0.0
    picks, chance = picks[relevant], chance[relevant]
    # given N picks, N+ ~ Bin(N, 1/2): |2 N+ - N| >= s on two mirrored tails
    return float(chance @ (2.0 * binom.sf(np.ceil((picks + s) / 2.0) - 1, picks, 0.5)))

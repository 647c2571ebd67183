"""Every tuned number of noisy gradients and of hard thresholding, in the rules that use it.

Chosen on training splits: dpsparse lab run board --training --methods "DPGradient; DPHardThreshold"; why each is there:
experiments/notebook/frontier.md. Signal: rows times budget.
"""

from __future__ import annotations

import math

from dpsparse.methods.look.defaults import MIN_EFFECTIVE_ROWS_TO_FIT

MOMENTUM = 0.9  # of the velocity that noisy gradients move
MAX_STEPS = 2000  # the plan charges the sampler's slack for so many
NOISELESS_BUDGET = 32.0  # of a run without noise, for its number of steps
FEW_WEIGHTS_PER_OUTPUT = 300  # up to which a refit starts cold, and after three rounds
TRUST_IN_EARLIER_ROUNDS = (0.5, 0.7)  # beside the last: they paid for dropped columns too


def round_shares(
    wide: bool, keeps_few: bool, chosen: bool, width: int, n: float, budget: float
) -> tuple[float, ...]:
    """Shares of the gradients' budget: one descent, or descents with pruning in between. Pruning pays on wide data, for
    few weights or many more features than rows, and where all weights are kept for much signal alone."""
    if wide and keeps_few:
        return (0.45, 0.3, 0.25)
    pays = chosen or n * budget >= 1000.0
    return (0.5, 0.5) if wide and width > 10.0 * n and pays else (1.0,)


def schedule(asked: int | None, wide: bool, n: float, budget: float) -> tuple[int, float]:
    """Number of steps and step size, in units of that of the loss, from n and the budget alone.

    More than fifty million rows take as many steps as 1e11 reads of a row allow, but not fewer than 400
    (docs/scaling.md). Where noise would be larger than the rows, steps are shorter.
    """
    signal = n * min(budget, NOISELESS_BUDGET)
    most = min(MAX_STEPS, max(400, int(1e11 / n)))
    steps = math.ceil(min((0.3 if wide else 1.0) * math.sqrt(signal), most))
    n_iter = asked or max(3, steps)
    return n_iter, min(signal / (10.0 * n_iter), 20.0)


def stands_out(signal: float, n_outputs: int) -> float:
    """Standard deviations of the noise by which a column must stand out to be kept. Where classes share the columns,
    each is the mark of a class or two, and dropping one costs more than keeping another."""
    if signal < 2000.0:
        return 1.5
    return 1.0 if n_outputs > 1 else 2.0


def fewest_effective_rows(n_features: int) -> float:
    """Below so many a regression by hard thresholding is the mean of its targets."""
    return max(MIN_EFFECTIVE_ROWS_TO_FIT, 15.0 * math.sqrt(n_features))

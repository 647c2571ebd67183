"""Every tuned number of noisy gradients.

Chosen on training splits: dpsparse lab run board --training --methods DPGradient; why each is there:
experiments/notebook/frontier.md.
"""

from __future__ import annotations

MOMENTUM = 0.9  # of the velocity that noisy gradients move
MIN_STEPS, MAX_STEPS = 3, 2000  # the plan charges the sampler's slack for the latter
# Of the root of rows times budget, which is what a mean is seen by; narrow tables take all of it.
STEPS_PER_ROOT_OF_SIGNAL_IF_WIDE = 0.3
SIGNAL_PER_STEP = 10.0  # where noise would be larger than the rows, steps are shorter
MAX_STEP_SIZE = 20.0
NOISELESS_BUDGET = 32.0  # of a run without noise, for its number of steps
# More than fifty million rows: as many steps as these reads of a row allow, but not fewer than 400 (docs/scaling.md).
MAX_READS_OF_ROWS, MIN_STEPS_OF_MANY_ROWS = 1e11, 400

FEW_WEIGHTS_PER_OUTPUT = 300  # up to which a refit starts cold, and after three rounds
ROUND_SHARES_FOR_FEW = (0.45, 0.3, 0.25)  # of the gradients' budget
ROUND_SHARES = (0.5, 0.5)
TRUST_IN_EARLIER_ROUNDS = (0.5, 0.7)  # beside the last: they paid for dropped columns too
COLUMNS_PER_WANTED_WEIGHT = 3  # on which the last round for few weights works
MIN_COLUMNS_PER_ROW_TO_PRUNE = 10.0  # where many weights are kept
MIN_SIGNAL_TO_PRUNE = 1000.0  # where all weights are kept
# Standard deviations of the noise by which a column must stand out to be kept: with less signal, and with more. Where
# classes share the columns, each is the mark of a class or two, and dropping one costs more than keeping another.
SURE_SIGNAL = 2000.0
KEPT_ABOVE_NOISE = (1.5, 2.0)
KEPT_ABOVE_NOISE_BY_SEVERAL_CLASSES = (1.5, 1.0)

"""Which part of `DPGradientClassifier` gains what on 20 classes with few weights: each is taken out in turn.

Three things made few weights of many classes better. The first round of pruning demands two standard deviations of
noise only from 3,000 effective rows on (1,000 before); what earlier rounds found is added to the last one; and where
several classes share the features, one standard deviation is enough from 1,500 effective rows on.
"""

from __future__ import annotations

import math

import numpy as np

VARIANTS = {  # threshold, and whether rounds add up
    "neither": ("early", False),
    "the later switch of the threshold alone": ("late", False),
    "rounds that add up alone": ("early", True),
    "both": ("late", True),
    "both, and a lower threshold for several classes (as shipped)": ("several", True),
}
SWITCH = {"early": 1000.0, "late": 3000.0}


def without(solver, threshold, adds):
    """Patch the solver; what to call to undo it."""
    kept = solver.Run.stands_out, solver.Run.remember

    def forget(self, noise, share, stays, *, first):
        self.past = np.zeros_like(self.weights[stays])

    if threshold in SWITCH:
        solver.Run.stands_out = property(
            lambda self: 2.0 if self.n * self.budget >= SWITCH[threshold] else 1.5
        )
    if not adds:
        solver.Run.remember = forget

    def undo():
        solver.Run.stands_out, solver.Run.remember = kept

    return undo


def split_gain(fit_score, seeds, epsilons):
    """Print accuracy by variant and epsilon; `fit_score(epsilon, seed)` fits and scores once."""
    from dpsparse.solvers import gradient

    print("| | " + " | ".join(f"{e:g}" for e in epsilons) + " |")
    print("|---" * (len(epsilons) + 1) + "|")
    for name, parts in VARIANTS.items():
        shown = []
        for epsilon in epsilons:
            undo = without(gradient, *parts)
            try:
                found = [fit_score(epsilon, seed) for seed in range(seeds)]
            finally:
                undo()
            error = np.std(found) / math.sqrt(max(seeds - 1, 1))
            shown.append(f"{np.mean(found):.3f} ± {error:.3f}")
        print(f"| {name} | {' | '.join(shown)} |", flush=True)

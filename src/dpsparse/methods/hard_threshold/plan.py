"""The price of hard thresholding, from public facts alone."""

from __future__ import annotations

from collections.abc import Mapping

from dpsparse.methods.hard_threshold.defaults import BUDGET_SHARES
from dpsparse.privacy import REST, Budget
from dpsparse.solvers.gradient import INTERCEPT_ROUNDS, MEDIAN_ROUNDS, Recipe

NOTES: Mapping[str, str] = {
    "prior": "noisy class counts (or count and mean of the targets)",
    "masses": "noisy sum of |x_i|/||x_i||: scale and filter of the features",
    "spread": f"{MEDIAN_ROUNDS} noisy counts: where to clip residuals",
    "length": f"{MEDIAN_ROUNDS} noisy counts: median length of scaled rows",
    "line": "one noisy number a step: how far its step may go",
    "intercept": f"{INTERCEPT_ROUNDS} noisy sums: offset of the final model",
    "gradients": "all steps together",
}


def price(settings: Recipe, n_features: int, n_classes: int, budget: Budget) -> None:
    """Add the releases of `solve` to `budget`."""
    assert settings.n_iter is not None
    numbers = {
        "prior": n_classes,
        "masses": n_features,
        "spread": MEDIAN_ROUNDS,
        "length": MEDIAN_ROUNDS,
        "line": settings.n_iter,
        "intercept": INTERCEPT_ROUNDS * n_classes,
    }
    if settings.masses is None:
        del numbers["masses"]
    if settings.loss != "huber":
        del numbers["spread"]
    for name, size in numbers.items():
        budget.gaussian(name, BUDGET_SHARES[name], size, NOTES[name])
    entries = settings.n_iter * (n_features + 1) * settings.n_outputs
    budget.gaussian("gradients", REST, entries, NOTES["gradients"])

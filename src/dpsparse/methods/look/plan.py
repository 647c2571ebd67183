"""The price of a look."""

from __future__ import annotations

from collections.abc import Mapping

from dpsparse.accounting import Budget
from dpsparse.methods.look.defaults import BUDGET_SHARES, OFFSET_ROUNDS, QUANTILE_COUNTS

NOTES = {
    "prior": "noisy class counts",
    "mean": "noisy sum of the targets (and of the rows, where their number is not declared)",
    "spread": f"{QUANTILE_COUNTS} noisy counts: where residuals begin to count linearly",
    "masses": "noisy sum of |x_i|/||x_i||: scale and filter of the features",
    "length": f"{QUANTILE_COUNTS} noisy counts a search: median length of the rows",
    "centre": "noisy sum of shortened rows",
    "columns": "noisy sums of squares (few entries a row: of |x_i|/||x_i||): scale of every column",
    "axes": "noisy second moments of scaled rows: directions in which they are long",
    "entry": f"{QUANTILE_COUNTS} noisy counts: typical size of an entry",
    "intercept": f"noisy counts by class and margin (or {OFFSET_ROUNDS} noisy sums): slope and offset of the model",
}


def add_look(budget: Budget, looks: Mapping[str, int]) -> None:
    """Add releases to a budget, each with how many numbers it has."""
    for name, numbers in looks.items():
        budget.gaussian(name, BUDGET_SHARES[name], numbers, NOTES[name])


def table_looks(n_columns: int, *, entry: bool, axes: bool) -> dict[str, int]:
    """What a method for narrow tables of numbers releases first, with how many numbers each."""
    looks = {"mean": 1, "spread": QUANTILE_COUNTS}
    if entry:
        looks["entry"] = QUANTILE_COUNTS
    looks |= {"length": 2 * QUANTILE_COUNTS, "centre": n_columns, "columns": n_columns}
    if axes:
        looks["axes"] = n_columns * (n_columns + 1) // 2
    return looks

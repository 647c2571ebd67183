"""Every tuned number behind the choice of DPSparseRegressor, in the rules that use it. N: effective rows, that is rows
times mu.

Chosen on training splits: dpsparse lab run board --training.
"""

from __future__ import annotations

MAX_COLUMNS = (
    1500  # of a table: its rows have an entry in every column, and minimisers are found on so many
)


def choose_columns(N: float, n_features: int) -> int:
    """n_nonzero="auto": as many columns as the rows can find, from public or released numbers. That 50 are the most was
    set by judgement."""
    return min(max(int(min(N / 12.0, 50.0)), 1), n_features)


def columns_to_find(N: float, n_features: int, wanted: int | None) -> int:
    """How many columns are found before they are fitted, by effective rows and what is declared; 0: none are.

    Where few are wanted they are found first if they are rare, or if all columns would drown in noise. Each takes
    twelve effective rows: fewer columns that are right are worth more.
    """
    if wanted is None:
        if not 40 < n_features <= MAX_COLUMNS or N < 30.0:
            return 0
        return 3 if N < 60.0 else 5 if N < 100.0 else 0
    rare, drowned = 20 * wanted <= n_features, 6.0 * n_features > N
    if not (rare or drowned) or 4.0 * wanted > N:
        return 0
    return max(int(min(wanted, N / 12.0, MAX_COLUMNS)), 1)

"""The public facts that a method is chosen and priced from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsparse.accounting import RoundedGaussian, calibrate
from dpsparse.domain import Domain
from dpsparse.methods.defaults import (
    MAX_COLUMNS,
    MAX_COLUMNS_OF_UNCOUNTED_ROWS,
    MAX_ENTRIES,
)
from dpsparse.sensitivity import signed_sum


@dataclass(frozen=True)
class Facts:
    """What is known of a fit before any row is read."""

    domain: Domain
    n_features: int
    planned_features: (
        int  # by which looks are chosen: fewer columns than planned for change no price
    )
    n_classes: int  # 0 where targets are numbers
    epsilon: float
    delta: float
    adjacency: str

    @property
    def of_numbers(self) -> bool:
        return self.n_classes == 0

    @property
    def n_outputs(self) -> int:
        """Weight vectors: one for numbers and two classes, else one per class."""
        return 1 if self.n_classes <= 2 else self.n_classes

    @property
    def loss(self) -> str:
        """The loss of a method that takes slopes at any weights, and so needs them bounded."""
        if self.of_numbers:
            return "huber"
        return "logistic" if self.n_outputs == 1 else "softmax"

    @property
    def is_private(self) -> bool:
        return not math.isinf(self.epsilon)

    @property
    def target_bound(self) -> float:
        """The unit of targets and weights; one for classes."""
        return float(self.domain.target_bound or 1.0) if self.of_numbers else 1.0

    @property
    def fits_in_memory(self) -> bool:
        """Whether declared rows may be given an entry in every column."""
        n, d = self.domain.n_samples, self.planned_features
        return n is not None and d <= MAX_COLUMNS and n * d <= MAX_ENTRIES

    @property
    def is_table(self) -> bool:
        """Whether rows may be centred, and are more than the columns."""
        n, d = self.domain.n_samples, self.planned_features
        if n is None:
            return d <= MAX_COLUMNS_OF_UNCOUNTED_ROWS
        return d <= n and self.fits_in_memory

    @property
    def effective_rows(self) -> float:
        """N of the declared rows; infinite without noise."""
        n = (
            self.domain.require("n_samples", "The number of effective rows")
            if self.is_private
            else 1
        )
        return effective_rows(int(n), self.epsilon, self.delta, self.adjacency)

    def longest_row(self, n_columns: int | None = None) -> float:
        """Declared bound on the length of a row on some columns; infinite where nothing bounds it."""
        bound = self.domain.entry_bound(math.inf if self.domain.bounds is None else 1.0)
        width = self.n_features if n_columns is None else n_columns
        return min(self.domain.row_norm or math.inf, bound * math.sqrt(width))


def effective_rows(n_samples: int, epsilon: float, delta: float, adjacency: str) -> float:
    """N = n mu: the mean of numbers in [-1, 1] is known to noise of sd 1/N. Infinite without noise.

    Every rule about small tables is a rule about N.
    """
    if math.isinf(epsilon):
        return math.inf
    mu = calibrate(lambda m: RoundedGaussian(1.0 / m, 1.0, 1), epsilon, delta)
    return n_samples * mu / signed_sum(1.0, adjacency).value

"""Scales of an L1 ball that are released instead of asked for: when, how many numbers, and for which share.

What is done with them: methods/frank_wolfe/scales.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpsparse.accounting import Event, RoundedGaussian
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import BaseDPLinearModel, check_count, check_positive
from dpsparse.methods.defaults import MAX_COLUMNS, MAX_ENTRIES
from dpsparse.methods.facts import effective_rows
from dpsparse.methods.frank_wolfe.scales import Scales
from dpsparse.methods.look.defaults import (
    BUDGET_SHARES,
    MIN_EFFECTIVE_ROWS_FOR_REGRESSION,
    QUANTILE_COUNTS,
)
from dpsparse.methods.look.plan import NOTES as NOTES

PER_PICK = 30.0  # effective rows over log(2 d) for each square root of a step


@dataclass(eq=False, repr=False, kw_only=True)
class ReleasesScales(BaseDPLinearModel):
    """An estimator on an L1 ball whose scales are released where nobody gave a radius."""

    radius: float | None = None
    n_iter: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_iter", self.n_iter, optional=True)
        if self.radius is not None:
            check_positive("radius", self.radius)
            if math.isinf(self.radius):
                raise ParameterError("radius must be finite; it is the size of the L1 ball.")

    def _scales(
        self, n_features: int, bound: float, default: int, n_outputs: int = 1
    ) -> tuple[Scales | None, int]:
        """What is released instead of asked for, and the number of steps: from public facts alone. `default` is the
        number of steps where scales are declared."""
        domain, n = self._domain, self._domain.n_samples
        n_iter = int(self.n_iter or default)
        if self.radius is not None or n is None or self._is_published or not self._free:
            return None, n_iter
        N = effective_rows(n, self.epsilon, self.delta, self.adjacency)
        if self._fewest(n_features) > N:
            return None, n_iter
        # Each pick must beat log(2 d) sqrt(T)/N; ten steps at least, and the ball grows with them.
        picks = N / (PER_PICK * math.log(2.0 * n_features))
        n_iter = int(self.n_iter or min(max(picks**2, 10.0), 1000.0))
        numbers, width = self._labels_are_numbers, math.sqrt(n_features)
        narrow = n_features <= MAX_COLUMNS and n * n_features <= MAX_ENTRIES
        table = numbers and narrow and 2.5 * width <= N
        scales = Scales(
            way="table" if table else "entries",
            n_samples=n,
            longest=min(domain.row_norm or math.inf, bound * width),
            largest=bound,
            reach=self._ball_reach(n_iter, n_outputs),
            numbers=numbers,
        )
        if not math.isinf(self.epsilon):  # before anything is spent
            scales.check(float(domain.target_bound or 1.0) if numbers else 1.0)
        return scales, n_iter

    def _ball_reach(self, n_iter: int, n_outputs: int = 1) -> float:
        """Largest margin of the ball, in cutoffs where targets are numbers: it grows with the steps (for numbers with
        their root, or early picks overshoot). Classes share one ball: picks that noise blurs gain by the root of their
        number, and lose by more."""
        if not self._labels_are_numbers:
            return min(max(n_iter / 10.0, 0.5), 30.0) * math.sqrt(n_outputs)
        return min(max(math.sqrt(n_iter / 10.0), 0.5), 10.0)

    def _fewest(self, n_features: int) -> float:
        """Effective rows below which not even ten picks can be seen."""
        return max(MIN_EFFECTIVE_ROWS_FOR_REGRESSION, PER_PICK / 2.0 * math.log(2.0 * n_features))

    @property
    def _free(self) -> bool:
        """Whether the loss may be chosen with the scales."""
        return True


def sizes_of(scales: Scales | None, n_features: int) -> dict[str, int]:
    """How many numbers each release of scales has, by phase."""
    if scales is None:
        return {}
    sizes = {"mean": 1, "spread": QUANTILE_COUNTS} if scales.numbers else {}
    if scales.way == "entries":
        return {**sizes, "entry": QUANTILE_COUNTS}
    return sizes | {"length": 2 * QUANTILE_COUNTS, "centre": n_features, "columns": n_features}


def beside(mu: float, sizes: dict[str, int]) -> dict[str, Event]:
    """Events of sums that get their shares of a budget, where `mu` is what the rest is worth."""
    shares = {name: BUDGET_SHARES[name] for name in sizes}
    whole = mu / math.sqrt(1.0 - sum(shares.values()))
    return {
        name: RoundedGaussian(1.0 / (whole * math.sqrt(share)), 1.0, sizes[name])
        for name, share in shares.items()
    }

"""The event for Google's dp-accounting (`pip install dp-accounting`): its accountants learn bounded-range steps.

>>> import dp_accounting
>>> from dp_bounded_range.google import BoundedRangeDpEvent, BoundedRangePLDAccountant
>>> accountant = BoundedRangePLDAccountant(value_discretization_interval=1e-3)
>>> _ = accountant.compose(BoundedRangeDpEvent(eta=0.1), 100)      # a hundred exponential mechanisms
>>> _ = accountant.compose(dp_accounting.GaussianDpEvent(10.0))    # beside whatever it knows already
>>> print(f"{accountant.get_epsilon(1e-6):.2f}")
2.30

Steps of one range are counted and priced together when the accountant is asked: a run of a hundred costs less
than a hundred runs of one.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import attr
import numpy as np
from dp_accounting import dp_event
from dp_accounting.pld import pld_pmf, pld_privacy_accountant, privacy_loss_distribution
from dp_accounting.rdp import rdp_privacy_accountant

import dp_bounded_range

__all__ = ["BoundedRangeDpEvent", "BoundedRangePLDAccountant", "BoundedRangeRdpAccountant", "pld"]


@attr.s(frozen=True, slots=True, auto_attribs=True)
class BoundedRangeDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """One exponential mechanism, or any step whose privacy loss has range at most `eta`.

    For an exponential mechanism with weights exp(epsilon' score/(2 sensitivity)): eta = epsilon', or half of it
    where a row can move scores in one direction only.
    """

    eta: float


def pld(eta: float, count: int, value_discretization_interval: float = 1e-4) -> Any:
    """The privacy loss distribution of `count` adaptive steps, pessimistic, the same for add and remove.

    >>> print(f"{pld(0.1, 100, 1e-3).get_epsilon_for_delta(1e-6):.3f}")
    2.255
    """
    first, masses, infinite = dp_bounded_range.masses(eta, count, value_discretization_interval)
    pmf = pld_pmf.DensePLDPmf(value_discretization_interval, first, masses, infinite, True)
    return privacy_loss_distribution.PrivacyLossDistribution(pmf)


class BoundedRangePLDAccountant(pld_privacy_accountant.PLDAccountant):  # type: ignore[misc]
    """dp-accounting's PLDAccountant, which also takes `BoundedRangeDpEvent`, alone or composed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._steps: Counter[float] = Counter()

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if not isinstance(event, BoundedRangeDpEvent):
            return super()._maybe_compose(event, count, do_compose)
        if do_compose:
            self._steps[event.eta] += count
        return None

    def _total(self) -> Any:
        total = self._pld
        for eta, count in self._steps.items():
            total = total.compose(pld(eta, count, self._value_discretization_interval))
        return total

    def get_epsilon(self, target_delta: float) -> float:
        """The epsilon of everything composed so far; infinite after a non-private event."""
        if self._contains_non_dp_event:
            return float("inf")
        return float(self._total().get_epsilon_for_delta(target_delta))

    def get_delta(self, target_epsilon: float) -> float:
        """The delta of everything composed so far; 1 after a non-private event."""
        if self._contains_non_dp_event:
            return 1.0
        return float(self._total().get_delta_for_epsilon(target_epsilon))


class BoundedRangeRdpAccountant(rdp_privacy_accountant.RdpAccountant):  # type: ignore[misc]
    """dp-accounting's RdpAccountant, which also takes `BoundedRangeDpEvent`."""

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if not isinstance(event, BoundedRangeDpEvent):
            return super()._maybe_compose(event, count, do_compose)
        if do_compose:
            # A curve rises with the order, so order 1 is covered by the next one above it.
            curve = dp_bounded_range.renyi(event.eta, np.maximum(self._orders, 1.0 + 1e-9))
            self._rdp += count * curve
        return None

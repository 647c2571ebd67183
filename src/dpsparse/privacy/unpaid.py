"""Fits that no ledger pays are counted, and a warning says what they add up to on the same rows.

Every guarantee is about one fit. Cross-validation, stacking, one-vs-rest and calibration fit many times, and a fit does
not know who asked for it. So each process counts its private fits without a ledger. The count holds events of plans,
which are public, and nothing about rows.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from typing import TYPE_CHECKING

from dpsparse.exceptions import UnpaidFitsWarning
from dpsparse.privacy.conversion import renyi_epsilon
from dpsparse.privacy.events import Event, Repeated, Sequence

if TYPE_CHECKING:
    from dpsparse.privacy.plan import Plan

# Fits of this process by what their events are about; events of one adjacency and unit can be composed.
_fits: dict[tuple[str, str], Counter[Event]] = {}
_lock = threading.Lock()


def count_unpaid_fit(plan: Plan, stacklevel: int = 3) -> None:
    """Count a fit without a ledger; warn at the 2nd, 4th, 8th, 16th ... of the process.

    The warning comes before noise is drawn, so that nothing is released where warnings are errors. Fits that promise
    nothing (seeded, noiseless) are not counted: they have a warning of their own.
    """
    if not plan.guarantee.proven:
        return
    with _lock:
        events = _fits.setdefault((plan.adjacency, plan.unit), Counter())
        events[plan.event] += 1
        n_fits = events.total()
        together = Sequence(tuple(Repeated(event, n) for event, n in events.items()))
    if n_fits == 1 or n_fits & (n_fits - 1):
        return
    # The Renyi bound takes a millisecond. The exact one takes seconds for some methods and is a few per cent lower.
    spent = renyi_epsilon(together, plan.delta)
    warnings.warn(
        f"This process has made {n_fits} private fits without a ledger. If they used the same rows, they spent epsilon "
        f"{spent:.3g} at delta {plan.delta:g} together. Pass ledger=Ledger(path, epsilon=...) to every fit: it keeps "
        "the account, refuses what exceeds it, and ends this warning.",
        UnpaidFitsWarning,
        stacklevel=stacklevel,
    )

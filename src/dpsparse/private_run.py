"""Private runs: the one way from a plan and private rows to a published result.

    refuse what no proof covers -> warn -> reserve -> release -> commit

No step goes back. Everything that can be refused is refused before the ledger is charged, and the ledger is charged
before noise is drawn. Fits, preparation steps, pipelines, searches, evaluations and inference all pass here.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from dpsparse._checks import show_number
from dpsparse.accounting.conversion import dominated_epsilon
from dpsparse.accounting.conversion import epsilon as event_epsilon
from dpsparse.accounting.events import Event, Exponential, Repeated, Sequence, leaves
from dpsparse.accounting.guarantee import EVALUATED, Plan
from dpsparse.exceptions import DomainError, NotPrivateWarning, ParameterError, UnpaidFitsWarning
from dpsparse.jit import NO_NUMBA, numba
from dpsparse.mechanisms.top_k import MOST_CANDIDATES
from dpsparse.random import make_generator
from dpsparse.release import Releases

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger
    from dpsparse.rows import Rows

T = TypeVar("T")
MakeReleases = Callable[[Plan], Releases]

# Unpaid fits of this process, by what their events are about: events of one adjacency and unit can be composed. They
# are public, and hold nothing about rows.
_unpaid: dict[tuple[str, str], Counter[Event]] = {}
_lock = threading.Lock()
_FEW_FITS = 4
_RUN_IN_TASK = "DPSPARSE_FIT_IN_TASK"

# None makes the ordinary releases. The audit sets its own, which write down everything that leaves.
_make_releases: ContextVar[MakeReleases | None] = ContextVar("make_releases", default=None)


def private_run(
    plan: Plan,
    rows: Rows | None,
    body: Callable[[Releases], T],
    *,
    ledger: Ledger | None = None,
    random_state: Any = None,
) -> T:
    """The result of `body`, which may look at private rows through the releases that `plan` pays for.

    `rows` are asked for their number and width, to refuse tables that the arithmetic is not proven for; None where
    any table is covered. An error inside `body` leaves the reservation in the ledger: something may have been released.
    """
    if numba is None:
        raise ImportError(NO_NUMBA)
    _refuse_inside_task(plan)
    _refuse_too_many_rows(plan, rows)
    _refuse_too_many_candidates(plan, rows)
    _warn_if_not_private(plan)
    # An evaluation reads other rows than the fit, and an audit makes its rows up.
    if ledger is None and plan.table != EVALUATED and _make_releases.get() is None:
        _count_unpaid_fit(plan)
    receipt = None if ledger is None else ledger.reserve(plan)
    result = body(make_releases(plan, random_state))
    if receipt is not None:
        receipt.commit()
    return result


def make_releases(plan: Plan, random_state: Any = None) -> Releases:
    """The releases of a run that follows `plan`; a seed makes them repeatable, and so not private."""
    make = _make_releases.get()
    return make(plan) if make else Releases(plan, make_generator(random_state))


@contextmanager
def releases_made_by(make: MakeReleases) -> Iterator[None]:
    """Runs inside this context get their releases from `make`: for audits, which record or replay them."""
    token = _make_releases.set(make)
    try:
        yield
    finally:
        _make_releases.reset(token)


def _refuse_inside_task(plan: Plan) -> None:
    """Dask and Spark may run a task twice, and a private run that is carried out twice spends twice."""
    if math.isinf(plan.epsilon) or os.environ.get(_RUN_IN_TASK) == "1":
        return
    inside = []
    if (distributed := sys.modules.get("distributed")) is not None:
        with suppress(ValueError):
            inside.append((distributed.get_worker(), "Dask"))
    if (pyspark := sys.modules.get("pyspark")) is not None:
        inside.append((pyspark.TaskContext.get(), "Spark"))
    for task, engine in inside:
        if task is not None:
            raise ParameterError(
                f"{plan.method} was called inside a {engine} task. {engine} may run a task again, and every run spends "
                f"epsilon: call it outside; fits take Rows.from_{engine.lower()}. The environment variable "
                f"{_RUN_IN_TASK}=1 on the workers allows it nevertheless."
            )


def _refuse_too_many_rows(plan: Plan, rows: Rows | None) -> None:
    """A guarantee is about tables that are not refused, so the rows of the table count here, not the declared number.
    A plan without phases releases nothing."""
    if rows is None or plan.max_rows is None or not plan.phases:
        return
    if len(rows) * rows.rows_per_unit > plan.max_rows:
        raise DomainError(
            f"{plan.method} is proven for tables of up to {plan.max_rows} rows. DPGradientClassifier and "
            "DPGradientRegressor take more. Nothing was spent."
        )


def _refuse_too_many_candidates(plan: Plan, rows: Rows | None) -> None:
    """Where rows are read in parts, `mechanisms/top_k.py` draws among all weights (columns by classes) of two signs. Of
    a source every table is refused: whether its rows fit in memory is a fact about the rows."""
    if rows is None or not rows.from_source:
        return
    classes = rows.domain.classes
    n_outputs = len(classes) if isinstance(classes, tuple) and len(classes) > 2 else 1
    n_candidates = 2 * (rows.n_features + 1) * n_outputs
    picks = any(isinstance(leaf, Exponential) for leaf in leaves(plan.event))
    if picks and n_candidates > MOST_CANDIDATES:
        raise DomainError(
            f"{plan.method} is proven for up to {MOST_CANDIDATES // 2} weights of rows from files, batches or a "
            "cluster, and this table has more. Hash its columns, or use DPGradientClassifier. Nothing was spent."
        )


def _warn_if_not_private(plan: Plan) -> None:
    if plan.randomness == "seeded":
        reason = (
            "random_state makes the noise repeatable, so this result is NOT private. "
            "Leave random_state=None for a result you publish."
        )
    elif not plan.proven:
        reason = "this is the published form of a paper, for reproduction, and NOT proven private."
    else:
        return
    # Two frames above private_run: the line of the user who called fit.
    warnings.warn(f"{plan.method}: {reason}", NotPrivateWarning, stacklevel=4)


def _count_unpaid_fit(plan: Plan) -> None:
    """Count a fit without a ledger; warn at the 2nd, 4th, 8th, 16th ... of the process.

    Every guarantee is about one fit. Cross-validation, stacking, one-vs-rest and calibration fit many times, and a fit
    does not know who asked for it. A search of scikit-learn with `n_jobs` fits in several processes, and each counts
    its own fits alone; a ledger counts them all.

    The warning comes before noise is drawn, so that nothing is released where warnings are errors. Fits that promise
    nothing (seeded, noiseless) are not counted: they have a warning of their own.

    Of many fits the dominating Gaussians are added: the product of many kinds of steps takes seconds, and its grids
    become so coarse that it is no lower.
    """
    if not plan.guarantee.proven:
        return
    with _lock:
        events = _unpaid.setdefault((plan.adjacency, plan.unit), Counter())
        events[plan.event] += 1
        n_fits = events.total()
        together = Sequence(tuple(Repeated(event, n) for event, n in events.items()))
    if n_fits == 1 or n_fits & (n_fits - 1):
        return
    price = event_epsilon if n_fits <= _FEW_FITS else dominated_epsilon
    spent = price(together, plan.delta)
    warnings.warn(
        f"This process has made {n_fits} private fits without a ledger. If they used the same rows, they spent epsilon "
        f"{spent:.3g} at delta {show_number(plan.delta)} together. Pass ledger=Ledger(path, epsilon=...) to every fit: "
        "it keeps the account, refuses what exceeds it, and ends this warning.",
        UnpaidFitsWarning,
        stacklevel=4,
    )

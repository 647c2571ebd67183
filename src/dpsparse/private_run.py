"""The corridor: the one way from a plan and private rows to a published result.

    refuse too many rows -> warn -> reserve -> release -> commit

No step goes back. Everything that can be refused is refused before the ledger is charged, and the ledger is charged
before noise is drawn. Fits, preparation steps, pipelines, searches, evaluations and inference all pass here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from dpsparse.exceptions import DomainError, NotPrivateWarning
from dpsparse.privacy.guarantee import EVALUATED
from dpsparse.privacy.plan import Plan
from dpsparse.privacy.unpaid import count_unpaid_fit
from dpsparse.random import make_generator
from dpsparse.release import Releases

if TYPE_CHECKING:
    from dpsparse.privacy.ledger import Ledger
    from dpsparse.rows import Rows

T = TypeVar("T")
MakeReleases = Callable[[Plan], Releases]


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

    `rows` are counted to refuse tables of more rows than the arithmetic is proven for; None where any number is
    proven. An error inside `body` leaves the reservation in the ledger: something may have been released.
    """
    _refuse_too_many(plan, rows)
    _warn_if_not_private(plan)
    if ledger is None and plan.table != EVALUATED:  # an evaluation reads other rows than the fit
        count_unpaid_fit(plan, stacklevel=4)
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


def _refuse_too_many(plan: Plan, rows: Rows | None) -> None:
    """A guarantee is about tables that are not refused, so the rows of the table count here, not the declared number.
    A plan without phases releases nothing."""
    if rows is None or plan.max_rows is None or not plan.phases:
        return
    if len(rows) * rows.rows_per_unit > plan.max_rows:
        raise DomainError(
            f"{plan.method} is proven for tables of up to {plan.max_rows} rows. DPGradientClassifier and "
            "DPGradientRegressor take more. Nothing was spent."
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

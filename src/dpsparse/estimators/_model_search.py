"""Below scikit-learn's cross-validation and searches: a search that the ledger cannot pay in full is refused at once.

scikit-learn tells an estimator nothing about the search it is part of: it is cloned, given parameters, fitted. The one
place where the number of fits is written down is the call of `_fit_and_score`, whose arguments `candidate_progress`
and `split_progress` travel to worker processes as well; so the stack is read. Nothing depends on it: where the numbers
are missing (cross_val_score, other versions) every fit is judged by the ledger alone, as before, and no reservation for
the whole search is made, since a search may end early and what is reserved is spent.

What was looked at instead: a clone hook (`__sklearn_clone__`) and a count in the ledger see fits one by one and never
how many there will be; scikit-learn's callbacks know it from 1.9 on, in a private attribute that a pipeline without
callback support does not hand on. Once the oldest version we support has public callbacks, this file goes.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpsparse.exceptions import BudgetError
from dpsparse.privacy.conversion import epsilon as event_epsilon
from dpsparse.privacy.events import Event, Repeated, Sequence
from dpsparse.privacy.plan import Phase, Plan

if TYPE_CHECKING:
    from dpsparse.privacy.ledger import Ledger


def inside_model_search() -> bool:
    """True below scikit-learn's cross-validation."""
    return _call() is not None


# What was said of searches that were refused in this process. scikit-learn goes on after a failed fit, and towards
# its end a search always looks payable: without this memory it would spend on fits whose search is lost. The same
# sentence for all of them makes it report one failure instead of one a fit.
_refused: dict[tuple[Any, ...], str] = {}


def refuse_unpayable_search(plan: Plan, ledger: Ledger, name: str) -> None:
    """Raise if what is left of the search around this fit costs more than the ledger has; nothing is spent."""
    call = _call()
    progress = _progress(call) if call is not None and plan.proven else None
    if call is None or progress is None:
        return
    (candidate, n_candidates), (part, n_parts) = progress
    search = (repr(ledger), name, n_candidates, n_parts)
    done = candidate * n_parts + part
    if done == 0:
        _refused.pop(search, None)
    if search not in _refused:
        n_left = n_candidates * n_parts - done
        n_fits = n_left + bool(getattr(call.get("caller"), "refit", False))
        scores = _paid_scores(call, ledger)
        event = Sequence(
            (Repeated(plan.event, n_fits), *(Repeated(score, n_left) for score in scores))
        )
        total = event_epsilon(event, plan.delta)
        if ledger.would_allow(replace(plan, phases=(Phase("search", event),), epsilon=total)):
            return
        _refused[search] = (
            f"The search still has {n_fits} fits of {name} to make"
            f"{f' and {n_left * len(scores)} private scores' if scores else ''}, which together cost epsilon "
            f"{total:.4g} at delta {plan.delta:g}; the ledger has room for {ledger.remaining():.4g}. Nothing was "
            "spent. dpsparse.DPSearchCV searches the same candidates for one epsilon of your choice, such as "
            f"{plan.epsilon:g}; its plan says beforehand whether that is worth it."
        )
    raise BudgetError(_refused[search])


def _call() -> dict[str, Any] | None:
    """Arguments of the innermost `_fit_and_score` of scikit-learn that this runs in, if any."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "_fit_and_score":
            return dict(frame.f_locals)
        frame = frame.f_back
    return None


def _paid_scores(call: dict[str, Any], ledger: Ledger) -> list[Event]:
    """What every fit's scores cost the same ledger: a scorer that pays says so by its `event`."""
    given = call.get("scorer")
    scorers = getattr(given, "_scorers", None) or (
        given if isinstance(given, dict) else {"": given}
    )
    paying = [s for s in scorers.values() if repr(getattr(s, "ledger", None)) == repr(ledger)]
    times = 2 if call.get("return_train_score") else 1
    return [scorer.event for scorer in paying if hasattr(scorer, "event")] * times


def _progress(call: dict[str, Any]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """(candidate, of how many), (split, of how many), counted from 0; None where it is not told."""
    try:
        (candidate, n_candidates), (part, n_parts) = (
            call["candidate_progress"],
            call["split_progress"],
        )
    except (KeyError, TypeError, ValueError):
        return None
    return (candidate, n_candidates), (part, n_parts)

"""The settings and the price of noisy gradients, from public facts alone."""

from __future__ import annotations

from dpsparse.accounting import REST, Budget
from dpsparse.methods.facts import Facts
from dpsparse.methods.gradient.defaults import MAX_STEPS
from dpsparse.methods.gradient.solve import Settings
from dpsparse.methods.look.plan import add_look
from dpsparse.methods.look.rows import choose_rows
from dpsparse.methods.look.targets import ClassWeight
from dpsparse.nonzeros import NNonzero, count_event


def choose(
    facts: Facts,
    *,
    n_iter: int | None,
    step_size: float | None,
    n_nonzero: NNonzero,
    class_weight: ClassWeight = None,
) -> Settings:
    """What a user asked for, and what follows from public facts for the rest."""
    look = choose_rows(facts, class_weight)
    return Settings(look=look, n_iter=n_iter, step_size=step_size, n_nonzero=n_nonzero)


def price(settings: Settings, budget: Budget) -> None:
    """Add the releases of `solve` to `budget`."""
    look = settings.look
    add_look(budget, look.looks)
    numbers = 3 * MAX_STEPS * (look.n_features + 1) * look.n_outputs  # of all steps, at most
    note = "all steps together: sum of (sensitivity/scale)^2 over the steps"
    budget.gaussian("gradients", REST, numbers, note)
    count = count_event(settings.n_nonzero)
    if count is not None:
        budget.fixed("count", count, "noisy number of weights")

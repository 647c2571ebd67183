"""The settings and the price of hard thresholding, from public facts alone."""

from __future__ import annotations

from dpsparse.accounting import REST, Budget
from dpsparse.methods.facts import Facts
from dpsparse.methods.hard_threshold.defaults import LINE_BUDGET_SHARE, MIN_STEPS, choose_steps
from dpsparse.methods.hard_threshold.solve import Settings
from dpsparse.methods.look.plan import add_look
from dpsparse.methods.look.rows import choose_rows


def choose(facts: Facts, *, n_iter: int | None, n_nonzero: int) -> Settings:
    """Steps that effective rows pay for, unless a user says."""
    if n_iter is None:
        counted = facts.domain.n_samples is not None or not facts.is_private
        n_iter = choose_steps(facts.effective_rows, facts.n_features) if counted else MIN_STEPS
    kept = min(n_nonzero, facts.n_features * facts.n_outputs)
    return Settings(look=choose_rows(facts), n_iter=n_iter, n_nonzero=kept)


def price(settings: Settings, budget: Budget) -> None:
    """Add the releases of `solve` to `budget`."""
    look = settings.look
    add_look(budget, look.looks)
    line = "one noisy number a step: how far its step may go"
    budget.gaussian("line", LINE_BUDGET_SHARE, settings.n_iter, line)
    entries = settings.n_iter * (look.n_features + 1) * look.n_outputs
    budget.gaussian("gradients", REST, entries, "all steps together")

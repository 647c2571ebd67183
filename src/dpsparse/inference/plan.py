"""What intervals and tests share: checks, the price, and the walk from private rows to releases."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsparse._checks import check_terms
from dpsparse.accounting.budget import Budget
from dpsparse.accounting.guarantee import FITTED, PERSON, ROW, Plan
from dpsparse.domain import Domain
from dpsparse.exceptions import ParameterError
from dpsparse.methods.base import BaseDPClassifier
from dpsparse.random import is_seeded
from dpsparse.rows import Rows

RAREST_CLASS = 0.01  # share of rows: no class is taken to be rarer


def check(
    domain: Any, epsilon: Any, delta: Any, adjacency: Any, ledger: Any, seed: Any, name: str
) -> Domain:
    """Refuse what no data could make right; the domain, of two classes."""
    if not isinstance(domain, Domain):
        raise ParameterError(f"domain is required: {name} needs the public bounds Domain(...).")
    check_terms(epsilon, delta, adjacency, ledger, "exact answer")
    is_seeded(seed)
    if domain.classes is None and domain.target_bound is not None:
        raise ParameterError(
            f"{name} is for labels of two classes; it has no version for regression."
        )
    if len(domain.class_labels()) != 2:
        raise ParameterError(f"{name} is for two classes; declare Domain(classes=[0, 1]).")
    return domain


def price(
    name: str,
    shares: dict[str, float],
    sizes: dict[str, int],
    domain: Domain,
    *,
    epsilon: float,
    delta: float,
    adjacency: str,
    seed: Any,
    assumptions: tuple[str, ...],
    table: str = FITTED,
) -> Plan:
    """Gaussian releases with these shares of the budget."""
    budget = Budget(epsilon, delta)
    for phase, share in shares.items():
        budget.gaussian(phase, share, sizes[phase])
    if adjacency == "replace-one":
        assumptions = (*assumptions, f"the number of {domain.unit}s is public (replace-one)")
    plan = Plan(
        method=name,
        phases=budget.phases(),
        epsilon=float(epsilon),
        delta=delta,
        adjacency=adjacency,
        source="docs/proofs/inference.md",
        assumptions=assumptions,
        parameters={"mu": budget.mu},
        unit=PERSON if domain.unit == "person" else ROW,
        n_units=domain.n_samples,
        table=table,
    )
    return plan.seeded() if is_seeded(seed) else plan


def read(X: Any, y: Any, domain: Domain, groups: Any) -> tuple[Rows, np.ndarray | None]:
    """Clipped rows with class codes, and the declared bounds of every column, where there are any: such columns are
    divided by the larger one.

    Methods of this room bound rows themselves, so an entry bound that nobody declared clips nothing: it would change
    what is estimated, and no result could say so.
    """
    model = BaseDPClassifier(domain)
    model._check_groups(groups)
    X, y, labels, limits = model._read_table(X, y, model)
    return Rows.clip(X, y, domain, labels=labels, groups=groups), limits

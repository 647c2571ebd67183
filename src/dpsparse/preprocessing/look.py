"""`dp_look`: a few private counts of a raw table, before anybody pays for a fit.

    target     rows of every declared label, and of none; or below, within and above the declared range, and missing
    columns    cells of every column that are numbers, dates, names or missing

A row is in one cell of every column, so its counts have norm sqrt(columns): docs/proofs/preparation.md, Lemma 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsparse._cells import column_cells, label_codes, mark_missing
from dpsparse._checks import check_terms
from dpsparse.accounting import REST, Budget, Guarantee, Plan
from dpsparse.accounting.guarantee import PERSON, RAW, ROW
from dpsparse.domain import Domain
from dpsparse.exceptions import DomainError, ParameterError, SchemaError
from dpsparse.preprocessing._step import MIN_COUNT_IN_SDS, SOURCE, check_persons
from dpsparse.preprocessing._tables import KINDS, Table, kinds, numbers, read_table
from dpsparse.random import is_seeded
from dpsparse.release import Releases, private_run
from dpsparse.rows import RawRows

if TYPE_CHECKING:
    from dpsparse.ledger.account import Ledger


@dataclass(frozen=True)
class TableLook:
    """Released counts. One that does not stand out of its noise is shown as 0."""

    n_units: float
    target: dict[str, float]
    columns: dict[str, dict[str, float]]
    target_sd: float
    column_sd: float
    unit: str
    privacy_: Guarantee
    plan_: Plan

    def shares(self, column: str) -> dict[str, float]:
        """The shares of a column's cells by kind, those that stand out of the noise."""
        counts = self.columns[column]
        clear = {k: c for k, c in counts.items() if c > MIN_COUNT_IN_SDS * self.column_sd}
        return {kind: count / max(sum(clear.values()), 1.0) for kind, count in clear.items()}

    def __str__(self) -> str:
        least = MIN_COUNT_IN_SDS * self.target_sd
        told = [f"{n}: about {c:,.0f}" for n, c in self.target.items() if c > least]
        lines = [
            f"about {self.n_units:,.0f} {self.unit}s",
            f"target  {', '.join(told) or 'all counts are noise'} (+- {2 * self.target_sd:,.0f})",
        ]
        for column in self.columns:
            cells = ", ".join(f"{kind} {share:.0%}" for kind, share in self.shares(column).items())
            lines.append(f"{column}  {cells or 'all counts are noise'}")
        return "\n".join(lines)


def plan_look(
    domain: Domain, n_columns: int, *, epsilon: float, delta: float = 1e-6,
    adjacency: str = "add-remove", ledger: Any = None, random_state: Any = None,
) -> Plan:  # fmt: skip
    """What `dp_look` spends on a table of `n_columns` columns, without any data."""
    check_terms(epsilon, delta, adjacency, ledger, "exact counts")
    budget = Budget(epsilon, delta)
    n_cells = len(_target_cells(domain))
    budget.gaussian("target", 0.2, n_cells, "rows by declared label or range")
    size = n_columns * (len(KINDS) + 1)
    budget.gaussian("columns", REST, size, "rows by kind of cell, of each column")
    plan = Plan(
        method="dp_look",
        phases=budget.phases(),
        epsilon=float(epsilon),
        delta=delta,
        adjacency=adjacency,
        source=SOURCE,
        assumptions=("what the domain declares about the target is public",),
        unit=PERSON if domain.unit == "person" else ROW,
        table=RAW,
        parameters={"mu": budget.mu},
        n_units=domain.n_samples,
    )
    return plan.seeded() if is_seeded(random_state) else plan


def dp_look(
    X: Any,
    y: Any,
    *,
    domain: Domain,
    epsilon: float,
    delta: float = 1e-6,
    adjacency: str = "add-remove",
    missing_values: tuple[str, ...] = (),
    ledger: Ledger | None = None,
    groups: Any = None,
    random_state: Any = None,
) -> TableLook:
    """How many rows a raw table has, of which labels, and what its cells are: private counts for a small price.

    Parameters
    ----------
    X : a data frame, an Arrow table, a dict of columns, or a 2d array
        The private rows.
    y : array of shape (n_samples,)
        Labels or numbers; one that is not declared is counted, not refused.
    domain : Domain
        The declared classes, or the range of targets.
    epsilon, delta, adjacency, ledger, random_state : as in every estimator
        Price of the counts, the account that pays it, and their noise.
    missing_values : tuple of str, default=()
        Words that stand for a missing value, as for `DPTablePreparer`.
    groups : array of shape (n_samples,), optional
        The person of every row, with ``Domain(unit="person")``. Persons are counted then: of a person with
        several rows each counts in part.

    Returns
    -------
    TableLook
        Released counts with the standard deviation of their noise.

    Examples
    --------
    >>> from dpsparse import Domain
    >>> from dpsparse.preprocessing import dp_look
    >>> table = {"age": [40, 50, 30, 60, None] * 4_000, "sex": ["f", "m", "f", "f", "m"] * 4_000}
    >>> look = dp_look(table, [0, 1, 1, 1, 0] * 4_000, domain=Domain(classes=[0, 1]), epsilon=1.0)
    >>> round(look.shares("age")["missing"], 1)
    0.2
    """
    if not isinstance(domain, Domain):
        raise ParameterError(
            "domain is required: dp_look needs the declared classes or range of the target."
        )
    if (groups is None) != (domain.unit == "row"):
        raise ParameterError("groups and Domain(unit='person') belong together: give both or none.")
    table, targets = read_table(X), column_cells(y)
    plan = plan_look(
        domain, len(table.columns), epsilon=epsilon, delta=delta, adjacency=adjacency,
        ledger=ledger, random_state=random_state,
    )  # fmt: skip
    if len(targets) != table.n_rows:
        raise SchemaError("X and y have different numbers of rows; pass one target per row.")
    check_persons(groups, table)

    def look(releases: Releases) -> TableLook:
        rows = releases.admit(RawRows.of((table, targets), groups=groups))
        cells = _target_cells(domain)
        query = rows.numbers(partial(_target_codes, domain, missing_values), 1).codes(len(cells))
        target_sd, target = releases.scale("target", query), releases.gaussian("target", query)[0]
        kinds_of_rows = rows.numbers(partial(_kind_codes, missing_values), len(table.names))
        query = kinds_of_rows.codes(len(KINDS) + 1)
        column_sd, columns = releases.scale("columns", query), releases.gaussian("columns", query)
        counts = [dict(zip((*KINDS, "missing"), row, strict=True)) for row in columns.tolist()]
        return TableLook(
            n_units=max(float(columns.sum(axis=1).mean()), 0.0),
            target=dict(zip(cells, target.tolist(), strict=True)),
            columns=dict(zip(table.names, counts, strict=True)),
            target_sd=float(target_sd),
            column_sd=float(column_sd),
            unit=domain.unit,
            privacy_=plan.guarantee,
            plan_=plan,
        )

    return private_run(plan, None, look, ledger=ledger, random_state=random_state)


def _target_cells(domain: Domain) -> list[str]:
    """What targets are counted by; the last cell is for those that are none of it."""
    if domain.classes is not None and not isinstance(domain.classes, str):
        return [*map(str, domain.class_labels().tolist()), "none of these"]
    if domain.target_bound is not None:
        return ["below the range", "within", "above", "missing"]
    raise DomainError("dp_look needs the declared classes or range of the target.")


def _target_codes(domain: Domain, missing: tuple[str, ...], cells: tuple[Table, Any]) -> np.ndarray:
    """The cell of every target."""
    targets = cells[1]
    if domain.classes is not None:
        labels = domain.class_labels()
        codes = label_codes(targets, labels)
        return np.where(codes < 0, len(labels), codes)[:, None]
    found = numbers(mark_missing(targets, missing))
    middle, bound = domain.target_middle, float(domain.target_bound or 0.0)
    side = (found >= middle - bound).astype(np.int64) + (found > middle + bound)
    return np.where(np.isnan(found), 3, side)[:, None]


def _kind_codes(missing: tuple[str, ...], cells: tuple[Table, Any]) -> np.ndarray:
    """The kind of every cell of every column."""
    found = [kinds(mark_missing(column, missing)) for column in cells[0].columns]
    codes = np.column_stack(found)
    return np.where(np.isnan(codes), len(KINDS), codes)

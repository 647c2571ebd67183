"""How many whole numbers one row contributes, for rows of boundary floats: at most the declared bound.

A fit on a small table is recorded; then each of several hundred rows is added (or put in place of another)
and the fit is replayed, so that every query differs by that row alone. The differences are whole numbers,
compared with the bound of their lemma in exact arithmetic.

    python -m dpsparse.audit.contributions          a table over all audit cases, both adjacencies
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpsparse.audit.replay import Subject, boundary_findings


@dataclass(frozen=True)
class Contributions:
    """The largest contribution to each phase, as a share of its integer bound, over so many rows."""

    largest: dict[str, float]
    n_rows: int
    complaint: str = ""  # the first of a replay

    def __str__(self) -> str:
        reached = ", ".join(f"{phase} {100 * x:.4f} %" for phase, x in self.largest.items())
        return self.complaint or f"{self.n_rows} rows: {reached}"


def contributions(
    estimator: Any, n_features: int = 7, *, every: int = 1, seed: int = 0
) -> Contributions:
    """Contributions of each `every`-th boundary row, all replayed on the way."""
    largest: dict[str, float] = {}
    n_rows = 0
    for finding in boundary_findings(Subject(estimator, n_features), every, seed):
        n_rows += 1
        for phase, share in finding.reached.items():
            largest[phase] = max(share, largest.get(phase, 0.0))
        if finding.complaints:
            complaint = f"{finding.complaints[0]} ({finding.pair.name})"
            return Contributions(largest, n_rows, complaint)
    return Contributions(largest, n_rows)


def main() -> None:
    """The table."""
    import click

    from dpsparse.audit.cases import cases

    for adjacency in ("add-remove", "replace-one"):
        for name, estimator in cases(adjacency):
            click.echo(f"{name:<44} {contributions(estimator)}")


if __name__ == "__main__":
    main()

"""`dpsparse budget`: open an account, look at it, check that nobody changed it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from dpsparse._checks import ADJACENCIES
from dpsparse.cli import options as opt
from dpsparse.cli.output import Group, budget_line, emit, say

_one_account = opt.option("--dataset", about="One account only.  [default: all]")


@click.group(cls=Group)
def budget() -> None:
    """Accounts of privacy budget; LEDGER is a file or a postgresql:// URL."""


@budget.command()
@click.argument("ledger")
@opt.option(
    "--epsilon",
    type=float,
    required=True,
    about="Limit for all releases about the data set together.",
)
@opt.option(
    "--delta",
    type=float,
    required=True,
    about="Delta of the limit; well below one over the number of rows.",
)
@opt.option(
    "--adjacency",
    type=click.Choice(ADJACENCIES),
    default="add-remove",
    about="Which tables are neighbours: one row more or less, or one row exchanged.",
)
@opt.option(
    "--unit",
    type=click.Choice(["row", "person"]),
    default="row",
    about="What is protected: single rows, or persons with all of their rows.",
)
@opt.option("--dataset", default="default", about="Name of the account.")
def create(ledger: str, **terms: Any) -> None:
    """Open an account; one that exists is only accepted with the same terms."""
    say(budget_line(opt.account(ledger, **terms)))


@budget.command()
@click.argument("ledger")
@_one_account
@opt.json_option
def show(ledger: str, dataset: str | None, as_json: bool) -> None:
    """What is spent, what is left, and every reservation in order."""

    record, lines = {}, []
    for account in _accounts(ledger, dataset):
        entries = account.history()
        record[account.dataset] = {
            **asdict(account.terms),
            "spent": account.spent(),
            "remaining": account.remaining(),
            "head": account.head,
            "entries": [{**asdict(entry), "event": str(entry.event)} for entry in entries],
        }
        lines.append(budget_line(account))
        for e in entries:
            state = "completed" if e.committed else "reserved, counts as spent"
            part = f" [{e.partition}]" if e.partition else ""
            lines.append(
                f"  {e.seq:>4}  {e.time[:19]}  {e.method}{part}  epsilon {e.epsilon:.4g}, "
                f"total {e.total:.4g}  {state}"
            )
    emit(record, "\n".join(lines), as_json)


@budget.command()
@click.argument("ledger")
@_one_account
@opt.option("--anchor", about="A hash that was noted earlier; it must still be in the ledger.")
@opt.json_option
def verify(ledger: str, dataset: str | None, anchor: str | None, as_json: bool) -> None:
    """Re-read the chain and re-add its totals; exit code 5 if a row was edited, removed or added."""
    accounts = _accounts(ledger, dataset)
    if anchor is not None and len(accounts) > 1:
        raise click.UsageError("State --dataset, the account the --anchor belongs to.")
    record = {
        account.dataset: {"entries": account.verify(anchor), "head": account.head}
        for account in accounts
    }
    lines = [
        f"{name}: {r['entries']} entries, unbroken, head {r['head']}" for name, r in record.items()
    ]
    emit(record, "\n".join(lines), as_json)


def _accounts(ledger: str, dataset: str | None) -> list[Any]:
    from dpsparse.ledger import Ledger

    names = Ledger.datasets(ledger) if dataset is None else [dataset]
    return [Ledger(ledger, dataset=name) for name in names]

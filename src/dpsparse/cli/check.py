"""`dpsparse check`: what a fit would make of a table, from its header and what is declared; with --look also from
private counts, which are paid for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpsparse._checks import show_name
from dpsparse._files import check_output, write_whole
from dpsparse._json import plain, readable
from dpsparse.cli import options as opt
from dpsparse.cli.output import budget_line, emit, emit_paid, keep_paid, stage
from dpsparse.exceptions import DPSparseError, ParameterError

if TYPE_CHECKING:
    from dpsparse.cli.job import Job
    from dpsparse.preprocessing import TableLook


@click.command()
@click.argument("data", required=False)
@opt.option(
    "--look",
    type=float,
    metavar="EPSILON",
    about="Spend this epsilon to count rows, labels and kinds of cells; 0.1 is enough for some thousand rows.",
)
@opt.output(
    "File of facts to write (.yaml), with a line for every column: edit it, then --domain takes it.",
    required=False,
)
@opt.takes("fit", "facts", "data", "columns", "ledger", "json")
def check(data: str | None, look: float | None, options: opt.Options) -> None:
    """What `fit` would make of DATA and what it would cost: from the header and your options. Free without --look.

    Give it the words of the fit. With --n-samples, or --look, it also says what accuracy to expect, on made-up rows.
    Without DATA state --n-features, the number of columns to come.
    """
    from dpsparse.cli.job import describe_job

    if options.output is not None:
        check_output(options.output, options.overwrite, options.inputs(data))
    job = describe_job(options, data)
    if job.n_columns is None or (data is None and job.prepares):
        raise click.UsageError(
            "State --n-features, the number of columns to come, or name the table: dpsparse check DATA --target COLUMN "
            "(its header alone is read). Preparation needs the table."
        )
    if options.output is not None:
        write_whole(options.output, facts_file(job).encode(), options.overwrite)
    if look is None:
        record, lines = describe(job)
        emit(record, "\n".join([*lines, *_price(job, record)]), options.as_json)
        return
    if not job.is_table:
        raise ParameterError("--look needs named columns (CSV, Excel, Parquet).")
    job.model()  # refuses what `fit` would refuse
    found = _look(job, look)
    if job.facts.domain.n_samples is None:
        counted = max(round(found.n_units), 1)  # a released number
        facts = replace(job.facts, domain=replace(job.facts.domain, n_samples=counted))
        job = replace(job, facts=facts)

    def show() -> None:
        record, lines = describe(job)
        lines += _price(job, record)
        record["look"] = plain_look(found)
        seen = [*str(found).splitlines(), *doubts(job, found)]
        lines += [f"{'look':<9} {show_name(line)}" for line in seen]
        lines.append(found.privacy_.headline + found.privacy_.caution_lines)
        emit_paid(record, "\n".join(lines), job.ledger, options.as_json)

    keep_paid(readable(plain(plain_look(found))), "look.json", show)


def facts_file(job: Job) -> str:
    """What the options state about DATA and its columns as a file, from names alone; no cell is read."""
    from dpsparse.domain.file import import_yaml, plain_facts

    if not job.is_table:
        raise ParameterError("A file of facts needs named columns (CSV, Excel, Parquet).")
    options, domain, roles = job.options, job.facts.domain, job.roles
    facts = plain_facts(domain)
    columns = facts.pop("columns", {})
    facts |= {"target": options.target, "person": options.person}
    facts |= {"missing_values": list(job.facts.missing_values)}
    stated = {name: value for name, value in facts.items() if value}
    dump = import_yaml().safe_dump
    lines = [
        f"# Public facts about {show_name(Path(str(job.data)).name)}: what is known without looking at its rows.\n"
        "# For every column state one of\n"
        "#   bounds: [0, 120]    lowest and highest number that can occur (with fill: 40 for missing values)\n"
        "#   categories: [f, m]  the names that can occur\n"
        "#   prepare: number     learnt privately; also: auto, date, category, hash, hash=128, text, words, drop\n"
        "# and, for the card, source: how you know it.\n"
    ]
    lines += [dump(stated, sort_keys=False, allow_unicode=True), "columns:\n"]
    for name in job.header:
        if name not in (options.target, options.person):
            role = roles.get(name, "auto")
            fact = columns.get(name, {})
            if not fact.keys() & {"bounds", "categories"}:
                hashed = role if isinstance(role, str) else f"hash={role.n_features}"
                fact = {"prepare": hashed} | fact
            # In braces, so that a list inside does not spread the facts of a column over several lines.
            text = dump({name: fact}, default_flow_style=True, width=10_000, allow_unicode=True)
            lines.append(f"  {text.strip()[1:-1]}\n")
    return "".join(lines)


def _look(job: Job, epsilon: float) -> TableLook:
    from dpsparse.cli.job import read_cells
    from dpsparse.preprocessing import dp_look
    from dpsparse.preprocessing.look import plan_look

    domain, options = job.facts.domain, job.options
    terms: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": options.delta,
        "adjacency": opt.adjacency_of(options, job.ledger) or "add-remove",
        "random_state": options.random_state,
    }
    plan_look(domain, len(job.features), **terms)  # before a long read
    rows = read_cells(job)
    with stage("looking"):
        return dp_look(
            rows.X, rows.y, domain=domain, groups=rows.persons, ledger=job.ledger,
            missing_values=job.facts.missing_values, **terms,
        )  # fmt: skip


def plain_look(found: TableLook) -> dict[str, Any]:
    """Released counts for a machine."""
    return {
        "n_units": found.n_units,
        "target": found.target,
        "columns": found.columns,
        "sd": {"target": found.target_sd, "columns": found.column_sd},
        "guarantee": found.privacy_.to_dict(),
    }


def doubts(job: Job, found: TableLook) -> list[str]:
    """Columns whose released counts contradict what is declared about them."""
    from dpsparse.preprocessing._step import MIN_COUNT_IN_SDS

    *_, strange = found.target.values()  # the last cell: missing targets, or not declared ones
    some = [
        "a missing target or another label stops `fit`; --drop-missing-target leaves out rows without a target"
    ]
    return (some if strange > MIN_COUNT_IN_SDS * found.target_sd else []) + [
        f"{name} is taken for numbers, and {found.shares(name)['category']:.0%} of its cells are names"
        for role in ("numbers", "number", "bounded")
        for name in roles(job).get(role, [])
        if found.shares(name).get("category", 0.0) > 0.05
    ]


def describe(job: Job) -> tuple[dict[str, Any], list[str]]:
    """What is known about a fit without its price, as a record and as lines."""
    record: dict[str, Any] = {"data": job.data, "notes": job.notes(), "roles": roles(job)}
    lines = [("table", _table(job)), ("target", _target(job)), ("persons", _persons(job))]
    lines += [
        (role, f"{len(names)}: {', '.join(map(show_name, names[:30]))}{', ...' * (len(names) > 30)}")
        for role, names in record["roles"].items()
    ]  # fmt: skip
    lines += [("note", line) for line in record["notes"]]
    return record, [f"{name:<9} {line}" for name, line in lines]


def _price(job: Job, record: dict[str, Any]) -> list[str]:
    """The plan of the fit, whether the ledger would pay for it, and what accuracy to expect."""
    columns = job.n_columns
    assert columns is not None  # else `check` has refused
    price = job.model().plan(columns)
    text = str(price)
    record |= {"guarantee": price.guarantee.to_dict(), "parameters": dict(price.parameters)}
    if job.ledger is not None:
        record["allowed"] = job.ledger.would_allow(price)
        verdict = "allow" if record["allowed"] else "REFUSE"
        text += f"\nthe ledger would {verdict} it; {budget_line(job.ledger)}"
    return [f"expect    {_expected(job, columns, record)}", text]


def roles(job: Job) -> dict[str, list[str]]:
    """The feature columns by what is done with them."""
    if not job.is_table:
        return {}
    if not job.prepares:
        return {"numbers": job.features}
    domain, stated = job.facts.domain, job.roles
    found: dict[str, list[str]] = {}
    for name in job.features:
        if name in (domain.bounds or {}):
            role = "bounded"
        elif name in (domain.categories or {}):
            role = "listed"
        else:
            role = stated.get(name, "auto")
            role = role if isinstance(role, str) else "hash"
        found.setdefault(role, []).append(name)
    return found


def _table(job: Job) -> str:
    if job.data is None:
        return f"one of {job.n_columns} columns, to come"
    if not job.is_table:
        return "without named columns; its rows are sparse numbers"
    numbers = "taken as numbers (--prepare private learns what they are)"
    how = "prepared as below" if job.prepares else numbers
    return f"{len(job.header)} columns in the header, {len(job.features)} are features, {how}"


def _target(job: Job) -> str:
    domain = job.facts.domain
    name = show_name(job.options.target or "the labels of the file")
    if domain.classes is not None:
        return f"{name}: one of {', '.join(map(show_name, domain.classes))}"
    low, high = domain.target_range or (-(domain.target_bound or 0.0), domain.target_bound or 0.0)
    return f"{name}: a number between {low:g} and {high:g}"


def _persons(job: Job) -> str:
    if job.options.person is not None:
        account = "" if job.ledger else "; their account needs `dpsparse budget create --unit person`"  # fmt: skip
        return f"{show_name(job.options.person)}: persons are protected, with all of their rows{account}"
    return "single rows are protected; if a person may have several, name their column (--person)"


def _expected(job: Job, columns: int, record: dict[str, Any]) -> str:
    """What the fit reaches on made-up rows of this shape: whether the budget is enough for that many columns."""
    from dpsparse.model_selection import expected_accuracy

    rows = job.facts.domain.n_samples
    if rows is None:
        units = "persons" if job.options.person else "rows"
        return f"state --n-samples, a public guess of the number of {units}, to see it"
    domain = replace(job.facts.domain, bounds=None, categories=None, fill=None)  # of named columns
    inner = opt.make_estimator(job.options, domain, None).set_params(random_state=None)
    try:
        with stage("trying it on made-up rows"):
            forecast = expected_accuracy(
                inner, rows, columns, epsilon=job.options.epsilon, repeats=1
            )
    except DPSparseError:
        return "a forecast is made for two classes, or for numbers, at a finite epsilon"
    record["expected"] = str(forecast)
    head, *lines = (" ".join(line.split()) for line in str(forecast).splitlines())
    return f"{head} {'; '.join(lines)}"

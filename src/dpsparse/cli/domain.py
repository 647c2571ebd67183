"""`dpsparse domain`: a file of public facts about a table, from its header and the user's answers, never from cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dpsparse._checks import did_you_mean, show_name
from dpsparse._files import check_output, write_whole
from dpsparse.cli import options as opt
from dpsparse.cli.output import Group, emit, say
from dpsparse.exceptions import ParameterError, SchemaError

ABOUT = """\
# Public facts about {name}: what is known without looking at its rows.
# For every column state one of
#   bounds: [0, 120]         lowest and highest number that can occur (with fill: 40 for missing values, if you like)
#   categories: [f, m]       the names that can occur
#   prepare: number          scale learnt privately; also: auto, date, category, hash, text, words, drop
# and, for the card, source: how you know it.
"""


@click.group(cls=Group)
def domain() -> None:
    """Files of public facts: write one for a table, or check one."""


@domain.command()
@click.argument("data")
@opt.output("File to write (.yaml).")
@click.option(
    "--ask/--no-ask", default=None, help="Ask for every column.  [default: on a terminal]"
)
@opt.takes("target", "classes", "target_range", "person", "file_format", "sep", "encoding")
def init(data: str, ask: bool | None, options: opt.Options) -> None:
    """Write a file of facts for the columns of DATA: from its header and your answers. No cell is read."""
    import sys

    from dpsparse.domain.file import facts_of
    from dpsparse.io import column_names
    from dpsparse.io.tables import index_columns, label_list

    output, target, person = options.output, options.target, options.person
    assert output is not None
    check_output(output, options.overwrite, (data,))
    names = column_names(
        data, options.file_format, sep=options.sep, encoding=options.encoding or "utf-8"
    )
    if len(set(names)) < len(names):
        raise SchemaError(
            "Two columns have the same name; rename one. The first line of a file must name the columns."
        )
    if target is None and person is None:
        raise click.UsageError(
            "Name a column that you know, --target or --person: without one the first line of DATA may be a row, and "
            "its cells would stand in a file of public facts."
        )
    for name in (target, person):
        if name is not None and name not in names:
            raise ParameterError(
                f"There is no column {name!r}.{did_you_mean(name, names, (target, person))}"
            )
    facts: dict[str, Any] = {}
    if target is not None:
        facts["target"] = target
    if options.classes is not None:
        facts["classes"] = label_list(options.classes)
    if options.target_range is not None:
        facts["target_range"] = list(options.target_range)
    if person is not None:
        facts["person"] = person
    asked = sys.stdin.isatty() if ask is None else ask
    columns = [name for name in names if name not in (target, person)]
    facts["columns"] = {
        name: {"prepare": "drop"}
        if name in index_columns(names)
        else _ask(name)
        if asked
        else {"prepare": "auto"}
        for name in columns
    }
    facts_of(facts, output.name)  # refuses now what the next command would refuse
    write_whole(output, file_text(Path(data).name, facts).encode(), options.overwrite)
    say(
        f"{output}: {len(columns)} columns; edit it, then dpsparse fit {data} --domain {output} ..."
    )


def file_text(name: str, facts: dict[str, Any]) -> str:
    """The file, with a line for every column."""
    from dpsparse.domain.file import import_yaml

    columns = facts.pop("columns")
    dump = import_yaml().safe_dump
    lines = [dump(facts, sort_keys=False, allow_unicode=True)] if facts else []
    lines.append("columns:\n")
    for column, stated in columns.items():
        text = dump({column: stated}, default_flow_style=None, width=10_000, allow_unicode=True)
        lines.append("  " + text)
    return ABOUT.format(name=name) + "".join(lines)


def _ask(name: str) -> dict[str, Any]:
    """One answer: 0..120, f,m or a word; empty learns it privately."""
    while True:
        answer = click.prompt(
            f"{show_name(name)}: LOW..HIGH, a list of categories, or auto, number, date, category, hash, text, "
            "words, drop",
            default="auto",
        ).strip()
        try:
            return _stated(answer)
        except ParameterError as error:
            click.echo(show_name(error), err=True)


def _stated(answer: str) -> dict[str, Any]:
    from dpsparse.preprocessing.table import ROLES

    if answer in ROLES:
        return {"prepare": answer}
    if ".." in answer:
        try:
            return {"bounds": list(opt.range_of(answer))}
        except ValueError:
            raise ParameterError("Write bounds as two numbers, such as 0..120.") from None
    names = opt.names_of([answer])
    if len(names) < 2:
        raise ParameterError("Write at least two categories, such as f,m, or one of the words.")
    return {"categories": names}


@domain.command()
@click.argument("file")
@opt.json_option
def check(file: str, as_json: bool) -> None:
    """Read FILE and say what it declares."""
    from dpsparse.domain.file import plain_facts, read

    facts = read(file)
    record = plain_facts(facts.domain)
    if facts.roles:
        record["prepare"] = facts.roles
    for name in ("target", "person", "missing_values"):
        if getattr(facts, name):
            record[name] = getattr(facts, name)
    lines = (f"{name}: {show_name(value)}" for name, value in record.items())
    emit(record, "\n".join(lines), as_json)

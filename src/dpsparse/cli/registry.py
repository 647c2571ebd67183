"""`dpsparse registry`: an entry for the public registry, from a model file and its ledger."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dpsparse._files import check_output, write_whole
from dpsparse.cli import options as opt
from dpsparse.cli.output import say
from dpsparse.exceptions import ParameterError


@click.command()
@click.argument("model", required=False, type=click.Path(path_type=Path))
@opt.output("YAML file to write.", required=False)
@opt.option("--ledger", "ledger_path", about="Ledger of the data set.")
@opt.takes("dataset")
@click.option(
    "--answer",
    "given",
    multiple=True,
    metavar="NAME=TEXT",
    help="An answer to a question of the registry; repeatable. On a terminal the command asks for the rest.",
)
@opt.flag("--questions", about="List the questions and stop.")
def registry(
    model: Path | None,
    given: tuple[str, ...],
    questions: bool,
    options: opt.Options,
) -> None:
    """An entry for the public registry of deployments of differential privacy, about MODEL."""
    from dpsparse.domain.file import import_yaml
    from dpsparse.models.files import load
    from dpsparse.report.registry import ASKED, missing, registry_entry

    if questions:
        say(
            "\n".join(
                f"{n:<18}{'required' if r else 'optional'}  {text}"
                for n, (r, text) in ASKED.items()
            )
        )
        return
    output = options.output
    if model is None or output is None:
        raise click.UsageError(
            "Name a model and a file to write: dpsparse registry MODEL -o entry.yaml."
        )
    check_output(output, options.overwrite, options.inputs(model))
    answers: dict[str, str] = {}
    for text in given:
        name, mark, answer = text.partition("=")
        if not mark or name not in ASKED:
            raise ParameterError(
                f"--answer {text!r} is not NAME=TEXT with one of {', '.join(ASKED)}."
            )
        answers[name] = answer
    fitted: Any = load(model)
    if sys.stdin.isatty():
        for name in missing(answers):
            answers[name] = click.prompt(f"{name} ({ASKED[name][1]})", err=True)
    entry = registry_entry(
        fitted, answers, ledger=opt.account(options.ledger_path, dataset=options.dataset)
    )
    text = import_yaml().safe_dump(entry, sort_keys=False, allow_unicode=True)
    write_whole(output, text.encode(), options.overwrite)
    say(f"{output}: draft of a registry entry, tier {entry['tier']}; read it before you send it")

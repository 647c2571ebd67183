"""`dpsparse registry` and `annex`: what an officer asks for, from a model file and its ledger."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from dpsparse._files import check_output, write_whole
from dpsparse.cli import options as opt
from dpsparse.cli.output import say
from dpsparse.exceptions import ParameterError

_ledger = opt.option("--ledger", "ledger_path", about="Ledger of the data set.")
_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("model", required=False, type=click.Path(path_type=Path))
@opt.output("YAML file to write.", required=False)
@_ledger
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


@click.command()
@opt.model_argument
@opt.output("Markdown file to write.")
@_ledger
@opt.takes("dataset")
@opt.option(
    "--audit",
    "audit_file",
    type=_file,
    about="What `dpsparse audit` printed, as a text file.",
)
def annex(model: Path, audit_file: Path | None, options: opt.Options) -> None:
    """The technical annex of a data protection impact assessment (Article 35(7) GDPR), about MODEL."""
    from dpsparse.models.files import load
    from dpsparse.report import dpia_annex

    output = options.output
    assert output is not None
    check_output(output, options.overwrite, options.inputs(model, audit_file))
    fitted: Any = load(model)
    verdict = audit_file.read_text("utf-8", errors="replace") if audit_file is not None else None
    if verdict is not None and type(fitted).__name__ not in verdict:
        raise ParameterError(f"--audit is about another method than this {type(fitted).__name__}.")
    text = dpia_annex(
        fitted, ledger=opt.account(options.ledger_path, dataset=options.dataset), audit=verdict
    )
    write_whole(output, text.encode(), options.overwrite)
    say(f"{output}: draft of the annex; the operator fills in what is marked")

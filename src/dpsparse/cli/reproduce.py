"""`dpsparse lab` and `dpsparse reproduce` hand over to the experiments, which live in the source checkout."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click


def _handed_over(name: str, module: str, help_line: str) -> click.Command:
    """A command whose arguments go to the command `name` of a module of the experiments."""

    def command(arguments: tuple[str, ...]) -> None:
        sys.path.insert(0, str(_folder()))
        found = getattr(import_module(module), name)
        found.main(list(arguments), prog_name=f"dpsparse {name}", standalone_mode=False)

    command.__doc__ = help_line
    options = {"ignore_unknown_options": True, "help_option_names": []}
    argument = click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
    return click.command(name, context_settings=options, short_help=help_line)(argument(command))


reproduce = _handed_over(
    "reproduce",
    "engine.command",
    "Regenerate published tables and figures beside the published numbers.",
)
lab = _handed_over(
    "lab", "lab.command", "Run and show experiments: lists of tasks, methods and settings."
)


def _folder() -> Path:
    """The folder `experiments` of the checkout this file belongs to, or of the present folder."""
    for parent in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (parent / "experiments" / "lab").is_dir():
            return parent / "experiments"
    raise click.ClickException(
        "the experiments are part of the source checkout, not of the installed package; run this inside a checkout."
    )

"""`dpsparse lab` hands over to the experiments, which live in the source checkout."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    short_help="Run and show experiments: papers, rivals, speed, the leaderboard.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def lab(arguments: tuple[str, ...]) -> None:
    """Run and show experiments: papers, rivals, speed, the leaderboard."""
    sys.path.insert(0, str(_folder()))
    command = import_module("lab.command").lab
    command.main(list(arguments), prog_name="dpsparse lab", standalone_mode=False)


def _folder() -> Path:
    """The folder `experiments` of the checkout this file belongs to, or of the present folder."""
    for parent in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (parent / "experiments" / "lab").is_dir():
            return parent / "experiments"
    raise click.ClickException(
        "the experiments are part of the source checkout, not of the installed package; run this inside a checkout."
    )

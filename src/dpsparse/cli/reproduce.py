"""`dpsparse reproduce`: hands over to the engine of the experiments, which live in the source checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command(
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    short_help="Regenerate published tables and figures beside the published numbers.",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def reproduce(arguments: tuple[str, ...]) -> None:
    """Regenerate published tables and figures beside the published numbers."""
    sys.path.insert(0, str(_folder()))
    from engine.command import reproduce as command

    command.main(list(arguments), prog_name="dpsparse reproduce", standalone_mode=False)


def _folder() -> Path:
    """The folder `experiments` of the checkout this file belongs to, or of the present folder."""
    for parent in (Path(__file__).resolve().parents[3], Path.cwd()):
        if (parent / "experiments" / "engine").is_dir():
            return parent / "experiments"
    raise click.ClickException(
        "the experiments are part of the source checkout, not of the installed package; run this inside a checkout."
    )

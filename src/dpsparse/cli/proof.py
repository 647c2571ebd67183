"""`dpsparse proof NOTE`: the note behind a guarantee."""

from __future__ import annotations

import click

from dpsparse.cli.output import say


@click.command()
@click.argument("note", required=False)
def proof(note: str | None) -> None:
    """The proof note NOTE, or the names of all of them; `inspect` tells which one a model rests on."""
    from dpsparse import proofs

    say(proofs.read(note) if note else "\n".join(proofs.names()))

"""The commands and options of docs/cli.md, from the parser: `python docs/_ext/cli_options.py` writes them anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

PAGE = Path(__file__).parents[1] / "cli.md"
HEAD = "## Commands"  # all that follows is written from the parser


def commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(name, command) of every command below a group."""
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def reference() -> str:
    """All commands, then all options. Options that several commands share stand once, with their commands."""
    from dpsparse.cli.commands import program

    uses: list[str] = []
    takers: dict[tuple[str, str], list[str]] = {}
    for name, command in commands(program):
        words = [name, *(p.make_metavar(click.Context(command)) for p in _arguments(command))]
        uses.append(f"| `{' '.join(words)}` | {command.get_short_help_str(limit=200)} |")
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                takers.setdefault(_row(parameter), []).append(name)
    rows = sorted(takers.items(), key=lambda item: item[0][0].lstrip("`-"))
    options = [f"| {flags} | {text} | {', '.join(names)} |" for (flags, text), names in rows]
    return "\n".join(
        [
            *(HEAD, "", "| command | does |", "|---|---|", *uses, ""),
            *("## Options", "", "| option | means | of |", "|---|---|---|", *options, ""),
        ]
    )


def _arguments(command: click.Command) -> list[click.Argument]:
    return [p for p in command.params if isinstance(p, click.Argument)]


def _row(option: click.Option) -> tuple[str, str]:
    names = [*option.opts, *option.secondary_opts]
    if isinstance(option.type, click.Choice):
        value = " " + ", ".join(map(str, option.type.choices))
    else:
        value = "" if option.is_flag else f" {option.metavar or option.type.name.upper()}"
    text = " ".join((option.help or "").split())
    text = text.replace("|", "\\|").replace("<", "&lt;")
    if option.required:
        text += " Required."
    return ", ".join(f"`{name}{value}`" for name in names), text


def written(page: str) -> str:
    """The page with its commands and options made anew."""
    return page[: page.index(HEAD)] + reference()


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))

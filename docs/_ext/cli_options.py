"""The section "Every option" of docs/cli.md, from the parser: `python docs/_ext/cli_options.py` writes it anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

PAGE = Path(__file__).parents[1] / "cli.md"
HEAD = "## Every option"


def commands(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """(name, command) of every command below a group."""
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def section() -> str:
    """Options that several commands share stand once, with the commands that take them."""
    from dpsparse.cli.commands import program

    takers: dict[tuple[str, str], list[str]] = {}
    for name, command in commands(program):
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                takers.setdefault(_row(parameter), []).append(name)
    rows = sorted(takers.items(), key=lambda item: item[0][0].lstrip("`-"))
    lines = [f"| {flags} | {text} | {', '.join(names)} |" for (flags, text), names in rows]
    return "\n".join([HEAD, "", "| option | means | of |", "|---|---|---|", *lines]) + "\n"


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
    """The page with its section made anew."""
    start = page.index(HEAD)
    rest = re.search(r"\n## ", page[start + 1 :])
    end = len(page) if rest is None else start + 1 + rest.start() + 1
    return page[:start] + section() + ("\n" if rest else "") + page[end:]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))

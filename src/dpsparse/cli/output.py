"""How the command line talks: results on stdout, progress and warnings on stderr."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from dpsparse._json import plain, readable
from dpsparse._text import show_name, show_text
from dpsparse.exceptions import LedgerError, ModelFileError


class Group(click.Group):
    """A list of commands in which no sentence is cut short."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [
            (name, one.get_short_help_str(limit=1_000))
            for name, one in sorted(self.commands.items())
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@contextmanager
def stage(text: str) -> Iterator[None]:
    """Progress on a terminal; silent in a pipe or a log."""
    show = sys.stderr.isatty()
    begin = time.perf_counter()
    if show:
        click.echo(f"{show_name(text)} ...", nl=False, err=True)
    try:
        yield
    except BaseException:
        if show:
            click.echo(err=True)
        raise
    if show:
        click.echo(f" {time.perf_counter() - begin:.1f} s", err=True)


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Warnings of this library as one line each; those of others are for developers."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(
        str(w.message) for w in caught if w.category.__module__.startswith("dpsparse")
    ):
        warn(in_options(" ".join(text.split())))


def warn(text: str) -> None:
    """One line on stderr."""
    click.echo(f"dpsparse: warning: {show_name(text)}", err=True)


# Advice about classes, as the option to type.
_OPTIONS = {
    "Declare their categories (PublicEncoder), hash them (HashingEncoder), or give the step a larger share.": (
        "Declare them (--categories COLUMN=A,B), hash them (--hash), read them as --text, or leave them out (--drop)."
    ),
    "Declare their bounds, or drop them.": "Declare --bounds COLUMN=LOW..HIGH, or --drop them.",
    "Declare the scales instead (PublicScaler(bounds={...})), learn fewer columns, or raise epsilon or the share of "
    "this step.": "Declare --bounds COLUMN=LOW..HIGH, learn fewer columns (--drop), or raise --epsilon.",
    "Use mode='hash', which is free, or a larger share.": "Use --text, which is free, or a larger --epsilon.",
}


def in_options(text: str) -> str:
    for advice, option in _OPTIONS.items():
        text = text.replace(advice, option)
    return text


def emit(record: dict[str, Any], text: str, as_json: bool) -> None:
    """The result, for a machine or for a person."""
    say(readable(plain(record)) if as_json else text)


def emit_paid(record: dict[str, Any], text: str, ledger: Any, as_json: bool) -> None:
    """A result that is paid for, with a line on the account. It is shown also where the account cannot be read."""
    try:
        text = with_budget(record, text, ledger)
    except LedgerError as error:
        emit(record, text, as_json)
        raise LedgerError(f"{error} The result is paid and shown.") from None
    emit(record, text, as_json)


def with_budget(record: dict[str, Any], text: str, ledger: Any) -> str:
    """The text with a line on the account that paid, which is added to the record as well."""
    from dpsparse.cli.budget import budget_line

    if ledger is None:
        return text
    budget = {"spent": ledger.spent(), "remaining": ledger.remaining(), "head": ledger.head}
    line = budget_line(ledger)
    record["budget"] = budget
    return f"{text}\n{line}"


def csv_cell(value: Any) -> Any:
    """A cell that a spreadsheet takes for what it is: a text that it would compute gets an apostrophe in front.

    So does a text that begins with one, so that a reader may take one off any cell that has it.
    """
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@\t\r\n'") else value


def emit_price(price: Any, ledger: Any, as_json: bool) -> None:
    """A plan, and whether the ledger would pay for it."""
    from dpsparse.cli.budget import budget_line

    record = {"guarantee": price.guarantee.to_dict(), "parameters": dict(price.parameters)}
    text = str(price)
    if ledger is not None:
        record["allowed"] = ledger.would_allow(price)
        verdict = "allow" if record["allowed"] else "REFUSE"
        text += f"\nthe ledger would {verdict} it; {budget_line(ledger)}"
    emit(record, text, as_json)


def say(text: str, *, end: str = "\n") -> None:
    """Text on stdout, all of it: a full disk behind `> file` is an error of ours."""
    try:
        click.echo(show_text(text) + end, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ModelFileError(f"The result cannot be written: {error.strerror}.") from None

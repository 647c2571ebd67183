"""The command line `dpsparse`: one line for every error, an exit code that docs/cli.md explains, no traceback."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from dpsparse import exceptions as ex


def main() -> NoReturn:
    """Entry point of the console script."""
    try:
        import click
    except ImportError:
        _fail("the command line needs its extra: pip install 'dpsparse[cli]'", 2)
    from dpsparse.cli.commands import program
    from dpsparse.cli.output import spoken_warnings

    try:
        with spoken_warnings():
            program(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help())
    except click.ClickException as error:
        _fail(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except Exception as error:
        if os.environ.get("DPSPARSE_DEBUG"):
            raise
        _fail(*explain(error))
    sys.exit(0)


def explain(error: Exception) -> tuple[str, int]:
    """One line and an exit code. The text of a foreign error is not shown: it may quote a private cell."""
    codes: dict[type[ex.DPSparseError], int] = {
        ex.InternalError: 1,
        ex.SchemaError: 3,
        ex.BudgetError: 4,
        ex.LedgerError: 5,
        ex.ModelFileError: 6,
        ex.DPSparseError: 2,
    }
    for kind, code in codes.items():
        if isinstance(error, kind):
            return " ".join(error.in_options.split()) or type(error).__name__, code
    if isinstance(error, MemoryError):
        return "not enough memory for this file", 3
    return f"unexpected {type(error).__name__} (DPSPARSE_DEBUG=1 shows where)", 1


def _fail(message: str, code: int) -> NoReturn:
    from dpsparse._checks import show_text

    sys.stderr.write(f"dpsparse: {show_text(message)}\n")
    sys.exit(code)

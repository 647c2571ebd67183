"""The command line `dpsparse`: one line for every error, a documented exit code, no traceback.

0  done                                   4  the budget refuses; nothing was spent
1  an unexpected error (please report)    5  the ledger cannot be used, or was edited
2  wrong options or missing public facts  6  a model or output file cannot be read or written
3  the data cannot be read                7  an audit refuted the guarantee
                                          130  interrupted
"""

from __future__ import annotations

import os
import re
import sys
from typing import NoReturn

from dpsparse import exceptions as ex

EXIT_CODES: dict[type[Exception], int] = {
    ex.InternalError: 1,
    ex.SchemaError: 3,
    ex.BudgetError: 4,
    ex.LedgerError: 5,
    ex.ModelFileError: 6,
    ex.DPSparseError: 2,
}


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
    """One line and an exit code. Advice about Domain(...) is given as the option to type.

    The text of a foreign error is not shown: it may quote a private cell.
    """
    from dpsparse.cli.output import in_options

    for kind, code in EXIT_CODES.items():
        if isinstance(error, kind):
            text = " ".join(str(error).split()) or type(error).__name__
            text = in_options(text.replace("math.inf", "--epsilon inf"))
            text = re.sub(r"Domain\((\w+)=(\([^)]*\)|[^)]*)\)", _as_option, text)
            return re.sub(r"Domain\.(\w+)", lambda m: "--" + m[1].replace("_", "-"), text), code
    if isinstance(error, MemoryError):
        return "not enough memory for this file", 3
    return f"unexpected {type(error).__name__} (DPSPARSE_DEBUG=1 shows where)", 1


def _as_option(match: re.Match[str]) -> str:
    value = match[2].strip("[]").replace(" ", "").replace("_", "")
    if value.startswith("("):  # two ends of a range
        value = value.strip("()").replace(",", "..")
    return f"--{match[1].replace('_', '-')} {value}"


def _fail(message: str, code: int) -> NoReturn:
    from dpsparse._text import show_text

    sys.stderr.write(f"dpsparse: {show_text(message)}\n")
    sys.exit(code)

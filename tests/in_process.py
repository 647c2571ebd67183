"""A command in this process, for tests that run many: its exit code and what it printed."""

import contextlib
import io
import sys

from dpsparse.cli import main


def run_command(*arguments):
    """dpsparse ARGUMENTS -> exit code, stdout and stderr, through the real entry point."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["dpsparse", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        return int(stop.code or 0), out.getvalue(), err.getvalue()
    finally:
        sys.argv = before

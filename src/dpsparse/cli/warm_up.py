"""`dpsparse warm-up`: compile the kernels once, so that no fit has to wait for it."""

from __future__ import annotations

import time

import click

from dpsparse.cli.output import say


@click.command("warm-up")
def warm_up() -> None:
    """Compile for this machine now (about half a minute); the code is kept beside the package.

    Fits made-up rows with the commonest settings of both main families. In a container run it while the
    image is built; NUMBA_CACHE_DIR chooses where the code is kept if the package cannot be written to.
    Wheels with compiled code hold most of it already.
    """
    from dpsparse.estimators._warm_up import fit_common_kinds

    start = time.perf_counter()
    fit_common_kinds()
    say(f"ready after {time.perf_counter() - start:.1f} s")

"""How far a run has come, on standard error, for the person who waits.

    verbose < 0    silent
    verbose = 0    on a terminal one line that is rewritten, once a run takes longer than a second;
                   elsewhere (a pipe, a notebook) one line, once it takes longer than five
    verbose > 0    besides, a line for every phase with its seconds

Only public facts are shown: the names of the plan's phases and the share of each that is done.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

from dpsparse.jit import numba

_PATIENCE = 1.0  # seconds before the first sign of life: a line for less would only flicker
_PAUSE = 0.1  # seconds between two signs
_SILENCE = 5.0  # seconds that pass without a word where nobody watches
_CLEAR = "\r\x1b[K"  # to the beginning of the line, and away with what stands there


@contextmanager
def told_if_slow(text: str) -> Iterator[None]:
    """One line in a pipe, a log or a notebook if what happens inside takes long; a terminal is told by others."""
    timer = Timer(_SILENCE, _write, [f"{text} ...\n"])
    timer.daemon = True
    if not sys.stderr.isatty():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def counted(text: str) -> Iterator[None]:
    """On a terminal what happens inside and, when it is done, its seconds; a fit tells more on the same line.
    Elsewhere one line if it takes long.
    """
    if not sys.stderr.isatty():
        with told_if_slow(f"dpsparse: {text}"):
            yield
        return
    began = time.perf_counter()
    _write(f"{text} ...")
    try:
        yield
    finally:
        _write(f"{_CLEAR}{text} ... {time.perf_counter() - began:.1f} s\n")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def tell(text: str) -> None:
    """One line on the terminal or in the log, away from results."""
    _write(f"{text}\n")


class FitProgress:
    """Called by `Releases` with a phase and the share of it that is done; used as a context."""

    def __init__(self, name: str, verbose: int, patience: float | None = None) -> None:
        self._name, self._verbose = name, verbose
        self._patience = patience
        self._live = verbose >= 0 and sys.stderr.isatty()
        self._notice = _CompileNotice()
        self._phase, self._shown = "", False

    def __enter__(self) -> FitProgress:
        self._began = self._entered = time.perf_counter()
        self._next = self._began + (_PATIENCE if self._patience is None else self._patience)
        if not self._live:
            self._next = self._began + _SILENCE
        if self._verbose >= 0:
            numba.core.event.register("numba:compile", self._notice)
        return self

    def __call__(self, phase: str, done: float) -> None:
        now = time.perf_counter()
        if phase != self._phase:
            self._close_phase(now)
            self._phase = phase
        if self._verbose < 0 or now < self._next:
            return
        text = f"{self._name}: {phase} {min(done, 1.0):.0%}, {now - self._began:.0f} s"
        if self._live:
            _write(f"{_CLEAR}{text}")
            self._shown, self._next = True, now + _PAUSE
        else:
            _write(f"{text}\n")
            self._next = now + 12 * (now - self._began) + 1.0  # after 5 s, 1 minute, 14 minutes

    def __exit__(self, *error: object) -> None:
        self._close_phase(time.perf_counter())
        if self._verbose >= 0:
            numba.core.event.unregister("numba:compile", self._notice)
            self._notice.close()

    def _close_phase(self, now: float) -> None:
        if self._shown:
            _write(_CLEAR)
            self._shown = False
        if self._phase and self._verbose > 0:
            _write(f"{self._name}: {self._phase}, {now - self._entered:.1f} s\n")
        self._entered = now


_Listener: Any = object if numba is None else numba.core.event.Listener


class _CompileNotice(_Listener):  # type: ignore[misc, unused-ignore]
    """Says why the first fit on a machine takes seconds, and how many; cached kernels do not trigger it."""

    def __init__(self) -> None:
        self._depth, self._began, self.seconds, self.told = 0, 0.0, 0.0, False

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1
        if not self.told and self.seconds >= _PATIENCE:
            self.told = True
            self._say("compiling for this machine (once, some seconds)")

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began

    def close(self) -> None:
        if self.told:
            self._say(f"compiled in {self.seconds:.0f} s; the code is kept")
            self.told = False

    def _say(self, text: str) -> None:
        tell(f"{_CLEAR if sys.stderr.isatty() else ''}dpsparse: {text}")

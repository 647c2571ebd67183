"""Fixtures that tests of several rooms share."""

import hashlib
import importlib
import itertools
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

# Workers share the cores. Threads of linear algebra wait for each other by spinning, and a fit on a core that is shared
# took five times its processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# How long an example takes to make or to run tells how busy the machine is, and nothing about the code. Examples come
# from the name of a test, so that it passes always or never.
settings.register_profile(
    "any machine", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


def forget_kernels_older_than_the_losses() -> None:
    """Numba keeps compiled kernels by their own file, and does not notice an edit of the losses that they call."""
    source = Path(__file__).parents[1] / "src" / "dpsparse"
    edited = (source / "rows" / "loss_kernels.py").stat().st_mtime
    for kept in source.rglob("__pycache__/*.nbi"):
        if kept.stat().st_mtime < edited:
            kept.unlink(missing_ok=True)


forget_kernels_older_than_the_losses()


def pytest_sessionstart(session):
    """Where no kernel is compiled yet, every worker compiles the common ones of one family, for all workers: else all
    of them would compile the same ones at the same time."""
    worker, workers = (
        os.environ.get("PYTEST_XDIST_WORKER"),
        os.environ.get("PYTEST_XDIST_WORKER_COUNT"),
    )
    if worker is None or os.environ.get("NUMBA_DISABLE_JIT") == "1":
        return
    from dpsparse.methods.frank_wolfe import kernel
    from dpsparse.methods.warm_up import common_fits, fit_without_warnings

    if any(Path(kernel.advance.stats.cache_path).glob("kernel.advance-*.nbc")):
        return
    fits = common_fits()
    number, share = int(worker.removeprefix("gw")), -(-len(fits) // int(workers))
    fit_without_warnings(fits[number * share : (number + 1) * share])


@pytest.fixture(autouse=True)
def no_words_of_slow_machines(monkeypatch):
    """What is said on the way because a machine is busy, or compiles, is the business of test_progress.py."""
    monkeypatch.setattr("dpsparse.progress._SILENCE", 3600.0)
    monkeypatch.setattr("dpsparse.progress._PATIENCE", 3600.0)


@pytest.fixture(autouse=True)
def no_fits_of_other_tests(monkeypatch):
    """A test counts its own fits without a ledger; those of all tests before would be priced anew at the 2nd, 4th,
    8th ... of thousands of different fits."""
    monkeypatch.setattr(importlib.import_module("dpsparse.release"), "_unpaid", {})


@pytest.fixture(autouse=True)
def the_same_noise_every_time(monkeypatch, request):
    """Keys of unseeded noise come from the name of a test and a counter, so that a test passes always or never. A
    forked process has keys of its own, as it has with the operating system."""
    name, home, count = request.node.nodeid, os.getpid(), itertools.count()

    def keys(size: int) -> bytes:
        forked = os.getpid() if os.getpid() != home else 0
        return hashlib.shake_128(f"{name} {next(count)} {forked}".encode()).digest(size)

    named = SimpleNamespace(urandom=keys, write=os.write, _exit=os._exit)
    monkeypatch.setattr("dpsparse.random.os", named)


@pytest.fixture
def uncompiled_heap(monkeypatch):
    """To compile Algorithms 2 and 3 of a paper takes longer than their few steps on small tables in Python."""
    from lab.papers import operations

    for name in ("_fast", "_up", "_down"):
        monkeypatch.setattr(operations, name, getattr(operations, name).py_func)


@pytest.fixture
def run(capsys, monkeypatch):
    """dpsparse ARGS -> (exit code, stdout, stderr), through the real entry point but in this process: to start
    Python and to import scikit-learn takes longer than most commands."""
    from dpsparse.cli import main

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["dpsparse", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return stop.value.code, out, err

    return call


@pytest.fixture
def many_names(monkeypatch):
    """A tenth of delta pays for names that only one row has, so that names of small tables are released."""
    monkeypatch.setattr("dpsparse.preprocessing._step.LEAK_SHARE", 0.1)
